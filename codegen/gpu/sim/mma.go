package sim

import (
	"math"
	"math/bits"
	"sync"

	"github.com/aton-project/aton/codegen/gpu/internal/llir"
	"github.com/aton-project/aton/ssa/tensor"
)

const (
	mmaM = 16
	mmaN = 8
)

// mmaFlops is a thread's share of the operations.
func mmaFlops(kind *llir.MmaKind) int16 { return int16(2 * mmaM * mmaN * kind.K() / 32) }

// factors are the numbers of a format by their bits. What they are in float64 is exact.
var factors = map[string]func() []float64{
	"f16": sync.OnceValue(func() []float64 { return decoded(func(b uint16) float64 { return float64(tensor.HalfToFloat(b)) }) }),
	"bf16": sync.OnceValue(func() []float64 {
		return decoded(func(b uint16) float64 { return float64(math.Float32frombits(uint32(b) << 16)) })
	}),
}

func decoded(f func(uint16) float64) []float64 {
	out := make([]float64, 1<<16)
	for i := range out {
		out[i] = f(uint16(i))
	}
	return out
}

// mma is mma.sync.aligned of a kind; v is 4 words of the result, 4 of the left factor, 2 of the right one, 4 sums, distributed among the threads as the PTX ISA
// tells ("Matrix Fragments for mma.m16n8k16" and those of other shapes, which have the same places for words).
//
// The PTX ISA leaves the order and the rounding of sums of floats open. Here an element is c plus its products, in ascending order of k in float64, where a product
// is exact, and rounded once to the nearest float32: no further from the exact sum than half an ulp and what float64 loses. What a device may do is in bound.Mma.
// Sums of integers wrap, in any order.
func mma(kind *llir.MmaKind) runner {
	if kind.Integer() {
		signed := [2]bool{kind.A == "s8", kind.B == "s8"}
		return warpProduct(kind.PerWord, func(side int, word uint32, to []int32) {
			for i := range to {
				if to[i] = int32(word >> (8 * i) & 0xff); signed[side] {
					to[i] = int32(int8(to[i]))
				}
			}
		}, func(x uint32) int32 { return int32(x) }, func(x int32) uint32 { return uint32(x) })
	}
	sum, back := func(x uint32) float64 { return float64(math.Float32frombits(x)) }, func(x float64) uint32 {
		if x != x {
			return nan32
		}
		return math.Float32bits(float32(x))
	}
	if kind.A == "tf32" {
		return warpProduct(kind.PerWord, func(_ int, word uint32, to []float64) { to[0] = float64(math.Float32frombits(word &^ tf32Rest)) }, sum, back)
	}
	table := factors[kind.A]
	return warpProduct(kind.PerWord, func(_ int, word uint32, to []float64) {
		number := table()
		to[0], to[1] = number[word&0xffff], number[word>>16]
	}, sum, back)
}

// tf32Rest has the bits of a float32 that tf32 lacks.
const tf32Rest = 1<<13 - 1

// toTF32 is cvt.rna.tf32.f32: to nearest, ties away from zero.
func toTF32(bits uint32) uint32 {
	if x := math.Float32frombits(bits); x != x {
		return nan32
	}
	return (bits + (tf32Rest+1)/2) &^ tf32Rest
}

// warpProduct multiplies matrices with elements of type T. unpack splits a word of the left (0) or right (1) factor into elements. sum reads
// an element of the sum from a register, and bits32 writes it back.
func warpProduct[T int32 | float64](perWord int, unpack func(side int, word uint32, to []T), sum func(uint32) T, bits32 func(T) uint32) runner {
	return func(w *worker, in *inst) {
		var word [14][]uint32
		for i, s := range in.v {
			word[i] = whole[uint32](w, s)
		}
		w.warps(func(warp int, active uint32) {
			first := warp * 32
			if active != math.MaxUint32 {
				w.fail(Collective, first+bits.TrailingZeros32(active), in.line, "lane %d of the warp does not take part", bits.TrailingZeros32(^active))
				return
			}
			const most = 32 // numbers along k
			var a [mmaM][most]T
			var b [most][mmaN]T
			var sums [mmaM][mmaN]T
			var column [4]T
			for lane := range 32 {
				g, q, i := lane/4, lane%4, first+lane
				for part := range 4 {
					k := (q + part/2*4) * perWord
					unpack(0, word[4+part][i], a[g+part%2*8][k:k+perWord])
				}
				for part := range 2 {
					k := (q + part*4) * perWord
					unpack(1, word[8+part][i], column[:perWord])
					for e := range perWord {
						b[k+e][g] = column[e]
					}
				}
				for part := range 4 {
					sums[g+part/2*8][2*q+part%2] = sum(word[10+part][i])
				}
			}
			for i := range sums {
				row := &sums[i]
				for k := range 8 * perWord {
					x, y := a[i][k], &b[k]
					for j := range row {
						row[j] += x * y[j]
					}
				}
			}
			for lane := range 32 {
				g, q, i := lane/4, lane%4, first+lane
				for part := range 4 {
					word[part][i] = bits32(sums[g+part/2*8][2*q+part%2])
				}
			}
		})
	}
}

// mma reads the instruction of PTX.
func (r *ptxReader) mma(name string, ops []ptxOperand) {
	kind := llir.MmaInstruction(name)
	if kind == nil {
		r.fail("instruction is not known")
		return
	}
	if !r.args(ops, 4) {
		return
	}
	var v []slot
	for i, n := range []int{4, 4, 2, 4} {
		if len(ops[i].list) != n {
			r.fail("%d registers in operand %d, not %d", len(ops[i].list), i, n)
			return
		}
		for _, o := range ops[i].list {
			if i == 0 {
				v = append(v, r.out(o, 4))
			} else {
				v = append(v, r.in(o, 4))
			}
		}
	}
	r.emit(inst{run: mma(kind), d: none, a: none, b: none, c: none, guard: none, line: int32(r.line), v: v})
}
