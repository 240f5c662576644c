package onnxfile

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// repairer changes a file that runtimes load although the standard refuses it, and tells each change.
//
//   - A graph without name gets one.
//   - A domain that nodes use and the model does not import is imported in version 1; the default domain is not, since its versions differ.
//   - Nodes are sorted, each behind those whose outputs it reads.
//   - An initializer that IR version 3 wants among the inputs stays a constant: the version becomes 4.
//   - LayerNormalization may stand below opset 17, and SimplifiedLayerNormalization is RMSNormalization, which came with opset 23.
//   - An output without type or shape has the computed one, and so has a value of which a shape is stated that is not its own. An element type that is stated
//     wrongly stays an error: runtimes refuse it too.
type repairer struct {
	told []string
}

// tell tells a change, once where it is the same for several nodes.
func (r *repairer) tell(format string, args ...any) {
	if text := "repaired: " + fmt.Sprintf(format, args...); !slices.Contains(r.told, text) {
		r.told = append(r.told, text)
	}
}

// model repairs a model whose graph and initializers are apart from it.
func (r *repairer) model(p *onnxpb.ModelProto, g *onnxpb.GraphProto, inits []namedTensor) {
	if g.GetName() == "" {
		g.Name = proto.String("main_graph")
		r.tell("the graph has a name now: main_graph")
	}
	r.imports(p, g)
	r.sort(g)
	r.version(p, g, inits)
	r.normalizations(p, g)
	r.outputs(g)
}

// graphs are those of a node's attributes.
func graphs(n *onnxpb.NodeProto) []*onnxpb.GraphProto {
	var out []*onnxpb.GraphProto
	for _, a := range n.Attribute {
		out = append(out, a.Graphs...)
		if a.G != nil {
			out = append(out, a.G)
		}
	}
	return out
}

// eachNode calls f for the nodes of a graph and of those in it.
func eachNode(g *onnxpb.GraphProto, f func(n *onnxpb.NodeProto)) {
	for _, n := range g.Node {
		f(n)
		for _, inner := range graphs(n) {
			eachNode(inner, f)
		}
	}
}

func (r *repairer) imports(p *onnxpb.ModelProto, g *onnxpb.GraphProto) {
	imported := map[string]bool{"": true, "ai.onnx": true}
	for _, o := range p.OpsetImport {
		imported[o.GetDomain()] = true
	}
	eachNode(g, func(n *onnxpb.NodeProto) {
		if d := n.GetDomain(); !imported[d] {
			imported[d] = true
			p.OpsetImport = append(p.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String(d), Version: proto.Int64(1)})
			r.tell("version 1 of the domain %s is imported", d)
		}
	})
}

// operandsOf lists the names that a node needs from outside of it: its inputs, and what its graphs read of the graph around them.
func operandsOf(n *onnxpb.NodeProto) []string {
	out := slices.Clone(n.Input)
	for _, g := range graphs(n) {
		own := map[string]bool{}
		for _, v := range g.Input {
			own[v.GetName()] = true
		}
		for _, t := range g.Initializer {
			own[t.GetName()] = true
		}
		for _, m := range g.Node {
			for _, name := range m.Output {
				own[name] = true
			}
		}
		var inner []string
		for _, m := range g.Node {
			inner = append(inner, operandsOf(m)...)
		}
		for _, v := range g.Output {
			inner = append(inner, v.GetName())
		}
		for _, name := range inner {
			if !own[name] {
				out = append(out, name)
			}
		}
	}
	return out
}

// sort puts the nodes of a graph, and of those in it, behind what they read. Nodes that read each other's outputs stay, for the check to refuse.
func (r *repairer) sort(g *onnxpb.GraphProto) {
	for _, n := range g.Node {
		for _, inner := range graphs(n) {
			r.sort(inner)
		}
	}
	maker := map[string]int{}
	for i, n := range g.Node {
		for _, name := range n.Output {
			if _, twice := maker[name]; !twice && name != "" {
				maker[name] = i
			}
		}
	}
	const open, closed = 1, 2
	state := make([]int, len(g.Node))
	sorted, cycle := make([]*onnxpb.NodeProto, 0, len(g.Node)), false
	type visit struct {
		node int
		left []string
	}
	for i := range g.Node {
		if state[i] != 0 {
			continue
		}
		state[i] = open
		stack := []visit{{i, operandsOf(g.Node[i])}}
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.left) == 0 {
				state[top.node] = closed
				sorted = append(sorted, g.Node[top.node])
				stack = stack[:len(stack)-1]
				continue
			}
			name := top.left[0]
			top.left = top.left[1:]
			k, ok := maker[name]
			switch {
			case !ok || state[k] == closed:
			case state[k] == open:
				cycle = true
			default:
				state[k] = open
				stack = append(stack, visit{k, operandsOf(g.Node[k])})
			}
		}
	}
	if !cycle && !slices.Equal(sorted, g.Node) {
		g.Node = sorted
		r.tell("the nodes are sorted, each behind those whose outputs it reads")
	}
}

// version raises the IR version of a model whose initializers are no inputs.
func (r *repairer) version(p *onnxpb.ModelProto, g *onnxpb.GraphProto, inits []namedTensor) {
	if v := p.GetIrVersion(); v < 1 || v > 3 {
		return
	}
	inputs := map[string]bool{}
	for _, in := range g.Input {
		inputs[in.GetName()] = true
	}
	for _, t := range inits {
		if !inputs[t.name] {
			r.tell("the IR version is 4 instead of %d: the initializer %q is no input", p.GetIrVersion(), t.name)
			p.IrVersion = proto.Int64(4)
			return
		}
	}
}

// normalizations reads what onnxruntime has under a name of its own in the default domain, or in opsets that do not have it.
func (r *repairer) normalizations(p *onnxpb.ModelProto, g *onnxpb.GraphProto) {
	opset := defaultOpset(p)
	eachNode(g, func(n *onnxpb.NodeProto) {
		if d := n.GetDomain(); d != "" && d != "ai.onnx" {
			return
		}
		name := n.GetOpType()
		if name == "SimplifiedLayerNormalization" && len(n.Output) == 1 {
			n.OpType = proto.String("RMSNormalization")
			r.tell("SimplifiedLayerNormalization, which the standard does not have, is RMSNormalization")
		} else if v := onnx.Versions(name); onnx.Ahead(ssa.Kind(onnx.Namespace+"::"+name)) && opset < int64(v[0].Since) {
			r.tell("%s came with opset %d, and the model imports %d", name, v[0].Since, opset)
		}
	})
}

// outputs forgets what is stated of an output without shape: it has the type that is computed.
func (r *repairer) outputs(g *onnxpb.GraphProto) {
	for _, v := range g.Output {
		t := v.GetType().GetTensorType()
		switch {
		case v.GetType().GetValue() == nil:
			r.tell("the output %q has the type that is computed", v.GetName())
		case t != nil && t.Shape == nil:
			r.tell("the output %q has the shape that is computed", v.GetName())
		}
	}
}
