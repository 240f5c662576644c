package sim_test

import (
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

func TestIR(t *testing.T) {
	for _, c := range gputest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			k, err := sim.FromIR(gputest.Kernel(c.Build()))
			if err != nil {
				t.Fatal(err)
			}
			var first []sim.Arg
			for _, check := range []bool{false, true} {
				args := c.Args()
				stats, err := k.Run(sim.Launch{Grid: c.Grid, Block: c.Block, Dynamic: c.Shared, Args: args, Check: check})
				if err != nil {
					t.Fatal(err)
				}
				if stats.LaneInstructions == 0 {
					t.Error("nothing ran")
				}
				if err := c.Verify(args); err != nil {
					t.Fatal(err)
				}
				if first == nil {
					first = args
				}
				for i, a := range args {
					if a.Buffer != nil && string(a.Buffer.Bytes()) != string(first[i].Buffer.Bytes()) {
						t.Errorf("argument %d differs with checks", i)
					}
				}
			}
		})
	}
}

func benchmark(b *testing.B, c gputest.Case, check bool) {
	k, err := sim.FromIR(gputest.Kernel(c.Build()))
	if err != nil {
		b.Fatal(err)
	}
	args := c.Args()
	var lanes int64
	for b.Loop() {
		stats, err := k.Run(sim.Launch{Grid: c.Grid, Block: c.Block, Dynamic: c.Shared, Args: args, Check: check})
		if err != nil {
			b.Fatal(err)
		}
		lanes += stats.LaneInstructions
	}
	b.ReportMetric(float64(lanes)/b.Elapsed().Seconds()/1e9, "Glane/s")
}

func BenchmarkAddRelu(b *testing.B)      { benchmark(b, gputest.AddRelu(1<<20+3, 512), false) }
func BenchmarkSoftmax(b *testing.B)      { benchmark(b, gputest.Softmax(512, 1000), false) }
func BenchmarkGemm(b *testing.B)         { benchmark(b, gputest.Gemm(500, 520, 510), false) }
func BenchmarkGemmChecked(b *testing.B)  { benchmark(b, gputest.Gemm(250, 260, 255), true) }
func BenchmarkSoftmaxCheck(b *testing.B) { benchmark(b, gputest.Softmax(128, 1000), true) }
