package onnxfile

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/backend/onnxfile/check"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"google.golang.org/protobuf/proto"
)

// TestWriteRefuses: a module that was built wrongly is not written.
func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		build func(f *ssa.Func, x *ssa.Value) *ssa.Value
		want  string
	}{
		"an attribute": {func(f *ssa.Func, x *ssa.Value) *ssa.Value {
			o := f.Body.Append("onnx::Relu", 0, []*ssa.Value{x}, x.Type)
			o.SetAttr("zzz", ssa.Int(1))
			return o.Results[0]
		}, `the model would not be valid: node 0 "/Relu": onnx::Relu: Relu-14 has no attribute "zzz"; it takes none`},
		"a shape": {func(f *ssa.Func, x *ssa.Value) *ssa.Value {
			return f.Body.Append("onnx::Relu", 0, []*ssa.Value{x}, ssa.Tensor(tensor.Float32, sym.Const(7))).Results[0]
		}, `the model would not be valid: onnx::Relu: output 0 is stated to be Float(7), and it is Float(2): axis 0 differs`},
		"no rank": {func(f *ssa.Func, x *ssa.Value) *ssa.Value {
			return f.Body.Append("my::Op", 0, []*ssa.Value{x}, ssa.Unranked(tensor.Float32)).Results[0]
		}, `the model would not be valid: the output "/Op_output_0" of the graph has no shape`},
	} {
		m := ssa.NewModule(onnx.Dialect{})
		m.Opsets = map[string]int{"": 17}
		f := m.NewFunc("main")
		f.Body.SetReturns(c.build(f, f.Body.AddParam("x", ssa.Tensor(tensor.Float32, sym.Const(2)))))
		err := WriteTo(&bytes.Buffer{}, m, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	m := sample()
	m.Opsets = nil
	if err := WriteTo(&bytes.Buffer{}, m, Options{}); err == nil || !strings.Contains(err.Error(), "for no opset") {
		t.Errorf("a module without an opset: %v", err)
	}
}

// TestAllAtOnce: every problem is told, and what follows from one is not.
func TestAllAtOnce(t *testing.T) {
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(encode(t, sample()), p); err != nil {
		t.Fatal(err)
	}
	g := p.Graph
	g.Node[0].Input[0] = "nowhere"
	g.Node[1].Attribute = append(g.Node[1].Attribute, &onnxpb.AttributeProto{Name: proto.String("zzz"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(1)})
	g.Output[0].Type = nil
	p.IrVersion = proto.Int64(99)
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Parse(b)
	var list *diag.List
	if !errors.As(err, &list) {
		t.Fatal(err)
	}
	var ids []string
	for _, d := range list.Items {
		ids = append(ids, d.ID)
	}
	if got, want := fmt.Sprint(ids), fmt.Sprint([]string{check.IDVersion, check.IDName, check.IDAttribute, check.IDType}); got != want {
		t.Errorf("%s, want %s:\n%v", got, want, err)
	}
}

// TestIgnored: what looks odd and is valid passes.
func TestIgnored(t *testing.T) {
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(encode(t, sample()), p); err != nil {
		t.Fatal(err)
	}
	p.OpsetImport = append(p.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String(""), Version: proto.Int64(9)},
		&onnxpb.OperatorSetIdProto{Domain: proto.String("unused.domain"), Version: proto.Int64(3)})
	p.Graph.Node[0].Name = p.Graph.Node[1].Name
	p.Graph.ValueInfo = append(p.Graph.ValueInfo, &onnxpb.ValueInfoProto{Name: proto.String("of_nothing")})
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if n := m.Opsets[""]; n != 20 {
		t.Errorf("opset %d: of several imports of one domain the newest counts", n)
	}
}

// TestTolerated: what runtimes read, and other converters write. A size of -1 is one that is not known, and a subgraph's output may have a type in which nothing stands.
func TestTolerated(t *testing.T) {
	m, err := ssa.Parse(`graph(%c : Bool(), %x : Float(N, 3)):
  %y : Float(N, 3) = onnx::If(%c)
    block0():
      %a : Float(N, 3) = onnx::Relu(%x)
      -> (%a)
    block1():
      %b : Float(N, 3) = onnx::Neg(%x)
      -> (%b)
  return (%y)`, "test", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	m.Opsets = map[string]int{"": 20}
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(encode(t, m), p); err != nil {
		t.Fatal(err)
	}
	for _, a := range p.Graph.Node[0].Attribute {
		a.G.Output[0].Type = &onnxpb.TypeProto{}
	}
	size := func(v *onnxpb.ValueInfoProto, n int64) {
		v.Type.GetTensorType().Shape.Dim[0].Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}
	}
	read := func() (*ssa.Module, error) {
		b, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return Parse(b)
	}
	size(p.Graph.Input[1], -1)
	size(p.Graph.Output[0], -1)
	m, err = read()
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Main().Body.Params[1].Tensor().Dims[0]; d.IsConst() {
		t.Errorf("a size of -1 is read as %v", d)
	}
	size(p.Graph.Input[1], -2)
	if _, err := read(); err == nil || !strings.Contains(err.Error(), "has size -2 on axis 0") {
		t.Errorf("a size of -2: %v", err)
	}
}

// BenchmarkCheck checks the names and schemas of graphs of two sizes: ns/node must not grow.
func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1000, 100_000} {
		g := &onnxpb.GraphProto{Name: proto.String("g")}
		info := func(name string) *onnxpb.ValueInfoProto {
			return &onnxpb.ValueInfoProto{Name: &name, Type: typeProto(ssa.Tensor(tensor.Float32, sym.Const(3)))}
		}
		g.Input = append(g.Input, info("x0"))
		for i := range n {
			g.Node = append(g.Node, &onnxpb.NodeProto{OpType: proto.String("LeakyRelu"), Input: []string{fmt.Sprint("x", i)}, Output: []string{fmt.Sprint("x", i+1)},
				Attribute: []*onnxpb.AttributeProto{{Name: proto.String("alpha"), Type: onnxpb.AttributeProto_FLOAT.Enum(), F: proto.Float32(0.1)}}})
		}
		g.Output = append(g.Output, info(fmt.Sprint("x", n)))
		f := check.File{Model: &onnxpb.ModelProto{IrVersion: proto.Int64(8), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(17)}}}, Graph: g}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				if err := f.Check(&diag.Table{}).Err(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
		})
	}
}

// Functions that call each other twice, 40 deep, are more nodes than any machine has.
func TestInlineBudget(t *testing.T) {
	str := proto.String
	imports := []*onnxpb.OperatorSetIdProto{{Domain: str(""), Version: proto.Int64(20)}, {Domain: str("f"), Version: proto.Int64(1)}}
	value := func(name string) *onnxpb.ValueInfoProto {
		return &onnxpb.ValueInfoProto{Name: &name, Type: typeProto(ssa.Tensor(tensor.Float32, sym.Const(3)))}
	}
	call := func(i int, in, out string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: str(fmt.Sprint("F", i)), Domain: str("f"), Input: []string{in}, Output: []string{out}}
	}
	p := &onnxpb.ModelProto{IrVersion: proto.Int64(10), OpsetImport: imports, Graph: &onnxpb.GraphProto{Name: str("g"), Node: []*onnxpb.NodeProto{call(40, "x", "y")},
		Input: []*onnxpb.ValueInfoProto{value("x")}, Output: []*onnxpb.ValueInfoProto{value("y")}}}
	for i := range 41 {
		f := &onnxpb.FunctionProto{Name: str(fmt.Sprint("F", i)), Domain: str("f"), Input: []string{"a"}, Output: []string{"b"}, OpsetImport: imports,
			Node: []*onnxpb.NodeProto{{OpType: str("Relu"), Input: []string{"a"}, Output: []string{"b"}}}}
		if i > 0 {
			f.Node = []*onnxpb.NodeProto{call(i-1, "a", "c"), call(i-1, "c", "b")}
		}
		p.Functions = append(p.Functions, f)
	}
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(b); err == nil || err.Error() != "too many nodes: the calls of functions make more than 500000" {
		t.Errorf("error %v", err)
	}
}
