package sim

import (
	"math"
	"math/bits"
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa/tensor"
)

// The shape m16n8k16: a thread's share of its operations is mmaFlops.
const (
	mmaM     = 16
	mmaN     = 8
	mmaK     = 16
	mmaFlops = 2 * mmaM * mmaN * mmaK / 32
)

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

// mma is mma.sync.aligned.m16n8k16 with sums of float32; v is 4 words of the result, 4 of the left factor, 2 of the right one, 4 sums, distributed among the
// threads as the PTX ISA tells ("Matrix Fragments for mma.m16n8k16").
//
// The PTX ISA leaves the order and the rounding of the sums open. Here an element is c plus its 16 products, in ascending order of k in float64, where a product
// is exact, and rounded once to the nearest float32: no further from the exact sum than half an ulp and what float64 loses. What a device may do is in bound.Mma.
func mma(format string) runner {
	table := factors[format]
	if table == nil {
		return nil
	}
	return func(w *worker, in *inst) {
		number := table()
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
			var a [mmaM][mmaK]float64
			var b [mmaK][mmaN]float64
			var sums [mmaM][mmaN]float64
			for lane := range 32 {
				g, q, i := lane/4, lane%4*2, first+lane
				for part := range 4 {
					x := word[4+part][i]
					row, k := g+part%2*8, q+part/2*8
					a[row][k], a[row][k+1] = number[x&0xffff], number[x>>16]
				}
				for part := range 2 {
					x := word[8+part][i]
					b[q+part*8][g], b[q+part*8+1][g] = number[x&0xffff], number[x>>16]
				}
				for part := range 4 {
					sums[g+part/2*8][q+part%2] = float64(math.Float32frombits(word[10+part][i]))
				}
			}
			for i := range sums {
				row := &sums[i]
				for k := range mmaK {
					x, y := a[i][k], &b[k]
					for j := range row {
						row[j] += x * y[j]
					}
				}
			}
			for lane := range 32 {
				g, q, i := lane/4, lane%4*2, first+lane
				for part := range 4 {
					x := float32(sums[g+part/2*8][q+part%2])
					if word[part][i] = math.Float32bits(x); x != x {
						word[part][i] = nan32
					}
				}
			}
		})
	}
}

// mma reads the instruction of PTX.
func (r *ptxReader) mma(name string, ops []ptxOperand) {
	rest, ok := strings.CutPrefix(name, "mma.sync.aligned.m16n8k16.row.col.f32.")
	format, _, _ := strings.Cut(rest, ".")
	if !ok || rest != format+"."+format+".f32" || factors[format] == nil {
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
	r.emit(inst{run: mma(format), d: none, a: none, b: none, c: none, guard: none, line: int32(r.line), v: v})
}
