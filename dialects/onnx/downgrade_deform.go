package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// deformConv expresses the DeformConv of images, which came with opset 19: the elements at the displaced places of all
// windows, read bilinearly, stand as columns, and a product with the weights adds them up.
func deformConv(d *Downgrade) *ssa.Value {
	x, w, offset := d.in(0), d.in(1), d.in(2)
	if d.rank(x, 19) != 4 || d.rank(w, 19) != 4 || d.rank(offset, 19) != 4 {
		d.Fail(19, "deformable convolution of anything but images")
	}
	dtype := x.DType()
	x, w, offset = d.up(x), d.up(w), d.up(offset)
	long := func(v *ssa.Value) *ssa.Value { return d.Unsqueeze(v, d.ints(0)) }
	divided := func(v *ssa.Value, by int64) *ssa.Value { return long(d.Div(v, d.long(by))) }
	kh, ok1 := dimOf(w, 2).Int()
	kw, ok2 := dimOf(w, 3).Int()
	if !ok1 || !ok2 {
		d.Fail(19, "a kernel of unknown size")
	}
	taps, offsets, groups := kh*kw, d.Node.AttrInt("offset_group", 1), d.Node.AttrInt("group", 1)
	batch, channels, images := d.sizes1(x, 0, 1), d.size(x, 1), d.sizes1(offset, 2, 4)
	both := d.Mul(batch, d.ints(offsets))

	g := &gridReader{Downgrade: d, t: x.DType(), padding: "zeros"}
	g.flat = d.Reshape(x, d.concat(0, both, divided(channels, offsets), d.ints(-1)))
	moved := d.Reshape(offset, d.concat(0, batch, d.ints(offsets, taps, 2), d.Mul(d.sizes1(offset, 2, 3), d.sizes1(offset, 3, 4))))
	around := make([][]tap, 2)
	for i := range around {
		g.lens = append(g.lens, d.size(x, i+2))
		c := d.Add(d.gather(moved, d.long(int64(i)), 3), d.cast(d.windowPlaces(offset, i, kh, kw), g.t))
		c = d.Reshape(c, d.concat(0, both, d.ints(-1)))
		if g.wide == nil {
			g.wide = d.concat(0, d.sizes1(g.flat, 0, 2), d.sizes1(c, 1, 2))
		}
		around[i] = g.taps(c, i)
	}
	columns := d.Reshape(g.sum(around, nil), d.concat(0, batch, d.ints(offsets), divided(channels, offsets), d.ints(taps, -1)))
	if mask := d.up(d.in(4)); mask != nil {
		columns = d.Mul(columns, d.Reshape(mask, d.concat(0, batch, d.ints(offsets, 1, taps, -1))))
	}
	inner := long(d.Mul(d.size(w, 1), d.long(taps)))
	columns = d.Reshape(columns, d.concat(0, batch, d.ints(groups), inner, d.ints(-1)))
	weights := d.Reshape(w, d.concat(0, d.ints(groups), divided(d.size(w, 0), groups), inner))
	y := d.Reshape(d.MatMul(weights, columns), d.concat(0, batch, d.sizes1(w, 0, 1), images))
	if bias := d.up(d.in(3)); bias != nil {
		y = d.Add(y, d.Unsqueeze(bias, d.ints(1, 2)))
	}
	return d.cast(y, dtype)
}

// windowPlaces returns the position along a spatial axis of each tap of each window
// of an image, before the offsets are added: [taps, windows], int64.
func (d *Downgrade) windowPlaces(offset *ssa.Value, axis int, kh, kw int64) *ssa.Value {
	at := func(name string, def int64) int64 {
		if l := d.Node.AttrInts(name); axis < len(l) {
			return l[axis]
		}
		return def
	}
	steps := make([]int64, 0, kh*kw)
	for k := range kh * kw {
		i := k / kw
		if axis == 1 {
			i = k % kw
		}
		steps = append(steps, i*at("dilations", 1)-at("pads", 0))
	}
	first := d.Mul(d.Range(d.long(0), d.size(offset, axis+2), d.long(1)), d.long(at("strides", 1)))
	if axis == 0 {
		first = d.Unsqueeze(first, d.ints(1))
	}
	first = d.reshape(d.Expand(first, d.sizes1(offset, 2, 4)), 1, -1)
	return d.Add(d.Const(tensor.Of(tensor.Int64, []int64{kh * kw, 1}, steps)), first)
}
