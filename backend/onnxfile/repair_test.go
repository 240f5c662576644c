package onnxfile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/tensor"
	"google.golang.org/protobuf/proto"
)

func value(name string, dims ...int64) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}}}}
}

func node(domain, op, out string, in ...string) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{Domain: proto.String(domain), OpType: proto.String(op), Input: in, Output: []string{out}}
}

// mended is a model of Relu and Neg without defects.
func mended() *onnxpb.ModelProto {
	return &onnxpb.ModelProto{IrVersion: proto.Int64(8), OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: proto.String(""), Version: proto.Int64(13)}},
		Graph: &onnxpb.GraphProto{Name: proto.String("g"), Input: []*onnxpb.ValueInfoProto{value("x", 2, 3)}, Output: []*onnxpb.ValueInfoProto{value("y", 2, 3)},
			Node: []*onnxpb.NodeProto{node("", "Relu", "a", "x"), node("", "Neg", "y", "a")}}}
}

// TestRepair: each defect alone is refused, is repaired where that is asked for, and told; the file that is written has it no more.
func TestRepair(t *testing.T) {
	floats := func(name string, n int) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: []int64{int64(n)}, FloatData: make([]float32, n)}
	}
	for _, c := range []struct {
		name, told string
		spoil      func(p *onnxpb.ModelProto)
	}{
		{"name", "the graph has a name now", func(p *onnxpb.ModelProto) { p.Graph.Name = nil }},
		{"import", "version 1 of the domain com.microsoft is imported", func(p *onnxpb.ModelProto) { p.Graph.Node[0] = node("com.microsoft", "Gelu", "a", "x") }},
		{"order", "the nodes are sorted", func(p *onnxpb.ModelProto) { n := p.Graph.Node; n[0], n[1] = n[1], n[0] }},
		{"initializer", "the IR version is 4 instead of 3", func(p *onnxpb.ModelProto) {
			p.IrVersion, p.Graph.Initializer = proto.Int64(3), []*onnxpb.TensorProto{floats("w", 3)}
			p.Graph.Node[1] = node("", "Add", "y", "a", "w")
		}},
		{"type", `the output "y" has the type`, func(p *onnxpb.ModelProto) { p.Graph.Output[0].Type = nil }},
		{"shape", `the output "y" has the shape`, func(p *onnxpb.ModelProto) { p.Graph.Output[0].Type.GetTensorType().Shape = nil }},
		{"stated", "onnx::Neg", func(p *onnxpb.ModelProto) { p.Graph.Output[0] = value("y", 3, 2) }},
		{"rank", "onnx::Relu", func(p *onnxpb.ModelProto) { p.Graph.ValueInfo = []*onnxpb.ValueInfoProto{value("a", 6)} }},
		{"norm", "LayerNormalization came with opset 17", func(p *onnxpb.ModelProto) {
			p.Graph.Initializer = []*onnxpb.TensorProto{floats("w", 3)}
			p.Graph.Node[1] = node("", "LayerNormalization", "y", "a", "w")
		}},
		{"simplified", "SimplifiedLayerNormalization, which the standard does not have", func(p *onnxpb.ModelProto) {
			p.Graph.Initializer = []*onnxpb.TensorProto{floats("w", 3)}
			p.Graph.Node[1] = node("", "SimplifiedLayerNormalization", "y", "a", "w")
		}},
	} {
		p := mended()
		c.spoil(p)
		b, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(b); err == nil {
			t.Errorf("%s: accepted without repair", c.name)
		}
		m, err := ReadOptions{Repair: true}.Parse(b)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if told := strings.Join(m.File.Dropped, "\n"); !strings.Contains(told, c.told) {
			t.Errorf("%s: told %q", c.name, told)
		}
		for _, v := range m.Main().Body.Returns() {
			if y := v.Tensor(); c.name != "import" && (y == nil || !y.Ranked || y.DType != tensor.Float32 || len(y.Dims) != 2 || !y.Dims[1].Is(3)) {
				t.Errorf("%s: the output is a %v", c.name, v.Type)
			}
		}
		if err := onnx.RaiseModule(m, false); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		switch c.name {
		case "import", "norm", "simplified": // written at another opset, or not run
			continue
		}
		m.Opsets[""] = onnx.Newest
		if _, err := Parse(encode(t, m)); err != nil {
			t.Errorf("%s: what is written is refused: %v", c.name, err)
		}
	}
}

// TestRepairRefuses: what runtimes refuse stays refused.
func TestRepairRefuses(t *testing.T) {
	for name, spoil := range map[string]func(p *onnxpb.ModelProto){
		"cycle":        func(p *onnxpb.ModelProto) { p.Graph.Node[0].Input[0] = "y" },
		"element type": func(p *onnxpb.ModelProto) { p.Graph.Output[0].Type.GetTensorType().ElemType = proto.Int32(7) },
		"opset":        func(p *onnxpb.ModelProto) { p.OpsetImport = nil },
		"operator":     func(p *onnxpb.ModelProto) { p.Graph.Node[0] = node("", "Rule", "a", "x") },
	} {
		p := mended()
		spoil(p)
		b, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (ReadOptions{Repair: true}).Parse(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestRepairChangesNothing: a file without defects is read as without repair.
func TestRepairChangesNothing(t *testing.T) {
	b, err := proto.Marshal(mended())
	if err != nil {
		t.Fatal(err)
	}
	plain, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	repaired, err := ReadOptions{Repair: true}.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encode(t, plain), encode(t, repaired)) || len(repaired.File.Dropped) > 0 {
		t.Errorf("a sound file changes: %q", repaired.File.Dropped)
	}
}

// TestRepairedOrder: sorted nodes compute what they say, also where a branch reads what stood behind it.
func TestRepairedOrder(t *testing.T) {
	branch := func(out, in string) *onnxpb.AttributeProto {
		name := map[string]string{"t": "then_branch", "e": "else_branch"}[out]
		return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_GRAPH.Enum(), G: &onnxpb.GraphProto{Name: proto.String(out),
			Node: []*onnxpb.NodeProto{node("", "Neg", out, in)}, Output: []*onnxpb.ValueInfoProto{{Name: proto.String(out)}}}}
	}
	p := mended()
	choice := node("", "If", "y", "c")
	choice.Attribute = []*onnxpb.AttributeProto{branch("t", "a"), branch("e", "x")}
	p.Graph.Node = []*onnxpb.NodeProto{choice, node("", "Relu", "a", "x")}
	p.Graph.Initializer = []*onnxpb.TensorProto{{Name: proto.String("c"), DataType: proto.Int32(int32(onnxpb.TensorProto_BOOL)), Int32Data: []int32{1}}}
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := ReadOptions{Repair: true}.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.FromFloats(tensor.Float32, []int64{2, 3}, []float64{-1, 2, -3, 4, -5, 6})
	out, err := (&interp.Interpreter{}).RunFunc(m.Main(), []interp.Value{interp.Of(x)})
	if err != nil {
		t.Fatal(err)
	}
	if y := out[0].Tensor.Float64s(); y[1] != -2 || y[0] != 0 || y[5] != -6 {
		t.Errorf("%v", y)
	}
}
