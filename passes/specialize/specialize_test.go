package specialize

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/passes/passtest"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// told runs the pass on a program, and gives what it becomes, without what is known of its sizes, and what is told of it.
func told(t *testing.T, program string) (text string) {
	t.Helper()
	m, err := ssa.Parse(program, "p", passtest.Dialects()...)
	if err != nil {
		t.Error(err)
		return ""
	}
	list, err := Run(m, Options{Opset: 20})
	if err == nil {
		text = ssa.Print(m)
		text = text[strings.Index(text, "graph("):]
		text, _, _ = strings.Cut(text, "\nknown {")
		text = strings.TrimSpace(text) + "\n"
	} else {
		text = "error: " + err.Error() + "\n"
	}
	for _, d := range list.Items {
		text += d.Severity.String() + ": " + (&diag.List{Table: list.Table}).Format(diag.Diagnostic{Loc: d.Loc, Message: d.Message}) + "\n"
	}
	return text
}

// program is a program in, and what comes out and is told.
type program struct{ what, in, out string }

func specialized(t *testing.T, programs []program) {
	t.Helper()
	for _, p := range programs {
		in, want := strings.TrimSpace(p.in)+"\n", strings.TrimSpace(p.out)+"\n"
		if got := told(t, in); got != want {
			t.Errorf("%s\n%s\nbecomes\n%s\nwant\n%s", p.what, in, got, want)
		}
	}
}

func TestWalk(t *testing.T) {
	specialized(t, []program{
		{"What is known at export is computed: sizes, comparisons, and the If that they decide.", `
graph(%x : Float(N, 3)):
  %1 : int = prim::Constant[value=1]()
  %n : int = aten::size(%x, %1)
  %three : int = prim::Constant[value=3]()
  %c : bool = aten::eq(%n, %three)
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::relu(%x)
      -> (%a)
    block1():
      -> (%x)
  return (%y)
`, `
graph(%x : Float(N, 3)):
  %a : Float(N, 3) = aten::relu(%x)
  return (%a)
`},
		{"A write shows in what it was a view of, and is gone.", `
graph(%x : Float(2, 3)):
  %0 : int = prim::Constant[value=0]()
  %x2 : Tensor = aten::neg(%x)
  %row : Tensor = aten::select(%x2, %0, %0)
  %r : Tensor = aten::relu_(%row)
  return (%x2)
`, `
graph(%x : Float(2, 3)):
  %0 : int = prim::Constant[value=0]()
  %x2 : Float(2, 3) = aten::neg(%x)
  %row : Float(3) = aten::select(%x2, %0, %0)
  %r : Float(3) = aten::relu(%row)
  %1 : Float(2, 3) = aten::select_scatter(%x2, %r, %0, %0)
  return (%1)
`},
		{"Containers are gone: a list is what its elements are.", `
graph(%x : Float(2, 3)):
  %1 : int = prim::Constant[value=1]()
  %y : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%x)
  %a : Tensor[] = aten::append(%l, %y)
  %z : Tensor = aten::__getitem__(%l, %1)
  return (%z)
`, `
graph(%x : Float(2, 3)):
  %y : Float(2, 3) = aten::neg(%x)
  return (%y)
`},
	})
}

func TestJoin(t *testing.T) {
	specialized(t, []program{
		{"What both branches give alike stays, and a size in which they differ gets a name.", `
graph(%x : Float(N, 3), %y : Float(M, 3), %c : bool):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor, %k : int, %n : int = prim::If(%c)
    block0():
      %2 : int = prim::Constant[value=2]()
      -> (%x, %1, %2)
    block1():
      %3 : int = prim::Constant[value=3]()
      -> (%y, %1, %3)
  %b : Tensor = aten::mul(%a, %k)
  %d : Tensor = aten::mul(%b, %n)
  return (%d)
`, `
graph(%x : Float(N, 3),
      %y : Float(M, 3),
      %c : bool):
  %0 : int = prim::Constant[value=2]()
  %1 : int = prim::Constant[value=3]()
  %2 : int = prim::Constant[value=1]()
  %a : Float(u0, 3), %n : int = prim::If(%c)
    block0():
      -> (%x, %0)
    block1():
      -> (%y, %1)
  %b : Float(u0, 3) = aten::mul(%a, %2)
  %d : Float(u0, 3) = aten::mul(%b, %n)
  return (%d)
`},
		{"A value that one branch alone has is it and whether it is there.", `
graph(%x : Float(2, 3), %c : bool):
  %none : NoneType = prim::Constant()
  %o : Tensor? = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%none)
  %is : bool = aten::__is__(%o, %none)
  return (%is)
`, `
graph(%x : Float(2, 3),
      %c : bool):
  %0 : bool = prim::Constant[value=1]()
  %1 : bool = prim::Constant[value=0]()
  %2 : Float(2, 3) = prim::Constant[value={0}]()
  %3 : bool, %4 : Float(2, 3) = prim::If(%c)
    block0():
      -> (%0, %x)
    block1():
      -> (%1, %2)
  %is : bool = aten::__not__(%3)
  return (%is)
`},
		{"A branch writes to what is outside: the If gives what is in it then.", `
graph(%x : Float(2, 3), %c : bool):
  %y : Tensor = aten::neg(%x)
  = prim::If(%c)
    block0():
      %w : Tensor = aten::relu_(%y)
      -> ()
    block1():
      -> ()
  return (%y)
`, `
graph(%x : Float(2, 3),
      %c : bool):
  %y : Float(2, 3) = aten::neg(%x)
  %0 : Float(2, 3) = prim::If(%c)
    block0():
      %w : Float(2, 3) = aten::relu(%y)
      -> (%w)
    block1():
      -> (%y)
  return (%0)
`},
	})
}

func TestPaths(t *testing.T) {
	specialized(t, []program{
		{"Two branches give tensors of two ranks, and what follows asks for the rank: it is in both branches.", `
graph(%x : Float(2, 3), %c : bool):
  %0 : int = prim::Constant[value=0]()
  %r : Tensor = prim::If(%c)
    block0():
      %u : Tensor = aten::unsqueeze(%x, %0)
      -> (%u)
    block1():
      -> (%x)
  %n : int = aten::dim(%r)
  %y : Tensor = aten::mul(%x, %n)
  return (%y)
`, `
graph(%x : Float(2, 3),
      %c : bool):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=3]()
  %2 : int = prim::Constant[value=2]()
  %3 : Float(2, 3) = prim::If(%c)
    block0():
      %u.1 : Float(1, 2, 3) = aten::unsqueeze(%x, %0)
      %y : Float(2, 3) = aten::mul(%x, %1)
      -> (%y)
    block1():
      %y.1 : Float(2, 3) = aten::mul(%x, %2)
      -> (%y.1)
  return (%3)
note: what follows is evaluated once for each branch; else the rank of its operand is not known
`},
		{"A path that raises is left out, with a warning.", `
graph(%x : Float(2, 3), %c : bool):
  %text : str = prim::Constant[value="no"]()
  %none : NoneType = prim::Constant()
  = prim::If(%c)
    block0():
      = prim::RaiseException(%text, %none)
      -> ()
    block1():
      -> ()
  %y : Tensor = aten::relu(%x)
  return (%y)
`, `
graph(%x : Float(2, 3),
      %c : bool):
  %y : Float(2, 3) = aten::relu(%x)
  return (%y)
warning: a check on data is left out (no)
`},
	})
}

func TestLoop(t *testing.T) {
	specialized(t, []program{
		{"A loop that computes numbers is computed.", `
graph(%x : Float(2, 3)):
  %t : bool = prim::Constant[value=1]()
  %1 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=4]()
  %n : int = prim::Loop(%4, %t, %1)
    block0(%i : int, %p : int):
      %q : int = aten::add(%p, %i)
      -> (%t, %q)
  %y : Tensor = aten::mul(%x, %n)
  return (%y)
`, `
graph(%x : Float(2, 3)):
  %0 : int = prim::Constant[value=7]()
  %y : Float(2, 3) = aten::mul(%x, %0)
  return (%y)
`},
		{"A loop of tensors stays one. What does not change is not carried.", `
graph(%x : Float(2, 3), %k : int):
  %t : bool = prim::Constant[value=1]()
  %a : Tensor, %b : Tensor = prim::Loop(%k, %t, %x, %x)
    block0(%i : int, %p : Tensor, %q : Tensor):
      %z : Tensor = aten::add(%p, %q, %i)
      -> (%t, %z, %q)
  %y : Tensor = aten::add(%a, %b, %k)
  return (%y)
`, `
graph(%x : Float(2, 3),
      %k : int):
  %0 : bool = prim::Constant[value=1]()
  %a : Float(2, 3) = prim::Loop(%k, %0, %x)
    block0(%1 : int, %2 : Float(2, 3)):
      %z.1 : Float(2, 3) = aten::add(%2, %x, %1)
      -> (%0, %z.1)
  %y : Float(2, 3) = aten::add(%a, %x, %k)
  return (%y)
`},
		{"A list that grows in a loop is one of run-time length.", `
graph(%x : Float(2, 3), %k : int):
  %t : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct()
  = prim::Loop(%k, %t)
    block0(%i : int):
      %z : Tensor = aten::mul(%x, %i)
      %a : Tensor[] = aten::append(%l, %z)
      -> (%t)
  %y : Tensor = aten::stack(%l, %0)
  return (%y)
`, `
graph(%x : Float(2, 3),
      %k : int):
  %0 : bool = prim::Constant[value=1]()
  %1 : int = prim::Constant[value=0]()
  %2 : Float(2, 3)[] = prim::ListConstruct()
  %3 : Float(2, 3)[] = prim::Loop(%k, %0, %2)
    block0(%4 : int, %5 : Float(2, 3)[]):
      %z.1 : Float(2, 3) = aten::mul(%x, %4)
      %6 : Float(2, 3)[] = aten::append(%5, %z.1)
      -> (%0, %6)
  %y : Float(u2, 2, 3) = aten::stack(%3, %1)
  return (%y)
`},
		{"A loop whose tensors change their dtype is unrolled, if its number of iterations is known.", `
graph(%x : Float(2, 3)):
  %t : bool = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %a : Tensor = prim::Loop(%2, %t, %x)
    block0(%i : int, %p : Tensor):
      %z : Tensor = aten::argmax(%p, %none, %t)
      -> (%t, %z)
  return (%a)
`, `
graph(%x : Float(2, 3)):
  %0 : int = prim::Constant[value=2]()
  %1 : bool = prim::Constant[value=1]()
  %2 : NoneType = prim::Constant()
  %z.1 : Long(1, 1) = aten::argmax(%x, %2, %1)
  %z.2 : Long(1, 1) = aten::argmax(%z.1, %2, %1)
  return (%z.2)
`},
		{"The first iteration changes the rank: it is evaluated by itself, and the others are the loop.", `
graph(%x : Float(2, 3), %y : Float(3)):
  %t : bool = prim::Constant[value=1]()
  %9 : int = prim::Constant[value=9000]()
  %none : NoneType = prim::Constant()
  %a : Tensor = prim::Loop(%9, %t, %x)
    block0(%i : int, %p : Tensor):
      %s : Tensor = aten::sum(%p, %none)
      %z : Tensor = aten::add(%y, %s, %i)
      -> (%t, %z)
  %n : int = aten::dim(%a)
  %b : Tensor = aten::mul(%a, %n)
  return (%b)
`, `
graph(%x : Float(2, 3),
      %y : Float(3)):
  %0 : int = prim::Constant[value=9000]()
  %1 : bool = prim::Constant[value=1]()
  %2 : NoneType = prim::Constant()
  %3 : int = prim::Constant[value=0]()
  %4 : int = prim::Constant[value=8999]()
  %5 : int = prim::Constant[value=1]()
  %s.1 : Float() = aten::sum(%x, %2)
  %z.1 : Float(3) = aten::add(%y, %s.1, %3)
  %a : Float(3) = prim::Loop(%4, %1, %z.1)
    block0(%6 : int, %7 : Float(3)):
      %8 : int = aten::add(%6, %5)
      %s.3 : Float() = aten::sum(%7, %2)
      %z.3 : Float(3) = aten::add(%y, %s.3, %8)
      -> (%1, %z.3)
  %b : Float(3) = aten::mul(%a, %5)
  return (%b)
note: the first iteration is evaluated by itself; else the rank of its operand is not known
`},
	})
}

func TestPool(t *testing.T) {
	specialized(t, []program{
		{"A loop swaps two tensors of a list, and one is written: they are rows of one tensor, and the swap moves their places.", `
graph(%x : Float(3), %y : Float(3), %k : int):
  %t : bool = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%y)
  %l : Tensor[] = prim::ListConstruct(%a, %b)
  = prim::Loop(%k, %t)
    block0(%i : int):
      %p : Tensor = aten::__getitem__(%l, %0)
      %q : Tensor = aten::__getitem__(%l, %1)
      %u : Tensor[] = aten::_set_item(%l, %0, %q)
      %v : Tensor[] = aten::_set_item(%l, %1, %p)
      %w : Tensor = aten::mul_(%p, %i)
      -> (%t)
  %y2 : Tensor = aten::__getitem__(%l, %0)
  return (%y2)
`, `
graph(%x : Float(3),
      %y : Float(3),
      %k : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : bool = prim::Constant[value=1]()
  %a : Float(3) = aten::neg(%x)
  %b : Float(3) = aten::neg(%y)
  %3 : Tensor[] = prim::ListConstruct(%a, %b)
  %4 : Float(2, 3) = aten::stack(%3, %0)
  %5 : Float(3) = aten::select(%4, %0, %0)
  %6 : Float(3) = aten::select(%4, %0, %1)
  %7 : int, %8 : int, %9 : Float(2, 3) = prim::Loop(%k, %2, %0, %1, %4)
    block0(%10 : int, %11 : int, %12 : int, %13 : Float(2, 3)):
      %14 : Float(3) = aten::select(%13, %0, %11)
      %w.3 : Float(3) = aten::mul(%14, %10)
      %15 : Float(2, 3) = aten::select_scatter(%13, %w.3, %0, %11)
      -> (%2, %12, %11, %15)
  %16 : Float(3) = aten::select(%9, %0, %7)
  return (%16)
note: tensors that a loop moves about lie in one memory; else this tensor may share memory with one that was written before; use .clone() to make it independent
`},
	})
}

func TestSizes(t *testing.T) {
	specialized(t, []program{
		{"A squeeze of an axis that may be 1 leaves the rank open where nothing asks for it.", `
graph(%x : Float(N, 3), %c : bool):
  %0 : int = prim::Constant[value=0]()
  %s : Tensor = aten::squeeze(%x, %0)
  %r : Tensor = aten::relu(%s)
  %n : int = aten::numel(%r)
  %y : Tensor = aten::mul(%x, %n)
  return (%y)
`, `
graph(%x : Float(N, 3),
      %c : bool):
  %0 : int = prim::Constant[value=0]()
  %s : FloatTensor = aten::squeeze(%x, %0)
  %r : FloatTensor = aten::relu(%s)
  %n : int = aten::numel(%r)
  %y : Float(N, 3) = aten::mul(%x, %n)
  return (%y)
`},
		{"Where something does, the axis is taken to be 2 or more.", `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %s : Tensor = aten::squeeze(%x, %0)
  %n : int = aten::dim(%s)
  %y : Tensor = aten::mul(%x, %n)
  return (%y)
`, `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=2]()
  %s : Float(N, 3) = aten::detach(%x)
  %y : Float(N, 3) = aten::mul(%x, %0)
  return (%y)
warning: axis of size N is squeezed, and what is behind it needs the number of dimensions; the model fails at run time where it is 1
note: the axis is taken to be 2 or more; else the rank of its operand is not known
`},
	})
}

func TestContainers(t *testing.T) {
	specialized(t, []program{
		{"Dicts, tuples and strings are evaluated: what is looked up is the tensor.", `
graph(%x : Float(2, 3), %y : Float(2, 3)):
  %a : str = prim::Constant[value="a"]()
  %b : str = prim::Constant[value="b"]()
  %d : Dict(str, Tensor) = prim::DictConstruct(%a, %x)
  = aten::_set_item(%d, %b, %y)
  %ab : str = aten::add(%a, %b)
  %n : int = aten::len(%ab)
  %t : (Tensor, int) = prim::TupleConstruct(%x, %n)
  %u : Tensor, %m : int = prim::TupleUnpack(%t)
  %v : Tensor = aten::__getitem__(%d, %b)
  %z : Tensor = aten::mul(%v, %m)
  return (%z)
`, `
graph(%x : Float(2, 3),
      %y : Float(2, 3)):
  %0 : int = prim::Constant[value=2]()
  %z : Float(2, 3) = aten::mul(%y, %0)
  return (%z)
`},
		{"A list that is one of two cannot be written where both can be read, and so what follows is in both branches.", `
graph(%x : Float(3), %y : Float(3), %c : bool):
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x)
  %m : Tensor[] = prim::ListConstruct(%y)
  %k : Tensor[] = prim::If(%c)
    block0():
      -> (%l)
    block1():
      -> (%m)
  %z : Tensor = aten::add(%x, %y, %0)
  %w : Tensor[] = aten::_set_item(%k, %0, %z)
  %r : Tensor = aten::__getitem__(%l, %0)
  return (%r)
`, `
graph(%x : Float(3),
      %y : Float(3),
      %c : bool):
  %0 : int = prim::Constant[value=0]()
  %1 : Float(3) = prim::If(%c)
    block0():
      %z : Float(3) = aten::add(%x, %y, %0)
      -> (%z)
    block1():
      %z.1 : Float(3) = aten::add(%x, %y, %0)
      -> (%x)
  return (%1)
note: what follows is evaluated once for each branch; else what is written is one of several objects, and which one depends on data; write to each of them in the branches
`},
		{"A list of run-time length: its elements are found by an index, and its length is a number.", `
graph(%x : Float(N, 3), %i : int):
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = aten::unbind(%x, %0)
  %n : int = aten::len(%l)
  %y : Tensor = aten::__getitem__(%l, %i)
  %z : Tensor = aten::mul(%y, %n)
  return (%z)
`, `
graph(%x : Float(N, 3),
      %i : int):
  %0 : int = prim::Constant[value=0]()
  %1 : Float(3)[] = aten::unbind(%x, %0)
  %n : int = aten::len(%1)
  %y : Float(3) = aten::select(%x, %0, %i)
  %z : Float(3) = aten::mul(%y, %n)
  return (%z)
`},
		{"A tensor of nested lists is a constant where these are.", `
graph(%x : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %false : bool = prim::Constant[value=0]()
  %l : int[] = prim::ListConstruct(%1, %2)
  %y : Tensor = aten::tensor(%l, %none, %none, %false)
  %z : Tensor = aten::add(%x, %y, %1)
  return (%z)
`, `
graph(%x : Float(2)):
  %0 : Long(2) = prim::Constant[value= 1  2 [ CPULongType{2} ]]()
  %1 : int = prim::Constant[value=1]()
  %z : Float(2) = aten::add(%x, %0, %1)
  return (%z)
`},
	})
}

func TestFailures(t *testing.T) {
	specialized(t, []program{
		{"What cannot be converted is an error at the line that needs it. A note says what was tried.", `
graph(%x : Float(2, 3), %k : int, %c : bool):
  %0 : int = prim::Constant[value=0]()
  %t : bool = prim::Constant[value=1]()
  %a : Tensor[] = prim::ListConstruct(%x)
  %b : Tensor[] = prim::ListConstruct(%x)
  %l : Tensor[], %m : Tensor[] = prim::Loop(%k, %t, %a, %b)
    block0(%i : int, %p : Tensor[], %q : Tensor[]):
      %z : Tensor = aten::neg(%x)
      %w : Tensor[] = aten::_set_item(%p, %0, %z)
      -> (%t, %q, %p)
  %r : Tensor = aten::__getitem__(%a, %0)
  return (%r)
`, `
error: aten::_set_item: what is written is one of several objects, and which one depends on data; write to each of them in the branches
note: cannot be converted either if the first iteration is evaluated by itself
`},
	})
}

func TestMemory(t *testing.T) {
	specialized(t, []program{
		{"A view by strides is a view of the storage, and a write shows in it.", `
graph(%x : Float(2, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::clone(%x, %none)
  %size : int[] = prim::ListConstruct(%2)
  %stride : int[] = prim::ListConstruct(%3)
  %v : Tensor = aten::as_strided(%y, %size, %stride, %1)
  %o : int = aten::storage_offset(%v)
  %w : Tensor = aten::mul_(%v, %o)
  return (%y)
`, `
graph(%x : Float(2, 3)):
  %0 : NoneType = prim::Constant()
  %1 : Long(2) = prim::Constant[value= 1  4 [ CPULongType{2} ]]()
  %2 : Long(2, 3) = prim::Constant[value= 0  1  2  3  4  5 [ CPULongType{2,3} ]]()
  %3 : Long(2) = prim::Constant[value= 1  4 [ CPULongType{2} ]]()
  %4 : int = prim::Constant[value=1]()
  %5 : bool = prim::Constant[value=0]()
  %y : Float(2, 3) = aten::clone(%x, %0)
  %v : Float(2) = aten::take(%y, %1)
  %w : Float(2) = aten::mul(%v, %4)
  %6 : Float(2, 3) = aten::put(%y, %1, %w, %5)
  return (%6)
`},
		{"To the left, each element is read before it is written: the write is that of a copy.", `
graph(%x : Float(T)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %m1 : int = prim::Constant[value=-1]()
  %end : int = prim::Constant[value=9223372036854775807]()
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::clone(%x, %none)
  %to : Tensor = aten::slice(%y, %0, %0, %m1, %1)
  %from : Tensor = aten::slice(%y, %0, %1, %end, %1)
  %w : Tensor = aten::copy_(%to, %from, %false)
  return (%y)
`, `
graph(%x : Float(T)):
  %0 : NoneType = prim::Constant()
  %1 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=-1]()
  %3 : int = prim::Constant[value=1]()
  %4 : int = prim::Constant[value=9223372036854775807]()
  %5 : Long(2) = prim::Constant[value= 0  1 [ CPULongType{2} ]]()
  %6 : Long(1) = prim::Constant[value={0}]()
  %7 : Long(2) = prim::Constant[value= 0  1 [ CPULongType{2} ]]()
  %8 : Long(1) = prim::Constant[value={1}]()
  %9 : Long(1) = prim::Constant[value={1}]()
  %10 : Long(3) = prim::Constant[value= 0  1  2 [ CPULongType{3} ]]()
  %11 : Long(2) = prim::Constant[value= 0  1 [ CPULongType{2} ]]()
  %12 : Long(3) = prim::Constant[value= 0  1  2 [ CPULongType{3} ]]()
  %13 : Long(2) = prim::Constant[value= 1  2 [ CPULongType{2} ]]()
  %14 : Long(2) = prim::Constant[value= 1  2 [ CPULongType{2} ]]()
  %y : Float(T) = aten::clone(%x, %0)
  %to : Float(T - 1) = aten::slice(%y, %1, %1, %2, %3)
  %from : Float(T - 1) = aten::slice(%y, %1, %3, %4, %3)
  %15 : Float(T) = aten::slice_scatter(%y, %from, %1, %1, %2, %3)
  return (%15)
`},
		{"To the right, elements would be read that were written before: an error.", `
graph(%x : Float(T)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %m1 : int = prim::Constant[value=-1]()
  %end : int = prim::Constant[value=9223372036854775807]()
  %false : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %y : Tensor = aten::clone(%x, %none)
  %from : Tensor = aten::slice(%y, %0, %0, %m1, %1)
  %to : Tensor = aten::slice(%y, %0, %1, %end, %1)
  %w : Tensor = aten::add_(%to, %from, %1)
  return (%y)
`, `
error: aten::add_: the operator reads elements of memory that it writes, through another view; use .clone() for what it reads
`},
		{"Behind its iteration a loop has an expanded tensor: a write to one row would show in the other one, and is refused.", `
graph(%x : Float(1, 3), %y : Float(2, 3), %k : int):
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %0 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=2]()
  %m1 : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %size : int[] = prim::ListConstruct(%2, %m1)
  %a : Tensor = aten::clone(%x, %none)
  %b : Tensor = aten::clone(%y, %none)
  %v : Tensor = prim::Loop(%k, %t, %b)
    block0(%i : int, %p : Tensor):
      %c : Tensor = aten::expand(%a, %size, %f)
      -> (%t, %c)
  %r : Tensor = aten::select(%v, %0, %0)
  %w : Tensor = aten::fill_(%r, %2)
  return (%v)
`, `
error: aten::fill_: the tensor that is written may have several elements in one place of memory, depending on data; use .clone() before writing
note: cannot be converted either if the first iteration is evaluated by itself
`},
	})
}
