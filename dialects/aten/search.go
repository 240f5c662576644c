package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// search holds counting, lookup in sorted sequences, and unique elements
// (ATen/native/Bucketization.cpp, Unique.cpp, SummaryOps.cpp) and the statistics built on them.
var search = Defs{
	"aten::bucketize":              {Doc: "the place of each element among sorted boundaries", Gradient: NoGradient, Batching: BatchesInFront, Layout: RowMajor, Lower: lowerBucketize},
	"aten::searchsorted":           {Doc: "the place of each element in sorted sequences", Gradient: NoGradient, Lower: lowerSearchSorted},
	"aten::histc":                  {Doc: "how many elements fall into each of equal bins", Lower: lowerHistc},
	"aten::histogram":              {Doc: "counts, or weights, in bins and the bins' edges", LowerN: lowerHistogram},
	"aten::hash_tensor":            {Doc: "exclusive or of all bits", Why: "ONNX operators have no access to the bits of floats, and no reduction by exclusive or"},
	"aten::bincount":               {Doc: "how often each number occurs", Lower: lowerBincount},
	"aten::unique":                 {Doc: "sorted elements without repetition", LowerN: lowerUnique},
	"aten::_unique":                {Doc: "sorted elements without repetition", LowerN: lowerUnique},
	"aten::_unique2":               {Doc: "sorted elements without repetition", LowerN: lowerUnique},
	"aten::unique_dim":             {Doc: "sorted slices without repetition", LowerN: lowerUnique},
	"aten::unique_consecutive":     {Doc: "elements or slices that differ from the one before", LowerN: lowerUniqueConsecutive},
	"aten::unique_dim_consecutive": {Doc: "slices that differ from the one before", LowerN: lowerUniqueConsecutive},
	"aten::cov":                    {Doc: "covariance of the rows", Lower: lowerCov},
	"aten::corrcoef":               {Doc: "correlation of the rows", Lower: lowerCorrcoef},
}

// countBelow counts, for each element of v, the sorted elements before its place.
func (l *Lowering) countBelow(sorted, v *ssa.Value, right bool) *ssa.Value {
	s, x := l.unsqueeze(sorted, -2), l.unsqueeze(v, -1)
	var before *ssa.Value
	if l.DType(s) == tensor.Bool {
		s, x = l.Cast(s, tensor.Int32), l.Cast(x, tensor.Int32)
	}
	if right {
		before = l.LessOrEqual(s, x)
	} else {
		before = l.Less(s, x)
	}
	if l.DType(x).IsFloat() {
		before = l.Or(before, l.isNaN(x)) // NaN comes after all numbers
	}
	d := tensor.Int64
	if l.Bool("out_int32") {
		return l.Cast(l.reduce("ReduceSum", l.Cast(before, d), []int64{-1}, false), tensor.Int32)
	}
	return l.reduce("ReduceSum", l.Cast(before, d), []int64{-1}, false)
}

func lowerBucketize(l *Lowering) *ssa.Value {
	v, bounds := l.Tensor("self"), l.Tensor("boundaries")
	d := Promote(l.DType(v), l.DType(bounds))
	v, bounds = l.Cast(v, d), l.Cast(bounds, d)
	// boundaries of rank 1 go with every element
	return l.countRow(bounds, v, l.Bool("right"))
}

// countRow is countBelow for one sorted row.
func (l *Lowering) countRow(row, v *ssa.Value, right bool) *ssa.Value {
	if l.Rank(v) == 0 {
		return l.scalarKeep(l.countBelow(row, l.unsqueeze(v, 0), right))
	}
	return l.countBelow(row, v, right)
}

// scalarKeep drops the only axis, of size 1.
func (l *Lowering) scalarKeep(x *ssa.Value) *ssa.Value { return l.squeeze(x, 0) }

func lowerSearchSorted(l *Lowering) *ssa.Value {
	seq, v := l.Tensor("sorted_sequence"), l.Tensor("self")
	right := l.Bool("right")
	switch side := l.Str("side"); side {
	case "right":
		right = true
	case "left", "":
	default:
		l.Fail("unknown side %q", side)
	}
	if sorter := l.TensorOr("sorter"); sorter != nil {
		seq = l.GatherElements(seq, sorter, onnx.Axis(-1))
	}
	d := Promote(l.DType(seq), l.DType(v))
	if l.Arg("self").Tensor() == nil {
		d = l.DType(seq)
		if !d.IsFloat() && l.DType(v).IsFloat() {
			d = tensor.Float32
		}
	}
	seq, v = l.Cast(seq, d), l.Cast(v, d)
	if l.Rank(seq) == 1 {
		return l.countRow(seq, v, right)
	}
	return l.countBelow(seq, v, right)
}

func lowerHistc(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	if !d.IsFloat() {
		l.Fail("histc of %v", d)
	}
	bins := l.Int("bins")
	if bins <= 0 {
		l.Fail("histc needs at least one bin")
	}
	x = l.reshape(x, -1)
	var lo, hi *ssa.Value
	a, b := l.Float("min"), l.Float("max")
	switch {
	case a != b:
		lo, hi = l.Like(x, a), l.Like(x, b)
	case l.nothingIn(x, nil):
		return l.fill(l.i64(bins), d, ssa.Int(0))
	default:
		lo, hi = l.reduce("ReduceMin", x, nil, false), l.reduce("ReduceMax", x, nil, false)
		same := l.Cast(l.Equal(lo, hi), d)
		lo, hi = l.Sub(lo, same), l.Add(hi, same)
	}
	n := float64(bins)
	at := l.Floor(l.Div(l.scale(l.Sub(x, lo), n), l.Sub(hi, lo)))
	at = l.min(at, l.Like(x, n-1)) // the upper end belongs to the last bin
	inside := l.And(l.GreaterOrEqual(x, lo), l.LessOrEqual(x, hi))
	at = l.Where(inside, at, l.Like(x, -1))
	l.atMost(bins, maxMade, "bins")
	index := l.Const(progression(d, 0, 1, int(bins)))
	return l.reduce("ReduceSum", l.Cast(l.Equal(l.unsqueeze(index, 1), at), d), []int64{1}, false)
}

func lowerBincount(l *Lowering) *ssa.Value {
	x := l.Cast(l.Tensor("self"), tensor.Int64)
	n := l.sizeValue(l.sizes("minlength")[0])
	// -1 is put in so that there is a maximum
	top := l.reduce("ReduceMax", l.concatV(0, x, l.i64(-1)), nil, false)
	n = l.max(n, l.offset(top, 1))
	hit := l.Equal(l.unsqueeze(l.rangeTo(n), 1), x)
	if w := l.TensorOr("weights"); w != nil {
		if d := l.DType(w); d != tensor.Float32 {
			w = l.Cast(w, tensor.Float64)
		}
		return l.reduce("ReduceSum", l.Mul(l.Cast(hit, l.DType(w)), w), []int64{1}, false)
	}
	return l.reduce("ReduceSum", l.Cast(hit, tensor.Int64), []int64{1}, false)
}

// lowerUnique gives elements or slices, inverse and counts; those that were not asked for are empty.
func lowerUnique(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	if d == tensor.Bool {
		x = l.Cast(x, tensor.Int64)
	}
	attrs := []ssa.Attr{onnx.Sorted(true)}
	byDim := l.HasArg("dim") && !l.IsNone("dim")
	if byDim {
		attrs = append([]ssa.Attr{onnx.Axis(l.Dim("dim", l.Rank(x)))}, attrs...)
	}
	rs := l.UniqueN(4, x, attrs...)
	inverse := rs[2]
	if !byDim && l.Rank(x) != 1 {
		inverse = l.reshapeTo(inverse, l.shapeOf(x))
	}
	out := []*ssa.Value{l.Cast(rs[0], d), inverse, rs[3]}
	if !byDim {
		l.dropUnasked(out)
	}
	if len(l.Node.Schema.Returns) == 2 {
		return out[:2]
	}
	return out
}

func lowerUniqueConsecutive(l *Lowering) []*ssa.Value {
	x := l.Tensor("self")
	shape := l.shapeOf(x)
	dim := 0
	flat := l.IsNone("dim")
	if flat {
		x = l.reshape(x, -1)
	} else {
		dim = l.Dim("dim", l.Rank(x))
	}
	rank := l.Rank(x)
	if rank == 0 {
		l.Fail("unique_consecutive along a dimension of a tensor of rank 0")
	}
	next, prev := l.sliceC(x, dim, 1, math.MaxInt64, 1), l.sliceC(x, dim, 0, -1, 1)
	differ := l.notEqual(next, prev)
	var others []int64
	for i := range rank {
		if i != dim {
			others = append(others, int64(i))
		}
	}
	if len(others) > 0 {
		differ = l.Cast(l.reduce("ReduceMax", l.Cast(differ, tensor.Int32), others, false), tensor.Bool)
	}
	n := l.sizeOf(x, dim)
	if c, ok := n.Int(); ok && c == 0 {
		return []*ssa.Value{x, l.i64(), l.i64()}
	}
	start := l.concatV(0, l.Const(tensor.FromInts(tensor.Bool, []int64{1}, []int64{1})), differ)
	if _, ok := n.Int(); !ok {
		// of an empty operand there is no first element either
		start = l.Slice(start, l.i64(0), l.sizeTensor([]Size{n}), l.i64(0), l.i64(1))
	}
	values := l.Compress(x, start, onnx.Axis(dim))
	inverse := l.offset(l.cumsum(l.Cast(start, tensor.Int64), 0), -1)
	if flat {
		inverse = l.reshapeTo(inverse, shape)
	}
	places := l.Compress(l.rangeTo(l.sizeValue(n)), start, onnx.Axis(0))
	ends := l.concatV(0, places, l.sizeTensor([]Size{n}))
	counts := l.diff(ends, 0, 1)
	out := []*ssa.Value{values, inverse, counts}
	l.dropUnasked(out)
	return out
}

// dropUnasked empties the inverse and the counts where they were not asked for.
func (l *Lowering) dropUnasked(out []*ssa.Value) {
	for i, name := range []string{"return_inverse", "return_counts"} {
		if l.HasArg(name) && !l.Bool(name) {
			out[i+1] = l.i64()
		}
	}
}

func lowerCov(l *Lowering) *ssa.Value {
	return l.cov(float64(l.IntOr("correction", 1)))
}

// cov is the covariance of rows, weighted by how often (fweights) and how much (aweights) a column counts.
func (l *Lowering) cov(correction float64) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	if rank > 2 {
		l.Fail("covariance of more than two dimensions")
	}
	if !l.DType(x).IsFloat() {
		x = l.Cast(x, tensor.Float32)
	}
	d := l.DType(x)
	// weights of a wider type make the result wider
	for _, n := range []string{"fweights", "aweights"} {
		if l.HasArg(n) && !l.IsNone(n) {
			if t := l.DType(l.Tensor(n)); t.IsFloat() {
				d = Promote(d, t)
			}
		}
	}
	x = l.Cast(x, d)
	x, back := l.widen(x)
	d = l.DType(x)
	if rank < 2 {
		x = l.reshape(x, 1, -1)
	}
	var w, fw *ssa.Value
	if l.HasArg("fweights") {
		fw = l.TensorOr("fweights")
	}
	if fw != nil {
		w = l.Cast(fw, d)
	}
	aw := (*ssa.Value)(nil)
	if l.HasArg("aweights") {
		aw = l.TensorOr("aweights")
	}
	if aw != nil {
		aw = l.Cast(aw, d)
		if w == nil {
			w = aw
		} else {
			w = l.Mul(w, aw)
		}
	}
	var mean, norm *ssa.Value
	if w == nil {
		mean = l.reduce("ReduceMean", x, []int64{1}, true)
		norm = l.Sub(l.Cast(l.sizeValue(l.sizeOf(x, 1)), d), l.Scalar(d, correction))
	} else {
		sum := l.reduce("ReduceSum", w, nil, false)
		mean = l.Div(l.reduce("ReduceSum", l.Mul(x, w), []int64{1}, true), sum)
		switch {
		case aw == nil || correction == 0:
			norm = l.Sub(sum, l.Scalar(d, correction))
		default:
			norm = l.Sub(sum, l.Div(l.scale(l.reduce("ReduceSum", l.Mul(w, aw), nil, false), correction), sum))
		}
	}
	norm = l.max(norm, l.Scalar(d, 0))
	c := l.Sub(x, mean)
	cw := c
	if w != nil {
		cw = l.Mul(c, w)
	}
	v := back(l.Div(l.MatMul(c, l.transpose(cw, 1, 0)), norm))
	if l.Shape(x)[0].Is(1) {
		return l.reshapeTo(v, l.Const(tensor.Ints()))
	}
	return v
}

func lowerCorrcoef(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	c := l.cov(1)
	if l.Rank(c) < 2 {
		return l.Div(c, c)
	}
	n := l.sizeValue(l.sizeOf(x, 0))
	i := l.rangeTo(n)
	eye := l.Equal(l.unsqueeze(i, 1), i)
	dev := l.Sqrt(l.reduce("ReduceSum", l.Where(eye, c, l.Like(c, 0)), []int64{1}, true))
	r := l.Div(l.Div(c, dev), l.transpose(dev, 1, 0))
	return l.Clip(r, l.Like(c, -1), l.Like(c, 1))
}

// lowerHistogram takes bins that are closed below and open above, but for the last one.
func lowerHistogram(l *Lowering) []*ssa.Value {
	x := l.histogramOf()
	x = l.reshape(x, -1)
	var edges *ssa.Value
	if t := l.Arg("bins").Tensor(); t != nil {
		edges = l.Cast(l.Tensor("bins"), l.DType(x))
	} else {
		edges = l.binEdges(x, l.Int("bins"), l.Floats("range"))
	}
	counts := l.Cast(l.inBins(x, edges), l.DType(x))
	if w := l.TensorOr("weight"); w != nil {
		counts = l.Mul(counts, l.unsqueeze(l.Cast(l.reshape(w, -1), l.DType(x)), -1))
	}
	hist := l.reduce("ReduceSum", counts, []int64{0}, false)
	if l.Bool("density") {
		hist = l.Div(l.Div(hist, l.reduce("ReduceSum", hist, nil, false)), l.binWidths(edges))
	}
	return []*ssa.Value{hist, edges}
}

func (l *Lowering) histogramOf() *ssa.Value {
	x := l.Tensor("self")
	if !l.DType(x).IsFloat() {
		l.Fail("histogram of %v", l.DType(x))
	}
	return x
}

// binEdges divides a range, or that of vector x, into n equal bins.
func (l *Lowering) binEdges(x *ssa.Value, n int64, limits []float64) *ssa.Value {
	if n < 1 || n > maxFolded {
		l.Fail("histogram of %d bins", n)
	}
	var lo, hi *ssa.Value
	if len(limits) == 2 {
		a, b := limits[0], limits[1]
		if a == b {
			a, b = a-0.5, b+0.5
		}
		lo, hi = l.Like(x, a), l.Like(x, b)
	} else {
		lo, hi = l.reduce("ReduceMin", x, nil, false), l.reduce("ReduceMax", x, nil, false)
		same := l.scale(l.Cast(l.Equal(lo, hi), l.DType(x)), 0.5)
		lo, hi = l.Sub(lo, same), l.Add(hi, same)
	}
	up, down := make([]float64, n+1), make([]float64, n+1)
	for i := range up {
		up[i], down[i] = float64(i)/float64(n), 1-float64(i)/float64(n)
	}
	// both ends are exact
	return l.Add(l.Mul(lo, l.floats(x, down...)), l.Mul(hi, l.floats(x, up...)))
}

// inBins says for each number of a vector which bin it is in: (numbers, bins).
// A bin has its lower edge; the last one has both.
func (l *Lowering) inBins(x, edges *ssa.Value) *ssa.Value {
	low, high := l.sliceC(edges, 0, 0, -1, 1), l.sliceC(edges, 0, 1, math.MaxInt64, 1)
	v := l.unsqueeze(x, -1)
	last := l.sliceC(edges, 0, -1, math.MaxInt64, 1)
	inside := l.And(l.GreaterOrEqual(v, low), l.Less(v, high))
	return l.Or(inside, l.And(l.Equal(v, last), l.Equal(high, last)))
}

func (l *Lowering) binWidths(edges *ssa.Value) *ssa.Value {
	return l.Sub(l.sliceC(edges, 0, 1, math.MaxInt64, 1), l.sliceC(edges, 0, 0, -1, 1))
}
