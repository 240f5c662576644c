// Package approx computes transcendental functions in kernels, by polynomials that internal/minimax finds: no function of
// the device's libraries and no approximate instruction is used, so that the simulator and every processor agree bit for bit.
//
// Each function takes F32 or F64 and gives the same type. The errors are those of the package's test.
package approx

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/kir"
)

//go:generate sh -c "go run ../internal/minimax/gen >coefficients_gen.go"

type value = kir.Value

// format is what the functions need to know of a float type.
type format struct {
	t               kir.Type
	name            string // of its coefficients
	bits            kir.Type
	mantissa        int64
	bias            int64
	expMin, expMax  float64 // exp is 0 below and infinite above
	ln2Hi, ln2Lo    float64 // ln2Hi has zeros at its end: a multiple by an exponent is exact
	ln2Top, ln2Rest float64 // the nearest number, and what it lacks
	half1           int64   // the bits of sqrt(1/2), rounded down
	subnormal       float64 // below it, numbers are scaled first
	sinLimit        float64 // reduction in the type itself holds below it
	tanhEnd, erfEnd float64 // 1 from there on
	pi1, pi2, pi3   float64 // pi/2 in three parts
}

func of(t kir.Type) *format {
	if t == kir.F32 {
		return &format{t: t, name: "32", bits: kir.I32, mantissa: 23, bias: 127, expMin: -104, expMax: 89, ln2Hi: 6.9313812256e-01, ln2Lo: 9.0580006145e-06,
			ln2Top: 0x1.62e43p-01, ln2Rest: -0x1.05c61p-29, half1: 0x3f3504f3, subnormal: 0x1p-126, sinLimit: 48000, tanhEnd: 9.1, erfEnd: 4,
			pi1: 0x1.921fb6p+00, pi2: -0x1.777a5cp-25, pi3: -0x1.ee59dap-50}
	}
	return &format{t: t, name: "64", bits: kir.I64, mantissa: 52, bias: 1023, expMin: -746, expMax: 710, ln2Hi: 6.93147180369123816490e-01, ln2Lo: 1.90821492927058770002e-10,
		ln2Top: 0x1.62e42fefa39efp-01, ln2Rest: 0x1.abc9e3b39803fp-56, half1: 0x3fe6a09e667f3bcc, subnormal: 0x1p-1022, sinLimit: 0x1p50, tanhEnd: 20, erfEnd: 6,
		pi1: 0x1.921fb54442d18p+00, pi2: 0x1.1a62633145c07p-54, pi3: -0x1.f1976b7ed8fbcp-110}
}

// poly is the polynomial of that name at z, by Horner's rule.
func poly(b *kir.Builder, name string, z value) value {
	c := coefficients(name + of(z.Type).name)
	s := b.Float(z.Type, c[len(c)-1])
	for i := len(c) - 2; i >= 0; i-- {
		s = b.Fma(s, z, b.Float(z.Type, c[i]))
	}
	return s
}

func absolute(b *kir.Builder, x value) value { return b.Unary(kir.Abs, x) }

// clamp keeps NaN.
func clamp(b *kir.Builder, x value, lo, hi float64) value {
	x = b.Select(b.Lt(x, b.Float(x.Type, lo)), b.Float(x.Type, lo), x)
	return b.Select(b.Lt(b.Float(x.Type, hi), x), b.Float(x.Type, hi), x)
}

// toInt converts an integral float to an integer as wide; NaN gives 0.
func toInt(b *kir.Builder, x value) value {
	f := of(x.Type)
	return b.Convert(kir.FToS, b.Select(b.IsNaN(x), b.Float(x.Type, 0), x), f.bits)
}

// power2 is 2^n as a float, for n in the range of normal numbers.
func power2(b *kir.Builder, f *format, n value) value {
	return b.Convert(kir.Bitcast, b.Binary(kir.Shl, b.Add(n, b.Int(f.bits, f.bias)), b.Int(f.bits, f.mantissa)), f.t)
}

// reduceExp gives n and r with x = n*ln2 + r, |r| <= ln2/2.
func reduceExp(b *kir.Builder, f *format, x value) (n, r value) {
	nf := b.Unary(kir.Rint, b.Mul(x, b.Float(f.t, math.Log2E)))
	minus := b.Neg(nf)
	r = b.Fma(minus, b.Float(f.t, f.ln2Top), x)
	r = b.Fma(minus, b.Float(f.t, f.ln2Rest), r)
	return toInt(b, nf), r
}

// Exp is e^x.
func Exp(b *kir.Builder, x value) value { return expPair(b, x, nil) }

// expPair is e^(x+lo), where lo is small; nil for 0.
func expPair(b *kir.Builder, x, lo value) value {
	f := of(x.Type)
	n, r := reduceExp(b, f, clamp(b, x, f.expMin, f.expMax))
	if lo != nil {
		r = b.Add(r, lo)
	}
	one := b.Float(f.t, 1)
	p := b.Add(b.Fma(b.Mul(r, r), poly(b, "exp", r), r), one)
	// 2^n in two halves: neither leaves the normal numbers
	half := b.Binary(kir.AShr, n, b.Int(f.bits, 1))
	return b.Mul(b.Mul(p, power2(b, f, half)), power2(b, f, b.Sub(n, half)))
}

// Expm1 is e^x - 1, exact for small x.
func Expm1(b *kir.Builder, x value) value {
	f := of(x.Type)
	n, r := reduceExp(b, f, clamp(b, x, -60, f.expMax))
	p := b.Fma(b.Mul(r, r), poly(b, "exp", r), r)
	half := b.Binary(kir.AShr, n, b.Int(f.bits, 1))
	s1, s2 := power2(b, f, half), power2(b, f, b.Sub(n, half))
	one := b.Float(f.t, 1)
	// 2^n*p + (2^n - 1); from 2^60 on the 1 does not count, and 2^n may be infinite
	scale := b.Mul(s1, s2)
	small := b.Fma(scale, p, b.Sub(scale, one))
	large := b.Mul(b.Mul(b.Add(p, one), s1), s2)
	y := b.Select(b.Lt(n, b.Int(f.bits, 60)), small, large)
	return b.Select(b.Eq(x, b.Float(f.t, 0)), x, y) // the sign of 0
}

// Log is the natural logarithm: -infinity for 0, NaN below.
func Log(b *kir.Builder, x value) value {
	f := of(x.Type)
	zero := b.Float(f.t, 0)
	tiny := b.Lt(x, b.Float(f.t, f.subnormal))
	shift := f.mantissa + 2
	y := b.Select(tiny, b.Mul(x, b.Float(f.t, math.Ldexp(1, int(shift)))), x)
	bits := b.Convert(kir.Bitcast, y, f.bits)
	e := b.Binary(kir.AShr, b.Sub(bits, b.Int(f.bits, f.half1)), b.Int(f.bits, f.mantissa))
	m := b.Convert(kir.Bitcast, b.Sub(bits, b.Binary(kir.Shl, e, b.Int(f.bits, f.mantissa))), f.t)
	e = b.Sub(e, b.Select(tiny, b.Int(f.bits, shift), b.Int(f.bits, 0)))
	k := b.Convert(kir.SToF, e, f.t)
	d := b.Sub(m, b.Float(f.t, 1))
	s := b.Div(d, b.Add(d, b.Float(f.t, 2)))
	z := b.Mul(s, s)
	half := b.Mul(b.Mul(d, d), b.Float(f.t, 0.5))
	r := b.Add(half, b.Mul(z, poly(b, "log", z)))
	v := b.Fma(s, r, b.Mul(k, b.Float(f.t, f.ln2Lo)))
	v = b.Fma(k, b.Float(f.t, f.ln2Hi), b.Sub(d, b.Sub(half, v)))
	inf := b.Float(f.t, math.Inf(1))
	v = b.Select(b.Eq(x, inf), inf, v)
	v = b.Select(b.Eq(x, zero), b.Float(f.t, math.Inf(-1)), v)
	nan := b.Sub(inf, inf)
	v = b.Select(b.Lt(x, zero), nan, v)
	return b.Select(b.IsNaN(x), x, v)
}

// Log1p is ln(1 + x), exact for small x.
func Log1p(b *kir.Builder, x value) value {
	t := x.Type
	one := b.Float(t, 1)
	u := b.Add(x, one)
	lost := b.Sub(x, b.Sub(u, one)) // what rounding 1+x took
	v := b.Add(Log(b, u), b.Div(lost, u))
	v = b.Select(b.Eq(u, b.Float(t, math.Inf(1))), u, v)
	v = b.Select(b.Eq(u, b.Float(t, 0)), b.Float(t, math.Inf(-1)), v)
	return b.Select(b.Eq(u, one), x, v)
}

// Tanh is the hyperbolic tangent.
func Tanh(b *kir.Builder, x value) value {
	f := of(x.Type)
	a := absolute(b, x)
	z := b.Mul(x, x)
	small := b.Fma(b.Mul(x, z), poly(b, "tanh", z), x)
	one, two := b.Float(f.t, 1), b.Float(f.t, 2)
	e := Exp(b, b.Mul(clamp(b, a, 0, f.tanhEnd), two))
	large := withSign(b, b.Sub(one, b.Div(two, b.Add(e, one))), x)
	return b.Select(b.Lt(a, b.Float(f.t, 0.625)), small, large)
}

// withSign gives y >= 0 the sign of x.
func withSign(b *kir.Builder, y, x value) value {
	return b.Select(b.Lt(x, b.Float(x.Type, 0)), b.Neg(y), y)
}

// Erf is the error function.
func Erf(b *kir.Builder, x value) value {
	f := of(x.Type)
	a := absolute(b, x)
	small := b.Fma(x, poly(b, "erf", b.Mul(x, x)), x)
	c := clamp(b, a, 0.5, f.erfEnd)
	one := b.Float(f.t, 1)
	p := poly(b, "erfc", c)
	e := b.Mul(c, p)
	rest := b.Fma(c, p, b.Neg(e)) // what rounding the product took
	e = Exp(b, e)
	large := b.Sub(one, b.Fma(e, rest, e))
	large = b.Select(b.Lt(a, b.Float(f.t, f.erfEnd)), large, b.Select(b.IsNaN(x), x, one))
	return b.Select(b.Lt(a, b.Float(f.t, 0.95)), small, withSign(b, large, x))
}

// quadrant gives q and r with x = q*pi/2 + r, |r| <= pi/4, q modulo 4 as an I32.
// From 2^50 on (no trigonometric function of such a number means anything) r is NaN rather than wrong.
func quadrant(b *kir.Builder, x value) (q, r value) {
	f := of(x.Type)
	near := b.Lt(absolute(b, x), b.Float(f.t, f.sinLimit))
	reduce := func(x value, f *format) (q, r value) {
		n := b.Unary(kir.Rint, b.Mul(x, b.Float(f.t, 2/math.Pi)))
		minus := b.Neg(n)
		r = b.Fma(minus, b.Float(f.t, f.pi1), x)
		r = b.Fma(minus, b.Float(f.t, f.pi2), r)
		r = b.Fma(minus, b.Float(f.t, f.pi3), r)
		q = toInt(b, b.Select(b.Lt(absolute(b, x), b.Float(f.t, f.sinLimit)), n, b.Float(f.t, 0)))
		return b.And(b.Convert(kir.Narrow, q, kir.I32), b.I32(3)), r
	}
	nan := b.Sub(b.Float(f.t, math.Inf(1)), b.Float(f.t, math.Inf(1)))
	if f.t == kir.F64 {
		q, r = reduce(x, f)
		return q, b.Select(near, r, nan)
	}
	v := b.If(near, func() []value {
		q, r := reduce(x, f)
		return []value{q, r}
	}, func() []value {
		wide := b.Convert(kir.Widen, x, kir.F64)
		q, r := reduce(wide, of(kir.F64))
		r = b.Select(b.Lt(absolute(b, wide), b.Float(kir.F64, of(kir.F64).sinLimit)), r, b.Convert(kir.Widen, nan, kir.F64))
		return []value{q, b.Convert(kir.Round, r, kir.F32)}
	})
	return v[0], v[1]
}

func sinCos(b *kir.Builder, x value) (sin, cos value) {
	t := x.Type
	q, r := quadrant(b, x)
	z := b.Mul(r, r)
	s := b.Fma(b.Mul(r, z), poly(b, "sin", z), r)
	one, half := b.Float(t, 1), b.Mul(z, b.Float(t, 0.5))
	w := b.Sub(one, half)
	c := b.Add(w, b.Fma(b.Mul(z, z), poly(b, "cos", z), b.Sub(b.Sub(one, w), half))) // with what rounding w took
	odd := b.Eq(b.And(q, b.I32(1)), b.I32(1))
	sin, cos = b.Select(odd, c, s), b.Select(odd, s, c)
	sin = b.Select(b.Lt(q, b.I32(2)), sin, b.Neg(sin))
	flip := b.And(b.Compare(kir.Le, b.I32(1), q), b.Compare(kir.Le, q, b.I32(2)))
	return sin, b.Select(flip, b.Neg(cos), cos)
}

// Sin is the sine; NaN for |x| >= 2^50.
func Sin(b *kir.Builder, x value) value {
	s, _ := sinCos(b, x)
	return b.Select(b.Eq(x, b.Float(x.Type, 0)), x, s) // the sign of 0
}

// Cos is the cosine; NaN for |x| >= 2^50.
func Cos(b *kir.Builder, x value) value {
	_, c := sinCos(b, x)
	return c
}

// Tan is the tangent; NaN for |x| >= 2^50.
func Tan(b *kir.Builder, x value) value {
	s, c := sinCos(b, x)
	return b.Select(b.Eq(x, b.Float(x.Type, 0)), x, b.Div(s, c))
}

// Atan is the arc tangent.
func Atan(b *kir.Builder, x value) value {
	t := x.Type
	num := func(v float64) value { return b.Float(t, v) }
	a := absolute(b, x)
	far, mid := b.Lt(num(1+math.Sqrt2), a), b.Lt(num(math.Sqrt2-1), a)
	// atan(a) = pi/2 - atan(1/a) = pi/4 + atan((a-1)/(a+1))
	y := b.Select(mid, b.Div(b.Sub(a, num(1)), b.Add(a, num(1))), a)
	y = b.Select(far, b.Div(num(-1), a), y)
	f := of(t)
	hi := b.Select(far, num(f.pi1), b.Select(mid, num(f.pi1/2), num(0)))
	lo := b.Select(far, num(f.pi2), b.Select(mid, num(f.pi2/2), num(0)))
	z := b.Mul(y, y)
	p := b.Add(hi, b.Add(b.Fma(b.Mul(y, z), poly(b, "atan", z), lo), y))
	v := b.Select(b.Lt(x, num(0)), b.Neg(p), p)
	return b.Select(b.Eq(x, num(0)), x, b.Select(b.IsNaN(x), x, v))
}

// Asin is the arc sine; NaN outside of -1..1.
func Asin(b *kir.Builder, x value) value {
	// atan(x / sqrt((1-x)(1+x)))
	one := b.Float(x.Type, 1)
	return Atan(b, b.Div(x, b.Unary(kir.Sqrt, b.Mul(b.Sub(one, x), b.Add(one, x)))))
}

// Acos is the arc cosine; NaN outside of -1..1.
func Acos(b *kir.Builder, x value) value {
	// 2 atan(sqrt((1-x)/(1+x)))
	one := b.Float(x.Type, 1)
	return b.Mul(Atan(b, b.Unary(kir.Sqrt, b.Div(b.Sub(one, x), b.Add(one, x)))), b.Float(x.Type, 2))
}

// Sinh is the hyperbolic sine.
func Sinh(b *kir.Builder, x value) value {
	t := x.Type
	a := absolute(b, x)
	half := b.Float(t, 0.5)
	e := Expm1(b, a)
	y := b.Mul(b.Add(e, b.Div(e, b.Add(e, b.Float(t, 1)))), half)
	r := Exp(b, b.Mul(a, half)) // where e^a is too large and e^a/2 is not
	big := b.Mul(b.Mul(r, half), r)
	y = b.Select(b.Lt(a, b.Float(t, of(t).expMax-3)), y, big)
	return b.Select(b.Eq(x, b.Float(t, 0)), x, withSign(b, y, x))
}

// Cosh is the hyperbolic cosine.
func Cosh(b *kir.Builder, x value) value {
	t := x.Type
	a := absolute(b, x)
	half := b.Float(t, 0.5)
	e := Exp(b, a)
	y := b.Add(b.Mul(e, half), b.Div(half, e))
	r := Exp(b, b.Mul(a, half))
	return b.Select(b.Lt(a, b.Float(t, of(t).expMax-3)), y, b.Mul(b.Mul(r, half), r))
}

// Asinh is the inverse hyperbolic sine.
func Asinh(b *kir.Builder, x value) value {
	t := x.Type
	one := b.Float(t, 1)
	a := absolute(b, x)
	z := b.Mul(a, a)
	y := Log1p(b, b.Add(a, b.Div(z, b.Add(one, b.Unary(kir.Sqrt, b.Add(z, one))))))
	far := b.Add(Log(b, a), b.Float(t, math.Ln2))
	y = b.Select(b.Lt(a, b.Float(t, math.Ldexp(1, int(of(t).mantissa)/2+2))), y, far)
	return b.Select(b.Eq(x, b.Float(t, 0)), x, withSign(b, y, x))
}

// Acosh is the inverse hyperbolic cosine; NaN below 1.
func Acosh(b *kir.Builder, x value) value {
	t := x.Type
	d := b.Sub(x, b.Float(t, 1))
	// ln(x + sqrt(x*x-1)) with x = 1 + d
	y := Log1p(b, b.Add(d, b.Unary(kir.Sqrt, b.Fma(d, d, b.Add(d, d)))))
	far := b.Add(Log(b, x), b.Float(t, math.Ln2))
	return b.Select(b.Lt(x, b.Float(t, math.Ldexp(1, int(of(t).mantissa)/2+2))), y, far)
}

// Atanh is the inverse hyperbolic tangent; NaN outside of -1..1.
func Atanh(b *kir.Builder, x value) value {
	t := x.Type
	a := absolute(b, x)
	y := b.Mul(Log1p(b, b.Div(b.Add(a, a), b.Sub(b.Float(t, 1), a))), b.Float(t, 0.5))
	return b.Select(b.Eq(x, b.Float(t, 0)), x, withSign(b, y, x))
}

// Sigmoid is 1/(1+e^-x), as e^x/(1+e^x) below 0 so that it does not end before the smallest numbers do.
func Sigmoid(b *kir.Builder, x value) value {
	one := b.Float(x.Type, 1)
	e := Exp(b, b.Neg(absolute(b, x)))
	return b.Div(b.Select(b.Lt(x, b.Float(x.Type, 0)), e, one), b.Add(one, e))
}

// Softplus is ln(1+e^x).
func Softplus(b *kir.Builder, x value) value {
	zero := b.Float(x.Type, 0)
	rest := Log1p(b, Exp(b, b.Neg(absolute(b, x))))
	return b.Add(b.Select(b.Lt(x, zero), zero, x), rest)
}

// logPair is the natural logarithm of a double from 0 on, as the sum of two: about 60 bits.
func logPair(b *kir.Builder, x value) (hi, lo value) {
	f := of(kir.F64)
	num := func(v float64) value { return b.Float(kir.F64, v) }
	tiny := b.Lt(x, num(f.subnormal))
	bits := b.Convert(kir.Bitcast, b.Select(tiny, b.Mul(x, num(0x1p54)), x), f.bits)
	e := b.Binary(kir.AShr, b.Sub(bits, b.Int(f.bits, f.half1)), b.Int(f.bits, f.mantissa))
	m := b.Convert(kir.Bitcast, b.Sub(bits, b.Binary(kir.Shl, e, b.Int(f.bits, f.mantissa))), f.t)
	k := b.Convert(kir.SToF, b.Sub(e, b.Select(tiny, b.Int(f.bits, 54), b.Int(f.bits, 0))), f.t)
	// s = d/(2+d), with what the sum and the quotient lose
	d := b.Sub(m, num(1))
	t := b.Add(num(2), d)
	lost := b.Sub(d, b.Sub(t, num(2)))
	s := b.Div(d, t)
	rest := b.Div(b.Fma(b.Neg(s), lost, b.Fma(b.Neg(s), t, d)), t)
	z := b.Mul(s, s)
	low := b.Fma(k, num(f.ln2Lo), b.Fma(b.Mul(s, z), poly(b, "log", z), b.Add(rest, rest)))
	// k*ln2Hi is exact, and so is the sum of it and 2s with its remainder
	p, q := b.Mul(k, num(f.ln2Hi)), b.Add(s, s)
	sum := b.Add(p, q)
	back := b.Sub(sum, p)
	low = b.Add(b.Add(b.Sub(p, b.Sub(sum, back)), b.Sub(q, back)), low)
	hi = b.Add(sum, low)
	lo = b.Add(b.Sub(sum, hi), low)
	inf := num(math.Inf(1))
	hi = b.Select(b.Eq(x, inf), inf, b.Select(b.Eq(x, num(0)), num(math.Inf(-1)), hi))
	return hi, lo
}

// Pow is x^y of doubles.
func Pow(b *kir.Builder, x, y value) value {
	t := kir.F64
	num := func(v float64) value { return b.Float(t, v) }
	a := absolute(b, x)
	hi, lo := logPair(b, a)
	e := b.Mul(y, hi)
	// what rounding the exponent took, where it is a number: so a power that is one comes out exactly
	rest := b.Fma(y, lo, b.Fma(y, hi, b.Neg(e)))
	v := expPair(b, e, b.Select(b.Lt(absolute(b, e), num(800)), rest, num(0)))
	whole := b.Eq(b.Unary(kir.Floor, y), y)
	half := b.Mul(y, num(0.5))
	odd := b.And(whole, b.Compare(kir.Ne, b.Unary(kir.Floor, half), half))
	inf := num(math.Inf(1))
	finite := b.Lt(absolute(b, y), inf)
	nan := b.Sub(inf, inf)
	negative := b.Lt(x, num(0))
	// below 0 only whole exponents have a power; an infinite one counts as even
	v = b.Select(b.And(negative, b.Not(whole)), b.Select(b.And(finite, b.Lt(a, inf)), nan, v), v)
	v = b.Select(b.And(negative, b.And(odd, finite)), b.Neg(v), v)
	// the sign of 0 counts for odd exponents: 1/x tells it
	minusZero := b.And(b.Eq(x, num(0)), b.Lt(b.Div(num(1), x), num(0)))
	v = b.Select(b.And(minusZero, b.And(odd, finite)), b.Neg(v), v)
	v = b.Select(b.Eq(a, num(1)), b.Select(b.And(negative, b.And(odd, finite)), num(-1), b.Select(b.And(negative, b.Not(whole)), v, num(1))), v)
	v = b.Select(b.Or(b.IsNaN(x), b.IsNaN(y)), nan, v)
	v = b.Select(b.Eq(x, num(1)), num(1), v)
	return b.Select(b.Eq(y, num(0)), num(1), v)
}

// Mod is the remainder of x / y with the sign of x, exactly, as C's fmod. The quotient is taken out in pieces of 52 bits, the
// highest first: what is left of each is exact in one fma, and an overestimated piece is given back.
func Mod(b *kir.Builder, x, y value) value {
	if x.Type == kir.F32 { // quotients below 2**277
		return b.Convert(kir.Round, mod(b, b.Convert(kir.Widen, x, kir.F64), b.Convert(kir.Widen, y, kir.F64), 6), kir.F32)
	}
	return mod(b, x, y, 41) // below 2**2098
}

func mod(b *kir.Builder, x, y value, pieces int64) value {
	num := func(v float64) value { return b.Float(kir.F64, v) }
	power := func(e value) value { // 2**e for -1022 <= e <= 1023
		bits := b.Convert(kir.SExt, b.Add(e, b.I32(1023)), kir.I64)
		return b.Convert(kir.Bitcast, b.Binary(kir.Shl, bits, b.Int(kir.I64, 52)), kir.F64)
	}
	const width, most = 52, 1000
	size, by := b.Unary(kir.Abs, x), b.Unary(kir.Abs, y)
	infinite := num(math.Inf(1))
	rest := b.For(b.I32(0), b.I32(pieces), b.I32(1), []value{size}, func(i value, c []value) []value {
		e := b.Mul(b.Sub(b.I32(pieces-1), i), b.I32(width))
		scaled := by
		for left := pieces * width; left > 0; left -= most { // a power of 2 at a time that a double can be
			part := e
			if left > most {
				part = b.Select(b.Lt(b.I32(most), e), b.I32(most), e)
			}
			scaled = b.Mul(scaled, power(part))
			e = b.Sub(e, part)
		}
		return b.If(b.And(b.Lt(scaled, infinite), b.Compare(kir.Le, scaled, c[0])), func() []value {
			q := b.Unary(kir.Trunc, b.Div(c[0], scaled))
			r := b.Fma(b.Neg(q), scaled, c[0])
			return []value{b.Select(b.Lt(r, num(0)), b.Add(r, scaled), r)}
		}, func() []value { return c })
	})[0]
	// the sign of x, also of a zero
	negative := b.Lt(b.Convert(kir.Bitcast, x, kir.I64), b.Int(kir.I64, 0))
	rest = b.Select(negative, b.Neg(rest), rest)
	defined := b.And(b.And(b.Lt(size, infinite), b.Lt(num(0), by)), b.Not(b.IsNaN(y)))
	return b.Select(defined, rest, num(math.NaN()))
}
