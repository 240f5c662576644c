package prove

import (
	"errors"
	"os"
	"testing"

	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/ssa"
)

// solver is a prover with a solver. Without z3 the test is skipped, or fails where ATON_NEED_Z3 is set.
func solver(t *testing.T) *Prover {
	t.Helper()
	p := New()
	t.Cleanup(p.Close)
	if _, _, err := p.Solver.Ask("", nil); errors.Is(err, ErrNoSolver) {
		if os.Getenv("ATON_NEED_Z3") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return p
}

func parse(t *testing.T, text string) *ssa.Func {
	t.Helper()
	m, err := ssa.Parse(text, "test", all.Dialects()...)
	if err != nil {
		t.Fatal(err)
	}
	return m.Funcs[0]
}

func TestProve(t *testing.T) {
	p := solver(t)
	for _, tt := range []struct {
		name, before, after string
		rounds              bool
		want                Outcome
		theory              string
	}{
		{"-0.0 is neutral", "%z : Float() = onnx::Constant[value={-0.}]()\n  %y : Float(N) = onnx::Add(%x, %z)", "%y : Float(N) = onnx::Identity(%x)", false, Proved, "IEEE 754"},
		{"0.0 is not", "%z : Float() = onnx::Constant[value={0.}]()\n  %y : Float(N) = onnx::Add(%x, %z)", "%y : Float(N) = onnx::Identity(%x)", false, Refuted, ""},
		{"a mean of one element is never -0.0", "%z : Long(1) = onnx::Constant[value={1}]()\n  %a : Float(N, 1) = onnx::Unsqueeze(%x, %z)\n  %b : Float(1, N, 1) = onnx::Reshape[allowzero=0](%a, %s)\n  %y : Float(1, N, 1) = onnx::AveragePool[kernel_shape=[1]](%b)",
			"%z : Long(1) = onnx::Constant[value={1}]()\n  %a : Float(N, 1) = onnx::Unsqueeze(%x, %z)\n  %y : Float(1, N, 1) = onnx::Reshape[allowzero=0](%a, %s)", false, Refuted, ""},
		{"a clip keeps the sign of zero, as Relu does", "%z : Float() = onnx::Constant[value={0.}]()\n  %y : Float(N) = onnx::Clip(%x, %z)", "%y : Float(N) = onnx::Relu(%x)", false, Proved, "terms"},
		{"Max does not", "%z : Float() = onnx::Constant[value={0.}]()\n  %y : Float(N) = onnx::Max(%x, %z)", "%y : Float(N) = onnx::Relu(%x)", false, Refuted, ""},
		{"a factor of a sum", "%z : Float() = onnx::Constant[value={3.}]()\n  %a : Float(N) = onnx::Add(%x, %x)\n  %y : Float(N) = onnx::Mul(%a, %z)",
			"%z : Float() = onnx::Constant[value={3.}]()\n  %a : Float(N) = onnx::Mul(%x, %z)\n  %y : Float(N) = onnx::Add(%a, %a)", true, Proved, "real numbers, constants to six digits"},
		{"Gelu", "%h : Float() = onnx::Constant[value={0.5}]()\n  %r : Float() = onnx::Constant[value={1.4142135}]()\n  %o : Float() = onnx::Constant[value={1.}]()\n  %a : Float(N) = onnx::Div(%x, %r)\n  %b : Float(N) = onnx::Erf(%a)\n  %c : Float(N) = onnx::Add(%b, %o)\n  %d : Float(N) = onnx::Mul(%c, %x)\n  %y : Float(N) = onnx::Mul(%d, %h)",
			"%y : Float(N) = onnx::Gelu(%x)", true, Proved, "real numbers, constants to six digits"},
		{"the other Gelu", "%y : Float(N) = onnx::Gelu[approximate=\"tanh\"](%x)", "%y : Float(N) = onnx::Gelu(%x)", true, Open, ""},
	} {
		make := func(body string) *ssa.Func {
			text := "graph @f(%x : Float(N)):\n  %s : Long(3) = onnx::Constant[value= 1  2  1 [ CPULongType{3} ]]()\n  " + body + "\n  return (%y)\n"
			return parse(t, text)
		}
		v, err := p.Prove(Claim{Before: make(tt.before), After: make(tt.after), Dims: map[string]int64{"N": 2}, Rounds: tt.rounds})
		if err != nil || v.Outcome != tt.want || tt.theory != "" && v.Theory != tt.theory {
			t.Errorf("%s: %v by %s (%s %v)", tt.name, v.Outcome, v.Theory, v.Why, err)
		}
		if v.Outcome == Refuted {
			t.Log(tt.name, v.Counterexample())
		}
	}
}

// The rules that are patterns are proved for all instances of the bound.
func TestPatterns(t *testing.T) {
	p := solver(t)
	s := NewSession(simplify.Rules())
	s.Prover = p
	for _, rule := range simplify.Rules() {
		if rule.From == "" || rule.Name == "merge-casts" { // of which there are thousands: make prove
			continue
		}
		s.Only = func(name string) bool { return name == rule.Name }
		for f := range instances(rule.From) {
			if err := s.graph(f, "simplify"); err != nil {
				t.Fatal(err)
			}
		}
		r := s.result(rule.Name)
		if r.Outcome() != Proved {
			t.Errorf("%s: %v %v %v", rule.Name, r.Outcome(), r.Claims, r.Whys)
		}
	}
}
