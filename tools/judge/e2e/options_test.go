package e2e

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

const counting = `graph(%x : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %3 : int = prim::Constant[value=3]()
  %true : bool = prim::Constant[value=1]()
  %count : Long() = prim::Constant[value={3}]()
  %a : str = prim::Constant[value="a"]()
  %b : str = prim::Constant[value="b"]()
  %n : Tensor = aten::add_(%count, %1, %1)
  %y : Tensor = aten::mul(%x, %n)
  %z : Tensor = prim::Loop(%3, %true, %y)
    block0(%i : int, %c : Tensor):
      %t : Tensor = aten::tanh(%c)
      %d : Tensor = aten::add(%t, %x, %1)
      -> (%true, %d)
  %l : Tensor[] = prim::ListConstruct(%y, %z)
  %p : (Tensor, Tensor[]) = prim::TupleConstruct(%z, %l)
  return (%p)
`

func lowered(t *testing.T, o options) (*ssa.Module, error) {
	t.Helper()
	m, err := aton.LoadBytes([]byte(counting), "counting.ir", o.load)
	if err != nil {
		t.Fatal(err)
	}
	_, err = aton.Convert(m, o.export.ConvertOptions)
	return m, err
}

// TestState: state that the program changes is lost, is a further output, or refused.
func TestState(t *testing.T) {
	for state, want := range map[string]string{"": "0,1.0,1.1", "drop": "0,1.0,1.1", "outputs": "0,1.0,1.1,count"} {
		m, err := lowered(t, converting(aton.ConvertOptions{State: aton.State(state)}))
		if err != nil {
			t.Fatal(err)
		}
		if have := strings.Join(m.Main().OutputNames, ","); have != want {
			t.Errorf("state %q: outputs %s, want %s", state, have, want)
		}
		tree := m.GetMetadata("aton.outputs")
		if tree != `{"tuple":["0",{"list":["1.0","1.1"]}]}` {
			t.Errorf("the tree of the outputs is %s", tree)
		}
	}
	if _, err := lowered(t, converting(aton.ConvertOptions{State: "refuse"})); err == nil || !strings.Contains(err.Error(), "count is changed by the model") {
		t.Errorf("refuse: %v", err)
	}
}

// TestStateInputs: state that is an input goes in and out, so that a second run goes on from the first; that of a script, and of an
// exported program whose writes are outputs.
func TestStateInputs(t *testing.T) {
	for _, tt := range []struct{ file, state, next, pairs string }{
		{"testdata/fixtures/torch2.15/state.script.pt", "seen", "seen.next", "seen seen.next"},
		{"frontend/export/testdata/functional.pt2", "count", "count.next", "count,y count.next,y.next"}, // it writes into its input y too
	} {
		o := converting(aton.ConvertOptions{State: "outputs"})
		typ := map[string]string{"seen": "f32[2]", "count": "f32[3]"}[tt.state]
		for _, text := range []string{tt.state + ":" + typ, "x:f32[2," + typ[4:]} {
			in, err := spec.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			if tt.state == "seen" || in.Name != "x" {
				o.load.Inputs = append(o.load.Inputs, in)
			}
		}
		m, err := aton.Load(tt.file, o.load)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aton.Convert(m, o.export.ConvertOptions); err != nil {
			t.Fatal(err)
		}
		if have := m.GetMetadata(ssa.StateInputs) + " " + m.GetMetadata("aton.state_outputs"); have != tt.pairs {
			t.Errorf("%s: the state is %q", tt.file, have)
		}
		run := func(state []float64) []float64 {
			var data verify.DataSet
			for _, p := range m.Main().Body.Params {
				n := 1
				var shape []int64
				for _, d := range p.Tensor().Dims {
					k, _ := d.Int()
					shape, n = append(shape, k), n*int(k)
				}
				v := state
				if p.Name != tt.state {
					v = slices.Repeat([]float64{1}, n)
				}
				data.Inputs = append(data.Inputs, verify.Named{Name: p.Name, Tensor: tensor.FromFloats(tensor.Float32, shape, v)})
			}
			out, err := verify.Verifier{}.Run(m, data)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(out, func(n verify.Named) bool { return n.Name == tt.next })
			if i < 0 {
				t.Fatalf("%s: no output %s", tt.file, tt.next)
			}
			return out[i].Tensor.Float64s()
		}
		first := run(slices.Repeat([]float64{0}, int(typ[4]-'0')))
		second := run(first)
		for i := range first {
			if first[i] == 0 || second[i] != 2*first[i] {
				t.Errorf("%s: the state is %v and then %v", tt.file, first, second)
			}
		}
	}
	o := options{load: aton.LoadOptions{Inputs: []spec.Input{{Name: "unseen", Type: spec.Type{Kind: spec.Float}}}}}
	m, err := aton.Load("testdata/fixtures/torch2.15/state.script.pt", o.load)
	if err == nil {
		_, err = aton.Convert(m, o.export.ConvertOptions)
	}
	if err == nil || !strings.Contains(err.Error(), `no input "unseen"`) {
		t.Errorf("a name that is no input and no state: %v", err)
	}
}

// TestUnroll: a loop of a known number of iterations stays one unless it is asked for.
func TestUnroll(t *testing.T) {
	for unroll, loops := range map[int]int{0: 1, 2: 1, 3: 0} {
		m, err := lowered(t, converting(aton.ConvertOptions{Unroll: unroll}))
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := ssa.Fprint(&b, m, ssa.PrintOptions{}); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(b.String(), "= onnx::Loop"); n != loops {
			t.Errorf("unroll %d leaves %d loops, want %d", unroll, n, loops)
		}
	}
}

// TestInvalidRule: a rule of the user's that makes what ONNX does not have is named, with the line of the program.
func TestInvalidRule(t *testing.T) {
	const graph = `graph(%x : Float(2, 3)):
  %y : Float(2, 3) = aten::relu(%x) # net.py:7:0
  return (%y)
`
	for name, c := range map[string]struct {
		lower func(l *aten.Lowering) *ssa.Value
		want  string
	}{
		"attribute": {func(l *aten.Lowering) *ssa.Value {
			return l.OpA("Relu", []ssa.Attr{{Name: "zzz", Value: ssa.Int(1)}}, l.Tensor("self"))
		}, `net.py:7: aten::relu: its lowering makes onnx::Relu, which ONNX does not have: onnx::Relu-14 has no attribute "zzz"; correct the lowering`},
		"types": {func(l *aten.Lowering) *ssa.Value {
			return l.Op("Add", l.Tensor("self"), l.Const(tensor.Ints(1, 2, 3)))
		}, `net.py:7: aten::relu: its lowering makes onnx::Add, which ONNX does not have: input B of onnx::Add-14 has elements of type Long, and another parameter of type T has Float; correct the lowering`},
		"operands": {func(l *aten.Lowering) *ssa.Value {
			return l.Op("Relu", l.Tensor("self"), l.Tensor("self"))
		}, `net.py:7: aten::relu: its lowering makes onnx::Relu, which ONNX does not have: onnx::Relu-14 takes 1 input, not 2; correct the lowering`},
	} {
		table := aten.NewTable()
		if err := table.Register("aten::relu", aten.Def{Lower: c.lower}); err != nil {
			t.Fatal(err)
		}
		m, err := aton.LoadBytes([]byte(graph), "graph.ir", aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = aton.ExportTo(&bytes.Buffer{}, m, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Table: table}})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// What was seen of a built-in operator says nothing of one that a user's table puts in its place.
func TestOperatorsOfATable(t *testing.T) {
	since := func(table *aten.Table, name string) int {
		for _, op := range all.NewSupport(table, 7).Operators() {
			if op.Name == name {
				return op.Since
			}
		}
		return 0
	}
	const name = "aten::_unique2"
	if n := since(nil, name); n != 0 {
		t.Fatalf("%s converts at opset 7 (%d): take another operator for this test", name, n)
	}
	table := aten.NewTable()
	err := table.Register(name, aten.Def{Since: 7, Lower: func(l *aten.Lowering) *ssa.Value { return l.Arg("self") }})
	if err != nil {
		t.Fatal(err)
	}
	if n := since(table, name); n != 7 {
		t.Errorf("the operator of the table is listed from opset %d on, not 7", n)
	}
}

// Weights that are inputs and get other names have their values under these names.
func TestLearnedInputs(t *testing.T) {
	opts := converting(aton.ConvertOptions{LearnedNames: true, Weights: aton.InitializersAsInputs})
	in, err := spec.Parse("x:f32[N,3,18,18]")
	if err != nil {
		t.Fatal(err)
	}
	opts.load.Inputs = append(opts.load.Inputs, in)
	m, err := aton.Load("testdata/fixtures/torch2.15/convnet.script.pt", opts.load)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := aton.ExportTo(&b, m, opts.export); err != nil {
		t.Fatal(err)
	}
	again, err := onnxfile.Parse(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(again.Main().Body.Params) - len(again.Defaults); n != 1 {
		t.Errorf("%d inputs have no value, not one", n)
	}
}

// TestWeightInputs: a weight that --input names is an input that the result depends on, in all three forms of a program; with the
// weight's own values the outputs are those of the program.
func TestWeightInputs(t *testing.T) {
	const name = "classifier.3.weight"
	for _, file := range []string{"convnet.script.pt", "convnet.trace.pt", "convnet.pt2"} {
		var o options
		for _, text := range []string{"x:f32[2,3,18,18]", name + ":f32[5,8]"} {
			in, err := spec.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			o.load.Inputs = append(o.load.Inputs, in)
		}
		path := "testdata/fixtures/torch2.15/" + file
		lowered := func(o options) *ssa.Module {
			m, err := aton.Load(path, o.load)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := aton.Convert(m, o.export.ConvertOptions); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			return m
		}
		plain := lowered(options{load: aton.LoadOptions{Inputs: o.load.Inputs[:1]}})
		var weight *tensor.Tensor
		for op := range plain.Main().Body.Ops() {
			if l, ok := op.Attr("value"); ok && op.Results[0].Name == name {
				weight = l.Tensor
			}
		}
		m := lowered(o)
		if n := len(m.Main().Body.Params); n != 2 || weight == nil {
			t.Errorf("%s: %d inputs", file, n)
			continue
		}
		x := tensor.FromFloats(tensor.Float32, []int64{2, 3, 18, 18}, slices.Repeat([]float64{0.5}, 2*3*18*18))
		run := func(m *ssa.Module, w *tensor.Tensor) []float64 {
			in := map[string]interp.Value{}
			for _, p := range m.Main().Body.Params {
				if in[p.Name] = interp.Of(x); p.Name == name {
					in[p.Name] = interp.Of(w)
				}
			}
			out, err := interp.Run(m, in)
			if err != nil {
				t.Fatal(err)
			}
			return out[0].Tensor.Float64s()
		}
		want := run(plain, nil)
		if got := run(m, weight); !slices.Equal(got, want) {
			t.Errorf("%s: with the weight as it is: %v, want %v", file, got, want)
		}
		if got := run(m, tensor.Full(tensor.Float32, []int64{5, 8}, 0)); slices.Equal(got, want) {
			t.Errorf("%s: the input %s changes nothing", file, name)
		}
	}
}

// TestContainerState: state in the containers of a module is state: an element that is replaced, a key that is added, a list that
// grows, and a tensor in a tuple that is written in place.
func TestContainerState(t *testing.T) {
	tensors := func() ssa.Literal {
		return ssa.TensorValue(tensor.FromFloats(tensor.Float32, []int64{2}, []float64{0, 1}))
	}
	for _, c := range []struct{ name, typ, body, want string }{
		{"m", "Dict(str, Tensor)", "%k : str = prim::Constant[value=\"h\"]()\n = aten::_set_item(%s, %k, %x)", "m.h"},
		{"m", "Dict(str, Tensor)", "%k : str = prim::Constant[value=\"other\"]()\n = aten::_set_item(%s, %k, %x)", "m.h,m.other"},
		{"l", "Tensor[]", "%k : int = prim::Constant[value=0]()\n%r : Tensor[] = aten::_set_item(%s, %k, %x)", "l.0"},
		{"l", "Tensor[]", "%r : Tensor[] = aten::append(%s, %x)", "l.0,l.1"},
		{"p", "(Tensor, Tensor)", "%k : int = prim::Constant[value=1]()\n%a : Tensor, %b : Tensor = prim::TupleUnpack(%s)\n%r : Tensor = aten::add_(%b, %x, %k)", "p.1"},
		{"l", "Tensor[]", "", ""},
	} {
		text := "graph(%self : __torch__.M, %x : Float(2)):\n%s : " + c.typ + " = prim::GetAttr[name=\"" + c.name + "\"](%self)\n" + c.body +
			"\n%y : Tensor = aten::relu(%x)\nreturn (%y)\n"
		convert := func(state string) (*ssa.Module, error) {
			m, err := aton.LoadBytes([]byte(text), "state.ir", aton.LoadOptions{})
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			m.Root = &ssa.Object{Class: "__torch__.M", Fields: []ssa.Attr{
				{Name: "m", Value: ssa.Dict(ssa.Str("h"), tensors())}, {Name: "l", Value: ssa.List(ssa.AnyTensor, tensors())}, {Name: "p", Value: ssa.Tuple(tensors(), tensors())},
			}}
			_, err = aton.Convert(m, aton.ConvertOptions{State: aton.State(state)})
			return m, err
		}
		m, err := convert("outputs")
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		if have := m.GetMetadata("aton.state_outputs"); have != c.want {
			t.Errorf("the state is %q, want %q:\n%s", have, c.want, text)
		}
		if _, err := convert("refuse"); (err == nil) != (c.want == "") {
			t.Errorf("refuse: %v\n%s", err, text)
		}
	}
}

// TestWeightOrder: weights that are inputs stand in the order of the state dict, the same from a script, a trace and an exported
// program, and so do their learned names.
func TestWeightOrder(t *testing.T) {
	in, err := spec.Parse("x:f32[2,3,18,18]")
	if err != nil {
		t.Fatal(err)
	}
	const want = "x features.0.weight features.0.bias features.3.weight features.4.weight features.4.bias features.4.running_mean features.4.running_var classifier.1.weight classifier.1.bias classifier.3.weight classifier.3.bias"
	for _, file := range []string{"convnet.script.pt", "convnet.trace.pt", "convnet.pt2"} {
		for _, learned := range []bool{false, true} {
			o := options{load: aton.LoadOptions{Inputs: []spec.Input{in}, NoWeights: true}, export: aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Weights: aton.NoWeights, LearnedNames: learned}}}
			m, err := aton.Load("testdata/fixtures/torch2.15/"+file, o.load)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := aton.Convert(m, o.export.ConvertOptions); err != nil {
				t.Fatal(err)
			}
			var names []string
			for i, p := range m.Main().Body.Params {
				names = append(names, p.Name)
				if learned && i > 0 && p.Name != fmt.Sprintf("learned_%d", i-1) {
					t.Errorf("%s: input %d is called %s", file, i, p.Name)
				}
			}
			if got := strings.Join(names, " "); !learned && got != want {
				t.Errorf("%s: inputs\n%s, want\n%s", file, got, want)
			}
		}
	}
}

// TestNumberInputs: a number of the program is an input of the element type that is asked for.
func TestNumberInputs(t *testing.T) {
	const text = "graph(%x : Float(4), %n : int, %f : float):\n%y : Tensor = aten::mul(%x, %n)\n%z : Tensor = aten::mul(%y, %f)\nreturn (%z)\n"
	for spelled, want := range map[string]string{"n:int f:float": "Long() Double()", "n:i64[] f:f64[]": "Long() Double()", "n:i32[] f:f32[]": "Int() Float()", "n:u8[] f:f16[]": "Byte() Half()"} {
		var o options
		for _, s := range strings.Fields(spelled) {
			in, err := spec.Parse(s)
			if err != nil {
				t.Fatal(err)
			}
			o.load.Inputs = append(o.load.Inputs, in)
		}
		m, err := aton.LoadBytes([]byte(text), "numbers.ir", o.load)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aton.Convert(m, o.export.ConvertOptions); err != nil {
			t.Errorf("%s: %v", spelled, err)
			continue
		}
		p := m.Main().Body.Params
		if got := fmt.Sprint(p[1].Type, " ", p[2].Type); got != want {
			t.Errorf("%s: inputs of types %s, want %s", spelled, got, want)
		}
	}
}
