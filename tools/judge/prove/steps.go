package prove

import (
	_ "embed"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// stepName names the step of an operator from the encoding that an opset brought to the one before.
func stepName(kind string, opset int) string { return fmt.Sprintf("%s-%d", kind, opset) }

// assumed is what steps take for granted: older opsets cannot say it, or nothing says what comes out otherwise.
var assumed = map[string]*Assumption{
	"Mod-10":      {Text: "no divisor is 0", Holds: func(in []*tensor.Tensor) bool { return len(in) < 2 || !slices.Contains(in[1].Int64s(), 0) }, NotZero: 1},
	"Reshape-14":  {Text: "of the sizes that are computed at most one is 0", Holds: func(in []*tensor.Tensor) bool { return len(in) < 2 || !in[1].DType.IsInt() || zeros(in[1]) < 2 }},
	"RoiAlign-10": {Text: "the image has elements", Holds: imageHasElements},
	"RoiAlign-16": {Text: "the image has elements", Holds: imageHasElements},
	"Sign-9": {Text: "no operand is NaN", Holds: func(in []*tensor.Tensor) bool {
		return len(in) != 1 || !in[0].DType.IsFloat() || !slices.ContainsFunc(in[0].Float64s(), math.IsNaN)
	}},
}

func zeros(t *tensor.Tensor) int {
	n := 0
	for _, v := range t.Int64s() {
		if v == 0 {
			n++
		}
	}
	return n
}

func imageHasElements(in []*tensor.Tensor) bool { return len(in) == 0 || in[0].NumElements() > 0 }

// StepNames lists the steps down of all operators.
func StepNames() []string {
	var out []string
	for _, name := range onnx.Names() {
		for _, s := range onnx.Steps(name) {
			out = append(out, stepName(name, s.Opset))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Steps proves the steps down of operators: an operator, and what it becomes at the opset before the step, mean the same. What an old
// encoding means is what its steps up make of it; so a step that changes the encoding alone is proved to be the inverse of that,
// and one that expresses the operator by others is proved to compute it. Operators are those of text tests, of models (ONNX's tests of
// operators), of small inputs by their schemas, and changed copies.
func (s *Session) Steps(lit string, models []string) error {
	tell := s.teller()
	for _, name := range StepNames() {
		if s.Only == nil || s.Only(name) {
			s.result(name).Rounds = true // in the types of the operators that it expresses it by
			s.rounds[name] = true
		}
	}
	pool := newPool()
	for _, pass := range []string{"legalize", "upgrade", "simplify", "shapes", "lower"} {
		err := eachText(filepath.Join(lit, "passes", pass), func(m *ssa.Module, _ []string) error {
			pool.module(m)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := pool.small(); err != nil {
		return err
	}
	for _, path := range models {
		if m, err := onnxfile.Read(path); err == nil {
			withIntegers(m, filepath.Join(filepath.Dir(path), "data_0"))
			pool.module(m)
		}
	}
	for _, name := range onnx.Names() {
		steps := onnx.Steps(name)
		wanted := func(st onnx.Step) bool { return s.Only == nil || s.Only(stepName(name, st.Opset)) }
		if !slices.ContainsFunc(steps, wanted) {
			continue
		}
		pool.schema(name)
		graphs := pool.of[name]
		r := rand.New(rand.NewPCG(hashOf(name), 9))
		for i := range s.Variants {
			if len(graphs) > 0 {
				if g := vary(graphs[i%len(graphs)], r); g != nil {
					pool.add(g)
				}
			}
		}
		for _, f := range pool.of[name] {
			for _, st := range steps {
				if wanted(st) {
					if err := s.step(f, name, st.Opset); err != nil {
						return err
					}
				}
			}
		}
		tell(name)
	}
	for _, name := range StepNames() {
		if r := s.Results[name]; r != nil && len(r.Claims) == 0 {
			r.Claims[Inexpressible]++
			r.Whys["no graph takes it"]++
		}
	}
	return nil
}

// withIntegers makes constants of the integers that a test of an operator gives it behind its first input: they are mostly sizes and places.
func withIntegers(m *ssa.Module, data string) {
	params := slices.Clone(m.Main().Body.Params)
	for i := len(params) - 1; i > 0; i-- {
		_, t, err := onnxfile.ReadTensor(filepath.Join(data, fmt.Sprintf("input_%d.pb", i)))
		if err != nil || t.DType != tensor.Int64 || t.NumElements() > 64 || params[i].DType() != t.DType {
			continue
		}
		c := m.Main().Body.InsertBefore(m.Main().Body.First(), "onnx::Constant", 0, nil, ssa.TensorOf(t))
		c.SetAttr("value", ssa.TensorValue(t))
		params[i].ReplaceUses(c.Result(0))
		m.Main().Body.RemoveParam(i)
	}
}

// stepLimit bounds the time for a claim on a step: some operators are expressed by long series.
const stepLimit = 8 * time.Second

// step proves what becomes of a graph below an opset.
func (s *Session) step(f *ssa.Func, kind string, opset int) error {
	if s.PerStep > 0 && s.result(stepName(kind, opset)).Time > s.PerStep {
		return nil
	}
	g := expressed(f, kind, opset)
	if g == nil {
		var counts map[string]bool
		var err error
		if g, counts, err = lowered(f, opset-1); err != nil || !counts[stepName(kind, opset)] {
			return nil // the condition of a step does not hold
		}
	}
	r := rand.New(rand.NewPCG(hashOf(f.String()), 2))
	make := func(before, after *ssa.Func, dims map[string]int64) Claim {
		return Claim{Rule: stepName(kind, opset), Before: before, After: after, Dims: dims, Assumes: assumed[stepName(kind, opset)], Limit: stepLimit}
	}
	for _, dims := range bindings(symbols(f), r) {
		c := make(f, g, dims)
		if v, err := s.Prove(c); err != nil {
			return err
		} else if v.Outcome == Inexpressible && strings.HasSuffix(v.Why, "is not known") {
			if of := places(f, g, rand.New(rand.NewPCG(hashOf(f.String()), 3))); len(of) > 0 && len(symbols(of[0][0])) == 0 {
				// sizes depend on integers: these are given values
				for _, known := range of {
					if err := s.claim(make(known[0], known[1], nil)); err != nil {
						return err
					}
				}
				return nil
			}
		}
		if err := s.claim(c); err != nil {
			return err
		}
	}
	return nil
}

// expressed is a graph in which an operator is what its step down makes of it, in the newest encoding; nil if the step only changes the
// encoding, or does not apply.
func expressed(f *ssa.Func, kind string, opset int) (g *ssa.Func) {
	defer func() {
		if r := recover(); r != nil { // such as that it cannot be said
			g = nil
		}
	}()
	g = clone(f)
	for o := range g.Body.Ops() {
		if o.Kind != ssa.Kind(onnx.Namespace+"::"+kind) {
			continue
		}
		b := onnx.Builder{Block: g.Body, Before: o, Eval: kernel.Eval, FoldLimit: 1 << 16, Names: ssa.NamesOf(g)}
		d := &onnx.Downgrade{Builder: b, Node: o, Opset: opset - 1, Target: onnx.Standard}
		for _, st := range onnx.Steps(kind) {
			if st.Opset < opset {
				return nil
			}
			if st.Down(d); o.Block() == nil {
				if st.Opset > opset || infer(g) != nil {
					return nil
				}
				return g
			}
		}
		return nil
	}
	return nil
}

// lowered takes a copy of a graph to an opset and back to the newest encoding, and tells which steps there were.
func lowered(f *ssa.Func, opset int) (g *ssa.Func, counts map[string]bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	g, counts = clone(f), map[string]bool{}
	p, err := all.Set.Parse(fmt.Sprintf("legalize{opset=%d,target=onnx}", opset))
	if err != nil {
		return nil, nil, err
	}
	watch := passes.Observer{AfterPass: func(e *passes.Event) {
		for _, c := range e.Counts {
			counts[c.What] = true
		}
	}}
	if _, err := p.Run(g.Module(), &passes.Runner{Observers: []passes.Observer{watch}}); err != nil {
		return nil, nil, err
	}
	onnx.RaiseBlock(g.Body, opset, func(_ *ssa.Op, e error) { err = e })
	if err != nil {
		return nil, nil, err
	}
	onnx.SetOpset(g.Module(), onnx.Newest)
	return g, counts, infer(g)
}

func hashOf(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}

// pool has graphs of one operator, with the constants that it takes.
type pool struct {
	of   map[string][]*ssa.Func
	seen map[string]bool
}

func newPool() *pool { return &pool{map[string][]*ssa.Func{}, map[string]bool{}} }

// maxOfOperator bounds the graphs of an operator.
const maxOfOperator = 64

// module adds each operator of a module by itself.
func (p *pool) module(m *ssa.Module) {
	opset := onnx.DefaultOpset(m)
	for _, f := range m.Funcs {
		g := clone(f)
		if opset > 0 && opset < onnx.Newest {
			failed := false
			onnx.RaiseBlock(g.Body, opset, func(*ssa.Op, error) { failed = true })
			if failed {
				continue
			}
			onnx.SetOpset(g.Module(), onnx.Newest)
		}
		if infer(g) != nil {
			continue
		}
		for o := range g.Body.Ops() {
			if o.Kind.Namespace() == onnx.Namespace && o.Kind != "onnx::Constant" && len(o.Blocks) == 0 {
				if h := single(o); h != nil {
					p.add(h)
				}
			}
		}
	}
}

// add adds a graph, under the operators in it that are no constants.
func (p *pool) add(f *ssa.Func) {
	text := f.String()
	if p.seen[text] {
		return
	}
	p.seen[text] = true
	for o := range f.Body.Ops() {
		if name := o.Kind.Name(); o.Kind != "onnx::Constant" && len(p.of[name]) < maxOfOperator {
			p.of[name] = append(p.of[name], f)
		}
	}
}

//go:embed graphs.ir
var small string

// small adds the graphs of graphs.ir.
func (p *pool) small() error {
	for _, part := range strings.Split(small, "\n# -----\n") {
		m, err := ssa.Parse(part, "graphs.ir", all.Dialects()...)
		if err != nil {
			return err
		}
		f := clone(m.Main())
		if err := infer(f); err != nil {
			return fmt.Errorf("graphs.ir: %w\n%s", err, part)
		}
		p.add(f)
	}
	return nil
}

// single is the graph of one operator, nil if its operands are no tensors.
func single(o *ssa.Op) *ssa.Func {
	m := ssa.NewModule(all.Dialects()...)
	f := m.NewFunc("one")
	src := o.Block().Func()
	values := make([]*ssa.Value, src.NumValues())
	for _, x := range o.Operands() {
		if x == nil || values[x.ID] != nil {
			continue
		}
		if t := x.Tensor(); t == nil || !t.Ranked || t.DType == tensor.Undefined {
			return nil
		}
		if x.Def() != nil && onnx.ConstOf(x) != nil {
			x.Def().CopyTo(f.Body, values, nil, nil)
			continue
		}
		values[x.ID] = f.Body.AddParam(fmt.Sprintf("x%d", len(f.Body.Params)), x.Type)
	}
	c := o.CopyTo(f.Body, values, func(diag.Loc) diag.Loc { return 0 }, nil)
	used := c.Results
	f.Body.SetReturns(used...)
	if infer(f) != nil || ssa.Verify(m) != nil {
		return nil
	}
	return f
}

// schema adds graphs that an operator's schema allows: all operands and the first ones alone, of all types of the bound, on two shapes.
func (p *pool) schema(name string) {
	kind := ssa.Kind(onnx.Namespace + "::" + name)
	s := onnx.SchemaOf(kind)
	if s == nil {
		return
	}
	needed := 0
	for _, in := range s.Inputs {
		if in.Option == onnx.Single {
			needed++
		}
	}
	for _, n := range slices.Compact([]int{needed, len(s.Inputs)}) {
		for _, shape := range [][]int64{{2}, {2, 3}, {1, 2, 3, 3}} {
			for _, d := range instanceTypes {
				m := ssa.NewModule(all.Dialects()...)
				f := m.NewFunc("one")
				var operands []*ssa.Value
				for i := range n {
					operands = append(operands, f.Body.AddParam(fmt.Sprintf("x%d", i), ssa.Tensor(d, ssa.Sizes(shape)...)))
				}
				types := make([]ssa.Type, max(1, len(s.Outputs)))
				for i := range types {
					types[i] = ssa.AnyTensor
				}
				o := f.Body.Append(kind, 0, operands, types[:1]...)
				f.Body.SetReturns(o.Results...)
				if infer(f) == nil && ssa.Verify(m) == nil && runs(f, nil) {
					p.add(f)
				}
			}
		}
	}
}

// eachText calls a function for the modules of the text tests in a folder, with the pipelines that they are run through.
func eachText(folder string, f func(m *ssa.Module, pipelines []string) error) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.ir"))
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var pipelines []string
		for _, run := range runLine.FindAllSubmatch(text, -1) {
			pipelines = append(pipelines, string(run[1]))
		}
		opset := 0
		if o := opsetFlag.FindSubmatch(text); o != nil {
			opset, _ = strconv.Atoi(string(o[1]))
		}
		for _, part := range strings.Split(string(text), "\n# -----\n") {
			m, err := ssa.Parse(part, file, all.Dialects()...)
			if err != nil {
				continue // a test of what cannot be read
			}
			if opset > 0 && onnx.DefaultOpset(m) == 0 {
				onnx.SetOpset(m, opset)
			}
			aten.BindSchemas(m)
			if err := f(m, pipelines); err != nil {
				return err
			}
		}
	}
	return nil
}

var opsetFlag = regexp.MustCompile(`(?m)^# RUN: .*--opset=(\d+)`)

// Pass proves what a pass that has no rules does to the graphs of its text tests and to changed copies.
func (s *Session) Pass(lit, pass string) error {
	if s.Only != nil && !s.Only(pass) {
		return nil
	}
	s.result(pass)
	return eachText(filepath.Join(lit, "passes", pass), func(m *ssa.Module, _ []string) error {
		for _, f := range m.Funcs {
			r := rand.New(rand.NewPCG(hashOf(f.String()), 1))
			graphs := []*ssa.Func{f}
			for range s.Variants {
				if g := vary(f, r); g != nil {
					graphs = append(graphs, g)
				}
			}
			for _, g := range graphs {
				after, changed, err := through(g, pass)
				if err != nil || !changed {
					continue
				}
				for _, dims := range bindings(symbols(g), r) {
					if err := s.claim(Claim{Rule: pass, Before: g, After: after, Dims: dims}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// through runs a pipeline on a copy of a graph.
func through(f *ssa.Func, pipeline string) (g *ssa.Func, changed bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	p, err := all.Set.Parse(pipeline)
	if err != nil {
		return nil, false, err
	}
	g = clone(f)
	watch := passes.Observer{AfterPass: func(e *passes.Event) { changed = changed || e.Changed() }}
	m := g.Module()
	_, err = p.Run(m, &passes.Runner{Observers: []passes.Observer{watch}})
	return m.Funcs[0], changed, err // which the pass lower makes anew
}

// Indexing proves the patterns of the pass legalize-indexing: a read or write, and the indices that it becomes, are lowered to graphs of ONNX
// that compute the same. Each graph of the pass's text test is a pattern.
func (s *Session) Indexing(lit string) error {
	return eachText(filepath.Join(lit, "passes", "legalize-indexing"), func(m *ssa.Module, _ []string) error {
		for _, f := range m.Funcs {
			name := "legalize-indexing: " + f.Name
			if s.Only != nil && !s.Only(name) {
				continue
			}
			res := s.result(name)
			before, _, err := through(f, "lower")
			if err != nil {
				res.Claims[Inexpressible]++
				res.Whys[err.Error()]++
				continue
			}
			after, _, err := through(f, "legalize-indexing,lower")
			if err != nil {
				res.Claims[Inexpressible]++
				res.Whys[err.Error()]++
				continue
			}
			r := rand.New(rand.NewPCG(hashOf(f.String()), 1))
			for _, c := range places(before, after, r) {
				for _, dims := range bindings(symbols(c[0]), r) {
					if err := s.claim(Claim{Rule: name, Before: c[0], After: c[1], Dims: dims}); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// places gives integers and conditions among the inputs of two graphs some values: they say which elements are read and written. Without such
// inputs it gives the graphs as they are.
func places(before, after *ssa.Func, r *rand.Rand) [][2]*ssa.Func {
	var at []int
	for i, p := range before.Body.Params {
		if d := p.DType(); d == tensor.Int64 || d == tensor.Bool {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return [][2]*ssa.Func{{before, after}}
	}
	const draws = 24
	var out [][2]*ssa.Func
	for range draws {
		dims := map[string]int64{}
		for _, name := range symbols(before) {
			dims[name] = int64(1 + r.IntN(3))
		}
		values := map[int]*tensor.Tensor{}
		for _, i := range at {
			p := before.Body.Params[i]
			shape, err := sizes(p.Tensor(), dims)
			if err != nil || !fits(shape, 64) {
				return out
			}
			v := make([]int64, count(shape))
			for k := range v {
				if v[k] = int64(r.IntN(5)) - 2; p.DType() == tensor.Bool {
					v[k] &= 1
				}
			}
			values[i] = tensor.FromInts(p.DType(), shape, v)
		}
		given := [2]*ssa.Func{clone(before), clone(after)}
		for _, g := range given {
			for k, p := range slices.Clone(g.Body.Params) {
				shape, err := sizes(p.Tensor(), dims)
				if err != nil {
					return out
				}
				if p.Type = ssa.Tensor(p.DType(), ssa.Sizes(shape)...); values[k] == nil {
					continue
				}
				c := g.Body.InsertBefore(g.Body.First(), "onnx::Constant", 0, nil, ssa.TensorOf(values[k]))
				c.SetAttr("value", ssa.TensorValue(values[k]))
				p.ReplaceUses(c.Result(0))
			}
			for i := len(at) - 1; i >= 0; i-- {
				g.Body.RemoveParam(at[i])
			}
		}
		if infer(given[0]) == nil && infer(given[1]) == nil {
			out = append(out, given)
		}
	}
	return out
}
