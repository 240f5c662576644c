package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// movedTo is a view of the form of st with other numbers in some places.
func (s *views) movedTo(st *heap.View, places []heap.Place, args []py.Value) *py.Tensor {
	chain := append([]heap.Step(nil), st.Chain...)
	for i, p := range places {
		old := chain[p.Step].Args
		chain[p.Step].Args = append([]py.Value(nil), old...)
		chain[p.Step].Args[p.Arg] = args[i]
	}
	return s.heap.View(st.Storage, chain, st.Strides, nil, nil)
}

// view makes the tensor that is x or y, two views of one storage, if they take the same steps.
func (m *merger) view(x, y *py.Tensor) *py.Tensor {
	a, b := heap.ViewAt(x, m.changes[0]), heap.ViewAt(y, m.changes[1])
	if a.Storage.Cell.ID() > m.start {
		return nil
	}
	places, ok := heap.Alike(a, b)
	if !ok {
		return nil
	}
	if !staysAt(a, places, m.s.build.cur) {
		return nil
	}
	var args []py.Value
	for _, p := range places {
		args = append(args, m.merge(a.Chain[p.Step].Args[p.Arg], b.Chain[p.Step].Args[p.Arg]))
	}
	return m.s.views.movedTo(a, places, args)
}

// staysAt reports that the arguments of a view's steps, but for those in places, are there in a block.
func staysAt(st *heap.View, places []heap.Place, b *ssa.Block) bool {
	moves := map[heap.Place]bool{}
	for _, p := range places {
		moves[p] = true
	}
	for i := range st.Chain {
		for k, arg := range st.Chain[i].Args {
			v, ok := arg.(py.Dynamic)
			if l, isList := arg.(*py.List); isList {
				for _, e := range l.State().Elems {
					if v, ok := e.(py.Dynamic); ok && !inScope(v.Value, b) {
						return false
					}
				}
			}
			if ok && !moves[heap.Place{Step: i, Arg: k}] && !inScope(v.Value, b) {
				return false
			}
		}
	}
	return true
}

// openView makes a slot that holds a view one whose place is carried, if x is a
// view of the same storage that takes the same steps.
func (l *loopState) openView(sl *slot, x any) bool {
	t, ok := sl.val.(*py.Tensor)
	u, ok2 := x.(*py.Tensor)
	if !ok || !ok2 || heap.ViewOf(t).Storage.Cell.ID() > l.start {
		return false
	}
	places, ok := heap.Alike(heap.ViewOf(t), heap.ViewAt(u, l.changes))
	if !ok {
		return false
	}
	*sl = slot{kind: viewed, val: t, view: heap.ViewOf(t), places: places}
	for range places {
		sl.elems = append(sl.elems, &slot{kind: number, typ: ssa.IntType})
	}
	return true
}

// widenView makes a slot of a view fit x too; what is no such view makes it a tensor.
func (l *loopState) widenView(sl *slot, x any) bool {
	if u, ok := x.(*py.Tensor); ok {
		if places, ok := heap.Alike(sl.view, heap.ViewAt(u, l.changes)); ok {
			known := map[heap.Place]bool{}
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
