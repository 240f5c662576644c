package specialize

import "github.com/aton-project/aton/ssa"

// relateInner records what the merged tensor t has to do with memory outside of
// the If, where it is the view state of at, memory that branch i made. That may be a view of
// memory outside under conditions of the branch: when lists those on the way.
func (m *merger) relateInner(t *tensorRef, i int, at *storage, state *tensorState, when []*link) {
	s, from := m.s, t.state().st
	for _, p := range at.peers {
		for _, q := range outside(p, m.start) {
			s.peer(from, q)
		}
	}
	for _, l := range at.links {
		if l.from != at {
			continue
		}
		from.listed = from.listed || l.to.listed
		way := append(when[:len(when):len(when)], l)
		chain := append(l.view.chain[:len(l.view.chain):len(l.view.chain)], state.chain...)
		view := &tensorState{st: l.to, chain: chain, strides: state.strides}
		switch {
		case l.to.c.id > m.start:
			m.relateInner(t, i, l.to, view, way)
		case !s.staysAt(view, nil, s.cur) || !allInScope(way, m.blocks[i]):
			s.peer(from, l.to)
		default:
			n := &link{from: from, to: l.to, cond: m.holds(i, way), side: true, view: view}
			from.links, l.to.links = append(from.links, n), append(l.to.links, n)
		}
	}
}

func allInScope(links []*link, b *ssa.Block) bool {
	for _, l := range links {
		if !inScope(l.cond, b) {
			return false
		}
	}
	return true
}

// holds is a result of the If: that it takes branch i, and the links are active there.
func (m *merger) holds(i int, links []*link) *ssa.Value {
	s := m.s
	yes := m.in(i, func() *ssa.Value {
		var all *ssa.Value
		for _, l := range links {
			c := l.cond
			if !l.side {
				c = s.emitName("aten::__not__", c)
			}
			if all == nil {
				all = c
			} else {
				all = s.emitName("aten::__and__.bool", all, c)
			}
		}
		return all
	})
	no := s.constant(ssa.Bool(false))
	if i == 0 {
		return m.pair(yes, no, ssa.BoolType)
	}
	return m.pair(no, yes, ssa.BoolType)
}

// outside lists the storages made before start that st is, or may be in some case.
func outside(st *storage, start int) []*storage {
	var out []*storage
	seen := map[*storage]bool{}
	var visit func(st *storage)
	visit = func(st *storage) {
		if seen[st] {
			return
		}
		seen[st] = true
		if st.c.id <= start {
			out = append(out, st)
			return
		}
		for _, p := range st.peers {
			visit(p)
		}
		for _, l := range st.links {
			visit(l.from)
			visit(l.to)
		}
	}
	visit(st)
	return out
}
