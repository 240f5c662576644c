package specialize

import (
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// handler evaluates an operator; done is false where it has nothing to say of these arguments.
type handler func(s *walk, o *ssa.Op, args []py.Value) (results []py.Value, done bool)

// primOps are the operators of the namespace prim. Calls, Ifs and Loops are in eval.
var primOps map[ssa.Kind]handler

func init() {
	primOps = map[ssa.Kind]handler{
		"prim::Constant":                  constantOp,
		"prim::ListConstruct":             listConstruct,
		"prim::TupleConstruct":            tupleConstruct,
		"prim::DictConstruct":             dictConstruct,
		"prim::ListUnpack":                unpackOp,
		"prim::TupleUnpack":               unpackOp,
		"prim::ConstantChunk":             constantParts,
		"prim::ConstantSplit":             constantParts,
		"prim::TupleIndex":                tupleIndex,
		"prim::TupleSlice":                tupleSlice,
		"prim::GetAttr":                   getAttr,
		"prim::SetAttr":                   setAttr,
		"prim::CreateObject":              createObject,
		"prim::RaiseException":            raiseException,
		"prim::Print":                     nothing,
		"prim::Uninitialized":             constantly(py.Unset{}),
		"prim::unchecked_cast":            present,
		"prim::unchecked_unwrap_optional": present,
		"prim::isinstance":                isInstance,
		"prim::Enter":                     enter,
		"prim::Exit":                      enter,
		"prim::EnumName":                  enumName,
		"prim::EnumValue":                 enumValue,
		"prim::tolist":                    toListOp,
		"prim::data":                      dataOf,
		"prim::NumToTensor":               numToTensor,
		"prim::min":                       primNumbers,
		"prim::max":                       primNumbers,
		"prim::abs":                       primNumbers,
		"prim::rangelist":                 rangeList,
	}
}

// constantly answers the same whatever the arguments are.
func constantly(v py.Value) handler {
	return func(*walk, *ssa.Op, []py.Value) ([]py.Value, bool) { return one(v) }
}

// nothing drops an operator without results.
func nothing(*walk, *ssa.Op, []py.Value) ([]py.Value, bool) { return nil, true }

func constantOp(s *walk, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	l, ok := o.Attr("value")
	if n, has := o.Attr("name"); !ok && has {
		l = ssa.FuncName(n.Str())
	}
	if l.Kind != ssa.TensorLit {
		return one(s.module.fromLiteral(l, o.Results[0].Type))
	}
	fresh := s.module.weights[l.Tensor] == nil
	v := s.module.fromLiteral(l, o.Results[0].Type)
	t := v.(*py.Tensor)
	if n := o.Results[0].Name; fresh && n != "" && t.Val.Name == "" {
		if !s.build.names.Taken(n) {
			s.build.names.Take(n)
			t.Val.Name = n
		}
		heap.ViewOf(t).Storage.Name = n
		if d := t.Val.Def(); d.Loc == 0 {
			d.Loc = o.Loc
		}
	}
	return one(v)
}

func listConstruct(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	elem := ssa.Type(ssa.AnyType)
	if lt, ok := o.Results[0].Type.(*ssa.ListType); ok {
		elem = lt.Elem
	}
	return one(s.heap.List(elem, args))
}

func tupleConstruct(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	tt, _ := o.Results[0].Type.(*ssa.TupleType)
	return one(&py.Tuple{Elems: args, Typ: tt})
}

func dictConstruct(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	d := &py.DictState{}
	for i := 0; i+1 < len(args); i += 2 {
		s.lists.find(d, args[i])
		d = d.With(s.lists.key(args[i]), args[i+1])
	}
	return one(&py.Dict{Cell: s.heap.New(d), Typ: o.Results[0].Type})
}

func unpackOp(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	x := args[0]
	if m, ok := x.(*py.Maybe); ok {
		x = m.Val
	}
	switch x := x.(type) {
	case *py.Tuple:
		return x.Elems, true
	case *py.List:
		st := x.State()
		if !st.AtRunTime() {
			if len(st.Elems) != len(o.Results) {
				panic(s.raised("wrong number of values to unpack"))
			}
			return st.Elems, true
		}
		out := make([]py.Value, len(o.Results))
		for i := range out {
			out[i] = s.lists.getItem(x, py.Int(int64(i)))
		}
		return out, true
	}
	s.fail("unsupported-value", "cannot unpack")
	return nil, false
}

// constantParts does what chunk and split do, with attributes for arguments and a result for each part.
func constantParts(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	name, by := "aten::chunk", "chunks"
	if o.Kind == "prim::ConstantSplit" {
		name, by = "aten::split.Tensor", "split_size"
	}
	schema := aten.SchemaByName(name)
	parts := &ssa.ListType{Elem: ssa.AnyTensor}
	split := &ssa.Op{Kind: ssa.Kind(schema.Name), Schema: schema, Loc: o.Loc, Results: []*ssa.Value{{Type: parts}}}
	out := s.apply(split, []py.Value{args[0], py.Int(o.AttrInt(by, 1)), py.Int(o.AttrInt("dim", 0))})
	if elems := py.ElemsOf(out[0]); len(elems) >= len(o.Results) {
		return elems[:len(o.Results)], true
	}
	s.fail("dynamic-axis", "the number of parts depends on data")
	return nil, false
}

func tupleIndex(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t, ok := args[0].(*py.Tuple)
	l, ok2 := args[1].(py.Const)
	if !ok || !ok2 {
		s.fail("unsupported-value", "a tuple index must be constant")
	}
	i, err := py.Index(l.Int(), len(t.Elems))
	if err != nil {
		panic(s.raised("tuple index out of range"))
	}
	return one(t.Elems[i])
}

func tupleSlice(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t, ok := args[0].(*py.Tuple)
	if !ok {
		s.fail("unsupported-value", "TupleSlice of something that is not a tuple")
	}
	lo, hi := python.Bounds(int64(len(t.Elems)), o.AttrInt("beg", 0), o.AttrInt("end", int64(len(t.Elems))))
	return one(&py.Tuple{Elems: t.Elems[lo:hi]})
}

func getAttr(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	x, ok := args[0].(*py.Object)
	if !ok {
		s.fail("attribute", "GetAttr on something that is not an object")
	}
	name := o.AttrStr("name", "")
	v := s.module.attr(x, name).Content()
	if v == nil {
		s.fail("attribute", "attribute %q is read before it is set", name)
	}
	return one(py.AsValue(v))
}

func setAttr(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	x, ok := args[0].(*py.Object)
	if !ok {
		s.fail("attribute", "SetAttr on something that is not an object")
	}
	name := o.AttrStr("name", "")
	c := s.module.attr(x, name)
	if x.Src != nil {
		s.writes.noteState(joinPath(x.Path, name), false, func() py.Value { return py.AsValue(c.Content()) })
	}
	s.lists.set(c, args[1])
	return nil, true
}

func createObject(s *walk, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	x := &py.Object{Attrs: map[string]*journal.Cell{}}
	if c, ok := o.Results[0].Type.(*ssa.ClassType); ok {
		x.Class = c.Name
	}
	return one(x)
}

func raiseException(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	msg := "an exception"
	if text, ok := textOf(args[0]); ok {
		msg = text
	}
	panic(s.raised(msg))
}

// present is the value of an Optional that the program has found not to be None.
func present(_ *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if m, ok := args[0].(*py.Maybe); ok {
		return one(m.Val)
	}
	return one(args[0])
}

func isInstance(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	l, _ := o.Attr("types")
	for _, e := range l.Elems {
		if isInstanceOf(s, args[0], e.Elem, o.Operand(0).Type) {
			return one(py.Bool(true))
		}
	}
	return one(py.Bool(false))
}

// isInstanceOf decides isinstance(x, t); declared is the static type of x.
func isInstanceOf(s *walk, x py.Value, t, declared ssa.Type) bool {
	switch x := x.(type) {
	case py.Const:
		return constInstance(x, t)
	case py.Dynamic:
		return x.Type == t
	case *py.Tensor:
		return ssa.AsTensor(t) != nil
	case *py.List:
		lt, ok := t.(*ssa.ListType)
		switch {
		case !ok:
			return t == ssa.AnyListType
		case x.Elem == nil || x.Elem == ssa.AnyType:
			return ssa.SameType(declared, t)
		}
		return ssa.SameType(generalType(x.Elem), lt.Elem)
	case *py.Tuple:
		tt, ok := t.(*ssa.TupleType)
		switch {
		case !ok:
			return t == ssa.AnyTupleType
		case x.Typ != nil && x.Typ.Name != "" || tt.Name != "":
			return x.Typ != nil && x.Typ.Name == tt.Name
		case len(tt.Elems) != len(x.Elems):
			return false
		}
		for i, e := range x.Elems {
			if !isInstanceOf(s, e, tt.Elems[i], ssa.AnyType) {
				return false
			}
		}
		return true
	case *py.Dict:
		dt, ok := t.(*ssa.DictType)
		xt, known := x.Typ.(*ssa.DictType)
		return ok && (!known || ssa.SameType(xt, dt))
	case *py.Object:
		return t.String() == x.Class
	case *py.Maybe:
		s.undecided(x, "isinstance depends on data")
	case py.Unknown:
		if x.Text == "" {
			s.fail("unsupported-value", "the type of a value that follows from text is not known")
		}
		return t == ssa.StrType
	}
	return false
}

func constInstance(x py.Const, t ssa.Type) bool {
	if x.IsNone() {
		return t == ssa.NoneType
	}
	switch tt := t.(type) {
	case ssa.Basic:
		return x.Type() == tt || tt == ssa.NumberType && x.IsNumber()
	case *ssa.EnumType, *ssa.ClassType:
		return x.Type().String() == t.String() || x.Kind == ssa.EnumLit
	}
	return false
}

func enter(_ *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if len(o.Results) == 0 {
		return nil, true
	}
	return one(args[0])
}

// enumName is the part of Class.NAME behind the last dot.
func enumName(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	l, ok := args[0].(py.Const)
	if !ok || l.Kind != ssa.EnumLit {
		s.fail("unsupported-value", "the name of an enum that is not known")
	}
	return one(py.String(l.Str()[strings.LastIndexByte(l.Str(), '.')+1:]))
}

func enumValue(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	l, ok := args[0].(py.Const)
	if !ok || l.Kind != ssa.EnumLit || len(l.Elems) == 0 {
		s.fail("unsupported-value", "the value of an enum that is not known")
	}
	return one(s.module.fromLiteral(l.Elems[0], o.Results[0].Type))
}

func toListOp(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	return one(s.lists.toList(args[0], o.Results[0].Type))
}

// dataOf is x.data: another tensor object, of the same memory.
func dataOf(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	t, ok := args[0].(*py.Tensor)
	if !ok {
		return nil, false
	}
	v := heap.ViewOf(t)
	return one(s.heap.View(v.Storage, v.Chain, v.Strides, t.Base, t.Val))
}

func numToTensor(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	l, ok := args[0].(py.Const)
	if !ok {
		return nil, false
	}
	return one(s.heap.Tensor(s.build.constant(ssa.TensorValue(numberTensor(l.Literal)))))
}

// numberTensor is prim::NumToTensor: an int is Long, a float Double, a bool Bool.
func numberTensor(l ssa.Literal) *tensor.Tensor {
	switch l.Kind {
	case ssa.FloatLit:
		return tensor.FromFloats(tensor.Float64, []int64{}, []float64{l.Float()})
	case ssa.BoolLit:
		return tensor.FromInts(tensor.Bool, []int64{}, []int64{l.Int()})
	case ssa.ComplexLit:
		return tensor.Of(tensor.Complex128, []int64{}, []complex128{l.Complex()})
	}
	return tensor.ScalarInt(l.Int())
}

// primNumbers is min, max and abs of numbers; min and max of a list are those of its elements.
func primNumbers(s *walk, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if py.Tensorial(args) {
		return nil, false
	}
	if l, ok := args[0].(*py.List); ok && len(args) == 1 && o.Kind != "prim::abs" {
		if es := py.ElemsOf(l); len(es) > 0 {
			best := es[0]
			two := aten.SchemaByName(string(o.Kind) + ".int")
			for _, e := range es[1:] {
				pair := []py.Value{best, e}
				if t, _ := py.NumberType(e); t == ssa.FloatType { // a later one has to be greater, which nothing is beside what is not a number
					pair = []py.Value{e, best}
				}
				best = s.vals.scalar(o.Kind, two, pair)[0]
			}
			return one(best)
		}
	}
	if _, ok := o.Results[0].Type.(*ssa.ListType); ok {
		l, ok := args[0].(*py.List)
		r, ok2 := args[1].(*py.List)
		if !ok || !ok2 {
			s.fail("dynamic-container", "which of two lists is the lesser one depends on data, and so does the length of one of them")
		}
		return one(s.lists.extremeList(l, r, o.Kind == "prim::max"))
	}
	return s.vals.scalar(o.Kind, o.Schema, args), true
}

func rangeList(s *walk, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	l, ok := args[0].(py.Const)
	if !ok {
		return nil, false
	}
	var es []py.Value
	for i := range l.Int() {
		es = append(es, py.Int(i))
	}
	return one(s.heap.List(ssa.IntType, es))
}
