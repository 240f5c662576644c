package surgery

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Join appends b to a. links maps inputs of b to the outputs of a that they take; an input of b that is not in it takes the output of the same
// name, and without any of both the only output of a becomes the only input of b. The other outputs of a stay outputs, before those of b, and the
// other inputs of b become inputs behind those of a. Both models need the same opsets. Where b has a name that a has, a number is appended to the one that no user
// sees: a value, or else a weight, of b.
func Join(a, b *ssa.Module, links map[string]string) error {
	f, err := main(a)
	if err != nil {
		return fmt.Errorf("the first model: %w", err)
	}
	g, err := main(b)
	if err != nil {
		return fmt.Errorf("the second model: %w", err)
	}
	for domain, version := range b.Opsets {
		if have, both := a.Opsets[domain]; both && have != version {
			return fmt.Errorf("the models have versions %d and %d of the operators of %s: convert one (aton export --opset)", have, version, domainName(domain))
		}
	}
	j := &joiner{a: a, b: b, f: f, g: g, values: make([]*ssa.Value, g.NumValues()), symbols: map[string]sym.Expr{}, taken: map[string]bool{}}
	linked, err := j.link(links)
	if err != nil {
		return err
	}
	if err := j.functions(); err != nil {
		return err
	}
	if err := j.inputs(linked); err != nil {
		return err
	}
	a.Opsets = mergedOpsets(a.Opsets, b.Opsets)
	return j.append(linked)
}

func mergedOpsets(a, b map[string]int) map[string]int {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func domainName(domain string) string {
	if domain == "" {
		return "ONNX"
	}
	return domain
}

type joiner struct {
	a, b   *ssa.Module
	f, g   *ssa.Func
	values []*ssa.Value // by ID in g, their copies in f
	// symbols are the sizes that those of b stand for in a.
	symbols map[string]sym.Expr
	taken   map[string]bool // names in a
}

// outputName is the name of output i in a file.
func outputName(f *ssa.Func, i int) string {
	if i < len(f.OutputNames) && f.OutputNames[i] != "" {
		return f.OutputNames[i]
	}
	return f.Body.Return(i).Name
}

// link finds which output of a, by its number, is which input of b.
func (j *joiner) link(links map[string]string) (map[*ssa.Value]int, error) {
	outputs := map[string]int{}
	for i := range j.f.Body.NumReturns() {
		outputs[outputName(j.f, i)] = i
	}
	inputs := map[string]*ssa.Value{}
	for _, p := range j.g.Body.Params {
		inputs[p.Name] = p
	}
	linked := map[*ssa.Value]int{}
	for _, in := range slices.Sorted(maps.Keys(links)) {
		p := inputs[in]
		if p == nil {
			return nil, fmt.Errorf("the second model has no input %s%s", in, diag.DidYouMean(in, slices.Sorted(maps.Keys(inputs))))
		}
		i, ok := outputs[links[in]]
		if !ok {
			return nil, fmt.Errorf("the first model has no output %s%s", links[in], diag.DidYouMean(links[in], slices.Sorted(maps.Keys(outputs))))
		}
		linked[p] = i
	}
	for _, p := range j.g.Body.Params {
		if i, ok := outputs[p.Name]; ok && links[p.Name] == "" {
			linked[p] = i
		}
	}
	if len(linked) == 0 && j.f.Body.NumReturns() == 1 && len(j.g.Body.Params) == 1 {
		linked[j.g.Body.Params[0]] = 0
	}
	if len(linked) == 0 {
		return nil, fmt.Errorf("no output of the first model (%s) has the name of an input of the second one (%s): say which becomes which, as OUTPUT=INPUT",
			strings.Join(slices.Sorted(maps.Keys(outputs)), ", "), strings.Join(slices.Sorted(maps.Keys(inputs)), ", "))
	}
	return linked, nil
}

// functions copies the functions of b, which are those of a where they have the same name and text.
func (j *joiner) functions() error {
	for _, f := range j.b.Funcs {
		if f == j.g {
			continue
		}
		if have := j.a.Func(f.Name); have == nil {
			j.a.CopyFunc(f)
		} else if have.String() != f.String() {
			return fmt.Errorf("both models have a function %s, and they are different ones", f.Name)
		}
	}
	return nil
}

// inputs maps the inputs of b to outputs and new inputs of a.
func (j *joiner) inputs(linked map[*ssa.Value]int) error {
	s := scopeOf(j.f)
	for name := range s.inner {
		j.taken[name] = true
	}
	own := map[string]bool{}
	for name, v := range s.values {
		j.taken[name] = true
		symbolsOf(v.Type, func(s string) { own[s] = true })
	}
	for _, p := range j.g.Body.Params {
		i, ok := linked[p]
		if !ok {
			continue
		}
		v := j.f.Body.Return(i)
		if err := j.fits(v.Type, p.Type); err != nil {
			return fmt.Errorf("output %s and input %s: %w", outputName(j.f, i), p.Name, err)
		}
		j.values[p.ID] = v
	}
	// sizes of b that are called as other ones of a
	used := map[string]bool{}
	for _, p := range j.g.Body.Params {
		symbolsOf(p.Type, func(s string) { used[s] = true })
	}
	for o := range j.g.Body.AllOps() {
		for _, r := range o.Results {
			symbolsOf(r.Type, func(s string) { used[s] = true })
		}
	}
	for _, s := range slices.Sorted(maps.Keys(used)) {
		if _, known := j.symbols[s]; !known && own[s] {
			j.symbols[s] = sym.Symbol(numbered(s, func(n string) bool { return own[n] || used[n] }), 0)
		}
	}
	for _, p := range j.g.Body.Params {
		if _, ok := linked[p]; ok {
			continue
		}
		if j.taken[p.Name] {
			return fmt.Errorf("both models have a value %s, and it is an input of the second one: rename one (aton set --rename)", p.Name)
		}
		j.taken[p.Name] = true
		j.values[p.ID] = j.f.Body.AddParam(p.Name, j.typed(p.Type))
		for _, list := range [][2]*map[string]*tensor.Tensor{{&j.a.Weights, &j.b.Weights}, {&j.a.Defaults, &j.b.Defaults}} {
			if t := (*list[1])[p.Name]; t != nil {
				if *list[0] == nil {
					*list[0] = map[string]*tensor.Tensor{}
				}
				(*list[0])[p.Name] = t
			}
		}
	}
	return nil
}

// fits compares the type of an output with that of the input that it becomes, and learns what sizes of b are.
func (j *joiner) fits(out, in ssa.Type) error {
	x, ok := out.(*ssa.TensorType)
	y, both := in.(*ssa.TensorType)
	switch {
	case !ok && !both && out.String() == in.String():
		return nil
	case !ok || !both:
		return fmt.Errorf("%s is no %s", out, in)
	case x.DType != y.DType && x.DType != tensor.Undefined && y.DType != tensor.Undefined:
		return fmt.Errorf("the element types are %s and %s", x.DType, y.DType)
	case !x.Ranked || !y.Ranked:
		return nil
	case len(x.Dims) != len(y.Dims):
		return fmt.Errorf("the shapes are %s and %s", x, y)
	}
	for i, d := range y.Dims {
		m, known := x.Dims[i].Int()
		if n, fixed := d.Int(); fixed && known && m != n {
			return fmt.Errorf("axis %d is of size %d and %d", i, m, n)
		}
		if name, plain := d.Name(); plain {
			if _, again := j.symbols[name]; !again {
				j.symbols[name] = x.Dims[i]
			}
		}
	}
	return nil
}

// typed is a type of b with the sizes of a.
func (j *joiner) typed(t ssa.Type) ssa.Type {
	x, ok := t.(*ssa.TensorType)
	if !ok || len(x.Dims) == 0 {
		return t
	}
	c := *x
	c.Dims = slices.Clone(x.Dims)
	for i, d := range c.Dims {
		c.Dims[i] = d.Subst(func(name string) (sym.Expr, bool) { e, ok := j.symbols[name]; return e, ok })
	}
	return &c
}

func symbolsOf(t ssa.Type, f func(string)) {
	if x, ok := t.(*ssa.TensorType); ok {
		for _, d := range x.Dims {
			d.Symbols(f)
		}
	}
}

// numbered is a name with the first number from 2 on that makes one that is not taken.
func numbered(name string, taken func(string) bool) string {
	for n := 2; ; n++ {
		if c := fmt.Sprintf("%s_%d", name, n); !taken(c) {
			return c
		}
	}
}

// append copies the operators of b, and makes the outputs.
func (j *joiner) append(linked map[*ssa.Value]int) error {
	f, g := j.f, j.g
	var returns []*ssa.Value
	var names []string
	gone := slices.Collect(maps.Values(linked))
	for i := range f.Body.NumReturns() {
		if !slices.Contains(gone, i) {
			returns, names = append(returns, f.Body.Return(i)), append(names, outputName(f, i))
		}
	}
	s := scopeOf(f)
	for i := range g.Body.NumReturns() {
		name := outputName(g, i)
		if slices.Contains(names, name) {
			return fmt.Errorf("both models have an output %s: rename one (aton set --rename)", name)
		}
		if v := s.values[name]; v != nil && v.Param() != nil {
			return fmt.Errorf("the first model has an input %s, and the second one an output: rename one (aton set --rename)", name)
		} else if v != nil && ssa.WeightOf(v.Def()) != nil {
			return fmt.Errorf("the first model has a weight %s, and the second one an output: rename one (aton set --rename)", name)
		} else if v != nil {
			v.Name = numbered(name, func(n string) bool { return j.taken[n] })
			j.taken[v.Name] = true
			delete(j.taken, name)
		}
	}
	renamed := map[string]string{}
	var locs func(l diag.Loc) diag.Loc
	locs = func(l diag.Loc) diag.Loc {
		frame := j.b.Locs.Frame(l)
		if frame.Caller != 0 {
			frame.Caller = locs(frame.Caller)
		}
		return j.a.Locs.Add(frame)
	}
	f.Body.CopyInto(nil, g.Body, j.values, locs, func(name string) string {
		to := name
		if j.taken[name] {
			to = numbered(name, func(n string) bool { return j.taken[n] })
			renamed[name] = to
		}
		j.taken[to] = true
		return to
	})
	for o := range g.Body.Ops() {
		for _, r := range o.Results {
			j.values[r.ID].Type = j.typed(r.Type)
		}
	}
	for i := range g.Body.NumReturns() {
		returns, names = append(returns, j.values[g.Body.Return(i).ID]), append(names, outputName(g, i))
	}
	f.Body.SetReturns(returns...)
	f.OutputNames = names
	for _, w := range j.b.State {
		if to := renamed[w]; to != "" {
			w = to
		}
		j.a.State = append(j.a.State, w)
	}
	j.a.Keep = append(j.a.Keep, j.b.Keep...)
	forget(j.a)
	return nil
}
