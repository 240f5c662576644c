// Package index has maps from the coordinates of an iteration space to places in a buffer: affine expressions with
// floor division and remainder, whose coefficients are integers or symbolic sizes.
//
// A view of a tensor is such a map; views compose by substitution, and simplification finds out when a chain of them
// reads a buffer in order after all. All atoms are non-negative, so that kernels divide without signs.
package index

import (
	"sort"
	"strings"

	"github.com/aton-project/aton/ssa/sym"
)

// Space is an iteration space: dim i runs over 0 .. Sizes[i]-1.
type Space struct{ Sizes []sym.Expr }

// Of makes a space.
func Of(sizes ...sym.Expr) Space { return Space{sizes} }

// Count is the number of points.
func (s Space) Count() sym.Expr { return Prod(s.Sizes) }

// Prod is the product of sizes.
func Prod(sizes []sym.Expr) sym.Expr { return sym.Product(sizes...) }

// Strides are the row-major strides of a shape.
func Strides(shape []sym.Expr) []sym.Expr {
	out := make([]sym.Expr, len(shape))
	n := sym.Const(1)
	for i := len(shape) - 1; i >= 0; i-- {
		out[i] = n
		n = n.Mul(shape[i])
	}
	return out
}

// Kind tells what an Atom is.
type Kind uint8

// Kinds of atoms.
const (
	Dim Kind = iota // a coordinate
	Div             // Arg // By
	Mod             // Arg % By
)

// Atom is what a coefficient stands before.
type Atom struct {
	Kind Kind
	Dim  int
	Arg  *Expr
	By   sym.Expr
	key  string
}

// Term is Coef times Atom.
type Term struct {
	Coef sym.Expr
	Atom Atom
}

// Expr is a sum of terms and a constant, in normal form: terms are sorted and differ. The zero Expr is 0.
type Expr struct {
	Terms []Term
	C     sym.Expr
}

// Const is an expression without coordinates.
func Const(e sym.Expr) Expr { return Expr{C: e} }

// Int is a number.
func Int(n int64) Expr { return Expr{C: sym.Const(n)} }

// Dim is coordinate i of the space; that of an axis of size 1 is 0.
func (s Space) Dim(i int) Expr {
	if s.Sizes[i].Is(1) {
		return Expr{}
	}
	return Expr{Terms: []Term{{sym.Const(1), Atom{Kind: Dim, Dim: i, key: "d" + itoa(i)}}}}
}

// Dims are all coordinates.
func (s Space) Dims() []Expr {
	out := make([]Expr, len(s.Sizes))
	for i := range out {
		out[i] = s.Dim(i)
	}
	return out
}

func itoa(i int) string { return sym.Const(int64(i)).String() }

// IsConst reports an expression without coordinates.
func (e Expr) IsConst() bool { return len(e.Terms) == 0 }

// IsDim reports that e is coordinate i and nothing else.
func (e Expr) IsDim(i int) bool {
	return len(e.Terms) == 1 && e.C.Is(0) && e.Terms[0].Coef.Is(1) && e.Terms[0].Atom.Kind == Dim && e.Terms[0].Atom.Dim == i
}

// Uses reports that e depends on coordinate i.
func (e Expr) Uses(i int) bool {
	for _, t := range e.Terms {
		if t.Atom.Kind == Dim && t.Atom.Dim == i || t.Atom.Kind != Dim && t.Atom.Arg.Uses(i) {
			return true
		}
	}
	return false
}

// Coef is the coefficient of coordinate i; ok is false if it occurs inside of a division or a remainder.
func (e Expr) Coef(i int) (c sym.Expr, ok bool) {
	for _, t := range e.Terms {
		if t.Atom.Kind == Dim {
			if t.Atom.Dim == i {
				c = t.Coef
			}
		} else if t.Atom.Arg.Uses(i) {
			return sym.Expr{}, false
		}
	}
	return c, true
}

// Equal reports the same normal form.
func (e Expr) Equal(f Expr) bool { return e.String() == f.String() }

// String prints the expression: 12*d0 + d1 % 4.
func (e Expr) String() string {
	var b strings.Builder
	for i, t := range e.Terms {
		if i > 0 {
			b.WriteString(" + ")
		}
		if !t.Coef.Is(1) {
			b.WriteString(paren(t.Coef.String()) + "*")
		}
		b.WriteString(t.Atom.key)
	}
	if len(e.Terms) == 0 || !e.C.Is(0) {
		if len(e.Terms) > 0 {
			b.WriteString(" + ")
		}
		b.WriteString(e.C.String())
	}
	return b.String()
}

func paren(s string) string {
	if strings.ContainsAny(s, " ") {
		return "(" + s + ")"
	}
	return s
}

// Add is e + f in the space.
func (s Space) Add(e, f Expr) Expr {
	return s.normal(append(append([]Term(nil), e.Terms...), f.Terms...), e.C.Add(f.C))
}

// Scale is c * e.
func (s Space) Scale(e Expr, c sym.Expr) Expr {
	if c.Is(0) {
		return Expr{}
	}
	out := Expr{C: e.C.Mul(c), Terms: make([]Term, len(e.Terms))}
	for i, t := range e.Terms {
		out.Terms[i] = Term{t.Coef.Mul(c), t.Atom}
	}
	return out
}

// normal merges equal terms, drops those without weight and puts quotient and remainder together again.
func (s Space) normal(terms []Term, c sym.Expr) Expr {
	for {
		sort.SliceStable(terms, func(i, j int) bool { return terms[i].Atom.key < terms[j].Atom.key })
		out := terms[:0:0]
		for _, t := range terms {
			if n := len(out); n > 0 && out[n-1].Atom.key == t.Atom.key {
				out[n-1].Coef = out[n-1].Coef.Add(t.Coef)
			} else {
				out = append(out, t)
			}
		}
		terms = out[:0:0]
		for _, t := range out {
			if !t.Coef.Is(0) {
				terms = append(terms, t)
			}
		}
		again := false
	search:
		for i, m := range terms {
			if m.Atom.Kind != Mod {
				continue
			}
			quotient := s.Div(*m.Atom.Arg, m.Atom.By)
			if len(quotient.Terms) != 1 || !quotient.C.Is(0) || !quotient.Terms[0].Coef.Is(1) {
				continue
			}
			for j, d := range terms {
				if d.Atom.key == quotient.Terms[0].Atom.key && d.Coef.Equal(m.Coef.Mul(m.Atom.By)) {
					// c*(x % n) + c*n*(x // n) = c*x
					rest := append([]Term(nil), terms...)
					rest[i], rest[j] = Term{}, Term{}
					whole := s.Scale(*m.Atom.Arg, m.Coef)
					terms = whole.Terms
					for _, t := range rest {
						if t.Atom.key != "" {
							terms = append(terms, t)
						}
					}
					c = c.Add(whole.C)
					again = true
					break search
				}
			}
		}
		if !again {
			return Expr{terms, c}
		}
	}
}

// Bounds gives the least and the greatest value, if they are known.
func (s Space) Bounds(e Expr) (lo, hi sym.Expr, ok bool) {
	lo, hi = e.C, e.C
	zero := sym.Const(0)
	for _, t := range e.Terms {
		top, known := s.top(t.Atom)
		if !known {
			return lo, hi, false
		}
		switch {
		case t.Coef.AtLeast(zero):
			hi = hi.Add(t.Coef.Mul(top))
		case zero.AtLeast(t.Coef):
			lo = lo.Add(t.Coef.Mul(top))
		default:
			return lo, hi, false
		}
	}
	return lo, hi, true
}

// top is the greatest value of an atom.
func (s Space) top(a Atom) (sym.Expr, bool) {
	one := sym.Const(1)
	switch a.Kind {
	case Dim:
		return s.Sizes[a.Dim].Sub(one), true
	case Mod:
		return a.By.Sub(one), true
	}
	_, hi, ok := s.Bounds(*a.Arg)
	if !ok {
		return sym.Expr{}, false
	}
	if n := hi.Add(one); a.By.IsConst() || n.IsConst() {
		if q, divides := n.Divide(a.By); divides {
			return q.Sub(one), true
		}
	} else if q, divides := n.Divide(a.By); divides {
		return q.Sub(one), true
	}
	return hi.FloorDiv(a.By), true
}

// within reports 0 <= e < n.
func (s Space) within(e Expr, n sym.Expr) bool {
	lo, hi, ok := s.Bounds(e)
	return ok && lo.AtLeast(sym.Const(0)) && n.Sub(sym.Const(1)).AtLeast(hi)
}

func (s Space) nonNegative(e Expr) bool {
	lo, _, ok := s.Bounds(e)
	return ok && lo.AtLeast(sym.Const(0))
}

// split takes out of e what is a multiple of n whatever the coordinates: e = n*quotient + rest.
func (s Space) split(e Expr, n sym.Expr) (quotient, rest Expr) {
	for _, t := range e.Terms {
		if q, ok := t.Coef.Divide(n); ok {
			quotient.Terms = append(quotient.Terms, Term{q, t.Atom})
		} else {
			rest.Terms = append(rest.Terms, t)
		}
	}
	if q, ok := e.C.Divide(n); ok {
		quotient.C = q
	} else if c, known := e.C.Int(); known && n.IsConst() {
		by, _ := n.Int()
		q := c / by
		if c%by < 0 {
			q--
		}
		quotient.C, rest.C = sym.Const(q), sym.Const(c-q*by)
	} else {
		rest.C = e.C
	}
	return quotient, rest
}

// Div is e // n, for a non-negative e and a positive n; 0 for n = 0, the size of an axis without points.
func (s Space) Div(e Expr, n sym.Expr) Expr {
	if n.Is(0) {
		return Expr{}
	}
	if n.Is(1) {
		return e
	}
	quotient, rest := s.split(e, n)
	if s.within(rest, n) {
		return quotient
	}
	if !s.nonNegative(rest) {
		quotient, rest = Expr{}, e
	}
	if rest.IsConst() {
		return s.Add(quotient, Const(rest.C.FloorDiv(n)))
	}
	// (x // a) // b = x // (a*b)
	if len(rest.Terms) == 1 && rest.C.Is(0) && rest.Terms[0].Coef.Is(1) && rest.Terms[0].Atom.Kind == Div {
		inner := rest.Terms[0].Atom
		return s.Add(quotient, s.Div(*inner.Arg, inner.By.Mul(n)))
	}
	return s.Add(quotient, atom(Div, rest, n))
}

// Mod is e % n, for a non-negative e and a positive n; 0 for n = 0.
func (s Space) Mod(e Expr, n sym.Expr) Expr {
	if n.Is(1) || n.Is(0) {
		return Expr{}
	}
	_, rest := s.split(e, n)
	if s.within(rest, n) {
		return rest
	}
	if !s.nonNegative(rest) {
		rest = e
	}
	if rest.IsConst() {
		return Const(rest.C.Mod(n))
	}
	return atom(Mod, rest, n)
}

func atom(k Kind, arg Expr, by sym.Expr) Expr {
	op := " // "
	if k == Mod {
		op = " % "
	}
	a := Atom{Kind: k, Arg: &arg, By: by, key: "(" + arg.String() + ")" + op + paren(by.String())}
	return Expr{Terms: []Term{{sym.Const(1), a}}}
}

// Subst replaces the coordinates of e, which belongs to another space, by expressions over this one.
func (s Space) Subst(e Expr, coords []Expr) Expr {
	out := Const(e.C)
	for _, t := range e.Terms {
		var v Expr
		switch t.Atom.Kind {
		case Dim:
			v = coords[t.Atom.Dim]
		case Div:
			v = s.Div(s.Subst(*t.Atom.Arg, coords), t.Atom.By)
		case Mod:
			v = s.Mod(s.Subst(*t.Atom.Arg, coords), t.Atom.By)
		}
		out = s.Add(out, s.Scale(v, t.Coef))
	}
	return out
}

// Linear is the row-major position of coordinates in a shape.
func (s Space) Linear(shape []sym.Expr, coords []Expr) Expr {
	out := Expr{}
	for i, n := range Strides(shape) {
		out = s.Add(out, s.Scale(coords[i], n))
	}
	return out
}

// Unravel is the inverse of Linear: the coordinates in a shape of a row-major position.
func (s Space) Unravel(shape []sym.Expr, at Expr) []Expr {
	out := make([]Expr, len(shape))
	strides := Strides(shape)
	for i := range shape {
		out[i] = s.Mod(s.Div(at, strides[i]), shape[i])
	}
	return out
}

// Eval computes the value at a point, with the symbols' values in env; ok is false if a symbol is missing.
func (e Expr) Eval(point []int64, env map[string]int64) (n int64, ok bool) {
	n, ok = e.C.Eval(env)
	for _, t := range e.Terms {
		c, known := t.Coef.Eval(env)
		var v int64
		if t.Atom.Kind == Dim {
			v = point[t.Atom.Dim]
		} else {
			a, inner := t.Atom.Arg.Eval(point, env)
			by, known := t.Atom.By.Eval(env)
			if !inner || !known || by == 0 {
				return 0, false
			}
			if v = a / by; a%by < 0 {
				v--
			}
			if t.Atom.Kind == Mod {
				v = a - v*by
			}
		}
		n, ok = n+c*v, ok && known
	}
	return n, ok
}
