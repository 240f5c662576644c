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
}

// Run specializes the main function in place. Problems of the user's program
// come as *diag.List; warnings are returned beside.
//
// A program whose ranks hang on sizes at run time is tried as it is first. Where an operator needs a rank that is not
// known then, it is tried again for axes of 2 and more, and for tensors that have elements.
func Run(m *ssa.Module, opts Options) (*diag.List, error) {
	warnings, ranks, err := run(m, opts)
	first := err
	if err != nil && ranks.squeezed > 0 {
		opts.plural = true
		warnings, ranks, err = run(m, opts)
	}
	if err != nil && ranks.empty > 0 {
		opts.nonEmpty = true
		warnings, _, err = run(m, opts)
	}
	if err != nil {
		err = first
	}
	return warnings, err
}

// openRanks counts the places where a size at run time decides the number of dimensions.
type openRanks struct {
	empty    int // Ifs whose results have another rank where they have no elements
	squeezed int // squeezes of an axis that may be 1
}

func run(m *ssa.Module, opts Options) (warnings *diag.List, ranks openRanks, err error) {
	src := m.Main()
	if src == nil {
		return nil, ranks, errors.New("the module has no function")
	}
	if opts.Table == nil {
		opts.Table = aten.NewTable()
	}
	if opts.UnrollMax == 0 {
		opts.UnrollMax = 1024
	}
	aten.BindSchemas(m) // graph text does not name overloads
	out := m.NewFunc(src.Name + ".specialized")
	s := newSpec(m, src, out, opts)
	defer func() {
		switch r := recover().(type) {
		case nil:
			return
		case *failure:
			if len(s.causes) > 0 && (r.d.ID == "unknown-shape" || r.d.ID == "unknown-dtype" || r.d.ID == "dynamic-rank") {
				// An unknown type usually follows from an operator that could not be lowered: report those instead.
				s.errs.Items = append(s.errs.Items, s.causes...)
				break
			}
			s.errs.Add(r.d)
		case raised:
			s.errs.Add(diag.Diagnostic{ID: "raises", Loc: r.loc, Op: "prim::RaiseException", Message: "the model raises for these inputs: " + r.message, Hint: "check the shapes and types given by --input"})
		case needUnroll:
			s.errs.Add(diag.Diagnostic{ID: "dynamic-container", Loc: r.loc, Message: r.reason})
		default:
			panic(r)
		}
		m.RemoveFunc(out)
		warnings, ranks, err = s.warn, openRanks{s.ranks, len(s.openRanks)}, s.errs.Err()
	}()
	s.inputs()
	s.views.axes = layout.Axes{}
	for _, p := range out.Body.Params {
		if t := p.Tensor(); t != nil {
			for _, d := range t.Dims {
				d.Symbols(func(name string) { s.views.axes[name] = true })
			}
		}
	}
	s.block(src.Body)
	s.outputs(src.Body)
	if s.rankNeeded {
		panic(&failure{s.openRanks[0]})
	}
	m.RemoveFunc(src)
	m.RemoveFunc(out)
	// the specialized function takes the place of the source, helpers go
	for _, f := range append([]*ssa.Func(nil), m.Funcs...) {
		m.RemoveFunc(f)
	}
	m.AdoptFunc(out, "main")
	m.Root, m.Inputs = nil, nil
	if s.build.scratch != nil {
		s.build.scratch.Body.Clear()
		m.RemoveFunc(s.build.scratch)
	}
	return s.warn, openRanks{s.ranks, len(s.openRanks)}, s.errs.Err()
}

// context is what all parts of the pass share: the module, the options, the place in the source program that is being
// evaluated, and what is reported of it.
type context struct {
	m    *ssa.Module
	opts Options
	loc  diag.Loc
	op   *ssa.Op // being evaluated

	warn, errs *diag.List
	ranks      int // results of Ifs with another rank where they have no elements
	// typeless is set when an operator of a user gives a tensor of unknown rank.
	typeless bool
	// causes are the operators whose lowering failed for reasons of their own, so that they have no known types.
	causes []diag.Diagnostic
	// openRanks are the places where a size at run time decides a rank. Where an operator needs the rank, they are the cause.
	openRanks  []diag.Diagnostic
	rankNeeded bool
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
	build   *builder
	heap    *heap.Heap
	vals    *values
	views   *views
	changed []stateChange // state that the program changes, in the order of the first write
}

// containers evaluates operators on lists, dicts, tuples and strings.
type containers struct {
	*context
	build *builder
	heap  *heap.Heap
	vals  *values
	views *views
}

// spec is the walk over the source program.
type spec struct {
	*context
	build  *builder
	heap   *heap.Heap
	module *module
	vals   *values
	views  *views
	writes *writes
	lists  *containers

	src   *ssa.Func
	env   []py.Value // by ID of the source value
	calls int
}

func newSpec(m *ssa.Module, src, out *ssa.Func, opts Options) *spec {
	c := &context{m: m, opts: opts, warn: &diag.List{Table: &m.Locs}, errs: &diag.List{Table: &m.Locs}}
	h := &heap.Heap{}
	b := &builder{context: c, out: out, cur: out.Body, consts: map[string]*ssa.Value{}}
	mod := &module{context: c, build: b, heap: h, weights: map[*tensor.Tensor]*py.Tensor{}, objects: map[*ssa.Object]*py.Object{}}
	vals := &values{context: c, build: b, heap: h, module: mod}
	vw := &views{context: c, build: b, heap: h, vals: vals, axes: layout.Axes{}}
	wr := &writes{context: c, build: b, heap: h, vals: vals, views: vw}
	lists := &containers{context: c, build: b, heap: h, vals: vals, views: vw}
	return &spec{context: c, build: b, heap: h, module: mod, vals: vals, views: vw, writes: wr, lists: lists, src: src, env: make([]py.Value, src.NumValues())}
}

// failure aborts the pass with a message at the user's line.
type failure struct{ d diag.Diagnostic }

// raised ends a path of the program that raises an exception.
type raised struct {
	loc     diag.Loc
	message string
}

// needUnroll says that a loop cannot stay a loop.
type needUnroll struct {
	loc    diag.Loc
	reason string
}

func (s *context) fail(id, format string, args ...any) {
	op := ""
	if s.op != nil {
		op = string(s.op.Kind)
	}
	panic(&failure{diag.Diagnostic{ID: id, Loc: s.loc, Op: op, Message: fmt.Sprintf(format, args...)}})
}

// raised is the end of the path at hand: PyTorch raises there.
func (s *context) raised(message string) raised { return raised{s.loc, message} }

func (s *context) warnf(id, format string, args ...any) {
	d := diag.Diagnostic{Severity: diag.Warning, ID: id, Loc: s.loc, Message: fmt.Sprintf(format, args...)}
	if s.op != nil {
		d.Op = string(s.op.Kind)
	}
	s.warn.Add(d)
}

func (s *context) unroll(format string, args ...any) {
	panic(needUnroll{s.loc, fmt.Sprintf(format, args...)})
}

// get is what a source value is known to be.
func (s *spec) get(v *ssa.Value) py.Value {
	x := s.env[v.ID]
	if x == nil {
		s.fail("internal", "%%%s has no value here", v.Name)
	}
	return x
}

func (s *spec) put(v *ssa.Value, x py.Value) { s.env[v.ID] = x }

// block evaluates the ops of a source block in the current target block.
func (s *spec) block(b *ssa.Block) {
	for o := range b.Ops() {
		s.eval(o)
	}
}

func (s *spec) eval(o *ssa.Op) {
	savedLoc, savedOp := s.loc, s.op
	s.op = o
	if o.Loc != 0 {
		s.loc = o.Loc
	}
	switch o.Kind {
	case "prim::If":
		s.ifOp(o)
	case "prim::Loop":
		s.loopOp(o)
	default:
		args := make([]py.Value, o.NumOperands())
		for i := range args {
			args[i] = s.get(o.Operand(i))
		}
		rs := s.apply(o, args)
		if len(rs) != len(o.Results) {
			s.fail("internal", "gives %d results for %d", len(rs), len(o.Results))
		}
		for i, r := range rs {
			s.build.name(r, o.Results[i].Name)
			s.put(o.Results[i], r)
		}
	}
	s.loc, s.op = savedLoc, savedOp
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
func (s *spec) inputs() {
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

func (s *spec) input(name string, a ssa.Input, declared ssa.Type) py.Value {
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

func (s *spec) inputTensor(p *ssa.Value, name string) py.Value {
	t := s.heap.Tensor(p)
	heap.ViewOf(t).Storage.Origin, heap.ViewOf(t).Storage.Name = "input", name
	return t
}

// unrankedInput reports that the user left the rank of an input open.
func (s *spec) unrankedInput() bool {
	for _, p := range s.build.out.Body.Params {
		if t := p.Tensor(); t != nil && !t.Ranked {
			return true
		}
	}
	return false
}

const minInt = -1 << 63
