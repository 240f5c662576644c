package specialize

import (
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
)

func TestNumbers(t *testing.T) {
	specialized(t, []program{
		{"Two shapes broadcast: a size that is known wins over 1, and a symbol stays.", `
graph(%x : Float(N, 1), %y : Float(3)):
  %a : int[] = aten::size(%x)
  %b : int[] = aten::size(%y)
  %s : int[] = aten::broadcast_shapes(%a, %b)
  %f : bool = prim::Constant[value=0]()
  %z : Tensor = aten::expand(%x, %s, %f)
  return (%z)
`, `
graph(%x : Float(N, 1),
      %y : Float(3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=3]()
  %2 : bool = prim::Constant[value=0]()
  %3 : int = aten::size(%x, %0)
  %4 : int[] = prim::ListConstruct(%3, %1)
  %z : Float(N, 3) = aten::expand(%x, %4, %2)
  return (%z)
`},
		{"A string that a branch on data chooses is no value of the graph: what asks for it is computed for both.", `
graph(%x : Float(3), %c : bool):
  %sum : str = prim::Constant[value="sum"]()
  %mean : str = prim::Constant[value="mean"]()
  %m : str = prim::If(%c)
    block0():
      -> (%sum)
    block1():
      -> (%mean)
  %is : bool = aten::eq(%m, %sum)
  %y : Tensor = prim::If(%is)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      -> (%x)
  return (%y)
`, `
graph(%x : Float(3),
      %c : bool):
  %0 : bool = prim::Constant[value=1]()
  %1 : bool = prim::Constant[value=0]()
  %is : bool = prim::If(%c)
    block0():
      -> (%0)
    block1():
      -> (%1)
  %y : Float(3) = prim::If(%is)
    block0():
      %a : Float(3) = aten::neg(%x)
      -> (%a)
    block1():
      -> (%x)
  return (%y)
`},
		{"A message may have a number in it that data decides: it is told with the exception, whose path is left out.", `
graph(%x : Float(3), %n : int):
  %0 : int = prim::Constant[value=0]()
  %less : bool = aten::lt(%n, %0)
   = prim::If(%less)
    block0():
      %text : str = aten::str(%n)
      %what : str = prim::Constant[value="n is "]()
      %message : str = aten::add(%what, %text)
       = prim::RaiseException(%message)
      -> ()
    block1():
      -> ()
  %y : Tensor = aten::relu(%x)
  return (%y)
`, `
graph(%x : Float(3),
      %n : int):
  %0 : int = prim::Constant[value=0]()
  %less : bool = aten::lt(%n, %0)
  %y : Float(3) = aten::relu(%x)
  return (%y)
warning: a check on data is left out (n is ...)
`},
		{"A path on which PyTorch raises whatever the data are is none.", `
graph(%x : Float(3), %c : bool):
  %0 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=2]()
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::select(%x, %2, %0)
      -> (%a)
    block1():
      %b : Tensor = aten::select(%x, %0, %0)
      -> (%b)
  return (%y)
`, `
graph(%x : Float(3),
      %c : bool):
  %0 : int = prim::Constant[value=0]()
  %b : Float() = aten::select(%x, %0, %0)
  return (%b)
warning: a check on data is left out (dimension out of range)
`},
		{"What asks for types, dtypes and dimensions gets them.", `
graph(%x : Float(N, 3)):
  %d : int = prim::dtype(%x)
  %6 : int = prim::Constant[value=6]()
  %is : bool = aten::eq(%d, %6)
  %n : int = aten::dim(%x)
  %float : bool = aten::is_floating_point(%x)
  %both : bool = aten::__and__(%is, %float)
  %y : Tensor = prim::If(%both)
    block0():
      %a : Tensor = aten::mul(%x, %n)
      -> (%a)
    block1():
      -> (%x)
  return (%y)
`, `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=2]()
  %a : Float(N, 3) = aten::mul(%x, %0)
  return (%a)
`},
	})
}

func TestLists(t *testing.T) {
	specialized(t, []program{
		{"Lists are reversed, sliced and joined as Python does it.", `
graph(%x : Float(2, 3, 4)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %n : NoneType = prim::Constant()
  %l : int[] = prim::ListConstruct(%2, %0)
  %more : int[] = prim::ListConstruct(%1)
  %all : int[] = aten::add(%l, %more)
   = aten::reverse(%all)
  %tail : int[] = aten::slice(%all, %1, %n, %1)
  %first : int = aten::__getitem__(%all, %0)
  %p : int[] = prim::ListConstruct(%first)
  %perm : int[] = aten::add(%p, %tail)
  %y : Tensor = aten::permute(%x, %perm)
  return (%y)
`, `
graph(%x : Float(2, 3, 4)):
  %0 : int[] = prim::Constant[value=[1, 0, 2]]()
  %y : Float(3, 2, 4) = aten::permute(%x, %0)
  return (%y)
`},
		{"A number of views that is known at run time only is a list of parts: a write to the tensor shows in them.", `
graph(%x : Float(N, 2), %i : int):
  %0 : int = prim::Constant[value=0]()
  %rows : Tensor[] = aten::unbind(%x, %0)
  %w : Tensor = aten::neg_(%x)
  %row : Tensor = aten::__getitem__(%rows, %i)
  %n : int = aten::len(%rows)
  return (%row, %n)
`, `
graph(%x : Float(N, 2),
      %i : int):
  %0 : int = prim::Constant[value=0]()
  %1 : Float(2)[] = aten::unbind(%x, %0)
  %w : Float(N, 2) = aten::neg(%x)
  %2 : Float(2)[] = aten::unbind(%w, %0)
  %row : Float(2) = aten::select(%w, %0, %i)
  %3 : Float(2)[] = aten::unbind(%w, %0)
  %n : int = aten::len(%3)
  return (%row, %n)
warning: the model writes into its input x; the ONNX model leaves the caller's tensor as it is
`},
		{"A dict is its keys and values, in the order in which they were set.", `
graph(%x : Float(2), %y : Float(2)):
  %a : str = prim::Constant[value="a"]()
  %b : str = prim::Constant[value="b"]()
  %d : Dict(str, Tensor) = prim::DictConstruct(%b, %x)
   = aten::_set_item(%d, %a, %y)
  %has : bool = aten::__contains__(%d, %a)
  %vals : Tensor[] = aten::values(%d)
  %0 : int = prim::Constant[value=0]()
  %first : Tensor = aten::__getitem__(%vals, %0)
  %gone : Tensor = aten::pop(%d, %b)
  %n : int = aten::len(%d)
  return (%first, %n, %has)
`, `
graph(%x : Float(2),
      %y : Float(2)):
  %0 : int = prim::Constant[value=1]()
  %1 : bool = prim::Constant[value=1]()
  return (%x, %0, %1)
`},
		{"Of a value that is None on one path, the other half is one that nobody reads.", `
graph(%x : Float(N, 2), %c : bool):
  %n : NoneType = prim::Constant()
  %o : Tensor? = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      -> (%n)
  %none : bool = aten::__is__(%o, %n)
  return (%none)
`, `
graph(%x : Float(N, 2),
      %c : bool):
  %0 : bool = prim::Constant[value=1]()
  %1 : bool = prim::Constant[value=0]()
  %2 : Float(1, 2) = prim::Constant[value={0}]()
  %3 : int = prim::Constant[value=0]()
  %4 : int = prim::Constant[value=2]()
  %5 : int = aten::size(%x, %3)
  %6 : int[] = prim::ListConstruct(%5, %4)
  %7 : Float(N, 2) = aten::expand(%2, %6, %1)
  %8 : bool, %9 : Float(N, 2) = prim::If(%c)
    block0():
      %a : Float(N, 2) = aten::neg(%x)
      -> (%0, %a)
    block1():
      -> (%1, %7)
  %none : bool = aten::__not__(%8)
  return (%none)
`},
	})
}

func TestOtherNames(t *testing.T) {
	specialized(t, []program{
		{"In training, batch normalization writes to its running statistics, which its schema does not say.", `
graph(%x : Float(4, 2), %mean : Float(2), %var : Float(2)):
  %n : NoneType = prim::Constant()
  %yes : bool = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=0]()
  %momentum : float = prim::Constant[value=0.1]()
  %eps : float = prim::Constant[value=0.001]()
  %m : Tensor = aten::clone(%mean, %n)
  %v : Tensor = aten::clone(%var, %n)
  %y : Tensor = aten::batch_norm(%x, %n, %n, %m, %v, %yes, %momentum, %eps, %no)
  return (%m)
`, `
graph(%x : Float(4, 2),
      %mean : Float(2),
      %var : Float(2)):
  %0 : NoneType = prim::Constant()
  %1 : bool = prim::Constant[value=1]()
  %2 : float = prim::Constant[value=0.1]()
  %3 : float = prim::Constant[value=0.001]()
  %4 : bool = prim::Constant[value=0]()
  %m : Float(2) = aten::clone(%mean, %0)
  %v : Float(2) = aten::clone(%var, %0)
  %y : Float(4, 2) = aten::batch_norm(%x, %0, %0, %m, %v, %1, %2, %3, %4)
  %5 : Float(4, 2), %6 : Float(2), %7 : Float(2), %8 : Float(2), %9 : Float(2) = aten::_native_batch_norm_legit_functional(%x, %0, %0, %m, %v, %1, %2, %3)
  return (%8)
`},
		{"A histogram of several coordinates gives a tensor and a list: it is taken apart.", `
graph(%x : Float(5, 2)):
  %bins : int = prim::Constant[value=3]()
  %n : NoneType = prim::Constant()
  %no : bool = prim::Constant[value=0]()
  %range : float[] = prim::Constant[value=[0., 1., 0., 2.]]()
  %h : Tensor, %e : Tensor[] = aten::histogramdd(%x, %bins, %range, %n, %no)
  %1 : int = prim::Constant[value=1]()
  %second : Tensor = aten::__getitem__(%e, %1)
  return (%h, %second)
`, `
graph(%x : Float(5, 2)):
  %0 : int[] = prim::Constant[value=[3, 3]]()
  %1 : float[] = prim::Constant[value=[0., 1., 0., 2.]]()
  %2 : NoneType = prim::Constant()
  %3 : bool = prim::Constant[value=0]()
  %h : Float(3, 3) = aten::_histogramdd_from_bin_cts(%x, %0, %1, %2, %3)
  %4 : Tensor[] = aten::_histogramdd_bin_edges(%x, %0, %1, %2, %3)
  %5 : Float(4), %second : Float(4) = prim::ListUnpack(%4)
  return (%h, %second)
`},
		{"The offset of a view is where in its memory it begins.", `
graph(%x : Float(4, 3)):
  %0 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=2]()
  %1 : int = prim::Constant[value=1]()
  %row : Tensor = aten::select(%x, %0, %2)
  %e : Tensor = aten::select(%row, %0, %1)
  %at : int = aten::storage_offset(%e)
  %y : Tensor = aten::mul(%x, %at)
  return (%y)
`, `
graph(%x : Float(4, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=2]()
  %2 : int = prim::Constant[value=1]()
  %3 : Long(4, 3) = prim::Constant[value= 0  1  2  3  4  5  6  7  8  9  10  11 [ CPULongType{4,3} ]]()
  %4 : Long(3) = prim::Constant[value= 6  7  8 [ CPULongType{3} ]]()
  %5 : Long() = prim::Constant[value={7}]()
  %6 : int = prim::Constant[value=7]()
  %row : Float(3) = aten::select(%x, %0, %1)
  %e : Float() = aten::select(%row, %0, %2)
  %y : Float(4, 3) = aten::mul(%x, %6)
  return (%y)
`},
	})
}

func TestState(t *testing.T) {
	specialized(t, []program{
		{"An attribute of the module is its value. A list among them that the program changes is lost after the run, with a warning.", `
module {
  object_0 = ("__torch__.Program", "", {"scale" : 2., "seen" : [1, 2]})
  root = object(0)
}
graph(%self : __torch__.Program, %x : Float(3)):
  %k : float = prim::GetAttr[name="scale"](%self)
  %l : int[] = prim::GetAttr[name="seen"](%self)
  %3 : int = prim::Constant[value=3]()
  %m : int[] = aten::append(%l, %3)
  %n : int = aten::len(%l)
  %a : Tensor = aten::mul(%x, %k)
  %y : Tensor = aten::mul(%a, %n)
  return (%y)
`, `
graph(%x : Float(3)):
  %0 : float = prim::Constant[value=2.]()
  %1 : int = prim::Constant[value=3]()
  %a : Float(3) = aten::mul(%x, %0)
  %y : Float(3) = aten::mul(%a, %1)
  return (%y)
warning: seen is changed by the model; the ONNX model does not keep the change from run to run
`},
		{"A batch of sequences of unlike lengths is the padded one, and a mask of what is not padding.", `
graph(%x : Float(N, L, 2), %mask : Bool(N, L)):
  %f : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %zero : float = prim::Constant[value=0.]()
  %n : Tensor = aten::_nested_tensor_from_mask(%x, %mask, %f)
  %is : bool = prim::is_nested(%n)
  %z : Tensor = aten::to_padded_tensor(%n, %zero, %none)
  return (%z, %is)
`, `
graph(%x : Float(N, L, 2),
      %mask : Bool(N, L)):
  %0 : int[] = prim::Constant[value=[1]]()
  %1 : bool = prim::Constant[value=1]()
  %2 : NoneType = prim::Constant()
  %3 : int = prim::Constant[value=0]()
  %4 : int = prim::Constant[value=1]()
  %5 : int = prim::Constant[value=2]()
  %6 : float = prim::Constant[value=0.]()
  %7 : bool = prim::Constant[value=0]()
  %8 : Long(N, 1) = aten::sum(%mask, %0, %1, %2)
  %9 : int = aten::size(%x, %3)
  %10 : int = aten::size(%x, %4)
  %11 : Long(L) = aten::arange(%10, %2, %2, %2, %2)
  %12 : Bool(N, L) = aten::lt(%11, %8)
  %13 : Bool(N, L, 1) = aten::unsqueeze(%12, %5)
  %14 : Float(N, L, 2) = aten::where(%13, %x, %6)
  %15 : Bool(N, L, 1) = aten::unsqueeze(%12, %5)
  %16 : Float(N, L, 2) = aten::where(%15, %14, %6)
  %17 : Long(N) = aten::sum(%12, %0, %7, %2)
  %18 : Long() = aten::max(%17)
  %19 : int = aten::Int(%18)
  %z : Float(N, u1, 2) = aten::slice(%16, %4, %3, %19, %4)
  return (%z, %1)
`},
		{"An object that the program makes has attributes, and the If gives what a branch sets.", `
graph(%x : Float(2), %y : Float(2), %c : bool):
  %b : __torch__.Box = prim::CreateObject()
   = prim::SetAttr[name="h"](%b, %x)
   = prim::If(%c)
    block0():
       = prim::SetAttr[name="h"](%b, %y)
      -> ()
    block1():
      -> ()
  %h : Tensor = prim::GetAttr[name="h"](%b)
  return (%h)
`, `
graph(%x : Float(2),
      %y : Float(2),
      %c : bool):
  %h : Float(2) = prim::If(%c)
    block0():
      -> (%y)
    block1():
      -> (%x)
  return (%h)
`},
	})
}

// Where a view begins in memory follows from its steps: element 1 of column 2 of rows of six.
func TestPlaces(t *testing.T) {
	got := told(t, `graph(%x : Float(4, 6)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %t : Tensor = aten::transpose(%x, %0, %1)
  %column : Tensor = aten::select(%t, %0, %2)
  %element : Tensor = aten::select(%column, %0, %1)
  %at : int = aten::storage_offset(%element)
  return (%at)
`)
	if !strings.Contains(got, " : int = prim::Constant[value=8]()") {
		t.Error(got)
	}
}

// TestKinds: the operators that the pass gives meaning to are those of its tables, each once and in order.
func TestKinds(t *testing.T) {
	kinds := Kinds()
	if !slices.IsSorted(kinds) || len(slices.Compact(slices.Clone(kinds))) != len(kinds) {
		t.Error("not in order, or one twice")
	}
	for _, k := range []ssa.Kind{"prim::If", "prim::DictConstruct", "aten::append", "aten::size", "aten::select", "aten::as_strided"} {
		if !slices.Contains(kinds, k) {
			t.Errorf("%s is not among them", k)
		}
	}
	for _, k := range []ssa.Kind{"aten::relu", "aten::conv2d"} {
		if slices.Contains(kinds, k) {
			t.Errorf("%s is among them: it has a lowering, and nothing else", k)
		}
	}
}
