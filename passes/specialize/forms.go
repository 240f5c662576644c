package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/form"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// onWalk is what forms need of the walk, whether a loop or an If looks for them.
type onWalk struct{ s *walk }

func (p onWalk) Read(t *py.Tensor) *ssa.Value { return p.s.vals.read(t) }

func (p onWalk) RowMajor(t *py.Tensor, v *ssa.Value) bool {
	return p.s.views.axes.IsRowMajor(heap.ViewOf(t).Strides, v.Tensor()) == layout.Shares
}

func (p onWalk) Moved(v *heap.View, places []heap.Place, args []py.Value) *py.Tensor {
	return p.s.views.movedTo(v, places, args)
}

func (p onWalk) Number(x py.Value) *ssa.Value { return p.s.vals.materialize(x) }

func (p onWalk) Dummy(t ssa.Type) *ssa.Value {
	return p.s.vals.materialize(p.s.vals.dummyOf(t))
}

func (p onWalk) ElemType(st *py.ListState) ssa.Type { return p.s.vals.dynElem(st) }

func (p onWalk) Listed(st *py.ListState, elem ssa.Type) *ssa.Value {
	return p.s.vals.dynamic(st, elem)
}

func (p onWalk) Column(st *py.ListState, cols py.Spread, i int) *py.ListState {
	return p.s.vals.column(st, cols, i)
}

func (p onWalk) Vectors(elem ssa.Type) bool { return memberList(elem) }

func (p onWalk) PoolOf(st *py.ListState, changes journal.Changes) *form.Pool {
	return p.s.poolIn(st, changes)
}

func (p onWalk) Places(pool *form.Pool, st *py.ListState) *ssa.Value {
	return p.s.vals.placesValue(pool.Self, st)
}

func (p onWalk) Rows(pool *form.Pool, places *ssa.Value) *py.ListState {
	return p.s.vals.placed(pool.Self, places)
}

func (p onWalk) Lost(v *ssa.Value) { p.s.loses(v) }
