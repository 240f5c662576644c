package form

import (
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// column is what column i of st tells of forms, without an operator: all elements are there of a list of run-time length that had no None by now.
func (s *Space) column(st *py.ListState, cols py.Spread, i int) *py.ListState {
	if cols.Optional && st.AtRunTime() && !st.Spread().Optional {
		return []*py.ListState{{Elems: []py.Value{py.Bool(true)}}, st}[i]
	}
	c, ok := st.Column(cols, i)
	if !ok {
		s.Refuse(Elements)
	}
	return c
}

// widenColumns makes the form of each column fit that of st too.
func (s *Space) widenColumns(f *Form, st *py.ListState) (changed bool) {
	changed = s.widenNone(f, st)
	for i, e := range f.elems {
		changed = s.widenList(e, s.column(st, f.cols, i)) || changed
	}
	if s.unknown(f) {
		s.Refuse(NoneAlone)
	}
	return changed
}

// widenNone makes the form of a list of run-time length one whose elements may be None, if those of st may be and had no None by now.
func (s *Space) widenNone(f *Form, st *py.ListState) bool {
	cols := st.Spread()
	if !cols.Optional || f.cols.Optional {
		return false
	}
	there, values := &Form{kind: runTime, raw: true, elem: ssa.BoolType}, *f
	values.raw = true
	*f = Form{kind: columns, cols: cols, raw: f.raw, elem: f.elem, elems: []*Form{there, &values}}
	if values.kind == runTime {
		f.elem = values.of
	}
	return true
}

// spreadOf tells which columns a list has whose form was one of known length, and of which st is another content.
func (s *Space) spreadOf(f *Form, st *py.ListState) py.Spread {
	cols := st.Spread()
	for _, e := range f.elems {
		var of py.Spread
		switch {
		case e.kind == fixed:
			of = (&py.ListState{Elems: []py.Value{py.AsValue(e.value)}}).Spread()
		case e.kind == option:
			of = py.Spread{Width: 2, Optional: true}
		case e.kind == tuple && !e.vector():
			of.Width = len(e.elems)
			of.Tuple, _ = e.typ.(*ssa.TupleType)
		}
		if of.Optional || cols.Width == 0 {
			cols = of
		}
	}
	return cols
}

// vector reports that a tuple is of numbers of one type, as py.Vector does.
func (f *Form) vector() bool {
	var of ssa.Type
	for i, e := range f.elems {
		t := e.typ
		if e.kind == fixed {
			t, _ = py.NumberType(py.AsValue(e.value))
		}
		if (e.kind != number && e.kind != fixed) || t == nil || i > 0 && t != of {
			return false
		}
		of = t
	}
	return len(f.elems) > 0
}

// toColumns turns the form of a list of known length into that of one of run-time length with columns.
func (s *Space) toColumns(f *Form, cols py.Spread, st *py.ListState) {
	next := Form{kind: columns, cols: cols, raw: f.raw, elem: f.elem}
	for i := range cols.Width {
		c := &Form{kind: list, raw: true}
		for _, e := range f.elems {
			c.elems = append(c.elems, s.part(e, cols, i))
		}
		next.elems = append(next.elems, c)
	}
	for i, c := range next.elems {
		s.toRunTime(c, s.column(st, cols, i))
	}
	*f = next
}

// unknown reports that nothing is known of elements of a list but that they are None.
func (s *Space) unknown(f *Form) bool {
	if f.kind == runTime {
		return f.elem == nil
	}
	return f.kind == columns && slices.ContainsFunc(f.elems, s.unknown)
}

// awaits reports that a list of known length has to become one of run-time length, and that what its elements are is not known before a later round
// over the loop: by now they are None.
func (s *Space) awaits(f *Form, st *py.ListState) bool {
	cols := s.spreadOf(f, st)
	if cols.Width == 0 {
		return false
	}
	next := *f
	s.toColumns(&next, cols, st)
	return s.unknown(&next)
}

// part is the form of what column i has of an element.
func (s *Space) part(e *Form, cols py.Spread, i int) *Form {
	switch {
	case e.kind == fixed:
		if x, ok := cols.Part(py.AsValue(e.value), i); ok {
			return Of(x)
		}
	case e.kind == option && cols.Optional:
		if i == 0 {
			return &Form{kind: number, typ: ssa.BoolType}
		}
		if e.elems[0] != nil {
			return e.elems[0]
		}
		return Of(py.Unset{})
	case e.kind == tuple && !cols.Optional && len(e.elems) == cols.Width:
		return e.elems[i]
	case cols.Optional && i == 0:
		return Of(py.Bool(true))
	case cols.Optional:
		return e
	}
	s.Refuse(Elements)
	return nil
}
