package form

import (
	"math"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Rebuild makes a value, or the content of a cell, of the values that next supplies for what varies.
func (s *Space) Rebuild(f *Form, next func(t ssa.Type) *ssa.Value) any {
	parts := func() []py.Value {
		out := make([]py.Value, len(f.elems))
		for i, e := range f.elems {
			out[i] = py.AsValue(s.Rebuild(e, next))
		}
		return out
	}
	switch f.kind {
	case fixed:
		return f.value
	case number:
		v := next(f.typ)
		if f.typ == ssa.IntType {
			v.Sym = []sym.Expr{s.Module.FreshSymbol("n", math.MinInt64)}
		}
		return py.Dyn(v)
	case viewed:
		return s.Moved(f.view, f.places, parts())
	case tens:
		v := next(f.typ)
		if t := v.Tensor(); t != nil && !t.Ranked {
			s.Lost(v)
		}
		switch {
		case f.raw:
			return base{v}
		case f.loose:
			t := s.Heap.Laid(v, nil)
			if f.spread {
				heap.ViewOf(t).Storage.Overlaps = true
				s.Lost(v)
			}
			return t
		}
		return s.Heap.Tensor(v)
	case tuple:
		t, _ := f.typ.(*ssa.TupleType)
		return &py.Tuple{Typ: t, Elems: parts()}
	case list:
		if elems := parts(); f.raw {
			return &py.ListState{Elems: elems}
		} else {
			return s.Heap.List(f.elem, elems)
		}
	case dict:
		d := &py.DictState{Keys: f.keys, Vals: parts()}
		if f.raw {
			return d
		}
		return &py.Dict{Cell: s.Heap.New(d), Typ: f.typ}
	case runTime:
		v := next(&ssa.ListType{Elem: f.elemType()})
		if f.raw {
			return &py.ListState{Dyn: v}
		}
		elem := f.elemType()
		if s.Vectors(f.of) {
			elem = f.of
		}
		return &py.List{Cell: s.Heap.New(&py.ListState{Dyn: v}), Elem: elem}
	case placed:
		st := s.Rows(f.pool, next(placesType))
		if f.raw {
			return st
		}
		return &py.List{Cell: s.Heap.New(st), Elem: f.elem}
	case option:
		has := next(ssa.BoolType)
		s.Lost(has)
		if f.elems[0] == nil {
			return py.None
		}
		return &py.Maybe{Has: has, Val: py.AsValue(s.Rebuild(f.elems[0], next))}
	}
	return nil
}

var placesType = &ssa.ListType{Elem: ssa.IntType}

// elemType is the type of the elements of a run-time list, of which nothing is known if it is always empty.
func (f *Form) elemType() ssa.Type {
	if f.elem == nil {
		return ssa.Unranked(tensor.Float32)
	}
	return f.elem
}

// Flatten appends what varies of x, in the order in which Rebuild asks for it.
func (s *Space) Flatten(f *Form, x any, out []*ssa.Value) []*ssa.Value {
	return s.flatten(f, rawOf(x), out)
}

func (s *Space) flatten(f *Form, x any, out []*ssa.Value) []*ssa.Value {
	if _, ok := x.(py.Unset); ok {
		return s.dummies(f, out)
	}
	parts := func(xs []py.Value) []*ssa.Value {
		for i, e := range f.elems {
			out = s.flatten(e, xs[i], out)
		}
		return out
	}
	switch f.kind {
	case number:
		return append(out, s.Number(py.AsValue(x)))
	case viewed:
		chain := heap.ViewOf(x.(*py.Tensor)).Chain
		args := make([]py.Value, len(f.places))
		for i, p := range f.places {
			args[i] = chain[p.Step].Args[p.Arg]
		}
		return parts(args)
	case tens:
		if r, ok := x.(base); ok {
			return append(out, r.v)
		}
		return append(out, s.Read(x.(*py.Tensor)))
	case tuple:
		return parts(x.(*py.Tuple).Elems)
	case list:
		return parts(ListContent(x, nil).Elems)
	case dict:
		return parts(DictContent(x, nil).Vals)
	case runTime:
		return append(out, s.Listed(ListContent(x, nil), f.elemType()))
	case placed:
		return append(out, s.Places(f.pool, ListContent(x, nil)))
	case option:
		if m, ok := x.(*py.Maybe); ok {
			return s.flatten(f.elems[0], m.Val, append(out, m.Has))
		}
		if py.IsNone(py.AsValue(x)) {
			return s.dummies(f, out)
		}
		return s.flatten(f.elems[0], x, append(out, s.Number(py.Bool(true))))
	}
	return out
}

// dummies appends values for what varies where there is no value.
func (s *Space) dummies(f *Form, out []*ssa.Value) []*ssa.Value {
	if f == nil {
		return out
	}
	switch f.kind {
	case fixed:
		return out
	case number, tens:
		return append(out, s.Dummy(f.typ))
	case option:
		return s.dummies(f.elems[0], append(out, s.Number(py.Bool(false))))
	case tuple, list, dict, viewed:
		for _, e := range f.elems {
			out = s.dummies(e, out)
		}
		return out
	}
	s.Refuse("a value is None before the loop and a container in it")
	return nil
}

// After is the form behind the loop: sizes that vary get symbols of their own.
func (s *Space) After(f *Form) *Form {
	if f == nil {
		return nil
	}
	c := *f
	if t, ok := f.typ.(*ssa.TensorType); ok && f.kind == tens && t.Ranked {
		dims := append([]sym.Expr(nil), t.Dims...)
		for i, w := range f.wide {
			if w {
				dims[i] = s.Module.FreshSymbol("u", 0)
			}
		}
		c.typ = ssa.Tensor(t.DType, dims...)
	}
	c.elems = nil
	for _, e := range f.elems {
		c.elems = append(c.elems, s.After(e))
	}
	return &c
}

// Hold notes that a list of run-time length has copies of the elements of x, and reports whether that is new.
func (s *Space) Hold(f *Form, x any, changes journal.Changes) (changed bool) {
	if f == nil {
		return false
	}
	each := func(xs []py.Value) {
		for i := range min(len(xs), len(f.elems)) {
			changed = s.Hold(f.elems[i], xs[i], changes) || changed
		}
	}
	switch f.kind {
	case tuple:
		if t, ok := x.(*py.Tuple); ok {
			each(t.Elems)
		}
	case option:
		if m, ok := x.(*py.Maybe); ok {
			x = m.Val
		}
		return s.Hold(f.elems[0], x, changes)
	case dict:
		if st := DictContent(x, changes); st != nil {
			each(st.Vals)
		}
	case list:
		if st := ListContent(x, changes); st != nil {
			each(st.Elems)
		}
	case runTime:
		st := ListContent(x, changes)
		if st == nil {
			return false
		}
		changes.Under(func() {
			if st.Parts != nil {
				changed = s.Heap.Hold(st.Parts.Self)
			}
			changed = s.Heap.Hold(st.Elems...) || changed
		})
		for _, e := range st.Elems {
			if inner, ok := e.(*py.List); ok {
				changed = s.Heap.Copied(inner.Cell) || changed
			}
		}
	}
	return changed
}
