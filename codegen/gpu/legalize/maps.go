package legalize

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// looped is the state in which no SequenceMap is left that a Loop can compute: sequences that are empty at first are all there.
const looped passes.State = "sequences that loops fill"

// SequenceMapToLoop turns each SequenceMap into the Loop that computes it: the body takes its elements by the number of the turn, and puts what it
// gives into sequences that grow. One whose body gives other values than tensors of numbers stays.
var SequenceMapToLoop = passes.Pass{
	Name:  "sequence-map-to-loop",
	Takes: []passes.State{passes.Newest},
	Makes: []passes.State{looped},
	Doc:   "turn each SequenceMap into the Loop that computes it",
	Before: `
graph(%s : Tensor[]):
  %r : Tensor[] = onnx::SequenceMap(%s)
    block0(%x : Float(2)):
      %y : Float(2) = onnx::Relu(%x)
      -> (%y)
  return (%r)`,
	After: `
graph(%s : Tensor[]):
  %0 : Long() = onnx::SequenceLength(%s)
  %1 : FloatTensor[] = onnx::SequenceEmpty[dtype=1]()
  %2 : Tensor[] = onnx::Loop(%0, _, %1)
    block0(%3 : Long(), %4 : Bool(), %5 : Tensor[]):
      %6 : Tensor = onnx::SequenceAt(%s, %3)
      %y : Tensor = onnx::Relu(%6)
      %7 : Tensor[] = onnx::SequenceInsert(%5, %y)
      -> (%4, %7)
  return (%2)`,
	Run: eachOp("onnx::SequenceMap", mapToLoop),
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
		if IsSequence(v) {
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

// TypeEmptySequences gives an empty sequence elements of the rank that its later ones have, so that what is taken out of it has a type: it
// becomes a sequence of one element that is erased.
var TypeEmptySequences = passes.Pass{
	Name:  "type-empty-sequences",
	Takes: []passes.State{passes.Newest, looped},
	Doc:   "make each empty sequence one whose type tells the rank of the elements that are put into it",
	Before: `
graph(%x : Float(2)):
  %e : Tensor[] = onnx::SequenceEmpty[dtype=1]()
  %s : Tensor[] = onnx::SequenceInsert(%e, %x)
  return (%s)`,
	After: `
graph(%x : Float(2)):
  %0 : Float(0) = onnx::Constant[value=  [ CPUFloatType{0} ]]()
  %1 : Float(0)[] = onnx::SequenceConstruct(%0)
  %2 : Long() = onnx::Constant[value={0}]()
  %3 : Float(0)[] = onnx::SequenceErase(%1, %2)
  %s : Tensor[] = onnx::SequenceInsert(%3, %x)
  return (%s)`,
	Run: eachOp("onnx::SequenceEmpty", typeEmpty),
}

func typeEmpty(o *ssa.Op) error {
	t := inserted(o.Results[0], map[*ssa.Value]bool{})
	if t == nil || !t.DType.HoldsNumbers() {
		return nil
	}
	// of size 0 along each axis, which no other element has: their sizes vary
	one := tensor.New(t.DType, make([]int64, len(t.Dims)), nil)
	if len(t.Dims) == 0 {
		one = tensor.Full(t.DType, []int64{}, 0)
	}
	b := &onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	list := b.SequenceConstruct(b.Const(one))
	o.Replace(b.SequenceErase(list, b.Const(tensor.ScalarInt(0))))
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
				case owner.Kind == "onnx::Loop" && i >= 1 && i < len(in.Params)-1:
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
