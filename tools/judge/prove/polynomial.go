package prove

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// polynomial is a formula on real numbers in normal form: the coefficients of products of powers of atoms. Atoms are variables,
// functions of polynomials, and inverses of sums. Solvers are weak where products and functions are mixed; equal normal forms
// prove such formulas equal wherever both are defined.
type polynomial map[string]float64

// maxMonomials bounds polynomials; beyond it the solver is asked.
const maxMonomials = 1 << 10

// maxAtom bounds the characters of the name of an atom, which spells what is in it.
const maxAtom = 1 << 16

// normalizer makes polynomials of the formulas of an encoder.
type normalizer struct {
	defs  map[string]string
	known map[string]polynomial
	fail  bool
}

func constantPolynomial(c float64) polynomial {
	if c == 0 {
		return polynomial{}
	}
	return polynomial{"": c}
}

func atomPolynomial(name string) polynomial { return polynomial{name + "^1": 1} }

func (p polynomial) plus(q polynomial, by float64) polynomial {
	out := maps.Clone(p)
	out.add(q, by)
	return out
}

// add is plus in place.
func (p polynomial) add(q polynomial, by float64) {
	for k, c := range q {
		sum := p[k] + by*c
		if math.Abs(sum) <= 1e-6*max(math.Abs(p[k]), math.Abs(by*c)) { // constants are known to six digits
			delete(p, k)
		} else {
			p[k] = sum
		}
	}
}

func (n *normalizer) times(p, q polynomial) polynomial {
	out := polynomial{}
	if len(p)*len(q) > maxMonomials {
		n.fail = true
		return out
	}
	for a, x := range p {
		for b, y := range q {
			out.add(polynomial{product(a, b): x * y}, 1)
		}
		if n.fail = n.fail || len(a) > maxAtom; n.fail {
			return out
		}
	}
	return out
}

// separator stands between the powers of a product.
const separator = "\x00"

func powers(monomial string) map[string]int {
	out := map[string]int{}
	if monomial == "" {
		return out
	}
	for _, f := range strings.Split(monomial, separator) {
		i := strings.LastIndexByte(f, '^')
		e, _ := strconv.Atoi(f[i+1:])
		out[f[:i]] += e
	}
	return out
}

func product(a, b string) string {
	m := powers(a)
	for k, e := range powers(b) {
		m[k] += e
	}
	return monomial(m)
}

func monomial(m map[string]int) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if m[k] != 0 {
			out = append(out, fmt.Sprintf("%s^%d", k, m[k]))
		}
	}
	return strings.Join(out, separator)
}

// inverse is 1/p: of a product that of each power, of a sum an atom.
func (n *normalizer) inverse(p polynomial) polynomial {
	if len(p) == 1 {
		for k, c := range p {
			m := powers(k)
			for a := range m {
				m[a] = -m[a]
			}
			return polynomial{monomial(m): 1 / c}
		}
	}
	if len(p) == 0 {
		n.fail = true
		return p
	}
	name := p.text()
	if len(name) > maxAtom {
		n.fail = true
	}
	return polynomial{"[" + name + "]^-1": 1}
}

// constant is the number that a polynomial without atoms is.
func (p polynomial) constant() (float64, bool) {
	c, ok := p[""]
	return c, len(p) == 0 || ok && len(p) == 1
}

// text spells a polynomial, with coefficients to five digits; it names atoms alone.
func (p polynomial) text() string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(p)) {
		out = append(out, strconv.FormatFloat(p[k], 'e', 4, 64)+"*"+strings.ReplaceAll(k, separator, "*"))
	}
	return strings.Join(out, "+")
}

// equal compares coefficients to six digits, or to so much of the greatest one.
func (p polynomial) equal(q polynomial) bool { return len(p.plus(q, -1)) == 0 }

// of is the polynomial of a formula.
func (n *normalizer) of(text string) polynomial {
	if p, ok := n.known[text]; ok {
		return p
	}
	p := n.parse(text)
	n.known[text] = p
	return p
}

// words splits what stands within parentheses.
func words(text string) []string {
	var out []string
	depth, start, quoted := 0, -1, false
	for i, r := range text {
		switch {
		case r == '|':
			quoted = !quoted
			if start < 0 {
				start = i
			}
		case quoted:
		case r == '(':
			if depth == 0 && start < 0 {
				start = i
			}
			depth++
		case r == ')':
			depth--
		case r == ' ' && depth == 0:
			if start >= 0 {
				out = append(out, text[start:i])
			}
			start = -1
		case start < 0:
			start = i
		}
	}
	if start >= 0 {
		out = append(out, text[start:])
	}
	return out
}

func (n *normalizer) parse(text string) polynomial {
	if f, ok := rational(strings.NewReplacer("(", " ( ", ")", " ) ").Replace(text)); ok {
		return constantPolynomial(f)
	}
	if !strings.HasPrefix(text, "(") {
		if def, ok := n.defs[text]; ok {
			return n.of(def)
		}
		return atomPolynomial(text)
	}
	w := words(text[1 : len(text)-1])
	args := make([]polynomial, len(w)-1)
	for i, a := range w[1:] {
		args[i] = n.of(a)
		if n.fail || len(args[i]) > maxMonomials {
			n.fail = true
			return polynomial{}
		}
	}
	switch w[0] {
	case "+":
		acc := maps.Clone(args[0])
		for _, a := range args[1:] {
			acc.add(a, 1)
		}
		return acc
	case "-":
		if len(args) == 1 {
			return polynomial{}.plus(args[0], -1)
		}
		return args[0].plus(args[1], -1)
	case "*":
		acc := args[0]
		for _, a := range args[1:] {
			acc = n.times(acc, a)
		}
		return acc
	case "/":
		return n.times(args[0], n.inverse(args[1]))
	}
	var name []string
	length := 0
	for _, a := range args {
		text := a.text()
		if length += len(text); length > maxAtom {
			n.fail = true
			return polynomial{}
		}
		name = append(name, text)
	}
	return atomPolynomial(w[0] + "{" + strings.Join(name, ";") + "}")
}

// formulas compares the formulas of two terms on real numbers: by their normal forms, and, if these are polynomials in the variables, by how far
// they can be from each other for variables from -1 to 1.
func formulas(a, b *Term) (equal, near bool) {
	e := newEncoder(reals)
	x, y := e.term(a), e.term(b)
	if e.err != nil {
		return false, false
	}
	n := &normalizer{defs: e.defs, known: map[string]polynomial{}}
	p, q := n.of(x), n.of(y)
	if n.fail {
		return false, false
	}
	if p.equal(q) {
		return true, true
	}
	floats := map[string]bool{}
	for i, v := range e.vars {
		floats[fmt.Sprintf("x%d", i)] = v.DType.IsFloat()
	}
	sum := 0.0
	for k := range mergedKeys(p, q) {
		for v, power := range powers(k) {
			if !floats[v] || power < 0 {
				return false, false
			}
		}
		sum += math.Abs(p[k] - q[k])
	}
	return false, sum <= nearness(a.DType)
}

func mergedKeys(p, q polynomial) polynomial {
	out := maps.Clone(p)
	maps.Copy(out, q)
	return out
}
