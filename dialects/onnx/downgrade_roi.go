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
		v := d.Mul(d.cast(d.gather(d.in(1), d.long(column), 1), r.t), scale)
		if offset != nil {
			v = d.Sub(v, offset)
		}
		return d.Unsqueeze(v, d.ints(1, 2))
	}
	for axis := range r.at {
		start := side(int64(1 - axis))
		extent := d.Sub(side(int64(3-axis)), start)
		if offset == nil {
			extent = d.Max(extent, r.num(1))
		}
		n := d.Node.AttrInt([]string{"output_height", "output_width"}[axis], 1)
		bin := d.Div(extent, r.num(float64(n)))

		var each, weight *ssa.Value // samples of a bin, and what one of them counts
		var k *ssa.Value
		if s := d.Node.AttrInt("sampling_ratio", 0); s > 0 {
			each, weight, k = r.num(float64(s)), r.num(1/float64(s)), r.steps(s, 0.5)
		} else { // as many as a bin has pixels; those that only other regions have count nothing
			each = d.Max(d.Ceil(bin), r.num(1))
			k = r.counted(each)
			weight = d.Where(d.Less(k, d.Ceil(bin)), d.Div(r.num(1), each), r.num(0))
			k = d.Add(k, r.num(0.5))
		}
		bins := d.Unsqueeze(r.steps(n, 0), d.ints(1))
		at := d.Add(d.Add(start, d.Mul(bins, bin)), d.Div(d.Mul(k, bin), each))

		length := r.length(axis)
		outside := d.Or(d.Less(at, r.num(-1)), d.Greater(at, length))
		weight = d.Where(outside, r.num(0), weight)
		last := d.Sub(length, r.num(1))
		at = d.Min(d.Max(at, r.num(0)), last)
		low := d.Floor(at)
		part := d.Sub(at, low)
		r.at[axis] = d.concat(2, low, d.Min(d.Add(low, r.num(1)), last))
		r.weight[axis] = d.concat(2, d.Mul(d.Sub(r.num(1), part), weight), d.Mul(part, weight))
	}
	y := r.pick()
	y = d.MatMul(d.Unsqueeze(r.weight[1], d.ints(1, 3, 4)), y)
	y = d.Squeeze(y, d.ints(4))
	y = d.MatMul(d.Unsqueeze(r.weight[0], d.ints(2, 3)), y)
	r.replace(d.Squeeze(y, d.ints(3)))
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
		v := d.Mul(d.cast(column(i), r.t), r.num(d.Node.AttrFloat("spatial_scale", 1)))
		v = d.Mul(d.Sign(v), d.Floor(d.Add(d.Abs(v), r.num(0.5))))
		return d.Unsqueeze(v, d.ints(1, 2))
	}
	for axis := range r.at {
		start := side(int64(2 - axis))
		extent := d.Max(d.Add(d.Sub(side(int64(4-axis)), start), r.num(1)), r.num(1))
		bin := d.Div(extent, r.num(float64(pooled[axis])))
		bins := d.Unsqueeze(r.steps(pooled[axis], 0), d.ints(1))
		within := func(v *ssa.Value) *ssa.Value {
			return d.Min(d.Max(d.Add(v, start), r.num(0)), r.length(axis))
		}
		from := within(d.Floor(d.Mul(bins, bin)))
		to := within(d.Ceil(d.Mul(d.Add(bins, r.num(1)), bin)))
		at := d.Add(from, r.counted(d.Sub(to, from)))
		r.weight[axis] = d.Less(at, to)
		r.at[axis] = d.Min(at, d.Sub(r.length(axis), r.num(1)))
	}
	y := r.pick()
	inside := d.And(d.Unsqueeze(r.weight[0], d.ints(2, 4)), d.Unsqueeze(r.weight[1], d.ints(1, 3)))
	inside = d.Unsqueeze(inside, d.ints(5))
	y = d.Where(inside, y, r.num(math.Inf(-1)))
	y = d.ReduceMax(y, d.ints(3, 4), KeepDims(false))
	some := d.ReduceMax(d.cast(inside, tensor.Int32), d.ints(3, 4), KeepDims(false))
	r.replace(d.Where(d.cast(some, tensor.Bool), y, r.num(0)))
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
	y = r.Transpose(y, Perm(0, 3, 1, 2))
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
	most := r.ReduceMax(all, r.ints(0), KeepDims(false))
	return r.cast(r.Range(r.long(0), r.cast(most, tensor.Int64), r.long(1)), r.t)
}

// pick reads the pixels: [regions, bins, bins, pixels, pixels, channels].
func (r *regions) pick() *ssa.Value {
	rows := r.Transpose(r.x, Perm(0, 2, 3, 1))
	rows = r.Reshape(rows, r.concat(0, r.ints(-1), r.sizes1(r.x, 1, 2)))
	y, x := r.cast(r.at[0], tensor.Int64), r.cast(r.at[1], tensor.Int64)
	image := r.Mul(r.Unsqueeze(r.batch, r.ints(1, 2)), r.size(r.x, 2))
	y = r.Mul(r.Add(image, y), r.size(r.x, 3))
	places := r.Add(r.Unsqueeze(y, r.ints(2, 4)), r.Unsqueeze(x, r.ints(1, 3)))
	return r.gather(rows, places, 0)
}
