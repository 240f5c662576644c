package simplify

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
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

// gathered gives the elements of a sequence that a Loop grows by one of them each time, as a tensor of one axis more: the
// Loop gathers them itself (a scan output), which copies each once, and which opsets below 13 have, where a Loop carries no
// sequences. It is nil where the elements may have unlike shapes, and where the sequence is used in a way that has no such form.
func gathered(r *rewrite.Rewriter, v *ssa.Value) *ssa.Value {
	if v == nil || v.Def() == nil || v.Def().Kind != "onnx::Loop" {
		return nil
	}
	loop := v.Def()
	i := slices.Index(loop.Results, v)
	if i+2 >= loop.NumOperands() || len(loop.Blocks) != 1 {
		return nil // gathered already
	}
	first, body := loop.Operand(i+2), loop.Blocks[0]
	if vs, ok := elements(first); !ok || len(vs) > 0 {
		return nil
	}
	grown := body.Return(i + 1)
	insert := grown.Def()
	if insert == nil || insert.Kind != "onnx::SequenceInsert" || insert.Block() != body || insert.Operand(0) != body.Params[i+2] ||
		insert.Operand(2) != nil || !body.Params[i+2].HasOneUse() || !grown.HasOneUse() {
		return nil
	}
	elem := insert.Operand(1)
	t := elem.Tensor()
	if t == nil || !t.Ranked || !takesGathered(r.Root(), t) {
		return nil
	}
	for k := loop.NumOperands() - 2; k < len(loop.Results); k++ {
		if body.Return(k+1) == elem {
			return loop.Results[k]
		}
	}
	if !sizesOfInputs(r.Func(), t) {
		return nil
	}
	for u := range v.Uses() {
		if u.Op() == nil || !takesGathered(u.Op(), t) {
			return nil
		}
	}
	body.SetReturns(append(body.Returns(), elem)...)
	r.Touch(loop)
	return loop.AddResult(ssa.Tensor(t.DType, slices.Insert(slices.Clone(t.Dims), 0, r.Func().Module().FreshSymbol("u", 0))...))
}

// takesGathered reports that an operator on a sequence of tensors of type t has a form on the tensor of all of them.
func takesGathered(o *ssa.Op, t *ssa.TensorType) bool {
	switch o.Kind {
	case "onnx::SequenceLength", "onnx::SequenceAt":
		return true
	case "onnx::ConcatFromSequence":
		if o.AttrInt("new_axis", 0) != 0 {
			return true
		}
		if axis, ok := axisOf(o, "axis", 0, t.Rank()); !ok || axis != 0 {
			return false
		}
		for _, d := range t.Dims[1:] {
			if n, ok := d.Int(); !ok || n == 0 {
				return false
			}
		}
		return true
	}
	return false
}

// sizesOfInputs reports that a type has sizes of the function's inputs only, which are the same in each turn of a loop.
func sizesOfInputs(f *ssa.Func, t *ssa.TensorType) bool {
	known := map[string]bool{}
	for _, p := range f.Body.Params {
		if pt := p.Tensor(); pt != nil {
			for _, d := range pt.Dims {
				d.Symbols(func(name string) { known[name] = true })
			}
		}
	}
	ok := true
	for _, d := range t.Dims {
		d.Symbols(func(name string) { ok = ok && known[name] })
	}
	return ok
}

func sequenceAt(r *rewrite.Rewriter, o *ssa.Op) bool {
	if all := gathered(r, o.Operand(0)); all != nil {
		r.Replace(o, build(r).Gather(all, o.Operand(1), onnx.Axis(0)))
		return true
	}
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
	if all := gathered(r, o.Operand(0)); all != nil {
		shape := build(r).Shape(all)
		r.Replace(o, build(r).Gather(shape, constant(r, tensor.ScalarInt(0)), onnx.Axis(0)))
		return true
	}
	vs, ok := elements(o.Operand(0))
	if !ok {
		return false
	}
	r.Replace(o, constant(r, tensor.ScalarInt(int64(len(vs)))))
	return true
}

func concatSequence(r *rewrite.Rewriter, o *ssa.Op) bool {
	if all := gathered(r, o.Operand(0)); all != nil {
		return concatGathered(r, o, all)
	}
	vs, ok := elements(o.Operand(0))
	if !ok || len(vs) == 0 || o.AttrInt("new_axis", 0) != 0 || !o.Operand(0).HasOneUse() && len(vs) > 1 {
		return false
	}
	y := r.Create("onnx::Concat", vs, onnx.Axis(o.AttrInt("axis", 0)))
	if !r.Fits(y, o.Result(0)) && !sameDType(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// concatGathered joins the elements that lie along axis 0 of a tensor.
func concatGathered(r *rewrite.Rewriter, o *ssa.Op, all *ssa.Value) bool {
	n := rank(all)
	if o.AttrInt("new_axis", 0) == 0 {
		sizes := []int64{-1}
		for _, d := range all.Tensor().Dims[2:] {
			k, _ := d.Int()
			sizes = append(sizes, k)
		}
		r.Replace(o, build(r).Reshape(all, ints(r, sizes...)))
		return true
	}
	axis, ok := axisOf(o, "axis", 0, n)
	if !ok {
		return false
	}
	if axis > 0 {
		var perm []int64
		for i := range n {
			perm = append(perm, int64(i))
		}
		perm = slices.Insert(perm[1:], axis, 0)
		all = build(r).Transpose(all, onnx.Perm(perm...))
	}
	r.Replace(o, all)
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
	vs := r.CreateN("onnx::Split", len(sizes), []*ssa.Value{o.Operand(0), ints(r, sizes...)}, onnx.Axis(axis))
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
