package prove

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// Result is what is known of a rule: of all its claims together.
type Result struct {
	Rule   string
	Rounds bool // a rule that states that it rounds elsewhere
	// Claims counts the claims by outcome; Theories those that were proved, by what the proof needs.
	Claims   map[Outcome]int
	Theories map[string]int
	// Whys are the reasons of claims that are not proved, with the number of claims.
	Whys map[string]int
	// Refuted has the counterexamples, the first few.
	Refuted []Counterexample
	// Assumes is what the rule takes for granted, and Without a counterexample where it does not hold.
	Assumes, Without string
	// Needed is a counterexample to the rule without what it states: the results differ in rounding.
	Needed string
	Ranks  map[int]bool
	Time   time.Duration
}

// Counterexample is a claim that is refuted.
type Counterexample struct {
	Claim   Claim
	Verdict Verdict
}

// Outcome is that of the rule: refuted or open by one claim, proved if all claims are that can be expressed and there are some.
func (r *Result) Outcome() Outcome {
	switch {
	case r.Claims[Refuted] > 0:
		return Refuted
	case r.Claims[Open] > 0:
		return Open
	case r.Claims[Proved] > 0:
		return Proved
	}
	return Inexpressible
}

// Session proves the claims of many rules.
type Session struct {
	*Prover
	Results map[string]*Result
	// Variants is how many changed copies of each graph the rules are tried on.
	Variants int
	// Only, if not nil, says which rules are proved.
	Only func(rule string) bool

	// Progress, if not nil, is told what was finished.
	Progress func(what string)

	// PerStep, if it is not 0, is the time after which no further claim on a step between opsets is made.
	PerStep time.Duration
	// Until, if it is not zero, is when no further claim is begun; Late counts those that were left out.
	Until time.Time
	Late  int

	rounds map[string]bool
	done   map[uint64]bool
	// Kept are proved steps, of which wrong variants are made.
	Kept []Claim
}

// NewSession makes a session for rules.
func NewSession(rules []rewrite.Rule) *Session {
	s := &Session{Prover: New(), Results: map[string]*Result{}, Variants: 24, rounds: map[string]bool{}, done: map[uint64]bool{}}
	for _, r := range rules {
		s.result(r.Name).Rounds = r.Rounds
		s.rounds[r.Name] = r.Rounds
	}
	return s
}

func (s *Session) result(rule string) *Result {
	r := s.Results[rule]
	if r == nil {
		r = &Result{Rule: rule, Claims: map[Outcome]int{}, Theories: map[string]int{}, Whys: map[string]int{}, Ranks: map[int]bool{}}
		s.Results[rule] = r
	}
	return r
}

// Simplify proves the rules of the pass simplify on the graphs of a folder of text tests and changed copies of them, and the
// rules that are patterns on all small instances of the pattern.
func Simplify(lit string) (*Session, error) {
	s := NewSession(simplify.Rules())
	return s, s.Simplify(lit)
}

// teller makes a function that tells what was finished.
func (s *Session) teller() func(what string) {
	return func(what string) {
		if s.Progress != nil {
			s.Progress(fmt.Sprintf("%s: %d questions, %.0f s in the solver", what, s.Solver.Questions, s.Solver.Spent.Seconds()))
		}
	}
}

// runLine is where a text test says which passes it runs.
var runLine = regexp.MustCompile(`(?m)^# RUN: .*--passes='?([^' ]+)`)

// Simplify is the function of that name, for a session that exists.
func (s *Session) Simplify(lit string) error {
	tell := s.teller()
	for _, rule := range simplify.Rules() {
		if rule.From != "" && (s.Only == nil || s.Only(rule.Name)) {
			for f := range instances(rule.From) {
				if err := s.graph(f, "simplify"); err != nil {
					return err
				}
			}
			tell(rule.Name)
		}
	}
	return s.texts(lit, "simplify")
}

// Fusion proves the rules of the pass ort-fusion, on the graphs of its text tests.
func (s *Session) Fusion(lit string) error { return s.texts(lit, "ort-fusion") }

// texts proves the rules of a pass on the graphs of its text tests.
func (s *Session) texts(lit, pass string) error {
	tell := s.teller()
	found := false
	err := eachText(filepath.Join(lit, "passes", pass), func(m *ssa.Module, pipelines []string) error {
		found = true
		for _, pipeline := range pipelines {
			for _, f := range m.Funcs {
				if err := s.Graphs(f, pipeline); err != nil {
					return err
				}
			}
		}
		tell(fmt.Sprintf("%s, %d graphs", pass, len(m.Funcs)))
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s has no tests of the pass %s", lit, pass)
	}
	return err
}

// Graphs proves what a pipeline does to a function, to its parts that end in one of its operators, and to changed copies.
func (s *Session) Graphs(f *ssa.Func, pipeline string) error {
	if err := s.graph(f, pipeline); err != nil {
		return err
	}
	h := fnv.New64a()
	h.Write([]byte(f.String()))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	parts := []*ssa.Func{f}
	for o := range f.Body.Ops() {
		if o.Kind != "onnx::Constant" && len(o.Results) == 1 && o.Result(0).Tensor() != nil {
			parts = append(parts, upTo(f, o))
		}
	}
	for _, g := range parts[1:] {
		if err := s.graph(g, pipeline); err != nil {
			return err
		}
	}
	for i := range s.Variants {
		g := vary(parts[i%len(parts)], r)
		if g == nil {
			continue
		}
		if err := s.graph(g, pipeline); err != nil {
			return err
		}
	}
	return nil
}

// upTo is the function that returns the result of an operator of f and nothing else.
func upTo(f *ssa.Func, o *ssa.Op) *ssa.Func {
	at := 0
	for p := range f.Body.Ops() {
		if p == o {
			break
		}
		at++
	}
	g := clone(f)
	for p := range g.Body.Ops() {
		if at == 0 {
			g.Body.SetReturns(p.Result(0))
			break
		}
		at--
	}
	ssa.EraseUnused(g.Body, func(o *ssa.Op) bool { return true })
	return g
}

// graph proves each application of a rule in a graph, for the sizes that its symbols are given.
func (s *Session) graph(f *ssa.Func, pipeline string) error {
	if s.late() {
		s.Late++
		return nil
	}
	all, err := steps(f, pipeline)
	if err != nil {
		return nil // no graph that the pipeline takes
	}
	h := fnv.New64a()
	h.Write([]byte(f.String()))
	r := rand.New(rand.NewPCG(h.Sum64(), 2))
	for _, step := range all {
		if s.Only != nil && !s.Only(step.Rule) {
			continue
		}
		for _, dims := range bindings(symbols(f), r) {
			if err := s.claim(Claim{Rule: step.Rule, Before: step.Before, After: step.After, Dims: dims}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) claim(c Claim) error {
	if s.late() {
		s.Late++
		return nil
	}
	h := fnv.New64a()
	fmt.Fprint(h, c.Rule, c.Before, c.After, c.Dims)
	if s.done[h.Sum64()] || !runs(c.Before, c.Dims) {
		return nil
	}
	s.done[h.Sum64()] = true
	began := time.Now()
	res := s.result(c.Rule)
	if c.Assumes != nil {
		if res.Assumes = c.Assumes.Text; res.Without == "" {
			free := c
			free.Assumes, free.Rounds = nil, s.rounds[c.Rule]
			if v, err := s.Prove(free); err == nil && v.Outcome == Refuted {
				res.Without = v.Counterexample()
			}
		}
	}
	if c.Assumes != nil && !holds(c) {
		return nil
	}
	v, err := s.Prove(c)
	if err != nil {
		return err
	}
	if v.Outcome != Proved && s.rounds[c.Rule] {
		if v.Outcome == Refuted && res.Needed == "" {
			res.Needed = v.Counterexample()
		}
		exact := v
		c.Rounds = true
		if v, err = s.Prove(c); err != nil {
			return err
		}
		if v.Outcome != Proved && !res.Rounds { // the rule does not state it, and it would not help
			v, c.Rounds = exact, false
		}
	}
	res.Time += time.Since(began)
	if v.Outcome == Proved && v.Theory == empty {
		return nil // it says nothing of the rule
	}
	res.Claims[v.Outcome]++
	switch v.Outcome {
	case Proved:
		res.Theories[v.Theory]++
		for _, p := range c.Before.Body.Params {
			res.Ranks[p.Tensor().Rank()] = true
		}
		if len(s.Kept) < 1<<14 {
			s.Kept = append(s.Kept, c)
		}
	case Refuted:
		if len(res.Refuted) < 5 {
			res.Refuted = append(res.Refuted, Counterexample{c, v})
		}
	default:
		res.Whys[v.Why]++
	}
	return nil
}

func (s *Session) late() bool { return !s.Until.IsZero() && time.Now().After(s.Until) }

// holds reports inputs for which a claim's assumption holds.
func holds(c Claim) bool {
	for seed := range uint64(32) {
		r := rand.New(rand.NewPCG(seed, 4))
		var in []*tensor.Tensor
		for _, p := range c.Before.Body.Params {
			shape, err := sizes(p.Tensor(), c.Dims)
			if err != nil || !drawable(p.DType()) {
				return false
			}
			in = append(in, randomTensor(r, p.DType(), shape, 3, false))
		}
		if c.Assumes.Holds(in) {
			return true
		}
	}
	return false
}

// Sorted lists the results by the names of the rules.
func (s *Session) Sorted() []*Result {
	var out []*Result
	for _, k := range slices.Sorted(maps.Keys(s.Results)) {
		out = append(out, s.Results[k])
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Status is the outcome of the rule in words.
func (r *Result) Status() string {
	if r.Outcome() != Proved {
		return r.Outcome().String()
	}
	if r.Claims[Inexpressible] > r.Claims[Proved] {
		return "proved in part"
	}
	for t := range r.Theories {
		if strings.HasPrefix(t, reals.String()) {
			return "proved on real numbers"
		}
	}
	return "proved"
}

// String returns one line about the rule.
func (r *Result) String() string {
	return fmt.Sprintf("%-26s %-24s %d claims proved, %d open, %d not expressible, %.1f s", r.Rule, r.Status(), r.Claims[Proved], r.Claims[Open], r.Claims[Inexpressible], r.Time.Seconds())
}

// Row is the row of the rule in the table.
func (r *Result) Row() string {
	by := sortedKeys(r.Theories)
	var ranks []string
	for _, n := range slices.Sorted(maps.Keys(r.Ranks)) {
		ranks = append(ranks, fmt.Sprint(n))
	}
	left := ""
	if r.Outcome() != Proved || r.Claims[Inexpressible] > 0 {
		if whys := slices.SortedFunc(maps.Keys(r.Whys), func(a, b string) int {
			return cmp.Or(cmp.Compare(r.Whys[b], r.Whys[a]), cmp.Compare(a, b))
		}); len(whys) > 0 {
			left = whys[0]
			if len(left) > 100 {
				left = left[:100] + "..."
			}
			left = strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(left)
		}
	}
	status := r.Status()
	if r.Needed != "" {
		status += "; rounds"
	}
	if r.Assumes != "" {
		status += "; assumes that " + r.Assumes
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %s | %s | %.1f | %s |\n", r.Rule, status, r.Claims[Proved], r.Claims[Inexpressible], strings.Join(ranks, " "), strings.Join(by, "; "), r.Time.Seconds(), left)
}
