package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// elementType replaces a schema's type variable by the list's element type.
func (s *containers) elementType(v *ssa.Value, l *py.List) {
	if _, ok := v.Type.(*ssa.VarType); !ok {
		return
	}
	switch {
	case l.Elem != nil && l.Elem != ssa.AnyType:
		v.Type = l.Elem
	case l.State().Dyn != nil:
		if lt, ok := l.State().Dyn.Type.(*ssa.ListType); ok {
			v.Type = lt.Elem
		}
	default:
		if t, ok := py.NumberType(l.State().Elems[0]); ok {
			v.Type = t
		} else {
			v.Type = ssa.AnyTensor
		}
	}
}

// makeDynamic turns a list into one whose length is known at run time only.
func (s *containers) makeDynamic(l *py.List) {
	if l.State().AtRunTime() {
		return
	}
	if cols := s.declared(l); cols.Width > 0 {
		s.set(l.Cell, s.vals.byColumn(cols, func(i int) *py.ListState {
			c := &py.List{Cell: s.heap.New(s.vals.column(l.State(), cols, i)), Elem: cols.Member(l.Elem, i)}
			s.makeDynamic(c)
			return c.State()
		}))
		return
	}
	if p := s.poolIn(l.State(), nil); p != nil {
		s.set(l.Cell, s.vals.placed(p.Self, s.vals.placesValue(p.Self, l.State())))
		return
	}
	if st := l.State(); slices.Contains(st.Elems, py.Value(py.Unset{})) || len(st.Elems) > 0 && ssa.AsTensor(s.vals.dynElem(st)) != nil {
		s.setDyn(l, s.vals.dynamic(st, nil))
		return
	}
	s.setDyn(l, s.vals.materialize(l))
}

func (s *containers) setDyn(l *py.List, dyn *ssa.Value) { s.set(l.Cell, &py.ListState{Dyn: dyn}) }

// newDyn makes a list object that holds a run-time list.
func (s *containers) newDyn(dyn *ssa.Value, elem ssa.Type) *py.List {
	return &py.List{Cell: s.heap.New(&py.ListState{Dyn: dyn}), Elem: elem}
}

// dynListOp evaluates an operator on a list of unknown length.
func (s *containers) dynListOp(o *ssa.Op, l *py.List, args []py.Value) ([]py.Value, bool) {
	if s.takesNone(o, args) && !l.State().Spread().Optional {
		wide := &py.List{Cell: l.Cell, Elem: l.Elem}
		if o.Kind == "aten::add" { // l itself stays
			wide.Cell = s.heap.New(l.State())
		}
		s.set(wide.Cell, s.vals.withNone(l.State()))
		l, args = wide, append([]py.Value{wide}, args[1:]...)
	}
	if l.State().Columns != nil {
		return s.columnsOp(o, l, args)
	}
	if rs, done := s.placedOp(o, l, args); done {
		return rs, true
	}
	switch op := listOps[o.Kind.Name()]; {
	case op.dyn == nil:
		return nil, false
	case op.reads:
		return op.dyn(s, l, s.vals.dynOf(l.State()), o, args)
	default:
		return op.dyn(s, l, s.vals.heldOf(l.State()), o, args)
	}
}

// copyDyn makes another list of the same elements: parts of a tensor stay such.
func copyDyn(s *containers, l *py.List, _ *ssa.Value, _ *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	return one(&py.List{Cell: s.heap.New(l.State()), Elem: l.Elem})
}

// tensorOfMembers is torch.tensor of a list of lists of numbers, which are of one length.
func tensorOfMembers(s *containers, l *py.List, dyn *ssa.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	if n := memberNumber(l.Elem); n == nil || tensorElem(dyn) == nil {
		return nil, false
	} else if d := args[1]; n == ssa.FloatType && py.IsNone(d) {
		args[1] = py.Int(int64(tensor.Float32.Code()))
	}
	v := s.vals.emitName("aten::stack", dyn)
	if !py.IsNone(args[1]) {
		v = s.vals.emitName("aten::to.dtype", v, args[1])
	}
	return one(s.heap.Tensor(v))
}

func repeatDyn(s *containers, l *py.List, _ *ssa.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	return s.repeatAtRunTime(l, o, args[1])
}

func noDynForm(s *containers, _ *py.List, _ *ssa.Value, o *ssa.Op, _ []py.Value) ([]py.Value, bool) {
	s.fail("dynamic-container", "%s on a list whose length is only known at run time has no ONNX form", o.Kind.Name())
	return nil, false
}

// pureList emits the pure form of an operator that changes a run-time list. The
// element type takes in what is put into the list.
func (s *containers) pureList(name string, dyn *ssa.Value, rest ...py.Value) *ssa.Value {
	if n := len(rest); n > 0 && rest[n-1] == py.Value(py.Unset{}) {
		rest = append(rest[:n-1:n-1], s.vals.dummyOf(dyn.Type.(*ssa.ListType).Elem))
	} else if n > 0 && tensorElem(dyn) != nil {
		last := s.vals.member(rest[n-1])
		if _, ok := last.(*py.Tuple); ok {
			s.vals.noDynamic(&py.ListState{Elems: rest[n-1:]})
		}
		rest = append(rest[:n-1:n-1], last)
	}
	schema := aten.SchemaByName(name)
	operands := append([]*ssa.Value{dyn}, s.vals.operands(rest)...)
	n := s.build.cur.Append(ssa.Kind(schema.Name), s.loc, operands, dyn.Type)
	n.Schema = schema
	v := s.build.infer(n)[0]
	v.Type = dyn.Type
	elem := tensorElem(dyn)
	if elem == nil || len(rest) == 0 {
		return v
	}
	if x, ok := rest[len(rest)-1].(*py.Tensor); ok {
		t := s.vals.read(x).Tensor()
		if !ssa.SameType(elem, t) && elem.DType == t.DType {
			v.Type = &ssa.ListType{Elem: s.build.joinElems(elem, t)}
		}
	}
	return v
}

// tensorElem is the type of the tensors in a run-time list, nil if it holds others.
func tensorElem(dyn *ssa.Value) *ssa.TensorType {
	if lt, ok := dyn.Type.(*ssa.ListType); ok {
		return ssa.AsTensor(lt.Elem)
	}
	return nil
}

// joinDyn evaluates l + other, l += other and l.extend(other).
func joinDyn(s *containers, l *py.List, dyn *ssa.Value, o *ssa.Op, args []py.Value) ([]py.Value, bool) {
	other, ok := args[1].(*py.List)
	if !ok {
		s.fail("dynamic-container", "a list of run-time length is joined with something that is not a list")
	}
	if other.State().Columns != nil {
		s.vals.noDynamic(other.State())
	}
	if w := other.State().Dyn; w != nil {
		t := dyn.Type
		if a, b := tensorElem(dyn), tensorElem(w); a != nil && b != nil {
			t = &ssa.ListType{Elem: s.build.joinElems(a, b)}
		}
		s.vals.hold(other.State())
		dyn = s.pureList("aten::add.t", dyn, other)
		dyn.Type = t
	}
	s.heap.Hold(other.State().Elems...)
	for _, e := range other.State().Elems {
		dyn = s.pureList("aten::append.t", dyn, e)
	}
	switch o.Kind {
	case "aten::add":
		return one(s.newDyn(dyn, l.Elem))
	case "aten::extend":
		s.setDyn(l, dyn)
		return nil, true
	}
	s.setDyn(l, dyn)
	return one(l)
}
