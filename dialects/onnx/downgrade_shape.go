package onnx

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// axesAttr: Squeeze and Unsqueeze had their axes as an attribute.
func axesAttr(d *Downgrade) {
	d.intsAttr(1, "axes", 13)
	d.dropOperands(1)
}

// frontUnsqueeze: axes count from the front of the result.
func frontUnsqueeze(d *Downgrade) {
	d.positiveAxes("axes", func() int { return d.rank(d.in(0), 11) + len(d.Node.AttrInts("axes")) })
}

// reshapeZero: a 0 in the shape always meant the input's size. A size that may be 0 and is not the input's there
// becomes -1 where it is 0. Two of them at once are an error at run time.
func reshapeZero(d *Downgrade) {
	allow := d.Node.AttrInt("allowzero", 0) != 0
	d.Node.RemoveAttr("allowzero")
	if !allow {
		return
	}
	x, shape := d.in(0), d.in(1)
	want, ok := SymOf(shape)
	if !ok {
		if t := d.Node.Results[0].Tensor(); t != nil && t.Ranked {
			want, ok = t.Dims, true
		}
	}
	zero := d.long(-1) // what a 0 becomes
	if ok {
		in := x.Tensor()
		become := make([]int64, len(want))
		copied := true
		// sizes of inputs that are taken to be 1 or more may be 0: the operator says so
		positive := !slices.ContainsFunc(want, func(e sym.Expr) bool { return e.Min() < 1 })
		for i, e := range want {
			if e.Is(0) { // any tensor without elements of that shape does
				fill := tensor.FromInts(x.DType(), []int64{1}, []int64{0})
				d.Replace(d.ConstantOfShape(shape, Value(fill)))
				return
			}
			if (e.Min() < 1 || positive && !e.IsConst()) && !e.Is(-1) && !(in != nil && in.Ranked && i < len(in.Dims) && in.Dims[i].Equal(e)) {
				become[i], copied = -1, false
			}
		}
		if copied {
			return
		}
		zero = d.ints(become...)
	}
	d.Node.SetOperand(1, d.Where(d.Equal(shape, d.long(0)), zero, shape))
}

// shapeRange: all sizes were given.
func shapeRange(d *Downgrade) {
	start, hasStart := d.Node.Attr("start")
	end, hasEnd := d.Node.Attr("end")
	if !hasStart && !hasEnd {
		return
	}
	e := int64(math.MaxInt64)
	if hasEnd {
		e = end.Int()
	}
	all := d.Shape(d.in(0))
	d.Replace(d.Slice(all, d.ints(start.Int()), d.ints(e), d.ints(0), nil))
}

// splitNumOutputs: equal parts were had by saying nothing, others by their sizes.
func splitNumOutputs(d *Downgrade) {
	d.Node.RemoveAttr("num_outputs")
	if d.in(1) != nil {
		return
	}
	axis := d.Node.AttrInt("axis", 0)
	x := d.in(0).Tensor()
	n := int64(len(d.Node.Results))
	if axis < 0 {
		axis += int64(d.rank(d.in(0), 18))
	}
	if x != nil && x.Ranked {
		if size, ok := x.Dims[axis].Int(); ok {
			if size%n == 0 {
				return
			}
			part := (size + n - 1) / n
			sizes := make([]int64, n)
			for i := range sizes {
				sizes[i] = max(0, min(part, size-part*int64(i)))
			}
			d.Node.SetOperands(d.in(0), d.ints(sizes...))
			return
		}
		first := d.Node.Results[0].Tensor()
		last := d.Node.Results[n-1].Tensor()
		if first != nil && last != nil && first.Ranked && last.Ranked && first.Dims[axis].Equal(last.Dims[axis]) {
			return
		}
	}
	// all parts but the last are of the size that is rounded up
	size := d.size(d.in(0), int(axis))
	part := d.Div(d.Add(size, d.long(n-1)), d.long(n))
	sizes := make([]*ssa.Value, n)
	for i := range sizes {
		left := d.Max(d.Sub(size, d.Mul(part, d.long(int64(i)))), d.long(0))
		sizes[i] = d.Unsqueeze(d.Min(part, left), d.ints(0))
	}
	d.Node.SetOperands(d.in(0), d.concat(0, sizes...))
}

// splitAttr: the sizes were an attribute.
func splitAttr(d *Downgrade) {
	if _, ok := ConstInts(d.in(1)); d.in(1) == nil || ok {
		d.intsAttr(1, "split", 13)
		d.dropOperands(1)
		return
	}
	// computed sizes: slices between their running sums
	axis := d.Node.AttrInt("axis", 0)
	end := d.ints(0)
	vs := make([]*ssa.Value, len(d.Node.Results))
	for i := range vs {
		start := end
		end = d.Add(start, d.Slice(d.in(1), d.ints(int64(i)), d.ints(int64(i+1)), d.ints(0), nil))
		vs[i] = d.Slice(d.in(0), start, end, d.ints(axis), nil)
	}
	d.Replace(vs...)
}

// sliceForward: axes counted from the front. Steps could not go back by the
// standard; onnxruntime has one kernel for both versions.
func sliceForward(d *Downgrade) {
	if axes, ok := ConstInts(d.in(3)); ok {
		changed := false
		axes = append([]int64(nil), axes...)
		for i, a := range axes {
			if a < 0 {
				axes[i], changed = a+int64(d.rank(d.in(0), 11)), true
			}
		}
		if changed {
			d.Node.SetOperand(3, d.ints(axes...))
		}
	}
	steps, ok := ConstInts(d.in(4))
	back := false
	for _, s := range steps {
		back = back || s < 0
	}
	switch {
	case d.in(4) == nil || ok && !back:
	case d.Target == OnnxRuntime && d.Opset == 10:
	default:
		d.sliceByGather()
	}
}

// sliceAttrs: everything was an attribute, and there were no steps.
func sliceAttrs(d *Downgrade) {
	steps, ok := ConstInts(d.in(4))
	one := d.in(4) == nil || ok
	for _, s := range steps {
		one = one && s == 1
	}
	starts, ok1 := ConstInts(d.in(1))
	ends, ok2 := ConstInts(d.in(2))
	axes, ok3 := ConstInts(d.in(3))
	if !one || !ok1 || !ok2 || !ok3 && d.in(3) != nil {
		d.sliceByGather()
		return
	}
	d.Node.SetAttr("starts", ssa.Ints(starts...))
	d.Node.SetAttr("ends", ssa.Ints(ends...))
	if d.in(3) != nil {
		d.Node.SetAttr("axes", ssa.Ints(axes...))
	}
	d.dropOperands(1)
}

// sliceByGather picks the elements of a slice by their positions, axis by axis.
func (d *Downgrade) sliceByGather() {
	x := d.in(0)
	starts, ok1 := ConstInts(d.in(1))
	ends, ok2 := ConstInts(d.in(2))
	axes, ok3 := ConstInts(d.in(3))
	steps, ok4 := ConstInts(d.in(4))
	t := x.Tensor()
	if !ok1 || !ok2 || d.in(3) != nil && !ok3 || d.in(4) != nil && !ok4 || t == nil || !t.Ranked {
		d.sliceByRange()
		return
	}
	if len(ends) != len(starts) || axes != nil && len(axes) != len(starts) || steps != nil && len(steps) != len(starts) {
		d.Fail(0, "the bounds of a slice are not as many as its axes")
	}
	for k := range starts {
		axis, step := int64(k), int64(1)
		if axes != nil {
			axis = axes[k]
		}
		if axis < 0 {
			axis += int64(len(t.Dims))
		}
		if steps != nil {
			step = steps[k]
		}
		n, ok := t.Dims[axis].Int()
		if !ok {
			if step == 1 {
				x = d.Slice(x, d.ints(starts[k]), d.ints(ends[k]), d.ints(axis), nil)
				continue
			}
			d.sliceByRange()
			return
		}
		var at []int64
		s, e := clampSlice(starts[k], ends[k], step, n)
		for i := s; step > 0 && i < e || step < 0 && i > e; i += step {
			at = append(at, i)
		}
		if at == nil {
			x = d.Slice(x, d.ints(0), d.ints(0), d.ints(axis), nil)
			continue
		}
		x = d.Gather(x, d.ints(at...), Axis(axis))
	}
	d.Replace(x)
}

// clampSlice gives the bounds within an axis of n elements.
func clampSlice(start, end, step, n int64) (int64, int64) {
	lo, hi := int64(0), n
	if step < 0 {
		lo, hi = -1, n-1
	}
	fit := func(v int64) int64 {
		if v < 0 {
			v += n
			if v < 0 {
				return lo
			}
		}
		return min(v, hi)
	}
	return fit(start), fit(end)
}

// frontIndices: indices counted from the front by the standard; onnxruntime
// has one kernel for both versions.
func frontIndices(d *Downgrade) {
	if d.Target == OnnxRuntime {
		return
	}
	if neverNegative(d.in(1)) {
		return
	}
	axis := d.Node.AttrInt("axis", 0)
	rank := d.rank(d.in(0), 11)
	if axis < 0 {
		axis += int64(rank)
	}
	d.Node.SetOperand(1, d.fromFront(d.in(1), d.size(d.in(0), int(axis))))
}

// fromFront adds the size n, of type int64, to negative indices.
func (d *Downgrade) fromFront(i, n *ssa.Value) *ssa.Value {
	n = d.cast(n, i.DType())
	neg := d.Less(i, d.scalarInt(i.DType(), 0))
	return d.Add(i, d.Mul(d.cast(neg, i.DType()), n))
}

// size is the size of an axis as an int64 scalar.
func (d *Downgrade) size(x *ssa.Value, axis int) *ssa.Value {
	if t := x.Tensor(); t != nil && t.Ranked {
		if axis < 0 || axis >= len(t.Dims) {
			d.Fail(0, "axis %d is out of range for rank %d", axis, len(t.Dims))
		}
		if n, ok := t.Dims[axis].Int(); ok {
			return d.scalarInt(tensor.Int64, n)
		}
	}
	return d.Gather(d.Shape(x), d.scalarInt(tensor.Int64, int64(axis)), Axis(0))
}

// padAxesAtRun puts the pads at the places of axes that are computed at run time.
func padAxesAtRun(d *Downgrade, rank int) {
	n := d.long(int64(rank))
	axes := d.fromFront(d.cast(d.in(3), tensor.Int64), n)
	places := d.concat(0, axes, d.Add(axes, n))
	all := d.ScatterElements(d.ints(make([]int64, 2*rank)...), places, d.in(1), Axis(0))
	d.Node.SetOperands(d.in(0), all, d.in(2))
}

// axes counts axes from the front. It fails on one that is out of range.
func (d *Downgrade) axes(given []int64, rank int) []int64 {
	out := make([]int64, len(given))
	for i, a := range given {
		if out[i] = a; a < 0 {
			out[i] += int64(rank)
		}
		if out[i] < 0 || out[i] >= int64(rank) {
			d.Fail(0, "axis %d is out of range for rank %d", a, rank)
		}
	}
	return out
}

// padWrap: the wrap mode did not exist; it joins the ends to the input.
func padWrap(d *Downgrade) {
	if d.Node.AttrStr("mode", "constant") != "wrap" {
		return
	}
	x := d.in(0)
	rank := d.rank(x, 19)
	pads, ok := ConstInts(d.in(1))
	if !ok {
		d.Fail(19, "the pads of mode wrap are computed at run time")
	}
	axes, ok := ConstInts(d.in(3))
	if d.in(3) == nil {
		for i := range rank {
			axes = append(axes, int64(i))
		}
	} else if !ok {
		d.Fail(19, "the axes of mode wrap are computed at run time")
	}
	n := len(axes)
	if len(pads) != 2*n {
		d.Fail(0, "%d pads for %d axes", len(pads), n)
	}
	for k, a := range d.axes(axes, rank) {
		before, after := pads[k], pads[k+n]
		if before < 0 || after < 0 {
			d.Fail(19, "mode wrap with negative pads")
		}
		if n, ok := x.Tensor().Dims[a].Int(); ok && max(before, after) > n {
			d.Fail(19, "mode wrap with pads longer than the axis")
		}
		var parts []*ssa.Value
		if before > 0 {
			parts = append(parts, d.Slice(x, d.ints(-before), d.ints(math.MaxInt64), d.ints(a), nil))
		}
		parts = append(parts, x)
		if after > 0 {
			parts = append(parts, d.Slice(x, d.ints(0), d.ints(after), d.ints(a), nil))
		}
		if len(parts) > 1 {
			x = d.Concat(a, parts...)
		}
	}
	d.Replace(x)
}

// padAxes: pads were given for all axes.
func padAxes(d *Downgrade) {
	if d.in(3) == nil {
		return
	}
	rank := d.rank(d.in(0), 18)
	axes, ok := ConstInts(d.in(3))
	if !ok {
		padAxesAtRun(d, rank)
		return
	}
	n := len(axes)
	if pads, ok := ConstInts(d.in(1)); ok {
		if len(pads) != 2*n {
			d.Fail(0, "%d pads for %d axes", len(pads), n)
		}
		all := make([]int64, 2*rank)
		for k, a := range d.axes(axes, rank) {
			all[a], all[int(a)+rank] = pads[k], pads[k+n]
		}
		d.Node.SetOperand(1, d.ints(all...))
	} else {
		// position 2n of the pads with a 0 behind is that 0
		at := make([]int64, 2*rank)
		for i := range at {
			at[i] = int64(2 * n)
		}
		for k, a := range d.axes(axes, rank) {
			at[a], at[int(a)+rank] = int64(k), int64(k+n)
		}
		zero := d.Concat(0, d.in(1), d.ints(0))
		d.Node.SetOperand(1, d.Gather(zero, d.ints(at...), Axis(0)))
	}
	d.dropOperands(3)
}

// padAttrs: pads and value were attributes, of floats only.
func padAttrs(d *Downgrade) {
	pads, ok := ConstInts(d.in(1))
	value := 0.0
	if v := d.in(2); v != nil && ok {
		value, ok = ConstFloat(v)
	}
	if !ok {
		if !padByConcat(d, d.in(0).DType()) {
			d.Fail(11, "pads are computed at run time")
		}
		return
	}
	d.Node.SetAttr("pads", ssa.Ints(pads...))
	d.dropOperands(1)
	if d.Node.AttrStr("mode", "constant") == "constant" && value != 0 {
		d.Node.SetAttr("value", ssa.Float(value))
	}
}

func (d *Downgrade) slice(x *ssa.Value, axis, from, to, step int64) *ssa.Value {
	return d.Slice(x, d.ints(from), d.ints(to), d.ints(axis), d.ints(step))
}
