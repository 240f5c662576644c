package onnx

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pooling of regions by other operators: the pixels that each bin reads are picked out of an image whose channels lie side by side,
// and weighted, or compared, one axis after the other.

// roiAlignMode: where a region began was not to be told.
func roiAlignMode(d *Downgrade) {
	if m := d.Node.AttrStr("coordinate_transformation_mode", "half_pixel"); m != "output_half_pixel" {
		if !roiAlign(d, d.in(0).DType()) {
			d.Fail(16, "aligned regions of interest that give their maxima")
		}
		return
	}
	d.Node.RemoveAttr("coordinate_transformation_mode")
}

// roiAlignBefore expresses RoiAlign, which came with opset 10.
func roiAlignBefore(d *Downgrade) {
	d.Node.SetAttr("coordinate_transformation_mode", ssa.Str("output_half_pixel"))
	if !roiAlign(d, d.in(0).DType()) {
		d.Fail(10, "regions of interest that give their maxima")
	}
}

// listed reports numbers of bins or samples that are so few that constants can list them.
func listed(counts ...int64) bool {
	for _, n := range counts {
		if n < 0 || n > 1<<16 {
			return false
		}
	}
	return true
}

// roiAlign expresses the mean of bilinear samples.
func roiAlign(d *Downgrade, t tensor.DType) bool {
	if d.Node.AttrStr("mode", "avg") != "avg" || d.rank(d.in(0), 10) != 4 ||
		!listed(d.Node.AttrInt("output_height", 1), d.Node.AttrInt("output_width", 1), max(d.Node.AttrInt("sampling_ratio", 0), 0)) {
		return false
	}
	if mayBeEmpty(d.in(0)) {
		d.assume("images of which regions are taken have elements")
	}
	r := newRegions(d, d.in(0), d.in(2))
	offset := r.num(0.5)
	if d.Node.AttrStr("coordinate_transformation_mode", "half_pixel") != "half_pixel" {
		offset = nil
	}
	scale := r.num(d.Node.AttrFloat("spatial_scale", 1))
	side := func(column int64) *ssa.Value {
		v := d.Op("Mul", d.cast(d.gather(d.in(1), d.long(column), 1), r.t), scale)
		if offset != nil {
			v = d.Op("Sub", v, offset)
		}
		return d.Op("Unsqueeze", v, d.ints(1, 2))
	}
	for axis := range r.at {
		start := side(int64(1 - axis))
		extent := d.Op("Sub", side(int64(3-axis)), start)
		if offset == nil {
			extent = d.Op("Max", extent, r.num(1))
		}
		n := d.Node.AttrInt([]string{"output_height", "output_width"}[axis], 1)
		bin := d.Op("Div", extent, r.num(float64(n)))

		var each, weight *ssa.Value // samples of a bin, and what one of them counts
		var k *ssa.Value
		if s := d.Node.AttrInt("sampling_ratio", 0); s > 0 {
			each, weight, k = r.num(float64(s)), r.num(1/float64(s)), r.steps(s, 0.5)
		} else { // as many as a bin has pixels; those that only other regions have count nothing
			each = d.Op("Max", d.Op("Ceil", bin), r.num(1))
			k = r.counted(each)
			weight = d.Op("Where", d.Op("Less", k, d.Op("Ceil", bin)), d.Op("Div", r.num(1), each), r.num(0))
			k = d.Op("Add", k, r.num(0.5))
		}
		bins := d.Op("Unsqueeze", r.steps(n, 0), d.ints(1))
		at := d.Op("Add", d.Op("Add", start, d.Op("Mul", bins, bin)), d.Op("Div", d.Op("Mul", k, bin), each))

		length := r.length(axis)
		outside := d.Op("Or", d.Op("Less", at, r.num(-1)), d.Op("Greater", at, length))
		weight = d.Op("Where", outside, r.num(0), weight)
		last := d.Op("Sub", length, r.num(1))
		at = d.Op("Min", d.Op("Max", at, r.num(0)), last)
		low := d.Op("Floor", at)
		part := d.Op("Sub", at, low)
		r.at[axis] = d.concat(2, low, d.Op("Min", d.Op("Add", low, r.num(1)), last))
		r.weight[axis] = d.concat(2, d.Op("Mul", d.Op("Sub", r.num(1), part), weight), d.Op("Mul", part, weight))
	}
	y := r.pick()
	y = d.Op("MatMul", d.Op("Unsqueeze", r.weight[1], d.ints(1, 3, 4)), y)
	y = d.Op("Squeeze", y, d.ints(4))
	y = d.Op("MatMul", d.Op("Unsqueeze", r.weight[0], d.ints(2, 3)), y)
	r.replace(d.Op("Squeeze", y, d.ints(3)))
	return true
}

// maxRoiPool expresses the maximum of the pixels of each bin, 0 of an empty one.
func maxRoiPool(d *Downgrade, t tensor.DType) bool {
	pooled := d.Node.AttrInts("pooled_shape")
	if len(pooled) != 2 || d.rank(d.in(0), 7) != 4 || !listed(pooled...) {
		return false
	}
	column := func(i int64) *ssa.Value { return d.gather(d.in(1), d.long(i), 1) }
	r := newRegions(d, d.in(0), column(0))
	side := func(i int64) *ssa.Value { // rounded, halves away from zero
		v := d.Op("Mul", d.cast(column(i), r.t), r.num(d.Node.AttrFloat("spatial_scale", 1)))
		v = d.Op("Mul", d.Op("Sign", v), d.Op("Floor", d.Op("Add", d.Op("Abs", v), r.num(0.5))))
		return d.Op("Unsqueeze", v, d.ints(1, 2))
	}
	for axis := range r.at {
		start := side(int64(2 - axis))
		extent := d.Op("Max", d.Op("Add", d.Op("Sub", side(int64(4-axis)), start), r.num(1)), r.num(1))
		bin := d.Op("Div", extent, r.num(float64(pooled[axis])))
		bins := d.Op("Unsqueeze", r.steps(pooled[axis], 0), d.ints(1))
		within := func(v *ssa.Value) *ssa.Value {
			return d.Op("Min", d.Op("Max", d.Op("Add", v, start), r.num(0)), r.length(axis))
		}
		from := within(d.Op("Floor", d.Op("Mul", bins, bin)))
		to := within(d.Op("Ceil", d.Op("Mul", d.Op("Add", bins, r.num(1)), bin)))
		at := d.Op("Add", from, r.counted(d.Op("Sub", to, from)))
		r.weight[axis] = d.Op("Less", at, to)
		r.at[axis] = d.Op("Min", at, d.Op("Sub", r.length(axis), r.num(1)))
	}
	y := r.pick()
	inside := d.Op("And", d.Op("Unsqueeze", r.weight[0], d.ints(2, 4)), d.Op("Unsqueeze", r.weight[1], d.ints(1, 3)))
	inside = d.Op("Unsqueeze", inside, d.ints(5))
	y = d.Op("Where", inside, y, r.num(math.Inf(-1)))
	y = d.OpA("ReduceMax", []ssa.Attr{intAttr("keepdims", 0)}, y, d.ints(3, 4))
	some := d.OpA("ReduceMax", []ssa.Attr{intAttr("keepdims", 0)}, d.cast(inside, tensor.Int32), d.ints(3, 4))
	r.replace(d.Op("Where", d.cast(some, tensor.Bool), y, r.num(0)))
	return true
}

// regions is what pooling reads of an image, for the two spatial axes: [regions, bins, pixels of a bin].
type regions struct {
	*Downgrade
	t      tensor.DType // that is computed in
	x      *ssa.Value
	batch  *ssa.Value
	at     [2]*ssa.Value // places of the pixels
	weight [2]*ssa.Value // what they count, or whether they do
}

func newRegions(d *Downgrade, x, batch *ssa.Value) *regions {
	x = d.up(x)
	return &regions{Downgrade: d, t: x.DType(), x: x, batch: d.cast(batch, tensor.Int64)}
}

func (r *regions) num(v float64) *ssa.Value   { return r.scalar(r.t, v) }
func (r *regions) length(axis int) *ssa.Value { return r.cast(r.size(r.x, 2+axis), r.t) }
func (r *regions) replace(y *ssa.Value) {
	y = r.OpA("Transpose", []ssa.Attr{intsAttr("perm", 0, 3, 1, 2)}, y)
	r.Replace(r.cast(y, r.Node.Result(0).DType()))
}

// steps are first, first+1, ... of n.
func (r *regions) steps(n int64, first float64) *ssa.Value {
	v := make([]float64, n)
	for i := range v {
		v[i] = first + float64(i)
	}
	return r.Const(tensor.FromFloats(r.t, []int64{n}, v))
}

// counted are 0, 1, ... less than the greatest of n; at least one.
func (r *regions) counted(n *ssa.Value) *ssa.Value {
	all := r.concat(0, r.reshape(n, -1), r.Const(tensor.FromFloats(r.t, []int64{1}, []float64{1})))
	most := r.OpA("ReduceMax", []ssa.Attr{intAttr("keepdims", 0)}, all, r.ints(0))
	return r.cast(r.Op("Range", r.long(0), r.cast(most, tensor.Int64), r.long(1)), r.t)
}

// pick reads the pixels: [regions, bins, bins, pixels, pixels, channels].
func (r *regions) pick() *ssa.Value {
	rows := r.OpA("Transpose", []ssa.Attr{intsAttr("perm", 0, 2, 3, 1)}, r.x)
	rows = r.Op("Reshape", rows, r.concat(0, r.ints(-1), r.sizes1(r.x, 1, 2)))
	y, x := r.cast(r.at[0], tensor.Int64), r.cast(r.at[1], tensor.Int64)
	image := r.Op("Mul", r.Op("Unsqueeze", r.batch, r.ints(1, 2)), r.size(r.x, 2))
	y = r.Op("Mul", r.Op("Add", image, y), r.size(r.x, 3))
	places := r.Op("Add", r.Op("Unsqueeze", y, r.ints(2, 4)), r.Op("Unsqueeze", x, r.ints(1, 3)))
	return r.gather(rows, places, 0)
}
