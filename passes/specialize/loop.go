package specialize

import (
	"strings"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
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
	inits := make([]py.Value, len(o.Results))
	for i := range inits {
		inits[i] = s.get(o.Operand(i + 2))
	}
	tripLit, tripKnown := py.LiteralOf(trip)
	condLit, condKnown := py.LiteralOf(cond)
	if tripKnown && tripLit.Int() <= 0 || condKnown && !condLit.Bool() {
		for i, r := range o.Results {
			s.put(r, inits[i])
		}
		return
	}
	loc, op, cur, mark := s.loc, s.op, s.build.cur, s.heap.Mark()
	reset := func() {
		s.heap.Rewind(mark)
		s.loc, s.op, s.build.cur = loc, op, cur
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
func (s *spec) iterate(o *ssa.Op, trip int64, inits []py.Value, limit int) bool {
	body := o.Blocks[0]
	carried := inits
	for i := int64(0); i < trip; i++ {
		if i >= int64(limit) {
			return false
		}
		s.put(body.Params[0], py.Int(i))
		for k, v := range carried {
			s.put(body.Params[k+1], v)
		}
		s.block(body)
		next := make([]py.Value, len(carried))
		for k := range next {
			next[k] = s.get(body.Return(k + 1))
		}
		carried = next
		c, ok := py.LiteralOf(s.get(body.Return(0)))
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
func (s *spec) keep(o *ssa.Op, trip, cond py.Value, inits []py.Value, counted bool) {
	body := o.Blocks[0]
	outer := s.build.cur
	slots := make([]*slot, len(inits))
	for i, v := range inits {
		slots[i] = &slot{kind: fixed, val: v}
	}
	var cells []*journal.Cell
	inCells := map[*journal.Cell]*slot{}
	stale := map[*journal.Cell]string{} // storages that an iteration leaves unreadable
	start := s.heap.Mark().Last
	tripV, condV := s.vals.materialize(trip), s.vals.materialize(cond)
	least, _ := py.ExprOf(trip)
	condLit, condKnown := py.LiteralOf(cond)
	tripLit, tripKnown := py.LiteralOf(trip)
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
		mark, loc, op := s.heap.Mark(), s.loc, s.op
		s.put(body.Params[0], py.Dyn(i))
		for k, sl := range slots {
			x := l.bind(sl, param)
			s.relateLoop(x, inits[k])
			s.put(body.Params[k+1], py.AsValue(x))
		}
		for _, c := range cells {
			s.heap.Set(c, l.content(c.Content(), l.bind(inCells[c], param)))
		}
		for _, c := range journal.Ordered(stale) {
			st := c.Content().(heap.State)
			st.Stale = stale[c]
			s.heap.Set(c, st)
		}
		s.build.cur = b
		s.block(body)
		s.build.cur = b
		s.loc, s.op = loc, op
		outs := make([]py.Value, len(slots))
		for k := range outs {
			outs[k] = s.get(body.Return(k + 1))
		}
		again := s.get(body.Return(0))
		l.changes = s.heap.Rewind(mark)
		changed := false
		for k, sl := range slots {
			changed = l.widen(sl, outs[k]) || changed
		}
		for _, c := range journal.Ordered(l.changes) {
			if c.ID() > start {
				continue
			}
			if st, ok := l.changes[c].(heap.State); ok && st.Stale != "" && stale[c] == "" && c.Content().(heap.State).Stale == "" {
				stale[c] = st.Stale
				changed = true
				if counted && tripKnown && tripLit.Int() <= maxAliased {
					s.unroll("%s", st.Stale)
				}
			}
			sl := inCells[c]
			if sl == nil {
				sl = &slot{kind: fixed, val: rawOf(c.Content())}
				if !l.widen(sl, rawOf(l.changes[c])) {
					continue
				}
				inCells[c] = sl
				cells = append(cells, c)
				changed = true
				continue
			}
			changed = l.widen(sl, rawOf(l.changes[c])) || changed
		}
		if changed {
			s.build.cur = outer
			n.Erase()
			continue
		}
		// the types hold: close the loop
		var rets []*ssa.Value
		l.changes.Under(func() {
			rets = append(rets, s.vals.materialize(again))
			for k, sl := range slots {
				rets = l.flatten(sl, outs[k], rets)
			}
			for _, c := range cells {
				rets = l.flatten(inCells[c], rawOf(c.Content()), rets)
			}
		})
		b.SetReturns(rets...)
		s.build.cur = outer
		operands := []*ssa.Value{tripV, condV}
		for k, sl := range slots {
			operands = l.flatten(sl, inits[k], operands)
		}
		for _, c := range cells {
			operands = l.flatten(inCells[c], rawOf(c.Content()), operands)
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
			s.build.name(py.AsValue(x), o.Results[k].Name)
			s.put(o.Results[k], py.AsValue(x))
		}
		for _, c := range cells {
			s.heap.Set(c, l.content(c.Content(), l.bind(l.after(inCells[c]), result)))
		}
		for _, c := range journal.Ordered(stale) {
			st := c.Content().(heap.State)
			st.Stale = stale[c]
			s.heap.Set(c, st)
		}
		return
	}
}

// relateOut records what the result x of a loop may share memory with, given
// the value y that the body ends with.
func (s *spec) relateOut(x, y any, start int) {
	switch x := x.(type) {
	case *py.Tensor:
		t, ok := y.(*py.Tensor)
		if !ok || x == t {
			return
		}
		mine, st := heap.ViewOf(x).Storage, heap.ViewOf(t).Storage
		s.heap.Inherit(mine, st)
		for _, p := range heap.Outside(st, start) {
			s.heap.Peer(mine, p)
		}
	case *py.Tuple:
		if y, ok := y.(*py.Tuple); ok {
			for i := range min(len(x.Elems), len(y.Elems)) {
				s.relateOut(x.Elems[i], y.Elems[i], start)
			}
		}
	case *py.List:
		if y, ok := y.(*py.List); ok && x != y {
			a, b := x.State().Elems, y.State().Elems
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
	case *py.Tensor:
		y, ok := y.(*py.Tensor)
		if ok && x != y && heap.ViewOf(x).Storage != heap.ViewOf(y).Storage {
			s.heap.Peer(heap.ViewOf(x).Storage, heap.ViewOf(y).Storage)
			s.heap.Twin(x.Cell, y.Cell)
		}
	case *py.Tuple:
		if y, ok := y.(*py.Tuple); ok {
			for i := range min(len(x.Elems), len(y.Elems)) {
				s.relateLoop(x.Elems[i], y.Elems[i])
			}
		}
	case *py.List:
		if y, ok := y.(*py.List); ok && x != y {
			a, b := x.State().Elems, y.State().Elems
			for i := range min(len(a), len(b)) {
				s.relateLoop(a[i], b[i])
			}
		}
	}
}
