package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// vectorNorm holds norms and distances (ATen/native/LinearAlgebra.cpp, Distance.cpp).
var vectorNorm = Defs{
	"aten::norm":               {Doc: "p-norm over dim", Gradient: "[p=2] self: masked_fill(self * (reshape(grad, size(sum(self, dim, True))) / reshape(result, size(sum(self, dim, True)))), eq(reshape(result, size(sum(self, dim, True))), 0), 0) | masked_fill(self * (grad / result), eq(result, 0), 0)", Layout: RowMajor, Autocast: Float32OnCUDA, Complex: (*Lowering).complexNorm, Lower: lowerNorm},
	"aten::linalg_vector_norm": {Doc: "ord-norm over dim", Gradient: "[ord=2] self: masked_fill(self * (reshape(grad, size(sum(self, dim, True))) / reshape(result, size(sum(self, dim, True)))), eq(reshape(result, size(sum(self, dim, True))), 0), 0)", Nature: Reduces, Complex: (*Lowering).complexNorm, Lower: lowerVectorNorm},
	"aten::linalg_norm":        {Doc: "norm of vectors or matrices", Complex: (*Lowering).complexNorm, Lower: lowerLinalgNorm},
	"aten::linalg_matrix_norm": {Doc: "norm of matrices", Complex: (*Lowering).complexNorm, Lower: lowerMatrixNorm},
	"aten::nuclear_norm":       {Doc: "the sum of the singular values", Autocast: Float32OnCUDA, Complex: (*Lowering).complexNorm, Lower: lowerNuclearNorm},
	"aten::frobenius_norm": {Doc: "2-norm over dim", Autocast: Float32OnCUDA, Complex: (*Lowering).complexNorm, Lower: func(l *Lowering) *ssa.Value {
		x := l.floating("self")
		return l.pnorm(x, constNumber(2), l.over(x, "dim"), l.Bool("keepdim"))
	}},
	"aten::dist":              {Doc: "p-norm of self - other", Gradient: "[p=2] self: sum_to_size(masked_fill((self - other) * (grad / result), eq(result, 0), 0), size(self)); other: sum_to_size(masked_fill((other - self) * (grad / result), eq(result, 0), 0), size(other))", Autocast: Float32OnCUDA, Complex: one(complexDist), Lower: lowerDist},
	"aten::cdist":             {Doc: "p-norm of all differences between two lists of vectors", Batching: SameShape, Layout: RowMajor, Autocast: Float32OnCPU | Float32OnCUDA, Lower: lowerCdist},
	"aten::_cdist_forward":    {Doc: "p-norm of all differences between two lists of vectors", Lower: lowerCdist},
	"aten::_euclidean_dist":   {Doc: "2-norm of all differences between two lists of vectors", Lower: lowerCdist},
	"aten::pdist":             {Doc: "p-norm of the differences between each two vectors", Autocast: Float32OnCUDA, Lower: lowerPdist},
	"aten::_pdist_forward":    {Doc: "p-norm of the differences between each two vectors", Lower: lowerPdist},
	"aten::pairwise_distance": {Doc: "p-norm of x1 - x2 + eps over the last dimension", Complex: one(complexPairwiseDistance), Lower: lowerPairwiseDistance},
	"aten::renorm":            {Doc: "slices along dim with the p-norm bounded by maxnorm", Autocast: Float32OnCUDA, Lower: lowerRenorm},
	"aten::cosine_similarity": {Doc: "dot product over the norms along dim", Batching: BroadcastsAlong, Autocast: Float32OnCUDA, Lower: lowerCosineSimilarity},
}

// pnorm is the p-norm over dims; 0 counts what is not 0.
func (l *Lowering) pnorm(x *ssa.Value, order Number, dims []int64, keep bool) *ssa.Value {
	if d := l.DType(x); d.IsFloat() && d.Size() < 4 {
		return l.Cast(l.pnorm(l.Cast(x, tensor.Float32), order, dims, keep), d)
	}
	p, ok := order.Known()
	if !ok {
		return l.pnormOf(x, order, dims, keep)
	}
	if l.Rank(x) == 0 {
		x = l.abs(x)
		if p == 0 {
			return l.Cast(l.Cast(x, tensor.Bool), l.DType(x))
		}
		return x
	}
	if l.nothingIn(x, dims) {
		return l.reduce("ReduceSum", x, dims, keep)
	}
	switch {
	case p == 0:
		return l.reduce("ReduceSum", l.Cast(l.Cast(x, tensor.Bool), l.DType(x)), dims, keep)
	case p == 1:
		return l.reduce("ReduceL1", x, dims, keep)
	case p == 2:
		return l.reduce("ReduceL2", x, dims, keep)
	case math.IsInf(p, 1):
		return l.reduceExtreme("ReduceMax", l.abs(x), dims, keep)
	case math.IsInf(p, -1):
		return l.reduceExtreme("ReduceMin", l.abs(x), dims, keep)
	}
	x, back := l.widen(x)
	powers := l.power(l.abs(x), l.Like(x, p))
	return back(l.power(l.reduce("ReduceSum", powers, dims, keep), l.Like(x, 1/p)))
}

// pnormOf is the p-norm for a p of the run: 0, inf and -inf have formulas of their own.
func (l *Lowering) pnormOf(x *ssa.Value, order Number, dims []int64, keep bool) *ssa.Value {
	if l.nothingIn(x, dims) {
		l.Fail("a norm over no elements, whose order is a number of the run")
	}
	x = l.abs(x)
	p := l.LikeNumber(x, order)
	reduced := func(f func(x *ssa.Value) *ssa.Value) *ssa.Value {
		if l.Rank(x) == 0 {
			return x
		}
		return f(x)
	}
	count := l.Cast(l.Cast(x, tensor.Bool), l.DType(x))
	if l.Rank(x) > 0 {
		count = l.reduce("ReduceSum", count, dims, keep)
	}
	most := reduced(func(x *ssa.Value) *ssa.Value { return l.reduceExtreme("ReduceMax", x, dims, keep) })
	least := reduced(func(x *ssa.Value) *ssa.Value { return l.reduceExtreme("ReduceMin", x, dims, keep) })
	y := reduced(func(x *ssa.Value) *ssa.Value {
		return l.Pow(l.reduce("ReduceSum", l.Pow(x, p), dims, keep), l.LikeNumber(x, l.oneOver(order)))
	})
	y = l.Where(l.Equal(p, l.Like(x, math.Inf(1))), most, y)
	y = l.Where(l.Equal(p, l.Like(x, math.Inf(-1))), least, y)
	return l.Where(l.isZero(p), count, y)
}

func lowerNorm(l *Lowering) *ssa.Value {
	x := l.floating("self")
	return l.pnorm(x, l.NumberOr("p", 2), l.over(x, "dim"), l.Bool("keepdim"))
}

func lowerVectorNorm(l *Lowering) *ssa.Value {
	x := l.floating("self")
	return l.pnorm(x, l.NumberOr("ord", 2), l.over(x, "dim"), l.Bool("keepdim"))
}

func lowerLinalgNorm(l *Lowering) *ssa.Value {
	x := l.floating("self")
	keep := l.Bool("keepdim")
	if l.IsNone("ord") {
		return l.pnorm(x, constNumber(2), l.over(x, "dim"), keep)
	}
	rank := l.Rank(x)
	var dims []int64
	switch {
	case !l.IsNone("dim"):
		dims = l.Dims("dim", rank)
	case rank == 1:
		dims = []int64{0}
	case rank == 2:
		dims = []int64{0, 1}
	default:
		l.Fail("linalg.norm with ord and without dim takes vectors and matrices")
	}
	if len(dims) == 1 {
		return l.pnorm(x, l.NumberOr("ord", 2), dims, keep)
	}
	return l.matrixNorm(x, dims, keep)
}

func lowerMatrixNorm(l *Lowering) *ssa.Value {
	x := l.floating("self")
	return l.matrixNorm(x, l.Dims("dim", l.Rank(x)), l.Bool("keepdim"))
}

// matrixNorm reads ord: fro, nuc, 1, -1, 2, -2, inf and -inf.
func (l *Lowering) matrixNorm(x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	if len(dims) != 2 || dims[0] == dims[1] {
		l.Fail("a matrix norm takes two dimensions")
	}
	if l.nothingIn(x, dims) {
		return l.reduce("ReduceSum", x, dims, keep)
	}
	if lit := l.Literal("ord"); lit.Kind == ssa.StrLit {
		if lit.Str() == "fro" {
			return l.reduce("ReduceL2", x, dims, keep)
		}
		return l.spectralNorm(x, dims, keep, "ReduceSum")
	}
	p := l.FloatOr("ord", 2)
	if l.noSum(x, x) && p > 0 {
		return l.reduce("ReduceSum", l.abs(x), dims, keep) // 0, as no element is greater
	}
	sum, pick := dims[0], dims[1]
	switch {
	case math.Abs(p) == 1:
	case math.IsInf(p, 0):
		sum, pick = pick, sum
	case p == 2:
		return l.spectralNorm(x, dims, keep, "ReduceMax")
	case p == -2:
		return l.spectralNorm(x, dims, keep, "ReduceMin")
	default:
		l.Fail("a matrix norm of order %v", p)
	}
	op := "ReduceMax"
	if p < 0 {
		op = "ReduceMin"
	}
	y := l.reduceExtreme(op, l.reduce("ReduceL1", x, []int64{sum}, true), []int64{pick}, true)
	if keep {
		return y
	}
	return l.squeeze(y, dims...)
}

func lowerDist(l *Lowering) *ssa.Value {
	a, b, d := l.pair()
	if !d.IsFloat() {
		l.Fail("distances of %v", d)
	}
	return l.pnorm(l.Sub(a, b), l.NumberOr("p", 2), nil, false)
}

func lowerCdist(l *Lowering) *ssa.Value {
	vs, _ := l.promoted("x1", "x2")
	p := l.NumberOr("p", 2)
	diff := l.Sub(l.unsqueeze(vs[0], -2), l.unsqueeze(vs[1], -3))
	return l.pnorm(diff, p, []int64{int64(l.Rank(diff) - 1)}, false)
}

func lowerPdist(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	diff := l.Sub(l.unsqueeze(x, 1), x)
	all := l.reshape(l.pnorm(diff, l.NumberOr("p", 2), []int64{2}, false), -1)
	i := l.rangeTo(l.sizeValue(l.sizeOf(x, 0)))
	upper := l.reshape(l.Less(l.unsqueeze(i, 1), i), -1)
	return l.Compress(all, upper, onnx.Axis(0))
}

func lowerPairwiseDistance(l *Lowering) *ssa.Value {
	vs, _ := l.promoted("x1", "x2")
	diff := l.Sub(vs[0], vs[1])
	if !l.DType(diff).IsFloat() {
		diff = l.Cast(diff, tensor.Float32) // eps is a float
	}
	diff = l.plusNumber(diff, l.NumberOr("eps", 1e-6))
	return l.pnorm(diff, l.NumberOr("p", 2), []int64{int64(l.Rank(diff) - 1)}, l.Bool("keepdim"))
}

func lowerRenorm(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	rank := l.Rank(x)
	dim := l.Dim("dim", rank)
	var others []int64
	for i := range rank {
		if i != dim {
			others = append(others, int64(i))
		}
	}
	if len(others) == 0 {
		l.Fail("renorm of a vector")
	}
	most := l.Number("maxnorm")
	n := l.pnorm(x, l.Number("p"), others, true)
	factor := l.Div(l.LikeNumber(x, most), l.offset(n, 1e-7))
	return l.Mul(x, l.Where(l.Greater(n, l.LikeNumber(x, most)), factor, l.Like(x, 1)))
}

// lowerCosineSimilarity normalizes first, bounding each norm by eps, as ATen does.
func lowerCosineSimilarity(l *Lowering) *ssa.Value {
	vs, d := l.promoted("x1", "x2")
	a, b := vs[0], vs[1]
	if !d.IsFloat() {
		l.Fail("cosine similarity of %v", d)
	}
	rank := max(l.Rank(a), l.Rank(b))
	if !sameSizes(l.Shape(a), l.Shape(b)) {
		a, b = l.broadcast(a, b) // the norms are those of the broadcast tensors
	}
	dim := []int64{int64(l.Dim("dim", rank))}
	unit := func(x *ssa.Value) *ssa.Value {
		return l.Div(x, l.max(l.pnorm(x, constNumber(2), dim, true), l.LikeNumber(x, l.NumberOr("eps", 1e-8))))
	}
	return l.reduceOver("ReduceSum", l.Mul(unit(a), unit(b)), dim, false)
}

// spectralNorm reduces the singular values: their sum is the nuclear norm.
func (l *Lowering) spectralNorm(x *ssa.Value, dims []int64, keep bool, op string) *ssa.Value {
	var perm []int64
	for i := range l.Rank(x) {
		if int64(i) != dims[0] && int64(i) != dims[1] {
			perm = append(perm, int64(i))
		}
	}
	x = l.transposeIf(x, append(perm, dims[0], dims[1]))
	var y *ssa.Value
	if l.emptyMatrix(x) && op != "ReduceMin" {
		y = l.zerosOf(l.DType(x), l.batchOf(x)...)
	} else {
		y = l.reduce(op, l.singularValues(x), []int64{-1}, false)
	}
	if !keep {
		return y
	}
	return l.unsqueeze(y, min(dims[0], dims[1]), max(dims[0], dims[1]))
}

// lowerNuclearNorm is of the last two axes, which are all, where none are named.
func lowerNuclearNorm(l *Lowering) *ssa.Value {
	dims := []int64{-2, -1}
	if l.HasArg("dim") {
		dims = l.Ints("dim")
	}
	return l.Aten("aten::linalg_matrix_norm.str_ord", l.Tensor("self"), "nuc", dims, l.Bool("keepdim"))
}
