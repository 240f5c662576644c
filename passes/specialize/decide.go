package specialize

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// A program is evaluated as it is first. An operator that can be evaluated in another way, which keeps more of what is known, offers that. Where
// the program cannot be converted, the failure names the operators that lost what it needed; one of these is decided to be evaluated in the way
// that it offers, and the walk begins again. No decision is taken back.

// maxNamed is the number of decisions for single operators: behind that, a way is decided for all operators at once.
const maxNamed = 8

// takes reports that the operator at hand is evaluated in another way.
func (s *context) takes(w way) bool {
	for _, d := range []decision{{w, s.op}, {w, nil}} {
		if s.decided.taken[d] {
			s.decided.used[d] = true
			return true
		}
	}
	return false
}

// knowsSizes reports that knowSizes was decided.
func (s *context) knowsSizes() bool { return s.decided.taken[decision{knowSizes, nil}] }

// offer notes that the operator at hand can be evaluated in another way, should what follows need it.
func (f *findings) offer(w way, at *ssa.Op) {
	if d := (decision{w, at}); !slices.Contains(f.offers, d) {
		f.offers = append(slices.Clip(f.offers), d)
	}
}

// less is called where two values have a common form that says less than they do. It ends the path if what follows is to be evaluated for each of
// the two.
func (s *context) less(id, format string, args ...any) {
	switch {
	case s.takes(widen):
	case s.takes(split):
		s.offer(widen, s.op)
		s.fail(id, format, args...)
	default:
		s.offer(split, s.op)
	}
}

// loses notes that the operator at hand gives a value of which less is known than of its operands.
func (s *context) loses(v *ssa.Value) { s.losers[v] = s.op }

// losersOf are the operators of the program that lost what is not known of v.
func (s *context) losersOf(v *ssa.Value) (ops []*ssa.Op) {
	seen := map[*ssa.Value]bool{}
	var visit func(v *ssa.Value)
	visit = func(v *ssa.Value) {
		if v == nil || seen[v] || len(seen) > maxTraced {
			return
		}
		seen[v] = true
		if o := s.losers[v]; o != nil {
			if !slices.Contains(ops, o) {
				ops = append(ops, o)
			}
			return
		}
		d := v.Def()
		if t := v.Tensor(); d == nil || t != nil && t.Ranked {
			return
		}
		for _, x := range d.Operands() {
			visit(x)
		}
		for _, b := range d.Blocks {
			for _, x := range b.Returns() {
				visit(x)
			}
		}
	}
	visit(v)
	return ops
}

// maxTraced bounds the values that losersOf looks at.
const maxTraced = 4096

// losersOfCells are the operators that made objects which may be another one.
func (s *context) losersOfCells(cells []*journal.Cell) (ops []*ssa.Op) {
	for _, c := range cells {
		if o := s.oneOf[c]; o != nil && !slices.Contains(ops, o) {
			ops = append(ops, o)
		}
	}
	return ops
}

// needRank notes that an operator needs the rank of one of its operands, where that is open.
func (s *context) needRank(operands ...*ssa.Value) {
	if len(s.openRanks) == 0 || s.rankNeeded != nil {
		return
	}
	need := &failure{d: s.openRanks[0], by: site{s.loc, ""}}
	if s.op != nil {
		need.by.op = s.op.Kind
	}
	for _, v := range operands {
		need.losers = append(need.losers, s.losersOf(v)...)
	}
	s.rankNeeded = need
}

// next takes one more decision, for which a walk failed; ok is false if there is none.
func (ds *decisions) next(m *ssa.Module, f *failure) (ok bool) {
	for _, d := range f.found.offers {
		if !slices.Contains(ds.offered, d) {
			ds.offered = append(ds.offered, d)
		}
	}
	for _, at := range f.losers {
		for w := range knowSizes {
			d := decision{w, at}
			if !slices.Contains(f.found.offers, d) || ds.has(d) {
				continue
			}
			if w == split || len(ds.taken) >= maxNamed {
				d.at = nil // an If is not split alone: what the others lose would be missing in its branches, and be split there, in more places
			}
			return ds.take(m, d, at, f)
		}
	}
	for w := range ways {
		offers := f.found.offers
		if w >= knowSizes { // a later walk may end before the operator that offers it
			offers = ds.offered
		}
		if i := slices.IndexFunc(offers, func(d decision) bool { return d.way == w && !ds.has(d) }); i >= 0 {
			return ds.take(m, decision{w, nil}, offers[i].at, f)
		}
	}
	return false
}

func (ds *decisions) has(d decision) bool { return ds.taken[d] || ds.taken[decision{d.way, nil}] }

// take takes a decision, because of a failure. at is an operator that it is about.
func (ds *decisions) take(m *ssa.Module, d decision, at *ssa.Op, f *failure) bool {
	ds.taken[d] = true
	told := diag.Diagnostic{Severity: diag.Note, ID: "decided", Message: d.way.String()}
	if at != nil {
		told.Loc, told.Op = at.Loc, string(at.Kind)
	}
	why := f.d.Message
	if by := cmp.Or(f.by, site{f.d.Loc, ssa.Kind(f.d.Op)}); by.loc != told.Loc {
		why = strings.Join(slices.DeleteFunc([]string{m.Locs.Position(by.loc), string(by.op), why}, func(s string) bool { return s == "" }), ": ")
	}
	told.Message += "; else " + why
	ds.told, ds.of = append(ds.told, told), append(ds.of, d)
	return true
}

// needed are notes on the decisions that changed something. Two are about the whole walk, and are taken only because a program cannot do without them.
func (ds *decisions) needed() (notes []diag.Diagnostic) {
	for i, d := range ds.told {
		if way := ds.of[i].way; ds.used[ds.of[i]] || way == inPools || way == knowSizes {
			notes = append(notes, d)
		}
	}
	return notes
}

// tried is a note on a failure that says what was decided because of it, in vain.
func (ds *decisions) tried(m *ssa.Module, f *failure) []diag.Diagnostic {
	var ways []string
	for i, d := range ds.told {
		text := ds.of[i].way.String()
		if pos := m.Locs.Position(d.Loc); pos != "" && ds.of[i].at != nil {
			text += " at " + pos
		}
		ways = append(ways, text)
	}
	if ways == nil {
		return nil
	}
	return []diag.Diagnostic{{Severity: diag.Note, ID: "tried", Loc: f.d.Loc, Op: f.d.Op, Message: "cannot be converted either if " + strings.Join(ways, ", and ")}}
}
