package sim_test

import (
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// texts are the texts of a kernel.
func texts(t testing.TB, c gputest.Case) []string {
	t.Helper()
	out, err := c.Texts()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// read is the kernel of a text.
func read(t testing.TB, text string) *sim.Kernel {
	t.Helper()
	k, err := sim.FromPTX(text, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return k
}

// printed is the kernel that a Builder has made.
func printed(t testing.TB, k *kir.Kernel) *sim.Kernel {
	t.Helper()
	text, err := ptx.Print(k, ptx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return read(t, text)
}

// Each kernel computes what it must, from each of its texts, and with checks the same bits.
func TestKernels(t *testing.T) {
	for _, c := range gputest.Cases() {
		for _, text := range texts(t, c) {
			t.Run(c.Name, func(t *testing.T) {
				k := read(t, text)
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
}

// Registers that a program reads before it has written them are 0, in each block anew, also where only some threads write.
func TestUnwritten(t *testing.T) {
	for _, c := range []struct {
		body string
		want uint32 // of thread 1; others have 0
	}{
		{"add.u32 %r3, %r3, %r1; mov.u32 %r2, %r3;", 1},
		{"setp.eq.u32 %p1, %r1, 1; @%p1 mov.u32 %r4, 7; mov.u32 %r2, %r4;", 7},
		{"setp.ne.u32 %p1, %r1, 1; @%p1 bra L; mov.u32 %r4, 9; L: mov.u32 %r2, %r4;", 9},
	} {
		k := read(t, text(c.body))
		words := make([]byte, 128)
		b := sim.NewBuffer(words)
		if _, err := k.Run(sim.Launch{Grid: [3]int{3}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(b)}}); err != nil {
			t.Fatal(err)
		}
		got := gputest.Values[uint32](b, 2)
		if got[0] != 0 || got[1] != c.want {
			t.Errorf("%s: %d", c.body, got)
		}
	}
}

// benchmark reports lane instructions a second, and for a second of processor time of one core.
func benchmark(b *testing.B, c gputest.Case, check bool) {
	k := read(b, texts(b, c)[0])
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

func BenchmarkAddRelu(b *testing.B)        { benchmark(b, gputest.AddRelu(1<<20+3, 512), false) }
func BenchmarkSoftmax(b *testing.B)        { benchmark(b, gputest.Softmax(512, 1000), false) }
func BenchmarkGemm(b *testing.B)           { benchmark(b, gputest.Gemm(500, 520, 510), false) }
func BenchmarkGemmChecked(b *testing.B)    { benchmark(b, gputest.Gemm(250, 260, 255), true) }
func BenchmarkSoftmaxChecked(b *testing.B) { benchmark(b, gputest.Softmax(128, 1000), true) }
