package prove

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/sym"
)

// Law is an equation of sizes that package sym applies: both sides have one normal form, and are one integer for all values of the
// symbols that the assumptions allow.
type Law struct {
	Name string
	// Of are the symbols with their least values; what is said of them besides stands in Where, in SMT-LIB.
	Of          map[string]int64
	Where       []string
	Left, Right func(v func(name string) sym.Expr) sym.Expr
	// LeftText and RightText are the sides in SMT-LIB, with the functions of the preamble.
	LeftText, RightText string
}

// preamble defines the functions of package sym: division and remainder are Python's, and bcast is defined where fits holds.
const preamble = `(define-fun floordiv ((a Int) (b Int)) Int (ite (> b 0) (div a b) (div (- a) (- b))))
(define-fun floormod ((a Int) (b Int)) Int (- a (* b (floordiv a b))))
(define-fun least ((a Int) (b Int)) Int (ite (< a b) a b))
(define-fun most ((a Int) (b Int)) Int (ite (< a b) b a))
(define-fun bcast ((a Int) (b Int)) Int (ite (= a 1) b a))
(define-fun fits ((a Int) (b Int)) Bool (or (= a b) (= a 1) (= b 1)))
`

// Laws are the laws that the comments of package sym state, with symbols for what may be any number there. Factors and divisors
// that package sym must know are numbers of two digits, which stand for all.
func Laws() []Law {
	type v = func(string) sym.Expr
	n := sym.Const
	return []Law{
		{"a size and itself", map[string]int64{"a": 0}, nil, func(x v) sym.Expr { return x("a").Broadcast(x("a")) }, func(x v) sym.Expr { return x("a") }, "(bcast a a)", "a"},
		{"a size and 1", map[string]int64{"a": 0}, nil, func(x v) sym.Expr { return x("a").Broadcast(n(1)) }, func(x v) sym.Expr { return x("a") }, "(bcast a 1)", "a"},
		{"a size that is broadcast again", map[string]int64{"a": 0, "b": 0}, []string{"(fits a b)", "(fits (bcast a b) b)"},
			func(x v) sym.Expr { return x("a").Broadcast(x("b")).Broadcast(x("b")) }, func(x v) sym.Expr { return x("a").Broadcast(x("b")) }, "(bcast (bcast a b) b)", "(bcast a b)"},
		{"a size and the least of it and a number", map[string]int64{"a": 0}, []string{"(fits (least 512 a) a)"},
			func(x v) sym.Expr { return n(512).Minimum(x("a")).Broadcast(x("a")) }, func(x v) sym.Expr { return x("a") }, "(bcast (least 512 a) a)", "a"},
		{"a size and the least of it and a size of at least 2", map[string]int64{"a": 0, "b": 2}, []string{"(fits (least b a) a)"},
			func(x v) sym.Expr { return x("b").Minimum(x("a")).Broadcast(x("a")) }, func(x v) sym.Expr { return x("a") }, "(bcast (least b a) a)", "a"},
		{"bcast(bcast(bcast(min(512, s), s), s), s)", map[string]int64{"s": 0}, []string{"(fits (least 512 s) s)"},
			func(x v) sym.Expr {
				s := x("s")
				return n(512).Minimum(s).Broadcast(s).Broadcast(s).Broadcast(s)
			}, func(x v) sym.Expr { return x("s") }, "(bcast (bcast (bcast (least 512 s) s) s) s)", "s"},
		{"(12*q + r) // 12 = q + r // 12", map[string]int64{"q": 0, "r": 0}, nil,
			func(x v) sym.Expr { return x("q").Mul(n(12)).Add(x("r")).FloorDiv(n(12)) }, func(x v) sym.Expr { return x("q").Add(x("r").FloorDiv(n(12))) }, "(floordiv (+ (* 12 q) r) 12)", "(+ q (floordiv r 12))"},
		{"(x // 6) // 7 = x // 42", map[string]int64{"x": 0}, nil,
			func(x v) sym.Expr { return x("x").FloorDiv(n(6)).FloorDiv(n(7)) }, func(x v) sym.Expr { return x("x").FloorDiv(n(42)) }, "(floordiv (floordiv x 6) 7)", "(floordiv x 42)"},
		{"(-x) // 12 = -((x + 11) // 12)", map[string]int64{"x": 0}, nil,
			func(x v) sym.Expr { return x("x").Neg().FloorDiv(n(12)) }, func(x v) sym.Expr { return x("x").Add(n(11)).FloorDiv(n(12)).Neg() }, "(floordiv (- x) 12)", "(- (floordiv (+ x 11) 12))"},
		{"x % 12 = x - 12*(x // 12)", map[string]int64{"x": 0}, nil,
			func(x v) sym.Expr { return x("x").Mod(n(12)) }, func(x v) sym.Expr { return x("x").Sub(x("x").FloorDiv(n(12)).Mul(n(12))) }, "(floormod x 12)", "(- x (* 12 (floordiv x 12)))"},
		{"(x*y) // y = x", map[string]int64{"x": 0, "y": 1}, nil,
			func(x v) sym.Expr { return x("x").Mul(x("y")).FloorDiv(x("y")) }, func(x v) sym.Expr { return x("x") }, "(floordiv (* x y) y)", "x"},
		{"(x*y) % y = 0", map[string]int64{"x": 0, "y": 1}, nil,
			func(x v) sym.Expr { return x("x").Mul(x("y")).Mod(x("y")) }, func(x v) sym.Expr { return n(0) }, "(floormod (* x y) y)", "0"},
		{"0 // y = 0", map[string]int64{"y": 1}, nil, func(x v) sym.Expr { return n(0).FloorDiv(x("y")) }, func(x v) sym.Expr { return n(0) }, "(floordiv 0 y)", "0"},
		{"max(x + 3, x) = x + 3", map[string]int64{"x": 0}, nil, func(x v) sym.Expr { return x("x").Add(n(3)).Max(x("x")) }, func(x v) sym.Expr { return x("x").Add(n(3)) }, "(most (+ x 3) x)", "(+ x 3)"},
		{"min(x + y, x) = x", map[string]int64{"x": 0, "y": 0}, nil, func(x v) sym.Expr { return x("x").Add(x("y")).Minimum(x("x")) }, func(x v) sym.Expr { return x("x") }, "(least (+ x y) x)", "x"},
		{"min(12*(x // 12), x) = 12*(x // 12)", map[string]int64{"x": 0}, nil,
			func(x v) sym.Expr { return x("x").FloorDiv(n(12)).Mul(n(12)).Minimum(x("x")) }, func(x v) sym.Expr { return x("x").FloorDiv(n(12)).Mul(n(12)) }, "(least (* 12 (floordiv x 12)) x)", "(* 12 (floordiv x 12))"},
		{"(x + y)*z = x*z + y*z", map[string]int64{"x": 0, "y": 0, "z": 0}, nil,
			func(x v) sym.Expr { return x("x").Add(x("y")).Mul(x("z")) }, func(x v) sym.Expr { return x("x").Mul(x("z")).Add(x("y").Mul(x("z"))) }, "(* (+ x y) z)", "(+ (* x z) (* y z))"},
	}
}

// integers is the script that asks for values for which two sides differ.
func integers(of map[string]int64, where []string, left, right string) string {
	var b strings.Builder
	b.WriteString(preamble)
	for _, name := range sortedKeys(of) {
		fmt.Fprintf(&b, "(declare-const %s Int)\n(assert (>= %s %d))\n", name, name, of[name])
	}
	for _, w := range where {
		fmt.Fprintf(&b, "(assert %s)\n", w)
	}
	fmt.Fprintf(&b, "(assert (not (= %s %s)))", left, right)
	return b.String()
}

// Law proves a law, and reports whether package sym applies it.
func (p *Prover) Law(l Law) (answer Answer, applied bool, err error) {
	answer, _, err = p.Solver.Ask(integers(l.Of, l.Where, l.LeftText, l.RightText), nil)
	v := func(name string) sym.Expr { return sym.Symbol(name, l.Of[name]) }
	return answer, l.Left(v).Equal(l.Right(v)), err
}

// size is an expression of sizes beside its text in SMT-LIB and what must hold for it to be defined.
type size struct {
	e     sym.Expr
	text  string
	where []string
}

// smt spells what package sym has made of an expression.
func smt(e sym.Expr) (string, bool) {
	return sym.Evaluate(e, func(n int64) string {
		if n < 0 {
			return fmt.Sprintf("(- %d)", -n)
		}
		return fmt.Sprint(n)
	}, func(name string) string { return name }, func(op, x, y string) string {
		return app(map[string]string{"+": "+", "*": "*", "//": "floordiv", "%": "floormod", "min": "least", "max": "most", "bcast": "bcast"}[op], x, y)
	})
}

// randomSize draws an expression, as programs compute sizes: divisors are positive numbers.
func randomSize(r *rand.Rand, depth int) size {
	if depth == 0 || r.IntN(5) == 0 {
		if r.IntN(3) == 0 {
			n := int64(r.IntN(9)) - 3
			text, _ := smt(sym.Const(n))
			return size{sym.Const(n), text, nil}
		}
		name := []string{"a", "b", "c"}[r.IntN(3)]
		return size{sym.Symbol(name, symbolMin[name]), name, nil}
	}
	x, y := randomSize(r, depth-1), randomSize(r, depth-1)
	where := append(append([]string(nil), x.where...), y.where...)
	switch r.IntN(8) {
	case 0:
		return size{x.e.Add(y.e), app("+", x.text, y.text), where}
	case 1:
		return size{x.e.Sub(y.e), app("-", x.text, y.text), where}
	case 2:
		return size{x.e.Mul(y.e), app("*", x.text, y.text), where}
	case 3, 4:
		n := int64(2 + r.IntN(4))
		if r.IntN(2) == 0 {
			return size{x.e.FloorDiv(sym.Const(n)), app("floordiv", x.text, fmt.Sprint(n)), where}
		}
		return size{x.e.Mod(sym.Const(n)), app("floormod", x.text, fmt.Sprint(n)), where}
	case 5:
		return size{x.e.Minimum(y.e), app("least", x.text, y.text), where}
	case 6:
		return size{x.e.Max(y.e), app("most", x.text, y.text), where}
	}
	return size{x.e.Broadcast(y.e), app("bcast", x.text, y.text), append(where, app("fits", x.text, y.text))}
}

// symbolMin are the least values of the symbols of random sizes.
var symbolMin = map[string]int64{"a": 0, "b": 1, "c": 2}

// Sizes proves of random expressions that the normal form of package sym is the same number, and that its bounds hold. It gives how
// many are proved and how many are open, and the first that is refuted.
func (p *Prover) Sizes(n int, seed uint64) (proved, open int, refuted string, err error) {
	r := rand.New(rand.NewPCG(seed, 11))
	for range n {
		s := randomSize(r, 3)
		text, ok := smt(s.e)
		if !ok {
			continue
		}
		script := integers(symbolMin, s.where, s.text, text)
		least := ""
		if m := s.e.Min(); m > -1<<62 {
			number, _ := smt(sym.Const(m))
			least = app("<", text, number)
			script = script[:strings.LastIndex(script, "(assert")] + fmt.Sprintf("(assert (or (not (= %s %s)) %s))", s.text, text, least)
		}
		answer, values, err := p.Solver.Ask(script, []string{"a", "b", "c"})
		if err != nil {
			return proved, open, "", err
		}
		switch answer {
		case Unsat:
			proved++
		case Sat:
			return proved, open, fmt.Sprintf("%s is %s, at least %d; for a, b, c = %s it is not", s.text, s.e, s.e.Min(), strings.Join(values, ", ")), nil
		default:
			open++
		}
	}
	return proved, open, "", nil
}

// WrongLaws makes wrong variants of a law: a number of the right side is one more or less, or an operation is another one. It gives how many are
// refuted by sizes for which the sides, computed here, differ; those that are right as well do not count. A variant that the solver refutes
// with sizes for which the sides are equal is an error.
func (p *Prover) WrongLaws(l Law) (refuted int, err error) {
	for _, right := range wrongTexts(l.RightText) {
		names := sortedKeys(l.Of)
		answer, values, err := p.Solver.Ask(integers(l.Of, l.Where, l.LeftText, right), names)
		if err != nil {
			return refuted, err
		}
		if answer != Sat {
			continue
		}
		env := map[string]int64{}
		for i, name := range names {
			f, ok := rational(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(values[i]))
			if !ok {
				return refuted, fmt.Errorf("%s is no number", values[i])
			}
			env[name] = int64(f)
		}
		x, okx := integer(l.LeftText, env)
		y, oky := integer(right, env)
		if !okx || !oky { // a variant that is not defined for these sizes
			continue
		}
		if x == y {
			return refuted, fmt.Errorf("%s = %s is said to be wrong for %v, where the sides are %d and %d", l.LeftText, right, env, x, y)
		}
		refuted++
	}
	return refuted, nil
}

// wrongTexts changes an expression in one place.
func wrongTexts(text string) []string {
	out := []string{app("+", text, "1")}
	other := map[string]string{"+": "-", "-": "+", "*": "+", "floordiv": "floormod", "floormod": "floordiv", "least": "most", "most": "least", "bcast": "least"}
	fields := strings.Fields(strings.NewReplacer("(", "( ", ")", " )").Replace(text))
	for i, f := range fields {
		changed := slices.Clone(fields)
		if o, ok := other[f]; ok {
			changed[i] = o
		} else if n, err := strconv.ParseInt(f, 10, 64); err == nil {
			changed[i] = fmt.Sprint(n + 1)
		} else {
			continue
		}
		out = append(out, strings.NewReplacer("( ", "(", " )", ")").Replace(strings.Join(changed, " ")))
	}
	return out
}

// integer computes an expression of SMT-LIB with the functions of the preamble.
func integer(text string, env map[string]int64) (int64, bool) {
	if !strings.HasPrefix(text, "(") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n, true
		}
		n, ok := env[text]
		return n, ok
	}
	w := words(text[1 : len(text)-1])
	args := make([]sym.Expr, len(w)-1)
	for i, a := range w[1:] {
		n, ok := integer(a, env)
		if !ok {
			return 0, false
		}
		args[i] = sym.Const(n)
	}
	if len(args) == 1 {
		if w[0] == "+" {
			return args[0].Int()
		}
		return args[0].Neg().Int()
	}
	x, y := args[0], args[1]
	if n, _ := y.Int(); n == 0 && (w[0] == "floordiv" || w[0] == "floormod") {
		return 0, false
	}
	switch w[0] {
	case "+":
		return x.Add(y).Int()
	case "-":
		return x.Sub(y).Int()
	case "*":
		return x.Mul(y).Int()
	case "floordiv":
		return x.FloorDiv(y).Int()
	case "floormod":
		return x.Mod(y).Int()
	case "least":
		return x.Minimum(y).Int()
	case "most":
		return x.Max(y).Int()
	case "bcast":
		return x.Broadcast(y).Int()
	}
	return 0, false
}
