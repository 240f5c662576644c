package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/view"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// strides gives the strides of a view of self, nil if they are not known.
func (s *views) strides(step heap.Step, in []sym.Expr, self, out *ssa.Value) []sym.Expr {
	return view.Strides(&view.Call{Step: &step, Strides: in, Self: self.Tensor(), Out: out.Tensor(), Axes: s.axes})
}
