package py

import "github.com/aton-project/aton/ssa/sym"

// Exprs are the ints args as expressions; ok is false where one has none.
func Exprs(args []Value) (es []sym.Expr, ok bool) {
	es = make([]sym.Expr, len(args))
	for i, a := range args {
		if es[i], ok = ExprOf(a); !ok {
			return nil, false
		}
	}
	return es, true
}

// Symbolic computes an operator on ints of which some are symbolic. The result
// is an expression, or, for questions that have one answer for all sizes, a bool.
func Symbolic(name string, es []sym.Expr) (e sym.Expr, answer, isBool, ok bool) {
	if q := symbolicQuestions[name]; q != nil && len(es) == 2 {
		answer, ok = q(es[0], es[1])
		return e, answer, true, ok
	}
	if name == "Bool" && len(es) == 1 {
		return e, true, true, es[0].Min() > 0
	}
	switch f := symbolicFunctions[name]; {
	case f == nil, f.args != len(es):
		return e, false, false, false
	default:
		e, ok = f.of(es)
		return e, false, false, ok
	}
}

// symbolicFunction computes on args expressions; ok is false for sizes that it cannot speak of.
type symbolicFunction struct {
	args int
	of   func(e []sym.Expr) (r sym.Expr, ok bool)
}

var symbolicFunctions = map[string]*symbolicFunction{
	"neg": {1, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Neg(), true }},
	"Int": {1, symbolicItself}, "IntImplicit": {1, symbolicItself}, "ScalarImplicit": {1, symbolicItself},
	"abs": {1, func(e []sym.Expr) (sym.Expr, bool) { return e[0], e[0].Min() >= 0 }},
	"add": {2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Add(e[1]), true }},
	"sub": {2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Sub(e[1]), true }},
	"mul": {2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Mul(e[1]), true }},
	"min": {2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Minimum(e[1]), true }},
	"max": {2, func(e []sym.Expr) (sym.Expr, bool) { return e[0].Max(e[1]), true }},
	"floordiv": {2, func(e []sym.Expr) (sym.Expr, bool) {
		if e[1].Min() <= 0 {
			return sym.Expr{}, false
		}
		return e[0].FloorDiv(e[1]), true
	}},
	"remainder": {2, func(e []sym.Expr) (sym.Expr, bool) {
		if e[1].Min() <= 0 {
			return sym.Expr{}, false
		}
		return e[0].Mod(e[1]), true
	}},
	"__range_length": {3, func(e []sym.Expr) (sym.Expr, bool) {
		step, ok := e[2].Int()
		if !ok || step < 1 {
			return sym.Expr{}, false
		}
		return e[1].Sub(e[0]).Add(sym.Const(step - 1)).FloorDiv(e[2]).Max(sym.Const(0)), true
	}},
	"__derive_index": {3, func(e []sym.Expr) (sym.Expr, bool) { return e[1].Add(e[0].Mul(e[2])), true }},
}

func symbolicItself(e []sym.Expr) (sym.Expr, bool) { return e[0], true }

// symbolicQuestions compare two expressions; ok is false where the answer differs between sizes.
var symbolicQuestions = map[string]func(a, b sym.Expr) (answer, ok bool){
	"eq": func(a, b sym.Expr) (bool, bool) { sign, ok := a.Compare(b); return sign == 0, ok },
	"ne": func(a, b sym.Expr) (bool, bool) { sign, ok := a.Compare(b); return sign != 0, ok },
	"lt": func(a, b sym.Expr) (bool, bool) {
		sign, ok := a.Compare(b)
		return ok && sign < 0, ok || a.AtLeast(b)
	},
	"le": func(a, b sym.Expr) (bool, bool) {
		sign, ok := a.Compare(b)
		return !ok || sign <= 0, ok || b.AtLeast(a)
	},
	"gt": func(a, b sym.Expr) (bool, bool) {
		sign, ok := a.Compare(b)
		return ok && sign > 0, ok || b.AtLeast(a)
	},
	"ge": func(a, b sym.Expr) (bool, bool) {
		sign, ok := a.Compare(b)
		return !ok || sign >= 0, ok || a.AtLeast(b)
	},
}
