package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// rotaryEmbedding expresses RotaryEmbedding, which came with opset 23: pairs (a, b) of each head become
// (cos*a - sin*b, sin*a + cos*b), by an angle for each place and pair. Pairs are neighbours when interleaved, else the
// halves of the part of a head that is turned.
func rotaryEmbedding(d *Downgrade) *ssa.Value {
	x := d.in(0)
	rank := d.rank(x, 23)
	order := []ssa.Attr{intsAttr("perm", 0, 2, 1, 3)}
	y := x
	if rank == 3 { // [batch, length, heads*size]
		n := d.Node.AttrInt("num_heads", 0)
		if n < 1 {
			d.Fail(0, "the attribute num_heads is missing")
		}
		y = d.reshape(x, 0, 0, n, -1)
	} else {
		y = d.OpA("Transpose", order, x)
	}
	size, ok := dimOf(y, 3).Int()
	if !ok {
		d.Fail(23, "a head size that is not known")
	}
	turned := d.Node.AttrInt("rotary_embedding_dim", 0)
	if turned == 0 {
		turned = size
	}
	if turned < 2 || turned > size || turned%2 != 0 {
		d.Fail(0, "rotary_embedding_dim is %d of %d", turned, size)
	}
	angle := func(v *ssa.Value) *ssa.Value { // [batch, length, 1, pairs]
		if at := d.in(3); at != nil {
			v = d.gather(v, at, 0)
		}
		return d.Op("Unsqueeze", d.slice(v, 2, 0, turned/2, 1), d.ints(2))
	}
	cos, sin := angle(d.in(1)), angle(d.in(2))
	first, step, second := int64(0), int64(1), turned/2
	end := turned / 2
	interleaved := d.Node.AttrInt("interleaved", 0) != 0
	if interleaved {
		step, second, end = 2, 1, turned
	}
	a, b := d.slice(y, 3, first, end, step), d.slice(y, 3, second, turned, step)
	p := d.Op("Sub", d.Op("Mul", cos, a), d.Op("Mul", sin, b))
	q := d.Op("Add", d.Op("Mul", sin, a), d.Op("Mul", cos, b))
	out := d.concat(3, p, q)
	if interleaved {
		pairs := d.concat(4, d.Op("Unsqueeze", p, d.ints(4)), d.Op("Unsqueeze", q, d.ints(4)))
		out = d.reshape(pairs, 0, 0, 0, -1)
	}
	if turned < size {
		out = d.concat(3, out, d.slice(y, 3, turned, size, 1))
	}
	if rank == 3 {
		return d.reshape(out, 0, 0, -1)
	}
	return d.OpA("Transpose", order, out)
}

func (d *Downgrade) slice(x *ssa.Value, axis, from, to, step int64) *ssa.Value {
	return d.Op("Slice", x, d.ints(from), d.ints(to), d.ints(axis), d.ints(step))
}

// tensorScatter expresses TensorScatter, which came with opset 24: an update is written into a cache at a place of its
// own for each sample.
func tensorScatter(d *Downgrade) *ssa.Value {
	cache, update := d.in(0), d.in(1)
	rank := d.rank(cache, 24)
	axis := int(d.Node.AttrInt("axis", -2))
	if axis < 0 {
		axis += rank
	}
	if axis < 1 || axis >= rank || d.rank(update, 24) != rank {
		d.Fail(0, "axis %d of rank %d", axis, rank)
	}
	along := make([]int64, rank)
	for i := range along {
		along[i] = 1
	}
	along[axis] = -1
	at := d.reshape(d.upTo(d.size(update, axis)), along...)
	if start := d.in(2); start != nil {
		each := make([]int64, rank)
		for i := range each {
			each[i] = 1
		}
		each[0] = -1
		at = d.Op("Add", at, d.reshape(d.cast(start, tensor.Int64), each...))
	}
	if d.Node.AttrStr("mode", "linear") == "circular" {
		at = d.Op("Mod", at, d.size(cache, axis))
	}
	at = d.Op("Expand", at, d.Op("Shape", update))
	return d.OpA("ScatterElements", []ssa.Attr{intAttr("axis", int64(axis))}, cache, at, update)
}

// centerCropPad expresses CenterCropPad, which came with opset 18: what is too long is cut, what is too short gets
// zeros, at both ends, the odd one behind.
func centerCropPad(d *Downgrade) *ssa.Value {
	x, want := d.in(0), d.cast(d.in(1), tensor.Int64)
	rank := int64(d.rank(x, 18))
	axes := d.Node.AttrInts("axes")
	if axes == nil {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	axes = d.axes(axes, int(rank))
	have := d.gather(d.Op("Shape", x), d.ints(axes...), 0)
	two, zero := d.ints(2), d.ints(0)
	more := d.Op("Sub", want, have)
	cut := d.Op("Where", d.Op("Less", more, zero), d.Op("Sub", have, want), zero)
	add := d.Op("Where", d.Op("Less", more, zero), zero, more)
	from := d.Op("Div", cut, two)
	to := d.Op("Add", from, d.Op("Sub", have, cut))
	y := d.Op("Slice", x, from, to, d.ints(axes...))
	before := d.Op("Div", add, two)
	pads := d.concat(0, before, d.Op("Sub", add, before))
	return d.Op("Pad", y, pads, nil, d.ints(axes...))
}

// affineGrid expresses AffineGrid, which came with opset 20: the image of each place of an output under theta. Places
// go from -1 to 1, at the corners of the output or in the middle of its cells.
func affineGrid(d *Downgrade) *ssa.Value {
	theta, size := d.in(0), d.in(1)
	t := size.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) != 1 {
		d.Fail(20, "a size of unknown length")
	}
	rank, ok := t.Dims[0].Int()
	if !ok || rank != 4 && rank != 5 {
		d.Fail(20, "a size that is not known to have 4 or 5 numbers")
	}
	axes := int(rank) - 2
	shape := func(axis int, n int64) []int64 { // of what goes along one axis of [batch, axes..., coordinates]
		s := make([]int64, axes+2)
		for i := range s {
			s[i] = 1
		}
		s[axis] = n
		return s
	}
	part := func(k int) *ssa.Value { // what coordinate k adds
		each := shape(axes+1, int64(axes))
		each[0] = -1
		return d.reshape(d.gather(theta, d.long(int64(k)), 2), each...)
	}
	sum := part(axes)
	for k := range axes { // the first coordinate goes along the last axis
		n := d.gather(size, d.long(rank-1-int64(k)), 0)
		count, at := d.cast(n, theta.DType()), d.cast(d.upTo(n), theta.DType())
		one, two := d.like(theta, 1), d.like(theta, 2)
		if d.Node.AttrInt("align_corners", 0) != 0 {
			at = d.Op("Div", d.Op("Mul", at, two), d.Op("Sub", count, one))
		} else {
			at = d.Op("Div", d.Op("Add", d.Op("Mul", at, two), one), count)
		}
		at = d.reshape(d.Op("Sub", at, one), shape(axes-k, -1)...)
		sum = d.Op("Add", sum, d.Op("Mul", at, part(k)))
	}
	return sum
}
