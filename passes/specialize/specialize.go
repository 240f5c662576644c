package specialize

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/specialize/internal/heap"
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/passes/specialize/internal/layout"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Options steer the pass.
type Options struct {
	// Opset and Table are what types are inferred with: an operator's type is that of its lowering.
	Opset int
	Table *aten.Table
	// UnrollMax is the greatest number of iterations that are unrolled where
	// a loop has to be; 0 stands for 1024.
	UnrollMax int
	// OutputNames name the outputs in order; a prefix will do.
	OutputNames []string
	// State says what becomes of state that the program changes.
	State State

	// KeepWeights leaves named constants of floating point as they are: what is computed of them is not folded.
	KeepWeights bool

	// nonEmpty drops branches that only tensors without elements take: see empty.go.
	nonEmpty bool
	// plural takes dynamic axes that are squeezed to be 2 or more: the model refuses others at run time.
	plural bool
	// split evaluates what follows an If once for each branch, if these give values of unlike form.
	split bool
	// openRanks lets ranks be open that differ between the branches of an If: the pass lower says what needs them.
	openRanks bool
}

// Run specializes the main function in place. Problems of the user's program
// come as *diag.List; warnings are returned beside.
//
// A program is tried as it is first. Where an operator needs a rank that is not
// known then, it is tried again for axes of 2 and more, for tensors that have
// elements, and with the paths split at Ifs that give values of unlike form.
func Run(m *ssa.Module, opts Options) (*diag.List, error) {
	src := m.Main()
	if src == nil {
		return nil, errors.New("the module has no function")
	}
	if opts.Table == nil {
		opts.Table = aten.NewTable()
	}
	if opts.UnrollMax == 0 {
		opts.UnrollMax = 1024
	}
	aten.BindSchemas(m) // graph text does not name overloads
	found, first := run(m, opts)
	err := first
	if err != nil && found.squeezed > 0 {
		opts.plural = true
		found, err = run(m, opts)
	}
	if err != nil && found.empty > 0 {
		opts.nonEmpty = true
		found, err = run(m, opts)
	}
	if err != nil && found.unlike > 0 {
		opts.split = true
		found, err = run(m, opts)
	}
	if err != nil && found.unlike > 0 {
		opts.split, opts.openRanks = false, true
		found, err = run(m, opts)
	}
	warnings := &diag.List{Table: &m.Locs, Items: found.warnings}
	if err != nil {
		return warnings, first
	}
	return warnings, nil
}

// run is one try at the program. On failure the module is as it was.
func run(m *ssa.Module, opts Options) (found findings, err error) {
	src := m.Main()
	out := m.NewFunc(src.Name + ".specialized")
	s := newWalk(m, src, out, opts)
	end := s.try(func() {
		s.inputs()
		s.views.axes = layout.Axes{}
		for _, p := range out.Body.Params {
			if t := p.Tensor(); t != nil {
				for _, d := range t.Dims {
					d.Symbols(func(name string) { s.views.axes[name] = true })
				}
			}
		}
		s.outputs(s.block(src.Body))
		if s.rankNeeded {
			panic(&failure{d: s.openRanks[0], found: s.findings})
		}
	})
	if s.build.scratch != nil {
		s.build.scratch.Body.Clear()
		m.RemoveFunc(s.build.scratch)
	}
	if end.verdict != done {
		m.RemoveFunc(out)
		found, problems := end.problems()
		return found, &diag.List{Table: &m.Locs, Items: problems}
	}
	for _, what := range s.assumed {
		m.Assume(what)
	}
	for _, l := range s.least {
		m.AtLeast(l.symbol, l.n)
	}
	m.RemoveFunc(src)
	m.RemoveFunc(out)
	// the specialized function takes the place of the source, helpers go
	for _, f := range append([]*ssa.Func(nil), m.Funcs...) {
		m.RemoveFunc(f)
	}
	m.AdoptFunc(out, "main")
	m.Root, m.Inputs = nil, nil
	return s.findings, nil
}

// problems is how the ending of a whole program is reported.
func (e ending) problems() (findings, []diag.Diagnostic) {
	switch e.verdict {
	case raises:
		return findings{}, []diag.Diagnostic{{ID: "raises", Loc: e.raised.loc, Op: "prim::RaiseException", Message: "the model raises for these inputs: " + e.raised.message, Hint: "check the shapes and types given by --input"}}
	case mustUnroll:
		return findings{}, []diag.Diagnostic{{ID: "dynamic-container", Loc: e.unroll.loc, Message: e.unroll.reason}}
	}
	f := e.failure
	if id := f.d.ID; len(f.found.causes) > 0 && (id == "unknown-shape" || id == "unknown-dtype" || id == "dynamic-rank") {
		// An unknown type usually follows from an operator that could not be lowered: report those instead.
		return f.found, f.found.causes
	}
	return f.found, []diag.Diagnostic{f.d}
}

// builder appends operators to the target function.
type builder struct {
	*context
	out     *ssa.Func
	cur     *ssa.Block
	consts  map[string]*ssa.Value
	lastCon *ssa.Op // the last hoisted constant
	names   map[string]bool
	scratch *ssa.Func
	nscr    int
}

// module gives the objects and weights of the source program as values.
type module struct {
	*context
	build   *builder
	heap    *heap.Heap
	weights map[*tensor.Tensor]*py.Tensor
	shared  map[*tensor.Storage][]overlap // weights by the memory that they are in
	objects map[*ssa.Object]*py.Object
}

// values turns values of the program into values of the target function, and back.
type values struct {
	*context
	build  *builder
	heap   *heap.Heap
	module *module
}

// views evaluates operators whose results share memory with their operands.
type views struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	axes  layout.Axes
}

// writes evaluates operators that write to tensors.
type writes struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	views *views
}

// containers evaluates operators on lists, dicts, tuples and strings.
type containers struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	views *views
}

func newWalk(m *ssa.Module, src, out *ssa.Func, opts Options) *walk {
	c := &context{m: m, opts: opts}
	h := &heap.Heap{}
	b := &builder{context: c, out: out, cur: out.Body, consts: map[string]*ssa.Value{}}
	mod := &module{context: c, build: b, heap: h, weights: map[*tensor.Tensor]*py.Tensor{}, objects: map[*ssa.Object]*py.Object{}}
	vals := &values{context: c, build: b, heap: h, module: mod}
	vw := &views{context: c, build: b, heap: h, vals: vals, axes: layout.Axes{}}
	wr := &writes{context: c, build: b, heap: h, vals: vals, views: vw}
	lists := &containers{context: c, build: b, heap: h, vals: vals, views: vw}
	return &walk{context: c, build: b, heap: h, module: mod, vals: vals, views: vw, writes: wr, lists: lists, src: src, env: make([]py.Value, src.NumValues())}
}

// name keeps the user's variable name on the value that was emitted for it.
func (s *builder) name(x py.Value, name string) {
	if name == "" {
		return
	}
	var v *ssa.Value
	switch x := x.(type) {
	case py.Dynamic:
		v = x.Value
	case *py.Tensor:
		v = x.Val
	}
	if v == nil || v.Name != "" || v.Def() == nil || v.Def().Kind == "prim::Constant" {
		return
	}
	if s.names == nil {
		s.names = map[string]bool{}
	}
	if s.names[name] {
		stem := strings.TrimRight(name, "0123456789")
		stem = strings.TrimSuffix(stem, ".")
		if stem == "" {
			return
		}
		for i := 1; ; i++ {
			name = fmt.Sprintf("%s.%d", stem, i)
			if !s.names[name] {
				break
			}
			if i > 16 { // long runs of one name: leave it to the printer
				return
			}
		}
	}
	s.names[name] = true
	v.Name = name
}

// inputs makes the parameters of the target function.
func (s *walk) inputs() {
	known := map[string]bool{}
	byName := map[string]ssa.Input{}
	for _, a := range s.m.Inputs {
		if _, dup := byName[a.Name]; dup {
			s.fail("input-spec", "input %q is given twice", a.Name)
		}
		byName[a.Name] = a
	}
	params := s.src.Body.Params
	var free []*ssa.Value
	for i, p := range params {
		if c, ok := p.Type.(*ssa.ClassType); ok && i == 0 {
			if s.m.Root == nil {
				s.put(p, &py.Object{Class: c.Name, Attrs: map[string]*journal.Cell{}})
			} else {
				s.put(p, s.module.object(s.m.Root))
			}
			continue
		}
		free = append(free, p)
	}
	for _, p := range free {
		known[argName(p.Name)] = true
	}
	for _, a := range s.m.Inputs {
		if !known[a.Name] {
			var have []string
			for _, p := range free {
				have = append(have, argName(p.Name))
			}
			s.fail("input-spec", "the model has no input %q (it has: %s)", a.Name, strings.Join(have, ", "))
		}
	}
	var trees []any
	nested := false
	for _, p := range free {
		name := argName(p.Name)
		a, ok := byName[name]
		if !ok {
			a = defaultArg(name, p.Type)
		}
		tree, inner := inputTree(name, a)
		trees, nested = append(trees, []any{name, tree}), nested || inner
		s.put(p, s.input(name, a, p.Type))
	}
	if nested {
		if text, err := json.Marshal(map[string]any{"arguments": trees}); err == nil { // strings and lists always have a form
			s.m.SetMetadata("aton.inputs", string(text))
		}
	}
}

// argName strips the number that PyTorch adds to make a graph's names unique: x.1.
func argName(n string) string {
	i := strings.LastIndexByte(n, '.')
	if i > 0 && i+1 < len(n) && strings.Trim(n[i+1:], "0123456789") == "" {
		return n[:i]
	}
	return n
}

func defaultArg(name string, t ssa.Type) ssa.Input {
	switch t := t.(type) {
	case *ssa.OptionalType:
		none := ssa.None
		return ssa.Input{Name: name, Const: &none}
	case *ssa.TupleType:
		a := ssa.Input{Name: name, Container: "tuple", Type: t}
		for i, e := range t.Elems {
			n := fmt.Sprint(i)
			if t.Names != nil {
				n = t.Names[i]
			}
			a.Elems = append(a.Elems, defaultArg(n, e))
		}
		return a
	}
	return ssa.Input{Name: name, Type: t}
}

func (s *walk) input(name string, a ssa.Input, declared ssa.Type) py.Value {
	if a.Const != nil {
		l := *a.Const
		if l.Kind == ssa.IntLit && declared == ssa.FloatType {
			l = ssa.Float(float64(l.Int()))
		}
		return s.module.fromLiteral(l, declared)
	}
	switch a.Container {
	case "list", "tuple":
		var elems []py.Value
		for i, e := range a.Elems {
			n := e.Name
			if n == "" || a.Container == "list" {
				n = fmt.Sprint(i)
			}
			elems = append(elems, s.input(name+"."+n, e, py.MemberType(declared, i)))
		}
		if a.Container == "tuple" {
			if _, ok := declared.(*ssa.ListType); !ok {
				tt, _ := declared.(*ssa.TupleType)
				return &py.Tuple{Elems: elems, Typ: tt}
			}
		}
		return s.heap.List(py.MemberType(declared, 0), elems)
	case "dict":
		d := &py.DictState{}
		for i, e := range a.Elems {
			d.Keys = append(d.Keys, a.Keys[i])
			d.Vals = append(d.Vals, s.input(name+"."+py.KeyName(a.Keys[i]), e, py.MemberType(declared, 1)))
		}
		return &py.Dict{Cell: s.heap.New(d), Typ: declared}
	}
	t := a.Type
	if t == nil {
		t = declared
	}
	if o, ok := t.(*ssa.OptionalType); ok {
		t = o.Elem
	}
	switch t {
	case ssa.IntType, ssa.BoolType, ssa.FloatType, ssa.NumberType:
		if b, ok := t.(ssa.Basic); ok && b == ssa.NumberType {
			t = ssa.FloatType
		}
		p := s.build.out.Body.AddParam(name, t)
		s.build.names = addName(s.build.names, name)
		if t == ssa.IntType {
			p.Sym = []sym.Expr{sym.Symbol(name, minInt)}
		}
		if d := declared; d != nil && ssa.AsTensor(d) != nil {
			// a number given for a tensor: a rank 0 tensor input
			dt := map[ssa.Type]tensor.DType{ssa.IntType: tensor.Int64, ssa.FloatType: tensor.Float64, ssa.BoolType: tensor.Bool}[t]
			p.Type, p.Sym = ssa.Tensor(dt), nil
			return s.inputTensor(p, name)
		}
		return py.Dyn(p)
	}
	if tt := ssa.AsTensor(t); tt != nil {
		if tt.DType == tensor.Undefined {
			// torch's default; the exporter says so
			s.warnf("input-spec", "input %s has no --input: taken as float32 of unknown shape", name)
			tt = tt.WithDType(tensor.Float32)
		}
		p := s.build.out.Body.AddParam(name, atLeastOne(tt))
		s.build.names = addName(s.build.names, name)
		if declared == ssa.IntType || declared == ssa.FloatType || declared == ssa.BoolType {
			p.Type = declared
			return py.Dyn(p)
		}
		return s.inputTensor(p, name)
	}
	s.fail("input-spec", "input %s of type %s needs a --input", name, t)
	return nil
}

// atLeastOne says of dynamic axes that they are not empty.
func atLeastOne(t *ssa.TensorType) *ssa.TensorType {
	dims := make([]sym.Expr, len(t.Dims))
	for i, d := range t.Dims {
		dims[i] = d.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, max(1, sym.Least(d, name))), true })
	}
	c := *t
	c.Dims = dims
	return &c
}

func addName(m map[string]bool, n string) map[string]bool {
	if m == nil {
		m = map[string]bool{}
	}
	m[n] = true
	return m
}

func (s *walk) inputTensor(p *ssa.Value, name string) py.Value {
	t := s.heap.Tensor(p)
	heap.ViewOf(t).Storage.Origin, heap.ViewOf(t).Storage.Name = "input", name
	return t
}

// unrankedInput reports that the user left the rank of an input open.
func (s *walk) unrankedInput() bool {
	for _, p := range s.build.out.Body.Params {
		if t := p.Tensor(); t != nil && !t.Ranked {
			return true
		}
	}
	return false
}

const minInt = -1 << 63
