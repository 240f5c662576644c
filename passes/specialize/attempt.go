package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// verdict is how an attempt ended.
type verdict int

const (
	done       verdict = iota
	raises             // the program raises an exception
	mustUnroll         // a loop cannot stay a loop
	mustSplit          // what follows depends on a bool that is known at run time only
	failed
)

// ending is how an attempt ended, and why it was not done.
type ending struct {
	verdict
	raised  raised
	unroll  needUnroll
	split   needSplit
	failure *failure
}

// propagate ends the evaluation around an attempt as the attempt ended.
func (e ending) propagate() {
	switch e.verdict {
	case raises:
		panic(e.raised)
	case mustUnroll:
		panic(e.unroll)
	case mustSplit:
		panic(e.split)
	case failed:
		panic(e.failure)
	}
}

// moment is all that an attempt can change.
type moment struct {
	heap  journal.Mark
	frame *frame
	env   []py.Value
	cur   *ssa.Block
	last  *ssa.Op // of cur
	loc   diag.Loc
	op    *ssa.Op
	found findings
	mode  mode
	// region is the newest cell from before the branch or the iteration at hand.
	region int
	facts  facts
	known  knownSizes
}

func (s *walk) moment() moment {
	return moment{heap: s.heap.Mark(), frame: s.frame, env: s.env, cur: s.build.cur, last: s.build.cur.Last(), loc: s.loc, op: s.op, found: s.findings, mode: s.mode, region: s.region, facts: s.facts, known: s.known}
}

// restore goes on at a moment: with its block, its variables, its place in the source, and what was known on its path.
func (s *walk) restore(m moment) {
	s.frame, s.env, s.build.cur, s.loc, s.op, s.mode = m.frame, m.env, m.cur, m.loc, m.op, m.mode
	s.facts, s.known, s.region = m.facts, m.known, m.region
}

// rollback makes all be as it was at a moment. Constants that were hoisted stay: other operators may find them.
func (s *walk) rollback(m moment) {
	s.heap.Rollback(m.heap)
	s.restore(m)
	s.findings = m.found
	s.build.eraseAfter(m.cur, m.last)
}

// try runs f. Where f is not done, everything is as it was before, but for the sizes that an exception depends on: the model checks these.
func (s *walk) try(f func()) (end ending) {
	at := s.moment()
	defer func() {
		switch r := recover().(type) {
		case nil:
			return
		case raised:
			end = ending{verdict: raises, raised: r}
		case needUnroll:
			end = ending{verdict: mustUnroll, unroll: r}
		case needSplit:
			end = ending{verdict: mustSplit, split: r, failure: r.why}
		case *failure:
			end = ending{verdict: failed, failure: r}
		default:
			panic(r)
		}
		found := s.findings
		s.rollback(at)
		if end.verdict == raises {
			s.keepLeast(found)
		}
	}()
	f()
	return ending{}
}

// eraseAfter removes what was appended to b after last.
func (s *builder) eraseAfter(b *ssa.Block, last *ssa.Op) {
	for o := b.Last(); o != nil && o != last && o != s.lastCon; {
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

// outcome is what the evaluation of a path gave.
type outcome struct {
	results []py.Value
	changes journal.Changes // contents of cells at the end, undone outside
	raised  *raised
}
