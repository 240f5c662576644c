package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

// Limits of what a program computes: sizes for speed, numbers so that nothing rounds, and results are equal whatever the order of additions.
const (
	maxElements = 240
	maxRank     = 5
	maxNumber   = 4096
	fraction    = 64 // numbers are multiples of 1/64
	maxInt      = 100
	maxLength   = 8
	maxTrips    = 6
)

// errUnfit ends a statement that goes beyond these limits.
var errUnfit = errors.New("the statement goes beyond the limits of programs")

// stmt is a statement: its lines, the variables that it sets, and the blocks in it.
type stmt struct {
	lines  func() []string
	sets   []string
	blocks []*[]*stmt
}

// line is the text of a statement that has no blocks.
func line(text ...string) func() []string { return func() []string { return text } }

// input is an input of the program, with its values in each set.
type input struct {
	name, spec string
	values     []*tensor.Tensor
}

// env has the variables of a program at some point, for one set of inputs.
type env map[string]eager.Value

// generator makes a program statement by statement. The eager evaluator runs each for all sets of inputs as it is made, by itself, on the
// variables that there are: a statement that PyTorch would refuse is left out.
type generator struct {
	rng     *rand.Rand
	eager   *eager.Evaluator
	inputs  []input
	envs    []env    // of the sets of inputs, at this point
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

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func newGenerator(rng *rand.Rand, e *eager.Evaluator) *generator {
	g := &generator{rng: rng, eager: e}
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
	kinds := []tensor.DType{tensor.Float32, pick(rng, []tensor.DType{tensor.Float32, tensor.Float32, tensor.Int64})}
	for i, name := range []string{"x", "y"} {
		in := input{name: name, spec: fmt.Sprintf("%s:%s[%s]", name, map[tensor.DType]string{tensor.Float32: "f32", tensor.Int64: "i64"}[kinds[i]], strings.Join(dims, ","))}
		for _, s := range [][]int{shape, grown, small} {
			v := make([]float64, product(s))
			for k := range v {
				v[k] = float64(rng.IntN(9) - 4)
			}
			size := make([]int64, len(s))
			for k, d := range s {
				size[k] = int64(d)
			}
			in.values = append(in.values, tensor.FromFloats(kinds[i], size, v))
		}
		g.inputs = append(g.inputs, in)
	}
	idx := input{name: "i", spec: "i:i64[2]"}
	for range sets {
		idx.values = append(idx.values, tensor.Ints(int64(rng.IntN(2)), int64(rng.IntN(2))))
	}
	g.inputs = append(g.inputs, idx)
	for k := range sets {
		e := env{}
		for _, in := range g.inputs {
			e[in.name] = eager.Of(in.values[k])
		}
		g.envs = append(g.envs, e)
	}
	g.names = []string{"i"}
	return g
}

// data are the sets of inputs.
func (g *generator) data() []verify.DataSet {
	out := make([]verify.DataSet, sets)
	for k := range out {
		out[k].Name = fmt.Sprintf("inputs %d", k)
		for _, in := range g.inputs {
			out[k].Inputs = append(out[k].Inputs, verify.Named{Name: in.name, Tensor: in.values[k]})
		}
	}
	return out
}

func (g *generator) specs() []string {
	var out []string
	for _, in := range g.inputs {
		out = append(out, in.spec)
	}
	return out
}

// program makes a program of some statements.
func (g *generator) program(size int) {
	add := func(s *stmt) {
		if s != nil {
			g.body = append(g.body, s)
		}
	}
	for _, name := range []string{"x", "y"} { // whoever calls a model keeps its inputs
		add(g.define("torch.clone(%s)", name))
	}
	for range size {
		add(g.statement())
	}
	tensors := slices.DeleteFunc(g.tensors(nil), func(n string) bool { return n == "i" })
	g.rng.Shuffle(len(tensors), func(i, k int) { tensors[i], tensors[k] = tensors[k], tensors[i] })
	g.outputs = tensors[:min(len(tensors), 1+g.rng.IntN(4))]
}

// method is forward with these parameters, lines and results.
func method(params, lines []string, types, results []string) string {
	typ, value := "None", "None"
	switch {
	case len(results) == 1:
		typ, value = types[0], results[0]
	case len(results) > 1:
		typ, value = "Tuple["+strings.Join(types, ", ")+"]", "("+strings.Join(results, ", ")+")"
	}
	return fmt.Sprintf("  def forward(self: __torch__.Program%s) -> %s:\n%s\n    return %s\n", strings.Join(append([]string{""}, params...), ",\n    "), typ,
		strings.Join(indent(indent(lines)), "\n"), value)
}

// code is the method forward.
func (g *generator) code() string {
	var params []string
	for _, in := range g.inputs {
		params = append(params, in.name+": Tensor")
	}
	return method(params, text(g.body), slices.Repeat([]string{"Tensor"}, len(g.outputs)), g.outputs)
}

func (g *generator) archive() ([]byte, error) { return archiveOf(g.code()) }

func indent(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}

// of lists the variables of a type.
func (g *generator) of(typ string) []string {
	var out []string
	for _, n := range g.names {
		if typeOf(g.envs[0][n]) == typ {
			out = append(out, n)
		}
	}
	return out
}

func (g *generator) ints() []string    { return g.of("int") }
func (g *generator) lists() []string   { return g.of("List[Tensor]") }
func (g *generator) dicts() []string   { return g.of("Dict[str, Tensor]") }
func (g *generator) numbers() []string { return g.of("List[int]") }

// typeOf is the type of a variable in TorchScript.
func typeOf(v eager.Value) string {
	switch v := v.(type) {
	case *eager.Tensor:
		return "Tensor"
	case int64:
		return "int"
	case *eager.Dict:
		return "Dict[str, Tensor]"
	case *eager.List:
		for _, e := range v.Elems {
			return "List[" + typeOf(e) + "]"
		}
		if v.Elem != nil && v.Elem.String() == "int" {
			return "List[int]"
		}
		return "List[Tensor]"
	}
	return ""
}

var variable = regexp.MustCompile(`\b(?:v\d+|x|y|i)\b`)

// try runs a statement for all sets of inputs; if it is valid for all, they are behind it.
func (g *generator) try(s *stmt) bool {
	lines := s.lines()
	var names, params, types []string
	for _, n := range variable.FindAllString(strings.Join(lines, "\n"), -1) {
		if v, there := g.envs[0][n]; there && !slices.Contains(names, n) {
			names, params = append(names, n), append(params, n+": "+typeOf(v))
		}
	}
	after := make([]env, len(g.envs))
	result := slices.Clone(s.sets)
	for range result {
		types = append(types, "Tensor") // the evaluator does not look at it
	}
	archive, err := archiveOf(method(params, lines, types, result))
	if err != nil {
		return false
	}
	m, err := aton.LoadBytes(archive, "program.pt", aton.LoadOptions{Inputs: []spec.Input{}})
	if err != nil {
		return false
	}
	for k, e := range g.envs {
		after[k] = e.copy()
		args := make([]eager.Value, len(names))
		for i, n := range names {
			args[i] = after[k][n]
		}
		out, err := g.eager.Call(m, args...)
		if err != nil {
			return false
		}
		if len(out) == 1 && len(result) > 1 {
			out = out[0].(*eager.Tuple).Elems
		}
		for i, n := range result {
			after[k][n] = out[i]
		}
		for _, v := range after[k] {
			if fits(v) != nil {
				return false
			}
		}
	}
	g.envs = after
	return true
}

// copy copies an env with all that is in it; what was one memory stays one.
func (e env) copy() env {
	var names []string
	var values []eager.Value
	for n, v := range e {
		names, values = append(names, n), append(values, v)
	}
	out := make(env, len(e))
	for i, v := range eager.Copy(values...) {
		out[names[i]] = v
	}
	return out
}

// fits says whether a value is within the limits.
func fits(v eager.Value) error {
	switch v := v.(type) {
	case int64:
		if v > maxInt || v < -maxInt {
			return errUnfit
		}
	case *eager.List:
		if len(v.Elems) > maxLength {
			return errUnfit
		}
		for _, e := range v.Elems {
			if err := fits(e); err != nil {
				return err
			}
		}
	case *eager.Dict:
		for _, k := range v.Keys() {
			e, _ := v.Get(k)
			if err := fits(e); err != nil {
				return err
			}
		}
	case *eager.Tensor:
		t := v.Tensor()
		if len(t.Shape) > maxRank || t.NumElements() > maxElements {
			return errUnfit
		}
		for _, x := range t.Float64s() {
			if !(math.Abs(x) <= maxNumber) || x*fraction != math.Trunc(x*fraction) {
				return errUnfit
			}
		}
	}
	return nil
}

func (g *generator) name() string {
	g.n++
	return fmt.Sprintf("v%d", g.n)
}

// define is a statement that gives a value a new name. Nil if it is not valid.
func (g *generator) define(format string, args ...any) *stmt {
	name := g.name()
	s := &stmt{lines: line(name + " = " + fmt.Sprintf(format, args...)), sets: []string{name}}
	if !g.try(s) {
		return nil
	}
	g.names = append(g.names, name)
	return s
}

// effect is a statement whose value nobody uses. Nil if it is not valid.
func (g *generator) effect(format string, args ...any) *stmt {
	return g.several("_" + g.name() + " = " + fmt.Sprintf(format, args...))
}

// several is a statement of some lines, whose names nobody uses.
func (g *generator) several(lines ...string) *stmt {
	s := &stmt{lines: line(lines...)}
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

// tensors lists the tensor variables.
func (g *generator) tensors(want func(*tensor.Tensor) bool) []string {
	return slices.DeleteFunc(g.of("Tensor"), func(n string) bool { return want != nil && !want(g.tensorOf(n)) })
}

// tensor names a tensor variable, later ones more often; "" if there is none.
func (g *generator) tensor(want func(*tensor.Tensor) bool) string {
	names := g.tensors(want)
	if len(names) == 0 {
		return ""
	}
	return names[int(float64(len(names))*math.Pow(g.rng.Float64(), 0.6))]
}

// tensorOf is the value of a tensor variable in the first set.
func (g *generator) tensorOf(name string) *tensor.Tensor {
	return g.envs[0][name].(*eager.Tensor).Tensor()
}

// index is a constant, or a variable.
func (g *generator) index(low, high int) string {
	if ints := g.ints(); len(ints) > 0 && g.rng.IntN(3) == 0 {
		return pick(g.rng, ints)
	}
	return fmt.Sprint(low + g.rng.IntN(high-low+1))
}

func isBool(t *tensor.Tensor) bool   { return t.DType == tensor.Bool }
func isNumber(t *tensor.Tensor) bool { return t.DType != tensor.Bool }
