package onnxfile

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
)

// Names, documentation and metadata of a file's parts are those of the file that is written from it.
func TestNotes(t *testing.T) {
	str := proto.String
	props := func(v string) []*onnxpb.StringStringEntryProto {
		return []*onnxpb.StringStringEntryProto{entry("team", v)}
	}
	floats := typeProto(ssa.Tensor(tensor.Float32, sym.Const(2)))
	g := &onnxpb.GraphProto{
		Name: str("g"), DocString: str("a graph"), MetadataProps: props("graph"),
		Node: []*onnxpb.NodeProto{
			{OpType: str("Mul"), Name: str("scale it"), Input: []string{"x", "w"}, Output: []string{"a"}, DocString: str("scales"), MetadataProps: props("node")},
			{OpType: str("Relu"), Name: str("end"), Input: []string{"a"}, Output: []string{"y"}},
		},
		Input:  []*onnxpb.ValueInfoProto{{Name: str("x"), Type: floats, DocString: str("the input"), MetadataProps: props("in")}},
		Output: []*onnxpb.ValueInfoProto{{Name: str("y"), Type: floats, DocString: str("the output")}},
		Initializer: []*onnxpb.TensorProto{{Name: str("w"), Dims: []int64{2}, DataType: proto.Int32(1), DocString: str("a weight"),
			MetadataProps: props("weight"), RawData: make([]byte, 8)}},
	}
	p := &onnxpb.ModelProto{IrVersion: proto.Int64(10), ProducerName: str(defaultProducer), Graph: g,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Domain: str(""), Version: proto.Int64(21)}}, DocString: str("a model"), MetadataProps: props("model")}
	written := func(p *onnxpb.ModelProto, opset int) *onnxpb.ModelProto {
		t.Helper()
		b, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		m, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		m.Opsets[""] = opset
		var out bytes.Buffer
		if err := WriteTo(&out, m, Options{}); err != nil {
			t.Fatal(err)
		}
		q := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(out.Bytes(), q); err != nil {
			t.Fatal(err)
		}
		return q
	}
	if diff := cmp.Diff(p, written(p, 21), protocmp.Transform()); diff != "" {
		t.Errorf("the file that was read (-) and the one that is written (+):\n%s", diff)
	}
	// Metadata of nodes came with IR version 10, documentation was always there.
	old := written(p, 20).Graph.Node[0]
	if old.GetDocString() != "scales" || old.MetadataProps != nil {
		t.Errorf("at opset 20: %v", old)
	}
}

// What cannot be kept is said.
func TestDropped(t *testing.T) {
	g := &onnxpb.GraphProto{Name: proto.String("g"), QuantizationAnnotation: []*onnxpb.TensorAnnotation{{TensorName: proto.String("x")}}}
	b, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(10), Graph: g, TrainingInfo: []*onnxpb.TrainingInfoProto{{}},
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(21)}}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(m.File.Dropped, "\n"); !strings.Contains(said, "training_info") || !strings.Contains(said, "quantization_annotation") {
		t.Errorf("said %q", said)
	}
}

// Outputs keep their names where they are inputs or other outputs again.
func TestOutputNames(t *testing.T) {
	m := sample()
	m.Main().OutputNames = []string{"a", "b", "x", "d"}
	var b bytes.Buffer
	if err := WriteTo(&b, m, Options{}); err != nil {
		t.Fatal(err)
	}
	again, err := Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.Main().OutputNames, again.Main().OutputNames); diff != "" {
		t.Errorf("names of outputs:\n%s", diff)
	}
	if r := again.Main().Body.Return(2); r.Param() == nil {
		t.Errorf("the output x is %s, no longer the input", r.Name)
	}
}
