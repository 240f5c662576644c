package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// fusedOpset is the first opset with RMSNormalization, RotaryEmbedding and Attention. Before it the decomposition stays.
const fusedOpset = 23

// norms holds the rules that find RMSNormalization, x / sqrt(mean(x^2) + eps) * scale, in its parts. Parts in which a half is
// widened to float32 are left alone: a kernel may round at another place.
func (s *simplifier) norms() []rewrite.Rule {
	return s.from(fusedOpset, []rewrite.Rule{
		{Name: "rms-normalization", Kinds: []ssa.Kind{"onnx::Mul", "onnx::Div"}, Apply: rmsNormalization, Rounds: true},
		{Name: "rms-scale", Kinds: []ssa.Kind{"onnx::Mul"}, Apply: rmsScale, Rounds: true},
	})
}

// from gives rules that make operators which came with an opset, none for a module of an older one.
func (s *simplifier) from(opset int, rules []rewrite.Rule) []rewrite.Rule {
	if s.opset != 0 && s.opset < opset {
		return nil
	}
	return rules
}

// scalarOf is the only element of a constant that is a float.
func scalarOf(v *ssa.Value) (float64, bool) {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || !t.DType.IsFloat() || t.NumElements() != 1 {
		return 0, false
	}
	return t.Float64s()[0], true
}

// other gives the operand of an operator of two that is not v.
func other(o *ssa.Op, v *ssa.Value) *ssa.Value {
	if o.Operand(0) == v {
		return o.Operand(1)
	}
	return o.Operand(0)
}

// definedBy is the op of a kind that defines a value, nil if another one does.
func definedBy(v *ssa.Value, kind ssa.Kind) *ssa.Op {
	if v == nil || v.Def() == nil || v.Def().Kind != kind {
		return nil
	}
	return v.Def()
}

// rmsNormalization finds x * reciprocal(root) and x / root, with root the square root of mean(x^2) + eps over the last axes. The
// scale is all ones until [rmsScale] finds it.
func rmsNormalization(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		x, d := o.Operand(1-i), o.Operand(i)
		if o.Kind == "onnx::Div" {
			if i == 0 {
				continue
			}
		} else if inverse := definedBy(d, "onnx::Reciprocal"); inverse != nil {
			d = inverse.Operand(0)
		} else {
			continue
		}
		root := definedBy(d, "onnx::Sqrt")
		if root == nil {
			continue
		}
		if first, eps, ok := meanOfSquares(x, root.Operand(0)); ok {
			t := x.Tensor()
			shape := make([]int64, 0, 1)
			for _, e := range t.Dims[first:] {
				n, ok := e.Int()
				if !ok || n < 1 {
					return false
				}
				shape = append(shape, n)
			}
			ones := constant(r, tensor.Full(t.DType, shape, 1))
			y := r.Create("onnx::RMSNormalization", []*ssa.Value{x, ones}, attr("axis", ssa.Int(int64(first-len(t.Dims)))), attr("epsilon", ssa.Float(eps)))
			if !r.Fits(y, o.Result(0)) {
				return false
			}
			r.Replace(o, y)
			return true
		}
	}
	return false
}

// meanOfSquares reports that v is mean(x^2) + eps over all axes of x from the one at first.
func meanOfSquares(x, v *ssa.Value) (first int, eps float64, ok bool) {
	t := x.Tensor()
	if t == nil || !t.Ranked || t.DType != tensor.Float32 && t.DType != tensor.Float64 {
		return 0, 0, false
	}
	sum := definedBy(v, "onnx::Add")
	if sum == nil {
		return 0, 0, false
	}
	eps, ok = scalarOf(sum.Operand(1)) // constants stand on the right
	mean := definedBy(sum.Operand(0), "onnx::ReduceMean")
	if !ok || !(eps >= 0) || mean == nil || mean.AttrInt("keepdims", 1) == 0 {
		return 0, 0, false
	}
	axes, ok := reducedAxes(mean)
	if !ok || len(axes) == 0 {
		return 0, 0, false
	}
	first = len(t.Dims) - len(axes)
	for i, a := range axes {
		if a != int64(first+i) {
			return 0, 0, false
		}
	}
	square := mean.Operand(0).Def()
	switch {
	case square == nil || square.Operand(0) != x:
		return 0, 0, false
	case square.Kind == "onnx::Mul":
		return first, eps, square.Operand(1) == x
	case square.Kind == "onnx::Pow":
		k, ok := scalarOf(square.Operand(1))
		return first, eps, ok && k == 2
	}
	return 0, 0, false
}

// rmsScale gives a normalization without scale the factor behind it.
func rmsScale(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		d := definedBy(o.Operand(i), "onnx::RMSNormalization") // its scale is never of rank 0
		if d == nil || !d.Result(0).HasOneUse() || !allAre(d.Operand(1), 1) {
			continue
		}
		scale, ones := o.Operand(1-i), d.Operand(1).Tensor()
		if !ssa.SameType(scale.Type, ones) { // a constant with axes of size 1 in front serves too
			t := onnx.ConstOf(scale)
			if t == nil || ones.Rank() != 1 || len(t.Shape) < 2 || t.DType != ones.DType {
				continue
			}
			n, ok := ones.Dims[0].Int()
			if !ok || t.NumElements() != n || t.Shape[len(t.Shape)-1] != n {
				continue
			}
			scale = r.Create("onnx::Reshape", []*ssa.Value{scale, ints(r, n)})
		}
		y := r.Create(d.Kind, []*ssa.Value{d.Operand(0), scale}, d.Attrs...)
		if !r.Fits(y, o.Result(0)) {
			return false
		}
		r.Replace(o, y)
		return true
	}
	return false
}
