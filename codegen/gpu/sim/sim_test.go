package sim_test

import (
	"testing"

	"github.com/llir/llvm/ir"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/ptx"
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

// benchmark reports lane instructions a second, and for a second of processor time of one core.
func benchmark(b *testing.B, c gputest.Case, read func(m *ir.Module) (*sim.Kernel, error), check bool) {
	k, err := read(c.Build())
	if err != nil {
		b.Fatal(err)
	}
	args := c.Args()
	var lanes int64
	cpu := gputest.CPUTime()
	for b.Loop() {
		stats, err := k.Run(sim.Launch{Grid: c.Grid, Block: c.Block, Args: args, Check: check})
		if err != nil {
			b.Fatal(err)
		}
		lanes += stats.LaneInstructions
	}
	b.ReportMetric(float64(lanes)/b.Elapsed().Seconds()/1e9, "Glane/s")
	if cpu = gputest.CPUTime() - cpu; cpu > 0 {
		b.ReportMetric(float64(lanes)/cpu.Seconds()/1e9, "Glane/core-s")
	}
}

func fromIR(m *ir.Module) (*sim.Kernel, error) { return sim.FromIR(gputest.Kernel(m)) }

func fromPTX(m *ir.Module) (*sim.Kernel, error) {
	text, err := ptx.Print(m, ptx.Options{})
	if err != nil {
		return nil, err
	}
	return sim.FromPTX(text, "")
}

func BenchmarkAddRelu(b *testing.B)        { benchmark(b, gputest.AddRelu(1<<20+3, 512), fromIR, false) }
func BenchmarkAddReluPTX(b *testing.B)     { benchmark(b, gputest.AddRelu(1<<20+3, 512), fromPTX, false) }
func BenchmarkSoftmax(b *testing.B)        { benchmark(b, gputest.Softmax(512, 1000), fromIR, false) }
func BenchmarkGemm(b *testing.B)           { benchmark(b, gputest.Gemm(500, 520, 510), fromIR, false) }
func BenchmarkGemmPTX(b *testing.B)        { benchmark(b, gputest.Gemm(500, 520, 510), fromPTX, false) }
func BenchmarkGemmChecked(b *testing.B)    { benchmark(b, gputest.Gemm(250, 260, 255), fromIR, true) }
func BenchmarkSoftmaxChecked(b *testing.B) { benchmark(b, gputest.Softmax(128, 1000), fromIR, true) }
