package onnxfile_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa/tensor"
)

// encode makes a file of a model in the text form of protocol buffers.
func encode(t *testing.T, text string) []byte {
	t.Helper()
	m := &onnxpb.ModelProto{}
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatal(err)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

const (
	vector  = `type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } } } }`
	opset17 = `ir_version: 9 opset_import { version: 17 } opset_import { domain: "local" version: 1 }`
	input   = ` input { name: "x" ` + vector + ` } `
	output  = ` output { name: "y" ` + vector + ` } `
)

// TestFunctions reads a model whose node calls a function of the file, which calls another: bodies are put where they are called,
// attributes of the call replace those that the body refers to, and an input that the call leaves out is absent.
func TestFunctions(t *testing.T) {
	data := encode(t, opset17+`
functions {
  name: "Scaled" domain: "local" input: "a" output: "b" attribute: "by"
  opset_import { version: 17 } opset_import { domain: "local" version: 1 }
  node { op_type: "Constant" output: "c" attribute { name: "value_float" ref_attr_name: "by" type: FLOAT } }
  node { op_type: "Mul" input: "a" input: "c" output: "m" }
  node { op_type: "Bounded" domain: "local" input: "m" output: "b" }
}
functions {
  name: "Bounded" domain: "local" input: "a" input: "low" output: "b"
  opset_import { version: 17 }
  node { op_type: "Clip" input: "a" input: "low" input: "" output: "k" }
  node { op_type: "Neg" input: "k" output: "b" }
}
graph { name: "g"`+input+output+`
  sparse_initializer { values { dims: 1 data_type: 1 name: "s" float_data: 5 } indices { dims: 1 data_type: 7 int64_data: 2 } dims: 3 }
  node { op_type: "Scaled" domain: "local" input: "x" output: "t" attribute { name: "by" f: 2 type: FLOAT } }
  node { op_type: "Add" input: "t" input: "s" output: "y" }
}`)
	m, err := onnxfile.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	got, err := interp.Run(m, map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{3}, []float64{1, -2, 3}))})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{-2, 4, -1} {
		if f := got[0].Tensor.Float64s(); f[i] != want {
			t.Errorf("the outputs are %v", f)
			break
		}
	}
}

// TestRefusedModels has models that are not whole, each with the reason.
func TestRefusedModels(t *testing.T) {
	graph := func(body string) string { return opset17 + ` graph { name: "g"` + input + output + body + ` }` }
	node := func(op, in, out string) string {
		return ` node { op_type: "` + op + `" input: "` + in + `" output: "` + out + `" }`
	}
	for _, c := range []struct{ model, want string }{
		{graph(node("Relu", "nosuch", "y")), `"nosuch" is defined nowhere`},
		{graph(node("Relu", "x", "z")), `"y" of the graph is computed by no node`},
		{graph(node("Relu", "x", "y") + node("Relu", "x", "y")), `"y"`},
		{opset17 + ` graph { name: "g"` + input + input + output + node("Relu", "x", "y") + ` }`, `"x"`},
		{graph(node("a::b", "x", "y")), "a::b"},
		{graph(` initializer { name: "w" dims: 4 data_type: 1 float_data: 1 }` + node("Relu", "x", "y")), `"w"`},
		{graph(` initializer { name: "w" dims: -4 data_type: 1 }` + node("Relu", "x", "y")), `"w"`},
		{graph(` initializer { name: "w" dims: 1 data_type: 99 raw_data: "abcd" }` + node("Relu", "x", "y")), `"w"`},
		{graph(` node { op_type: "If" input: "x" output: "y" }`), "needs the attribute"},
		{opset17 + ` functions { name: "F" domain: "local" input: "a" output: "b" opset_import { version: 17 } opset_import { domain: "local" version: 1 }
  node { op_type: "F" domain: "local" input: "a" output: "b" } } graph { name: "g"` + input + output + ` node { op_type: "F" domain: "local" input: "x" output: "y" } }`, "calls itself"},
		{opset17 + ` functions { name: "F" domain: "local" input: "a" output: "b" opset_import { version: 17 }
  node { op_type: "Relu" input: "a" output: "b" } } graph { name: "g"` + input + output + ` node { op_type: "F" domain: "local" input: "x" input: "x" output: "y" } }`, "call"},
		{opset17 + ` functions { name: "F" domain: "local" input: "a" output: "b" opset_import { version: 17 } } graph { name: "g"` + input + output + ` node { op_type: "F" domain: "local" input: "x" output: "y" } }`, `"b"`},
	} {
		_, err := onnxfile.Parse(encode(t, c.model))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s in\n%s", err, c.want, c.model)
		}
	}
	if _, err := onnxfile.Parse([]byte("\xff\xff\xff")); err == nil || !strings.Contains(err.Error(), "not an ONNX model") {
		t.Errorf("noise: %v", err)
	}
}
