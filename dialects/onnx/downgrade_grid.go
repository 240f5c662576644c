package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// gridReader expresses GridSample, which came with opset 16 for images and took volumes with opset 20, by picked
// elements and weights. Coordinates are rows [batch, points], one for each spatial axis.
type gridReader struct {
	*Downgrade
	flat    *ssa.Value   // the input, [batch, channels, elements]
	wide    *ssa.Value   // the shape [batch, channels, points]
	lens    []*ssa.Value // the sizes of the spatial axes, int64 scalars
	t       tensor.DType // what coordinates and weights are computed in
	padding string
	corners bool
}

// tap is an element along an axis.
type tap struct {
	at     *ssa.Value // its place, int64
	inside *ssa.Value // whether it is there; nil if it always is
	weight *ssa.Value // nil for 1
}

func gridSample(d *Downgrade) *ssa.Value {
	x, grid := d.in(0), d.in(1)
	rank := d.rank(x, 20)
	if r := d.rank(grid, 20); r != rank || rank < 3 {
		d.Fail(0, "a grid of rank %d for an input of rank %d", r, rank)
	}
	dtype := x.DType()
	x = d.up(x)
	g := &gridReader{Downgrade: d, t: x.DType(), padding: d.Node.AttrStr("padding_mode", "zeros"), corners: d.Node.AttrInt("align_corners", 0) != 0}
	g.flat = d.Reshape(x, d.concat(0, d.sizes1(x, 0, 2), d.ints(-1)))
	rows := d.Reshape(d.cast(grid, g.t), d.concat(0, d.sizes1(grid, 0, 1), d.ints(-1, int64(rank-2))))
	g.wide = d.concat(0, d.sizes1(g.flat, 0, 2), d.sizes1(rows, 1, 2))
	taps := make([][]tap, rank-2)
	for i := range taps {
		g.lens = append(g.lens, d.size(x, i+2))
		c := g.place(d.gather(rows, d.long(int64(rank-3-i)), 2), i) // the grid tells the innermost axis first
		taps[i] = g.taps(c, i)
	}
	y := g.sum(taps, nil)
	y = d.Reshape(y, d.concat(0, d.sizes1(x, 0, 2), d.sizes1(grid, 1, rank-1)))
	return d.cast(y, dtype)
}

func gridSampleOfAny(d *Downgrade, _ tensor.DType) bool {
	d.Replace(gridSample(d))
	return true
}

func (g *gridReader) num(v float64) *ssa.Value   { return g.scalar(g.t, v) }
func (g *gridReader) length(axis int) *ssa.Value { return g.cast(g.lens[axis], g.t) }
func (g *gridReader) end(axis int) *ssa.Value    { return g.Sub(g.length(axis), g.num(1)) }
func (g *gridReader) clip(c *ssa.Value, axis int) *ssa.Value {
	return g.Min(g.Max(c, g.num(0)), g.end(axis))
}

// place takes coordinates from [-1, 1] to elements: to the centres of the outer ones, or to their edges.
func (g *gridReader) place(c *ssa.Value, axis int) *ssa.Value {
	c = g.Add(c, g.num(1))
	if g.corners {
		return g.Mul(g.Div(c, g.num(2)), g.end(axis))
	}
	return g.Div(g.Sub(g.Mul(c, g.length(axis)), g.num(1)), g.num(2))
}

// pad brings coordinates beyond the ends to the last element, or reflects them.
func (g *gridReader) pad(c *ssa.Value, axis int) *ssa.Value {
	switch g.padding {
	case "border":
		return g.clip(c, axis)
	case "reflection":
		low, span := g.num(-0.5), g.length(axis)
		if g.corners {
			low, span = g.num(0), g.Max(g.end(axis), g.num(0.5)) // a single element reflects everything to itself
		}
		in := g.Abs(g.Sub(c, low))
		flips := g.Floor(g.Div(in, span))
		extra := g.Sub(in, g.Mul(flips, span))
		half := g.Div(flips, g.num(2))
		odd := g.Greater(half, g.Floor(half))
		back := g.Where(odd, g.Sub(span, extra), extra)
		return g.clip(g.Add(back, low), axis)
	}
	return c
}

// taps gives the elements along an axis that make a value at coordinates.
func (g *gridReader) taps(c *ssa.Value, axis int) []tap {
	switch m := g.Node.AttrStr("mode", "linear"); m {
	case "nearest":
		return []tap{g.tap(g.Round(c), axis, nil)}
	case "linear", "bilinear":
		low := g.Floor(c)
		part := g.Sub(c, low)
		return []tap{g.tap(low, axis, g.Sub(g.num(1), part)), g.tap(g.Add(low, g.num(1)), axis, part)}
	case "cubic", "bicubic":
		low := g.Floor(c)
		var ts []tap
		for i, w := range g.cubicTaps(g.Sub(c, low), -0.75) {
			ts = append(ts, g.tap(g.Add(low, g.num(float64(i-1))), axis, w))
		}
		return ts
	default:
		g.Fail(0, "the mode %s", m)
		return nil
	}
}

// tap is the element at whole coordinates along an axis, which may lie beyond its ends.
func (g *gridReader) tap(c *ssa.Value, axis int, weight *ssa.Value) tap {
	t := tap{weight: weight}
	switch g.padding {
	case "zeros":
		t.inside = g.And(g.Greater(c, g.num(-1)), g.Less(c, g.length(axis)))
		c = g.clip(c, axis)
	case "reflection":
		c = g.Add(g.pad(c, axis), g.num(0.5)) // the remainder may be off by a little; the cast drops the fraction
	default:
		c = g.pad(c, axis)
	}
	t.at = g.cast(c, tensor.Int64)
	return t
}

// cubicTaps are the weights of the elements one before a place, at it, and one and two behind it, for a place that is
// part behind an element: those of cubicWeights at the distances 1 + part, part, 1 - part and 2 - part.
func (g *gridReader) cubicTaps(part *ssa.Value, a float64) [4]*ssa.Value {
	horner := func(x *ssa.Value, coefficients ...float64) *ssa.Value {
		sum := g.Mul(x, g.num(coefficients[0]))
		for i, c := range coefficients[1:] {
			if c != 0 {
				sum = g.Add(sum, g.num(c))
			}
			if i+2 < len(coefficients) {
				sum = g.Mul(sum, x)
			}
		}
		return sum
	}
	near := func(x *ssa.Value) *ssa.Value { return horner(x, a+2, -(a + 3), 0, 1) }
	far := func(x *ssa.Value) *ssa.Value { return horner(x, a, -5*a, 8*a, -4*a) }
	rest := g.Sub(g.num(1), part)
	return [4]*ssa.Value{far(g.Add(part, g.num(1))), near(part), near(rest), far(g.Add(rest, g.num(1)))}
}

// sum adds up the elements of all combinations of taps, axis by axis; chosen are those of the axes before.
func (g *gridReader) sum(taps [][]tap, chosen []tap) *ssa.Value {
	if len(chosen) == len(taps) {
		return g.read(chosen)
	}
	var total *ssa.Value
	for _, t := range taps[len(chosen)] {
		v := g.sum(taps, append(chosen[:len(chosen):len(chosen)], t))
		if t.weight != nil {
			v = g.Mul(v, g.Unsqueeze(t.weight, g.ints(1)))
		}
		if total == nil {
			total = v
		} else {
			total = g.Add(total, v)
		}
	}
	return total
}

// read gives elements, [batch, channels, points]; 0 for those beyond the ends if that is the padding.
func (g *gridReader) read(at []tap) *ssa.Value {
	var index, inside *ssa.Value
	for i, t := range at {
		if index == nil {
			index, inside = t.at, t.inside
			continue
		}
		index = g.Add(g.Mul(index, g.lens[i]), t.at)
		if inside != nil {
			inside = g.And(inside, t.inside)
		}
	}
	v := g.GatherElements(g.flat, g.Expand(g.Unsqueeze(index, g.ints(1)), g.wide), Axis(2))
	if inside != nil {
		v = g.Where(g.Unsqueeze(inside, g.ints(1)), v, g.num(0))
	}
	return v
}
