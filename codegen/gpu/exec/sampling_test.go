package exec_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// sampled runs a part of the blocks of a node's kernels.
func sampled(t *testing.T, n *node, s *exec.Sim, share float64, seed uint64, replace func(*kir.Kernel) *kir.Kernel) *exec.Sample {
	t.Helper()
	m, args := n.module(t)
	p, err := plan.New(m, fuse.None)
	if err != nil {
		t.Fatal(err)
	}
	session := exec.NewSession(p, s)
	session.Replace = replace
	out, err := exec.CheckSample(p, session, args, share, seed)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wrongIn makes the kernel store 1 more than it should where what is equal to at.
func wrongIn(what kir.Op, at int64) func(*kir.Kernel) *kir.Kernel {
	return func(k *kir.Kernel) *kir.Kernel {
		var walk func(b *kir.Block)
		walk = func(b *kir.Block) {
			for i := 0; i < len(b.Nodes); i++ {
				v := b.Nodes[i]
				for _, in := range v.Blocks {
					walk(in)
				}
				if v.Op != kir.Store || v.Mem.Shared {
					continue
				}
				number := &kir.Node{Op: what, Type: kir.I32}
				hit := &kir.Node{Op: kir.Eq, Type: kir.I1, Args: []*kir.Node{number, {Op: kir.Const, Type: kir.I32, Int: at}}}
				more := &kir.Node{Op: kir.Add, Type: v.Args[1].Type, Args: []*kir.Node{v.Args[1], {Op: kir.Const, Type: v.Args[1].Type, Float: 1}}}
				chosen := &kir.Node{Op: kir.Select, Type: more.Type, Args: []*kir.Node{hit, more, v.Args[1]}}
				v.Args[1] = chosen
				b.Nodes = append(b.Nodes[:i:i], append([]*kir.Node{number, hit, more, chosen}, b.Nodes[i:]...)...)
				i += 4
			}
		}
		walk(k.Body)
		return k
	}
}

func vectorOf(n int64, seed uint64) *tensor.Tensor {
	return fill(tensor.Float32, []int64{n}, seed, false)
}

// A kernel that is wrong in one of its blocks is found whenever that block is chosen: always at share 1, and with the probability of the
// share at less.
func TestSampleFindsWrongBlock(t *testing.T) {
	n := &node{op: "Mul", in: []*tensor.Tensor{vectorOf(1<<14, 1), vectorOf(1<<14, 2)}}
	whole := sampled(t, n, &exec.Sim{}, 1, 0, nil)
	blocks := whole.Blocks
	if blocks < 16 || whole.Ran != blocks || whole.Compared != 1<<14 || whole.Elements != 1<<14 || whole.Node != nil || len(whole.Whole) > 0 {
		t.Fatalf("%+v", whole)
	}
	for _, s := range []*exec.Sim{{}, {Check: true}} {
		for _, at := range []int64{0, 7, blocks - 1} {
			if got := sampled(t, n, s, 1, 3, wrongIn(kir.BlockX, at)); got.Node == nil || got.Node.Beyond == 0 {
				t.Errorf("%s: block %d is wrong, and was not found", s.Name(), at)
			}
		}
	}
	const runs = 400
	for _, share := range []float64{0.25, 0.5} {
		found := 0
		seen := map[string]bool{}
		for seed := range uint64(runs) {
			got := sampled(t, n, &exec.Sim{}, share, seed, wrongIn(kir.BlockX, 7))
			if want := int64(math.Ceil(share * float64(blocks))); got.Ran != want || got.Node == nil && got.Compared != want*(1<<14)/blocks {
				t.Fatalf("share %v: %+v", share, got)
			}
			if got.Node != nil {
				found++
				seen[fmt.Sprint(got.Node.First)] = true
			}
		}
		p := math.Ceil(share*float64(blocks)) / float64(blocks)
		if off := math.Abs(float64(found) - runs*p); off > 4*math.Sqrt(runs*p*(1-p)) {
			t.Errorf("share %v: found in %d of %d runs, expected %.0f", share, found, runs, runs*p)
		}
		if len(seen) != 1 {
			t.Errorf("share %v: the first wrong element is one of %v", share, seen)
		}
	}
	// one that is wrong in each block is found by any sample
	for seed := range uint64(20) {
		if got := sampled(t, n, &exec.Sim{}, 0.01, seed, wrongIn(kir.ThreadX, 5)); got.Node == nil || got.Ran != 1 {
			t.Errorf("seed %d: %+v", seed, got)
		}
	}
}

// The same seed takes the same blocks, another one others.
func TestSampleSeed(t *testing.T) {
	n := &node{op: "Relu", in: []*tensor.Tensor{vectorOf(1<<15, 1)}}
	found := func(seed uint64) (out []bool) {
		for at := range int64(32) {
			out = append(out, sampled(t, n, &exec.Sim{}, 0.2, seed, wrongIn(kir.BlockX, at)).Node != nil)
		}
		return out
	}
	a, b, c := found(1), found(1), found(2)
	if !reflect.DeepEqual(a, b) || reflect.DeepEqual(a, c) {
		t.Errorf("seed 1: %v, again %v, seed 2: %v", a, b, c)
	}
}

// Samples of kernels of each class: what the chosen blocks write is right; kernels that work in passes run whole, and say so.
func TestSampleClasses(t *testing.T) {
	f := func(shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, 1, false) }
	for _, c := range []struct {
		node
		whole bool
	}{
		{node: node{op: "MatMul", in: []*tensor.Tensor{f(200, 40), f(40, 170)}}},
		{node: node{op: "MatMul", in: []*tensor.Tensor{fill(tensor.Float16, []int64{200, 40}, 1, false), fill(tensor.Float16, []int64{40, 170}, 2, false)}}},
		{node: node{op: "Conv", in: []*tensor.Tensor{f(2, 9, 20, 20), f(70, 9, 3, 3)}}},
		{node: node{op: "Softmax", in: []*tensor.Tensor{f(40, 1500)}}},
		{node: node{op: "Transpose", in: []*tensor.Tensor{f(100, 90)}, attrs: []ssa.Attr{ints("perm", 1, 0)}}},
		{node: node{op: "Greater", in: []*tensor.Tensor{vectorOf(5000, 1), vectorOf(5000, 2)}}},
		{node: node{op: "Cast", in: []*tensor.Tensor{vectorOf(5000, 1)}, attrs: []ssa.Attr{number("to", int64(tensor.Int64.ONNX()))}}},
		{node: node{op: "TopK", in: []*tensor.Tensor{f(40, 90), tensor.Ints(9)}, consts: []bool{false, true}, results: 2}},
		{node: node{op: "NonZero", in: []*tensor.Tensor{fill(tensor.Bool, []int64{9000}, 1, false)}}, whole: true},
		{node: node{op: "ScatterElements", in: []*tensor.Tensor{vectorOf(9000, 1), tensor.Ints(5, -1), vectorOf(2, 2)}}},
		{node: node{op: "Compress", in: []*tensor.Tensor{vectorOf(9000, 1), fill(tensor.Bool, []int64{9000}, 1, false)}}, whole: true},
	} {
		t.Run(c.op, func(t *testing.T) {
			for _, s := range []*exec.Sim{{Check: true}, {}} {
				got := sampled(t, &c.node, s, 0.2, 5, nil)
				if got.Node != nil {
					t.Fatalf("%s: %s", s.Name(), got.Node)
				}
				if c.whole != (len(got.Whole) > 0) || c.whole && got.Compared != got.Elements {
					t.Errorf("%s: %+v", s.Name(), got)
				}
				if !c.whole && (got.Ran >= got.Blocks || got.Compared == 0 || got.Compared >= got.Elements) {
					t.Errorf("%s: %+v", s.Name(), got)
				}
			}
		})
	}
}

// A part that the simulator stops is a wrong node, too.
func TestSampleFault(t *testing.T) {
	n := &node{op: "Relu", in: []*tensor.Tensor{vectorOf(1<<14, 1)}}
	got := sampled(t, n, &exec.Sim{}, 0.1, 1, func(k *kir.Kernel) *kir.Kernel {
		var walk func(b *kir.Block)
		walk = func(b *kir.Block) {
			for _, v := range b.Nodes {
				for _, in := range v.Blocks {
					walk(in)
				}
				if v.Op == kir.Store {
					v.Args[0] = &kir.Node{Op: kir.Const, Type: kir.I32, Int: 1 << 20}
				}
			}
		}
		walk(k.Body)
		return k
	})
	if got.Node == nil || !strings.Contains(got.Node.Fault, "out of bounds") {
		t.Errorf("%+v", got)
	}
}

func TestSampleRefuses(t *testing.T) {
	m, args := (&node{op: "Relu", in: []*tensor.Tensor{vectorOf(100, 1)}}).module(t)
	for _, c := range []struct {
		mode  fuse.Mode
		b     exec.Backend
		share float64
	}{{fuse.Light, &exec.Sim{}, 0}, {fuse.None, &exec.Sim{}, 1.5}, {fuse.None, &exec.Sim{}, math.NaN()}, {fuse.None, struct{ exec.Backend }{&exec.Sim{}}, 0.5}} {
		p, err := plan.New(m, c.mode)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CheckSample(p, exec.NewSession(p, c.b), args, c.share, 0); err == nil {
			t.Errorf("%v %T %v: %+v", c.mode, c.b, c.share, out)
		}
	}
}

const fusedNodes = `
graph @f(%x : Float(600, 40), %w : Float(40, 70), %b : Float(70)):
  %p : Float(600, 70) = onnx::MatMul(%x, %w)
  %q : Float(600, 70) = onnx::Add(%p, %b)
  %r : Float(600, 70) = onnx::Tanh(%q)
  %h : Float(600, 70) = onnx::Exp(%r)
  %e : Float(600, 70) = onnx::Sigmoid(%h)
  %m : Float(600, 70) = onnx::Mul(%e, %b)
  %t : Float(70, 600) = onnx::Transpose[perm=[1, 0]](%m)
  %s : Float(70, 600) = onnx::Softmax[axis=-1](%t)
  %c : Bool(70, 600) = onnx::Greater(%t, %s)
  %y : Float(600, 70) = onnx::Elu(%m)
  %z : Float(600) = onnx::ReduceSum[keepdims=0](%y, %axes)
  return (%s, %c, %z)`

// What a fused kernel computes is compared, too: a block that is wrong is found where it is chosen, and none is blamed that is right.
func TestSampleFused(t *testing.T) {
	text := strings.Replace(fusedNodes, "  %p :", "  %axes : Long(1) = onnx::Constant[value={1}]()\n  %p :", 1)
	m, err := ssa.Parse(text, "test", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	args := []interp.Value{interp.Of(fill(tensor.Float32, []int64{600, 40}, 1, false)), interp.Of(fill(tensor.Float32, []int64{40, 70}, 2, false)), interp.Of(vectorOf(70, 3))}
	check := func(share float64, seed uint64, broken string, at int64) *exec.Sample {
		p, err := plan.New(m, fuse.Light)
		if err != nil {
			t.Fatal(err)
		}
		fused := 0
		for _, n := range p.Nodes {
			if n.Place == plan.Fused {
				fused++
			}
		}
		if fused < 4 {
			t.Fatalf("%d nodes are fused", fused)
		}
		s := exec.NewSession(p, &exec.Sim{})
		s.Replace = func(k *kir.Kernel) *kir.Kernel {
			if k.Name == broken {
				return wrongIn(kir.BlockX, at)(k)
			}
			return k
		}
		out, err := exec.CheckSample(p, s, args, share, seed)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for seed := range uint64(4) {
		got := check(0.3, seed, "", 0)
		if got.Node != nil {
			t.Errorf("seed %d: %s", seed, got.Node)
		}
		if got.Nodes != 11 || got.Ran >= got.Blocks || got.Compared >= got.Elements {
			t.Errorf("seed %d: %+v", seed, got)
		}
	}
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range p.Steps {
		if s.Launch == nil || s.Op.Results[0].DType() != tensor.Float32 {
			continue
		}
		if got := check(1, 0, s.Kernel.Name, 0); got.Node == nil || !strings.Contains(got.Node.Node, plan.NodeName(s.Op)) || got.Node.Kernel[0] != s.Kernel.Name {
			t.Errorf("%s is wrong in a block, found is %v", plan.NodeName(s.Op), got.Node)
		}
	}
}

// Faults planted in fused kernels are found by comparing with their nodes: the bounds that add up along them are not too wide.
func TestSampleFusedFaults(t *testing.T) {
	text := strings.Replace(fusedNodes, "  %p :", "  %axes : Long(1) = onnx::Constant[value={1}]()\n  %p :", 1)
	text = strings.NewReplacer("600", "130", "70", "65", "Float(130, 40)", "Float(130, 20)", "Float(40, 65)", "Float(20, 65)").Replace(text)
	m, err := ssa.Parse(text, "test", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	args := []interp.Value{interp.Of(fill(tensor.Float32, []int64{130, 20}, 1, false)), interp.Of(fill(tensor.Float32, []int64{20, 65}, 2, false)), interp.Of(vectorOf(65, 3))}
	first, err := plan.New(m, fuse.Light)
	if err != nil {
		t.Fatal(err)
	}
	total, found := 0, 0
	var escaped []string
	for n, k := range first.Kernels {
		for i := range sites(k.Kernel) {
			p, err := plan.New(m, fuse.Light)
			if err != nil {
				t.Fatal(err)
			}
			broken := sites(p.Kernels[n].Kernel)[i]
			broken.apply()
			total++
			s := exec.NewSession(p, &exec.Sim{Check: true, Steps: 1 << 22})
			got, err := exec.CheckSample(p, s, args, 1, 0)
			if err != nil || got.Node != nil {
				found++
			} else {
				escaped = append(escaped, k.Name+": "+broken.what)
			}
		}
	}
	t.Logf("%d of %d found; the others:\n%s", found, total, strings.Join(escaped, "\n"))
	if total < 50 || 100*found < 98*total {
		t.Errorf("%d of %d found:\n%s", found, total, strings.Join(escaped, "\n"))
	}
}
