package exec_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// A site is a place in a kernel where something can be broken, and how.
type site struct {
	what  string
	apply func()
}

// sites lists what can be broken in a kernel: a barrier removed, an index shifted by one, a comparison turned into its opposite,
// words of a factor of tensor cores exchanged, an asynchronous copy, the end of a group of them or a
// wait for them removed.
func sites(k *kir.Kernel) []site {
	var out []site
	one := &kir.Node{Op: kir.Const, Type: kir.I32, Int: 1}
	var walk func(b *kir.Block)
	walk = func(b *kir.Block) {
		for i, v := range b.Nodes {
			switch v.Op {
			case kir.Barrier:
				out = append(out, site{"barrier removed", func() { b.Nodes = append(b.Nodes[:i:i], b.Nodes[i+1:]...) }})
			case kir.Load, kir.Store:
				if v.Width > 1 || v.Words {
					continue // would only be misaligned
				}
				out = append(out, site{fmt.Sprintf("index of %s of %s shifted", v.Op, v.Mem.Name), func() {
					at := &kir.Node{Op: kir.Add, Type: kir.I32, Args: []*kir.Node{v.Args[0], one}}
					b.Nodes = append(b.Nodes[:i:i], append([]*kir.Node{at}, b.Nodes[i:]...)...)
					v.Args[0] = at
				}})
			case kir.CopyCommit, kir.CopyWait:
				out = append(out, site{fmt.Sprintf("%s removed", v.Op), func() { b.Nodes = append(b.Nodes[:i:i], b.Nodes[i+1:]...) }})
			case kir.CopyAsync:
				out = append(out, site{fmt.Sprintf("copy to %s removed", v.Mem.Name), func() { b.Nodes = append(b.Nodes[:i:i], b.Nodes[i+1:]...) }})
			case kir.Mma:
				if v.Args[0] == v.Args[1] {
					continue // a product by ones
				}
				out = append(out, site{"factors of mma exchanged", func() { v.Args[0], v.Args[1] = v.Args[1], v.Args[0] }})
			case kir.Lt, kir.Le, kir.ULt, kir.ULe, kir.Eq:
				if v.Args[0].Type.IsFloat() {
					continue // with NaN there is no opposite
				}
				out = append(out, site{fmt.Sprintf("%s %s turned round", v.Op, of(v.Args[1])), func() {
					switch v.Op {
					case kir.Eq:
						v.Op = kir.Ne
					case kir.Lt, kir.ULt:
						v.Op++ // Le, ULe
						v.Args[0], v.Args[1] = v.Args[1], v.Args[0]
					default:
						v.Op--
						v.Args[0], v.Args[1] = v.Args[1], v.Args[0]
					}
				}})
			}
			for _, in := range v.Blocks {
				walk(in)
			}
		}
	}
	walk(k.Body)
	return out
}

// of tells what something is compared with.
func of(v *kir.Node) string {
	if v.Op == kir.Const {
		return fmt.Sprint(v.Int)
	}
	return v.Op.String()
}

// ties are rows in which the greatest element stands at several places, also at the first one and at the last.
func ties(rows, n int64) *tensor.Tensor {
	v := make([]float64, rows*n)
	for r := range rows {
		for i := range n {
			v[r*n+i] = float64((i*7 + r*13) % 5)
		}
		for k := range r % 3 {
			v[r*n+(r*37+k*61)%n] = 9
		}
		if r%5 == 0 {
			v[r*n] = 9
		}
		if r%7 == 0 {
			v[r*n+n-1] = 9
		}
	}
	return tensor.FromFloats(tensor.Float32, []int64{rows, n}, v)
}

// Faults that are planted in kernels are found: by the simulator's checkers, or by the numbers. What escapes changes nothing
// that counts:
//
//	Softmax, index of the exchange of the maximum: any number near the maximum may be subtracted
//	"eq 0", who stores the result of a team: all its threads have it, and store the same
//	MatMul, "eq 0": the columns of a stripe of tiles in the other direction, which are the same ones
//	ArgMax, comparisons of threads without elements: no thread of these rows is without
//	Unique, comparisons of an element with a later one: for sorting it is enough whether it goes before
//	Unique, the next element of a group instead of its first: they are equal
//	DFT and STFT, the quadrant of an angle: all are in the first octant
//	RandomNormal, the sign of a sine: only the cosine is used
func TestMutations(t *testing.T) {
	f := func(seed uint64, shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, seed, false) }
	axes := func(v ...int64) *tensor.Tensor { return tensor.Ints(v...) }
	total, found := 0, 0
	var escaped []string
	for _, n := range append([]node{
		{op: "Add", in: []*tensor.Tensor{f(1, 3, 1, 43), f(2, 5, 1)}},
		{op: "Relu", in: []*tensor.Tensor{f(1, 515)}},
		{op: "Transpose", in: []*tensor.Tensor{f(1, 2, 33, 35)}, attrs: []ssa.Attr{ints("perm", 0, 2, 1)}},
		{op: "ReduceSum", in: []*tensor.Tensor{f(1, 3, 1500), axes(1)}, consts: []bool{false, true}},
		{op: "ReduceMax", in: []*tensor.Tensor{f(1, 5, 70), axes(1)}, consts: []bool{false, true}},
		{op: "ArgMax", in: []*tensor.Tensor{ties(40, 1030)}, attrs: []ssa.Attr{number("axis", 1)}},
		{op: "Softmax", in: []*tensor.Tensor{f(1, 3, 1500)}},
		{op: "LayerNormalization", in: []*tensor.Tensor{f(1, 3, 1100), f(2, 1100), f(3, 1100)}},
		{op: "MatMul", in: []*tensor.Tensor{f(1, 67, 35), f(2, 35, 70)}},
		{op: "MatMul", in: []*tensor.Tensor{f(1, 1540, 20), f(2, 20, 150)}, dynamic: true},                                                                                              // the largest tiles, two stripes
		{op: "MatMul", in: []*tensor.Tensor{fill(tensor.Float16, []int64{131, 35}, 1, false), fill(tensor.Float16, []int64{35, 67}, 2, false)}},                                         // tensor cores
		{op: "Gemm", in: []*tensor.Tensor{fill(tensor.Float16, []int64{131, 160}, 1, false), fill(tensor.Float16, []int64{67, 160}, 2, false)}, attrs: []ssa.Attr{number("transB", 1)}}, // with a ring of stages
		{op: "MatMul", in: []*tensor.Tensor{f(1, 131, 35), f(2, 35, 67)}, tf32: true},
		{op: "MatMulInteger", in: []*tensor.Tensor{fill(tensor.Uint8, []int64{131, 77}, 1, false), fill(tensor.Int8, []int64{77, 67}, 2, false), fill(tensor.Uint8, []int64{}, 3, false), fill(tensor.Int8, []int64{67}, 4, false)}},
		{op: "Gemm", in: []*tensor.Tensor{fill(tensor.Float16, []int64{96, 136}, 1, false), fill(tensor.Float16, []int64{96, 72}, 2, false)}, attrs: []ssa.Attr{number("transA", 1)}},
		{op: "Gemm", in: []*tensor.Tensor{f(1, 3, 70), f(2, 11, 70), f(3, 11)}, attrs: []ssa.Attr{number("transB", 1)}},
		{op: "Conv", in: []*tensor.Tensor{f(1, 1, 3, 9, 11), f(2, 70, 3, 3, 3), f(3, 70)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "Conv", in: []*tensor.Tensor{f(1, 1, 6, 9, 11), f(2, 6, 1, 3, 3)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1), number("group", 6)}},
		{op: "MaxPool", in: []*tensor.Tensor{f(1, 1, 3, 9, 11)}, attrs: []ssa.Attr{ints("kernel_shape", 3, 3), ints("pads", 1, 1, 1, 1)}},
		{op: "Pad", in: []*tensor.Tensor{f(1, 5, 7), axes(1, 2, 3, 4)}, consts: []bool{false, true}},
		{op: "Gather", in: []*tensor.Tensor{f(1, 5, 7), axes(0, 4, -1)}, consts: []bool{false, true}},
		{op: "CumSum", in: []*tensor.Tensor{f(1, 5, 130), tensor.ScalarInt(1)}, consts: []bool{false, true}},
		{op: "TopK", in: []*tensor.Tensor{few(tensor.Float32, 3, 300), axes(150)}, consts: []bool{false, true}, results: 2},
		{op: "TopK", in: []*tensor.Tensor{few(tensor.Int32, 2, 2100), axes(2100)}, consts: []bool{false, true}, results: 2},
		{op: "NonZero", in: []*tensor.Tensor{few(tensor.Float32, 3, 200)}},
		{op: "Compress", in: []*tensor.Tensor{f(1, 600, 3), few(tensor.Bool, 590)}, attrs: []ssa.Attr{number("axis", 0)}},
		{op: "Unique", in: []*tensor.Tensor{few(tensor.Int64, 290)}, results: 4},
		{op: "Unique", in: []*tensor.Tensor{few(tensor.Float32, 270, 2)}, attrs: []ssa.Attr{number("axis", 0), number("sorted", 0)}, results: 4},
		{op: "GridSample", in: []*tensor.Tensor{f(1, 1, 3, 5, 7), spots(tensor.Float32, 1, 9, 9, 2)}},
		{op: "LSTM", in: []*tensor.Tensor{f(1, 3, 2, 4), f(2, 1, 20, 4), f(3, 1, 20, 5), f(4, 1, 40), nil, f(5, 1, 2, 5), f(6, 1, 2, 5)}, attrs: []ssa.Attr{number("hidden_size", 5)}, results: 3},
		{op: "GRU", in: []*tensor.Tensor{f(1, 3, 2, 4), f(2, 1, 390, 4), f(3, 1, 390, 130)}, attrs: []ssa.Attr{number("hidden_size", 130)}, results: 2},
		{op: "Attention", in: []*tensor.Tensor{f(1, 1, 1, 20, 12), f(2, 1, 1, 20, 12), f(3, 1, 1, 20, 5), nil, f(4, 1, 1, 55, 12), f(5, 1, 1, 55, 5)}, attrs: []ssa.Attr{number("is_causal", 1)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 1, 2, 3, 6), f(2, 1, 1, 100, 6), f(3, 1, 1, 100, 5), holes(tensor.Float32, 1, 3, 260), f(4, 1, 1, 160, 6), f(5, 1, 1, 160, 5)}, results: 3},
		{op: "Attention", in: []*tensor.Tensor{scored(tensor.Float16, 1, 1, 1, 70, 58), scored(tensor.Float16, 2, 1, 1, 70, 58), scored(tensor.Float16, 3, 1, 1, 70, 12)}, attrs: []ssa.Attr{number("is_causal", 1)}}, // tensor cores
		{op: "RotaryEmbedding", in: []*tensor.Tensor{f(1, 2, 3, 5, 10), f(2, 2, 5, 4), f(3, 2, 5, 4)}, attrs: []ssa.Attr{number("rotary_embedding_dim", 8)}},
		{op: "Mod", in: []*tensor.Tensor{f(1, 515), f(2, 515)}, attrs: []ssa.Attr{number("fmod", 1)}},
	}, mutatedOperators()...) {
		m, args := n.module(t)
		p, err := plan.NewWith(m, n.options(guesses))
		if err != nil {
			t.Fatal(err)
		}
		want, err := new(interp.Interpreter).RunFunc(p.Func, args)
		if err != nil {
			t.Fatal(err)
		}
		for k := range p.Kernels {
			for i := range len(sites(p.Kernels[k].Kernel)) {
				// kernels are changed in place: each fault needs a new plan
				p, err := plan.NewWith(m, n.options(guesses))
				if err != nil {
					t.Fatal(err)
				}
				s := exec.NewSession(p, &exec.Sim{Check: true})
				s.Backend.(*exec.Sim).Steps = 1 << 22 // a fault may be an endless loop
				broken := sites(p.Kernels[k].Kernel)[i]
				broken.apply()
				total++
				if notices(s, p, n.in, args, want) {
					found++
				} else {
					escaped = append(escaped, fmt.Sprintf("%s: kernel %d: %s", n.op, k, broken.what))
				}
			}
		}
	}
	t.Logf("%d of %d planted faults found; the others:\n%s", found, total, strings.Join(escaped, "\n"))
	if total < 100 || 100*found < 98*total {
		t.Errorf("%d of %d planted faults found:\n%s", found, total, strings.Join(escaped, "\n"))
	}
}

func notices(s *exec.Session, p *plan.Plan, in []*tensor.Tensor, args, want []interp.Value) bool {
	got, _, err := s.Run(args)
	if err != nil {
		return true
	}
	o := p.Func.Body.Last()
	for i := range want {
		allowed, err := bound.Tolerance(o.Kind, o.Attrs, in, i, want[i].Tensor)
		if err != nil {
			return true
		}
		if bound.Measure(got[i].Tensor, want[i].Tensor, allowed).Bad() {
			return true
		}
	}
	return false
}
