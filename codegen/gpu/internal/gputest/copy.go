package gputest

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// What can be wrong with Copies.
const (
	NoWait      = "no wait"
	LateWait    = "a wait for one group too few"
	NoCommit    = "no commit"
	NoBarrier   = "no barrier"
	NoRing      = "a ring of one stage too few"
	Overwritten = "the source overwritten"
)

// Copies adds up tiles that threads bring to a ring of three stages in shared memory by asynchronous copies of so many bytes, while they add up those that have arrived: each
// thread what another one has copied. With fault, one of the constants, something is wrong with it.
func Copies(bytes int, fault string) Case {
	const threads, tiles, stages = 64, 7, 3
	width := bytes / 4 // numbers that a thread copies
	size := threads * width
	name := fmt.Sprintf("copies%d", bytes)
	x := make([]float32, tiles*size)
	for i := range x {
		x[i] = float32(i%97) - 40
	}
	return Case{
		Name: name, Grid: [3]int{1}, Block: [3]int{threads},
		Kernel: func() *kir.Kernel {
			b := kir.New(name, threads)
			from, to := b.Buffer("x", kir.F32, fault == Overwritten), b.Buffer("y", kir.F32, true)
			ring := b.SharedMem("ring", kir.F32, stages*size)
			at := b.Mul(b.ThreadX(), b.I32(int64(width)))
			other := b.Mul(b.Binary(kir.Xor, b.ThreadX(), b.I32(threads-1)), b.I32(int64(width)))
			depth := int64(stages)
			if fault == NoRing {
				depth--
			}
			bring := func(tile kir.Value) {
				b.When(b.Lt(tile, b.I32(tiles)), func() {
					stage := b.Mul(b.URem(tile, b.I32(depth)), b.I32(int64(size)))
					b.CopyAsync(ring, b.Add(stage, at), from, b.Add(b.Mul(tile, b.I32(int64(size))), at), bytes)
				})
				if fault != NoCommit {
					b.CommitCopies()
				}
			}
			bring(b.I32(0))
			bring(b.I32(1))
			start := make([]kir.Value, width)
			for i := range start {
				start[i] = b.Float(kir.F32, 0)
			}
			sums := b.For(b.I32(0), b.I32(tiles), b.I32(1), start, func(tile kir.Value, sums []kir.Value) []kir.Value {
				switch fault {
				case NoWait:
				case LateWait:
					b.WaitCopies(stages - 1)
				default:
					b.WaitCopies(stages - 2)
				}
				if fault != NoBarrier {
					b.Barrier()
				}
				bring(b.Add(tile, b.I32(stages-1)))
				if fault == Overwritten {
					b.Store(from, b.Add(b.I32(int64((tiles-1)*size)), b.ThreadX()), b.Float(kir.F32, 0))
				}
				stage := b.Mul(b.URem(tile, b.I32(depth)), b.I32(int64(size)))
				out := make([]kir.Value, width)
				for i, v := range b.LoadVec(ring, b.Add(stage, other), width) {
					out[i] = b.Add(sums[i], v)
				}
				return out
			})
			b.WaitCopies(0)
			b.Store(to, at, sums...)
			return b.K
		},
		Args: func() []sim.Arg { return []sim.Arg{buffer(x), buffer(make([]float32, size))} },
		Verify: func(args []sim.Arg) error {
			got := Values[float32](args[1].Buffer, size)
			for i := range size {
				want := float32(0)
				for t := range tiles {
					want += x[t*size+(i/width^(threads-1))*width+i%width]
				}
				if got[i] != want {
					return fmt.Errorf("element %d is %g, want %g", i, got[i], want)
				}
			}
			return nil
		},
	}
}
