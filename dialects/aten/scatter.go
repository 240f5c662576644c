package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// scattering holds reads and writes by an index for each element
// (ATen/native/TensorAdvancedIndexing.cpp, ScatterGatherKernel.cpp).
var scattering = Defs{
	"aten::gather":         {Doc: "out[i][j] = self[index[i][j]][j] for dim 0", Gradient: "self: scatter_add(zeros_like(self), dim, index, grad)", Nature: Moves, Batching: SameRank, Layout: RowMajor, Lower: lowerGather},
	"aten::take_along_dim": {Doc: "gather with broadcasting; over all elements without dim", Nature: Moves, Batching: SameRank, Layout: RowMajor, Lower: lowerTakeAlongDim},
	"aten::take":           {Doc: "elements of the flattened tensor", Gradient: "self: put(zeros_like(self), index, grad, True)", Nature: Moves, Lower: lowerTake},
	"aten::index_select":   {Doc: "the parts of a dimension at the indices", Gradient: "self: index_add(zeros_like(self), dim, index, grad)", Nature: Moves, Layout: RowMajor, Type: ofIndexSelect, Lower: lowerIndexSelect},
	"aten::scatter":        {Doc: "self[index[i][j]][j] = src[i][j] for dim 0", Gradient: "[reduce=None] self: scatter(grad, dim, index, 0); src: gather(grad, dim, index)", Nature: Scatters, Batching: SameRank, Layout: RowMajor, Lower: lowerScatter},
	"aten::scatter_add":    {Doc: "self[index[i][j]][j] += src[i][j] for dim 0", Gradient: "self: grad; src: gather(grad, dim, index)", Nature: Scatters, Batching: SameRank, Layout: RowMajor, Lower: lowerScatterAdd},
	"aten::scatter_reduce": {Doc: "scatter that combines elements by sum, prod, mean, amax or amin", Layout: RowMajor, Lower: lowerScatterReduce},
	"aten::index_add":      {Doc: "adds the parts of source, times alpha, at the indices", Gradient: "self: grad; source: index_select(grad, dim, index) * alpha", Nature: Scatters, Layout: RowMajor, Lower: lowerIndexAdd},
	"aten::index_copy":     {Doc: "replaces the parts at the indices", Gradient: "self: index_fill(grad, dim, index, 0); source: reshape(index_select(grad, dim, index), size(source))", Nature: Scatters, Layout: RowMajor, Lower: lowerIndexCopy},
	"aten::index_fill":     {Doc: "fills the parts at the indices with a value", Gradient: "self: index_fill(grad, dim, index, 0)", Nature: Scatters, Layout: LikeOperands, Lower: lowerIndexFill},
	"aten::index_reduce":   {Doc: "combines the parts at the indices with those of source", Layout: RowMajor, Lower: lowerIndexReduce},
	"aten::put":            {Doc: "replaces or adds to elements of the flattened tensor", Gradient: "self: accumulate ? grad : put(grad, index, zeros_like(source), False); source: reshape(take(grad, index), size(source))", Nature: Scatters, Layout: LikeOperands, Lower: lowerPut},
}

// indexArg is an argument of indices, int64 or int32.
func (l *Lowering) indexArg(name string) *ssa.Value {
	v := l.Tensor(name)
	if d := l.DType(v); d != tensor.Int64 && d != tensor.Int32 {
		return l.Cast(v, tensor.Int64)
	}
	return v
}

// oneDim gives tensors of rank 0 one dim, as scatter and gather do.
func (l *Lowering) oneDim(vs ...**ssa.Value) {
	for _, v := range vs {
		*v = l.atLeast1(*v)
	}
}

// sameRank abandons the lowering unless the argument v has as many dimensions as self, x.
func (l *Lowering) sameRank(x *ssa.Value, name string, v *ssa.Value) {
	if l.Rank(v) != l.Rank(x) {
		l.Fail("%s has %d dimensions and self has %d; they must have the same number", name, l.Rank(v), l.Rank(x))
	}
}

// likeRank undoes oneDim for a result.
func (l *Lowering) likeRank(y *ssa.Value, rank int) *ssa.Value {
	if rank == 0 {
		return l.reshape(y)
	}
	return y
}

func lowerGather(l *Lowering) *ssa.Value {
	x, index := l.Tensor("self"), l.indexArg("index")
	rank := l.Rank(index)
	if anyZero(l.Shape(index)) { // of any rank
		return l.emptyLike(index, l.DType(x))
	}
	l.oneDim(&x, &index)
	l.sameRank(x, "index", index)
	return l.likeRank(l.gatherElements(x, index, l.Dim("dim", l.Rank(x))), rank)
}

func anyZero(dims []sym.Expr) bool {
	for _, d := range dims {
		if d.Is(0) {
			return true
		}
	}
	return false
}

// emptyLike is an empty tensor of v's shape, which holds a 0.
func (l *Lowering) emptyLike(v *ssa.Value, d tensor.DType) *ssa.Value {
	if shape, ok := dimsOf(l.Shape(v)); ok {
		return l.emptyConst(d, shape...)
	}
	return l.Expand(l.Scalar(d, 0), l.shapeOf(v))
}

func (l *Lowering) gatherElements(x, index *ssa.Value, dim int) *ssa.Value {
	return l.GatherElements(x, index, onnx.Axis(dim))
}

// elementIndex is the place in x, flattened, of the elements that index names along dim.
func (l *Lowering) elementIndex(x, index *ssa.Value, dim int) *ssa.Value {
	dims, sizes := l.allSizes(x), l.allSizes(index)
	rank := len(dims)
	stride := ConstSize(1)
	var at *ssa.Value
	for i := rank - 1; i >= 0; i-- {
		var part *ssa.Value
		if i == dim {
			part = l.wrapIndices(l.Cast(index, tensor.Int64), dims[i])
		} else {
			shape := repeatSize(ConstSize(1), int64(rank))
			shape[i] = ConstSize(-1)
			part = l.reshapeInto(l.countTo(sizes[i]), shape)
		}
		if n, ok := stride.Int(); !ok || n != 1 {
			part = l.Mul(part, l.sizeValue(stride))
		}
		if at == nil {
			at = part
		} else {
			at = l.Add(at, part)
		}
		stride = l.mulSize(stride, dims[i])
	}
	return at
}

func lowerTakeAlongDim(l *Lowering) *ssa.Value {
	x, index := l.Tensor("self"), l.indexArg("indices")
	if l.IsNone("dim") {
		return l.gatherElements(l.reshape(x, -1), l.reshape(index, -1), 0)
	}
	rank := l.Rank(x)
	if l.Rank(index) != rank {
		l.Fail("self and indices must have the same number of dimensions")
	}
	dim := l.Dim("dim", rank)
	if rank == 0 {
		l.oneDim(&x, &index)
		return l.reshape(l.gatherElements(x, index, 0))
	}
	xs, is := l.allSizes(x), l.allSizes(index)
	for i := range xs {
		if i != dim {
			xs[i] = l.broadcastSize(xs[i], is[i])
			is[i] = xs[i]
		}
	}
	return l.gatherElements(l.expandTo(x, xs), l.expandTo(index, is), dim)
}

func lowerTake(l *Lowering) *ssa.Value {
	x := l.reshape(l.Tensor("self"), -1)
	return l.gatherWrapped(x, l.indexArg("index"), 0)
}

func lowerIndexSelect(l *Lowering) *ssa.Value {
	x, index := l.Tensor("self"), l.indexArg("index")
	rank := l.Rank(x)
	if rank == 0 {
		return x // the index can only be 0
	}
	return l.gather(x, l.plainRange(l.atLeast1(index)), l.Dim("dim", rank))
}

// cropTo cuts src to the shape of index: elements beyond it do not count.
func (l *Lowering) cropTo(src, index *ssa.Value) *ssa.Value {
	a, b := l.Shape(src), l.Shape(index)
	if len(a) != len(b) {
		l.Fail("index and src must have the same number of dimensions")
	}
	equal := true
	for i := range a {
		equal = equal && a[i].Equal(b[i])
	}
	if equal {
		return src
	}
	for i := range a {
		if !a[i].Equal(b[i]) {
			src = l.sliceDim(src, i, ConstSize(0), l.sizeOf(index, i), ConstSize(1))
		}
	}
	return src
}

func lowerScatter(l *Lowering) *ssa.Value {
	x, index := l.Tensor("self"), l.indexArg("index")
	reduce := ""
	switch r := l.Str("reduce"); r {
	case "":
	case "add":
		reduce = "sum"
	case "multiply":
		reduce = "prod"
	default:
		l.Fail("unknown reduction %q", r)
	}
	return l.scatterArgs(x, index, reduce)
}

func lowerScatterAdd(l *Lowering) *ssa.Value {
	return l.scatterArgs(l.Tensor("self"), l.indexArg("index"), "sum")
}

func (l *Lowering) scatterArgs(x, index *ssa.Value, reduce string) *ssa.Value {
	if anyZero(l.Shape(index)) { // of any rank
		return x
	}
	rank := l.Rank(x)
	l.oneDim(&x, &index)
	l.sameRank(x, "index", index)
	var src *ssa.Value
	if l.HasArg("value") {
		src = l.expandTo(l.reshape(l.as("value", l.DType(x))), l.allSizes(index))
	} else {
		src = l.cropTo(l.atLeast1(l.Cast(l.Tensor("src"), l.DType(x))), index)
	}
	return l.likeRank(l.scatter(x, index, src, l.Dim("dim", l.Rank(x)), reduce), rank)
}

// scatter writes src at index along dim, combined by reduce ("" replaces, sum, prod, amax, amin).
func (l *Lowering) scatter(x, index, src *ssa.Value, dim int, reduce string) *ssa.Value {
	if l.DType(x) == tensor.Bool && reduce != "" {
		// and, or as minimum and maximum of 0 and 1
		y := l.scatter(l.Cast(x, tensor.Int32), index, l.Cast(src, tensor.Int32), dim, reduce)
		return l.Cast(y, tensor.Bool)
	}
	if d := l.DType(x); reduce != "" && (d == tensor.Float16 || d == tensor.BFloat16) {
		// onnxruntime cannot reduce these; the sums of PyTorch are rounded later too
		y := l.scatter(l.Cast(x, tensor.Float32), index, l.Cast(src, tensor.Float32), dim, reduce)
		return l.Cast(y, d)
	}
	name, since := onnxReduction(reduce)
	if reduce != "" && !l.scatterReduces(since) {
		return l.scatterLoop(x, index, src, dim, reduce)
	}
	attrs := []ssa.Attr{onnx.Axis(dim)}
	if name != "" {
		attrs = append(attrs, onnx.Reduction(name))
	}
	return l.ScatterElements(x, index, src, attrs...)
}

// scatterND replaces the parts of x that the rows of idx name.
func (l *Lowering) scatterND(x, idx, values *ssa.Value) *ssa.Value {
	return l.ScatterND(x, idx, values)
}

// scatterRows merges the dims of x that the rows of idx name, and gives each row as one index into them.
func (l *Lowering) scatterRows(x, idx, values *ssa.Value) (flat, at, rows *ssa.Value) {
	k, ok := l.Shape(idx)[l.Rank(idx)-1].Int()
	if !ok {
		l.Fail("the number of indices is not known")
	}
	parts, dims := make([]*ssa.Value, k), make([]int, k)
	for i := range parts {
		parts[i] = l.gather(idx, l.Const(tensor.ScalarInt(int64(i))), l.Rank(idx)-1)
		dims[i] = i
	}
	at = l.linearIndex(x, dims, parts)
	rows = l.flattenDims(values, 0, l.Rank(at)-1)
	if l.Rank(at) == 0 {
		rows = l.unsqueeze(values, 0)
	}
	return l.flattenDims(x, 0, int(k)-1), l.reshape(at, -1), rows
}

// onnxReduction names a reduction as ScatterElements and ScatterND do, with the opset that has it.
func onnxReduction(reduce string) (name string, since int) {
	switch reduce {
	case "sum":
		return "add", scatterAdds
	case "prod":
		return "mul", scatterAdds
	case "amax":
		return "max", scatterCompares
	case "amin":
		return "min", scatterCompares
	}
	return "", 9
}

// scatterLoop is scatter one element at a time, for opsets whose scatters cannot reduce.
func (l *Lowering) scatterLoop(x, index, src *ssa.Value, dim int, reduce string) *ssa.Value {
	flat := l.reduceLoop(l.reshape(x, -1), l.reshape(l.elementIndex(x, index, dim), -1), l.reshape(src, -1), reduce)
	return l.reshapeLike(flat, x)
}

// reduceLoop combines rows[i] into x[index[i]] for each i, in order. x has any
// rank, index is a vector that indexes its first dim.
func (l *Lowering) reduceLoop(x, index, rows *ssa.Value, reduce string) *ssa.Value {
	count := l.sizeValue(l.sizeOf(index, 0))
	cond := l.boolScalar(true)
	loop := l.Block.InsertBefore(l.Before, "onnx::Loop", l.Loc, []*ssa.Value{count, cond, x}, x.Type)
	body := loop.AddBlock()
	i := body.AddParam("", ssa.Tensor(tensor.Int64))
	c := body.AddParam("", ssa.Tensor(tensor.Bool))
	acc := body.AddParam("", x.Type)
	outer := l.Builder
	l.Block, l.Before = body, nil
	at := l.gather(index, l.unsqueeze(i, 0), 0)
	old := l.gather(acc, at, 0)
	row := l.gather(rows, l.unsqueeze(i, 0), 0)
	var v *ssa.Value
	switch reduce {
	case "sum":
		v = l.Add(old, row)
	case "prod":
		v = l.Mul(old, row)
	case "amax", "amin":
		v = l.Op(map[string]string{"amax": "Max", "amin": "Min"}[reduce], old, row)
	}
	next := l.scatterND(acc, l.unsqueeze(at, 1), v)
	l.Builder = outer
	body.SetReturns(c, next)
	return loop.Results[0]
}

// Opsets of the reductions of ScatterElements and ScatterND.
const (
	scatterAdds     = 16 // and multiplies
	scatterCompares = 18
)

// scatterReduces reports that scatters have a reduction. Before, it depends on the operator what is least: a loop over the
// indices, a product with a matrix of ones, or a transposed convolution. No step down from a scatter alone can tell.
func (l *Lowering) scatterReduces(since int) bool { return l.Opset >= since }

// scatterNDAdd adds values at indices, which may repeat.
func (l *Lowering) scatterNDAdd(x, idx, values *ssa.Value) *ssa.Value {
	if l.DType(x) == tensor.Bool {
		return l.Cast(l.scatterNDAdd(l.Cast(x, tensor.Int32), idx, l.Cast(values, tensor.Int32)), tensor.Bool)
	}
	if d := l.DType(x); d == tensor.Float16 || d == tensor.BFloat16 {
		return l.Cast(l.scatterNDAdd(l.Cast(x, tensor.Float32), idx, l.Cast(values, tensor.Float32)), d)
	}
	if l.scatterReduces(scatterAdds) {
		return l.ScatterND(x, idx, values, onnx.Reduction("add"))
	}
	flat, at, rows := l.scatterRows(x, idx, values)
	return l.reshapeLike(l.reduceLoop(flat, at, rows, "sum"), x)
}

func lowerScatterReduce(l *Lowering) *ssa.Value {
	x, index, src := l.Tensor("self"), l.indexArg("index"), l.Tensor("src")
	if anyZero(l.Shape(index)) {
		return x
	}
	rank := l.Rank(x)
	l.oneDim(&x, &index, &src)
	l.sameRank(x, "index", index)
	l.sameRank(x, "src", src)
	src = l.cropTo(l.Cast(src, l.DType(x)), index)
	return l.likeRank(l.scatterReduce(x, index, src, l.Dim("dim", l.Rank(x)), l.Str("reduce"), l.Bool("include_self")), rank)
}

// scatterReduce combines src into x at index along dim. Without include_self,
// elements of x that index names do not count themselves.
func (l *Lowering) scatterReduce(x, index, src *ssa.Value, dim int, reduce string, include bool) *ssa.Value {
	d := l.DType(x)
	fill := func(y *ssa.Value, v *ssa.Value) *ssa.Value {
		return l.scatter(y, index, l.expandTo(v, l.allSizes(index)), dim, "")
	}
	mean := reduce == "mean"
	if mean {
		reduce = "sum"
	}
	base := x
	if !include {
		base = fill(x, l.neutral(d, reduce))
	}
	switch reduce {
	case "sum", "prod", "amax", "amin":
	default:
		l.Fail("unknown reduction %q", reduce)
	}
	y := l.scatter(base, index, src, dim, reduce)
	if !mean {
		if d.IsFloat() && reduce[0] == 'a' {
			y = l.spreadNaN(y, base, index, src, dim)
		}
		return y
	}
	one := l.Like(x, 1)
	count := l.expandTo(one, l.allSizes(x))
	if !include {
		count = fill(count, l.Like(x, 0))
	}
	count = l.scatter(count, index, l.expandTo(one, l.allSizes(index)), dim, "sum")
	if d.IsInt() {
		return l.Aten("aten::div.Tensor_mode", y, count, "floor")
	}
	return l.Div(y, count)
}

// spreadNaN makes an element NaN if any of those that it combines is NaN; the
// runtimes' maximum and minimum may skip them.
func (l *Lowering) spreadNaN(y, base, index, src *ssa.Value, dim int) *ssa.Value {
	n := l.Cast(l.IsNaN(src), tensor.Int32)
	zeros := l.expandTo(l.Scalar(tensor.Int32, 0), l.allSizes(base))
	hit := l.Cast(l.scatter(zeros, index, n, dim, "sum"), tensor.Bool)
	hit = l.Or(hit, l.IsNaN(base))
	return l.Where(hit, l.Like(y, math.NaN()), y)
}

// neutral is the value that a reduction starts from.
func (l *Lowering) neutral(d tensor.DType, reduce string) *ssa.Value {
	switch reduce {
	case "sum":
		return l.Scalar(d, 0)
	case "prod":
		return l.Scalar(d, 1)
	}
	low := reduce == "amax"
	switch {
	case d == tensor.Bool:
		return l.boolScalar(!low)
	case d.IsFloat() && low:
		return l.Scalar(d, math.Inf(-1))
	case d.IsFloat():
		return l.Scalar(d, math.Inf(1))
	case d.IsUnsigned() && low:
		return l.scalarInt(d, 0)
	case d.IsUnsigned():
		return l.scalarInt(d, 1<<(8*d.Size())-1)
	case low:
		return l.scalarInt(d, -1<<(8*d.Size()-1))
	}
	return l.scalarInt(d, 1<<(8*d.Size()-1)-1)
}

// indexRows gives an index vector the shape of source, along dim.
func (l *Lowering) indexRows(index, source *ssa.Value, dim int) *ssa.Value {
	shape := repeatSize(ConstSize(1), int64(l.Rank(source)))
	shape[dim] = ConstSize(-1)
	return l.expandTo(l.reshapeInto(index, shape), l.allSizes(source))
}

// indexParts prepares self, index and source of the index_ operators.
func (l *Lowering) indexParts() (x, index, source *ssa.Value, dim, rank int) {
	x, index, source = l.Tensor("self"), l.indexArg("index"), l.Tensor("source")
	source = l.Cast(source, l.DType(x))
	rank = l.Rank(x)
	l.oneDim(&x, &index)
	dim = l.Dim("dim", l.Rank(x))
	if l.Rank(source) == 0 {
		shape := make([]int64, l.Rank(x))
		for i := range shape {
			shape[i] = 1
		}
		source = l.reshape(source, shape...)
	}
	l.sameRank(x, "source", source)
	return x, index, source, dim, rank
}

func lowerIndexAdd(l *Lowering) *ssa.Value {
	x, index, source, dim, rank := l.indexParts()
	source = l.spreadSource(source, x, dim)
	if !l.IsConst("alpha") {
		source = l.Mul(source, l.as("alpha", l.DType(x)))
	} else if l.Float("alpha") != 1 {
		if l.DType(x) == tensor.Bool {
			source = l.And(source, l.as("alpha", tensor.Bool))
		} else {
			source = l.Mul(source, l.as("alpha", l.DType(x)))
		}
	}
	if anyZero(l.Shape(index)) {
		return l.likeRank(x, rank)
	}
	if dim == 0 {
		return l.likeRank(l.scatterNDAdd(x, l.Cast(l.unsqueeze(index, 1), tensor.Int64), source), rank)
	}
	return l.likeRank(l.scatter(x, l.indexRows(index, source, dim), source, dim, "sum"), rank)
}

// spreadSource repeats a source of size 1 along the axes but dim where x is larger: PyTorch's index_add did so before version 2.
func (l *Lowering) spreadSource(source, x *ssa.Value, dim int) *ssa.Value {
	sizes, change := l.allSizes(source), false
	for i, s := range l.Shape(source) {
		if want := l.Shape(x)[i]; i != dim && s.Is(1) && !want.Is(1) {
			sizes[i], change = l.sizeOf(x, i), true
		}
	}
	if !change {
		return source
	}
	return l.expandTo(source, sizes)
}

func lowerIndexCopy(l *Lowering) *ssa.Value {
	x, index, source, dim, rank := l.indexParts()
	if anyZero(l.Shape(index)) {
		return l.likeRank(x, rank)
	}
	if dim == 0 {
		return l.likeRank(l.scatterND(x, l.Cast(l.unsqueeze(index, 1), tensor.Int64), source), rank)
	}
	return l.likeRank(l.scatter(x, l.indexRows(index, source, dim), source, dim, ""), rank)
}

func lowerIndexFill(l *Lowering) *ssa.Value {
	x, index := l.Tensor("self"), l.indexArg("index")
	rank := l.Rank(x)
	l.oneDim(&x, &index)
	if anyZero(l.Shape(index)) {
		return l.likeRank(x, rank)
	}
	dim := l.Dim("dim", l.Rank(x))
	value := l.reshape(l.as("value", l.DType(x)))
	sizes := l.allSizes(x)
	sizes[dim] = l.sizeOf(index, 0)
	filled := l.expandTo(value, sizes)
	return l.likeRank(l.scatter(x, l.indexRows(index, filled, dim), filled, dim, ""), rank)
}

func lowerIndexReduce(l *Lowering) *ssa.Value {
	x, index, source, dim, rank := l.indexParts()
	if anyZero(l.Shape(index)) {
		return l.likeRank(x, rank)
	}
	return l.likeRank(l.scatterReduce(x, l.indexRows(index, source, dim), source, dim, l.Str("reduce"), l.Bool("include_self")), rank)
}

func lowerPut(l *Lowering) *ssa.Value {
	x, index := l.Tensor("self"), l.reshape(l.indexArg("index"), -1)
	source := l.reshape(l.Cast(l.Tensor("source"), l.DType(x)), -1)
	if anyZero(l.Shape(index)) {
		return x
	}
	reduce := ""
	if l.Bool("accumulate") {
		reduce = "sum"
	}
	return l.reshapeLike(l.scatter(l.reshape(x, -1), index, source, 0, reduce), x)
}
