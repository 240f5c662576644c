package specialize

import (
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// maxEvaluated bounds the iterations of loops that only compute numbers.
const maxEvaluated = 1 << 16

// maxAliased is the number of iterations up to which a loop is unrolled that
// carries a tensor and writes memory that it may share.
const maxAliased = 64

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
				if f, failed := r.(*failure); failed && counted && f.d.ID == "alias" {
					x, ok = needUnroll{f.d.Loc, f.d.Message}, true // iteration by iteration it may be known
				}
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
	tripLit, tripKnown := s.literalOf(trip)
	mayBeEmpty := least.Min() < 1 || !condKnown || !condLit.Bool()
	for round := 0; ; round++ {
		if round > maxRounds {
			s.fail("loop-carried", "no types were found that fit all iterations")
		}
		n := outer.Append("prim::Loop", s.loc, []*ssa.Value{tripV, condV})
		b := n.AddBlock()
		i := b.AddParam("", ssa.IntType)
		i.Sym = []sym.Expr{s.m.FreshSymbol("i", 0)}
		l := &loopState{s: s, counted: counted, start: start}
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
				if counted && tripKnown && tripLit.Int() <= maxAliased {
					s.unroll("%s", st.stale)
				}
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
		mine.listed = mine.listed || st.listed
		for _, p := range outside(st, start) {
			s.peer(mine, p)
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
			s.twin(x.c, y.c)
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
