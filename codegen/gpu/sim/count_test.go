package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/isa"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// counted runs a kernel of 32 threads over x, 4 KiB of float32.
func counted(t *testing.T, body func(b *kir.Builder, x, s *kir.Mem, tid kir.Value)) sim.Counts {
	t.Helper()
	b := kir.New("k", 32)
	x := b.Buffer("x", kir.F32, true)
	body(b, x, b.SharedMem("s", kir.F32, 2048), b.ThreadX())
	k := printed(t, b.K)
	launch := sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(make([]byte, 4096)))}, Count: true}
	stats, err := k.Run(launch)
	if err != nil {
		t.Fatal(err)
	}
	launch.Count = false
	if plain, err := k.Run(launch); err != nil || plain.Counts != (sim.Counts{}) {
		t.Errorf("without Count: %+v, %v", plain.Counts, err)
	}
	return stats.Counts
}

func TestCountShared(t *testing.T) {
	for _, c := range []struct{ stride, wavefronts int64 }{{0, 1}, {1, 1}, {2, 2}, {4, 4}, {17, 1}, {32, 32}, {33, 1}} {
		got := counted(t, func(b *kir.Builder, _, s *kir.Mem, tid kir.Value) {
			b.Store(s, b.Mul(tid, b.I32(c.stride)), b.Float(kir.F32, 1))
		})
		if got.Wavefronts != c.wavefronts || got.Conflicts != c.wavefronts-1 || got.Instructions[isa.SharedMemory] != 32 || got.Sectors != 0 {
			t.Errorf("stride %d: %+v", c.stride, got)
		}
	}
	// 16 bytes a thread: 4 passes of 8 threads; 32 bytes apart, two threads of a pass want each bank
	for _, c := range []struct{ stride, wavefronts int64 }{{4, 4}, {8, 8}} {
		got := counted(t, func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
			b.Store(x, b.Mul(tid, b.I32(4)), b.LoadVec(s, b.Mul(tid, b.I32(c.stride)), 4)...)
		})
		if got.Wavefronts != c.wavefronts || got.Conflicts != c.wavefronts-4 {
			t.Errorf("vectors with stride %d: %+v", c.stride, got)
		}
	}
}

func TestCountGlobal(t *testing.T) {
	for _, c := range []struct{ stride, first, sectors, least int64 }{{0, 0, 1, 1}, {1, 0, 4, 4}, {1, 1, 5, 4}, {2, 0, 8, 4}, {8, 0, 32, 4}, {31, 0, 32, 4}} {
		got := counted(t, func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
			b.Store(s, tid, b.Load(x, b.Add(b.Mul(tid, b.I32(c.stride)), b.I32(c.first))))
		})
		if got.Read != 128 || got.Written != 0 || got.Sectors != c.sectors || got.LeastSectors != c.least || got.Instructions[isa.GlobalMemory] != 32 {
			t.Errorf("stride %d from %d: %+v", c.stride, c.first, got)
		}
		if want := 1 - float64(c.least)/float64(c.sectors); got.Uncoalesced() != want {
			t.Errorf("stride %d: uncoalesced %g, want %g", c.stride, got.Uncoalesced(), want)
		}
	}
}

// An elementwise sum reads 8 bytes an element and writes 4, and no sector in vain.
func TestCountElementwise(t *testing.T) {
	const n = 1 << 14
	c := gputest.AddRelu(n, 4)
	stats, err := read(t, texts(t, c)[0]).Run(sim.Launch{Grid: c.Grid, Block: c.Block, Args: c.Args(), Count: true})
	if err != nil {
		t.Fatal(err)
	}
	got := stats.Counts
	if got.Read != 8*n || got.Written != 4*n || got.Sectors != 12*n/sim.SectorSize || got.Uncoalesced() != 0 || got.Flops != n {
		t.Errorf("%+v", got)
	}
}

// Launch.Touched is told the runs of sectors of an access, and whether it writes.
func TestTouched(t *testing.T) {
	b := kir.New("k", 32)
	x, y := b.Buffer("x", kir.F32, true), b.Buffer("y", kir.F32, true)
	tid := b.ThreadX()
	b.Store(y, tid, b.Load(x, b.Mul(tid, b.I32(16)))) // every other sector
	k := printed(t, b.K)
	in, out := sim.NewBuffer(make([]byte, 4096)), sim.NewBuffer(make([]byte, 4096))
	var got []string
	_, err := k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(in), sim.Ptr(out)}, Count: true,
		Touched: func(b *sim.Buffer, first, last int64, write bool) {
			if b == in != write {
				got = append(got, fmt.Sprintf("%d-%d", first, last))
			} else {
				t.Errorf("sectors %d to %d, write %v, of the other buffer", first, last, write)
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 32 {
		want = append(want, fmt.Sprintf("%d-%d", 2*i, 2*i))
	}
	want = append(want, "0-3")
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
