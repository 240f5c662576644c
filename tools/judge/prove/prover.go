package prove

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

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
