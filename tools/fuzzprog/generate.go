package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
)

// list and dict are containers of tensors. Variables share them, as in Python.
type list struct{ elems []*array }
type dict struct {
	keys  []string
	elems map[string]*array
}

// env has the variables of a program at some point, for one set of inputs: *array, int, *list and *dict.
type env struct{ vars map[string]any }

// clone copies an env with all that is in it; what was one memory stays one.
func (e *env) clone() *env {
	storages := map[*[]float64]*[]float64{}
	arrays := map[*array]*array{}
	array_ := func(a *array) *array {
		if c := arrays[a]; c != nil {
			return c
		}
		s := storages[a.data]
		if s == nil {
			v := slices.Clone(*a.data)
			s = &v
			storages[a.data] = s
		}
		c := *a
		c.data = s
		arrays[a] = &c
		return &c
	}
	lists, dicts := map[*list]*list{}, map[*dict]*dict{}
	out := &env{vars: make(map[string]any, len(e.vars))}
	for name, v := range e.vars {
		switch v := v.(type) {
		case *array:
			out.vars[name] = array_(v)
		case *list:
			if lists[v] == nil {
				c := &list{}
				for _, a := range v.elems {
					c.elems = append(c.elems, array_(a))
				}
				lists[v] = c
			}
			out.vars[name] = lists[v]
		case *dict:
			if dicts[v] == nil {
				c := &dict{keys: slices.Clone(v.keys), elems: map[string]*array{}}
				for k, a := range v.elems {
					c.elems[k] = array_(a)
				}
				dicts[v] = c
			}
			out.vars[name] = dicts[v]
		default:
			out.vars[name] = v
		}
	}
	return out
}

// arr gives a tensor variable.
func (e *env) arr(name string) *array { return e.vars[name].(*array) }

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

// sets is the number of sets of inputs.
const sets = 2

func newGenerator(rng *rand.Rand) *generator {
	g := &generator{rng: rng}
	shape := pick(rng, [][]int{{3, 4}, {4, 4}, {2, 3, 4}, {5}, {4, 3}, {2, 2, 3}, {3, 1}, {1, 3}})
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = fmt.Sprint(d)
	}
	grown := slices.Clone(shape)
	if rng.IntN(2) == 0 {
		k := rng.IntN(len(shape))
		if shape[k] > 1 {
			dims[k] = "N"
			grown[k] += 1 + rng.IntN(2)
		}
	}
	kinds := []dtype{f32, pick(rng, []dtype{f32, f32, i64})}
	for i, name := range []string{"x", "y"} {
		in := input{name: name, spec: fmt.Sprintf("%s:%s[%s]", name, map[dtype]string{f32: "f32", i64: "i64"}[kinds[i]], strings.Join(dims, ","))}
		for _, s := range [][]int{shape, grown} {
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
		case k < 84:
			s = g.container()
		case k < 89:
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

// assign gives existing names values of tensor variables of the scope.
func (g *generator) assign(names []string, kinds map[string]dtype) func() []*stmt {
	return func() []*stmt {
		var out []*stmt
		for _, n := range names {
			from := g.of(func(v any) bool { a, ok := v.(*array); return ok && (kinds == nil || a.kind == kinds[n]) })
			v := from[len(from)-1-g.rng.IntN(min(len(from), 5))]
			s := &stmt{lines: line(n + " = " + v), run: func(e *env) { e.vars[n] = e.vars[v] }}
			if g.try(s) {
				out = append(out, s)
			}
		}
		return out
	}
}

// branch is an If, with up to two results.
func (g *generator) branch() *stmt {
	cond, test := g.condition()
	if test == nil {
		return nil
	}
	var results []string
	for range g.rng.IntN(3) {
		results = append(results, g.name())
	}
	kinds := map[string]dtype{}
	for _, n := range results {
		kinds[n] = pick(g.rng, []dtype{f32, f32, i64})
	}
	then := g.block(g.rng.IntN(4), g.assign(results, kinds))
	other := g.block(g.rng.IntN(3), g.assign(results, kinds))
	s := &stmt{run: func(e *env) {
		if test(e) {
			runAll(then, e)
		} else {
			runAll(other, e)
		}
	}}
	s.blocks = []*[]*stmt{&then, &other}
	s.lines = func() []string {
		out := append([]string{"if " + cond + ":"}, indent(text(then))...)
		return append(append(out, "else:"), indent(text(other))...)
	}
	if !g.try(s) {
		return nil
	}
	g.names = append(g.names, results...)
	return s
}

// loop is a for, with up to two tensors that it carries.
func (g *generator) loop() *stmt {
	var before []*stmt
	var carried []string
	kinds := map[string]dtype{}
	names, envs := slices.Clone(g.names), g.envs
	undo := func() *stmt { g.names, g.envs = names, envs; return nil }
	for range g.rng.IntN(3) {
		v := g.tensor(nil)
		s := g.define(v, func(e *env) any { return e.vars[v] })
		if s == nil {
			return undo()
		}
		n := g.names[len(g.names)-1]
		before, carried = append(before, s), append(carried, n)
		kinds[n] = g.envs[0].arr(n).kind
	}
	trips, times := fmt.Sprint(g.rng.IntN(4)), 0
	fmt.Sscan(trips, &times)
	count := func(*env) int { return times }
	if ints := g.of(func(v any) bool { n, ok := v.(int); return ok && n < 6 }); len(ints) > 0 && g.rng.IntN(2) == 0 {
		n := pick(g.rng, ints)
		trips, count = n, func(e *env) int { return e.vars[n].(int) }
	}
	i := g.name()
	outer := g.envs
	g.envs = make([]*env, len(outer))
	for k, e := range outer {
		g.envs[k] = e.clone()
		g.envs[k].vars[i] = 0
	}
	g.names = append(g.names, i)
	body := g.block(1+g.rng.IntN(3), g.assign(carried, kinds))
	g.names, g.envs = g.names[:len(g.names)-1], outer
	s := &stmt{run: func(e *env) {
		n := count(e)
		if n > 6 {
			reject("too many iterations")
		}
		for k := range n {
			e.vars[i] = k
			runAll(body, e)
		}
	}}
	s.blocks = []*[]*stmt{&body}
	s.lines = func() []string {
		var out []string
		for _, b := range before {
			out = append(out, b.lines()...)
		}
		return append(append(out, "for "+i+" in range("+trips+"):"), indent(text(body))...)
	}
	if !g.try(s) {
		return undo()
	}
	whole := s.run
	s.run = func(e *env) { runAll(before, e); whole(e) }
	return s
}

// tensor names a tensor variable, later ones more often.
func (g *generator) tensor(want func(*array) bool) string {
	names := g.of(func(v any) bool { a, ok := v.(*array); return ok && (want == nil || want(a)) })
	if len(names) == 0 {
		reject("no tensor")
	}
	return names[int(float64(len(names))*math.Pow(g.rng.Float64(), 0.6))]
}

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

// condition is a test of data, or of a number.
func (g *generator) condition() (string, func(*env) bool) {
	var test func(*env) bool
	cond := ""
	guarded(func() *stmt {
		if ints := g.ints(); len(ints) > 0 && g.rng.IntN(3) == 0 {
			n, k := pick(g.rng, ints), g.rng.IntN(4)
			cond, test = fmt.Sprintf("torch.gt(%s, %d)", n, k), func(e *env) bool { return e.vars[n].(int) > k }
			return nil
		}
		v, k := g.tensor(func(a *array) bool { return a.kind != bol }), g.rng.IntN(7)-3
		cond, test = fmt.Sprintf("bool(torch.gt(torch.sum(%s), %d))", v, k), func(e *env) bool { return sum(e.arr(v).values()) > float64(k) }
		return nil
	})
	return cond, test
}

func (g *generator) ints() []string { return g.of(func(v any) bool { _, ok := v.(int); return ok }) }

// integer is a number that is computed from shapes or data.
func (g *generator) integer() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		if ints := g.ints(); len(ints) > 0 && r.IntN(2) == 0 {
			n, k := pick(r, ints), 1+r.IntN(3)
			switch r.IntN(4) {
			case 0:
				return g.define(fmt.Sprintf("torch.add(%s, %d)", n, k), func(e *env) any { return small(e.vars[n].(int) + k) })
			case 1:
				return g.define(fmt.Sprintf("torch.sub(%s, %d)", n, k), func(e *env) any { return small(e.vars[n].(int) - k) })
			case 2:
				return g.define(fmt.Sprintf("torch.mul(%s, %d)", n, k), func(e *env) any { return small(e.vars[n].(int) * k) })
			}
			return g.define(fmt.Sprintf("torch.floordiv(%s, %d)", n, k), func(e *env) any {
				return int(math.Floor(float64(e.vars[n].(int)) / float64(k)))
			})
		}
		v := g.tensor(nil)
		a := g.envs[0].arr(v)
		switch {
		case a.rank() == 0 && a.kind == i64:
			return g.define("int("+v+")", func(e *env) any { return int(e.arr(v).values()[0]) })
		case a.rank() == 0:
			return g.define("torch.dim("+v+")", func(e *env) any { return e.arr(v).rank() })
		}
		d := r.IntN(a.rank())
		return g.define(fmt.Sprintf("torch.size(%s, %d)", v, d), func(e *env) any {
			if d >= e.arr(v).rank() {
				reject("no axis")
			}
			return e.arr(v).shape[d]
		})
	})
}

func small(n int) int {
	if n > 100 || n < -100 {
		reject("%d is too large", n)
	}
	return n
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

// viewing is a view of a tensor.
func (g *generator) viewing() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v := g.tensor(nil)
		a := g.envs[0].arr(v)
		n := max(a.rank(), 1)
		d, d2 := r.IntN(2*n)-n, r.IntN(2*n)-n
		size := 1
		if a.rank() > 0 {
			size = a.shape[a.axis(d)]
		}
		of := func(f func(e *env, a *array) *array) func(*env) any {
			return func(e *env) any { return f(e, e.arr(v)) }
		}
		switch r.IntN(16) {
		case 0, 1:
			k, at := g.index(-size, max(size-1, 0))
			return g.define(fmt.Sprintf("torch.select(%s, %d, %s)", v, d, k), of(func(e *env, a *array) *array { return a.pick(d, at(e)) }))
		case 2, 3, 4:
			from, lo := g.index(-size, size)
			to, hi := g.index(-size, size)
			step := 1 + r.IntN(6)/5
			return g.define(fmt.Sprintf("torch.slice(%s, %d, %s, %s, %d)", v, d, from, to, step), of(func(e *env, a *array) *array { return a.slice(d, lo(e), hi(e), step) }))
		case 5:
			return g.define(fmt.Sprintf("torch.transpose(%s, %d, %d)", v, d, d2), of(func(_ *env, a *array) *array { return a.transpose(d, d2) }))
		case 6:
			return g.define(fmt.Sprintf("torch.unsqueeze(%s, %d)", v, d), of(func(_ *env, a *array) *array { return a.unsqueeze(d) }))
		case 7:
			return g.define(fmt.Sprintf("torch.squeeze(%s, %d)", v, d), of(func(_ *env, a *array) *array { return a.squeeze([]int{a.axis(d)}) }))
		case 8:
			return g.define(fmt.Sprintf("torch.%s(%s, [-1])", pick(r, []string{"view", "reshape"}), v), of(func(_ *env, a *array) *array { return a.reshape([]int{-1}) }))
		case 9:
			k := 1 + r.IntN(4)
			shape := pick(r, [][]int{{k, -1}, {-1, k}, {1, -1}})
			return g.define(fmt.Sprintf("torch.%s(%s, [%d, %d])", pick(r, []string{"view", "reshape"}), v, shape[0], shape[1]), of(func(_ *env, a *array) *array { return a.reshape(shape) }))
		case 10:
			order := r.Perm(a.rank())
			return g.define(fmt.Sprintf("torch.permute(%s, %s)", v, ints(order)), of(func(_ *env, a *array) *array {
				if a.rank() != len(order) {
					reject("another rank")
				}
				return a.permute(order)
			}))
		case 11:
			shape := append([]int{2}, slices.Repeat([]int{-1}, a.rank())...)
			if r.IntN(2) == 0 && a.rank() > 0 {
				shape = shape[1:]
				if k := a.axis(d); a.shape[k] == 1 {
					shape[k] = 2
				}
			}
			return g.define(fmt.Sprintf("torch.expand(%s, %s)", v, ints(shape)), of(func(_ *env, a *array) *array { return a.expand(shape) }))
		case 12:
			return g.define(fmt.Sprintf("torch.diagonal(%s)", v), of(func(_ *env, a *array) *array { return a.diagonal() }))
		case 13:
			return g.define(fmt.Sprintf("torch.contiguous(%s)", v), of(func(_ *env, a *array) *array { return a.inOrder() }))
		case 14:
			k := r.IntN(max(size, 1))
			return g.define(fmt.Sprintf("torch.narrow(%s, %d, %d, 1)", v, d, k), of(func(_ *env, a *array) *array {
				if d := a.sized(d); k >= a.shape[d] {
					reject("no index %d", k)
				}
				return a.slice(d, k, k+1, 1)
			}))
		default:
			return g.define(fmt.Sprintf("torch.detach(%s)", v), of(func(_ *env, a *array) *array { return a.view(a.shape, a.strides, a.offset) }))
		}
	})
}

func ints(v []int) string {
	return "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(v), " ", ", "), "[]") + "]"
}

// operand is another tensor, or a number that fits an element type.
func (g *generator) operand(kind dtype) (string, func(*env) *array) {
	r := g.rng
	switch k := r.IntN(10); {
	case k < 4:
		v := g.tensor(func(b *array) bool { return b.kind != bol && (kind == f32 || b.kind == kind) })
		return v, func(e *env) *array { return e.arr(v) }
	case k < 6 && len(g.ints()) > 0:
		n := pick(r, g.ints())
		return n, func(e *env) *array { return number(i64, float64(e.vars[n].(int))) }
	case k < 7 && kind == f32:
		c := pick(r, []float64{0.5, -1.5, 0.25})
		return fmt.Sprint(c), func(*env) *array { return number(f32, c) }
	}
	c := r.IntN(7) - 3
	return fmt.Sprint(c), func(*env) *array { return number(i64, float64(c)) }
}

type arithmetic struct {
	name string
	f    func(x, y float64) float64
}

var arithmetics = []arithmetic{
	{"add", func(x, y float64) float64 { return x + y }},
	{"sub", func(x, y float64) float64 { return x - y }},
	{"mul", func(x, y float64) float64 { return x * y }},
}

var comparisons = []arithmetic{
	{"gt", func(x, y float64) float64 { return truth(x > y) }},
	{"lt", func(x, y float64) float64 { return truth(x < y) }},
	{"eq", func(x, y float64) float64 { return truth(x == y) }},
	{"ge", func(x, y float64) float64 { return truth(x >= y) }},
	{"ne", func(x, y float64) float64 { return truth(x != y) }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

type elementwise struct {
	name, more string
	f          func(float64) float64
}

var elementwises = []elementwise{
	{"neg", "", func(x float64) float64 { return -x }},
	{"abs", "", math.Abs},
	{"relu", "", func(x float64) float64 { return max(x, 0) }},
	{"clamp", ", -1, 2", func(x float64) float64 { return min(max(x, -1), 2) }},
	{"floor", "", math.Floor},
	{"remainder", ", 3", func(x float64) float64 { return x - 3*math.Floor(x/3) }},
}

// writing is a statement that writes to a tensor.
func (g *generator) writing() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v := g.tensor(func(a *array) bool { return a.kind != bol })
		if v == "i" {
			return nil
		}
		a := g.envs[0].arr(v)
		n := max(a.rank(), 1)
		d := r.IntN(2*n) - n
		kind := a.kind
		switch r.IntN(14) {
		case 0, 1, 2:
			op := pick(r, arithmetics)
			t, value := g.operand(kind)
			return g.effect(fmt.Sprintf("torch.%s_(%s, %s)", op.name, v, t), func(e *env) {
				a, b := e.arr(v), value(e)
				out := binary(a, b, promote(a.kind, b.kind), op.f)
				if out.kind != a.kind || !slices.Equal(out.shape, a.shape) {
					reject("the result does not fit")
				}
				a.write(out.values(), b)
			})
		case 3, 4:
			op := pick(r, elementwises)
			return g.effect(fmt.Sprintf("torch.%s_(%s%s)", op.name, v, op.more), func(e *env) {
				a := e.arr(v)
				a.write(unary(a, op.f).values())
			})
		case 5:
			k := r.IntN(7) - 3
			return g.effect(fmt.Sprintf("torch.fill_(%s, %d)", v, k), func(e *env) {
				a := e.arr(v)
				a.write(unary(a, func(float64) float64 { return float64(k) }).values())
			})
		case 6:
			return g.effect(fmt.Sprintf("torch.zero_(%s)", v), func(e *env) {
				a := e.arr(v)
				a.write(make([]float64, product(a.shape)))
			})
		case 7, 8:
			w := g.tensor(nil)
			return g.effect(fmt.Sprintf("torch.copy_(%s, %s)", v, w), func(e *env) {
				a, b := e.arr(v), e.arr(w)
				a.write(as(a.kind, b.expand(a.shape).values()), b)
			})
		case 9:
			m, k := g.tensor(func(a *array) bool { return a.kind == bol }), r.IntN(5)-2
			return g.effect(fmt.Sprintf("torch.masked_fill_(%s, %s, %d)", v, m, k), func(e *env) {
				a, c := e.arr(v), e.arr(m)
				out, mask := a.values(), c.expand(a.shape).values()
				for i := range out {
					if mask[i] != 0 {
						out[i] = float64(k)
					}
				}
				a.write(out)
			})
		case 10:
			return g.effect(fmt.Sprintf("torch.cumsum_(%s, %d)", v, d), func(e *env) {
				a := e.arr(v)
				a.write(scan(a, d, a.kind, running).values())
			})
		case 11:
			k := r.IntN(5) - 2
			return g.effect(fmt.Sprintf("torch.index_fill_(%s, %d, i, %d)", v, d, k), func(e *env) {
				a := e.arr(v)
				dim := a.sized(d)
				at := indices(e.arr("i"), a.shape[dim])
				a.write(scan(a, dim, a.kind, func(l []float64) []float64 {
					for _, p := range at {
						l[p] = float64(k)
					}
					return l
				}).values())
			})
		case 12:
			k := r.IntN(5) - 2
			return g.effect(fmt.Sprintf("torch.index_put_(%s, annotate(List[Optional[Tensor]], [torch.gt(%s, 0)]), torch.tensor(%d, dtype=%d))", v, v, k, map[dtype]int{f32: 6, i64: 4}[kind]), func(e *env) {
				a := e.arr(v)
				a.write(unary(a, func(x float64) float64 {
					if x > 0 {
						return float64(k)
					}
					return x
				}).values())
			})
		default:
			return g.effect(fmt.Sprintf("torch.tril_(%s)", v), func(e *env) {
				a := e.arr(v)
				a.write(triangle(a, true).values())
			})
		}
	})
}

func running(l []float64) []float64 {
	for i := 1; i < len(l); i++ {
		l[i] += l[i-1]
	}
	return l
}

// computing is an operator that makes a new tensor.
func (g *generator) computing() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v := g.tensor(nil)
		a := g.envs[0].arr(v)
		n := max(a.rank(), 1)
		d := r.IntN(2*n) - n
		if a.kind == bol {
			m := g.tensor(func(a *array) bool { return a.kind == bol })
			switch r.IntN(6) {
			case 0:
				return g.define(fmt.Sprintf("torch.logical_not(%s)", v), func(e *env) any { return unary(e.arr(v), func(x float64) float64 { return 1 - x }) })
			case 1:
				return g.define(fmt.Sprintf("torch.logical_and(%s, %s)", v, m), func(e *env) any {
					return binary(e.arr(v), e.arr(m), bol, func(x, y float64) float64 { return x * y })
				})
			case 2:
				return g.define(fmt.Sprintf("torch.any(%s)", v), func(e *env) any { return number(bol, truth(slices.Contains(e.arr(v).values(), 1))) })
			case 3:
				return g.define(fmt.Sprintf("torch.sum(%s)", v), func(e *env) any { return number(i64, sum(e.arr(v).values())) })
			case 4:
				return g.define(fmt.Sprintf("torch.to(%s, %d)", v, 6), func(e *env) any { return e.arr(v).to(f32) })
			}
			x := g.tensor(func(a *array) bool { return a.kind != bol })
			y := g.tensor(func(b *array) bool { return b.kind != bol })
			return g.define(fmt.Sprintf("torch.where(%s, %s, %s)", v, x, y), func(e *env) any { return choose(e.arr(v), e.arr(x), e.arr(y)) })
		}
		switch r.IntN(19) {
		case 0, 1, 2:
			op := pick(r, arithmetics)
			t, value := g.operand(a.kind)
			return g.define(fmt.Sprintf("torch.%s(%s, %s)", op.name, v, t), func(e *env) any {
				a, b := e.arr(v), value(e)
				return binary(a, b, promote(a.kind, b.kind), op.f)
			})
		case 3, 4:
			op := pick(r, comparisons)
			t, value := g.operand(a.kind)
			return g.define(fmt.Sprintf("torch.%s(%s, %s)", op.name, v, t), func(e *env) any { return binary(e.arr(v), value(e), bol, op.f) })
		case 5, 6:
			op := pick(r, elementwises)
			return g.define(fmt.Sprintf("torch.%s(%s%s)", op.name, v, op.more), func(e *env) any { return unary(e.arr(v), op.f) })
		case 7:
			keep := r.IntN(2) == 0
			return g.define(fmt.Sprintf("torch.sum(%s, [%d], %s)", v, d, python(keep)), func(e *env) any { return reduce(e.arr(v), d, keep, e.arr(v).kind, sum) })
		case 8:
			return g.define(fmt.Sprintf("torch.sum(%s)", v), func(e *env) any { return number(e.arr(v).kind, sum(e.arr(v).values())) })
		case 9:
			name, f := "amax", extreme(math.Max)
			if r.IntN(2) == 0 {
				name, f = "amin", extreme(math.Min)
			}
			return g.define(fmt.Sprintf("torch.%s(%s, [%d])", name, v, d), func(e *env) any { return reduce(e.arr(v), d, false, e.arr(v).kind, f) })
		case 10:
			return g.define(fmt.Sprintf("torch.cumsum(%s, %d)", v, d), func(e *env) any { return scan(e.arr(v), d, e.arr(v).kind, running) })
		case 11:
			return g.define(fmt.Sprintf("torch.clone(%s)", v), func(e *env) any { return fresh(e.arr(v).kind, e.arr(v).shape, e.arr(v).values(), e.arr(v)) })
		case 12:
			w := g.tensor(func(b *array) bool { return b.rank() == a.rank() })
			join, f := "cat", cat
			if r.IntN(2) == 0 {
				join, f = "stack", stack
			}
			return g.define(fmt.Sprintf("torch.%s([%s, %s], %d)", join, v, w, d), func(e *env) any { return f([]*array{e.arr(v), e.arr(w)}, d) })
		case 13:
			kind := pick(r, []dtype{f32, i64, bol})
			return g.define(fmt.Sprintf("torch.to(%s, %d)", v, map[dtype]int{f32: 6, i64: 4, bol: 11}[kind]), func(e *env) any { return e.arr(v).to(kind) })
		case 14:
			return g.define(fmt.Sprintf("torch.index_select(%s, %d, i)", v, d), func(e *env) any { return indexSelect(e.arr(v), d, e.arr("i")) })
		case 15:
			return g.define(fmt.Sprintf("torch.flip(%s, [%d])", v, d), func(e *env) any {
				e.arr(v).sized(d)
				return scan(e.arr(v), d, e.arr(v).kind, func(l []float64) []float64 { slices.Reverse(l); return l })
			})
		case 16:
			w := g.tensor(func(b *array) bool { return b.rank() == 2 })
			return g.define(fmt.Sprintf("torch.matmul(%s, %s)", v, w), func(e *env) any { return matmul(e.arr(v), e.arr(w)) })
		case 17:
			w := g.tensor(func(b *array) bool { return b.kind == a.kind })
			name, f := "maximum", math.Max
			if r.IntN(2) == 0 {
				name, f = "minimum", math.Min
			}
			return g.define(fmt.Sprintf("torch.%s(%s, %s)", name, v, w), func(e *env) any { return binary(e.arr(v), e.arr(w), e.arr(v).kind, f) })
		default:
			lower := r.IntN(2) == 0
			name := "triu"
			if lower {
				name = "tril"
			}
			return g.define(fmt.Sprintf("torch.%s(%s)", name, v), func(e *env) any { return triangle(e.arr(v), lower) })
		}
	})
}

func python(b bool) string {
	if b {
		return "True"
	}
	return "False"
}

// container is a statement with a list or a dict of tensors.
func (g *generator) container() *stmt {
	return guarded(func() *stmt {
		r := g.rng
		v, w := g.tensor(nil), g.tensor(nil)
		lists := g.of(func(v any) bool { _, ok := v.(*list); return ok })
		dicts := g.of(func(v any) bool { _, ok := v.(*dict); return ok })
		if len(lists) > 0 && r.IntN(3) > 0 {
			l := pick(r, lists)
			at, k := g.index(-1, 1)
			elem := func(e *env) *array {
				elems, k := e.vars[l].(*list).elems, k(e)
				if k < -len(elems) || k >= len(elems) {
					reject("no element %d", k)
				}
				return elems[(k+len(elems))%len(elems)]
			}
			switch r.IntN(6) {
			case 0:
				return g.effect(fmt.Sprintf("torch.append(%s, %s)", l, v), func(e *env) {
					x := e.vars[l].(*list)
					if len(x.elems) > 8 {
						reject("the list grows")
					}
					x.elems = append(x.elems, e.arr(v))
				})
			case 1:
				return g.effect(fmt.Sprintf("torch._set_item(%s, %s, %s)", l, at, v), func(e *env) {
					elem(e)
					x := e.vars[l].(*list)
					x.elems[(k(e)+len(x.elems))%len(x.elems)] = e.arr(v)
				})
			case 2:
				return g.define(fmt.Sprintf("torch.cat(%s, 0)", l), func(e *env) any { return cat(e.vars[l].(*list).elems, 0) })
			case 3:
				return g.define(fmt.Sprintf("torch.len(%s)", l), func(e *env) any { return len(e.vars[l].(*list).elems) })
			}
			return g.define(fmt.Sprintf("%s[%s]", l, at), func(e *env) any { return elem(e) })
		}
		if len(dicts) > 0 && r.IntN(2) == 0 {
			d, k := pick(r, dicts), pick(r, []string{"a", "b", "c"})
			if r.IntN(2) == 0 {
				return g.effect(fmt.Sprintf("torch._set_item(%s, %q, %s)", d, k, v), func(e *env) {
					x := e.vars[d].(*dict)
					if x.elems[k] == nil {
						x.keys = append(x.keys, k)
					}
					x.elems[k] = e.arr(v)
				})
			}
			return g.define(fmt.Sprintf("%s[%q]", d, k), func(e *env) any {
				a := e.vars[d].(*dict).elems[k]
				if a == nil {
					reject("no key")
				}
				return a
			})
		}
		switch r.IntN(4) {
		case 0:
			return g.define(fmt.Sprintf("{\"a\": %s, \"b\": %s}", v, w), func(e *env) any {
				return &dict{keys: []string{"a", "b"}, elems: map[string]*array{"a": e.arr(v), "b": e.arr(w)}}
			})
		case 1:
			return g.define(fmt.Sprintf("torch.unbind(%s, 0)", v), func(e *env) any {
				a, l := e.arr(v), &list{}
				a.sized(0)
				for i := range a.shape[0] {
					l.elems = append(l.elems, a.pick(0, i))
				}
				return l
			})
		case 2:
			return g.define(fmt.Sprintf("torch.split(%s, 2, 0)", v), func(e *env) any {
				a, l := e.arr(v), &list{}
				a.sized(0)
				for i := 0; i == 0 || i < a.shape[0]; i += 2 {
					l.elems = append(l.elems, a.slice(0, i, i+2, 1))
				}
				return l
			})
		}
		return g.define(fmt.Sprintf("[%s, %s]", v, w), func(e *env) any { return &list{[]*array{e.arr(v), e.arr(w)}} })
	})
}

// reduce drops what it can of a program while it stays as it is by some test.
func (g *generator) reduce(still func() bool) {
	for again, rounds := true, 0; again && rounds < 5; rounds++ {
		again = false
		for i := len(g.outputs) - 1; i >= 0 && len(g.outputs) > 1; i-- {
			was := g.outputs
			g.outputs = slices.Delete(slices.Clone(was), i, i+1)
			if !g.evaluate() || !still() {
				g.outputs = was
			}
		}
		var drop func(list *[]*stmt)
		drop = func(list *[]*stmt) {
			for i := len(*list) - 1; i >= 0; i-- {
				was := *list
				*list = slices.Delete(slices.Clone(was), i, i+1)
				if g.evaluate() && still() {
					again = true
					continue
				}
				*list = was
				for _, b := range was[i].blocks {
					drop(b)
				}
			}
		}
		drop(&g.body)
	}
	g.evaluate()
}

// evaluate runs the whole program; false if it is not valid.
func (g *generator) evaluate() (ok bool) {
	defer func() {
		if recover() != nil { // a variable that nothing gives a value is one that has another type
			ok = false
		}
	}()
	for k := range g.envs {
		e := &env{vars: map[string]any{}}
		for _, in := range g.inputs {
			e.vars[in.name] = in.values[k]
		}
		g.envs[k] = e.clone()
		runAll(g.body, g.envs[k])
		for _, o := range g.outputs {
			g.envs[k].arr(o)
		}
	}
	return true
}
