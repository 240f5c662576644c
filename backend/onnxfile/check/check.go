// Package check holds the rules of an ONNX file that can be told without computing types: versions, names and their
// scopes, the order of nodes, the attributes and the number of operands that an operator takes, the fields of tensors.
//
// The same rules hold for what is read and for what is about to be written. All that is wrong is told at once; what
// only follows from another problem is not. What types and shapes say is dialects/onnx/typecheck's work.
package check

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/diag"
)

// IDs of what is found.
const (
	IDVersion   = "onnx-version"   // IR version, imports of domains
	IDName      = "onnx-name"      // names that are missing, doubled or undefined, and the order of nodes
	IDOperator  = "onnx-operator"  // an operator that the opset does not have
	IDArity     = "onnx-arity"     // too few or too many inputs, outputs or subgraphs
	IDAttribute = "onnx-attribute" // attributes that are unknown, missing or of another kind
	IDType      = "onnx-type"      // types of inputs and outputs that are missing or make no sense
	IDTensor    = "onnx-tensor"    // tensors whose fields do not fit
	IDFunction  = "onnx-function"  // functions of the model
)

// newestIR is the newest version of the file format.
const newestIR = 14

// maxDepth bounds how deep subgraphs are nested.
const maxDepth = 64

// File is a model in parts, so that weights need not be in memory.
type File struct {
	// Model is the file without its graph, Graph the main graph without its initializers.
	Model *onnxpb.ModelProto
	Graph *onnxpb.GraphProto
	// Weights are the names of the initializers of the main graph. Whoever reads or writes their elements calls Tensor.
	Weights []string
	// Repaired says that outputs of the main graph may lack types, which are computed, and that normalizations may stand below the opset they came with.
	Repaired bool
}

// Check reports what is wrong with a file. Locations are added to the table.
func (f File) Check(locs *diag.Table) *diag.List {
	c := &checker{file: f, list: &diag.List{Table: locs}, ir: f.Model.GetIrVersion(), functions: map[string]*onnxpb.FunctionProto{}}
	c.model()
	return c.list
}

type checker struct {
	file      File
	list      *diag.List
	ir        int64
	imports   map[string]int64 // versions of the domains that the graph or function at hand imports
	functions map[string]*onnxpb.FunctionProto
	// inFunction is set in the body of a function, where attributes may refer to those of the call.
	inFunction bool
}

// place is a node, and the one whose subgraph or function it stands in. A function of the model has the index aFunction.
type place struct {
	node  *onnxpb.NodeProto
	index int
	outer *place
}

const aFunction = -2

// Frame is the location of a node: its position in its graph, counted from 0, and its name.
func Frame(n *onnxpb.NodeProto, index int, outer diag.Loc) diag.Frame {
	return diag.Frame{Node: index + 1, Func: n.GetName(), Caller: outer}
}

func (p *place) loc(t *diag.Table) diag.Loc {
	if p == nil {
		return 0
	}
	return t.Add(Frame(p.node, p.index, p.outer.loc(t)))
}

func (p *place) depth() int {
	n := 0
	for ; p != nil; p = p.outer {
		n++
	}
	return n
}

// report tells of a problem at a node, or of the model if at is nil.
func (c *checker) report(at *place, id, hint, format string, args ...any) {
	d := diag.Diagnostic{ID: id, Message: fmt.Sprintf(format, args...), Hint: hint}
	if at != nil {
		d.Loc = at.loc(c.list.Table)
		if at.node.GetOpType() != "" && at.index != aFunction {
			d.Op = opName(at.node)
		}
	}
	c.list.Add(d)
}

// opName is the operator as the IR spells it.
func opName(n *onnxpb.NodeProto) string {
	return namespace(n.GetDomain()) + "::" + n.GetOpType()
}

func namespace(domain string) string {
	if domain = normal(domain); domain == "" {
		return onnx.Namespace
	}
	return domain
}

// domainName names a domain in messages.
func domainName(domain string) string {
	if domain == "" {
		return "the default domain"
	}
	return "the domain " + domain
}

// normal gives the default domain its one name.
func normal(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

func (c *checker) model() {
	m := c.file.Model
	switch {
	case c.ir < 1:
		c.report(nil, IDVersion, "set ir_version", "the model has no IR version")
	case c.ir > newestIR:
		c.report(nil, IDVersion, "write it with an older one", "IR version %d is newer than %d, the newest there is", c.ir, newestIR)
	case c.ir < 3 && len(m.OpsetImport) > 0:
		c.report(nil, IDVersion, "set ir_version to 3 or more", "a model of IR version %d cannot import opsets", c.ir)
	case c.ir >= 3 && len(m.OpsetImport) == 0:
		c.report(nil, IDVersion, "add an opset_import", "the model imports no opset")
	}
	c.imports = importsOf(m.OpsetImport)
	if c.ir < 3 && len(c.imports) == 0 {
		c.imports[""] = 1
	}
	c.versions(m.OpsetImport, c.imports)
	keys := map[string]bool{}
	for _, kv := range m.MetadataProps {
		if keys[kv.GetKey()] {
			c.report(nil, IDName, "keep one of them", "the metadata has the key %q twice", kv.GetKey())
		}
		keys[kv.GetKey()] = true
	}
	c.declareFunctions(m.Functions)
	if len(c.list.Items) > 0 && len(c.imports) == 0 {
		return // nothing else can be told
	}
	c.graph(c.file.Graph, nil, nil)
	for _, f := range m.Functions {
		c.function(f)
	}
}

// importsOf gives the version of each domain: of several the newest counts.
func importsOf(list []*onnxpb.OperatorSetIdProto) map[string]int64 {
	out := map[string]int64{}
	for _, o := range list {
		d := normal(o.GetDomain())
		if v, ok := out[d]; !ok || o.GetVersion() > v {
			out[d] = o.GetVersion()
		}
	}
	return out
}

func (c *checker) versions(list []*onnxpb.OperatorSetIdProto, imports map[string]int64) {
	for _, o := range list { // as onnx.checker has it
		if v := o.GetVersion(); v != int64(int32(v)) {
			c.report(nil, IDVersion, "give it a version of at most 2147483647", "version %d of the domain %q is out of range", v, o.GetDomain())
			return
		}
	}
	switch v, ok := imports[""]; {
	case ok && v < 1:
		c.report(nil, IDVersion, "import a version from 1 on", "version %d of the default domain does not exist", v)
	case ok && v > onnx.Newest:
		c.report(nil, IDVersion, "convert it to an older opset", "opset %d is newer than %d, the newest that is known", v, onnx.Newest)
	}
}

func functionKey(domain, name, overload string) string {
	return strings.Join([]string{normal(domain), name, overload}, "\x00")
}

// declareFunctions finds the model's functions, and those that call themselves.
func (c *checker) declareFunctions(list []*onnxpb.FunctionProto) {
	for _, f := range list {
		key := functionKey(f.GetDomain(), f.GetName(), f.GetOverload())
		switch {
		case f.GetName() == "":
			c.report(nil, IDFunction, "name it", "a function of the model has no name")
		case c.functions[key] != nil:
			c.report(nil, IDFunction, "rename one, or give it an overload", "the model has two functions %s::%s", f.GetDomain(), f.GetName())
		default:
			c.functions[key] = f
		}
	}
	const open, closed = 1, 2
	state := map[*onnxpb.FunctionProto]int{}
	var visit func(f *onnxpb.FunctionProto)
	visit = func(f *onnxpb.FunctionProto) {
		state[f] = open
		for _, n := range f.Node {
			g := c.called(n)
			switch {
			case g == nil || state[g] == closed:
			case state[g] == open:
				c.report(nil, IDFunction, "functions cannot be recursive", "the function %s::%s calls itself", g.GetDomain(), g.GetName())
			default:
				visit(g)
			}
		}
		state[f] = closed
	}
	for _, f := range list {
		if state[f] == 0 {
			visit(f)
		}
	}
}

// function checks the body of a function of the model.
func (c *checker) function(f *onnxpb.FunctionProto) {
	outer := c.imports
	c.imports, c.inFunction = importsOf(f.OpsetImport), true
	defer func() { c.imports, c.inFunction = outer, false }()
	c.versions(f.OpsetImport, c.imports)
	name := fmt.Sprintf("function %s::%s", f.GetDomain(), f.GetName())
	at := &place{node: &onnxpb.NodeProto{Domain: f.Domain, OpType: f.Name, Name: &name}, index: aFunction}
	s := newScope(nil, f.Node)
	for _, in := range f.Input {
		if !s.add(in) {
			c.report(at, IDName, "rename one", "two inputs are called %q", in)
		}
	}
	attributes := map[string]bool{}
	for _, a := range f.Attribute {
		if attributes[a] {
			c.report(at, IDName, "declare it once", "the attribute %q is declared twice", a)
		}
		attributes[a] = true
	}
	for i, n := range f.Node {
		p := &place{n, i, at}
		c.node(p, s)
		c.sameVersion(p, outer)
	}
	for _, out := range f.Output {
		if !s.has(out) {
			c.report(at, IDName, "", "its output %q is not computed", out)
		}
	}
}

// sameVersion refuses a node of a function that means another thing where the function is called.
func (c *checker) sameVersion(at *place, outer map[string]int64) {
	d := normal(at.node.GetDomain())
	inner, ok := c.imports[d]
	v, both := outer[d]
	if !ok || !both || inner == v {
		return
	}
	a, b := onnx.Lookup(opName(at.node), int(inner)), onnx.Lookup(opName(at.node), int(v))
	if a != b {
		c.report(at, IDFunction, "import the same version of the domain in both", "the function imports version %d of %s, the model %d, and the operator differs", inner, domainName(d), v)
	}
}
