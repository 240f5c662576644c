package prove

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aton-project/aton/ssa/tensor"
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
	// sums are the polynomials that the atoms of inverses are of, and roots those of square roots, by the names of the atoms.
	sums, roots map[string]polynomial
	// calls are the atoms of functions with their operands, by the functions: operands that are equal as fractions have one atom.
	calls map[string][]call
	// cases, if not nil, says which conditions hold; undecided are those that it does not have, in the words of the solver.
	cases     map[string]bool
	undecided []condition
}

type call struct {
	args []polynomial
	name string
}

// condition is one that a choice depends on.
type condition struct{ key, text string }

func newNormalizer(defs map[string]string) *normalizer {
	return &normalizer{defs: defs, known: map[string]polynomial{}, sums: map[string]polynomial{}, roots: map[string]polynomial{}, calls: map[string][]call{}}
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
	n.sums["["+name+"]"] = p
	return polynomial{"[" + name + "]^-1": 1}
}

// vanishes reports that a polynomial is 0 when it is multiplied by the sums that it is divided by, and squares of roots are what the roots are of.
func (n *normalizer) vanishes(p polynomial) bool {
	for range 16 {
		if n.fail || len(p) == 0 {
			break
		}
		atom, least := "", 0
		for k := range p {
			for a, e := range powers(k) {
				if n.roots[a] != nil && (e >= 2 || e <= -2) && a > atom {
					atom = a
				}
			}
		}
		root := atom != ""
		for k := range p {
			for a, e := range powers(k) {
				switch {
				case root || n.sums[a] == nil || e >= 0 || a < atom:
				case a == atom:
					least = min(least, e)
				default:
					atom, least = a, e
				}
			}
		}
		if atom == "" {
			break
		}
		with := n.sums[atom]
		if root {
			with = n.roots[atom]
		}
		out := polynomial{}
		for k, c := range p {
			m := powers(k)
			e := m[atom]
			delete(m, atom)
			times := e - least // how often the sum is a factor now
			if root {
				if times = e / 2; e%2 != 0 {
					m[atom] = e - 2*times
				}
			}
			q := polynomial{monomial(m): c}
			by := with
			if times < 0 {
				by, times = n.inverse(with), -times
			}
			for range times {
				q = n.times(q, by)
			}
			out.add(q, 1)
			if n.fail || len(out) > maxMonomials {
				n.fail = true
				return false
			}
		}
		p = out
	}
	return !n.fail && len(p) == 0
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

// truth is whether a condition holds, true if it is not known.
func (n *normalizer) truth(text string) bool {
	if def, ok := n.defs[text]; ok {
		return n.truth(def)
	}
	if text == "true" || text == "false" {
		return text == "true"
	}
	if !strings.HasPrefix(text, "(") {
		return n.decide(text, text)
	}
	w := words(text[1 : len(text)-1])
	all := func(want bool) bool {
		for _, x := range w[1:] {
			if n.truth(x) != want {
				return false
			}
		}
		return true
	}
	switch w[0] {
	case "not":
		return !n.truth(w[1])
	case "and":
		return all(true)
	case "or":
		return !all(false)
	case "ite":
		if n.truth(w[1]) {
			return n.truth(w[2])
		}
		return n.truth(w[3])
	case "<", ">", "<=", ">=":
		a, b := n.of(w[1]), n.of(w[2])
		if w[0] == ">" || w[0] == "<=" {
			a, b = b, a
		}
		return n.less(a.plus(b, -1), "(< "+map[bool]string{true: w[1] + " " + w[2], false: w[2] + " " + w[1]}[w[0] == "<" || w[0] == ">="]+")") != (w[0] == "<=" || w[0] == ">=")
	case "=":
		d := n.of(w[1]).plus(n.of(w[2]), -1)
		if c, ok := d.constant(); ok || n.vanishes(d) {
			return c == 0 || !ok
		}
		return n.decide("= "+d.text(), text)
	}
	return n.decide(text, text)
}

// less reports that a polynomial is below 0.
func (n *normalizer) less(d polynomial, text string) bool {
	if c, ok := d.constant(); ok {
		return c < 0
	}
	if n.vanishes(d) {
		return false
	}
	return n.decide("< "+d.text(), text)
}

func (n *normalizer) decide(key, text string) bool {
	v, ok := n.cases[key]
	if !ok {
		n.undecided = append(n.undecided, condition{key, text})
	}
	return v || !ok
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
	if w[0] == "ite" && n.cases != nil {
		if n.truth(w[1]) {
			return n.of(w[2])
		}
		return n.of(w[3])
	}
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
	if w[0] == "real.Tanh" && n.cases != nil {
		up, down := n.power(args[0]), n.power(polynomial{}.plus(args[0], -1))
		return n.times(up.plus(down, -1), n.inverse(up.plus(down, 1)))
	}
	if w[0] == "real.Exp" && n.cases != nil {
		return n.power(args[0])
	}
	return n.atom(w[0], args...)
}

// power is e to a polynomial: a power and its inverse have one atom.
func (n *normalizer) power(p polynomial) polynomial {
	if len(p) == 0 {
		return constantPolynomial(1)
	}
	if least := slices.Min(slices.Collect(maps.Keys(p))); p[least] < 0 {
		return n.inverse(n.atom("real.Exp", polynomial{}.plus(p, -1)))
	}
	return n.atom("real.Exp", p)
}

// atom is the value of a function.
func (n *normalizer) atom(function string, args ...polynomial) polynomial {
	if n.cases != nil {
		for _, c := range n.calls[function] {
			same := len(c.args) == len(args)
			for i := range args {
				same = same && n.vanishes(args[i].plus(c.args[i], -1))
			}
			if same {
				return atomPolynomial(c.name)
			}
		}
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
	full := function + "{" + strings.Join(name, ";") + "}"
	n.calls[function] = append(n.calls[function], call{args, full})
	if function == "real.Sqrt" {
		n.roots[full] = args[0]
	}
	return atomPolynomial(full)
}

// formulas compares the formulas of two terms on real numbers: by their normal forms, and, if these are polynomials in the variables, by how far
// they can be from each other for variables from -1 to 1.
func formulas(a, b *Term) (equal, near bool) {
	e := newEncoder(reals)
	x, y := e.term(a), e.term(b)
	if e.err != nil {
		return false, false
	}
	n := newNormalizer(e.defs)
	p, q := n.of(x), n.of(y)
	if n.fail {
		return false, false
	}
	if p.equal(q) {
		return true, true
	}
	return false, e.close(p, q, a.DType)
}

// close reports polynomials in the variables that are near each other for variables from -1 to 1.
func (e *encoder) close(p, q polynomial, d tensor.DType) bool {
	floats := map[string]bool{}
	for i, v := range e.vars {
		floats[fmt.Sprintf("x%d", i)] = v.DType.IsFloat()
	}
	sum := 0.0
	for k := range mergedKeys(p, q) {
		for v, power := range powers(k) {
			if !floats[v] || power < 0 {
				return false
			}
		}
		sum += math.Abs(p[k] - q[k])
	}
	return sum <= nearness(d)
}

// maxCases bounds the cases into which conditions take a comparison apart.
const maxCases = 64

// byCases compares the formulas of two terms in each case of the conditions that they choose by. Cases that cannot be are left out: the solver
// says which. Near each other are those that differ in cases alone that are none for variables from -1 to 1.
func (p *Prover) byCases(a, b *Term) (equal, near bool, err error) {
	e := newEncoder(reals)
	x, y := e.term(a), e.term(b)
	if e.err != nil || strings.Contains(e.out.String(), "to_int") { // of whole numbers the solver knows more
		return false, false, nil
	}
	equal, near = true, true
	count := 0
	var walk func(cases map[string]bool, held []string) (bool, error)
	walk = func(cases map[string]bool, held []string) (bool, error) {
		if count++; count > maxCases || !p.until.IsZero() && time.Now().After(p.until) {
			return false, nil
		}
		n := newNormalizer(e.defs)
		n.cases = cases
		l, r := n.of(x), n.of(y)
		if len(n.undecided) > 0 {
			c := n.undecided[0]
			for _, holds := range [...]bool{true, false} {
				text := c.text
				if !holds {
					text = app("not", text)
				}
				next := maps.Clone(cases)
				next[c.key] = holds
				if ok, err := walk(next, append(slices.Clip(held), text)); !ok {
					return false, err
				}
			}
			return true, nil
		}
		if !n.fail && n.vanishes(l.plus(r, -1)) {
			return true, nil
		}
		var asserted, bounded strings.Builder
		for _, c := range held {
			asserted.WriteString("(assert " + c + ")\n")
		}
		for i, v := range e.vars {
			if v.DType.IsFloat() {
				fmt.Fprintf(&bounded, "(assert (and (<= x%d 1.0) (>= x%d (- 1.0))))\n", i, i)
			}
		}
		answer, _, err := p.Solver.Ask(e.out.String()+asserted.String(), nil)
		if err != nil || answer == Unsat {
			return err == nil, err
		}
		equal = false
		if !n.fail && e.close(l, r, a.DType) {
			return true, nil
		}
		answer, _, err = p.Solver.Ask(e.out.String()+bounded.String()+asserted.String(), nil)
		near = near && answer == Unsat
		return err == nil && near, err
	}
	ok, err := walk(map[string]bool{}, nil)
	return ok && equal, ok && near, err
}

func mergedKeys(p, q polynomial) polynomial {
	out := maps.Clone(p)
	maps.Copy(out, q)
	return out
}
