package sim

import (
	"math"
	"math/bits"
	"sync"

	"github.com/aton-project/aton/codegen/gpu/isa"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/tensor"
)

const (
	mmaM = 16
	mmaN = 8
)

// factors are the numbers of a format by their bits. What they are in float64 is exact.
var factors = map[kir.Format]func() []float64{
	kir.Half: sync.OnceValue(func() []float64 { return decoded(func(b uint16) float64 { return float64(tensor.HalfToFloat(b)) }) }),
	kir.BFloat16: sync.OnceValue(func() []float64 {
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

// mma is mma.sync.aligned of factors of a format; v is 4 words of the result, 4 of the left factor, 2 of the right one, 4 sums, distributed among the threads as the PTX ISA
// tells ("Matrix Fragments for mma.m16n8k16" and those of other shapes, which have the same places for words).
//
// The PTX ISA leaves the order and the rounding of sums of floats open. Here an element is c plus its products, in ascending order of k in float64, where a product
// is exact, and rounded once to the nearest float32: no further from the exact sum than half an ulp and what float64 loses. What a device may do is in bound.Mma.
// Sums of integers wrap, in any order.
func mma(f kir.Format) runner {
	per := int(f.PerWord())
	if f.Sum() == kir.I32 {
		signed := [2]bool{f == kir.S8 || f == kir.S8U8, f == kir.S8 || f == kir.U8S8}
		return warpProduct(per, func(side int, word uint32, to []int32) {
			for i := range to {
				if to[i] = int32(word >> (8 * i) & 0xff); signed[side] {
					to[i] = int32(int8(to[i]))
				}
			}
		}, func(x uint32) int32 { return int32(x) }, func(x int32) uint32 { return uint32(x) })
	}
	sum, back := func(x uint32) float64 { return float64(math.Float32frombits(x)) }, func(x float64) uint32 { return isa.Bits32(float32(x)) }
	if f == kir.Tensor32 {
		return warpProduct(per, func(_ int, word uint32, to []float64) { to[0] = float64(math.Float32frombits(isa.TF32Bits(word))) }, sum, back)
	}
	table := factors[f]
	return warpProduct(per, func(_ int, word uint32, to []float64) {
		number := table()
		to[0], to[1] = number[word&0xffff], number[word>>16]
	}, sum, back)
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

// readProduct reads mma.
func (r *ptxReader) readProduct(row *isa.Row, _ string, ops []ptxOperand) {
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
	r.effect(inst{run: mma(row.Factors), Op: isa.Op{A: none, B: none, C: none}, v: v, outs: 4})
}
