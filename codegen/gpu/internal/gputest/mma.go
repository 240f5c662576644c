package gputest

import (
	"fmt"
	"math"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa/tensor"
)

// Fragment says which element of a matrix stands where: element i of lane is at a row and column. These are the formulas of the PTX ISA, "Matrix Fragments
// for mma.m16n8k16 with floating point type" "for mma.m16n8k32" and "for mma.m16n8k8"; MmaC is the same for all.
type Fragment func(lane, i int) (row, col int)

// left is the left factor of 16 rows, in words of so many numbers, of which a lane has four: it is 16x16 for 2 of float16 or bfloat16, 16x32 for 4 bytes and 16x8 for one of tf32.
func left(per int) Fragment {
	return func(lane, i int) (row, col int) {
		return lane>>2 + i/per%2*8, lane%4*per + i%per + i/(2*per)*4*per
	}
}

// right is the right factor of 8 columns, of which a lane has two words: it is 16x8, 32x8 or 8x8.
func right(per int) Fragment {
	return func(lane, i int) (row, col int) { return lane%4*per + i%per + i/per*4*per, lane >> 2 }
}

// MmaC is the sum and the result of 16x8, 4 elements a lane.
func MmaC(lane, i int) (row, col int) {
	if row = lane >> 2; i >= 2 {
		row += 8
	}
	return row, lane%4*2 + i&1
}

// ToTF32 rounds numbers to tf32 by a kernel: what is half way between two of its numbers goes away from zero.
func ToTF32() Case {
	in := []float32{0, 1, -1, 1 + 0x1p-11, -1 - 0x1p-11, 1 + 0x1p-11 - 0x1p-23, 1 + 0x1p-10, 3 + 0x1p-10, 0x1p-149, 0x1p-137, -0x1p-137, 0x1p-138, math.MaxFloat32,
		float32(math.Inf(-1)), 0x1.ffcp127, 0x1.ffep127}
	want := []float32{0, 1, -1, 1 + 0x1p-10, -1 - 0x1p-10, 1, 1 + 0x1p-10, 3 + 0x1p-9, 0, 0x1p-136, -0x1p-136, 0, float32(math.Inf(1)),
		float32(math.Inf(-1)), 0x1.ffcp127, float32(math.Inf(1))}
	in = append(in, make([]float32, 32-len(in))...)
	want = append(want, make([]float32, 32-len(want))...)
	return Case{
		Name: "to_tf32", Grid: [3]int{1}, Block: [3]int{32},
		Kernel: func() *kir.Kernel {
			b := kir.New("to_tf32", 32)
			x, y := b.Buffer("x", kir.F32, false), b.Buffer("y", kir.I32, true)
			b.Store(y, b.ThreadX(), b.TF32(b.Load(x, b.ThreadX())))
			return b.K
		},
		Args: func() []sim.Arg { return []sim.Arg{buffer(in), buffer(make([]uint32, 32))} },
		Verify: func(args []sim.Arg) error {
			for i, bits := range Values[uint32](args[1].Buffer, 32) {
				if bits != math.Float32bits(want[i]) {
					return fmt.Errorf("%x is %x, want %x", in[i], math.Float32frombits(bits), want[i])
				}
			}
			return nil
		},
	}
}

// Mma multiplies A by B of the shape of the format and adds C, by one warp in two steps. Sums of integers are exact, and some of them wrap.
func Mma(format kir.Format) Case {
	const steps = 2
	dtypes, fragmentA, fragmentB := [2]tensor.DType{tensor.Float16, tensor.Float16}, left(2), right(2)
	switch format {
	case kir.BFloat16:
		dtypes = [2]tensor.DType{tensor.BFloat16, tensor.BFloat16}
	case kir.Tensor32:
		dtypes, fragmentA, fragmentB = [2]tensor.DType{tensor.Float32, tensor.Float32}, left(1), right(1)
	}
	per, integer := int(format.PerWord()), format.Sum() == kir.I32
	if integer {
		of := func(signed bool) tensor.DType {
			if signed {
				return tensor.Int8
			}
			return tensor.Uint8
		}
		dtypes = [2]tensor.DType{of(format == kir.S8 || format == kir.S8U8), of(format == kir.S8 || format == kir.U8S8)}
		fragmentA, fragmentB = left(4), right(4)
	}
	depth := 8 * per // of one step
	numbers := func(n int, d tensor.DType, seed uint64) []float64 {
		x := make([]float64, n)
		for i, v := range Random(n, seed) {
			if x[i] = float64(v); integer {
				x[i] = float64(int(math.Float32bits(v)>>3) & 0xff)
				if d == tensor.Int8 {
					x[i] -= 128
				}
			}
		}
		if format == kir.Tensor32 { // of which float16 has the significand
			d = tensor.Float16
		}
		return tensor.FromFloats(d, []int64{int64(n)}, x).Float64s()
	}
	a, b := numbers(16*depth*steps, dtypes[0], 1), numbers(depth*steps*8, dtypes[1], 2)
	c := make([]float64, 16*8)
	cs := make([]uint32, 4*32)
	for i, v := range Random(16*8, 3) {
		if c[i] = float64(v); integer {
			c[i] = float64(math.MaxInt32 - i*1000)
		}
	}
	if !integer {
		a[5], c[9] = math.Inf(1), math.Inf(-1)
	}
	// words are the registers of the lanes, a register of all lanes after the other
	words := func(x []float64, d tensor.DType, at Fragment, n, cols, rowOff, colOff int) []uint32 {
		out := make([]uint32, n/per*32)
		for lane := range 32 {
			for i := range n {
				row, col := at(lane, i)
				for k, v := range tensor.FromFloats(d, []int64{1}, []float64{x[(row+rowOff)*cols+col+colOff]}).Bytes() {
					out[i/per*32+lane] |= uint32(v) << (8*k + 32/per*(i%per))
				}
			}
		}
		return out
	}
	var as, bs []uint32
	for s := range steps {
		as = append(as, words(a, dtypes[0], fragmentA, 4*per, depth*steps, 0, depth*s)...)
		bs = append(bs, words(b, dtypes[1], fragmentB, 2*per, 8, depth*s, 0)...)
	}
	for lane := range 32 {
		for i := range 4 {
			row, col := MmaC(lane, i)
			if x := c[row*8+col]; integer {
				cs[i*32+lane] = uint32(int32(x))
			} else {
				cs[i*32+lane] = math.Float32bits(float32(x))
			}
		}
	}
	name := "mma_" + strings.ReplaceAll(format.String(), ".", "_")
	return Case{
		Name: name, Grid: [3]int{1}, Block: [3]int{32},
		Kernel: func() *kir.Kernel {
			b := kir.New(name, 32)
			pa, pb, pc, pd := b.Buffer("a", kir.I32, false), b.Buffer("b", kir.I32, false), b.Buffer("c", format.Sum(), false), b.Buffer("d", format.Sum(), true)
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
			return b.K
		},
		Args: func() []sim.Arg { return []sim.Arg{buffer(as), buffer(bs), buffer(cs), buffer(make([]uint32, 4*32))} },
		Verify: func(args []sim.Arg) error {
			got := Values[uint32](args[3].Buffer, 4*32)
			for lane := range 32 {
				for i := range 4 {
					row, col := MmaC(lane, i)
					want, size := c[row*8+col], math.Abs(c[row*8+col])
					for k := range depth * steps {
						p := a[row*depth*steps+k] * b[k*8+col]
						want, size = want+p, size+math.Abs(p)
					}
					if x := int32(got[i*32+lane]); integer {
						if x != int32(int64(want)) {
							return fmt.Errorf("element %d,%d is %d, want %g modulo 2^32", row, col, x, want)
						}
						continue
					}
					x := float64(math.Float32frombits(got[i*32+lane]))
					if x != want && !(x != x && want != want) && !(math.Abs(x-want) <= steps*0x1p-24*size) {
						return fmt.Errorf("element %d,%d is %g, want %g", row, col, x, want)
					}
				}
			}
			return nil
		},
	}
}
