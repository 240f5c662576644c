package specialize

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// A list of run-time length holds tensors or numbers. One of tuples is there as a list for each place of the tuples, and one of what may be None as
// two lists: whether an element is there, and what it is then. An operator that moves elements does so in each of them.

// declared tells which columns a list makes, one without elements by the type of these.
func (s *containers) declared(l *py.List) py.Spread {
	if st := l.State(); len(st.Elems) > 0 {
		return st.Spread()
	}
	switch t := l.Elem.(type) {
	case *ssa.TupleType:
		if !memberList(t) {
			return py.Spread{Width: len(t.Elems), Tuple: t}
		}
	case *ssa.OptionalType:
		return py.Spread{Width: 2, Optional: true}
	}
	return py.Spread{}
}

// column is column i of a list. All elements are there of a list of run-time length that had no None by now.
func (s *values) column(st *py.ListState, cols py.Spread, i int) *py.ListState {
	if st.AtRunTime() && cols.Optional && !st.Spread().Optional {
		st = s.withNone(st)
	}
	c, ok := st.Column(cols, i)
	if !ok {
		s.noDynamic(st)
	}
	return c
}

// byColumn is a list of run-time length whose columns are made one by one.
func (s *values) byColumn(cols py.Spread, column func(i int) *py.ListState) *py.ListState {
	c := &py.Columns{Spread: cols}
	for i := range cols.Width {
		c.Lists = append(c.Lists, column(i))
	}
	return &py.ListState{Columns: c}
}

// noDynamic refuses what needs a list of tensors or numbers.
func (s *values) noDynamic(st *py.ListState) {
	what := "tuples"
	if st.Spread().Optional {
		what = "optional values"
	}
	s.fail("dynamic-container", "a list of %s cannot have a length that depends on data in ONNX", what)
}

// columnLists are the columns of l as lists of their own.
func (s *containers) columnLists(l *py.List) []*py.List {
	cols := l.State().Columns
	out := make([]*py.List, cols.Width)
	for i, c := range cols.Lists {
		out[i] = &py.List{Cell: s.heap.New(c), Elem: cols.Member(l.Elem, i)}
	}
	return out
}

// columnsOp evaluates an operator on a list with columns as one on each of these.
func (s *containers) columnsOp(o *ssa.Op, l *py.List, args []py.Value) ([]py.Value, bool) {
	name := o.Kind.Name()
	if op := listOps[name]; !op.moves {
		if op.dyn == nil {
			return nil, false
		}
		if name == "clear" {
			return op.dyn(s, l, nil, o, args)
		}
		return noDynForm(s, l, nil, o, args)
	}
	cols, lists := l.State().Columns, s.columnLists(l)
	results := make([][]py.Value, cols.Width)
	for i, c := range lists {
		rs, done := s.dynListOp(o, c, s.columnArgs(o, cols.Spread, i, c, args))
		if !done {
			return nil, false
		}
		results[i] = rs
		if name == "len" {
			return rs, true
		}
	}
	whole := func(of func(i int) *py.ListState) *py.ListState { return s.vals.byColumn(cols.Spread, of) }
	changed := false
	for i, c := range lists {
		changed = changed || c.State() != cols.Lists[i]
	}
	if changed {
		s.set(l.Cell, whole(func(i int) *py.ListState { return lists[i].State() }))
	}
	out := make([]py.Value, len(results[0]))
	for k, r := range results[0] {
		_, isList := r.(*py.List)
		switch {
		case name == "pop" || name == "__getitem__":
			parts := make([]py.Value, cols.Width)
			for i, rs := range results {
				parts[i] = rs[k]
			}
			out[k] = cols.Whole(parts)
		case r == py.Value(lists[0]):
			out[k] = l
		case isList:
			out[k] = &py.List{Elem: l.Elem, Cell: s.heap.New(whole(func(i int) *py.ListState { return results[i][k].(*py.List).State() }))}
		default:
			out[k] = r
		}
	}
	return out, true
}

// columnArgs are the arguments of an operator as column c of a list, with the number i, has them.
func (s *containers) columnArgs(o *ssa.Op, cols py.Spread, i int, c *py.List, args []py.Value) []py.Value {
	out := copied(args)
	out[0] = c
	kept := aten.Kept(o.Schema)
	for k, x := range args[1:] {
		if other, ok := x.(*py.List); ok && k+1 != kept {
			out[k+1] = &py.List{Cell: s.heap.New(s.vals.column(other.State(), cols, i)), Elem: c.Elem}
		}
	}
	if kept > 0 {
		part, ok := cols.Part(args[kept], i)
		if !ok {
			s.fail("dynamic-container", "an element that is put into a list of run-time length has another form than the others")
		}
		if _, unset := part.(py.Unset); unset {
			part = s.anyElement(c.State())
		}
		out[kept] = part
	}
	return out
}

// takesNone reports that an operator puts what may be None into a list.
func (s *containers) takesNone(o *ssa.Op, args []py.Value) bool {
	if kept := aten.Kept(o.Schema); kept > 0 {
		return py.IsOptional(args[kept])
	}
	if !listOps[o.Kind.Name()].moves {
		return false
	}
	return slices.ContainsFunc(args[1:], func(x py.Value) bool {
		l, ok := x.(*py.List)
		return ok && l.State().Spread().Optional
	})
}

// anyElement is an element for a list of run-time length that nobody reads.
func (s *containers) anyElement(st *py.ListState) py.Value {
	if st.Columns == nil {
		return s.vals.dummyOf(st.Dyn.Type.(*ssa.ListType).Elem)
	}
	parts := make([]py.Value, st.Columns.Width)
	for i, c := range st.Columns.Lists {
		parts[i] = s.anyElement(c)
	}
	return st.Columns.Whole(parts)
}

// withNone is a list of run-time length as one whose elements may be None.
func (s *values) withNone(st *py.ListState) *py.ListState {
	first := st
	for first.Columns != nil {
		first = first.Columns.Lists[0]
	}
	yes := s.build.cur.Append("prim::ListConstruct", s.loc, []*ssa.Value{s.build.constant(ssa.Bool(true))}, &ssa.ListType{Elem: ssa.BoolType}).Result(0)
	has := s.repeated(yes, s.emitName("aten::len.t", s.dynOf(first)))
	return &py.ListState{Columns: &py.Columns{Spread: py.Spread{Width: 2, Optional: true}, Lists: []*py.ListState{{Dyn: has}, st}}}
}
