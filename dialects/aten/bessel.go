package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// bessel holds Bessel and Airy functions. Integral representations by the
// trapezoidal rule, which converges exponentially for them, power series and
// Hankel's asymptotic series (Abramowitz and Stegun 9.1, 9.2, 9.6, 10.4), in float64.
var bessel = Defs{
	"aten::i0":                                {Doc: "modified Bessel function of the first kind, order 0", Gradient: "self: grad * special_i1(self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselI(x, 0, false) })},
	"aten::special_i0":                        {Doc: "modified Bessel function of the first kind, order 0", Nature: Pointwise, Alias: "aten::i0", Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselI(x, 0, false) })},
	"aten::special_i0e":                       {Doc: "i0 times exp(-|x|)", Gradient: "self: grad * (special_i1e(self) - sgn(self) * result)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselI(x, 0, true) })},
	"aten::special_i1":                        {Doc: "modified Bessel function of the first kind, order 1", Gradient: "self: grad * where(le(abs(self), 0.001), self * self * 0.1875 + 0.5, i0(self) - result / self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselI(x, 1, false) })},
	"aten::special_i1e":                       {Doc: "i1 times exp(-|x|)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselI(x, 1, true) })},
	"aten::special_modified_bessel_i0":        {Doc: "modified Bessel function of the first kind, order 0", Gradient: "self: grad * special_modified_bessel_i1(self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselI(x, 0, false) })},
	"aten::special_modified_bessel_i1":        {Doc: "modified Bessel function of the first kind, order 1", Gradient: "self: grad * where(le(abs(self), 0.001), self * self * 0.1875 + 0.5, special_modified_bessel_i0(self) - result / self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselI(x, 1, false) })},
	"aten::special_modified_bessel_k0":        {Doc: "modified Bessel function of the second kind, order 0", Gradient: "self: grad * -special_modified_bessel_k1(self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselK(x, 0, false) })},
	"aten::special_modified_bessel_k1":        {Doc: "modified Bessel function of the second kind, order 1", Gradient: "self: grad * -(special_modified_bessel_k0(self) + result / self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselK(x, 1, false) })},
	"aten::special_scaled_modified_bessel_k0": {Doc: "K0 times exp(x)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselK(x, 0, true) })},
	"aten::special_scaled_modified_bessel_k1": {Doc: "K1 times exp(x)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselK(x, 1, true) })},
	"aten::special_bessel_j0":                 {Doc: "Bessel function of the first kind, order 0", Gradient: "self: grad * -special_bessel_j1(self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselJ(x, 0) })},
	"aten::special_bessel_j1":                 {Doc: "Bessel function of the first kind, order 1", Gradient: "self: grad * where(eq(self, 0), 0.5, special_bessel_j0(self) - result / self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselJ(x, 1) })},
	"aten::special_bessel_y0":                 {Doc: "Bessel function of the second kind, order 0", Gradient: "self: grad * -special_bessel_y1(self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselY(x, 0) })},
	"aten::special_bessel_y1":                 {Doc: "Bessel function of the second kind, order 1", Gradient: "self: grad * (special_bessel_y0(self) - result / self)", Nature: Pointwise, Lower: inDouble(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.besselY(x, 1) })},
	"aten::special_spherical_bessel_j0":       {Doc: "sin(x) / x", Nature: Pointwise, Lower: inDouble((*Lowering).sphericalJ0)},
	"aten::special_airy_ai":                   {Doc: "Airy function Ai", Nature: Pointwise, Lower: inDouble((*Lowering).airy)},
}

// midpoints are cos(pi * (k + 1/2) / n).
func midpoints(n int) []float64 {
	c := make([]float64, n)
	for k := range c {
		c[k] = math.Cos(math.Pi * (float64(k) + 0.5) / float64(n))
	}
	return c
}

// hankel are the coefficients of the asymptotic series in 1/x for order nu:
// products of 4 nu^2 - (2j - 1)^2 over k! 8^k.
func hankel(nu float64, n int) []float64 {
	c := make([]float64, n)
	c[0] = 1
	for k := 1; k < n; k++ {
		odd := float64(2*k - 1)
		c[k] = c[k-1] * (4*nu*nu - odd*odd) / (8 * float64(k))
	}
	return c
}

// besselI is the mean of exp(x (cos t - 1)) cos(n t) over half a turn up to |x| = 100, asymptotic above.
func (l *Lowering) besselI(x *ssa.Value, order int, scaled bool) *ssa.Value {
	a := l.abs(x)
	c := midpoints(64)
	shifted := make([]float64, len(c))
	for i, v := range c {
		shifted[i] = v - 1
	}
	e := l.Exp(l.Mul(l.unsqueeze(a, -1), l.floats(x, shifted...)))
	if order == 1 {
		e = l.Mul(e, l.floats(x, c...))
	}
	near := l.reduce("ReduceMean", e, []int64{-1}, false)
	h := hankel(float64(order), 8)
	for k := 1; k < len(h); k += 2 {
		h[k] = -h[k]
	}
	r := l.Reciprocal(a)
	far := l.Mul(l.Sqrt(l.scale(r, 1/(2*math.Pi))), l.series(r, h...))
	v := l.Where(l.Less(a, l.Like(a, 100)), near, far)
	if order == 1 {
		v = l.Mul(v, l.Sign(x))
	}
	if scaled {
		return v
	}
	return l.Mul(v, l.Exp(a))
}

// besselK is the integral of exp(-x (cosh t - 1)) cosh(nu t), up to where it has sunk by exp(-45).
func (l *Lowering) besselK(x *ssa.Value, nu float64, scaled bool) *ssa.Value {
	u := l.Div(l.Like(x, 45), x)
	end := l.Log(l.Add(l.offset(u, 1), l.Sqrt(l.Mul(u, l.offset(u, 2)))))
	const n = 256
	at, weight := make([]float64, n+1), make([]float64, n+1)
	for k := range at {
		at[k], weight[k] = float64(k)/n, 1.0/n
	}
	weight[0] /= 2
	t := l.Mul(l.unsqueeze(end, -1), l.floats(x, at...))
	up := l.Exp(l.scale(t, 0.5))
	sinh2 := l.square(l.Sub(up, l.Reciprocal(up))) // twice cosh(t) - 1
	y := l.Exp(l.Mul(l.unsqueeze(x, -1), l.scale(sinh2, -0.5)))
	y = l.Mul(y, l.floats(x, weight...))
	if nu != 0 {
		g := l.Exp(l.scale(t, nu))
		y = l.Mul(y, l.scale(l.Add(g, l.Reciprocal(g)), 0.5))
	}
	v := l.Mul(l.sumLast(y), end)
	if !scaled {
		v = l.Mul(v, l.Exp(l.neg(x)))
	}
	v = l.Where(l.isZero(x), l.Like(x, math.Inf(1)), v)
	v = l.Where(l.IsInf(x), l.Like(x, 0), v)
	return l.Where(l.isNegative(x), l.Like(x, math.NaN()), v)
}

// besselJ is a mean over a turn up to |x| = 25, asymptotic above.
func (l *Lowering) besselJ(x *ssa.Value, order int) *ssa.Value {
	a := l.abs(x)
	j, _ := l.hankelJY(a, float64(order))
	v := l.Where(l.Less(a, l.Like(a, 25)), l.meanJ(a, order), j)
	if order == 1 {
		v = l.Mul(v, l.Sign(x))
	}
	return v
}

func (l *Lowering) meanJ(a *ssa.Value, order int) *ssa.Value {
	c := midpoints(32)
	angle := l.Mul(l.unsqueeze(a, -1), l.floats(a, c...))
	if order == 0 {
		return l.reduce("ReduceMean", l.Cos(angle), []int64{-1}, false)
	}
	return l.reduce("ReduceMean", l.Mul(l.Sin(angle), l.floats(a, c...)), []int64{-1}, false)
}

// hankelJY are J and Y of large x.
func (l *Lowering) hankelJY(x *ssa.Value, nu float64) (j, y *ssa.Value) {
	h := hankel(nu, 14)
	var p, q []float64
	for k := 0; k < len(h); k += 2 {
		s := 1.0
		if k%4 == 2 {
			s = -1
		}
		p, q = append(p, s*h[k]), append(q, s*h[k+1])
	}
	r := l.Reciprocal(x)
	r2 := l.square(r)
	ps, qs := l.series(r2, p...), l.Mul(r, l.series(r2, q...))
	angle := l.offset(x, -(nu/2+0.25)*math.Pi)
	sin, cos := l.Sin(angle), l.Cos(angle)
	size := l.Sqrt(l.scale(r, 2/math.Pi))
	j = l.Mul(size, l.Sub(l.Mul(ps, cos), l.Mul(qs, sin)))
	y = l.Mul(size, l.Add(l.Mul(ps, sin), l.Mul(qs, cos)))
	return j, y
}

// besselY is J times a logarithm and a power series up to 12, asymptotic above.
func (l *Lowering) besselY(x *ssa.Value, order int) *ssa.Value {
	const terms = 40
	c := make([]float64, terms)
	harmonic, factor := 0.0, 1.0 // H_k and 1 / (k! (k + order)!)
	for k := range c {
		if k > 0 {
			harmonic += 1 / float64(k)
			factor /= float64(k) * float64(k+order)
		}
		s := -factor
		if k%2 == 1 {
			s = factor
		}
		if order == 0 {
			c[k] = s * harmonic * 2 / math.Pi
		} else {
			// psi(k + 1) + psi(k + 2)
			c[k] = s * (2*harmonic + 1/float64(k+1) - 2*eulerGamma) / math.Pi
		}
	}
	q := l.scale(l.square(x), 0.25)
	sum := l.series(q, c...)
	log := l.Log(l.scale(x, 0.5))
	var near *ssa.Value
	if order == 0 {
		near = l.Add(l.Mul(l.scale(l.offset(log, eulerGamma), 2/math.Pi), l.meanJ(x, 0)), sum)
	} else {
		near = l.Add(l.Mul(l.scale(log, 2/math.Pi), l.meanJ(x, 1)), l.Mul(l.scale(x, 0.5), sum))
		near = l.Sub(near, l.scale(l.Reciprocal(x), 2/math.Pi))
	}
	_, far := l.hankelJY(x, float64(order))
	v := l.Where(l.Less(x, l.Like(x, 12)), near, far)
	v = l.Where(l.isZero(x), l.Like(x, math.Inf(-1)), v)
	return l.Where(l.isNegative(x), l.Like(x, math.NaN()), v)
}

const eulerGamma = 0.57721566490153286060651209008240243

func (l *Lowering) sphericalJ0(x *ssa.Value) *ssa.Value {
	v := l.Div(l.Sin(x), x)
	v = l.Where(l.isZero(x), l.Like(x, 1), v)
	return l.Where(l.IsInf(x), l.Like(x, 0), v)
}

// airy is a power series in x^3 from -6 to 1, K of order 1/3 above, asymptotic below.
func (l *Lowering) airy(x *ssa.Value) *ssa.Value {
	const terms = 45
	f, g := make([]float64, terms), make([]float64, terms)
	f[0], g[0] = 0.35502805388781723926, -0.25881940379280679840
	for k := 1; k < terms; k++ {
		n := float64(3 * k)
		f[k] = f[k-1] / (n * (n - 1))
		g[k] = g[k-1] / (n * (n + 1))
	}
	bounded := l.Clip(x, l.Like(x, -7), l.Like(x, 2))
	cube := l.Mul(l.square(bounded), bounded)
	middle := l.Add(l.series(cube, f...), l.Mul(bounded, l.series(cube, g...)))
	a := l.abs(x)
	zeta := l.scale(l.Mul(a, l.Sqrt(a)), 2.0/3)
	above := l.Mul(l.scale(l.Sqrt(l.scale(a, 1.0/3)), 1/math.Pi), l.besselK(zeta, 1.0/3, false))
	u := 1.0
	var p, q []float64
	for k := range 14 {
		if k > 0 {
			n := float64(k)
			u *= (6*n - 5) * (6*n - 3) * (6*n - 1) / (216 * n * (2*n - 1))
		}
		s := u
		if k%4 >= 2 {
			s = -u
		}
		if k%2 == 0 {
			p = append(p, s)
		} else {
			q = append(q, s)
		}
	}
	r := l.Reciprocal(zeta)
	r2 := l.square(r)
	angle := l.offset(zeta, math.Pi/4)
	below := l.Sub(l.Mul(l.Sin(angle), l.series(r2, p...)), l.Mul(l.Cos(angle), l.Mul(r, l.series(r2, q...))))
	below = l.Div(l.scale(below, 1/math.Sqrt(math.Pi)), l.Sqrt(l.Sqrt(a)))
	v := l.Where(l.Less(x, l.Like(x, -6)), below, middle)
	v = l.Where(l.Greater(x, l.Like(x, 1)), above, v)
	return l.Where(l.IsInf(x), l.Like(x, math.NaN()), v)
}

// A recurrence is a family of polynomials by their three-term relation:
// P0 = 1, P1 = a x + b, and next gives P(k) of P(k-1), P(k-2) and x.
type recurrence struct {
	a, b    float64
	shifted bool // in 2x - 1
	limit   int64
	next    func(l *Lowering, k, x, p1, p2 *ssa.Value) *ssa.Value
}

func chebyshev(l *Lowering, _, x, p1, p2 *ssa.Value) *ssa.Value {
	return l.Sub(l.Mul(l.scale(x, 2), p1), p2)
}

// orthogonal holds the orthogonal polynomials of torch.special.
var orthogonal = Defs{
	"aten::special_chebyshev_polynomial_t":         {Doc: "Chebyshev polynomial of the first kind", Nature: Pointwise, Lower: polynomial(recurrence{a: 1, next: chebyshev})},
	"aten::special_chebyshev_polynomial_u":         {Doc: "Chebyshev polynomial of the second kind", Nature: Pointwise, Lower: polynomial(recurrence{a: 2, next: chebyshev})},
	"aten::special_chebyshev_polynomial_v":         {Doc: "Chebyshev polynomial of the third kind", Nature: Pointwise, Lower: polynomial(recurrence{a: 2, b: -1, next: chebyshev})},
	"aten::special_chebyshev_polynomial_w":         {Doc: "Chebyshev polynomial of the fourth kind", Nature: Pointwise, Lower: polynomial(recurrence{a: 2, b: 1, next: chebyshev})},
	"aten::special_shifted_chebyshev_polynomial_t": {Doc: "Chebyshev polynomial of the first kind in 2x - 1", Nature: Pointwise, Lower: polynomial(recurrence{a: 1, shifted: true, next: chebyshev})},
	"aten::special_shifted_chebyshev_polynomial_u": {Doc: "Chebyshev polynomial of the second kind in 2x - 1", Nature: Pointwise, Lower: polynomial(recurrence{a: 2, shifted: true, next: chebyshev})},
	"aten::special_shifted_chebyshev_polynomial_v": {Doc: "Chebyshev polynomial of the third kind in 2x - 1", Nature: Pointwise, Lower: polynomial(recurrence{a: 2, b: -1, shifted: true, next: chebyshev})},
	"aten::special_shifted_chebyshev_polynomial_w": {Doc: "Chebyshev polynomial of the fourth kind in 2x - 1", Nature: Pointwise, Lower: polynomial(recurrence{a: 2, b: 1, shifted: true, next: chebyshev})},
	"aten::special_hermite_polynomial_h": {Doc: "physicist's Hermite polynomial", Nature: Pointwise, Lower: polynomial(recurrence{a: 2, limit: 128, next: func(l *Lowering, k, x, p1, p2 *ssa.Value) *ssa.Value {
		return l.scale(l.Sub(l.Mul(x, p1), l.Mul(l.offset(k, -1), p2)), 2)
	}})},
	"aten::special_hermite_polynomial_he": {Doc: "probabilist's Hermite polynomial", Nature: Pointwise, Lower: polynomial(recurrence{a: 1, limit: 128, next: func(l *Lowering, k, x, p1, p2 *ssa.Value) *ssa.Value {
		return l.Sub(l.Mul(x, p1), l.Mul(l.offset(k, -1), p2))
	}})},
	"aten::special_laguerre_polynomial_l": {Doc: "Laguerre polynomial", Nature: Pointwise, Lower: polynomial(recurrence{a: -1, b: 1, next: func(l *Lowering, k, x, p1, p2 *ssa.Value) *ssa.Value {
		m := l.Sub(l.offset(l.scale(k, 2), -1), x)
		return l.Div(l.Sub(l.Mul(m, p1), l.Mul(l.offset(k, -1), p2)), k)
	}})},
	"aten::special_legendre_polynomial_p": {Doc: "Legendre polynomial", Nature: Pointwise, Lower: polynomial(recurrence{a: 1, next: func(l *Lowering, k, x, p1, p2 *ssa.Value) *ssa.Value {
		m := l.Mul(l.offset(l.scale(k, 2), -1), x)
		return l.Div(l.Sub(l.Mul(m, p1), l.Mul(l.offset(k, -1), p2)), k)
	}})},
}

// polynomial runs a recurrence up to the greatest degree and keeps, for each
// element, the polynomial of its degree; a negative degree gives 0.
func polynomial(r recurrence) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		d := l.floatType("x", "n")
		f := tensor.Float64
		x, n := l.Cast(l.as("x", d), f), l.trunc(l.Cast(l.Tensor("n"), f))
		if r.shifted {
			x = l.offset(l.scale(x, 2), -1)
		}
		x, n = l.broadcast(x, n)
		zero, one := l.Scalar(f, 0), l.Scalar(f, 1)
		p0 := l.Add(l.Mul(n, zero), l.Where(l.isNegative(n), zero, one))
		p1 := l.offset(l.scale(x, r.a), r.b)
		v := l.Where(l.GreaterOrEqual(n, one), p1, p0)
		ones := l.Add(l.Mul(x, zero), one)
		most := l.reduce("ReduceMax", l.reshape(n, -1), nil, false)
		if r.limit > 0 {
			most = l.min(most, l.Like(most, float64(r.limit)))
		}
		two := l.Scalar(f, 2)
		vs := l.loop(l.LessOrEqual(two, most), []*ssa.Value{two, ones, p1, v}, func(vs []*ssa.Value) (*ssa.Value, []*ssa.Value) {
			k, p2, p1, v := vs[0], vs[1], vs[2], vs[3]
			p := r.next(l, k, x, p1, p2)
			v = l.Where(l.LessOrEqual(k, n), p, v)
			k = l.offset(k, 1)
			return l.LessOrEqual(k, most), []*ssa.Value{k, p1, p, v}
		})
		v = vs[3]
		if r.limit > 0 {
			v = l.Where(l.Greater(n, l.Like(n, float64(r.limit))), l.Like(n, math.NaN()), v)
		}
		return l.Cast(v, d)
	}
}
