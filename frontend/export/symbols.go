package export

import (
	"fmt"

	"github.com/aton-project/aton/ssa/sym"
)

// trustedMin is the least lower bound that the files mean: torch.export assumes
// sizes of at least 2 while it traces, records that, and does not check it.
const trustedMin = 2

// symbols turns the expressions of a file into sym.Expr.
type symbols struct {
	mins   map[string]int64 // lower bounds of symbols
	maxes  map[string]int64
	table  map[string]sym.Expr // by name
	memo   map[string]sym.Expr // by text
	opaque map[string]sym.Expr // what has no form in sym, by text
	facts  map[string]sym.Expr // symbols that are known to be something else
	warn   func(format string, args ...any)
	// path gives what a guard calls L[...]; nil outside of guards.
	path func(e *expr) (sym.Expr, bool)
}

func newSymbols(warn func(string, ...any)) *symbols {
	return &symbols{mins: map[string]int64{}, maxes: map[string]int64{}, table: map[string]sym.Expr{}, memo: map[string]sym.Expr{},
		opaque: map[string]sym.Expr{}, facts: map[string]sym.Expr{}, warn: warn}
}

// symbol is the symbol of a name. Its lower bound is fixed at the first use.
func (t *symbols) symbol(name string) sym.Expr {
	if e, ok := t.table[name]; ok {
		return e
	}
	lo := int64(0)
	if m, ok := t.mins[name]; ok && m > trustedMin || m < 0 {
		lo = m
	}
	e := sym.Symbol(symbolName(name), lo)
	t.table[name] = e
	return e
}

// symbolName makes a name fit for graph text.
func symbolName(n string) string {
	b := []byte(n)
	for i, c := range b {
		if !isWord(c) || i == 0 && c >= '0' && c <= '9' {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b)
}

// size gives a size of the file.
func (t *symbols) size(v symInt) sym.Expr {
	if v.expr == "" {
		return sym.Const(v.n)
	}
	if e, ok := t.memo[v.expr]; ok {
		return e
	}
	e, err := parseExpr(v.expr)
	var out sym.Expr
	if err != nil {
		t.warn("%v; taken as an unknown size", err)
		out = t.unknown(v.expr)
	} else if x, ok := t.eval(e); ok {
		out = x
	} else {
		out = t.unknown(v.expr)
	}
	out = t.resolve(out)
	t.memo[v.expr] = out
	return out
}

func (t *symbols) unknown(text string) sym.Expr {
	e, ok := t.opaque[text]
	if !ok {
		e = sym.Symbol(fmt.Sprintf("e%d", len(t.opaque)), 0)
		t.opaque[text] = e
	}
	return e
}

// resolve replaces the symbols that are known to be something else.
func (t *symbols) resolve(e sym.Expr) sym.Expr {
	if len(t.facts) == 0 {
		return e
	}
	return e.Subst(func(name string) (sym.Expr, bool) {
		f, ok := t.facts[name]
		return f, ok
	})
}

// maxNormal bounds the text of a normal form: those of hostile products and extrema explode.
const maxNormal = 4096

// eval gives an integer expression in normal form; ok is false for what sym cannot say.
func (t *symbols) eval(e *expr) (sym.Expr, bool) {
	x, ok := t.form(e)
	return x, ok && small(x)
}

func small(x sym.Expr) bool { return x.IsConst() || len(x.String()) <= maxNormal }

func (t *symbols) form(e *expr) (sym.Expr, bool) {
	switch e.op {
	case "int":
		return sym.Const(e.n), true
	case "name":
		switch e.text {
		case "true", "false", "oo", "int_oo", "True", "False", "nan", "zoo":
			return sym.Expr{}, false
		}
		return t.symbol(e.text), true
	case "neg":
		x, ok := t.eval(e.args[0])
		return x.Neg(), ok
	case "+", "-", "*", "//", "/", "%", "**", "<<", ">>":
		a, ok1 := t.eval(e.args[0])
		b, ok2 := t.eval(e.args[1])
		if !ok1 || !ok2 {
			return sym.Expr{}, false
		}
		return arith(e.op, a, b)
	case "index":
		if t.path != nil {
			return t.path(e)
		}
	case "call":
		return t.call(e)
	}
	return sym.Expr{}, false
}

func arith(op string, a, b sym.Expr) (sym.Expr, bool) {
	switch op {
	case "+":
		return a.Add(b), true
	case "-":
		return a.Sub(b), true
	case "*":
		return a.Mul(b), true
	case "//":
		return a.FloorDiv(b), !b.Is(0)
	case "/": // torch writes it where the division is exact
		return a.FloorDiv(b), !b.Is(0)
	case "%":
		return a.Mod(b), !b.Is(0)
	case "**":
		n, ok := b.Int()
		if !ok || n < 0 || n > 8 {
			return sym.Expr{}, false
		}
		out := sym.Const(1)
		for range n {
			if out = out.Mul(a); !small(out) {
				return out, false
			}
		}
		return out, true
	case "<<", ">>":
		n, ok := b.Int()
		if !ok || n < 0 || n > 62 {
			return sym.Expr{}, false
		}
		if op == "<<" {
			return a.Mul(sym.Const(1 << n)), true
		}
		return a.FloorDiv(sym.Const(1 << n)), true
	}
	return sym.Expr{}, false
}

// call understands the functions of sympy's constructor form and of guards.
func (t *symbols) call(e *expr) (sym.Expr, bool) {
	switch e.text {
	case "Symbol":
		if len(e.args) == 1 && e.args[0].op == "str" {
			return t.symbol(e.args[0].text), true
		}
		return sym.Expr{}, false
	case "Mul":
		return t.product(e.args)
	}
	xs := make([]sym.Expr, len(e.args))
	for i, a := range e.args {
		x, ok := t.eval(a)
		if !ok {
			return sym.Expr{}, false
		}
		xs[i] = x
	}
	fold := func(f func(a, b sym.Expr) sym.Expr) (sym.Expr, bool) {
		if len(xs) == 0 {
			return sym.Expr{}, false
		}
		out := xs[0]
		for _, x := range xs[1:] {
			if out = f(out, x); !small(out) {
				return out, false
			}
		}
		return out, true
	}
	binary := func(op string) (sym.Expr, bool) {
		if len(xs) != 2 {
			return sym.Expr{}, false
		}
		return arith(op, xs[0], xs[1])
	}
	switch e.text {
	case "TruncToInt", "CeilToInt", "FloorToInt", "RoundToInt", "int":
		if len(xs) == 1 && !divides(e.args[0]) {
			return xs[0], true // what is inside is an integer already
		}
	case "Integer", "Identity":
		if len(xs) == 1 {
			return xs[0], true
		}
	case "Add":
		return fold(sym.Expr.Add)
	case "Max", "max", "torch.sym_max":
		return fold(sym.Expr.Max)
	case "Min", "min", "torch.sym_min":
		return fold(sym.Expr.Minimum)
	case "Pow", "PowByNatural":
		return binary("**")
	case "FloorDiv", "CleanDiv":
		return binary("//")
	case "Mod", "PythonMod":
		return binary("%")
	case "LShift":
		return binary("<<")
	case "RShift":
		return binary(">>")
	case "CeilDiv":
		if len(xs) == 2 && !xs[1].Is(0) {
			return xs[0].Neg().FloorDiv(xs[1]).Neg(), true
		}
	case "ModularIndexing":
		if len(xs) == 3 && !xs[1].Is(0) && !xs[2].Is(0) {
			return xs[0].FloorDiv(xs[1]).Mod(xs[2]), true
		}
	case "Abs", "abs":
		if len(xs) == 1 && xs[0].Min() >= 0 {
			return xs[0], true
		}
	}
	return sym.Expr{}, false
}

// divides reports a division that leaves a fraction: how it is rounded is for a function around it to say.
func divides(e *expr) bool {
	if e.op == "/" || e.op == "call" && e.text == "Rational" {
		return true
	}
	for _, a := range e.args {
		if divides(a) {
			return true
		}
	}
	return false
}

// product multiplies; rational factors divide, exactly, at the end.
func (t *symbols) product(args []*expr) (sym.Expr, bool) {
	out, div := sym.Const(1), sym.Const(1)
	for _, a := range args {
		if a.op == "call" && a.text == "Rational" && len(a.args) == 2 {
			p, ok1 := t.eval(a.args[0])
			q, ok2 := t.eval(a.args[1])
			if !ok1 || !ok2 || q.Is(0) {
				return sym.Expr{}, false
			}
			out, div = out.Mul(p), div.Mul(q)
			continue
		}
		x, ok := t.eval(a)
		if !ok {
			return sym.Expr{}, false
		}
		if out = out.Mul(x); !small(out) {
			return out, false
		}
	}
	if div.Is(1) {
		return out, true
	}
	return out.FloorDiv(div), true
}

// setRanges takes the bounds of lone symbols; those of derived expressions follow from them.
func (t *symbols) setRanges(rs []valueRange) {
	for _, r := range rs {
		name := symbolOf(r.expr)
		if name == "" {
			continue
		}
		if r.hasMin {
			t.raise(name, r.min)
		}
		if r.hasMax {
			t.lower(name, r.max)
		}
	}
}

// symbolOf is the name of the symbol that an expression is, "" if it is anything else.
func symbolOf(text string) string {
	e, err := parseExpr(text)
	switch {
	case err != nil:
	case e.op == "name":
		return e.text
	case e.op == "call" && e.text == "Symbol" && len(e.args) == 1 && e.args[0].op == "str":
		return e.args[0].text
	}
	return ""
}

func (t *symbols) raise(name string, lo int64) {
	if m, ok := t.mins[name]; !ok || lo > m {
		t.mins[name] = lo
	}
}

func (t *symbols) lower(name string, hi int64) {
	if m, ok := t.maxes[name]; !ok || hi < m {
		t.maxes[name] = hi
	}
}

// solve finds what makes e zero as a value of one symbol, if e is linear in it with coefficient 1 or -1.
func solve(e, symbol sym.Expr) (sym.Expr, bool) {
	name, ok := symbol.Name()
	if !ok {
		return sym.Expr{}, false
	}
	at := func(v sym.Expr) sym.Expr {
		return e.Subst(func(n string) (sym.Expr, bool) { return v, n == name })
	}
	rest := at(sym.Const(0))
	c, known := at(sym.Const(1)).Sub(rest).Int()
	if !known || c != 1 && c != -1 {
		return sym.Expr{}, false
	}
	free := true
	rest.Symbols(func(n string) { free = free && n != name })
	if !free || !rest.Add(symbol.Mul(sym.Const(c))).Equal(e) {
		return sym.Expr{}, false
	}
	return rest.Mul(sym.Const(-c)), true
}

// learn records that a symbol is e.
func (t *symbols) learn(name string, e sym.Expr) {
	for n, f := range t.facts {
		t.facts[n] = f.Subst(func(s string) (sym.Expr, bool) { return e, s == name })
	}
	t.facts[name] = e
	t.memo = map[string]sym.Expr{}
}

// learnAll records what several symbols are, in symbols that are none of them.
func (t *symbols) learnAll(bound map[string]sym.Expr) {
	for n, f := range t.facts {
		t.facts[n] = f.Subst(func(s string) (sym.Expr, bool) { e, ok := bound[s]; return e, ok })
	}
	for n, e := range bound {
		t.facts[n] = e
	}
	t.memo = map[string]sym.Expr{}
}
