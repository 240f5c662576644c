package aten

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// matmul holds the products of matrices and vectors (ATen/native/LinearAlgebra.cpp).
var matmul = Defs{
	"aten::linear":            {Doc: "x @ weight.T + bias", Gradient: "input: matmul(grad, weight); weight: mm(t(reshape(grad, [-1, size(weight, 0)])), reshape(input, [-1, size(weight, 1)])); bias: sum_to_size(grad, size(bias))", Nature: Multilinear, Layout: RowMajor, Autocast: LowerPrecision, Lower: lowerLinear},
	"aten::mkldnn_linear":     {Doc: "x @ weight.T + bias", Lower: lowerLinear},
	"aten::matmul":            {Doc: "matrix product with NumPy's rules for ranks", Gradient: "self: sum_to_size(dim(other) == 1 ? (dim(self) == 1 ? grad * other : unsqueeze(grad, -1) * other) : (dim(self) == 1 ? squeeze(matmul(other, unsqueeze(grad, -1)), -1) : matmul(grad, transpose(other, -1, -2))), size(self)); other: sum_to_size(dim(other) == 1 ? (dim(self) == 1 ? grad * self : unsqueeze(grad, -1) * self) : (dim(self) == 1 ? unsqueeze(self, -1) * unsqueeze(grad, -2) : matmul(transpose(self, -1, -2), grad)), size(other))", Nature: Multilinear, Batching: MatrixProduct, Layout: RowMajor, Autocast: LowerPrecision, Type: ofProduct, Lower: productOf("self", "other")},
	"aten::linalg_matmul":     {Doc: "matrix product with NumPy's rules for ranks", Alias: "aten::matmul", Lower: productOf("self", "other")},
	"aten::mm":                {Doc: "matrix product", Gradient: "self: mm(grad, t(mat2)); mat2: mm(t(self), grad)", Nature: Multilinear, Batching: MatrixProduct, Layout: RowMajor, Autocast: LowerPrecision, Lower: productOf("self", "mat2")},
	"aten::bmm":               {Doc: "product of each pair of matrices", Gradient: "self: bmm(grad, transpose(mat2, 1, 2)); mat2: bmm(transpose(self, 1, 2), grad)", Nature: Multilinear, Batching: MatrixProduct, Layout: RowMajor, Autocast: LowerPrecision, Lower: productOf("self", "mat2")},
	"aten::mv":                {Doc: "matrix times vector", Gradient: "self: outer(grad, vec); vec: mv(t(self), grad)", Nature: Multilinear, Batching: MatrixProduct, Layout: RowMajor, Autocast: LowerPrecision, Lower: productOf("self", "vec")},
	"aten::dot":               {Doc: "sum of products of two vectors", Gradient: "self: grad * tensor; tensor: grad * self", Nature: Multilinear, Batching: MatrixProduct, Lower: productOf("self", "tensor")},
	"aten::vdot":              {Doc: "dot of vectors, the first one conjugated", Gradient: "self: grad * other; other: grad * self", Complex: one(complexVdot), Lower: productOf("self", "other")},
	"aten::_int_mm":           {Doc: "int8 matrix product in int32", Lower: lowerIntMM},
	"aten::inner":             {Doc: "sum of products over the last axes", Nature: Multilinear, Lower: lowerInner},
	"aten::outer":             {Doc: "all products of the elements of two vectors", Gradient: "self: mv(grad, vec2); vec2: mv(t(grad), self)", Nature: Multilinear, Batching: OuterProduct, Layout: RowMajor, Lower: lowerOuter},
	"aten::ger":               {Doc: "all products of the elements of two vectors", Nature: Multilinear, Batching: OuterProduct, Alias: "aten::outer", Lower: lowerOuter},
	"aten::linalg_vecdot":     {Doc: "sum of products along dim", Complex: one(complexVecdot), Lower: lowerVecdot},
	"aten::addmm":             {Doc: "beta * self + alpha * mat1 @ mat2", Gradient: "self: sum_to_size(grad * beta, size(self)); mat1: mm(grad, t(mat2)) * alpha; mat2: mm(t(mat1), grad) * alpha", Batching: AddedProduct, Layout: RowMajor, Autocast: LowerPrecision, Complex: one(addProduct("aten::mm", "mat1", "mat2")), Lower: lowerAddmm},
	"aten::_addmm_activation": {Doc: "relu or gelu of addmm", Lower: lowerAddmmActivation},
	"aten::addmv":             {Doc: "beta * self + alpha * mat @ vec", Gradient: "self: sum_to_size(grad * beta, size(self)); mat: outer(grad, vec) * alpha; vec: mv(t(mat), grad) * alpha", Batching: AddedProduct, Autocast: LowerPrecision, Complex: one(addProduct("aten::mv", "mat", "vec")), Lower: lowerAddmv},
	"aten::baddbmm":           {Doc: "beta * self + alpha * batch1 @ batch2", Gradient: "self: sum_to_size(grad * beta, size(self)); batch1: bmm(grad, transpose(batch2, 1, 2)) * alpha; batch2: bmm(transpose(batch1, 1, 2), grad) * alpha", Batching: AddedProduct, Layout: RowMajor, Autocast: LowerPrecision, Complex: one(addProduct("aten::bmm", "batch1", "batch2")), Lower: lowerBaddbmm},
	"aten::addbmm":            {Doc: "beta * self + alpha * sum over the batch of batch1 @ batch2", Gradient: "self: sum_to_size(grad * beta, size(self)); batch1: bmm(expand(unsqueeze(grad, 0), [size(batch1, 0), size(batch1, 1), size(batch2, 2)]), transpose(batch2, 1, 2)) * alpha; batch2: bmm(transpose(batch1, 1, 2), expand(unsqueeze(grad, 0), [size(batch1, 0), size(batch1, 1), size(batch2, 2)])) * alpha", Layout: RowMajor, Autocast: LowerPrecision, Complex: one(addProduct("aten::bmm", "batch1", "batch2")), Lower: lowerAddbmm},
	"aten::addr":              {Doc: "beta * self + alpha * outer(vec1, vec2)", Gradient: "self: sum_to_size(grad * beta, size(self)); vec1: mv(grad, vec2) * alpha; vec2: mv(t(grad), vec1) * alpha", Layout: LikeOperands, Autocast: LowerPrecision, Complex: one(addProduct("aten::outer", "vec1", "vec2")), Lower: lowerAddr},
	"aten::chain_matmul":      {Doc: "product of a list of matrices", Nature: Multilinear, View: MayBeView, Autocast: LowerPrecision, Lower: lowerMultiDot("matrices")},
	"aten::linalg_multi_dot":  {Doc: "product of a list of matrices, vectors at the ends", Nature: Multilinear, View: MayBeView, Autocast: LowerPrecision, Lower: lowerMultiDot("tensors")},
	"aten::bilinear":          {Doc: "x1 @ weight[k] @ x2 + bias[k] for each k", Lower: lowerBilinear},
	"aten::kron":              {Doc: "Kronecker product", Nature: Multilinear, Lower: lowerKron},
	"aten::cross":             {Doc: "cross product along dim, by default the first one of size 3", Gradient: "self: sum_to_size(__is__(dim, None) ? cross(expand(other, size(self)), grad, dim) : cross(other, grad, dim), size(self)); other: sum_to_size(cross(self, -grad, dim), size(other))", Nature: Multilinear, Batching: BroadcastsAlong, Layout: RowMajor, Lower: lowerCross},
	"aten::linalg_cross":      {Doc: "cross product along dim", Gradient: "self: sum_to_size(linalg_cross(other, grad, dim=dim), size(self)); other: sum_to_size(linalg_cross(grad, self, dim=dim), size(other))", Nature: Multilinear, Batching: BroadcastsAlong, Lower: lowerCross},
	"aten::linalg_vander":     {Doc: "matrices of increasing powers of vectors", Complex: one(complexVander), Lower: lowerLinalgVander},
	"aten::trace":             {Doc: "sum of the diagonal", Gradient: "self: diagonal_backward(expand(grad, size(diagonal(self, 0, 0, 1))), size(self), 0, 0, 1)", Autocast: Float32OnCPU, Complex: (*Lowering).complexParts, Lower: lowerTrace},
}

// intMatMul is MatMul for all element types: ONNX's has none narrower than 32
// bits among the integers. Wrapping around commutes with the products.
func (l *Lowering) intMatMul(a, b *ssa.Value) *ssa.Value {
	d := l.sameDType(a, b)
	if d.IsComplex() {
		l.Fail("ONNX has no complex matrix product")
	}
	if d == tensor.Bool {
		l.Fail("matrix product of bool")
	}
	if d.IsInt() && d.Size() < 4 {
		return l.Cast(l.MatMul(l.Cast(a, tensor.Int32), l.Cast(b, tensor.Int32)), d)
	}
	if l.noSum(a, b) {
		// a sum of nothing, which onnxruntime does not take everywhere
		return l.Expand(l.Like(a, 0), l.shapeOf(l.MatMul(a, b)))
	}
	return l.weighted(a, b)
}

// sameDType returns the element type that all operands have. Products do not promote: PyTorch raises where the types
// differ. Nil values do not count.
func (l *Lowering) sameDType(vs ...*ssa.Value) tensor.DType {
	d := l.DType(vs[0])
	for _, v := range vs[1:] {
		if v != nil && l.DType(v) != d {
			l.Fail("the operands have different element types, %v and %v; PyTorch raises here", d, v.DType())
		}
	}
	return d
}

// weighs refuses an input and a weight of different element types, as PyTorch does.
func (l *Lowering) weighs(x, w *ssa.Value) {
	if d, e := l.DType(x), l.DType(w); d != e {
		panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("the input has elements of type %v, the weight of type %v", d, e), Hint: "give the input the weight's type in --input"})
	}
}

// checkFeatures refuses an input whose last axis is not the one that a weight is for.
func (l *Lowering) checkFeatures(x, w *ssa.Value) {
	in, of := x.Tensor().Dims, w.Tensor().Dims
	if len(in) == 0 || len(of) == 0 {
		return
	}
	have, known := in[len(in)-1].Int()
	if want, fixed := of[len(of)-1].Int(); known && fixed && have != want {
		panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("the input has %d features, the weight is for %d", have, want), Hint: "correct the shape in --input"})
	}
}

// noSum reports that the axis that a product sums over, or an axis of the result, is known to be empty.
func (l *Lowering) noSum(a, b *ssa.Value) bool {
	for _, v := range []*ssa.Value{a, b} {
		for _, e := range l.Shape(v) {
			if e.Is(0) {
				return true
			}
		}
	}
	return false
}

func productOf(a, b string) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x, y := l.Tensor(a), l.Tensor(b)
		if d := l.DTypeArg("out_dtype"); d != tensor.Undefined {
			x, y = l.Cast(x, d), l.Cast(y, d)
		}
		if l.Node.Kind == "aten::bmm" {
			l.sameBatch(x, y)
		}
		return l.intMatMul(x, y)
	}
}

func lowerIntMM(l *Lowering) *ssa.Value {
	return l.MatMul(l.Cast(l.Tensor("self"), tensor.Int32), l.Cast(l.Tensor("mat2"), tensor.Int32))
}

func lowerLinear(l *Lowering) *ssa.Value {
	x := l.TensorOr("input")
	if x == nil {
		x = l.Tensor("self")
	}
	return l.linear(x, l.Tensor("weight"), l.TensorOr("bias"))
}

// linear is x @ w.T + b; w may be a vector, b nil.
func (l *Lowering) linear(x, w, b *ssa.Value) *ssa.Value {
	l.weighs(x, w)
	l.checkFeatures(x, w)
	l.sameDType(w, b)
	if l.Rank(w) == 1 {
		y := l.intMatMul(x, w)
		if b != nil {
			y = l.Add(y, b)
		}
		return y
	}
	if l.Rank(x) == 2 && b != nil && l.Rank(b) == 1 && l.DType(x).IsFloat() && !l.noSum(x, w) {
		return l.Gemm(x, w, b, onnx.TransB(true))
	}
	if b == nil {
		return l.intMatMul(x, l.transpose(w, 1, 0))
	}
	return l.Add(l.intMatMul(x, l.apart(l.transpose(w, 1, 0))), b)
}

func lowerInner(l *Lowering) *ssa.Value {
	a, b := l.Tensor("self"), l.Tensor("other")
	ra, rb := l.Rank(a), l.Rank(b)
	if ra == 0 || rb == 0 {
		return l.Aten("aten::mul.Tensor", a, b)
	}
	if rb == 1 {
		return l.intMatMul(a, b)
	}
	if rb == 2 {
		return l.intMatMul(a, l.transpose(b, 1, 0))
	}
	return l.tensordot(a, b, []int64{int64(ra - 1)}, []int64{int64(rb - 1)})
}

func lowerOuter(l *Lowering) *ssa.Value {
	vs, _ := l.promoted("self", "vec2")
	return l.product(l.unsqueeze(vs[0], 1), l.unsqueeze(vs[1], 0))
}

// product is a * b with bool products, which ONNX's Mul lacks.
func (l *Lowering) product(a, b *ssa.Value) *ssa.Value {
	if l.DType(a) == tensor.Bool {
		return l.And(a, b)
	}
	return l.Mul(a, b)
}

func lowerVecdot(l *Lowering) *ssa.Value {
	x, y := l.Tensor("x"), l.Tensor("y")
	p := l.Mul(x, y)
	return l.reduce("ReduceSum", p, []int64{int64(l.Dim("dim", l.Rank(p)))}, false)
}

// affine is beta * c + alpha * y. A beta of 0 drops c, NaNs included.
func (l *Lowering) affine(c, y *ssa.Value) *ssa.Value {
	d := l.DType(y)
	if !l.isNumber("alpha", 1) {
		y = l.product(y, l.as("alpha", d))
	}
	if l.isNumber("beta", 0) {
		return y // y has the full shape already
	}
	c = l.Cast(c, d)
	if !l.isNumber("beta", 1) {
		c = l.product(c, l.as("beta", d))
	}
	if d == tensor.Bool {
		return l.Or(c, y)
	}
	return l.Add(c, y)
}

// isNumber reports that an argument is the constant v.
func (l *Lowering) isNumber(name string, v float64) bool {
	if !l.IsConst(name) {
		return false
	}
	lit := l.scalarLit(name)
	return lit.IsNumber() && lit.Kind != ssa.ComplexLit && lit.Float() == v
}

// asFloat32 gives a constant number that float32, the type of ONNX attributes, holds exactly enough for d.
func (l *Lowering) asFloat32(name string, d tensor.DType) (float64, bool) {
	if !l.IsConst(name) {
		return 0, false
	}
	v := l.Float(name)
	return v, d != tensor.Float64 || float64(float32(v)) == v || math.IsNaN(v)
}

func lowerAddmm(l *Lowering) *ssa.Value {
	c, a, b := l.Tensor("self"), l.Tensor("mat1"), l.Tensor("mat2")
	if d := l.DTypeArg("out_dtype"); d != tensor.Undefined {
		c, a, b = l.Cast(c, d), l.Cast(a, d), l.Cast(b, d)
	}
	d := l.sameDType(a, b, c)
	alpha, okA := l.asFloat32("alpha", d)
	beta, okB := l.asFloat32("beta", d)
	if !d.IsFloat() || !okA || !okB || l.noSum(a, b) {
		return l.affine(c, l.intMatMul(a, b))
	}
	if beta == 0 {
		return l.scale(l.MatMul(a, b), alpha)
	}
	var attrs []ssa.Attr
	if alpha != 1 {
		attrs = append(attrs, onnx.Alpha(alpha))
	}
	if beta != 1 {
		attrs = append(attrs, onnx.Beta(beta))
	}
	return l.Gemm(a, b, c, attrs...)
}

func lowerAddmmActivation(l *Lowering) *ssa.Value {
	y := lowerAddmm(l)
	if l.Bool("use_gelu") {
		return l.Aten("aten::gelu", y)
	}
	return l.Relu(y)
}

func lowerAddmv(l *Lowering) *ssa.Value {
	return l.affine(l.Tensor("self"), l.intMatMul(l.Tensor("mat"), l.Tensor("vec")))
}

func lowerBaddbmm(l *Lowering) *ssa.Value {
	a, b := l.Tensor("batch1"), l.Tensor("batch2")
	if d := l.DTypeArg("out_dtype"); d != tensor.Undefined {
		a, b = l.Cast(a, d), l.Cast(b, d)
	}
	l.sameBatch(a, b)
	return l.affine(l.Tensor("self"), l.intMatMul(a, b))
}

// sameBatch demands that two stacks have as many matrices each: MatMul would repeat a lone one, these operators do not.
func (l *Lowering) sameBatch(x, y *ssa.Value) {
	if l.Rank(x) == 3 && l.Rank(y) == 3 {
		l.Same(l.Shape(x)[0], l.Shape(y)[0])
	}
}

func lowerAddbmm(l *Lowering) *ssa.Value {
	a, d := l.Tensor("batch1"), l.DType(l.Tensor("batch1"))
	l.sameBatch(a, l.Tensor("batch2"))
	y := l.intMatMul(l.compute(a), l.compute(l.Tensor("batch2")))
	return l.affine(l.Tensor("self"), l.Cast(l.sumAxes(y, []int64{0}), d))
}

func lowerAddr(l *Lowering) *ssa.Value {
	d := l.argType("self", "vec1", "vec2")
	y := l.product(l.unsqueeze(l.as("vec1", d), 1), l.unsqueeze(l.as("vec2", d), 0))
	return l.affine(l.Tensor("self"), y)
}

func lowerMultiDot(name string) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		vs := l.Tensors(name)
		if len(vs) == 0 {
			l.Fail("an empty list of matrices")
		}
		y := vs[0]
		for _, v := range vs[1:] {
			y = l.intMatMul(y, v)
		}
		return y
	}
}

// bilinear: (..., I), (..., J), weight (K, I, J).
func lowerBilinear(l *Lowering) *ssa.Value {
	x1, x2, w, b := l.Tensor("input1"), l.Tensor("input2"), l.Tensor("weight"), l.TensorOr("bias")
	K, I, J := l.sizeOf(w, 0), l.sizeOf(w, 1), l.sizeOf(w, 2)
	flat := l.reshapeSizes(l.transpose(w, 1, 0, 2), I, l.mulSize(K, J))
	t := l.intMatMul(x1, flat) // (..., K*J)
	r := l.Rank(x1)
	t = l.reshapeSizes(t, append(l.sizesOf(x1, 0, r-1), K, J)...)
	y := l.squeeze(l.intMatMul(t, l.unsqueeze(x2, int64(r))), int64(r))
	if b != nil {
		y = l.Add(y, b)
	}
	return y
}

func lowerKron(l *Lowering) *ssa.Value {
	vs, _ := l.promoted("self", "other")
	a, b := vs[0], vs[1]
	r := max(l.Rank(a), l.Rank(b))
	a = l.unsqueeze(a, axesFrom(0, r-l.Rank(a))...)
	b = l.unsqueeze(b, axesFrom(0, r-l.Rank(b))...)
	out := make([]Size, r)
	var odd, even []int64
	for i := range r {
		out[i] = l.mulSize(l.sizeOf(a, i), l.sizeOf(b, i))
		even = append(even, int64(2*i))
		odd = append(odd, int64(2*i+1))
	}
	p := l.product(l.unsqueeze(a, odd...), l.unsqueeze(b, even...))
	if r == 0 {
		return p
	}
	return l.reshapeSizes(p, out...)
}

func lowerCross(l *Lowering) *ssa.Value {
	vs, _ := l.promoted("self", "other")
	a, b := vs[0], vs[1]
	r := l.Rank(a)
	dim := -1
	if l.IsNone("dim") {
		for i, e := range l.Shape(a) {
			if e.Is(3) {
				dim = i
				break
			}
		}
		if dim < 0 {
			l.Fail("no dimension of size 3 is known")
		}
	} else {
		dim = l.Dim("dim", r)
	}
	next, prev := l.i64(1, 2, 0), l.i64(2, 0, 1)
	return l.Sub(l.Mul(l.gather(a, next, dim), l.gather(b, prev, dim)), l.Mul(l.gather(a, prev, dim), l.gather(b, next, dim)))
}

// powers gives 1, x, x^2, ..., x^(n-1) along a new last axis.
func (l *Lowering) powers(x *ssa.Value, n int64) *ssa.Value {
	one := l.Expand(l.scalarInt(l.DType(x), 1), l.shapeOf(x))
	cols := make([]*ssa.Value, n)
	p := one
	last := int64(l.Rank(x))
	for i := range n {
		if i == 1 {
			p = x
		} else if i > 1 {
			p = l.Mul(p, x)
		}
		cols[i] = l.unsqueeze(p, last)
	}
	if n == 0 {
		shape := append(l.sizesOf(x, 0, int(last)), ConstSize(0))
		return l.fill(l.sizeTensor(shape), l.DType(x), ssa.Int(0))
	}
	return l.concatV(last, cols...)
}

// maxPowers bounds the columns that are written out.
const maxPowers = 256

func lowerLinalgVander(l *Lowering) *ssa.Value {
	x := l.Tensor("x")
	if d := l.DType(x); d.IsInt() || d == tensor.Bool {
		x = l.Cast(x, tensor.Int64)
	}
	n := int64(0)
	if l.Rank(x) == 0 {
		x = l.unsqueeze(x, 0)
	}
	if l.IsNone("N") {
		n = l.static(x, l.Rank(x)-1)
	} else {
		n = l.Int("N")
	}
	if n < 0 || n > maxPowers {
		l.Fail("a Vandermonde matrix of %d columns", n)
	}
	return l.powers(x, n)
}

func lowerTrace(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if d := l.DType(x); d.IsInt() || d == tensor.Bool {
		x = l.Cast(x, tensor.Int64)
	}
	n := l.minSize(l.sizeOf(x, 0), l.sizeOf(x, 1))
	step := l.addSize(l.sizeOf(x, 1), ConstSize(1))
	idx := l.Mul(l.countTo(n), l.sizeValue(step))
	return l.reduce("ReduceSum", l.gather(l.reshape(x, -1), idx, 0), nil, false)
}
