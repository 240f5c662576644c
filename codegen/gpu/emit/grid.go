package emit

import (
	"sync"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/tensor"
)

// gridSample reads between pixels, where the grid says. Places and weights are computed in double, as the interpreter does.
func gridSample(p *point) value {
	x, grid := p.in(0), p.in(1)
	p.wants(-1, max(rank(x), 3))
	d := dtype(x)
	if d == tensor.Bool || !dtype(grid).IsFloat() {
		refuse("elements of type %s, at places of type %s", d, dtype(grid))
	}
	b := p.b
	num := func(v float64) value { return b.Float(kir.F64, v) }
	wide := func(v value) value { return b.Convert(kir.Widen, v, kir.F64) }
	in := shapeOf(x)[2:]
	spot := append([]index.Expr{p.coords[0]}, p.coords[2:]...)
	align, padding := p.int("align_corners") != 0, p.str("padding_mode")
	// a tap along an axis: where it is, what it weighs, and whether it is on the image
	type gridTap struct {
		at         index.Expr
		weight, on value
	}
	// taps are made when they are first read, so that few are alive at a time
	taps := make([][]func() gridTap, len(in))
	for k, n := range in {
		size := b.Convert(kir.SToF, b.Size(n), kir.F64)
		last := b.Sub(size, num(1))
		t := wide(p.at(grid, append(spot[:len(spot):len(spot)], index.Int(int64(len(in)-1-k))))) // x comes first
		pos := b.Div(b.Sub(b.Mul(b.Add(t, num(1)), size), num(1)), num(2))
		if align {
			pos = b.Mul(b.Div(b.Add(t, num(1)), num(2)), last)
		}
		tap := func(where func() (at, weight value)) {
			taps[k] = append(taps[k], sync.OnceValue(func() gridTap {
				at, weight := where()
				at = b.Unary(kir.Trunc, at)
				on := b.And(b.And(b.Compare(kir.Le, num(0), at), b.Compare(kir.Le, at, last)), b.Compare(kir.Ne, weight, num(0)))
				place := index.Expr{}
				if !n.Is(1) {
					place = p.dim(b.Convert(kir.FToS, b.Select(on, at, num(0)), kir.I32), n)
				}
				return gridTap{place, weight, on}
			}))
		}
		switch mode := p.str("mode"); mode {
		case "nearest":
			tap(func() (at, weight value) { return b.Unary(kir.Rint, p.padded(pos, size, padding, align)), num(1) })
		case "cubic", "bicubic":
			base := b.Unary(kir.Floor, pos)
			for i := -1.0; i <= 2; i++ {
				tap(func() (at, weight value) {
					at = b.Add(base, num(i))
					if padding != "zeros" && padding != "" {
						at = p.padded(at, size, padding, align)
					}
					return at, cubicWeight(b, b.Unary(kir.Abs, b.Sub(b.Sub(pos, base), num(i))), -0.75)
				})
			}
		default:
			pos = p.padded(pos, size, padding, align)
			base := b.Unary(kir.Floor, pos)
			part := b.Sub(pos, base)
			tap(func() (at, weight value) { return base, b.Sub(num(1), part) })
			tap(func() (at, weight value) { return b.Add(base, num(1)), part })
		}
	}
	var sum func(axis int, coords []index.Expr, weight, on, total value) value
	sum = func(axis int, coords []index.Expr, weight, on, total value) value {
		if axis == len(in) {
			v := p.when(on, num(0), func() value { return b.Mul(weight, convert(b, p.at(x, coords), d, tensor.Float64)) })
			return b.Select(on, b.Add(total, v), total)
		}
		for _, tap := range taps[axis] {
			t := tap()
			total = sum(axis+1, append(coords[:len(coords):len(coords)], t.at), b.Mul(weight, t.weight), b.And(t.on, on), total)
		}
		return total
	}
	y := sum(0, p.coords[:2:2], num(1), b.Int(kir.I1, 1), num(0))
	if d.IsFloat() {
		return b.Convert(kir.Round, y, regType(d))
	}
	return convert(b, y, tensor.Float64, d)
}

// padded brings a coordinate into an image of that size as the padding mode says; NaN goes outside.
func (p *point) padded(pos, size value, padding string, align bool) value {
	b := p.b
	num := func(v float64) value { return b.Float(kir.F64, v) }
	clamp := func(v, lo, hi value) value { return b.Select(b.Lt(v, lo), lo, b.Select(b.Lt(hi, v), hi, v)) }
	last := b.Sub(size, num(1))
	var at value
	switch padding {
	case "border":
		at = clamp(pos, num(0), last)
	case "reflection":
		lo, hi := num(-0.5), b.Sub(size, num(0.5))
		if align {
			lo, hi = num(0), last
		}
		span := b.Sub(hi, lo)
		twice := b.Mul(num(2), span)
		q := approx.Mod(b, b.Unary(kir.Abs, b.Sub(pos, lo)), twice)
		q = b.Select(b.Lt(span, q), b.Sub(twice, q), q)
		at = b.Select(b.Lt(num(0), span), clamp(b.Add(q, lo), num(0), last), num(0))
	default: // far outside is all the same: zero
		at = clamp(pos, num(-2), b.Add(size, num(2)))
	}
	return b.Select(b.IsNaN(pos), num(-1), at)
}

// cubicWeight is the cubic convolution kernel at distance d >= 0.
func cubicWeight(b *kir.Builder, d value, a float64) value {
	num := func(v float64) value { return b.Float(kir.F64, v) }
	near := b.Add(b.Mul(b.Mul(b.Sub(b.Mul(num(a+2), d), num(a+3)), d), d), num(1))
	far := b.Sub(b.Mul(b.Add(b.Mul(b.Sub(b.Mul(num(a), d), num(5*a)), d), num(8*a)), d), num(4*a))
	return b.Select(b.Compare(kir.Le, d, num(1)), near, b.Select(b.Lt(d, num(2)), far, num(0)))
}
