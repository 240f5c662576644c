package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// lists holds operators on lists of tensors whose length is known only at run
// time, as ONNX sequences. Those that change a list arrive in a form that gives
// the changed one.
var lists = Defs{
	"aten::__getitem__": {Doc: "element idx of a list", Lower: lowerListGet},
	"aten::append":      {Doc: "the list with el at its end", Lower: lowerListAppend},
	"aten::insert":      {Doc: "the list with el in front of place idx", Lower: lowerListInsert},
	"aten::pop":         {Doc: "the list without element idx", Lower: lowerListPop},
	"aten::Delete":      {Doc: "the list without element idx", Lower: lowerListPop},
	"aten::_set_item":   {Doc: "the list with element idx replaced", Effects: writesMemory, Lower: lowerListSet},
	"aten::extend":      {Doc: "the first list with the elements of the other at its end", Lower: lowerListConcat},
	"aten::clear":       {Doc: "the list without elements", Lower: lowerListClear},
	"aten::reverse":     {Doc: "the list in reverse order", Lower: lowerListReverse},
	"prim::tolist":      {Doc: "a vector as a list of numbers", Lower: lowerToList},
	"aten::list":        {Doc: "a copy of the list", Lower: func(l *Lowering) *ssa.Value { return l.list("l") }},
}

// lowerToList gives the list that a vector is: numbers of Python have 64 bits.
func lowerToList(l *Lowering) *ssa.Value {
	lt, ok := l.Node.Results[0].Type.(*ssa.ListType)
	if !ok || l.Node.NumOperands() != 1 {
		l.Fail("tolist of a tensor of unknown shape")
	}
	return l.Cast(l.Value(l.Node.Operand(0)), elemDType(lt))
}

// isList reports a source value of list type.
func isList(v *ssa.Value) bool {
	if v == nil {
		return false
	}
	_, ok := v.Type.(*ssa.ListType)
	return ok
}

// numberList is the list argument as a vector, if it is a list of numbers.
func (l *Lowering) numberList(name string) *ssa.Value {
	v := l.Arg(name)
	if v == nil {
		return nil
	}
	lt, ok := v.Type.(*ssa.ListType)
	if !ok || ssa.AsTensor(lt.Elem) != nil {
		return nil
	}
	if es, ok := ListElems(v); ok && len(es) == 0 {
		return l.emptyConst(elemDType(lt), 0)
	}
	return l.Value(v)
}

func elemDType(lt *ssa.ListType) tensor.DType {
	switch lt.Elem {
	case ssa.FloatType:
		return tensor.Float64
	case ssa.BoolType:
		return tensor.Bool
	}
	return tensor.Int64
}

// number1 is a number argument as a vector of one.
func (l *Lowering) number1(name string, list *ssa.Value) *ssa.Value {
	return l.unsqueeze(l.as(name, l.DType(list)), 0)
}

// cutAt gives what lies before and from place i of a vector.
func (l *Lowering) cutAt(list *ssa.Value, i Size) (head, tail *ssa.Value) {
	one := ConstSize(1)
	return l.sliceDim(list, 0, ConstSize(0), i, one), l.sliceDim(list, 0, i, ConstSize(toEnd), one)
}

// list is an argument that is a list of tensors, as a sequence.
func (l *Lowering) list(name string) *ssa.Value {
	v := l.must(name)
	if lt, ok := v.Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) == nil {
		l.Fail("lists of %s whose length is not known", lt.Elem)
	}
	if es, ok := ListElems(v); ok && len(es) == 0 {
		return nil
	}
	return l.sequence(v)
}

// listArg finds the list argument, whose name differs by operator.
func (l *Lowering) listArg() *ssa.Value {
	for _, name := range []string{"list", "self", "l", "a"} {
		if l.HasArg(name) {
			return l.list(name)
		}
	}
	l.Fail("this overload is not on a list")
	return nil
}

// nonempty is listArg for operators that need an element.
func (l *Lowering) nonempty() *ssa.Value {
	v := l.listArg()
	if v == nil {
		l.Fail("the list is empty")
	}
	return v
}

func lowerListGet(l *Lowering) *ssa.Value {
	v := l.Arg("list")
	if v == nil {
		v = l.Arg("self")
	}
	if v != nil {
		// a list of numbers is a vector
		if lt, ok := v.Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) == nil {
			return l.gather(l.Value(v), l.sizeValue(l.sizeArg("idx")), 0)
		}
		if es, ok := ListElems(v); ok {
			if i, isConst := l.sizeArg("idx").Int(); isConst {
				if i < 0 {
					i += int64(len(es))
				}
				if i < 0 || i >= int64(len(es)) {
					l.Fail("index %d of a list of %d elements", i, len(es))
				}
				return l.Value(es[i])
			}
		}
	}
	return l.SequenceAt(l.nonempty(), l.sizeValue(l.sizeArg("idx")))
}

func lowerListLen(l *Lowering) *ssa.Value {
	v := l.must("a")
	if es, ok := ListElems(v); ok {
		return l.Const(tensor.ScalarInt(int64(len(es))))
	}
	if lt, ok := v.Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) == nil {
		return l.Size(l.Value(v))
	}
	return l.SequenceLength(l.sequence(v))
}

func lowerListAppend(l *Lowering) *ssa.Value {
	if v := l.numberList("self"); v != nil {
		return l.concatV(0, v, l.number1("el", v))
	}
	list, el := l.listArg(), l.Tensor("el")
	if list == nil {
		return l.SequenceConstruct(el)
	}
	return l.SequenceInsert(list, el, nil)
}

// listPlace clamps a place as list.insert does: 0 <= place <= length.
func (l *Lowering) listPlace(list *ssa.Value, idx Size) *ssa.Value {
	if n, ok := idx.Int(); ok && n == 0 {
		return l.sizeValue(idx)
	}
	n := Size{Value: l.SequenceLength(list)}
	return l.sizeValue(l.leastSize(l.greatestSize(l.wrapSize(idx, n), ConstSize(0)), n))
}

func lowerListInsert(l *Lowering) *ssa.Value {
	if v := l.numberList("self"); v != nil {
		head, tail := l.cutAt(v, l.sizeArg("idx"))
		return l.concatV(0, head, l.number1("el", v), tail)
	}
	list, el := l.listArg(), l.Tensor("el")
	if list == nil {
		return l.SequenceConstruct(el)
	}
	return l.SequenceInsert(list, el, l.listPlace(list, l.sizeArg("idx")))
}

func lowerListPop(l *Lowering) *ssa.Value {
	if v := l.numberList("self"); v != nil {
		head, tail := l.cutAt(v, l.wrapSize(l.sizeArgOr("idx", -1), l.sizeOf(v, 0)))
		return l.concatV(0, head, l.sliceDim(tail, 0, ConstSize(1), ConstSize(toEnd), ConstSize(1)))
	}
	list := l.nonempty()
	idx := l.sizeArgOr("idx", -1)
	if n, ok := idx.Int(); ok && n == -1 {
		return l.SequenceErase(list, nil)
	}
	return l.SequenceErase(list, l.sizeValue(idx))
}

func lowerListSet(l *Lowering) *ssa.Value {
	if v := l.numberList("l"); v != nil {
		return l.selectScatter(v, l.as("el", l.DType(v)), 0, l.sizeArg("idx"))
	}
	list := l.nonempty()
	idx := l.sizeArg("idx")
	at := l.sizeValue(l.wrapSize(idx, Size{Value: l.SequenceLength(list)}))
	return l.SequenceInsert(l.SequenceErase(list, at), l.Tensor("el"), at)
}

func lowerListClear(l *Lowering) *ssa.Value { return l.emptySequence(l.nonempty()) }

// lowerListConcat joins lists: of two with known lengths, the elements; else one by one in a loop.
func lowerListConcat(l *Lowering) *ssa.Value {
	a, b := "self", "other"
	if l.HasArg("a") {
		a, b = "a", "b"
	}
	if v, w := l.numberList(a), l.numberList(b); v != nil && w != nil {
		return l.concatV(0, v, w)
	}
	left, right := l.list(a), l.list(b)
	switch {
	case left == nil && right == nil:
		l.Fail("two empty lists of unknown type")
	case left == nil:
		return right
	case right == nil:
		return left
	}
	if es, ok := ListElems(l.must(b)); ok {
		for _, e := range es {
			left = l.SequenceInsert(left, l.Value(e), nil)
		}
		return left
	}
	return l.listLoop(left, l.SequenceLength(right), func(i *ssa.Value) *ssa.Value {
		return l.SequenceAt(right, i)
	})
}

// listLoop appends el(0), el(1), ..., el(count-1) to a sequence.
func (l *Lowering) listLoop(list, count *ssa.Value, el func(i *ssa.Value) *ssa.Value) *ssa.Value {
	loop := l.Block.InsertBefore(l.Before, "onnx::Loop", l.Loc, []*ssa.Value{count, l.boolScalar(true), list}, list.Type)
	body := loop.AddBlock()
	i := body.AddParam("", ssa.Tensor(tensor.Int64))
	c := body.AddParam("", ssa.Tensor(tensor.Bool))
	acc := body.AddParam("", list.Type)
	outer := l.Builder
	l.Block, l.Before = body, nil
	e := el(i)
	if t, ok := onnx.Join(list.Type, &ssa.ListType{Elem: e.Type}, nil); ok { // elements of other sizes
		acc.Type, loop.Results[0].Type = t, t
	}
	next := l.SequenceInsert(acc, e, nil)
	l.Builder = outer
	body.SetReturns(c, next)
	return loop.Results[0]
}

// emptySequence makes an empty sequence of list's type.
func (l *Lowering) emptySequence(list *ssa.Value) *ssa.Value {
	d := tensor.Undefined
	if lt, ok := list.Type.(*ssa.ListType); ok {
		if t := ssa.AsTensor(lt.Elem); t != nil {
			d = t.DType
		}
	}
	if d == tensor.Undefined {
		l.Fail("the element type of the list is not known")
	}
	v := l.SequenceEmpty(onnx.Dtype(d))
	v.Type = list.Type
	return v
}

func lowerListSlice(l *Lowering) *ssa.Value {
	v := l.must("l")
	start, end, step := l.sizeArgOr("start", 0), l.sizeArgOr("end", toEnd), l.sizeArgOr("step", 1)
	k, ok := step.Int()
	if lt, isList := v.Type.(*ssa.ListType); isList && ssa.AsTensor(lt.Elem) == nil {
		if !ok || k >= 0 {
			return l.sliceDim(l.Value(v), 0, start, end, step)
		}
		if l.IsNone("start") {
			start = ConstSize(toEnd)
		}
		if l.IsNone("end") {
			end = ConstSize(-toEnd)
		}
		return l.Slice(l.Value(v), l.sizeVec(start), l.sizeVec(end), l.i64(0), l.sizeVec(step))
	}
	if !ok || k == 0 {
		l.Fail("a slice step must be a constant other than 0")
	}
	list := l.list("l")
	if list == nil {
		l.Fail("the list is empty")
	}
	n := Size{Value: l.SequenceLength(list)}
	var s, count Size
	if k > 0 {
		var e Size
		s, e = l.sliceBounds(start, end, n)
		count = l.divSize(l.addSize(l.subSize(e, s), ConstSize(k-1)), ConstSize(k))
	} else {
		last := l.subSize(n, ConstSize(1))
		clamp := func(name string, absent Size) Size {
			if l.IsNone(name) {
				return absent
			}
			return l.leastSize(l.greatestSize(l.wrapSize(l.sizeArg(name), n), ConstSize(-1)), last)
		}
		s = clamp("start", last)
		left := l.greatestSize(l.subSize(s, clamp("end", ConstSize(-1))), ConstSize(0))
		count = l.divSize(l.addSize(left, ConstSize(-k-1)), ConstSize(-k))
	}
	from, by := l.sizeValue(s), l.Const(tensor.ScalarInt(k))
	return l.listLoop(l.emptySequence(list), l.sizeValue(count), func(i *ssa.Value) *ssa.Value {
		return l.SequenceAt(list, l.Add(from, l.Mul(i, by)))
	})
}

func lowerListReverse(l *Lowering) *ssa.Value {
	if v := l.numberList("self"); v != nil {
		return l.flip(v, 0)
	}
	list := l.nonempty()
	n := l.SequenceLength(list)
	last := l.Sub(n, l.Const(tensor.ScalarInt(1)))
	return l.listLoop(l.emptySequence(list), n, func(i *ssa.Value) *ssa.Value {
		return l.SequenceAt(list, l.Sub(last, i))
	})
}
