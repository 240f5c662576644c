package form

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Widen makes a form fit x too, a value or the content of a cell, and reports whether it had to change.
func (s *Space) Widen(f *Form, x any) bool { return s.widen(f, rawOf(x)) }

func (s *Space) widen(f *Form, x any) bool {
	if _, ok := x.(py.Unset); ok {
		return false
	}
	switch f.kind {
	case fixed:
		return s.widenFixed(f, x)
	case viewed:
		return s.widenView(f, x)
	case number:
		t, ok := py.NumberType(py.AsValue(x))
		if !ok {
			s.Refuse("a loop-carried number becomes something else")
		}
		if t != f.typ {
			s.Refuse("a loop-carried number changes its type")
		}
	case tens:
		return s.widenTensor(f, x)
	case tuple:
		t, ok := x.(*py.Tuple)
		if !ok || len(t.Elems) != len(f.elems) {
			s.Refuse("a loop-carried tuple changes its form")
		}
		return s.widenAll(f.elems, t.Elems)
	case dict:
		return s.widenDict(f, x)
	case list, runTime, placed:
		st := ListContent(x, s.Changes)
		if st == nil {
			s.Refuse("a loop-carried list becomes something else")
		}
		return s.widenList(f, st)
	case option:
		if m, ok := x.(*py.Maybe); ok {
			x = m.Val
		} else if py.IsNone(py.AsValue(x)) {
			return false
		}
		if f.elems[0] == nil {
			f.elems[0] = Of(py.Unset{})
			s.widen(f.elems[0], x)
			return true
		}
		return s.widen(f.elems[0], x)
	}
	return false
}

func (s *Space) widenAll(fs []*Form, xs []py.Value) (changed bool) {
	for i, x := range xs {
		changed = s.widen(fs[i], x) || changed
	}
	return changed
}

func (s *Space) widenFixed(f *Form, x any) bool {
	if same(f.value, x) {
		return false
	}
	if _, ok := f.value.(py.Unset); ok {
		// set in the loop only: what it is before does not matter
		s.openLike(f, x)
		return true
	}
	if s.openView(f, x) {
		return true
	}
	s.open(f)
	s.widen(f, x)
	return true
}

func (s *Space) widenList(f *Form, st *py.ListState) bool {
	switch {
	case f.kind == runTime:
		return s.widenElem(f, st)
	case f.kind == placed:
		return s.widenPlaced(f, st)
	case st.Dyn == nil && len(st.Elems) == len(f.elems):
		return s.widenAll(f.elems, st.Elems)
	case s.Strict:
		s.Refuse("a list changes its length in the loop")
	}
	s.toRunTime(f, st)
	return true
}

func (s *Space) widenDict(f *Form, x any) (changed bool) {
	st := DictContent(x, s.Changes)
	if st == nil || len(st.Keys) != len(f.keys) {
		s.Refuse("the keys of a dict change in the loop")
	}
	for i, k := range f.keys {
		if !st.Keys[i].Equal(k) {
			s.Refuse("the keys of a dict change in the loop, or their order")
		}
		changed = s.widen(f.elems[i], st.Vals[i]) || changed
	}
	return changed
}

// widenTensor makes the form of a tensor, or of the memory of one, fit x too.
func (s *Space) widenTensor(f *Form, x any) bool {
	var v *ssa.Value
	loosened := false
	switch x := x.(type) {
	case base:
		v = x.v
	case *py.Tensor:
		s.Changes.Under(func() {
			v = s.Read(x)
			loosened = s.loosen(f, x, v)
		})
	default:
		s.Refuse("a loop-carried tensor becomes something else")
	}
	return s.widenType(f, v.Tensor()) || loosened
}

func tensorForm(t *ssa.TensorType) Form {
	return Form{kind: tens, typ: t, wide: make([]bool, len(t.Dims))}
}

// loosen notes how x, whose value is v, lies in memory if it is not row-major, and reports whether that is new.
func (s *Space) loosen(f *Form, x *py.Tensor, v *ssa.Value) bool {
	loose, spread := f.loose || !s.RowMajor(x, v), f.spread || s.Overlaps(x, v)
	changed := loose != f.loose || spread != f.spread
	f.loose, f.spread = loose, spread
	return changed
}

func (s *Space) widenType(f *Form, t *ssa.TensorType) bool {
	have := f.typ.(*ssa.TensorType)
	if t.DType == tensor.Undefined {
		t = t.WithDType(have.DType) // not known is not another type
	}
	if have.DType != t.DType {
		if have.DType != tensor.Undefined && t.DType != tensor.Undefined {
			s.Refuse("a loop-carried tensor changes its dtype from " + have.DType.String() + " to " + t.DType.String())
		}
		if have.DType != tensor.Undefined {
			f.typ = &ssa.TensorType{Ranked: have.Ranked, Dims: have.Dims}
			return true
		}
	}
	if !have.Ranked {
		return false
	}
	if !t.Ranked || len(t.Dims) != len(have.Dims) {
		if s.Strict {
			s.Refuse("a loop-carried tensor changes its rank")
		}
		s.Unranked()
		f.typ, f.wide = ssa.Unranked(have.DType), nil
		return true
	}
	changed := false
	for i := range have.Dims {
		if f.wide[i] || have.Dims[i].Equal(t.Dims[i]) && !s.Module.MadeSince(t.Dims[i], s.Fresh) {
			continue
		}
		dims := append([]sym.Expr(nil), have.Dims...)
		if dims[i] = sym.Varying(i); !f.member {
			dims[i] = s.Module.FreshSymbol("u", max(0, min(have.Dims[i].Min(), t.Dims[i].Min(), 1)))
		}
		have = ssa.Tensor(have.DType, dims...)
		f.typ, f.wide[i], changed = have, true, true
	}
	return changed
}

// open turns the form of a value that did not vary into one of which all varies that can.
func (s *Space) open(f *Form) {
	switch x := f.value.(type) {
	case base:
		*f = tensorForm(x.v.Tensor())
		f.raw = true
	case *py.ListState:
		s.openList(f, x, Form{kind: list, raw: true})
	case *py.DictState:
		*f = Form{kind: dict, raw: true, keys: x.Keys, elems: formsOf(x.Vals)}
	case *heap.View:
		s.Refuse("a tensor's shape is changed in place in the loop")
	case nil:
		s.Refuse("an attribute is set in the loop only")
	case *py.Tensor:
		*f = tensorForm(s.Read(x).Tensor())
		s.loosen(f, x, s.Read(x))
	case *py.Tuple:
		*f = Form{kind: tuple, typ: x.Typ, elems: formsOf(x.Elems)}
	case *py.List:
		s.openList(f, x.State(), Form{kind: list, elem: x.Elem})
	case *py.Dict:
		*f = Form{kind: dict, keys: x.State().Keys, typ: x.Typ, elems: formsOf(x.State().Vals)}
	case *py.Maybe:
		*f = Form{kind: option, elems: formsOf([]py.Value{x.Val})}
		s.open(f.elems[0])
	default:
		s.openConstant(f, py.AsValue(x))
	}
}

func formsOf(xs []py.Value) (out []*Form) {
	for _, x := range xs {
		out = append(out, Of(x))
	}
	return out
}

// openList is open for a list; known is the form of one of known length.
func (s *Space) openList(f *Form, st *py.ListState, known Form) {
	if p := s.before(s.PoolOf(st, nil)); p != nil && st.Dyn != nil {
		*f = Form{kind: placed, raw: known.raw, elem: known.elem, pool: p}
		return
	}
	if st.Dyn != nil {
		*f = Form{kind: runTime, raw: known.raw, of: known.elem}
		s.joinElem(f, st.Dyn.Type.(*ssa.ListType).Elem)
		return
	}
	known.elems = formsOf(st.Elems)
	*f = known
}

// openConstant is open for numbers, and for None.
func (s *Space) openConstant(f *Form, x py.Value) {
	if py.IsNone(x) {
		if s.Strict {
			s.Refuse("a value is None before the loop and set in it")
		}
		*f = Form{kind: option, elems: []*Form{nil}}
		return
	}
	if t, ok := py.NumberType(x); ok {
		*f = Form{kind: number, typ: t}
		return
	}
	if lit, ok := x.(py.Const); ok && lit.Kind == ssa.StrLit {
		s.Refuse("a string changes in the loop")
	}
	s.Refuse("a value that changes in the loop has no form in ONNX")
}

// openLike gives a form that holds nothing yet the form of x. Nothing of x is
// kept but constants: x belongs to a round that is thrown away.
func (s *Space) openLike(f *Form, x any) {
	like := func(xs []py.Value) []*Form {
		out := make([]*Form, len(xs))
		for i, e := range xs {
			out[i] = Of(py.Unset{})
			s.widen(out[i], e)
		}
		return out
	}
	switch x := x.(type) {
	case py.Const:
		f.value = x
	case *py.Tensor:
		s.Changes.Under(func() {
			v := s.Read(x)
			*f = tensorForm(v.Tensor())
			s.loosen(f, x, v)
		})
	case py.Dynamic:
		*f = Form{kind: number, typ: x.Type}
	case *py.Tuple:
		*f = Form{kind: tuple, typ: x.Typ, elems: like(x.Elems)}
	case *py.List:
		st := ListContent(x, s.Changes)
		if st.Dyn == nil {
			*f = Form{kind: list, elem: x.Elem, elems: like(st.Elems)}
		} else if p := s.before(s.PoolOf(st, s.Changes)); p != nil {
			*f = Form{kind: placed, elem: x.Elem, pool: p}
		} else {
			*f = Form{kind: runTime, of: x.Elem}
			s.widen(f, x)
		}
	case *py.Dict:
		st := DictContent(x, s.Changes)
		s.CheckKeys(st) // sizes of another iteration
		*f = Form{kind: dict, typ: x.Typ, keys: st.Keys, elems: like(st.Vals)}
	case *py.Maybe:
		*f = Form{kind: option, elems: []*Form{Of(py.Unset{})}}
		s.widen(f.elems[0], x.Val)
	default:
		s.Refuse("a value that is set in the loop has no form in ONNX")
	}
}

// openView makes the form of a view one whose place varies, if x is a view of the same storage that takes the same steps.
func (s *Space) openView(f *Form, x any) bool {
	t, ok := f.value.(*py.Tensor)
	u, ok2 := x.(*py.Tensor)
	if !ok || !ok2 || heap.ViewOf(t).Storage.Cell.ID() > s.Start {
		return false
	}
	places, ok := heap.Alike(heap.ViewOf(t), heap.ViewAt(u, s.Changes))
	if !ok {
		return false
	}
	*f = Form{kind: viewed, value: t, view: heap.ViewOf(t)}
	f.vary(places)
	return true
}

// vary makes arguments of a view vary too, and reports whether one did not by now.
func (f *Form) vary(places []heap.Place) (changed bool) {
	known := map[heap.Place]bool{}
	for _, p := range f.places {
		known[p] = true
	}
	for _, p := range places {
		if !known[p] {
			f.places, changed = append(f.places, p), true
			f.elems = append(f.elems, &Form{kind: number, typ: ssa.IntType})
		}
	}
	return changed
}

// widenView makes the form of a view fit x too; what is no such view makes it a tensor.
func (s *Space) widenView(f *Form, x any) bool {
	if u, ok := x.(*py.Tensor); ok {
		if places, ok := heap.Alike(f.view, heap.ViewAt(u, s.Changes)); ok {
			return f.vary(places)
		}
	}
	*f = Form{kind: fixed, value: f.value}
	s.open(f)
	s.widen(f, x)
	return true
}

// widenElem makes the element type of a run-time list fit the elements of st too.
func (s *Space) widenElem(f *Form, st *py.ListState) bool {
	var e ssa.Type
	s.Changes.Under(func() { e = s.ElemType(st) })
	return s.joinElem(f, e)
}

func (s *Space) joinElem(f *Form, e ssa.Type) bool {
	t := ssa.AsTensor(e)
	switch {
	case e == nil:
		return false
	case f.elem == nil:
		f.elem = e
		if t != nil {
			m := tensorForm(t)
			m.member = true
			f.elems = []*Form{&m}
		}
		return true
	case t == nil || len(f.elems) == 0:
		return false
	}
	changed := s.widenType(f.elems[0], t)
	f.elem = f.elems[0].typ
	return changed
}

// before is a pool that is from before the loop, nil for another one.
func (s *Space) before(p *Pool) *Pool {
	if p == nil || p.Storage().Cell.ID() > s.Start {
		return nil
	}
	return p
}

// poolOf is the pool of which the elements that the form of a list begins with and those of st are rows, nil if there is none.
func (s *Space) poolOf(f *Form, st *py.ListState) *Pool {
	var begin []py.Value
	for _, e := range f.elems {
		if e.kind != fixed && e.kind != viewed {
			return nil
		}
		begin = append(begin, py.AsValue(e.value))
	}
	return CommonPool(s.PoolOf, &py.ListState{Elems: begin}, st, nil, s.Changes, s.Start)
}

// CommonPool is the pool, from before the cell start, of which the elements of two lists are rows, nil if there is none. A list without elements fits any.
func CommonPool(of func(*py.ListState, journal.Changes) *Pool, a, b *py.ListState, inA, inB journal.Changes, start int) *Pool {
	p, q := of(a, inA), of(b, inB)
	switch {
	case a.Dyn == nil && len(a.Elems) == 0:
		p = q
	case b.Dyn == nil && len(b.Elems) == 0:
		q = p
	}
	if p != q || p == nil || p.Storage().Cell.ID() > start {
		return nil
	}
	return p
}

// widenPlaced makes the form of a list of rows fit st too; one that holds others makes it a run-time list of tensors.
func (s *Space) widenPlaced(f *Form, st *py.ListState) bool {
	if st.Dyn == nil && len(st.Elems) == 0 || s.PoolOf(st, s.Changes) == f.pool {
		return false
	}
	next := Form{kind: runTime, raw: f.raw, of: f.elem}
	s.joinElem(&next, f.pool.Elem)
	s.widenElem(&next, st)
	*f = next
	return true
}

// toRunTime turns the form of a list of known length into that of one of run-time length.
func (s *Space) toRunTime(f *Form, st *py.ListState) {
	if p := s.poolOf(f, st); p != nil {
		*f = Form{kind: placed, raw: f.raw, elem: f.elem, pool: p}
		return
	}
	next := Form{kind: runTime, raw: f.raw, of: f.elem}
	for _, e := range f.elems {
		switch e.kind {
		case fixed:
			s.Changes.Under(func() { s.joinElem(&next, s.ElemType(&py.ListState{Elems: []py.Value{py.AsValue(e.value)}})) })
		case tens, number:
			s.joinElem(&next, e.typ)
		}
	}
	s.widenElem(&next, st)
	*f = next
}
