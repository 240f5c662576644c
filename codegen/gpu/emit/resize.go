package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
)

// tap is a place along an axis that a resized element is made of, and its weight; nil stands for 1.
type tap struct {
	at     index.Expr
	weight value
}

// resize combines the taps of every axis that changes its size. Places are computed in double, as the interpreter does: where
// they are rounded decides which elements are taken.
func resize(p *point) value {
	x := p.in(0)
	in := shapeOf(x)
	nearest := p.str("mode") == "nearest" || p.str("mode") == ""
	if p.int("antialias") != 0 || p.int("exclude_outside") != 0 || p.str("coordinate_transformation_mode") == "tf_crop_and_resize" || !dtype(x).IsFloat() && !nearest {
		return p.resample()
	}
	b := p.b
	taps := make([][]tap, len(in))
	for i := range taps {
		taps[i] = []tap{{at: p.coords[i]}}
	}
	for _, r := range p.resizedAxes() {
		taps[r.axis] = p.taps(&r, in[r.axis])
	}
	rt := regType(dtype(x))
	var sum func(axis int, coords []index.Expr, weight value) value
	sum = func(axis int, coords []index.Expr, weight value) value {
		if axis == len(in) {
			v := p.at(x, coords)
			if weight == nil {
				return v
			}
			return b.Mul(v, weight)
		}
		var total value
		for _, t := range taps[axis] {
			w := weight
			if t.weight != nil {
				if w = t.weight; w.Type != rt {
					w = b.Convert(kir.Round, w, rt)
				}
				if weight != nil {
					w = b.Mul(weight, w)
				}
			}
			v := sum(axis+1, append(coords[:len(coords):len(coords)], t.at), w)
			if total == nil {
				total = v
			} else {
				total = b.Add(total, v)
			}
		}
		return total
	}
	return sum(0, nil, nil)
}

// taps finds the taps of an axis for the point at hand.
func (p *point) taps(r *resized, n sym.Expr) []tap {
	b := p.b
	num := func(v float64) value { return b.Float(kir.F64, v) }
	x, _ := p.source(r)
	last := b.Sub(r.in, num(1))
	place := func(v value) index.Expr { // kept within the axis
		v = b.Select(b.Lt(v, num(0)), num(0), b.Select(b.Lt(last, v), last, v))
		if n.Is(1) {
			return index.Expr{}
		}
		return p.dim(b.Convert(kir.FToS, v, kir.I32), n)
	}
	if mode := p.str("mode"); mode == "nearest" || mode == "" {
		return []tap{{at: place(p.nearest(x))}}
	} else if mode == "linear" {
		base := b.Sub(b.Unary(kir.Ceil, x), num(1))
		ratio := b.Sub(x, base)
		return []tap{{place(base), b.Sub(num(1), ratio)}, {place(b.Add(base, num(1))), ratio}}
	}
	// cubic: four taps around x
	base := b.Sub(b.Unary(kir.Ceil, x), num(1))
	ratio := b.Sub(x, base)
	coef := p.float("cubic_coeff_a")
	near := func(d value) value { // ((a+2)*d - (a+3))*d*d + 1
		return b.Add(b.Mul(b.Mul(b.Sub(b.Mul(num(coef+2), d), num(coef+3)), d), d), num(1))
	}
	far := func(d value) value { // ((a*d - 5a)*d + 8a)*d - 4a
		v := b.Add(b.Mul(b.Sub(b.Mul(num(coef), d), num(5*coef)), d), num(8*coef))
		return b.Sub(b.Mul(v, d), num(4*coef))
	}
	rest := b.Sub(num(1), ratio)
	return []tap{
		{place(b.Sub(base, num(1))), far(b.Add(ratio, num(1)))},
		{place(base), near(ratio)},
		{place(b.Add(base, num(1))), near(rest)},
		{place(b.Add(base, num(2))), far(b.Add(rest, num(1)))},
	}
}
