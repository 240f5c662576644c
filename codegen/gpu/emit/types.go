package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/tensor"
)

// memType is how an element type stands in memory: bools are bytes, bfloat16 is its bits. None: no kernel has it.
func memType(d tensor.DType) kir.Type {
	switch d {
	case tensor.Bool, tensor.Int8, tensor.Uint8:
		return kir.I8
	case tensor.Int16, tensor.Uint16, tensor.BFloat16:
		return kir.I16
	case tensor.Int32, tensor.Uint32:
		return kir.I32
	case tensor.Int64, tensor.Uint64:
		return kir.I64
	case tensor.Float16:
		return kir.F16
	case tensor.Float32:
		return kir.F32
	case tensor.Float64:
		return kir.F64
	}
	if isNarrow(d) {
		return kir.I8
	}
	return kir.None
}

// regType is what elements are computed in.
func regType(d tensor.DType) kir.Type {
	switch d {
	case tensor.Bool:
		return kir.I1
	case tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16, tensor.Int32:
		return kir.I32
	case tensor.Uint32, tensor.Int64, tensor.Uint64:
		return kir.I64
	case tensor.Float64:
		return kir.F64
	}
	if isNarrow(d) {
		return kir.I32
	}
	return kir.F32
}

// fromMem brings an element from memory to where it is computed.
func fromMem(b *kir.Builder, d tensor.DType, v kir.Value) kir.Value {
	switch d {
	case tensor.Bool:
		return b.Compare(kir.Ne, v, b.Int(kir.I8, 0))
	case tensor.Float16:
		return b.Convert(kir.Widen, v, kir.F32)
	case tensor.BFloat16:
		return b.Convert(kir.Bitcast, b.Binary(kir.Shl, b.Convert(kir.ZExt, v, kir.I32), b.I32(16)), kir.F32)
	case tensor.Uint8, tensor.Uint16, tensor.Uint32:
		return b.Convert(kir.ZExt, v, regType(d))
	case tensor.Int8, tensor.Int16:
		return b.Convert(kir.SExt, v, kir.I32)
	}
	switch {
	case narrowSigned(d):
		return b.Convert(kir.SExt, v, kir.I32)
	case isNarrow(d):
		return b.Convert(kir.ZExt, v, kir.I32)
	}
	return v
}

// toMem is the inverse of fromMem; it rounds to nearest and wraps.
func toMem(b *kir.Builder, d tensor.DType, v kir.Value) kir.Value {
	switch d {
	case tensor.Bool:
		return b.Convert(kir.ZExt, v, kir.I8)
	case tensor.Float16:
		return b.Convert(kir.Round, v, kir.F16)
	case tensor.BFloat16:
		bits := b.Convert(kir.Bitcast, v, kir.I32)
		even := b.And(b.Binary(kir.LShr, bits, b.I32(16)), b.I32(1))
		rounded := b.Add(bits, b.Add(even, b.I32(0x7fff)))
		quiet := b.Or(bits, b.I32(0x400000)) // a NaN stays one
		return b.Convert(kir.Narrow, b.Binary(kir.LShr, b.Select(b.IsNaN(v), quiet, rounded), b.I32(16)), kir.I16)
	}
	return b.Convert(kir.Narrow, v, memType(d))
}

// rounded is what reading back a stored element would give.
func rounded(b *kir.Builder, d tensor.DType, v kir.Value) kir.Value {
	switch d {
	case tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16, tensor.Uint32:
		return fromMem(b, d, toMem(b, d, v))
	}
	return v
}

// convert is the Cast of one element: floats are truncated towards zero, what does not fit gives the least int32 or int64, as
// x86 processors do; integers wrap; everything but 0 is true.
func convert(b *kir.Builder, v kir.Value, from, to tensor.DType) kir.Value {
	if from == to {
		return v
	}
	if isNarrow(from) || isNarrow(to) {
		return convertNarrow(b, v, from, to)
	}
	rt, rf := regType(to), v.Type
	switch {
	case to == tensor.Bool:
		if rf.IsFloat() {
			return b.Compare(kir.Ne, v, b.Float(rf, 0))
		}
		return b.Compare(kir.Ne, v, b.Int(rf, 0))
	case from == tensor.Bool:
		if rt.IsFloat() {
			return b.Select(v, b.Float(rt, 1), b.Float(rt, 0))
		}
		return b.Convert(kir.ZExt, v, rt)
	case rf.IsFloat() && rt.IsFloat():
		if rf == kir.F64 && (to == tensor.Float16 || to == tensor.BFloat16) {
			return rounded(b, to, toOdd(b, v))
		}
		op := kir.Widen
		if rt.Size() < rf.Size() {
			op = kir.Round
		}
		return rounded(b, to, b.Convert(op, v, rt))
	case rf.IsFloat():
		it, lo, hi := kir.I32, -0x1p31, 0x1p31
		if to == tensor.Int64 || to == tensor.Uint32 || to == tensor.Uint64 {
			it, lo, hi = kir.I64, -0x1p63, 0x1p63
		}
		whole := b.Unary(kir.Trunc, v)
		var large value // beyond the numbers with sign: 2^63 is taken off first
		if to == tensor.Uint64 {
			large = b.And(b.Compare(kir.Le, b.Float(rf, hi), whole), b.Lt(whole, b.Float(rf, 2*hi)))
			whole = b.Select(large, b.Sub(whole, b.Float(rf, hi)), whole)
		}
		fits := b.And(b.Compare(kir.Le, b.Float(rf, lo), whole), b.Lt(whole, b.Float(rf, hi)))
		n := b.Convert(kir.FToS, b.Select(fits, whole, b.Float(rf, lo)), it)
		if large != nil {
			return b.Xor(n, b.Select(large, b.Int(it, math.MinInt64), b.Int(it, 0)))
		}
		return rounded(b, to, b.Convert(kir.SExt, n, rt))
	case rt.IsFloat():
		op := kir.SToF
		if from == tensor.Uint64 {
			op = kir.UToF
		}
		if (to == tensor.Float16 || to == tensor.BFloat16) && from.Size() >= 4 {
			return rounded(b, to, toOdd(b, b.Convert(op, v, kir.F64))) // by way of double, as the interpreter
		}
		return rounded(b, to, b.Convert(op, v, rt))
	}
	switch {
	case rt.Size() < rf.Size():
		v = b.Convert(kir.Narrow, v, rt)
	case from.IsUnsigned():
		v = b.Convert(kir.ZExt, v, rt)
	default:
		v = b.Convert(kir.SExt, v, rt)
	}
	return rounded(b, to, v)
}

// toOdd brings a double to float32 so that rounding that once more, to half precision, is rounding once: what is not exact is cut
// off, and its last bit set.
func toOdd(b *kir.Builder, v kir.Value) kir.Value {
	f := b.Convert(kir.Round, v, kir.F32)
	back := b.Convert(kir.Widen, f, kir.F64)
	bits := b.Convert(kir.Bitcast, f, kir.I32)
	over := b.Lt(b.Unary(kir.Abs, v), b.Unary(kir.Abs, back))
	cut := b.Or(b.Select(over, b.Sub(bits, b.I32(1)), bits), b.I32(1))
	exact := b.Or(b.Eq(back, v), b.IsNaN(v))
	return b.Select(exact, f, b.Convert(kir.Bitcast, cut, kir.F32))
}
