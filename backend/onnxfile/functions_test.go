package onnxfile_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
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

// functionsFile writes a file of functions, given in the text form of protocol buffers.
func functionsFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, encode(t, text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// double is a function of two nodes, the second of which calls another function; its graph has nothing to do with it.
const double = `ir_version: 9 opset_import { version: 17 } opset_import { domain: "local" version: 1 }
functions {
  name: "Double" domain: "local" input: "a" output: "b"
  opset_import { version: 17 } opset_import { domain: "local" version: 1 }
  node { op_type: "Add" input: "a" input: "a" output: "m" }
  node { op_type: "Flip" domain: "local" input: "m" output: "b" }
}
functions { name: "Flip" domain: "local" input: "a" output: "b" opset_import { version: 17 } node { op_type: "Neg" input: "a" output: "b" } }
functions { name: "Other" domain: "local" input: "a" output: "b" opset_import { version: 17 } node { op_type: "Celu" input: "a" output: "b" } }
graph { name: "g"` + input + output + ` node { op_type: "Relu" input: "x" output: "y" } }`

// TestWrittenFunctions writes a model with the functions that it calls, and with no others; a reader puts the bodies in their places.
func TestWrittenFunctions(t *testing.T) {
	functions, err := onnxfile.ReadFunctions(functionsFile(t, "f.onnx", double))
	if err != nil {
		t.Fatal(err)
	}
	if kinds := fmt.Sprint(functions.Kinds()); kinds != "[local::Double local::Flip local::Other]" {
		t.Errorf("the functions are %s", kinds)
	}
	model := func(opset int) *ssa.Module {
		m, err := ssa.Parse("graph(%x : Float(3)):\n  %y : Float(3) = local::Double(%x)\n  return (%y)\n", "test", onnx.Dialect{})
		if err != nil {
			t.Fatal(err)
		}
		onnx.SetOpset(m, opset)
		return m
	}
	var b bytes.Buffer
	if err := onnxfile.WriteTo(&b, model(17), onnxfile.Options{Functions: functions}); err != nil {
		t.Fatal(err)
	}
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(b.Bytes(), p); err != nil {
		t.Fatal(err)
	}
	if len(p.Functions) != 2 || p.Functions[0].GetName() != "Double" || p.GetIrVersion() < 8 {
		t.Errorf("the file has %d functions, IR version %d", len(p.Functions), p.GetIrVersion())
	}
	m, err := onnxfile.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	out, err := interp.Run(m, map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{3}, []float64{1, 2, 3}))})
	if err != nil || out[0].Tensor.Float64s()[2] != -6 {
		t.Errorf("%v, %v", out, err)
	}
	// Celu, which nothing calls, does not matter; Add of opset 13 is not that of 7
	if err := onnxfile.WriteTo(&b, model(7), onnxfile.Options{Functions: functions}); err == nil || !strings.Contains(err.Error(), "export with --opset 17") {
		t.Errorf("at opset 7: %v", err)
	}
}

// TestReadFunctions refuses files that say nothing or too much.
func TestReadFunctions(t *testing.T) {
	none := functionsFile(t, "none.onnx", opset17+` graph { name: "g"`+input+output+` node { op_type: "Relu" input: "x" output: "y" } }`)
	twice := functionsFile(t, "again.onnx", double)
	garbage := filepath.Join(t.TempDir(), "garbage.onnx")
	if err := os.WriteFile(garbage, []byte("garbage"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{none}, "there are no local functions in it"},
		{[]string{twice, twice}, "function local::Double is there twice"},
		{[]string{garbage}, "not an ONNX model"},
		{[]string{garbage + ".not"}, "no such file"},
	} {
		if _, err := onnxfile.ReadFunctions(c.paths...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %s", c.paths, err, c.want)
		}
	}
}
