package gputest

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// Matrices reads four matrices of 8x8 numbers of 16 bits from shared memory by a warp, in the order of their rows from the last one to the first, as they are or transposed.
func Matrices(transposed bool) Case {
	const words = 32 * 4
	name := fmt.Sprintf("matrices_%t", transposed)
	x := make([]uint32, words)
	for i := range x {
		x[i] = uint32(2*i) | uint32(2*i+1)<<16
	}
	return Case{
		Name: name, Grid: [3]int{1}, Block: [3]int{32},
		Kernel: func() *kir.Kernel {
			b := kir.New(name, 32)
			from, to := b.Buffer("x", kir.I32, false), b.Buffer("y", kir.I32, true)
			s := b.SharedMem("s", kir.I32, words)
			at := b.Mul(b.ThreadX(), b.I32(4))
			b.Store(s, at, b.LoadVec(from, at, 4)...)
			b.Barrier()
			got := b.LoadMatrix(s, b.Sub(b.I32(words-4), at), transposed)
			b.Store(to, at, got[:]...)
			return b.K
		},
		Args: func() []sim.Arg { return []sim.Arg{buffer(x), buffer(make([]uint32, words))} },
		Verify: func(args []sim.Arg) error {
			got := Values[uint32](args[1].Buffer, words)
			number := func(m, row, col int) uint32 {
				if transposed {
					row, col = col, row
				}
				return uint32(8*(31-(8*m+row)) + col)
			}
			for lane := range 32 {
				for m := range 4 {
					want := number(m, lane/4, lane%4*2) | number(m, lane/4, lane%4*2+1)<<16
					if got[4*lane+m] != want {
						return fmt.Errorf("word %d of thread %d is %#x, want %#x", m, lane, got[4*lane+m], want)
					}
				}
			}
			return nil
		},
	}
}
