package aten

import (
	"math"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// special holds the error and gamma functions (torch.special). ONNX has erf
// only; the others are computed in float64: erfc and what is made of it to its precision, others to that of float32 or better.
var special = Defs{
	"aten::erfc":                 {Doc: "1 - erf(x) without cancellation", Gradient: "self: grad * (exp(-(self * self)) * -1.1283791670955126)", Nature: Pointwise, Lower: inDouble((*Lowering).erfc)},
	"aten::special_erfc":         {Doc: "1 - erf(x) without cancellation", Nature: Pointwise, Alias: "aten::erfc", Lower: inDouble((*Lowering).erfc)},
	"aten::special_erfcx":        {Doc: "exp(x^2) * erfc(x)", Gradient: "self: grad * (self * result * 2 - 1.1283791670955126)", Nature: Pointwise, Lower: inDouble((*Lowering).erfcx)},
	"aten::erfinv":               {Doc: "the inverse of erf", Gradient: "self: grad * (exp(result * result) * 0.8862269254527579)", Nature: Pointwise, Autocast: Float32OnCUDA, Lower: inDouble((*Lowering).erfinv)},
	"aten::special_erfinv":       {Doc: "the inverse of erf", Nature: Pointwise, Alias: "aten::erfinv", Lower: inDouble((*Lowering).erfinv)},
	"aten::special_ndtr":         {Doc: "the normal CDF", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.scale(l.erfc(l.scale(x, -math.Sqrt2/2)), 0.5) })},
	"aten::special_ndtri":        {Doc: "the inverse of the normal CDF", Gradient: "self: grad * (exp(result * result / 2) * 2.5066282746310002)", Nature: Pointwise, Lower: inDouble((*Lowering).ndtri)},
	"aten::special_log_ndtr":     {Doc: "log of the normal CDF", Gradient: "self: grad / special_erfcx(self * -0.7071067811865476) * 0.7978845608028654", Nature: Pointwise, Lower: inDouble((*Lowering).logNdtr)},
	"aten::special_entr":         {Doc: "-x log(x), 0 at 0, -inf below", Gradient: "self: grad * (-log(self) - 1)", Nature: Pointwise, Lower: floatUnary((*Lowering).entr)},
	"aten::lgamma":               {Doc: "log of |gamma(x)|", Gradient: "self: grad * digamma(self)", Nature: Pointwise, Prim: true, Lower: inDouble((*Lowering).lgamma)},
	"aten::special_gammaln":      {Doc: "log of |gamma(x)|", Nature: Pointwise, Alias: "aten::lgamma", Lower: inDouble((*Lowering).lgamma)},
	"aten::digamma":              {Doc: "derivative of lgamma", Gradient: "self: grad * polygamma(1, self)", Nature: Pointwise, Lower: inDouble((*Lowering).digamma)},
	"aten::special_digamma":      {Doc: "derivative of lgamma", Nature: Pointwise, Alias: "aten::digamma", Lower: inDouble((*Lowering).digamma)},
	"aten::special_psi":          {Doc: "derivative of lgamma", Nature: Pointwise, Alias: "aten::digamma", Lower: inDouble((*Lowering).digamma)},
	"aten::polygamma":            {Doc: "n-th derivative of digamma", Gradient: "self: grad * polygamma(n + 1, self)", Nature: Pointwise, Lower: lowerPolygamma},
	"aten::special_polygamma":    {Doc: "n-th derivative of digamma", Nature: Pointwise, Alias: "aten::polygamma", Lower: lowerPolygamma},
	"aten::special_zeta":         {Doc: "Hurwitz zeta function", Nature: Pointwise, Lower: lowerZeta},
	"aten::mvlgamma":             {Doc: "log of the multivariate gamma function", Batching: BatchesInFront, Lower: lowerMvlgamma},
	"aten::special_multigammaln": {Doc: "log of the multivariate gamma function", Alias: "aten::mvlgamma", Lower: lowerMvlgamma},
	"aten::igamma":               {Doc: "regularized lower incomplete gamma function", Nature: Pointwise, Prim: true, Lower: func(l *Lowering) *ssa.Value { return l.incompleteGamma(true) }},
	"aten::special_gammainc":     {Doc: "regularized lower incomplete gamma function", Nature: Pointwise, Alias: "aten::igamma", Lower: func(l *Lowering) *ssa.Value { return l.incompleteGamma(true) }},
	"aten::igammac":              {Doc: "regularized upper incomplete gamma function", Nature: Pointwise, Prim: true, Lower: func(l *Lowering) *ssa.Value { return l.incompleteGamma(false) }},
	"aten::special_gammaincc":    {Doc: "regularized upper incomplete gamma function", Nature: Pointwise, Alias: "aten::igammac", Lower: func(l *Lowering) *ssa.Value { return l.incompleteGamma(false) }},
}

// inDouble computes a function of one number in float64 and gives its float type back.
func inDouble(f func(*Lowering, *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value {
		return l.Cast(f(l, l.Cast(x, tensor.Float64)), l.DType(x))
	})
}

// floats is a constant vector of x's type.
func (l *Lowering) floats(x *ssa.Value, v ...float64) *ssa.Value {
	return l.Const(tensor.FromFloats(l.DType(x), []int64{int64(len(v))}, append([]float64(nil), v...)))
}

// horner is the polynomial with the given coefficients, highest power first.
func (l *Lowering) horner(x *ssa.Value, c ...float64) *ssa.Value {
	y := l.offset(l.scale(x, c[0]), c[1])
	for _, k := range c[2:] {
		y = l.offset(l.Mul(y, x), k)
	}
	return y
}

// series is the polynomial with the given coefficients, lowest power first, in a few operators:
// for many terms.
func (l *Lowering) series(x *ssa.Value, c ...float64) *ssa.Value {
	powers := make([]float64, len(c))
	for i := range powers {
		powers[i] = float64(i)
	}
	terms := l.Mul(l.Pow(l.unsqueeze(x, -1), l.floats(x, powers...)), l.floats(x, c...))
	return l.sumLast(terms)
}

// sumLast sums along the last axis.
func (l *Lowering) sumLast(x *ssa.Value) *ssa.Value {
	return l.reduce("ReduceSum", x, []int64{-1}, false)
}

// erfcxAbs is erfcx for x >= 0.
func (l *Lowering) erfcxAbs(x *ssa.Value) *ssa.Value {
	p := l.horner(l.Sub(l.Like(x, 1), l.Div(l.Like(x, 7.5), l.offset(x, 3.75))), formula.Erfcx[:]...)
	return l.Div(p, l.offset(l.scale(x, 2), 1))
}

func (l *Lowering) erfc(x *ssa.Value) *ssa.Value {
	a := l.abs(x)
	r := l.Mul(l.Exp(l.neg(l.square(a))), l.erfcxAbs(a))
	return l.Where(l.isNegative(x), l.Sub(l.Like(x, 2), r), r)
}

func (l *Lowering) erfcx(x *ssa.Value) *ssa.Value {
	r := l.erfcxAbs(l.abs(x))
	return l.Where(l.isNegative(x), l.Sub(l.scale(l.Exp(l.square(x)), 2), r), r)
}

func (l *Lowering) logNdtr(x *ssa.Value) *ssa.Value {
	t := l.scale(x, math.Sqrt2/2)
	low := l.Sub(l.Log(l.scale(l.erfcx(l.neg(t)), 0.5)), l.square(t))
	high := l.log1p(l.scale(l.erfc(t), -0.5))
	return l.Where(l.Less(x, l.Like(x, -1)), low, high)
}

func (l *Lowering) ndtri(p *ssa.Value) *ssa.Value {
	q := l.Sub(l.Like(p, 1), p)
	return l.normalQuantile(l.offset(p, -0.5), l.min(p, q))
}

func (l *Lowering) erfinv(x *ssa.Value) *ssa.Value {
	tail := l.scale(l.Sub(l.Like(x, 1), l.abs(x)), 0.5)
	return l.scale(l.normalQuantile(l.scale(x, 0.5), tail), math.Sqrt2/2)
}

// normalQuantile is the inverse of the normal CDF at 1/2 + y, where tail is the
// lesser of that and 1 less it (Cephes ndtri: a rational function of y in the
// middle, two of sqrt(-2 log tail) at the ends).
func (l *Lowering) normalQuantile(y, tail *ssa.Value) *ssa.Value {
	y2 := l.square(y)
	p0 := l.horner(y2, -59.9633501014107895267, 98.0010754185999661536, -56.6762857469070293439, 13.9312609387279679503, -1.23916583867381258016)
	q0 := l.horner(y2, 1, 1.95448858338141759834, 4.67627912898881538453, 86.3602421390890590575, -225.462687854119370527, 200.260212380060660359, -82.0372256168333339912, 15.9056225126211695515, -1.18331621121330003142)
	middle := l.scale(l.Add(y, l.Mul(y, l.Mul(y2, l.Div(p0, q0)))), math.Sqrt(2*math.Pi))
	x := l.Sqrt(l.scale(l.Log(tail), -2))
	z := l.Reciprocal(x)
	p1 := l.horner(z, 4.05544892305962419923, 31.5251094599893866154, 57.1628192246421288162, 44.0805073893200834700, 14.6849561928858024014, 2.18663306850790267539, -0.140256079171354495875, -0.0350424626827848203418, -8.57456785154685413611e-4)
	q1 := l.horner(z, 1, 15.7799883256466749731, 45.3907635128879210584, 41.3172038254672030440, 15.0425385692907503408, 2.50464946208309415979, -0.142182922854787788574, -0.0380806407691578277194, -9.33259480895457427372e-4)
	p2 := l.horner(z, 3.23774891776946035970, 6.91522889068984211695, 3.93881025292474443415, 1.33303460815807542389, 0.201485389549179081538, 0.0123716634817820021358, 3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9)
	q2 := l.horner(z, 1, 6.02427039364742014255, 3.67983563856160859403, 1.37702099489081330271, 0.216236993594496635890, 0.0134204006088543189037, 3.28014464682127739104e-4, 2.89247864745380683936e-6, 6.79019408009981274425e-9)
	far := l.Where(l.Less(x, l.Like(x, 8)), l.Div(p1, q1), l.Div(p2, q2))
	end := l.Sub(l.Sub(x, l.Div(l.Log(x), x)), l.Mul(z, far))
	end = l.Where(l.isZero(tail), l.Like(x, math.Inf(1)), end)
	end = l.Where(l.isNegative(y), l.neg(end), end)
	v := l.Where(l.Greater(tail, l.Like(x, math.Exp(-2))), middle, end)
	return l.Where(l.isNegative(tail), l.Like(x, math.NaN()), v)
}

func (l *Lowering) entr(x *ssa.Value) *ssa.Value {
	v := l.neg(l.Mul(x, l.Log(x)))
	v = l.Where(l.isZero(x), l.Like(x, 0), v)
	return l.Where(l.isNegative(x), l.Like(x, math.Inf(-1)), v)
}

// lgamma uses Lanczos' approximation above 1/2 and reflection below.
func (l *Lowering) lgamma(x *ssa.Value) *ssa.Value {
	lanczos := [...]float64{676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7} // g = 7, n = 9
	low := l.Less(x, l.Like(x, 0.5))
	y := l.Where(low, l.Sub(l.Like(x, 1), x), x)
	steps := make([]float64, len(lanczos))
	for i := range steps {
		steps[i] = float64(i)
	}
	a := l.sumLast(l.Div(l.floats(x, lanczos[:]...), l.Add(l.unsqueeze(y, -1), l.floats(x, steps...))))
	a = l.offset(a, 0.99999999999980993)
	t := l.offset(y, 6.5)
	v := l.Sub(l.Mul(l.offset(y, -0.5), l.Log(t)), t)
	v = l.offset(l.Add(v, l.Log(a)), 0.5*math.Log(2*math.Pi))
	sine := l.abs(l.sinPi(x))
	reflected := l.Sub(l.neg(l.Log(l.scale(sine, 1/math.Pi))), v)
	v = l.Where(low, reflected, v)
	return l.Where(l.IsInf(x), l.Like(x, math.Inf(1)), v)
}

// fraction is x less the nearest integer.
func (l *Lowering) fraction(x *ssa.Value) *ssa.Value { return l.Sub(x, l.Round(x)) }

// sinPi is the sine of pi * x up to its sign, exactly 0 at integers.
func (l *Lowering) sinPi(x *ssa.Value) *ssa.Value {
	return l.Sin(l.scale(l.fraction(x), math.Pi))
}

// digamma goes up by ten steps to where the asymptotic series holds, after reflection of what is below 0.
func (l *Lowering) digamma(x *ssa.Value) *ssa.Value {
	low := l.isNegative(x)
	y := l.Where(low, l.Sub(l.Like(x, 1), x), x)
	steps := l.sumLast(l.Reciprocal(l.Add(l.unsqueeze(y, -1), l.floats(x, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9))))
	z := l.offset(y, 10)
	r := l.Reciprocal(l.square(z))
	tail := l.Mul(r, l.horner(r, -1.0/132, 1.0/240, -1.0/252, 1.0/120, -1.0/12))
	v := l.Sub(l.Add(l.Sub(l.Log(z), l.scale(l.Reciprocal(z), 0.5)), tail), steps)
	angle := l.scale(l.fraction(x), math.Pi)
	cot := l.Div(l.Cos(angle), l.Sin(angle))
	v = l.Where(low, l.Sub(v, l.scale(cot, math.Pi)), v)
	pole := l.And(low, l.isZero(angle))
	v = l.Where(pole, l.Like(x, math.NaN()), v)
	return l.Where(l.isZero(x), l.neg(l.Reciprocal(x)), v)
}

func lowerPolygamma(l *Lowering) *ssa.Value {
	n := l.Int("n")
	x := l.FloatArg("self")
	d := l.DType(x)
	x = l.Cast(x, tensor.Float64)
	switch {
	case n < 0:
		l.Fail("polygamma of negative order")
	case n == 0:
		return l.Cast(l.digamma(x), d)
	case n == 1:
		return l.Cast(l.trigamma(x), d)
	}
	if n > 150 {
		l.Fail("polygamma of order %d", n)
	}
	f := math.Gamma(float64(n) + 1)
	if n%2 == 0 {
		f = -f
	}
	return l.Cast(l.scale(l.zeta(l.Like(x, float64(n+1)), x), f), d)
}

// trigamma reflects below 1/2 and goes up by six steps, as ATen does, but for
// the sine of pi x, which is exact here: at negative integers it gives inf.
func (l *Lowering) trigamma(x *ssa.Value) *ssa.Value {
	low := l.Less(x, l.Like(x, 0.5))
	y := l.Where(low, l.Sub(l.Like(x, 1), x), x)
	steps := l.sumLast(l.Reciprocal(l.square(l.Add(l.unsqueeze(y, -1), l.floats(x, 0, 1, 2, 3, 4, 5)))))
	z := l.offset(y, 6)
	r := l.Reciprocal(l.square(z))
	tail := l.offset(l.scale(l.Reciprocal(z), 0.5), 1)
	tail = l.Add(tail, l.Mul(r, l.horner(r, 1.0/42, -1.0/30, 1.0/6)))
	v := l.Add(steps, l.Div(tail, z))
	s := l.scale(l.sinPi(x), 1/math.Pi)
	return l.Where(low, l.Sub(l.Reciprocal(l.square(s)), v), v)
}

func lowerZeta(l *Lowering) *ssa.Value {
	d := l.floatType("self", "other")
	f := tensor.Float64
	return l.Cast(l.zeta(l.Cast(l.as("self", d), f), l.Cast(l.as("other", d), f)), d)
}

// zeta sums (q + k)^-x until q + k is at least 10 and takes the rest by
// Euler and Maclaurin. How many terms that takes depends on the least q.
func (l *Lowering) zeta(x, q *ssa.Value) *ssa.Value {
	low := l.And(l.isNegative(q), l.isFinite(q))
	least := l.reduce("ReduceMax", l.reshape(l.Where(low, l.neg(q), l.Like(q, 0)), -1), nil, false)
	n := l.offset(l.Ceil(least), 10)
	k := l.Cast(l.rangeTo(l.Cast(n, tensor.Int64)), tensor.Float64)
	minus := l.neg(x)
	if l.Rank(minus) > 0 {
		minus = l.unsqueeze(minus, -1)
	}
	sum := l.sumLast(l.Pow(l.Add(l.unsqueeze(q, -1), k), minus))
	w := l.Add(q, n)
	b := l.Pow(w, l.neg(x))
	less := l.offset(x, -1)
	sum = l.Add(sum, l.Add(l.Div(l.Mul(b, w), less), l.scale(b, 0.5)))
	// Bernoulli numbers over factorials of even order
	c := [...]float64{1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160, -691.0 / 1307674368000}
	factor := l.Mul(x, l.Div(b, w))
	for i, k := range c {
		sum = l.Add(sum, l.scale(factor, k))
		if i+1 < len(c) {
			j := float64(2*i + 1)
			factor = l.Div(l.Mul(factor, l.Mul(l.offset(x, j), l.offset(x, j+1))), l.square(w))
		}
	}
	nan, inf := l.Like(x, math.NaN()), l.Like(x, math.Inf(1))
	notPositive := l.LessOrEqual(q, l.Like(q, 0))
	whole := func(v *ssa.Value) *ssa.Value { return l.Equal(v, l.Floor(v)) }
	sum = l.Where(l.And(notPositive, l.Not(whole(x))), nan, sum)
	sum = l.Where(l.And(notPositive, whole(q)), inf, sum)
	sum = l.Where(l.IsInf(q), nan, sum)
	sum = l.Where(l.Less(x, l.Like(x, 1)), nan, sum)
	return l.Where(l.Equal(x, l.Like(x, 1)), inf, sum)
}

func lowerMvlgamma(l *Lowering) *ssa.Value {
	p := l.Int("p")
	if p < 1 || p > 1000 {
		l.Fail("mvlgamma of order %d", p)
	}
	x := l.FloatArg("self")
	w := l.Cast(x, tensor.Float64)
	halves := make([]float64, p)
	for i := range halves {
		halves[i] = -float64(i) / 2
	}
	sum := l.sumLast(l.lgamma(l.Add(l.unsqueeze(w, -1), l.floats(w, halves...))))
	return l.Cast(l.offset(sum, float64(p*(p-1))/4*math.Log(math.Pi)), l.DType(x))
}

// incompleteGamma takes the power series where x < a + 1 and Legendre's
// continued fraction elsewhere, both until nothing changes (Numerical Recipes, gser and gcf).
func (l *Lowering) incompleteGamma(lower bool) *ssa.Value {
	d := l.floatType("self", "other")
	f := tensor.Float64
	a, x := l.broadcast(l.Cast(l.as("self", d), f), l.Cast(l.as("other", d), f))
	one, nan := l.Scalar(f, 1), l.Scalar(f, math.NaN())
	good := l.And(l.And(l.isFinite(a), l.isFinite(x)), l.And(l.Greater(a, l.Like(a, 0)), l.Greater(x, l.Like(x, 0))))
	below := l.Less(x, l.offset(a, 1))
	inSeries := l.And(good, below)
	inFraction := l.And(good, l.Not(below))
	scale := func(a, x *ssa.Value) *ssa.Value {
		return l.Exp(l.Sub(l.Sub(l.Mul(a, l.Log(x)), x), l.lgamma(a)))
	}
	// arguments that converge at once stand in where the other form is taken
	sa, sx := l.Where(inSeries, a, one), l.Where(inSeries, x, l.Scalar(f, 0.5))
	fa, fx := l.Where(inFraction, a, one), l.Where(inFraction, x, l.Scalar(f, 3))
	first := l.Div(one, sa)
	vs := l.loop(l.scalarInt(tensor.Bool, 1), []*ssa.Value{sa, first, first}, func(vs []*ssa.Value) (*ssa.Value, []*ssa.Value) {
		k := l.offset(vs[0], 1)
		term := l.Mul(vs[1], l.Div(sx, k))
		sum := l.Add(vs[2], term)
		more := l.Greater(term, l.scale(sum, 1e-16))
		return l.anyTrue(more, nil, false), []*ssa.Value{k, term, sum}
	})
	p := l.Mul(vs[2], scale(sa, sx))
	const tiny = 1e-300
	b := l.offset(l.Sub(fx, fa), 1)
	h := l.Div(one, b)
	huge := l.Add(l.Mul(b, l.Scalar(f, 0)), l.Scalar(f, 1/tiny))
	vs = l.loop(l.scalarInt(tensor.Bool, 1), []*ssa.Value{l.Scalar(f, 1), b, huge, h, h}, func(vs []*ssa.Value) (*ssa.Value, []*ssa.Value) {
		i, b, c, d, h := vs[0], vs[1], vs[2], vs[3], vs[4]
		an := l.Mul(l.neg(i), l.Sub(i, fa))
		b = l.offset(b, 2)
		guard := func(v *ssa.Value) *ssa.Value {
			return l.Where(l.Less(l.abs(v), l.Like(v, tiny)), l.Like(v, tiny), v)
		}
		d = l.Reciprocal(guard(l.Add(l.Mul(an, d), b)))
		c = guard(l.Add(b, l.Div(an, c)))
		delta := l.Mul(d, c)
		more := l.Greater(l.abs(l.offset(delta, -1)), l.Like(delta, 1e-15))
		again := l.And(l.anyTrue(more, nil, false), l.Less(i, l.Like(i, 100000)))
		return again, []*ssa.Value{l.offset(i, 1), b, c, d, l.Mul(h, delta)}
	})
	q := l.Mul(vs[4], scale(fa, fx))
	v := l.Where(below, p, l.Sub(one, q))
	if !lower {
		v = l.Where(below, l.Sub(one, p), q)
	}
	// the edges, as in ATen's calc_igamma
	zero, full := l.Scalar(f, 0), one
	if !lower {
		zero, full = one, l.Scalar(f, 0)
	}
	v = l.Where(l.IsInf(x), full, v)
	v = l.Where(l.IsInf(a), l.Where(l.IsInf(x), nan, zero), v)
	v = l.Where(l.isZero(x), zero, v)
	v = l.Where(l.isZero(a), l.Where(l.Greater(x, l.Like(x, 0)), full, nan), v)
	bad := l.Or(l.isNegative(a), l.isNegative(x))
	bad = l.Or(bad, l.Or(l.isNaN(a), l.isNaN(x)))
	return l.Cast(l.Where(bad, nan, v), d)
}
