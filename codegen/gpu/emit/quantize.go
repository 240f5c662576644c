package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// spread are the coordinates of a scale or zero point: one serves all, there is one for each place along an axis, or one for each
// block of places.
func (p *point) spread(v *ssa.Value) []index.Expr {
	shape, of := shapeOf(v), shapeOf(p.in(0))
	if len(shape) == 0 || len(shape) == 1 && shape[0].Is(1) {
		return make([]index.Expr, len(shape))
	}
	k := p.axis(p.int("axis"), len(of))
	if len(shape) == 1 {
		return []index.Expr{p.coords[k]}
	}
	if len(shape) != len(of) {
		refuse("scales of rank %d for a tensor of rank %d", len(shape), len(of))
	}
	block := sym.Const(p.int("block_size"))
	if block.Is(0) {
		block = of[k].Add(shape[k].Sub(sym.Const(1))).FloorDiv(shape[k])
	}
	at := append([]index.Expr(nil), p.coords...)
	at[k] = p.space.Div(at[k], block)
	for i, n := range shape {
		if n.Is(1) {
			at[i] = index.Expr{}
		}
	}
	return at
}

// quantize divides by the scale, rounds to even, adds the zero point and keeps within the type.
func quantize(p *point) value {
	b, d := p.b, dtype(p.in(0))
	to := dtype(p.o.Results[0])
	num := func(v float64) value { return b.Float(kir.F64, v) }
	single := func(i int) value {
		from := dtype(p.in(i))
		coords := p.coords
		if i > 0 {
			coords = p.spread(p.in(i))
		}
		return convert(b, p.at(p.in(i), coords), from, tensor.Float32)
	}
	v := b.Div(single(0), single(1))
	if precision := p.int("precision"); d == tensor.Float16 && dtype(p.in(1)) == d && (precision == 10 || precision == 0) {
		v = rounded(b, d, v)
	}
	if float8Of(to) != nil {
		if z := p.in(2); z != nil {
			v = b.Convert(kir.Round, b.Add(b.Convert(kir.Widen, v, kir.F64), convert(b, p.at(z, p.spread(z)), to, tensor.Float64)), kir.F32)
		}
		return toFloat8(b, to, v, p.int("saturate") != 0)
	}
	v = b.Convert(kir.Widen, b.Unary(kir.Rint, v), kir.F64)
	if z := p.in(2); z != nil {
		v = b.Add(v, convert(b, p.at(z, p.spread(z)), dtype(z), tensor.Float64))
	}
	t := regType(to)
	if to.Size() > 2 {
		refuse("elements of type %s", to)
	}
	var low, high value
	if narrowBits(to) > 0 {
		lo, hi := narrowLimits(to)
		low, high = num(float64(lo)), num(float64(hi))
	} else {
		low, high = num(float64(least(b, t, to).Int)), num(float64(greatest(b, t, to).Int))
	}
	v = b.Select(b.Lt(v, low), low, b.Select(b.Lt(high, v), high, v))
	return b.Convert(kir.FToS, b.Select(b.IsNaN(v), num(0), v), t)
}

// dequantize multiplies what is above the zero point by the scale. The product of few bits and a float32 is rounded once in
// float32; others are computed in double.
func dequantize(p *point) value {
	b, x := p.b, p.in(0)
	d, to := dtype(x), dtype(p.o.Results[0])
	if !d.IsInt() && !isNarrow(d) || d.Size() > 4 {
		refuse("elements of type %s", d)
	}
	in := tensor.Float64
	if d.Size() <= 2 && float8Of(d) == nil && to == tensor.Float32 {
		in = tensor.Float32
	}
	v := convert(b, p.at(x, p.coords), d, in)
	if z := p.in(2); z != nil {
		v = b.Sub(v, convert(b, p.at(z, p.spread(z)), dtype(z), in))
	}
	s := p.in(1)
	v = b.Mul(v, convert(b, convert(b, p.at(s, p.spread(s)), dtype(s), tensor.Float32), tensor.Float32, in))
	return convert(b, v, in, to)
}
