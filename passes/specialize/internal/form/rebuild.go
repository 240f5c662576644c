package form

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Rebuild makes a value, or the content of a cell, of the values that next supplies for what varies.
func (s *Space) Rebuild(f *Form, next func(t ssa.Type) *ssa.Value) any {
	if f.kind == again {
		return f.elems[0].made
	}
	x := s.rebuild(f, next)
	if s.If == nil {
		return x
	}
	f.made = x
	switch f.kind {
	case tens, viewed, list, dict, runTime, placed, columns:
		if !f.raw || f.shape {
			s.Made(asObject(x), [2]any{asObject(f.ends[0]), asObject(f.ends[1])})
		}
	case object:
		s.Made(x, f.ends)
	}
	return x
}

// asObject is the tensor that the content of a cell is that of, and any other value itself.
func asObject(x any) any {
	if sh, ok := x.(shaped); ok {
		return sh.Tensor
	}
	return x
}

func (s *Space) rebuild(f *Form, next func(t ssa.Type) *ssa.Value) any {
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
		return py.Dyn(next(f.typ))
	case choice:
		return s.rechoose(f, next)
	case viewed:
		return s.Moved(f.view, f.places, parts())
	case tens:
		return s.rebuildTensor(f, next(f.typ))
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
	case object:
		o := &py.Object{Class: f.class, Attrs: map[string]*journal.Cell{}}
		for i, n := range f.names {
			o.Attrs[n] = s.Heap.New(s.Rebuild(f.elems[i], next))
		}
		return o
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
	case columns:
		st := &py.ListState{Columns: &py.Columns{Spread: f.cols}}
		for _, e := range f.elems {
			st.Columns.Lists = append(st.Columns.Lists, s.Rebuild(e, next).(*py.ListState))
		}
		if f.raw {
			return st
		}
		return &py.List{Cell: s.Heap.New(st), Elem: f.elem}
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

func (s *Space) rebuildTensor(f *Form, v *ssa.Value) any {
	if f.raw && !f.shape {
		return base{v}
	}
	var t *py.Tensor
	switch {
	case f.strides != nil:
		t = s.Heap.Laid(v, f.strides)
	case f.loose:
		t = s.Heap.Laid(v, nil)
	default:
		t = s.Heap.Tensor(v)
	}
	if f.spread {
		heap.ViewOf(t).Storage.Overlaps = true
		s.Lost(v)
	}
	if f.shape {
		return shaped{t}
	}
	return t
}

// rechoose makes a string and the like that is one of two.
func (s *Space) rechoose(f *Form, next func(t ssa.Type) *ssa.Value) py.Value {
	lift := func(x any) py.Value {
		return eachChoice(s, py.AsValue(x), func(*ssa.Value) *ssa.Value { return next(ssa.BoolType) })
	}
	switch {
	case s.absent(f.ends[0]):
		return lift(f.ends[1])
	case s.absent(f.ends[1]):
		return lift(f.ends[0])
	}
	yes := lift(f.ends[0])
	return &py.Choice{Cond: s.If.Operand(0), Yes: yes, No: lift(f.ends[1])}
}

// eachChoice gives a choice that a branch made other conditions.
func eachChoice(s *Space, x py.Value, cond func(*ssa.Value) *ssa.Value) py.Value {
	c, ok := x.(*py.Choice)
	if !ok || c.Cond.Block().Encloses(s.If.Block()) {
		return x
	}
	v := cond(c.Cond)
	yes := eachChoice(s, c.Yes, cond)
	return &py.Choice{Cond: v, Yes: yes, No: eachChoice(s, c.No, cond)}
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
	if s.absent(x) && f.kind != choice {
		return s.dummies(f, out, UnsetOrList)
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
	case choice:
		for _, end := range f.ends {
			there := !s.absent(x) && py.Same(py.AsValue(end), py.AsValue(x))
			eachChoice(s, py.AsValue(end), func(v *ssa.Value) *ssa.Value {
				if !there {
					v = s.Number(py.Bool(false))
				}
				out = append(out, v)
				return v
			})
		}
	case object:
		for i, n := range f.names {
			out = s.Flatten(f.elems[i], x.(*py.Object).Attrs[n].Content(), out)
		}
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
		return append(out, s.Read(tensorOf(x)))
	case tuple:
		return parts(x.(*py.Tuple).Elems)
	case list:
		return parts(ListContent(x, nil).Elems)
	case dict:
		return parts(DictContent(x, nil).Vals)
	case runTime:
		return append(out, s.Listed(ListContent(x, nil), f.elemType()))
	case columns:
		for i, e := range f.elems {
			out = s.flatten(e, s.Column(ListContent(x, nil), f.cols, i), out)
		}
		return out
	case placed:
		return append(out, s.Places(f.pool, ListContent(x, nil)))
	case option:
		if m, ok := x.(*py.Maybe); ok {
			return s.flatten(f.elems[0], m.Val, append(out, m.Has))
		}
		if py.IsNone(py.AsValue(x)) {
			return s.dummies(f, out, NoneOrList)
		}
		return s.flatten(f.elems[0], x, append(out, s.Number(py.Bool(true))))
	}
	return out
}

// dummies appends values for what varies where there is no value; why is why there may be none for a list.
func (s *Space) dummies(f *Form, out []*ssa.Value, why Clash) []*ssa.Value {
	if f == nil {
		return out
	}
	switch f.kind {
	case fixed:
		return out
	case number, tens:
		return append(out, s.Dummy(f.typ))
	case option:
		return s.dummies(f.elems[0], append(out, s.Number(py.Bool(false))), why)
	case tuple, list, dict, viewed, object:
		if f.kind != tuple && why == NoneOrList && s.If != nil {
			break // apart, each of the two paths knows what it has
		}
		for _, e := range f.elems {
			out = s.dummies(e, out, why)
		}
		return out
	}
	s.Refuse(why)
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
	case columns:
		st := ListContent(x, changes)
		for i, e := range f.elems {
			changed = st != nil && s.Hold(e, s.column(st, f.cols, i), changes) || changed
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
