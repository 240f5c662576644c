package specialize

import (
	"github.com/aton-project/aton/ssa"
)

// argPlace is an argument of a step of a view chain.
type argPlace struct{ step, arg int }

// alike compares two views of one storage that take the same steps: it gives
// the places of numbers in which they differ. ok is false if they differ in more.
func (s *spec) alike(a, b *tensorState) (places []argPlace, ok bool) {
	if a.st != b.st || len(a.chain) == 0 || len(a.chain) != len(b.chain) || len(a.strides) != len(b.strides) || a.strides == nil {
		return nil, false
	}
	for i := range a.strides {
		if !a.strides[i].Equal(b.strides[i]) {
			return nil, false
		}
	}
	for i := range a.chain {
		x, y := &a.chain[i], &b.chain[i]
		if x.kind != y.kind || x.schema != y.schema || x.index != y.index || x.n != y.n || len(x.args) != len(y.args) {
			return nil, false
		}
		for k := 1; k < len(x.args); k++ {
			if s.sameArg(x.args[k], y.args[k]) {
				continue
			}
			tx, ok := numberType(x.args[k])
			ty, ok2 := numberType(y.args[k])
			if !ok || !ok2 || tx != ssa.IntType || ty != ssa.IntType || !movable(x.kind, x.schema.Args[k].Name) {
				return nil, false
			}
			places = append(places, argPlace{i, k})
		}
	}
	return places, true
}

// movable are the arguments that say where a view begins, and not what form it has.
func movable(kind ssa.Kind, arg string) bool {
	return kind == "aten::select" && arg == "index" || kind == "aten::narrow" && arg == "start"
}

func (s *spec) sameArg(a, b value) bool {
	if same(a, b) {
		return true
	}
	x, ok := s.literalOf(a)
	y, ok2 := s.literalOf(b)
	return ok && ok2 && x.Equal(y)
}

// movedTo is a view of the form of st with other numbers in some places.
func (s *spec) movedTo(st *tensorState, places []argPlace, args []value) *tensorRef {
	chain := append([]viewStep(nil), st.chain...)
	for i, p := range places {
		old := chain[p.step].args
		chain[p.step].args = append([]value(nil), old...)
		chain[p.step].args[p.arg] = args[i]
	}
	return s.newView(st.st, chain, st.strides, nil, nil)
}

// view makes the tensor that is x or y, two views of one storage, if they take the same steps.
func (m *merger) view(x, y *tensorRef) *tensorRef {
	a, b := contentIn(m.changes[0], x.c).(*tensorState), contentIn(m.changes[1], y.c).(*tensorState)
	if a.st.c.id > m.start {
		return nil
	}
	places, ok := m.s.alike(a, b)
	if !ok {
		return nil
	}
	if !m.s.staysAt(a, places, m.s.cur) {
		return nil
	}
	var args []value
	for _, p := range places {
		args = append(args, m.merge(a.chain[p.step].args[p.arg], b.chain[p.step].args[p.arg]))
	}
	return m.s.movedTo(a, places, args)
}

// staysAt reports that the arguments of a view's steps, but for those in places, are there in a block.
func (s *spec) staysAt(st *tensorState, places []argPlace, b *ssa.Block) bool {
	moves := map[argPlace]bool{}
	for _, p := range places {
		moves[p] = true
	}
	for i := range st.chain {
		for k, arg := range st.chain[i].args {
			v, ok := arg.(*ssa.Value)
			if l, isList := arg.(*list); isList {
				for _, e := range l.state().elems {
					if v, ok := e.(*ssa.Value); ok && !inScope(v, b) {
						return false
					}
				}
			}
			if ok && !moves[argPlace{i, k}] && !inScope(v, b) {
				return false
			}
		}
	}
	return true
}

// openView makes a slot that holds a view one whose place is carried, if x is a
// view of the same storage that takes the same steps.
func (l *loopState) openView(sl *slot, x any) bool {
	t, ok := sl.val.(*tensorRef)
	u, ok2 := x.(*tensorRef)
	if !ok || !ok2 || t.state().st.c.id > l.start {
		return false
	}
	places, ok := l.s.alike(t.state(), contentIn(l.changes, u.c).(*tensorState))
	if !ok {
		return false
	}
	*sl = slot{kind: viewed, val: t, view: t.state(), places: places}
	for range places {
		sl.elems = append(sl.elems, &slot{kind: number, typ: ssa.IntType})
	}
	return true
}

// widenView makes a slot of a view fit x too; what is no such view makes it a tensor.
func (l *loopState) widenView(sl *slot, x any) bool {
	if u, ok := x.(*tensorRef); ok {
		if places, ok := l.s.alike(sl.view, contentIn(l.changes, u.c).(*tensorState)); ok {
			known := map[argPlace]bool{}
			for _, p := range sl.places {
				known[p] = true
			}
			changed := false
			for _, p := range places {
				if !known[p] {
					sl.places, changed = append(sl.places, p), true
					sl.elems = append(sl.elems, &slot{kind: number, typ: ssa.IntType})
				}
			}
			return changed
		}
	}
	*sl = slot{kind: fixed, val: sl.val}
	l.open(sl)
	l.widen(sl, x)
	return true
}
