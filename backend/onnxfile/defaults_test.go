package onnxfile

import (
	"bytes"
	"testing"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
	"google.golang.org/protobuf/proto"
)

// overridable is x * s, where the input s holds 2 unless the caller says otherwise.
func overridable() *ssa.Module {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": 17}
	f := m.NewFunc("main")
	x := f.Body.AddParam("x", ssa.Tensor(tensor.Float32, sym.Const(3)))
	s := f.Body.AddParam("s", ssa.Tensor(tensor.Float32, sym.Const(1)))
	f.Body.SetReturns(f.Body.Append("onnx::Mul", 0, []*ssa.Value{x, s}, x.Type).Results[0])
	m.Defaults = map[string]*tensor.Tensor{"s": tensor.FromFloats(tensor.Float32, []int64{1}, []float64{2})}
	return m
}

// TestDefaults: an input with a default value is written and read as one, at every opset; from the initializer of the older file
// format, in which nothing can be overridden, a constant is read.
func TestDefaults(t *testing.T) {
	for _, opset := range []int{7, 9, 17} {
		m := overridable()
		m.Opsets[""] = opset
		p := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(encode(t, m), p); err != nil {
			t.Fatal(err)
		}
		if n := len(p.Graph.Input); n != 2 || p.Graph.Input[1].GetName() != "s" || len(p.Graph.Initializer) != 1 || p.GetIrVersion() < overridableIR {
			t.Errorf("opset %d: %d inputs, %d initializers, IR version %d", opset, n, len(p.Graph.Initializer), p.GetIrVersion())
		}
		b, err := proto.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(b)
		if err != nil {
			t.Fatal(err)
		}
		if again.Defaults["s"] == nil || len(again.Main().Body.Params) != 2 {
			t.Errorf("opset %d: the default is not read", opset)
		}
		FreezeDefaults(again)
		if len(again.Main().Body.Params) != 1 || again.Defaults != nil {
			t.Errorf("opset %d: the default is not frozen", opset)
		}
		p.IrVersion = proto.Int64(3)
		if b, err = proto.Marshal(p); err != nil {
			t.Fatal(err)
		}
		if again, err = Parse(b); err != nil || len(again.Main().Body.Params) != 1 {
			t.Errorf("opset %d: IR version 3: %v", opset, err)
		}
	}
}

// TestSparseDefault: a sparse initializer is a default value as a dense one is.
func TestSparseDefault(t *testing.T) {
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(encode(t, overridable()), p); err != nil {
		t.Fatal(err)
	}
	dense := p.Graph.Initializer[0]
	p.Graph.Initializer = nil
	p.Graph.SparseInitializer = []*onnxpb.SparseTensorProto{{
		Values: dense, Dims: []int64{1},
		Indices: &onnxpb.TensorProto{DataType: proto.Int32(7), Dims: []int64{1}, Int64Data: []int64{0}},
	}}
	b, err := proto.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := m.Defaults["s"]; d == nil || d.Float64s()[0] != 2 {
		t.Errorf("the default is %v", d)
	}
}

// TestEmptyRawData: an empty raw_data beside the field that holds the elements is no second field.
func TestEmptyRawData(t *testing.T) {
	p := &onnxpb.TensorProto{DataType: proto.Int32(7), Dims: []int64{2}, Int64Data: []int64{3, 4}, RawData: []byte{}}
	x, err := tensorOf(p, &externalFiles{})
	if err != nil {
		t.Fatal(err)
	}
	if got := x.Int64s(); got[0] != 3 || got[1] != 4 {
		t.Errorf("read %v", got)
	}
	m := overridable()
	m.Defaults = nil
	f := m.Main()
	o := f.Body.Append("onnx::Constant", 0, nil, ssa.TensorOf(x))
	o.SetAttr("value", ssa.TensorValue(x))
	f.Body.SetReturns(append(f.Body.Returns(), o.Results[0])...)
	q := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(encode(t, m), q); err != nil {
		t.Fatal(err)
	}
	i := q.Graph.Initializer[0]
	i.RawData, i.Int64Data = []byte{}, []int64{3, 4}
	b, err := proto.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(b); err != nil {
		t.Error(err)
	}
}

// TestNamedOutputs: an Attention that takes past keys and values names the present ones, which onnxruntime asks for.
func TestNamedOutputs(t *testing.T) {
	m := ssa.NewModule(onnx.Dialect{})
	m.Opsets = map[string]int{"": 23}
	f := m.NewFunc("main")
	typ := ssa.Tensor(tensor.Float32, ssa.Sizes([]int64{1, 2, 3, 4})...)
	var in []*ssa.Value
	for _, name := range []string{"q", "k", "v", "", "pk", "pv"} {
		if name == "" {
			in = append(in, nil)
			continue
		}
		in = append(in, f.Body.AddParam(name, typ))
	}
	f.Body.SetReturns(f.Body.Append("onnx::Attention", 0, in, typ).Results[0])
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(encode(t, m), p); err != nil {
		t.Fatal(err)
	}
	if out := p.Graph.Node[0].Output; len(out) != 3 || out[1] == "" || out[2] == "" {
		t.Errorf("outputs %q", out)
	}
	var b bytes.Buffer
	if err := WriteTo(&b, m, Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(b.Bytes()); err != nil {
		t.Error(err)
	}
}
