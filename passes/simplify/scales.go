package simplify

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// scales holds the rules that bring scales to the weights of a linear operator over what stands between.
func (s *simplifier) scales() []rewrite.Rule {
	linear := []ssa.Kind{"onnx::MatMul", "onnx::Gemm", "onnx::Conv"}
	return []rewrite.Rule{
		{Name: "scale-into-weights", Kinds: linear, Apply: s.scaleIntoWeights, Rounds: true},
		{Name: "scale-over-bias", Kinds: []ssa.Kind{"onnx::Mul", "onnx::Div"}, Apply: s.scaleOverBias, Rounds: true},
	}
}

// maxChain bounds the operators that a scale passes.
const maxChain = 6

// factor takes a constant scalar out of a product: v is rest * k. Rest may be built anew. Only what nothing else uses is taken
// apart.
func factor(r *rewrite.Rewriter, v *ssa.Value, depth int) (rest *ssa.Value, k float64, ok bool) {
	d := v.Def()
	if d == nil || depth == 0 || !v.HasOneUse() || !v.DType().IsFloat() || d.Kind != "onnx::Mul" && d.Kind != "onnx::Div" {
		return nil, 0, false
	}
	if t := onnx.ConstOf(d.Operand(1)); t != nil && t.HasData() && t.NumElements() == 1 {
		if k = t.Float64s()[0]; d.Kind == "onnx::Div" {
			k = 1 / k
		}
		ok = k != 0 && !math.IsInf(k, 0) && !math.IsNaN(k) && r.Fits(d.Operand(0), v)
		return d.Operand(0), k, ok
	}
	for i := range d.NumOperands() {
		if i == 1 && d.Kind == "onnx::Div" {
			break
		}
		part, k, ok := factor(r, d.Operand(i), depth-1)
		if !ok {
			continue
		}
		operands := d.Operands()
		operands[i] = part
		y := r.Create(d.Kind, operands)
		return y, k, r.Fits(y, v)
	}
	return nil, 0, false
}

// scaleIntoWeights multiplies constant weights by a constant that their other factor is multiplied by.
func (s *simplifier) scaleIntoWeights(r *rewrite.Rewriter, o *ssa.Op) bool {
	w := onnx.ConstOf(o.Operand(1))
	if w == nil || !w.HasData() || !w.DType.IsFloat() || w.NumElements() == 0 || !o.Operand(1).HasOneUse() && w.NumBytes() > smallWeight {
		return false
	}
	x, k, ok := factor(r, o.Operand(0), 3)
	if !ok {
		return false
	}
	operands := o.Operands()
	operands[0], operands[1] = x, s.weight(r, scaledColumns(w, []float64{k}), o.Operand(1), "scaled")
	y := r.Create(o.Kind, operands, o.Attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// scaleOverBias multiplies the weights of a MatMul, and a bias that is added to its result, by constants that the result is
// multiplied by behind that, or behind Transposes.
func (s *simplifier) scaleOverBias(r *rewrite.Rewriter, o *ssa.Op) bool {
	v := o.Operand(0)
	k, axis, ok := alongAxis(o.Operand(1), rank(v))
	if !ok || !ssa.SameType(v.Type, o.Result(0).Type) {
		return false
	}
	for i := range k {
		if o.Kind == "onnx::Div" {
			k[i] = 1 / k[i]
		}
		if math.IsInf(k[i], 0) || math.IsNaN(k[i]) {
			return false
		}
	}
	var moved []*ssa.Op
	for len(moved) < maxChain && v.Def() != nil && v.Def().Kind == "onnx::Transpose" && v.HasOneUse() {
		if axis >= 0 {
			axis = int(permOf(v.Def(), rank(v))[axis])
		}
		moved = append(moved, v.Def())
		v = v.Def().Operand(0)
	}
	n := rank(v)
	if axis >= 0 && axis != n-1 || v.Def() == nil || !v.HasOneUse() {
		return false
	}
	product, bias := v.Def(), (*ssa.Value)(nil)
	if product.Kind == "onnx::Add" && ssa.SameType(product.Operand(0).Type, v.Type) {
		if _, at, ok := alongAxis(product.Operand(1), n); !ok || at >= 0 && at != n-1 {
			return false
		}
		bias, v = product.Operand(1), product.Operand(0)
		product = v.Def()
	}
	if product == nil || product.Kind != "onnx::MatMul" || !v.HasOneUse() {
		return false
	}
	w := onnx.ConstOf(product.Operand(1))
	if w == nil || !w.HasData() || !w.DType.IsFloat() || len(w.Shape) != 2 || w.NumElements() == 0 || axis >= 0 && int64(len(k)) != w.Shape[1] ||
		!product.Operand(1).HasOneUse() && w.NumBytes() > smallWeight {
		return false
	}
	y := build(r).MatMul(product.Operand(0), s.weight(r, scaledColumns(w, k), product.Operand(1), "scaled"))
	if bias != nil {
		y = build(r).Add(y, s.weight(r, scaledVector(onnx.ConstOf(bias), k), bias, "scaled"))
	}
	for i := len(moved) - 1; i >= 0; i-- {
		y = build(r).Transpose(y, moved[i].Attrs...)
	}
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// scaledColumns multiplies the columns of a matrix, or all of a tensor by a single factor. A tensor that is one element repeated
// stays so, and one that is stored transposed is not copied into the other order.
func scaledColumns(w *tensor.Tensor, k []float64) *tensor.Tensor {
	column := func(i int64) int64 { return i % int64(len(k)) }
	view, shape, strides := *w, w.Shape, w.Strides
	switch {
	case w.IsSplat() && len(k) == 1:
		view.Shape, view.Strides = []int64{1}, []int64{1}
		one := *scaled(&view, 1, column, k)
		one.Shape, one.Strides = shape, make([]int64, len(shape))
		return &one
	case len(shape) == 2 && strides[0] == 1 && strides[1] == shape[0] && shape[1] > 1:
		view.Shape, view.Strides = []int64{shape[1], shape[0]}, []int64{strides[1], 1}
		turned := *scaled(&view, shape[0], column, k)
		turned.Shape, turned.Strides = shape, strides
		return &turned
	case len(k) == 1:
		return scaled(w, w.NumElements(), column, k)
	}
	return scaled(w, 1, column, k)
}

// alongAxis reads a constant that broadcasting applies to a tensor of rank n along one axis: a single element for all of it has
// the axis -1.
func alongAxis(v *ssa.Value, n int) (k []float64, axis int, ok bool) {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || !t.DType.IsFloat() || n < 0 || len(t.Shape) > n || t.NumElements() == 0 || t.NumElements() > maxLook {
		return nil, 0, false
	}
	axis = -1
	for i, d := range t.Shape {
		if d == 1 {
			continue
		}
		if axis >= 0 {
			return nil, 0, false
		}
		axis = i + n - len(t.Shape)
	}
	return t.Float64s(), axis, true
}

// scaledVector is b * k, of which each has one element or as many as the other; the shape is that of b as far as it can be.
func scaledVector(b *tensor.Tensor, k []float64) *tensor.Tensor {
	in := b.Float64s()
	out := make([]float64, max(len(in), len(k)))
	for i := range out {
		out[i] = in[min(i, len(in)-1)] * k[min(i, len(k)-1)]
	}
	shape := b.Shape
	if len(out) != len(in) {
		shape = []int64{int64(len(out))}
	}
	return tensor.FromFloats(b.DType, shape, out)
}
