package onnx

import (
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Axes that are computed at run time, for opsets in which they were attributes: the operator is done along each axis in
// turn, and its result is taken where the axis is asked for.

// chosen tells for each axis of a tensor whether it is among axes, an int64 tensor of rank 0 or 1.
func (d *Downgrade) chosen(axes *ssa.Value, rank int) []*ssa.Value {
	axes = d.cast(d.reshape(axes, -1), tensor.Int64)
	axes = d.fromFront(axes, d.long(int64(rank)))
	out := make([]*ssa.Value, rank)
	for i := range out {
		hits := d.cast(d.Equal(axes, d.long(int64(i))), tensor.Int64)
		count := d.ReduceSum(hits, d.ints(0), KeepDims(false))
		out[i] = d.Greater(count, d.long(0))
	}
	return out
}

// cumulativeAtRun is a running sum or product along an axis that is computed at run time.
func (d *Downgrade) cumulativeAtRun(rank int) *ssa.Value {
	x, y := d.in(0), d.in(0)
	for i, hit := range d.chosen(d.in(1), rank) {
		y = d.Where(hit, d.OpA(d.Node.Kind.Name(), slices.Clone(d.Node.Attrs), x, d.ints(int64(i))), y)
	}
	return y
}

// parts says how a reduction is done axis by axis: what is done to each element first, the reduction, and what is done
// at the end. An empty name does nothing.
type parts struct{ first, reduce, last string }

var reductionParts = map[string]parts{
	"ReduceSum":       {reduce: "ReduceSum"},
	"ReduceMax":       {reduce: "ReduceMax"},
	"ReduceMin":       {reduce: "ReduceMin"},
	"ReduceProd":      {reduce: "ReduceProd"},
	"ReduceMean":      {reduce: "ReduceMean"}, // all parts have as many elements
	"ReduceLogSumExp": {reduce: "ReduceLogSumExp"},
	"ReduceL1":        {first: "Abs", reduce: "ReduceSum"},
	"ReduceSumSquare": {first: "Mul", reduce: "ReduceSum"},
	"ReduceL2":        {first: "Mul", reduce: "ReduceSum", last: "Sqrt"},
	"ReduceLogSum":    {reduce: "ReduceSum", last: "Log"},
}

// reduceAtRun is a reduction of axes that are computed at run time.
func reduceAtRun(d *Downgrade) {
	x, axes, name := d.in(0), d.in(1), d.Node.Kind.Name()
	rank, how := d.rank(x, d.since()), reductionParts[name]
	noop := d.Node.AttrInt("noop_with_empty_axes", 0) != 0
	if (how.last != "" || name == "ReduceMean" || name == "ReduceLogSumExp") && !x.DType().IsFloat() {
		d.Fail(d.since(), "axes that are computed at run time, for %s,", x.DType().Spec())
	}
	if noop && (how.first != "" || how.last != "" || name == "ReduceLogSumExp") {
		d.Fail(d.since(), "axes that are computed at run time, which may be none,")
	}
	hits := d.chosen(axes, rank)
	if t := axes.Tensor(); !noop && !(t != nil && t.Ranked && len(t.Dims) == 1 && t.Dims[0].Min() > 0) { // none stands for all
		none := d.Equal(d.Size(axes), d.long(0))
		for i := range hits {
			hits[i] = d.Or(hits[i], none)
		}
	}
	y := x
	switch how.first {
	case "Abs":
		y = d.Abs(x)
	case "Mul":
		y = d.Mul(x, x)
	}
	for i, hit := range hits {
		// the result, of size 1, and the input stand behind each other: one of them is cut out
		axis := d.ints(int64(i))
		both := d.concat(int64(i), d.OpA(how.reduce, []ssa.Attr{KeepDims(true)}, y, axis), y)
		from := d.Unsqueeze(d.cast(d.Not(hit), tensor.Int64), d.ints(0))
		to := d.Where(hit, d.ints(1), d.Add(d.Unsqueeze(d.size(y, i), d.ints(0)), d.ints(1)))
		y = d.Slice(both, from, to, axis, nil)
	}
	if how.last != "" {
		y = d.Op(how.last, y)
	}
	if d.Node.AttrInt("keepdims", 1) == 0 {
		y = d.squeezeChosen(y, hits)
	}
	d.Replace(y)
}

// squeezeChosen removes the axes that were chosen, each of size 1.
func (d *Downgrade) squeezeChosen(y *ssa.Value, hits []*ssa.Value) *ssa.Value {
	if len(hits) == 0 {
		return y
	}
	flags := make([]*ssa.Value, len(hits))
	for i, hit := range hits {
		flags[i] = d.Unsqueeze(d.cast(hit, tensor.Int64), d.ints(0))
	}
	kept := d.Equal(d.concat(0, flags...), d.long(0))
	return d.Reshape(y, d.Compress(d.Shape(y), kept, Axis(0)))
}
