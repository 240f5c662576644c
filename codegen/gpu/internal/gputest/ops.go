package gputest

import (
	"fmt"
	"math"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/sim"
)

// elementwise is a kernel over n elements with arrays of the given types, the outputs last, 64 threads a block.
func elementwise(name string, n int, in, out []types.Type, body func(b *Builder, x []value.Value) []value.Value) *ir.Module {
	var params []*ir.Param
	for i, t := range in {
		params = append(params, Array(fmt.Sprintf("x%d", i), t, false))
	}
	for i, t := range out {
		params = append(params, Array(fmt.Sprintf("y%d", i), t, true))
	}
	b := New(name, params...)
	i := b.C.NewAdd(b.C.NewMul(b.Sreg("ctaid.x"), b.Sreg("ntid.x")), b.Sreg("tid.x"))
	b.If(b.C.NewICmp(enum.IPredSLT, i, I32(int64(n))), func() {
		var x []value.Value
		for k := range in {
			x = append(x, b.Load(params[k], i))
		}
		for k, v := range body(b, x) {
			b.Store(params[len(in)+k], i, v)
		}
	})
	b.Return()
	return b.M
}

// bufs makes an argument of each slice.
func bufs(x ...any) []sim.Arg {
	var out []sim.Arg
	for _, v := range x {
		switch v := v.(type) {
		case []float32:
			out = append(out, buffer(v))
		case []float64:
			out = append(out, buffer(v))
		case []int64:
			out = append(out, buffer(v))
		case []int32:
			out = append(out, buffer(v))
		case []uint16:
			out = append(out, buffer(v))
		case []uint8:
			out = append(out, buffer(v))
		}
	}
	return out
}

func equal[T comparable](a sim.Arg, want []T) error {
	got := Values[T](a.Buffer, len(want))
	for i := range want {
		if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
			return fmt.Errorf("element %d is %v, want %v", i, got[i], want[i])
		}
	}
	return nil
}

func blocksOf(n int) [3]int { return [3]int{(n + 63) / 64} }

var specials32 = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -2.5, 3.5, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	1e-45, -1e-40, 1.1754944e-38, 3.4e38, -3.4e38, 16777217, 1.0000001, 0.33333334, 2147483648, -2147483648, 255.5, 65504, 1e10, -7}

// pairs are all pairs of the values.
func pairs[T any](x []T) (a, b []T) {
	for _, u := range x {
		for _, v := range x {
			a, b = append(a, u), append(b, v)
		}
	}
	return a, b
}

// Float32Ops is every float operation on all pairs of special values; Go's own arithmetic is the reference.
func Float32Ops() Case {
	a, b := pairs(specials32)
	n := len(a)
	f := types.Float
	outs := make([]types.Type, 12)
	for i := range outs {
		outs[i] = f
	}
	return Case{
		Name: "f32ops", Grid: blocksOf(n), Block: [3]int{64},
		Build: func() *ir.Module {
			return elementwise("f32ops", n, []types.Type{f, f}, outs, func(b *Builder, x []value.Value) []value.Value {
				un := func(name string) value.Value { return b.Call("llvm."+name+".f32", f, x[0]) }
				bin := func(name string) value.Value { return b.Call("llvm."+name+".f32", f, x[0], x[1]) }
				return []value.Value{
					b.C.NewFAdd(x[0], x[1]), b.C.NewFSub(x[0], x[1]), b.C.NewFMul(x[0], x[1]), b.C.NewFDiv(x[0], x[1]),
					b.Fma(x[0], x[1], x[1]), bin("minnum"), bin("maxnum"), un("sqrt"), un("floor"), un("rint"), un("trunc"), bin("copysign"),
				}
			})
		},
		Args: func() []sim.Arg {
			args := bufs(a, b)
			for range outs {
				args = append(args, buffer(make([]float32, n)))
			}
			return args
		},
		Verify: func(args []sim.Arg) error {
			fmin := func(a, b float64) float64 {
				switch {
				case a != a:
					return b
				case b != b:
					return a
				}
				return math.Min(a, b)
			}
			ops := []func(a, b float64) float64{
				func(a, b float64) float64 { return a + b }, func(a, b float64) float64 { return a - b },
				func(a, b float64) float64 { return a * b }, func(a, b float64) float64 { return a / b },
				nil, fmin, func(a, b float64) float64 { return -fmin(-a, -b) },
				func(a, _ float64) float64 { return math.Sqrt(a) }, func(a, _ float64) float64 { return math.Floor(a) },
				func(a, _ float64) float64 { return math.RoundToEven(a) }, func(a, _ float64) float64 { return math.Trunc(a) }, nil,
			}
			for k, op := range ops {
				if op == nil {
					continue
				}
				want := make([]float32, n)
				for i := range want {
					want[i] = float32(op(float64(a[i]), float64(b[i])))
				}
				if err := equal(args[2+k], want); err != nil {
					return fmt.Errorf("operation %d: %w", k, err)
				}
			}
			return nil
		},
	}
}

// Compare32 is all comparisons of floats, as bits of an integer.
func Compare32() Case {
	a, b := pairs(specials32)
	n := len(a)
	preds := []enum.FPred{enum.FPredOEQ, enum.FPredOGE, enum.FPredOGT, enum.FPredOLE, enum.FPredOLT, enum.FPredONE, enum.FPredORD,
		enum.FPredUEQ, enum.FPredUGE, enum.FPredUGT, enum.FPredULE, enum.FPredULT, enum.FPredUNE, enum.FPredUNO}
	return Case{
		Name: "compare", Grid: blocksOf(n), Block: [3]int{64},
		Build: func() *ir.Module {
			return elementwise("compare", n, []types.Type{types.Float, types.Float}, []types.Type{types.I32}, func(b *Builder, x []value.Value) []value.Value {
				var out value.Value = I32(0)
				for i, p := range preds {
					bit := b.C.NewZExt(b.C.NewFCmp(p, x[0], x[1]), types.I32)
					out = b.C.NewOr(out, b.C.NewShl(bit, I32(int64(i))))
				}
				return []value.Value{out}
			})
		},
		Args: func() []sim.Arg { return bufs(a, b, make([]int32, n)) },
		Verify: func(args []sim.Arg) error {
			want := make([]int32, n)
			for i := range want {
				x, y := a[i], b[i]
				un := x != x || y != y
				for k, c := range []bool{x == y, x >= y, x > y, x <= y, x < y, x < y || x > y, !un,
					un || x == y, un || x >= y, un || x > y, un || x <= y, un || x < y, un || x != y, un} {
					if c {
						want[i] |= 1 << k
					}
				}
			}
			return equal(args[2], want)
		},
	}
}

// Float64Ops is arithmetic in float64, and conversions to and from it.
func Float64Ops() Case {
	var x []float64
	for _, v := range specials32 {
		x = append(x, float64(v)*1.0000000001)
	}
	a, b := pairs(x)
	n := len(a)
	return Case{
		Name: "f64ops", Grid: blocksOf(n), Block: [3]int{64},
		Build: func() *ir.Module {
			d := types.Double
			return elementwise("f64ops", n, []types.Type{d, d}, []types.Type{d, d, types.Float, types.I64, d}, func(b *Builder, x []value.Value) []value.Value {
				s := b.C.NewFAdd(b.C.NewFMul(x[0], x[1]), x[0])
				q := b.C.NewFDiv(b.Call("llvm.sqrt.f64", d, b.Call("llvm.fabs.f64", d, x[0])), x[1])
				r := b.C.NewFPTrunc(b.Fma(x[0], x[1], x[1]), types.Float)
				ok := b.C.NewFCmp(enum.FPredOLT, b.Call("llvm.fabs.f64", d, x[0]), constant.NewFloat(d, 1e18))
				i := b.C.NewFPToSI(b.C.NewSelect(ok, x[0], constant.NewFloat(d, 0)), types.I64)
				return []value.Value{s, q, r, i, b.C.NewSIToFP(i, d)}
			})
		},
		Args: func() []sim.Arg {
			return bufs(a, b, make([]float64, n), make([]float64, n), make([]float32, n), make([]int64, n), make([]float64, n))
		},
		Verify: func(args []sim.Arg) error {
			s, q, r, k := make([]float64, n), make([]float64, n), make([]float32, n), make([]int64, n)
			for i := range s {
				s[i] = float64(a[i]*b[i]) + a[i]
				q[i] = math.Sqrt(math.Abs(a[i])) / b[i]
				r[i] = float32(math.FMA(a[i], b[i], b[i]))
				if math.Abs(a[i]) < 1e18 {
					k[i] = int64(a[i])
				}
			}
			for _, err := range []error{equal(args[2], s), equal(args[3], q), equal(args[4], r), equal(args[5], k)} {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// HalfOps is arithmetic in half; the reference computes in float64 and rounds once.
func HalfOps() Case {
	bits := []uint16{0, 0x8000, 0x3c00, 0xbc00, 0x3555, 0x7bff, 0xfbff, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7c00, 0xfc00, 0x7e00, 0x4248, 0xc5a3, 0x2e66, 0x3bff}
	a, b := pairs(bits)
	n := len(a)
	return Case{
		Name: "halfops", Grid: blocksOf(n), Block: [3]int{64},
		Build: func() *ir.Module {
			h := types.Half
			return elementwise("halfops", n, []types.Type{h, h}, []types.Type{h, h, h, h, h, types.Float}, func(b *Builder, x []value.Value) []value.Value {
				return []value.Value{
					b.C.NewFAdd(x[0], x[1]), b.C.NewFMul(x[0], x[1]), b.C.NewFDiv(x[0], x[1]), b.Fma(x[0], x[1], x[0]),
					b.C.NewFPTrunc(b.C.NewFAdd(b.C.NewFPExt(x[0], types.Float), F32(0.0001)), h),
					b.C.NewFPExt(b.C.NewSelect(b.C.NewFCmp(enum.FPredOLT, x[0], x[1]), x[0], constant.NewFloat(h, 0.5)), types.Float),
				}
			})
		},
		Args: func() []sim.Arg {
			h := func() []uint16 { return make([]uint16, n) }
			return bufs(a, b, h(), h(), h(), h(), h(), make([]float32, n))
		},
		Verify: func(args []sim.Arg) error {
			for k, op := range []func(a, b float64) float64{
				func(a, b float64) float64 { return a + b }, func(a, b float64) float64 { return a * b }, func(a, b float64) float64 { return a / b }, nil,
				func(a, _ float64) float64 { return float64(float32(a) + float32(0.0001)) },
			} {
				got := Values[uint16](args[2+k].Buffer, n)
				for i := range got {
					if op == nil {
						continue
					}
					x := op(halfValue(a[i]), halfValue(b[i]))
					if g := halfValue(got[i]); !nearestHalf(g, got[i], x) {
						return fmt.Errorf("operation %d: element %d (%#x, %#x) is %g, of %g", k, i, a[i], b[i], g, x)
					}
				}
			}
			return nil
		},
	}
}

func halfValue(h uint16) float64 {
	s := 1.0
	if h&0x8000 != 0 {
		s = -1
	}
	e, m := int(h>>10&31), float64(h&1023)
	switch e {
	case 0:
		return s * m * 0x1p-24
	case 31:
		if m != 0 {
			return math.NaN()
		}
		return s * math.Inf(1)
	}
	return s * (1 + m/1024) * math.Pow(2, float64(e-15))
}

// nearestHalf says whether h is x rounded to the nearest half, ties to even.
func nearestHalf(v float64, h uint16, x float64) bool {
	switch {
	case x != x:
		return v != v
	case math.IsInf(x, 0):
		return v == x
	case math.IsInf(v, 0):
		return math.Abs(x) >= 65520 && (v > 0) == (x > 0)
	}
	if v == x {
		return true
	}
	even := h&1 == 0
	for _, o := range []uint16{h + 1, h - 1} { // the neighbours, as long as the sign stays
		if o&0x8000 != h&0x8000 {
			continue
		}
		w := halfValue(o)
		if math.IsInf(w, 0) {
			w = math.Copysign(65536, w)
		}
		if d, e := math.Abs(x-v), math.Abs(x-w); d > e || d == e && !even {
			return false
		}
	}
	return true
}

// Int64Ops is arithmetic of 64 and 32 bits, signed and not, with shifts.
func Int64Ops() Case {
	a, b := pairs([]int64{0, 1, -1, 2, 7, -7, 63, 1 << 31, -1 << 31, 1<<62 + 12345, math.MaxInt64, math.MinInt64, 1000003, -999})
	n := len(a)
	for i := range b {
		if b[i] == 0 || b[i] == -1 {
			b[i] = 3
		}
	}
	return Case{
		Name: "i64ops", Grid: blocksOf(n), Block: [3]int{64},
		Build: func() *ir.Module {
			l := types.I64
			return elementwise("i64ops", n, []types.Type{l, l}, []types.Type{l, l, l, l, types.I32, l}, func(b *Builder, x []value.Value) []value.Value {
				s := b.C.NewAnd(x[1], constant.NewInt(l, 63))
				n32 := b.C.NewTrunc(x[0], types.I32)
				m := b.Call("llvm.smax.i32", types.I32, n32, I32(-5))
				return []value.Value{
					b.C.NewAdd(b.C.NewMul(x[0], x[1]), x[0]), b.C.NewSDiv(x[0], x[1]), b.C.NewURem(x[0], x[1]),
					b.C.NewXor(b.C.NewAShr(x[0], s), b.C.NewShl(x[0], s)), b.C.NewSub(m, b.C.NewSRem(n32, I32(10))),
					b.C.NewOr(b.C.NewLShr(x[0], s), b.C.NewSExt(n32, l)),
				}
			})
		},
		Args: func() []sim.Arg {
			l := func() []int64 { return make([]int64, n) }
			return bufs(a, b, l(), l(), l(), l(), make([]int32, n), l())
		},
		Verify: func(args []sim.Arg) error {
			want := make([][]int64, 4)
			w32, w5 := make([]int32, n), make([]int64, n)
			for i := range a {
				x, y := a[i], b[i]
				s := uint(y & 63)
				want[0] = append(want[0], x*y+x)
				want[1] = append(want[1], x/y)
				want[2] = append(want[2], int64(uint64(x)%uint64(y)))
				want[3] = append(want[3], x>>s^x<<s)
				w32[i] = max(int32(x), -5) - int32(x)%10
				w5[i] = int64(uint64(x)>>s) | int64(int32(x))
			}
			for k := range want {
				if err := equal(args[2+k], want[k]); err != nil {
					return fmt.Errorf("operation %d: %w", k, err)
				}
			}
			if err := equal(args[6], w32); err != nil {
				return err
			}
			return equal(args[7], w5)
		},
	}
}

// BoolOps is logic on bool tensors, bytes of 0 and 1, and on their predicates; small integers too.
func BoolOps() Case {
	var a, b []uint8
	for i := range 256 {
		for _, j := range []int{0, 1, 2, 127, 128, 200, 255} {
			a, b = append(a, uint8(i)), append(b, uint8(j))
		}
	}
	n := len(a)
	return Case{
		Name: "boolops", Grid: blocksOf(n), Block: [3]int{64},
		Build: func() *ir.Module {
			c := types.I8
			return elementwise("boolops", n, []types.Type{c, c}, []types.Type{c, c, c, types.I16, types.Float, types.I64}, func(b *Builder, x []value.Value) []value.Value {
				zero := constant.NewInt(c, 0)
				p, q := b.C.NewICmp(enum.IPredNE, x[0], zero), b.C.NewICmp(enum.IPredSLT, x[0], x[1])
				r := b.C.NewXor(b.C.NewAnd(p, q), constant.NewBool(true))
				pick := b.C.NewSelect(p, q, r)
				return []value.Value{
					b.C.NewZExt(r, c), b.C.NewAdd(b.C.NewMul(x[0], x[1]), constant.NewInt(c, -3)),
					b.C.NewSelect(b.C.NewICmp(enum.IPredEQ, p, q), b.C.NewAShr(x[0], constant.NewInt(c, 3)), b.C.NewSDiv(x[1], constant.NewInt(c, 7))),
					b.C.NewAdd(b.C.NewSExt(x[0], types.I16), b.C.NewZExt(x[1], types.I16)),
					b.C.NewFAdd(b.C.NewUIToFP(x[0], types.Float), b.C.NewSIToFP(x[1], types.Float)),
					b.C.NewAdd(b.C.NewSExt(pick, types.I64), b.C.NewZExt(b.C.NewTrunc(x[1], types.I1), types.I64)),
				}
			})
		},
		Args: func() []sim.Arg {
			u := func() []uint8 { return make([]uint8, n) }
			return bufs(a, b, u(), u(), u(), make([]uint16, n), make([]float32, n), make([]int64, n))
		},
		Verify: func(args []sim.Arg) error {
			w0, w1, w2 := make([]uint8, n), make([]uint8, n), make([]uint8, n)
			w3, w4, w5 := make([]uint16, n), make([]float32, n), make([]int64, n)
			for i := range a {
				x, y := a[i], b[i]
				p, q := x != 0, int8(x) < int8(y)
				r := !(p && q)
				if r {
					w0[i] = 1
				}
				w1[i] = x*y - 3
				w2[i] = uint8(int8(y) / 7)
				if p == q {
					w2[i] = uint8(int8(x) >> 3)
				}
				w3[i] = uint16(int16(int8(x)) + int16(y))
				w4[i] = float32(x) + float32(int8(y))
				if pick := p && q || !p && r; pick {
					w5[i] = -1
				}
				w5[i] += int64(y & 1)
			}
			for _, err := range []error{equal(args[2], w0), equal(args[3], w1), equal(args[4], w2), equal(args[5], w3), equal(args[6], w4), equal(args[7], w5)} {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Casts is conversions between float32 and the integers, and bfloat16 by its bits.
func Casts() Case {
	var x []float32
	for i := range 400 {
		x = append(x, float32(i-200)*0.37)
	}
	n := len(x)
	return Case{
		Name: "casts", Grid: blocksOf(n), Block: [3]int{64},
		Build: func() *ir.Module {
			return elementwise("casts", n, []types.Type{types.Float}, []types.Type{types.I8, types.I16, types.I32, types.I64, types.I16, types.Float, types.I64}, func(b *Builder, x []value.Value) []value.Value {
				c := b.C
				bits := c.NewBitCast(x[0], types.I32)
				bf := c.NewTrunc(c.NewLShr(c.NewAdd(bits, c.NewAdd(I32(0x7fff), c.NewAnd(c.NewLShr(bits, I32(16)), I32(1)))), I32(16)), types.I16)
				back := c.NewBitCast(c.NewShl(c.NewZExt(bf, types.I32), I32(16)), types.Float)
				abs := b.Call("llvm.fabs.f32", types.Float, x[0])
				return []value.Value{c.NewFPToSI(x[0], types.I8), c.NewFPToSI(x[0], types.I16), c.NewFPToSI(x[0], types.I32), c.NewFPToSI(x[0], types.I64),
					bf, back, c.NewFPToUI(abs, types.I64)}
			})
		},
		Args: func() []sim.Arg {
			return bufs(x, make([]uint8, n), make([]uint16, n), make([]int32, n), make([]int64, n), make([]uint16, n), make([]float32, n), make([]int64, n))
		},
		Verify: func(args []sim.Arg) error {
			w0, w1, w2, w3, w5 := make([]uint8, n), make([]uint16, n), make([]int32, n), make([]int64, n), make([]float32, n)
			for i, v := range x {
				w0[i], w1[i], w2[i], w3[i] = uint8(int8(v)), uint16(int16(v)), int32(v), int64(v)
				u := math.Float32bits(v)
				w5[i] = math.Float32frombits((u + 0x7fff + u>>16&1) >> 16 << 16)
			}
			for _, err := range []error{equal(args[1], w0), equal(args[2], w1), equal(args[3], w2), equal(args[4], w3), equal(args[6], w5)} {
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// Local reverses runs of eight through an array of each thread's own.
func Local() Case {
	x := Random(64*8, 9)
	return Case{
		Name: "local", Grid: [3]int{1}, Block: [3]int{64},
		Build: func() *ir.Module {
			px, py := Array("x", types.Float, false), Array("y", types.Float, true)
			b := New("local", px, py)
			at := types.NewArray(8, types.Float)
			a := b.C.NewAlloca(at)
			base := b.C.NewShl(b.Sreg("tid.x"), I32(3))
			b.For(I32(0), I32(8), I32(1), nil, func(i value.Value, _ []value.Value) []value.Value {
				p := b.C.NewGetElementPtr(at, a, I32(0), b.C.NewSub(I32(7), i))
				b.C.NewStore(b.Load(px, b.C.NewAdd(base, i)), p)
				return nil
			})
			b.For(I32(0), I32(8), I32(1), nil, func(i value.Value, _ []value.Value) []value.Value {
				p := b.C.NewGetElementPtr(at, a, I32(0), i)
				b.Store(py, b.C.NewAdd(base, i), b.C.NewLoad(types.Float, p))
				return nil
			})
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg { return bufs(x, make([]float32, len(x))) },
		Verify: func(args []sim.Arg) error {
			want := make([]float32, len(x))
			for i := range want {
				want[i] = x[i/8*8+7-i%8]
			}
			return equal(args[1], want)
		},
	}
}

// Histogram counts the low three bits with atomic additions, in shared memory and then in global memory.
func Histogram() Case {
	x := make([]int32, 1000)
	for i := range x {
		x[i] = int32(i*i*7 + i/3)
	}
	return Case{
		Name: "histogram", Grid: [3]int{4}, Block: [3]int{96},
		Build: func() *ir.Module {
			px, py, pn := Array("x", types.I32, false), Array("y", types.I32, true), ir.NewParam("n", types.I32)
			b := New("histogram", px, py, pn)
			count := b.SharedArray("count", types.I32, 8)
			tid := b.Sreg("tid.x")
			b.If(b.C.NewICmp(enum.IPredULT, tid, I32(8)), func() { b.Store(count, tid, I32(0)) })
			b.Barrier()
			first := b.C.NewAdd(b.C.NewMul(b.Sreg("ctaid.x"), b.Sreg("ntid.x")), tid)
			b.For(first, pn, b.C.NewMul(b.Sreg("nctaid.x"), b.Sreg("ntid.x")), nil, func(i value.Value, _ []value.Value) []value.Value {
				k := b.C.NewAnd(b.Load(px, i), I32(7))
				b.C.NewAtomicRMW(enum.AtomicOpAdd, b.At(count, k), I32(1), enum.AtomicOrderingMonotonic)
				return nil
			})
			b.Barrier()
			b.If(b.C.NewICmp(enum.IPredULT, tid, I32(8)), func() {
				b.C.NewAtomicRMW(enum.AtomicOpAdd, b.At(py, tid), b.Load(count, tid), enum.AtomicOrderingMonotonic)
			})
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg { return append(bufs(x, make([]int32, 8)), sim.I32(int32(len(x)))) },
		Verify: func(args []sim.Arg) error {
			want := make([]int32, 8)
			for _, v := range x {
				want[v&7]++
			}
			return equal(args[1], want)
		},
	}
}

// Diverge runs a loop of a different length in each thread (the Collatz steps), then votes and shuffles again.
func Diverge() Case {
	const n = 128
	return Case{
		Name: "diverge", Grid: [3]int{1}, Block: [3]int{n},
		Build: func() *ir.Module {
			py := Array("y", types.I32, true)
			b := New("diverge", py)
			tid := b.Sreg("tid.x")
			head, body, done := b.F.NewBlock("head"), b.F.NewBlock("body"), b.F.NewBlock("done")
			first := b.C.NewAdd(tid, I32(1))
			b.C.NewBr(head)
			x := head.NewPhi(ir.NewIncoming(first, b.C))
			k := head.NewPhi(ir.NewIncoming(I32(0), b.C))
			head.NewCondBr(head.NewICmp(enum.IPredNE, x, I32(1)), body, done)
			odd := body.NewICmp(enum.IPredNE, body.NewAnd(x, I32(1)), I32(0))
			next := body.NewSelect(odd, body.NewAdd(body.NewMul(x, I32(3)), I32(1)), body.NewLShr(x, I32(1)))
			more := body.NewAdd(k, I32(1))
			x.Incs = append(x.Incs, ir.NewIncoming(next, body))
			k.Incs = append(k.Incs, ir.NewIncoming(more, body))
			body.NewBr(head)
			b.C = done
			vote := b.Call("llvm.nvvm.vote.ballot.sync", types.I32, I32(-1), done.NewICmp(enum.IPredSGT, k, I32(20)))
			near := b.Call("llvm.nvvm.shfl.sync.down.i32", types.I32, I32(-1), k, I32(1), I32(31))
			up := b.Call("llvm.nvvm.shfl.sync.up.i32", types.I32, I32(-1), k, I32(2), I32(0))
			idx := b.Call("llvm.nvvm.shfl.sync.idx.i32", types.I32, I32(-1), k, I32(5), I32(31))
			sum := done.NewAdd(done.NewAdd(done.NewMul(near, I32(1000)), up), done.NewMul(idx, I32(1000000)))
			b.Store(py, tid, done.NewXor(sum, vote))
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg { return bufs(make([]int32, n)) },
		Verify: func(args []sim.Arg) error {
			var k, want [n]int32
			for i := range k {
				for x := i + 1; x != 1; k[i]++ {
					if x%2 == 1 {
						x = 3*x + 1
					} else {
						x /= 2
					}
				}
			}
			for i := range want {
				w, l := i&^31, i&31
				var vote uint32
				for j := range 32 {
					if k[w+j] > 20 {
						vote |= 1 << j
					}
				}
				near, up := k[i], k[i]
				if l < 31 {
					near = k[i+1]
				}
				if l >= 2 {
					up = k[i-2]
				}
				want[i] = (near*1000 + up + k[w+5]*1000000) ^ int32(vote)
			}
			return equal(args[0], want[:])
		},
	}
}

// HalfVec doubles eight halves at a time, and sixteen bytes.
func HalfVec() Case {
	h := make([]uint16, 64*8)
	for i := range h {
		h[i] = uint16(0x3000 + 13*i)
	}
	return Case{
		Name: "halfvec", Grid: [3]int{1}, Block: [3]int{64},
		Build: func() *ir.Module {
			px, py := Array("x", types.Half, false), Array("y", types.Half, true)
			b := New("halfvec", px, py)
			i := b.C.NewShl(b.Sreg("tid.x"), I32(3))
			v := b.LoadVec(px, i, 8)
			var out value.Value = v
			for k := range int64(8) {
				e := b.C.NewExtractElement(v, I32(k))
				out = b.C.NewInsertElement(out, b.C.NewFAdd(e, e), I32(k))
			}
			b.StoreVec(py, i, out)
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg { return bufs(h, make([]uint16, len(h))) },
		Verify: func(args []sim.Arg) error {
			got := Values[uint16](args[1].Buffer, len(h))
			for i, v := range got {
				if halfValue(v) != 2*halfValue(h[i]) {
					return fmt.Errorf("element %d is %#x, twice %#x", i, v, h[i])
				}
			}
			return nil
		},
	}
}

// Dynamic reverses a block's elements through dynamic shared memory of 1 kB.
func Dynamic() Case {
	x := Random(256, 11)
	return Case{
		Name: "dynamic", Grid: [3]int{1}, Block: [3]int{256}, Shared: 1024,
		Build: func() *ir.Module {
			px, py := Array("x", types.Float, false), Array("y", types.Float, true)
			b := New("dynamic", px, py)
			g := b.M.NewGlobal("buffer", types.NewArray(0, types.Float))
			g.AddrSpace, g.Typ.AddrSpace = 3, 3
			g.Linkage = enum.LinkageExternal
			g.Align = 16
			tid := b.Sreg("tid.x")
			b.Store(g, tid, b.Load(px, tid))
			b.Barrier()
			b.Store(py, tid, b.Load(g, b.C.NewSub(I32(255), tid)))
			b.Return()
			return b.M
		},
		Args: func() []sim.Arg { return bufs(x, make([]float32, len(x))) },
		Verify: func(args []sim.Arg) error {
			want := make([]float32, len(x))
			for i := range want {
				want[i] = x[255-i]
			}
			return equal(args[1], want)
		},
	}
}
