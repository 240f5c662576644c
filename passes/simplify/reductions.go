package simplify

import (
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

// reductions holds the rules that let an operator keep or drop the axes that it reduces.
func (s *simplifier) reductions() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "reduce-squeeze", Kinds: []ssa.Kind{"onnx::Squeeze", "onnx::Reshape", "onnx::Flatten"}, Apply: reduceSqueeze},
		{Name: "reduce-unsqueeze", Kinds: []ssa.Kind{"onnx::Unsqueeze", "onnx::Reshape"}, Apply: reduceUnsqueeze},
	}
}

// reducedAxes lists what an operator with keepdims reduces, sorted; ok is false for others.
func reducedAxes(o *ssa.Op) (axes []int64, ok bool) {
	n := rank(o.Operand(0))
	switch {
	case n < 0:
		return nil, false
	case slices.Contains(reductions, o.Kind):
		if o.Operand(1) == nil {
			if o.AttrInt("noop_with_empty_axes", 0) != 0 {
				return nil, false
			}
			for i := range n {
				axes = append(axes, int64(i))
			}
			return axes, true
		}
		if axes, ok = constInts(o.Operand(1)); !ok || len(axes) == 0 {
			return nil, false
		}
	case o.Kind == "onnx::ArgMax" || o.Kind == "onnx::ArgMin":
		axes = []int64{o.AttrInt("axis", 0)}
	default:
		return nil, false
	}
	for i, a := range axes {
		if a < 0 {
			axes[i] += int64(n)
		}
	}
	slices.Sort(axes)
	return axes, true
}

// withKeepdims makes the op again with keepdims set or not.
func withKeepdims(r *rewrite.Rewriter, o *ssa.Op, keep int64) *ssa.Value {
	var attrs []ssa.Attr
	for _, a := range o.Attrs {
		if a.Name != "keepdims" {
			attrs = append(attrs, a)
		}
	}
	return r.Create(o.Kind, o.Operands(), append(attrs, attr("keepdims", ssa.Int(keep)))...)
}

// reduceSqueeze drops the reduced axes at once.
func reduceSqueeze(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(0).Def()
	if d == nil || !o.Operand(0).HasOneUse() || len(d.Results) != 1 || d.AttrInt("keepdims", 1) == 0 {
		return false
	}
	if _, ok := reducedAxes(d); !ok {
		return false
	}
	y := withKeepdims(r, d, 0)
	if !ssa.SameType(y.Type, o.Result(0).Type) {
		return false
	}
	r.Replace(o, y)
	return true
}

// reduceUnsqueeze keeps the reduced axes instead of making them again.
func reduceUnsqueeze(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := o.Operand(0).Def()
	if d == nil || !o.Operand(0).HasOneUse() || len(d.Results) != 1 || d.AttrInt("keepdims", 1) != 0 {
		return false
	}
	if _, ok := reducedAxes(d); !ok {
		return false
	}
	y := withKeepdims(r, d, 1)
	if !ssa.SameType(y.Type, o.Result(0).Type) {
		return false
	}
	r.Replace(o, y)
	return true
}
