package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// segments holds reductions of parts of an axis, and histograms of points.
var segments = Defs{
	"aten::segment_reduce": {Doc: "sum, mean, maximum, minimum or product of each segment of an axis, by lengths or by offsets", Lower: lowerSegmentReduce},
	// passes/specialize takes aten::histogramdd apart into these
	"aten::_histogramdd_bin_edges":        {Doc: "the edges of histogramdd's bins", LowerN: func(l *Lowering) []*ssa.Value { _, edges := l.boxes(); return edges }},
	"aten::_histogramdd_from_bin_cts":     {Doc: "how many points, or which weight, each box holds", Lower: func(l *Lowering) *ssa.Value { h, _ := l.boxes(); return h }},
	"aten::_histogramdd_from_bin_tensors": {Doc: "_histogramdd_from_bin_cts with given edges", Lower: func(l *Lowering) *ssa.Value { h, _ := l.boxes(); return h }},
}

// lowerSegmentReduce masks all that is not in a segment, for each segment
// (ATen/native/SegmentReduce.cpp).
func lowerSegmentReduce(l *Lowering) *ssa.Value {
	x := l.Tensor("data")
	d := l.DType(x)
	axis := l.Dim("axis", l.Rank(x))
	var from, to *ssa.Value // (..., segments)
	switch {
	case !l.IsNone("lengths"):
		n := l.as("lengths", tensor.Int64)
		to = l.CumSum(n, l.scalarInt(tensor.Int64, int64(axis)))
		from = l.Sub(to, n)
	case !l.IsNone("offsets"):
		o := l.as("offsets", tensor.Int64)
		from, to = l.sliceC(o, axis, 0, -1, 1), l.sliceC(o, axis, 1, math.MaxInt64, 1)
	default:
		l.Fail("segments by indices")
	}
	// (..., segments, places, rest)
	places := l.countTo(l.sizeOf(x, axis))
	from, to = l.unsqueeze(from, int64(axis+1)), l.unsqueeze(to, int64(axis+1))
	in := l.And(l.LessOrEqual(from, places), l.Less(places, to))
	var rest []int64
	for i := axis + 1; i < l.Rank(x); i++ {
		rest = append(rest, int64(i+1))
	}
	in = l.unsqueeze(in, rest...)
	wide := l.unsqueeze(x, int64(axis))
	pick := func(neutral float64) *ssa.Value { return l.Where(in, wide, l.Scalar(d, neutral)) }
	over := []int64{int64(axis + 1)}
	empty := l.Equal(from, to)
	empty = l.unsqueeze(l.squeeze(empty, int64(axis+1)), decremented(rest)...)
	switch reduce := l.Str("reduce"); reduce {
	case "sum", "mean":
		y := l.offsetBy(l.Aten("aten::sum.dim_IntList", pick(0), over, false), "initial")
		if reduce == "sum" {
			return y
		}
		n := l.Cast(l.unsqueeze(l.squeeze(l.Sub(to, from), int64(axis+1)), decremented(rest)...), d)
		if l.IsNone("initial") {
			return l.Div(y, n) // NaN for no elements
		}
		return l.Where(empty, y, l.Div(y, n))
	case "prod":
		y := l.Aten("aten::prod.dim_int", pick(1), over[0], false)
		if l.IsNone("initial") {
			return y
		}
		return l.Mul(y, l.as("initial", d))
	case "max":
		y := l.Aten("aten::amax", pick(math.Inf(-1)), over, false)
		if l.IsNone("initial") {
			return y
		}
		return l.Aten("aten::maximum", y, l.as("initial", d))
	case "min":
		y := l.Aten("aten::amin", pick(math.Inf(1)), over, false)
		if l.IsNone("initial") {
			return y
		}
		return l.Aten("aten::minimum", y, l.as("initial", d))
	default:
		l.Fail("reduction %q", reduce)
	}
	return nil
}

func decremented(v []int64) []int64 {
	out := make([]int64, len(v))
	for i, n := range v {
		out[i] = n - 1
	}
	return out
}

// offsetBy adds an argument unless it is None.
func (l *Lowering) offsetBy(x *ssa.Value, name string) *ssa.Value {
	if l.IsNone(name) {
		return x
	}
	return l.Add(x, l.as(name, l.DType(x)))
}

// boxes counts the points, which lie along the last axis, in the boxes that
// bins along each of their axes make.
func (l *Lowering) boxes() (hist *ssa.Value, edges []*ssa.Value) {
	x := l.histogramOf()
	d := l.DType(x)
	dims := l.static(x, l.Rank(x)-1)
	x = l.reshape(x, -1, dims)
	limits := l.Floats("range")
	if limits != nil && int64(len(limits)) != 2*dims {
		l.Fail("%d limits for %d axes", len(limits), dims)
	}
	var given []*ssa.Value
	var bins []int64
	if lt, ok := l.Arg("bins").Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
		given = l.Tensors("bins")
		bins = make([]int64, len(given))
	} else {
		l.atMost(dims, maxParts, "axes of bins")
		bins = l.intsN("bins", int(dims))
	}
	if int64(len(bins)) != dims {
		l.Fail("bins of %d axes for points of %d", len(bins), dims)
	}
	for i := range bins {
		column := l.squeeze(l.sliceC(x, 1, int64(i), int64(i)+1, 1), 1)
		var e *ssa.Value
		if given != nil {
			e = l.Cast(given[i], d)
		} else {
			var r []float64
			if limits != nil {
				r = limits[2*i : 2*i+2]
			}
			e = l.binEdges(column, bins[i], r)
		}
		edges = append(edges, e)
		in := l.Cast(l.inBins(column, e), d) // (points, bins)
		if i == 0 {
			hist = in
			if w := l.TensorOr("weight"); w != nil {
				hist = l.Mul(in, l.Cast(l.reshape(w, -1, 1), d))
			}
			continue
		}
		// (points, boxes so far, bins), the two flattened
		n := l.static(in, 1) * l.static(hist, 1)
		hist = l.reshape(l.Mul(l.unsqueeze(hist, 2), l.unsqueeze(in, 1)), -1, n)
	}
	shape := make([]int64, dims)
	for i, e := range edges {
		shape[i] = l.static(e, 0) - 1
	}
	hist = l.reshape(l.reduce("ReduceSum", hist, []int64{0}, false), shape...)
	if l.Bool("density") {
		hist = l.Div(hist, l.reduce("ReduceSum", hist, nil, false))
		for i, e := range edges {
			w := repeatInt(1, int(dims))
			w[i] = -1
			hist = l.Div(hist, l.reshape(l.binWidths(e), w...))
		}
	}
	return hist, edges
}
