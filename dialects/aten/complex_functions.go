package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// The functions below are rules of rows ([Def.Complex]).

func complexAdd(l *Lowering) *ssa.Value { return l.complexSum(1) }

func complexSub(l *Lowering) *ssa.Value { return l.complexSum(-1) }

func complexUnequal(l *Lowering) *ssa.Value { return l.Not(l.complexEqual()) }

func complexRsqrt(l *Lowering) *ssa.Value { return l.Aten("aten::reciprocal", complexSqrt(l)) }

func complexSigmoid(l *Lowering) *ssa.Value { return l.Aten("aten::reciprocal", l.onePlusExpNeg()) }

func complexSilu(l *Lowering) *ssa.Value {
	return l.Aten("aten::div.Tensor", l.Tensor("self"), l.onePlusExpNeg())
}

func complexLdexp(l *Lowering) *ssa.Value {
	power := l.Tensor("other")
	if !l.DType(power).IsComplex() {
		power = l.Cast(power, tensor.Float32)
	}
	return l.Aten("aten::mul.Tensor", l.Tensor("self"), l.Aten("aten::exp2", power))
}

func complexFloatPower(l *Lowering) *ssa.Value { return l.Cast(complexPow(l), tensor.Complex128) }

func complexStd(l *Lowering) *ssa.Value { return l.Sqrt(l.varianceAs("var")) }

func complexIsReal(l *Lowering) *ssa.Value {
	_, im := l.Parts(l.Tensor("self"))
	return l.Equal(im, l.Like(im, 0))
}

// addScaledPair is of addcmul and addcdiv, by the operator that joins their tensors.
func addScaledPair(join string) func(l *Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		return l.addScaled(l.Tensor("self"), l.Aten(join, l.Tensor("tensor1"), l.Tensor("tensor2")), l.Literal("value"))
	}
}

func complexVdot(l *Lowering) *ssa.Value {
	return l.Aten("aten::dot", l.Aten("aten::conj", l.Tensor("self")), l.Tensor("other"))
}

func complexVecdot(l *Lowering) *ssa.Value {
	p := l.Aten("aten::mul.Tensor", l.Aten("aten::conj", l.Tensor("x")), l.Tensor("y"))
	return l.Aten("aten::sum.dim_IntList", p, []int64{l.Int("dim")}, false)
}

func complexDist(l *Lowering) *ssa.Value {
	return l.Aten("aten::linalg_vector_norm", l.Aten("aten::sub.Tensor", l.Tensor("self"), l.Tensor("other")), l.Literal("p"))
}

func complexPairwiseDistance(l *Lowering) *ssa.Value {
	apart := l.Aten("aten::sub.Tensor", l.Tensor("x1"), l.Tensor("x2"))
	return l.Aten("aten::linalg_vector_norm", l.Aten("aten::add.Scalar", apart, l.Float("eps")), l.Literal("p"), []int64{-1}, l.Bool("keepdim"))
}

// ofNonzero is of operators that ask whether a number is zero.
func ofNonzero(l *Lowering) []*ssa.Value {
	return l.onReal(nil, func(v *ssa.Value) *ssa.Value {
		re, im := l.Parts(v)
		return l.Not(l.And(l.Equal(re, l.Like(re, 0)), l.Equal(im, l.Like(im, 0))))
	})
}

// inDouble computes a function of the argument's parts in double precision: formulas that cancel are right to the digits of float32.
func (l *Lowering) inDouble(f func(a, b *ssa.Value) (re, im *ssa.Value)) *ssa.Value {
	a, b := l.Parts(l.Tensor("self"))
	d := l.DType(a)
	re, im := f(l.Cast(a, tensor.Float64), l.Cast(b, tensor.Float64))
	return l.Pair(l.Cast(re, d), l.Cast(im, d))
}

// complexSinh is sinh(a) cos(b) + i cosh(a) sin(b).
func complexSinh(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	return l.Pair(l.Mul(l.Sinh(a), l.Cos(b)), l.Mul(l.Cosh(a), l.Sin(b)))
}

// complexCosh is cosh(a) cos(b) + i sinh(a) sin(b).
func complexCosh(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	return l.Pair(l.Mul(l.Cosh(a), l.Cos(b)), l.Mul(l.Sinh(a), l.Sin(b)))
}

// complexTan is -i tanh(iz).
func complexTan(l *Lowering) *ssa.Value {
	tanh := func(a, b *ssa.Value) (re, im *ssa.Value) { return l.parts(l.Aten("aten::tanh", l.Pair(a, b))) }
	return l.Pair(l.turned(tanh)(l.parts(l.Tensor("self"))))
}

// turned is -i f(iz).
func (l *Lowering) turned(f func(a, b *ssa.Value) (re, im *ssa.Value)) func(a, b *ssa.Value) (re, im *ssa.Value) {
	return func(a, b *ssa.Value) (re, im *ssa.Value) {
		p, q := f(l.Neg(b), a)
		return q, l.Neg(p)
	}
}

// root is the square root in parts, without cancellation on either side of the imaginary axis.
func (l *Lowering) root(a, b *ssa.Value) (re, im *ssa.Value) {
	zero := l.Like(a, 0)
	r := l.Sqrt(l.Add(l.Mul(a, a), l.Mul(b, b)))
	t := l.Sqrt(l.scale(l.Add(r, l.Abs(a)), 0.5))
	small := l.Div(l.Abs(b), l.Where(l.Equal(t, zero), l.Like(a, 1), l.scale(t, 2)))
	right := l.GreaterOrEqual(a, zero)
	size := l.Where(right, small, t)
	// the sign of the imaginary part, that of zero too, which only a division shows
	below := l.Or(l.Less(b, zero), l.And(l.Equal(b, zero), l.Less(l.Reciprocal(b), zero)))
	return l.Where(right, t, small), l.Where(below, l.Neg(size), size)
}

// asin is the arc sine in parts: atan(a / Re(√(1-z) √(1+z))) + i asinh(Im(conj(√(1-z)) √(1+z))).
func (l *Lowering) asin(a, b *ssa.Value) (re, im *ssa.Value) {
	one := l.Like(a, 1)
	p, q := l.root(l.Sub(one, a), l.Neg(b))
	r, s := l.root(l.Add(one, a), b)
	re = l.Aten("aten::atan2", a, l.Sub(l.Mul(p, r), l.Mul(q, s)))
	return re, l.Aten("aten::asinh", l.Sub(l.Mul(p, s), l.Mul(q, r)))
}

func complexAsin(l *Lowering) *ssa.Value { return l.inDouble(l.asin) }

// complexAsinh is -i asin(iz).
func complexAsinh(l *Lowering) *ssa.Value {
	return l.inDouble(l.turned(l.asin))
}

// complexAcos is 2 atan(Re √(1-z) / Re √(1+z)) + i asinh(Im(conj(√(1+z)) √(1-z))).
func complexAcos(l *Lowering) *ssa.Value {
	return l.inDouble(func(a, b *ssa.Value) (re, im *ssa.Value) {
		one := l.Like(a, 1)
		p, q := l.root(l.Sub(one, a), l.Neg(b))
		r, s := l.root(l.Add(one, a), b)
		return l.scale(l.Aten("aten::atan2", p, r), 2), l.Aten("aten::asinh", l.Sub(l.Mul(r, q), l.Mul(s, p)))
	})
}

// complexAcosh is asinh(Re(conj(√(z-1)) √(z+1))) + 2i atan(Im √(z-1) / Re √(z+1)).
func complexAcosh(l *Lowering) *ssa.Value {
	return l.inDouble(func(a, b *ssa.Value) (re, im *ssa.Value) {
		one := l.Like(a, 1)
		p, q := l.root(l.Sub(a, one), b)
		r, s := l.root(l.Add(a, one), b)
		return l.Aten("aten::asinh", l.Add(l.Mul(p, r), l.Mul(q, s))), l.scale(l.Aten("aten::atan2", q, r), 2)
	})
}

// atanh is the area tangent in parts: log1p(4a / ((1-a)² + b²)) / 4 + i atan2(2b, (1-a)(1+a) - b²) / 2.
func (l *Lowering) atanh(a, b *ssa.Value) (re, im *ssa.Value) {
	one := l.Like(a, 1)
	less := l.Sub(one, a)
	by := l.Add(l.Mul(less, less), l.Mul(b, b))
	re = l.scale(l.Aten("aten::log1p", l.Div(l.scale(a, 4), by)), 0.25)
	return re, l.scale(l.Aten("aten::atan2", l.scale(b, 2), l.Sub(l.Mul(less, l.Add(one, a)), l.Mul(b, b))), 0.5)
}

func complexAtanh(l *Lowering) *ssa.Value { return l.inDouble(l.atanh) }

// complexAtan is -i atanh(iz).
func complexAtan(l *Lowering) *ssa.Value {
	return l.inDouble(l.turned(l.atanh))
}

// complexLog1p is log1p(2a + a² + b²) / 2 + i atan2(b, 1 + a).
func complexLog1p(l *Lowering) *ssa.Value {
	return l.inDouble(func(a, b *ssa.Value) (re, im *ssa.Value) {
		sum := l.Add(l.Mul(a, l.Add(l.Like(a, 2), a)), l.Mul(b, b))
		return l.scale(l.Aten("aten::log1p", sum), 0.5), l.Aten("aten::atan2", b, l.Add(l.Like(a, 1), a))
	})
}

// complexExpm1 is expm1(a) cos(b) - 2 sin²(b/2) + i exp(a) sin(b).
func complexExpm1(l *Lowering) *ssa.Value {
	return l.inDouble(func(a, b *ssa.Value) (re, im *ssa.Value) {
		half := l.Sin(l.scale(b, 0.5))
		re = l.Sub(l.Mul(l.Aten("aten::expm1", a), l.Cos(b)), l.scale(l.Mul(half, half), 2))
		return re, l.Mul(l.Exp(a), l.Sin(b))
	})
}

// complexLogTo is the logarithm to the base whose own one is given.
func complexLogTo(ln float64) func(l *Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		re, im := l.parts(complexLog(l))
		return l.Pair(l.scale(re, 1/ln), l.scale(im, 1/ln))
	}
}

// complexExp2 is exp(z ln 2).
func complexExp2(l *Lowering) *ssa.Value {
	return l.inDouble(func(a, b *ssa.Value) (re, im *ssa.Value) {
		r, angle := l.Exp(l.scale(a, math.Ln2)), l.scale(b, math.Ln2)
		return l.Mul(r, l.Cos(angle)), l.Mul(r, l.Sin(angle))
	})
}

// onePlusExpNeg is 1 + exp(-z).
func (l *Lowering) onePlusExpNeg() *ssa.Value {
	return l.Aten("aten::add.Scalar", l.Aten("aten::exp", l.Aten("aten::neg", l.Tensor("self"))), 1)
}

// polar are the lengths and the angles of the argument, in double precision.
func (l *Lowering) polar() (length, angle *ssa.Value) {
	a, b := l.Parts(l.Tensor("self"))
	a, b = l.Cast(a, tensor.Float64), l.Cast(b, tensor.Float64)
	return l.Sqrt(l.Add(l.Mul(a, a), l.Mul(b, b))), l.Aten("aten::atan2", b, a)
}

// fromPolar is the number of a length and an angle, in the type of the parts of the result.
func (l *Lowering) fromPolar(length, angle *ssa.Value) *ssa.Value {
	d := l.complexType("self")
	if t := l.DTypeArg("dtype"); t != tensor.Undefined {
		d = RealOf(t)
	}
	return l.Pair(l.Cast(l.Mul(length, l.Cos(angle)), d), l.Cast(l.Mul(length, l.Sin(angle)), d))
}

// complexProd has the product of the lengths and the sum of the angles.
func complexProd(l *Lowering) *ssa.Value {
	r, angle := l.polar()
	if !l.HasArg("dim") {
		return l.fromPolar(l.Aten("aten::prod", r), l.Aten("aten::sum", angle))
	}
	dim, keep := l.Int("dim"), l.Bool("keepdim")
	return l.fromPolar(l.Aten("aten::prod.dim_int", r, dim, keep), l.Aten("aten::sum.dim_IntList", angle, []int64{dim}, keep))
}

func complexCumprod(l *Lowering) *ssa.Value {
	r, angle := l.polar()
	return l.fromPolar(l.Aten("aten::cumprod", r, l.Int("dim")), l.Aten("aten::cumsum", angle, l.Int("dim")))
}

// complexLogSumExp takes the greatest real part out of the sum.
func complexLogSumExp(l *Lowering) *ssa.Value {
	z := l.Tensor("self")
	dims := l.Ints("dim")
	re, _ := l.parts(z)
	most := l.finite(l.Aten("aten::amax", re, dims, true))
	sum := l.Aten("aten::sum.dim_IntList", l.Aten("aten::exp", l.Aten("aten::sub.Tensor", z, most)), dims, true)
	y := l.Aten("aten::add.Tensor", l.Aten("aten::log", sum), most)
	if !l.Bool("keepdim") {
		y = l.Aten("aten::squeeze.dims", y, dims)
	}
	return y
}

// finite has 0 where a number is not finite: what is taken out of a sum of exponentials.
func (l *Lowering) finite(v *ssa.Value) *ssa.Value {
	return l.Where(l.Aten("aten::isfinite", v), v, l.Like(v, 0))
}

// complexLogAddExp is z + log1p(exp(w - z)), where z has the greater real part: its angle is not brought back between -π and π.
func complexLogAddExp(l *Lowering) *ssa.Value {
	x, y := l.Tensor("self"), l.Tensor("other")
	a, _ := l.parts(x)
	b, _ := l.parts(y)
	less := l.Less(a, b)
	z, w := l.Aten("aten::where.self", less, y, x), l.Aten("aten::where.self", less, x, y)
	return l.Aten("aten::add.Tensor", z, l.Aten("aten::log1p", l.Aten("aten::exp", l.Aten("aten::sub.Tensor", w, z))))
}

// complexSinc is sin(πz) / πz, and 1 at 0.
func complexSinc(l *Lowering) *ssa.Value {
	z := l.Tensor("self")
	a, b := l.Parts(z)
	zero := l.And(l.Equal(a, l.Like(a, 0)), l.Equal(b, l.Like(b, 0)))
	a = l.Where(zero, l.Like(a, 0.5), a) // any other number
	w := l.Pair(l.scale(a, math.Pi), l.scale(b, math.Pi))
	re, im := l.parts(l.Aten("aten::div.Tensor", l.Aten("aten::sin", w), w))
	return l.Pair(l.Where(zero, l.Like(re, 1), re), l.Where(zero, l.Like(im, 0), im))
}

// overloadSuffix is the overload in a schema's full name.
func overloadSuffix(s *ssa.Schema) string {
	if s == nil || s.Overload == "" {
		return ""
	}
	return "." + s.Overload
}

// varianceAs is the variance of the real parts and that of the imaginary ones, by the form of var that the op at hand has.
func (l *Lowering) varianceAs(name string) *ssa.Value {
	overload := overloadSuffix(l.Node.Schema)
	s := SchemaByName("aten::" + name + overload)
	if s == nil {
		l.Fail("no %s with the arguments of %s", name, l.Node.Kind)
	}
	of := func(v *ssa.Value) *ssa.Value { return l.Aten("aten::"+name+overload, l.argumentsFor(s, v, nil)...) }
	re, im := l.Parts(l.Tensor("self"))
	return l.Add(of(re), of(im))
}

func complexVar(l *Lowering) *ssa.Value { return l.varianceAs("var") }

func (l *Lowering) complexVarMean(root bool) []*ssa.Value {
	v := l.varianceAs("var")
	if root {
		v = l.Sqrt(v)
	}
	z := l.Tensor("self")
	if !l.HasArg("dim") || l.IsNone("dim") {
		return []*ssa.Value{v, l.Aten("aten::mean", z)}
	}
	return []*ssa.Value{v, l.Aten("aten::mean.dim", z, l.Ints("dim"), l.Bool("keepdim"))}
}

// complexIsClose is |x - y| <= atol + rtol |y|, or x = y.
func complexIsClose(l *Lowering) *ssa.Value {
	x, y := l.Tensor("self"), l.Tensor("other")
	apart := l.Aten("aten::abs", l.Aten("aten::sub.Tensor", x, y))
	size := l.Aten("aten::abs", y)
	bound := l.Add(l.scale(size, l.Float("rtol")), l.Like(size, l.Float("atol")))
	near := l.And(l.LessOrEqual(apart, bound), l.Aten("aten::isfinite", x))
	near = l.Or(near, l.complexEqual())
	if l.Bool("equal_nan") {
		near = l.Or(near, l.And(l.Aten("aten::isnan", x), l.Aten("aten::isnan", y)))
	}
	return near
}

// complexL1Loss is of the lengths of the differences.
func complexL1Loss(l *Lowering) *ssa.Value {
	apart := l.Aten("aten::abs", l.Aten("aten::sub.Tensor", l.Tensor("self"), l.Tensor("target")))
	switch l.Int("reduction") {
	case 1:
		return l.Aten("aten::mean", apart)
	case 2:
		return l.Aten("aten::sum", apart)
	}
	return apart
}

// addScaled is z + k w.
func (l *Lowering) addScaled(z, w *ssa.Value, k ssa.Literal) *ssa.Value {
	if k.IsNumber() && k.Complex() != 1 {
		w = l.Aten("aten::mul.Scalar", w, k)
	}
	return l.Aten("aten::add.Tensor", z, w)
}

// addProduct is beta self + alpha a b, for addbmm of the sum over the batch; where beta is 0, self is not read.
func addProduct(product, a, b string) func(l *Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		p := l.Aten(product, l.Tensor(a), l.Tensor(b))
		if l.Node.Kind.Name() == "addbmm" {
			p = l.Aten("aten::sum.dim_IntList", p, []int64{0}, false)
		}
		alpha, beta := l.Literal("alpha"), l.Literal("beta")
		if alpha.IsNumber() && alpha.Complex() != 1 {
			p = l.Aten("aten::mul.Scalar", p, alpha)
		}
		if beta.IsNumber() && beta.Complex() == 0 {
			return p
		}
		return l.addScaled(p, l.Tensor("self"), beta)
	}
}

// complexLerp is start + weight (end - start).
func complexLerp(l *Lowering) *ssa.Value {
	start := l.Tensor("self")
	way := l.Aten("aten::sub.Tensor", l.Tensor("end"), start)
	if w := l.Arg("weight"); w.Tensor() == nil {
		return l.addScaled(start, way, l.Literal("weight"))
	}
	return l.Aten("aten::add.Tensor", start, l.Aten("aten::mul.Tensor", way, l.Tensor("weight")))
}
