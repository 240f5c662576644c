package aton_test

import (
	"slices"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestListOfAnyLength: a list input of no fixed length is a sequence, or a vector of numbers; the file runs at any length.
func TestListOfAnyLength(t *testing.T) {
	const text = `graph(%xs : Tensor[],
      %ns : int[]):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %last : int = prim::Constant[value=-1]()
  %all : Tensor = aten::cat(%xs, %0)
  %n : int = aten::len(%xs)
  %k : int = aten::__getitem__(%ns, %last)
  %m : int = aten::mul(%n, %k)
  %y : Tensor = aten::add(%all, %m, %1)
  %x : Tensor = aten::__getitem__(%xs, %last)
  return (%y, %x)
`
	o := withInputs(t, aton.Options{}, "xs:list(f32[?,2],...)", "ns:list(int,...)")
	for _, opset := range []int{11, 13, 20} {
		o.Opset = opset
		back := parsed(t, writtenText(t, text, o))
		for n := int64(1); n < 4; n++ {
			var xs []*tensor.Tensor
			var want []float64
			for i := range n { // of 1, 2, ... rows of the number i
				xs = append(xs, tensor.Full(tensor.Float32, []int64{i + 1, 2}, float64(i)))
				want = append(want, slices.Repeat([]float64{float64(i + 5*n)}, int(2*(i+1)))...)
			}
			out := run(t, back, map[string]interp.Value{"xs": interp.ListOf(xs...), "ns": interp.Of(tensor.Ints(3, 5))})
			if got := out[0].Tensor.Float64s(); !slices.Equal(got, want) {
				t.Errorf("opset %d, %d members: %v, want %v", opset, n, got, want)
			}
			if got := out[1].Tensor.Shape; !slices.Equal(got, []int64{n, 2}) {
				t.Errorf("opset %d, %d members: the last is of shape %v", opset, n, got)
			}
		}
	}
}

// TestDictKeys: the keys of a dict are of the type that the program has them in.
func TestDictKeys(t *testing.T) {
	for _, c := range []struct{ declared, constant, key string }{
		{"Dict(int, Tensor)", "int = prim::Constant[value=-7]()", "-7"},
		{"Dict(float, Tensor)", "float = prim::Constant[value=0.5]()", "0.5"},
		{"Dict(bool, Tensor)", "bool = prim::Constant[value=1]()", "True"},
		{"Dict(str, Tensor)", `str = prim::Constant[value="7"]()`, "7"},
	} {
		text := "graph(%d : " + c.declared + "):\n  %k : " + c.constant + "\n  %x : Tensor = aten::__getitem__(%d, %k)\n  return (%x)\n"
		o := withInputs(t, aton.Options{}, "d:dict("+c.key+"=f32[2])")
		m, err := aton.LoadBytes([]byte(text), "dict.ir", o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aton.Lower(m, o); err != nil {
			t.Errorf("%s: %v", c.declared, err)
		}
	}
}
