package form

import (
	"maps"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Join is the form of what is x at one end of an If and y at the other.
func (s *Space) Join(x, y any) *Form {
	f := Of(x)
	s.Widen(f, y)
	return f
}

// Widen makes a form fit x too, a value or the content of a cell, and reports whether it had to change.
func (s *Space) Widen(f *Form, x any) bool { return s.widen(f, rawOf(x)) }

func (s *Space) widen(f *Form, x any) bool {
	if s.absent(x) {
		return s.leave(f)
	}
	if py.IsOptional(py.AsValue(x)) && f.kind != option && f.kind != fixed {
		s.toOption(f)
		s.widen(f, x)
		return true
	}
	switch f.kind {
	case fixed:
		return s.widenFixed(f, x)
	case viewed:
		return s.widenView(f, x)
	case number:
		t, ok := py.NumberType(py.AsValue(x))
		if !ok {
			s.Refuse(NotNumber)
		}
		if t != f.typ {
			s.Refuse(NumberTypes, f.typ, t)
		}
	case tens:
		return s.widenTensor(f, x)
	case tuple:
		t, ok := x.(*py.Tuple)
		if !ok || len(t.Elems) != len(f.elems) {
			s.Refuse(NotTuple)
		}
		return s.widenAll(f.elems, t.Elems)
	case dict:
		return s.widenDict(f, x)
	case list, runTime, placed, columns:
		st := ListContent(x, s.Changes[1])
		if st == nil {
			s.Refuse(NotList)
		}
		return s.widenList(f, st)
	case object:
		return s.widenObject(f, x)
	case option:
		return s.widenOption(f, x)
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
	if s.same(f.value, x) {
		return false
	}
	ends := [2]any{f.value, x}
	if s.If != nil {
		if s.rejoin(f, ends) {
			return true
		}
		defer func() { f.ends = ends }()
	}
	switch {
	case s.absent(f.value):
		// set in the loop, or in this branch, only: what it is otherwise does not matter
		s.openLike(f, x, 1)
	case py.IsOptional(py.AsValue(x)) && !py.IsOptional(py.AsValue(f.value)):
		s.toOption(f)
		s.widen(f, x)
	case s.openView(f, x) || s.openChoice(f, x):
	default:
		if a, b := py.AsValue(f.value), py.AsValue(x); isNumber(a) && isNumber(b) {
			s.Numbers(a, b)
		}
		s.At(0, func() { s.open(f) })
		s.widen(f, x)
	}
	return true
}

func isNumber(x py.Value) bool {
	_, ok := py.NumberType(x)
	return ok
}

// rejoin gives a pair of objects the form that it has by now, and reports whether it has one: two names of one object stay that.
func (s *Space) rejoin(f *Form, ends [2]any) bool {
	if !isObject(ends[0]) || !isObject(ends[1]) {
		return false
	}
	if g := s.joined[ends]; g != nil {
		*f = Form{kind: again, elems: []*Form{g}}
		return true
	}
	if s.joined == nil {
		s.joined = map[[2]any]*Form{}
	}
	s.joined[ends] = f
	return false
}

func isObject(x any) bool {
	switch x.(type) {
	case *py.Tensor, *py.List, *py.Dict, *py.Object:
		return true
	}
	return false
}

// leave makes a form fit that there is no value. In an If, what the other branch has is not there behind it.
func (s *Space) leave(f *Form) bool {
	if s.If == nil || f.kind != fixed || s.absent(f.value) {
		return false
	}
	ends := [2]any{f.value, py.Unset{}}
	s.openLike(f, f.value, 0)
	f.ends = ends
	return true
}

// toOption makes a form one of what is None at times.
func (s *Space) toOption(f *Form) {
	if s.Strict {
		s.Refuse(NoneOrValue)
	}
	of := *f
	*f = Form{kind: option, elems: []*Form{&of}}
}

func (s *Space) widenOption(f *Form, x any) bool {
	if m, ok := x.(*py.Maybe); ok {
		x = m.Val
	} else if py.IsNone(py.AsValue(x)) {
		return f.elems[0] != nil && s.leave(f.elems[0])
	}
	if f.elems[0] == nil {
		f.elems[0] = Of(py.Unset{})
		s.widen(f.elems[0], x)
		return true
	}
	return s.widen(f.elems[0], x)
}

func (s *Space) widenList(f *Form, st *py.ListState) bool {
	switch {
	case f.kind == runTime && f.elem == nil && st.Spread().Width > 0: // nothing was known of its elements
		f.elem = f.of
		s.toColumns(f, st.Spread(), st)
		return true
	case (f.kind == runTime || f.kind == placed) && s.widenNone(f, st):
		s.widenColumns(f, st)
		return true
	case f.kind == runTime:
		return s.widenElem(f, st, 1)
	case f.kind == placed:
		return s.widenPlaced(f, st)
	case f.kind == columns:
		return s.widenColumns(f, st)
	case !st.AtRunTime() && len(st.Elems) == len(f.elems):
		return s.widenAll(f.elems, st.Elems)
	case s.Strict:
		s.Refuse(Lengths)
	case s.awaits(f, st):
		if s.If != nil {
			s.Refuse(NoneAlone)
		}
		s.Awaits = true
		return false
	}
	s.toRunTime(f, st)
	return true
}

func (s *Space) widenDict(f *Form, x any) (changed bool) {
	st := DictContent(x, s.Changes[1])
	if st == nil {
		s.Refuse(NotDict)
	}
	if len(st.Keys) != len(f.keys) {
		s.Refuse(Keys)
	}
	for i, k := range f.keys {
		if !st.Keys[i].Equal(k) {
			s.Refuse(KeyOrder)
		}
		changed = s.widen(f.elems[i], st.Vals[i]) || changed
	}
	return changed
}

func (s *Space) widenObject(f *Form, x any) (changed bool) {
	o, ok := x.(*py.Object)
	if !ok || o.Class != f.class || o.Src != nil {
		s.Refuse(NoForm)
	}
	names, elems := f.names, f.elems
	f.names, f.elems = nil, nil
	for i, n := range names {
		if c := o.Attrs[n]; c != nil {
			changed = s.widen(elems[i], rawOf(s.Changes[1].Of(c))) || changed
			f.names, f.elems = append(f.names, n), append(f.elems, elems[i])
		}
	}
	return changed || len(names) != len(f.names)
}

// widenTensor makes the form of a tensor, or of the memory of one, fit x too.
func (s *Space) widenTensor(f *Form, x any) bool {
	if b, ok := x.(base); ok {
		return s.widenType(f, b.v.Tensor())
	}
	t := tensorOf(x)
	if t == nil {
		s.Refuse(NotTensor)
	}
	var v *ssa.Value
	loosened := false
	s.At(1, func() {
		v = s.Read(t)
		loosened = s.loosen(f, t, v)
	})
	return s.widenType(f, v.Tensor()) || loosened
}

// tensorOf is a tensor, or one that the content of a cell is that of; nil for what is none.
func tensorOf(x any) *py.Tensor {
	switch x := x.(type) {
	case *py.Tensor:
		return x
	case shaped:
		return x.Tensor
	}
	return nil
}

func tensorForm(t *ssa.TensorType) Form {
	return Form{kind: tens, typ: t, wide: make([]bool, len(t.Dims))}
}

// openTensor gives a form that of a tensor, as it is at the moment at hand.
func (s *Space) openTensor(f *Form, x *py.Tensor) {
	v := s.Read(x)
	*f = tensorForm(v.Tensor())
	s.loosen(f, x, v)
	if s.If != nil {
		f.strides = heap.ViewOf(x).Strides
	}
}

// loosen notes how x, whose value is v, lies in memory if it is not row-major, and reports whether that is new.
func (s *Space) loosen(f *Form, x *py.Tensor, v *ssa.Value) bool {
	loose, spread := f.loose || !s.RowMajor(x, v), f.spread || s.Overlaps(x, v)
	changed := loose != f.loose || spread != f.spread
	f.loose, f.spread = loose, spread
	if !slices.EqualFunc(f.strides, heap.ViewOf(x).Strides, sym.Expr.Equal) {
		f.strides = nil
	}
	return changed
}

// open turns the form of a value that did not vary into one of which all varies that can.
func (s *Space) open(f *Form) {
	switch x := f.value.(type) {
	case base:
		*f = tensorForm(x.v.Tensor())
		f.raw = true
	case shaped:
		if s.If == nil {
			s.Refuse(ShapeInPlace)
		}
		s.openTensor(f, x.Tensor)
		f.raw, f.shape = true, true
	case *py.ListState:
		s.openList(f, x, Form{kind: list, raw: true})
	case *py.DictState:
		*f = Form{kind: dict, raw: true, keys: x.Keys, elems: formsOf(x.Vals)}
	case nil:
		s.Refuse(Attribute)
	case *py.Tensor:
		s.openTensor(f, x)
	case *py.Tuple:
		*f = Form{kind: tuple, typ: x.Typ, elems: formsOf(x.Elems)}
	case *py.List:
		s.openList(f, x.State(), Form{kind: list, elem: x.Elem})
	case *py.Dict:
		*f = Form{kind: dict, keys: x.State().Keys, typ: x.Typ, elems: formsOf(x.State().Vals)}
	case *py.Object:
		s.openObject(f, x)
	case *py.Maybe:
		*f = Form{kind: option, elems: formsOf([]py.Value{x.Val})}
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
	if st.AtRunTime() {
		s.openRunTime(f, st, known, nil)
		return
	}
	known.elems = formsOf(st.Elems)
	*f = known
}

// openRunTime is openList for a list of run-time length, under changes.
func (s *Space) openRunTime(f *Form, st *py.ListState, known Form, changes journal.Changes) {
	next := Form{raw: known.raw, elem: known.elem}
	if st.Columns != nil {
		next.kind, next.cols = columns, st.Columns.Spread
		for _, c := range st.Columns.Lists {
			e := &Form{}
			s.openRunTime(e, c, Form{raw: true}, changes)
			next.elems = append(next.elems, e)
		}
	} else if p := s.before(s.PoolOf(st, changes)); p != nil {
		next.kind, next.pool = placed, p
	} else {
		next = Form{kind: runTime, raw: known.raw, of: known.elem}
		s.joinElem(&next, st.Dyn.Type.(*ssa.ListType).Elem)
	}
	*f = next
}

// openObject is open for an object that the program made. A loop carries none.
func (s *Space) openObject(f *Form, x *py.Object) {
	if s.If == nil || x.Src != nil {
		s.Refuse(NoForm)
	}
	*f = Form{kind: object, class: x.Class, names: slices.Sorted(maps.Keys(x.Attrs))}
	for _, n := range f.names {
		f.elems = append(f.elems, Of(x.Attrs[n].Content()))
	}
}

// openConstant is open for numbers, and for None.
func (s *Space) openConstant(f *Form, x py.Value) {
	if py.IsNone(x) {
		if s.Strict {
			s.Refuse(NoneOrValue)
		}
		*f = Form{kind: option, elems: []*Form{nil}}
		return
	}
	if t, ok := py.NumberType(x); ok {
		*f = Form{kind: number, typ: t}
		return
	}
	if lit, ok := x.(py.Const); ok && lit.Kind == ssa.StrLit {
		s.Refuse(Strings)
	}
	s.Refuse(NoForm)
}

// openChoice makes the form of a string and the like one of two, if x is one too and an If tells which it is.
func (s *Space) openChoice(f *Form, x any) bool {
	if s.If == nil || !py.Choosable(py.AsValue(f.value)) || !py.Choosable(py.AsValue(x)) {
		return false
	}
	*f = Form{kind: choice}
	return true
}

// openLike gives a form that holds nothing yet the form that x has at a moment. Nothing of x is
// kept but constants: x belongs to a round that is thrown away, or to one branch.
func (s *Space) openLike(f *Form, x any, moment int) {
	like := func(xs []py.Value) []*Form {
		out := make([]*Form, len(xs))
		for i, e := range xs {
			if moment == 0 {
				out[i] = Of(e)
				s.leave(out[i])
			} else {
				out[i] = Of(py.Unset{})
				s.widen(out[i], e)
			}
		}
		return out
	}
	switch x := x.(type) {
	case py.Const:
		*f = Form{value: x}
	case *py.Tensor:
		s.At(moment, func() { s.openTensor(f, x) })
	case py.Dynamic:
		*f = Form{kind: number, typ: x.Type}
	case *py.Tuple:
		*f = Form{kind: tuple, typ: x.Typ, elems: like(x.Elems)}
	case *py.List:
		st := ListContent(x, s.Changes[moment])
		if st.AtRunTime() {
			s.openRunTime(f, st, Form{elem: x.Elem}, s.Changes[moment])
		} else {
			*f = Form{kind: list, elem: x.Elem, elems: like(st.Elems)}
		}
	case *py.Dict:
		st := DictContent(x, s.Changes[moment])
		s.CheckKeys(st) // sizes of another iteration
		*f = Form{kind: dict, typ: x.Typ, keys: st.Keys, elems: like(st.Vals)}
	case *py.Maybe:
		*f = Form{kind: option, elems: like([]py.Value{x.Val})}
	case *py.Choice:
		if s.If == nil {
			s.Refuse(Strings)
		}
		*f = Form{kind: choice}
	case *py.Object:
		s.openObjectLike(f, x, moment, like)
	default:
		if s.If == nil {
			s.Refuse(NoForm)
		}
		*f = Form{value: x}
	}
}

// openObjectLike is openLike for an object. One that a branch made has its attributes there only; another one stays itself.
func (s *Space) openObjectLike(f *Form, x *py.Object, moment int, like func([]py.Value) []*Form) {
	if s.If == nil {
		s.Refuse(NoForm)
	}
	names := slices.Sorted(maps.Keys(x.Attrs))
	if !slices.ContainsFunc(names, func(n string) bool { return x.Attrs[n].ID() > s.Start }) {
		*f = Form{value: x}
		return
	}
	*f = Form{kind: object, class: x.Class, names: names}
	for _, n := range names {
		f.elems = append(f.elems, like([]py.Value{py.AsValue(s.Changes[moment].Of(x.Attrs[n]))})...)
	}
}

// openView makes the form of a view one whose place varies, if x is a view of the same storage that takes the same steps.
func (s *Space) openView(f *Form, x any) bool {
	t, ok := f.value.(*py.Tensor)
	u, ok2 := x.(*py.Tensor)
	if !ok || !ok2 {
		return false
	}
	a, b := heap.ViewAt(t, s.Changes[0]), heap.ViewAt(u, s.Changes[1])
	if a.Storage.Cell.ID() > s.Start {
		return false
	}
	places, ok := heap.Alike(a, b)
	if !ok {
		return false
	}
	for _, p := range places {
		s.Numbers(a.Chain[p.Step].Args[p.Arg], b.Chain[p.Step].Args[p.Arg])
	}
	*f = Form{kind: viewed, value: t, view: a}
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
		if places, ok := heap.Alike(f.view, heap.ViewAt(u, s.Changes[1])); ok {
			return f.vary(places)
		}
	}
	*f = Form{kind: fixed, value: f.value}
	s.At(0, func() { s.open(f) })
	s.widen(f, x)
	return true
}

// widenElem makes the element type of a run-time list fit the elements that st has at a moment.
func (s *Space) widenElem(f *Form, st *py.ListState, moment int) bool {
	var e ssa.Type
	s.At(moment, func() { e = s.ElemType(st) })
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

// poolOf is the pool, from before the loop or If, of which the elements that the form of a list begins with and those of st are rows; nil if there is none. A
// list without elements fits any.
func (s *Space) poolOf(f *Form, st *py.ListState) *Pool {
	begin := &py.ListState{}
	if f.kind == list {
		for _, e := range f.elems {
			if e.kind != fixed && e.kind != viewed {
				return nil
			}
			begin.Elems = append(begin.Elems, py.AsValue(e.value))
		}
	}
	p, q := s.PoolOf(begin, s.Changes[0]), s.PoolOf(st, s.Changes[1])
	switch {
	case len(begin.Elems) == 0:
		p = q
	case !st.AtRunTime() && len(st.Elems) == 0:
		q = p
	}
	if p != q {
		return nil
	}
	return s.before(p)
}

// widenPlaced makes the form of a list of rows fit st too; one that holds others makes it a run-time list of tensors.
func (s *Space) widenPlaced(f *Form, st *py.ListState) bool {
	if !st.AtRunTime() && len(st.Elems) == 0 || s.PoolOf(st, s.Changes[1]) == f.pool {
		return false
	}
	next := Form{kind: runTime, raw: f.raw, of: f.elem}
	s.joinElem(&next, f.pool.Elem)
	s.widenElem(&next, st, 1)
	*f = next
	return true
}

// toRunTime turns the form of a list of known length into that of one of run-time length.
func (s *Space) toRunTime(f *Form, st *py.ListState) {
	if p := s.poolOf(f, st); p != nil {
		*f = Form{kind: placed, raw: f.raw, elem: f.elem, pool: p}
		return
	}
	if cols := s.spreadOf(f, st); cols.Width > 0 {
		s.toColumns(f, cols, st)
		return
	}
	next := Form{kind: runTime, raw: f.raw, of: f.elem}
	for _, e := range f.elems {
		switch e.kind {
		case fixed, viewed:
			s.widenElem(&next, &py.ListState{Elems: []py.Value{py.AsValue(e.value)}}, 0)
		case tens, number:
			s.joinElem(&next, e.typ)
		}
	}
	s.widenElem(&next, st, 1)
	*f = next
}
