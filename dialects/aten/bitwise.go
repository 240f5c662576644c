package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// bitwise holds operators on the bits of integers; on bool they are logic.
var bitwise = Defs{
	"aten::bitwise_and":         {Doc: "bits that both have", Lower: bits("And")},
	"aten::bitwise_or":          {Doc: "bits that one has", Lower: bits("Or")},
	"aten::bitwise_xor":         {Doc: "bits that just one has", Lower: bits("Xor")},
	"aten::__and__":             {Doc: "bits that both have", Lower: bits("And")},
	"aten::__or__":              {Doc: "bits that one has", Lower: bits("Or")},
	"aten::__xor__":             {Doc: "bits that just one has", Lower: bits("Xor")},
	"aten::bitwise_not":         {Doc: "bits inverted", Lower: lowerBitwiseNot},
	"aten::__not__":             {Doc: "not a", Lower: func(l *Lowering) *ssa.Value { return l.Not(l.Cast(l.Tensor("self"), tensor.Bool)) }},
	"aten::__lshift__":          {Doc: "bits moved up", Lower: lowerShiftLeft},
	"aten::bitwise_left_shift":  {Doc: "bits moved up", Lower: lowerShiftLeft},
	"aten::__rshift__":          {Doc: "bits moved down, the sign is kept", Lower: lowerShiftRight},
	"aten::bitwise_right_shift": {Doc: "bits moved down, the sign is kept", Lower: lowerShiftRight},
}

// integers gives the operands in their common integer type or bool.
func (l *Lowering) integers() (a, b *ssa.Value, d tensor.DType) {
	if l.numbers() {
		a, b = l.Tensor("a"), l.Tensor("b")
		d = Promote(l.DType(a), l.DType(b))
		return l.Cast(a, d), l.Cast(b, d), d
	}
	a, b, d = l.pair()
	if d.IsFloat() {
		l.Fail("bitwise operators on %v", d)
	}
	return a, b, d
}

func bits(op string) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		a, b, d := l.integers()
		if d == tensor.Bool {
			return l.Op(op, a, b)
		}
		if l.Opset >= 18 {
			return l.Op("Bitwise"+op, a, b)
		}
		return l.eachBit(a, b, op)
	}
}

// eachBit takes the bits of both operands apart, since ONNX has bitwise
// operators from opset 18 only. Everything happens in int64: the two's
// complement of a narrower type is that of int64 cut off.
func (l *Lowering) eachBit(a, b *ssa.Value, op string) *ssa.Value {
	d := l.DType(a)
	n := 8*d.Size() - 1 // bits below the sign bit
	if d.IsUnsigned() {
		n++
	}
	if d == tensor.Uint64 {
		l.NeedOpset(18, "bitwise operators on uint64")
	}
	a, b = l.Cast(a, tensor.Int64), l.Cast(b, tensor.Int64)
	low := l.Op(op, l.lowBits(a, n), l.lowBits(b, n))
	sum := l.sumBits(low, n)
	if d.IsUnsigned() {
		return l.Cast(sum, d)
	}
	sign := l.Op(op, l.IsNegative(a), l.IsNegative(b))
	least := l.ScalarInt(tensor.Int64, -1<<n)
	return l.Cast(l.Where(sign, l.Add(sum, least), sum), d)
}

// sumBits is the number that has the bits along the last axis. Both halves are
// added up apart: onnxruntime sums int64 in float64, which is exact up to 2^53.
func (l *Lowering) sumBits(b *ssa.Value, n int) *ssa.Value {
	weights, upper := make([]int64, n), make([]int64, n)
	for i := range n {
		if i < 32 {
			weights[i] = 1 << i
		} else {
			upper[i] = 1 << (i - 32)
		}
	}
	add := func(w []int64) *ssa.Value {
		return l.Reduce("ReduceSum", l.Where(b, l.I64(w...), l.Scalar(tensor.Int64, 0)), []int64{-1}, false)
	}
	if n <= 32 {
		return add(weights)
	}
	return l.Add(add(weights), l.Mul(add(upper), l.ScalarInt(tensor.Int64, 1<<32)))
}

// lowBits gives bits 0 to n-1 of an int64 along a new last axis: bit k is set
// if x modulo 2^(k+1) reaches 2^k. Bit 62 has no such modulus in int64.
func (l *Lowering) lowBits(x *ssa.Value, n int) *ssa.Value {
	mods, halves := make([]int64, n), make([]int64, n)
	for k := range n {
		halves[k] = 1 << k
		if k < 62 {
			mods[k] = 2 << k
		} else {
			mods[k] = math.MaxInt64
		}
	}
	if n == 63 {
		// with the sign bit cleared, and nothing to cut off above bit 62
		x = l.Where(l.IsNegative(x), l.Sub(x, l.ScalarInt(tensor.Int64, math.MinInt64)), x)
		x = l.Unsqueeze(x, -1)
		r := l.Op("Mod", x, l.I64(mods...))
		// the greatest int64 is its own modulus: every bit is set
		full := l.Equal(x, l.ScalarInt(tensor.Int64, math.MaxInt64))
		return l.Or(full, l.GreaterEqual(r, l.I64(halves...)))
	}
	return l.GreaterEqual(l.Op("Mod", l.Unsqueeze(x, -1), l.I64(mods...)), l.I64(halves...))
}

func lowerBitwiseNot(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	switch {
	case d == tensor.Bool:
		return l.Not(x)
	case d.IsFloat():
		l.Fail("bitwise_not of %v", d)
	case l.Opset >= 18:
		return l.Op("BitwiseNot", x)
	}
	return l.Sub(l.ScalarInt(d, -1), x)
}

// shiftPower gives 2^n in int64 and whether n is a number of bits that leaves something.
func (l *Lowering) shiftPower(n *ssa.Value, width int) (power, valid *ssa.Value) {
	n = l.Cast(n, tensor.Int64)
	valid = l.And(l.Not(l.IsNegative(n)), l.Less(n, l.Like(n, float64(width))))
	powers := make([]int64, width)
	for i := range powers {
		powers[i] = 1 << i
	}
	return l.Gather(l.I64(powers...), l.Where(valid, n, l.Like(n, 0)), 0), valid
}

func lowerShiftLeft(l *Lowering) *ssa.Value {
	a, b, d := l.integers()
	if d == tensor.Bool {
		l.Fail("shifts of bool")
	}
	p, valid := l.shiftPower(b, 8*d.Size())
	v := l.Cast(l.Mul(l.Cast(a, tensor.Int64), p), d)
	return l.Where(valid, v, l.Like(v, 0))
}

func lowerShiftRight(l *Lowering) *ssa.Value {
	a, b, d := l.integers()
	if d == tensor.Bool {
		l.Fail("shifts of bool")
	}
	if d == tensor.Uint64 {
		l.Fail("right shift of uint64")
	}
	// a shift by the width minus 1 or more leaves only the sign
	width := 8*d.Size() - 1
	if d.IsUnsigned() {
		width++
	}
	p, valid := l.shiftPower(b, width)
	wide := l.Cast(a, tensor.Int64)
	q := l.Div(l.Sub(wide, l.Op("Mod", wide, p)), p)
	sign := l.Where(l.IsNegative(wide), l.Like(wide, -1), l.Like(wide, 0))
	return l.Cast(l.Where(valid, q, sign), d)
}
