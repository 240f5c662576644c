package simplify

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// fusedOpset is the first opset with RMSNormalization, RotaryEmbedding and Attention. Before it the decomposition stays.
const fusedOpset = 23

// layerNormOpset is the first opset with LayerNormalization.
const layerNormOpset = 17

// norms holds the rules that find LayerNormalization, (x - mean(x)) / sqrt(variance(x) + eps) * scale + offset, and RMSNormalization,
// x / sqrt(mean(x^2) + eps) * scale, in their parts. Parts in which a half is widened to float32 are left alone: a kernel may round
// at another place.
func (s *simplifier) norms() []rewrite.Rule {
	layer := s.from(layerNormOpset, []rewrite.Rule{
		{Name: "layer-normalization", Kinds: []ssa.Kind{"onnx::Mul", "onnx::Div"}, Apply: layerNormalization, Rounds: true},
		{Name: "layer-scale", Kinds: []ssa.Kind{"onnx::Mul"}, Apply: func(r *rewrite.Rewriter, o *ssa.Op) bool {
			return normScale(r, o, "onnx::LayerNormalization")
		}, Rounds: true},
		{Name: "layer-offset", Kinds: []ssa.Kind{"onnx::Add"}, Apply: layerOffset, Rounds: true},
	})
	return append(layer, s.from(fusedOpset, []rewrite.Rule{
		{Name: "rms-normalization", Kinds: []ssa.Kind{"onnx::Mul", "onnx::Div"}, Apply: rmsNormalization, Rounds: true},
		{Name: "rms-scale", Kinds: []ssa.Kind{"onnx::Mul"}, Apply: func(r *rewrite.Rewriter, o *ssa.Op) bool {
			return normScale(r, o, "onnx::RMSNormalization")
		}, Rounds: true},
	})...)
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

// rmsNormalization finds x over the root of mean(x^2) + eps over the last axes. The scale is all ones until [normScale] finds it.
func rmsNormalization(r *rewrite.Rewriter, o *ssa.Op) bool {
	x, first, eps, ok := overRoot(o)
	return ok && normalize(r, o, "onnx::RMSNormalization", x, first, eps)
}

// layerNormalization finds d over the root of mean(d^2) + eps over the last axes, where d is x - mean(x) over the same axes. The scale
// is all ones until [normScale] finds it, and [layerOffset] finds what is added.
func layerNormalization(r *rewrite.Rewriter, o *ssa.Op) bool {
	d, first, eps, ok := overRoot(o)
	if !ok {
		return false
	}
	sub := definedBy(d, "onnx::Sub")
	if sub == nil || !other(o, d).HasOneUse() { // a program that returns the deviation computes it anyway
		return false
	}
	x := sub.Operand(0)
	mean := definedBy(sub.Operand(1), "onnx::ReduceMean")
	if mean == nil || mean.Operand(0) != x || !ssa.SameType(x.Type, d.Type) || !lastAxes(mean, first) {
		return false
	}
	return normalize(r, o, "onnx::LayerNormalization", x, first, eps)
}

// normalize puts a normalization of x over the axes from the one at first on, with a scale of ones, in the place of an op.
func normalize(r *rewrite.Rewriter, o *ssa.Op, kind ssa.Kind, x *ssa.Value, first int, eps float64) bool {
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
	y := r.Create(kind, []*ssa.Value{x, ones}, onnx.Axis(first-len(t.Dims)), onnx.Epsilon(eps))
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// overRoot finds x / root and x * 1/root, with root the square root of mean(x^2) + eps over the axes of x from the one at first on.
func overRoot(o *ssa.Op) (x *ssa.Value, first int, eps float64, ok bool) {
	for i := range 2 {
		x, d := o.Operand(1-i), o.Operand(i)
		if o.Kind == "onnx::Div" {
			if i == 0 {
				continue
			}
		} else if inverse := definedBy(d, "onnx::Reciprocal"); inverse != nil {
			d = inverse.Operand(0)
		} else if one := definedBy(d, "onnx::Div"); one != nil {
			if k, ok := scalarOf(one.Operand(0)); !ok || k != 1 {
				continue
			}
			d = one.Operand(1)
		} else {
			continue
		}
		var square *ssa.Value
		if root := definedBy(d, "onnx::Sqrt"); root != nil {
			square = root.Operand(0)
		} else if root := definedBy(d, "onnx::Pow"); root != nil {
			if k, ok := scalarOf(root.Operand(1)); !ok || k != 0.5 {
				continue
			}
			square = root.Operand(0)
		} else {
			continue
		}
		if first, eps, ok = meanOfSquares(x, square); ok {
			return x, first, eps, true
		}
	}
	return nil, 0, 0, false
}

// lastAxes reports a mean over the axes from the one at first on, which it keeps.
func lastAxes(mean *ssa.Op, first int) bool {
	axes, ok := reducedAxes(mean)
	if !ok || mean.AttrInt("keepdims", 1) == 0 || first+len(axes) != rank(mean.Operand(0)) {
		return false
	}
	for i, a := range axes {
		if a != int64(first+i) {
			return false
		}
	}
	return len(axes) > 0
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
	if !ok || !(eps >= 0) || mean == nil {
		return 0, 0, false
	}
	axes, ok := reducedAxes(mean)
	if first = len(t.Dims) - len(axes); !ok || !lastAxes(mean, first) {
		return 0, 0, false
	}
	square := mean.Operand(0).Def()
	switch {
	case square == nil || square.Operand(0) != x:
		return 0, 0, false
	case square.Kind == "onnx::Mul":
		return first, eps, square.Operand(1) == x
	case square.Kind == "onnx::Pow":
		k, ok := onlyElement(square.Operand(1)) // the exponent may be an int
		return first, eps, ok && k == 2
	}
	return 0, 0, false
}

// normScale gives a normalization without scale the factor behind it.
func normScale(r *rewrite.Rewriter, o *ssa.Op, kind ssa.Kind) bool {
	for i := range 2 {
		d := definedBy(o.Operand(i), kind) // its scale is never of rank 0
		if d == nil || len(d.Results) > 1 || d.Operand(2) != nil || !d.Result(0).HasOneUse() || !allAre(d.Operand(1), 1) {
			continue
		}
		if scale := shapedLike(r, o.Operand(1-i), d.Operand(1)); scale != nil {
			return normAgain(r, o, d, d.Operand(0), scale)
		}
	}
	return false
}

// layerOffset gives a normalization without offset what is added behind it.
func layerOffset(r *rewrite.Rewriter, o *ssa.Op) bool {
	for i := range 2 {
		d := definedBy(o.Operand(i), "onnx::LayerNormalization")
		if d == nil || len(d.Results) > 1 || d.Operand(2) != nil || !d.Result(0).HasOneUse() {
			continue
		}
		if offset := shapedLike(r, o.Operand(1-i), d.Operand(1)); offset != nil {
			return normAgain(r, o, d, d.Operand(0), d.Operand(1), offset)
		}
	}
	return false
}

// normAgain makes a normalization with other operands in the place of an op behind it.
func normAgain(r *rewrite.Rewriter, o, d *ssa.Op, operands ...*ssa.Value) bool {
	y := r.Create(d.Kind, operands, d.Attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// shapedLike is v where it has the type of like; a constant with axes of size 1 in front of those serves too. It is nil for others.
func shapedLike(r *rewrite.Rewriter, v, like *ssa.Value) *ssa.Value {
	want, t := like.Tensor(), onnx.ConstOf(v)
	if ssa.SameType(v.Type, want) {
		return v
	}
	shape, ok := want.Static()
	if !ok || t == nil || t.DType != want.DType || len(t.Shape) <= len(shape) {
		return nil
	}
	k := len(t.Shape) - len(shape)
	if !allEqual(t.Shape[:k], 1) || !slices.Equal(t.Shape[k:], shape) {
		return nil
	}
	return build(r).Reshape(v, ints(r, shape...))
}
