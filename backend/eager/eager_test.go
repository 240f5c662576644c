package eager_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
	"github.com/aton-project/aton/verify"
)

func load(t *testing.T, text string) *ssa.Module {
	t.Helper()
	m, err := aton.LoadBytes([]byte(text), "graph.ir", aton.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// matrix is 0, 1, 2, ... in a shape.
func matrix(shape ...int64) *tensor.Tensor {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = float64(i)
	}
	return tensor.FromFloats(tensor.Float32, shape, v)
}

// said is what a program gives, or why it gives nothing.
func said(m *ssa.Module, args ...eager.Value) string {
	out, err := (&eager.Evaluator{}).Call(m, args...)
	if err != nil {
		return "error: " + err.Error()
	}
	var parts []string
	for _, v := range out {
		parts = append(parts, show(v))
	}
	return strings.Join(parts, "; ")
}

func show(v eager.Value) string {
	switch v := v.(type) {
	case *eager.Tensor:
		t := v.Tensor()
		if t.DType.IsFloat() {
			return fmt.Sprint(t.Shape, t.Float64s())
		}
		return fmt.Sprint(t.Shape, t.Int64s())
	case *eager.List:
		var parts []string
		for _, e := range v.Elems {
			parts = append(parts, show(e))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(v)
}

// What is written through one view is seen through the others, and where PyTorch copies it is not. The figures are PyTorch's.
func TestViews(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"a row", `
  %r : Tensor = aten::select(%x, %0, %1)
  %w : Tensor = aten::add_(%r, %10, %1)`, "[2 3] [0 1 2 13 14 15]"},
		{"a column of the transpose", `
  %t : Tensor = aten::t(%x)
  %r : Tensor = aten::select(%t, %0, %1)
  %w : Tensor = aten::mul_(%r, %10)`, "[2 3] [0 10 2 3 40 5]"},
		{"contiguous of a transpose is a copy", `
  %t : Tensor = aten::t(%x)
  %u : Tensor = aten::contiguous(%t, %0)
  %w : Tensor = aten::add_(%u, %10, %1)`, "[2 3] [0 1 2 3 4 5]"},
		{"reshape of a transpose is a copy", `
  %t : Tensor = aten::t(%x)
  %s : int[] = prim::ListConstruct(%m1)
  %u : Tensor = aten::reshape(%t, %s)
  %w : Tensor = aten::add_(%u, %10, %1)`, "[2 3] [0 1 2 3 4 5]"},
		{"reshape of rows is a view", `
  %s : int[] = prim::ListConstruct(%m1)
  %u : Tensor = aten::reshape(%x, %s)
  %w : Tensor = aten::add_(%u, %10, %1)`, "[2 3] [10 11 12 13 14 15]"},
		{"a step", `
  %u : Tensor = aten::slice(%x, %1, %0, %none, %2)
  %w : Tensor = aten::zero_(%u)`, "[2 3] [0 1 0 0 4 0]"},
		{"the diagonal", `
  %u : Tensor = aten::diagonal(%x, %1, %0, %1)
  %w : Tensor = aten::fill_(%u, %m1)`, "[2 3] [0 -1 2 3 4 -1]"},
		{"chunks", `
  %l : Tensor[] = aten::chunk(%x, %2, %1)
  %u : Tensor = aten::__getitem__(%l, %1)
  %w : Tensor = aten::add_(%u, %10, %1)`, "[2 3] [0 1 12 3 4 15]"},
		{"as_strided", `
  %s : int[] = prim::ListConstruct(%2)
  %k : int[] = prim::ListConstruct(%2)
  %u : Tensor = aten::as_strided(%x, %s, %k, %1)
  %w : Tensor = aten::add_(%u, %10, %1)`, "[2 3] [0 11 2 13 4 5]"},
		{"transpose_ changes the object", `
  %u : Tensor = aten::detach(%x)
  %v : Tensor = aten::transpose_(%u, %0, %1)
  %r : Tensor = aten::select(%u, %0, %0)
  %w : Tensor = aten::add_(%r, %10, %1)`, "[2 3] [10 1 2 13 4 5]"},
		{"x.t() + 1 is laid out as x.t(), so that its transpose is flat", `
  %t : Tensor = aten::t(%x)
  %y : Tensor = aten::add(%t, %1, %1)
  %yt : Tensor = aten::t(%y)
  %s : int[] = prim::ListConstruct(%m1)
  %u : Tensor = aten::reshape(%yt, %s)
  %w : Tensor = aten::zero_(%u)
  %z : Tensor = aten::copy_(%x, %yt, %f)`, "[2 3] [0 0 0 0 0 0]"},
		{"a float does not fit ints", `
  %i : Tensor = aten::to(%x, %4, %f, %f, %none)
  %w : Tensor = aten::mul_(%i, %half)`, "error: aten::mul_: the program raises: result type Float can't be cast to the desired output type Long"},
		{"expanded memory is not written", `
  %s : int[] = prim::ListConstruct(%2, %2, %3)
  %u : Tensor = aten::expand(%x, %s, %f)
  %w : Tensor = aten::add_(%u, %10, %1)`, "error: aten::add_: the program raises: unsupported operation: more than one element"},
		{"parts that overlap", `
  %a : Tensor = aten::slice(%x, %1, %0, %2, %1)
  %b : Tensor = aten::slice(%x, %1, %1, %3, %1)
  %w : Tensor = aten::add_(%a, %b, %1)`, "error: aten::add_: the program raises: unsupported operation: some elements"},
	} {
		text := `graph(%x : Float(2, 3)):
  %none : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=0]()
  %m1 : int = prim::Constant[value=-1]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %4 : int = prim::Constant[value=4]()
  %10 : int = prim::Constant[value=10]()
  %half : float = prim::Constant[value=0.5]()` + c.body + "\n  return (%x)\n"
		if got := said(load(t, text), eager.Of(matrix(2, 3))); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// The input is the caller's: a run does not change it.
func TestInputsStay(t *testing.T) {
	x := matrix(2)
	m := load(t, "graph(%x : Float(2)):\n  %1 : int = prim::Constant[value=1]()\n  %y : Tensor = aten::add_(%x, %1, %1)\n  return (%x)\n")
	for range 2 {
		out, err := eager.Run(m, []eager.Named{{Name: "x", Tensor: x}})
		if err != nil || fmt.Sprint(out[0].Tensor.Float64s()) != "[1 2]" {
			t.Fatalf("%v %v", out, err)
		}
	}
}

// An axis without elements has none at an index.
func TestIndexOfNothing(t *testing.T) {
	for _, c := range []struct{ shape, want string }{{"3, 0", "error"}, {"0, 3", "[0 3] []"}} {
		m := load(t, `graph(%x : Float(`+c.shape+`), %i : Long(2)):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::index_fill_(%x, %1, %i, %1)
  return (%y)
`)
		shape := []int64{3, 0}
		if c.want != "error" {
			shape = []int64{0, 3}
		}
		if got := said(m, eager.Of(matrix(shape...)), eager.Of(tensor.Ints(1, 0))); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", c.shape, got, c.want)
		}
	}
}

// A copy shares no memory with what it is of; what is one object or one memory stays one.
func TestCopy(t *testing.T) {
	x := eager.Of(matrix(2, 3))
	row := load(t, "graph(%x : Float(2, 3)):\n  %0 : int = prim::Constant[value=0]()\n  %r : Tensor = aten::select(%x, %0, %0)\n  return (%r)\n")
	views, err := (&eager.Evaluator{}).Call(row, x)
	if err != nil {
		t.Fatal(err)
	}
	list := &eager.List{Elems: []eager.Value{x, x, views[0]}}
	c := eager.Copy(x, list)
	if l := c[1].(*eager.List); c[0] == eager.Value(x) || l.Elems[0] != c[0] || l.Elems[1] != c[0] {
		t.Error("one object is two")
	}
	zero := load(t, "graph(%x : Float(2, 3)):\n  %y : Tensor = aten::zero_(%x)\n  return (%y)\n")
	if got := said(zero, c[0]); got != "[2 3] [0 0 0 0 0 0]" {
		t.Fatal(got)
	}
	if got := show(c[1].(*eager.List).Elems[2]); got != "[3] [0 0 0]" {
		t.Errorf("the view of a copy is %s", got)
	}
	if got := show(views[0]); got != "[3] [0 1 2]" {
		t.Errorf("what was copied is %s", got)
	}
}

// TorchScript computes numbers as C++ does, where Python differs too.
func TestNumbers(t *testing.T) {
	for _, c := range []struct{ op, a, b, types, want string }{
		{"aten::floordiv", "1.", "0.1", "float float float", "10"},
		{"aten::remainder", "1.", "inf", "float float float", "NaN"},
		{"aten::remainder", "-7", "3", "int int int", "2"},
		{"aten::floordiv", "-7", "2", "int int int", "-4"},
		{"aten::floordiv", "1", "0", "int int int", "error: aten::floordiv: the program raises: division by 0"},
		{"prim::max", "nan", "1.", "float float float", "1"},
		{"prim::max", "1.", "nan", "float float float", "NaN"},
		{"prim::min", "nan", "1.", "float float float", "1"},
		{"aten::div", "1", "2", "int int float", "0.5"},
		{"aten::pow", "2", "3", "int int float", "8"},
		{"aten::__lshift__", "1", "70", "int int int", "error: aten::__lshift__: a shift by 70 bits"},
		{"aten::eq", "nan", "nan", "float float bool", "false"},
	} {
		f := strings.Fields(c.types)
		text := fmt.Sprintf("graph():\n  %%a : %s = prim::Constant[value=%s]()\n  %%b : %s = prim::Constant[value=%s]()\n  %%c : %s = %s(%%a, %%b)\n  return (%%c)\n", f[0], c.a, f[1], c.b, f[2], c.op)
		if got := said(load(t, text)); got != c.want {
			t.Errorf("%s(%s, %s): %s, want %s", c.op, c.a, c.b, got, c.want)
		}
	}
}

// A list that is aliased in a loop, an early exit, an exception and a budget.
func TestPrograms(t *testing.T) {
	const alias = `graph(%x : Float(3)):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %0 : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::clone(%x, %none)
  %v : Tensor[] = prim::ListConstruct(%a)
   = prim::Loop(%2, %true)
    block0(%i : int):
      %e : Tensor = aten::__getitem__(%v, %0)
      %w : Tensor = aten::add_(%e, %1, %1)
      %d : Tensor = aten::mul(%e, %2)
      %s : Tensor[] = aten::_set_item(%v, %0, %d)
      -> (%true)
  %r : Tensor = aten::__getitem__(%v, %0)
  return (%r, %a)
`
	if got, want := said(load(t, alias), eager.Of(matrix(3))), "[3] [6 10 14]; [3] [1 2 3]"; got != want {
		t.Errorf("alias: %s, want %s", got, want)
	}
	raises := load(t, "graph():\n  %m : str = prim::Constant[value=\"no\"]()\n  %n : NoneType = prim::Constant()\n   = prim::RaiseException(%m, %n)\n  return (%m)\n")
	_, err := (&eager.Evaluator{}).Call(raises)
	var raised *eager.Raised
	if !errors.As(err, &raised) || raised.Message != "no" {
		t.Errorf("an exception: %v", err)
	}
	forever := load(t, `graph(%x : Float(3)):
  %n : int = prim::Constant[value=9223372036854775807]()
  %true : bool = prim::Constant[value=1]()
   = prim::Loop(%n, %true)
    block0(%i : int):
      -> (%true)
  return (%x)
`)
	if got := said(forever, eager.Of(matrix(3))); !strings.Contains(got, "more than 4194304 steps") {
		t.Errorf("an endless loop: %s", got)
	}
	if got := said(load(t, "graph(%x : Float(3)):\n  %y : Float(3) = foo::bar(%x)\n  return (%y)\n"), eager.Of(matrix(3))); !strings.Contains(got, "foo::bar: the operator is not known") {
		t.Errorf("an unknown operator: %s", got)
	}
}

// No text makes the evaluator panic, and none takes long.
func FuzzRun(f *testing.F) {
	f.Add("graph(%x : Float(2, 3)):\n  %1 : int = prim::Constant[value=1]()\n  %r : Tensor = aten::select(%x, %1, %1)\n  %y : Tensor = aten::add_(%r, %1, %1)\n  return (%x)\n")
	f.Add("graph(%x : Float(2)):\n  %l : Tensor[] = prim::ListConstruct(%x, %x)\n  %m : Tensor[] = aten::append(%l, %x)\n  %0 : int = prim::Constant[value=0]()\n  %y : Tensor = aten::stack(%l, %0)\n  return (%y)\n")
	f.Add("graph(%n : int, %x : Float(2)):\n  %t : bool = prim::Constant[value=1]()\n  %y : Tensor = prim::Loop(%n, %t, %x)\n    block0(%i : int, %z : Tensor):\n      %w : Tensor = aten::mul(%z, %i)\n      -> (%t, %w)\n  return (%y)\n")
	f.Add("graph(%x : Float(2)):\n  %k : str = prim::Constant[value=\"a\"]()\n  %d : Dict(str, Tensor) = prim::DictConstruct(%k, %x)\n  %y : Tensor = aten::__getitem__(%d, %k)\n  %l : str[] = aten::keys(%d)\n  return (%y, %l)\n")
	f.Add("graph(%x : Float(2)):\n  %l : Any[] = prim::ListConstruct(%x)\n  %m : Any[] = aten::append(%l, %l)\n  return (%l)\n")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := aton.LoadBytes([]byte(text), "graph.ir", aton.LoadOptions{})
		if err != nil || m.Main() == nil {
			return
		}
		data, err := verify.RandomData(m, verify.RandomOptions{})
		if err != nil {
			return
		}
		inputs := make([]eager.Named, len(data.Inputs))
		for i, in := range data.Inputs {
			inputs[i] = eager.Named(in)
		}
		eager.Run(m, inputs) // an error is right as well
	})
}

// Where PyTorch raises, so does the evaluator: a tensor without elements does not hide an index that is out of range, nor a vector of another rank.
func TestRaisesWithoutElements(t *testing.T) {
	for _, c := range []struct {
		name, op string
		shape    []int64
	}{
		{"an index of an axis of a tensor that has no elements", "%y : Tensor = aten::index_select(%x, %one, %i)", []int64{0, 1}},
		{"a vector beside a matrix", "%l : Tensor[] = prim::ListConstruct(%x, %i)\n  %y : Tensor = aten::cat(%l, %one)", []int64{2, 1}},
	} {
		m := load(t, "graph(%x : Tensor, %i : Tensor):\n  %one : int = prim::Constant[value=1]()\n  "+c.op+"\n  return (%y)\n")
		if got := said(m, eager.Of(matrix(c.shape...)), eager.Of(tensor.Ints(0, 1))); !strings.HasPrefix(got, "error: ") {
			t.Errorf("%s: %s, want an error", c.name, got)
		}
	}
}
