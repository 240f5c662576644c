package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
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
	placed                  // a list of run-time length of rows of a pool: their places
)

// slot describes how a value is carried from one iteration to the next.
type slot struct {
	kind  slotKind
	val   any // fixed: the value, or the content of a cell
	typ   ssa.Type
	wide  []bool // dims of a tensor that differ between iterations
	elems []*slot
	elem  ssa.Type
	of    ssa.Type // the type of the elements of a run-time list in the program, if they are vectors in the place of lists
	ttyp  *ssa.TupleType
	keys  []ssa.Literal
	dtyp  ssa.Type
	raw   bool // the content of a cell instead of a value
	// view is the form of a viewed slot, and places the arguments in it that are carried.
	view   *heap.View
	places []heap.Place
	loose  bool  // a tensor that is not known to be row-major in all iterations
	pool   *pool // of which the elements of a placed slot are rows
	member bool  // an element of a run-time list: sizes vary from element to element
}

// rawBase, *py.ListState and *py.DictState are the contents of cells when they are carried.
type rawBase struct{ v *ssa.Value }

func rawOf(content any) any {
	if st, ok := content.(heap.State); ok {
		return rawBase{st.Base}
	}
	return content
}

func sameRaw(a, b any) bool {
	switch a := a.(type) {
	case rawBase:
		b, ok := b.(rawBase)
		return ok && a.v == b.v
	case *py.ListState:
		b, ok := b.(*py.ListState)
		if !ok || a.Dyn != b.Dyn || len(a.Elems) != len(b.Elems) {
			return false
		}
		for i := range a.Elems {
			if !sameNumber(a.Elems[i], b.Elems[i]) {
				return false
			}
		}
		return true
	case *heap.View, *py.DictState:
		return a == b
	}
	return sameNumber(py.AsValue(a), py.AsValue(b))
}

// sameNumber is py.Same, and true of a size that was computed anew.
func sameNumber(a, b py.Value) bool {
	if py.Same(a, b) {
		return true
	}
	x, ok0 := py.ExprOf(a)
	y, ok1 := py.ExprOf(b)
	return ok0 && ok1 && x.Equal(y) && !sym.Varies(x)
}

// loopState is the attempt to keep one loop.
type loopState struct {
	s       *walk
	src     *sourceLoop
	counted bool // unrolling is possible
	fresh   int  // symbols with a greater number may differ from iteration to iteration
	start   int  // cells with a greater id were made in the loop
	trip    *ssa.Value
	cond    *ssa.Value
	outer   *ssa.Block

	slots   []*slot // of the carried values of the source loop
	cells   []*journal.Cell
	inCells map[*journal.Cell]*slot
	stale   map[*journal.Cell]string // storages that an iteration leaves unreadable
	before  sharing                  // the first iteration
	later   sharing                  // any iteration

	// of the last round
	n       *ssa.Op
	block   *ssa.Block
	again   py.Value
	outs    []py.Value
	changes journal.Changes
}

// widen makes sl fit x too and reports whether it had to change. It reads
// tensors under the changes of the body.
func (l *loopState) widen(sl *slot, x any) bool {
	if _, ok := x.(py.Unset); ok {
		return false
	}
	if sl.kind == fixed {
		if sameRaw(sl.val, x) {
			return false
		}
		if _, ok := sl.val.(py.Unset); ok {
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
		return l.widenNumber(sl, x)
	case tens:
		return l.widenCarried(sl, x)
	case tup:
		t, ok := x.(*py.Tuple)
		if !ok || len(t.Elems) != len(sl.elems) {
			l.refuse("a loop-carried tuple changes its form")
		}
		return l.widenAll(sl, t.Elems)
	case lst:
		return l.widenList(sl, x)
	case dct:
		return l.widenDict(sl, x)
	case dynList:
		st := listContent(x, l.changes)
		if st == nil {
			l.refuse("a loop-carried list becomes something else")
		}
		return l.widenElem(sl, st)
	case placed:
		return l.widenPlaced(sl, x)
	case opt:
		if m, ok := x.(*py.Maybe); ok {
			x = m.Val
		} else if py.IsNone(py.AsValue(x)) {
			return false
		}
		if sl.elems[0] == nil {
			sl.elems[0] = &slot{kind: fixed, val: py.Unset{}}
			l.widen(sl.elems[0], x)
			return true
		}
		return l.widen(sl.elems[0], x)
	}
	return false
}

func (l *loopState) widenNumber(sl *slot, x any) bool {
	t, ok := py.NumberType(py.AsValue(x))
	switch {
	case !ok:
		l.refuse("a loop-carried number becomes something else")
	case t == sl.typ:
		return false
	}
	l.refuse("a loop-carried number changes its type")
	return false
}

// widenCarried makes the slot of a tensor, or of the memory of one, fit x too.
func (l *loopState) widenCarried(sl *slot, x any) bool {
	var v *ssa.Value
	loosened := false
	switch x := x.(type) {
	case rawBase:
		v = x.v
	case *py.Tensor:
		l.changes.Under(func() {
			v = l.s.vals.read(x)
			loosened = l.loosen(sl, x, v)
		})
	default:
		l.refuse("a loop-carried tensor becomes something else")
	}
	return l.widenTensor(sl, v.Tensor()) || loosened
}

func (l *loopState) widenAll(sl *slot, xs []py.Value) (changed bool) {
	for i, e := range xs {
		changed = l.widen(sl.elems[i], e) || changed
	}
	return changed
}

func (l *loopState) widenList(sl *slot, x any) bool {
	st := listContent(x, l.changes)
	if st == nil {
		l.refuse("a loop-carried list becomes something else")
	}
	if st.Dyn == nil && len(st.Elems) == len(sl.elems) {
		return l.widenAll(sl, st.Elems)
	}
	if l.counted {
		l.s.unroll("a list changes its length in the loop")
	}
	l.toDynamic(sl, st)
	return true
}

func (l *loopState) widenDict(sl *slot, x any) (changed bool) {
	st := dictContent(x, l.changes)
	if st == nil || len(st.Keys) != len(sl.keys) {
		l.refuse("the keys of a dict change in the loop")
	}
	for i, k := range sl.keys {
		if !st.Keys[i].Equal(k) {
			l.refuse("the keys of a dict change in the loop, or their order")
		}
		changed = l.widen(sl.elems[i], st.Vals[i]) || changed
	}
	return changed
}

func (l *loopState) refuse(why string) {
	if l.counted {
		l.s.unroll("%s", why)
	}
	l.s.fail("loop-carried", "%s", why)
}

// unranked notes that a carried tensor does not keep its rank.
func (l *loopState) unranked() {
	l.s.offer(peel, l.src.op)
	if l.s.takes(peel) {
		l.s.offer(widen, l.src.op)
	}
	if l.src.strict {
		l.s.fail("loop-carried", "a loop-carried tensor changes its rank")
	}
	if !l.s.takes(widen) {
		l.s.openRank(diag.Diagnostic{Op: string(l.src.op.Kind), Message: "a loop-carried tensor has another number of dimensions in later iterations, and an operator behind it needs their number"})
	}
}

func listContent(x any, changes journal.Changes) *py.ListState {
	switch x := x.(type) {
	case *py.ListState:
		return x
	case *py.List:
		return changes.Of(x.Cell).(*py.ListState)
	}
	return nil
}

func dictContent(x any, changes journal.Changes) *py.DictState {
	switch x := x.(type) {
	case *py.DictState:
		return x
	case *py.Dict:
		return changes.Of(x.Cell).(*py.DictState)
	}
	return nil
}

// open turns a fixed slot into the carried form of its value.
func (l *loopState) open(sl *slot) {
	switch x := sl.val.(type) {
	case rawBase:
		t := x.v.Tensor()
		*sl = slot{kind: tens, typ: t, raw: true, wide: make([]bool, len(t.Dims))}
	case *py.ListState:
		l.openList(sl, x, slot{kind: lst, raw: true})
	case *py.DictState:
		*sl = slot{kind: dct, raw: true, keys: x.Keys, elems: fixedSlots(x.Vals)}
	case *heap.View:
		l.refuse("a tensor's shape is changed in place in the loop")
	case nil:
		l.refuse("an attribute is set in the loop only")
	case *py.Tensor:
		t := l.s.vals.read(x).Tensor()
		*sl = slot{kind: tens, typ: t, wide: make([]bool, len(t.Dims))}
		l.loosen(sl, x, l.s.vals.read(x))
	case *py.Tuple:
		*sl = slot{kind: tup, ttyp: x.Typ, elems: fixedSlots(x.Elems)}
	case *py.List:
		l.openList(sl, x.State(), slot{kind: lst, elem: x.Elem})
	case *py.Dict:
		*sl = slot{kind: dct, keys: x.State().Keys, dtyp: x.Typ, elems: fixedSlots(x.State().Vals)}
	case *py.Maybe:
		*sl = slot{kind: opt, elems: fixedSlots([]py.Value{x.Val})}
		l.open(sl.elems[0])
	default:
		l.openConstant(sl, py.AsValue(x))
	}
}

// fixedSlots are slots of values that do not change.
func fixedSlots(xs []py.Value) []*slot {
	var out []*slot
	for _, x := range xs {
		out = append(out, &slot{kind: fixed, val: x})
	}
	return out
}

// openList is open for a list; known is the slot of one of known length.
func (l *loopState) openList(sl *slot, st *py.ListState, known slot) {
	if p := l.s.poolIn(st, nil); p != nil && st.Dyn != nil && p.storage().Cell.ID() <= l.start {
		*sl = slot{kind: placed, raw: known.raw, elem: known.elem, pool: p}
		return
	}
	if st.Dyn != nil {
		*sl = slot{kind: dynList, raw: known.raw, of: known.elem}
		l.joinElem(sl, st.Dyn.Type.(*ssa.ListType).Elem)
		return
	}
	known.elems = fixedSlots(st.Elems)
	*sl = known
}

// openConstant is open for numbers, and for None before the loop.
func (l *loopState) openConstant(sl *slot, x py.Value) {
	if py.IsNone(x) {
		if l.counted {
			l.s.unroll("a value is None before the loop and set in it")
		}
		*sl = slot{kind: opt, elems: []*slot{nil}}
		return
	}
	if t, ok := py.NumberType(x); ok {
		*sl = slot{kind: number, typ: t}
		return
	}
	if lit, ok := x.(py.Const); ok && lit.Kind == ssa.StrLit {
		l.refuse("a string changes in the loop")
	}
	l.refuse("a value that changes in the loop has no form in ONNX")
}

// openLike gives a slot that holds nothing yet the form of x. Nothing of x is
// kept but constants: x belongs to a round that is thrown away.
func (l *loopState) openLike(sl *slot, x any) {
	like := func(xs []py.Value) []*slot {
		out := make([]*slot, len(xs))
		for i, e := range xs {
			out[i] = &slot{kind: fixed, val: py.Unset{}}
			l.widen(out[i], e)
		}
		return out
	}
	switch x := x.(type) {
	case py.Const:
		sl.val = x
		return
	case *py.Tensor:
		l.changes.Under(func() {
			t := l.s.vals.read(x).Tensor()
			*sl = slot{kind: tens, typ: t, wide: make([]bool, len(t.Dims))}
			l.loosen(sl, x, l.s.vals.read(x))
		})
		return
	case py.Dynamic:
		*sl = slot{kind: number, typ: x.Type}
		return
	case *py.Tuple:
		*sl = slot{kind: tup, ttyp: x.Typ, elems: like(x.Elems)}
		return
	case *py.List:
		if st := listContent(x, l.changes); st.Dyn == nil {
			*sl = slot{kind: lst, elem: x.Elem, elems: like(st.Elems)}
			return
		}
		if p := l.s.poolIn(listContent(x, l.changes), l.changes); p != nil && p.storage().Cell.ID() <= l.start {
			*sl = slot{kind: placed, elem: x.Elem, pool: p}
			return
		}
		*sl = slot{kind: dynList, of: x.Elem}
		l.widen(sl, x)
		return
	case *py.Dict:
		st := dictContent(x, l.changes)
		l.s.constantKeys(st) // sizes of another iteration
		*sl = slot{kind: dct, dtyp: x.Typ, keys: st.Keys, elems: like(st.Vals)}
		return
	case *py.Maybe:
		*sl = slot{kind: opt, elems: []*slot{{kind: fixed, val: py.Unset{}}}}
		l.widen(sl.elems[0], x.Val)
		return
	}
	l.refuse("a value that is set in the loop has no form in ONNX")
}

// loosen notes that x, whose value is v, is not row-major, and reports whether that is new.
func (l *loopState) loosen(sl *slot, x *py.Tensor, v *ssa.Value) bool {
	if how := l.s.views.axes.IsRowMajor(heap.ViewOf(x).Strides, v.Tensor()); how == layout.Shares || sl.loose {
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
		l.unranked()
		sl.typ, sl.wide = ssa.Unranked(have.DType), nil
		return true
	}
	changed := false
	for i := range have.Dims {
		if sl.wide[i] || have.Dims[i].Equal(t.Dims[i]) && !l.s.m.MadeSince(t.Dims[i], l.fresh) {
			continue
		}
		dims := append([]sym.Expr(nil), have.Dims...)
		if dims[i] = sym.Varying(i); !sl.member {
			dims[i] = l.s.m.FreshSymbol("u", max(0, min(have.Dims[i].Min(), t.Dims[i].Min(), 1)))
		}
		have = ssa.Tensor(have.DType, dims...)
		sl.typ, sl.wide[i], changed = have, true, true
	}
	return changed
}

// widenElem makes the element type of a run-time list fit the elements of st too.
func (l *loopState) widenElem(sl *slot, st *py.ListState) bool {
	var e ssa.Type
	l.changes.Under(func() { e = l.s.vals.dynElem(st) })
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
			sl.elems = []*slot{{kind: tens, typ: t, wide: make([]bool, len(t.Dims)), member: true}}
		}
		return true
	case t == nil || len(sl.elems) == 0:
		return false
	}
	changed := l.widenTensor(sl.elems[0], t)
	sl.elem = sl.elems[0].typ
	return changed
}

// poolOf is the pool of which the elements that a slot of a list begins with and those of st are rows, nil if there is none.
func (l *loopState) poolOf(sl *slot, st *py.ListState) *pool {
	var begin []py.Value
	for _, e := range sl.elems {
		if e.kind != fixed && e.kind != viewed { // the value of a viewed slot is what it begins with
			return nil
		}
		begin = append(begin, py.AsValue(e.val))
	}
	p := l.s.poolIn(&py.ListState{Elems: begin}, nil)
	q := l.s.poolIn(st, l.changes)
	switch {
	case len(begin) == 0:
		p = q
	case st.Dyn == nil && len(st.Elems) == 0:
		q = p
	}
	if p != q || p == nil || p.storage().Cell.ID() > l.start {
		return nil
	}
	return p
}

// widenPlaced makes the slot of a list of rows fit x too; what holds others makes it a run-time list of tensors.
func (l *loopState) widenPlaced(sl *slot, x any) bool {
	st := listContent(x, l.changes)
	if st == nil {
		l.refuse("a loop-carried list becomes something else")
	}
	if st.Dyn == nil && len(st.Elems) == 0 || l.s.poolIn(st, l.changes) == sl.pool {
		return false
	}
	next := slot{kind: dynList, raw: sl.raw, of: sl.elem}
	l.joinElem(&next, sl.pool.elem)
	l.widenElem(&next, st)
	*sl = next
	return true
}

// toDynamic turns a list of fixed length into one of run-time length.
func (l *loopState) toDynamic(sl *slot, st *py.ListState) {
	if p := l.poolOf(sl, st); p != nil {
		*sl = slot{kind: placed, raw: sl.raw, elem: sl.elem, pool: p}
		return
	}
	next := slot{kind: dynList, raw: sl.raw, of: sl.elem}
	for _, e := range sl.elems {
		switch e.kind {
		case fixed:
			l.changes.Under(func() { l.joinElem(&next, l.s.vals.dynElem(&py.ListState{Elems: []py.Value{py.AsValue(e.val)}})) })
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
		return py.Dyn(v)
	case viewed:
		args := make([]py.Value, len(sl.elems))
		for i, e := range sl.elems {
			args[i] = py.AsValue(l.bind(e, next))
		}
		return s.views.movedTo(sl.view, sl.places, args)
	case tens:
		v := next(sl.typ)
		if t := v.Tensor(); t != nil && !t.Ranked {
			s.loses(v)
		}
		if sl.raw {
			return rawBase{v}
		}
		if sl.loose {
			return s.heap.Laid(v, nil)
		}
		return s.heap.Tensor(v)
	case tup:
		t := &py.Tuple{Typ: sl.ttyp}
		for _, e := range sl.elems {
			t.Elems = append(t.Elems, py.AsValue(l.bind(e, next)))
		}
		return t
	case lst:
		elems := make([]py.Value, len(sl.elems))
		for i, e := range sl.elems {
			elems[i] = py.AsValue(l.bind(e, next))
		}
		if sl.raw {
			return &py.ListState{Elems: elems}
		}
		return s.heap.List(sl.elem, elems)
	case dct:
		d := &py.DictState{Keys: sl.keys}
		for _, e := range sl.elems {
			d.Vals = append(d.Vals, py.AsValue(l.bind(e, next)))
		}
		if sl.raw {
			return d
		}
		return &py.Dict{Cell: s.heap.New(d), Typ: sl.dtyp}
	case dynList:
		elem := sl.elem
		if elem == nil {
			elem = ssa.Unranked(tensor.Float32)
		}
		v := next(&ssa.ListType{Elem: elem})
		if sl.raw {
			return &py.ListState{Dyn: v}
		}
		if memberList(sl.of) {
			elem = sl.of
		}
		return &py.List{Cell: s.heap.New(&py.ListState{Dyn: v}), Elem: elem}
	case placed:
		st := s.vals.placed(sl.pool.self, next(placesType))
		if sl.raw {
			return st
		}
		return &py.List{Cell: s.heap.New(st), Elem: sl.elem}
	case opt:
		has := next(ssa.BoolType)
		s.loses(has)
		if sl.elems[0] == nil {
			return py.None
		}
		return &py.Maybe{Has: has, Val: py.AsValue(l.bind(sl.elems[0], next))}
	}
	return nil
}

// flatten gives the carried values of x in the order in which bind asks for them.
func (l *loopState) flatten(sl *slot, x any, out []*ssa.Value) []*ssa.Value {
	s := l.s
	if _, ok := x.(py.Unset); ok {
		return l.dummies(sl, out)
	}
	switch sl.kind {
	case number:
		return append(out, s.vals.materialize(py.AsValue(x)))
	case viewed:
		chain := heap.ViewOf(x.(*py.Tensor)).Chain
		for i, p := range sl.places {
			out = l.flatten(sl.elems[i], chain[p.Step].Args[p.Arg], out)
		}
		return out
	case tens:
		if r, ok := x.(rawBase); ok {
			return append(out, r.v)
		}
		return append(out, s.vals.read(x.(*py.Tensor)))
	case tup:
		for i, e := range x.(*py.Tuple).Elems {
			out = l.flatten(sl.elems[i], e, out)
		}
	case lst:
		for i, e := range listContent(x, nil).Elems {
			out = l.flatten(sl.elems[i], e, out)
		}
	case dct:
		st := dictContent(x, nil)
		for i := range sl.keys {
			out = l.flatten(sl.elems[i], st.Vals[i], out)
		}
	case dynList:
		st := listContent(x, nil)
		if st.Dyn == nil && len(st.Elems) == 0 {
			elem := sl.elem
			if elem == nil {
				elem = ssa.Unranked(tensor.Float32)
			}
			return append(out, s.build.cur.Append("prim::ListConstruct", s.loc, nil, &ssa.ListType{Elem: elem}).Results[0])
		}
		return append(out, s.vals.dynamic(st, nil))
	case placed:
		return append(out, s.vals.placesValue(sl.pool.self, listContent(x, nil)))
	case opt:
		switch m := x.(type) {
		case *py.Maybe:
			out = append(out, m.Has)
			return l.flatten(sl.elems[0], m.Val, out)
		case py.Const:
			if m.IsNone() {
				out = append(out, s.build.constant(ssa.Bool(false)))
				return l.dummies(sl.elems[0], out)
			}
		}
		out = append(out, s.build.constant(ssa.Bool(true)))
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
		return append(out, s.vals.materialize(s.vals.dummy(py.Dyn(&ssa.Value{Type: sl.typ}), nil)))
	case tens:
		return append(out, s.vals.read(s.vals.dummyTensor(sl.typ.(*ssa.TensorType))))
	case opt:
		return l.dummies(sl.elems[0], append(out, s.build.constant(ssa.Bool(false))))
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
		st := old.(heap.State)
		st.Base = r.v
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

// openView makes a slot that holds a view one whose place is carried, if x is a
// view of the same storage that takes the same steps.
func (l *loopState) openView(sl *slot, x any) bool {
	t, ok := sl.val.(*py.Tensor)
	u, ok2 := x.(*py.Tensor)
	if !ok || !ok2 || heap.ViewOf(t).Storage.Cell.ID() > l.start {
		return false
	}
	places, ok := heap.Alike(heap.ViewOf(t), heap.ViewAt(u, l.changes))
	if !ok {
		return false
	}
	*sl = slot{kind: viewed, val: t, view: heap.ViewOf(t), places: places}
	for range places {
		sl.elems = append(sl.elems, &slot{kind: number, typ: ssa.IntType})
	}
	return true
}

// widenView makes a slot of a view fit x too; what is no such view makes it a tensor.
func (l *loopState) widenView(sl *slot, x any) bool {
	if u, ok := x.(*py.Tensor); ok {
		if places, ok := heap.Alike(sl.view, heap.ViewAt(u, l.changes)); ok {
			known := map[heap.Place]bool{}
			for _, p := range sl.places {
				known[p] = true
			}
			changed := false
			for _, p := range places {
				if !known[p] {
					sl.places, changed = append(sl.places, p), true
					sl.elems = append(sl.elems, &slot{kind: number, typ: ssa.IntType})
				}
			}
			return changed
		}
	}
	*sl = slot{kind: fixed, val: sl.val}
	l.open(sl)
	l.widen(sl, x)
	return true
}
