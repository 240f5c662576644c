package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
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
	in, out := shapeOf(x), shapeOf(p.o.Results[0])
	if p.int("antialias") != 0 || p.int("exclude_outside") != 0 || p.str("coordinate_transformation_mode") == "tf_crop_and_resize" {
		refuse("antialias, exclude_outside, or cropping")
	}
	if policy := p.str("keep_aspect_ratio_policy"); policy != "" && policy != "stretch" {
		refuse("policy %s", policy)
	}
	if !dtype(x).IsFloat() && p.str("mode") != "nearest" {
		refuse("elements of type %s", dtype(x))
	}
	axes := make([]int, len(in))
	for i := range axes {
		axes[i] = i
	}
	if p.has("axes") {
		axes = axes[:0]
		for _, a := range p.ints("axes") {
			axes = append(axes, p.axis(a, len(in)))
		}
	}
	var scales []float64
	if p.in(3) == nil {
		t := onnx.ConstOf(p.in(2))
		if t == nil || !t.HasData() || t.NumElements() != int64(len(axes)) {
			refuse("scales that depend on data")
		}
		scales = t.Float64s()
	}
	b := p.b
	taps := make([][]tap, len(in))
	for i := range taps {
		taps[i] = []tap{{at: p.coords[i]}}
	}
	size := func(e sym.Expr) value { return b.Convert(kir.SToF, b.Size(e), kir.F64) }
	for i, a := range axes {
		if in[a].Equal(out[a]) && (scales == nil || scales[i] == 1) {
			continue
		}
		var scale value
		if scales != nil {
			scale = b.Float(kir.F64, scales[i])
		} else {
			scale = b.Div(size(out[a]), size(in[a]))
		}
		taps[a] = p.taps(a, scale, size(in[a]), size(out[a]), in[a])
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
func (p *point) taps(a int, scale, in, out value, n sym.Expr) []tap {
	b := p.b
	num := func(v float64) value { return b.Float(kir.F64, v) }
	x := b.Convert(kir.SToF, p.lower(p.coords[a]), kir.F64)
	single := b.Eq(out, num(1))
	half := b.Sub(b.Div(b.Add(x, num(0.5)), scale), num(0.5))
	switch mode := p.str("coordinate_transformation_mode"); mode {
	case "align_corners":
		x = b.Select(single, num(0), b.Div(b.Mul(x, b.Sub(in, num(1))), b.Sub(out, num(1))))
	case "asymmetric":
		x = b.Div(x, scale)
	case "pytorch_half_pixel":
		x = b.Select(single, num(0), half)
	case "half_pixel":
		x = half
	default:
		refuse("coordinates %s", mode)
	}
	last := b.Sub(in, num(1))
	place := func(v value) index.Expr { // kept within the axis
		v = b.Select(b.Lt(v, num(0)), num(0), b.Select(b.Lt(last, v), last, v))
		if n.Is(1) {
			return index.Expr{}
		}
		return p.dim(b.Convert(kir.FToS, v, kir.I32), n)
	}
	if mode := p.str("mode"); mode == "nearest" {
		switch p.str("nearest_mode") {
		case "floor":
			x = b.Unary(kir.Floor, x)
		case "ceil":
			x = b.Unary(kir.Ceil, x)
		case "round_prefer_ceil":
			x = b.Unary(kir.Floor, b.Add(x, num(0.5)))
		default:
			x = b.Unary(kir.Ceil, b.Sub(x, num(0.5)))
		}
		return []tap{{at: place(x)}}
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
