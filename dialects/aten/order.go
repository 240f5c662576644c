package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// order holds sorting and order statistics (ATen/native/Sorting.cpp).
var order = Defs{
	"aten::sort":        {Doc: "sorted elements along dim and their indices", Gradient: "self: scatter_add(zeros_like(self), dim, result1, grad)", Nature: AlongDim, Layout: LikeOperands, LowerN: lowerSort},
	"aten::argsort":     {Doc: "indices that sort along dim", Gradient: NoGradient, Nature: AlongDim, Lower: func(l *Lowering) *ssa.Value { return lowerSort(l)[1] }},
	"aten::msort":       {Doc: "sorted elements along dimension 0", Lower: lowerMsort},
	"aten::topk":        {Doc: "the k greatest or least elements along dim and their indices", Gradient: "self: scatter_add(zeros_like(self), dim, result1, grad)", Nature: AlongDim, Layout: RowMajor, LowerN: lowerTopK},
	"aten::kthvalue":    {Doc: "the k-th least element along dim and its index", Gradient: "self: scatter_add(zeros_like(self), dim, reshape(result1, size(sum(self, [dim], True))), reshape(grad, size(sum(self, [dim], True))))", Nature: Reduces, LowerN: lowerKthValue},
	"aten::median":      {Doc: "the lower median of all, or along dim with its index", Gradient: "self: scatter_add(zeros_like(self), dim, reshape(result1, size(sum(self, [dim], True))), reshape(grad, size(sum(self, [dim], True)))) | masked_fill(zeros_like(self), logical_or(eq(self, result), logical_and(isnan(self), isnan(result))), grad / sum(logical_or(eq(self, result), logical_and(isnan(self), isnan(result)))))", Nature: Reduces, LowerN: func(l *Lowering) []*ssa.Value { return l.median(false) }},
	"aten::nanmedian":   {Doc: "the lower median of what is not NaN", Gradient: "self: scatter_add(zeros_like(self), dim, reshape(result1, size(sum(self, [dim], True))), reshape(grad, size(sum(self, [dim], True)))) | masked_fill(zeros_like(self), logical_or(eq(self, result), logical_and(isnan(self), isnan(result))), grad / sum(logical_or(eq(self, result), logical_and(isnan(self), isnan(result)))))", Nature: Reduces, LowerN: func(l *Lowering) []*ssa.Value { return l.median(true) }},
	"aten::mode":        {Doc: "the most frequent element along dim and an index of it", Gradient: "self: scatter_add(zeros_like(self), dim, reshape(result1, size(sum(self, [dim], True))), reshape(grad, size(sum(self, [dim], True))))", Nature: Reduces, LowerN: lowerMode},
	"aten::quantile":    {Doc: "quantiles along dim", Layout: RowMajor, Autocast: Float32OnCPU, Lower: func(l *Lowering) *ssa.Value { return l.quantile(false) }},
	"aten::nanquantile": {Doc: "quantiles along dim of what is not NaN", Autocast: Float32OnCPU, Lower: func(l *Lowering) *ssa.Value { return l.quantile(true) }},
}

// topK is onnx::TopK for every type; k has rank 1. Of equal elements the one with the lower index comes first.
func (l *Lowering) topK(x, k *ssa.Value, dim int, largest, sorted bool) (values, indices *ssa.Value) {
	d := l.DType(x)
	key := x
	switch {
	case d == tensor.Bool:
		key = l.Cast(x, tensor.Int32)
	case d.IsFloat():
		// NaN counts as the greatest, of which runtimes know nothing; infinity, as the greatest finite number, is next
		key = l.Where(l.isNaN(x), l.Like(x, math.Inf(1)), l.min(x, l.Like(x, maxFinite(d))))
	}
	values, indices = l.TopK(key, k, onnx.Axis(dim), onnx.Largest(largest), onnx.Sorted(sorted))
	if d.IsFloat() {
		return l.GatherElements(x, indices, onnx.Axis(dim)), indices
	}
	return l.Cast(values, d), indices
}

// sortNumbers sorts a float tensor that has no NaN.
func (l *Lowering) sortNumbers(x *ssa.Value, dim int) (values, indices *ssa.Value) {
	return l.TopK(x, l.sizeTensor([]Size{l.sizeOf(x, dim)}), onnx.Axis(dim), onnx.Largest(false), onnx.Sorted(true))
}

// sortBy sorts all elements along an axis.
func (l *Lowering) sortBy(x *ssa.Value, dim int, descending bool) (values, indices *ssa.Value) {
	if l.Rank(x) == 0 {
		return x, l.Scalar(tensor.Int64, 0)
	}
	return l.topK(x, l.sizeTensor([]Size{l.sizeOf(x, dim)}), dim, descending, true)
}

func lowerSort(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	v, i := l.sortBy(x, l.Dim("dim", l.Rank(x)), l.Bool("descending"))
	return []*ssa.Value{v, i}
}

func lowerMsort(l *Lowering) *ssa.Value {
	v, _ := l.sortBy(l.Tensor("self"), 0, false)
	return v
}

func lowerTopK(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	dim := l.Dim("dim", rank)
	if rank == 0 {
		return []*ssa.Value{x, l.Scalar(tensor.Int64, 0)}
	}
	v, i := l.topK(x, l.sizeTensor(l.sizes("k")), dim, l.Bool("largest"), l.Bool("sorted"))
	return []*ssa.Value{v, i}
}

// pick takes the element at place i, a rank 0 or rank 1 index, along dim and drops the axis unless keep.
func (l *Lowering) pick(x *ssa.Value, dim int, i *ssa.Value, keep bool) *ssa.Value {
	if keep {
		return l.gather(x, l.reshape(i, 1), dim)
	}
	return l.gather(x, l.scalarOf(i, tensor.Int64), dim)
}

func lowerKthValue(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	dim := l.Dim("dim", rank)
	if rank == 0 {
		return []*ssa.Value{x, l.Scalar(tensor.Int64, 0)}
	}
	return l.kth(x, l.sizes("k")[0], dim, l.Bool("keepdim"))
}

// kth is the k-th least element along dim and its index, counted from 1.
func (l *Lowering) kth(x *ssa.Value, k Size, dim int, keep bool) []*ssa.Value {
	v, i := l.topK(x, l.sizeTensor([]Size{k}), dim, false, true)
	last := l.Scalar(tensor.Int64, -1)
	return []*ssa.Value{l.pick(v, dim, last, keep), l.pick(i, dim, last, keep)}
}

// median sorts; PyTorch takes the lower one of two middle elements.
func (l *Lowering) median(skipNaN bool) []*ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	all := !l.HasArg("dim")
	if all {
		x = l.reshape(x, -1)
	}
	rank := l.Rank(x)
	if rank == 0 {
		return []*ssa.Value{x, l.Scalar(tensor.Int64, 0)}
	}
	dim, keep := 0, false
	if !all {
		dim, keep = l.Dim("dim", rank), l.Bool("keepdim")
	}
	var rs []*ssa.Value
	n := l.sizeOf(x, dim)
	if c, ok := n.Int(); ok && c == 0 {
		if !all || !d.IsFloat() {
			l.Fail("the median of nothing")
		}
		return []*ssa.Value{l.Scalar(d, math.NaN())}
	}
	if !d.IsFloat() {
		rs = l.kth(x, l.divSize(l.addSize(n, ConstSize(1)), ConstSize(2)), dim, keep)
	} else {
		rs = l.floatMedian(x, dim, keep, skipNaN)
	}
	if all {
		return rs[:1]
	}
	return rs
}

// floatMedian counts NaN as the greatest. With a NaN the median is NaN, at the place of the
// first one; a median that skips NaN stands in the middle of the others.
func (l *Lowering) floatMedian(x *ssa.Value, dim int, keep, skipNaN bool) []*ssa.Value {
	nan := l.isNaN(x)
	axis := []int64{int64(dim)}
	filled := l.Where(nan, l.Like(x, math.Inf(1)), x)
	if !skipNaN {
		n := l.sizeOf(x, dim)
		rs := l.kth(filled, l.divSize(l.addSize(n, ConstSize(1)), ConstSize(2)), dim, keep)
		bad := l.anyTrue(nan, axis, keep)
		first := l.ArgMax(l.Cast(nan, tensor.Int32), onnx.Axis(dim), onnx.KeepDims(keep))
		return []*ssa.Value{l.Where(bad, l.Like(x, math.NaN()), rs[0]), l.Where(bad, first, rs[1])}
	}
	v, i := l.sortNumbers(filled, dim)
	count := l.reduce("ReduceSum", l.Cast(l.Not(nan), tensor.Int64), axis, true)
	one := l.Scalar(tensor.Int64, 1)
	at := l.Div(l.Sub(l.max(count, one), one), l.Scalar(tensor.Int64, 2))
	gather := func(t *ssa.Value) *ssa.Value {
		g := l.GatherElements(t, at, onnx.Axis(dim))
		if keep {
			return g
		}
		return l.squeeze(g, axis...)
	}
	none := l.isZero(count)
	if !keep {
		none = l.squeeze(none, axis...)
	}
	return []*ssa.Value{l.Where(none, l.Like(x, math.NaN()), gather(v)), gather(i)}
}

// lowerMode counts equal elements pairwise; of equally frequent ones the least
// wins, and its last occurrence.
func lowerMode(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	dim := l.Dim("dim", rank)
	if rank == 0 {
		return []*ssa.Value{x, l.Scalar(tensor.Int64, 0)}
	}
	keep := l.Bool("keepdim")
	d := l.DType(x)
	w := l.toLast(x, dim)
	if d == tensor.Bool {
		w = l.Cast(w, tensor.Int32)
	}
	last := []int64{-1}
	counts := l.reduce("ReduceSum", l.Cast(l.Equal(l.unsqueeze(w, -1), l.unsqueeze(w, -2)), tensor.Int64), last, false)
	most := l.Equal(counts, l.reduce("ReduceMax", counts, last, true))
	v := l.reduce("ReduceMin", l.Where(most, w, l.highest(l.DType(w))), last, true)
	hit := l.Cast(l.Equal(w, v), tensor.Int32)
	i := l.ArgMax(hit, onnx.Axis(rank-1), onnx.KeepDims(true), onnx.SelectLastIndex(true))
	v, i = l.fromLast(l.Cast(v, d), dim), l.fromLast(i, dim)
	if !keep {
		v, i = l.squeeze(v, int64(dim)), l.squeeze(i, int64(dim))
	}
	return []*ssa.Value{v, i}
}

// quantile sorts along the last axis and reads at the places q * (n - 1),
// between which interpolation says what to take.
func (l *Lowering) quantile(skipNaN bool) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	rank := l.Rank(x)
	keep := l.Bool("keepdim")
	q := l.Cast(l.Tensor("q"), d)
	qRank := l.Rank(q)
	if qRank > 1 {
		l.Fail("q must be a number or a vector")
	}
	outRank := rank
	dim := 0
	switch {
	case l.IsNone("dim"):
		x = l.reshape(x, -1)
	case rank == 0:
		x = l.reshape(x, 1)
	default:
		dim = l.Dim("dim", rank)
		x = l.toLast(x, dim)
	}
	nan := l.isNaN(x)
	last := []int64{-1}
	axis := l.Rank(x) - 1
	v, _ := l.sortNumbers(l.Where(nan, l.Like(x, math.Inf(1)), x), axis)
	// places of quantiles, with the quantiles along a new last axis
	size := l.Cast(l.sizeValue(l.sizeOf(x, axis)), d)
	var count *ssa.Value
	if skipNaN {
		count = l.reduce("ReduceSum", l.Cast(l.Not(nan), d), last, true)
	} else {
		count = size
	}
	one := l.Like(x, 1)
	places := l.Mul(l.reshape(q, -1), l.max(l.Sub(count, one), l.Like(x, 0)))
	low, high := l.Floor(places), l.Ceil(places)
	weight := l.Sub(places, low)
	switch mode := l.Str("interpolation"); mode {
	case "linear", "":
	case "lower":
		high = low
	case "higher":
		low = high
	case "nearest":
		low = l.Round(places)
		high = low
	case "midpoint":
		weight = l.Like(x, 0.5)
	default:
		l.Fail("unknown interpolation %q", mode)
	}
	read := func(at *ssa.Value) *ssa.Value {
		at = l.Cast(at, tensor.Int64)
		if !skipNaN {
			return l.gather(v, at, axis)
		}
		return l.GatherElements(v, at, onnx.Axis(axis))
	}
	y := read(low)
	if low != high {
		y = l.lerp(y, read(high), weight)
	}
	var bad *ssa.Value
	if skipNaN {
		bad = l.isZero(count)
	} else {
		bad = l.anyTrue(nan, last, true)
	}
	y = l.Where(bad, l.Like(x, math.NaN()), y)
	// y has the quantiles last: they go first, and the reduced axis comes back as 1
	r := l.Rank(y)
	perm := []int64{int64(r - 1)}
	for i := range r - 1 {
		perm = append(perm, int64(i))
	}
	y = l.transpose(y, perm...)
	if keep && outRank > 0 {
		if l.IsNone("dim") {
			for range outRank {
				y = l.unsqueeze(y, 1)
			}
		} else {
			y = l.unsqueeze(y, int64(dim+1))
		}
	}
	if qRank == 0 {
		return l.squeeze(y, 0)
	}
	return y
}

// lerp is a + w * (b - a); equal infinities have no difference.
func (l *Lowering) lerp(a, b, w *ssa.Value) *ssa.Value {
	return l.Where(l.Equal(a, b), a, l.Add(a, l.Mul(w, l.Sub(b, a))))
}
