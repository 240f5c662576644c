package specialize

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

type slotKind int

const (
	fixed   slotKind = iota // the same value in every iteration: not carried
	number                  // an int, float or bool
	tens                    // a tensor
	tup                     // a tuple, member by member
	lst                     // a list of fixed length, element by element
	dct                     // a dict of fixed keys
	dynList                 // a list of run-time length
	opt                     // None or a value
	viewed                  // a view of memory outside: the numbers that say where it begins
)

// slot describes how a value is carried from one iteration to the next.
type slot struct {
	kind  slotKind
	val   value // fixed: the value
	typ   ssa.Type
	wide  []bool // dims of a tensor that differ between iterations
	elems []*slot
	elem  ssa.Type
	ttyp  *ssa.TupleType
	keys  []ssa.Literal
	dtyp  ssa.Type
	raw   bool // the content of a cell instead of a value
	// view is the form of a viewed slot, and places the arguments in it that are carried.
	view   *tensorState
	places []argPlace
	loose  bool // a tensor that is not known to be row-major in all iterations
}

// rawBase, *listState and *dictState are the contents of cells when they are carried.
type rawBase struct{ v *ssa.Value }

func rawOf(content any) any {
	if st, ok := content.(storageState); ok {
		return rawBase{st.base}
	}
	return content
}

func sameRaw(a, b any) bool {
	switch a := a.(type) {
	case rawBase:
		b, ok := b.(rawBase)
		return ok && a.v == b.v
	case *listState:
		b, ok := b.(*listState)
		if !ok || a.dyn != b.dyn || len(a.elems) != len(b.elems) {
			return false
		}
		for i := range a.elems {
			if !same(a.elems[i], b.elems[i]) {
				return false
			}
		}
		return true
	case *tensorState, *dictState:
		return a == b
	}
	return same(a, b)
}

// loopState is the attempt to keep one loop.
type loopState struct {
	s       *spec
	counted bool // unrolling is possible
	start   int  // cells with a greater id were made in the loop
	changes map[*cell]any
}

// widen makes sl fit x too and reports whether it had to change. It reads
// tensors under the changes of the body.
func (l *loopState) widen(sl *slot, x any) bool {
	s := l.s
	if _, ok := x.(unset); ok {
		return false
	}
	if sl.kind == fixed {
		if sameRaw(sl.val, x) {
			return false
		}
		if _, ok := sl.val.(unset); ok {
			// set in the loop only: what it is before does not matter
			l.openLike(sl, x)
			return true
		}
		if l.openView(sl, x) {
			return true
		}
		l.open(sl)
		l.widen(sl, x)
		return true
	}
	switch sl.kind {
	case viewed:
		return l.widenView(sl, x)
	case number:
		t, ok := numberType(x)
		if !ok {
			l.refuse("a loop-carried number becomes something else")
		}
		if t != sl.typ {
			if sl.typ == ssa.IntType && t == ssa.FloatType || sl.typ == ssa.FloatType && t == ssa.IntType {
				changed := sl.typ != ssa.FloatType
				sl.typ = ssa.FloatType
				return changed
			}
			l.refuse("a loop-carried number changes its type")
		}
		return false
	case tens:
		var v *ssa.Value
		loosened := false
		switch x := x.(type) {
		case rawBase:
			v = x.v
		case *tensorRef:
			under(l.changes, func() {
				v = s.read(x)
				loosened = l.loosen(sl, x, v)
			})
		default:
			l.refuse("a loop-carried tensor becomes something else")
		}
		return l.widenTensor(sl, v.Tensor()) || loosened
	case tup:
		t, ok := x.(*tuple)
		if !ok || len(t.elems) != len(sl.elems) {
			l.refuse("a loop-carried tuple changes its form")
		}
		changed := false
		for i, e := range t.elems {
			changed = l.widen(sl.elems[i], e) || changed
		}
		return changed
	case lst:
		st := listContent(x, l.changes)
		if st == nil {
			l.refuse("a loop-carried list becomes something else")
		}
		if st.dyn != nil || len(st.elems) != len(sl.elems) {
			if l.counted {
				s.unroll("a list changes its length in the loop")
			}
			l.toDynamic(sl, st)
			return true
		}
		changed := false
		for i, e := range st.elems {
			changed = l.widen(sl.elems[i], e) || changed
		}
		return changed
	case dct:
		st := dictContent(x, l.changes)
		if st == nil || len(st.keys) != len(sl.keys) {
			l.refuse("the keys of a dict change in the loop")
		}
		changed := false
		for i, k := range sl.keys {
			j := st.find(k)
			if j < 0 {
				l.refuse("the keys of a dict change in the loop")
			}
			changed = l.widen(sl.elems[i], st.vals[j]) || changed
		}
		return changed
	case dynList:
		st := listContent(x, l.changes)
		if st == nil {
			l.refuse("a loop-carried list becomes something else")
		}
		return l.widenElem(sl, st)
	case opt:
		if m, ok := x.(*maybe); ok {
			x = m.val
		} else if isNone(x) {
			return false
		}
		if sl.elems[0] == nil {
			sl.elems[0] = &slot{kind: fixed, val: unset{}}
			l.widen(sl.elems[0], x)
			return true
		}
		return l.widen(sl.elems[0], x)
	}
	return false
}

func (l *loopState) refuse(why string) {
	if l.counted {
		l.s.unroll("%s", why)
	}
	l.s.fail("loop-carried", "%s", why)
}

func listContent(x any, changes map[*cell]any) *listState {
	switch x := x.(type) {
	case *listState:
		return x
	case *list:
		return contentIn(changes, x.c).(*listState)
	}
	return nil
}

func dictContent(x any, changes map[*cell]any) *dictState {
	switch x := x.(type) {
	case *dictState:
		return x
	case *dict:
		return contentIn(changes, x.c).(*dictState)
	}
	return nil
}

// open turns a fixed slot into the carried form of its value.
func (l *loopState) open(sl *slot) {
	s := l.s
	v := sl.val
	fix := func(x value) *slot { return &slot{kind: fixed, val: x} }
	switch x := v.(type) {
	case rawBase:
		*sl = slot{kind: tens, typ: x.v.Tensor(), raw: true}
		sl.wide = make([]bool, len(x.v.Tensor().Dims))
		return
	case *listState:
		if x.dyn != nil {
			*sl = slot{kind: dynList, raw: true}
			l.joinElem(sl, x.dyn.Type.(*ssa.ListType).Elem)
			return
		}
		*sl = slot{kind: lst, raw: true}
		for _, e := range x.elems {
			sl.elems = append(sl.elems, fix(e))
		}
		return
	case *dictState:
		*sl = slot{kind: dct, raw: true, keys: x.keys}
		for _, e := range x.vals {
			sl.elems = append(sl.elems, fix(e))
		}
		return
	case *tensorState:
		l.refuse("a tensor's shape is changed in place in the loop")
	case nil:
		l.refuse("an attribute is set in the loop only")
	case *tensorRef:
		t := s.read(x).Tensor()
		*sl = slot{kind: tens, typ: t, wide: make([]bool, len(t.Dims))}
		l.loosen(sl, x, s.read(x))
		return
	case *tuple:
		*sl = slot{kind: tup, ttyp: x.typ}
		for _, e := range x.elems {
			sl.elems = append(sl.elems, fix(e))
		}
		return
	case *list:
		st := x.state()
		if st.dyn != nil {
			*sl = slot{kind: dynList}
			l.joinElem(sl, st.dyn.Type.(*ssa.ListType).Elem)
			return
		}
		*sl = slot{kind: lst, elem: x.elem}
		for _, e := range st.elems {
			sl.elems = append(sl.elems, fix(e))
		}
		return
	case *dict:
		*sl = slot{kind: dct, keys: x.state().keys, dtyp: x.typ}
		for _, e := range x.state().vals {
			sl.elems = append(sl.elems, fix(e))
		}
		return
	case *maybe:
		*sl = slot{kind: opt, elems: []*slot{fix(x.val)}}
		l.open(sl.elems[0])
		return
	}
	if isNone(v) {
		if l.counted {
			s.unroll("a value is None before the loop and set in it")
		}
		*sl = slot{kind: opt, elems: []*slot{nil}}
		return
	}
	if t, ok := numberType(v); ok {
		*sl = slot{kind: number, typ: t}
		return
	}
	if lit, ok := v.(ssa.Literal); ok && lit.Kind == ssa.StrLit {
		l.refuse("a string changes in the loop")
	}
	l.refuse("a value that changes in the loop has no form in ONNX")
}

// openLike gives a slot that holds nothing yet the form of x. Nothing of x is
// kept but constants: x belongs to a round that is thrown away.
func (l *loopState) openLike(sl *slot, x any) {
	like := func(xs []value) []*slot {
		out := make([]*slot, len(xs))
		for i, e := range xs {
			out[i] = &slot{kind: fixed, val: unset{}}
			l.widen(out[i], e)
		}
		return out
	}
	switch x := x.(type) {
	case ssa.Literal:
		sl.val = x
		return
	case *tensorRef:
		under(l.changes, func() {
			t := l.s.read(x).Tensor()
			*sl = slot{kind: tens, typ: t, wide: make([]bool, len(t.Dims))}
			l.loosen(sl, x, l.s.read(x))
		})
		return
	case *ssa.Value:
		*sl = slot{kind: number, typ: x.Type}
		return
	case *tuple:
		*sl = slot{kind: tup, ttyp: x.typ, elems: like(x.elems)}
		return
	case *list:
		if st := listContent(x, l.changes); st.dyn == nil {
			*sl = slot{kind: lst, elem: x.elem, elems: like(st.elems)}
			return
		}
		*sl = slot{kind: dynList}
		l.widen(sl, x)
		return
	case *dict:
		st := dictContent(x, l.changes)
		*sl = slot{kind: dct, dtyp: x.typ, keys: st.keys, elems: like(st.vals)}
		return
	case *maybe:
		*sl = slot{kind: opt, elems: []*slot{{kind: fixed, val: unset{}}}}
		l.widen(sl.elems[0], x.val)
		return
	}
	l.refuse("a value that is set in the loop has no form in ONNX")
}

// loosen notes that x, whose value is v, is not row-major, and reports whether that is new.
func (l *loopState) loosen(sl *slot, x *tensorRef, v *ssa.Value) bool {
	if how, _ := l.s.isContiguous(x.state().strides, v.Tensor()); how == shares || sl.loose {
		return false
	}
	sl.loose = true
	return true
}

func (l *loopState) widenTensor(sl *slot, t *ssa.TensorType) bool {
	have := sl.typ.(*ssa.TensorType)
	if t.DType == tensor.Undefined {
		t = t.WithDType(have.DType) // not known is not another type
	}
	if have.DType != t.DType {
		if have.DType != tensor.Undefined && t.DType != tensor.Undefined {
			l.refuse("a loop-carried tensor changes its dtype from " + have.DType.String() + " to " + t.DType.String())
		}
		if have.DType != tensor.Undefined {
			sl.typ = &ssa.TensorType{Ranked: have.Ranked, Dims: have.Dims}
			return true
		}
	}
	if !have.Ranked {
		return false
	}
	if !t.Ranked || len(t.Dims) != len(have.Dims) {
		if l.counted {
			l.s.unroll("a loop-carried tensor changes its rank")
		}
		sl.typ, sl.wide = ssa.Unranked(have.DType), nil
		return true
	}
	changed := false
	for i := range have.Dims {
		if sl.wide[i] || have.Dims[i].Equal(t.Dims[i]) {
			continue
		}
		dims := append([]sym.Expr(nil), have.Dims...)
		dims[i] = l.s.m.FreshSymbol("u", max(0, min(have.Dims[i].Min(), t.Dims[i].Min(), 1)))
		have = ssa.Tensor(have.DType, dims...)
		sl.typ, sl.wide[i], changed = have, true, true
	}
	return changed
}

// widenElem makes the element type of a run-time list fit the elements of st too.
func (l *loopState) widenElem(sl *slot, st *listState) bool {
	var e ssa.Type
	under(l.changes, func() { e = l.s.dynElem(st) })
	return l.joinElem(sl, e)
}

func (l *loopState) joinElem(sl *slot, e ssa.Type) bool {
	t := ssa.AsTensor(e)
	switch {
	case e == nil:
		return false
	case sl.elem == nil:
		sl.elem = e
		if t != nil {
			sl.elems = []*slot{{kind: tens, typ: t, wide: make([]bool, len(t.Dims))}}
		}
		return true
	case t == nil || len(sl.elems) == 0:
		return false
	}
	changed := l.widenTensor(sl.elems[0], t)
	sl.elem = sl.elems[0].typ
	return changed
}

// toDynamic turns a list of fixed length into one of run-time length.
func (l *loopState) toDynamic(sl *slot, st *listState) {
	next := slot{kind: dynList, raw: sl.raw}
	for _, e := range sl.elems {
		switch e.kind {
		case fixed:
			under(l.changes, func() { l.joinElem(&next, l.s.dynElem(&listState{elems: []value{e.val}})) })
		case tens, number:
			l.joinElem(&next, e.typ)
		}
	}
	l.widenElem(&next, st)
	*sl = next
}

// bind makes the value of a slot from values that next supplies.
func (l *loopState) bind(sl *slot, next func(t ssa.Type) *ssa.Value) any {
	s := l.s
	switch sl.kind {
	case fixed:
		return sl.val
	case number:
		v := next(sl.typ)
		if sl.typ == ssa.IntType {
			v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
		}
		return v
	case viewed:
		args := make([]value, len(sl.elems))
		for i, e := range sl.elems {
			args[i] = l.bind(e, next)
		}
		return s.movedTo(sl.view, sl.places, args)
	case tens:
		v := next(sl.typ)
		if sl.raw {
			return rawBase{v}
		}
		if sl.loose {
			return s.newLaid(v, nil)
		}
		return s.newTensor(v)
	case tup:
		t := &tuple{typ: sl.ttyp}
		for _, e := range sl.elems {
			t.elems = append(t.elems, l.bind(e, next))
		}
		return t
	case lst:
		elems := make([]value, len(sl.elems))
		for i, e := range sl.elems {
			elems[i] = l.bind(e, next)
		}
		if sl.raw {
			return &listState{elems: elems}
		}
		return s.newList(sl.elem, elems)
	case dct:
		d := &dictState{keys: sl.keys}
		for _, e := range sl.elems {
			d.vals = append(d.vals, l.bind(e, next))
		}
		if sl.raw {
			return d
		}
		return &dict{c: s.newCell(d), typ: sl.dtyp}
	case dynList:
		elem := sl.elem
		if elem == nil {
			elem = ssa.Unranked(tensor.Float32)
		}
		v := next(&ssa.ListType{Elem: elem})
		if sl.raw {
			return &listState{dyn: v}
		}
		return &list{c: s.newCell(&listState{dyn: v}), elem: elem}
	case opt:
		has := next(ssa.BoolType)
		if sl.elems[0] == nil {
			return ssa.None
		}
		return &maybe{has: has, val: l.bind(sl.elems[0], next)}
	}
	return nil
}

// flatten gives the carried values of x in the order in which bind asks for them.
func (l *loopState) flatten(sl *slot, x any, out []*ssa.Value) []*ssa.Value {
	s := l.s
	if _, ok := x.(unset); ok {
		return l.dummies(sl, out)
	}
	switch sl.kind {
	case number:
		v := s.materialize(x)
		if v.Type == ssa.IntType && sl.typ == ssa.FloatType {
			v = s.emitName("aten::Float.Scalar", v)
		}
		return append(out, v)
	case viewed:
		chain := x.(*tensorRef).state().chain
		for i, p := range sl.places {
			out = l.flatten(sl.elems[i], chain[p.step].args[p.arg], out)
		}
		return out
	case tens:
		if r, ok := x.(rawBase); ok {
			return append(out, r.v)
		}
		return append(out, s.read(x.(*tensorRef)))
	case tup:
		for i, e := range x.(*tuple).elems {
			out = l.flatten(sl.elems[i], e, out)
		}
	case lst:
		for i, e := range listContent(x, nil).elems {
			out = l.flatten(sl.elems[i], e, out)
		}
	case dct:
		st := dictContent(x, nil)
		for i, k := range sl.keys {
			out = l.flatten(sl.elems[i], st.vals[st.find(k)], out)
		}
	case dynList:
		st := listContent(x, nil)
		if st.dyn == nil && len(st.elems) == 0 {
			elem := sl.elem
			if elem == nil {
				elem = ssa.Unranked(tensor.Float32)
			}
			return append(out, s.cur.Append("prim::ListConstruct", s.loc, nil, &ssa.ListType{Elem: elem}).Results[0])
		}
		return append(out, s.dynamic(st, nil))
	case opt:
		switch m := x.(type) {
		case *maybe:
			out = append(out, m.has)
			return l.flatten(sl.elems[0], m.val, out)
		case ssa.Literal:
			if m.IsNone() {
				out = append(out, s.constant(ssa.Bool(false)))
				return l.dummies(sl.elems[0], out)
			}
		}
		out = append(out, s.constant(ssa.Bool(true)))
		return l.flatten(sl.elems[0], x, out)
	}
	return out
}

// dummies supplies values for a slot that holds None.
func (l *loopState) dummies(sl *slot, out []*ssa.Value) []*ssa.Value {
	s := l.s
	if sl == nil {
		return out
	}
	switch sl.kind {
	case fixed:
		return out
	case number:
		return append(out, s.materialize(s.dummy(&ssa.Value{Type: sl.typ}, nil)))
	case tens:
		return append(out, s.read(s.dummyTensor(sl.typ.(*ssa.TensorType))))
	case opt:
		return l.dummies(sl.elems[0], append(out, s.constant(ssa.Bool(false))))
	case tup, lst, dct, viewed:
		for _, e := range sl.elems {
			out = l.dummies(e, out)
		}
		return out
	}
	s.fail("loop-carried", "a value is None before the loop and a container in it")
	return nil
}

// content puts a raw value back into the form of a cell's content.
func (l *loopState) content(old any, raw any) any {
	if r, ok := raw.(rawBase); ok {
		st := old.(storageState)
		st.base = r.v
		return st
	}
	return raw
}

// after is the slot as it is behind the loop: sizes that vary get symbols of their own.
func (l *loopState) after(sl *slot) *slot {
	if sl == nil {
		return nil
	}
	c := *sl
	if t, ok := sl.typ.(*ssa.TensorType); ok && sl.kind == tens && t.Ranked {
		dims := append([]sym.Expr(nil), t.Dims...)
		for i, w := range sl.wide {
			if w {
				dims[i] = l.s.m.FreshSymbol("u", 0)
			}
		}
		c.typ = ssa.Tensor(t.DType, dims...)
	}
	c.elems = nil
	for _, e := range sl.elems {
		c.elems = append(c.elems, l.after(e))
	}
	return &c
}
