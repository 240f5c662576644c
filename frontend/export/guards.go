package export

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/ssa/sym"
)

// userLeaf is an argument of the program as the user passes it.
type userLeaf struct {
	leaf
	name  string // of the value in the graph; of a constant, its name
	sizes []symInt
	value *symInt // of an int
	fixed *argument
}

// condition is a guard that no type says: it must hold for the inputs.
type condition struct {
	e    *expr
	text string // in the user's terms
}

// guards reads the conditions of the trace. Facts go into the symbols, the rest is given back.
type guards struct {
	t      *symbols
	leaves []userLeaf
	rest   []condition
	faint  []condition // that only say that 0 and 1 were not traced
	bad    []string    // that are not understood
}

// readGuards must run before any size is evaluated, since it finds lower bounds of symbols.
func readGuards(t *symbols, leaves []userLeaf, texts []string) *guards {
	g := &guards{t: t, leaves: leaves}
	var all []*expr
	for _, text := range texts {
		e, err := parseExpr(text)
		if err != nil {
			g.bad = append(g.bad, text)
			continue
		}
		all = append(all, conjuncts(e, nil)...)
	}
	for _, e := range all {
		g.bound(e)
	}
	t.path = g.resolve
	for _, e := range all {
		g.fact(e)
	}
	t.path = nil
	return g
}

func conjuncts(e *expr, out []*expr) []*expr {
	if e.op == "and" {
		return conjuncts(e.args[1], conjuncts(e.args[0], out))
	}
	return append(out, e)
}

// find gives the argument, and the axis or -1, that e means.
func (g *guards) find(e *expr) (*userLeaf, int) {
	axis := -1
	if e.op != "index" {
		return nil, -1
	}
	if c := e.args[0]; c.op == "call" && len(c.args) == 1 && (c.text == ".size" || c.text == ".shape") {
		if e.args[1].op != "int" || e.args[1].n > 64 {
			return nil, -1
		}
		axis, e = int(e.args[1].n), c.args[0]
	} else if c.op == "attr" && c.text == "shape" {
		if e.args[1].op != "int" || e.args[1].n > 64 {
			return nil, -1
		}
		axis, e = int(e.args[1].n), c.args[0]
	}
	var steps []any
	for ; e.op == "index"; e = e.args[0] {
		switch k := e.args[1]; k.op {
		case "str":
			steps = append([]any{k.text}, steps...)
		case "int":
			steps = append([]any{int(k.n)}, steps...)
		default:
			return nil, -1
		}
	}
	if e.op != "name" || e.text != "L" || len(steps) == 0 {
		return nil, -1
	}
	if len(steps) == 2 && steps[0] == "flat_args" {
		if i, ok := steps[1].(int); ok && i >= 0 && i < len(g.leaves) {
			return &g.leaves[i], axis
		}
		return nil, -1
	}
	for i := range g.leaves {
		if g.leaves[i].matches(steps) {
			return &g.leaves[i], axis
		}
	}
	return nil, -1
}

// raw is the expression of the file for a size of an argument, or for an int.
func (g *guards) raw(e *expr) (symInt, bool) {
	l, axis := g.find(e)
	switch {
	case l == nil:
	case axis >= 0:
		if axis < len(l.sizes) {
			return l.sizes[axis], true
		}
	case l.value != nil:
		return *l.value, true
	case l.fixed != nil && l.fixed.tag == tagInt:
		return symInt{n: l.fixed.n}, true
	}
	return symInt{}, false
}

func (g *guards) resolve(e *expr) (sym.Expr, bool) {
	v, ok := g.raw(e)
	if !ok {
		return sym.Expr{}, false
	}
	return g.t.size(v), true
}

// bound takes comparisons of one axis with a number.
func (g *guards) bound(e *expr) {
	if len(e.args) != 2 {
		return
	}
	a, b, op := e.args[0], e.args[1], e.op
	if a.op == "int" {
		a, b = b, a
		op = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<="}[op]
	}
	if b.op != "int" {
		return
	}
	v, ok := g.raw(a)
	if !ok || v.expr == "" {
		return
	}
	name := symbolOf(v.expr)
	if name == "" {
		return
	}
	switch op {
	case ">":
		g.t.raise(name, b.n+1)
	case ">=":
		g.t.raise(name, b.n)
	case "<":
		g.t.lower(name, b.n-1)
	case "<=":
		g.t.lower(name, b.n)
	}
}

// fact turns equalities into knowledge and keeps what else a guard says.
func (g *guards) fact(e *expr) {
	if len(e.args) == 2 {
		a, ok1 := g.t.eval(e.args[0])
		b, ok2 := g.t.eval(e.args[1])
		if ok1 && ok2 {
			a, b = g.t.resolve(a), g.t.resolve(b)
			if holds, known := compare(e.op, a, b); known && holds {
				return
			}
			if e.op == "==" && g.learn(a.Sub(b)) {
				return
			}
			if noise(e.op, b) {
				g.faint = append(g.faint, condition{e, g.explain(e)})
				return
			}
			if _, lone := a.Name(); lone && b.IsConst() && e.op != "!=" && e.op != "==" {
				return // a bound, which the symbol has
			}
		}
	}
	g.rest = append(g.rest, condition{e, g.explain(e)})
}

// noise reports guards that say that 0 and 1 were not traced; what they guard is which kernels ran.
func noise(op string, b sym.Expr) bool {
	n, ok := b.Int()
	return ok && (op == "!=" && (n == 0 || n == 1) || op == ">=" && n <= 2 || op == ">" && n <= 1)
}

// learn solves d == 0 for a symbol; later inputs give way to earlier ones.
func (g *guards) learn(d sym.Expr) bool {
	for i := len(g.leaves) - 1; i >= 0; i-- {
		for k := len(g.leaves[i].sizes) - 1; k >= 0; k-- {
			s := g.t.size(g.leaves[i].sizes[k])
			name, ok := s.Name()
			if !ok {
				continue
			}
			if v, ok := solve(d, s); ok {
				if v.IsConst() {
					g.t.warn("axis %d of input %s is always %s in this program, though it was exported as a dynamic one", k, g.leaves[i].name, v)
				}
				g.t.learn(name, v)
				return true
			}
		}
	}
	return false
}

// truth decides a condition where it holds or fails for all values.
func (t *symbols) truth(e *expr) (holds, known bool) {
	switch e.op {
	case "not":
		holds, known = t.truth(e.args[0])
		return !holds, known
	case "and", "or":
		a, knownA := t.truth(e.args[0])
		b, knownB := t.truth(e.args[1])
		decisive := e.op == "or" // one of these decides alone
		if knownA && a == decisive || knownB && b == decisive {
			return decisive, true
		}
		return !decisive, knownA && knownB
	case "name":
		return strings.EqualFold(e.text, "true"), strings.EqualFold(e.text, "true") || strings.EqualFold(e.text, "false")
	}
	if len(e.args) != 2 {
		return false, false
	}
	a, ok1 := t.eval(e.args[0])
	b, ok2 := t.eval(e.args[1])
	if !ok1 || !ok2 {
		return false, false
	}
	return compare(e.op, t.resolve(a), t.resolve(b))
}

// compare decides a comparison that holds or fails for all values.
func compare(op string, a, b sym.Expr) (holds, known bool) {
	sign, ok := a.Compare(b)
	switch op {
	case "==":
		return sign == 0, ok
	case "!=":
		return sign != 0, ok
	case "<":
		return sign < 0, ok || a.AtLeast(b)
	case "<=":
		if ok {
			return sign <= 0, true
		}
		return true, b.AtLeast(a)
	case ">":
		return sign > 0, ok || b.AtLeast(a)
	case ">=":
		if ok {
			return sign >= 0, true
		}
		return true, a.AtLeast(b)
	}
	return false, false
}

// explain prints a guard with the names of the inputs: x.shape[0].
func (g *guards) explain(e *expr) string { return g.rename(e, 0).str() }

func (g *guards) rename(e *expr, depth int) *expr {
	if l, axis := g.find(e); l != nil {
		if axis < 0 {
			return &expr{op: "name", text: l.name}
		}
		return &expr{op: "name", text: fmt.Sprintf("%s.shape[%d]", l.name, axis)}
	}
	c := *e
	c.args = make([]*expr, len(e.args))
	for i, a := range e.args {
		c.args[i] = g.rename(a, depth+1)
	}
	c.text = strings.TrimPrefix(c.text, "torch.sym_")
	return &c
}
