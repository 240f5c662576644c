package onnxfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"

	"github.com/aton-project/aton/backend/onnxfile/check"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/typecheck"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"google.golang.org/protobuf/proto"
)

// subgraphNames gives the attributes that hold an op's blocks, in order.
func subgraphNames(k ssa.Kind) []string {
	switch k {
	case "onnx::If", "prim::If":
		return []string{"then_branch", "else_branch"}
	case "onnx::Loop", "prim::Loop", "onnx::Scan", "onnx::SequenceMap":
		return []string{"body"}
	}
	return nil
}

// IRVersion is the version of the file format that goes with an opset of the default domain.
func IRVersion(opset int) int64 {
	switch {
	case opset < 9:
		return 3
	case opset < 12:
		return int64(opset) - 5
	case opset < 15:
		return 7
	case opset < 19:
		return 8
	case opset < 21:
		return 9
	case opset < 23:
		return 10
	case opset < 25:
		return int64(opset) - 12
	case opset < 28:
		return 13
	}
	return 14
}

// notesIR is the oldest IR version whose nodes, values and graphs have metadata.
const notesIR = 10

// ir is the IR version of the file.
func (b *builder) ir() int64 {
	v := IRVersion(b.opset)
	if b.opts.NodeMetadata {
		v = max(v, notesIR)
	}
	if len(b.m.Defaults) > 0 {
		v = max(v, overridableIR)
	}
	return v
}

// builder turns a function into a GraphProto and a list of initializers.
type builder struct {
	m    *ssa.Module
	opts Options
	// modules are the functions to make of modules, by their paths.
	modules map[string]ModuleFunction
	opset   int
	names   names
	nodes   names
	value   []string // by value ID
	inits   []initializer
	// byView finds the initializer of a tensor that was met before.
	byView map[view]string
	weight []*onnxpb.ValueInfoProto     // types of the initializers
	used   map[string]bool              // domains
	scope  map[*onnxpb.NodeProto]string // where modules become functions
	// isInit has the names of the initializers, unnamed the tensors of those that are no weights.
	isInit  map[string]bool
	unnamed map[string]*tensor.Tensor
	// local are the constants that graphs of an operator have as initializers of their own, localOnly those of them that nothing else uses.
	local     map[*ssa.Block][]*ssa.Value
	localOnly map[*ssa.Value]bool
	err       error
}

// view identifies a tensor by what it shows of which storage.
type view struct {
	storage *tensor.Storage
	offset  int64
	dtype   tensor.DType
	dims    string
}

func viewOf(t *tensor.Tensor) view {
	return view{t.Storage, t.Offset, t.DType, fmt.Sprint(t.Shape, t.Strides)}
}

func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func newBuilder(m *ssa.Module, f *ssa.Func, opts Options) *builder {
	b := &builder{m: m, opts: opts, opset: onnx.DefaultOpset(m), names: names{make(map[string]int, f.Body.Len())}, nodes: names{make(map[string]int, f.Body.Len())},
		value: make([]string, f.NumValues()), byView: map[view]string{}, used: map[string]bool{"": true},
		scope: map[*onnxpb.NodeProto]string{}, isInit: map[string]bool{}, unnamed: map[string]*tensor.Tensor{}}
	b.names.used[""] = 0
	return b
}

// Names returns what the file that Write makes calls the values of the main function, by their ID, and the outputs. A value
// that is in no file has no name.
func Names(m *ssa.Module, opts Options) (values, outputs []string, err error) {
	f := m.Main()
	if f == nil {
		return nil, nil, fmt.Errorf("the module has no function")
	}
	b := newBuilder(m, f, opts)
	g := b.main(f)
	for _, o := range g.Output {
		outputs = append(outputs, o.GetName())
	}
	return b.value, outputs, b.err
}

func newModel(m *ssa.Module, opts Options) (*model, error) {
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	if onnx.DefaultOpset(m) == 0 {
		return nil, errors.New("the module is for no opset: run the pass legalize, or set Opsets")
	}
	if limits, err := ssa.ParseLimits(m.GetMetadata(ssa.LimitsKey)); err == nil && len(limits) > 0 && !m.Guarded && !opts.Unchecked {
		return nil, fmt.Errorf("the model is right only where %s, and no pass has made it check that: put guard before legalize in the pipeline", m.GetMetadata(ssa.LimitsKey))
	}
	if !opts.Unchecked { // before the file is built: what this takes is free again by then
		if err := typecheck.Module(m).Err(); err != nil {
			return nil, invalid(err)
		}
	}
	b := newBuilder(m, f, opts)
	var err error
	if b.modules, err = opts.modules(m); err != nil {
		return nil, err
	}
	g := b.main(f)
	if b.err != nil {
		return nil, b.err
	}
	return b.encode(g)
}

func invalid(err error) error { return fmt.Errorf("the model would not be valid: %w", err) }

// check holds the file to the rules that hold for files that are read.
func (b *builder) check(p *onnxpb.ModelProto, g *onnxpb.GraphProto) error {
	f := check.File{Model: p, Graph: g}
	for _, in := range b.inits {
		f.Weights = append(f.Weights, in.name)
	}
	if err := f.Check(&b.m.Locs).Err(); err != nil {
		return invalid(err)
	}
	return nil
}

// encode cuts the model into the parts before, between and after the initializers.
func (b *builder) encode(g *onnxpb.GraphProto) (*model, error) {
	producer := b.opts.Producer
	if producer == "" {
		producer = defaultProducer
	}
	info := &b.m.File
	functions := b.called(g)
	if b.err != nil {
		return nil, b.err
	}
	head := &onnxpb.ModelProto{IrVersion: proto.Int64(b.ir()), ProducerName: &producer}
	head.Domain, head.DocString = unlessEmpty(info.Domain), unlessEmpty(info.Doc)
	if info.Version != 0 {
		head.ModelVersion = &info.Version
	}
	if b.opts.Version != "" {
		head.ProducerVersion = &b.opts.Version
	}
	functions = append(functions, b.outline(g)...)
	if len(functions) > 0 {
		head.IrVersion = proto.Int64(max(head.GetIrVersion(), functionsIR))
	}
	tail := &onnxpb.ModelProto{OpsetImport: b.imports(), Functions: functions}
	for _, kv := range b.m.Metadata {
		tail.MetadataProps = append(tail.MetadataProps, entry(kv.Key, kv.Value))
	}
	name := b.opts.GraphName
	if name == "" {
		name = info.Graph
	}
	if name == "" {
		name = "main_graph"
	}
	g.DocString = unlessEmpty(info.GraphDoc)
	g.MetadataProps = b.metadata(info.GraphMetadata)
	g.Name = &name
	whole := &onnxpb.ModelProto{IrVersion: head.IrVersion, OpsetImport: tail.OpsetImport, MetadataProps: tail.MetadataProps, Functions: functions}
	if !b.opts.Unchecked {
		if err := b.check(whole, g); err != nil {
			return nil, err
		}
	}
	graphHead := &onnxpb.GraphProto{Node: g.Node, Name: &name}
	g.Node, g.Name = nil, nil
	out := &model{inits: b.inits, sources: sourcesOf(b.m)}
	for _, part := range []struct {
		to   *[]byte
		from proto.Message
	}{{&out.head, head}, {&out.tail, tail}, {&out.graphHead, graphHead}, {&out.graphTail, g}} {
		var err error
		if *part.to, err = marshal(part.from); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// functionsIR is the first version of the file format that has local functions.
const functionsIR = 8

// The name of the producer that files get, and the key under which the one of the file that was read is kept.
const (
	defaultProducer = "aton"
	sourceProducer  = "aton.source_producer"
)

func unlessEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func entry(k, v string) *onnxpb.StringStringEntryProto {
	return &onnxpb.StringStringEntryProto{Key: &k, Value: &v}
}

// imports lists the domains in use, the default one first, then by name.
func (b *builder) imports() []*onnxpb.OperatorSetIdProto {
	versions := map[string]int{"": b.opset}
	for domain, v := range b.m.Opsets {
		switch domain {
		case "", "onnx", "ai.onnx":
		default:
			versions[domain] = v
		}
	}
	for domain := range b.used {
		if _, ok := versions[domain]; !ok {
			versions[domain] = 1
			if domain == "ai.onnx.ml" {
				versions[domain] = mlVersion(b.opset)
			}
		}
	}
	var domains []string
	for d := range versions {
		domains = append(domains, d)
	}
	sort.Strings(domains)
	var out []*onnxpb.OperatorSetIdProto
	for _, d := range domains {
		out = append(out, &onnxpb.OperatorSetIdProto{Domain: proto.String(d), Version: proto.Int64(int64(versions[d]))})
	}
	return out
}

// mlVersion is the version of ai.onnx.ml that was released with an opset.
func mlVersion(opset int) int {
	switch {
	case opset < 11:
		return 1
	case opset < 16:
		return 2
	case opset < 20:
		return 3
	case opset < 21:
		return 4
	}
	return 5
}

func (b *builder) main(f *ssa.Func) *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{}
	for i, p := range f.Body.Params {
		name := p.Name
		if name == "" {
			name = fmt.Sprintf("input.%d", i)
		}
		b.value[p.ID] = b.names.unique(name)
		info := b.info(b.value[p.ID], p.Type)
		if info.Type == nil && !b.opts.Unchecked {
			b.fail("the element type of input %s is unknown", name)
		}
		if t := b.m.Held(p.Name); t != nil && b.m.WeightStorage != ssa.NoWeights {
			b.initializer(b.value[p.ID], t)
			if b.m.WeightStorage == ssa.Initializers && b.m.Defaults[p.Name] == nil {
				b.weight = append(b.weight, info)
				continue
			}
		}
		g.Input = append(g.Input, info)
	}
	// Names of outputs come before all others: the user asked for them.
	outputs := make([]string, f.Body.NumReturns())
	if len(outputs) == 0 {
		b.fail("the model gives nothing: no runtime loads a graph without outputs; return what it computes")
	}
	for i := range outputs {
		v := f.Body.Return(i)
		if i < len(f.OutputNames) {
			if outputs[i] = f.OutputNames[i]; v.Param() != f.Body || b.value[v.ID] != outputs[i] { // an input may be an output
				outputs[i] = b.names.unique(outputs[i])
			}
		} else if v.Name != "" && b.value[v.ID] == "" && onnx.ConstOf(v) == nil && !slices.Contains(f.Body.Returns()[:i], v) {
			outputs[i] = b.names.unique(v.Name)
		}
	}
	if len(f.OutputNames) > len(outputs) {
		b.fail("%d output names for %d outputs", len(f.OutputNames), len(outputs))
	}
	b.returns(f.Body, outputs)
	b.localConstants(f.Body)
	b.constants(f.Body)
	g.Node = b.block(f.Body, outputs)
	for i := range outputs {
		g.Output = append(g.Output, b.info(outputs[i], f.Body.Return(i).Type))
	}
	b.axes(g, f.Body)
	if b.ir() < 4 {
		g.Input = append(g.Input, b.weight...)
	}
	if b.opts.ValueInfo {
		b.valueInfo(f.Body, g, outputs)
	}
	return g
}

// returns gives values that the block returns the name of the output, so that
// no Identity is needed: those that an op of the block computes, the first time.
func (b *builder) returns(blk *ssa.Block, outputs []string) {
	for i, v := range blk.Returns() {
		if v == nil {
			b.fail("a block returns nothing")
			return
		}
		if v.Def() != nil && v.Block() == blk && onnx.ConstOf(v) == nil && b.value[v.ID] == "" && outputs[i] != "" {
			b.value[v.ID] = outputs[i]
		}
	}
}

func (b *builder) info(name string, t ssa.Type) *onnxpb.ValueInfoProto {
	note := b.m.File.Values[name]
	return &onnxpb.ValueInfoProto{Name: &name, Type: typeProto(t), DocString: unlessEmpty(note.Doc), MetadataProps: b.metadata(note.Metadata)}
}

// valueInfo records the types of what the main graph's nodes compute.
func (b *builder) valueInfo(blk *ssa.Block, g *onnxpb.GraphProto, outputs []string) {
	for o := range blk.Ops() {
		for _, r := range o.Results {
			name := b.value[r.ID]
			if name == "" || onnx.ConstOf(r) != nil || slices.Contains(outputs, name) {
				continue
			}
			if info := b.info(name, r.Type); info.Type != nil {
				g.ValueInfo = append(g.ValueInfo, info)
			}
		}
	}
}

// constants makes initializers of all constants in use, those of nested blocks
// too: names first for weights, which carry the name of the state dict.
func (b *builder) constants(blk *ssa.Block) {
	first := map[*ssa.Value]*ssa.Op{} // the first user, in the order of the graph, of constants without names
	for o := range blk.AllOps() {
		for i := range o.NumOperands() {
			if v := o.Operand(i); v != nil && v.Name == "" && first[v] == nil && onnx.ConstOf(v) != nil {
				first[v] = o
			}
		}
	}
	for _, named := range [...]bool{true, false} {
		for o := range blk.AllOps() {
			if len(o.Results) != 1 || !o.Results[0].HasUses() {
				continue
			}
			r := o.Results[0]
			t := onnx.ConstOf(r)
			if t == nil || (r.Name != "") != named || b.localOnly[r] {
				continue
			}
			if t.Storage != nil {
				if name, ok := b.byView[viewOf(t)]; ok {
					b.value[r.ID] = name
					continue
				}
			}
			want := r.Name
			if !named {
				want = "constant"
				if user := first[r]; user != nil {
					want = "onnx::" + user.Kind.Name() + "_const"
				}
			}
			name := b.names.unique(want)
			b.value[r.ID] = name
			b.weight = append(b.weight, b.info(name, ssa.TensorOf(t)))
			b.initializer(name, t)
			if !named {
				b.unnamed[name] = t
			}
			if t.Storage != nil {
				b.byView[viewOf(t)] = name
			}
		}
	}
}

// localConstants finds constants that some, but not all graphs of an operator of another domain use. onnxruntime gives each of these graphs what any of them takes
// from outside, and fails where one does not take it.
func (b *builder) localConstants(blk *ssa.Block) {
	b.local, b.localOnly = map[*ssa.Block][]*ssa.Value{}, map[*ssa.Value]bool{}
	for o := range blk.AllOps() {
		if len(onnx.NamedGraphs(o)) < 2 {
			continue
		}
		users, reads := map[*ssa.Value][]*ssa.Block{}, map[*ssa.Value]int{}
		var constants []*ssa.Value
		note := func(v *ssa.Value, inner *ssa.Block) {
			if v == nil || onnx.ConstOf(v) == nil {
				return
			}
			if reads[v]++; slices.Contains(users[v], inner) {
				return
			}
			if users[v] == nil {
				constants = append(constants, v)
			}
			users[v] = append(users[v], inner)
		}
		for _, inner := range o.Blocks {
			for p := range inner.AllOps() {
				for _, v := range p.Operands() {
					note(v, inner)
				}
				for _, nested := range p.Blocks {
					for _, v := range nested.Returns() {
						note(v, inner)
					}
				}
			}
			for _, v := range inner.Returns() {
				note(v, inner)
			}
		}
		for _, v := range constants {
			if len(users[v]) < len(o.Blocks) {
				for _, inner := range users[v] {
					b.local[inner] = append(b.local[inner], v)
				}
				b.localOnly[v] = b.localOnly[v] || reads[v] == v.NumUses()
			}
		}
	}
}

// initializer adds a tensor to the file.
func (b *builder) initializer(name string, t *tensor.Tensor) {
	note := b.m.File.Values[name]
	in, err := newInitializer(&onnxpb.TensorProto{Name: &name, DocString: unlessEmpty(note.Doc), MetadataProps: b.metadata(note.Metadata)}, t)
	if err != nil {
		b.fail("%v", err)
		return
	}
	b.inits = append(b.inits, in)
	b.isInit[name] = true
}

// block translates the ops of a block and, at its end, the outputs that are not
// a node's own: inputs, constants, values of an outer block, and repetitions.
func (b *builder) block(blk *ssa.Block, outputs []string) []*onnxpb.NodeProto {
	var nodes []*onnxpb.NodeProto
	for o := range blk.Ops() {
		if len(o.Results) == 1 && onnx.ConstOf(o.Results[0]) != nil {
			continue
		}
		if n := b.node(o); n != nil {
			nodes = append(nodes, n)
		}
	}
	for i, v := range blk.Returns() {
		if outputs[i] == "" { // an op's result that has no name of its own
			if v.Def() != nil && v.Block() == blk && onnx.ConstOf(v) == nil && !slices.Contains(outputs[:i], b.value[v.ID]) {
				outputs[i] = b.value[v.ID]
				continue
			}
		} else if b.value[v.ID] == outputs[i] {
			continue
		}
		name := b.nodes.unique("/Identity")
		if outputs[i] == "" {
			outputs[i] = b.names.unique(name + "_output_0")
		}
		nodes = append(nodes, &onnxpb.NodeProto{OpType: proto.String("Identity"), Name: &name, Input: []string{b.value[v.ID]}, Output: []string{outputs[i]}})
	}
	return nodes
}

func (b *builder) node(o *ssa.Op) *onnxpb.NodeProto {
	frame := b.m.Locs.Frame(o.Loc)
	name := b.nodes.unique(nodeName(frame, o.Kind))
	domain := o.Kind.Namespace()
	if domain == onnx.Namespace {
		domain = ""
	}
	switch domain {
	case "aten":
		domain = "org.pytorch.aten"
	case "":
		if onnx.Versions(string(o.Kind)) == nil {
			b.fail("%s is not an operator of ONNX", o.Kind)
		}
	}
	b.used[domain] = true
	kind := o.Kind.Name()
	n := &onnxpb.NodeProto{OpType: &kind, Name: &name, Input: make([]string, 0, o.NumOperands()), Output: make([]string, 0, len(o.Results))}
	if domain != "" {
		n.Domain = &domain
	}
	for i := range o.NumOperands() {
		v := o.Operand(i)
		if v == nil {
			n.Input = append(n.Input, "")
			continue
		}
		if b.value[v.ID] == "" {
			b.fail("%s uses a value that nothing defines", o.Kind)
		}
		n.Input = append(n.Input, b.value[v.ID])
	}
	if o.Kind != "org.pytorch.aten::ATen" { // whose inputs are all that the schema has
		n.Input = trimEmpty(n.Input)
	}
	schema, named := onnx.SchemaOf(o.Kind), onnx.NamedOutputs(o)
	for i, r := range o.Results {
		if schema != nil && !r.HasUses() && i >= named {
			if p := schema.Output(i); p != nil && p.Option == onnx.Optional {
				n.Output = append(n.Output, "")
				continue
			}
		}
		if b.value[r.ID] == "" {
			want := r.Name
			if want == "" {
				want = name + "_output_" + strconv.Itoa(i)
			}
			b.value[r.ID] = b.names.unique(want)
		}
		n.Output = append(n.Output, b.value[r.ID])
	}
	n.Output = trimEmpty(n.Output)
	for i := len(n.Output); i < named; i++ {
		n.Output = append(n.Output, b.names.unique(fmt.Sprintf("%s_output_%d", name, i)))
	}
	b.attributes(o, n)
	b.nodeNotes(o.Loc, n)
	if len(b.modules) > 0 {
		b.scope[n] = frame.Scope
	}
	return n
}

func trimEmpty(s []string) []string {
	for len(s) > 0 && s[len(s)-1] == "" {
		s = s[:len(s)-1]
	}
	return s
}

func (b *builder) attributes(o *ssa.Op, n *onnxpb.NodeProto) {
	graphs := onnx.NamedGraphs(o)
	for _, a := range o.Attrs {
		if a.Value.IsNone() || len(graphs) > 0 && onnx.NamesGraphs(graphs, a.Name) {
			continue
		}
		p, err := attribute(a)
		if err != nil {
			b.fail("%s: %v", o.Kind, err)
			return
		}
		n.Attribute = append(n.Attribute, p)
	}
	if len(graphs) > 0 && len(graphs) == len(o.Blocks) {
		for i, g := range graphs {
			n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{Name: &g.Name, Type: onnxpb.AttributeProto_GRAPH.Enum(), G: b.namedSubgraph(o.Blocks[i], n.GetName()+"_"+g.Name, g)})
		}
		return
	}
	subs := subgraphNames(o.Kind)
	if len(o.Blocks) > len(subs) {
		b.fail("%s cannot have subgraphs", o.Kind)
		return
	}
	for i, blk := range o.Blocks {
		g := b.subgraph(blk, n.GetName()+"_"+subs[i])
		n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{Name: proto.String(subs[i]), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: g})
	}
}

func (b *builder) subgraph(blk *ssa.Block, name string) *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{Name: &name}
	for i, p := range blk.Params {
		want := p.Name
		if want == "" {
			want = fmt.Sprintf("%s_input_%d", name, i)
		}
		b.value[p.ID] = b.names.unique(want)
		g.Input = append(g.Input, b.info(b.value[p.ID], p.Type))
	}
	outputs := make([]string, blk.NumReturns())
	g.Node = b.block(blk, outputs)
	for i := range outputs {
		g.Output = append(g.Output, b.info(outputs[i], blk.Return(i).Type))
	}
	return g
}

// namedSubgraph is subgraph for one of which the runtime asks inputs and outputs by their names. Others may have these outside.
func (b *builder) namedSubgraph(blk *ssa.Block, name string, g onnx.NamedGraph) *onnxpb.GraphProto {
	if len(g.Inputs) != len(blk.Params) || len(g.Outputs) != blk.NumReturns() {
		b.fail("the graph %s has %d inputs and %d outputs, and names for %d and %d", g.Name, len(blk.Params), blk.NumReturns(), len(g.Inputs), len(g.Outputs))
		return &onnxpb.GraphProto{}
	}
	own := slices.Concat(g.Inputs, g.Outputs)
	for o := range blk.AllOps() {
		for i := range o.NumOperands() {
			if v := o.Operand(i); v != nil && b.value[v.ID] != "" && slices.Contains(own, b.value[v.ID]) {
				b.fail("the graph %s uses %q of the graph around it, and has an input or output of that name", g.Name, b.value[v.ID])
			}
		}
	}
	p := &onnxpb.GraphProto{Name: &name}
	for _, n := range own {
		b.names.unique(n)
	}
	for i, v := range blk.Params {
		b.value[v.ID] = g.Inputs[i]
		p.Input = append(p.Input, b.info(g.Inputs[i], v.Type))
	}
	for _, v := range b.local[blk] {
		defer func(outside string) { b.value[v.ID] = outside }(b.value[v.ID])
		b.value[v.ID] = b.names.unique(cmp.Or(v.Name, "constant"))
		t, err := tensorProto(onnx.ConstOf(v))
		if err != nil {
			b.fail("%v", err)
			continue
		}
		t.Name = proto.String(b.value[v.ID])
		p.Initializer = append(p.Initializer, t)
	}
	b.returns(blk, g.Outputs)
	p.Node = b.block(blk, g.Outputs)
	for i, n := range g.Outputs {
		p.Output = append(p.Output, b.info(n, blk.Return(i).Type))
	}
	return p
}

func attribute(a ssa.Attr) (*onnxpb.AttributeProto, error) {
	p := &onnxpb.AttributeProto{Name: proto.String(a.Name)}
	set := func(t onnxpb.AttributeProto_AttributeType) { p.Type = t.Enum() }
	switch l := a.Value; l.Kind {
	case ssa.IntLit, ssa.BoolLit:
		set(onnxpb.AttributeProto_INT)
		p.I = proto.Int64(l.Int())
	case ssa.FloatLit:
		set(onnxpb.AttributeProto_FLOAT)
		p.F = proto.Float32(float32(l.Float()))
		if math.IsInf(float64(*p.F), 0) && !math.IsInf(l.Float(), 0) {
			return nil, fmt.Errorf("attribute %s = %g is beyond float32", a.Name, l.Float())
		}
	case ssa.StrLit:
		set(onnxpb.AttributeProto_STRING)
		p.S = []byte(l.Str())
	case ssa.TensorLit:
		set(onnxpb.AttributeProto_TENSOR)
		var err error
		if p.T, err = tensorProto(l.Tensor); err != nil {
			return nil, err
		}
	case ssa.TypeLit:
		set(onnxpb.AttributeProto_TYPE_PROTO)
		if p.Tp = typeProto(l.Elem); p.Tp == nil {
			return nil, fmt.Errorf("attribute %s: ONNX has no type %v", a.Name, l.Elem)
		}
	case ssa.ListLit:
		return p, listAttribute(p, l)
	default:
		return nil, fmt.Errorf("attribute %s is of a kind that ONNX does not have", a.Name)
	}
	return p, nil
}

func listAttribute(p *onnxpb.AttributeProto, l ssa.Literal) error {
	if v, ok := l.IntList(); ok && l.Elem != ssa.FloatType && l.Elem != ssa.StrType {
		p.Type, p.Ints = onnxpb.AttributeProto_INTS.Enum(), v
		return nil
	}
	if v, ok := l.FloatList(); ok && l.Elem != ssa.StrType {
		p.Type = onnxpb.AttributeProto_FLOATS.Enum()
		for _, f := range v {
			p.Floats = append(p.Floats, float32(f))
		}
		return nil
	}
	p.Type = onnxpb.AttributeProto_STRINGS.Enum()
	for _, e := range l.Elems {
		if e.Kind != ssa.StrLit {
			return fmt.Errorf("attribute %s is a list of a kind that ONNX does not have", p.GetName())
		}
		p.Strings = append(p.Strings, []byte(e.Str()))
	}
	return nil
}
