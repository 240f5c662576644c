package onnxfile_test

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa"
)

func namedGraph(name, own string) string {
	return ` attribute { name: "` + name + `" type: GRAPH g { name: "` + name + `"
  initializer { name: "own" dims: 3 data_type: 1 float_data: [` + own + `] }
  node { op_type: "Mul" input: "x" input: "own" output: "logits" }` + input + ` output { name: "logits" ` + vector + ` } } }`
}

// search is a model whose operator has two graphs, both with an input that has the name of the model's.
var search = `ir_version: 9 opset_import { version: 17 } opset_import { domain: "com.microsoft" version: 1 }
graph { name: "g"` + input + output + `
  node { op_type: "Neg" input: "x" output: "n" }
  node { op_type: "Search" domain: "com.microsoft" input: "n" output: "y"` + namedGraph("first", "1, 2, 3") + namedGraph("later", "4, 5, 6") + ` } }`

// written is the file of a module.
func written(t *testing.T, m *ssa.Module) *onnxpb.ModelProto {
	t.Helper()
	var out bytes.Buffer
	if err := onnxfile.WriteTo(&out, m, onnxfile.Options{}); err != nil {
		t.Fatal(err)
	}
	p := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(out.Bytes(), p); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNamedGraphs: graphs of an operator of another domain keep the names of their inputs and outputs, which the runtime asks for, and have the constants that
// one of them alone uses.
func TestNamedGraphs(t *testing.T) {
	m, err := onnxfile.Parse(encode(t, search))
	if err != nil {
		t.Fatal(err)
	}
	p := written(t, m)
	if n := len(p.Graph.Initializer); n != 0 {
		t.Errorf("the model has %d initializers, which one graph alone uses", n)
	}
	n := p.Graph.Node[1]
	var graphs []string
	for _, a := range n.Attribute {
		graphs = append(graphs, a.GetName())
		g := a.G
		if g == nil {
			t.Fatalf("attribute %s of the file is no graph", a.GetName())
		}
		if g.Input[0].GetName() != "x" || g.Output[0].GetName() != "logits" || len(g.Initializer) != 1 {
			t.Errorf("graph %s has the input %q, the output %q and %d initializers", a.GetName(), g.Input[0].GetName(), g.Output[0].GetName(), len(g.Initializer))
		}
		if in := g.Node[0].Input; in[0] != "x" || in[1] != g.Initializer[0].GetName() || g.Node[0].Output[0] != "logits" {
			t.Errorf("graph %s computes %v of %v", a.GetName(), g.Node[0].Output, in)
		}
	}
	if want := []string{"first", "later"}; !slices.Equal(graphs, want) {
		t.Errorf("graphs %v, want %v", graphs, want)
	}
}

// TestOtherTypes has inputs that are no tensors: those that onnxruntime takes stay what they are, and the others are refused with the reason.
func TestOtherTypes(t *testing.T) {
	for _, c := range []struct{ typ, want string }{
		{`sparse_tensor_type { elem_type: 1 shape { dim { dim_param: "N" } dim { dim_value: 4 } } }`, ""},
		{`map_type { key_type: 7 value_type { tensor_type { elem_type: 1 shape {} } } }`, ""},
		{`map_type { key_type: 6 value_type { tensor_type { elem_type: 1 shape {} } } }`, "keys of a map are INT64 or STRING, not INT32"},
		{`opaque_type { domain: "d" name: "n" }`, "onnxruntime has no opaque types"},
	} {
		m, err := onnxfile.Parse(encode(t, `ir_version: 9 opset_import { version: 17 } opset_import { domain: "com.microsoft" version: 1 }
graph { name: "g" input { name: "a" type { `+c.typ+` } }`+output+` node { op_type: "Made" domain: "com.microsoft" input: "a" output: "y" } }`))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: error %v, want %q", c.typ, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		var out bytes.Buffer
		if err := onnxfile.WriteTo(&out, m, onnxfile.Options{}); err != nil {
			t.Errorf("%s: %v", c.typ, err)
			continue
		}
		p, want := &onnxpb.ModelProto{}, &onnxpb.TypeProto{}
		if err := errors.Join(proto.Unmarshal(out.Bytes(), p), prototext.Unmarshal([]byte(c.typ), want)); err != nil {
			t.Fatal(err)
		}
		if got := p.Graph.Input[0].Type; !proto.Equal(got, want) {
			t.Errorf("%s became %v", c.typ, got)
		}
	}
}

// TestGraphsOnlyConstant has a constant outside of graphs that one of them alone uses: it is there once, where it is used.
func TestGraphsOnlyConstant(t *testing.T) {
	m, err := onnxfile.Parse(encode(t, strings.Replace(strings.Replace(search, `graph { name: "g"`,
		`graph { name: "g" initializer { name: "c" dims: 3 data_type: 1 float_data: [7, 8, 9] }`, 1), `input: "own" output: "logits"`, `input: "c" output: "logits"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	p := written(t, m)
	first := p.Graph.Node[1].Attribute[0].G
	if len(p.Graph.Initializer) != 0 || len(first.Initializer) != 1 || first.Node[0].Input[1] != first.Initializer[0].GetName() {
		t.Errorf("the model has %d initializers, the graph %d, of which it reads %v", len(p.Graph.Initializer), len(first.Initializer), first.Node[0].Input)
	}
}

// TestManyGraphs: what a graph costs grows with the number of them, so there is a bound.
func TestManyGraphs(t *testing.T) {
	var graphs strings.Builder
	for i := range 65 {
		graphs.WriteString(namedGraph("g"+strconv.Itoa(i), "1, 2, 3"))
	}
	_, err := onnxfile.Parse(encode(t, strings.Replace(search, namedGraph("first", "1, 2, 3"), graphs.String(), 1)))
	if err == nil || !strings.Contains(err.Error(), "more than 64 graphs") {
		t.Errorf("error %v", err)
	}
}
