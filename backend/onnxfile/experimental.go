package onnxfile

import (
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// Operators that ONNX had as experimental ones until its release 1.5. Files of that time have them and onnxruntime still runs them, so they are read
// as what defines them in operators of the standard.

// experimental builds what defines an operator. An operator without an attribute that has no default is left as it is.
var experimental = map[string]func(e *expansion, x string) (y string, ok bool){
	"Affine": func(e *expansion, x string) (string, bool) {
		alpha, _ := e.number("alpha", 1)
		beta, _ := e.number("beta", 0)
		return e.binary("Add", e.binary("Mul", x, alpha), beta), true
	},
	"Scale": func(e *expansion, x string) (string, bool) {
		scale, _ := e.number("scale", 1)
		return e.binary("Mul", x, scale), true
	},
	"ScaledTanh": func(e *expansion, x string) (string, bool) {
		return e.scaled("Tanh", x)
	},
	"ParametricSoftplus": func(e *expansion, x string) (string, bool) {
		return e.scaled("Softplus", x)
	},
	"ImageScaler": func(e *expansion, x string) (string, bool) {
		scale, _ := e.number("scale", 1)
		bias := e.attr("bias")
		if bias == nil {
			return "", false
		}
		return e.perChannel("Add", e.binary("Mul", x, scale), bias.Floats), true
	},
	"Crop": func(e *expansion, x string) (string, bool) {
		border := e.attr("border")
		if border == nil || len(border.Ints) != 4 { // left, top, right, bottom
			return "", false
		}
		left, top := border.Ints[0], border.Ints[1]
		end := func(border int64) int64 {
			if border == 0 {
				return math.MaxInt32
			}
			return -border
		}
		bottom, right := end(border.Ints[3]), end(border.Ints[2])
		if scale := e.attr("scale"); scale != nil {
			if len(scale.Ints) != 2 {
				return "", false
			}
			bottom, right = top+scale.Ints[0], left+scale.Ints[1]
		}
		return e.slice(x, []int64{top, left}, []int64{bottom, right}, []int64{2, 3}), true
	},
}

// expansion is an experimental operator on its way to others.
type expansion struct {
	node  *onnxpb.NodeProto
	opset int64
	made  []*onnxpb.NodeProto
}

func (e *expansion) attr(name string) *onnxpb.AttributeProto {
	i := slices.IndexFunc(e.node.Attribute, func(a *onnxpb.AttributeProto) bool { return a.GetName() == name })
	if i < 0 {
		return nil
	}
	return e.node.Attribute[i]
}

// add makes a node and gives the name of its result.
func (e *expansion) add(op string, attrs []*onnxpb.AttributeProto, inputs ...string) string {
	y := e.node.Output[0] + "/" + e.node.GetOpType() + "/" + string(rune('a'+len(e.made)))
	e.made = append(e.made, &onnxpb.NodeProto{OpType: proto.String(op), Name: e.node.Name, DocString: e.node.DocString, MetadataProps: e.node.MetadataProps,
		Input: inputs, Output: []string{y}, Attribute: attrs})
	return y
}

func (e *expansion) constant(t *onnxpb.TensorProto) string {
	return e.add("Constant", []*onnxpb.AttributeProto{{Name: proto.String("value"), Type: onnxpb.AttributeProto_TENSOR.Enum(), T: t}})
}

func (e *expansion) floats(v []float32, shape ...int64) string {
	return e.constant(&onnxpb.TensorProto{DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: shape, FloatData: v})
}

// number is an attribute as a constant; given reports that the node has it.
func (e *expansion) number(name string, def float32) (y string, given bool) {
	if a := e.attr(name); a != nil {
		def, given = a.GetF(), true
	}
	return e.floats([]float32{def}), given
}

// binary is an operator that broadcasts its second operand, which opsets before 7 ask for.
func (e *expansion) binary(op, a, b string, more ...*onnxpb.AttributeProto) string {
	if e.opset < 7 {
		more = append(more, intOf("broadcast", 1))
	}
	return e.add(op, more, a, b)
}

// perChannel is a binary operator with a number for each channel.
func (e *expansion) perChannel(op, x string, v []float32) string {
	n := int64(len(v))
	if e.opset < 7 {
		return e.binary(op, x, e.floats(v, n), intOf("axis", 1))
	}
	return e.binary(op, x, e.floats(v, n, 1, 1))
}

// scaled is alpha * f(beta * x).
func (e *expansion) scaled(f, x string) (string, bool) {
	alpha, ok := e.number("alpha", 0)
	beta, ok2 := e.number("beta", 0)
	return e.binary("Mul", e.add(f, nil, e.binary("Mul", x, beta)), alpha), ok && ok2
}

func (e *expansion) slice(x string, starts, ends, axes []int64) string {
	if e.opset < 10 {
		return e.add("Slice", []*onnxpb.AttributeProto{intsOf("starts", starts), intsOf("ends", ends), intsOf("axes", axes)}, x)
	}
	in := []string{x}
	for _, v := range [][]int64{starts, ends, axes} {
		in = append(in, e.constant(&onnxpb.TensorProto{DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)), Dims: []int64{int64(len(v))}, Int64Data: v}))
	}
	return e.add("Slice", nil, in...)
}

func intOf(name string, v int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(v)}
}

func intsOf(name string, v []int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: v}
}

// expandNodes puts the nodes that a function makes in the place of nodes of the default domain, and in the graphs inside. The last one gets the outputs; of none
// the node stays.
func expandNodes(nodes []*onnxpb.NodeProto, replace func(n *onnxpb.NodeProto) []*onnxpb.NodeProto) []*onnxpb.NodeProto {
	var out []*onnxpb.NodeProto // nil while nothing was replaced
	for i, n := range nodes {
		for _, g := range graphs(n) {
			g.Node = expandNodes(g.Node, replace)
		}
		if (n.GetDomain() == "" || n.GetDomain() == "ai.onnx") && len(n.Output) > 0 && n.Output[0] != "" {
			if made := replace(n); len(made) > 0 {
				made[len(made)-1].Output = n.Output
				if out == nil {
					out = slices.Clone(nodes[:i])
				}
				out = append(out, made...)
				continue
			}
		}
		if out != nil {
			out = append(out, n)
		}
	}
	if out == nil {
		return nodes
	}
	return out
}

// expand replaces the experimental operators of a model's graph.
func expand(p *onnxpb.ModelProto, g *onnxpb.GraphProto) {
	opset := defaultOpset(p)
	defined := map[string]bool{}
	for _, f := range p.Functions {
		if f.GetDomain() == "" || f.GetDomain() == "ai.onnx" {
			defined[f.GetName()] = true
		}
	}
	g.Node = expandNodes(g.Node, func(n *onnxpb.NodeProto) []*onnxpb.NodeProto {
		build := experimental[n.GetOpType()]
		if build == nil || defined[n.GetOpType()] || len(n.Input) != 1 || len(n.Output) != 1 {
			return nil
		}
		e := &expansion{node: n, opset: opset}
		if _, ok := build(e, n.Input[0]); !ok {
			return nil
		}
		return e.made
	})
}

// defaultOpset is the version of the default domain that a model imports.
func defaultOpset(p *onnxpb.ModelProto) int64 {
	opset := int64(1)
	for _, o := range p.OpsetImport {
		if d := o.GetDomain(); d == "" || d == "ai.onnx" {
			opset = max(opset, o.GetVersion())
		}
	}
	return opset
}
