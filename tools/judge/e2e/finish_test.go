package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/passes"
)

const unusedInput = `graph(%x : Float(2), %z : Float(2)):
  %y : Float(2) = aten::relu(%x)
  return (%y)
`

// What the options ask for beyond the pipeline is done by passes, which those who watch a conversion see.
func TestFinishingPasses(t *testing.T) {
	m, err := aton.LoadBytes([]byte(unusedInput), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	changed := map[string]int{}
	var order []string
	o := converting(aton.ConvertOptions{InputNames: []string{"a", "b"}, OutputNames: []string{"c"}, CustomOpsets: map[string]int{"mine": 3}, DropUnused: true, Runner: &passes.Runner{VerifyEach: true, VerifyRoundtrip: true, Observers: []passes.Observer{{AfterPass: func(e *passes.Event) {
		name, _, _ := strings.Cut(e.Text, "{")
		order = append(order, name)
		if e.Changed() {
			changed[name]++
		}
	}}}}})
	if _, err := aton.Convert(m, o.export.ConvertOptions); err != nil {
		t.Fatal(err)
	}
	want := []string{"check-converted", "set-domain-versions", "rename", "drop-unused-inputs"}
	if got := order[max(len(order)-len(want), 0):]; !slices.Equal(got, want) {
		t.Errorf("the last passes are %v, want %v", got, want)
	}
	if changed["rename"] != 1 || changed["drop-unused-inputs"] != 1 || changed["check-converted"] != 0 {
		t.Errorf("changed: %v", changed)
	}
	if f := m.Main(); len(f.Body.Params) != 1 || f.Body.Params[0].Name != "a" || !slices.Equal(f.OutputNames, []string{"c"}) || !slices.Equal(m.DroppedInputs, []int64{1}) {
		t.Errorf("inputs %v, outputs %v, dropped %v", f.Body.Params, f.OutputNames, m.DroppedInputs)
	}
}

// A pipeline without the pass that lowers leaves operators of PyTorch, and no pass renames what has errors.
func TestNotConverted(t *testing.T) {
	m, err := aton.LoadBytes([]byte(unusedInput), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = aton.Convert(m, aton.ConvertOptions{Pipeline: "dce", InputNames: []string{"a", "a"}})
	if err == nil || !strings.Contains(err.Error(), "aten::relu") || strings.Contains(err.Error(), "taken") {
		t.Error(err)
	}
}

// A former name of a pass is accepted wherever a pass is named, with a warning.
func TestFormerNames(t *testing.T) {
	for _, o := range []aton.ConvertOptions{{After: map[string]string{"lower": "fold"}}, {Pipeline: "export,fold"}, {Before: map[string]string{"arrange": "dce"}}} {
		m, err := aton.LoadBytes([]byte(unusedInput), "graph.ir", aton.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		o.Warn = func(message string) { warned = append(warned, message) }
		if _, err := aton.Convert(m, o); err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(warned, func(s string) bool {
			return strings.Contains(s, "the pass fold is called fold-constants") || strings.Contains(s, "the pass arrange is called name-initializers")
		}) {
			t.Errorf("warned %q", warned)
		}
	}
}
