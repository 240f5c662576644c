package prove

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

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
