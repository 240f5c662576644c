package plan

import (
	"cmp"
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
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

func isList(v *ssa.Value) bool {
	if v == nil {
		return false
	}
	_, ok := v.Type.(*ssa.ListType)
	return ok
}

// onLists reports an operator that takes or makes a sequence.
func onLists(o *ssa.Op) bool {
	return slices.ContainsFunc(o.Operands(), isList) || slices.ContainsFunc(o.Results, isList)
}

// ownElements gives what is put into a sequence memory of its own, and an empty sequence elements of the rank that its later ones have,
// so that what is taken out of it has a type.
func (b *builder) ownElements(block *ssa.Block) {
	for o := block.First(); o != nil; {
		next := o.Next()
		for _, in := range o.Blocks {
			b.ownElements(in)
		}
		switch o.Kind {
		case "onnx::SequenceInsert", "onnx::SequenceConstruct":
			for i, v := range o.Operands() {
				if v == nil || v.Tensor() == nil || o.Kind == "onnx::SequenceInsert" && i != 1 {
					continue
				}
				c := block.InsertBefore(o, "onnx::Identity", o.Loc, []*ssa.Value{v}, v.Type)
				b.copies[c] = true
				b.local[c.Results[0]] = true
				o.SetOperand(i, c.Results[0])
			}
		case "onnx::SequenceEmpty":
			t := inserted(o.Results[0], map[*ssa.Value]bool{})
			if t == nil || !t.DType.HoldsNumbers() {
				break
			}
			// of size 0 along each axis, which no other element has: their sizes vary
			one := tensor.New(t.DType, make([]int64, len(t.Dims)), nil)
			if len(t.Dims) == 0 {
				one = tensor.Full(t.DType, []int64{}, 0)
			}
			build := &onnx.Builder{Block: block, Before: o, Loc: o.Loc}
			list := build.SequenceConstruct(build.Const(one))
			o.Replace(build.SequenceErase(list, build.Const(tensor.ScalarInt(0))))
		}
		o = next
	}
}

// mapsToLoops turns each SequenceMap into the Loop that computes it: the body takes its elements by the number of the turn, and puts what it
// gives into sequences that grow.
func mapsToLoops(f *ssa.Func) error {
	var maps []*ssa.Op
	for o := range f.Body.AllOps() {
		if o.Kind == "onnx::SequenceMap" {
			maps = append(maps, o)
		}
	}
	for _, o := range maps {
		var failed error
		if err := onnx.Build(func() { failed = mapToLoop(o) }); cmp.Or(err, failed) != nil {
			return cmp.Or(err, failed)
		}
	}
	return nil
}

func mapToLoop(o *ssa.Op) error {
	body := o.Blocks[0]
	for _, v := range body.Returns() {
		if t := v.Tensor(); t == nil || !t.DType.HoldsNumbers() {
			return nil // stays, and is a host step
		}
	}
	before := &onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	operands := []*ssa.Value{before.SequenceLength(o.Operand(0)), nil}
	var types []ssa.Type
	for _, v := range body.Returns() {
		empty := before.SequenceEmpty(onnx.Dtype(v.DType()))
		operands, types = append(operands, empty), append(types, empty.Type)
	}
	loop := o.Block().InsertBefore(o, "onnx::Loop", o.Loc, operands, types...)
	in := loop.AddBlock()
	turn := in.AddParam("", ssa.Tensor(tensor.Int64))
	goesOn := in.AddParam("", ssa.Tensor(tensor.Bool))
	var lists []*ssa.Value
	for _, t := range types {
		lists = append(lists, in.AddParam("", t))
	}
	inside := &onnx.Builder{Block: in, Loc: o.Loc}
	for i, p := range body.Params {
		v := o.Operand(i)
		if isList(v) {
			v = inside.SequenceAt(v, turn)
		}
		p.ReplaceUses(v)
	}
	given := slices.Clone(body.Returns())
	in.Splice(nil, body)
	for i, v := range given {
		lists[i] = inside.SequenceInsert(lists[i], v, nil)
	}
	in.SetReturns(append([]*ssa.Value{goesOn}, lists...)...)
	if err := onnx.Infer(loop); err != nil {
		return err
	}
	o.Replace(loop.Results...)
	return nil
}

// inserted is the type of a tensor that is put into a sequence later, nil if there is none of known rank.
func inserted(list *ssa.Value, seen map[*ssa.Value]bool) *ssa.TensorType {
	if list == nil || seen[list] {
		return nil
	}
	seen[list] = true
	for u := range list.Uses() {
		var then []*ssa.Value // where the sequence goes
		switch o := u.Op(); {
		case o == nil:
			in := u.Block()
			for i, v := range in.Returns() {
				owner := in.Owner()
				switch {
				case v != list || owner == nil:
				case owner.Kind == "onnx::If":
					then = append(then, owner.Results[i])
				case owner.Kind == "onnx::Loop" && i >= 1 && i <= NumCarried(owner):
					then = append(then, in.Params[1+i], owner.Results[i-1])
				}
			}
		case o.Kind == "onnx::SequenceInsert" && o.Operand(0) == list:
			if t := o.Operand(1).Tensor(); t != nil && t.Ranked {
				return t
			}
			then = o.Results
		case o.Kind == "onnx::SequenceErase" || o.Kind == "onnx::Identity":
			then = o.Results
		case o.Kind == "onnx::Loop":
			for i, v := range o.Operands() {
				if v == list && i >= 2 {
					then = append(then, o.Blocks[0].Params[i], o.Results[i-2])
				}
			}
		}
		for _, v := range then {
			if t := inserted(v, seen); t != nil {
				return t
			}
		}
	}
	return nil
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
