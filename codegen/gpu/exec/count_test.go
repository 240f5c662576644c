package exec_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// The tiles of products have no bank conflict, however the operands lie. The product of 1536x1408 has the largest tiles.
func TestTileConflicts(t *testing.T) {
	for _, size := range []struct {
		m, n, k int64
		d       tensor.DType
	}{{128, 128, 64, tensor.Float32}, {128, 16, 64, tensor.Float32}, {16, 128, 64, tensor.Float32}, {1536, 1408, 16, tensor.Float32},
		{128, 128, 64, tensor.Float64}, {128, 16, 64, tensor.Float64}, {16, 128, 64, tensor.Float64}} {
		for trans := range int64(4) {
			m, n, k := size.m, size.n, size.k
			a, b := []int64{m, k}, []int64{k, n}
			if trans&1 != 0 {
				a = []int64{k, m}
			}
			if trans&2 != 0 {
				b = []int64{n, k}
			}
			t.Run(fmt.Sprintf("%s/%dx%d/%d", size.d, m, n, trans), func(t *testing.T) {
				node := node{op: "Gemm", attrs: []ssa.Attr{number("transA", trans&1), number("transB", trans>>1)},
					in: []*tensor.Tensor{fill(size.d, a, 1, false), fill(size.d, b, 2, false)}}
				module, args := node.module(t)
				p, err := plan.New(module, fuse.None)
				if err != nil {
					t.Fatal(err)
				}
				_, report, err := exec.NewSession(p, &exec.Sim{Count: true}).Run(args)
				if err != nil {
					t.Fatal(err)
				}
				c := report.Steps[0].Counts
				t.Logf("%+v", c)
				if c.Wavefronts == 0 || c.Conflicts != 0 {
					t.Errorf("%d bank conflicts in %d wavefronts", c.Conflicts, c.Wavefronts)
				}
				if c.Flops != 2*m*n*k {
					t.Errorf("%d flops, want %d", c.Flops, 2*m*n*k)
				}
			})
		}
	}
}

// The largest tiles give the same elements as the interpreter: whole and cut ones, in one stripe and in several.
func TestLargeTiles(t *testing.T) {
	f := func(shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, 1, false) }
	for _, n := range []node{
		{op: "MatMul", in: []*tensor.Tensor{f(1540, 20), f(20, 150)}, dynamic: true},
		{op: "MatMul", in: []*tensor.Tensor{f(2, 150, 20), f(2, 20, 290)}, dynamic: true},
		{op: "MatMul", in: []*tensor.Tensor{f(1630, 20), f(20, 1270)}},
		{op: "MatMul", in: []*tensor.Tensor{f(1536, 16), f(16, 1408)}},
		{op: "Conv", in: []*tensor.Tensor{f(17, 8, 31, 31), f(120, 8, 1, 1)}},
	} {
		n.check(t)
	}
}

// matrixNodes are products on tensor cores: whole and cut tiles, several of each, in all layouts, and read through a window.
func matrixNodes() []node {
	var out []node
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		f := func(shape ...int64) *tensor.Tensor { return fill(d, shape, 1, false) }
		out = append(out,
			node{op: "MatMul", in: []*tensor.Tensor{f(256, 64), f(64, 128)}},
			node{op: "MatMul", in: []*tensor.Tensor{f(130, 40), f(40, 68)}},
			node{op: "MatMul", in: []*tensor.Tensor{f(2, 3, 136, 64), f(3, 64, 72)}}, // a ring of stages in each batch
			node{op: "MatMul", in: []*tensor.Tensor{f(131, 35), f(35, 67)}},
			node{op: "MatMul", in: []*tensor.Tensor{f(2, 150, 50), f(2, 50, 290)}, dynamic: true},
			node{op: "Gemm", in: []*tensor.Tensor{f(64, 256), f(128, 64), f(128)}, attrs: []ssa.Attr{number("transA", 1), number("transB", 1)}},
			node{op: "Gemm", in: []*tensor.Tensor{f(70, 132), f(72, 70), f(72)}, attrs: []ssa.Attr{number("transA", 1), number("transB", 1)}},
			node{op: "MatMul", in: []*tensor.Tensor{f(64, 64), f(64, 256)}},
			node{op: "MatMul", in: []*tensor.Tensor{f(70, 35), f(35, 133)}},
			node{op: "Conv", in: []*tensor.Tensor{f(2, 8, 9, 16), f(64, 8, 3, 3), f(64)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
			node{op: "Conv", in: []*tensor.Tensor{f(1, 40, 12, 12), f(100, 40, 1, 1)}},
			node{op: "Conv", in: []*tensor.Tensor{f(2, 5, 9, 11), f(130, 5, 3, 3), f(130)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}})
	}
	return out
}

// Products of float32 are on tensor cores, with factors rounded to tf32, only if that is asked for.
func TestTF32(t *testing.T) {
	f := func(seed uint64, shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, seed, false) }
	for _, n := range []node{
		{op: "MatMul", in: []*tensor.Tensor{f(1, 256, 64), f(2, 64, 128)}},
		{op: "MatMul", in: []*tensor.Tensor{f(1, 131, 35), f(2, 35, 67)}},
		{op: "MatMul", in: []*tensor.Tensor{f(1, 2, 150, 50), f(2, 2, 50, 290)}, dynamic: true},
		{op: "Gemm", in: []*tensor.Tensor{f(1, 64, 256), f(2, 128, 64), f(3, 128)}, attrs: []ssa.Attr{number("transA", 1), number("transB", 1)}},
		{op: "Conv", in: []*tensor.Tensor{f(1, 2, 5, 9, 11), f(2, 130, 5, 3, 3), f(3, 130)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "ConvTranspose", in: []*tensor.Tensor{f(1, 1, 40, 9, 11), f(2, 40, 130, 2, 2)}},
	} {
		if c := n.counts(t); c.MatrixFlops != 0 {
			t.Errorf("%s of %v: on tensor cores, which nobody asked for", n.op, n.in)
		}
		m, args := n.module(t)
		want, err := new(interp.Interpreter).RunFunc(m.Main(), args)
		if err != nil {
			t.Fatal(err)
		}
		n.tf32 = true
		if c := n.counts(t); c.MatrixFlops == 0 || c.Conflicts != 0 {
			t.Errorf("%s of %v: %d operations of tensor cores, %d bank conflicts", n.op, n.in, c.MatrixFlops, c.Conflicts)
		}
		n.check(t)
		// what is rounded is beyond the bound of float32
		p, err := plan.NewWith(m, n.options(guesses))
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := exec.NewSession(p, &exec.Sim{}).Run(args)
		if err != nil {
			t.Fatal(err)
		}
		o := p.Func.Body.Last()
		allowed, err := bound.Tolerance(o.Kind, o.Attrs, n.in, 0, want[0].Tensor)
		if err != nil {
			t.Fatal(err)
		}
		if d := bound.Measure(got[0].Tensor, want[0].Tensor, allowed); !d.Bad() {
			t.Errorf("%s of %v: nothing is rounded", n.op, n.in)
		}
		// the plan knows, so what compares its nodes allows for it
		nodes, err := exec.CheckNodes(p, exec.NewSession(p, &exec.Sim{}), args, false)
		if err != nil || len(nodes) != 1 || nodes[0].Bad() {
			t.Errorf("%s of %v: nodes %v, %v", n.op, n.in, nodes, err)
		}
		sample, err := exec.CheckSample(p, exec.NewSession(p, &exec.Sim{}), args, 1, 0)
		if err != nil || sample.Node != nil {
			t.Errorf("%s of %v: sample %v, %v", n.op, n.in, sample, err)
		}
	}
}

// integerNodes are products of integers of 8 bits on tensor cores: with zero points and without, for all, for each row or column, and for each matrix.
func integerNodes() []node {
	q := func(d tensor.DType, seed uint64, shape ...int64) *tensor.Tensor { return fill(d, shape, seed, false) }
	const i8, u8 = tensor.Int8, tensor.Uint8
	return []node{
		{op: "MatMulInteger", in: []*tensor.Tensor{q(i8, 1, 256, 128), q(i8, 2, 128, 128)}},
		{op: "MatMulInteger", in: []*tensor.Tensor{q(u8, 1, 130, 144), q(i8, 2, 144, 68), q(u8, 3), q(i8, 4, 68)}},
		{op: "MatMulInteger", in: []*tensor.Tensor{q(i8, 1, 131, 77), q(u8, 2, 77, 67), q(i8, 3, 131), q(u8, 4)}},
		{op: "MatMulInteger", in: []*tensor.Tensor{q(u8, 1, 2, 150, 50), q(u8, 2, 2, 50, 290), q(u8, 3, 2, 150, 1), q(u8, 4, 2, 1, 290)}, dynamic: true},
		{op: "MatMulInteger", in: []*tensor.Tensor{q(u8, 1, 3, 50, 64), q(u8, 2, 64, 80), q(u8, 3, 50)}},
		{op: "ConvInteger", in: []*tensor.Tensor{q(u8, 1, 2, 5, 9, 11), q(i8, 2, 130, 5, 3, 3), q(u8, 3), q(i8, 4, 130)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "QLinearMatMul", in: []*tensor.Tensor{q(u8, 1, 130, 144), fill(tensor.Float32, nil, 5, false), q(u8, 3), q(i8, 2, 144, 68), fill(tensor.Float32, nil, 6, false), q(i8, 4), fill(tensor.Float32, nil, 7, false), q(u8, 8)}},
		{op: "QLinearConv", in: []*tensor.Tensor{q(u8, 1, 2, 5, 9, 11), fill(tensor.Float32, nil, 5, false), q(u8, 3), q(i8, 2, 130, 5, 3, 3), fill(tensor.Float32, nil, 6, false), q(i8, 4, 130), fill(tensor.Float32, nil, 7, false), q(u8, 8)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "ConvInteger", in: []*tensor.Tensor{q(u8, 1, 2, 5, 9, 11), q(i8, 2, 65, 5, 3, 3), q(u8, 3), q(i8, 4, 65)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{op: "ConvInteger", in: []*tensor.Tensor{q(i8, 1, 2, 64, 8, 16), q(i8, 2, 128, 64, 1, 1)}},
	}
}

// Products on tensor cores are those of the interpreter, within the bound of the operator, and by all routes with the same bits.
func TestMatrixProducts(t *testing.T) {
	for _, n := range append(matrixNodes(), integerNodes()...) {
		if c := n.counts(t); c.MatrixFlops == 0 || c.Conflicts != 0 {
			t.Errorf("%s of %v: %d operations of tensor cores, %d bank conflicts", n.op, n.in, c.MatrixFlops, c.Conflicts)
		}
		n.check(t)
	}
}

// Warps read factors and write results in whole sectors wherever rows are multiples of 4 numbers, in any layout of the operands; of rows that are not, a store touches one sector
// more than it fills. Numbers of 16 bits are read so on tensor cores only, from matrices.
func TestCoalescedTiles(t *testing.T) {
	type tiles struct {
		node
		most float64 // of the sectors
	}
	var all []tiles
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Int32} {
		f := func(shape ...int64) *tensor.Tensor { return fill(d, shape, 1, false) }
		all = append(all, tiles{node{op: "MatMul", in: []*tensor.Tensor{f(256, 64), f(64, 128)}}, 0})
		for trans := range int64(4) {
			a, b := []int64{128, 64}, []int64{64, 192}
			if trans&1 != 0 {
				a = []int64{64, 128}
			}
			if trans&2 != 0 {
				b = []int64{192, 64}
			}
			if d.IsFloat() {
				all = append(all, tiles{node{op: "Gemm", attrs: []ssa.Attr{number("transA", trans&1), number("transB", trans>>1)}, in: []*tensor.Tensor{f(a...), f(b...), f(192)}}, 0})
			}
		}
		if d.Size() == 2 {
			continue
		}
		all = append(all,
			tiles{node{op: "MatMul", in: []*tensor.Tensor{f(16, 64), f(64, 256)}}, 0},
			tiles{node{op: "MatMul", in: []*tensor.Tensor{f(2, 128, 32), f(2, 32, 99)}}, 0.3})
		if d.IsFloat() {
			all = append(all, tiles{node{op: "Conv", in: []*tensor.Tensor{f(2, 64, 8, 8), f(128, 64, 1, 1)}}, 0})
		}
	}
	f := func(shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, 1, false) }
	all = append(all, tiles{node{op: "MatMul", in: []*tensor.Tensor{f(1536, 16), f(16, 1408)}}, 0})
	for _, n := range all {
		c := n.counts(t)
		if u := c.Uncoalesced(); u > n.most || c.Conflicts != 0 {
			t.Errorf("%s of %v: %.4f of %d sectors uncoalesced, %d bank conflicts", n.op, n.in, u, c.Sectors, c.Conflicts)
		}
		n.check(t)
	}
}

// Factors come by asynchronous copies to a ring of stages, of which a product takes as many as it has tiles along k, or more, whether they lie along k or across. It gives the
// bits of the same product of factors whose tiles the threads carry, without conflicts and in whole sectors.
func TestRing(t *testing.T) {
	turned := func(x *tensor.Tensor) *tensor.Tensor {
		rows, cols := x.Shape[0], x.Shape[1]
		y := fill(x.DType, []int64{cols, rows}, 1, false)
		for i := range rows {
			for j := range cols {
				copy(y.Bytes()[2*(j*rows+i):][:2], x.Bytes()[2*(i*cols+j):])
			}
		}
		return y
	}
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		for _, k := range []int64{32, 64, 96, 160, 288} {
			for _, m := range []int64{128, 136, 130} {
				x, w := fill(d, []int64{m, k}, 1, false), fill(d, []int64{80, k}, 2, false)
				var want []byte
				for layout := range int64(4) {
					in := []*tensor.Tensor{x, w}
					if layout&1 != 0 {
						in[0] = turned(x)
					}
					if layout&2 == 0 {
						in[1] = turned(w)
					}
					for _, sizes := range []string{"of the run", "known", "known but m"} {
						n := node{op: "Gemm", attrs: []ssa.Attr{number("transA", layout&1), number("transB", layout>>1)}, in: in, dynamic: sizes != "known"}
						copied := sizes != "of the run" // nothing says that there are 32 numbers along k, then
						if sizes == "known but m" {
							n.only = []int64{m}
						}
						if layout&1 != 0 && (sizes != "known" || m%8 != 0) {
							copied = false
						}
						module, args := n.module(t)
						p, err := plan.NewFor(module, fuse.None, map[string]int64{fmt.Sprintf("N%d", m): 4096, fmt.Sprintf("N%d", k): 4096, "N80": 4096})
						if err != nil {
							t.Fatal(err)
						}
						what := fmt.Sprintf("%s %dx80x%d, layout %d, sizes %s", d, m, k, layout, sizes)
						if got := strings.Contains(p.Kernels[0].String(), "copy.async"); got != copied {
							t.Errorf("%s: asynchronous copies: %t", what, got)
						}
						out, report, err := exec.NewSession(p, &exec.Sim{Check: true, Count: true}).Run(args)
						if err != nil {
							t.Fatalf("%s: %v\n%s", what, err, p.Kernels[0])
						}
						if want == nil {
							want = out[0].Tensor.Bytes()
						}
						if !bytes.Equal(out[0].Tensor.Bytes(), want) {
							t.Errorf("%s: other bits", what)
						}
						if c := report.Steps[0].Counts; c.Conflicts != 0 || c.MatrixFlops == 0 || copied && m%16 == 0 && layout&2 != 0 && c.Uncoalesced() != 0 { // else what is beyond the last column of a tile is half a sector
							t.Errorf("%s: %+v", what, c)
						}
						if k != 160 || d != tensor.Float16 {
							continue // the routes have the same kernel
						}
						again, _, err := exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(args)
						if err != nil || !bytes.Equal(again[0].Tensor.Bytes(), want) {
							t.Errorf("%s: the routes differ: %v", what, err)
						}
					}
				}
			}
		}
	}
}

// counts runs the node and gives what the simulator counts.
func (n *node) counts(t *testing.T) (all sim.Counts) {
	t.Helper()
	m, args := n.module(t)
	p, err := plan.NewWith(m, n.options(guesses))
	if err != nil {
		t.Fatal(err)
	}
	_, report, err := exec.NewSession(p, &exec.Sim{Count: true}).Run(args)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Steps {
		all.Add(&s.Counts)
	}
	return all
}
