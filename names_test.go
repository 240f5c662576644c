package aton_test

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// protoOf exports a model with options, and returns what the file holds.
func protoOf(t *testing.T, path string, o aton.Options, specs ...string) (*onnxpb.ModelProto, error) {
	t.Helper()
	o = withInputs(t, o, specs...)
	m, err := aton.Load(path, o)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, o); err != nil {
		return nil, err
	}
	var p onnxpb.ModelProto
	if err := proto.Unmarshal(b.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	return &p, nil
}

// edges lists the names of a file's inputs, weights and outputs with their axes.
func edges(p *onnxpb.ModelProto) (inputs, weights, outputs []string) {
	spell := func(v *onnxpb.ValueInfoProto) string {
		var dims []string
		for _, d := range v.GetType().GetTensorType().GetShape().GetDim() {
			if dims = append(dims, d.GetDimParam()); d.GetDimParam() == "" {
				dims[len(dims)-1] = "*"
			}
		}
		return v.GetName() + "(" + strings.Join(dims, ",") + ")"
	}
	for _, v := range p.Graph.Input {
		inputs = append(inputs, spell(v))
	}
	for _, w := range p.Graph.Initializer {
		if !strings.HasPrefix(w.GetName(), "onnx::") {
			weights = append(weights, w.GetName())
		}
	}
	for _, v := range p.Graph.Output {
		outputs = append(outputs, spell(v))
	}
	return inputs, weights, outputs
}

const (
	perceptron      = "testdata/fixtures/torch2.15/perceptron.script.pt"
	perceptronInput = "x:f32[N,6]"
)

// TestNames: names go to the inputs, then to the weights in the order of the state dict, or to those that are named.
func TestNames(t *testing.T) {
	plain, err := protoOf(t, perceptron, aton.Options{}, perceptronInput)
	if err != nil {
		t.Fatal(err)
	}
	_, weights, _ := edges(plain)
	if len(weights) < 2 {
		t.Fatalf("weights %v", weights)
	}
	for _, c := range []struct {
		name string
		o    aton.Options
		in   string
		// first are the first weights.
		first []string
		out   string
	}{
		{"none", aton.Options{}, "x(N,*)", weights, "output(N,*)"},
		{"a prefix", aton.Options{InputNames: []string{"image"}}, "image(N,*)", weights, "output(N,*)"},
		{"weights", aton.Options{InputNames: []string{"", "w", "b"}}, "x(N,*)", []string{"w", "b"}, "output(N,*)"},
		{"outputs", aton.Options{OutputNames: []string{"y"}, OutputAxes: map[string]map[int]string{"y": {-2: "rows"}}}, "x(N,*)", weights, "y(rows,*)"},
		{"by name", aton.Options{Names: map[string]string{"x": "image", weights[0]: "w", "output": "y"}}, "image(N,*)", []string{"w", weights[1]}, "y(N,*)"},
		{"exchanged", aton.Options{Names: map[string]string{weights[0]: weights[1], weights[1]: weights[0]}}, "x(N,*)", []string{weights[1], weights[0]}, "output(N,*)"},
		{"weights as inputs", aton.Options{NoWeights: true, Names: map[string]string{weights[0]: "w"}}, "x(N,*)", nil, "output(N,*)"},
	} {
		p, err := protoOf(t, perceptron, c.o, perceptronInput)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		in, w, out := edges(p)
		if c.o.NoWeights && !slices.Contains(in, "w(*,*)") || in[0] != c.in || len(c.first) > len(w) || !slices.Equal(w[:len(c.first)], c.first) || !slices.Equal(out, []string{c.out}) {
			t.Errorf("%s: inputs %v, weights %v, outputs %v", c.name, in, w, out)
		}
		// names are all that differs
		if len(p.Graph.Node) != len(plain.Graph.Node) && !c.o.NoWeights {
			t.Errorf("%s: %d nodes, %d without names", c.name, len(p.Graph.Node), len(plain.Graph.Node))
		}
	}
}

// TestTakenNames: a name that is taken, or that nothing has, is an error.
func TestTakenNames(t *testing.T) {
	plain, err := protoOf(t, perceptron, aton.Options{}, perceptronInput)
	if err != nil {
		t.Fatal(err)
	}
	_, weights, _ := edges(plain)
	for want, o := range map[string]aton.Options{
		`the name "a" is taken`:                          {InputNames: []string{"a", "a"}},
		`the name "b" is taken`:                          {InputNames: []string{"b"}, OutputNames: []string{"b"}},
		`the name "` + weights[1] + `" is taken`:         {OutputNames: []string{weights[1]}},
		`the name "x" is taken`:                          {Names: map[string]string{weights[0]: "x"}},
		`no input, weight or output is called "outputs"`: {Names: map[string]string{"outputs": "y"}},
		`x cannot be called both a and b`:                {InputNames: []string{"a"}, Names: map[string]string{"x": "b"}},
		`the new name of x is empty`:                     {Names: map[string]string{"x": ""}},
		`2 output names for 1 outputs`:                   {OutputNames: []string{"a", "b"}},
		`30 input names for 1 inputs and`:                {InputNames: make([]string, 30)},
		`no output is called "z"`:                        {OutputAxes: map[string]map[int]string{"z": {0: "n"}}},
		`only an axis that varies has a name`:            {OutputAxes: map[string]map[int]string{"output": {1: "n"}}},
		`the output has 2 axes`:                          {OutputAxes: map[string]map[int]string{"output": {-3: "n"}}},
		`the name is empty`:                              {OutputAxes: map[string]map[int]string{"output": {0: ""}}},
	} {
		if _, err := protoOf(t, perceptron, o, perceptronInput); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestNamesInside: the names of the members of containers are where the file tells of the containers, and a value inside
// gives way.
func TestNamesInside(t *testing.T) {
	o := aton.Options{InputNames: []string{"a", "t"}, OutputNames: []string{"u"}, Names: map[string]string{"1": "v"}}
	m, err := aton.LoadBytes([]byte(`graph(%p : (Tensor, Tensor[])):
  %x : Tensor, %l : Tensor[] = prim::TupleUnpack(%p)
  %i : int = prim::Constant[value=0]()
  %y : Tensor = aten::__getitem__(%l, %i)
  %t : Tensor = aten::tanh(%x)
  %r : Tensor = aten::mul(%t, %y)
  return (%t, %r)
`), "nested.ir", withInputs(t, o, "p:tuple(f32[N],list(f32[N]))"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aton.Lower(m, withInputs(t, o, "p:tuple(f32[N],list(f32[N]))")); err != nil {
		t.Fatal(err)
	}
	if have := m.GetMetadata("aton.inputs"); have != `{"arguments":[["p",{"tuple":["a",{"list":["t"]}]}]]}` {
		t.Error(have)
	}
	values, outputs, err := aton.FileNames(m, o)
	if err != nil || !slices.Equal(outputs, []string{"u", "v"}) {
		t.Errorf("outputs %v: %v", outputs, err)
	}
	count := map[string]int{}
	for _, name := range values {
		count[name]++
	}
	if count["t"] != 1 || count["a"] != 1 {
		t.Errorf("names %v", slices.Sorted(maps.Keys(count)))
	}
}
