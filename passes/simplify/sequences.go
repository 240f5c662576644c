package simplify

import (
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// sequences holds the rules on sequences whose elements are at hand.
func (s *simplifier) sequences() []rewrite.Rule {
	return []rewrite.Rule{
		{Name: "element-of-sequence", Kinds: []ssa.Kind{"onnx::SequenceAt"}, Apply: sequenceAt},
		{Name: "length-of-sequence", Kinds: []ssa.Kind{"onnx::SequenceLength"}, Apply: sequenceLength},
		{Name: "concat-sequence", Kinds: []ssa.Kind{"onnx::ConcatFromSequence"}, Apply: concatSequence},
		{Name: "split-sequence", Kinds: []ssa.Kind{"onnx::SplitToSequence"}, Apply: splitSequence},
		{Name: "insert-into-sequence", Kinds: []ssa.Kind{"onnx::SequenceInsert"}, Apply: insertSequence},
	}
}

// elements lists those of a sequence that is put together in one place.
func elements(v *ssa.Value) ([]*ssa.Value, bool) {
	if v == nil || v.Def() == nil {
		return nil, false
	}
	switch v.Def().Kind {
	case "onnx::SequenceConstruct":
		return v.Def().Operands(), true
	case "onnx::SequenceEmpty":
		return nil, true
	}
	return nil, false
}

func sequenceAt(r *rewrite.Rewriter, o *ssa.Op) bool {
	vs, ok := elements(o.Operand(0))
	i, okI := constOne(o.Operand(1))
	if i < 0 {
		i += int64(len(vs))
	}
	if !ok || !okI || i < 0 || i >= int64(len(vs)) || !r.Fits(vs[i], o.Result(0)) && !sameDType(vs[i], o.Result(0)) {
		return false
	}
	r.Replace(o, vs[i])
	return true
}

// sameDType: the element's own type says more than what all elements have in common.
func sameDType(a, b *ssa.Value) bool {
	return a.Tensor() != nil && b.Tensor() != nil && a.DType() == b.DType()
}

func sequenceLength(r *rewrite.Rewriter, o *ssa.Op) bool {
	vs, ok := elements(o.Operand(0))
	if !ok {
		return false
	}
	r.Replace(o, constant(r, tensor.ScalarInt(int64(len(vs)))))
	return true
}

func concatSequence(r *rewrite.Rewriter, o *ssa.Op) bool {
	vs, ok := elements(o.Operand(0))
	if !ok || len(vs) == 0 || o.AttrInt("new_axis", 0) != 0 || !o.Operand(0).HasOneUse() && len(vs) > 1 {
		return false
	}
	y := r.Create("onnx::Concat", vs, attr("axis", ssa.Int(o.AttrInt("axis", 0))))
	if !r.Fits(y, o.Result(0)) && !sameDType(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

func insertSequence(r *rewrite.Rewriter, o *ssa.Op) bool {
	vs, ok := elements(o.Operand(0))
	at := int64(len(vs))
	if o.Operand(2) != nil {
		var okAt bool
		if at, okAt = constOne(o.Operand(2)); !okAt {
			return false
		}
		if at < 0 {
			at += int64(len(vs))
		}
	}
	// a long chain of insertions would be copied at every step
	if !ok || at < 0 || at > int64(len(vs)) || !o.Operand(0).HasOneUse() || len(vs) > 64 {
		return false
	}
	all := append(append(append([]*ssa.Value(nil), vs[:at]...), o.Operand(1)), vs[at:]...)
	r.Replace(o, r.Create("onnx::SequenceConstruct", all))
	return true
}

// splitSequence splits into tensors instead of a sequence of which only elements are taken.
func splitSequence(r *rewrite.Rewriter, o *ssa.Op) bool {
	sizes, axis, ok := partsOf(o)
	if !ok {
		return false
	}
	type use struct {
		op    *ssa.Op
		place int
	}
	var uses []use
	for u := range o.Result(0).Uses() {
		if u.Op() == nil || u.Op().Kind != "onnx::SequenceAt" || u.Op().Block() != o.Block() {
			return false
		}
		i, ok := constOne(u.Op().Operand(1))
		if i < 0 {
			i += int64(len(sizes))
		}
		if !ok || i < 0 || i >= int64(len(sizes)) {
			return false
		}
		uses = append(uses, use{u.Op(), int(i)})
	}
	if len(uses) == 0 {
		return false
	}
	vs := r.CreateN("onnx::Split", len(sizes), []*ssa.Value{o.Operand(0), ints(r, sizes...)}, attr("axis", ssa.Int(int64(axis))))
	for _, u := range uses {
		if v := vs[u.place]; !r.Fits(v, u.op.Result(0)) && !sameDType(v, u.op.Result(0)) {
			return false
		}
	}
	for _, u := range uses {
		r.Replace(u.op, vs[u.place])
	}
	return true
}

// maxParts bounds the results of a Split that comes of a sequence.
const maxParts = 256

// partsOf gives the sizes of the elements of a SplitToSequence that keeps the axis, where they are known.
func partsOf(o *ssa.Op) (sizes []int64, axis int, ok bool) {
	x := o.Operand(0)
	if axis, ok = axisOf(o, "axis", 0, rank(x)); !ok {
		return nil, 0, false
	}
	each := int64(1)
	switch v := o.Operand(1); {
	case v == nil:
		if o.AttrInt("keepdims", 1) == 0 {
			return nil, 0, false
		}
	case rank(v) == 1:
		sizes, ok = constInts(v)
		return sizes, axis, ok && len(sizes) > 0 && len(sizes) <= maxParts && slices.Min(sizes) >= 0
	default:
		if each, ok = constOne(v); !ok || each < 1 {
			return nil, 0, false
		}
	}
	n, known := x.Tensor().Dims[axis].Int()
	if !known || n < 1 || (n-1)/each >= maxParts {
		return nil, 0, false
	}
	for ; n > 0; n -= each {
		sizes = append(sizes, min(n, each))
	}
	return sizes, axis, true
}
