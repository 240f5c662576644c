package specialize

import (
	"testing"

	"github.com/aton-project/aton/ssa"
)

// failing is a walk that offers decisions, and fails because of what some operators lost.
func failing(losers []*ssa.Op, offers ...decision) *failure {
	f := &failure{losers: losers}
	f.found.offers = offers
	return f
}

// TestNextTakesWhatTheFailureNames: what the failure hangs on comes before what merely could be evaluated in another way.
func TestNextTakesWhatTheFailureNames(t *testing.T) {
	m := ssa.NewModule()
	squeeze, loop := &ssa.Op{Kind: "aten::squeeze"}, &ssa.Op{Kind: "prim::Loop"}
	ds := newDecisions()
	f := failing([]*ssa.Op{loop}, decision{atLeastTwo, squeeze}, decision{peel, loop})
	if !ds.next(m, f) || !ds.taken[decision{peel, loop}] || len(ds.taken) != 1 {
		t.Errorf("took %v, want to evaluate the first iteration of the loop", ds.taken)
	}
	// the same failure again: the squeeze is what is left
	if !ds.next(m, f) || !ds.taken[decision{atLeastTwo, nil}] {
		t.Errorf("took %v, want the axis of the squeeze too", ds.taken)
	}
}

// TestNextSplitsAll: an If that is named is not split alone.
func TestNextSplitsAll(t *testing.T) {
	a, b := &ssa.Op{Kind: "prim::If"}, &ssa.Op{Kind: "prim::If"}
	ds := newDecisions()
	if !ds.next(ssa.NewModule(), failing([]*ssa.Op{b}, decision{split, a}, decision{split, b})) || !ds.taken[decision{split, nil}] {
		t.Errorf("took %v", ds.taken)
	}
}

// TestNextRemembersWhatComesLast: that a common form may stay, or that sizes are known, was offered by an operator that a later walk does not come to.
func TestNextRemembersWhatComesLast(t *testing.T) {
	m := ssa.NewModule()
	a := &ssa.Op{Kind: "prim::If"}
	ds := newDecisions()
	ds.next(m, failing(nil, decision{split, a}, decision{knowSizes, a}, decision{widen, a}))
	for _, w := range []way{knowSizes, widen} {
		if !ds.next(m, failing(nil)) || !ds.taken[decision{w, nil}] {
			t.Errorf("took %v, want that %s", ds.taken, w)
		}
	}
	if ds.next(m, failing(nil)) {
		t.Errorf("took %v, though nothing is left", ds.taken)
	}
}

// TestNextEnds: each failure takes one decision more, none is taken back, and there is an end, whatever a program offers.
func TestNextEnds(t *testing.T) {
	m := ssa.NewModule()
	var ops []*ssa.Op
	var offers []decision
	for range 100 {
		op := &ssa.Op{}
		ops = append(ops, op)
		for w := range ways {
			offers = append(offers, decision{w, op})
		}
	}
	ds := newDecisions()
	n := 0
	for ds.next(m, failing(ops, offers...)) {
		if n++; n > maxNamed+int(ways) {
			t.Fatalf("%d decisions, and no end", n)
		}
		if len(ds.taken) != n || len(ds.told) != n {
			t.Fatalf("%d decisions are taken behind %d failures, and %d told", len(ds.taken), n, len(ds.told))
		}
	}
	for w := range ways {
		if !ds.taken[decision{w, nil}] {
			t.Errorf("%s: not tried for all operators", w)
		}
	}
}
