package exec_test

import (
	"fmt"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// BenchmarkSim runs generated kernels of each class on the simulator, plain, with all checkers, and with counters.
func BenchmarkSim(b *testing.B) {
	f32 := func(shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, 1, false) }
	for _, c := range []struct {
		name string
		node
	}{
		{"gemm", node{op: "MatMul", in: []*tensor.Tensor{f32(256, 256), f32(256, 256)}}},
		{"conv", node{op: "Conv", attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}, in: []*tensor.Tensor{f32(1, 64, 28, 28), f32(64, 64, 3, 3)}}},
		{"depthwise", node{op: "Conv", attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1), number("group", 64)}, in: []*tensor.Tensor{f32(1, 64, 28, 28), f32(64, 1, 3, 3)}}},
		{"softmax", node{op: "Softmax", in: []*tensor.Tensor{f32(256, 1000)}}},
		{"layernorm", node{op: "LayerNormalization", in: []*tensor.Tensor{f32(256, 768), f32(768), f32(768)}}},
		{"add", node{op: "Add", in: []*tensor.Tensor{f32(1 << 19), f32(1 << 19)}}},
		{"gelu", node{op: "Gelu", in: []*tensor.Tensor{f32(1 << 17)}}},
		{"transpose", node{op: "Transpose", attrs: []ssa.Attr{ints("perm", 1, 0)}, in: []*tensor.Tensor{f32(512, 512)}}},
		{"sort", node{op: "TopK", in: []*tensor.Tensor{f32(16, 1024), tensor.Ints(1024)}, consts: []bool{false, true}, results: 2}},
		{"half", node{op: "MatMul", in: []*tensor.Tensor{fill(tensor.Float16, []int64{128, 128}, 1, false), fill(tensor.Float16, []int64{128, 128}, 2, false)}}},
	} {
		m, args := c.module(b)
		p, err := plan.New(m, fuse.Light)
		if err != nil {
			b.Fatal(err)
		}
		for way, s := range []exec.Sim{{}, {Check: true}, {Count: true}} {
			b.Run(fmt.Sprintf("%s/%s", c.name, []string{"plain", "checked", "counted"}[way]), func(b *testing.B) {
				session := exec.NewSession(p, &s)
				var lanes int64
				cpu := gputest.CPUTime()
				for b.Loop() {
					_, r, err := session.Run(args)
					if err != nil {
						b.Fatal(err)
					}
					lanes += r.LaneInstructions
				}
				b.ReportMetric(float64(lanes)/b.Elapsed().Seconds()/1e9, "Glane/s")
				if cpu = gputest.CPUTime() - cpu; cpu > 0 {
					b.ReportMetric(float64(lanes)/cpu.Seconds()/1e9, "Glane/core-s")
				}
			})
		}
	}
}
