package prove

import (
	"testing"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

// validated runs a pipeline on a graph and proves its passes.
func validated(t *testing.T, text, pipeline string, dims map[string]int64) *Validation {
	t.Helper()
	v := NewValidation(solver(t))
	v.Dims = dims
	m := parse(t, text).Module()
	p, err := all.Set.Parse(pipeline)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Run(m, &passes.Runner{Observers: []passes.Observer{v.Watch(m)}}); err != nil {
		t.Fatal(err)
	}
	if v.Err() != nil {
		t.Fatal(v.Err())
	}
	return v
}

func TestValidation(t *testing.T) {
	for _, tt := range []struct {
		name, text, pipeline string
		want                 Reason // one that must be among them
	}{
		{"an operator that is computed twice", `graph(%x : Float(N, 3)):
  %a : Float(N, 3) = onnx::Relu(%x)
  %b : Float(N, 3) = onnx::Relu(%x)
  %y : Float(N, 3) = onnx::Add(%a, %b)
  return (%y)
`, "infer-types,cse", Congruent},
		{"a constant", `graph(%x : Float(N, 3)):
  %c : Float(3) = onnx::Constant[value= 1  2  3 [ CPUFloatType{3} ]]()
  %d : Float(3) = onnx::Exp(%c)
  %y : Float(N, 3) = onnx::Add(%x, %d)
  return (%y)
`, "infer-types,fold-constants{weights=true}", Computed},
		{"a rule", `graph(%x : Float(N, 3)):
  %a : Float(3, N) = onnx::Transpose[perm=[1, 0]](%x)
  %b : Float(N, 3) = onnx::Transpose[perm=[1, 0]](%a)
  %y : Float(N, 3) = onnx::Tanh(%b)
  return (%y)
`, "infer-types,simplify", ForAllElements},
		{"a step to an older opset", `graph(%x : Float(N, 3)):
  %y : Float(N, 3) = onnx::HardSwish(%x)
  return (%y)
`, "infer-types,legalize{opset=13}", OnReals},
		{"sizes of a real model", `graph(%x : Float(N, 64, 112, 112), %w : Float(64, 64, 3, 3)):
  %s : Long(1) = onnx::Constant[value={64}]()
  %b : Float(64) = onnx::ConstantOfShape(%s)
  %a : Float(N, 64, 112, 112) = onnx::Conv[kernel_shape=[3, 3], pads=[1, 1, 1, 1]](%x, %w, %b)
  %y : Float(N, 64, 112, 112) = onnx::Relu(%a)
  return (%y)
`, "infer-types,fixpoint(simplify,fold-constants{weights=true})", AtSmallSizes},
		{"within a loop", `graph(%x : Float(3), %n : Long()):
  %c : Bool() = onnx::Constant[value={1}]()
  %y : Float(3) = onnx::Loop(%n, %c, %x)
    block0(%i : Long(), %d : Bool(), %s : Float(3)):
      %e : Bool() = onnx::Identity(%d)
      %p : Float(3) = onnx::Neg(%s)
      %q : Float(3) = onnx::Neg(%p)
      %r : Float(3) = onnx::Tanh(%q)
      -> (%e, %r)
  return (%y)
`, "infer-types,simplify", ForAllElements},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v := validated(t, tt.text, tt.pipeline, map[string]int64{"N": 2})
			by := v.Count()
			if by[tt.want] == 0 || by[AgreesOnInputs]+by[Unproved] > 0 || v.Sure != v.Values {
				t.Errorf("%v, %d of %d values", by, v.Sure, v.Values)
			}
		})
	}
}

// A pass that is wrong is not proved, wherever its fault is.
func TestValidationOfFaults(t *testing.T) {
	const text = `graph(%x : Float(2, 3), %z : Float(2, 3), %n : Long()):
  %c : Bool() = onnx::Constant[value={1}]()
  %a : Float(2, 3) = onnx::Sub(%x, %z)
  %t : Float(3, 2) = onnx::Transpose[perm=[1, 0]](%a)
  %y : Float(3, 2) = onnx::Loop(%n, %c, %t)
    block0(%i : Long(), %d : Bool(), %s : Float(3, 2)):
      %e : Bool() = onnx::Identity(%d)
      %r : Float(3, 2) = onnx::Relu(%s)
      -> (%e, %r)
  %w : Float(3, 2) = onnx::Add(%y, %t)
  return (%w)
`
	for name, fault := range map[string]func(ops map[ssa.Kind]*ssa.Op){
		"operands":  func(ops map[ssa.Kind]*ssa.Op) { o := ops["onnx::Sub"]; o.SetOperands(o.Operand(1), o.Operand(0)) },
		"operator":  func(ops map[ssa.Kind]*ssa.Op) { ops["onnx::Add"].Kind = "onnx::Mul" },
		"in a loop": func(ops map[ssa.Kind]*ssa.Op) { ops["onnx::Relu"].Kind = "onnx::Abs" },
		"a bypass":  func(ops map[ssa.Kind]*ssa.Op) { o := ops["onnx::Add"]; o.Result(0).ReplaceUses(o.Operand(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			v := NewValidation(solver(t))
			m := parse(t, text).Module()
			watch := v.Watch(m)
			e := &passes.Event{Pass: &passes.Pass{Name: "wrong"}, Module: m}
			watch.AfterPass(e)
			ops := map[ssa.Kind]*ssa.Op{}
			for o := range m.Main().Body.AllOps() {
				ops[o.Kind] = o
			}
			fault(ops)
			watch.AfterPass(e)
			if len(v.Changes) != 1 || v.Changes[0].Proved() || v.Sure == v.Values {
				t.Errorf("%v", v.Count())
			}
		})
	}
}

// The table of the README names the rules that are proved.
func TestProvedRules(t *testing.T) {
	if n := len(provedRules()); n < 60 {
		t.Errorf("%d rules are proved, as the table has it", n)
	}
}
