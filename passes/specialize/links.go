package specialize

import (
	"slices"

	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// relate records that the merged tensor t is x where the If takes branch i.
func (m *merger) relate(t *py.Tensor, i int, x *py.Tensor) {
	from := heap.ViewOf(t).Storage
	if from.Cell.ID() <= m.Start { // a view of memory from before the If
		return
	}
	state := heap.ViewAt(x, m.Changes[i])
	m.shown = append(m.shown, [2]*heap.Storage{from, state.Storage})
	if to := state.Storage; to.Cell.ID() <= m.Start {
		l := &heap.Link{From: from, To: to, Cond: m.n.Operand(0), Side: i == 0, View: state}
		m.s.heap.Link(l)
		return
	}
	// memory of the branch, which may itself be related to memory outside, and may be what another merged tensor is
	for _, inner := range heap.Inside(state.Storage, m.Start) {
		for _, other := range m.held[inner] {
			m.s.heap.Together(from, other)
		}
		m.held[inner] = append(m.held[inner], from)
	}
	m.relateInner(t, i, state.Storage, state, nil)
}

// relateInner records what the merged tensor t has to do with memory outside of
// the If, where it is the view state of at, memory that branch i made. That may be a view of
// memory outside under conditions of the branch: when lists those on the way.
func (m *merger) relateInner(t *py.Tensor, i int, at *heap.Storage, state *heap.View, when []*heap.Link) {
	s, from := m.s, heap.ViewOf(t).Storage
	related := map[*heap.Storage]bool{} // peers of peers are the same ones again
	for _, p := range at.Peers() {
		for _, q := range heap.Outside(p, m.Start) {
			s.step()
			if !related[q] {
				related[q] = true
				s.heap.Peer(from, q)
			}
		}
	}
	for _, l := range at.Links() {
		if l.From != at {
			continue
		}
		s.heap.Inherit(from, l.To)
		way := append(when[:len(when):len(when)], l)
		chain := slices.Concat(l.View.Chain, state.Chain)
		view := &heap.View{Storage: l.To, Chain: chain, Strides: state.Strides}
		switch {
		case l.To.Cell.ID() > m.Start:
			m.relateInner(t, i, l.To, view, way)
		case !staysAt(view, nil, s.build.cur) || !allInScope(way, m.blocks[i]):
			s.heap.Peer(from, l.To)
		default:
			n := &heap.Link{From: from, To: l.To, Cond: m.holds(i, way), Side: true, View: view}
			s.heap.Link(n)
		}
	}
}

func allInScope(links []*heap.Link, b *ssa.Block) bool {
	for _, l := range links {
		if !inScope(l.Cond, b) {
			return false
		}
	}
	return true
}

// holds is a result of the If: that it takes branch i, and the links are active there.
func (m *merger) holds(i int, links []*heap.Link) *ssa.Value {
	s := m.s
	var all *ssa.Value
	m.At(i, func() {
		for _, l := range links {
			c := l.Cond
			if !l.Side {
				c = s.vals.emitName("aten::__not__", c)
			}
			if all == nil {
				all = c
			} else {
				all = s.vals.emitName("aten::__and__.bool", all, c)
			}
		}
	})
	return m.sided(i, all)
}
