package prove

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/aten/rules"
)

func TestUser(t *testing.T) {
	p := solver(t)
	set, err := rules.Parse(rules.Source{Name: "my.rules", Text: `
rule even
  from
    %a = onnx::Neg(%x)
    %y = onnx::Abs(%a)
  to
    %y = onnx::Abs(%x)

rule sign-of-zero
  from
    %y = onnx::Max(%x, 0.0)
  to
    %y = onnx::Relu(%x)

rule back-again
  from
    %a = onnx::Transpose[perm=$p](%x)
    %y = onnx::Transpose[perm=$p](%a)
  to
    %y = %x

rule no-result
  from
    %y = onnx::ReduceMean[*](%x, [2, 3])
  where
    rank(%x) == 4
    rank(%y) == 4
  to
    %y = onnx::GlobalAveragePool(%x)

rule commutes
  from
    %y = onnx::Sub(%x, %z)
  to
    %y = onnx::Sub(%z, %x)
`})
	if err != nil {
		t.Fatal(err)
	}
	s := NewSession(nil)
	s.Prover = p
	got, err := s.User(set)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"proved", "proved on real numbers", "refuted", "refuted", "refuted"} {
		if got[i].Status() != want {
			t.Errorf("%s is %s, not %s: %v", got[i].Rule, got[i].Status(), want, got[i].Whys)
		}
	}
	if !strings.Contains(got[1].Needed, "-0") {
		t.Errorf("no zero of the other sign shows what sign-of-zero changes: %s", got[1].Needed)
	}
	for _, c := range got[4].Refuted {
		if c.Verdict.Inputs == nil {
			t.Error("a refutation without inputs")
		}
	}
}
