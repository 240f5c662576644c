package prove

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Claim is that two functions with the same inputs have the same results.
type Claim struct {
	// Rule is what made the second of the first.
	Rule          string
	Before, After *ssa.Func
	// Dims are the sizes that symbols stand for.
	Dims map[string]int64
	// Rounds allows results that differ by rounding: the claim is about real numbers.
	Rounds bool
	// Assumes is what holds of the inputs besides, nil for nothing.
	Assumes *Assumption
	// Limit bounds the time for the claim; 0 means that nothing but the limits on sizes and on single questions does.
	Limit time.Duration
}

// Assumption is what a rule or step takes for granted of the inputs.
type Assumption struct {
	Text string
	// Holds reports that it holds of inputs.
	Holds func(inputs []*tensor.Tensor) bool
	// NotZero is the number of an input without zeros, 0 for none: this much the solver is told.
	NotZero int
}

// Outcome says what is known of a claim.
type Outcome int

// The outcomes. Open is a claim that the solver could not decide in its time, and which no input refutes that was tried;
// Inexpressible one with an operator or a size that has no meaning here.
const (
	Proved Outcome = iota
	Refuted
	Open
	Inexpressible
)

func (o Outcome) String() string {
	return [...]string{"proved", "refuted", "open", "not expressible"}[o]
}

// Verdict is the outcome of a claim, and how it was found.
type Verdict struct {
	Outcome Outcome
	// Theory names what the proof needs: the numbers of the terms, IEEE 754, or real numbers.
	Theory string
	// Why says what is open, or not expressible.
	Why string
	// Inputs refute the claim: the interpreter, given them, computes Want before and Got after.
	Inputs    map[string]*tensor.Tensor
	Want, Got *tensor.Tensor
	// Tried counts the random inputs on which the interpreter computed the same results.
	Tried int
}

// Prover proves claims. Pairs of terms that were compared once are not compared again.
type Prover struct {
	Solver  Solver
	seen    map[string]known
	notZero string    // variables whose names begin so are not 0
	given   []*Term   // conditions that hold wherever the claim has a meaning
	until   time.Time // when the time of the claim has passed; zero if it never does
}

// paired is what is known of two terms.
type paired struct {
	answer Answer
	theory theory
	near   bool
	why    string // the solver has no words for the terms
}

// New makes a prover.
func New() *Prover { return &Prover{seen: map[string]known{}} }

// Close ends the solver.
func (p *Prover) Close() { p.Solver.Close() }

// empty is the theory of a claim about results without elements.
const empty = "no elements"

// Prove proves or refutes a claim.
func (p *Prover) Prove(c Claim) (Verdict, error) { return p.prove(c, tries) }

// tries is how many inputs are tried against a claim that is not proved.
const tries = 24

func (p *Prover) prove(c Claim, tries uint64) (Verdict, error) {
	ts := newTerms()
	e := &evaluator{terms: ts, dims: c.Dims, meant: true}
	if p.until = (time.Time{}); c.Limit > 0 {
		p.until = time.Now().Add(c.Limit)
		e.until = p.until
	}
	left := int64(maxTerms)
	p.notZero = ""
	if c.Assumes != nil && c.Assumes.NotZero > 0 {
		p.notZero = fmt.Sprintf("in%d.", c.Assumes.NotZero)
	}
	args := make([]value, len(c.Before.Body.Params))
	for i, in := range c.Before.Body.Params {
		t := in.Tensor()
		if t == nil || !t.Ranked || t.DType == tensor.Undefined {
			return Verdict{Outcome: Inexpressible, Why: "an input is no tensor of known rank"}, nil
		}
		shape, err := sizes(t, c.Dims)
		if err != nil {
			return Verdict{Outcome: Inexpressible, Why: err.Error()}, nil
		}
		if !fits(shape, left) {
			return p.search(c, Verdict{Outcome: Inexpressible, Why: "the inputs have too many elements"}, nil, tries), nil
		}
		left -= count(shape)
		args[i].t = ts.variables(fmt.Sprint("in", i), t.DType, shape)
	}
	want, err := e.function(c.Before, args)
	var got []value
	e.meant = false
	if err == nil {
		got, err = e.function(c.After, args)
	}
	p.given = e.given
	if none := (inexpressible{}); errors.As(err, &none) {
		return p.search(c, Verdict{Outcome: Inexpressible, Why: none.why}, nil, tries), nil
	} else if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Outcome: Proved, Theory: empty}
	for i := range want {
		a, b := want[i].t, got[i].t
		if a == nil || b == nil {
			return Verdict{Outcome: Inexpressible, Why: "a result is no tensor"}, nil
		}
		if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
			return p.search(c, Verdict{Outcome: Open, Why: fmt.Sprintf("%v%v becomes %v%v", a.DType, a.Shape, b.DType, b.Shape)}, nil, tries), nil
		}
		if len(a.Elems) > 0 && v.Theory == empty {
			v.Theory = "identical terms"
		}
		for k := range a.Elems {
			if a.Elems[k] == b.Elems[k] {
				continue
			}
			if e.late() {
				return p.search(c, Verdict{Outcome: Open, Why: "the time has passed"}, nil, tries), nil
			}
			if k := without(a.Elems[k], b.Elems[k]); k != "" {
				kind, _, _ := strings.Cut(k, "(")
				return p.search(c, Verdict{Outcome: Inexpressible, Why: kind + " has no expression"}, nil, tries), nil
			}
			r, model, err := p.pair(ts, a.Elems[k], b.Elems[k], c.Rounds)
			if err != nil {
				return Verdict{}, err
			}
			if r.answer == Unsat {
				name := r.theory.String()
				if r.near {
					name += ", up to the rounding of constants"
				}
				if len(name) > len(v.Theory) || v.Theory == "identical terms" {
					v.Theory = name
				}
				continue
			}
			if r.why != "" {
				return p.search(c, Verdict{Outcome: Inexpressible, Why: r.why}, nil, tries), nil
			}
			why := fmt.Sprintf("element %d of type %v: %v becomes %v%s", k, a.DType, a.Elems[k], b.Elems[k], ofTypes(a.Elems[k]))
			return p.search(c, Verdict{Outcome: Open, Why: why, Theory: string(r.answer)}, model, tries), nil
		}
	}
	return v, nil
}

// without names an operator of which nothing is known, and which only one of two terms has.
func without(a, b *Term) string {
	opaque := func(t *Term) map[string]bool {
		out, seen := map[string]bool{}, map[*Term]bool{}
		var walk func(t *Term)
		walk = func(t *Term) {
			if seen[t] {
				return
			}
			seen[t] = true
			if shapes, _, ok := strings.Cut(t.Func, ")"); ok {
				out[shapes] = true
			}
			for _, x := range t.Args {
				walk(x)
			}
		}
		walk(t)
		return out
	}
	x, y := opaque(a), opaque(b)
	for _, k := range slices.Sorted(maps.Keys(x)) {
		if !y[k] {
			return k
		}
	}
	for _, k := range slices.Sorted(maps.Keys(y)) {
		if !x[k] {
			return k
		}
	}
	return ""
}

func sizes(t *ssa.TensorType, dims map[string]int64) ([]int64, error) {
	shape := []int64{}
	for _, d := range t.Dims {
		n, ok := d.Eval(dims)
		if !ok || n < 0 {
			return nil, fmt.Errorf("the size %v is not known", d)
		}
		shape = append(shape, n)
	}
	return shape, nil
}

// key spells two terms with variables numbered in the order in which they occur, so that pairs that differ in the names of
// variables have one key.
func key(ts ...*Term) string {
	var out strings.Builder
	number := map[*Term]int{}
	var write func(t *Term)
	write = func(t *Term) {
		if n, ok := number[t]; ok {
			fmt.Fprintf(&out, "#%d ", n)
			return
		}
		for _, x := range t.Args {
			write(x)
		}
		number[t] = len(number)
		switch {
		case t.Value != nil:
			fmt.Fprintf(&out, "=%d:%s ", t.DType, text(t.Value))
		case t.Name != "":
			fmt.Fprintf(&out, "?%d ", t.DType)
		default:
			fmt.Fprintf(&out, "%s:%d", t.Func, t.DType)
			for _, at := range t.Attrs {
				out.WriteString("," + at.Name + "=" + at.Value.String())
			}
			out.WriteString("(")
			for _, x := range t.Args {
				fmt.Fprintf(&out, "#%d ", number[x])
			}
			out.WriteString(") ")
		}
	}
	for _, t := range ts {
		write(t)
	}
	for _, t := range ts {
		fmt.Fprintf(&out, "| %d", number[t])
	}
	return out.String()
}

// about are the conditions that hold of the variables of two terms, without those that say something of other variables.
func (p *Prover) about(a, b *Term) []*Term {
	if len(p.given) == 0 {
		return nil
	}
	in := map[*Term]bool{}
	for _, v := range variablesOf(a, b) {
		in[v] = true
	}
	var out []*Term
	for _, c := range p.given {
		if !slices.Contains(out, c) && !slices.ContainsFunc(variablesOf(c), func(v *Term) bool { return !in[v] }) {
			out = append(out, c)
		}
	}
	return out
}

// pair compares two terms. Of two results of one operator the operands are compared first: if they are equal, so are the results,
// and the solver is asked about the part that differs alone. The model says for which variables the terms differ.
func (p *Prover) pair(ts *terms, a, b *Term, rounds bool) (paired, map[string]*tensor.Tensor, error) {
	if a == b {
		return paired{answer: Unsat}, nil, nil
	}
	k := fmt.Sprint(rounds, p.notZero) + key(append([]*Term{a, b}, p.about(a, b)...)...)
	if p.notZero != "" {
		for _, v := range variablesOf(a, b) {
			k += fmt.Sprint(strings.HasPrefix(v.Name, p.notZero))
		}
	}
	if r, ok := p.seen[k]; ok {
		return r.paired, rename(r.model, a, b), nil
	}
	if a.Func != "" && a.Func == b.Func && len(a.Args) == len(b.Args) && a.DType == b.DType && slices.EqualFunc(a.Attrs, b.Attrs, func(x, y ssa.Attr) bool { return x.Name == y.Name && x.Value.Equal(y.Value) }) {
		all := paired{answer: Unsat}
		xs, ys := a.Args, b.Args
		if commutative[a.Func] || a.Func == "Dot" || a.Func == "times" || a.Func == "of ReduceSum" {
			xs, ys = others(xs, ys), others(ys, xs)
		}
		if len(xs) != len(ys) {
			all.answer = Unknown
		}
		for i := range min(len(xs), len(ys)) {
			if xs[i].DType != ys[i].DType {
				all.answer = Unknown
				break
			}
			r, _, err := p.pair(ts, xs[i], ys[i], rounds)
			if err != nil {
				return r, nil, err
			}
			if r.answer != Unsat {
				all.answer = Unknown
				break
			}
			all.theory, all.near = max(all.theory, r.theory), all.near || r.near
		}
		if all.answer == Unsat && !all.near {
			p.seen[k] = known{all, nil}
			return all, nil, nil
		}
	}
	r, model, err := p.whole(ts, a, b, rounds)
	if err == nil {
		p.seen[k] = known{r, numbered(model, a, b)}
	}
	return r, model, err
}

// others are the terms of a list without those that another has as well.
func others(xs, ys []*Term) []*Term {
	ys = slices.Clone(ys)
	var out []*Term
	for _, x := range xs {
		if i := slices.Index(ys, x); i >= 0 {
			ys = slices.Delete(ys, i, i+1)
		} else {
			out = append(out, x)
		}
	}
	return out
}

// known is what was found of two terms; the model is by the numbers of the variables.
type known struct {
	paired
	model []*tensor.Tensor
}

// variablesOf lists the variables of terms, in the order in which they occur.
func variablesOf(ts ...*Term) []*Term {
	var out []*Term
	seen := map[*Term]bool{}
	var walk func(t *Term)
	walk = func(t *Term) {
		if seen[t] {
			return
		}
		seen[t] = true
		for _, x := range t.Args {
			walk(x)
		}
		if t.Name != "" {
			out = append(out, t)
		}
	}
	for _, t := range ts {
		walk(t)
	}
	return out
}

func numbered(model map[string]*tensor.Tensor, a, b *Term) []*tensor.Tensor {
	if model == nil {
		return nil
	}
	var out []*tensor.Tensor
	for _, v := range variablesOf(a, b) {
		out = append(out, model[v.Name])
	}
	return out
}

func rename(model []*tensor.Tensor, a, b *Term) map[string]*tensor.Tensor {
	if model == nil {
		return nil
	}
	out := map[string]*tensor.Tensor{}
	for i, v := range variablesOf(a, b) {
		if i < len(model) && model[i] != nil {
			out[v.Name] = model[i]
		}
	}
	return out
}

// whole compares two terms by all numbers that they may have where these are few, else in one theory after the other.
func (p *Prover) whole(ts *terms, a, b *Term, rounds bool) (paired, map[string]*tensor.Tensor, error) {
	out := paired{answer: Unknown}
	if a.DType != b.DType {
		return out, nil, nil
	}
	if !p.until.IsZero() && time.Now().After(p.until) {
		out.why = "the time has passed"
		return out, nil, nil
	}
	given := p.about(a, b)
	if equal, model, ok := ts.exhaust(a, b, p.notZero, different); ok {
		if equal {
			return paired{answer: Unsat, theory: every}, nil, nil
		}
		if !rounds && len(given) == 0 {
			return paired{answer: Sat, theory: every}, model, nil
		}
	}
	done := map[*Term]*Term{}
	if a, b = ts.defined(a, done), ts.defined(b, done); a == b {
		return paired{answer: Unsat}, nil, nil
	}
	theories := []theory{moved, ieee}
	if rounds {
		theories = []theory{reals, moved} // equal floats were asked for before
	}
	if !a.DType.IsFloat() && !floats(a, map[*Term]bool{}) && !floats(b, map[*Term]bool{}) {
		theories = theories[:1]
	}
	if rounds && a.DType.IsFloat() {
		if equal, near := formulas(a, b); equal || near {
			return paired{answer: Unsat, theory: reals, near: !equal}, nil, nil
		}
	}
	if rounds && a.DType.IsFloat() {
		equal, near, err := p.byCases(a, b)
		if err != nil {
			return out, nil, err
		}
		if equal || near || nearby(a, b) {
			return paired{answer: Unsat, theory: reals, near: !equal}, nil, nil
		}
	}
	if x, y, ok := ts.apart(a, b); ok { // what both have may be any number
		for _, t := range theories {
			answer, _, err := p.ask(x, y, nil, t, false)
			if none := (inexpressible{}); errors.As(err, &none) {
				continue
			}
			if err != nil {
				return out, nil, err
			}
			if answer == Unsat {
				return paired{answer: Unsat, theory: t}, nil, nil
			}
		}
	}
	var model map[string]*tensor.Tensor
	for _, t := range theories {
		for _, near := range []bool{false, true} {
			if near && t != reals {
				continue
			}
			answer, m, err := p.ask(a, b, given, t, near)
			if none := (inexpressible{}); errors.As(err, &none) {
				out.why = none.why
				continue
			}
			if err != nil {
				return out, nil, err
			}
			if answer == Unsat {
				return paired{answer: Unsat, theory: t, near: near}, nil, nil
			}
			if answer == Sat {
				out.answer, out.theory, model = answer, t, m
			}
		}
	}
	return out, model, nil
}

// apart replaces the greatest terms that are in both of two terms by variables. It is not ok if there are none but variables and constants.
func (ts *terms) apart(a, b *Term) (x, y *Term, ok bool) {
	in := map[*Term]bool{}
	var mark func(t *Term)
	mark = func(t *Term) {
		if !in[t] {
			in[t] = true
			for _, u := range t.Args {
				mark(u)
			}
		}
	}
	mark(a)
	value := map[*Term]*Term{}
	seen := map[*Term]bool{}
	var find func(t *Term)
	find = func(t *Term) {
		if seen[t] {
			return
		}
		seen[t] = true
		if in[t] && t.Func != "" {
			value[t] = ts.variable(fmt.Sprintf("any.%d", t.id), t.DType)
			return
		}
		for _, u := range t.Args {
			find(u)
		}
	}
	find(b)
	if len(value) == 0 {
		return nil, nil, false
	}
	for _, v := range variablesOf(a, b) {
		value[v] = v
	}
	return ts.compute(a, value), ts.compute(b, value), true
}

// exhaustible is how many bits of variables are tried in all combinations.
const exhaustible = 16

// exhaust compares two terms of variables that have few values, by the kernels alone. It is not ok where there are too many, or where
// a term has no kernel.
func (ts *terms) exhaust(a, b *Term, notZero string, equal func(x, y *tensor.Tensor) int) (all bool, model map[string]*tensor.Tensor, ok bool) {
	vars := variablesOf(a, b)
	bits := 0
	for _, v := range vars {
		switch {
		case v.DType == tensor.Bool:
			bits++
		case v.DType.Size() == 0:
			return false, nil, false
		default:
			bits += 8 * v.DType.Size()
		}
	}
	if bits > exhaustible {
		return false, nil, false
	}
	value := map[*Term]*tensor.Tensor{}
	data := make([][]byte, len(vars))
	element := make([][8]byte, len(vars))
	for n := range uint64(1) << bits {
		rest, wanted := n, true
		for i, v := range vars {
			width := 8 * v.DType.Size()
			if v.DType == tensor.Bool {
				width = 1
			}
			part := rest & (1<<width - 1)
			rest >>= width
			wanted = wanted && !(part == 0 && notZero != "" && strings.HasPrefix(v.Name, notZero) && v.DType.IsInt())
			binary.LittleEndian.PutUint64(element[i][:], part)
		}
		if !wanted {
			continue
		}
		for i, v := range vars {
			data[i] = append(data[i], element[i][:v.DType.Size()]...)
		}
	}
	for i, v := range vars {
		value[v] = tensor.New(v.DType, []int64{int64(len(data[i]) / v.DType.Size())}, data[i])
	}
	x, okx := onAll(a, value)
	y, oky := onAll(b, value)
	if !okx || !oky || x.DType != y.DType {
		return false, nil, false
	}
	n := int64(1)
	if len(vars) > 0 {
		n = value[vars[0]].Shape[0]
	}
	if x, okx = spread(x, n); !okx {
		return false, nil, false
	}
	if y, oky = spread(y, n); !oky {
		return false, nil, false
	}
	if at := equal(x, y); at >= 0 {
		model = map[string]*tensor.Tensor{}
		for i, v := range vars {
			size := v.DType.Size()
			model[v.Name] = tensor.New(v.DType, []int64{}, slices.Clone(data[i][at*size:(at+1)*size]))
		}
		return false, model, true
	}
	return true, nil, true
}

// spread repeats a single element.
func spread(t *tensor.Tensor, n int64) (*tensor.Tensor, bool) {
	if t.NumElements() == n {
		return t, true
	}
	out, err := kernel.Eval("onnx::Expand", nil, []*tensor.Tensor{t, tensor.Ints(n)}, 1)
	return first(out), err == nil
}

func first(ts []*tensor.Tensor) *tensor.Tensor {
	if len(ts) == 0 {
		return nil
	}
	return ts[0]
}

// onAll runs the kernels of a term on all values of its variables at once. It is not ok where an operator has no kernel.
func onAll(t *Term, value map[*Term]*tensor.Tensor) (*tensor.Tensor, bool) {
	if v := value[t]; v != nil {
		return v, true
	}
	if t.Value != nil {
		value[t] = t.Value.Reshape([]int64{1})
		return value[t], true
	}
	in := make([]*tensor.Tensor, len(t.Args))
	for i, a := range t.Args {
		var ok bool
		if in[i], ok = onAll(a, value); !ok {
			return nil, false
		}
	}
	kind, attrs := "onnx::"+ssa.Kind(t.Func), t.Attrs
	if name, ok := foldOf(t.Func, t.DType); ok && len(in) > 0 { // along a new axis
		n := int64(1)
		for _, x := range in {
			n = max(n, x.Shape[0])
		}
		for i, x := range in {
			var ok bool
			if in[i], ok = spread(x, n); !ok {
				return nil, false
			}
			in[i] = in[i].Reshape([]int64{1, n})
		}
		all, err := kernel.Eval("onnx::Concat", []ssa.Attr{{Name: "axis", Value: ssa.Int(0)}}, in, 1)
		if err != nil {
			return nil, false
		}
		kind, in, attrs = "onnx::"+ssa.Kind(name), []*tensor.Tensor{all[0], tensor.Ints(0)}, []ssa.Attr{{Name: "keepdims", Value: ssa.Int(0)}}
	}
	if !kernel.Supported(kind) {
		return nil, false
	}
	out, err := kernel.Eval(kind, attrs, in, 1)
	if err != nil || len(out) != 1 || out[0].DType != t.DType {
		return nil, false
	}
	value[t] = out[0]
	return out[0], true
}

// different is the place of the first elements that differ bit by bit, where all NaN are one; -1 if there is none.
func different(x, y *tensor.Tensor) int {
	if !x.DType.IsFloat() {
		a, b, size := x.Clone().Bytes(), y.Clone().Bytes(), x.DType.Size()
		for i := range len(a) / size {
			if string(a[i*size:(i+1)*size]) != string(b[i*size:(i+1)*size]) {
				return i
			}
		}
		return -1
	}
	a, b := x.Float64s(), y.Float64s()
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) && !(a[i] != a[i] && b[i] != b[i]) {
			return i
		}
	}
	return -1
}

// compute is a term with numbers in the place of its variables.
func (ts *terms) compute(t *Term, value map[*Term]*Term) *Term {
	if v := value[t]; v != nil {
		return v
	}
	out := t
	if t.Value != nil {
		out = ts.constant(t.Value)
	} else {
		args := make([]*Term, len(t.Args))
		for i, a := range t.Args {
			args[i] = ts.compute(a, value)
		}
		out = ts.apply(t.Func, t.DType, t.Attrs, args...)
	}
	value[t] = out
	return out
}

// floats reports a term with floats in it.
func floats(t *Term, seen map[*Term]bool) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	return t.DType.IsFloat() || slices.ContainsFunc(t.Args, func(a *Term) bool { return floats(a, seen) })
}

// nearness is how far results may be from each other, for operands up to 1, where constants were computed when the rule was applied.
func nearness(d tensor.DType) float64 {
	if d == tensor.Float16 || d == tensor.BFloat16 {
		return 0.5
	}
	return 1e-3
}

func (p *Prover) ask(a, b *Term, given []*Term, t theory, near bool) (Answer, map[string]*tensor.Tensor, error) {
	e := newEncoder(t)
	x, y := e.term(a), e.term(b)
	differ := app("not", app("=", x, y))
	if near {
		if !a.DType.IsFloat() {
			return Unknown, nil, nil
		}
		differ = fmt.Sprintf("(or (> (- %s %s) %s) (> (- %s %s) %s))", x, y, e.real(nearness(a.DType)), y, x, e.real(nearness(a.DType)))
		for i, v := range e.vars {
			if v.DType.IsFloat() {
				fmt.Fprintf(&e.out, "(assert (and (<= x%d 1.0) (>= x%d (- 1.0))))\n", i, i)
			}
		}
	}
	for i, v := range e.vars {
		if p.notZero != "" && strings.HasPrefix(v.Name, p.notZero) && v.DType.IsInt() {
			fmt.Fprintf(&e.out, "(assert (not (= x%d %s)))\n", i, bitVector(0, v.DType.Bits()))
		}
	}
	for _, c := range given {
		n := e.term(c)
		e.out.WriteString("(assert " + n + ")\n")
	}
	if e.err != nil {
		return Unknown, nil, e.err
	}
	answer, values, err := p.Solver.Ask(e.out.String()+"(assert "+differ+")", e.wanted())
	if err != nil || answer != Sat {
		return answer, nil, err
	}
	model := map[string]*tensor.Tensor{}
	for i, v := range e.vars {
		if i < len(values) {
			if x, ok := element(values[i], v.DType); ok {
				model[v.Name] = x
			}
		}
	}
	return answer, model, nil
}

// maxSearched bounds the elements of an input that is drawn.
const maxSearched = 1 << 22

// search looks for inputs for which the interpreter computes other results: those of the model, then some with odd numbers
// among them. An open claim, or one that is not expressible, stays that if it finds none.
func (p *Prover) search(c Claim, v Verdict, model map[string]*tensor.Tensor, most uint64) Verdict {
	var until time.Time
	if c.Limit > 0 {
		until = time.Now().Add(c.Limit)
	}
next:
	for seed := range most {
		if seed > 0 && !until.IsZero() && time.Now().After(until) {
			break
		}
		r := rand.New(rand.NewPCG(seed, 7))
		args := make([]interp.Value, len(c.Before.Body.Params))
		inputs := map[string]*tensor.Tensor{}
		for i, in := range c.Before.Body.Params {
			shape, err := sizes(in.Tensor(), c.Dims)
			if err != nil || !fits(shape, maxSearched) || !drawable(in.DType()) {
				return v
			}
			odd := seed > tries/2 && !c.Rounds
			t := randomTensor(r, in.Tensor().DType, shape, [...]float64{3, 1, 1e-3, 100}[seed%4], odd)
			if seed == 0 || seed == 1 {
				t = fromModel(t, model, fmt.Sprint("in", i), seed == 0)
			}
			args[i], inputs[in.Name] = interp.Of(t), t
		}
		if c.Assumes != nil {
			given := make([]*tensor.Tensor, len(args))
			for i, a := range args {
				given[i] = a.Tensor
			}
			if !c.Assumes.Holds(given) {
				continue
			}
		}
		want, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.Before, args)
		if err != nil {
			continue
		}
		got, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.After, args)
		if err != nil {
			v.Outcome, v.Inputs, v.Why = Refuted, inputs, fmt.Sprintf("the result cannot be computed: %v", err)
			return v
		}
		for i := range want {
			tolerance := 0.0
			if c.Rounds && want[i].Tensor != nil {
				if tolerance = 1e-3; want[i].Tensor.DType == tensor.Float16 || want[i].Tensor.DType == tensor.BFloat16 {
					tolerance = 2e-2
				}
			}
			if want[i].Tensor != nil && got[i].Tensor != nil && !same(want[i].Tensor, got[i].Tensor, tolerance) {
				if c.Rounds && overflows(want[i].Tensor) { // where infinities and NaN come out is not what such a claim is about
					continue next
				}
				v.Outcome, v.Inputs, v.Want, v.Got = Refuted, inputs, want[i].Tensor, got[i].Tensor
				return v
			}
		}
		v.Tried++
	}
	return v
}

// odd looks for inputs with NaN, infinities and zeros of both signs among them, for which results of a claim that rounds are of other classes:
// NaN is NaN, an infinity is that infinity. What is proved on real numbers says nothing of these.
func (p *Prover) odd(c Claim) (refuted Verdict, ok bool) {
	for seed := range uint64(oddTries) {
		r := rand.New(rand.NewPCG(seed, 11))
		args := make([]interp.Value, len(c.Before.Body.Params))
		v := Verdict{Outcome: Refuted, Inputs: map[string]*tensor.Tensor{}}
		given := make([]*tensor.Tensor, len(args))
		for i, in := range c.Before.Body.Params {
			shape, err := sizes(in.Tensor(), c.Dims)
			if err != nil || !fits(shape, 1<<12) || !drawable(in.DType()) {
				return v, false
			}
			t := randomTensor(r, in.DType(), shape, 1, false)
			if in.DType().IsFloat() {
				f := t.Float64s()
				rare := [...]float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1)}
				for k := range f {
					if r.IntN(int(2+seed%4)) == 0 {
						f[k] = rare[r.IntN(len(rare))]
					}
				}
				t = tensor.FromFloats(t.DType, t.Shape, f)
			}
			given[i], args[i], v.Inputs[in.Name] = t, interp.Of(t), t
		}
		if c.Assumes != nil && !c.Assumes.Holds(given) {
			continue
		}
		want, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.Before, args)
		if err != nil {
			continue
		}
		got, err := (&interp.Interpreter{MaxOps: 1 << 14}).RunFunc(c.After, args)
		if err != nil {
			continue
		}
		for i := range want {
			if v.Want, v.Got = want[i].Tensor, got[i].Tensor; v.Want != nil && v.Got != nil && !sameClasses(v.Want, v.Got) {
				return v, true
			}
		}
	}
	return Verdict{}, false
}

// oddTries is how many inputs with NaN and infinities a claim that rounds is tried on.
const oddTries = 16

// sameClasses compares which elements are NaN, and which are infinities.
func sameClasses(a, b *tensor.Tensor) bool {
	if !a.DType.IsFloat() || a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return true
	}
	class := func(f float64) float64 {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return f
		}
		return 0
	}
	x, y := a.Float64s(), b.Float64s()
	for i := range x {
		if p, q := class(x[i]), class(y[i]); p != q && (p == p || q == q) {
			return false
		}
	}
	return true
}

// fromModel puts the numbers of a model into a tensor; other elements are those of t, or 0.
func fromModel(t *tensor.Tensor, model map[string]*tensor.Tensor, name string, zero bool) *tensor.Tensor {
	if t.DType.Size() == 0 {
		return t
	}
	b := slices.Clone(t.Clone().Bytes())
	n := t.DType.Size()
	if zero {
		clear(b)
	}
	for i := range int(t.NumElements()) {
		if x := model[fmt.Sprintf("%s.%d", name, i)]; x != nil {
			copy(b[i*n:(i+1)*n], x.Clone().Bytes())
		}
	}
	return tensor.New(t.DType, t.Shape, b)
}

// overflows reports a float that is no number.
func overflows(t *tensor.Tensor) bool {
	return t.DType.IsFloat() && slices.ContainsFunc(t.Float64s(), func(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) })
}

// drawable reports types of which elements can be drawn.
func drawable(d tensor.DType) bool {
	return d == tensor.String || d.HoldsNumbers() && !d.IsComplex() && d.Size() > 0
}

func randomTensor(r *rand.Rand, d tensor.DType, shape []int64, scale float64, odd bool) *tensor.Tensor {
	n := count(shape)
	if d.IsFloat() {
		rare := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 0.5, 1e30, -1e30, 1e-30}
		v := make([]float64, n)
		for i := range v {
			if v[i] = r.NormFloat64() * scale; odd && r.IntN(3) == 0 {
				v[i] = rare[r.IntN(len(rare))]
			}
		}
		return tensor.FromFloats(d, shape, v)
	}
	if d == tensor.String {
		s := make([]string, n)
		for i := range s {
			s[i] = []string{"", "a", "b"}[r.IntN(3)]
		}
		return tensor.Strings(shape, s)
	}
	v := make([]int64, n)
	for i := range v {
		switch {
		case d == tensor.Bool:
			v[i] = int64(r.IntN(2))
		case odd:
			v[i] = int64(r.Uint64())
		default:
			v[i] = int64(r.IntN(7)) - 3
		}
	}
	return tensor.FromInts(d, shape, v)
}

// same compares results bit by bit, or within a tolerance. NaN is NaN.
func same(a, b *tensor.Tensor, tolerance float64) bool {
	if a.DType != b.DType || !slices.Equal(a.Shape, b.Shape) {
		return false
	}
	if a.DType == tensor.String {
		return slices.Equal(a.StringData(), b.StringData())
	}
	if !a.DType.IsFloat() {
		return string(a.Clone().Bytes()) == string(b.Clone().Bytes())
	}
	x, y := a.Float64s(), b.Float64s()
	scale := 1.0 // what cancels leaves the rounding of what was added
	for _, v := range x {
		if a := math.Abs(v); a < math.Inf(1) {
			scale = max(scale, a)
		}
	}
	for i := range x {
		equal := math.Float64bits(x[i]) == math.Float64bits(y[i]) || x[i] != x[i] && y[i] != y[i]
		if !equal && !(tolerance > 0 && math.Abs(x[i]-y[i]) <= tolerance*scale) { // 0.0 is not -0.0
			return false
		}
	}
	return true
}

// Counterexample spells the inputs that refute a claim, and what comes of them.
func (v Verdict) Counterexample() string {
	if v.Inputs == nil {
		return v.Why
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(v.Inputs)) {
		out = append(out, fmt.Sprintf("%%%s = %s", name, spell(v.Inputs[name])))
	}
	text := strings.Join(out, ", ")
	if v.Want == nil {
		return text + ": " + v.Why
	}
	return fmt.Sprintf("%s: %s becomes %s", text, spell(v.Want), spell(v.Got))
}

// spell writes a tensor with all elements.
func spell(t *tensor.Tensor) string {
	s := fmt.Sprintf("%s%v ", t.DType.Spec(), t.Shape)
	switch {
	case t.DType == tensor.String:
		return s + fmt.Sprintf("%q", t.StringData())
	case t.DType.IsFloat():
		return s + fmt.Sprint(t.Float64s())
	}
	return s + fmt.Sprint(t.Int64s())
}

// ofTypes tells the types of the variables of a term of conversions.
func ofTypes(t *Term) string {
	if t.Func != "Cast" {
		return ""
	}
	out := ""
	for t.Func == "Cast" {
		out += fmt.Sprintf(" of %v", t.Args[0].DType)
		t = t.Args[0]
	}
	return "," + out
}
