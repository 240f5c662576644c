package exec_test

import (
	"fmt"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
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
