package prove

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Steps, patterns of indexing and a pass without rules are proved, and wrong variants of them are refuted.
func TestSteps(t *testing.T) {
	s := NewSession(nil)
	s.Prover = solver(t)
	s.Variants, s.Solver.Limit = 1, 200*time.Millisecond
	want := []string{"LessOrEqual-12", "Mod-10", "ReduceSum-13", "Softmax-13", "Squeeze-13", "Unsqueeze-13", "Where-9"}
	names := append([]string{"shapes", "legalize-indexing: slice", "legalize-indexing: gather", "legalize-indexing: set_two"}, want...)
	s.Only = func(rule string) bool { return slices.Contains(names, rule) }
	if err := s.Steps("../../../lit-tests", nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Pass("../../../lit-tests", "shapes"); err != nil {
		t.Fatal(err)
	}
	if err := s.Indexing("../../../lit-tests"); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		r := s.Results[name]
		if r == nil {
			t.Errorf("%s was not tried", name)
			continue
		}
		if t.Log(r); r.Claims[Refuted] > 0 || r.Claims[Proved] == 0 {
			t.Errorf("%s: %v %v", name, r.Claims, r.Whys)
		}
	}
	if r := s.Results["Mod-10"]; r == nil || !strings.Contains(r.Assumes, "no divisor is 0") || r.Without == "" {
		t.Errorf("nothing shows what the step of Mod takes for granted: %+v", r)
	}
	m, err := s.Mutate(20, 1)
	if err != nil || m.Refuted < 20 || len(m.Rules) < 4 {
		t.Errorf("%+v %v", m, err)
	}
}
