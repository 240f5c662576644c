package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// elementType replaces a schema's type variable by the list's element type.
func (s *spec) elementType(v *ssa.Value, l *list) {
	if _, ok := v.Type.(*ssa.VarType); !ok {
		return
	}
	switch {
	case l.elem != nil && l.elem != ssa.AnyType:
		v.Type = l.elem
	case l.state().dyn != nil:
		if lt, ok := l.state().dyn.Type.(*ssa.ListType); ok {
			v.Type = lt.Elem
		}
	default:
		if t, ok := numberType(l.state().elems[0]); ok {
			v.Type = t
		} else {
			v.Type = ssa.AnyTensor
		}
	}
}

// makeDynamic turns a list into one whose length is known at run time only.
func (s *spec) makeDynamic(l *list) {
	if l.state().dyn != nil {
		return
	}
	if st := l.state(); len(st.elems) > 0 && ssa.AsTensor(s.dynElem(st)) != nil {
		s.set(l.c, &listState{dyn: s.dynamic(st, nil)})
		return
	}
	s.set(l.c, &listState{dyn: s.materialize(l)})
}

// dynListOp works on a list of unknown length in pure form: an op that changes
// the list gives the new list.
func (s *spec) dynListOp(o *ssa.Op, l *list, args []value) ([]value, bool) {
	dyn := s.dynOf(l.state())
	one := func(v value) ([]value, bool) { return []value{v}, true }
	lt := dyn.Type
	pure := func(name string, rest ...value) *ssa.Value {
		schema := aten.SchemaByName(name)
		operands := []*ssa.Value{dyn}
		for _, r := range rest {
			operands = append(operands, s.materialize(r))
		}
		n := s.cur.Append(ssa.Kind(schema.Name), s.loc, operands, lt)
		n.Schema = schema
		vs := s.infer(n)
		if t, ok := lt.(*ssa.ListType); ok && ssa.AsTensor(t.Elem) != nil && len(rest) > 0 {
			if x, ok := rest[len(rest)-1].(*tensorRef); ok { // a list takes in what is put into it
				a, b := ssa.AsTensor(t.Elem), s.read(x).Tensor()
				if !ssa.SameType(a, b) && a.DType == b.DType {
					lt = &ssa.ListType{Elem: s.joinTensors(a, b)}
				}
			}
		}
		vs[0].Type = lt
		return vs[0]
	}
	name := o.Kind.Name()
	switch name {
	case "append":
		hold(args[1])
		s.set(l.c, &listState{dyn: pure("aten::append.t", args[1])})
		return one(l)
	case "insert":
		hold(args[2])
		s.set(l.c, &listState{dyn: pure("aten::insert.t", args[1], args[2])})
		return nil, true
	case "extend", "add_", "add":
		other, ok := args[1].(*list)
		if !ok {
			s.fail("dynamic-container", "a list of run-time length is joined with something that is not a list")
		}
		if w := other.state().dyn; w != nil {
			if a, ok := lt.(*ssa.ListType); ok && ssa.AsTensor(a.Elem) != nil {
				if b, ok := w.Type.(*ssa.ListType); ok && ssa.AsTensor(b.Elem) != nil {
					lt = &ssa.ListType{Elem: s.joinTensors(ssa.AsTensor(a.Elem), ssa.AsTensor(b.Elem))}
				}
			}
			dyn = pure("aten::add.t", other)
		}
		hold(other.state().elems...)
		for _, e := range other.state().elems {
			dyn = pure("aten::append.t", e)
			lt = dyn.Type
		}
		if name == "add" {
			return one(&list{c: s.newCell(&listState{dyn: dyn}), elem: l.elem})
		}
		s.set(l.c, &listState{dyn: dyn})
		if name == "extend" {
			return nil, true
		}
		return one(l)
	case "_set_item":
		hold(args[2])
		s.set(l.c, &listState{dyn: pure("aten::_set_item.t", args[1], args[2])})
		return one(l)
	case "pop":
		at := value(ssa.Int(-1))
		if len(args) > 1 {
			at = args[1]
		}
		x := s.getItem(l, at)
		s.set(l.c, &listState{dyn: pure("aten::Delete.t", at)})
		return one(x)
	case "Delete":
		s.set(l.c, &listState{dyn: pure("aten::Delete.t", args[1])})
		return nil, true
	case "clear":
		s.setList(l, nil)
		return nil, true
	case "copy", "list":
		return one(&list{c: s.newCell(&listState{dyn: dyn}), elem: l.elem})
	case "slice":
		return one(&list{c: s.newCell(&listState{dyn: pure("aten::slice.t", args[1:]...)}), elem: l.elem})
	case "__getitem__":
		return one(s.getItem(l, args[1]))
	case "len":
		v := s.emitName("aten::len.t", dyn)
		return one(s.number(v))
	case "reverse":
		s.set(l.c, &listState{dyn: pure("aten::reverse.t")})
		return nil, true
	case "sort", "remove", "index", "count":
		s.fail("dynamic-container", "%s on a list whose length is only known at run time has no ONNX form", name)
	}
	return nil, false
}
