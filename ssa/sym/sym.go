// Package sym is the algebra of symbolic dimensions: polynomials with integer
// coefficients over symbols and over the atoms a // b, a % b, min and max.
//
// An Expr is immutable and in normal form, so equality is equality of its key. One whose text grows beyond a bound, as
// sizes that are computed from each other do, becomes a summary: an atom named by a hash of that text.
package sym

import (
	"cmp"
	"encoding/hex"
	"hash/fnv"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Expr is an integer, known or symbolic. The zero Expr is 0.
type Expr struct {
	n int64
	p *poly // nil: the value is n
}

type poly struct {
	terms []term // sorted by key, coefficients not 0; the constant is last with an empty product
	key   string
}

type term struct {
	coef  int64
	atoms []*atom // sorted by key, repeated for powers
}

type atom struct {
	key  string
	op   string // "": a symbol; "//", "%", "min", "max", "bcast", "mul", summary
	args []Expr
	free []string // of a summary: the symbols that it depends on, sorted
	min  int64    // smallest value
	max  *Expr    // an upper bound of the value, of symbols that are known where this one is; nil if there is none
}

// Const is a known integer.
func Const(n int64) Expr { return Expr{n: n} }

// Product multiplies expressions; of none it is 1.
func Product(es ...Expr) Expr {
	out := Const(1)
	for _, e := range es {
		out = out.Mul(e)
	}
	return out
}

// Symbol is an unknown integer that is at least min (0 for sizes).
func Symbol(name string, min int64) Expr {
	return fromAtom(atom{key: name, min: min})
}

// Bounded is an unknown integer from min to max, such as the index of an iteration. What is known of max is known of it.
func Bounded(name string, min int64, max Expr) Expr {
	return fromAtom(atom{key: name, min: min, max: &max})
}

// varyPrefix starts the names of symbols that Varying makes.
const varyPrefix = "vary"

// Varying stands, in the element type of a sequence, for a size that differs from element to element.
func Varying(axis int) Expr { return Symbol(varyPrefix+strconv.Itoa(axis), 0) }

// Varies reports that a size may differ from one element of a sequence to the next.
func Varies(e Expr) bool {
	found := false
	e.Symbols(func(name string) { found = found || strings.HasPrefix(name, varyPrefix) })
	return found
}

// fromAtom is what build makes of an atom alone. Most expressions are such symbols, so one takes one piece of memory.
func fromAtom(a atom) Expr {
	if a.key == "" || len(a.key) > maxKey {
		long := a // so that a itself stays on the stack
		return build([]term{{1, []*atom{&long}}})
	}
	e := &struct {
		atom  atom
		atoms [1]*atom
		terms [1]term
		poly  poly
	}{atom: a}
	e.atoms[0] = &e.atom
	e.terms[0] = term{1, e.atoms[:]}
	e.poly = poly{terms: e.terms[:], key: a.key}
	return Expr{p: &e.poly}
}

// Int gives the value if it is known.
func (e Expr) Int() (int64, bool) { return e.n, e.p == nil }

// IsConst reports a known value.
func (e Expr) IsConst() bool { return e.p == nil }

// Is reports that the value is known to be n.
func (e Expr) Is(n int64) bool { return e.p == nil && e.n == n }

// Equal reports that both are equal for all values of the symbols.
func (e Expr) Equal(f Expr) bool {
	if e.p == nil || f.p == nil {
		return e.p == f.p && e.n == f.n
	}
	return e.p == f.p || e.p.key == f.p.key
}

// Name gives the symbol's name if the expression is a lone symbol.
func (e Expr) Name() (string, bool) {
	if e.p != nil && len(e.p.terms) == 1 && e.p.terms[0].coef == 1 && len(e.p.terms[0].atoms) == 1 && e.p.terms[0].atoms[0].op == "" {
		return e.p.terms[0].atoms[0].key, true
	}
	return "", false
}

// String prints the expression so that Parse reads it back.
func (e Expr) String() string {
	if e.p == nil {
		return strconv.FormatInt(e.n, 10)
	}
	return e.p.key
}

func (e Expr) terms() []term {
	if e.p != nil {
		return e.p.terms
	}
	if e.n == 0 {
		return nil
	}
	return []term{{coef: e.n}}
}

func atomsKey(as []*atom) string {
	switch len(as) {
	case 0:
		return ""
	case 1:
		return as[0].key
	}
	var b strings.Builder
	for i, a := range as {
		if i > 0 {
			b.WriteByte('*')
		}
		b.WriteString(a.key)
	}
	return b.String()
}

// build sorts and merges terms.
func build(ts []term) Expr {
	if len(ts) > 1 {
		slices.SortStableFunc(ts, func(a, b term) int {
			ka, kb := atomsKey(a.atoms), atomsKey(b.atoms)
			switch {
			case ka == "" && kb != "": // the constant is last
				return 1
			case kb == "" && ka != "":
				return -1
			}
			return strings.Compare(ka, kb)
		})
	}
	out := ts[:0]
	for _, t := range ts {
		if k := len(out); k > 0 && atomsKey(out[k-1].atoms) == atomsKey(t.atoms) {
			out[k-1].coef += t.coef
		} else {
			out = append(out, t)
		}
	}
	kept := out[:0]
	for _, t := range out {
		if t.coef != 0 {
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 {
		return Expr{}
	}
	if len(kept) == 1 && len(kept[0].atoms) == 0 {
		return Expr{n: kept[0].coef}
	}
	var b strings.Builder
	for i, t := range kept {
		c := t.coef
		if i > 0 {
			if c < 0 {
				b.WriteString(" - ")
				c = -c
			} else {
				b.WriteString(" + ")
			}
		}
		k := atomsKey(t.atoms)
		switch {
		case k == "":
			b.WriteString(strconv.FormatInt(c, 10))
		case c == 1:
			b.WriteString(k)
		default:
			b.WriteString(strconv.FormatInt(c, 10) + "*" + k)
		}
	}
	e := Expr{p: &poly{terms: kept, key: b.String()}}
	if len(e.p.key) > maxKey {
		free := map[string]bool{}
		e.Symbols(func(name string) { free[name] = true })
		return summarize(e.p.key, free, e.Min())
	}
	return e
}

// maxKey bounds the text of an expression, in bytes; beyond it the expression becomes a summary.
const maxKey = 1 << 10

const summary = "summary"

// summarize makes the atom that stands for the expression with this text: the same text, the same atom.
func summarize(text string, free map[string]bool, min int64) Expr {
	h := fnv.New128a() // package crypto would make each program 150 KB larger
	_, _ = h.Write([]byte(text))
	a := atom{key: "expr_" + hex.EncodeToString(h.Sum(nil)), op: summary, min: min}
	for name := range free {
		a.free = append(a.free, name)
	}
	sort.Strings(a.free)
	return fromAtom(a)
}

// Add is e + f.
func (e Expr) Add(f Expr) Expr {
	if e.p == nil && f.p == nil {
		return Expr{n: e.n + f.n}
	}
	if f.Is(0) {
		return e
	}
	if e.Is(0) {
		return f
	}
	return build(append(append([]term(nil), e.terms()...), f.terms()...))
}

// Neg is -e.
func (e Expr) Neg() Expr { return e.Mul(Const(-1)) }

// Sub is e - f.
func (e Expr) Sub(f Expr) Expr { return e.Add(f.Neg()) }

// maxTerms bounds the size of products; beyond it the product becomes opaque.
const maxTerms = 64

// Mul is e * f.
func (e Expr) Mul(f Expr) Expr {
	if e.p == nil && f.p == nil {
		return Expr{n: e.n * f.n}
	}
	if e.Is(1) {
		return f
	}
	if f.Is(1) {
		return e
	}
	te, tf := e.terms(), f.terms()
	if len(te)*len(tf) > maxTerms {
		return opaque("mul", e, f)
	}
	ts := make([]term, 0, len(te)*len(tf))
	for _, a := range te {
		for _, b := range tf {
			as := append(append([]*atom(nil), a.atoms...), b.atoms...)
			slices.SortStableFunc(as, func(a, b *atom) int { return strings.Compare(a.key, b.key) })
			ts = append(ts, term{a.coef * b.coef, as})
		}
	}
	return build(ts)
}

func opaque(op string, args ...Expr) Expr {
	a := &atom{op: op, args: args, min: minInt}
	var b strings.Builder
	if op == "//" || op == "%" {
		b.WriteString("(" + paren(args[0]) + " " + op + " " + paren(args[1]) + ")")
	} else {
		b.WriteString(op + "(")
		for i, x := range args {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(x.String())
		}
		b.WriteString(")")
	}
	a.key = b.String()
	a.min, a.max = atomMin(a), atomMax(a)
	return fromAtom(*a)
}

func paren(e Expr) string {
	s := e.String()
	if _, ok := e.Name(); ok || e.p == nil && e.n >= 0 {
		return s
	}
	if e.p != nil && len(e.p.terms) == 1 && e.p.terms[0].coef == 1 && len(e.p.terms[0].atoms) == 1 {
		return s
	}
	return "(" + s + ")"
}

const minInt, maxInt = -1 << 63, 1<<63 - 1

func atomMin(a *atom) int64 {
	lo := func(i int) int64 { return a.args[i].Min() }
	switch a.op {
	case "//":
		if n, ok := a.args[1].Int(); ok && n > 0 && lo(0) >= 0 {
			return lo(0) / n
		}
		if lo(0) >= 0 && lo(1) >= 1 {
			return 0
		}
	case "%":
		if lo(1) >= 1 {
			return 0
		}
	case "min", "bcast":
		m := lo(0)
		for i := range a.args {
			m = min(m, lo(i))
		}
		return m
	case "max":
		m := lo(0)
		for i := range a.args {
			m = max(m, lo(i))
		}
		return m
	}
	return minInt
}

// atomMax is a number that the value of an atom does not exceed, nil if none is known.
func atomMax(a *atom) *Expr {
	hi := func(i int) int64 { return a.args[i].most() }
	most := int64(maxInt)
	switch a.op {
	case "//":
		if _, c, ok := a.quotient(); ok && hi(0) != maxInt {
			return new(Const(hi(0)).FloorDiv(Const(c)))
		}
	case "min":
		most = hi(0)
		for i := range a.args {
			most = min(most, hi(i))
		}
	case "max":
		most = hi(0)
		for i := range a.args {
			most = max(most, hi(i))
		}
	}
	if most == maxInt {
		return nil
	}
	return new(Const(most))
}

// most is an upper bound of the value, the greatest int64 if none is known.
func (e Expr) most() int64 {
	if e.p == nil {
		return e.n
	}
	if m := e.Neg().Min(); m != minInt {
		return -m
	}
	return maxInt
}

// maxCoef is the greatest coefficient of which products are computed for a bound: they fit 64 bits.
const maxCoef = 1 << 31

func (t term) large() bool { return t.coef > maxCoef || t.coef < -maxCoef }

// Min is a lower bound of the value, the least int64 if none is known.
func (e Expr) Min() int64 { return e.minWithin(maxBounds) }

// maxBounds is how often all bounds of a term are tried; behind that only the first one is.
const maxBounds = 4

func (e Expr) minWithin(tries int) int64 {
	if e.p == nil {
		return e.n
	}
	total := int64(0)
	for i, t := range e.p.terms {
		if len(t.atoms) > 0 && t.coef < 0 {
			return e.minWithout(i, tries)
		}
		m := int64(1)
		for _, a := range t.atoms {
			if a.min < 0 || a.min > maxCoef {
				if len(t.atoms) > 1 || a.min == minInt {
					return minInt
				}
			}
			m *= a.min
		}
		part := t.coef * m
		if m != 0 && part/m != t.coef || part > 0 && total+part < total || part < 0 && total+part > total {
			return minInt // beyond 64 bits
		}
		total += part
	}
	return total
}

// minWithout is Min where the term with index i has a negative coefficient: a bound takes the place of an atom, which may cancel other
// terms. The best bound is the greatest.
func (e Expr) minWithout(i, tries int) int64 {
	best := int64(minInt)
	replace := func(i int, bound Expr, by int64) {
		if best != minInt && tries <= 0 || by > maxCoef || by < -maxCoef || slices.ContainsFunc(bound.terms(), term.large) {
			return
		}
		rest := build(slices.Delete(slices.Clone(e.p.terms), i, i+1))
		best = max(best, rest.Add(bound.Mul(Const(by))).minWithin(tries-1))
	}
	if t := e.p.terms[i]; len(t.atoms) == 1 {
		if n, c, ok := t.atoms[0].quotient(); ok && t.coef%c == 0 { // c * (n // c) <= n
			replace(i, n, t.coef/c)
		}
		if t.atoms[0].max != nil {
			replace(i, *t.atoms[0].max, t.coef)
		}
	}
	for i, t := range e.p.terms {
		if len(t.atoms) != 1 || t.coef < 0 {
			continue
		}
		if n, c, ok := t.atoms[0].quotient(); ok && t.coef%c == 0 { // c * (n // c) >= n - (c - 1)
			replace(i, n.Sub(Const(c-1)), t.coef/c)
			break
		}
	}
	return best
}

// quotient gives n and c of n // c, where c is a positive number.
func (a *atom) quotient() (n Expr, c int64, ok bool) {
	if a.op != "//" {
		return n, 0, false
	}
	c, ok = a.args[1].Int()
	return a.args[0], c, ok && c > 0
}

// Compare orders two expressions where the bounds allow it: ok is false if
// nothing is known, else e is less, equal or greater for all values.
func (e Expr) Compare(f Expr) (sign int, ok bool) {
	if e.IsConst() && f.IsConst() { // their difference may overflow
		return cmp.Compare(e.n, f.n), true
	}
	d := e.Sub(f)
	if n, known := d.Int(); known {
		switch {
		case n < 0:
			return -1, true
		case n > 0:
			return 1, true
		}
		return 0, true
	}
	if d.Min() > 0 {
		return 1, true
	}
	if d.Neg().Min() > 0 {
		return -1, true
	}
	return 0, false
}

// AtLeast reports that e >= f holds for all values.
func (e Expr) AtLeast(f Expr) bool {
	if e.IsConst() && f.IsConst() { // their difference may overflow
		return e.n >= f.n
	}
	return e.Sub(f).Min() >= 0
}

// FloorDiv is e // f with Python's rounding. Division by a known 0 gives an opaque value.
func (e Expr) FloorDiv(f Expr) Expr {
	if a, ok := e.Int(); ok {
		if b, ok := f.Int(); ok && b != 0 {
			q := a / b
			if a%b != 0 && (a < 0) != (b < 0) {
				q--
			}
			return Const(q)
		}
		if a == 0 && f.Min() >= 1 {
			return Const(0)
		}
	}
	if f.Is(1) {
		return e
	}
	if q, ok := e.exactDiv(f); ok {
		return q
	}
	if b, ok := f.Int(); ok && b > 0 {
		if ts := e.terms(); ts[0].coef < 0 && ts[0].coef > minInt { // (-n) // b = -((n + b - 1) // b)
			return e.Neg().Add(Const(b - 1)).FloorDiv(f).Neg()
		}
		// (b*q + r) // b = q + r // b, and so a number in e is from 0 to b - 1
		var whole, rest []term
		for _, t := range e.terms() {
			switch r := Const(t.coef).Mod(f).n; {
			case r == 0:
				whole = append(whole, term{t.coef / b, t.atoms})
			case len(t.atoms) == 0 && r != t.coef:
				whole = append(whole, term{(t.coef - r) / b, nil})
				rest = append(rest, term{r, nil})
			default:
				rest = append(rest, t)
			}
		}
		if len(whole) > 0 {
			return build(whole).Add(build(rest).FloorDiv(f))
		}
		// (x // a) // b = x // (a*b) for positive a, b
		if a := e.loneAtom(); a != nil && a.op == "//" {
			if n, ok := a.args[1].Int(); ok && n > 0 {
				return a.args[0].FloorDiv(Const(n * b))
			}
		}
	}
	return opaque("//", e, f)
}

func (e Expr) loneAtom() *atom {
	if e.p != nil && len(e.p.terms) == 1 && e.p.terms[0].coef == 1 && len(e.p.terms[0].atoms) == 1 {
		return e.p.terms[0].atoms[0]
	}
	return nil
}

// exactDiv divides by a monomial that is known not to be 0, if every term is divisible.
func (e Expr) exactDiv(f Expr) (Expr, bool) {
	ft := f.terms()
	if len(ft) != 1 {
		if e.Equal(f) && (f.Min() > 0) {
			return Const(1), true
		}
		return Expr{}, false
	}
	if len(ft[0].atoms) > 0 && f.Min() < 1 {
		// x // x is 1 for every x that a program can divide by.
		for _, a := range ft[0].atoms {
			if a.min < 0 {
				return Expr{}, false
			}
		}
	}
	var out []term
	for _, t := range e.terms() {
		if t.coef%ft[0].coef != 0 {
			return Expr{}, false
		}
		rest := append([]*atom(nil), t.atoms...)
		for _, a := range ft[0].atoms {
			found := false
			for i, r := range rest {
				if r.key == a.key {
					rest = append(rest[:i], rest[i+1:]...)
					found = true
					break
				}
			}
			if !found {
				return Expr{}, false
			}
		}
		out = append(out, term{t.coef / ft[0].coef, rest})
	}
	return build(out), true
}

// Divide is e / f if f divides e for all values of the symbols.
func (e Expr) Divide(f Expr) (Expr, bool) {
	if f.Is(0) {
		return Expr{}, false
	}
	if a, ok := e.Int(); ok {
		if b, ok := f.Int(); ok {
			return Const(a / b), a%b == 0
		}
	}
	return e.exactDiv(f)
}

// Multiple reports that e is a known multiple of f.
func (e Expr) Multiple(f Expr) bool {
	et, ft := e.terms(), f.terms()
	if len(et) == 0 {
		return true
	}
	if len(et) != len(ft) || et[0].coef%ft[0].coef != 0 {
		return false
	}
	return e.Equal(f.Mul(Const(et[0].coef / ft[0].coef)))
}

// Mod is e % f with the sign of f, as in Python.
func (e Expr) Mod(f Expr) Expr {
	if _, ok := e.exactDiv(f); ok && !f.Is(0) {
		return Const(0)
	}
	if a, ok := e.Int(); ok {
		if b, ok := f.Int(); ok && b != 0 {
			r := a % b
			if r != 0 && (r < 0) != (b < 0) {
				r += b
			}
			return Const(r)
		}
	}
	if c, ok := f.Int(); ok && c > 0 { // one form for multiples: n - n % c is c * (n // c), of which c can be cancelled
		return e.Sub(f.Mul(e.FloorDiv(f)))
	}
	return opaque("%", e, f)
}

// Max is the greater of both.
func (e Expr) Max(f Expr) Expr { return extremum("max", e, f, 1) }

// Minimum is the lesser of both.
func (e Expr) Minimum(f Expr) Expr { return extremum("min", e, f, -1) }

func extremum(op string, e, f Expr, sign int) Expr {
	if e.Equal(f) {
		return e
	}
	if e.AtLeast(f) {
		if sign > 0 {
			return e
		}
		return f
	}
	if f.AtLeast(e) {
		if sign > 0 {
			return f
		}
		return e
	}
	if f.String() < e.String() {
		e, f = f, e
	}
	return opaque(op, e, f)
}

// Broadcast is the size of two dimensions broadcast together, as NumPy has it.
// A known size other than 1 wins: the other one must be equal or 1.
func (e Expr) Broadcast(f Expr) Expr {
	switch {
	case e.Equal(f) || f.Is(1):
		return e
	case e.Is(1):
		return f
	case e.IsConst():
		return e
	case f.IsConst():
		return f
	case e.contains(f):
		return e.absorb(f)
	case f.contains(e):
		return f.absorb(e)
	}
	if f.String() < e.String() {
		e, f = f, e
	}
	return opaque("bcast", e, f)
}

// contains reports that f has nothing to add where e and f are broadcast together: e is such a size of f and another one already, or
// it is min(f, n) for n of at least 2.
func (e Expr) contains(f Expr) bool {
	a := e.loneAtom()
	if a == nil {
		return false
	}
	switch i := slices.IndexFunc(a.args, f.Equal); {
	case i < 0:
		return false
	case a.op == "bcast":
		return true
	case a.op == "min":
		return a.args[1-i].Min() >= 2
	}
	return false
}

// absorb is the size of e and f, which e contains. min(f, n) is f where it is equal to f, and else it is n, which is neither f nor 1:
// then the sizes do not fit each other.
func (e Expr) absorb(f Expr) Expr {
	if e.loneAtom().op == "min" {
		return f
	}
	return e
}

// Eval computes the value for given symbols, if all are given and an int64 holds it.
func (e Expr) Eval(env map[string]int64) (int64, bool) {
	if e.p == nil {
		return e.n, true
	}
	sum := int64(0)
	for _, t := range e.p.terms {
		v := t.coef
		for _, a := range t.atoms {
			x, ok := a.eval(env)
			if !ok {
				return 0, false
			}
			if v, ok = product(v, x); !ok {
				return 0, false
			}
		}
		if s := sum + v; v != 0 && (s > sum) != (v > 0) {
			return 0, false
		} else {
			sum = s
		}
	}
	return sum, true
}

// product is x*y, if an int64 holds it.
func product(x, y int64) (int64, bool) {
	if x == 0 || y == 0 {
		return 0, true
	}
	p := x * y
	return p, p/y == x && !(y == -1 && x == math.MinInt64)
}

func (a *atom) eval(env map[string]int64) (int64, bool) {
	if a.op == "" {
		v, ok := env[a.key]
		return v, ok
	}
	e := a.subst(func(s string) (Expr, bool) {
		v, ok := env[s]
		return Const(v), ok
	})
	return e.Int()
}

// NegativeOfNothing reports a size that is computed as a negative number where all symbols are 0, since these are taken to be 1 or more: N - 1 for x[:-1], which
// has no rows then.
func (e Expr) NegativeOfNothing() bool {
	n, ok := e.Subst(func(string) (Expr, bool) { return Const(0), true }).Int()
	return ok && n < 0
}

// Subst replaces symbols; get answers false to leave one as it is.
func (e Expr) Subst(get func(name string) (Expr, bool)) Expr {
	if e.p == nil {
		return e
	}
	sum := Expr{}
	for _, t := range e.p.terms {
		v := Const(t.coef)
		for _, a := range t.atoms {
			v = v.Mul(a.subst(get))
		}
		sum = sum.Add(v)
	}
	return sum
}

func (a *atom) subst(get func(string) (Expr, bool)) Expr {
	if a.op == "" {
		if v, ok := get(a.key); ok {
			return v
		}
		return fromAtom(*a)
	}
	if a.op == summary {
		return a.substSummary(get)
	}
	args := make([]Expr, len(a.args))
	for i, x := range a.args {
		args[i] = x.Subst(get)
	}
	return apply(a.op, args)
}

// substSummary makes another summary where a symbol that it depends on is replaced: of its text and the replacements.
func (a *atom) substSummary(get func(string) (Expr, bool)) Expr {
	text, free := a.key, map[string]bool{}
	changed := false
	for _, name := range a.free {
		v, ok := get(name)
		if n, same := v.Name(); !ok || same && n == name {
			free[name] = true
			continue
		}
		changed = true
		text += ", " + name + " = " + v.String()
		v.Symbols(func(s string) { free[s] = true })
	}
	if !changed {
		return fromAtom(*a)
	}
	return summarize(text, free, minInt)
}

func apply(op string, args []Expr) Expr {
	switch op {
	case "//":
		return args[0].FloorDiv(args[1])
	case "%":
		return args[0].Mod(args[1])
	case "min":
		return args[0].Minimum(args[1])
	case "max":
		return args[0].Max(args[1])
	case "bcast":
		return args[0].Broadcast(args[1])
	case "mul":
		return args[0].Mul(args[1])
	}
	return opaque(op, args...)
}

// Evaluate computes an expression with the numbers, the symbols and the functions of the caller: "+", "*", and those that expressions
// are written with, "//", "%", "min", "max", "bcast". It is not ok for one that has a summary in it.
func Evaluate[V any](e Expr, number func(int64) V, symbol func(name string) V, call func(op string, x, y V) V) (v V, ok bool) {
	if e.p == nil {
		return number(e.n), true
	}
	for i, t := range e.p.terms {
		p := number(t.coef)
		for _, a := range t.atoms {
			var x V
			switch {
			case a.op == "":
				x = symbol(a.key)
			case a.op == summary || len(a.args) != 2:
				return v, false
			default:
				l, lok := Evaluate(a.args[0], number, symbol, call)
				r, rok := Evaluate(a.args[1], number, symbol, call)
				if !lok || !rok {
					return v, false
				}
				if op := a.op; op == "mul" {
					x = call("*", l, r)
				} else {
					x = call(op, l, r)
				}
			}
			p = call("*", p, x)
		}
		if i == 0 {
			v = p
		} else {
			v = call("+", v, p)
		}
	}
	return v, true
}

// Symbols calls f for each symbol in the expression.
func (e Expr) Symbols(f func(name string)) {
	if e.p == nil {
		return
	}
	for _, t := range e.p.terms {
		for _, a := range t.atoms {
			if a.op == "" {
				f(a.key)
			}
			for _, name := range a.free {
				f(name)
			}
			for _, x := range a.args {
				x.Symbols(f)
			}
		}
	}
}

// Summarized reports that a summary stands for e or for a part of it, so that e cannot be compared with what it was made of.
func (e Expr) Summarized() bool {
	if e.p == nil {
		return false
	}
	for _, t := range e.p.terms {
		for _, a := range t.atoms {
			if a.op == summary || slices.ContainsFunc(a.args, Expr.Summarized) {
				return true
			}
		}
	}
	return false
}

// Least is the least value that a symbol of e may have; 0 if e has no such symbol.
func Least(e Expr, name string) int64 {
	if e.p == nil {
		return 0
	}
	for _, t := range e.p.terms {
		for _, a := range t.atoms {
			if a.op == "" && a.key == name {
				return a.min
			}
			for _, x := range a.args {
				if m := Least(x, name); m != 0 {
					return m
				}
			}
		}
	}
	return 0
}
