package specialize

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// Where what follows hangs on a fact that is known at run time only - whether an
// Optional is None, which rank or dtype a tensor has, which object a name means -
// the path is split: an If is emitted whose branches both have the rest of the
// block, each evaluated with the fact known. The branches are joined at the end
// of the block, if their results have a common form. Else the rest of the block
// around it, or of the caller, goes into the branches too, as far as it needs to.

// maxPaths bounds how often paths are split in a program, since each split copies what follows.
const maxPaths = 64

// until copies the stack from f down to the frame bottom, with o as the next operator of f.
func (f *frame) until(bottom *frame, o *ssa.Op) *frame {
	c := *f
	if o != nil {
		c.next = o
	}
	if f == bottom {
		c.up, c.outer = nil, f.outside()
	} else {
		c.up = f.up.until(bottom, nil)
	}
	return &c
}

// split evaluates o and what follows it for both values of a bool. It gives the
// frame at whose end the two paths were joined, and its results.
func (s *walk) split(f *frame, o *ssa.Op, need needSplit) (*frame, []py.Value) {
	for bottom := f; bottom != nil; bottom = bottom.up {
		if most := s.m.Allow(maxPaths); int64(s.paths) >= most {
			need.why.d.Hint = fmt.Sprintf("what follows would have to be in the model more than %d times, once for each case; %s", most, ssa.BudgetHint)
			break
		}
		s.paths++
		var results []py.Value
		end := s.try(func() {
			results = s.both(need.cond, bottom, func(side int) []py.Value {
				s.facts = s.facts.with(need.cond, side == 0)
				return s.run(f.until(bottom, o))
			})
		})
		switch end.verdict {
		case done:
			return bottom, results
		case raises, mustUnroll:
			end.propagate()
		case mustSplit, failed: // another try at the program may get further on the paths
			need.why.found.learn(end.failure.found)
			need.why.losers = slices.Concat(end.failure.losers, need.why.losers)
		}
	}
	need.why.unjoined = true
	panic(need.why)
}

// path evaluates one branch of an If into a target block and undoes its changes.
func (s *walk) path(dst *ssa.Block, f func() []py.Value) (out outcome) {
	at := s.moment()
	end := s.try(func() {
		s.build.cur, s.region = dst, s.heap.Mark().Last
		out.results = f()
	})
	switch end.verdict {
	case done:
		out.changes = s.heap.Rewind(at.heap)
		s.restore(at)
		return out
	case raises:
		return outcome{raised: &end.raised}
	}
	end.propagate()
	return out
}

// both emits an If on cond whose branches are the two paths, and gives what they
// both give. Where that has no form, it ends in a needSplit on cond. If the paths go to
// the end of a frame, bottom is that frame, and only what can be reached from
// outside of it is joined.
func (s *walk) both(cond *ssa.Value, bottom *frame, f func(side int) []py.Value) []py.Value {
	start := s.heap.Mark().Last
	n := s.build.cur.Append("prim::If", s.loc, []*ssa.Value{cond})
	blocks := [2]*ssa.Block{n.AddBlock(), n.AddBlock()}
	var outs [2]outcome
	end := s.try(func() {
		for side, b := range blocks {
			outs[side] = s.path(b, func() []py.Value {
				s.learn(cond, side == 0)
				return f(side)
			})
		}
	})
	if end.failure != nil && end.failure.unjoined { // with what follows this If, it may have a form
		panic(needSplit{cond: cond, why: end.failure})
	}
	end.propagate()
	if results, ok := s.unlessRaised(n, outs); ok {
		return results
	}
	m := s.newMerger(n, outs, start)
	if bottom != nil {
		m.reach = s.reachable(outs, bottom)
	}
	var results []py.Value
	end = s.try(func() { results = m.join(outs) })
	if end.verdict == failed {
		panic(needSplit{cond: cond, why: end.failure})
	}
	end.propagate()
	return results
}

// unlessRaised takes the path of an If that raises no exception, where the other one does; ok is false where neither does. Where
// both do, so does the If.
func (s *walk) unlessRaised(n *ssa.Op, outs [2]outcome) (results []py.Value, ok bool) {
	switch {
	case outs[0].raised != nil && outs[1].raised != nil:
		n.Erase()
		panic(*outs[0].raised)
	case outs[1].raised != nil:
		return s.dropCheck(n, 0, outs[0], outs[1].raised), true
	case outs[0].raised != nil:
		return s.dropCheck(n, 1, outs[1], outs[0].raised), true
	}
	return nil, false
}

// dropCheck takes the one path of an If whose other path raises an exception.
func (s *walk) dropCheck(n *ssa.Op, keep int, out outcome, why *raised) []py.Value {
	s.warnf("dropped-assert", "a check on data is left out (%s)", why.message)
	cond := n.Operand(0)
	if !(knownSizes{}).of(facts{}.with(cond, keep == 0)).empty() {
		s.offer(knowSizes, s.op)
	}
	defer s.learn(cond, keep == 0)
	return s.only(n, keep, out)
}

// only puts one block in the place of an If.
func (s *walk) only(n *ssa.Op, keep int, out outcome) []py.Value {
	s.build.cur.Splice(n, n.Blocks[keep])
	n.Erase()
	for _, c := range journal.Ordered(out.changes) {
		s.heap.Set(c, out.changes[c])
	}
	return out.results
}

// ifOp evaluates an If whose condition is known at run time only.
func (s *walk) ifOp(o *ssa.Op) {
	var results []py.Value
	switch cond := s.get(o.Operand(0)).(type) {
	case py.Unknown:
		results = s.unknownIf(o)
	case py.Dynamic:
		s.putBy(o.Blocks[0])
		s.putBy(o.Blocks[1])
		results = s.both(cond.Value, nil, func(side int) []py.Value { return s.block(o.Blocks[side]) })
	default:
		s.fail("unsupported-value", "the condition is not a bool")
	}
	for i, r := range o.Results {
		s.build.name(results[i], r.Name)
		s.put(r, results[i])
	}
}
