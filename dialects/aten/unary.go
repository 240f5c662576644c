package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// unary holds the functions of one number (ATen/native/UnaryOps.cpp). The
// forms on Python numbers, aten::sqrt.float(float a), share the entries.
var unary = Defs{
	"aten::exp":            {Doc: "e to the power x", Gradient: "self: grad * result", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexExp), Type: asFloats, Lower: floatOp((*Lowering).Exp)},
	"aten::log":            {Doc: "natural logarithm", Gradient: "self: grad / self", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexLog), Type: asFloats, Lower: lowerLog},
	"aten::sqrt":           {Doc: "square root", Gradient: "self: grad / (result * 2)", Nature: Pointwise, Prim: true, Complex: one(complexSqrt), Type: asFloats, Lower: floatOp((*Lowering).Sqrt)},
	"aten::sin":            {Doc: "sine", Gradient: "self: grad * cos(self)", Nature: Pointwise, Prim: true, Complex: one(complexSin), Type: asFloats, Lower: floatOp((*Lowering).Sin)},
	"aten::cos":            {Doc: "cosine", Gradient: "self: grad * -sin(self)", Nature: Pointwise, Prim: true, Complex: one(complexCos), Type: asFloats, Lower: floatOp((*Lowering).Cos)},
	"aten::tan":            {Doc: "tangent", Gradient: "self: grad * (pow(result, 2) + 1)", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexTan), Type: asFloats, Lower: floatOp((*Lowering).Tan)},
	"aten::asin":           {Doc: "inverse sine", Gradient: "self: grad * rsqrt(1 - self * self)", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexAsin), Type: asFloats, Lower: floatOp((*Lowering).Asin)},
	"aten::acos":           {Doc: "inverse cosine", Gradient: "self: grad * -rsqrt(1 - self * self)", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexAcos), Type: asFloats, Lower: floatOp((*Lowering).Acos)},
	"aten::atan":           {Doc: "inverse tangent", Gradient: "self: grad / (self * self + 1)", Nature: Pointwise, Prim: true, Complex: one(complexAtan), Type: asFloats, Lower: floatOp((*Lowering).Atan)},
	"aten::sinh":           {Doc: "hyperbolic sine", Gradient: "self: grad * cosh(self)", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexSinh), Type: asFloats, Lower: floatOp((*Lowering).Sinh)},
	"aten::cosh":           {Doc: "hyperbolic cosine", Gradient: "self: grad * sinh(self)", Nature: Pointwise, Prim: true, Autocast: Float32OnCUDA, Complex: one(complexCosh), Type: asFloats, Lower: floatOp((*Lowering).Cosh)},
	"aten::asinh":          {Doc: "inverse hyperbolic sine", Gradient: "self: grad * rsqrt(self * self + 1)", Nature: Pointwise, Prim: true, Complex: one(complexAsinh), Type: asFloats, Lower: floatOp((*Lowering).Asinh)},
	"aten::acosh":          {Doc: "inverse hyperbolic cosine", Gradient: "self: grad * rsqrt(self * self - 1)", Nature: Pointwise, Prim: true, Complex: one(complexAcosh), Type: asFloats, Lower: floatOp((*Lowering).Acosh)},
	"aten::atanh":          {Doc: "inverse hyperbolic tangent", Gradient: "self: grad / (1 - self * self)", Nature: Pointwise, Prim: true, Complex: one(complexAtanh), Type: asFloats, Lower: floatOp((*Lowering).Atanh)},
	"aten::arcsin":         {Doc: "inverse sine", Nature: Pointwise, Alias: "aten::asin", Type: asFloats, Lower: floatOp((*Lowering).Asin)},
	"aten::arccos":         {Doc: "inverse cosine", Nature: Pointwise, Alias: "aten::acos", Type: asFloats, Lower: floatOp((*Lowering).Acos)},
	"aten::arctan":         {Doc: "inverse tangent", Nature: Pointwise, Alias: "aten::atan", Type: asFloats, Lower: floatOp((*Lowering).Atan)},
	"aten::arcsinh":        {Doc: "inverse hyperbolic sine", Nature: Pointwise, Alias: "aten::asinh", Type: asFloats, Lower: floatOp((*Lowering).Asinh)},
	"aten::arccosh":        {Doc: "inverse hyperbolic cosine", Nature: Pointwise, Alias: "aten::acosh", Type: asFloats, Lower: floatOp((*Lowering).Acosh)},
	"aten::arctanh":        {Doc: "inverse hyperbolic tangent", Nature: Pointwise, Alias: "aten::atanh", Type: asFloats, Lower: floatOp((*Lowering).Atanh)},
	"aten::erf":            {Doc: "error function", Gradient: "self: grad * (exp(-(self * self)) * 1.1283791670955126)", Nature: Pointwise, Prim: true, Type: asFloats, Lower: floatOp((*Lowering).Erf)},
	"aten::special_erf":    {Doc: "error function", Nature: Pointwise, Alias: "aten::erf", Type: asFloats, Lower: floatOp((*Lowering).Erf)},
	"aten::special_expit":  {Doc: "1 / (1 + exp(-x))", Nature: Pointwise, Alias: "aten::sigmoid", Type: asFloats, Lower: floatOp((*Lowering).Sigmoid)},
	"aten::reciprocal":     {Doc: "1 / x", Gradient: "self: -grad * (result * result)", Nature: Pointwise, Autocast: Float32OnCUDA, Complex: one(complexReciprocal), Type: asFloats, Lower: floatOp((*Lowering).Reciprocal)},
	"aten::rsqrt":          {Doc: "1 / sqrt(x)", Gradient: "self: grad * pow(result, 3) * -0.5", Nature: Pointwise, Autocast: Float32OnCUDA, Complex: one(complexRsqrt), Type: asFloats, Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.Reciprocal(l.Sqrt(x)) })},
	"aten::exp2":           {Doc: "2 to the power x", Gradient: "self: grad * result * 0.6931471805599453", Nature: Pointwise, Complex: one(complexExp2), Type: asFloats, Lower: floatUnary((*Lowering).exp2)},
	"aten::special_exp2":   {Doc: "2 to the power x", Nature: Pointwise, Alias: "aten::exp2", Type: asFloats, Lower: floatUnary((*Lowering).exp2)},
	"aten::expm1":          {Doc: "exp(x) - 1, exact near 0", Gradient: "self: grad * (result + 1)", Nature: Pointwise, Autocast: Float32OnCUDA, Complex: one(complexExpm1), Type: asFloats, Lower: floatUnary((*Lowering).expm1)},
	"aten::special_expm1":  {Doc: "exp(x) - 1, exact near 0", Nature: Pointwise, Alias: "aten::expm1", Type: asFloats, Lower: floatUnary((*Lowering).expm1)},
	"aten::log1p":          {Doc: "log(1 + x), exact near 0", Gradient: "self: grad / (self + 1)", Nature: Pointwise, Autocast: Float32OnCUDA, Complex: one(complexLog1p), Type: asFloats, Lower: floatUnary((*Lowering).log1p)},
	"aten::special_log1p":  {Doc: "log(1 + x), exact near 0", Nature: Pointwise, Alias: "aten::log1p", Type: asFloats, Lower: floatUnary((*Lowering).log1p)},
	"aten::log2":           {Doc: "logarithm of base 2", Gradient: "self: grad / (self * 0.6931471805599453)", Nature: Pointwise, Autocast: Float32OnCUDA, Complex: one(complexLogTo(math.Ln2)), Type: asFloats, Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.scale(l.Log(x), 1/math.Ln2) })},
	"aten::log10":          {Doc: "logarithm of base 10", Gradient: "self: grad / (self * 2.302585092994046)", Nature: Pointwise, Autocast: Float32OnCUDA, Complex: one(complexLogTo(math.Ln10)), Type: asFloats, Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.scale(l.Log(x), 1/math.Ln10) })},
	"aten::deg2rad":        {Doc: "degrees to radians", Gradient: "self: grad * 0.017453292519943295", Nature: Pointwise, Type: asFloats, Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.scale(x, math.Pi/180) })},
	"aten::rad2deg":        {Doc: "radians to degrees", Gradient: "self: grad * 57.29577951308232", Nature: Pointwise, Type: asFloats, Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.scale(x, 180/math.Pi) })},
	"aten::sinc":           {Doc: "sin(pi x) / (pi x), 1 at 0", Gradient: "self: grad * masked_fill((cos(self * 3.141592653589793) * (self * 3.141592653589793) - sin(self * 3.141592653589793)) / (self * self * 3.141592653589793), eq(self * self * 3.141592653589793, 0), 0)", Nature: Pointwise, Complex: one(complexSinc), Type: asFloats, Lower: floatUnary((*Lowering).sinc)},
	"aten::special_sinc":   {Doc: "sin(pi x) / (pi x), 1 at 0", Nature: Pointwise, Alias: "aten::sinc", Type: asFloats, Lower: floatUnary((*Lowering).sinc)},
	"aten::logit":          {Doc: "log(x / (1 - x)), x clamped to [eps, 1 - eps]", Nature: Pointwise, Type: asFloats, Lower: lowerLogit},
	"aten::special_logit":  {Doc: "log(x / (1 - x)), x clamped to [eps, 1 - eps]", Nature: Pointwise, Alias: "aten::logit", Type: asFloats, Lower: lowerLogit},
	"aten::abs":            {Doc: "absolute value", Gradient: "self: grad * sgn(self)", Nature: Pointwise, Idempotent: true, Prim: true, Complex: one(complexAbs), Type: likeNumbers, Lower: func(l *Lowering) *ssa.Value { return l.abs(l.Tensor("self")) }},
	"aten::absolute":       {Doc: "absolute value", Nature: Pointwise, Alias: "aten::abs", Type: likeNumbers, Lower: func(l *Lowering) *ssa.Value { return l.abs(l.Tensor("self")) }},
	"aten::neg":            {Doc: "-x", Gradient: "self: -grad", Nature: Pointwise, Prim: true, Complex: (*Lowering).complexParts, Type: likeNumbers, Lower: lowerNeg},
	"aten::negative":       {Doc: "-x", Gradient: "self: -grad", Nature: Pointwise, Alias: "aten::neg", Complex: (*Lowering).complexParts, Type: likeNumbers, Lower: lowerNeg},
	"aten::positive":       {Doc: "x", Gradient: "self: grad", Nature: Pointwise, View: ViewIfUnchanged, Complex: (*Lowering).complexParts, Type: likeNumbers, Lower: func(l *Lowering) *ssa.Value { return l.Tensor("self") }},
	"aten::sign":           {Doc: "-1, 0 or 1", Gradient: NoGradient, Nature: Pointwise, Idempotent: true, Type: likeNumbers, Lower: lowerSign},
	"aten::sgn":            {Doc: "-1, 0 or 1", Gradient: NoGradient, Nature: Pointwise, Complex: one(complexSgn), Type: likeNumbers, Lower: lowerSign},
	"aten::square":         {Doc: "x * x", Gradient: "self: grad * (self * 2)", Nature: Pointwise, Complex: one((*Lowering).complexSquare), Type: likeNumbers, Lower: lowerSquare},
	"aten::ceil":           {Doc: "the least integer not below x", Gradient: NoGradient, Nature: Pointwise, Idempotent: true, Prim: true, Type: likeNumbers, Lower: rounding("Ceil")},
	"aten::floor":          {Doc: "the greatest integer not above x", Gradient: NoGradient, Nature: Pointwise, Idempotent: true, Prim: true, Type: likeNumbers, Lower: rounding("Floor")},
	"aten::trunc":          {Doc: "x without its fraction", Gradient: NoGradient, Nature: Pointwise, Idempotent: true, Type: likeNumbers, Lower: lowerTrunc},
	"aten::fix":            {Doc: "x without its fraction", Nature: Pointwise, Alias: "aten::trunc", Type: likeNumbers, Lower: lowerTrunc},
	"aten::frac":           {Doc: "the fraction of x, with its sign", Gradient: "self: grad", Nature: Pointwise, Type: likeNumbers, Lower: func(l *Lowering) *ssa.Value { x := l.Tensor("self"); return l.Sub(x, l.trunc(x)) }},
	"aten::round":          {Doc: "the nearest integer, or the nearest number of so many decimals; halves go to even", Gradient: NoGradient, Nature: Pointwise, Idempotent: true, Prim: true, Lower: lowerRound},
	"aten::special_round":  {Doc: "the nearest integer, or the nearest number of so many decimals; halves go to even", Nature: Pointwise, Alias: "aten::round", Lower: lowerRound},
	"aten::nan_to_num":     {Doc: "NaN and infinities replaced", Gradient: "self: grad * isfinite(self)", Nature: Pointwise, Idempotent: true, Complex: (*Lowering).complexParts, Lower: lowerNanToNum},
	"aten::angle":          {Doc: "0 for positive numbers, pi for negative ones", Nature: Pointwise, Complex: one(complexAngle), Lower: lowerAngle},
	"aten::frexp":          {Doc: "mantissa in [0.5, 1) and exponent of base 2", Batching: BatchesInFront, LowerN: lowerFrexp},
	"aten::real":           {Doc: "the real part", Batching: BatchesInFront, View: ViewIfUnchanged, Layout: AnyLayout, TakesComplex: true, Lower: lowerReal},
	"aten::conj":           {Doc: "the complex conjugate", Batching: BatchesInFront, Complex: one(complexConj), Lower: lowerReal},
	"aten::_conj":          {Doc: "the complex conjugate", Complex: one(complexConj), Lower: lowerReal},
	"aten::conj_physical":  {Doc: "the complex conjugate", Batching: BatchesInFront, Complex: one(complexConj), Lower: lowerReal},
	"aten::_conj_physical": {Doc: "the complex conjugate", Complex: one(complexConj), Lower: lowerReal},
	"aten::resolve_conj":   {Doc: "x", Nature: Identity, View: ViewIfUnchanged, Lower: lowerReal},
	"aten::resolve_neg":    {Doc: "x", Nature: Identity, View: ViewIfUnchanged, Lower: lowerReal},
	"aten::_neg_view":      {Doc: "-x", Lower: lowerNeg},
}

// operand is the argument of a function of one number as a float: self of
// tensors, a of Python numbers.
func (l *Lowering) operand() *ssa.Value {
	if l.HasArg("a") {
		return l.Cast(l.Tensor("a"), tensor.Float64)
	}
	for _, name := range [...]string{"self", "input", "x"} {
		if l.HasArg(name) {
			return l.FloatArg(name)
		}
	}
	l.Fail("an overload without an operand self")
	return nil
}

// floatOp lowers to one ONNX operator on floats; integers become float32.
func floatOp(op func(*Lowering, *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value { return op(l, l.operand()) }
}

// floatUnary is floatOp for a formula.
func floatUnary(f func(*Lowering, *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x, back := l.widen(l.operand())
		return back(f(l, x))
	}
}

func lowerLog(l *Lowering) *ssa.Value {
	if l.numbers() { // math.log(a, base)
		return l.Div(l.Log(l.Cast(l.Tensor("a"), tensor.Float64)), l.Log(l.Cast(l.Tensor("b"), tensor.Float64)))
	}
	return l.Log(l.operand())
}

func (l *Lowering) exp2(x *ssa.Value) *ssa.Value { return l.Pow(l.Like(x, 2), x) }

// expm1 uses tanh(x / 2) = (exp(x) - 1) / (exp(x) + 1), which cancels nothing.
func (l *Lowering) expm1(x *ssa.Value) *ssa.Value {
	return l.Mul(l.Tanh(l.scale(x, 0.5)), l.offset(l.Exp(x), 1))
}

// log1p corrects log(1 + x) for what the sum lost, to first order.
func (l *Lowering) log1p(x *ssa.Value) *ssa.Value {
	u := l.offset(x, 1)
	kept := l.offset(u, -1)
	y := l.Log(u)
	fixed := l.Sub(y, l.Div(l.Sub(kept, x), u))
	return l.Where(l.Equal(kept, x), y, fixed)
}

func (l *Lowering) sinc(x *ssa.Value) *ssa.Value {
	px := l.scale(x, math.Pi)
	return l.Where(l.isZero(x), l.Like(x, 1), l.Div(l.Sin(px), px))
}

func lowerLogit(l *Lowering) *ssa.Value {
	x, back := l.widen(l.operand())
	if !l.IsNone("eps") {
		eps := l.Number("eps")
		k, known := eps.Known()
		if !known || k >= 0 {
			lo, hi := l.LikeNumber(x, eps), l.LikeNumber(x, l.linearNumber(eps, -1, 1))
			if known && k <= 0.5 {
				x = l.min(l.max(x, lo), hi)
			} else {
				// bounds that cross: PyTorch asks about the lower one first
				inside := l.Where(l.Less(x, lo), lo, l.Where(l.Greater(x, hi), hi, x))
				if !known { // one below 0 stands for none
					inside = l.Where(l.Less(lo, l.Like(x, 0)), x, inside)
				}
				x = inside
			}
		}
	}
	return back(l.Log(l.Div(x, l.Sub(l.Like(x, 1), x))))
}

func lowerNeg(l *Lowering) *ssa.Value {
	if l.HasArg("a") {
		x := l.Tensor("a")
		if l.DType(x) == tensor.Bool {
			x = l.Cast(x, tensor.Int64)
		}
		return l.neg(x)
	}
	return l.neg(l.Tensor("self"))
}

func lowerSign(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if d := l.DType(x); d == tensor.Bool {
		return x
	}
	if l.DType(x).IsFloat() {
		return l.Where(l.isNaN(x), l.Like(x, 0), l.Sign(x)) // NaN is neither above nor below 0
	}
	return l.Sign(x)
}

func lowerSquare(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if l.DType(x) == tensor.Bool {
		x = l.Cast(x, tensor.Int64)
	}
	return l.square(x)
}

// rounding lowers floor and ceil: of a number to an int, of a tensor within its type.
func rounding(op string) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		name := "self"
		if l.HasArg("a") {
			name = "a"
		}
		x := l.Tensor(name)
		if l.DType(x).IsFloat() {
			x = l.Op(op, x)
		}
		if name == "a" && l.Node.Schema.Returns[0].Type != ssa.FloatType {
			return l.Cast(x, tensor.Int64)
		}
		return x
	}
}

// trunc drops the fraction of floats.
func (l *Lowering) trunc(x *ssa.Value) *ssa.Value {
	if !l.DType(x).IsFloat() {
		return x
	}
	// the sign of zero stays: where |x| < 1, Floor gives 0 and x itself is the sign; onnxruntime's Where would lose it
	return l.Mul(l.Floor(l.Abs(x)), l.Clip(x, l.Like(x, -1), l.Like(x, 1)))
}

func lowerTrunc(l *Lowering) *ssa.Value { return l.trunc(l.Tensor("self")) }

func lowerRound(l *Lowering) *ssa.Value {
	if l.HasArg("a") {
		return l.Round(l.Cast(l.Tensor("a"), tensor.Float64))
	}
	x := l.Tensor("self")
	if !l.DType(x).IsFloat() {
		return x
	}
	n := l.IntOr("decimals", 0)
	if n == 0 {
		return l.Round(x)
	}
	// as at::native::round_decimals: scaled by ten^|n|, multiplied or divided
	ten := l.Like(x, math.Pow10(int(max(n, -n))))
	if n > 0 {
		return l.Div(l.Round(l.Mul(x, ten)), ten)
	}
	return l.Mul(l.Round(l.Div(x, ten)), ten)
}

// greatest is the greatest finite number of a float type.
func greatest(d tensor.DType) float64 {
	switch d {
	case tensor.Float16:
		return 65504
	case tensor.BFloat16:
		return 3.3895313892515355e38
	case tensor.Float32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

func lowerNanToNum(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	if !d.IsFloat() {
		return x
	}
	y := l.Where(l.isNaN(x), l.LikeNumber(x, l.NumberOr("nan", 0)), x)
	pos := l.Equal(x, l.Like(x, math.Inf(1)))
	neg := l.Equal(x, l.Like(x, math.Inf(-1)))
	y = l.Where(pos, l.LikeNumber(x, l.NumberOr("posinf", greatest(d))), y)
	return l.Where(neg, l.LikeNumber(x, l.NumberOr("neginf", -greatest(d))), y)
}

func lowerAngle(l *Lowering) *ssa.Value {
	x := l.FloatArg("self")
	if l.DType(x).IsComplex() {
		l.Fail("complex numbers")
	}
	y := l.Where(l.isNegative(x), l.Like(x, math.Pi), l.Like(x, 0))
	return l.Where(l.isNaN(x), x, y)
}

func lowerReal(l *Lowering) *ssa.Value {
	re, _ := l.parts(l.Tensor("self"))
	return re
}

// lowerFrexp takes the exponent from log2 and mends it where rounding moved it over a power of 2.
func lowerFrexp(l *Lowering) []*ssa.Value {
	x := l.self()
	d := l.DType(x)
	if !d.IsFloat() {
		l.Fail("frexp of %v", d)
	}
	exponent := tensor.Int32
	if l.HasArg("a") {
		exponent = tensor.Int64
	}
	w := l.Cast(x, tensor.Float64)
	a := l.abs(w)
	special := l.Or(l.isZero(a), l.Or(l.IsInf(a), l.isNaN(a)))
	a = l.Where(special, l.Like(a, 1), a)
	e := l.Floor(l.scale(l.Log(a), 1/math.Ln2))
	e = l.offset(e, 1)
	// by two halves of the exponent, since the power itself may overflow
	scaled := func(v, e *ssa.Value) *ssa.Value {
		half := l.Floor(l.scale(e, 0.5))
		return l.Div(l.Div(v, l.exp2(half)), l.exp2(l.Sub(e, half)))
	}
	m := scaled(a, e)
	e = l.Add(e, l.Cast(l.GreaterOrEqual(m, l.Like(m, 1)), tensor.Float64))
	e = l.Sub(e, l.Cast(l.Less(m, l.Like(m, 0.5)), tensor.Float64))
	e = l.Where(special, l.Like(e, 0), e)
	return []*ssa.Value{
		l.Cast(l.Where(special, w, scaled(w, e)), d),
		l.Cast(e, exponent),
	}
}
