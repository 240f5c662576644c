package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// index resolves a list index; ok is false if it is only known at run time.
func (s *spec) index(x value, n int) (int, bool) {
	l, ok := s.literalOf(x)
	if !ok {
		return 0, false
	}
	i := l.Int()
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		panic(raised{s.loc, "list index out of range"})
	}
	return int(i), true
}

func (s *spec) getItem(l *list, at value) value {
	st := l.state()
	if st.dyn == nil {
		if i, ok := s.index(at, len(st.elems)); ok {
			return st.elems[i]
		}
		if len(st.elems) == 0 {
			panic(raised{s.loc, "list index out of range"})
		}
		// an element chosen at run time
		for _, e := range st.elems {
			switch e.(type) {
			case *tensorRef:
			case *ssa.Value, ssa.Literal:
				if _, ok := numberType(e); !ok {
					s.unroll("a list is indexed by a value that is only known at run time")
				}
			default:
				s.unroll("a list is indexed by a value that is only known at run time")
			}
		}
		if tensorial(st.elems) && s.inLoop() {
			s.unroll("a list of tensors is indexed by the loop variable")
		}
	}
	if st.parts != nil {
		if v := s.part(st.parts, at); v != nil {
			if t, ok := v.(*tensorRef); ok {
				t.element = true
			}
			return v
		}
	}
	schema := aten.SchemaByName("aten::__getitem__.t")
	v := s.emit("aten::__getitem__", schema, s.materialize(l), s.materialize(at))[0]
	s.elementType(v, l)
	x := s.number2(v)
	hold(x)
	if t, ok := x.(*tensorRef); ok {
		t.element = true
	}
	return x
}

func numberType(x value) (ssa.Type, bool) {
	switch x := x.(type) {
	case ssa.Literal:
		if x.IsNumber() {
			return x.Type(), true
		}
	case *ssa.Value:
		if b, ok := x.Type.(ssa.Basic); ok {
			return b, b == ssa.IntType || b == ssa.FloatType || b == ssa.BoolType
		}
	}
	return nil, false
}

func (s *spec) number2(v *ssa.Value) value {
	if v.Type == ssa.IntType {
		return s.number(v)
	}
	return s.wrap(v)
}

// inLoop reports that the current block is in the body of a loop that is kept.
func (s *spec) inLoop() bool {
	for b := s.cur; b != nil && b.Owner() != nil; b = b.Owner().Block() {
		if b.Owner().Kind == "prim::Loop" {
			return true
		}
	}
	return false
}

// container evaluates operators on lists, dicts, tuples and strings.
func (s *spec) container(o *ssa.Op, args []value) ([]value, bool) {
	if o.Kind == "aten::dict" && len(args) == 0 {
		return []value{&dict{c: s.newCell(&dictState{}), typ: o.Results[0].Type}}, true
	}
	if l, ok := firstList(args); ok && o.Kind == "aten::dict" {
		if d, ok := s.dictOfPairs(l); ok {
			return []value{&dict{c: s.newCell(d), typ: o.Results[0].Type}}, true
		}
	}
	if o.Kind.Namespace() != "aten" || len(args) == 0 {
		return nil, false
	}
	switch x := args[0].(type) {
	case *list:
		return s.listOp(o, x, args)
	case *dict:
		return s.dictOp(o, x, args)
	case *tuple:
		switch o.Kind {
		case "aten::len":
			return []value{ssa.Int(int64(len(x.elems)))}, true
		case "aten::__getitem__":
			if i, ok := s.index(args[1], len(x.elems)); ok {
				return []value{x.elems[i]}, true
			}
		case "aten::list":
			return []value{s.newList(memberType(o.Results[0].Type, 0), x.elems)}, true
		case "aten::eq", "aten::ne":
			if r, ok := s.equalElems(x.elems, elemsOf(args[1])); ok {
				return []value{s.negateIf(r, o.Kind == "aten::ne")}, true
			}
		case "aten::add":
			if y, ok := args[1].(*tuple); ok {
				return []value{&tuple{elems: append(append([]value(nil), x.elems...), y.elems...)}}, true
			}
		}
	case ssa.Literal:
		switch {
		case x.Kind == ssa.StrLit && o.Kind == "aten::list":
			var es []value
			for _, r := range x.Str() {
				es = append(es, ssa.Str(string(r)))
			}
			return []value{s.newList(ssa.StrType, es)}, true
		case x.Kind == ssa.StrLit && (o.Kind == "aten::format" || o.Kind == "aten::percentFormat"):
			for _, a := range args {
				if _, ok := s.literalOf(a); !ok {
					// text for a message about data: nothing in the graph can use it
					return []value{ssa.Str("")}, true
				}
			}
		case x.Kind == ssa.StrLit && o.Kind == "aten::join":
			if l, ok := s.literalOf(args[1]); ok {
				if r, ok := foldString(s, "join", []ssa.Literal{x, l}); ok {
					return []value{r}, true
				}
			}
		case x.IsNumber() && (o.Kind == "aten::tensor" || o.Kind == "aten::scalar_tensor" && x.Kind != ssa.ComplexLit):
			return s.tensorOf(o, args)
		}
	}
	if o.Kind == "aten::str" {
		if _, ok := s.literalOf(args[0]); !ok {
			return []value{ssa.Str("")}, true
		}
	}
	return nil, false
}

func (s *spec) negateIf(v value, neg bool) value {
	if !neg {
		return v
	}
	if l, ok := v.(ssa.Literal); ok {
		return ssa.Bool(!l.Bool())
	}
	return s.wrap(s.emitName("aten::__not__", v.(*ssa.Value)))
}
