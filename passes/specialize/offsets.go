package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa/sym"
)

// firstPlace gives where in the storage, which is row-major, the first element
// of a view is (its storage_offset); ok is false if it is not known.
func (s *views) firstPlace(st *heap.View) (at sym.Expr, ok bool) {
	v := st.Storage.State().Base
	strides := layout.RowMajor(v.Tensor())
	for i := range st.Chain {
		step := &st.Chain[i]
		t := v.Tensor()
		if t == nil || !t.Ranked {
			return at, false
		}
		by, ok := view.Place(&view.Call{Step: step, Strides: strides, Self: t, Axes: s.axes})
		if !ok {
			return at, false
		}
		at = at.Add(by)
		next := s.vals.step(step, v)
		strides = s.strides(*step, strides, v, next)
		v = next
	}
	return at, true
}
