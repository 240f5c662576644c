package check

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// node checks a node and adds what it computes to the scope.
func (c *checker) node(at *place, s *scope) {
	n := at.node
	c.inputs(at, s)
	if n.GetOpType() == "" {
		c.report(at, IDOperator, "", "the node has no operator")
	} else if len(n.Input) == 0 && len(n.Output) == 0 {
		c.report(at, IDArity, "remove it", "the node has neither inputs nor outputs")
	} else {
		c.operator(at, s)
	}
	c.attributes(at, s)
	for _, out := range n.Output {
		switch {
		case out == "":
		case s.has(out):
			s.lost = true
			c.report(at, IDName, "rename one of the two and those who use it", "the name %q of its output is taken: each value has one definition, also across subgraphs", out)
		default:
			s.add(out)
		}
	}
}

func (c *checker) attributes(at *place, s *scope) {
	seen := make(map[string]bool, len(at.node.Attribute))
	for _, a := range at.node.Attribute {
		if a.GetName() != "" && seen[a.GetName()] {
			c.report(at, IDAttribute, "keep one of them", "the attribute %q is there twice", a.GetName())
		}
		seen[a.GetName()] = true
		c.attribute(a, at, s)
	}
}

// inputs checks that what the node reads is there already.
func (c *checker) inputs(at *place, s *scope) {
	for _, in := range at.node.Input {
		if in == "" || s.has(in) || s.told[in] {
			continue
		}
		if i, ok := s.comesLater(in); ok {
			c.report(at, IDName, "sort the nodes, each behind those whose outputs it reads", "its input %q is computed by node %d, which does not stand before it", in, i)
		} else {
			c.report(at, IDName, "name an input, an initializer or the output of a node before it", "its input %q is defined nowhere", in)
		}
		s.told[in] = true
	}
}

// operator checks a node against the schema that the imported opset has of it.
func (c *checker) operator(at *place, s *scope) {
	n := at.node
	domain := normal(n.GetDomain())
	version, imported := c.imports[domain]
	f := c.called(n)
	switch {
	case !imported:
		c.report(at, IDVersion, "add an opset_import for it", "%s is not imported", domainName(domain))
	case f != nil:
		if len(n.Input) > len(f.Input) || len(n.Output) > len(f.Output) {
			c.report(at, IDArity, "", "the call has %d inputs and %d outputs, the function takes %d and gives %d", len(n.Input), len(n.Output), len(f.Input), len(f.Output))
		}
	case version < 1 || domain == "" && version > onnx.Newest:
		// told of the import
	default:
		c.schema(at, s, domain, version)
	}
}

// called is the function of the model that a node calls, nil for none.
func (c *checker) called(n *onnxpb.NodeProto) *onnxpb.FunctionProto {
	if len(c.functions) == 0 {
		return nil
	}
	return c.functions[functionKey(n.GetDomain(), n.GetOpType(), n.GetOverload())]
}

// official are the domains whose operators are all known.
func official(domain string) bool {
	return domain == "" || domain == "ai.onnx.ml" || domain == "ai.onnx.preview.training"
}

func (c *checker) schema(at *place, sc *scope, domain string, version int64) {
	name := opName(at.node)
	all := onnx.Versions(name)
	s := onnx.Lookup(name, int(min(version, 1<<30)))
	if s == nil && c.file.Repaired && onnx.Ahead(ssa.Kind(name)) {
		s = &all[0]
	}
	if s == nil {
		switch {
		case len(all) == 0 && !official(domain):
		case len(all) == 0:
			c.report(at, IDOperator, "", "there is no such operator")
		case int64(all[0].Since) > version:
			c.report(at, IDOperator, "import a newer version of the domain, or convert the model", "version %d of the domain does not have it; it came with %d", version, all[0].Since)
		default:
			c.report(at, IDOperator, "", "version %d of the domain has it no more: it is deprecated", version)
		}
		return
	}
	n := at.node
	c.arity(at, sc, s, "input", s.Inputs, n.Input)
	c.arity(at, sc, s, "output", s.Outputs, n.Output)
	for _, a := range n.Attribute {
		d := s.Attr(a.GetName())
		switch {
		case strings.HasPrefix(a.GetName(), "__"): // the standard leaves these to programs
		case d == nil:
			c.report(at, IDAttribute, hasAttributes(s), "%s-%d has no attribute %q", n.GetOpType(), s.Since, a.GetName())
		case a.Type != nil && a.GetType() != attributeType(d.Type) && !lies(a):
			c.report(at, IDAttribute, "", "the attribute %q of %s-%d must be of type %s, not %s", a.GetName(), n.GetOpType(), s.Since,
				attributeType(d.Type), a.GetType())
		}
	}
	c.subgraphs(at, s.Since)
	for i := range s.Attrs {
		d := &s.Attrs[i]
		if d.Required && !slices.ContainsFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.GetName() == d.Name }) {
			c.report(at, IDAttribute, "", "%s-%d needs the attribute %q", n.GetOpType(), s.Since, d.Name)
		}
	}
}

// hasAttributes lists what an operator takes.
func hasAttributes(s *onnx.OpSchema) string {
	if len(s.Attrs) == 0 {
		return "it takes none"
	}
	names := make([]string, len(s.Attrs))
	for i := range s.Attrs {
		names[i] = s.Attrs[i].Name
	}
	return "it takes " + strings.Join(names, ", ")
}

func (c *checker) arity(at *place, sc *scope, s *onnx.OpSchema, what string, ps []onnx.Param, names []string) {
	least, most := onnx.Arity(ps)
	if len(names) < least || most >= 0 && len(names) > most {
		sc.lost = sc.lost || what == "output"
		c.report(at, IDArity, "", "%s-%d takes %s, the node has %d", at.node.GetOpType(), s.Since, onnx.ArityString(what, least, most), len(names))
		return
	}
	for i, name := range names {
		if p := ps[min(i, len(ps)-1)]; name == "" && p.Option != onnx.Optional {
			sc.lost = sc.lost || what == "output"
			c.report(at, IDArity, "", "the %s %s of %s-%d cannot be left out", what, p.Name, at.node.GetOpType(), s.Since)
		}
	}
}

// subgraphs checks that the bodies of control flow take and give as many values as the node says.
func (c *checker) subgraphs(at *place, since int) {
	n := at.node
	in, out := 0, len(n.Output)
	switch n.GetOpType() {
	case "If":
	case "Loop": // the iteration and the condition come in, the condition goes out
		in, out = max(len(n.Input), 2), out+1
	case "Scan":
		if in = len(n.Input); since < 9 {
			in-- // the lengths of the sequences
		}
	case "SequenceMap":
		in = len(n.Input)
	default:
		return
	}
	for _, a := range n.Attribute {
		if a.G == nil {
			continue
		}
		defaults := map[string]bool{}
		for _, t := range a.G.Initializer {
			defaults[t.GetName()] = true
		}
		have := 0
		for _, v := range a.G.Input {
			if !defaults[v.GetName()] {
				have++
			}
		}
		if have != in || len(a.G.Output) != out {
			c.report(at, IDArity, "", "%s must take %d and give %d values, it takes %d and gives %d", a.GetName(), in, out, have, len(a.G.Output))
		}
	}
}

// attributeTypes are the types of the schemas as files number them.
var attributeTypes = [...]onnxpb.AttributeProto_AttributeType{
	onnx.AttrInt:          onnxpb.AttributeProto_INT,
	onnx.AttrFloat:        onnxpb.AttributeProto_FLOAT,
	onnx.AttrString:       onnxpb.AttributeProto_STRING,
	onnx.AttrTensor:       onnxpb.AttributeProto_TENSOR,
	onnx.AttrGraph:        onnxpb.AttributeProto_GRAPH,
	onnx.AttrInts:         onnxpb.AttributeProto_INTS,
	onnx.AttrFloats:       onnxpb.AttributeProto_FLOATS,
	onnx.AttrStrings:      onnxpb.AttributeProto_STRINGS,
	onnx.AttrSparseTensor: onnxpb.AttributeProto_SPARSE_TENSOR,
	onnx.AttrTypeProto:    onnxpb.AttributeProto_TYPE_PROTO,
}

func attributeType(t onnx.AttrType) onnxpb.AttributeProto_AttributeType { return attributeTypes[t] }

// attribute checks that an attribute has one value, of the type that it states, and what is in it.
func (c *checker) attribute(a *onnxpb.AttributeProto, at *place, s *scope) {
	name := a.GetName()
	if name == "" {
		c.report(at, IDAttribute, "name it", "an attribute has no name")
		return
	}
	fields := filled(a)
	switch {
	case c.ir >= 2 && a.Type == nil:
		c.report(at, IDAttribute, "state it", "the attribute %q does not state its type", name)
	case a.GetRefAttrName() != "" && !c.inFunction:
		c.report(at, IDAttribute, "only nodes of functions can", "the attribute %q refers to %q of a call, and this is no function", name, a.GetRefAttrName())
	case a.GetRefAttrName() != "" && len(fields) > 0:
		c.report(at, IDAttribute, "keep one of them", "the attribute %q has a value and refers to another one", name)
	case len(fields) > 1:
		c.report(at, IDAttribute, "keep one of them", "the attribute %q has values of several types", name)
	case len(fields) == 1 && a.Type != nil && fields[0] != a.GetType():
		c.report(at, IDAttribute, "", "the attribute %q states the type %s and has a value of type %s", name, a.GetType(), fields[0])
	case len(fields) == 0 && a.GetRefAttrName() == "" && a.Type != nil && !repeated(a.GetType()):
		c.report(at, IDAttribute, "", "the attribute %q has no value", name)
	}
	tensors := a.Tensors
	if a.T != nil {
		tensors = append(slices.Clone(tensors), a.T)
	}
	for _, t := range tensors {
		c.tensor(t, "the attribute "+ssa.Quote(name)+": ", at)
	}
	if a.SparseTensor != nil {
		c.sparse(a.SparseTensor, "the attribute "+ssa.Quote(name)+": ", at)
	}
	graphs := a.Graphs
	if a.G != nil {
		graphs = append(slices.Clone(graphs), a.G)
	}
	for _, g := range graphs {
		c.graph(g, at, s)
	}
}

// filled lists the types of the fields that have a value.
func filled(a *onnxpb.AttributeProto) []onnxpb.AttributeProto_AttributeType {
	var out []onnxpb.AttributeProto_AttributeType
	for _, f := range [...]struct {
		there bool
		typ   onnxpb.AttributeProto_AttributeType
	}{
		{a.F != nil, onnxpb.AttributeProto_FLOAT},
		{a.I != nil, onnxpb.AttributeProto_INT},
		{a.S != nil, onnxpb.AttributeProto_STRING},
		{a.T != nil, onnxpb.AttributeProto_TENSOR},
		{a.G != nil, onnxpb.AttributeProto_GRAPH},
		{a.Tp != nil, onnxpb.AttributeProto_TYPE_PROTO},
		{a.SparseTensor != nil, onnxpb.AttributeProto_SPARSE_TENSOR},
		{len(a.Floats) > 0, onnxpb.AttributeProto_FLOATS},
		{len(a.Ints) > 0, onnxpb.AttributeProto_INTS},
		{len(a.Strings) > 0, onnxpb.AttributeProto_STRINGS},
		{len(a.Tensors) > 0, onnxpb.AttributeProto_TENSORS},
		{len(a.Graphs) > 0, onnxpb.AttributeProto_GRAPHS},
		{len(a.SparseTensors) > 0, onnxpb.AttributeProto_SPARSE_TENSORS},
		{len(a.TypeProtos) > 0, onnxpb.AttributeProto_TYPE_PROTOS},
	} {
		if f.there {
			out = append(out, f.typ)
		}
	}
	return out
}

// lies reports an attribute whose value is not of the type that it states.
func lies(a *onnxpb.AttributeProto) bool {
	f := filled(a)
	return len(f) > 0 && f[0] != a.GetType()
}

// repeated reports a type whose value may be empty.
func repeated(t onnxpb.AttributeProto_AttributeType) bool {
	switch t {
	case onnxpb.AttributeProto_FLOATS, onnxpb.AttributeProto_INTS, onnxpb.AttributeProto_STRINGS, onnxpb.AttributeProto_TENSORS,
		onnxpb.AttributeProto_GRAPHS, onnxpb.AttributeProto_SPARSE_TENSORS, onnxpb.AttributeProto_TYPE_PROTOS:
		return true
	}
	return false
}
