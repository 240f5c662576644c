// Package minimax finds the polynomials of package approx, by Remez' exchange in multiple precision. The functions that
// they approximate are computed from their series, so that nothing but this package stands behind a coefficient.
package minimax

import (
	"fmt"
	"math/big"
	"strings"
)

const precision = 400 // bits: erfc(6) loses 104 of them

type real = *big.Float

func num(x float64) real { return new(big.Float).SetPrec(precision).SetFloat64(x) }
func add(x, y real) real { return new(big.Float).SetPrec(precision).Add(x, y) }
func sub(x, y real) real { return new(big.Float).SetPrec(precision).Sub(x, y) }
func mul(x, y real) real { return new(big.Float).SetPrec(precision).Mul(x, y) }
func div(x, y real) real { return new(big.Float).SetPrec(precision).Quo(x, y) }
func abs(x real) real    { return new(big.Float).SetPrec(precision).Abs(x) }

// series adds terms until they no longer count; next gives term k from the one before.
func series(first real, next func(k int, t real) real) real {
	s, t := first, first
	for k := 1; ; k++ {
		t = next(k, t)
		if t.Sign() == 0 || s.Sign() != 0 && t.MantExp(nil) < s.MantExp(nil)-precision && k > 4 {
			return s
		}
		s = add(s, t)
	}
}

// Exp is e^x.
func Exp(x real) real {
	// e^x = (e^(x/256))^256
	y := div(x, num(256))
	s := series(num(1), func(k int, t real) real { return div(mul(t, y), num(float64(k))) })
	for range 8 {
		s = mul(s, s)
	}
	return s
}

// Log is the natural logarithm, by Newton's method on Exp.
func Log(x real) real {
	y := num(float64(x.MantExp(nil)) * 0.6931471805599453)
	for range 12 {
		e := Exp(y)
		y = add(y, mul(num(2), div(sub(x, e), add(x, e))))
	}
	return y
}

// Sqrt is the square root.
func Sqrt(x real) real { return new(big.Float).SetPrec(precision).Sqrt(x) }

// Atan is the arc tangent, for |x| < 1/2.
func Atan(x real) real {
	z := mul(x, x)
	p := x
	return series(x, func(k int, _ real) real {
		p = mul(mul(p, z), num(-1))
		return div(p, num(float64(2*k+1)))
	})
}

// Pi is 16 atan(1/5) - 4 atan(1/239).
func Pi() real {
	return sub(mul(num(16), Atan(div(num(1), num(5)))), mul(num(4), Atan(div(num(1), num(239)))))
}

// Erf is the error function.
func Erf(x real) real {
	z := mul(x, x)
	p := x
	s := series(x, func(k int, _ real) real {
		p = div(mul(mul(p, z), num(-1)), num(float64(k)))
		return div(p, num(float64(2*k+1)))
	})
	return div(mul(s, num(2)), Sqrt(Pi()))
}

func tanh(x real) real {
	e := Exp(mul(x, num(2)))
	return div(sub(e, num(1)), add(e, num(1)))
}

// A Fit is a polynomial to be found: of the degree, near Target on From..To, where an error counts as much as Weight says.
type Fit struct {
	Name     string
	Doc      string
	Degree   int
	From, To float64
	Target   func(x real) real
	Weight   func(x real) real
}

// Solve gives the coefficients, of the constant first, and the greatest weighted error.
func (f *Fit) Solve() (coefs []real, err real) {
	n := f.Degree + 2
	grid := 24 * n
	from, to := num(f.From), num(f.To)
	xs, targets, weights := make([]real, grid+1), make([]real, grid+1), make([]real, grid+1)
	mid, half := div(add(from, to), num(2)), div(sub(to, from), num(2))
	for i := range xs { // dense at the ends, as the extrema are
		t := 2*float64(i)/float64(grid) - 1
		t = t * (3 - t*t) / 2
		xs[i] = add(mid, mul(half, num(t)))
		targets[i], weights[i] = f.Target(xs[i]), f.Weight(xs[i])
	}
	at := make([]int, n)
	for i := range at {
		at[i] = i * grid / (n - 1)
	}
	for range 24 {
		m := make([][]real, n)
		for r, i := range at {
			p := num(1)
			for range f.Degree + 1 {
				m[r] = append(m[r], p)
				p = mul(p, xs[i])
			}
			e := div(num(1), weights[i])
			if r%2 == 1 {
				e = mul(e, num(-1))
			}
			m[r] = append(m[r], e, targets[i])
		}
		solution := solve(m)
		coefs = solution[:f.Degree+1]
		// the greatest error of each run of one sign
		var best []int
		errs := make([]real, grid+1)
		for i := range xs {
			errs[i] = mul(sub(eval(coefs, xs[i]), targets[i]), weights[i])
			last := len(best) - 1
			switch {
			case last < 0 || errs[best[last]].Sign()*errs[i].Sign() < 0:
				best = append(best, i)
			case abs(errs[i]).Cmp(abs(errs[best[last]])) > 0:
				best[last] = i
			}
		}
		for len(best) > n { // drop the smaller end
			if abs(errs[best[0]]).Cmp(abs(errs[best[len(best)-1]])) < 0 {
				best = best[1:]
			} else {
				best = best[:len(best)-1]
			}
		}
		err = num(0)
		for i := range errs {
			if e := abs(errs[i]); e.Cmp(err) > 0 {
				err = e
			}
		}
		if len(best) < n || fmt.Sprint(best) == fmt.Sprint(at) {
			return coefs, err
		}
		at = best
	}
	return coefs, err
}

func eval(c []real, x real) real {
	s := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		s = add(mul(s, x), c[i])
	}
	return s
}

// solve is Gauss' elimination of rows with the right side as the last column.
func solve(m [][]real) []real {
	n := len(m)
	for k := range n {
		p := k
		for i := k; i < n; i++ {
			if abs(m[i][k]).Cmp(abs(m[p][k])) > 0 {
				p = i
			}
		}
		m[k], m[p] = m[p], m[k]
		for i := k + 1; i < n; i++ {
			q := div(m[i][k], m[k][k])
			for j := k; j <= n; j++ {
				m[i][j] = sub(m[i][j], mul(q, m[k][j]))
			}
		}
	}
	x := make([]real, n)
	for i := n - 1; i >= 0; i-- {
		s := m[i][n]
		for j := i + 1; j < n; j++ {
			s = sub(s, mul(m[i][j], x[j]))
		}
		x[i] = div(s, m[i][i])
	}
	return x
}

// Fits are the polynomials of package approx. The names end in 32 or 64 for the type that they are for.
func Fits() []Fit {
	one := func(real) real { return num(1) }
	power := func(x real, n int) real {
		p := num(1)
		for range n {
			p = mul(p, x)
		}
		return p
	}
	type degrees struct{ exp, log, tanh, erf, erfc, sin, cos, atan int }
	var out []Fit
	for _, t := range []struct {
		bits string
		degrees
		tail float64
	}{{"32", degrees{4, 4, 4, 6, 8, 2, 2, 4}, 4.1}, {"64", degrees{10, 8, 12, 13, 22, 6, 6, 11}, 6}} {
		out = append(out,
			Fit{"exp" + t.bits, "e^r = 1 + r + r*r*P(r), |r| <= ln(2)/2", t.exp, -0.3466, 0.3466,
				func(x real) real {
					return series(num(0.5), func(k int, t real) real { return div(mul(t, x), num(float64(k+2))) })
				},
				func(x real) real { return mul(x, x) }},
			Fit{"log" + t.bits, "ln((1+s)/(1-s)) = 2*s + s*z*P(z), z = s*s <= 0.0296", t.log, 0, 0.0296,
				func(z real) real {
					p := num(2)
					return series(div(num(2), num(3)), func(k int, _ real) real {
						p = mul(p, z)
						return div(p, num(float64(2*k+3)))
					})
				}, func(z real) real { return add(z, num(1e-6)) }},
			Fit{"tanh" + t.bits, "tanh(x) = x + x*z*P(z), z = x*x <= 0.4", t.tanh, 0.0001, 0.4,
				func(z real) real { x := Sqrt(z); return div(sub(tanh(x), x), mul(x, z)) }, func(z real) real { return z }},
			Fit{"erf" + t.bits, "erf(x) = x + x*P(z), z = x*x <= 0.91", t.erf, 0.0001, 0.91,
				func(z real) real { x := Sqrt(z); return sub(div(Erf(x), x), num(1)) }, one},
			Fit{"erfc" + t.bits, fmt.Sprintf("1 - erf(x) = e^(x*P(x)), 0.95 <= x <= %v", t.tail), t.erfc, 0.94, t.tail,
				func(x real) real { return div(Log(sub(num(1), Erf(x))), x) },
				func(x real) real { return mul(x, sub(num(1), Erf(x))) }},
			Fit{"sin" + t.bits, "sin(r) = r + r*z*P(z), z = r*r, |r| <= pi/4", t.sin, 0, 0.617,
				func(z real) real {
					return series(div(num(-1), num(6)), func(k int, t real) real { return div(mul(mul(t, z), num(-1)), num(float64((2*k+2)*(2*k+3)))) })
				}, func(z real) real { return add(z, num(1e-6)) }},
			Fit{"cos" + t.bits, "cos(r) = 1 - z/2 + z*z*P(z), z = r*r, |r| <= pi/4", t.cos, 0, 0.617,
				func(z real) real {
					return series(div(num(1), num(24)), func(k int, t real) real { return div(mul(mul(t, z), num(-1)), num(float64((2*k+3)*(2*k+4)))) })
				}, func(z real) real { return add(power(z, 2), num(1e-8)) }},
			Fit{"atan" + t.bits, "atan(x) = x + x*z*P(z), z = x*x, |x| <= tan(pi/8)", t.atan, 0, 0.1717,
				func(z real) real {
					p := num(-1)
					return series(div(num(-1), num(3)), func(k int, _ real) real {
						p = mul(mul(p, z), num(-1))
						return div(p, num(float64(2*k+3)))
					})
				}, func(z real) real { return add(z, num(1e-6)) }},
		)
	}
	return out
}

// Source is the Go file with the coefficients.
func Source() string {
	var b strings.Builder
	b.WriteString("// Code generated by codegen/gpu/internal/minimax/gen; DO NOT EDIT.\n\npackage approx\n\nfunc coefficients(name string) []float64 {\n\tswitch name {\n")
	for _, f := range Fits() {
		coefs, err := f.Solve()
		e, _ := err.Float64()
		fmt.Fprintf(&b, "\tcase %q: // %s; weighted error %.1e\n\t\treturn []float64{", f.Name, f.Doc, e)
		for i, c := range coefs {
			if i > 0 {
				b.WriteString(", ")
			}
			if strings.HasSuffix(f.Name, "32") {
				v, _ := c.Float32()
				fmt.Fprintf(&b, "%x", v)
			} else {
				v, _ := c.Float64()
				fmt.Fprintf(&b, "%x", v)
			}
		}
		b.WriteString("}\n")
	}
	b.WriteString("\t}\n\tpanic(\"approx: no polynomial \" + name)\n}\n")
	return b.String()
}
