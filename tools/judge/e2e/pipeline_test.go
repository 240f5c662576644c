package e2e

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
)

// TestPipelineWithoutLegalize refuses to write operators in a form that the opset does not have.
func TestPipelineWithoutLegalize(t *testing.T) {
	o := options{export: aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Opset: 13, Pipeline: "upgrade,inline,canonicalize,freeze,specialize{opset=$opset},lower{opset=$opset},name-initializers"}}}
	m, err := aton.LoadBytes([]byte("graph(%x : Float(2, 3)):\n  %a : Long(1) = onnx::Constant[value={1}]()\n  %y : Float(2, 1) = onnx::ReduceMean(%x, %a)\n  return (%y)\n"), "graph.ir", o.load)
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := aton.ExportTo(&file, m, o.export); err == nil {
		t.Errorf("ReduceMean with axes as an operand is written at opset 13: %d bytes", file.Len())
	} else {
		t.Log(err)
	}
}

// TestGuarded: what a file is not right for is checked by it, or the file is not written.
func TestGuarded(t *testing.T) {
	src := []byte(`graph(%x : Float(N, 4)):
  %n : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %s : Tensor = aten::squeeze(%x)
  %y : Tensor = aten::softmax(%s, %0, %n)
  return (%y)
`)
	const steps = "upgrade,inline,canonicalize,freeze,specialize{opset=$opset},lower{opset=$opset},optimize{opset=$opset},"
	for pipeline, want := range map[string]string{
		"":                                     "",
		steps + "guard,legalize{opset=$opset}": "",
		steps + "legalize{opset=$opset}":       "put guard before legalize",
	} {
		o := converting(aton.ConvertOptions{Pipeline: pipeline})
		m, err := aton.LoadBytes(src, "graph.ir", o.load)
		if err != nil {
			t.Fatal(err)
		}
		var file bytes.Buffer
		err = aton.ExportTo(&file, m, o.export)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("pipeline %q: %v", pipeline, err)
		}
	}
}

// TestUnread refuses options that a pipeline has no place for, and steps at places that there are not.
func TestUnread(t *testing.T) {
	const own = "upgrade,inline,canonicalize,freeze,specialize{opset=$opset},lower{opset=$opset},guard,legalize{opset=$opset}"
	for _, c := range []struct {
		want string
		opts aton.ConvertOptions
	}{
		{"reads the option State", aton.ConvertOptions{Pipeline: own, State: "outputs"}},
		{"reads the option Training", aton.ConvertOptions{Pipeline: own, Training: aton.Eval}},
		{"reads the option Unroll", aton.ConvertOptions{Pipeline: own, Unroll: 3}},
		{"reads the option LearnedNames", aton.ConvertOptions{Pipeline: own, LearnedNames: true}},
		{"reads the option Weights", aton.ConvertOptions{Pipeline: own, Weights: aton.NoWeights}},
		{"reads the option Target", aton.ConvertOptions{Pipeline: own, Target: "onnx"}},
		{"", aton.ConvertOptions{Pipeline: own, Target: "ort", State: "drop", Contrib: "none", Training: aton.Preserve, OperatorExport: aton.ONNX}}, // as the command gives them
		{"no pass of the pipeline raw reads the option LearnedNames", aton.ConvertOptions{OperatorExport: aton.Raw, LearnedNames: true}},
		{"no pass of the pipeline raw reads the option Weights", aton.ConvertOptions{OperatorExport: aton.Raw, Weights: aton.InitializersAsInputs}},
		{"", aton.ConvertOptions{OperatorExport: aton.Raw, Training: aton.Eval, InputNames: []string{"image"}}},
		{`no way to store weights "beside"`, aton.ConvertOptions{Weights: "beside"}},
		{"do not go with a pipeline", aton.ConvertOptions{Pipeline: own, After: map[string]string{"lower": "cse"}}},
		{`no step "louer", did you mean "lower"?`, aton.ConvertOptions{After: map[string]string{"louer": "cse"}}},
		{"put simplify before legalize", aton.ConvertOptions{After: map[string]string{"legalize": "simplify"}}},
		{"", aton.ConvertOptions{Before: map[string]string{"lower": "dce"}, After: map[string]string{"lower": "cse,dce"}, Training: aton.Eval}},
	} {
		m, err := aton.LoadBytes([]byte("graph(%x : Float(2)):\n  %y : Float(2) = aten::relu(%x)\n  return (%y)\n"), "graph.ir", c.opts.LoadOptions())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = aton.Convert(m, c.opts); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

// TestPipeline refuses pipelines that cannot be read, and those for another opset than the model's.
func TestPipeline(t *testing.T) {
	const graph = "graph(%x : Float(2)):\n  %y : Float(2) = aten::relu(%x)\n  return (%y)\n"
	for _, c := range []struct {
		pipeline string
		opset    int
		want     string // "" for success
	}{
		{"export{opset=$opset}", 13, ""},
		{"export{opset=$opset,target=$target,training=$training,names=$names,fallthrough=\"$fallthrough\",mode=$mode,state=$state,unroll=$unroll}", 0, ""},
		{"export", 13, "has a pass for opset 20, and the model is converted to opset 13"},
		{"cze", 0, `unknown pass "cze", did you mean "cse"?`},
		{"cse", 0, "aten::relu: cannot be converted to ONNX"},
	} {
		o := converting(aton.ConvertOptions{Opset: c.opset, Pipeline: c.pipeline})
		m, err := aton.LoadBytes([]byte(graph), "graph.ir", o.load)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = aton.Convert(m, o.export.ConvertOptions); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.pipeline, err)
		}
		if c.want == "" && onnx.DefaultOpset(m) != cmp.Or(c.opset, aton.DefaultOpset) {
			t.Errorf("%s: opset %d", c.pipeline, onnx.DefaultOpset(m))
		}
	}
	for want, o := range map[string]aton.ConvertOptions{
		"RAW has a pipeline of its own":  {Pipeline: "cse", OperatorExport: aton.Raw},
		"no pipeline names the pass cse": {Passes: []*passes.Pass{all.Set.Pass("cse")}},
	} {
		m, err := aton.LoadBytes([]byte(graph), "graph.ir", o.LoadOptions())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = aton.Convert(m, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
	if all.Set.Pass("quick") != nil {
		t.Error("a pass of one call is known to the next")
	}
}

// TestParts: where an opset has no operator for what a program computes, the file has the program's own parts, not those that a newer operator
// is taken apart into.
func TestParts(t *testing.T) {
	const text = `graph(%q : Float(2, 3, 4, 8), %k : Float(2, 3, 5, 8), %v : Float(2, 3, 5, 8)):
  %none : NoneType = prim::Constant()
  %p : float = prim::Constant[value=0.]()
  %no : bool = prim::Constant[value=0]()
  %y : Tensor = aten::scaled_dot_product_attention(%q, %k, %v, %none, %p, %no, %none, %no)
  return (%y)
`
	for opset, want := range map[int][]string{
		22: {"Mul", "Transpose", "MatMul", "Softmax", "MatMul"},
		23: {"Attention"},
	} {
		var kinds []string
		for o := range parsed(t, writtenText(t, text, converting(aton.ConvertOptions{Opset: opset}))).Main().Body.AllOps() {
			if o.Kind != "onnx::Constant" {
				kinds = append(kinds, o.Kind.Name())
			}
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("opset %d: %v, want %v", opset, kinds, want)
		}
	}
}
