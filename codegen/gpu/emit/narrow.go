package emit

import (
	"math"
	"slices"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Elements of 8-bit floats, and integers of 4 and 2 bits, take a byte each in memory, as in package tensor. In registers a float of 8 bits
// is its bits, so that moving one changes nothing; only conversions know its value.

// float8Format describes a float of 8 or 4 bits.
type float8Format struct {
	mantissa, bias int64
	fnuz           bool  // neither infinities nor -0, whose code is NaN
	top            int64 // code of the greatest number
	beyond         int64 // code of what is greater, without sign: infinity, or NaN where there is none
	nan            int64
	finite         int64 // the greatest code that is no NaN
	sign           int64 // number of the bit of the sign
}

func float8Of(d tensor.DType) *float8Format {
	switch d {
	case tensor.Float8E4M3FN:
		return &float8Format{3, 7, false, 0x7e, 0x7f, 0x7f, 0x7e, 7}
	case tensor.Float8E4M3FNUZ:
		return &float8Format{3, 8, true, 0x7f, 0x80, 0x80, 0x7f, 7}
	case tensor.Float8E5M2:
		return &float8Format{2, 15, false, 0x7b, 0x7c, 0x7e, 0x7c, 7}
	case tensor.Float8E5M2FNUZ:
		return &float8Format{2, 16, true, 0x7f, 0x80, 0x80, 0x7f, 7}
	case tensor.Float4E2M1: // no infinities and no NaN, which -0 stands for
		return &float8Format{1, 1, false, 7, 7, 8, 7, 3}
	}
	return nil
}

// narrowBits is the number of bits of an integer type of less than 8 bits, 0 for others.
func narrowBits(d tensor.DType) int64 {
	switch d {
	case tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2:
		return int64(d.Bits())
	}
	return 0
}

func narrowSigned(d tensor.DType) bool { return d == tensor.Int4 || d == tensor.Int2 }

func isNarrow(d tensor.DType) bool { return float8Of(d) != nil || narrowBits(d) > 0 }

// narrowLimits are the least and the greatest number of an integer type of less than 8 bits.
func narrowLimits(d tensor.DType) (lo, hi int64) {
	n := narrowBits(d)
	if narrowSigned(d) {
		return -1 << (n - 1), 1<<(n-1) - 1
	}
	return 0, 1<<n - 1
}

// takesNarrow are the operators besides the views that know such elements.
var takesNarrow = []ssa.Kind{"onnx::Cast", "onnx::CastLike", "onnx::QuantizeLinear", "onnx::DequantizeLinear", "onnx::ConstantOfShape", "onnx::Transpose", "onnx::Concat", "onnx::Gather", "onnx::Pad", "onnx::BitCast"}

// refuseNarrow refuses an operator that would compute with the bits of 8-bit floats.
func refuseNarrow(o *ssa.Op) {
	if IsView(o.Kind) || slices.Contains(takesNarrow, o.Kind) || len(o.Blocks) > 0 {
		return
	}
	for _, v := range append(o.Operands(), o.Results...) {
		if v != nil && v.Tensor() != nil && isNarrow(v.DType()) {
			refuse("elements of type %s", v.DType())
		}
	}
}

// fromFloat8 decodes to float32, which is exact.
func fromFloat8(b *kir.Builder, d tensor.DType, v value) value {
	f := float8Of(d)
	code := b.And(v, b.I32(1<<f.sign-1))
	// as the bits of a float32 it is too small by a power of two, also where it is subnormal
	y := b.Convert(kir.Bitcast, b.Binary(kir.Shl, code, b.I32(23-f.mantissa)), kir.F32)
	y = b.Mul(y, b.Float(kir.F32, math.Ldexp(1, int(127-f.bias))))
	if d == tensor.Float8E5M2 {
		y = b.Select(b.Eq(code, b.I32(f.beyond)), b.Float(kir.F32, math.Inf(1)), y)
	}
	sign := b.Binary(kir.Shl, b.And(v, b.I32(1<<f.sign)), b.I32(31-f.sign))
	y = b.Convert(kir.Bitcast, b.Or(b.Convert(kir.Bitcast, y, kir.I32), sign), kir.F32)
	nan := b.Lt(b.I32(f.finite), code)
	if f.fnuz {
		nan = b.Eq(b.And(v, b.I32(0xff)), b.I32(f.nan))
	}
	if d == tensor.Float4E2M1 {
		return y
	}
	return b.Select(nan, b.Float(kir.F32, math.NaN()), y)
}

// toFloat8 encodes a float32: to nearest, ties to even. What is greater than the greatest number becomes that, or what the type has
// for it where saturate is not set.
func toFloat8(b *kir.Builder, d tensor.DType, v value, saturate bool) value {
	f := float8Of(d)
	bits := b.Convert(kir.Bitcast, v, kir.I32)
	sign := b.And(b.Binary(kir.LShr, bits, b.I32(31-f.sign)), b.I32(1<<f.sign))
	magnitude := b.And(bits, b.I32(math.MaxInt32))
	a := b.Convert(kir.Bitcast, magnitude, kir.F32)
	// below the least normal number the code is a multiple of the least one
	limit := math.Ldexp(1, int(1-f.bias))
	few := b.Lt(a, b.Float(kir.F32, limit))
	small := b.Unary(kir.Rint, b.Mul(b.Select(few, a, b.Float(kir.F32, 0)), b.Float(kir.F32, math.Ldexp(1, int(f.bias-1+f.mantissa)))))
	shift := 23 - f.mantissa
	even := b.And(b.Binary(kir.LShr, magnitude, b.I32(shift)), b.I32(1))
	large := b.Binary(kir.LShr, b.Add(magnitude, b.Add(even, b.I32(1<<(shift-1)-1))), b.I32(shift))
	code := b.Select(few, b.Convert(kir.FToS, small, kir.I32), b.Sub(large, b.I32((127-f.bias)<<f.mantissa)))
	over := b.Lt(b.I32(f.top), code)
	if f.fnuz {
		sign = b.Select(b.Eq(code, b.I32(0)), b.I32(0), sign)
	}
	beyond := f.beyond
	if saturate {
		beyond = f.top
	}
	y := b.Or(b.Select(over, b.I32(beyond), code), sign)
	nan := b.Or(sign, b.I32(f.nan))
	if d == tensor.Float4E2M1 {
		nan = b.I32(f.nan)
	} else if f.fnuz {
		nan = b.I32(f.nan)
		if !saturate {
			y = b.Select(over, b.I32(f.nan), y)
		}
	}
	return b.Select(b.IsNaN(v), nan, y)
}

// convertNarrow is convert where one of the types is narrow.
func convertNarrow(b *kir.Builder, v value, from, to tensor.DType) value {
	switch {
	case float8Of(from) != nil:
		return convert(b, fromFloat8(b, from, v), tensor.Float32, to)
	case float8Of(to) != nil:
		return toFloat8(b, to, convert(b, v, from, tensor.Float32), true)
	case narrowBits(from) > 0:
		return convert(b, v, tensor.Int32, to)
	}
	v = convert(b, v, from, tensor.Int32)
	n := narrowBits(to)
	if !narrowSigned(to) {
		return b.And(v, b.I32(1<<n-1))
	}
	return b.Binary(kir.AShr, b.Binary(kir.Shl, v, b.I32(32-n)), b.I32(32-n))
}
