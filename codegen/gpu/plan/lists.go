package plan

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/ssa"
)

// Sequence is what an operator does with a sequence whose elements only the run knows: its elements are memory on the device, which
// is handed on and never moved. Only positions are read.
type Sequence struct {
	// Copy moves a part of a tensor along Axis: of SplitToSequence out of it, of ConcatFromSequence into it. Its memory is Part.
	Copy *Step
	Part *Buffer
	Axis int
}

// listed are the operators on sequences that are steps.
var listed = []ssa.Kind{"onnx::ConcatFromSequence", "onnx::Identity", "onnx::SequenceAt", "onnx::SequenceConstruct", "onnx::SequenceErase", "onnx::SequenceInsert", "onnx::SequenceLength", "onnx::SplitToSequence"}

// onLists reports an operator that takes or makes a sequence.
func onLists(o *ssa.Op) bool {
	return slices.ContainsFunc(o.Operands(), legalize.IsSequence) || slices.ContainsFunc(o.Results, legalize.IsSequence)
}

// ownElements gives what is put into a sequence memory of its own, by a copy. What is only erased again needs none.
func (b *builder) ownElements(block *ssa.Block) {
	for o := block.First(); o != nil; {
		next := o.Next()
		for _, in := range o.Blocks {
			b.ownElements(in)
		}
		puts := o.Kind == "onnx::SequenceInsert" || o.Kind == "onnx::SequenceConstruct" && !erased(o)
		for i, v := range o.Operands() {
			if !puts || v == nil || v.Tensor() == nil || o.Kind == "onnx::SequenceInsert" && i != 1 {
				continue
			}
			c := block.InsertBefore(o, "onnx::Identity", o.Loc, []*ssa.Value{v}, v.Type)
			b.copies[c] = true
			b.local[c.Results[0]] = true
			o.SetOperand(i, c.Results[0])
		}
		o = next
	}
}

// erased reports a sequence of one element that every use erases.
func erased(o *ssa.Op) bool {
	if o.NumOperands() != 1 {
		return false
	}
	for u := range o.Results[0].Uses() {
		if u.Op() == nil || u.Op().Kind != "onnx::SequenceErase" {
			return false
		}
	}
	return true
}

// sequence plans an operator on sequences; nil and the reason if the host runs it.
func (b *builder) sequence(o *ssa.Op) (*Step, string) {
	if !slices.Contains(listed, o.Kind) || !onLists(o) {
		return nil, ""
	}
	for _, v := range slices.Concat(o.Operands(), o.Results) {
		if v == nil {
			continue
		}
		if err := emit.HoldsElements(v); err != nil {
			return nil, err.Error()
		}
	}
	s := &Step{Op: o, Ops: []*ssa.Op{o}, Sequence: &Sequence{}}
	for _, v := range o.Results {
		if b.bind(v); v.Tensor() != nil {
			b.local[v] = true
			b.buffer(v)
		}
	}
	all := o.Results[0]
	if o.Kind == "onnx::SplitToSequence" {
		all = o.Operand(0)
	} else if o.Kind != "onnx::ConcatFromSequence" {
		return s, ""
	}
	rank := len(all.Tensor().Dims)
	axis := int(o.AttrInt("axis", 0))
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		return nil, "an axis that is none"
	}
	launch, part := emit.Part(all, axis, all == o.Results[0])
	s.Sequence.Axis = axis
	s.Sequence.Copy = b.launch(o, nil, &launch)
	s.Sequence.Part = b.buffer(part)
	s.Sequence.Part.Kind = Local
	return s, ""
}
