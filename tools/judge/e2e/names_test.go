package e2e

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
)

// protoOf exports a model with options, and returns what the file holds.
func protoOf(t *testing.T, path string, o options, specs ...string) (*onnxpb.ModelProto, error) {
	t.Helper()
	o = withInputs(t, o, specs...)
	m, err := aton.Load(path, o.load)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, o.export); err != nil {
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
	perceptron         = "testdata/fixtures/torch2.15/perceptron.script.pt"
	perceptronInput    = "x:f32[N,6]"
	perceptronExported = "testdata/fixtures/torch2.15/perceptron.pt2"
)

// TestNames: names go to the inputs, then to the weights in the order of the state dict, or to those that are named.
func TestNames(t *testing.T) {
	plain, err := protoOf(t, perceptron, options{}, perceptronInput)
	if err != nil {
		t.Fatal(err)
	}
	_, weights, _ := edges(plain)
	if len(weights) < 2 {
		t.Fatalf("weights %v", weights)
	}
	for _, c := range []struct {
		name string
		o    options
		in   string
		// first are the first weights.
		first []string
		out   string
	}{
		{"none", options{}, "x(N,*)", weights, "output(N,*)"},
		{"a prefix", converting(aton.ConvertOptions{InputNames: []string{"image"}}), "image(N,*)", weights, "output(N,*)"},
		{"weights", converting(aton.ConvertOptions{InputNames: []string{"", "w", "b"}}), "x(N,*)", []string{"w", "b"}, "output(N,*)"},
		{"outputs", options{export: aton.ExportOptions{ConvertOptions: aton.ConvertOptions{OutputNames: []string{"y"}}, WriteOptions: aton.WriteOptions{OutputAxes: map[string]map[int]string{"y": {-2: "rows"}}}}}, "x(N,*)", weights, "y(rows,*)"},
		{"by name", converting(aton.ConvertOptions{Names: map[string]string{"x": "image", weights[0]: "w", "output": "y"}}), "image(N,*)", []string{"w", weights[1]}, "y(N,*)"},
		{"exchanged", converting(aton.ConvertOptions{Names: map[string]string{weights[0]: weights[1], weights[1]: weights[0]}}), "x(N,*)", []string{weights[1], weights[0]}, "output(N,*)"},
		{"weights as inputs", converting(aton.ConvertOptions{Weights: aton.NoWeights, Names: map[string]string{weights[0]: "w"}}), "x(N,*)", nil, "output(N,*)"},
	} {
		p, err := protoOf(t, perceptron, c.o, perceptronInput)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		in, w, out := edges(p)
		if c.o.load.NoWeights && !slices.Contains(in, "w(*,*)") || in[0] != c.in || len(c.first) > len(w) || !slices.Equal(w[:len(c.first)], c.first) || !slices.Equal(out, []string{c.out}) {
			t.Errorf("%s: inputs %v, weights %v, outputs %v", c.name, in, w, out)
		}
		// names are all that differs
		if len(p.Graph.Node) != len(plain.Graph.Node) && !c.o.load.NoWeights {
			t.Errorf("%s: %d nodes, %d without names", c.name, len(p.Graph.Node), len(plain.Graph.Node))
		}
	}
}

// TestNewNamesOfInputs: what is said of inputs may use their names in the file, of every kind of model. The program's names go
// before.
func TestNewNamesOfInputs(t *testing.T) {
	nested := filepath.Join(t.TempDir(), "nested.ir")
	if err := os.WriteFile(nested, []byte(`graph(%x.1 : Tensor, %p : (Tensor, Tensor), %o : Tensor?, %y : Tensor):
  %a : Tensor, %b : Tensor = prim::TupleUnpack(%p)
  %1 : int = prim::Constant[value=1]()
  %r : Tensor = aten::add(%x.1, %a, %1)
  %s : Tensor = aten::add(%r, %b, %1)
  %t : Tensor = aten::add(%s, %y, %1)
  return (%t)
`), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		model string
		o     options
		specs []string
		want  []string
	}{
		{perceptron, converting(aton.ConvertOptions{InputNames: []string{"image"}}), []string{"image:f32[N,6]"}, []string{"image(N,*)"}},
		{perceptron, converting(aton.ConvertOptions{InputNames: []string{"image"}}), []string{"x:f32[N,6]"}, []string{"image(N,*)"}},
		{perceptron, converting(aton.ConvertOptions{Names: map[string]string{"x": "image"}}), []string{"image:f32[N,6]"}, []string{"image(N,*)"}},
		{perceptronExported, converting(aton.ConvertOptions{InputNames: []string{"image"}}), []string{"image:f32[4,6]"}, []string{"image(*,*)"}},
		{perceptronExported, converting(aton.ConvertOptions{Names: map[string]string{"x": "image"}}), []string{"image:f32[4,6]"}, []string{"image(*,*)"}},
		{nested, converting(aton.ConvertOptions{InputNames: []string{"i", "j", "k", "l"}}), []string{"i:f32[N]", "p:tuple(f32[N],f32[N])", "l:f32[4,N]"},
			[]string{"i(N)", "j(N)", "k(N)", "l(*,N)"}},
		{nested, converting(aton.ConvertOptions{InputNames: []string{"y", "", "", "x"}}), []string{"x:f32[N]", "p:tuple(f32[N],f32[N])", "y:f32[4,N]"},
			[]string{"y(N)", "p.0(N)", "p.1(N)", "x(*,N)"}},
	} {
		o := c.o
		o.load.Warn = func(message string) { t.Errorf("%s, %v: %s", c.model, c.specs, message) }
		p, err := protoOf(t, c.model, o, c.specs...)
		if err != nil {
			t.Errorf("%s, %v: %v", c.model, c.specs, err)
			continue
		}
		if in, _, _ := edges(p); !slices.Equal(in, c.want) {
			t.Errorf("%s, %v: inputs %v, want %v", c.model, c.specs, in, c.want)
		}
	}
	// a name of the file that no input has
	if _, err := protoOf(t, nested, converting(aton.ConvertOptions{InputNames: []string{"i", "j", "k", "l"}}), "i:f32[N]", "p:tuple(f32[N],f32[N])", "k:f32[M]"); err == nil ||
		!strings.Contains(err.Error(), `no input "k" (it has: x, p, o, y)`) {
		t.Error(err)
	}
}

// TestFoldedNames: what is computed of a weight before the file is written is called after it, and has a name of its own.
func TestFoldedNames(t *testing.T) {
	for _, c := range []struct{ model, input, want string }{
		{"words_lstm.script.pt", "x:i64[N,T]", "rnn.weight_ih_l0.slice.concat.unsqueeze.concat"},
		{"words_gru.script.pt", "x:i64[N,T]", "rnn.bias_ih_l0.slice.concat.concat.unsqueeze.concat"},
		{"attention.script.pt", "x:f32[N,T,8]", "qkv.weight.transpose"},
	} {
		p, err := protoOf(t, "testdata/fixtures/torch2.15/"+c.model, options{}, c.input)
		if err != nil {
			t.Error(err)
			continue
		}
		_, weights, _ := edges(p)
		found := slices.Contains(weights, c.want)
		for _, w := range p.Graph.Initializer {
			n := int64(1)
			for _, d := range w.Dims {
				n *= d
			}
			if strings.HasPrefix(w.GetName(), "onnx::") && n > 1 && w.GetDataType() == int32(onnxpb.TensorProto_FLOAT) {
				t.Errorf("%s: %s of %v", c.model, w.GetName(), w.Dims)
			}
		}
		slices.Sort(weights)
		if !found || len(slices.Compact(weights)) != len(weights) {
			t.Errorf("%s: %v", c.model, weights)
		}
		// a name by position goes to no weight that is part of another one
		var told []string
		o := converting(aton.ConvertOptions{InputNames: []string{"a", "", "c"}, Warn: func(m string) { told = append(told, m) }})
		if _, err := protoOf(t, "testdata/fixtures/torch2.15/"+c.model, o, c.input); err != nil ||
			strings.Contains(c.model, "words") != slices.ContainsFunc(told, func(m string) bool { return strings.Contains(m, "the name c (rnn.weight_ih_l0)") }) {
			t.Errorf("%s: %v, %v", c.model, told, err)
		}
		// the names are those that can be given others
		o = converting(aton.ConvertOptions{Names: map[string]string{c.want: "w"}})
		if p, err = protoOf(t, "testdata/fixtures/torch2.15/"+c.model, o, c.input); err != nil {
			t.Error(err)
		} else if _, weights, _ = edges(p); !slices.Contains(weights, "w") {
			t.Errorf("%s: %v", c.model, weights)
		}
	}
}

// TestTakenNames: a name that is taken, or that nothing has, is an error.
func TestTakenNames(t *testing.T) {
	plain, err := protoOf(t, perceptron, options{}, perceptronInput)
	if err != nil {
		t.Fatal(err)
	}
	_, weights, _ := edges(plain)
	for want, o := range map[string]aton.ExportOptions{
		`the name "a" is taken`:                          {ConvertOptions: aton.ConvertOptions{InputNames: []string{"a", "a"}}},
		`the name "b" is taken`:                          {ConvertOptions: aton.ConvertOptions{InputNames: []string{"b"}, OutputNames: []string{"b"}}},
		`the name "` + weights[1] + `" is taken`:         {ConvertOptions: aton.ConvertOptions{OutputNames: []string{weights[1]}}},
		`the name "x" is taken`:                          {ConvertOptions: aton.ConvertOptions{Names: map[string]string{weights[0]: "x"}}},
		`no input, weight or output is called "outputs"`: {ConvertOptions: aton.ConvertOptions{Names: map[string]string{"outputs": "y"}}},
		`x cannot be called both a and b`:                {ConvertOptions: aton.ConvertOptions{InputNames: []string{"a"}, Names: map[string]string{"x": "b"}}},
		`the new name of x is empty`:                     {ConvertOptions: aton.ConvertOptions{Names: map[string]string{"x": ""}}},
		`2 output names for 1 outputs`:                   {ConvertOptions: aton.ConvertOptions{OutputNames: []string{"a", "b"}}},
		`30 input names for 1 inputs and`:                {ConvertOptions: aton.ConvertOptions{InputNames: make([]string, 30)}},
		`no output is called "z"`:                        {WriteOptions: aton.WriteOptions{OutputAxes: map[string]map[int]string{"z": {0: "n"}}}},
		`only an axis that varies has a name`:            {WriteOptions: aton.WriteOptions{OutputAxes: map[string]map[int]string{"output": {1: "n"}}}},
		`the output has 2 axes`:                          {WriteOptions: aton.WriteOptions{OutputAxes: map[string]map[int]string{"output": {-3: "n"}}}},
		`the name is empty`:                              {WriteOptions: aton.WriteOptions{OutputAxes: map[string]map[int]string{"output": {0: ""}}}},
	} {
		if _, err := protoOf(t, perceptron, options{o.LoadOptions(), o}, perceptronInput); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestNamesInside: the names of the members of containers are where the file tells of the containers, and a value inside
// gives way.
func TestNamesInside(t *testing.T) {
	o := converting(aton.ConvertOptions{InputNames: []string{"a", "t"}, OutputNames: []string{"u"}, Names: map[string]string{"1": "v"}})
	m, err := aton.LoadBytes([]byte(`graph(%p : (Tensor, Tensor[])):
  %x : Tensor, %l : Tensor[] = prim::TupleUnpack(%p)
  %i : int = prim::Constant[value=0]()
  %y : Tensor = aten::__getitem__(%l, %i)
  %t : Tensor = aten::tanh(%x)
  %r : Tensor = aten::mul(%t, %y)
  return (%t, %r)
`), "nested.ir", withInputs(t, o, "p:tuple(f32[N],list(f32[N]))").load)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := aton.Convert(m, withInputs(t, o, "p:tuple(f32[N],list(f32[N]))").export.ConvertOptions); err != nil {
		t.Fatal(err)
	}
	if have := m.GetMetadata("aton.inputs"); have != `{"arguments":[["p",{"tuple":["a",{"list":["t"]}]}]]}` {
		t.Error(have)
	}
	values, outputs, err := aton.FileNames(m, o.export.WriteOptions)
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
