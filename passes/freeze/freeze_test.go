package freeze

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes/passtest"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func dialects() []ssa.Dialect { return append(aten.Dialects(), prim.Dialect{}) }

func TestDemo(t *testing.T) { passtest.Check(t, &Pass, dialects()...) }

func parse(t *testing.T, text string) *ssa.Module {
	t.Helper()
	m, err := ssa.Parse(text, "t", dialects()...)
	if err != nil {
		t.Fatal(err)
	}
	aten.BindSchemas(m)
	return m
}

// TestShared: a tensor that two attributes hold is one constant, under its first name.
func TestShared(t *testing.T) {
	m := parse(t, `graph(%self : __torch__.M, %x : Tensor):
  %a : Tensor = prim::GetAttr[name="second"](%self)
  %b : Tensor = prim::GetAttr[name="first"](%self)
  %l : Tensor[] = prim::GetAttr[name="all"](%self)
  %y : Tensor = aten::matmul(%a, %b)
  return (%y, %l)`)
	w := tensor.Ints(1, 2)
	m.Root = &ssa.Object{Class: "__torch__.M", Fields: []ssa.Attr{
		{Name: "all", Value: ssa.List(ssa.AnyTensor, ssa.TensorValue(w))},
		{Name: "first", Value: ssa.TensorValue(w)}, {Name: "second", Value: ssa.TensorValue(w)}}}
	if err := Run(m, Preserve).Err(); err != nil {
		t.Fatal(err)
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
	s := ssa.Print(m)
	if strings.Count(s, "Constant") != 1 || !strings.Contains(s, "%first : ") || strings.Contains(s, "%self") {
		t.Errorf("not one constant:\n%s", s)
	}
}

// TestState: what is written stays an attribute of a constant object.
func TestState(t *testing.T) {
	m := parse(t, `graph(%self : __torch__.M, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %n : Tensor = prim::GetAttr[name="n"](%self)
  %v : Tensor = aten::t(%n)
  %u : Tensor = aten::add_(%v, %one, %one)
  %k : Tensor = prim::GetAttr[name="k"](%self)
   = prim::SetAttr[name="k"](%self, %u)
  %w : Tensor = prim::GetAttr[name="w"](%self)
  return (%u, %k, %w)`)
	one := func() ssa.Literal { return ssa.TensorValue(tensor.Ints(1)) }
	m.Root = &ssa.Object{Class: "__torch__.M", Fields: []ssa.Attr{{Name: "n", Value: one()}, {Name: "k", Value: one()}, {Name: "w", Value: one()}}}
	if err := Run(m, Preserve).Err(); err != nil {
		t.Fatal(err)
	}
	s := ssa.Print(m)
	if strings.Count(s, "prim::GetAttr") != 2 || !strings.Contains(s, "object(") || !strings.Contains(s, "%w : Long(1)") {
		t.Errorf("state is frozen, or too much is state:\n%s", s)
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
}

// TestModeOfInstanceNorm: in eval mode an instance_norm has the statistics of its module, and those of its input where the module has none.
func TestModeOfInstanceNorm(t *testing.T) {
	for _, c := range []struct {
		field ssa.Literal
		want  bool
	}{{ssa.Literal{}, true}, {ssa.TensorValue(tensor.Ints(1)), false}} {
		m := parse(t, `graph(%self : __torch__.M, %x : Tensor):
  %none : NoneType = prim::Constant()
  %use : bool = prim::Constant[value=1]()
  %cudnn : bool = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=0.1]()
  %s : Tensor? = prim::GetAttr[name="s"](%self)
  %y : Tensor = aten::instance_norm(%x, %none, %none, %s, %s, %use, %eps, %eps, %cudnn)
  return (%y)`)
		m.Root = &ssa.Object{Class: "__torch__.M", Fields: []ssa.Attr{{Name: "s", Value: c.field}}}
		if err := Run(m, Eval).Err(); err != nil {
			t.Fatal(err)
		}
		for o := range m.Main().Body.AllOps() {
			if o.Kind != "aten::instance_norm" {
				continue
			}
			if l, _ := o.Operand(5).Def().Attr("value"); l.Bool() != c.want {
				t.Errorf("statistics %v: use_input_stats is %v, want %v", c.field, l.Bool(), c.want)
			}
		}
	}
}

// TestNumbersAreNotMemory: a list made of an attribute's numbers may be written.
func TestNumbersAreNotMemory(t *testing.T) {
	m := parse(t, `graph(%self : __torch__.M):
  %p : (int, int) = prim::GetAttr[name="p"](%self)
  %a : int, %b : int = prim::TupleUnpack(%p)
  %l : int[] = prim::ListConstruct(%a)
  %m : int[] = aten::append(%l, %b)
  return (%m)`)
	m.Root = &ssa.Object{Class: "__torch__.M", Fields: []ssa.Attr{{Name: "p", Value: ssa.Tuple(ssa.Int(1), ssa.Int(2))}}}
	Run(m, Preserve)
	if s := ssa.Print(m); strings.Contains(s, "GetAttr") {
		t.Errorf("not frozen:\n%s", s)
	}
}

// TestReplacedObject: an object that the module puts in another one's place is read when it is needed, others are not.
func TestReplacedObject(t *testing.T) {
	m := parse(t, `graph(%self : __torch__.M, %c : bool):
  %p : __torch__.P = prim::GetAttr[name="p"](%self)
  %k : int = prim::GetAttr[name="k"](%p)
  %q : __torch__.P = prim::GetAttr[name="q"](%self)
   = prim::If(%c)
    block0():
       = prim::SetAttr[name="p"](%self, %q)
      -> ()
    block1():
      -> ()
  %r : __torch__.P = prim::GetAttr[name="p"](%self)
  %l : int = prim::GetAttr[name="k"](%r)
  %n : int = prim::GetAttr[name="k"](%q)
  return (%k, %l, %n)`)
	point := func(k int64) ssa.Literal {
		return ssa.ObjectValue(&ssa.Object{Class: "__torch__.P", Fields: []ssa.Attr{{Name: "k", Value: ssa.Int(k)}}})
	}
	m.Root = &ssa.Object{Class: "__torch__.M", Fields: []ssa.Attr{{Name: "p", Value: point(1)}, {Name: "q", Value: point(2)}}}
	if err := Run(m, Preserve).Err(); err != nil {
		t.Fatal(err)
	}
	if err := ssa.Verify(m); err != nil {
		t.Fatal(err)
	}
	s := ssa.Print(m)
	if strings.Count(s, `prim::GetAttr[name="p"]`) != 2 || strings.Count(s, `prim::GetAttr[name="k"]`) != 2 || !strings.Contains(s, "int = prim::Constant[value=2]") {
		t.Errorf("not what may be another object, or more, is read:\n%s", s)
	}
}

// TestTrainingMode: a module in training is told of where the mode means something, and once.
func TestTrainingMode(t *testing.T) {
	const flag, p = "%t : bool = prim::GetAttr[name=\"training\"](%self)\n", "%p : float = prim::GetAttr[name=\"p\"](%self)\n"
	for _, c := range []struct {
		name, body      string
		training, tells bool
		p               float64
	}{
		{"no operator takes the mode", "%y : Tensor = aten::relu(%x)", true, false, 0.5},
		{"dropout", flag + p + "%y : Tensor = aten::dropout(%x, %p, %t)", true, true, 0.5},
		{"in eval mode", flag + p + "%y : Tensor = aten::dropout(%x, %p, %t)", false, false, 0.5},
		{"dropout of nothing", flag + p + "%y : Tensor = aten::dropout(%x, %p, %t)", true, false, 0},
		{"recorded", p + "%t : bool = prim::Constant[value=1]()\n%y : Tensor = aten::dropout(%x, %p, %t)\n%z : Tensor = aten::dropout(%y, %p, %t)", true, true, 0.5},
		{"recorded in eval mode", p + "%t : bool = prim::Constant[value=0]()\n%y : Tensor = aten::dropout(%x, %p, %t)", true, false, 0.5},
		{"a condition", flag + "%y : Tensor = prim::If(%t)\n  block0():\n    -> (%x)\n  block1():\n    -> (%x)", true, true, 0.5},
		{"a negated condition", flag + "%n : bool = aten::__not__(%t)\n%y : Tensor = prim::If(%n)\n  block0():\n    -> (%x)\n  block1():\n    -> (%x)", true, true, 0.5},
	} {
		m := parse(t, "graph(%self : __torch__.M, %x : Tensor):\n  "+strings.ReplaceAll(c.body, "\n", "\n  ")+"\n  return (%y)")
		m.Root = &ssa.Object{Class: "__torch__.M", Fields: []ssa.Attr{{Name: "training", Value: ssa.Bool(c.training)}, {Name: "p", Value: ssa.Float(c.p)}}}
		told := 0
		for _, d := range Run(m, Preserve).Items {
			if d.ID == "training-mode" {
				told++
			}
		}
		if want := map[bool]int{true: 1}[c.tells]; told != want {
			t.Errorf("%s: told %d times, not %d", c.name, told, want)
		}
	}
}
