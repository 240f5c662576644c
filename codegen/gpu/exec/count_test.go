package exec_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

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
			node{op: "MatMul", in: []*tensor.Tensor{f(131, 35), f(35, 67)}},
			node{op: "MatMul", in: []*tensor.Tensor{f(2, 150, 50), f(2, 50, 290)}, dynamic: true},
			node{op: "Gemm", in: []*tensor.Tensor{f(64, 256), f(128, 64), f(128)}, attrs: []ssa.Attr{number("transA", 1), number("transB", 1)}},
			node{op: "Gemm", in: []*tensor.Tensor{f(70, 132), f(72, 70), f(72)}, attrs: []ssa.Attr{number("transA", 1), number("transB", 1)}},
			node{op: "Conv", in: []*tensor.Tensor{f(2, 5, 9, 11), f(130, 5, 3, 3), f(130)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}})
	}
	return out
}

// Products on tensor cores are those of the interpreter, within the bound of the operator, and by all routes with the same bits.
func TestMatrixProducts(t *testing.T) {
	for _, n := range matrixNodes() {
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

// Factors that lie along k come by asynchronous copies to a ring of stages, of which a product takes as many as it has tiles along k, or more. It gives the bits of the same
// product of a factor that lies across k, without conflicts and in whole sectors.
func TestRing(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		for _, k := range []int64{32, 64, 96, 160, 288} {
			for _, m := range []int64{128, 130} {
				for _, dynamic := range []bool{false, true} {
					x, w := fill(d, []int64{m, k}, 1, false), fill(d, []int64{80, k}, 2, false)
					across := fill(d, []int64{k, 80}, 2, false)
					for i := range k {
						for j := range int64(80) {
							copy(across.Bytes()[2*(i*80+j):][:2], w.Bytes()[2*(j*k+i):])
						}
					}
					ring := node{op: "Gemm", attrs: []ssa.Attr{number("transB", 1)}, in: []*tensor.Tensor{x, w}, dynamic: dynamic, only: []int64{m}}
					plain := node{op: "MatMul", in: []*tensor.Tensor{x, across}, dynamic: dynamic, only: []int64{m}}
					var results [2][]byte
					for i, n := range []*node{&ring, &plain} {
						module, args := n.module(t)
						p, err := plan.NewFor(module, fuse.None, map[string]int64{fmt.Sprintf("N%d", m): 4096})
						if err != nil {
							t.Fatal(err)
						}
						if copies := strings.Contains(p.Kernels[0].String(), "copy.async"); copies != (i == 0) {
							t.Errorf("%s: asynchronous copies: %t", n.op, copies)
						}
						out, report, err := exec.NewSession(p, &exec.Sim{Check: true, Count: true}).Run(args)
						if err != nil {
							t.Fatalf("%v\n%s", err, p.Kernels[0])
						}
						again, _, err := exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(args)
						if err != nil || !bytes.Equal(again[0].Tensor.Bytes(), out[0].Tensor.Bytes()) {
							t.Errorf("%s of %v: the routes differ: %v", n.op, n.in, err)
						}
						results[i] = out[0].Tensor.Bytes()
						if c := report.Steps[0].Counts; c.Conflicts != 0 || c.MatrixFlops == 0 || i == 0 && c.Uncoalesced() != 0 {
							t.Errorf("%s of %v: %+v", n.op, n.in, c)
						}
					}
					if !bytes.Equal(results[0], results[1]) {
						t.Errorf("%s, k %d, m %d: the ring gives other bits", d, k, m)
					}
				}
			}
		}
	}
	f := func(shape ...int64) *tensor.Tensor { return fill(tensor.Float16, shape, 1, false) }
	for _, n := range []node{
		{op: "MatMul", in: []*tensor.Tensor{f(2, 256, 64), f(2, 64, 128)}},
		{op: "Gemm", attrs: []ssa.Attr{number("transB", 1)}, in: []*tensor.Tensor{f(256, 40), f(128, 40)}},
		{op: "Gemm", attrs: []ssa.Attr{number("transA", 1), number("transB", 1)}, in: []*tensor.Tensor{f(64, 256), f(128, 64)}},
	} {
		module, _ := n.module(t)
		p, err := plan.New(module, fuse.None)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(p.Kernels[0].String(), "copy.async") {
			t.Errorf("%s of %v is copied", n.op, n.in)
		}
	}
}

// counts runs the node and gives what the simulator counts.
func (n *node) counts(t *testing.T) (all sim.Counts) {
	t.Helper()
	m, args := n.module(t)
	p, err := plan.NewFor(m, fuse.None, guesses)
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
