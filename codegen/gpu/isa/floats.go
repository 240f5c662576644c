package isa

import (
	"math"
	"unsafe"

	"github.com/aton-project/aton/ssa/tensor"
)

const (
	nan16 = 0x7fff
	nan32 = 0x7fffffff
	nan64 = 0x7ff8000000000000
)

// bits32 and bits64 are the bits of a result, NaN as the canonical one.
func bits32(x float32) uint32 {
	if x != x {
		return nan32
	}
	return math.Float32bits(x)
}

func bits64(x float64) uint64 {
	if x != x {
		return nan64
	}
	return math.Float64bits(x)
}

func half(x float64) uint16 {
	if x != x {
		return nan16
	}
	return tensor.FloatToHalf(x)
}

func fromHalf(h uint16) float64 { return float64(tensor.HalfToFloat(h)) }

// floatOp is add sub mul div, min and max that prefer numbers to NaN, minnan and maxnan that do not, or signed (b with the sign of a) on two floats.
func floatOp(name string, width int) Do {
	switch width {
	case 2:
		f := scalarOp(name)
		if f == nil {
			return nil
		}
		// one operation in float64, rounded once: exact operands of 11 bits leave no room for a double rounding
		return binary(func(a, b uint16) uint16 { return half(f(fromHalf(a), fromHalf(b))) })
	case 4:
		return vectored(name+" f32", floatOp32(name))
	case 8:
		if name == "signed" {
			return binary(func(a, b uint64) uint64 { return b&^(1<<63) | a&(1<<63) })
		}
		f := scalarOp(name)
		if f == nil {
			return nil
		}
		return binary(func(a, b float64) uint64 { return bits64(f(a, b)) })
	}
	return nil
}

func floatOp32(name string) Do {
	switch name {
	case "add":
		return func(l *Lanes, o *Op) {
			d := Dst[float32](l, o.D)
			a, b := Src[float32](l, o.A)[:len(d)], Src[float32](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] + b[i]
				if d[i] != d[i] {
					setNaN(&d[i])
				}
			}
		}
	case "sub":
		return func(l *Lanes, o *Op) {
			d := Dst[float32](l, o.D)
			a, b := Src[float32](l, o.A)[:len(d)], Src[float32](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] - b[i]
				if d[i] != d[i] {
					setNaN(&d[i])
				}
			}
		}
	case "mul":
		return func(l *Lanes, o *Op) {
			d := Dst[float32](l, o.D)
			a, b := Src[float32](l, o.A)[:len(d)], Src[float32](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] * b[i]
				if d[i] != d[i] {
					setNaN(&d[i])
				}
			}
		}
	case "max":
		return func(l *Lanes, o *Op) {
			d := Dst[float32](l, o.D)
			a, b := Src[float32](l, o.A)[:len(d)], Src[float32](l, o.B)[:len(d)]
			for i := range d {
				switch x, y := a[i], b[i]; {
				case x > y:
					d[i] = x
				case x < y:
					d[i] = y
				default: // equal, signed zeros, NaN
					*(*uint32)(unsafe.Pointer(&d[i])) = bits32(float32(fmax(float64(x), float64(y))))
				}
			}
		}
	case "signed":
		return binary(func(a, b uint32) uint32 { return b&0x7fffffff | a&0x80000000 })
	case "div":
		return binary(func(a, b float32) uint32 { return bits32(a / b) })
	}
	f := scalarOp(name)
	if f == nil {
		return nil
	}
	return binary(func(a, b float32) uint32 { return bits32(float32(f(float64(a), float64(b)))) })
}

func setNaN(p *float32) { *(*uint32)(unsafe.Pointer(p)) = nan32 }

// scalarOp is the operation in float64. In float32 it is used for what is exact: min and max.
func scalarOp(name string) func(a, b float64) float64 {
	switch name {
	case "add":
		return func(a, b float64) float64 { return a + b }
	case "sub":
		return func(a, b float64) float64 { return a - b }
	case "mul":
		return func(a, b float64) float64 { return a * b }
	case "div":
		return func(a, b float64) float64 { return a / b }
	case "min":
		return func(a, b float64) float64 { return -fmax(-a, -b) }
	case "max":
		return fmax
	case "minnan":
		return math.Min
	case "maxnan":
		return math.Max
	}
	return nil
}

// fmax prefers a number to NaN and +0 to -0.
func fmax(a, b float64) float64 {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	case a == 0 && b == 0:
		return a + b // -0 only when both are
	case a > b:
		return a
	}
	return b
}

// rounded are functions of one float. The double rounding of a float32 root through float64 is innocuous.
var rounded = map[string]func(float64) float64{"rint": math.RoundToEven, "floor": math.Floor, "ceil": math.Ceil, "trunc": math.Trunc, "sqrt": math.Sqrt,
	"rcp": func(x float64) float64 { return 1 / x }}

// roundOp is rint floor ceil trunc sqrt rcp.
func roundOp(name string, width int) Do {
	f := rounded[name]
	switch width {
	case 2:
		return unary(func(a uint16) uint16 { return half(f(fromHalf(a))) })
	case 4:
		return vectored(name+" f32", unary(func(a float32) uint32 { return bits32(float32(f(float64(a)))) }))
	case 8:
		return unary(func(a float64) uint64 { return bits64(f(a)) })
	}
	return nil
}

// signOp changes only the sign bit: neg or abs.
func signOp(name string, width int) Do {
	neg := name == "neg"
	switch width {
	case 2:
		if neg {
			return unary(func(a uint16) uint16 { return a ^ 0x8000 })
		}
		return unary(func(a uint16) uint16 { return a &^ 0x8000 })
	case 4:
		if neg {
			return vectored("neg f32", unary(func(a uint32) uint32 { return a ^ 1<<31 }))
		}
		return vectored("abs f32", unary(func(a uint32) uint32 { return a &^ (1 << 31) }))
	case 8:
		if neg {
			return unary(func(a uint64) uint64 { return a ^ 1<<63 })
		}
		return unary(func(a uint64) uint64 { return a &^ (1 << 63) })
	}
	return nil
}

// fmaOp is a*b+c, rounded once.
func fmaOp(width int) Do {
	switch width {
	case 2:
		return ternary(func(a, b, c uint16) uint16 {
			return half(oddSum(fromHalf(a)*fromHalf(b), fromHalf(c)))
		})
	case 4:
		return vectored("fma f32", fma32)
	case 8:
		return func(l *Lanes, o *Op) {
			d := Dst[uint64](l, o.D)
			a, b, c := Src[float64](l, o.A)[:len(d)], Src[float64](l, o.B)[:len(d)], Src[float64](l, o.C)[:len(d)]
			for i := range d {
				d[i] = bits64(math.FMA(a[i], b[i], c[i]))
			}
		}
	}
	return nil
}

// fma32 takes the float64 sum of the exact product and c. Rounding that to float32 is right unless the sum was rounded
// onto the middle between two float32 values, which its low 29 bits show, or is out of the range of normal values.
func fma32(l *Lanes, o *Op) {
	d := Dst[uint32](l, o.D)
	a, b, c := Src[float32](l, o.A)[:len(d)], Src[float32](l, o.B)[:len(d)], Src[float32](l, o.C)[:len(d)]
	for i := range d {
		s := float64(float64(a[i])*float64(b[i])) + float64(c[i])
		u := math.Float64bits(s)
		if e := u >> 52 & 0x7ff; e-897 < 253 && u&(1<<29-1) != 1<<28 {
			d[i] = math.Float32bits(float32(s))
		} else {
			d[i] = fmaSlow(a[i], b[i], c[i])
		}
	}
}

func fmaSlow(a, b, c float32) uint32 {
	return bits32(float32(oddSum(float64(a)*float64(b), float64(c))))
}

// oddSum is x+y rounded to odd: rounding it further to a type with at most 51 bits is as if x+y had been exact.
func oddSum(x, y float64) float64 {
	s := x + y
	if s == 0 || s-s != 0 { // exact; infinite or NaN
		return s
	}
	t := s - x
	e := (x - (s - t)) + (y - t)
	if e == 0 {
		return s
	}
	u := math.Float64bits(s)
	if u&1 == 0 {
		if (e > 0) == (s > 0) {
			u++
		} else {
			u--
		}
	}
	return math.Float64frombits(u)
}

// roundedOp is a conversion of floats to integers that rounds otherwise than towards zero.
func roundedOp(name, from, to string) Do {
	f := rounded[name]
	switch from {
	case "f16":
		return convertFloat(to, func(a uint16) float64 { return f(fromHalf(a)) })
	case "f32":
		return convertFloat(to, func(a float32) float64 { return f(float64(a)) })
	}
	return convertFloat(to, func(a float64) float64 { return f(a) })
}

// Convert makes the low bits of a register an integer of another width, with its sign if from is signed.
func Convert(from, to Type) Do { return convertOp(string(from), string(to)) }

// convertOp is a conversion between numbers. from and to are one of s8 u8 s16 u16 s32 u32 s64 u64 f16 f32 f64; floats
// become integers towards zero. Narrowing integers keeps the low bits.
func convertOp(from, to string) Do {
	name := from + " " + to
	switch name { // these keep bits, or cut them
	case "s32 u64":
		name = "s32 s64"
	case "u32 s64":
		name = "u32 u64"
	case "s64 u32", "u64 s32", "s64 s32":
		name = "u64 u32"
	case "u8 s32":
		name = "u8 u32"
	case "u16 s32":
		name = "u16 u32"
	case "s32 s16", "s32 u16", "u32 s16":
		name = "u32 u16"
	}
	return vectored(name, convertLoop(from, to))
}

func convertLoop(from, to string) Do {
	if from[0] == 'f' {
		switch from {
		case "f16":
			if to == "f32" {
				return unary(func(a uint16) uint32 { return bits32(tensor.HalfToFloat(a)) })
			}
			return convertFloat(to, fromHalf)
		case "f32":
			switch to {
			case "s32":
				return unary(func(a float32) int32 { return int32(saturate(float64(a), math.MinInt32, math.MaxInt32)) })
			case "f64":
				return unary(func(a float32) uint64 { return bits64(float64(a)) })
			}
			return convertFloat(to, func(a float32) float64 { return float64(a) })
		}
		return convertFloat(to, func(a float64) float64 { return a })
	}
	switch from {
	case "s8":
		return convertInt[int8](to)
	case "u8":
		return convertInt[uint8](to)
	case "s16":
		return convertInt[int16](to)
	case "u16":
		return convertInt[uint16](to)
	case "s32":
		return convertInt[int32](to)
	case "u32":
		return convertInt[uint32](to)
	case "s64":
		return convertInt[int64](to)
	case "u64":
		return convertInt[uint64](to)
	}
	return nil
}

func convertInt[A signed | unsigned](to string) Do {
	switch to {
	case "s8", "u8":
		return convertTo[A, uint8]
	case "s16", "u16":
		return convertTo[A, uint16]
	case "s32", "u32":
		return convertTo[A, uint32]
	case "s64", "u64":
		return convertTo[A, uint64]
	case "f16":
		return unary(func(a A) uint16 { return tensor.FloatToHalf(float64(a)) }) // an integer that is inexact in float64 is infinite in float16
	case "f32":
		return convertTo[A, float32]
	case "f64":
		return convertTo[A, float64]
	}
	return nil
}

func convertTo[A signed | unsigned, D signed | unsigned | float](l *Lanes, o *Op) {
	d := Dst[D](l, o.D)
	a := Src[A](l, o.A)[:len(d)]
	for i := range d {
		d[i] = D(a[i])
	}
}

func convertFloat[A any](to string, f func(A) float64) Do {
	switch to {
	case "f16":
		return unary(func(a A) uint16 { return half(f(a)) })
	case "f32":
		return unary(func(a A) uint32 { return bits32(float32(f(a))) })
	case "f64":
		return unary(func(a A) uint64 { return bits64(f(a)) })
	case "s8":
		return unary(func(a A) uint8 { return uint8(saturate(f(a), math.MinInt8, math.MaxInt8)) })
	case "u8":
		return unary(func(a A) uint8 { return uint8(saturate(f(a), 0, math.MaxUint8)) })
	case "s16":
		return unary(func(a A) uint16 { return uint16(saturate(f(a), math.MinInt16, math.MaxInt16)) })
	case "u16":
		return unary(func(a A) uint16 { return uint16(saturate(f(a), 0, math.MaxUint16)) })
	case "s32":
		return unary(func(a A) uint32 { return uint32(saturate(f(a), math.MinInt32, math.MaxInt32)) })
	case "u32":
		return unary(func(a A) uint32 { return uint32(saturate(f(a), 0, math.MaxUint32)) })
	case "s64":
		return unary(func(a A) int64 { return saturate(f(a), math.MinInt64, math.MaxInt64) })
	case "u64":
		return unary(func(a A) uint64 {
			switch x := f(a); {
			case !(x > 0):
				return 0
			case x >= 1<<64:
				return math.MaxUint64
			default:
				return uint64(x)
			}
		})
	}
	return nil
}

func saturate(x float64, lo, hi int64) int64 {
	switch {
	case x != x:
		return 0
	case x <= float64(lo):
		return lo
	case x >= float64(hi):
		return hi
	}
	return int64(x)
}
