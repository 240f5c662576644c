package specialize

import (
	"math"
	"slices"
	"strings"

	"github.com/aton-project/aton/passes/specialize/internal/form"
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

// maxPeeled is the number of iterations that are evaluated by themselves, at most, before a loop.
const maxPeeled = 3

// loopOp evaluates a loop: at export where it only computes numbers, else as a
// loop that stays one, else iteration by iteration.
func (s *walk) loopOp(o *ssa.Op) {
	l := &sourceLoop{op: o, body: o.Blocks[0], trip: s.get(o.Operand(0)), cond: s.get(o.Operand(1))}
	l.inits = make([]py.Value, len(o.Results))
	for i := range l.inits {
		l.inits[i] = s.get(o.Operand(i + 2))
	}
	trip, tripKnown := py.IntOf(l.trip, 0)
	cond, condKnown := py.LiteralOf(l.cond)
	if tripKnown && trip <= 0 || condKnown && !cond.Bool() {
		for i, r := range o.Results {
			s.put(r, l.inits[i])
		}
		return
	}
	if len(s.starts) > 0 {
		if yes, decided := s.facts[s.starts[s.start(l)]]; decided && !yes {
			for i, r := range o.Results {
				s.put(r, l.inits[i])
			}
			return
		} else if decided {
			l.runs = true
		}
	}
	s.pool(l)
	known := tripKnown && condKnown
	if known && !computes(l.body) && s.iterate(l, trip, maxEvaluated) {
		return
	}
	l.counted = known && trip <= int64(s.opts.UnrollMax) && s.mode == unrolling
	l.few = known && trip <= maxAliased
	if known && trip == math.MaxInt64 && s.mode == unrolling {
		// what its condition says may be known in each iteration, too, as that of a for which has a continue
		l.counted = true
		end := s.try(func() { s.keep(l) })
		if end.verdict == done || end.verdict == mustUnroll && s.iterate(l, trip, s.opts.UnrollMax) {
			return
		}
		l.counted = false
	}
	l.strict = s.takes(peel)
	end := s.try(func() { s.keep(l) })
	if end.verdict == failed && l.strict {
		if peeled := s.try(func() { s.peel(l, 1) }); peeled.verdict != failed {
			peeled.propagate()
			return
		}
		l.strict = false
		end = s.try(func() { s.keep(l) })
	}
	switch {
	case end.verdict == done:
		return
	case end.verdict == mustUnroll:
	case end.verdict == failed && l.counted && (s.takes(peel) || end.failure.d.ID == "alias"): // iteration by iteration it may be known
	case end.verdict == failed:
		end.failure.found.offer(peel, o)
		end.failure.losers = append(end.failure.losers, o)
		fallthrough
	default:
		end.propagate()
	}
	if l.counted && s.iterate(l, trip, s.opts.UnrollMax) {
		return
	}
	// the loop has to stay: take the forms that work at run time
	l.counted = false
	defer func(m mode) { s.mode = m }(s.mode)
	s.mode = keepingLoops
	s.keep(l)
}

// peel evaluates the first iteration of a loop by itself, and keeps the others as a loop. Where what is carried has another form in the
// first iteration only - a state that begins without dimensions, as None, or in another dtype - the others have one that fits all of them.
// The same holds of what shares memory: an element of a list that is what another name shows, until the first iteration replaces it. Where
// that takes several iterations, as in a list of three of which each replaces one, these are evaluated by themselves, depth counts them.
func (s *walk) peel(l *sourceLoop, depth int) {
	run := func() []py.Value {
		rets := s.iteration(l, l.first, l.inits)
		rest := *l
		rest.runs = false
		rest.first, rest.trip, rest.cond, rest.inits = l.first+1, s.vals.intOp("sub", l.trip, py.Int(1)), rets[0], rets[1:]
		if n, known := py.IntOf(rest.trip, 0); known && n < 1 {
			return rest.inits
		}
		end := s.try(func() { s.keep(&rest) })
		if end.verdict == failed && end.failure.d.ID == "alias" && depth < maxPeeled {
			end = s.try(func() { s.peel(&rest, depth+1) })
		}
		end.propagate()
		results := make([]py.Value, len(l.op.Results))
		for i, r := range l.op.Results {
			results[i] = s.get(r)
		}
		return results
	}
	var results []py.Value
	if s.mayBeEmpty(l) {
		var some *ssa.Value
		symbols := s.taken(l)
		end := s.try(func() {
			some = s.some(l)
			open := len(s.openRanks)
			results = s.both(some, nil, func(side int) []py.Value {
				if side == 1 {
					return l.inits
				}
				return run()
			})
			if len(s.openRanks) > open && symbols != nil {
				s.fail("dynamic-rank", "a tensor has another number of dimensions where a loop has no iteration")
			}
		})
		switch {
		case end.verdict == done:
		case end.verdict == mustSplit && end.split.cond == some:
			// the operators that compute it are taken back with the attempt
			end.split.ask = func() *ssa.Value { return s.some(l) }
			if symbols != nil {
				end.split.otherwise = func() { s.assumeSome(l, symbols) }
			}
			end.propagate()
		case symbols != nil:
			s.assumeSome(l, symbols)
			results = run()
		default:
			end.propagate()
		}
	} else {
		results = run()
	}
	for i, r := range l.op.Results {
		s.put(r, results[i])
	}
}

// iteration evaluates the body of a loop once, and gives the condition of the next iteration and what is carried to it.
func (s *walk) iteration(l *sourceLoop, i int64, carried []py.Value) []py.Value {
	s.put(l.body.Params[0], py.Int(i))
	for k, v := range carried {
		s.put(l.body.Params[k+1], v)
	}
	return s.block(l.body)
}

// mayBeEmpty reports that the loop may have no iteration.
func (s *walk) mayBeEmpty(l *sourceLoop) bool {
	trip, _ := py.ExprOf(l.trip)
	cond, known := py.LiteralOf(l.cond)
	return !l.runs && (s.open(trip).Min() < 1 || !known || !cond.Bool())
}

// taken are the sizes of inputs that have to be 1 or more for a loop to have an iteration, nil where something else decides that.
func (s *walk) taken(l *sourceLoop) (symbols []string) {
	trip, ok := py.ExprOf(l.trip)
	cond, known := py.LiteralOf(l.cond)
	if !ok || trip.Min() < 1 || !known || !cond.Bool() {
		return nil
	}
	trip.Symbols(func(name string) {
		if s.nonEmpty[name] && !slices.Contains(symbols, name) {
			symbols = append(symbols, name)
		}
	})
	return symbols
}

// assumeSome takes a loop to have an iteration from here on, and has the model check the sizes.
func (s *walk) assumeSome(l *sourceLoop, symbols []string) {
	s.needNonEmpty(symbols)
	s.facts = s.facts.with(s.some(l), true)
}

func (s *walk) start(l *sourceLoop) loopStart {
	return loopStart{s.vals.materialize(l.trip), s.vals.materialize(l.cond)}
}

// some computes whether the loop has an iteration. Sizes of inputs may be 0 here.
func (s *walk) some(l *sourceLoop) *ssa.Value {
	at := s.start(l)
	var v *ssa.Value
	if n, ok := py.IntOf(l.trip, 0); !ok {
		v = s.vals.emitName("aten::gt.int", at.trip, 0)
	} else if n < 1 {
		v = s.build.constant(ssa.Bool(false))
	}
	if c, known := py.LiteralOf(l.cond); !known || !c.Bool() {
		if v == nil {
			v = at.cond
		} else {
			v = s.vals.emitName("aten::__and__.bool", v, at.cond)
		}
	}
	s.starts[at] = v
	return v
}

// computes reports that a block has operators on tensors, besides questions about their shapes.
func computes(b *ssa.Block) bool {
	for o := range b.AllOps() {
		switch o.Kind {
		case "prim::Constant", "prim::GetAttr", "prim::ListConstruct", "prim::TupleConstruct", "prim::TupleUnpack", "prim::ListUnpack", "prim::TupleIndex",
			"prim::unchecked_cast", "prim::If", "prim::Loop", "prim::Uninitialized", "prim::DictConstruct":
			continue
		}
		if s := o.Schema; s != nil && len(s.Args) > 0 && ssa.HasTypeVars(s.Args[0].Type) {
			continue // an operator on a container, whose elements may be of any type
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

// iterate runs a loop at export. It gives up, and changes nothing, when the
// condition depends on data or after limit iterations.
func (s *walk) iterate(l *sourceLoop, trip int64, limit int) bool {
	gaveUp := false
	giveUp := func(format string, args ...any) {
		gaveUp = true
		s.unroll(format, args...)
	}
	end := s.try(func() {
		carried := l.inits
		for i := int64(0); i < trip; i++ {
			if i >= int64(limit) {
				giveUp("a loop has more than %d iterations", limit)
			}
			rets := s.iteration(l, i, carried)
			carried = rets[1:]
			c, ok := py.LiteralOf(rets[0])
			if !ok && i+1 < trip { // behind the last iteration it does not matter
				giveUp("the condition of a loop depends on data")
			}
			if ok && !c.Bool() {
				break
			}
		}
		for i, r := range l.op.Results {
			s.put(r, carried[i])
		}
	})
	if !gaveUp {
		end.propagate()
	}
	return !gaveUp
}

// maxRounds bounds the search for types that fit all iterations; every round
// widens something, and dims and ranks widen once.
const maxRounds = 64

// keep emits a prim::Loop. A body that raises an exception whatever the data are raises it in the first iteration, as that is among those
// that it is evaluated for: where the loop may have none, it has none.
func (s *walk) keep(src *sourceLoop) {
	end := s.try(func() { s.emitLoop(src) })
	if end.verdict != raises || !s.mayBeEmpty(src) {
		end.propagate()
		return
	}
	s.warnf("dropped-assert", "a loop is taken to have no iteration, since each one raises an exception (%s)", end.raised.message)
	s.learn(s.some(src), false)
	for i, r := range src.op.Results {
		s.put(r, src.inits[i])
	}
}

// emitLoop emits a prim::Loop. Rounds over the body find what it has to carry; the
// last one, after which nothing has to change, stays.
func (s *walk) emitLoop(src *sourceLoop) {
	l := &loopState{
		s: s, src: src, outer: s.build.cur, Space: form.Space{Heap: s.heap, Module: s.m, Start: s.heap.Mark().Last, Fresh: s.m.Freshness(), Strict: src.counted},
		inCells: map[*journal.Cell]*form.Form{}, stale: map[*journal.Cell]string{}, before: newSharing(), later: newSharing(),
		trip: s.vals.materialize(src.trip), cond: s.vals.materialize(src.cond),
	}
	l.Program = carried{onWalk{s}, l}
	for _, v := range src.inits {
		l.forms = append(l.forms, form.Of(v))
	}
	for range maxRounds + 1 {
		l.round()
		if !l.settle() {
			l.close()
			return
		}
		s.build.cur = l.outer
		l.n.Erase()
	}
	s.fail("loop-carried", "no types were found that fit all iterations")
}

// round evaluates the body once, with what is carried by now.
func (l *loopState) round() {
	s, body := l.s, l.src.body
	l.n = l.outer.Append("prim::Loop", s.loc, []*ssa.Value{l.trip, l.cond})
	l.block = l.n.AddBlock()
	i := l.block.AddParam("", ssa.IntType)
	if trip, ok := py.ExprOf(l.src.trip); ok {
		i.Sym = []sym.Expr{s.m.FreshIndex("i", trip)}
	} else {
		i.Sym = []sym.Expr{s.m.FreshSymbol("i", 0)}
	}
	param := func(t ssa.Type) *ssa.Value { return l.fresh(l.block.AddParam("", t)) }
	at := s.moment()
	l.learn(l.before, l.src.inits, nil)
	s.put(body.Params[0], py.Dyn(i))
	s.build.cur = l.block
	xs, last := make([]py.Value, len(l.forms)), s.heap.Mark().Last
	for k, f := range l.forms {
		xs[k] = py.AsValue(l.Rebuild(f, param))
		s.put(body.Params[k+1], xs[k])
	}
	l.setCells(func(f *form.Form) any { return l.Rebuild(f, param) })
	l.relate(l.before, xs, last)
	l.relate(l.later, xs, last)
	s.region = s.heap.Mark().Last
	if l.src.first > 0 {
		s.put(body.Params[0], s.vals.intOp("add", py.Dyn(i), py.Int(l.src.first)))
	}
	rets := s.block(body)
	s.stay(l.src.inits, rets[1:])
	l.again, l.outs = rets[0], rets[1:]
	l.Changes[1] = s.heap.Rewind(at.heap)
	s.restore(at)
	s.build.cur = l.block
}

// setCells writes the carried cells, and makes those unreadable that an iteration leaves so.
func (l *loopState) setCells(bind func(f *form.Form) any) {
	for _, c := range l.cells {
		l.s.heap.Set(c, form.Content(c.Content(), bind(l.inCells[c])))
	}
	for _, c := range journal.Ordered(l.stale) {
		st := c.Content().(heap.State)
		st.Stale = l.stale[c]
		l.s.heap.Set(c, st)
	}
}

// settle makes what is carried fit what the body leaves, and reports whether it had to change.
func (l *loopState) settle() (changed bool) {
	l.Awaits = false
	changed = l.learn(l.later, l.outs, l.Changes[1])
	for k, f := range l.forms {
		changed = l.Widen(f, l.outs[k]) || changed
	}
	for _, c := range journal.Ordered(l.Changes[1]) {
		if c.ID() > l.Start {
			continue
		}
		if st, ok := l.Changes[1][c].(heap.State); ok && st.Stale != "" && l.stale[c] == "" && c.Content().(heap.State).Stale == "" {
			l.stale[c] = st.Stale
			changed = true
			if l.Strict && l.src.few {
				l.s.unroll("%s", st.Stale)
			}
		}
		if f := l.inCells[c]; f != nil {
			changed = l.Widen(f, l.Changes[1][c]) || changed
			continue
		}
		f := form.Of(c.Content())
		if l.Widen(f, l.Changes[1][c]) {
			l.inCells[c] = f
			l.cells = append(l.cells, c)
			changed = true
		}
	}
	for k, f := range l.forms {
		changed = l.Hold(f, l.src.inits[k], nil) || changed
		changed = l.Hold(f, l.outs[k], l.Changes[1]) || changed
	}
	for _, c := range l.cells {
		changed = l.Hold(l.inCells[c], c.Content(), nil) || changed
		changed = l.Hold(l.inCells[c], l.Changes[1].Of(c), l.Changes[1]) || changed
	}
	if l.Awaits && !changed {
		l.Refuse(form.NoneAlone)
	}
	return changed
}

// close gives the loop its operands, the returns of its body and its results.
func (l *loopState) close() {
	s := l.s
	var rets []*ssa.Value
	l.Changes[1].Under(func() {
		rets = append(rets, s.vals.materialize(l.again))
		for k, f := range l.forms {
			rets = l.Flatten(f, l.outs[k], rets)
		}
		for _, c := range l.cells {
			rets = l.Flatten(l.inCells[c], c.Content(), rets)
		}
	})
	l.block.SetReturns(rets...)
	s.build.cur = l.outer
	operands := []*ssa.Value{l.trip, l.cond}
	for k, f := range l.forms {
		operands = l.Flatten(f, l.src.inits[k], operands)
	}
	for _, c := range l.cells {
		operands = l.Flatten(l.inCells[c], c.Content(), operands)
	}
	l.n.MoveToEnd(l.outer)
	l.n.SetOperands(operands...)
	for _, v := range rets {
		if v.Type == ssa.IntType && v.Sym == nil {
			v.Sym = []sym.Expr{s.m.FreshSymbol("n", minInt)}
		}
	}
	result := func(t ssa.Type) *ssa.Value { return l.fresh(l.n.AddResult(t)) }
	xs, last := make([]py.Value, len(l.forms)), s.heap.Mark().Last
	endless := l.src.endless()
	for k, f := range l.forms {
		x := py.AsValue(l.Rebuild(l.After(f), result))
		if endless {
			x = atEnd(l.again, l.outs[k], x)
		}
		xs[k] = x
		s.build.name(x, l.src.op.Results[k].Name)
		s.put(l.src.op.Results[k], x)
	}
	l.setCells(func(f *form.Form) any { return l.Rebuild(l.After(f), result) })
	if s.mayBeEmpty(l.src) {
		l.relate(l.before, xs, last)
	}
	l.relate(l.later, xs, last)
	l.needStale()
}

// needStale asks for the first iteration by itself where a later one leaves memory unreadable that the program still reads.
func (l *loopState) needStale() {
	for _, c := range journal.Ordered(l.stale) {
		if !l.s.reads(c) {
			continue
		}
		if l.src.strict {
			l.s.fail("alias", "%s", l.stale[c])
		}
		l.s.offer(peel, l.src.op)
	}
}

// endless reports that the loop is a "while True", which its condition alone ends.
func (l *sourceLoop) endless() bool {
	trip, ok := py.IntOf(l.trip, 0)
	cond, known := py.LiteralOf(l.cond)
	return ok && trip == math.MaxInt64 && known && cond.Bool()
}

// atEnd is x, or the constant that out is in each iteration whose condition again is false: whether a return was met, of a loop
// that nothing else ends.
func atEnd(again, out, x py.Value) py.Value {
	a, ok0 := again.(py.Dynamic)
	o, ok1 := out.(py.Dynamic)
	if !ok0 || !ok1 || o.Type != ssa.BoolType {
		return x
	}
	for _, yes := range []bool{false, true} {
		if w := (wanted{}); w.add(a.Value, false) && (!w.add(o.Value, !yes) || !w.possible(new(int))) {
			return py.Bool(yes)
		}
	}
	return x
}

// wanted are bools of the target function, and what they would have to be.
type wanted map[*ssa.Value]bool

// maxCases bounds the search of possible.
const maxCases = 256

// add reports that v may be yes beside the others.
func (w wanted) add(v *ssa.Value, yes bool) bool {
	if d := v.Def(); d != nil {
		switch d.Kind {
		case "prim::Constant":
			l, ok := d.Attr("value")
			return !ok || l.Kind != ssa.BoolLit || l.Bool() == yes
		case "aten::__not__":
			return w.add(d.Operand(0), !yes)
		}
	}
	if have, ok := w[v]; ok {
		return have == yes
	}
	w[v] = yes
	return true
}

// possible reports that all may be so together, as far as the Ifs tell that they come from.
func (w wanted) possible(cases *int) bool {
	var n *ssa.Op
	for v := range w {
		if d := v.Def(); d != nil && d.Kind == "prim::If" && (n == nil || d.Results[0].ID > n.Results[0].ID) {
			n = d
		}
	}
	if *cases++; n == nil || *cases > maxCases {
		return true
	}
	for side, b := range n.Blocks {
		next, ok := wanted{}, true
		for v, yes := range w {
			if i := slices.Index(n.Results, v); i >= 0 {
				v = b.Return(i)
			}
			ok = ok && next.add(v, yes)
		}
		if ok && next.add(n.Operand(0), side == 0) && next.possible(cases) {
			return true
		}
	}
	return false
}
