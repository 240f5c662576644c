package e2e

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
	o := withInputs(t, options{}, "xs:list(f32[?,2],...)", "ns:list(int,...)")
	for _, opset := range []int{11, 13, 20} {
		o.export.Opset = opset
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
		o := withInputs(t, options{}, "d:dict("+c.key+"=f32[2])")
		m, err := aton.LoadBytes([]byte(text), "dict.ir", o.load)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := aton.Convert(m, o.export.ConvertOptions); err != nil {
			t.Errorf("%s: %v", c.declared, err)
		}
	}
}

// TestChosenMembers: a list of what ONNX has no lists of - tuples, optional tensors, strings - at a place that is known at run time.
func TestChosenMembers(t *testing.T) {
	const text = `graph(%x : Float(2), %i : int):
  %none : NoneType = prim::Constant()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %5 : int = prim::Constant[value=5]()
  %7 : int = prim::Constant[value=7]()
  %a : str = prim::Constant[value="a"]()
  %b : str = prim::Constant[value="b"]()
  %x2 : Tensor = aten::mul(%x, %2)
  %t0 : (Tensor, int) = prim::TupleConstruct(%x, %2)
  %t1 : (Tensor, int) = prim::TupleConstruct(%x2, %5)
  %t2 : (Tensor, int) = prim::TupleConstruct(%x, %7)
  %tuples : (Tensor, int)[] = prim::ListConstruct(%t0, %t1, %t2)
  %tuple : (Tensor, int) = aten::__getitem__(%tuples, %i)
  %part : Tensor, %k : int = prim::TupleUnpack(%tuple)
  %product : Tensor = aten::mul(%part, %k)
  %maybes : Tensor?[] = prim::ListConstruct(%x, %none, %x2)
  %maybe : Tensor? = aten::__getitem__(%maybes, %i)
  %isnone : bool = aten::__is__(%maybe, %none)
  %other : Tensor = prim::If(%isnone)
    block0():
      %seven : Tensor = aten::mul(%x, %7)
      -> (%seven)
    block1():
      %some : Tensor = prim::unchecked_cast(%maybe)
      -> (%some)
  %names : str[] = prim::ListConstruct(%a, %b, %a)
  %name : str = aten::__getitem__(%names, %i)
  %isb : bool = aten::eq(%name, %b)
  %n : int = aten::Int(%isb)
  %sum : Tensor = aten::add(%other, %n, %1)
  return (%product, %sum)
`
	o := withInputs(t, options{}, "x:f32[2]", "i:int")
	back := parsed(t, writtenText(t, text, o))
	inputs := func(i int64) map[string]interp.Value {
		return map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{2}, []float64{1, 3})),
			"i": interp.Of(tensor.FromInts(tensor.Int64, nil, []int64{i}))}
	}
	for _, c := range []struct {
		i            int64
		product, sum []float64
	}{
		{0, []float64{2, 6}, []float64{1, 3}},
		{1, []float64{10, 30}, []float64{8, 22}},
		{2, []float64{7, 21}, []float64{2, 6}},
		{-2, []float64{10, 30}, []float64{8, 22}},
	} {
		out := run(t, back, inputs(c.i))
		if got := out[0].Tensor.Float64s(); !slices.Equal(got, c.product) {
			t.Errorf("place %d: product %v, want %v", c.i, got, c.product)
		}
		if got := out[1].Tensor.Float64s(); !slices.Equal(got, c.sum) {
			t.Errorf("place %d: sum %v, want %v", c.i, got, c.sum)
		}
	}
	if _, err := interp.Run(back, inputs(3)); err == nil {
		t.Error("a place that the lists do not have gives no error")
	}
}
