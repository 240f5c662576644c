package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/frontend/archive"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxGraphs bounds the nesting of graphs.
const maxGraphs = 200

// importer builds the module of one program.
type importer struct {
	*reader
	p      *program
	m      *ssa.Module
	f      *ssa.Func
	syms   *symbols
	w      *weights
	leaves []userLeaf
	state  map[string]*ssa.Value // buffers and parameters that the program changes, and buffers that are inputs, by FQN
	guards *guards
	// sources has the lines of the user's program that stack traces quote. The module keeps it, and nothing else of the importer.
	sources *diag.SourceFiles
	free    []string // symbols of the inputs, in the order in which they occur

	names    *ssa.Names
	consts   map[string]*ssa.Value
	ints     map[int64]*ssa.Value
	head     ssa.Head // the constants at the start
	frames   map[locKey]diag.Frame
	depth    int
	ops      int
	asserts  []assertion
	batching batching
	wrapped  map[string]wrapped // inputs that are objects of tensor subclasses, and their parts that are
	parts    map[*tensor.Tensor]*ssa.Value
	values   map[string]string // of symbols that depend on data: the value that is one, and its line
}

func newImporter(r *reader, p *program) *importer {
	im := &importer{reader: r, p: p, m: newModule(), consts: map[string]*ssa.Value{},
		ints: map[int64]*ssa.Value{}, frames: map[locKey]diag.Frame{}, values: map[string]string{},
		wrapped: map[string]wrapped{}, parts: map[*tensor.Tensor]*ssa.Value{}, state: map[string]*ssa.Value{}}
	im.syms = newSymbols(r.Warnf)
	im.sources = new(diag.SourceFiles)
	return im
}

// scope is one graph while it is built: its values by name, and what is around it.
type scope struct {
	g      *graph
	b      *ssa.Block
	vals   map[string]*ssa.Value
	loc    diag.Loc // of the call that holds the graph
	region *autocast
	node   *node // being built
	at     diag.Loc
}

// failNode ends the reading with an error at a call.
func (im *importer) failNode(sc *scope, hint, format string, args ...any) {
	e := &archive.Error{File: im.File, Record: im.record, Offset: -1, Err: fmt.Errorf(format, args...), Hint: hint}
	if sc.node != nil {
		e.Node = sc.node.target
		if at := im.m.Locs.String(sc.at); at != "" {
			e.Node = at + ": " + e.Node
		}
		if len(sc.node.outputs) > 0 && sc.node.outputs[0].isName() {
			e.Node += " (" + sc.node.outputs[0].s + ")"
		}
	}
	panic(e)
}

// run builds main.
func (im *importer) run() {
	p := im.p
	if len(p.inputs) != len(p.graph.inputs) {
		im.fail(im.record, "", "the graph has %d inputs and the signature %d", len(p.graph.inputs), len(p.inputs))
	}
	if len(p.outputs) != len(p.graph.outputs) {
		im.fail(im.record, "", "the graph has %d outputs and the signature %d", len(p.graph.outputs), len(p.outputs))
	}
	for _, v := range p.verifiers {
		if v != "TRAINING" && v != "ATEN" && v != "" {
			im.Warnf("the program is of dialect %s; it is read as ATEN", v)
		}
	}
	im.syms.setRanges(p.ranges)
	im.readLeaves()
	im.guards = readGuards(im.syms, im.leaves, p.guards)
	for _, g := range im.guards.bad {
		im.Warnf("a guard is not understood: %s", g)
	}
	im.f = im.m.NewFunc("main")
	im.names, im.head = ssa.NamesOf(im.f), ssa.Head{Block: im.f.Body}
	sc := &scope{g: p.graph, b: im.f.Body, vals: map[string]*ssa.Value{}}
	im.params(sc)
	im.narrow()
	im.constants(sc)
	im.stateNames()
	im.nodes(sc)
	im.results(sc)
	im.document()
}

// readLeaves matches the arguments of the program with the tree of its inputs.
func (im *importer) readLeaves() {
	p := im.p
	var tree []leaf
	if p.inTree != "" {
		t, err := p.inputLeaves()
		if err != nil {
			im.Warnf("the tree of the inputs is not understood: %v", err)
		}
		tree = t
	}
	for i := range p.inputs {
		in := &p.inputs[i]
		if in.kind != userInput && in.kind != constantInput {
			continue
		}
		l := userLeaf{name: in.name}
		if k := len(im.leaves); k < len(tree) {
			l.leaf = tree[k]
		}
		switch {
		case in.kind == constantInput:
			l.fixed = &in.arg
		case in.arg.tag == tagTensor:
			l.name = in.arg.s
			if m := p.graph.tensors[in.arg.s]; m != nil {
				l.sizes = m.sizes
			}
		case in.arg.tag == tagSymInt:
			l.name = in.arg.s
			v := p.graph.ints[in.arg.s]
			l.value = &v
		default:
			l.name = in.arg.s
		}
		im.leaves = append(im.leaves, l)
	}
	if tree != nil && len(tree) != len(im.leaves) {
		im.Warnf("the tree of the inputs has %d leaves for %d inputs", len(tree), len(im.leaves))
		for i := range im.leaves {
			im.leaves[i].leaf = leaf{}
		}
	}
	// the symbol of an int input is the input itself, as it is for the passes
	for _, l := range im.leaves {
		if l.value == nil || l.value.expr == "" {
			continue
		}
		if name := symbolOf(l.value.expr); name != "" {
			im.syms.table[name] = sym.Symbol(symbolName(l.name), -1<<63)
		}
	}
}

// tensorType is the type that the file claims for a value.
func (im *importer) tensorType(g *graph, name string) *ssa.TensorType {
	m := g.tensors[name]
	if m == nil {
		return ssa.AnyTensor
	}
	dims := make([]sym.Expr, len(m.sizes))
	for i, s := range m.sizes {
		dims[i] = im.syms.size(s)
	}
	return ssa.Tensor(dtypeOf(int64(m.dtype)), dims...)
}

func (im *importer) valueType(g *graph, a *argument) ssa.Type {
	switch a.tag {
	case tagTensor:
		return im.tensorType(g, a.s)
	case tagSymInt:
		return ssa.IntType
	case tagSymFloat:
		return ssa.FloatType
	case tagSymBool:
		return ssa.BoolType
	case tagList:
		return &ssa.ListType{Elem: ssa.AnyTensor}
	}
	return ssa.NoneType
}

// params makes the parameters of main.
func (im *importer) params(sc *scope) {
	for i := range im.p.inputs {
		in := &im.p.inputs[i]
		if in.kind != userInput {
			continue
		}
		a := &in.arg
		if !a.isName() {
			im.fail(im.record, "", "an input is %v", a.tag)
		}
		if m := im.p.graph.tensors[a.s]; a.tag == tagTensor && m != nil {
			if m.layout != 7 {
				im.fail(im.record, "make it dense before exporting", "input %s is not a dense tensor (layout %d)", a.s, m.layout)
			}
			if dtypeOf(int64(m.dtype)) == tensor.Undefined {
				im.fail(im.record, "", "input %s has the element type %d, which is not known", a.s, m.dtype)
			}
		}
		if sc.vals[a.s] != nil {
			im.fail(im.record, "", "there are two inputs %s", a.s)
		}
		v := im.f.Body.AddParam(im.names.Unique(a.s), im.valueType(im.p.graph, a))
		if a.tag == tagSymInt {
			v.Sym = []sym.Expr{im.syms.size(im.p.graph.ints[a.s])}
		}
		sc.vals[a.s] = v
	}
	im.free = im.symbolsOf(im.f.Body.Params)
	im.w = im.openWeights()
	im.stateInputs(sc)
}

// stateInputs makes inputs of the parameters, buffers and constants that specs name. A program is made for the sizes that these have.
func (im *importer) stateInputs(sc *scope) {
	var names []string
	for i := range im.p.inputs {
		in := &im.p.inputs[i]
		if in.kind != buffer && in.kind != parameter && in.kind != tensorConstant || im.stateSpec(in.target) == nil || im.w.subclass(in.target) != nil {
			continue
		}
		t := im.w.get(in.target)
		v := im.f.Body.AddParam(im.names.Unique(in.target), ssa.TensorOf(t))
		im.parts[t] = v // the other names of the tensor too
		sc.vals[in.arg.s] = v
		im.state[in.target] = v
		names = append(names, v.Name)
	}
	if len(names) > 0 {
		im.m.SetMetadata(ssa.StateInputs, strings.Join(names, ","))
	}
}

// stateSpec is the spec that names a parameter, a buffer or a constant, and no input of the program.
func (im *importer) stateSpec(target string) *spec.Input {
	for i := range im.opts.Inputs {
		if in := &im.opts.Inputs[i]; in.Name == target && len(im.group(target)) == 0 {
			return in
		}
	}
	return nil
}

// symbolsOf lists the symbols in the sizes of values.
func (im *importer) symbolsOf(vs []*ssa.Value) []string {
	var names []string
	seen := map[string]bool{}
	add := func(n string) {
		if !seen[n] {
			seen[n] = true
			names = append(names, n)
		}
	}
	for _, v := range vs {
		if t := v.Tensor(); t != nil {
			for _, d := range t.Dims {
				d.Symbols(add)
			}
		}
		for _, e := range v.Sym {
			e.Symbols(add)
		}
	}
	return names
}

// constants makes the weights.
func (im *importer) constants(sc *scope) {
	changed := map[string]bool{}
	for i := range im.p.outputs {
		switch out := &im.p.outputs[i]; out.kind {
		case bufferMutation, parameterMutation:
			changed[out.target] = true
		case inputMutation:
			if v := sc.vals[out.target]; v != nil && v.Param() != nil { // the program reads what it was before
				im.state[out.target] = v
				sc.vals[out.target] = im.emit(sc, sc.b, "aten::clone", "", v.Type, v, im.constant(ssa.None))
			}
		}
	}
	for i := range im.p.inputs {
		in := &im.p.inputs[i]
		switch in.kind {
		case parameter, buffer, tensorConstant:
			if o := im.w.subclass(in.target); o != nil {
				im.wrapped[in.arg.s] = wrapped{in.target, o}
				continue
			}
			v := im.state[in.target]
			if v == nil {
				v = im.weight(im.w.get(in.target), in.target)
			}
			if changed[in.target] { // the program reads what it was before
				im.state[in.target] = v
				v = im.emit(sc, sc.b, "aten::clone", "", v.Type, v, im.constant(ssa.None))
			}
			sc.vals[in.arg.s] = v
		}
	}
	for _, c := range sc.g.constants {
		t, ok := im.w.unpickle(im.record, c.data).(*tensor.Tensor)
		if !ok {
			im.fail(im.record, "", "the constant %q is no tensor", c.name)
		}
		o := im.hoist(ssa.TensorOf(t))
		o.SetAttr("value", ssa.TensorValue(t))
		o.Results[0].Name = im.names.Unique(c.name)
		sc.vals[c.name] = o.Results[0]
	}
}

// stateNames lists the parameters and buffers in the order of the state dict, one of several names of a tensor.
func (im *importer) stateNames() {
	var names []string
	seen := map[string]bool{}
	for i := range im.p.inputs {
		if in := &im.p.inputs[i]; in.kind == parameter || in.kind == buffer {
			name := in.target
			if im.w.subclass(name) == nil {
				if v := im.parts[im.w.get(name)]; v != nil && v.Name != "" {
					name = v.Name
				}
			}
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	im.m.State = stateOrder(names)
}

// weight makes a weight; a tensor that several names refer to is one value.
func (im *importer) weight(t *tensor.Tensor, name string) *ssa.Value {
	v := im.parts[t]
	if v == nil {
		o := im.hoist(ssa.TensorOf(t))
		o.SetAttr("value", ssa.TensorValue(t))
		v = o.Results[0]
		v.Name = im.names.Unique(name)
		im.parts[t] = v
	}
	return v
}

// hoist adds a constant behind those that are there, before all other operators.
func (im *importer) hoist(t ssa.Type) *ssa.Op {
	return im.head.Insert("prim::Constant", 0, t)
}

// constant gives a literal as a value; equal ones are one.
func (im *importer) constant(l ssa.Literal) *ssa.Value {
	if l.Kind == ssa.IntLit {
		if v := im.ints[l.Int()]; v != nil {
			return v
		}
	}
	key := ""
	if l.Kind != ssa.IntLit {
		key = l.Type().String() + " " + l.String()
		if v := im.consts[key]; v != nil {
			return v
		}
	}
	o := im.hoist(l.Type())
	if !l.IsNone() {
		o.SetAttr("value", l)
	}
	v := o.Results[0]
	if l.Kind == ssa.IntLit {
		im.ints[l.Int()] = v
	} else {
		im.consts[key] = v
	}
	return v
}

// inline builds a graph into the block b on the given operands and gives its results.
func (im *importer) inline(sc *scope, b *ssa.Block, g *graph, operands []*ssa.Value, region *autocast) []*ssa.Value {
	if len(g.inputs) != len(operands) {
		im.failNode(sc, "", "a graph of %d inputs is called with %d", len(g.inputs), len(operands))
	}
	if im.depth++; im.depth > maxGraphs {
		im.failNode(sc, "", "graphs are nested too deeply")
	}
	in := &scope{g: g, b: b, vals: make(map[string]*ssa.Value, len(operands)), loc: sc.at, region: region}
	for i := range g.inputs {
		if g.inputs[i].isName() {
			in.vals[g.inputs[i].s] = operands[i]
		}
	}
	im.nodes(in)
	out := make([]*ssa.Value, len(g.outputs))
	for i := range g.outputs {
		out[i] = im.value(in, &g.outputs[i], nil)
	}
	im.depth--
	return out
}

func (im *importer) nodes(sc *scope) {
	for i := range sc.g.nodes {
		n := &sc.g.nodes[i]
		sc.node, sc.at = n, im.loc(n, sc.loc)
		if im.ops++; im.ops > im.opts.MaxOps {
			im.failNode(sc, "", "more than %d calls", im.opts.MaxOps)
		}
		im.call(sc, n)
	}
	sc.node = nil
}

// value gives an argument as a value; t is the type that is asked for, nil if unknown.
func (im *importer) value(sc *scope, a *argument, t ssa.Type) *ssa.Value {
	if o, ok := t.(*ssa.OptionalType); ok && a.tag != tagNone {
		t = o.Elem
	}
	if lt, ok := t.(*ssa.ListType); ok && a.tag != tagList && a.tag != tagNone && ssa.AsTensor(lt.Elem) == nil {
		// a number where a list is asked for
		return im.list(sc, []*ssa.Value{im.value(sc, a, lt.Elem)}, lt.Elem)
	}
	switch a.tag {
	case tagTensor, tagSymInt, tagSymFloat, tagSymBool:
		v := sc.vals[a.s]
		if o, ok := im.wrapped[a.s]; ok && v == nil {
			im.failNode(sc, "save ep.run_decompositions({}), which resolves it into operators on its parts", "%s is a tensor of class %s, and is used as a whole", o.name, o.object.Class)
		}
		if v == nil {
			im.failNode(sc, "", "the value %q is not defined", a.s)
		}
		return v
	case tagList:
		var elem ssa.Type
		if lt, ok := t.(*ssa.ListType); ok {
			elem = lt.Elem
		}
		vs := make([]*ssa.Value, len(a.list))
		for i := range a.list {
			vs[i] = im.value(sc, &a.list[i], elem)
		}
		return im.list(sc, vs, elem)
	case tagObject:
		im.failNode(sc, "", "an object of class %s is used, which has no form in ONNX", a.s)
	case tagGraph:
		im.failNode(sc, "", "the operator takes a graph, which is not supported")
	}
	l, ok := im.literal(a, t)
	if !ok {
		im.failNode(sc, "", "an argument that is %v is not supported here", a.tag)
	}
	return im.constant(l)
}

func (im *importer) list(sc *scope, vs []*ssa.Value, elem ssa.Type) *ssa.Value {
	if elem == nil {
		elem = ssa.AnyTensor
		none := false
		for _, v := range vs {
			if v.Type == ssa.NoneType {
				none = true
			} else if ssa.AsTensor(v.Type) == nil {
				elem = v.Type
			}
		}
		if none {
			elem = &ssa.OptionalType{Elem: elem}
		}
	}
	return sc.b.Append("prim::ListConstruct", sc.at, vs, &ssa.ListType{Elem: elem}).Results[0]
}

// literal gives an argument that is no value of the graph.
func (im *importer) literal(a *argument, t ssa.Type) (ssa.Literal, bool) {
	switch a.tag {
	case tagNone:
		return ssa.None, true
	case tagInt:
		if t == ssa.FloatType {
			return ssa.Float(float64(a.n)), true
		}
		if t == ssa.BoolType {
			return ssa.Bool(a.n != 0), true
		}
		return ssa.Int(a.n), true
	case tagFloat:
		return ssa.Float(a.f), true
	case tagComplex:
		return ssa.Complex(complex(a.f, a.im)), true
	case tagBool:
		if t == ssa.IntType {
			return ssa.Int(a.n), true
		}
		return ssa.Bool(a.n != 0), true
	case tagString, tagOperator:
		return ssa.Str(a.s), true
	case tagDevice:
		return ssa.Device(a.s), true
	case tagDType:
		d := dtypeOf(a.n)
		return ssa.Int(int64(d.Code())), d != tensor.Undefined
	case tagLayout:
		n, ok := layoutOf(a.n)
		return ssa.Int(n), ok
	case tagMemoryFormat:
		n, ok := memoryFormatOf(a.n)
		return ssa.Int(n), ok
	}
	return ssa.None, false
}

// target splits torch.ops.NS.NAME.OVERLOAD.
func target(s string) (k ssa.Kind, overload string, ok bool) {
	s, ok = strings.CutPrefix(s, "torch.ops.")
	if !ok {
		return "", "", false
	}
	ns, s, ok1 := strings.Cut(s, ".")
	i := strings.LastIndexByte(s, '.')
	if !ok1 || i <= 0 || ns == "" {
		return "", "", false
	}
	name, overload := s[:i], s[i+1:]
	if overload == "default" {
		overload = ""
	}
	for _, part := range []string{ns, name} {
		for j := range len(part) {
			if !isWord(part[j]) {
				return "", "", false
			}
		}
	}
	return ssa.Kind(ns + "::" + name), overload, true
}

// call builds one call.
func (im *importer) call(sc *scope, n *node) {
	if name, ok := strings.CutPrefix(n.target, "torch.ops.higher_order."); ok {
		im.higherOrder(sc, n, name)
		return
	}
	k, overload, ok := target(n.target)
	if !ok {
		im.function(sc, n)
		return
	}
	args := make([]*argument, len(n.inputs))
	names := make([]string, len(n.inputs))
	for i := range n.inputs {
		args[i], names[i] = &n.inputs[i].argument, n.inputs[i].name
	}
	if im.special(sc, n, k, overload, args, names) {
		return
	}
	im.bind(sc, n.outputs, im.operator(sc, k, overload, args, names, n.outputs))
}

// operator emits an operator of torch.ops with arguments by name, and gives its results.
func (im *importer) operator(sc *scope, k ssa.Kind, overload string, args []*argument, names []string, outputs []argument) []*ssa.Value {
	schema := im.opts.Table.Schema(k, overload)
	if schema == nil {
		return im.custom(sc, k, overload, args, names, outputs)
	}
	operands := make([]*ssa.Value, len(schema.Args))
	taken := 0
	numbers := false
	for i := range schema.Args {
		f := &schema.Args[i]
		at := -1
		for j, name := range names {
			if name == f.Name {
				at = j
				break
			}
		}
		switch {
		case at >= 0:
			taken++
			operands[i] = im.value(sc, args[at], f.Type)
			if ssa.AsTensor(f.Type) != nil && isNumber(operands[i].Type) {
				numbers = true
			}
		case f.HasDefault:
			operands[i] = im.defaultOf(sc, f)
		default:
			if _, opt := f.Type.(*ssa.OptionalType); !opt {
				im.failNode(sc, "", "the argument %q is missing", f.Name)
			}
			operands[i] = im.constant(ssa.None)
		}
	}
	if taken != len(names) {
		for _, name := range names {
			if schema.Arg(name) < 0 {
				im.failNode(sc, "the file may be of a newer PyTorch", "%s has no argument %q", schema.FullName(), name)
			}
		}
		im.failNode(sc, "", "an argument is given twice")
	}
	if numbers {
		schema = scalarSibling(schema, operands)
	}
	if rs, ok := im.batchedOperator(sc, k, schema, operands, outputs); ok {
		return rs
	}
	if sc.region != nil {
		sc.region.cast(im, sc, k, operands, schema)
	}
	types := make([]ssa.Type, len(schema.Returns))
	for i := range types {
		types[i] = schema.Returns[i].Type
		if i >= len(outputs) {
			continue
		}
		switch a := &outputs[i]; {
		case ssa.AsTensor(types[i]) != nil && a.tag == tagTensor:
			types[i] = im.tensorType(sc.g, a.s)
		case types[i] == ssa.NumberType && a.isName():
			types[i] = im.valueType(sc.g, a)
		}
	}
	o := sc.b.Append(k, sc.at, operands, types...)
	o.Schema = schema
	keepTensor(o)
	return o.Results
}

// keepTensor says that a buffer of rank 0 is a tensor. In the language of TorchScript, which the passes read, a constant
// in that place is a number; what detach gives is not.
func keepTensor(o *ssa.Op) {
	if _, _, ok := aten.NumberOperand(o); !ok {
		return
	}
	v := o.Operand(1)
	d := o.Block().InsertBefore(o, "aten::detach", o.Loc, []*ssa.Value{v}, v.Type)
	d.Schema = aten.Schema(d.Kind, "")
	o.SetOperand(1, d.Results[0])
}

func isNumber(t ssa.Type) bool {
	return t == ssa.IntType || t == ssa.FloatType || t == ssa.BoolType || t == ssa.ComplexType || t == ssa.NumberType
}

// defaultOf is the default of an argument as a value.
func (im *importer) defaultOf(sc *scope, f *ssa.SchemaArg) *ssa.Value {
	l := f.Default
	if l.Kind != ssa.ListLit {
		return im.constant(l)
	}
	elem := l.Elem
	if lt, ok := f.Type.(*ssa.ListType); ok {
		elem = lt.Elem
	}
	vs := make([]*ssa.Value, len(l.Elems))
	for i, e := range l.Elems {
		vs[i] = im.constant(e)
	}
	return im.list(sc, vs, elem)
}

// scalarSibling finds the overload that takes numbers where these operands are
// numbers: aten::add.Scalar for aten::add.Tensor. Where there is none the
// number stays in the tensor's place; it counts as a number there too.
func scalarSibling(schema *ssa.Schema, operands []*ssa.Value) *ssa.Schema {
next:
	for _, s := range aten.Schemas(ssa.Kind(schema.Name)) {
		if s == schema || len(s.Args) != len(schema.Args) || len(s.Returns) != len(schema.Returns) {
			continue
		}
		for i := range s.Args {
			a, b := &s.Args[i], &schema.Args[i]
			if a.Name != b.Name || a.Writes != b.Writes {
				continue next
			}
			number := ssa.AsTensor(b.Type) != nil && isNumber(operands[i].Type)
			if number && a.Type != ssa.NumberType || !number && !ssa.SameType(a.Type, b.Type) {
				continue next
			}
		}
		return s
	}
	return schema
}

// custom emits an operator that is not declared: for a user's symbolic
// function, or to be reported. Its declaration is made up from the call; the
// members of a list that it gives are results of their own.
func (im *importer) custom(sc *scope, k ssa.Kind, overload string, args []*argument, names []string, outputs []argument) []*ssa.Value {
	operands := make([]*ssa.Value, len(args))
	schema := &ssa.Schema{Name: string(k), Overload: overload}
	var text strings.Builder
	for i, a := range args {
		operands[i] = im.value(sc, a, nil)
		im.refuseBatched(sc, operands[i])
		f := ssa.SchemaArg{Name: names[i], Type: operands[i].Type}
		if t := ssa.AsTensor(f.Type); t != nil {
			f.Type = ssa.AnyTensor
		}
		schema.Args = append(schema.Args, f)
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(f.Type.String() + " " + f.Name)
	}
	flat := flatten(outputs)
	types := make([]ssa.Type, len(flat))
	for i := range flat {
		types[i] = im.valueType(sc.g, &flat[i])
		schema.Returns = append(schema.Returns, ssa.SchemaArg{Type: types[i]}) // nothing else knows its type
	}
	schema.SetText(schema.FullName() + "(" + text.String() + ") -> ...")
	o := sc.b.Append(k, sc.at, operands, types...)
	if len(outputs) > 0 && !strings.HasSuffix(string(k), "_") {
		o.Schema = schema // else it writes to arguments, and nobody knows to which
	}
	return o.Results
}

// bind names the results of a call.
func (im *importer) bind(sc *scope, outputs []argument, results []*ssa.Value) {
	if flat := flatten(outputs); len(flat) == len(results) && !slices.ContainsFunc(results, func(v *ssa.Value) bool { _, ok := v.Type.(*ssa.ListType); return ok }) {
		im.bindAll(sc, outputs, results)
		return
	}
	if len(outputs) != len(results) {
		if len(outputs) == 0 { // nothing is used
			return
		}
		im.failNode(sc, "", "the call has %d results in the file, the operator %d", len(outputs), len(results))
	}
	for i := range outputs {
		switch a := &outputs[i]; {
		case a.isName():
			im.define(sc, a.s, results[i])
		case a.tag == tagList:
			types := make([]ssa.Type, len(a.list))
			for j := range types {
				types[j] = im.valueType(sc.g, &a.list[j])
			}
			if _, ok := results[i].Type.(*ssa.ListType); !ok {
				im.failNode(sc, "", "a list of results where the operator gives %s", results[i].Type)
			}
			levels := im.batching.levels[results[i]]
			if len(levels) > 0 {
				for j := range types {
					types[j] = (&batched{im: im, sc: sc}).physical(types[j], levels)
				}
			}
			u := sc.b.Append("prim::ListUnpack", sc.at, []*ssa.Value{results[i]}, types...)
			if len(levels) > 0 {
				for _, v := range u.Results {
					im.batching.levels[v] = levels
				}
			}
			for j := range a.list {
				if a.list[j].isName() {
					im.define(sc, a.list[j].s, u.Results[j])
				}
			}
		}
	}
}

func (im *importer) define(sc *scope, name string, v *ssa.Value) {
	sc.vals[name] = v
	if v.Type == ssa.IntType {
		im.unbacked(sc, name)
	}
	if v.Name == "" && v.Def() != nil && v.Def().Kind != "prim::Constant" {
		v.Name = im.names.Unique(name)
	}
}
