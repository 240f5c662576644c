package aten

import (
	"fmt"
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// embedding holds look-ups in tables.
var embedding = Defs{
	"aten::embedding":                   {Doc: "rows of weight", Gradient: "weight: embedding_dense_backward(grad, indices, size(weight, 0), padding_idx, scale_grad_by_freq)", Layout: RowMajor, Lower: lowerEmbedding},
	"aten::embedding_renorm":            {Doc: "weight with the rows in use scaled to a norm of at most max_norm", Lower: lowerEmbeddingRenorm},
	"aten::embedding_bag":               {Doc: "sums, means or maxima of bags of rows", Layout: RowMajor, LowerN: lowerEmbeddingBag},
	"aten::_embedding_bag":              {Doc: "sums, means or maxima of bags of rows", LowerN: lowerEmbeddingBag},
	"aten::_embedding_bag_forward_only": {Doc: "sums, means or maxima of bags of rows", LowerN: lowerEmbeddingBag},
	"aten::one_hot":                     {Doc: "1 at the index along a new last axis, else 0", Batching: BatchesInFront, Layout: RowMajor, Lower: lowerOneHot},
}

func lowerEmbedding(l *Lowering) *ssa.Value {
	return l.gather(l.Tensor("weight"), l.places(), 0)
}

// places are the indices at which an embedding is read.
func (l *Lowering) places() *ssa.Value {
	indices := l.Tensor("indices")
	if d := l.DType(indices); !d.IsInt() {
		panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("the indices have elements of type %v: an embedding is read at integers", d),
			Hint: "give the input integers in --input, such as 'ids:i64[N,128]'"})
	}
	return indices
}

func lowerEmbeddingRenorm(l *Lowering) *ssa.Value {
	w, idx := l.Tensor("self"), l.Cast(l.Tensor("indices"), tensor.Int64)
	limit := l.Float("max_norm")
	norm := l.pNorm(w, l.Float("norm_type"), true)
	scale := l.Div(l.Like(w, limit), l.Add(norm, l.Like(w, 1e-7)))
	flat := l.reshape(idx, -1)
	ones := l.Expand(l.scalarInt(tensor.Int32, 1), l.shapeOf(flat))
	zeros := l.fill(l.sizeTensor([]Size{l.sizeOf(w, 0)}), tensor.Int32, ssa.Int(0))
	used := l.Cast(l.ScatterElements(zeros, flat, ones, onnx.Axis(0)), tensor.Bool)
	hit := l.And(l.unsqueeze(used, 1), l.Greater(norm, l.Like(w, limit)))
	return l.Where(hit, l.Mul(w, scale), w)
}

// lowerEmbeddingBag gives the bags, and what the backward pass needs: the bag of each index, the sizes of the bags, and the indices of the maxima.
func lowerEmbeddingBag(l *Lowering) []*ssa.Value {
	w := l.Tensor("weight")
	idx := l.Cast(l.places(), tensor.Int64)
	pad := l.IntOr("padding_idx", -1)
	if pad < 0 && !l.IsNone("padding_idx") && l.HasArg("padding_idx") && l.Node.Kind == "aten::embedding_bag" {
		pad = l.wrapIndex(pad, w)
	}
	t := rowTable{l.DType(w), l.sizeOf(w, 1), func(at *ssa.Value) *ssa.Value { return l.gather(w, at, 0) }}
	y, bags := l.embeddingBag(t, idx, l.Int("mode"), pad)
	out := []*ssa.Value{y, bags.of, bags.sizes, bags.maxima}
	d := Promote(l.DType(l.Tensor("indices")), l.DType(l.Tensor("offsets")))
	for i := range out[1:] {
		out[1+i] = l.Cast(out[1+i], d)
	}
	return out
}

// bags are the results of embedding_bag besides the bags themselves, as ATen's CPU kernels give them (ATen/native/EmbeddingBag.cpp).
type bags struct {
	of     *ssa.Value // the bag of each index; sums that are added directly have none
	sizes  *ssa.Value // how many rows a bag has; 0 for sums, which do not count them
	maxima *ssa.Value // the index of each maximum; the sizes where no maxima are taken
}

// rowTable is what embeddings are taken from.
type rowTable struct {
	dtype tensor.DType
	width Size
	rows  func(at *ssa.Value) *ssa.Value // the rows at indices of any shape
}

// embeddingBag gives the bags of rows of t at idx (L) that the operator's offsets begin, but those at pad; pad < 0 for none.
func (l *Lowering) embeddingBag(t rowTable, idx *ssa.Value, mode, pad int64) (*ssa.Value, bags) {
	off, per, d := l.Cast(l.Tensor("offsets"), tensor.Int64), l.TensorOr("per_sample_weights"), t.dtype
	fast := pad < 0 && d != tensor.Float64 // rows are added directly
	ends := l.sizeOf(off, 0)
	var end *ssa.Value // (1), nil for the end of the indices: what is behind it counts in a mean and is not in its sum
	if l.Bool("include_last_offset") {
		// only PyTorch's fast sums end at the last offset; other bags go to the end of the indices
		if fast && (mode == 0 || mode == 1 && !endsWith(off, l.sizeOf(idx, 0))) {
			end = l.Slice(off, l.i64(-1), l.i64(math.MaxInt64), l.i64(0), nil)
		}
		if end != nil && mode == 0 {
			idx = l.Slice(idx, l.i64(0), end, l.i64(0), nil)
			if per != nil {
				per = l.Slice(per, l.i64(0), end, l.i64(0), nil)
			}
			end = nil // the indices themselves end there now
		}
		off = l.Slice(off, l.i64(0), l.i64(-1), l.i64(0), nil)
	}
	L, B := l.sizeOf(idx, 0), l.sizeOf(off, 0)
	rows := t.rows(idx) // (L, D)
	if per != nil {
		rows = l.Mul(rows, l.unsqueeze(l.Cast(per, d), 1))
	}
	var counts *ssa.Value // (L) bool, nil for all: the rows that are not padding
	if pad >= 0 {
		counts = l.Not(l.Equal(idx, l.scalarInt(tensor.Int64, pad)))
	}
	if n, ok := evenBags(off, L); ok && counts == nil && end == nil && !l.bagsAreRead() {
		even := l.reshapeSizes(rows, B, ConstSize(n), t.width)
		op := map[int64]string{0: "ReduceSum", 1: "ReduceMean", 2: "ReduceMax"}[mode]
		none := l.Const(tensor.Ints())
		return l.reduce(op, even, []int64{1}, false), bags{none, none, none}
	}
	// bag[i] is the last bag that starts at or before i
	at := l.countTo(L)
	starts := l.Not(l.Less(l.unsqueeze(at, 0), l.unsqueeze(off, 1))) // (B, L)
	bag := l.Sub(l.reduce("ReduceSum", l.Cast(starts, tensor.Int64), []int64{0}, false), l.scalarInt(tensor.Int64, 1))
	member := l.Equal(l.unsqueeze(l.countTo(B), 1), l.unsqueeze(bag, 0)) // (B, L)
	if counts != nil {
		member = l.And(member, l.unsqueeze(counts, 0))
	}
	number := l.reduce("ReduceSum", l.Cast(member, tensor.Int64), []int64{1}, true) // (B, 1)
	others := bags{of: bag}
	switch {
	case mode != 0:
		others.sizes = l.squeeze(number, 1)
	case l.Node.Kind == "aten::_embedding_bag":
		others.sizes = l.zerosOf(tensor.Int64, B)
	default:
		others.sizes = l.zerosOf(tensor.Int64, ends)
	}
	if others.maxima = others.sizes; mode == 0 && fast {
		others.of = l.Const(tensor.Ints())
	}
	if mode == 2 {
		spread := l.Where(l.unsqueeze(member, 2), l.unsqueeze(rows, 0), l.Scalar(d, math.Inf(-1)))
		top := l.reduce("ReduceMax", spread, []int64{1}, false)
		empty := l.Equal(number, l.scalarInt(tensor.Int64, 0))
		if l.bagsAreRead() {
			first := l.ArgMax(spread, onnx.Axis(1), onnx.KeepDims(false))
			others.maxima = l.Where(empty, l.scalarInt(tensor.Int64, 0), l.gather(idx, first, 0))
		}
		return l.Where(empty, l.Scalar(d, 0), top), others
	}
	summed := counts
	if end != nil {
		summed = l.Less(at, end)
	}
	if summed != nil {
		rows = l.Where(l.unsqueeze(summed, 1), rows, l.Scalar(d, 0))
	}
	var sum *ssa.Value
	if l.scatterReduces(scatterAdds) {
		wide := l.compute(rows)
		zeros := l.fill(l.sizeTensor([]Size{B, t.width}), l.DType(wide), ssa.Int(0))
		sum = l.Cast(l.ScatterND(zeros, l.unsqueeze(bag, 1), wide, onnx.Reduction("add")), d)
	} else {
		sum = l.MatMul(l.Cast(member, d), rows)
	}
	if mode == 1 {
		sum = l.Div(sum, l.Cast(l.Max(number, l.scalarInt(tensor.Int64, 1)), d))
	}
	return sum, others
}

// bagsAreRead reports that results of embedding_bag besides the bags are used.
func (l *Lowering) bagsAreRead() bool {
	return slices.ContainsFunc(l.Node.Results[1:], (*ssa.Value).HasUses)
}

func (l *Lowering) wrapIndex(i int64, w *ssa.Value) int64 {
	if i < 0 {
		return i + l.static(w, 0)
	}
	return i
}

// endsWith reports that offsets are known to end with the number of indices.
func endsWith(off *ssa.Value, length Size) bool {
	t := onnx.ConstOf(off)
	total, ok := length.Int()
	if t == nil || !t.HasData() || !ok || t.NumElements() == 0 {
		return false
	}
	starts := t.Int64s()
	return starts[len(starts)-1] == total
}

// evenBags gives the size of bags that are all equally long.
func evenBags(off *ssa.Value, length Size) (int64, bool) {
	t := onnx.ConstOf(off)
	total, ok := length.Int()
	if t == nil || !t.HasData() || !ok || t.NumElements() == 0 || total == 0 {
		return 0, false
	}
	starts := t.Int64s()
	n := total / int64(len(starts))
	if n == 0 || n*int64(len(starts)) != total {
		return 0, false
	}
	for i, s := range starts {
		if s != int64(i)*n {
			return 0, false
		}
	}
	return n, true
}

func lowerOneHot(l *Lowering) *ssa.Value {
	x := l.Cast(l.Tensor("self"), tensor.Int64)
	var depth Size
	if s := l.sizes("num_classes")[0]; !s.Known || !s.Expr.Is(-1) {
		depth = s
	} else {
		top := l.reduce("ReduceMax", x, nil, false)
		depth = Size{Value: l.Add(top, l.scalarInt(tensor.Int64, 1))}
	}
	n := l.sizeTensor([]Size{depth})
	if l.Rank(x) == 0 {
		return l.squeeze(l.OneHot(l.unsqueeze(x, 0), n, l.i64(0, 1), onnx.Axis(-1)), 0)
	}
	return l.OneHot(x, n, l.i64(0, 1), onnx.Axis(-1))
}
