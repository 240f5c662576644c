package onnxfile

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile/check"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/typecheck"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// ReadOptions say how a file is read.
type ReadOptions struct {
	// Repair reads a file that runtimes load although the standard refuses it: a graph without name, domains that are not imported, nodes that are not sorted,
	// initializers that IR version 3 wants among the inputs, LayerNormalization below opset 17, outputs without type or shape, and stated shapes that are not
	// the computed ones. Each change is told as what the module does not keep of the file.
	Repair bool
}

// Read reads a model into a module of one function. What is wrong with the model is a *diag.List of all there is to say.
// Weights stay in the mapped
// file. Operators stay in the encoding of the file's opset; calls of the
// model's own functions are inlined. Types are those that the file states.
func Read(path string) (*ssa.Module, error) { return ReadOptions{}.Read(path) }

// Read is the function of that name with options.
func (o ReadOptions) Read(path string) (*ssa.Module, error) {
	b, err := mapfile.Open(path)
	if err != nil {
		return nil, err
	}
	m, err := o.read(b.Data, filepath.Dir(path))
	var list *diag.List
	switch {
	case errors.As(err, &list):
		return nil, err // as for any model: who shows it says of which file
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m.Keep = append(m.Keep, b)
	return m, nil
}

// Parse reads a model from memory, which the module keeps. External data is refused.
func Parse(b []byte) (*ssa.Module, error) { return ReadOptions{}.Parse(b) }

// Parse is the function of that name with options.
func (o ReadOptions) Parse(b []byte) (*ssa.Module, error) { return o.read(b, "") }

// maxInline bounds the nesting of calls of model-local functions, maxInlined the nodes they make, and maxNodes all nodes.
// maxGraphs bounds the graphs that an operator of another domain has: those of onnxruntime have at most three.
const (
	maxInline  = 64
	maxInlined = 500_000
	maxNodes   = 10_000_000
	maxGraphs  = 64
)

var errTooMany = errors.New("too many nodes")

func (o ReadOptions) read(b []byte, dir string) (*ssa.Module, error) {
	p, graph, err := split(b)
	if err != nil {
		return nil, fmt.Errorf("not an ONNX model: %v", err)
	}
	if graph == nil || p.IrVersion == nil && len(p.OpsetImport) == 0 {
		return nil, fmt.Errorf("not an ONNX model: it has no graph")
	}
	r := &reader{m: ssa.NewModule(onnx.Dialect{}), ext: &externalFiles{dir: dir, files: map[string]*tensor.Storage{}},
		functions: map[string]*onnxpb.FunctionProto{}, used: map[string]int{}}
	g, inits, err := r.splitGraph(graph)
	if err != nil {
		return nil, fmt.Errorf("not an ONNX model: %v", err)
	}
	expand(p, g)
	var repaired repairer
	if o.Repair {
		repaired.model(p, g, inits)
	}
	if err := r.check(p, g, inits, o.Repair); err != nil {
		return nil, err
	}
	r.m.Opsets = map[string]int{}
	for _, o := range p.OpsetImport {
		domain := o.GetDomain()
		if domain == "ai.onnx" {
			domain = ""
		}
		r.m.Opsets[domain] = max(r.m.Opsets[domain], int(o.GetVersion())) // the newest counts
	}
	if _, ok := r.m.Opsets[""]; !ok {
		r.m.Opsets[""] = 1
	}
	r.m.Metadata = keyValues(p.MetadataProps)
	r.m.Producer = p.GetProducerName()
	if name := p.GetProducerName(); name != "" && name != defaultProducer {
		r.m.Producer = strings.TrimSpace(name + " " + p.GetProducerVersion())
		if r.m.GetMetadata(sourceProducer) == "" {
			r.m.SetMetadata(sourceProducer, r.m.Producer)
		}
	}
	r.m.Guarded = true // whoever wrote the file has put the checks in it
	r.m.File.Doc, r.m.File.Domain, r.m.File.Version = p.GetDocString(), p.GetDomain(), p.GetModelVersion()
	for _, f := range p.Functions {
		r.functions[functionKey(f.GetDomain(), f.GetName(), f.GetOverload())] = f
	}
	noteSymbols(g, r.m)
	r.noteDropped(p, g)
	if err := r.graph(g, inits, p.GetIrVersion()); err != nil {
		return nil, err
	}
	for _, b := range r.ext.maps {
		r.m.Keep = append(r.m.Keep, b)
	}
	r.m.File.Dropped = append(r.m.File.Dropped, repaired.told...)
	list := typecheck.Mend(r.m, o.Repair)
	list.Items = append(r.stated, list.Items...)
	for _, d := range list.Items {
		if d.Severity == diag.Warning {
			d.Severity = diag.Error // who tells it says that it is a warning
			r.m.File.Dropped = append(r.m.File.Dropped, list.Format(d))
		}
	}
	return r.m, list.Err()
}

// split takes the graph, which may be large, out of a model.
func split(b []byte) (model *onnxpb.ModelProto, graph []byte, err error) {
	var rest []byte
	err = fields(b, func(num protowire.Number, typ protowire.Type, field, value []byte) error {
		switch {
		case num != fieldModelGraph || typ != protowire.BytesType:
			rest = append(rest, field...)
		case graph == nil:
			graph = value[:len(value):len(value)]
		default:
			graph = append(graph, value...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	model = &onnxpb.ModelProto{}
	return model, graph, proto.Unmarshal(rest, model)
}

// namedTensor is an initializer, or why it cannot be read.
type namedTensor struct {
	name string
	t    *tensor.Tensor
	note noted
	err  error
}

// splitGraph takes the initializers out of a graph without copying their elements.
func (r *reader) splitGraph(b []byte) (g *onnxpb.GraphProto, inits []namedTensor, err error) {
	var rest []byte
	err = fields(b, func(num protowire.Number, typ protowire.Type, field, value []byte) error {
		if num != fieldGraphInitializer || typ != protowire.BytesType {
			rest = append(rest, field...)
			return nil
		}
		p, err := unmarshalTensor(value)
		if err != nil {
			return err
		}
		t, err := tensorOf(p, r.ext)
		inits = append(inits, namedTensor{p.GetName(), t, &onnxpb.TensorProto{DocString: p.DocString, MetadataProps: p.MetadataProps}, err})
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	g = &onnxpb.GraphProto{}
	return g, inits, proto.Unmarshal(rest, g)
}

// check tells all that is wrong with the file, before anything is made of it.
func (r *reader) check(p *onnxpb.ModelProto, g *onnxpb.GraphProto, inits []namedTensor, repair bool) error {
	f := check.File{Model: p, Graph: g, Repaired: repair}
	for _, in := range inits {
		f.Weights = append(f.Weights, in.name)
	}
	list := f.Check(&r.m.Locs)
	for _, in := range inits {
		if in.err != nil {
			list.Add(diag.Diagnostic{ID: check.IDTensor, Message: fmt.Sprintf("initializer %q: %v", in.name, in.err)})
		}
	}
	return list.Err()
}

func functionKey(domain, name, overload string) string {
	if domain == "ai.onnx" {
		domain = ""
	}
	return domain + "\x00" + name + "\x00" + overload
}

type reader struct {
	m         *ssa.Module
	ext       *externalFiles
	functions map[string]*onnxpb.FunctionProto
	used      map[string]int // value names of the function, with how often they were asked for
	nodes     int
	inlined   int               // of these, in calls of functions
	stated    []diag.Diagnostic // types of constants that are stated wrongly
}

// scope resolves names of values; inner graphs see the outer ones.
type scope struct {
	values map[string]*ssa.Value
	types  map[string]*onnxpb.TypeProto
	outer  *scope
	// attrs are the arguments of the model-local function that is being inlined.
	attrs map[string]*onnxpb.AttributeProto
	depth int
	// node is the node whose subgraph or function this is.
	node diag.Loc
}

func newScope(outer *scope) *scope {
	s := &scope{values: map[string]*ssa.Value{}, types: map[string]*onnxpb.TypeProto{}, outer: outer}
	if outer != nil {
		s.attrs, s.depth, s.node = outer.attrs, outer.depth, outer.node
	}
	return s
}

func (s *scope) find(name string) *ssa.Value {
	for ; s != nil; s = s.outer {
		if v, ok := s.values[name]; ok {
			return v
		}
	}
	return nil
}

// overridableIR is the first IR version in which an initializer that is also an input is its default value. Older files list
// every initializer among the inputs, and runtimes take it for a constant.
const overridableIR = 4

// graph reads the main graph of a file of an IR version.
func (r *reader) graph(g *onnxpb.GraphProto, inits []namedTensor, ir int64) error {
	name := g.GetName()
	if name == "" {
		name = "main_graph"
	}
	r.m.File.Graph, r.m.File.GraphDoc = g.GetName(), g.GetDocString()
	r.m.File.GraphMetadata = keyValues(g.MetadataProps)
	f := r.m.NewFunc(name)
	s := newScope(nil)
	for _, p := range g.SparseInitializer {
		name, t, err := sparse(p, r.ext)
		if err != nil {
			return err
		}
		inits = append(inits, namedTensor{name: name, t: t})
	}
	isInit := map[string]*tensor.Tensor{}
	for _, in := range inits {
		isInit[in.name] = in.t
	}
	for _, in := range g.Input {
		t := isInit[in.GetName()]
		if t != nil && ir < overridableIR {
			continue
		}
		if err := r.param(f.Body, s, in); err != nil {
			return err
		}
		if t != nil {
			if r.m.Defaults == nil {
				r.m.Defaults = map[string]*tensor.Tensor{}
			}
			r.m.Defaults[s.values[in.GetName()].Name] = t
		}
	}
	for _, in := range inits {
		if s.values[in.name] == nil {
			r.constant(f.Body, s, in.name, in.t)
		}
		if in.note != nil {
			r.noteValue(in.name, in.note)
		}
	}
	for _, out := range g.Output {
		f.OutputNames = append(f.OutputNames, out.GetName())
	}
	return r.body(f.Body, s, g)
}

// FreezeDefaults makes constants of the parameters of a module's main function that have default values.
func FreezeDefaults(m *ssa.Module) {
	f := m.Main()
	if f == nil {
		return
	}
	for i := len(f.Body.Params) - 1; i >= 0; i-- {
		p := f.Body.Params[i]
		t := m.Defaults[p.Name]
		if t == nil {
			continue
		}
		o := f.Body.InsertBefore(f.Body.First(), "onnx::Constant", 0, nil, ssa.TensorOf(t))
		o.SetAttr("value", ssa.TensorValue(t))
		o.Results[0].Name, p.Name = p.Name, ""
		p.ReplaceUses(o.Results[0])
		f.Body.RemoveParam(i)
	}
	m.Defaults = nil
}

func (r *reader) param(b *ssa.Block, s *scope, in *onnxpb.ValueInfoProto) error {
	if in.GetName() == "" || s.values[in.GetName()] != nil {
		return fmt.Errorf("input %q has no name of its own", in.GetName())
	}
	t, err := typeOf(in.Type, r.m)
	if err != nil {
		return fmt.Errorf("input %q: %v", in.GetName(), err)
	}
	v := b.AddParam(r.name(in.GetName()), t)
	r.noteValue(v.Name, in)
	s.values[in.GetName()] = v
	return nil
}

// name makes a name unique in the function: sibling subgraphs may repeat names in ONNX.
func (r *reader) name(want string) string {
	if want == "" {
		return ""
	}
	n := names{r.used}
	return n.unique(want)
}

func (r *reader) constant(b *ssa.Block, s *scope, name string, t *tensor.Tensor) {
	o := b.Append("onnx::Constant", 0, nil, ssa.TensorOf(t))
	o.SetAttr("value", ssa.TensorValue(t))
	o.Results[0].Name = r.name(name)
	s.values[name] = o.Results[0]
}

// body reads initializers, nodes and outputs of a graph whose inputs are in scope.
func (r *reader) body(b *ssa.Block, s *scope, g *onnxpb.GraphProto) error {
	for _, p := range g.Initializer {
		t, err := tensorOf(p, r.ext)
		if err != nil {
			return fmt.Errorf("tensor %q: %v", p.GetName(), err)
		}
		r.constant(b, s, p.GetName(), t)
	}
	if s.outer != nil || s.depth > 0 { // those of the main graph are read before its inputs
		for _, p := range g.SparseInitializer {
			name, t, err := sparse(p, r.ext)
			if err != nil {
				return err
			}
			r.constant(b, s, name, t)
		}
	}
	for _, list := range [...][]*onnxpb.ValueInfoProto{g.ValueInfo, g.Output} {
		for _, v := range list {
			if v.Type != nil {
				s.types[v.GetName()] = v.Type
			}
			if s.outer == nil { // names of values in subgraphs may be changed
				r.noteValue(v.GetName(), v)
			}
		}
	}
	for i, n := range g.Node {
		if err := r.node(b, s, n, i); err != nil {
			return err
		}
	}
	outs := make([]*ssa.Value, len(g.Output))
	for i, o := range g.Output {
		if outs[i] = s.find(o.GetName()); outs[i] == nil {
			return fmt.Errorf("output %q is not defined", o.GetName())
		}
	}
	b.SetReturns(outs...)
	return nil
}

func (r *reader) node(b *ssa.Block, s *scope, n *onnxpb.NodeProto, index int) error {
	loc := r.loc(n, index, s.node)
	at := func(err error) error {
		if errors.Is(err, errTooMany) { // of the whole model
			return err
		}
		return fmt.Errorf("node %q (%s): %w", n.GetName(), n.GetOpType(), err)
	}
	if r.nodes++; r.nodes > maxNodes {
		return fmt.Errorf("%w: more than %d", errTooMany, maxNodes)
	}
	operands := make([]*ssa.Value, len(n.Input))
	for i, name := range n.Input {
		if name == "" {
			continue
		}
		if operands[i] = s.find(name); operands[i] == nil {
			return at(fmt.Errorf("input %q is not defined", name))
		}
	}
	domain := n.GetDomain()
	if f := r.functions[functionKey(domain, n.GetOpType(), n.GetOverload())]; f != nil {
		if err := r.inline(b, s, n, f, operands, loc); err != nil {
			return at(err)
		}
		return nil
	}
	if domain == "" || domain == "ai.onnx" {
		domain = onnx.Namespace
	}
	if strings.Contains(domain, "::") || strings.Contains(n.GetOpType(), "::") || n.GetOpType() == "" {
		return at(fmt.Errorf("impossible operator name"))
	}
	kind := ssa.Kind(domain + "::" + n.GetOpType())
	o := b.Append(kind, loc, operands)
	for _, name := range n.Output {
		t, err := typeOf(s.types[name], r.m)
		if err != nil {
			return at(fmt.Errorf("output %q: %w", name, err))
		}
		v := o.AddResult(t)
		if name == "" {
			continue
		}
		if s.values[name] != nil {
			return at(fmt.Errorf("output %q is defined twice", name))
		}
		v.Name = r.name(name)
		s.values[name] = v
	}
	for _, p := range n.Attribute {
		if ref := p.GetRefAttrName(); ref != "" {
			q := s.attrs[ref]
			if q == nil {
				continue // an optional attribute that the call leaves out
			}
			q = proto.CloneOf(q)
			q.Name = p.Name
			p = q
		}
		if p.GetG() != nil || p.GetType() == onnxpb.AttributeProto_GRAPH {
			continue
		}
		a, err := r.attribute(p)
		if err != nil {
			return at(fmt.Errorf("attribute %q: %w", p.GetName(), err))
		}
		o.SetAttr(p.GetName(), a)
	}
	if err := r.subgraphs(o, s, n); err != nil {
		return at(err)
	}
	if kind == "onnx::Constant" {
		stated := o.Results[0].Type
		if err := constantValue(o); err != nil {
			return at(err)
		}
		r.stated = append(r.stated, typecheck.Stated(o, 0, stated)...)
	}
	return nil
}

// subgraphs reads the bodies of an op in the order that the IR has them.
func (r *reader) subgraphs(o *ssa.Op, s *scope, n *onnxpb.NodeProto) error {
	if s.depth++; s.depth > maxInline {
		return fmt.Errorf("subgraphs are nested too deeply")
	}
	defer func() { s.depth-- }()
	if o.Kind.Namespace() != onnx.Namespace && onnx.Versions(string(o.Kind)) == nil { // of those that the standard has, it says what the graphs take and give
		return r.namedSubgraphs(o, s, n)
	}
	found := 0
	for _, name := range subgraphNames(o.Kind) {
		for _, p := range n.Attribute {
			if p.GetName() != name || p.G == nil {
				continue
			}
			found++
			if err := r.subgraph(o, s, p.G); err != nil {
				return err
			}
			break
		}
	}
	if found != len(subgraphNames(o.Kind)) {
		return fmt.Errorf("a subgraph is missing")
	}
	for _, p := range n.Attribute {
		if p.G != nil {
			found--
		}
	}
	if found < 0 {
		return fmt.Errorf("subgraphs of this operator are not supported")
	}
	return nil
}

func (r *reader) subgraph(o *ssa.Op, s *scope, g *onnxpb.GraphProto) error {
	blk, inner := o.AddBlock(), newScope(s)
	inner.node = o.Loc
	for _, in := range g.Input {
		if err := r.param(blk, inner, in); err != nil {
			return err
		}
	}
	return r.body(blk, inner, g)
}

// namedSubgraphs reads the bodies of an operator of another domain, such as the decoder of BeamSearch, in the order of the file. The runtime finds inputs and
// outputs of these by their names, so the op keeps them.
func (r *reader) namedSubgraphs(o *ssa.Op, s *scope, n *onnxpb.NodeProto) error {
	var graphs []string
	for _, p := range n.Attribute {
		if p.G == nil {
			continue
		}
		if len(graphs) == maxGraphs {
			return fmt.Errorf("more than %d graphs", maxGraphs)
		}
		if err := r.subgraph(o, s, p.G); err != nil {
			return fmt.Errorf("graph %q: %w", p.GetName(), err)
		}
		graphs = append(graphs, p.GetName())
		for _, list := range []struct {
			suffix string
			values []*onnxpb.ValueInfoProto
		}{{onnx.GraphInputs, p.G.Input}, {onnx.GraphOutputs, p.G.Output}} {
			names := make([]string, len(list.values))
			for i, v := range list.values {
				names[i] = v.GetName()
			}
			if err := ownAttr(o, p.GetName()+list.suffix, names); err != nil {
				return err
			}
		}
	}
	if graphs == nil {
		return nil
	}
	return ownAttr(o, onnx.Graphs, graphs)
}

// ownAttr sets an attribute that the file does not have.
func ownAttr(o *ssa.Op, name string, names []string) error {
	if _, taken := o.Attr(name); taken {
		return fmt.Errorf("an attribute named %q stands beside graphs", name)
	}
	o.SetAttr(name, ssa.Strs(names...))
	return nil
}

// loc keeps the scope of a node's name, and what metadata says of its source.
func (r *reader) loc(n *onnxpb.NodeProto, index int, outer diag.Loc) diag.Loc {
	f := check.Frame(n, index, outer)
	if path, ok := strings.CutPrefix(n.GetName(), "/"); ok {
		if i := strings.LastIndexByte(path, '/'); i >= 0 {
			f.Scope = strings.ReplaceAll(path[:i], "/", ".")
		}
	}
	for _, kv := range n.MetadataProps {
		if kv.GetKey() == "namespace" {
			f.Scope = kv.GetValue()
		}
	}
	loc := r.m.Locs.Add(f)
	r.noteNode(loc, n)
	return loc
}

// inline reads the body of a model-local function in place of its call.
func (r *reader) inline(b *ssa.Block, s *scope, n *onnxpb.NodeProto, f *onnxpb.FunctionProto, operands []*ssa.Value, loc diag.Loc) error {
	inner := newScope(nil)
	inner.node = loc
	inner.depth = s.depth + 1
	if inner.depth > maxInline {
		return fmt.Errorf("functions are nested too deeply")
	}
	if err := compatible(f, onnx.DefaultOpset(r.m)); err != nil {
		return err
	}
	inner.attrs = map[string]*onnxpb.AttributeProto{}
	for _, a := range f.AttributeProto {
		inner.attrs[a.GetName()] = a
	}
	for _, a := range n.Attribute {
		if ref := a.GetRefAttrName(); ref != "" {
			if s.attrs[ref] == nil {
				continue
			}
			inner.attrs[a.GetName()] = s.attrs[ref]
			continue
		}
		inner.attrs[a.GetName()] = a
	}
	if len(operands) > len(f.Input) || len(n.Output) > len(f.Output) {
		return fmt.Errorf("the call does not fit the function")
	}
	for i, name := range f.Input {
		if i < len(operands) && operands[i] != nil {
			inner.values[name] = operands[i]
		} else {
			inner.values[name] = nil
		}
	}
	for i, node := range f.Node {
		if r.inlined++; r.inlined > maxInlined {
			return fmt.Errorf("%w: the calls of functions make more than %d", errTooMany, maxInlined)
		}
		if err := r.node(b, inner, absent(node, inner), i); err != nil {
			return err
		}
	}
	for i, name := range n.Output {
		if name == "" {
			continue
		}
		v := inner.values[f.Output[i]]
		if v == nil {
			return fmt.Errorf("the function does not define its output %q", f.Output[i])
		}
		s.values[name] = v
	}
	return nil
}

// compatible reports a function whose operators of the default domain are of other versions than the model's: its nodes
// would mean something else in the model. The standard forbids it.
func compatible(f *onnxpb.FunctionProto, model int) error {
	own := 0
	for _, o := range f.OpsetImport {
		if d := o.GetDomain(); d == "" || d == "ai.onnx" {
			own = int(o.GetVersion())
		}
	}
	if own == 0 || own == model {
		return nil
	}
	for _, n := range f.Node {
		if d := n.GetDomain(); d != "" && d != "ai.onnx" {
			continue
		}
		a, b := onnx.Lookup(n.GetOpType(), own), onnx.Lookup(n.GetOpType(), model)
		if a != b {
			return fmt.Errorf("the function is at opset %d, the model at %d, and their versions of %s differ", own, model, n.GetOpType())
		}
	}
	return nil
}

// absent leaves out the inputs of a function's node that the call leaves out.
func absent(n *onnxpb.NodeProto, s *scope) *onnxpb.NodeProto {
	for i, name := range n.Input {
		if v, ok := s.values[name]; ok && v == nil {
			c := proto.CloneOf(n)
			for j := i; j < len(c.Input); j++ {
				if v, ok := s.values[c.Input[j]]; ok && v == nil {
					c.Input[j] = ""
				}
			}
			return c
		}
	}
	return n
}

func (r *reader) attribute(p *onnxpb.AttributeProto) (ssa.Literal, error) {
	typ := p.GetType()
	if typ == onnxpb.AttributeProto_UNDEFINED { // IR version 1 had no type field
		switch {
		case p.F != nil:
			typ = onnxpb.AttributeProto_FLOAT
		case p.I != nil:
			typ = onnxpb.AttributeProto_INT
		case p.S != nil:
			typ = onnxpb.AttributeProto_STRING
		case p.T != nil:
			typ = onnxpb.AttributeProto_TENSOR
		case len(p.Floats) > 0:
			typ = onnxpb.AttributeProto_FLOATS
		case len(p.Strings) > 0:
			typ = onnxpb.AttributeProto_STRINGS
		default:
			typ = onnxpb.AttributeProto_INTS
		}
	}
	switch typ {
	case onnxpb.AttributeProto_INT:
		return ssa.Int(p.GetI()), nil
	case onnxpb.AttributeProto_FLOAT:
		return ssa.Float(float64(p.GetF())), nil
	case onnxpb.AttributeProto_STRING:
		return ssa.Str(string(p.GetS())), nil
	case onnxpb.AttributeProto_INTS:
		return ssa.Ints(p.Ints...), nil
	case onnxpb.AttributeProto_FLOATS:
		v := make([]float64, len(p.Floats))
		for i, f := range p.Floats {
			v[i] = float64(f)
		}
		return ssa.Floats(v...), nil
	case onnxpb.AttributeProto_STRINGS:
		v := make([]string, len(p.Strings))
		for i, s := range p.Strings {
			v[i] = string(s)
		}
		return ssa.Strs(v...), nil
	case onnxpb.AttributeProto_TENSOR:
		if p.T == nil {
			return ssa.None, fmt.Errorf("no tensor")
		}
		t, err := tensorOf(p.T, r.ext)
		return ssa.TensorValue(t), err
	case onnxpb.AttributeProto_SPARSE_TENSOR:
		_, t, err := sparse(p.GetSparseTensor(), r.ext)
		return ssa.TensorValue(t), err
	case onnxpb.AttributeProto_TYPE_PROTO:
		t, err := typeOf(p.Tp, r.m)
		return ssa.TypeValue(t), err
	}
	return ssa.None, fmt.Errorf("kind %v is not supported", typ)
}

// constantValue brings a Constant to the form with the attribute value.
func constantValue(o *ssa.Op) error {
	if len(o.Results) != 1 || len(o.Attrs) != 1 {
		return fmt.Errorf("a Constant has one output and one attribute")
	}
	var t *tensor.Tensor
	switch a := o.Attrs[0]; a.Name {
	case "value", "sparse_value":
		t = a.Value.Tensor
	case "value_int":
		t = tensor.ScalarInt(a.Value.Int())
	case "value_float":
		t = tensor.FromFloats(tensor.Float32, []int64{}, []float64{a.Value.Float()})
	case "value_string":
		t = tensor.Strings([]int64{}, []string{a.Value.Str()})
	case "value_ints":
		v, _ := a.Value.IntList()
		t = tensor.Ints(v...)
	case "value_floats":
		v, _ := a.Value.FloatList()
		t = tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v)
	case "value_strings":
		var v []string
		for _, e := range a.Value.Elems {
			v = append(v, e.Str())
		}
		t = tensor.Strings([]int64{int64(len(v))}, v)
	}
	if t == nil {
		return fmt.Errorf("a Constant without a tensor")
	}
	o.Attrs = []ssa.Attr{{Name: "value", Value: ssa.TensorValue(t)}}
	o.Results[0].Type = ssa.TensorOf(t)
	return nil
}
