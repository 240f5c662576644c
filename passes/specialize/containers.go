package specialize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// getItem is l[at].
func (s *containers) getItem(l *py.List, at py.Value) py.Value {
	st := l.State()
	if st.Columns != nil {
		parts := make([]py.Value, st.Columns.Width)
		for i, c := range s.columnLists(l) {
			parts[i] = s.getItem(c, at)
		}
		return st.Columns.Whole(parts)
	}
	if st.Dyn == nil {
		if i, ok := s.index(at, len(st.Elems)); ok {
			return st.Elems[i]
		}
		if len(st.Elems) == 0 {
			panic(s.raised("list index out of range"))
		}
		if p := s.pooled(st.Elems); p != nil {
			t := s.views.row(p.Self, s.getItem(&py.List{Cell: s.heap.New(s.vals.places(p.Self, st)), Elem: ssa.IntType}, at))
			t.Element = true
			return t
		}
		// an element chosen at run time
		for _, e := range st.Elems {
			switch e.(type) {
			case *py.Tensor:
				continue
			case py.Dynamic, py.Const:
				if _, ok := py.NumberType(e); ok {
					continue
				}
			default:
				if memberList(l.Elem) {
					continue
				}
			}
			return s.chooseItem(st.Elems, at)
		}
		if py.Tensorial(st.Elems) && s.build.inLoop() && s.mode == unrolling {
			s.unroll("a list of tensors is indexed by the loop variable")
		}
	}
	if st.Parts != nil {
		if v := s.views.part(st.Parts, at); v != nil {
			if t, ok := v.(*py.Tensor); ok {
				t.Element = true
			}
			return v
		}
		s.heap.Hold(st.Parts.Self)
	}
	schema := aten.SchemaByName("aten::__getitem__.t")
	var list *ssa.Value
	if st.Dyn == nil && memberList(l.Elem) {
		list = s.vals.dynamic(st, nil)
	} else {
		list = s.vals.materialize(l)
	}
	v := s.build.emit("aten::__getitem__", schema, list, s.vals.materialize(at))[0]
	s.elementType(v, l)
	x := s.vals.number2(v)
	t, ok := x.(*py.Tensor)
	switch {
	case ok && st.Dyn == nil && py.Tensorial(st.Elems):
		t = s.oneOfElements(v, st.Elems)
		x = t
	case ok:
		s.heap.Hold(t)
	}
	if ok {
		t.Element = true
	}
	return s.ofMember(x, l.Elem)
}

// oneOfElements is a tensor with the value v that is one of the elements of a list, in memory and as an object.
func (s *containers) oneOfElements(v *ssa.Value, es []py.Value) *py.Tensor {
	t := s.heap.Tensor(v)
	for _, e := range es {
		if x, ok := e.(*py.Tensor); ok && s.views.axes.IsRowMajor(heap.ViewOf(x).Strides, s.vals.read(x).Tensor()) != layout.Shares {
			t = s.heap.Laid(v, nil)
			break
		}
	}
	for _, e := range es {
		if x, ok := e.(*py.Tensor); ok {
			s.heap.Perhaps(heap.ViewOf(t).Storage, heap.ViewOf(x).Storage)
			s.heap.Inherit(heap.ViewOf(t).Storage, heap.ViewOf(x).Storage)
			s.heap.Twin(t.Cell, x.Cell)
		}
	}
	return t
}

// chooseItem is the element at a place that is known at run time only, of a list of what ONNX has no lists of: strings, tuples.
func (s *containers) chooseItem(es []py.Value, at py.Value) py.Value {
	if s.build.inLoop() && s.mode == unrolling || len(es) > maxChosen {
		s.unroll("a list is indexed by a value that is only known at run time")
	}
	places := make([]py.Value, len(es))
	for i := range es {
		places[i] = py.Int(int64(i))
	}
	place := s.getItem(s.heap.List(ssa.IntType, places), at) // fails at run time for one that the list does not have
	x := es[len(es)-1]
	for i := len(es) - 2; i >= 0; i-- {
		here := s.vals.intOp("eq", place, py.Int(int64(i)))
		x = s.vals.choose(s.vals.materialize(here), es[i], x)
	}
	return x
}

// tupleHandler evaluates an operator whose first argument is a tuple.
type tupleHandler func(s *containers, t *py.Tuple, o *ssa.Op, args []py.Value) (results []py.Value, done bool)

// tupleOps are operators of the namespace aten on tuples.
var tupleOps map[string]tupleHandler

// constHandler evaluates an operator whose first argument is a constant, where it is more than a number or a string that comes of it.
type constHandler func(s *containers, x py.Const, o *ssa.Op, args []py.Value) (results []py.Value, done bool)

// constOps are operators of the namespace aten on strings and numbers that make containers or tensors, or that take them.
var constOps map[string]constHandler

func init() {
	tupleOps = map[string]tupleHandler{
		"len": func(_ *containers, t *py.Tuple, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
			return one(py.Int(int64(len(t.Elems))))
		},
		"__getitem__": func(s *containers, t *py.Tuple, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
			i, ok := s.index(args[1], len(t.Elems))
			if !ok {
				return nil, false
			}
			return one(t.Elems[i])
		},
		"list": func(s *containers, t *py.Tuple, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
			return one(s.heap.List(py.MemberType(o.Results[0].Type, 0), t.Elems))
		},
		"eq": equalTuples,
		"ne": equalTuples,
		"add": func(_ *containers, t *py.Tuple, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
			u, ok := args[1].(*py.Tuple)
			if !ok {
				return nil, false
			}
			return one(&py.Tuple{Elems: append(copied(t.Elems), u.Elems...)})
		},
	}
	constOps = map[string]constHandler{
		"list":          characters,
		"format":        formatted,
		"percentFormat": formatted,
		"join":          joinStrings,
		"tensor":        numberAsTensor,
		"scalar_tensor": numberAsTensor,
	}
}

// container evaluates operators on lists, dicts, tuples and strings.
func (s *containers) container(o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if o.Kind.Namespace() != "aten" {
		return nil, false
	}
	if o.Kind == "aten::dict" {
		if d, ok := s.newDict(args); ok {
			return one(&py.Dict{Cell: s.heap.New(d), Typ: o.Results[0].Type})
		}
	}
	if len(args) == 0 {
		return nil, false
	}
	name := o.Kind.Name()
	if l, ok := args[len(args)-1].(*py.List); ok && o.Kind == "aten::mul" && len(args) == 2 { // n * l
		return s.listOp(o, l, []py.Value{l, args[0]})
	}
	switch x := args[0].(type) {
	case *py.List:
		return s.listOp(o, x, args)
	case *py.Dict:
		return s.dictOp(o, x, args)
	case *py.Tuple:
		if h := tupleOps[name]; h != nil {
			if rs, ok := h(s, x, o, args); ok {
				return rs, true
			}
		}
	case py.Const:
		if h := constOps[name]; h != nil {
			return h(s, x, o, args)
		}
	}
	if o.Kind == "aten::str" {
		return formatted(s, py.None, o, args)
	}
	return nil, false
}

// newDict is what dict() or dict([(key, value), ...]) holds.
func (s *containers) newDict(args []py.Value) (*py.DictState, bool) {
	if len(args) == 0 {
		return &py.DictState{}, true
	}
	l, ok := firstList(args)
	if !ok {
		return nil, false
	}
	return s.dictOfPairs(l)
}

func equalTuples(s *containers, t *py.Tuple, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	r, ok := s.equalElems(t.Elems, py.ElemsOf(args[1]))
	if !ok {
		return nil, false
	}
	return one(s.negateIf(r, o.Kind == "aten::ne"))
}

func characters(s *containers, x py.Const, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	if x.Kind != ssa.StrLit {
		return nil, false
	}
	var es []py.Value
	for _, r := range x.Str() {
		es = append(es, py.String(string(r)))
	}
	return one(s.heap.List(ssa.StrType, es))
}

// unknownText is text for a message about data: nothing in the graph can use it.
func joinStrings(s *containers, x py.Const, _ *ssa.Op, args []py.Value) ([]py.Value, bool) {
	l, ok := py.LiteralOf(args[1])
	if !ok || x.Kind != ssa.StrLit {
		return nil, false
	}
	r, ok := s.fold("join", ssa.StrType, x.Literal, l)
	return []py.Value{py.Of(r)}, ok
}

func numberAsTensor(s *containers, x py.Const, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if !x.IsNumber() || o.Kind == "aten::scalar_tensor" && x.Kind == ssa.ComplexLit {
		return nil, false
	}
	return s.tensorOf(o, args)
}
