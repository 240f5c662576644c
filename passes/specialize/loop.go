package specialize

import (
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxEvaluated bounds the iterations of loops that only compute numbers.
const maxEvaluated = 1 << 16

func (s *spec) loopOp(o *ssa.Op) {
	trip, cond := s.get(o.Operand(0)), s.get(o.Operand(1))
	inits := make([]value, len(o.Results))
	for i := range inits {
		inits[i] = s.get(o.Operand(i + 2))
	}
	tripLit, tripKnown := s.literalOf(trip)
	condLit, condKnown := s.literalOf(cond)
	if tripKnown && tripLit.Int() <= 0 || condKnown && !condLit.Bool() {
		for i, r := range o.Results {
			s.put(r, inits[i])
		}
		return
	}
	loc, op, cur, mark := s.loc, s.op, s.cur, len(s.journal)
	reset := func() {
		s.undo(mark)
		s.loc, s.op, s.cur = loc, op, cur
	}
	if tripKnown && condKnown && !computes(o.Blocks[0]) {
		if s.iterate(o, tripLit.Int(), inits, maxEvaluated) {
			return
		}
		reset()
	}
	counted := tripKnown && condKnown && tripLit.Int() <= int64(s.opts.UnrollMax)
	var why *needUnroll
	func() {
		last := cur.Last()
		defer func() {
			if r := recover(); r != nil {
				x, ok := r.(needUnroll)
				if ok {
					reset()
					eraseAfter(cur, last)
					why = &x
					return
				}
				panic(r)
			}
		}()
		s.keep(o, trip, cond, inits, counted)
	}()
	if why == nil {
		return
	}
	if counted && s.iterate(o, tripLit.Int(), inits, s.opts.UnrollMax) {
		return
	}
	reset()
	// the loop has to stay: take the forms that work at run time
	saved := s.opts.UnrollMax
	s.opts.UnrollMax = -1
	s.keep(o, trip, cond, inits, false)
	s.opts.UnrollMax = saved
}

// eraseAfter removes what was appended to b after last.
func eraseAfter(b *ssa.Block, last *ssa.Op) {
	for o := b.Last(); o != nil && o != last; {
		prev := o.Prev()
		used := false
		for _, r := range o.Results {
			used = used || r.HasUses()
		}
		if !used && o.Kind != "prim::Constant" { // constants are shared
			o.Erase()
		}
		o = prev
	}
}

// computes reports that a block has operators on tensors, besides questions about their shapes.
func computes(b *ssa.Block) bool {
	for o := range b.AllOps() {
		switch o.Kind {
		case "prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct", "prim::TupleUnpack", "prim::ListUnpack", "prim::TupleIndex",
			"prim::unchecked_cast", "aten::__getitem__", "aten::append", "aten::size", "aten::len", "aten::dim", "prim::If", "prim::Loop", "prim::Uninitialized",
			"prim::DictConstruct", "aten::_set_item", "aten::list", "aten::keys", "aten::values", "aten::items":
			continue
		}
		for _, r := range o.Results {
			t := r.Type
			if lt, ok := t.(*ssa.ListType); ok {
				t = lt.Elem
			}
			if ssa.AsTensor(t) != nil {
				return true
			}
		}
		if o.Schema != nil && o.Schema.Mutates() && len(o.Schema.Args) > 0 && ssa.AsTensor(o.Schema.Args[0].Type) != nil {
			return true
		}
		if strings.HasSuffix(string(o.Kind), "::item") || o.Kind == "aten::Int" || o.Kind == "aten::Bool" || o.Kind == "aten::Float" {
			if ssa.AsTensor(o.Operand(0).Type) != nil {
				return true
			}
		}
	}
	return false
}

// iterate runs a loop at export. It gives up, with changes made, when the
// condition depends on data or after limit iterations.
func (s *spec) iterate(o *ssa.Op, trip int64, inits []value, limit int) bool {
	body := o.Blocks[0]
	carried := inits
	for i := int64(0); i < trip; i++ {
		if i >= int64(limit) {
			return false
		}
		s.put(body.Params[0], ssa.Int(i))
		for k, v := range carried {
			s.put(body.Params[k+1], v)
		}
		s.block(body)
		next := make([]value, len(carried))
		for k := range next {
			next[k] = s.get(body.Return(k + 1))
		}
		carried = next
		c, ok := s.literalOf(s.get(body.Return(0)))
		if !ok {
			if i+1 == trip {
				break // whatever the condition is, the loop ends here
			}
			return false
		}
		if !c.Bool() {
			break
		}
	}
	for i, r := range o.Results {
		s.put(r, carried[i])
	}
	return true
}

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
		l.open(sl)
		l.widen(sl, x)
		return true
	}
	switch sl.kind {
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
		switch x := x.(type) {
		case rawBase:
			v = x.v
		case *tensorRef:
			under(l.changes, func() { v = s.read(x) })
		default:
			l.refuse("a loop-carried tensor becomes something else")
		}
		return l.widenTensor(sl, v.Tensor())
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
	case tens:
		v := next(sl.typ)
		if sl.raw {
			return rawBase{v}
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
	case tup, lst, dct:
		for _, e := range sl.elems {
			out = l.dummies(e, out)
		}
		return out
	}
	s.fail("loop-carried", "a value is None before the loop and a container in it")
	return nil
}

// maxRounds bounds the search for types that fit all iterations; every round
// widens something, and dims and ranks widen once.
const maxRounds = 64

// keep emits a prim::Loop.
func (s *spec) keep(o *ssa.Op, trip, cond value, inits []value, counted bool) {
	body := o.Blocks[0]
	outer := s.cur
	slots := make([]*slot, len(inits))
	for i, v := range inits {
		slots[i] = &slot{kind: fixed, val: v}
	}
	var cells []*cell
	heap := map[*cell]*slot{}
	stale := map[*cell]string{} // storages that an iteration leaves unreadable
	start := s.cells
	tripV, condV := s.materialize(trip), s.materialize(cond)
	least, _ := exprOf(trip)
	condLit, condKnown := s.literalOf(cond)
	mayBeEmpty := least.Min() < 1 || !condKnown || !condLit.Bool()
	for round := 0; ; round++ {
		if round > maxRounds {
			s.fail("loop-carried", "no types were found that fit all iterations")
		}
		n := outer.Append("prim::Loop", s.loc, []*ssa.Value{tripV, condV})
		b := n.AddBlock()
		i := b.AddParam("", ssa.IntType)
		i.Sym = []sym.Expr{s.m.FreshSymbol("i", 0)}
		l := &loopState{s: s, counted: counted}
		param := func(t ssa.Type) *ssa.Value { return b.AddParam("", t) }
		mark, loc, op := len(s.journal), s.loc, s.op
		s.put(body.Params[0], i)
		for k, sl := range slots {
			x := l.bind(sl, param)
			s.relateLoop(x, inits[k])
			s.put(body.Params[k+1], x)
		}
		for _, c := range cells {
			s.set(c, l.content(c.content, l.bind(heap[c], param)))
		}
		for _, c := range orderedStale(stale) {
			st := c.content.(storageState)
			st.stale = stale[c]
			s.set(c, st)
		}
		s.cur = b
		s.block(body)
		s.cur = b
		s.loc, s.op = loc, op
		outs := make([]value, len(slots))
		for k := range outs {
			outs[k] = s.get(body.Return(k + 1))
		}
		again := s.get(body.Return(0))
		l.changes = s.undo(mark)
		changed := false
		for k, sl := range slots {
			changed = l.widen(sl, outs[k]) || changed
		}
		for _, c := range ordered(l.changes) {
			if c.id > start {
				continue
			}
			if st, ok := l.changes[c].(storageState); ok && st.stale != "" && stale[c] == "" && c.content.(storageState).stale == "" {
				stale[c] = st.stale
				changed = true
			}
			sl := heap[c]
			if sl == nil {
				sl = &slot{kind: fixed, val: rawOf(c.content)}
				if !l.widen(sl, rawOf(l.changes[c])) {
					continue
				}
				heap[c] = sl
				cells = append(cells, c)
				changed = true
				continue
			}
			changed = l.widen(sl, rawOf(l.changes[c])) || changed
		}
		if changed {
			s.cur = outer
			n.Erase()
			continue
		}
		// the types hold: close the loop
		var rets []*ssa.Value
		under(l.changes, func() {
			rets = append(rets, s.materialize(again))
			for k, sl := range slots {
				rets = l.flatten(sl, outs[k], rets)
			}
			for _, c := range cells {
				rets = l.flatten(heap[c], rawOf(c.content), rets)
			}
		})
		b.SetReturns(rets...)
		s.cur = outer
		operands := []*ssa.Value{tripV, condV}
		for k, sl := range slots {
			operands = l.flatten(sl, inits[k], operands)
		}
		for _, c := range cells {
			operands = l.flatten(heap[c], rawOf(c.content), operands)
		}
		n.MoveToEnd(outer)
		n.SetOperands(operands...)
		for _, v := range rets {
			if v.Type == ssa.IntType && v.Sym == nil {
				v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
			}
		}
		result := func(t ssa.Type) *ssa.Value { return n.AddResult(t) }
		for k, sl := range slots {
			x := l.bind(l.after(sl), result)
			if mayBeEmpty {
				s.relateLoop(x, inits[k])
			}
			s.relateOut(x, outs[k], start)
			s.name(x, o.Results[k].Name)
			s.put(o.Results[k], x)
		}
		for _, c := range cells {
			s.set(c, l.content(c.content, l.bind(l.after(heap[c]), result)))
		}
		for _, c := range orderedStale(stale) {
			st := c.content.(storageState)
			st.stale = stale[c]
			s.set(c, st)
		}
		return
	}
}

func orderedStale(stale map[*cell]string) []*cell {
	cells := map[*cell]any{}
	for c := range stale {
		cells[c] = nil
	}
	return ordered(cells)
}

// relateOut records what the result x of a loop may share memory with, given
// the value y that the body ends with.
func (s *spec) relateOut(x, y any, start int) {
	switch x := x.(type) {
	case *tensorRef:
		t, ok := y.(*tensorRef)
		if !ok || x == t {
			return
		}
		mine, st := x.state().st, t.state().st
		near := append([]*storage{st}, st.peers...)
		for _, l := range st.links {
			near = append(near, l.from, l.to)
		}
		for _, p := range near {
			if p.c.id <= start {
				s.peer(mine, p)
			}
		}
	case *tuple:
		if y, ok := y.(*tuple); ok {
			for i := range min(len(x.elems), len(y.elems)) {
				s.relateOut(x.elems[i], y.elems[i], start)
			}
		}
	case *list:
		if y, ok := y.(*list); ok && x != y {
			a, b := x.state().elems, y.state().elems
			for i := range min(len(a), len(b)) {
				s.relateOut(a[i], b[i], start)
			}
		}
	}
}

// relateLoop records that a carried tensor may be the memory of one outside:
// in the first iteration it is, later it may be.
func (s *spec) relateLoop(x, y any) {
	switch x := x.(type) {
	case *tensorRef:
		y, ok := y.(*tensorRef)
		if ok && x != y && x.state().st != y.state().st {
			s.peer(x.state().st, y.state().st)
		}
	case *tuple:
		if y, ok := y.(*tuple); ok {
			for i := range min(len(x.elems), len(y.elems)) {
				s.relateLoop(x.elems[i], y.elems[i])
			}
		}
	case *list:
		if y, ok := y.(*list); ok && x != y {
			a, b := x.state().elems, y.state().elems
			for i := range min(len(a), len(b)) {
				s.relateLoop(a[i], b[i])
			}
		}
	}
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
