package py

import "github.com/aton-project/aton/ssa"

// Columns are the lists that stand for one list of run-time length, since ONNX has lists of tensors and of numbers only: a list of pairs is a pair of
// lists. All are of one length.
type Columns struct {
	Spread
	Lists []*ListState
}

// Spread says which columns the elements of a list make.
type Spread struct {
	Width    int            // how many, 0 for elements that make none
	Tuple    *ssa.TupleType // of the tuples in the list, nil for plain ones
	Optional bool           // the columns are whether an element is there, and what it is then
}

// AtRunTime reports that the length of the list is known at run time only.
func (st *ListState) AtRunTime() bool { return st.Dyn != nil || st.Columns != nil }

// Spread tells which columns the list has, or would have if its length were known at run time only.
func (st *ListState) Spread() (s Spread) {
	if st.Columns != nil {
		return st.Columns.Spread
	}
	for _, e := range st.Elems {
		switch e := e.(type) {
		case *Maybe:
			return Spread{Width: 2, Optional: true}
		case Const:
			if e.IsNone() {
				return Spread{Width: 2, Optional: true}
			}
		case *Tuple:
			if _, vector := Vector(e); !vector && s.Width == 0 {
				s = Spread{Width: len(e.Elems), Tuple: e.Typ}
			}
		}
	}
	return s
}

// Vector reports that a tuple is of numbers of one type, and which: a list of run-time length has a vector in its place.
func Vector(t *Tuple) (number ssa.Type, ok bool) {
	for i, e := range t.Elems {
		n, isNumber := NumberType(e)
		if !isNumber || i > 0 && n != number {
			return nil, false
		}
		number = n
	}
	return number, len(t.Elems) > 0
}

// Column is column i of the list; ok is false where an element does not fit.
func (st *ListState) Column(s Spread, i int) (c *ListState, ok bool) {
	if st.AtRunTime() {
		if st.Columns == nil || len(st.Columns.Lists) != s.Width || st.Columns.Optional != s.Optional {
			return nil, false
		}
		return st.Columns.Lists[i], true
	}
	c = &ListState{Elems: make([]Value, len(st.Elems))}
	for k, e := range st.Elems {
		if c.Elems[k], ok = s.Part(e, i); !ok {
			return nil, false
		}
	}
	return c, true
}

// Part is what column i has of an element: Unset where that is None, and what it would be does not matter.
func (s Spread) Part(x Value, i int) (part Value, ok bool) {
	if s.Optional {
		has, val := Value(Bool(true)), x
		switch m := x.(type) {
		case *Maybe:
			has, val = Dyn(m.Has), m.Val
		default:
			if IsNone(x) {
				has, val = Bool(false), Unset{}
			}
		}
		return []Value{has, val}[i], true
	}
	switch x := x.(type) {
	case Unset:
		return x, true
	case *Tuple:
		if len(x.Elems) == s.Width {
			return x.Elems[i], true
		}
	}
	return nil, false
}

// Whole is the element of which parts are those in the columns.
func (s Spread) Whole(parts []Value) Value {
	if !s.Optional {
		return &Tuple{Elems: parts, Typ: s.Tuple}
	}
	has, ok := parts[0].(Dynamic)
	switch {
	case ok:
		return &Maybe{Has: has.Value, Val: parts[1]}
	case parts[0].(Const).Bool():
		return parts[1]
	}
	return None
}

// Member is the declared type of what column i has of elements of type t.
func (s Spread) Member(t ssa.Type, i int) ssa.Type {
	if !s.Optional {
		return MemberType(t, i)
	}
	if i == 0 {
		return ssa.BoolType
	}
	if o, ok := t.(*ssa.OptionalType); ok {
		return o.Elem
	}
	return t
}
