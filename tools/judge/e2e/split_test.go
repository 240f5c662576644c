package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa/tensor"
)

// Programs whose paths are split, with what PyTorch gives where %c is true and where it is false, for
// x = [[1, 2], [3, 4]]. The text tests in lit-tests/passes/specialize/split_*.ir show what becomes of them.
var splitPrograms = []struct {
	name, graph   string
	ifTrue, ifNot [][]float64 // by output
}{
	{"rank", `
graph(%x : Float(2, 2), %c : bool):
  %0 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=2]()
  %y : Tensor = prim::If(%c)
    block0():
      %row : Tensor = aten::select(%x, %0, %0)
      -> (%row)
    block1():
      -> (%x)
  %n : int = aten::dim(%y)
  %is2 : bool = aten::eq(%n, %2)
  %z : Tensor = prim::If(%is2)
    block0():
      %s : Tensor = aten::add(%y, %y, %2)
      %a : Tensor = aten::select(%s, %0, %0)
      -> (%a)
    block1():
      %b : Tensor = aten::neg(%y)
      -> (%b)
  return (%z)`, [][]float64{{-1, -2}}, [][]float64{{3, 6}}},
	{"a part of what has elements in one place", `
graph(%x : Float(2, 2), %c : bool):
  %n : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %m1 : int = prim::Constant[value=-1]()
  %f : bool = prim::Constant[value=0]()
  %a : Tensor = aten::clone(%x, %n)
  %sizes : int[] = prim::ListConstruct(%2, %m1, %m1)
  %e : Tensor = aten::expand(%a, %sizes, %f)
  %v : Tensor = prim::If(%c)
    block0():
      -> (%e)
    block1():
      %part : Tensor = aten::narrow(%e, %0, %1, %1)
      -> (%part)
  %d : Tensor = aten::diagonal(%v, %0, %0, %1)
  %z : Tensor = aten::neg_(%d)
  return (%a)`, [][]float64{{-1, -2, -3, -4}}, [][]float64{{-1, -2, 3, 4}}},
	{"a list or None", `
graph(%x : Float(2, 2), %c : bool):
  %n : NoneType = prim::Constant()
  %1 : int = prim::Constant[value=1]()
  %m : Tensor[]? = prim::If(%c)
    block0():
      %d : Tensor = aten::neg(%x)
      %l : Tensor[] = prim::ListConstruct(%x, %d)
      -> (%l)
    block1():
      -> (%n)
  %none : bool = aten::__is__(%m, %n)
  %y : Tensor = prim::If(%none)
    block0():
      %a : Tensor = aten::add(%x, %x, %1)
      -> (%a)
    block1():
      %u : Tensor[] = prim::unchecked_cast(%m)
      %e : Tensor = aten::__getitem__(%u, %1)
      -> (%e)
  return (%y)`, [][]float64{{-1, -2, -3, -4}}, [][]float64{{2, 4, 6, 8}}},
	{"which of two lists", `
graph(%x : Float(2, 2), %c : bool):
  %0 : int = prim::Constant[value=0]()
  %d : Tensor = aten::neg(%x)
  %n : NoneType = prim::Constant()
  %z : Tensor = aten::zeros_like(%x, %n, %n, %n, %n, %n)
  %a : Tensor[] = prim::ListConstruct(%x)
  %b : Tensor[] = prim::ListConstruct(%d)
  %l : Tensor[] = prim::If(%c)
    block0():
      -> (%a)
    block1():
      -> (%b)
  %w : Tensor[] = aten::_set_item(%l, %0, %z)
  %p : Tensor = aten::__getitem__(%a, %0)
  %q : Tensor = aten::__getitem__(%b, %0)
  return (%p, %q)`, [][]float64{{0, 0, 0, 0}, {-1, -2, -3, -4}}, [][]float64{{1, 2, 3, 4}, {0, 0, 0, 0}}},
	// y is a part of x where c holds: what is written to it later shows in x, across the split
	{"a write behind the split", `
graph(%x : Float(2, 2), %c : bool):
  %n : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %k : int = prim::Constant[value=10]()
  %w : Tensor = aten::clone(%x, %n)
  %l : Tensor[]? = prim::If(%c)
    block0():
      %row : Tensor = aten::select(%w, %0, %0)
      %rows : Tensor[] = prim::ListConstruct(%row)
      -> (%rows)
    block1():
      -> (%n)
  %none : bool = aten::__is__(%l, %n)
   = prim::If(%none)
    block0():
      -> ()
    block1():
      %u : Tensor[] = prim::unchecked_cast(%l)
      %r : Tensor = aten::__getitem__(%u, %0)
      %r2 : Tensor = aten::add_(%r, %k, %1)
      -> ()
  return (%w)`, [][]float64{{11, 12, 3, 4}}, [][]float64{{1, 2, 3, 4}}},
	{"a copy to one of two ranks", `
graph(%x : Float(2, 2), %c : bool):
  %0 : int = prim::Constant[value=0]()
  %f : bool = prim::Constant[value=0]()
  %n : NoneType = prim::Constant()
  %s : Tensor = aten::sum(%x, %n)
  %v : Tensor = prim::If(%c)
    block0():
      %d : Tensor = aten::neg(%x)
      -> (%d)
    block1():
      %k : Tensor = aten::clone(%x, %n)
      %u : Tensor = aten::unsqueeze(%k, %0)
      -> (%u)
  %w : Tensor = prim::If(%c)
    block0():
      -> (%s)
    block1():
      %m : Tensor = aten::neg(%x)
      -> (%m)
  %y : Tensor = aten::copy_(%v, %w, %f)
  return (%v)`, [][]float64{{10, 10, 10, 10}}, [][]float64{{-1, -2, -3, -4}}},
}

// sharedPrograms write to memory that a tensor has in some case only, which nobody can tell where the tensor is read. They are
// refused. A loop whose body is not empty gives one of two tensors, %a after no iteration, %b after one.
var sharedPrograms = []struct{ name, writes, result, says string }{
	{"a peer that was written before", `
  %v : Tensor = prim::If(%c)
    block0():
      %w : Tensor = aten::relu_(%l)
      -> (%l)
    block1():
      -> (%b)
  %z : Tensor = aten::neg_(%l)`, "%v", "may share memory with one that was written"},
	{"a write that cannot be followed", `
  %v : Tensor = prim::If(%c)
    block0():
      %w : Tensor = aten::relu_(%b)
      -> (%a)
    block1():
      -> (%l)
  %z : Tensor = aten::neg_(%v)`, "%b", "may share memory with one that was written"},
}

func TestSharedMemory(t *testing.T) {
	for _, p := range sharedPrograms {
		t.Run(p.name, func(t *testing.T) {
			o := options{}
			m, err := aton.LoadBytes([]byte(`
graph(%x : Float(2, 2), %i : Long(2), %c : bool):
  %n : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %m1 : int = prim::Constant[value=-1]()
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %a : Tensor = aten::clone(%x, %n)
  %two : Tensor[] = prim::ListConstruct(%x, %x)
  %both : Tensor = aten::stack(%two, %0)
  %b : Tensor = aten::select(%both, %0, %0)
  %l : Tensor = prim::Loop(%1, %t, %a)
    block0(%trip : int, %carried : Tensor):
      %same : Tensor = aten::eq(%i, %i)
      -> (%t, %b)`+p.writes+`
  %y : Tensor = aten::abs(`+p.result+`)
  return (%y)
`), "graph.ir", o.load)
			if err == nil {
				_, err = aton.Convert(m, o.export.ConvertOptions)
			}
			if err == nil || !strings.Contains(err.Error(), p.says) {
				t.Errorf("error %v instead of %q", err, p.says)
			}
		})
	}
}

func TestSplitPaths(t *testing.T) {
	for _, p := range splitPrograms {
		t.Run(p.name, func(t *testing.T) {
			o := converting(aton.ConvertOptions{Opset: 17})
			m, err := aton.LoadBytes([]byte(p.graph), "graph.ir", o.load)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := aton.Convert(m, o.export.ConvertOptions); err != nil {
				t.Fatal(err)
			}
			for c, want := range [][][]float64{p.ifNot, p.ifTrue} {
				got, err := interp.Run(m, map[string]interp.Value{
					"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{2, 2}, []float64{1, 2, 3, 4})),
					"c": interp.Of(tensor.FromInts(tensor.Bool, []int64{}, []int64{int64(c)})),
				})
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if v := got[i].Tensor.Float64s(); !slices.Equal(v, want[i]) {
						t.Errorf("c = %d: output %d is %v, want %v", c, i, v, want[i])
					}
				}
			}
		})
	}
}
