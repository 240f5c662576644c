package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// resized is an axis of a Resize: by how much, from what size to what size, as doubles, and its region of interest.
type resized struct {
	axis           int
	scale, in, out value
	start, end     value // of tf_crop_and_resize
}

// resizedAxes are the axes of a Resize that change, in ascending order. Those that only may change count too.
func (p *point) resizedAxes() []resized {
	b, x := p.b, p.in(0)
	in, out := shapeOf(x), shapeOf(p.o.Results[0])
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
	size := func(e sym.Expr) value { return b.Convert(kir.SToF, b.Size(e), kir.F64) }
	crop := p.str("coordinate_transformation_mode") == "tf_crop_and_resize"
	one := b.Float(kir.F64, 1)
	found := make([]*resized, len(in))
	element := func(i, at int) value {
		return convert(b, p.at(p.in(i), []index.Expr{index.Int(int64(at))}), dtype(p.in(i)), tensor.Float64)
	}
	var known []float64
	if t := onnx.ConstOf(p.in(2)); t != nil && t.HasData() && p.in(3) == nil {
		if known = t.Float64s(); len(known) != len(axes) {
			refuse("%d scales for %d axes", len(known), len(axes))
		}
	}
	var common value // the scale of all axes where they keep their proportions
	if policy := p.str("keep_aspect_ratio_policy"); p.in(3) != nil && policy != "" && policy != "stretch" {
		want := p.sizes(3)
		if len(want) != len(axes) {
			refuse("%d sizes for %d axes", len(want), len(axes))
		}
		for i, a := range axes {
			s := b.Div(size(want[i]), size(in[a]))
			switch {
			case common == nil:
				common = s
			case policy == "not_larger":
				common = lesser(b, common, s)
			default:
				common = greater(b, common, s)
			}
		}
	}
	for i, a := range axes {
		r := &resized{axis: a, in: size(in[a]), out: size(out[a]), start: b.Float(kir.F64, 0), end: one}
		switch {
		case common != nil:
			r.scale = common
		case p.in(3) != nil:
			r.scale = b.Div(r.out, r.in)
		case known != nil:
			r.scale = b.Float(kir.F64, known[i])
		case p.in(2) != nil && dtype(p.in(2)).IsFloat():
			r.scale = element(2, i)
		default:
			refuse("neither scales nor sizes")
		}
		if crop {
			if roi := p.in(1); roi != nil && dtype(roi).IsFloat() && shapeOf(roi)[0].Is(int64(2*len(axes))) {
				r.start, r.end = element(1, i), element(1, len(axes)+i)
			}
		} else if in[a].Equal(out[a]) && (r.scale.Op == kir.Const && r.scale.Float == 1 || p.in(3) != nil && common == nil) {
			continue
		}
		found[a] = r
	}
	var all []resized
	for a, r := range found {
		if r == nil && crop {
			r = &resized{axis: a, in: size(in[a]), out: size(out[a]), scale: one, start: b.Float(kir.F64, 0), end: one}
		}
		if r != nil {
			all = append(all, *r)
		}
	}
	return all
}

// source is where an element of the result stands along an axis of the operand, and whether that is outside of the region of interest
// (nil where there is none).
func (p *point) source(r *resized) (x, outside value) {
	b := p.b
	num := func(v float64) value { return b.Float(kir.F64, v) }
	x = b.Convert(kir.SToF, p.lower(p.coords[r.axis]), kir.F64)
	single := b.Eq(r.out, num(1))
	last := b.Sub(r.in, num(1))
	half := b.Sub(b.Div(b.Add(x, num(0.5)), r.scale), num(0.5))
	if near := p.str("mode"); near == "nearest" || near == "" { // a place is a float32 then, as in the interpreter
		narrow := func(v value) value { return b.Convert(kir.Round, v, kir.F32) }
		at, scale, small := narrow(x), narrow(r.scale), func(v float64) value { return b.Float(kir.F32, v) }
		switch p.str("coordinate_transformation_mode") {
		case "asymmetric":
			return b.Convert(kir.Widen, b.Div(at, scale), kir.F64), outside
		case "half_pixel", "":
			return b.Convert(kir.Widen, b.Sub(b.Div(b.Add(at, small(0.5)), scale), small(0.5)), kir.F64), outside
		}
	}
	switch mode := p.str("coordinate_transformation_mode"); mode {
	case "align_corners":
		x = b.Select(single, num(0), b.Div(b.Mul(x, last), b.Sub(r.out, num(1))))
	case "asymmetric":
		x = b.Div(x, r.scale)
	case "pytorch_half_pixel":
		x = b.Select(single, num(0), half)
	case "half_pixel":
		x = half
	case "tf_half_pixel_for_nn":
		x = b.Div(b.Add(x, num(0.5)), r.scale)
	case "half_pixel_symmetric":
		adjust := b.Div(r.out, b.Mul(r.scale, r.in))
		center := b.Mul(b.Div(r.in, num(2)), b.Sub(num(1), adjust))
		x = b.Sub(b.Add(center, b.Div(b.Add(x, num(0.5)), r.scale)), num(0.5))
	case "tf_crop_and_resize":
		moved := b.Add(b.Mul(r.start, last), b.Div(b.Mul(b.Mul(x, b.Sub(r.end, r.start)), last), b.Sub(r.out, num(1))))
		x = b.Select(b.Lt(num(1), r.out), moved, b.Mul(b.Mul(num(0.5), b.Add(r.start, r.end)), last))
		outside = b.Or(b.Lt(x, num(0)), b.Lt(last, x))
	default:
		refuse("coordinates %s", mode)
	}
	return x, outside
}

// nearest rounds a place as the mode says.
func (p *point) nearest(x value) value {
	b := p.b
	switch p.str("nearest_mode") {
	case "floor":
		return b.Unary(kir.Floor, x)
	case "ceil":
		return b.Unary(kir.Ceil, x)
	case "round_prefer_ceil":
		return b.Unary(kir.Floor, b.Add(x, b.Float(kir.F64, 0.5)))
	}
	return b.Unary(kir.Ceil, b.Sub(x, b.Float(kir.F64, 0.5)))
}

// resample is a Resize of any kind: axis by axis, in double, each weight divided by the sum of those of the axis, as the interpreter
// does. Weights and places are found in loops, so that their number may depend on the run.
func (p *point) resample() value {
	b, x := p.b, p.in(0)
	d := dtype(x)
	in := shapeOf(x)
	mode := p.str("mode")
	num := func(v float64) value { return b.Float(kir.F64, v) }
	axes := p.resizedAxes()
	reach, kernel := 1.0, func(d value) value { return greater(b, num(0), b.Sub(num(1), b.Unary(kir.Abs, d))) }
	if mode == "cubic" {
		reach, kernel = 2, func(d value) value { return cubicWeight(b, b.Unary(kir.Abs, d), p.float("cubic_coeff_a")) }
	}
	type filter struct {
		base, ratio, shrink, sum, last value
		first, count                   value
	}
	was := p.guarded
	p.guarded = true
	defer func() { p.guarded = was }()
	sizes, dims := len(p.space.Sizes), len(p.dims)
	restore := func() { p.space.Sizes, p.dims = p.space.Sizes[:sizes], p.dims[:dims] }
	defer restore()
	whole := func(v value) value { return b.Convert(kir.FToS, v, kir.I32) }
	float := func(v value) value { return b.Convert(kir.SToF, v, kir.F64) }
	outsideAny := b.Int(kir.I1, 0)
	filters := make([]filter, len(axes))
	near := make([]value, len(axes)) // of mode nearest, the place
	// tap is the weight, not yet divided, and the place of tap k of an axis, and whether it counts
	tap := func(f *filter, k value) (weight, place, on value) {
		weight = kernel(b.Mul(b.Sub(float(k), f.ratio), f.shrink))
		place, on = b.Add(whole(f.base), k), b.Int(kir.I1, 1)
		if p.int("exclude_outside") != 0 {
			on = b.And(b.Compare(kir.Le, b.I32(0), place), b.Compare(kir.Le, place, whole(f.last)))
		}
		return weight, place, on
	}
	for i := range axes {
		a := &axes[i]
		at, outside := p.source(a)
		if outside != nil {
			outsideAny = b.Or(outside, outsideAny)
		}
		last := b.Sub(a.in, num(1))
		// a place that is no number, or far outside, is that of the nearest element
		limit := func(v, lo, hi value) value {
			v = b.Select(b.Lt(v, lo), lo, b.Select(b.Lt(hi, v), hi, v))
			return b.Select(b.IsNaN(v), lo, v)
		}
		if mode == "nearest" || mode == "" {
			near[i] = whole(limit(p.nearest(at), num(0), last))
			continue
		}
		shrink := num(1)
		if p.int("antialias") != 0 {
			shrink = lesser(b, a.scale, num(1))
		}
		base := b.Sub(b.Unary(kir.Ceil, at), num(1))
		f := filter{base: limit(base, num(-1<<30), num(1<<30)), ratio: b.Sub(at, base), shrink: shrink, last: last}
		f.first = b.Add(whole(limit(b.Unary(kir.Floor, b.Div(num(-reach), shrink)), num(-1<<30), num(0))), b.I32(1))
		f.count = b.Sub(b.I32(2), f.first) // behind the last one
		f.sum = b.For(f.first, f.count, b.I32(1), []value{num(0)}, func(k value, c []value) []value {
			weight, _, on := tap(&f, k)
			return []value{b.Select(on, b.Add(c[0], weight), c[0])}
		})[0]
		filters[i] = f
	}
	coords := append([]index.Expr(nil), p.coords...)
	// the first axis is applied first: its taps are added up innermost
	var sum func(i int) value
	sum = func(i int) value {
		if i < 0 {
			return convert(b, p.at(x, coords), d, tensor.Float64)
		}
		a, n := axes[i].axis, in[axes[i].axis]
		along := func(place value) {
			if coords[a] = p.dim(place, n); n.Is(1) {
				coords[a] = index.Expr{}
			}
		}
		if near[i] != nil {
			along(near[i])
			return sum(i - 1)
		}
		f := &filters[i]
		return b.For(f.first, f.count, b.I32(1), []value{num(0)}, func(k value, c []value) []value {
			weight, place, on := tap(f, k)
			mark, deep := len(p.space.Sizes), len(p.dims)
			end := whole(f.last)
			along(b.Select(b.Lt(place, b.I32(0)), b.I32(0), b.Select(b.Lt(end, place), end, place)))
			v := b.Add(c[0], b.Mul(b.Div(weight, f.sum), sum(i-1)))
			p.space.Sizes, p.dims = p.space.Sizes[:mark], p.dims[:deep]
			return []value{b.Select(on, v, c[0])}
		})[0]
	}
	if near != nil && (mode == "nearest" || mode == "") && !d.IsFloat() {
		for i := range axes {
			if coords[axes[i].axis] = p.dim(near[i], in[axes[i].axis]); in[axes[i].axis].Is(1) {
				coords[axes[i].axis] = index.Expr{}
			}
		}
		v := p.at(x, coords)
		return b.Select(outsideAny, convert(b, num(p.float("extrapolation_value")), tensor.Float64, d), v)
	}
	y := sum(len(axes) - 1)
	y = b.Select(outsideAny, num(p.float("extrapolation_value")), y)
	if d.IsFloat() {
		return convert(b, y, tensor.Float64, d)
	}
	t := regType(d)
	if d.Size() > 4 {
		refuse("elements of type %s", d)
	}
	low, high := num(float64(least(b, t, d).Int)), num(float64(greatest(b, t, d).Int))
	y = b.Unary(kir.Rint, y)
	y = b.Select(b.Lt(y, low), low, b.Select(b.Lt(high, y), high, y))
	return convert(b, y, tensor.Float64, d)
}
