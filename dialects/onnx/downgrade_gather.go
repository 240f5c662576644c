package onnx

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Picking and placing by index, in opsets that only had Gather and Scatter: an
// index into a tensor becomes one into the tensor's elements in a row.

// long is an int64 scalar.
func (d *Downgrade) long(v int64) *ssa.Value { return d.scalarInt(tensor.Int64, v) }

// gather picks along an axis.
func (d *Downgrade) gather(x, at *ssa.Value, axis int64) *ssa.Value {
	return d.Gather(x, at, Axis(axis))
}

func (d *Downgrade) concat(axis int64, vs ...*ssa.Value) *ssa.Value {
	if len(vs) == 1 {
		return vs[0]
	}
	return d.Concat(axis, vs...)
}

func (d *Downgrade) reshape(x *ssa.Value, shape ...int64) *ssa.Value {
	return d.Reshape(x, d.ints(shape...))
}

// neverNegative says that an index certainly counts from the front.
func neverNegative(v *ssa.Value) bool {
	if c, ok := ConstInts(v); ok {
		for _, i := range c {
			if i < 0 {
				return false
			}
		}
		return true
	}
	if s, ok := SymOf(v); ok {
		for _, e := range s {
			if e.Min() < 0 {
				return false
			}
		}
		return true
	}
	for o := v.Def(); o != nil; o = o.Operand(0).Def() {
		switch o.Kind {
		case "onnx::ArgMax", "onnx::ArgMin", "onnx::NonZero", "onnx::Shape", "onnx::Size":
			return true
		case "onnx::TopK", "onnx::MaxPool":
			return v == o.Result(1)
		case "onnx::Reshape", "onnx::Unsqueeze", "onnx::Squeeze", "onnx::Transpose", "onnx::Expand", "onnx::Slice":
			v = o.Operand(0)
			continue
		}
		break
	}
	return false
}

// sizes1 is the sizes of axes from..to as a rank 1 tensor.
func (d *Downgrade) sizes1(x *ssa.Value, from, to int) *ssa.Value {
	t := x.Tensor()
	fixed := make([]int64, 0, to-from)
	for _, e := range t.Dims[from:to] {
		if n, ok := e.Int(); ok {
			fixed = append(fixed, n)
		}
	}
	if len(fixed) == to-from {
		return d.ints(fixed...)
	}
	return d.Slice(d.Shape(x), d.ints(int64(from)), d.ints(int64(to)), d.ints(0), nil)
}

// target is a shape by which what has the elements of x is reshaped to x. A single size of run time is left to be inferred, since a 0 takes the input's size.
func (d *Downgrade) target(x *ssa.Value) *ssa.Value {
	dims := x.Tensor().Dims
	shape, open := make([]int64, len(dims)), 0
	for i, e := range dims {
		n, ok := e.Int()
		if !ok {
			n = -1
			open++
		}
		if n == 0 || open > 1 {
			return d.sizes1(x, 0, len(dims))
		}
		shape[i] = n
	}
	return d.ints(shape...)
}

// stride is the product of the sizes of the axes from..to, an int64 scalar.
func (d *Downgrade) stride(x *ssa.Value, from, to int) *ssa.Value {
	acc := d.long(1)
	for i := from; i < to; i++ {
		n := d.size(x, i)
		if c, ok := ConstInts(acc); ok && c[0] == 1 {
			acc = n
		} else {
			acc = d.Mul(acc, n)
		}
	}
	return acc
}

// elementsAlong gives, for an index along an axis of x, the places of the
// elements in x in a row. Index and result have the same shape.
func (d *Downgrade) elementsAlong(x, at *ssa.Value, axis, opset int) *ssa.Value {
	at = d.cast(at, tensor.Int64)
	rank := d.rank(at, opset)
	if !neverNegative(at) {
		at = d.fromFront(at, d.size(x, axis))
	}
	place := at
	if axis < rank-1 {
		place = d.Mul(at, d.stride(x, axis+1, rank))
	}
	for j := range rank {
		t := x.Tensor()
		if j == axis || t.Dims[j].Is(1) {
			continue
		}
		k := d.Range(d.long(0), d.size(at, j), d.long(1))
		if j < rank-1 {
			k = d.Mul(k, d.stride(x, j+1, rank))
			// broadcast along the axes behind
			axes := make([]int64, 0, rank)
			for a := j + 1; a < rank; a++ {
				axes = append(axes, int64(a-j))
			}
			k = d.Unsqueeze(k, d.ints(axes...))
		}
		place = d.Add(place, k)
	}
	return place
}

// axisOf is the op's axis, from the front.
func (d *Downgrade) axisOf(x *ssa.Value, opset int) int {
	axis := d.Node.AttrInt("axis", 0)
	if axis < 0 {
		axis += int64(d.rank(x, opset))
	}
	return int(axis)
}

// gatherElements picks one element for each index.
func gatherElements(d *Downgrade) *ssa.Value {
	x, at := d.in(0), d.in(1)
	if d.rank(x, 11) == 0 {
		return x
	}
	place := d.elementsAlong(x, at, d.axisOf(x, 11), 11)
	return d.gather(d.reshape(x, -1), place, 0)
}

// scatterElements: it was called Scatter, and only replaced.
func scatterElements(d *Downgrade) {
	reductionIsNone(d)
	if d.Opset < 9 {
		d.Fail(9, "writing by index")
	}
	d.Node.RemoveAttr("reduction")
	d.positiveAxes("axis", inputRank(11)(d))
	if d.Target != OnnxRuntime && !neverNegative(d.in(1)) {
		d.Node.SetOperand(1, d.fromFront(d.in(1), d.size(d.in(0), d.axisOf(d.in(0), 11))))
	}
	d.Node.Kind = "onnx::Scatter"
}

func reductionIsNone(d *Downgrade) {
	switch r := d.Node.AttrStr("reduction", "none"); r {
	case "none":
		d.Node.RemoveAttr("reduction")
	case "add", "mul":
		d.Fail(16, "writing by index with the reduction %s", r)
	default:
		d.Fail(18, "writing by index with the reduction %s", r)
	}
}

// scatterReductions: max and min came after add and mul.
func scatterReductions(d *Downgrade) {
	r := d.Node.AttrStr("reduction", "none")
	if r != "max" && r != "min" {
		return
	}
	x, at, updates := d.in(0), d.in(1), d.in(2)
	better := map[string]string{"max": "Max", "min": "Min"}[r]
	read, axis := "GatherElements", d.Node.AttrInt("axis", 0)
	var attrs []ssa.Attr
	if d.Node.Kind.Name() == "ScatterND" { // one tuple after the other
		n := int64(d.tupleLength(at))
		rank := d.rank(x, 18)
		read, axis, at = "GatherND", 0, d.reshape(at, -1, n)
		updates = d.Reshape(updates, d.concat(0, d.ints(-1), d.sizes1(x, int(n), rank)))
	} else {
		attrs = []ssa.Attr{Axis(axis)}
		if axis < 0 {
			axis += int64(d.rank(at, 18))
		}
	}
	n, ok := at.Tensor().Dims[axis].Int()
	if !ok || n > maxSlices {
		reductionIsNone(d)
	}
	for i := range n { // what has one index along the axis goes to different places
		places, u := d.slice(at, axis, i, i+1, 1), d.slice(updates, axis, i, i+1, 1)
		x = d.OpA(d.Node.Kind.Name(), attrs, x, places, d.Op(better, d.OpA(read, attrs, x, places), u))
	}
	d.Replace(d.Identity(x))
}

// maxSlices bounds the parts into which writing with a reduction is taken apart.
const maxSlices = 64

// tuplePlaces gives the places in the first n axes of x, taken as one, that
// tuples of n indices mean. The tuples are the last axis of at.
func (d *Downgrade) tuplePlaces(x, at *ssa.Value, n int) *ssa.Value {
	at = d.cast(at, tensor.Int64)
	if !neverNegative(at) {
		neg := d.cast(d.Less(at, d.long(0)), tensor.Int64)
		at = d.Add(at, d.Mul(neg, d.sizes1(x, 0, n)))
	}
	last := int64(len(at.Tensor().Dims) - 1)
	if n == 1 {
		return d.Squeeze(at, d.ints(last))
	}
	strides := make([]*ssa.Value, n)
	for i := range strides {
		strides[i] = d.Unsqueeze(d.stride(x, i+1, n), d.ints(0))
	}
	return d.ReduceSum(d.Mul(at, d.concat(0, strides...)), d.ints(last), KeepDims(false))
}

// tupleLength is the number of indices in a tuple.
func (d *Downgrade) tupleLength(at *ssa.Value) int {
	r := d.rank(at, 11)
	if r == 0 {
		d.Fail(11, "indices of rank 0")
	}
	n, ok := at.Tensor().Dims[r-1].Int()
	if !ok {
		d.Fail(11, "tuples of unknown length as indices")
	}
	return int(n)
}

// noBatch: all axes of the indices were independent of the data's.
func noBatch(d *Downgrade) {
	if d.Node.AttrInt("batch_dims", 0) != 0 {
		d.Fail(12, "picking by tuples in batches")
	}
	d.Node.RemoveAttr("batch_dims")
}

// gatherND picks slices by tuples of indices.
func gatherND(d *Downgrade) *ssa.Value {
	x, at := d.in(0), d.in(1)
	n, rank := d.tupleLength(at), d.rank(x, 11)
	place := d.tuplePlaces(x, at, n)
	if n == rank {
		return d.gather(d.reshape(x, -1), place, 0)
	}
	if n > 1 {
		x = d.Reshape(x, d.concat(0, d.ints(-1), d.sizes1(x, n, rank)))
	}
	return d.gather(x, place, 0)
}

// scatterND writes slices at tuples of indices.
func scatterND(d *Downgrade) *ssa.Value {
	reductionIsNone(d)
	x, at, updates := d.in(0), d.in(1), d.in(2)
	n, rank := d.tupleLength(at), d.rank(x, 11)
	if t := at.Tensor(); d.Opset < 9 && n == 1 && len(t.Dims) == 2 && t.Dims[0].Is(1) { // nothing writes by index there
		size := d.size(x, 0)
		here := d.Equal(d.Range(d.long(0), size, d.long(1)), d.fromFront(d.reshape(at), size))
		shape := make([]int64, rank)
		for i := range shape {
			shape[i] = 1
		}
		shape[0] = -1
		return d.Where(d.reshape(here, shape...), updates, x)
	}
	place := d.reshape(d.tuplePlaces(x, at, n), -1)
	shape := d.target(x)
	axis := []ssa.Attr{Axis(0)}
	if n == rank {
		y := d.ScatterElements(d.reshape(x, -1), place, d.reshape(updates, -1), axis...)
		return d.Reshape(y, shape)
	}
	// Flatten, since a Reshape to a size of 0 takes the input's
	matrix := func(v *ssa.Value, axis int) *ssa.Value {
		return d.Flatten(v, Axis(axis))
	}
	rows := d.Unsqueeze(d.stride(x, n, rank), d.ints(0))
	places := d.Expand(d.Unsqueeze(place, d.ints(1)), d.concat(0, d.ints(1), rows))
	y := d.ScatterElements(matrix(x, n), places, matrix(updates, len(at.Tensor().Dims)-1), axis...)
	return d.Reshape(y, shape)
}

// sliceByRange picks the elements of a slice whose bounds are computed.
func (d *Downgrade) sliceByRange() {
	x := d.in(0)
	rank := d.rank(x, 10)
	d.rank(d.in(1), 10) // or Dims below has nothing
	var count int
	var axes []int64
	if d.in(3) != nil {
		axes, _ = ConstInts(d.in(3))
		if axes == nil {
			d.Fail(10, "the axes of a slice are computed at run time")
		}
		count = len(axes)
	} else if n, ok := d.in(1).Tensor().Dims[0].Int(); ok {
		count = int(n)
	} else {
		d.Fail(10, "the number of axes of a slice is computed at run time")
	}
	steps, ok := ConstInts(d.in(4))
	if d.in(4) != nil && !ok {
		d.Fail(10, "the steps of a slice are computed at run time")
	}
	for k := range count {
		axis, step := int64(k), int64(1)
		if axes != nil {
			axis = axes[k]
		}
		if axis < 0 {
			axis += int64(rank)
		}
		if steps != nil {
			step = steps[k]
		}
		n := d.size(x, int(axis))
		lo, hi := d.long(0), n
		if step < 0 {
			lo, hi = d.long(-1), d.Sub(n, d.long(1))
		}
		bound := func(v *ssa.Value) *ssa.Value {
			v = d.gather(d.cast(v, tensor.Int64), d.long(int64(k)), 0)
			if c, ok := ConstInts(v); ok && c[0] >= math.MaxInt32 {
				return hi
			} else if ok && c[0] <= -math.MaxInt32 {
				return lo
			} else if ok && c[0] == 0 && step > 0 {
				return v
			}
			low := int64(-1) // the least that it may be
			if s, ok := SymOf(v); ok && len(s) == 1 && !s[0].NegativeOfNothing() {
				low = s[0].Min()
			}
			if low < 0 {
				v = d.fromFront(v, n)
			}
			if low < 0 || step < 0 {
				v = d.Where(d.Less(v, lo), lo, v)
			}
			return d.Where(d.Greater(v, hi), hi, v)
		}
		x = d.gather(x, d.Range(bound(d.in(1)), bound(d.in(2)), d.long(step)), axis)
	}
	d.Replace(x)
}

// padByConcat joins constants to the input, for elements that Pad did not take
// and for pads that are computed.
func padByConcat(d *Downgrade, t tensor.DType) bool {
	x := d.in(0)
	rank := d.rank(x, 11)
	pads, fixed := ConstInts(d.in(1))
	if d.Node.AttrStr("mode", "constant") != "constant" {
		return fixed && d.padByGather(pads)
	}
	value := d.in(2)
	if value == nil {
		value = d.Const(tensor.FromInts(t, []int64{}, []int64{0}))
	}
	piece := func(axis int, n *ssa.Value) *ssa.Value { // n of rank 1
		var shape []*ssa.Value
		if axis > 0 {
			shape = append(shape, d.sizes1(x, 0, axis))
		}
		shape = append(shape, n)
		if axis+1 < rank {
			shape = append(shape, d.sizes1(x, axis+1, rank))
		}
		return d.Expand(value, d.concat(0, shape...))
	}
	for a := range rank {
		var parts []*ssa.Value
		finally := func() {}
		if fixed {
			before, after := pads[a], pads[a+rank]
			cut := func() {
				end := int64(math.MaxInt64)
				if after < 0 {
					end = after
				}
				x = d.Slice(x, d.ints(max(0, -before)), d.ints(end), d.ints(int64(a)), nil)
			}
			if n, ok := x.Tensor().Dims[a].Int(); before*after < 0 && !(ok && n+min(before, 0)+min(after, 0) >= 0) { // it may cut off of what was added
				finally = cut
			} else if before < 0 || after < 0 {
				cut()
			}
			if before > 0 {
				parts = append(parts, piece(a, d.ints(before)))
			}
			parts = append(parts, x)
			if after > 0 {
				parts = append(parts, piece(a, d.ints(after)))
			}
		} else {
			at := func(i int) *ssa.Value { return d.gather(d.in(1), d.ints(int64(i)), 0) }
			if before, after := at(a), at(a+rank); neverNegative(d.in(1)) {
				parts = []*ssa.Value{piece(a, before), x, piece(a, after)}
			} else { // what is negative cuts off of what was added too
				zero := d.ints(0)
				split := func(v *ssa.Value) (cut, add *ssa.Value) {
					cuts := d.Less(v, zero)
					return d.Where(cuts, v, zero), d.Where(cuts, zero, v)
				}
				from, before := split(before)
				to, after := split(after)
				x = d.concat(int64(a), piece(a, before), x, piece(a, after))
				x = d.Slice(x, d.Neg(from), d.Add(d.sizes1(x, a, a+1), to), d.ints(int64(a)), nil)
			}
		}
		if len(parts) > 1 {
			x = d.concat(int64(a), parts...)
		}
		finally()
	}
	d.Replace(x)
	return true
}

// padByGather repeats elements of the input by their positions.
func (d *Downgrade) padByGather(pads []int64) bool {
	x := d.in(0)
	t := x.Tensor()
	mode := d.Node.AttrStr("mode", "constant")
	rank := len(t.Dims)
	for a := range rank {
		before, after := pads[a], pads[a+rank]
		if before == 0 && after == 0 {
			continue
		}
		n, ok := t.Dims[a].Int()
		if !ok || n == 0 {
			return false
		}
		var at []int64
		for i := -before; i < n+after; i++ {
			switch mode {
			case "edge":
				at = append(at, min(max(i, 0), n-1))
			case "reflect":
				p := max(1, 2*(n-1))
				j := ((i % p) + p) % p
				at = append(at, min(j, p-j))
			default:
				at = append(at, ((i%n)+n)%n)
			}
		}
		x = d.gather(x, d.ints(at...), int64(a))
	}
	d.Replace(x)
	return true
}

// cumSum adds each element to the one 1, 2, 4 ... places on.
func cumSum(d *Downgrade) *ssa.Value {
	return d.cumulative(11, "Add", 0)
}

// cumProd is cumSum with products.
func cumProd(d *Downgrade) *ssa.Value { return d.cumulative(26, "Mul", 1) }

func (d *Downgrade) cumulative(opset int, op string, neutral int64) *ssa.Value {
	x := d.in(0)
	rank := d.rank(x, opset)
	if rank == 0 {
		d.Fail(opset, "running results of a single element")
	}
	axes, ok := ConstInts(d.in(1))
	if !ok && rank > 1 {
		return d.cumulativeAtRun(rank)
	}
	if !ok { // there is just one
		axes = []int64{0}
	}
	axis := axes[0]
	if axis < 0 {
		axis += int64(rank)
	}
	wide := x.DType()
	if wide == tensor.Float16 || wide == tensor.BFloat16 {
		x = d.cast(x, tensor.Float32)
	}
	n, ok := x.Tensor().Dims[axis].Int()
	if !ok {
		return d.cast(d.cumulativeByMask(x, op, neutral, int(axis)), wide)
	}
	forward := d.Node.AttrInt("reverse", 0) == 0
	fill := d.Const(tensor.FromInts(x.DType(), []int64{}, []int64{neutral}))
	shift := func(v *ssa.Value, by int64) *ssa.Value { // negative pads drop what moves out
		by = min(by, n)
		pads := make([]int64, 2*rank)
		if pads[axis], pads[int64(rank)+axis] = by, -by; !forward {
			pads[axis], pads[int64(rank)+axis] = -by, by
		}
		return d.Pad(v, d.ints(pads...), fill, nil)
	}
	if n > 0 && d.Node.AttrInt("exclusive", 0) != 0 {
		x = shift(x, 1)
	}
	for by := int64(1); by < n; by *= 2 {
		x = d.Op(op, x, shift(x, by))
	}
	return d.cast(x, wide)
}

// cumulativeByMask reduces, for each place along an axis, what lies before it. The square of the size is the cost of not
// knowing it.
func (d *Downgrade) cumulativeByMask(x *ssa.Value, op string, neutral int64, axis int) *ssa.Value {
	reduce := map[string]string{"Add": "ReduceSum", "Mul": "ReduceProd"}[op]
	compare := "GreaterOrEqual"
	if d.Node.AttrInt("exclusive", 0) != 0 {
		compare = "Greater"
	}
	places := d.Range(d.long(0), d.size(x, axis), d.long(1))
	a, b := d.Unsqueeze(places, d.ints(1)), places
	if d.Node.AttrInt("reverse", 0) != 0 {
		a, b = b, a
	}
	shape := []int64{-1} // the sizes behind the axis
	for range x.Tensor().Rank() - axis - 1 {
		shape = append(shape, 1)
	}
	mask := d.Op(compare, a, b)
	if len(shape) > 1 {
		mask = d.Reshape(mask, d.concat(0, d.Shape(mask), d.ints(shape[1:]...)))
	}
	fill := d.Const(tensor.FromInts(x.DType(), []int64{}, []int64{neutral}))
	prefix := d.Where(mask, d.Unsqueeze(x, d.ints(int64(axis))), fill)
	return d.OpA(reduce, []ssa.Attr{KeepDims(false)}, prefix, d.ints(int64(axis+1)))
}
