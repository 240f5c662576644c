package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// stmt is a statement: its lines, what it does, and the blocks in it.
type stmt struct {
	lines  func() []string
	run    func(*env)
	blocks []*[]*stmt
}

// line is the text of a statement that has no blocks.
func line(text string) func() []string { return func() []string { return []string{text} } }

// input is an input of the program, with its values in each set.
type input struct {
	name, spec string
	values     []*array
}

// generator makes a program statement by statement, and runs each for all sets of inputs as it goes.
type generator struct {
	rng     *rand.Rand
	inputs  []input
	envs    []*env   // of the sets of inputs, at this point
	names   []string // variables in scope, in order
	n       int      // names that were given
	depth   int
	body    []*stmt
	outputs []string
}

// sets is the number of sets of inputs: of the second one, a dynamic axis is longer, of the third one it is of size 1 or 0, or as of the first.
const sets = 3

// smallest is the least size of a dynamic axis.
var smallest int

func newGenerator(rng *rand.Rand) *generator {
	g := &generator{rng: rng}
	shape := pick(rng, [][]int{{3, 4}, {4, 4}, {2, 3, 4}, {5}, {4, 3}, {2, 2, 3}, {3, 1}, {1, 3}})
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	grown, small := slices.Clone(shape), slices.Clone(shape)
	if rng.IntN(2) == 0 {
		k := rng.IntN(len(shape))
		if shape[k] > 1 {
			dims[k] = "N"
			grown[k] += 1 + rng.IntN(2)
			if n := rng.IntN(4); n < 2 {
				small[k] = max(n, smallest)
			}
		}
	}
	kinds := []dtype{f32, pick(rng, []dtype{f32, f32, i64})}
	for i, name := range []string{"x", "y"} {
		in := input{name: name, spec: fmt.Sprintf("%s:%s[%s]", name, map[dtype]string{f32: "f32", i64: "i64"}[kinds[i]], strings.Join(dims, ","))}
		for _, s := range [][]int{shape, grown, small} {
			v := make([]float64, product(s))
			for k := range v {
				v[k] = float64(rng.IntN(9) - 4)
			}
			in.values = append(in.values, fresh(kinds[i], s, v))
		}
		g.inputs = append(g.inputs, in)
	}
	idx := input{name: "i", spec: "i:i64[2]"}
	for range sets {
		idx.values = append(idx.values, fresh(i64, []int{2}, []float64{float64(rng.IntN(2)), float64(rng.IntN(2))}))
	}
	g.inputs = append(g.inputs, idx)
	for k := range sets {
		e := &env{vars: map[string]any{}}
		for _, in := range g.inputs {
			e.vars[in.name] = in.values[k]
		}
		g.envs = append(g.envs, e.clone())
	}
	g.names = []string{"i"}
	return g
}

// program makes a program of some statements.
func (g *generator) program(size int) {
	add := func(s *stmt) {
		if s != nil {
			g.body = append(g.body, s)
		}
	}
	for _, name := range []string{"x", "y"} { // whoever calls a model keeps its inputs
		add(g.define("torch.clone("+name+")", func(e *env) any { a := e.arr(name); return fresh(a.kind, a.shape, a.values()) }))
	}
	for range size {
		add(g.statement())
	}
	tensors := g.of(func(v any) bool { _, ok := v.(*array); return ok })
	tensors = slices.DeleteFunc(tensors, func(n string) bool { return n == "i" })
	g.rng.Shuffle(len(tensors), func(i, k int) { tensors[i], tensors[k] = tensors[k], tensors[i] })
	g.outputs = tensors[:min(len(tensors), 1+g.rng.IntN(4))]
}

// code is the method forward.
func (g *generator) code() string {
	var params []string
	for _, in := range g.inputs {
		params = append(params, in.name+": Tensor")
	}
	result, value := "Tensor", g.outputs[0]
	if len(g.outputs) > 1 {
		result = "Tuple[" + strings.Join(slices.Repeat([]string{"Tensor"}, len(g.outputs)), ", ") + "]"
		value = "(" + strings.Join(g.outputs, ", ") + ")"
	}
	return fmt.Sprintf("  def forward(self: __torch__.Program,\n    %s) -> %s:\n%s\n    return %s\n", strings.Join(params, ",\n    "), result, strings.Join(indent(indent(text(g.body))), "\n"), value)
}

func indent(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}

// of lists the variables whose value is of a kind.
func (g *generator) of(want func(any) bool) []string {
	var out []string
	for _, n := range g.names {
		if want(g.envs[0].vars[n]) {
			out = append(out, n)
		}
	}
	return out
}

// try runs a statement for all sets of inputs; if it is valid for all, they are behind it.
func (g *generator) try(s *stmt) (ok bool) {
	after := make([]*env, len(g.envs))
	defer func() {
		if r := recover(); r != nil {
			if _, expected := r.(invalid); !expected {
				panic(r)
			}
			ok = false
		}
	}()
	for i, e := range g.envs {
		after[i] = e.clone()
		s.run(after[i])
	}
	g.envs = after
	return true
}

func (g *generator) name() string {
	g.n++
	return fmt.Sprintf("v%d", g.n)
}

// define is a statement that gives a value a new name. Nil if it is not valid.
func (g *generator) define(text string, value func(*env) any) *stmt {
	name := g.name()
	s := &stmt{lines: line(name + " = " + text), run: func(e *env) { e.vars[name] = value(e) }}
	if !g.try(s) {
		return nil
	}
	g.names = append(g.names, name)
	return s
}

// effect is a statement whose value nobody uses. Nil if it is not valid.
func (g *generator) effect(text string, run func(*env)) *stmt {
	s := &stmt{lines: line("_" + g.name() + " = " + text), run: run}
	if !g.try(s) {
		return nil
	}
	return s
}

// statement makes one that is valid.
func (g *generator) statement() *stmt {
	for range 30 {
		var s *stmt
		switch k := g.rng.IntN(100); {
		case k < 28:
			s = g.viewing()
		case k < 54:
			s = g.writing()
		case k < 76:
			s = g.computing()
		case k < 81:
			s = g.container()
		case k < 87:
			s = g.place()
		case k < 90:
			s = g.integer()
		case k < 95 && g.depth < 2:
			s = g.branch()
		case g.depth < 2:
			s = g.loop()
		}
		if s != nil {
			return s
		}
	}
	return nil
}

// block makes statements in a scope of their own. finish makes the last ones, which see the names of the scope.
func (g *generator) block(size int, finish func() []*stmt) []*stmt {
	names, envs := slices.Clone(g.names), g.envs
	g.depth++
	var out []*stmt
	for range size {
		if s := g.statement(); s != nil {
			out = append(out, s)
		}
	}
	out = append(out, finish()...)
	g.depth--
	g.names, g.envs = names, envs
	return out
}

func text(stmts []*stmt) []string {
	var out []string
	for _, s := range stmts {
		out = append(out, s.lines()...)
	}
	if out == nil {
		return []string{"pass"}
	}
	return out
}

func runAll(stmts []*stmt, e *env) {
	for _, s := range stmts {
		s.run(e)
	}
}

// tensor names a tensor variable, later ones more often.
func (g *generator) tensor(want func(*array) bool) string {
	names := g.of(func(v any) bool { a, ok := v.(*array); return ok && (want == nil || want(a)) })
	if len(names) == 0 {
		reject("no tensor")
	}
	return names[int(float64(len(names))*math.Pow(g.rng.Float64(), 0.6))]
}

func (g *generator) ints() []string { return g.of(func(v any) bool { _, ok := v.(int); return ok }) }

// guarded makes a statement; one that finds nothing to work on is none.
func guarded(make func() *stmt) (s *stmt) {
	defer func() {
		if r := recover(); r != nil {
			if _, expected := r.(invalid); !expected {
				panic(r)
			}
			s = nil
		}
	}()
	return make()
}

// index is a constant, or a variable.
func (g *generator) index(low, high int) (string, func(*env) int) {
	if ints := g.ints(); len(ints) > 0 && g.rng.IntN(3) == 0 {
		n := pick(g.rng, ints)
		return n, func(e *env) int { return e.vars[n].(int) }
	}
	k := low + g.rng.IntN(high-low+1)
	return fmt.Sprint(k), func(*env) int { return k }
}
