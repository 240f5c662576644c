package ssa_test

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
)

// Text with examples is read and written as it stands; without them it has the types alone.
func TestExamples(t *testing.T) {
	const text = `graph(%x : Float(2, 3, strides=[3, 1], requires_grad=1, device=cpu),
      %s : Double(requires_grad=0, device=cuda:0),
      %u : FloatTensor(requires_grad=0),
      %l : Long(4, strides=[1])[],
      %t : (Float(2, device=cpu), int)):
  %y : Float(2, 3) = aten::relu(%x)
  return (%y)
`
	const plain = `graph(%x : Float(2, 3),
      %s : Double(),
      %u : FloatTensor,
      %l : Long(4)[],
      %t : (Float(2), int)):
  %y : Float(2, 3) = aten::relu(%x)
  return (%y)
`
	m := mustParse(t, text)
	for want, opts := range map[string]ssa.PrintOptions{text: {Examples: true}, plain: {}} {
		var b strings.Builder
		if err := ssa.Fprint(&b, m, opts); err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%+v gives\n%s\nexpected\n%s", opts, b.String(), want)
		}
	}
	x := m.Funcs[0].Body.Params[0].Type
	if same := mustParse(t, plain).Funcs[0].Body.Params[0].Type; !ssa.SameType(x, same) {
		t.Errorf("%s is another type with an example", x)
	}
	if cast := x.(*ssa.TensorType).WithDType(x.(*ssa.TensorType).DType); cast.Example != nil {
		t.Error("a type that is made of another has the example of that")
	}
}

// What is no number, and what says nothing of a tensor, is left out.
func TestExampleWords(t *testing.T) {
	m := mustParse(t, `graph(%x : Float(2, strides=[*], requires_grad=2, layout=0)):
  return (%x)
`)
	if e := m.Funcs[0].Body.Params[0].Tensor().Example; e != nil {
		t.Errorf("read %+v", *e)
	}
}
