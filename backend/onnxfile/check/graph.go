package check

import (
	"fmt"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// scope holds the names that nodes may use at one place; inner graphs see the outer ones.
type scope struct {
	names map[string]bool
	nodes []*onnxpb.NodeProto // all of the graph
	later map[string]int      // what they compute, made when it is first asked for
	// told are names that are not there, and reported; lost is set when a node's output was.
	told  map[string]bool
	lost  bool
	outer *scope
}

func newScope(outer *scope, nodes []*onnxpb.NodeProto) *scope {
	return &scope{names: make(map[string]bool, len(nodes)), nodes: nodes, told: map[string]bool{}, outer: outer}
}

// add adds the name of a value, and reports whether it is new in this graph.
func (s *scope) add(name string) bool {
	if s.names[name] {
		return false
	}
	s.names[name] = true
	return true
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.outer {
		if s.names[name] {
			return true
		}
	}
	return false
}

// comesLater finds the node that computes a name that is not there yet, in this graph or one around it.
func (s *scope) comesLater(name string) (int, bool) {
	for ; s != nil; s = s.outer {
		if s.later == nil {
			s.later = map[string]int{}
			for i, n := range s.nodes {
				for _, out := range n.Output {
					if _, ok := s.later[out]; !ok {
						s.later[out] = i
					}
				}
			}
		}
		if i, ok := s.later[name]; ok {
			return i, true
		}
	}
	return 0, false
}

// graph checks a graph: the main one if outer is nil, else a subgraph of the node at.
func (c *checker) graph(g *onnxpb.GraphProto, at *place, outer *scope) {
	main := outer == nil
	if at.depth() > maxDepth {
		c.report(at, IDName, "", "subgraphs are nested more than %d deep", maxDepth)
		return
	}
	if g.GetName() == "" {
		c.report(at, IDName, "name it: main_graph", "%s has no name", graphOf(at))
	}
	s := newScope(outer, g.Node)
	for _, in := range g.Input {
		c.valueInfo(in, "input", main, at)
		if in.GetName() != "" && !s.add(in.GetName()) {
			c.report(at, IDName, "rename one", "two inputs of %s are called %q", graphOf(at), in.GetName())
		}
	}
	c.initializers(g, at, s)
	for i, n := range g.Node {
		c.node(&place{n, i, at}, s)
	}
	for _, out := range g.Output {
		c.valueInfo(out, "output", main, at)
		if out.GetName() == "" || s.has(out.GetName()) || s.lost {
			continue
		}
		c.report(at, IDName, "name one that a node computes", "the output %q of %s is computed by no node", out.GetName(), graphOf(at))
	}
}

func graphOf(at *place) string {
	if at == nil {
		return "the graph"
	}
	return "the subgraph"
}

func (c *checker) initializers(g *onnxpb.GraphProto, at *place, s *scope) {
	names := map[string]bool{}
	one := func(name string) {
		switch {
		case name == "":
			c.report(at, IDTensor, "name it", "an initializer has no name")
			return
		case names[name]:
			c.report(at, IDName, "rename one", "two initializers are called %q", name)
		case c.ir < 4 && c.ir > 0 && !s.names[name]:
			c.report(at, IDVersion, "list it among the inputs, or set ir_version to 4 or more", "the initializer %q is no input, which IR version %d demands", name, c.ir)
		}
		names[name] = true
		s.add(name)
	}
	if at == nil {
		for _, name := range c.file.Weights {
			one(name)
		}
	}
	for _, t := range g.Initializer {
		one(t.GetName())
		c.tensor(t, fmt.Sprintf("initializer %q: ", t.GetName()), at)
	}
	for _, t := range g.SparseInitializer {
		one(t.GetValues().GetName())
		c.sparse(t, fmt.Sprintf("initializer %q: ", t.GetValues().GetName()), at)
	}
}

// valueInfo checks an input or output of a graph. Only those of the main graph need types.
func (c *checker) valueInfo(v *onnxpb.ValueInfoProto, what string, main bool, at *place) {
	if v.GetName() == "" {
		c.report(at, IDName, "name it", "an %s of %s has no name", what, graphOf(at))
		return
	}
	if what == "output" && c.file.Repaired {
		main = false
	}
	if v.GetType().GetValue() == nil && !main {
		return
	}
	if why := typeProblem(v.Type, main, 0); why != "" {
		c.report(at, IDType, "state its element type and shape; a size may be a name", "the %s %q of %s %s", what, v.GetName(), graphOf(at), why)
	}
}

// typeProblem says what a type lacks; a tensor of the main graph needs a shape.
func typeProblem(t *onnxpb.TypeProto, main bool, depth int) string {
	if depth > maxDepth {
		return "has a type that is nested too deep"
	}
	switch v := t.GetValue().(type) {
	case nil:
		return "has no type"
	case *onnxpb.TypeProto_TensorType:
		return tensorTypeProblem(v.TensorType.GetElemType(), v.TensorType.GetShape(), main && depth == 0)
	case *onnxpb.TypeProto_SparseTensorType:
		return tensorTypeProblem(v.SparseTensorType.GetElemType(), v.SparseTensorType.GetShape(), main && depth == 0)
	case *onnxpb.TypeProto_SequenceType:
		return typeProblem(v.SequenceType.GetElemType(), main, depth+1)
	case *onnxpb.TypeProto_OptionalType:
		return typeProblem(v.OptionalType.GetElemType(), main, depth+1)
	case *onnxpb.TypeProto_MapType:
		return typeProblem(v.MapType.GetValueType(), main, depth+1)
	}
	return ""
}

// unknownSize stands in files of other converters for a size that is not known. The standard leaves such a size out.
const unknownSize = -1

func tensorTypeProblem(elem int32, shape *onnxpb.TensorShapeProto, needShape bool) string {
	switch _, known := onnxpb.TensorProto_DataType_name[elem]; {
	case elem == 0:
		return "has no element type"
	case !known:
		return fmt.Sprintf("has the element type %d, which does not exist", elem)
	case shape == nil && needShape:
		return "has no shape"
	}
	for i, d := range shape.GetDim() {
		if v, ok := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue); ok && v.DimValue < unknownSize {
			return fmt.Sprintf("has size %d on axis %d", v.DimValue, i)
		}
	}
	return ""
}
