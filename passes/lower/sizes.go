package lower

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// demand is a pair of sizes that an operator needs to be equal; with broadcast, one of them may be 1.
type demand struct {
	x, y      sym.Expr
	broadcast bool
	op        *ssa.Op
}

// sizes collects what the program demands of the dynamic axes of its inputs.
type sizes struct {
	axes    map[string]string // by symbol: "axis 0 of input x"
	unnamed map[string]bool   // symbols that stand for "?" of the user
	least   map[string]int64  // by symbol: the smallest size that the input may have
	demands []demand
	seen    map[string]bool
}

// declare notes the dynamic axes of the inputs. Those that have no name of the user's, in a printed graph that does
// not say all sizes, are left out: nobody promised anything of them.
func (s *sizes) declare(params []*ssa.Value) {
	s.axes, s.unnamed, s.least, s.seen = map[string]string{}, map[string]bool{}, map[string]int64{}, map[string]bool{}
	for _, p := range params {
		t := p.Tensor()
		if t == nil {
			continue
		}
		for i, d := range t.Dims {
			name, ok := d.Name()
			if _, dup := s.axes[name]; !ok || dup || invented(name) {
				continue
			}
			s.axes[name], s.least[name] = fmt.Sprintf("axis %d of input %s", i, p.Name), max(d.Min(), 1)
			number, ofInput := strings.CutPrefix(name, strings.ReplaceAll(p.Name, ".", "_")+"_")
			s.unnamed[name] = ofInput && strings.Trim(number, "0123456789") == ""
		}
	}
}

// invented reports a name that ssa.Module.FreshSymbol gives to sizes that printed graphs leave open.
func invented(name string) bool {
	return len(name) > 1 && name[0] == 'u' && strings.Trim(name[1:], "0123456789") == ""
}

// require notes a demand of the operator at hand. What holds in a branch or a loop only is no demand of the program.
func (l *lowerer) require(b *ssa.Block, x, y sym.Expr, broadcast bool) {
	if b != l.dst.Body || l.low.Node == nil || !l.sizes.known(x) || !l.sizes.known(y) {
		return
	}
	key := fmt.Sprint(x, "=", y, broadcast)
	if !l.sizes.seen[key] {
		l.sizes.seen[key] = true
		l.sizes.demands = append(l.sizes.demands, demand{x, y, broadcast, l.low.Node})
	}
}

// known reports a size that depends on dynamic axes of inputs alone.
func (s *sizes) known(e sym.Expr) bool {
	ok := true
	e.Symbols(func(name string) { ok = ok && s.axes[name] != "" })
	return ok
}

// solveSizes reports what the demands leave of the dynamic axes: an error for a symbol that can have one value only, or
// none, and for two that must go together; the rest is taken for granted.
func (l *lowerer) solveSizes() {
	fixed := map[string][]solution{}
	var order []string
	for _, d := range l.sizes.demands {
		names := symbolsOf(d.x.Sub(d.y))
		if d.broadcast {
			l.grant(d, names)
			continue
		}
		switch line, ok := lineOf(d.x.Sub(d.y), names); {
		case !ok:
			l.grant(d, names)
		case len(names) == 0:
			l.badSize(d.op, fmt.Sprintf("%s and %s must be equal, which no sizes are", d.x, d.y), "correct the sizes in --input")
		case len(names) == 1:
			value := sym.Const(-line.constant)
			n, whole := value.Divide(sym.Const(line.slopes[0]))
			if n.Min() < 0 || !whole {
				l.badSize(d.op, fmt.Sprintf("%s must be %s, which no %s gives", d.x, d.y, names[0]), "correct the sizes in --input")
				continue
			}
			if len(fixed[names[0]]) == 0 {
				order = append(order, names[0])
			}
			fixed[names[0]] = addSolution(fixed[names[0]], solution{n.Min(), d.op})
		case slices.ContainsFunc(names, func(name string) bool { return l.sizes.unnamed[name] }):
			l.grant(d, names) // a "?" may well be another axis's size
		default:
			l.together(d, names, line)
		}
	}
	for _, name := range order {
		l.onlyValue(name, fixed[name])
	}
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
func (l *lowerer) onlyValue(name string, all []solution) {
	first, where := all[0], l.sizes.axes[name]
	if len(all) == 1 {
		l.badSize(first.op, fmt.Sprintf("%s must be %d (%s)", name, first.n, where), fmt.Sprintf("write %d for %s in --input", first.n, name))
		return
	}
	for _, s := range all[1:] {
		l.badSize(s.op, fmt.Sprintf("%s must be %d here and %d at %s (%s): no size is both", name, s.n, first.n, l.m.Locs.String(first.op.Loc), where),
			"give axes of different sizes different names in --input")
	}
}

// together reports symbols that the program ties to each other.
func (l *lowerer) together(d demand, names []string, line line) {
	if len(names) == 2 && line.constant == 0 && line.slopes[0] == -line.slopes[1] {
		l.badSize(d.op, fmt.Sprintf("%s (%s) and %s (%s) must be equal", names[0], l.sizes.axes[names[0]], names[1], l.sizes.axes[names[1]]),
			fmt.Sprintf("give them one name in --input: %s for both", names[0]))
		return
	}
	for i := len(names) - 1; i >= 0; i-- {
		if k := line.slopes[i]; k == 1 || k == -1 {
			x := sym.Symbol(names[i], 0)
			value := x.Sub(d.x.Sub(d.y).Mul(sym.Const(k))) // k * k is 1
			l.badSize(d.op, fmt.Sprintf("%s (%s) must be %s", names[i], l.sizes.axes[names[i]], value), fmt.Sprintf("write %s for %s in --input", value, names[i]))
			return
		}
	}
	l.grant(d, names)
}

func (l *lowerer) badSize(op *ssa.Op, message, hint string) {
	l.bad = append(l.bad, Unconverted{Kind: op.Kind, Loc: op.Loc, Failure: &aten.Failure{ID: "axis-size", Message: message, Hint: hint}})
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
func (l *lowerer) grant(d demand, names []string) {
	if strings.Contains(d.x.String()+d.y.String(), "bcast(") {
		return // it follows from the demand of the operator that broadcasts
	}
	holds, fails := l.sizes.sample(d, names)
	if fails == 0 {
		return
	}
	what := fmt.Sprintf("%s is %s", d.x, d.y)
	if d.x.IsConst() {
		what = fmt.Sprintf("%s is %s", d.y, d.x)
	}
	if s := describe(holds); len(names) == 1 && s != "" {
		what = names[0] + " is " + s
	} else if d.broadcast {
		what += ", or one of them is 1"
	}
	l.grantAt(d.op, what)
}

func (l *lowerer) grantAt(op *ssa.Op, what string) {
	for i := range l.assumed {
		if l.assumed[i].what == what {
			l.assumed[i].ops = append(l.assumed[i].ops, op)
			return
		}
	}
	l.assumed = append(l.assumed, assumption{what, "the operator takes no other sizes", []*ssa.Op{op}})
}

// sampled is the greatest size of a lone symbol that is tried.
const sampled = 2048

// sample tries a demand on sizes: all small ones of a lone symbol, some of several. It gives those of a lone symbol for
// which the demand holds, and the number of failures.
func (s *sizes) sample(d demand, names []string) (holds []int64, fails int) {
	at := map[string]int64{}
	try := func() bool {
		x, okX := d.x.Eval(at)
		y, okY := d.y.Eval(at)
		return !okX || !okY || x == y || d.broadcast && (x == 1 || y == 1)
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
