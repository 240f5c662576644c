package python

import "github.com/aton-project/aton/ssa/sym"

// Symbolic computes an operator on ints of which some are symbolic. The result
// is an expression, or, for questions that have one answer for all sizes, a bool.
func Symbolic(name string, es []sym.Expr) (e sym.Expr, answer, isBool, ok bool) {
	f := functions[name]
	switch {
	case f == nil:
		return e, false, false, false
	case f.asks != nil && len(es) == 2:
		answer, ok = f.asks(es[0], es[1])
		return e, answer, true, ok
	case name == "Bool" && len(es) == 1:
		return e, true, true, es[0].Min() > 0
	case f.sizes == nil || f.sizes.args != len(es):
		return e, false, false, false
	}
	e, ok = f.sizes.of(es)
	return e, false, false, ok
}
