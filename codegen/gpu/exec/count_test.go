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

// The tiles of products of float32 have no bank conflict, however the operands lie.
func TestTileConflicts(t *testing.T) {
	for _, size := range [][2]int64{{128, 128}, {128, 16}, {16, 128}} {
		for trans := range int64(4) {
			m, n, k := size[0], size[1], int64(64)
			a, b := []int64{m, k}, []int64{k, n}
			if trans&1 != 0 {
				a = []int64{k, m}
			}
			if trans&2 != 0 {
				b = []int64{n, k}
			}
			t.Run(fmt.Sprintf("%dx%d/%d", m, n, trans), func(t *testing.T) {
				node := node{op: "Gemm", attrs: []ssa.Attr{number("transA", trans&1), number("transB", trans>>1)},
					in: []*tensor.Tensor{fill(tensor.Float32, a, 1, false), fill(tensor.Float32, b, 2, false)}}
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
