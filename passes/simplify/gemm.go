package simplify

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// matMulAdd makes a Gemm of a product of matrices and an addition that broadcasts to it.
func matMulAdd(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		p, c := o.Operand(i), o.Operand(1-i)
		d := p.Def()
		if d == nil || d.Kind != "onnx::MatMul" || !p.HasOneUse() || rank(d.Operand(0)) != 2 || rank(d.Operand(1)) != 2 || c == p {
			continue
		}
		if dt := p.DType(); dt != tensor.Float32 && dt != tensor.Float64 {
			return false
		}
		if !broadcastsTo(c, p) || !ssa.SameType(p.Type, o.Result(0).Type) {
			continue
		}
		y := build(r).Gemm(d.Operand(0), d.Operand(1), c)
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// transposeGemm takes a Transpose before a Gemm into its flags: a transposed weight stays as it is in the file.
func transposeGemm(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i, flag := range [...]string{"transA", "transB"} {
		d := o.Operand(i).Def()
		if d == nil || d.Kind != "onnx::Transpose" || rank(d.Operand(0)) != 2 || isIdentity(permOf(d, 2)) {
			continue
		}
		operands := o.Operands()
		operands[i] = d.Operand(0)
		var attrs []ssa.Attr
		for _, a := range o.Attrs {
			if a.Name != flag {
				attrs = append(attrs, a)
			}
		}
		y := r.Create("onnx::Gemm", operands, append(attrs, ssa.Attr{Name: flag, Value: ssa.Int(1 - o.AttrInt(flag, 0))})...)
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// transposeFusedMatMul takes a Transpose before onnxruntime's product into its flags (onnx.FusedMatMulAxes). Both operands have the same rank, of 3 or more, where one of the batch flags is set (docs/ContribOperators.md).
func transposeFusedMatMul(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i, side := range [...]string{"A", "B"} {
		d := definedBy(o.Operand(i), "onnx::Transpose")
		if d == nil || rank(d.Operand(0)) < 2 || rank(o.Operand(1-i)) < 2 { // onnxruntime 1.32 is wrong for transA and a vector
			continue
		}
		n := rank(d.Operand(0))
		trans, batch := "trans"+side, "transBatch"+side
		perm := permOf(d, n)
		whole := make([]int64, n)
		for at, from := range onnx.FusedMatMulAxes(n, o.AttrInt(trans, 0) != 0, o.AttrInt(batch, 0) != 0) {
			whole[at] = perm[from]
		}
		for flags := range int64(4) {
			if !slices.Equal(whole, onnx.FusedMatMulAxes(n, flags&1 != 0, flags&2 != 0)) || flags&2 != 0 && (n < 3 || rank(o.Operand(1-i)) != n) {
				continue
			}
			o.SetAttr(trans, ssa.Int(flags&1))
			o.SetAttr(batch, ssa.Int(flags>>1))
			r.SetOperand(o, i, d.Operand(0))
			return true
		}
	}
	return false
}

// addToGemm lets a Gemm without an addend add.
func addToGemm(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		p, c := o.Operand(i), o.Operand(1-i)
		d := p.Def()
		if d == nil || d.Kind != "onnx::Gemm" || d.Operand(2) != nil || !p.HasOneUse() || c == p || d.AttrFloat("beta", 1) != 1 || !broadcastsTo(c, p) || !ssa.SameType(p.Type, o.Result(0).Type) {
			continue
		}
		y := build(r).Gemm(d.Operand(0), d.Operand(1), c, d.Attrs...)
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}

// gemmBetween makes a Gemm of a product with a matrix and the addition of a vector where Reshapes stand before and behind:
// these can as well make a matrix and take one.
func gemmBetween(r *rewrite.Rewriter, o *ssa.Op) bool {
	sum := o.Operand(0).Def()
	if sum == nil || sum.Kind != "onnx::Add" || !sum.Result(0).HasOneUse() || sum.Block() != o.Block() {
		return false
	}
	p, bias := sum.Operand(0), sum.Operand(1)
	product := p.Def()
	if product == nil || product.Kind != "onnx::MatMul" || !p.HasOneUse() || rank(p) < 3 || rank(product.Operand(1)) != 2 || !isConst(product.Operand(1)) || rank(bias) != 1 ||
		!ssa.SameType(p.Type, sum.Result(0).Type) {
		return false
	}
	if dt := p.DType(); dt != tensor.Float32 && dt != tensor.Float64 {
		return false
	}
	before := product.Operand(0)
	if before.Def() == nil || !isReshape(before.Def()) || before.Def().Kind == "onnx::Transpose" || !before.HasOneUse() || !isConst(o.Operand(1)) {
		return false
	}
	width, ok := product.Operand(1).Tensor().Static()
	if !ok || width[0] == 0 || width[1] == 0 || copiesSizes(o) {
		return false
	}
	x := build(r).Reshape(before.Def().Operand(0), ints(r, -1, width[0]))
	y := build(r).Gemm(x, product.Operand(1), bias)
	y = build(r).Reshape(y, o.Operand(1), o.Attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// copiesSizes reports a Reshape whose constant target takes sizes from its input.
func copiesSizes(o *ssa.Op) bool {
	target, _ := constInts(o.Operand(1))
	return slices.Contains(target, 0)
}

// broadcastsTo reports that c, of rank 2 at most, broadcasts to the shape of the matrix p.
func broadcastsTo(c, p *ssa.Value) bool {
	ct, pt := c.Tensor(), p.Tensor()
	if ct == nil || pt == nil || !ct.Ranked || len(ct.Dims) > 2 || pt.Rank() != 2 {
		return false
	}
	for k, dim := range ct.Dims {
		if !dim.Is(1) && !dim.Equal(pt.Dims[k+2-len(ct.Dims)]) {
			return false
		}
	}
	return true
}

// sumOfGemms adds two products in one Gemm: a cell of a recurrent network. Their constant biases become one.
func sumOfGemms(r *rewrite.Rewriter, o *ssa.Op) bool {
	a, b := o.Operand(0).Def(), o.Operand(1).Def()
	if a == nil || b == nil || a == b || a.Kind != "onnx::Gemm" || b.Kind != "onnx::Gemm" || !o.Operand(0).HasOneUse() || !o.Operand(1).HasOneUse() ||
		a.AttrFloat("beta", 1) != 1 || b.AttrFloat("beta", 1) != 1 || !ssa.SameType(o.Operand(0).Type, o.Operand(1).Type) {
		return false
	}
	c, d := onnx.ConstOf(a.Operand(2)), onnx.ConstOf(b.Operand(2))
	if c == nil || d == nil || !c.HasData() || !d.HasData() || len(c.Shape) != 1 || len(d.Shape) != 1 || c.Shape[0] != d.Shape[0] || !c.DType.IsFloat() {
		return false
	}
	x, y := c.Float64s(), d.Float64s()
	for i := range x {
		x[i] += y[i]
	}
	first := build(r).Gemm(a.Operand(0), a.Operand(1), constant(r, tensor.FromFloats(c.DType, c.Shape, x)), a.Attrs...)
	sum := build(r).Gemm(b.Operand(0), b.Operand(1), first, b.Attrs...)
	if !r.Fits(sum, o.Result(0)) {
		return false
	}
	r.Replace(o, sum)
	return true
}

// transposedTimesVector is the vector times the matrix where the matrix is transposed: the same sums, without the Transpose. onnxruntime 1.31 and 1.32
// compute other numbers for a MatMul of such a Transpose and a vector: their optimizer fuses the two (MatmulTransposeFusion) as if the vector were
// a matrix.
func transposedTimesVector(r *rewrite.Rewriter, o *ssa.Op) bool {
	m, v := o.Operand(0), o.Operand(1)
	cast := definedBy(m, "onnx::Cast") // which onnxruntime looks through
	if cast != nil {
		m = cast.Operand(0)
	}
	x, n := definedBy(m, "onnx::Transpose"), rank(m)
	if x == nil || n < 2 || rank(v) != 1 {
		return false
	}
	perm := permOf(x, n)
	for i, a := range perm {
		want := int64(i)
		if i >= n-2 {
			want = int64(2*n - 3 - i) // the last two change places
		}
		if a != want {
			return false
		}
	}
	m = x.Operand(0)
	if cast != nil {
		m = r.Create(cast.Kind, []*ssa.Value{m}, cast.Attrs...)
	}
	y := build(r).MatMul(v, m)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}
