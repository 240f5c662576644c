package simplify

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

// reductions holds the rules that let an operator keep or drop the axes that it reduces.
func (s *simplifier) reductions() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "reduce-one", Kinds: []ssa.Kind{"onnx::ReduceMax", "onnx::ReduceMin", "onnx::ReduceProd", "onnx::ReduceSum", "onnx::ReduceMean"}, Apply: func(r *rewrite.Rewriter, o *ssa.Op) bool {
			sums := o.Kind == "onnx::ReduceSum" || o.Kind == "onnx::ReduceMean"
			return !(sums && o.Result(0).DType().IsFloat() && !unsigned(o.Operand(0))) && reduceOne(r, o)
		}},
		{Name: "sum-of-one", Kinds: []ssa.Kind{"onnx::ReduceSum", "onnx::ReduceMean"}, Apply: reduceOne, Rounds: true},
		{Name: "log-softmax", Kinds: []ssa.Kind{"onnx::Log"}, Apply: logSoftmax, Rounds: true},
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
func withKeepdims(r *rewrite.Rewriter, o *ssa.Op, keep bool) *ssa.Value {
	var attrs []ssa.Attr
	for _, a := range o.Attrs {
		if a.Name != "keepdims" {
			attrs = append(attrs, a)
		}
	}
	return r.Create(o.Kind, o.Operands(), append(attrs, onnx.KeepDims(keep))...)
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
	y := withKeepdims(r, d, false)
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
	y := withKeepdims(r, d, true)
	if !ssa.SameType(y.Type, o.Result(0).Type) {
		return false
	}
	r.Replace(o, y)
	return true
}

// reduceOne takes the operand for what a reduction along axes of size 1 makes of it. A sum that starts at 0 is 0 for -0.0, so the rule for sums of
// floats rounds.
func reduceOne(r *rewrite.Rewriter, o *ssa.Op) bool {
	x := o.Operand(0)
	axes, ok := reducedAxes(o)
	if !ok {
		return false
	}
	t := x.Tensor()
	for _, a := range axes {
		if a < 0 || a >= int64(len(t.Dims)) || !t.Dims[a].Is(1) {
			return false
		}
	}
	if o.AttrInt("keepdims", 1) == 0 {
		if len(axes) == 0 {
			return false
		}
		x = build(r).Squeeze(x, ints(r, axes...))
	}
	if !r.Fits(x, o.Result(0)) {
		return false
	}
	r.Replace(o, x)
	return true
}

// logSoftmax finds LogSoftmax in its parts; the shape may change between them.
func logSoftmax(r *rewrite.Rewriter, o *ssa.Op) bool {
	v := o.Operand(0)
	shape := v.Def()
	if shape != nil && isReshape(shape) && v.HasOneUse() {
		v = shape.Operand(0)
	} else {
		shape = nil
	}
	d := definedBy(v, "onnx::Softmax")
	if d == nil || !v.HasOneUse() {
		return false
	}
	y := r.Create("onnx::LogSoftmax", d.Operands(), d.Attrs...)
	if shape != nil {
		operands := shape.Operands()
		operands[0] = y
		y = r.Create(shape.Kind, operands, shape.Attrs...)
	}
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}
