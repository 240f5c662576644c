package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// counted runs a kernel of 32 threads over x, 4 KiB of float32, by both readers.
func counted(t *testing.T, body func(b *gputest.Builder, x, s, tid value.Value)) sim.Counts {
	t.Helper()
	x := gputest.Array("x", types.Float, true)
	b := gputest.New("k", x)
	s := b.SharedArray("s", types.Float, 2048)
	body(b, x, s, b.Sreg("tid.x"))
	b.Return()
	k, err := sim.FromIR(b.F)
	if err != nil {
		t.Fatal(err)
	}
	launch := sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(make([]byte, 4096)))}, Count: true}
	stats, err := k.Run(launch)
	if err != nil {
		t.Fatal(err)
	}
	p, err := fromPTX(b.M)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Run(launch)
	if err != nil {
		t.Fatal(err)
	}
	memory := func(c sim.Counts) sim.Counts {
		c.Flops = 0
		for i := range c.Instructions {
			if i != int(sim.GlobalMemory) && i != int(sim.SharedMemory) {
				c.Instructions[i] = 0
			}
		}
		return c
	}
	if a, b := memory(stats.Counts), memory(again.Counts); a != b {
		t.Errorf("from IR %+v, from PTX %+v", a, b)
	}
	launch.Count = false
	if plain, err := k.Run(launch); err != nil || plain.Counts != (sim.Counts{}) {
		t.Errorf("without Count: %+v, %v", plain.Counts, err)
	}
	return stats.Counts
}

func TestCountShared(t *testing.T) {
	for _, c := range []struct{ stride, wavefronts int64 }{{0, 1}, {1, 1}, {2, 2}, {4, 4}, {17, 1}, {32, 32}, {33, 1}} {
		got := counted(t, func(b *gputest.Builder, _, s, tid value.Value) {
			b.Store(s, b.C.NewMul(tid, i32(c.stride)), gputest.F32(1))
		})
		if got.Wavefronts != c.wavefronts || got.Conflicts != c.wavefronts-1 || got.Instructions[sim.SharedMemory] != 32 || got.Sectors != 0 {
			t.Errorf("stride %d: %+v", c.stride, got)
		}
	}
	// 16 bytes a thread: 4 passes of 8 threads; 32 bytes apart, two threads of a pass want each bank
	for _, c := range []struct{ stride, wavefronts int64 }{{4, 4}, {8, 8}} {
		got := counted(t, func(b *gputest.Builder, x, s, tid value.Value) {
			v := b.LoadVec(s, b.C.NewMul(tid, i32(c.stride)), 4)
			b.StoreVec(x, b.C.NewMul(tid, i32(4)), v)
		})
		if got.Wavefronts != c.wavefronts || got.Conflicts != c.wavefronts-4 {
			t.Errorf("vectors with stride %d: %+v", c.stride, got)
		}
	}
}

func TestCountGlobal(t *testing.T) {
	for _, c := range []struct{ stride, first, sectors, least int64 }{{0, 0, 1, 1}, {1, 0, 4, 4}, {1, 1, 5, 4}, {2, 0, 8, 4}, {8, 0, 32, 4}, {31, 0, 32, 4}} {
		got := counted(t, func(b *gputest.Builder, x, s, tid value.Value) {
			b.Store(s, tid, b.Load(x, b.C.NewAdd(b.C.NewMul(tid, i32(c.stride)), i32(c.first))))
		})
		if got.Read != 128 || got.Written != 0 || got.Sectors != c.sectors || got.LeastSectors != c.least || got.Instructions[sim.GlobalMemory] != 32 {
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
	k, err := sim.FromIR(gputest.Kernel(c.Build()))
	if err != nil {
		t.Fatal(err)
	}
	stats, err := k.Run(sim.Launch{Grid: c.Grid, Block: c.Block, Args: c.Args(), Count: true})
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
	x, y := gputest.Array("x", types.Float, true), gputest.Array("y", types.Float, true)
	b := gputest.New("k", x, y)
	tid := b.Sreg("tid.x")
	v := b.Load(x, b.C.NewMul(tid, i32(16))) // every other sector
	b.Store(y, tid, v)
	b.Return()
	k, err := sim.FromIR(b.F)
	if err != nil {
		t.Fatal(err)
	}
	in, out := sim.NewBuffer(make([]byte, 4096)), sim.NewBuffer(make([]byte, 4096))
	var got []string
	_, err = k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(in), sim.Ptr(out)}, Count: true,
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
