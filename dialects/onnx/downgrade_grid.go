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
	lens    []*ssa.Value // the sizes of the spatial axes, int64 scalars
	t       tensor.DType // what coordinates and weights are computed in
	padding string
	corners bool
}

// tap is an element along an axis and its weight, nil for 1. Elements are whole numbers of the type of coordinates.
type tap struct{ at, weight *ssa.Value }

func gridSample(d *Downgrade) *ssa.Value {
	x, grid := d.in(0), d.in(1)
	rank := d.rank(x, 20)
	if r := d.rank(grid, 20); r != rank || rank < 3 {
		d.Fail(0, "a grid of rank %d for an input of rank %d", r, rank)
	}
	dtype := x.DType()
	x = d.up(x)
	g := &gridReader{Downgrade: d, t: x.DType(), padding: d.Node.AttrStr("padding_mode", "zeros"), corners: d.Node.AttrInt("align_corners", 0) != 0}
	g.flat = d.Op("Reshape", x, d.concat(0, d.sizes1(x, 0, 2), d.ints(-1)))
	rows := d.Op("Reshape", d.cast(grid, g.t), d.concat(0, d.sizes1(grid, 0, 1), d.ints(-1, int64(rank-2))))
	taps := make([][]tap, rank-2)
	for i := range taps {
		g.lens = append(g.lens, d.size(x, i+2))
		c := g.place(d.gather(rows, d.long(int64(rank-3-i)), 2), i) // the grid tells the innermost axis first
		taps[i] = g.taps(c, i)
	}
	y := g.sum(taps, nil, nil)
	y = d.Op("Reshape", y, d.concat(0, d.sizes1(x, 0, 2), d.sizes1(grid, 1, rank-1)))
	return d.cast(y, dtype)
}

func (g *gridReader) num(v float64) *ssa.Value   { return g.scalar(g.t, v) }
func (g *gridReader) length(axis int) *ssa.Value { return g.cast(g.lens[axis], g.t) }
func (g *gridReader) end(axis int) *ssa.Value    { return g.Op("Sub", g.length(axis), g.num(1)) }
func (g *gridReader) clip(c *ssa.Value, axis int) *ssa.Value {
	return g.Op("Min", g.Op("Max", c, g.num(0)), g.end(axis))
}

// place takes coordinates from [-1, 1] to elements: to the centres of the outer ones, or to their edges.
func (g *gridReader) place(c *ssa.Value, axis int) *ssa.Value {
	c = g.Op("Add", c, g.num(1))
	if g.corners {
		return g.Op("Mul", g.Op("Div", c, g.num(2)), g.end(axis))
	}
	return g.Op("Div", g.Op("Sub", g.Op("Mul", c, g.length(axis)), g.num(1)), g.num(2))
}

// pad brings coordinates beyond the ends to the last element, or reflects them.
func (g *gridReader) pad(c *ssa.Value, axis int) *ssa.Value {
	switch g.padding {
	case "border":
		return g.clip(c, axis)
	case "reflection":
		low, span := g.num(-0.5), g.length(axis)
		if g.corners {
			low, span = g.num(0), g.Op("Max", g.end(axis), g.num(0.5)) // a single element reflects everything to itself
		}
		in := g.Op("Abs", g.Op("Sub", c, low))
		flips := g.Op("Floor", g.Op("Div", in, span))
		extra := g.Op("Sub", in, g.Op("Mul", flips, span))
		half := g.Op("Div", flips, g.num(2))
		odd := g.Op("Greater", half, g.Op("Floor", half))
		back := g.Op("Where", odd, g.Op("Sub", span, extra), extra)
		return g.clip(g.Op("Add", back, low), axis)
	}
	return c
}

// taps gives the elements along an axis that make a value at coordinates.
func (g *gridReader) taps(c *ssa.Value, axis int) []tap {
	low := g.Op("Floor", c)
	at := func(i int) *ssa.Value { return g.Op("Add", low, g.num(float64(i))) }
	whole := func(v *ssa.Value) *ssa.Value { return g.Op("Round", g.pad(v, axis)) }
	switch m := g.Node.AttrStr("mode", "linear"); m {
	case "nearest":
		return []tap{{at: whole(g.Op("Round", c))}}
	case "linear", "bilinear":
		part := g.Op("Sub", c, low)
		return []tap{{whole(low), g.Op("Sub", g.num(1), part)}, {whole(at(1)), part}}
	case "cubic", "bicubic":
		var ts []tap
		for i := -1; i <= 2; i++ {
			dist := g.Op("Abs", g.Op("Sub", c, at(i)))
			ts = append(ts, tap{whole(at(i)), g.cubicWeights(dist, -0.75)})
		}
		return ts
	default:
		g.Fail(0, "the mode %s", m)
		return nil
	}
}

// sum adds up the elements of all combinations of taps; at and weight are
// those of the axes before.
func (g *gridReader) sum(taps [][]tap, at []*ssa.Value, weight *ssa.Value) *ssa.Value {
	if len(at) == len(taps) {
		v := g.read(at)
		if weight != nil {
			v = g.Op("Mul", v, g.Op("Unsqueeze", weight, g.ints(1)))
		}
		return v
	}
	var total *ssa.Value
	for _, t := range taps[len(at)] {
		w := t.weight
		if weight != nil {
			w = g.Op("Mul", weight, w)
		}
		v := g.sum(taps, append(at[:len(at):len(at)], t.at), w)
		if total == nil {
			total = v
		} else {
			total = g.Op("Add", total, v)
		}
	}
	return total
}

// read gives the elements at whole coordinates, [batch, channels, points]; 0 beyond the ends if that is the padding.
func (g *gridReader) read(at []*ssa.Value) *ssa.Value {
	var index, inside *ssa.Value
	for i, c := range at {
		k := g.cast(g.clip(c, i), tensor.Int64)
		ok := g.Op("Equal", g.cast(k, g.t), c) // clipping has not moved it
		if index == nil {
			index, inside = k, ok
		} else {
			index, inside = g.Op("Add", g.Op("Mul", index, g.lens[i]), k), g.Op("And", inside, ok)
		}
	}
	index = g.Op("Unsqueeze", index, g.ints(1))
	shape := g.concat(0, g.sizes1(g.flat, 0, 2), g.Op("Unsqueeze", g.size(index, 2), g.ints(0)))
	v := g.OpA("GatherElements", []ssa.Attr{intAttr("axis", 2)}, g.flat, g.Op("Expand", index, shape))
	if g.padding == "zeros" {
		v = g.Op("Where", g.Op("Unsqueeze", inside, g.ints(1)), v, g.num(0))
	}
	return v
}
