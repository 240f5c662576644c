package gputest

import (
	"fmt"
	"math"

	"github.com/llir/llvm/ir"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa/tensor"
)

// Fragment says which element of a matrix stands where: element i of lane is at a row and column. These are the formulas of the PTX ISA, "Matrix Fragments
// for mma.m16n8k16 with floating point type".
type Fragment func(lane, i int) (row, col int)

// MmaA is the left factor of 16x16, 8 elements a lane.
func MmaA(lane, i int) (row, col int) {
	if row = lane >> 2; !(0 <= i && i < 2 || 4 <= i && i < 6) {
		row += 8
	}
	if col = lane%4*2 + i&1; i >= 4 {
		col += 8
	}
	return row, col
}

// MmaB is the right factor of 16x8, 4 elements a lane.
func MmaB(lane, i int) (row, col int) {
	if row = lane%4*2 + i&1; i >= 2 {
		row += 8
	}
	return row, lane >> 2
}

// MmaC is the sum and the result of 16x8, 4 elements a lane.
func MmaC(lane, i int) (row, col int) {
	if row = lane >> 2; i >= 2 {
		row += 8
	}
	return row, lane%4*2 + i&1
}

// Mma multiplies A of 16x32 by B of 32x8 and adds C, by one warp in two steps; format is "f16" or "bf16".
func Mma(format kir.Format) Case {
	const steps = 2
	dtype := map[kir.Format]tensor.DType{kir.Half: tensor.Float16, kir.BFloat16: tensor.BFloat16}[format]
	rounded := func(n int, seed uint64) []float64 {
		x := make([]float64, n)
		for i, v := range Random(n, seed) {
			x[i] = float64(v)
		}
		return tensor.FromFloats(dtype, []int64{int64(n)}, x).Float64s()
	}
	a, b, c := rounded(16*16*steps, 1), rounded(16*steps*8, 2), Random(16*8, 3)
	a[5], c[9] = math.Inf(1), float32(math.Inf(-1))
	// words are the registers of the lanes, a register of all lanes after the other
	words := func(x []float64, at Fragment, n, cols, rowOff, colOff int) []uint32 {
		out := make([]uint32, n/2*32)
		for lane := range 32 {
			for i := range n {
				row, col := at(lane, i)
				bits := tensor.FromFloats(dtype, []int64{1}, []float64{x[(row+rowOff)*cols+col+colOff]}).Bytes()
				out[i/2*32+lane] |= (uint32(bits[0]) | uint32(bits[1])<<8) << (16 * (i & 1))
			}
		}
		return out
	}
	var as, bs []uint32
	for s := range steps {
		as = append(as, words(a, MmaA, 8, 16*steps, 0, 16*s)...)
		bs = append(bs, words(b, MmaB, 4, 8, 16*s, 0)...)
	}
	cs := make([]float32, 4*32)
	for lane := range 32 {
		for i := range 4 {
			row, col := MmaC(lane, i)
			cs[i*32+lane] = c[row*8+col]
		}
	}
	name := "mma_" + format.String()
	return Case{
		Name: name, Grid: [3]int{1}, Block: [3]int{32},
		Build: func() *ir.Module {
			b := kir.New(name, 32)
			pa, pb, pc, pd := b.Buffer("a", kir.I32, false), b.Buffer("b", kir.I32, false), b.Buffer("c", kir.F32, false), b.Buffer("d", kir.F32, true)
			at := func(i int) kir.Value { return b.Add(b.ThreadX(), b.I32(int64(32*i))) }
			var sum [4]kir.Value
			for i := range sum {
				sum[i] = b.Load(pc, at(i))
			}
			for s := range steps {
				var x [4]kir.Value
				for i := range x {
					x[i] = b.Load(pa, at(4*s+i))
				}
				sum = b.Mma(format, x, [2]kir.Value{b.Load(pb, at(2*s)), b.Load(pb, at(2*s+1))}, sum)
			}
			for i, v := range sum {
				b.Store(pd, at(i), v)
			}
			return llvm.Lower(b.K)
		},
		Args: func() []sim.Arg { return []sim.Arg{buffer(as), buffer(bs), buffer(cs), buffer(make([]float32, 4*32))} },
		Verify: func(args []sim.Arg) error {
			got := Values[float32](args[3].Buffer, 4*32)
			for lane := range 32 {
				for i := range 4 {
					row, col := MmaC(lane, i)
					want, size := float64(c[row*8+col]), math.Abs(float64(c[row*8+col]))
					for k := range 16 * steps {
						p := a[row*16*steps+k] * b[k*8+col]
						want, size = want+p, size+math.Abs(p)
					}
					x := float64(got[i*32+lane])
					if x != want && !(x != x && want != want) && !(math.Abs(x-want) <= steps*0x1p-24*size) {
						return fmt.Errorf("element %d,%d is %g, want %g", row, col, x, want)
					}
				}
			}
			return nil
		},
	}
}
