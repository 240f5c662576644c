// Package sizes solves what a program demands of the dynamic axes of its inputs: that two sizes are equal, or broadcast.
package sizes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// Demand is a pair of sizes that an operator needs to be equal; with Broadcast, one of them may be 1.
type Demand struct {
	X, Y      sym.Expr
	Broadcast bool
	Op        *ssa.Op
}

// Conflict is a demand that the dynamic axes as they are declared do not meet: a symbol can have one value only, or none,
// or two symbols must go together. The hint says how to declare them.
type Conflict struct {
	Op            *ssa.Op
	Message, Hint string
}

// Grant is what a demand leaves to chance, such as "N is at least 2": the program is right where it holds.
type Grant struct {
	Op   *ssa.Op
	What string
}

// Why is the reason for a Grant, to be told with it.
const Why = "the operator takes no other sizes"

// Solver collects demands and solves them.
type Solver struct {
	axes    map[string]string // by symbol: "axis 0 of input x"
	unnamed map[string]bool   // symbols that stand for "?" of the user
	least   map[string]int64  // by symbol: the smallest size that the input may have
	demands []Demand
	seen    map[string]bool

	locs      *diag.Table
	conflicts []Conflict
	grants    []Grant
}

// New makes a solver for the dynamic axes of the inputs. Those that have no name of the user's, in a printed graph that does
// not say all sizes, are left out: nobody promised anything of them.
func New(inputs []*ssa.Value) *Solver {
	s := &Solver{axes: map[string]string{}, unnamed: map[string]bool{}, least: map[string]int64{}, seen: map[string]bool{}}
	for _, p := range inputs {
		t := p.Tensor()
		if t == nil {
			continue
		}
		for i, d := range t.Dims {
			name, ok := d.Name()
			if _, dup := s.axes[name]; !ok || dup || ssa.IsFresh(name) {
				continue
			}
			s.axes[name], s.least[name] = fmt.Sprintf("axis %d of input %s", i, p.Name), max(d.Min(), 1)
			number, ofInput := strings.CutPrefix(name, strings.ReplaceAll(p.Name, ".", "_")+"_")
			s.unnamed[name] = ofInput && strings.Trim(number, "0123456789") == ""
		}
	}
	return s
}

// Dynamic reports whether any axis of the inputs is left open: without one, no demand says anything.
func (s *Solver) Dynamic() bool { return len(s.axes) > 0 }

// Require notes a demand. What holds in a branch or a loop only is no demand of the program, and the caller's to leave out;
// sizes that depend on other things than axes of inputs are left out here.
func (s *Solver) Require(d Demand) {
	if !s.known(d.X) || !s.known(d.Y) {
		return
	}
	key := fmt.Sprint(d.X, "=", d.Y, d.Broadcast)
	if !s.seen[key] {
		s.seen[key] = true
		s.demands = append(s.demands, d)
	}
}

// known reports a size that depends on dynamic axes of inputs alone.
func (s *Solver) known(e sym.Expr) bool {
	ok := true
	e.Symbols(func(name string) { ok = ok && s.axes[name] != "" })
	return ok
}

// Solve says what the demands leave of the dynamic axes. Places in messages are those of locs.
func (s *Solver) Solve(locs *diag.Table) ([]Conflict, []Grant) {
	s.locs, s.conflicts, s.grants = locs, nil, nil
	fixed := map[string][]solution{}
	var order []string
	for _, d := range s.demands {
		if d.X.Equal(d.Y) {
			continue
		}
		names := symbolsOf(d.X.Sub(d.Y))
		if d.Broadcast {
			s.grant(d, names)
			continue
		}
		switch line, ok := lineOf(d.X.Sub(d.Y), names); {
		case !ok:
			s.grant(d, names)
		case len(names) == 0:
			s.conflict(d.Op, fmt.Sprintf("%s and %s must be equal, which no sizes are", d.X, d.Y), "correct the sizes in --input")
		case len(names) == 1:
			value := sym.Const(-line.constant)
			n, whole := value.Divide(sym.Const(line.slopes[0]))
			if n.Min() < 0 || !whole {
				s.conflict(d.Op, fmt.Sprintf("%s must be %s, which no %s gives", d.X, d.Y, names[0]), "correct the sizes in --input")
				continue
			}
			if len(fixed[names[0]]) == 0 {
				order = append(order, names[0])
			}
			fixed[names[0]] = addSolution(fixed[names[0]], solution{n.Min(), d.Op})
		case slices.ContainsFunc(names, func(name string) bool { return s.unnamed[name] }):
			s.grant(d, names) // a "?" may well be another axis's size
		default:
			s.together(d, names, line)
		}
	}
	for _, name := range order {
		s.onlyValue(name, fixed[name])
	}
	return s.conflicts, s.grants
}

// solution is the one value that an operator leaves to a symbol.
type solution struct {
	n  int64
	op *ssa.Op
}

func addSolution(all []solution, s solution) []solution {
	if slices.ContainsFunc(all, func(t solution) bool { return t.n == s.n }) {
		return all
	}
	return append(all, s)
}

// onlyValue reports a symbol that can have one value, or, where several are demanded, none.
func (s *Solver) onlyValue(name string, all []solution) {
	first, where := all[0], s.axes[name]
	if len(all) == 1 {
		s.conflict(first.op, fmt.Sprintf("%s must be %d (%s)", name, first.n, where), fmt.Sprintf("write %d for %s in --input", first.n, name))
		return
	}
	for _, other := range all[1:] {
		s.conflict(other.op, fmt.Sprintf("%s must be %d here and %d at %s (%s): no size is both", name, other.n, first.n, s.locs.String(first.op.Loc), where),
			"give axes of different sizes different names in --input")
	}
}

// together reports symbols that the program ties to each other.
func (s *Solver) together(d Demand, names []string, line line) {
	if len(names) == 2 && line.constant == 0 && line.slopes[0] == -line.slopes[1] {
		s.conflict(d.Op, fmt.Sprintf("%s (%s) and %s (%s) must be equal", names[0], s.axes[names[0]], names[1], s.axes[names[1]]),
			fmt.Sprintf("give them one name in --input: %s for both", names[0]))
		return
	}
	for i := len(names) - 1; i >= 0; i-- {
		if k := line.slopes[i]; k == 1 || k == -1 {
			x := sym.Symbol(names[i], 0)
			value := x.Sub(d.X.Sub(d.Y).Mul(sym.Const(k))) // k * k is 1
			s.conflict(d.Op, fmt.Sprintf("%s (%s) must be %s", names[i], s.axes[names[i]], value), fmt.Sprintf("write %s for %s in --input", value, names[i]))
			return
		}
	}
	s.grant(d, names)
}

func (s *Solver) conflict(op *ssa.Op, message, hint string) {
	s.conflicts = append(s.conflicts, Conflict{op, message, hint})
}

// symbolsOf lists the symbols of an expression, each once, in order of name.
func symbolsOf(e sym.Expr) []string {
	var names []string
	e.Symbols(func(name string) { names = append(names, name) })
	slices.Sort(names)
	return slices.Compact(names)
}

// line is constant + slopes[0]*names[0] + slopes[1]*names[1] + ...
type line struct {
	constant int64
	slopes   []int64
}

// lineOf takes a linear expression apart.
func lineOf(e sym.Expr, names []string) (line, bool) {
	at := map[string]int64{}
	for _, name := range names {
		at[name] = 0
	}
	out := line{}
	var ok bool
	if out.constant, ok = e.Eval(at); !ok {
		return out, false
	}
	back := sym.Const(out.constant)
	for _, name := range names {
		at[name] = 1
		n, ok := e.Eval(at)
		at[name] = 0
		if !ok {
			return out, false
		}
		out.slopes = append(out.slopes, n-out.constant)
		back = back.Add(sym.Symbol(name, 0).Mul(sym.Const(n - out.constant)))
	}
	return out, back.Equal(e)
}

// grant takes a demand for granted that leaves several sizes, unless it holds for all of them.
func (s *Solver) grant(d Demand, names []string) {
	if strings.Contains(d.X.String()+d.Y.String(), "bcast(") {
		return // it follows from the demand of the operator that broadcasts
	}
	holds, fails := s.sample(d, names)
	if fails == 0 {
		return
	}
	what := fmt.Sprintf("%s is %s", d.X, d.Y)
	if rest := s.withoutFactors(d.X.Sub(d.Y), names); !d.Broadcast && len(symbolsOf(rest)) == 1 { // 16*L*N is 80*N
		names = symbolsOf(rest)
		holds, _ = s.sample(Demand{X: rest, Y: sym.Const(0)}, names)
	}
	if d.X.IsConst() {
		what = fmt.Sprintf("%s is %s", d.Y, d.X)
	}
	if said := describe(holds); len(names) == 1 && said != "" {
		what = names[0] + " is " + said
	} else if d.Broadcast {
		what += ", or one of them is 1"
	}
	s.grants = append(s.grants, Grant{d.Op, what})
}

// withoutFactors divides an expression by the symbols that are factors of it: no size is 0 here.
func (s *Solver) withoutFactors(e sym.Expr, names []string) sym.Expr {
	for _, name := range names {
		if q, ok := e.Divide(sym.Symbol(name, s.least[name])); ok {
			e = q
		}
	}
	return e
}

// sampled is the greatest size of a lone symbol that is tried.
const sampled = 2048

// sample tries a demand on sizes: all small ones of a lone symbol, some of several. It gives those of a lone symbol for
// which the demand holds, and the number of failures.
func (s *Solver) sample(d Demand, names []string) (holds []int64, fails int) {
	at := map[string]int64{}
	try := func() bool {
		x, okX := d.X.Eval(at)
		y, okY := d.Y.Eval(at)
		return !okX || !okY || x == y || d.Broadcast && (x == 1 || y == 1)
	}
	if len(names) == 1 {
		for n := s.least[names[0]]; n <= sampled; n++ {
			if at[names[0]] = n; try() {
				holds = append(holds, n)
			} else {
				fails++
			}
		}
		return holds, fails
	}
	seed := uint32(1)
	for range 256 {
		for _, name := range names {
			seed = seed*1664525 + 1013904223 // Numerical Recipes, section 7.1
			at[name] = max(s.least[name], int64(seed>>16)%512)
		}
		if !try() {
			fails++
		}
	}
	return nil, fails
}

// describe says what the sampled sizes have in common; it is empty where that is not simple.
func describe(holds []int64) string {
	n := int64(len(holds))
	if n == 0 {
		return ""
	}
	first, last := holds[0], holds[n-1]
	switch {
	case n == 1:
		return fmt.Sprint(first)
	case n == 2:
		return fmt.Sprintf("%d or %d", first, last)
	case last-first == n-1 && last == sampled:
		return fmt.Sprintf("at least %d", first)
	case last-first == n-1:
		return fmt.Sprintf("%d to %d", first, last)
	default:
		step := holds[1] - first
		for i, h := range holds {
			if h != first+int64(i)*step {
				return ""
			}
		}
		if first%step == 0 && first <= step && last+step > sampled {
			return fmt.Sprintf("a multiple of %d", step)
		}
		return ""
	}
}
