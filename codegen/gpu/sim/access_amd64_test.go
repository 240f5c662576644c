package sim

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// Accesses on vectors serve the threads that the loop serves, with what it gives them.
func TestVectorAccess(t *testing.T) {
	if !isa.Vectors {
		t.Skip("the processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 4))
	const threads, size = 77, 2048
	for round := range 4000 {
		k := newBuilder("access").k
		k.slots = 40
		w := newWorker(&launch{k: k, threads: threads, stride: 80, extent: size})
		for i := range w.regs {
			w.regs[i] = r.Uint64()
		}
		for i := range w.mem {
			w.mem[i] = byte(r.Uint32())
		}
		in := &inst{Op: isa.Op{A: 0, Imm: uint64(r.IntN(5) * 4)}, v: []slot{8, 12, 16, 20}[:1+3*r.IntN(2)]}
		w.Lo = r.IntN(20)
		w.Hi = w.Lo + 1 + r.IntN(threads-w.Lo)
		addr := whole[uint64](w, 0)
		for i := range addr {
			switch x := uint64(i); r.IntN(4) + round%4 {
			case 0:
				addr[i] = uint64(r.IntN(size/16-10)) * 16
			case 5:
				addr[i] = 64
			case 6:
				addr[i] = x / 16 * 16
			default:
				addr[i] = x * 4 * uint64(len(in.v)) // neighbours
			}
		}
		if round%5 == 0 { // one that is out of range, or not aligned
			addr[w.Lo+r.IntN(w.Hi-w.Lo)] = []uint64{size, size - in.Imm - 2, 1, math.MaxUint64, 1 << 62, size - 4}[r.IntN(6)]
		}
		for write, run := range []func(*worker, *inst, space, []uint64, int) int{loadRun[uint32], storeRun[uint32]} {
			var served [2]int
			var mem [2][]byte
			regs := slices.Clone(w.regs)
			for on := range 2 {
				again := newWorker(w.launch)
				copy(again.regs, regs)
				copy(again.mem, w.mem)
				again.Lo, again.Hi = w.Lo, w.Hi
				was := isa.Vectors
				isa.Vectors = on == 1
				served[on] = run(again, in, shared, whole[uint64](again, 0)[w.Lo:w.Hi], 4*len(in.v))
				isa.Vectors = was
				mem[on] = again.mem
				for _, s := range in.v {
					mem[on] = append(mem[on], unsafe.Slice((*byte)(again.at(s)), 4*served[on])...)
				}
			}
			if served[0] != served[1] || !bytes.Equal(mem[0], mem[1]) {
				t.Fatalf("access %d of %d elements, threads %d to %d: %d threads served by the loop, %d by vectors", write, len(in.v), w.Lo, w.Hi, served[0], served[1])
			}
		}
	}
}
