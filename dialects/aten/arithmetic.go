package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// arithmetic holds the operators on two or three operands (ATen/native/BinaryOps.cpp, PointwiseOps.cpp).
// The forms on Python numbers, aten::add.int(int a, int b), share the entries.
var arithmetic = Defs{
	"aten::add":             {Doc: "self + alpha * other", Gradient: "self: grad; other: grad * alpha", Nature: Pointwise, Prim: true, Complex: one(complexAdd), Type: ofPair, Lower: lowerAdd},
	"aten::_add_relu":       {Doc: "max(self + alpha * other, 0)", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.Relu(lowerAdd(l)) }},
	"aten::sub":             {Doc: "self - alpha * other", Gradient: "self: grad; other: -grad * alpha", Nature: Pointwise, Prim: true, Complex: one(complexSub), Type: ofPair, Lower: lowerSub},
	"aten::subtract":        {Doc: "self - alpha * other", Gradient: "self: grad; other: -grad * alpha", Nature: Pointwise, Alias: "aten::sub", Type: ofPair, Lower: lowerSub},
	"aten::rsub":            {Doc: "other - alpha * self", Gradient: "self: -grad * alpha; other: grad", Nature: Pointwise, Complex: one(complexRsub), Type: ofPair, Lower: lowerRsub},
	"aten::mul":             {Doc: "self * other", Gradient: "self: grad * other; other: grad * self", Nature: Pointwise, Prim: true, Complex: (*Lowering).complexBilinear, Type: ofPair, Lower: lowerMul},
	"aten::multiply":        {Doc: "self * other", Gradient: "self: grad * other; other: grad * self", Nature: Pointwise, Alias: "aten::mul", Type: ofPair, Lower: lowerMul},
	"aten::div":             {Doc: "self / other, exact, truncated or floored", Gradient: "self: grad / other; other: -grad * ((self / other) / other)", Nature: Pointwise, Complex: one(complexDiv), Type: ofQuotient, Lower: lowerDiv},
	"aten::divide":          {Doc: "self / other, exact, truncated or floored", Gradient: "self: grad / other; other: -grad * ((self / other) / other)", Nature: Pointwise, Alias: "aten::div", Type: ofQuotient, Lower: lowerDiv},
	"aten::true_divide":     {Doc: "self / other, never integer", Gradient: "self: grad / other; other: -grad * ((self / other) / other)", Nature: Pointwise, Alias: "aten::div", Type: ofQuotient, Lower: lowerDiv},
	"aten::floor_divide":    {Doc: "the floor of self / other", Gradient: NoGradient, Nature: Pointwise, Lower: lowerFloorDivide},
	"aten::_floor_divide":   {Doc: "the floor of self / other", Nature: Pointwise, Lower: lowerFloorDivide},
	"aten::floordiv":        {Doc: "a // b of numbers", Lower: lowerFloorDivideNumbers},
	"aten::remainder":       {Doc: "self - other * floor(self / other)", Gradient: "self: grad; other: -grad * floor_divide(self, other)", Nature: Pointwise, Prim: true, Lower: lowerRemainder},
	"aten::fmod":            {Doc: "self - other * trunc(self / other)", Gradient: "self: grad; other: -grad * trunc(self / other)", Nature: Pointwise, Prim: true, Lower: lowerFmod},
	"aten::pow":             {Doc: "self to the power exponent", Gradient: "self: where(eq(zeros_like(self) + exponent, 0), 0.0, grad * (exponent * pow(self, exponent - 1))); exponent: grad * where(logical_and(eq(zeros_like(result) + self, 0), ge(exponent, 0)), 0.0, result * log(self))", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexPow), Lower: lowerPow},
	"aten::float_power":     {Doc: "self to the power exponent, in float64", Nature: Pointwise, Complex: one(complexFloatPower), Lower: lowerFloatPower},
	"aten::addcmul":         {Doc: "self + value * tensor1 * tensor2", Gradient: "self: grad; tensor1: grad * (tensor2 * value); tensor2: grad * (tensor1 * value)", Nature: Pointwise, Complex: one(addScaledPair("aten::mul.Tensor")), Lower: lowerAddcmul},
	"aten::addcdiv":         {Doc: "self + value * tensor1 / tensor2", Gradient: "self: grad; tensor1: grad * (value / tensor2); tensor2: -grad * (tensor1 * value / (tensor2 * tensor2))", Nature: Pointwise, Complex: one(addScaledPair("aten::div.Tensor")), Lower: lowerAddcdiv},
	"aten::lerp":            {Doc: "self + weight * (end - self)", Gradient: "self: grad * (1 - weight); end: grad * weight; weight: grad * (end - self)", Nature: Pointwise, Complex: one(complexLerp), Lower: lowerLerp},
	"aten::maximum":         {Doc: "the greater of both, NaN if one is", Gradient: "self: masked_fill(where(eq(self, other), grad / 2, grad), lt(self, other), 0); other: masked_fill(where(eq(self, other), grad / 2, grad), gt(self, other), 0)", Nature: Pointwise, Prim: true, Type: ofPair, Lower: lowerMaximum},
	"aten::minimum":         {Doc: "the lesser of both, NaN if one is", Gradient: "self: masked_fill(where(eq(self, other), grad / 2, grad), gt(self, other), 0); other: masked_fill(where(eq(self, other), grad / 2, grad), lt(self, other), 0)", Nature: Pointwise, Prim: true, Type: ofPair, Lower: lowerMinimum},
	"aten::fmax":            {Doc: "the greater of both; a number wins over NaN", Gradient: "self: masked_fill(where(eq(self, other), grad / 2, grad), logical_not(logical_or(ge(self, other), isnan(other))), 0); other: masked_fill(where(eq(self, other), grad / 2, grad), logical_or(gt(self, other), isnan(other)), 0)", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.skipNaN(l.max) }},
	"aten::fmin":            {Doc: "the lesser of both; a number wins over NaN", Gradient: "self: masked_fill(where(eq(self, other), grad / 2, grad), logical_not(logical_or(le(self, other), isnan(other))), 0); other: masked_fill(where(eq(self, other), grad / 2, grad), logical_or(lt(self, other), isnan(other)), 0)", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.skipNaN(l.min) }},
	"aten::clamp":           {Doc: "min(max(self, min), max)", Gradient: "self: where(eq(result, self), grad, 0.0)", Nature: Pointwise, Idempotent: true, Grid: SnapsToGrid, Lower: lowerClamp},
	"aten::clip":            {Doc: "min(max(self, min), max)", Gradient: "self: where(eq(result, self), grad, 0.0)", Nature: Pointwise, Alias: "aten::clamp", Grid: SnapsToGrid, Lower: lowerClamp},
	"aten::clamp_min":       {Doc: "max(self, min)", Gradient: "self: where(eq(result, self), grad, 0.0)", Nature: Pointwise, Idempotent: true, Lower: lowerClamp},
	"aten::clamp_max":       {Doc: "min(self, max)", Gradient: "self: where(eq(result, self), grad, 0.0)", Nature: Pointwise, Idempotent: true, Lower: lowerClamp},
	"aten::hypot":           {Doc: "sqrt(self^2 + other^2) without overflow", Gradient: "self: grad * (self / result); other: grad * (other / result)", Nature: Pointwise, Prim: true, Lower: lowerHypot},
	"aten::atan2":           {Doc: "the angle of the point (other, self)", Gradient: "self: grad * (other / (self * self + other * other)); other: grad * (-self / (self * self + other * other))", Nature: Pointwise, Lower: lowerAtan2},
	"aten::arctan2":         {Doc: "the angle of the point (other, self)", Nature: Pointwise, Alias: "aten::atan2", Lower: lowerAtan2},
	"aten::copysign":        {Doc: "the magnitude of self with the sign of other", Gradient: "self: grad * masked_fill(result / self, eq(self, 0), 0); other: zeros_like(other)", Nature: Pointwise, Lower: lowerCopysign},
	"aten::nextafter":       {Doc: "the float next to self in the direction of other", Nature: Pointwise, Prim: true, Lower: lowerNextafter},
	"aten::ldexp":           {Doc: "self * 2^other", Nature: Pointwise, Complex: one(complexLdexp), Lower: lowerLdexp},
	"aten::heaviside":       {Doc: "0 below 0, values at 0, else 1", Gradient: NoGradient, Nature: Pointwise, Lower: lowerHeaviside},
	"aten::xlogy":           {Doc: "self * log(other), 0 where self is 0", Gradient: "self: masked_fill(xlogy(grad, other), logical_and(eq(self, 0), le(zeros_like(self) + other, 0)), 0); other: grad * self / other", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.xlogy(l.Log) }},
	"aten::special_xlogy":   {Doc: "self * log(other), 0 where self is 0", Nature: Pointwise, Alias: "aten::xlogy", Lower: func(l *Lowering) *ssa.Value { return l.xlogy(l.Log) }},
	"aten::special_xlog1py": {Doc: "self * log1p(other), 0 where self is 0", Gradient: "self: masked_fill(special_xlog1py(grad, other), logical_and(eq(self, 0), le(zeros_like(self) + other, -1)), 0); other: grad * self / (other + 1)", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.xlogy(l.log1p) }},
	"aten::logaddexp":       {Doc: "log(exp(self) + exp(other))", Gradient: "self: grad / (exp(other - self) + 1); other: grad / (exp(self - other) + 1)", Nature: Pointwise, Complex: one(complexLogAddExp), Lower: func(l *Lowering) *ssa.Value { return l.lowerLogaddexp(1) }},
	"aten::logaddexp2":      {Doc: "log2(2^self + 2^other)", Gradient: "self: grad / (exp2(other - self) + 1); other: grad / (exp2(self - other) + 1)", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.lowerLogaddexp(math.Ln2) }},
	"aten::gcd":             {Doc: "the greatest common divisor", Nature: Pointwise, Prim: true, Lower: lowerGcd},
	"aten::lcm":             {Doc: "the least common multiple", Nature: Pointwise, Lower: lowerLcm},
}

// numbers reports an overload on Python numbers: its arguments are a and b.
func (l *Lowering) numbers() bool { return l.HasArg("a") && l.HasArg("b") }

// pair gives the operands in their common type: int64 or float64 for Python numbers.
func (l *Lowering) pair() (a, b *ssa.Value, d tensor.DType) {
	if !l.numbers() {
		vs, d := l.promoted("self", "other")
		return vs[0], vs[1], d
	}
	a, b = l.Tensor("a"), l.Tensor("b")
	d = tensor.Int64
	if l.DType(a).IsFloat() || l.DType(b).IsFloat() {
		d = tensor.Float64
	}
	return l.Cast(a, d), l.Cast(b, d), d
}

// floatPair gives the operands as floats of the type in which PyTorch computes, and the type of the result.
func (l *Lowering) floatPair() (a, b *ssa.Value, result tensor.DType) {
	if l.numbers() {
		d := tensor.Float64
		return l.Cast(l.Tensor("a"), d), l.Cast(l.Tensor("b"), d), d
	}
	d := l.floatType("self", "other")
	return l.as("self", computing(d)), l.as("other", computing(d)), d
}

// times multiplies x by the argument alpha, if there is one.
func (l *Lowering) times(x *ssa.Value, alpha string) *ssa.Value {
	if !l.HasArg(alpha) || l.IsNone(alpha) || l.IsConst(alpha) && l.Float(alpha) == 1 {
		return x
	}
	d := l.DType(x)
	if d == tensor.Bool {
		return l.And(x, l.as(alpha, d))
	}
	return l.Mul(x, l.as(alpha, d))
}

func lowerAdd(l *Lowering) *ssa.Value {
	if isList(l.Arg("a")) {
		return lowerListConcat(l)
	}
	a, b, d := l.pair()
	b = l.times(b, "alpha")
	if d == tensor.Bool {
		return l.Or(a, b)
	}
	return l.Add(a, b)
}

func lowerSub(l *Lowering) *ssa.Value {
	a, b, _ := l.pair()
	return l.Sub(a, l.times(b, "alpha"))
}

func lowerRsub(l *Lowering) *ssa.Value {
	a, b, _ := l.pair()
	return l.Sub(b, l.times(a, "alpha"))
}

func lowerMul(l *Lowering) *ssa.Value {
	a, b, d := l.pair()
	if d == tensor.Bool {
		return l.And(a, b)
	}
	return l.Mul(a, b)
}

func lowerDiv(l *Lowering) *ssa.Value {
	if l.numbers() {
		return l.Div(l.Cast(l.Tensor("a"), tensor.Float64), l.Cast(l.Tensor("b"), tensor.Float64))
	}
	switch mode := l.Str("rounding_mode"); mode {
	case "":
		d := l.floatType("self", "other")
		return l.Div(l.as("self", d), l.as("other", d))
	case "floor":
		return lowerFloorDivide(l)
	case "trunc":
		a, b, d := l.quotientPair()
		q := l.Div(a, b)
		if d.IsFloat() {
			return l.Cast(l.trunc(q), d)
		}
		return q
	default:
		l.Fail("unknown rounding mode %q", mode)
		return nil
	}
}

func lowerFloorDivide(l *Lowering) *ssa.Value {
	a, b, d := l.quotientPair()
	if d == tensor.Bool {
		l.Fail("floor division of bool tensors")
	}
	return l.Cast(l.floorDiv(a, b), d)
}

// quotientPair is pair for a quotient that is rounded to an integer. A number beside float16 or bfloat16 is not rounded to that type, since a quotient near an
// integer would become another one: div_floor_kernel and div_trunc_kernel (ATen/native/cpu/BinaryOpsKernel.cpp) compute in float32 with it.
func (l *Lowering) quotientPair() (a, b *ssa.Value, d tensor.DType) {
	a, b, d = l.pair()
	if d != tensor.Float16 && d != tensor.BFloat16 {
		return a, b, d
	}
	if t := l.Tensor("other").Tensor(); t.Ranked && len(t.Dims) == 0 {
		return l.as("self", tensor.Float32), l.as("other", tensor.Float32), d
	}
	return a, b, d
}

// lowerFloorDivideNumbers is a // b of numbers: TorchScript rounds the quotient of floats down, where tensors and Python take the remainder off first.
func lowerFloorDivideNumbers(l *Lowering) *ssa.Value {
	if a, b, d := l.pair(); d.IsFloat() {
		return l.Floor(l.Div(a, b))
	}
	return lowerFloorDivide(l)
}

// lowerDivmod is divmod of numbers. Of an int and a float, PyTorch divides in float32.
func lowerDivmod(l *Lowering) []*ssa.Value {
	x, y := l.Tensor("x"), l.Tensor("y")
	if a, b := l.DType(x).IsFloat(), l.DType(y).IsFloat(); a != b {
		x, y = l.Cast(x, tensor.Float32), l.Cast(y, tensor.Float32)
		q := l.Cast(l.Floor(l.Div(x, y)), tensor.Float64)
		return []*ssa.Value{q, l.Sub(l.Cast(x, tensor.Float64), l.Mul(q, l.Cast(y, tensor.Float64)))}
	} else if !a {
		return []*ssa.Value{l.floorDiv(x, y), l.pymod(x, y)}
	}
	r := l.cmod(x, y)
	wrong := l.And(l.Not(l.isZero(r)), l.Xor(l.isNegative(x), l.isNegative(y)))
	r = l.Where(wrong, l.Add(r, y), r)
	return []*ssa.Value{l.Div(l.Sub(x, r), y), r}
}

// floorDiv is Python's a // b.
func (l *Lowering) floorDiv(a, b *ssa.Value) *ssa.Value {
	d := l.DType(a)
	if !d.IsFloat() {
		q := l.Div(a, b)
		switch {
		case d.IsUnsigned() || atLeast(a, 0) && atLeast(b, 1):
			return q
		case atLeast(b, 1):
			// truncation went up exactly where q * b lies above a
			return l.Sub(q, l.Cast(l.Less(a, l.Mul(q, b)), d))
		}
		inexact := l.Not(l.Equal(l.Mul(q, b), a))
		signs := l.Xor(l.isNegative(a), l.isNegative(b))
		return l.Sub(q, l.Cast(l.And(inexact, signs), d))
	}
	// c10::div_floor_floating: the quotient of a less its remainder is exact,
	// where a / b may round up to the next integer.
	k, known := number(b)
	if known && k != 0 && math.Abs(math.Log2(math.Abs(k))) == math.Trunc(math.Abs(math.Log2(math.Abs(k)))) {
		// exact for powers of 2; an infinity has no remainder, and no quotient either
		return l.Add(l.Floor(l.Div(a, b)), l.Mul(a, l.Like(a, math.Copysign(0, k))))
	}
	r := l.cmod(a, b)
	q := l.Div(l.Sub(a, r), b)
	var below *ssa.Value
	if known && k > 0 {
		below = l.isNegative(r)
	} else {
		below = l.And(l.Not(l.isZero(r)), l.Xor(l.isNegative(r), l.isNegative(b)))
	}
	q = l.Round(l.Sub(q, l.Cast(below, d)))
	if known && k != 0 {
		return q
	}
	return l.Where(l.isZero(b), l.Div(a, b), q)
}

// cmod is C's fmod, with the sign of a.
func (l *Lowering) cmod(a, b *ssa.Value) *ssa.Value {
	if !l.DType(a).IsFloat() { // runtimes take Mod[fmod=1] of integers in float64
		return l.Sub(a, l.Mul(l.Div(a, b), b))
	}
	return l.Mod(a, b, onnx.Fmod(true))
}

// pymod is Python's a % b, with the sign of b.
func (l *Lowering) pymod(a, b *ssa.Value) *ssa.Value {
	if !l.DType(a).IsFloat() {
		return l.Mod(a, b)
	}
	r := l.cmod(a, b)
	if k, ok := number(b); ok && k > 0 {
		return l.Where(l.isNegative(r), l.Add(r, b), r)
	}
	wrong := l.And(l.Not(l.isZero(r)), l.Xor(l.isNegative(r), l.isNegative(b)))
	return l.Where(wrong, l.Add(r, b), r)
}

func lowerRemainder(l *Lowering) *ssa.Value {
	a, b, d := l.pair()
	if l.numbers() && d.IsFloat() { // as TorchScript has it, which is nan for an infinite b
		return l.cmod(l.Add(b, l.cmod(a, b)), b)
	}
	return l.pymod(a, b)
}

func lowerFmod(l *Lowering) *ssa.Value {
	if l.numbers() {
		return l.cmod(l.Cast(l.Tensor("a"), tensor.Float64), l.Cast(l.Tensor("b"), tensor.Float64))
	}
	a, b, _ := l.pair()
	return l.cmod(a, b)
}

func lowerPow(l *Lowering) *ssa.Value {
	if l.numbers() {
		a, b, d := l.pair()
		if d == tensor.Int64 && len(l.Node.Schema.Returns) == 1 && l.Node.Schema.Returns[0].Type != ssa.IntType {
			a, b = l.Cast(a, tensor.Float64), l.Cast(b, tensor.Float64)
		}
		return l.power(a, b)
	}
	d := l.argType("self", "exponent")
	return l.power(l.as("self", d), l.as("exponent", d))
}

func lowerFloatPower(l *Lowering) *ssa.Value {
	if l.argType("self", "exponent").IsComplex() {
		l.Fail("complex numbers")
	}
	return l.power(l.as("self", tensor.Float64), l.as("exponent", tensor.Float64))
}

// power is x to the power e, both of one type. The short forms are those of
// ATen's pow_tensor_scalar, so they round as PyTorch does.
func (l *Lowering) power(x, e *ssa.Value) *ssa.Value {
	d := l.DType(x)
	if d == tensor.Bool {
		l.Fail("powers of bool tensors")
	}
	k, known := number(e)
	if !d.IsFloat() {
		return l.intPower(x, e, k, known)
	}
	if known {
		switch k {
		case 0:
			return l.constLike(x, d, 1)
		case 0.5:
			if d == tensor.Float16 || d == tensor.BFloat16 {
				break // their kernel has pow itself, by which -inf gives inf
			}
			return l.Sqrt(x)
		case 1:
			return x
		case 2:
			return l.square(x)
		case 3:
			return l.Mul(l.square(x), x)
		case -0.5:
			return l.Reciprocal(l.Sqrt(x))
		case -1:
			return l.Reciprocal(x)
		case -2:
			return l.Reciprocal(l.square(x))
		}
	}
	return l.Pow(x, e)
}

// intPower wraps on overflow. onnx::Pow of integers goes through floating
// point in runtimes, so a known exponent is multiplied out.
func (l *Lowering) intPower(x, e *ssa.Value, k float64, known bool) *ssa.Value {
	d := l.DType(x)
	if known && k < 0 {
		l.Fail("integers to negative integer powers")
	}
	if known && k <= 64 {
		var result *ssa.Value
		square := x
		for n := int64(k); n > 0; n >>= 1 {
			if n&1 == 1 {
				if result == nil {
					result = square
				} else {
					result = l.Mul(result, square)
				}
			}
			if n > 1 {
				square = l.square(square)
			}
		}
		if result == nil {
			return l.constLike(x, d, 1)
		}
		return result
	}
	wide := tensor.Int64
	x, e = l.Cast(x, wide), l.Cast(e, wide)
	if base, ok := number(x); ok && base != 0 && math.Mod(base, 2) == 0 {
		return l.Cast(l.evenPower(int64(base), e), d)
	}
	p := l.intPow(x, e)
	if d.IsUnsigned() {
		return l.Cast(p, d)
	}
	// a negative power is 0 but for 1 and -1
	one := l.Equal(l.abs(x), l.Like(x, 1))
	sign := l.Where(l.Equal(l.Mod(e, l.Like(e, 2)), l.Like(e, 0)), l.Like(x, 1), x)
	small := l.Where(one, sign, l.Like(x, 0))
	return l.Cast(l.Where(l.isNegative(e), small, p), d)
}

// evenPower is an even base to the power e, from a table: a power from 64 on has no bits left in an int64, and one below 0
// is 0 as well.
func (l *Lowering) evenPower(base int64, e *ssa.Value) *ssa.Value {
	table := make([]int64, 65)
	for i, p := 0, int64(1); i < 64; i++ {
		table[i] = p
		p *= base
	}
	none := l.Like(e, 64)
	at := l.Where(l.isNegative(e), none, l.min(e, none))
	return l.Gather(l.i64(table...), at, onnx.Axis(0))
}

func lowerAddcmul(l *Lowering) *ssa.Value {
	d := l.argType("self", "tensor1", "tensor2")
	w := computing(d)
	p := l.Mul(l.times(l.as("tensor1", w), "value"), l.as("tensor2", w))
	return l.Cast(l.Add(l.as("self", w), p), d)
}

func lowerAddcdiv(l *Lowering) *ssa.Value {
	d := l.floatType("self", "tensor1", "tensor2")
	w := computing(d)
	q := l.Div(l.times(l.as("tensor1", w), "value"), l.as("tensor2", w))
	return l.Cast(l.Add(l.as("self", w), q), d)
}

func lowerLerp(l *Lowering) *ssa.Value {
	d := l.argType("self", "end")
	if l.Arg("weight").Tensor() != nil {
		d = l.argType("self", "end", "weight")
	}
	wide := computing(d)
	a, b, w := l.as("self", wide), l.as("end", wide), l.as("weight", wide)
	diff := l.Sub(b, a)
	low := func() *ssa.Value { return l.Cast(l.Add(a, l.Mul(w, diff)), d) }
	high := func() *ssa.Value { return l.Cast(l.Sub(b, l.Mul(diff, l.Sub(l.Like(w, 1), w))), d) }
	if k, ok := number(w); ok {
		if math.Abs(k) < 0.5 {
			return low()
		}
		return high()
	}
	// exact at both ends, as at::native::lerp is
	return l.Where(l.Less(l.abs(w), l.Like(w, 0.5)), low(), high())
}

func lowerMaximum(l *Lowering) *ssa.Value {
	a, b, _ := l.pair()
	return l.max(a, b)
}

func lowerMinimum(l *Lowering) *ssa.Value {
	a, b, _ := l.pair()
	return l.min(a, b)
}

func (l *Lowering) skipNaN(f func(a, b *ssa.Value) *ssa.Value) *ssa.Value {
	a, b, d := l.pair()
	if !d.IsFloat() {
		return f(a, b)
	}
	return l.Where(l.isNaN(a), b, l.Where(l.isNaN(b), a, f(a, b)))
}

func lowerClamp(l *Lowering) *ssa.Value {
	d := l.argType("self", "min", "max")
	x := l.as("self", d)
	var lo, hi *ssa.Value
	if !l.IsNone("min") {
		lo = l.bound("min", d)
	}
	if !l.IsNone("max") {
		hi = l.bound("max", d)
	}
	if lo == nil && hi == nil {
		l.Fail("at least one of min and max must not be None")
	}
	if l.constBound(lo) && l.constBound(hi) && l.DType(x) != tensor.Bool {
		if v, ok := number(lo); ok && v == 0 && hi == nil && d.IsFloat() {
			return l.Relu(x)
		}
		if d.IsFloat() { // a bound that is left out is the greatest finite number, and infinities are to stay
			lo, hi = l.boundOr(lo, d, math.Inf(-1)), l.boundOr(hi, d, math.Inf(1))
		}
		return l.Clip(x, lo, hi)
	}
	if lo != nil {
		x = l.max(x, lo)
	}
	if hi != nil {
		x = l.min(x, hi)
	}
	return x
}

// boundOr is a bound of a clamp, v of type d if there is none.
func (l *Lowering) boundOr(bound *ssa.Value, d tensor.DType, v float64) *ssa.Value {
	if bound != nil {
		return bound
	}
	return l.Scalar(d, v)
}

// bound is an argument converted to d; a number beyond the range of an integer type becomes the end of it.
func (l *Lowering) bound(name string, d tensor.DType) *ssa.Value {
	if v := l.Arg(name); v.Tensor() != nil || !d.IsInt() || d == tensor.Int64 {
		return l.as(name, d)
	}
	v := l.as(name, tensor.Int64)
	lo, hi := intRange(d)
	v = l.max(v, l.scalarInt(tensor.Int64, lo))
	return l.Cast(l.min(v, l.scalarInt(tensor.Int64, hi)), d)
}

// intRange gives the least and the greatest number of an integer type of less than 64 bits.
func intRange(d tensor.DType) (lo, hi int64) {
	bits := 8 * d.Size()
	if d.IsUnsigned() {
		return 0, 1<<bits - 1
	}
	return -1 << (bits - 1), 1<<(bits-1) - 1
}

// constBound reports a bound that onnx::Clip takes: rank 0 and not NaN.
func (l *Lowering) constBound(v *ssa.Value) bool {
	if v == nil {
		return true
	}
	k, ok := number(v)
	return ok && !math.IsNaN(k) && v.Tensor().Rank() == 0
}

func lowerHypot(l *Lowering) *ssa.Value {
	a, b, d := l.pair()
	return l.Cast(l.hypot(l.Cast(a, computing(d)), l.Cast(b, computing(d))), d)
}

// hypot is sqrt(a^2 + b^2) with squares of numbers up to 1 only.
func (l *Lowering) hypot(a, b *ssa.Value) *ssa.Value {
	a, b = l.abs(a), l.abs(b)
	big, small := l.max(a, b), l.min(a, b)
	r := l.Div(small, big)
	h := l.Mul(big, l.Sqrt(l.offset(l.square(r), 1)))
	h = l.Where(l.isZero(big), big, h) // not 0/0
	// an infinity wins over NaN
	return l.Where(l.Or(l.IsInf(a), l.IsInf(b)), l.Like(a, math.Inf(1)), h)
}

func lowerAtan2(l *Lowering) *ssa.Value {
	y, x, result := l.floatPair()
	d := l.DType(x)
	ay, ax := l.abs(y), l.abs(x)
	// 0/0 counts as 0 and inf/inf as 1
	same := l.Cast(l.Not(l.isZero(ay)), d)
	ratio := l.Where(l.Equal(ay, ax), same, l.Div(ay, ax))
	angle := l.Atan(ratio)
	angle = l.Where(l.signBit(x), l.Sub(l.Like(x, math.Pi), angle), angle)
	return l.Cast(l.Where(l.signBit(y), l.neg(angle), angle), result)
}

func lowerCopysign(l *Lowering) *ssa.Value {
	x, y, d := l.floatPair()
	x = l.abs(x)
	l.signOfNaN(y)
	return l.Cast(l.Where(l.signBit(y), l.neg(x), x), d)
}

// lowerNextafter steps in float64, where a little more than half a unit in the
// last place of a narrower float rounds to its neighbour.
func lowerNextafter(l *Lowering) *ssa.Value {
	a, b, d := l.pair()
	var digits, least int // of the fraction, and the exponent of the least number
	switch d {
	case tensor.Float16:
		digits, least = 10, -24
	case tensor.BFloat16:
		digits, least = 7, -133
	case tensor.Float32:
		digits, least = 23, -149
	default:
		l.Fail("nextafter of %v needs access to the bits of a float", d)
	}
	x, y := l.Cast(a, tensor.Float64), l.Cast(b, tensor.Float64)
	above := 1 + math.Ldexp(1, -digits+3)
	half := l.max(l.scale(l.abs(x), math.Ldexp(above, -digits-1)), l.Like(x, math.Ldexp(1.5, least-1)))
	step := l.Cast(l.Add(x, l.Mul(l.Sign(l.Sub(y, x)), half)), d)
	// inf steps to the greatest float
	most := l.Mul(l.Sign(a), l.Like(a, greatest(d)))
	step = l.Where(l.IsInf(a), most, step)
	step = l.Where(l.Equal(a, b), b, step)
	return l.Where(l.Or(l.isNaN(a), l.isNaN(b)), l.Like(a, math.NaN()), step)
}

func lowerLdexp(l *Lowering) *ssa.Value {
	if l.HasArg("i") { // math.ldexp(x, i)
		return l.Mul(l.Tensor("x"), l.exp2(l.Cast(l.Tensor("i"), tensor.Float64)))
	}
	x, e, d := l.floatPair()
	return l.Cast(l.Mul(x, l.exp2(e)), d)
}

func lowerHeaviside(l *Lowering) *ssa.Value {
	vs, d := l.promoted("self", "values")
	x, v := vs[0], vs[1]
	if d == tensor.Bool {
		return l.Or(x, v)
	}
	return l.Where(l.isZero(x), v, l.Cast(l.Greater(x, l.Like(x, 0)), d))
}

// xlogy is x * log(y); 0 * log(0) is 0 and NaN in y is kept.
func (l *Lowering) xlogy(log func(*ssa.Value) *ssa.Value) *ssa.Value {
	d := l.floatType("self", "other")
	x, y := l.as("self", computing(d)), l.as("other", computing(d))
	v := l.Mul(x, log(y))
	return l.Cast(l.Where(l.And(l.isZero(x), l.Not(l.isNaN(y))), l.Like(x, 0), v), d)
}

// lowerLogaddexp works in the base exp(unit).
func (l *Lowering) lowerLogaddexp(unit float64) *ssa.Value {
	d := l.floatType("self", "other")
	return l.Cast(l.logaddexp(l.as("self", computing(d)), l.as("other", computing(d)), unit), d)
}

// logaddexp is max(a, b) + log(1 + exp(-|a - b|)); equal infinities have no difference.
func (l *Lowering) logaddexp(a, b *ssa.Value, unit float64) *ssa.Value {
	big := l.max(a, b)
	gap := l.neg(l.abs(l.Sub(a, b)))
	s := l.scale(l.log1p(l.Exp(l.scale(gap, unit))), 1/unit)
	return l.Where(l.And(l.Equal(a, b), l.IsInf(a)), a, l.Add(big, s))
}

func lowerGcd(l *Lowering) *ssa.Value {
	a, b, d := l.pair()
	if d == tensor.Bool {
		l.Fail("gcd of bool")
	}
	return l.gcd(a, b)
}

// gcd runs Euclid's algorithm in a loop until all remainders are 0.
func (l *Lowering) gcd(a, b *ssa.Value) *ssa.Value {
	a, b = l.broadcast(l.abs(a), l.abs(b))
	more := func(r *ssa.Value) *ssa.Value { return l.anyTrue(l.Not(l.isZero(r)), nil, false) }
	vs := l.loop(more(b), []*ssa.Value{a, b}, func(vs []*ssa.Value) (*ssa.Value, []*ssa.Value) {
		x, y := vs[0], vs[1]
		done := l.isZero(y)
		// Mod by 0 is an error in runtimes, so finished pairs divide by 1
		r := l.Mod(x, l.Where(done, l.Like(y, 1), y))
		nx, ny := l.Where(done, x, y), l.Where(done, y, r)
		return more(ny), []*ssa.Value{nx, ny}
	})
	return vs[0]
}

func lowerLcm(l *Lowering) *ssa.Value {
	a, b, d := l.pair()
	if d.Size() < 4 { // C computes these in int
		a, b = l.Cast(a, tensor.Int32), l.Cast(b, tensor.Int32)
	}
	g := l.gcd(a, b)
	none := l.isZero(g)
	return l.Cast(l.abs(l.Mul(l.Div(a, l.Where(none, l.Like(g, 1), g)), b)), d)
}

// loop builds an onnx::Loop that runs while a condition holds. The carried
// values keep their types; the body is built by f at the loop's block.
func (l *Lowering) loop(cond *ssa.Value, init []*ssa.Value, f func(vs []*ssa.Value) (*ssa.Value, []*ssa.Value)) []*ssa.Value {
	types := make([]ssa.Type, len(init))
	for i, v := range init {
		types[i] = v.Type
	}
	o := l.Block.InsertBefore(l.Before, "onnx::Loop", l.Loc, append([]*ssa.Value{l.scalarInt(tensor.Int64, math.MaxInt64), cond}, init...), types...)
	body := o.AddBlock()
	body.AddParam("", ssa.Tensor(tensor.Int64))
	body.AddParam("", ssa.Tensor(tensor.Bool))
	vs := make([]*ssa.Value, len(init))
	for i, v := range init {
		vs[i] = body.AddParam("", v.Type)
	}
	block, before := l.Block, l.Before
	l.Block, l.Before = body, nil
	again, next := f(vs)
	l.Block, l.Before = block, before
	body.SetReturns(append([]*ssa.Value{again}, next...)...)
	return o.Results
}
