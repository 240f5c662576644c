package specialize

import "github.com/aton-project/aton/ssa"

// broadcastShapes joins two lists of sizes as broadcasting does; ok is false if
// a size that decides is not known to be 1 or not.
func (s *spec) broadcastShapes(args []value) ([]value, bool) {
	a, ok := args[0].(*list)
	b, ok2 := args[1].(*list)
	if !ok || !ok2 || a.state().dyn != nil || b.state().dyn != nil {
		return nil, false
	}
	x, y := a.state().elems, b.state().elems
	if len(x) < len(y) {
		x, y = y, x
	}
	out := append([]value(nil), x...)
	skip := len(x) - len(y)
	for i := range y {
		m, ok := exprOf(x[skip+i])
		n, ok2 := exprOf(y[i])
		switch {
		case !ok || !ok2:
			return nil, false
		case m.Equal(n) || n.Is(1):
		case m.Is(1):
			out[skip+i] = y[i]
		case m.IsConst() && n.IsConst():
			panic(raised{s.loc, "the sizes of two tensors do not broadcast"})
		case n.IsConst():
			out[skip+i] = y[i] // a known size other than 1 wins
		case m.IsConst():
		default:
			return nil, false
		}
	}
	return []value{s.newList(ssa.IntType, out)}, true
}
