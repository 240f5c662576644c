package heap

import (
	"errors"

	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/ssa"
)

// Graph builds values of the target program for the heap.
type Graph interface {
	// Derive gives the view of one step of a base.
	Derive(step *Step, base *ssa.Value) *ssa.Value
	// Replace gives the base after its view was replaced by v.
	Replace(view *View, base, v *ssa.Value) *ssa.Value
	// When gives f() where cond is side at run time, else v.
	When(cond *ssa.Value, side bool, v *ssa.Value, f func() *ssa.Value) *ssa.Value
	// Reaches reports that a value can be used at the place where the graph is built.
	Reaches(v *ssa.Value) bool
}

// ErrListed is the error of a write to memory that a run-time list holds.
var ErrListed = errors.New("an element of a list whose length is only known at run time is written; use .clone() to make it independent")

// Derive gives the value of a view, for a value of its storage.
func (v *View) Derive(g Graph, base *ssa.Value) *ssa.Value {
	for i := range v.Chain {
		base = g.Derive(&v.Chain[i], base)
	}
	return base
}

// Write sets the value of a storage, and of those that are views of the same
// memory where a condition holds. Storages that may be the same memory become
// unreadable, for the reason why. What is assumed not to be the same memory is
// given back: the model is right for it only if no axis of these has size 1.
//
// For given conditions the active links join storages to trees: what is written
// at one goes up to those that it is a view of, and from there down to their views.
func (h *Heap) Write(g Graph, st *Storage, v *ssa.Value, why func() string) (assumed []Apart, err error) {
	s := st.State()
	s.Base = v
	h.Set(st.Cell, s)
	if len(st.links)+len(st.peers)+len(st.apart) == 0 {
		return nil, nil
	}
	reach := map[*Storage]bool{st: true}
	ways := map[*Storage][]*Link{} // by which the writes came up to a storage
	var lost []*Storage            // written in some case, which cannot be told here
	// a storage is made after those that it may be a view of
	for at := st; at != nil; at = before(reach, at) {
		from := at.State().Base
		for _, l := range at.links {
			if l.From != at {
				continue
			}
			if !l.active(g, l.To) {
				lost = append(lost, l.To)
				continue
			}
			to := l.To.State()
			replaced := func() *ssa.Value { return g.Replace(l.View, to.Base, from) }
			if reach[l.To] && at != st { // it was written on another way: at may be what it was before that
				to.Base = h.written(g, at, ways, to.Base, func() *ssa.Value { return g.When(l.Cond, l.Side, to.Base, replaced) })
			} else {
				to.Base = g.When(l.Cond, l.Side, to.Base, replaced)
			}
			h.Set(l.To.Cell, to)
			reach[l.To] = true
			ways[l.To] = append(ways[l.To], l)
		}
	}
	for _, at := range byAge(reach) {
		h.writeDown(g, at, st, reach)
	}
	spoil := &spoiler{h: h, written: st, why: why, seen: map[*Storage]bool{}}
	for _, at := range lost {
		if err := spoil.spoilAll(at); err != nil {
			return assumed, err
		}
	}
	for _, at := range byAge(reach) {
		if at != st && at.listed {
			return assumed, ErrListed
		}
		for _, p := range at.apart {
			if p.From.State().Stale == "" && !reach[p.From] {
				assumed = append(assumed, p)
			}
		}
		for _, p := range at.peers {
			if err := spoil.spoil(p); err != nil {
				return assumed, err
			}
		}
	}
	return assumed, nil
}

// Resize gives the tensor object c the memory of view in place of its own, whose size was changed. What else views the memory
// that it had, or may be the same object, cannot be read any more, for the reason why.
func (h *Heap) Resize(c *journal.Cell, view *View, why string) error {
	old := c.Content().(*View).Storage
	h.Reshape(c, view, why)
	return (&spoiler{h: h, why: func() string { return why }, seen: map[*Storage]bool{}}).spoilAll(old)
}

// spoiler makes storages unreadable that may be memory which was written.
type spoiler struct {
	h       *Heap
	written *Storage
	why     func() string
	seen    map[*Storage]bool
}

// spoil goes on to the storages that are views of the same memory in some case, also from one that was unreadable before: those
// may have been made since. Where one of them was reached by links too, that was for some conditions only.
func (s *spoiler) spoil(p *Storage) error {
	if p == s.written || s.seen[p] {
		return nil
	}
	s.seen[p] = true
	if p.listed {
		return ErrListed
	}
	if state := p.State(); state.Stale == "" {
		state.Stale = s.why()
		s.h.Set(p.Cell, state)
	}
	for _, l := range p.links {
		for _, other := range [...]*Storage{l.From, l.To} {
			if err := s.spoil(other); err != nil {
				return err
			}
		}
	}
	return nil
}

// spoilAll spoils a storage that is written in some case, and those that may be the same memory.
func (s *spoiler) spoilAll(p *Storage) error {
	if err := s.spoil(p); err != nil {
		return err
	}
	for _, q := range p.peers {
		if err := s.spoil(q); err != nil {
			return err
		}
	}
	for _, l := range p.links {
		if l.From == p {
			if err := s.spoilAll(l.To); err != nil {
				return err
			}
		}
	}
	return nil
}

// written gives f() where the write came up to a storage, else v. At most one of the ways to it is taken.
func (h *Heap) written(g Graph, at *Storage, ways map[*Storage][]*Link, v *ssa.Value, f func() *ssa.Value) *ssa.Value {
	if len(ways[at]) == 0 { // the write began there
		return f()
	}
	for _, l := range ways[at] {
		was := v
		v = h.written(g, l.From, ways, was, func() *ssa.Value { return g.When(l.Cond, l.Side, was, f) })
	}
	return v
}

// writeDown derives the storages anew that are views of one that was written.
func (h *Heap) writeDown(g Graph, at, written *Storage, reach map[*Storage]bool) {
	base := at.State().Base
	for _, l := range at.links {
		if l.To != at || l.From == written || !l.active(g, l.From) {
			continue
		}
		from := l.From.State()
		from.Base = g.When(l.Cond, l.Side, from.Base, func() *ssa.Value { return l.View.Derive(g, base) })
		h.Set(l.From.Cell, from)
		reach[l.From] = true
		h.writeDown(g, l.From, written, reach)
	}
}

// active reports that a link can be followed to its other end here.
func (l *Link) active(g Graph, other *Storage) bool {
	s := other.State()
	return s.Stale == "" && g.Reaches(l.Cond) && g.Reaches(s.Base)
}

// before is the newest storage of a set that is older than at, nil if there is none.
func before(set map[*Storage]bool, at *Storage) *Storage {
	var best *Storage
	for st := range set {
		if st.Cell.ID() < at.Cell.ID() && (best == nil || st.Cell.ID() > best.Cell.ID()) {
			best = st
		}
	}
	return best
}
