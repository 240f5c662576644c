package specialize

import (
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

// broadcastShapes joins two lists of sizes as broadcasting does; ok is false if
// a size that decides is not known to be 1 or not.
func (s *containers) broadcastShapes(args []py.Value) ([]py.Value, bool) {
	a, ok := args[0].(*py.List)
	b, ok2 := args[1].(*py.List)
	if !ok || !ok2 || a.State().AtRunTime() || b.State().AtRunTime() {
		return nil, false
	}
	x, y := a.State().Elems, b.State().Elems
	if len(x) < len(y) {
		x, y = y, x
	}
	out := append([]py.Value(nil), x...)
	skip := len(x) - len(y)
	for i := range y {
		m, ok := py.ExprOf(x[skip+i])
		n, ok2 := py.ExprOf(y[i])
		switch {
		case !ok || !ok2:
			return nil, false
		case m.Equal(n) || n.Is(1):
		case m.Is(1):
			out[skip+i] = y[i]
		case m.IsConst() && n.IsConst():
			panic(s.raised("the sizes of two tensors do not broadcast"))
		case n.IsConst():
			out[skip+i] = y[i] // a known size other than 1 wins
		case m.IsConst():
		default:
			return nil, false
		}
	}
	return []py.Value{s.heap.List(ssa.IntType, out)}, true
}
