package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// bitwise holds operators on the bits of integers; on bool they are logic.
var bitwise = Defs{
	"aten::bitwise_and":         {Doc: "bits that both have", Nature: Pointwise, Lower: bits("And")},
	"aten::bitwise_or":          {Doc: "bits that one has", Nature: Pointwise, Lower: bits("Or")},
	"aten::bitwise_xor":         {Doc: "bits that just one has", Nature: Pointwise, Lower: bits("Xor")},
	"aten::__and__":             {Doc: "bits that both have", Nature: Pointwise, Lower: bits("And")},
	"aten::__or__":              {Doc: "bits that one has", Nature: Pointwise, Lower: bits("Or")},
	"aten::__xor__":             {Doc: "bits that just one has", Nature: Pointwise, Lower: bits("Xor")},
	"aten::bitwise_not":         {Doc: "bits inverted", Nature: Pointwise, Prim: true, Lower: lowerBitwiseNot},
	"aten::__not__":             {Doc: "not a", Lower: func(l *Lowering) *ssa.Value { return l.Not(l.Cast(l.Tensor("self"), tensor.Bool)) }},
	"aten::__lshift__":          {Doc: "bits moved up", Nature: Pointwise, Lower: lowerShiftLeft},
	"aten::bitwise_left_shift":  {Doc: "bits moved up", Nature: Pointwise, Lower: lowerShiftLeft},
	"aten::__rshift__":          {Doc: "bits moved down, the sign is kept", Nature: Pointwise, Lower: lowerShiftRight},
	"aten::bitwise_right_shift": {Doc: "bits moved down, the sign is kept", Nature: Pointwise, Lower: lowerShiftRight},
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
		return l.Op("Bitwise"+op, a, b)
	}
}

func lowerBitwiseNot(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	switch {
	case d == tensor.Bool:
		return l.Not(x)
	case d.IsFloat():
		l.Fail("bitwise_not of %v", d)
	}
	return l.BitwiseNot(x)
}

// shiftPower gives 2^n in int64 and whether n is a number of bits that leaves something.
func (l *Lowering) shiftPower(n *ssa.Value, width int) (power, valid *ssa.Value) {
	n = l.Cast(n, tensor.Int64)
	valid = l.And(l.Not(l.isNegative(n)), l.Less(n, l.Like(n, float64(width))))
	powers := make([]int64, width)
	for i := range powers {
		powers[i] = 1 << i
	}
	return l.gather(l.i64(powers...), l.Where(valid, n, l.Like(n, 0)), 0), valid
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
	q := l.Div(l.Sub(wide, l.Mod(wide, p)), p)
	sign := l.Where(l.isNegative(wide), l.Like(wide, -1), l.Like(wide, 0))
	return l.Cast(l.Where(valid, q, sign), d)
}
