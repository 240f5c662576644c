package gputest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// Case is a kernel with a launch and what it must compute.
type Case struct {
	Name        string
	Build       func() *ir.Module // a new module with one kernel of this name
	Grid, Block [3]int
	Shared      int                     // bytes of dynamic shared memory
	Args        func() []sim.Arg        // with buffers of their own
	Verify      func(a []sim.Arg) error // of the arguments after the run
}

// Kernel is the function of the module that has a body.
func Kernel(m *ir.Module) *ir.Func {
	for _, f := range m.Funcs {
		if len(f.Blocks) > 0 {
			return f
		}
	}
	return nil
}

// Bytes is the little-endian memory of a slice.
func Bytes[T any](x []T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, x)
	if err != nil {
		panic(err) // a slice of numbers always has a memory form
	}
	return b
}

// Values reads n numbers of a buffer. It panics if there are fewer.
func Values[T any](b *sim.Buffer, n int) []T {
	x := make([]T, n)
	if _, err := binary.Decode(b.Bytes(), binary.LittleEndian, x); err != nil {
		panic(err)
	}
	return x
}

// Random gives numbers in [-2, 2), the same each time.
func Random(n int, seed uint64) []float32 {
	x := make([]float32, n)
	s := seed*2654435761 + 12345
	for i := range x {
		s = s*6364136223846793005 + 1442695040888963407
		x[i] = float32(int32(s>>33)-1<<30) / (1 << 29)
	}
	return x
}

func buffer[T any](x []T) sim.Arg { return sim.Ptr(sim.NewBuffer(Bytes(x))) }

func close32(got, want []float32, rel float64) error {
	for i := range want {
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= rel*math.Max(1e-3, math.Abs(float64(want[i])))) {
			return fmt.Errorf("element %d is %g, want %g", i, got[i], want[i])
		}
	}
	return nil
}

// AddRelu is max(x+y, 0) over n elements: four at a time, then a tail.
func AddRelu(n, blocks int) Case {
	x, y := Random(n, 1), Random(n, 2)
	return Case{
		Name: "addrelu", Grid: [3]int{blocks}, Block: [3]int{256},
		Build: func() *ir.Module {
			px, py, pz, pn := Array("x", types.Float, false), Array("y", types.Float, false), Array("z", types.Float, true), ir.NewParam("n", types.I32)
			b := New("addrelu", px, py, pz, pn)
			c := b.C
			tid := c.NewAdd(c.NewMul(b.Sreg("ctaid.x"), b.Sreg("ntid.x")), b.Sreg("tid.x"))
			step := c.NewMul(b.Sreg("nctaid.x"), b.Sreg("ntid.x"))
			whole := c.NewAnd(pn, I32(-4))
			op := func(x, y value.Value) value.Value {
				return b.Call("llvm.maxnum.f32", types.Float, b.C.NewFAdd(x, y), F32(0))
			}
			b.For(c.NewShl(tid, I32(2)), whole, c.NewShl(step, I32(2)), nil, func(i value.Value, _ []value.Value) []value.Value {
				vx, vy := b.LoadVec(px, i, 4), b.LoadVec(py, i, 4)
				var out value.Value = vx
				for k := range int64(4) {
					out = b.C.NewInsertElement(out, op(b.C.NewExtractElement(vx, I32(k)), b.C.NewExtractElement(vy, I32(k))), I32(k))
				}
				b.StoreVec(pz, i, out)
				return nil
			})
			b.For(b.C.NewAdd(whole, tid), pn, step, nil, func(i value.Value, _ []value.Value) []value.Value {
				b.Store(pz, i, op(b.Load(px, i), b.Load(py, i)))
				return nil
			})
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(y), buffer(make([]float32, n)), sim.I32(int32(n))}
		},
		Verify: func(a []sim.Arg) error {
			want := make([]float32, n)
			for i := range want {
				want[i] = max(x[i]+y[i], 0)
			}
			return close32(Values[float32](a[2].Buffer, n), want, 0)
		},
	}
}

// exp is 2^n * p(r) with two-part reduction; the argument is at most 0.
func (b *Builder) exp(x value.Value) value.Value {
	x = b.Call("llvm.maxnum.f32", types.Float, x, F32(-87))
	n := b.Call("llvm.rint.f32", types.Float, b.C.NewFMul(x, F32(1.44269504)))
	r := b.Fma(n, F32(-0.693145752), x)
	r = b.Fma(n, F32(-1.42860677e-6), r)
	p := value.Value(F32(1.0 / 720))
	for _, c := range []float64{1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1, 1} {
		p = b.Fma(p, r, F32(c))
	}
	bits := b.C.NewShl(b.C.NewAdd(b.C.NewFPToSI(n, types.I32), I32(127)), I32(23))
	return b.C.NewFMul(p, b.C.NewBitCast(bits, types.Float))
}

// Softmax normalises rows of the given length, one block a row, with reductions through shared memory.
func Softmax(rows, cols int) Case {
	const threads = 128
	x := Random(rows*cols, 3)
	// but for each ninth row, the maximum sits with another thread, far above the rest: a reduction that loses it overflows
	for r := range rows {
		if r%9 < 8 {
			x[r*cols+min(cols-1, 1<<(r%9)>>1)] += 300
		}
	}
	return Case{
		Name: "softmax", Grid: [3]int{rows}, Block: [3]int{threads},
		Build: func() *ir.Module {
			px, py, pn := Array("x", types.Float, false), Array("y", types.Float, true), ir.NewParam("n", types.I32)
			b := New("softmax", px, py, pn)
			red := b.SharedArray("red", types.Float, threads)
			tid := b.Sreg("tid.x")
			base := b.C.NewMul(b.Sreg("ctaid.x"), pn)
			reduce := func(v value.Value, f func(a, b value.Value) value.Value) value.Value {
				b.Store(red, tid, v)
				b.Barrier()
				for s := int64(threads / 2); s > 0; s /= 2 {
					b.If(b.C.NewICmp(enum.IPredSLT, tid, I32(s)), func() {
						b.Store(red, tid, f(b.Load(red, tid), b.Load(red, b.C.NewAdd(tid, I32(s)))))
					})
					b.Barrier()
				}
				v = b.Load(red, I32(0))
				b.Barrier()
				return v
			}
			maximum := func(x, y value.Value) value.Value { return b.Call("llvm.maxnum.f32", types.Float, x, y) }
			m := b.For(tid, pn, I32(threads), []value.Value{F32(math.Inf(-1))}, func(i value.Value, v []value.Value) []value.Value {
				return []value.Value{maximum(v[0], b.Load(px, b.C.NewAdd(base, i)))}
			})
			top := reduce(m[0], maximum)
			s := b.For(tid, pn, I32(threads), []value.Value{F32(0)}, func(i value.Value, v []value.Value) []value.Value {
				j := b.C.NewAdd(base, i)
				e := b.exp(b.C.NewFSub(b.Load(px, j), top))
				b.Store(py, j, e)
				return []value.Value{b.C.NewFAdd(v[0], e)}
			})
			sum := reduce(s[0], func(x, y value.Value) value.Value { return b.C.NewFAdd(x, y) })
			b.For(tid, pn, I32(threads), nil, func(i value.Value, _ []value.Value) []value.Value {
				j := b.C.NewAdd(base, i)
				b.Store(py, j, b.C.NewFDiv(b.Load(py, j), sum))
				return nil
			})
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(make([]float32, rows*cols)), sim.I32(int32(cols))}
		},
		Verify: func(a []sim.Arg) error {
			want := make([]float32, rows*cols)
			for r := range rows {
				top, sum := math.Inf(-1), 0.0
				for _, v := range x[r*cols : (r+1)*cols] {
					top = max(top, float64(v))
				}
				for _, v := range x[r*cols : (r+1)*cols] {
					sum += math.Exp(float64(v) - top)
				}
				for i, v := range x[r*cols : (r+1)*cols] {
					want[r*cols+i] = float32(math.Exp(float64(v)-top) / sum)
				}
			}
			return close32(Values[float32](a[1].Buffer, rows*cols), want, 1e-5)
		},
	}
}

// Gemm is C = A B in tiles of 64x64x16, four by four results a thread; the edges are guarded.
func Gemm(m, n, k int) Case {
	x, y := Random(m*k, 4), Random(k*n, 5)
	return Case{
		Name: "gemm", Grid: [3]int{(n + 63) / 64, (m + 63) / 64}, Block: [3]int{16, 16},
		Build: func() *ir.Module {
			pa, pb, pc := Array("a", types.Float, false), Array("b", types.Float, false), Array("c", types.Float, true)
			pm, pn, pk := ir.NewParam("m", types.I32), ir.NewParam("n", types.I32), ir.NewParam("k", types.I32)
			b := New("gemm", pa, pb, pc, pm, pn, pk)
			// As is transposed: As[kk][row]
			as, bs := b.SharedArray("as", types.Float, 16*64), b.SharedArray("bs", types.Float, 16*64)
			tx, ty := b.Sreg("tid.x"), b.Sreg("tid.y")
			tid := b.C.NewAdd(b.C.NewShl(ty, I32(4)), tx)
			row0 := b.C.NewShl(b.Sreg("ctaid.y"), I32(6))
			col0 := b.C.NewShl(b.Sreg("ctaid.x"), I32(6))
			acc := make([]value.Value, 16)
			for i := range acc {
				acc[i] = F32(0)
			}
			guarded := func(p value.Value, ok, index value.Value) value.Value {
				safe := b.C.NewSelect(ok, index, I32(0))
				return b.C.NewSelect(ok, b.Load(p, safe), F32(0))
			}
			acc = b.For(I32(0), pk, I32(16), acc, func(k0 value.Value, acc []value.Value) []value.Value {
				for i := range int64(4) {
					e := b.C.NewAdd(tid, I32(256*i)) // element of the tile
					kk, r := b.C.NewAnd(e, I32(15)), b.C.NewLShr(e, I32(4))
					row, col := b.C.NewAdd(row0, r), b.C.NewAdd(k0, kk)
					ok := b.C.NewAnd(b.C.NewICmp(enum.IPredSLT, row, pm), b.C.NewICmp(enum.IPredSLT, col, pk))
					b.Store(as, b.C.NewAdd(b.C.NewShl(kk, I32(6)), r), guarded(pa, ok, b.C.NewAdd(b.C.NewMul(row, pk), col)))
				}
				for i := range int64(4) {
					e := b.C.NewAdd(tid, I32(256*i))
					c, kk := b.C.NewAnd(e, I32(63)), b.C.NewLShr(e, I32(6))
					row, col := b.C.NewAdd(k0, kk), b.C.NewAdd(col0, c)
					ok := b.C.NewAnd(b.C.NewICmp(enum.IPredSLT, row, pk), b.C.NewICmp(enum.IPredSLT, col, pn))
					b.Store(bs, e, guarded(pb, ok, b.C.NewAdd(b.C.NewMul(row, pn), col)))
				}
				b.Barrier()
				a0, b0 := b.C.NewShl(ty, I32(2)), b.C.NewShl(tx, I32(2))
				next := append([]value.Value(nil), acc...)
				for kk := range int64(16) {
					va := b.LoadVec(as, b.C.NewAdd(a0, I32(64*kk)), 4)
					vb := b.LoadVec(bs, b.C.NewAdd(b0, I32(64*kk)), 4)
					var ea, eb [4]value.Value
					for i := range int64(4) {
						ea[i], eb[i] = b.C.NewExtractElement(va, I32(i)), b.C.NewExtractElement(vb, I32(i))
					}
					for i := range 4 {
						for j := range 4 {
							next[4*i+j] = b.Fma(ea[i], eb[j], next[4*i+j])
						}
					}
				}
				b.Barrier()
				return next
			})
			for i := range int64(4) {
				for j := range int64(4) {
					row := b.C.NewAdd(b.C.NewAdd(row0, b.C.NewShl(ty, I32(2))), I32(i))
					col := b.C.NewAdd(b.C.NewAdd(col0, b.C.NewShl(tx, I32(2))), I32(j))
					ok := b.C.NewAnd(b.C.NewICmp(enum.IPredSLT, row, pm), b.C.NewICmp(enum.IPredSLT, col, pn))
					b.If(ok, func() { b.Store(pc, b.C.NewAdd(b.C.NewMul(row, pn), col), acc[4*i+j]) })
				}
			}
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(y), buffer(make([]float32, m*n)), sim.I32(int32(m)), sim.I32(int32(n)), sim.I32(int32(k))}
		},
		Verify: func(a []sim.Arg) error {
			got := Values[float32](a[2].Buffer, m*n)
			for i := range m {
				for j := range n {
					want, size := 0.0, 0.0
					for p := range k {
						v := float64(x[i*k+p]) * float64(y[p*n+j])
						want += v
						size += math.Abs(v)
					}
					if d := math.Abs(float64(got[i*n+j]) - want); !(d <= size*math.Sqrt(float64(k))*1.2e-7) {
						return fmt.Errorf("element %d,%d is %g, want %g", i, j, got[i*n+j], want)
					}
				}
			}
			return nil
		},
	}
}

// WarpSum adds rows of x, one warp a row, by shuffles.
func WarpSum(rows, cols int) Case {
	x := Random(rows*cols, 6)
	return Case{
		Name: "warpsum", Grid: [3]int{(rows + 3) / 4}, Block: [3]int{128},
		Build: func() *ir.Module {
			px, py, pr, pn := Array("x", types.Float, false), Array("y", types.Float, true), ir.NewParam("rows", types.I32), ir.NewParam("n", types.I32)
			b := New("warpsum", px, py, pr, pn)
			tid := b.Sreg("tid.x")
			row := b.C.NewAdd(b.C.NewShl(b.Sreg("ctaid.x"), I32(2)), b.C.NewLShr(tid, I32(5)))
			lane := b.C.NewAnd(tid, I32(31))
			b.If(b.C.NewICmp(enum.IPredSLT, row, pr), func() {
				base := b.C.NewMul(row, pn)
				s := b.For(lane, pn, I32(32), []value.Value{F32(0)}, func(i value.Value, v []value.Value) []value.Value {
					return []value.Value{b.C.NewFAdd(v[0], b.Load(px, b.C.NewAdd(base, i)))}
				})[0]
				for m := int64(16); m > 0; m /= 2 {
					s = b.C.NewFAdd(s, b.Bfly(s, m))
				}
				b.If(b.C.NewICmp(enum.IPredEQ, lane, I32(0)), func() { b.Store(py, row, s) })
			})
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg {
			return []sim.Arg{buffer(x), buffer(make([]float32, rows)), sim.I32(int32(rows)), sim.I32(int32(cols))}
		},
		Verify: func(a []sim.Arg) error {
			got := Values[float32](a[1].Buffer, rows)
			for r := range rows {
				want, size := 0.0, 0.0
				for _, v := range x[r*cols : (r+1)*cols] {
					want += float64(v)
					size += math.Abs(float64(v))
				}
				if !(math.Abs(float64(got[r])-want) <= size*1e-6) {
					return fmt.Errorf("row %d is %g, want %g", r, got[r], want)
				}
			}
			return nil
		},
	}
}

// Cases is the hand-built kernels at small sizes.
func Cases() []Case {
	return []Case{
		AddRelu(1003, 2), AddRelu(3, 1), AddRelu(0, 1), Softmax(3, 200), Softmax(2, 5), Gemm(70, 65, 33), Gemm(1, 1, 1), WarpSum(6, 77),
		Float32Ops(), Compare32(), Float64Ops(), HalfOps(), Int64Ops(), BoolOps(), Casts(), Local(), Histogram(), Diverge(), HalfVec(), Dynamic(),
		Mma(kir.Half), Mma(kir.BFloat16), Mma(kir.Tensor32), ToTF32(), Mma(kir.S8), Mma(kir.S8U8), Mma(kir.U8S8), Mma(kir.U8), Copies(4, ""), Copies(8, ""), Copies(16, ""), Matrices(false), Matrices(true),
	}
}
