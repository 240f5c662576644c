package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

type value = kir.Value

// kinds of element types that an entry takes.
type kinds uint8

const (
	floats kinds = 1 << iota
	ints
	bools
	numbers = floats | ints
	all     = floats | ints | bools
)

func (k kinds) has(d tensor.DType) bool {
	switch {
	case isNarrow(d):
		return k == all // those that only pass elements on, or convert them
	case d.IsFloat():
		return k&floats != 0
	case d == tensor.Bool:
		return k&bools != 0
	}
	return k&ints != 0
}

// scalar is an operator that computes an element from the elements of its operands at the same place.
type scalar struct {
	name string
	// takes restricts the type of the first operand.
	takes kinds
	// f computes the element; x are those of the operands, nil for absent ones, in the types in which they are computed.
	f func(s *scalarPoint, x []value) value
}

// scalarPoint is where and of what type an element is computed.
type scalarPoint struct {
	*point
	d tensor.DType // of the first operand
	t kir.Type     // in which it is computed
}

func (s *scalar) eval(p *point) value {
	n := p.o.NumOperands()
	x := make([]value, n)
	for i := range x {
		if i > 0 && p.o.Kind == "onnx::CastLike" { // it is there for its type, whatever its shape is
			break
		}
		if p.in(i) != nil {
			x[i] = p.arg(i)
		}
	}
	d := dtype(p.in(0))
	if !s.takes.has(d) {
		refuse("elements of type %s", d)
	}
	if p.out > 0 {
		refuse("result %d", p.out)
	}
	return s.f(&scalarPoint{p, d, regType(d)}, x)
}

func (s *scalarPoint) num(v float64) value { return s.b.Num(s.t, v) }

// unsigned reports integers of 64 bits without sign, for which comparisons and divisions differ: narrower ones stand in a
// wider type.
func (s *scalarPoint) unsigned() bool { return s.d == tensor.Uint64 }

func (s *scalarPoint) less(x, y value) value {
	if s.unsigned() {
		return s.b.Compare(kir.ULt, x, y)
	}
	return s.b.Lt(x, y)
}

// max gives NaN if one of them is NaN.
func (s *scalarPoint) max(x, y value) value {
	v := s.b.Select(s.less(x, y), y, x)
	if !s.t.IsFloat() {
		return v
	}
	// of two zeros, the positive one
	both := s.b.And(s.b.Eq(x, s.num(0)), s.b.Eq(y, s.num(0)))
	v = s.b.Select(both, s.b.Add(x, y), v)
	return s.b.Select(s.b.IsNaN(y), y, v)
}

func (s *scalarPoint) min(x, y value) value {
	v := s.b.Select(s.less(y, x), y, x)
	if !s.t.IsFloat() {
		return v
	}
	both := s.b.And(s.b.Eq(x, s.num(0)), s.b.Eq(y, s.num(0)))
	v = s.b.Select(both, s.b.Neg(s.b.Add(s.b.Neg(x), s.b.Neg(y))), v)
	return s.b.Select(s.b.IsNaN(y), y, v)
}

// unary makes an entry of a function of package approx.
func unary(f func(b *kir.Builder, x value) value) func(*scalarPoint, []value) value {
	return func(s *scalarPoint, x []value) value { return f(s.b, x[0]) }
}

// rounding makes an entry of an instruction.
func rounding(op kir.Op) func(*scalarPoint, []value) value {
	return func(s *scalarPoint, x []value) value { return s.b.Unary(op, x[0]) }
}

// fold makes an entry of a function of two values, for any number of operands.
func fold(f func(s *scalarPoint, x, y value) value) func(*scalarPoint, []value) value {
	return func(s *scalarPoint, x []value) value {
		acc := x[0]
		for i, y := range x[1:] {
			if acc = f(s, acc, y); i+2 < len(x) {
				acc = roundedBetween(s, acc)
			}
		}
		return acc
	}
}

// roundedBetween wraps narrow integers between the steps of an operator; halves are rounded once, at its end.
func roundedBetween(s *scalarPoint, v value) value {
	if s.t.IsFloat() {
		return v
	}
	return rounded(s.b, s.d, v)
}

func comparison(f func(s *scalarPoint, x, y value) value) func(*scalarPoint, []value) value {
	return func(s *scalarPoint, x []value) value { return f(s, x[0], x[1]) }
}

// floatCompare is <= of floats and integers.
func (s *scalarPoint) lessEqual(x, y value) value {
	if s.unsigned() {
		return s.b.Compare(kir.ULe, x, y)
	}
	return s.b.Compare(kir.Le, x, y)
}

// scalars is the table of the elementwise operators. Those that are made of others have an expression in their row in
// package onnx, which serves unless there is an entry here.
var scalars = [...]scalar{
	{"Add", numbers, fold(func(s *scalarPoint, x, y value) value { return s.b.Add(x, y) })},
	{"Sum", numbers, fold(func(s *scalarPoint, x, y value) value { return s.b.Add(x, y) })},
	{"Sub", numbers, fold(func(s *scalarPoint, x, y value) value { return s.b.Sub(x, y) })},
	{"Mul", numbers, fold(func(s *scalarPoint, x, y value) value { return s.b.Mul(x, y) })},
	{"Div", numbers, fold((*scalarPoint).quotient)},
	{"Mod", numbers, fold((*scalarPoint).remainder)},
	{"Max", numbers, fold((*scalarPoint).max)},
	{"Min", numbers, fold((*scalarPoint).min)},
	{"Mean", floats, func(s *scalarPoint, x []value) value {
		acc := x[0]
		for _, y := range x[1:] {
			acc = s.b.Add(acc, y)
		}
		return s.b.Div(acc, s.num(float64(len(x))))
	}},
	{"Pow", numbers, (*scalarPoint).power},
	{"And", bools, fold(func(s *scalarPoint, x, y value) value { return s.b.And(x, y) })},
	{"Or", bools, fold(func(s *scalarPoint, x, y value) value { return s.b.Or(x, y) })},
	{"Xor", bools, fold(func(s *scalarPoint, x, y value) value { return s.b.Xor(x, y) })},
	{"Not", bools, func(s *scalarPoint, x []value) value { return s.b.Not(x[0]) }},
	{"BitwiseAnd", ints, fold(func(s *scalarPoint, x, y value) value { return s.b.And(x, y) })},
	{"BitwiseOr", ints, fold(func(s *scalarPoint, x, y value) value { return s.b.Or(x, y) })},
	{"BitwiseXor", ints, fold(func(s *scalarPoint, x, y value) value { return s.b.Xor(x, y) })},
	{"BitwiseNot", ints, func(s *scalarPoint, x []value) value { return s.b.Xor(x[0], s.b.Int(s.t, -1)) }},
	{"BitShift", ints, (*scalarPoint).shift},
	{"Equal", all, comparison(func(s *scalarPoint, x, y value) value { return s.b.Eq(x, y) })},
	{"Less", numbers, comparison((*scalarPoint).less)},
	{"Greater", numbers, comparison(func(s *scalarPoint, x, y value) value { return s.less(y, x) })},
	{"LessOrEqual", numbers, comparison((*scalarPoint).lessEqual)},
	{"GreaterOrEqual", numbers, comparison(func(s *scalarPoint, x, y value) value { return s.lessEqual(y, x) })},
	{"Where", bools, func(s *scalarPoint, x []value) value { return s.b.Select(x[0], x[1], x[2]) }},
	{"IsNaN", floats, func(s *scalarPoint, x []value) value { return s.b.IsNaN(x[0]) }},
	{"IsInf", floats, func(s *scalarPoint, x []value) value {
		v := s.b.Int(kir.I1, 0)
		if s.int("detect_positive") != 0 {
			v = s.b.Or(s.b.Eq(x[0], s.num(math.Inf(1))), v)
		}
		if s.int("detect_negative") != 0 {
			v = s.b.Or(s.b.Eq(x[0], s.num(math.Inf(-1))), v)
		}
		return v
	}},
	{"Clip", numbers, func(s *scalarPoint, x []value) value {
		v := x[0]
		if len(x) > 1 && x[1] != nil {
			v = s.max(v, x[1])
		}
		if len(x) > 2 && x[2] != nil {
			v = s.min(v, x[2])
		}
		return v
	}},
	{"Cast", all, (*scalarPoint).cast},
	{"CastLike", all, (*scalarPoint).cast},
	{"Abs", numbers, func(s *scalarPoint, x []value) value {
		switch {
		case s.t.IsFloat():
			return s.b.Unary(kir.Abs, x[0])
		case s.unsigned():
			return x[0]
		}
		return s.b.Select(s.b.Lt(x[0], s.num(0)), s.b.Neg(x[0]), x[0])
	}},
	{"Neg", numbers, func(s *scalarPoint, x []value) value { return s.b.Neg(x[0]) }},
	{"Sign", numbers, func(s *scalarPoint, x []value) value {
		v := s.b.Select(s.less(s.num(0), x[0]), s.num(1), x[0])
		if s.unsigned() {
			return v
		}
		return s.b.Select(s.b.Lt(x[0], s.num(0)), s.num(-1), v)
	}},
	{"Relu", numbers, func(s *scalarPoint, x []value) value {
		if s.unsigned() {
			return x[0]
		}
		// <=, not <: LLVM makes a maximum of it, which knows no -0
		return s.b.Select(s.lessEqual(x[0], s.num(0)), s.num(0), x[0])
	}},
	{"Reciprocal", floats, func(s *scalarPoint, x []value) value { return s.b.Div(s.num(1), x[0]) }},
	{"Sqrt", floats, rounding(kir.Sqrt)},
	{"Floor", floats, rounding(kir.Floor)},
	{"Ceil", floats, rounding(kir.Ceil)},
	{"Round", floats, rounding(kir.Rint)},
	{"Exp", floats, unary(approx.Exp)},
	{"Log", floats, unary(approx.Log)},
	{"Tanh", floats, unary(approx.Tanh)},
	{"Erf", floats, unary(approx.Erf)},
	{"Sin", floats, unary(approx.Sin)},
	{"Cos", floats, unary(approx.Cos)},
	{"Tan", floats, unary(approx.Tan)},
	{"Asin", floats, unary(approx.Asin)},
	{"Acos", floats, unary(approx.Acos)},
	{"Atan", floats, unary(approx.Atan)},
	{"Sinh", floats, unary(approx.Sinh)},
	{"Cosh", floats, unary(approx.Cosh)},
	{"Asinh", floats, unary(approx.Asinh)},
	{"Acosh", floats, unary(approx.Acosh)},
	{"Atanh", floats, unary(approx.Atanh)},
	{"Sigmoid", floats, unary(approx.Sigmoid)},
	{"Softplus", floats, unary(approx.Softplus)},
	// with fma, which loses fewer digits in float32 than the row's expression
	{"Gelu", floats, (*scalarPoint).gelu},
	{"Shrink", numbers, func(s *scalarPoint, x []value) value {
		if !s.t.IsFloat() {
			return s.shrunk(x[0])
		}
		b, bias, lambda := s.b, s.num(s.float("bias")), s.float("lambd")
		v := b.Select(b.Lt(s.num(lambda), x[0]), b.Sub(x[0], bias), s.num(0))
		return b.Select(b.Lt(x[0], s.num(-lambda)), b.Add(x[0], bias), v)
	}},
}

// shrunk is Shrink of an integer: computed in double, cut off, and wrapped.
func (s *scalarPoint) shrunk(x value) value {
	b := s.b
	if s.unsigned() {
		refuse("elements of type %s", s.d)
	}
	num := func(v float64) value { return b.Float(kir.F64, v) }
	v, bias, lambda := convert(b, x, s.d, tensor.Float64), num(s.float("bias")), s.float("lambd")
	y := b.Select(b.Lt(num(lambda), v), b.Sub(v, bias), num(0))
	y = b.Select(b.Lt(v, num(-lambda)), b.Add(v, bias), y)
	return convert(b, convert(b, y, tensor.Float64, tensor.Int64), tensor.Int64, s.d)
}

// cast converts; to 8-bit floats it may do so without saturation.
func (s *scalarPoint) cast(x []value) value {
	to := dtype(s.o.Results[0])
	if float8Of(to) != nil && to != s.d && s.int("saturate") == 0 {
		return toFloat8(s.b, to, convert(s.b, x[0], s.d, tensor.Float32), false)
	}
	return convert(s.b, x[0], s.d, to)
}

// scalarOf finds an operator in the table, nil if it is not there.
func scalarOf(name string) *scalar {
	for i := range scalars {
		if scalars[i].name == name {
			return &scalars[i]
		}
	}
	if e := onnx.ExprOf(onnx.Namespace + "::" + ssa.Kind(name)); e != nil {
		return &scalar{name, floats, func(s *scalarPoint, x []value) value { return onnx.Eval[value](e, kernelMath{s, x}) }}
	}
	return nil
}

// kernelMath evaluates expressions to values of a kernel.
type kernelMath struct {
	*scalarPoint
	in []value
}

func (k kernelMath) Number(v float64) value    { return k.num(v) }
func (k kernelMath) Operand(i int) value       { return k.in[i] }
func (k kernelMath) Float(name string) float64 { return k.float(name) }
func (k kernelMath) Text(name string) string   { return k.str(name) }

func (k kernelMath) Call(name string, x ...value) value {
	switch name {
	case "Fma":
		return k.b.Fma(x[0], x[1], x[2])
	case "Expm1":
		return approx.Expm1(k.b, x[0])
	case "Clip": // the bounds of expressions are constants: which of two zeros it is makes no difference
		v := k.b.Select(k.b.Lt(x[0], x[1]), x[1], x[0])
		return k.b.Select(k.b.Lt(x[2], v), x[2], v)
	}
	s := scalarOf(name)
	if s == nil {
		refuse("no kernel for the function %s", name)
	}
	return s.f(k.scalarPoint, x)
}

// quotient of integers is truncated. Division by 0 gives 0 on a device, where the interpreter reports it.
func (s *scalarPoint) quotient(x, y value) value {
	b := s.b
	if s.t.IsFloat() {
		return b.Div(x, y)
	}
	zero := b.Eq(y, s.num(0))
	safe := b.Select(zero, s.num(1), y)
	if s.unsigned() {
		return b.Select(zero, s.num(0), b.UDiv(x, safe))
	}
	// the least number by -1 wraps
	minus := b.Eq(y, s.num(-1))
	v := b.Div(x, b.Select(minus, s.num(1), safe))
	return b.Select(zero, s.num(0), b.Select(minus, b.Neg(x), v))
}

// remainder has the sign of the divisor, with fmod that of the dividend.
func (s *scalarPoint) remainder(x, y value) value {
	b := s.b
	fmod := s.int("fmod") != 0
	if s.t.IsFloat() {
		r := approx.Mod(b, x, y)
		if fmod {
			return r
		}
		wrong := b.And(b.Compare(kir.Ne, r, s.num(0)), b.Compare(kir.Ne, b.Lt(r, s.num(0)), b.Lt(y, s.num(0))))
		return b.Select(wrong, b.Add(r, y), r)
	}
	zero := b.Eq(y, s.num(0))
	trivial := b.Or(zero, b.Eq(y, s.num(-1)))
	safe := b.Select(trivial, s.num(1), y)
	if s.unsigned() {
		return b.Select(zero, s.num(0), b.URem(x, safe))
	}
	r := b.Binary(kir.Rem, x, safe)
	if !fmod {
		wrong := b.And(b.Compare(kir.Ne, r, s.num(0)), b.Compare(kir.Ne, b.Lt(r, s.num(0)), b.Lt(y, s.num(0))))
		r = b.Select(wrong, b.Add(r, y), r)
	}
	return b.Select(trivial, s.num(0), r)
}

// shift fills with the sign from the left; by a negative number of places, or by as many as there are or more, nothing else is left.
func (s *scalarPoint) shift(x []value) value {
	b := s.b
	right := s.str("direction") == "RIGHT"
	wide := int64(8 * x[0].Type.Size())
	far := b.Not(b.Compare(kir.ULt, x[1], b.Int(s.t, wide)))
	by := b.Select(far, b.Int(s.t, wide-1), x[1])
	if right && !s.d.IsUnsigned() {
		return b.Binary(kir.AShr, x[0], by)
	}
	op := kir.Shl
	if right {
		op = kir.LShr
	}
	return b.Select(far, s.num(0), b.Binary(op, x[0], by))
}

// power computes in double, and for small constant exponents by multiplication.
func (s *scalarPoint) power(x []value) value {
	b, e := s.b, x[1]
	if !s.t.IsFloat() {
		return s.intPower(x)
	}
	if s.t == kir.F32 && e.Op == kir.Const && e.Type.IsFloat() {
		switch e.Float {
		case 1:
			return x[0]
		case 2:
			return b.Mul(x[0], x[0])
		case 0.5:
			// sqrt of -infinity is NaN, and its power infinity
			return b.Select(b.Eq(x[0], s.num(math.Inf(-1))), s.num(math.Inf(1)), b.Unary(kir.Sqrt, b.Add(x[0], s.num(0))))
		case -1:
			return b.Div(s.num(1), x[0])
		}
	}
	if s.t == kir.F64 && e.Op == kir.Const && e.Type.IsFloat() && e.Float == 2 {
		return b.Mul(x[0], x[0])
	}
	if !e.Type.IsFloat() {
		e = b.Convert(kir.SToF, e, kir.F64)
	}
	v := approx.Pow(b, b.Convert(kir.Widen, x[0], kir.F64), b.Convert(kir.Widen, e, kir.F64))
	return b.Convert(kir.Round, v, s.t)
}

// intPower is by squaring, for constants of few steps.
func (s *scalarPoint) intPower(x []value) value {
	b := s.b
	if x[1].Type.IsFloat() {
		refuse("Pow of integers with an exponent that is a float")
	}
	if x[1].Op != kir.Const || x[1].Int < 0 || dtype(s.in(1)) == tensor.Uint64 {
		return s.anyPower(x)
	}
	result, square := s.num(1), x[0]
	for n := x[1].Int; n > 0; n >>= 1 {
		if n&1 == 1 {
			result = b.Mul(result, square)
		}
		square = b.Mul(square, square)
	}
	return result
}

func (s *scalarPoint) gelu(x []value) value {
	b, v := s.b, x[0]
	half, one := s.num(0.5), s.num(1)
	if s.str("approximate") == "tanh" {
		inner := b.Fma(b.Mul(s.num(formula.GeluCube), b.Mul(v, v)), v, v)
		return b.Mul(b.Mul(half, v), b.Add(one, approx.Tanh(b, b.Mul(inner, s.num(formula.GeluScale)))))
	}
	return b.Mul(b.Mul(half, v), b.Add(one, approx.Erf(b, b.Mul(v, s.num(math.Sqrt2/2)))))
}
