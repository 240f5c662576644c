package exec_test

import (
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Sequences whose elements are known before the run are taken apart.
func TestSequences(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"edited", `
graph @f(%x : Float(2, 3), %y : Float(2, 3)):
  %one : Long() = onnx::Constant[value={1}]()
  %back : Long() = onnx::Constant[value={-1}]()
  %s0 : Float(2, 3)[] = onnx::SequenceConstruct(%x, %y, %x)
  %s1 : Float(2, 3)[] = onnx::SequenceInsert(%s0, %y, %one)
  %s2 : Float(2, 3)[] = onnx::SequenceErase(%s1, %back)
  %n : Long() = onnx::SequenceLength(%s2)
  %a : Float(2, 3) = onnx::SequenceAt(%s2, %back)
  %c : Float(N, 3) = onnx::ConcatFromSequence[axis=0](%s2)
  %d : Float(2, N, 3) = onnx::ConcatFromSequence[axis=1, new_axis=1](%s2)
  return (%n, %a, %c, %d)`},
		{"split", `
graph @f(%x : Float(2, 3), %y : Float(2, 3)):
  %two : Long() = onnx::Constant[value={2}]()
  %zero : Long() = onnx::Constant[value={0}]()
  %p1 : Long(1) = onnx::Constant[value={1}]()
  %p2 : Long(1) = onnx::Constant[value={2}]()
  %sizes : Long(2) = onnx::Concat[axis=0](%p1, %p2)
  %s0 : Float(2, *)[] = onnx::SplitToSequence[axis=1](%x, %two)
  %a : Float(2, K) = onnx::SequenceAt(%s0, %zero)
  %s1 : Float(2)[] = onnx::SplitToSequence[axis=-1, keepdims=0](%y)
  %b : Float(2) = onnx::SequenceAt(%s1, %two)
  %s2 : Float(2, *)[] = onnx::SplitToSequence[axis=1](%x, %sizes)
  %c : Float(2, M) = onnx::ConcatFromSequence[axis=1](%s2)
  return (%a, %b, %c)`},
		{"empty", `
graph @f(%x : Float(2, 3), %y : Float(2, 3)):
  %s0 : Float(2, 3)[] = onnx::SequenceEmpty()
  %s1 : Float(2, 3)[] = onnx::SequenceInsert(%s0, %x)
  %s2 : Float(2, 3)[] = onnx::Identity(%s1)
  %c : Float(N, 3) = onnx::ConcatFromSequence[axis=0](%s2)
  return (%c)`},
		{"mapped", `
graph @f(%x : Float(2, 3), %y : Float(2, 3)):
  %s0 : Float(2, 3)[] = onnx::SequenceConstruct(%x, %y)
  %s1 : Float(2, 3)[] = onnx::SequenceMap(%s0, %x)
    block0(%e : Float(2, 3), %k : Float(2, 3)):
      %p : Float(2, 3) = onnx::Mul(%e, %k)
      %q : Float(2, 3) = onnx::Add(%p, %y)
      -> (%q)
  %c : Float(N, 3) = onnx::ConcatFromSequence[axis=0](%s1)
  return (%c)`},
		{"optional", `
graph @f(%x : Float(2, 3), %y : Float(2, 3)):
  %o : Float(2, 3)? = onnx::Optional(%x)
  %h : Bool() = onnx::OptionalHasElement(%o)
  %v : Float(2, 3) = onnx::OptionalGetElement(%o)
  %z : Float(2, 3) = onnx::Add(%v, %y)
  return (%h, %z)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ssa.Parse(c.text, "test", onnx.Dialect{})
			if err != nil {
				t.Fatal(err)
			}
			runWhole(t, m, []interp.Value{interp.Of(fill(tensor.Float32, []int64{2, 3}, 1, false)), interp.Of(fill(tensor.Float32, []int64{2, 3}, 2, false))})
		})
	}
}

// runWhole runs a module on the device, fused and not, and compares each bit with the interpreter.
func runWhole(t *testing.T, m *ssa.Module, args []interp.Value) {
	t.Helper()
	want, err := new(interp.Interpreter).RunFunc(m.Main(), args)
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []fuse.Mode{fuse.None, fuse.Light} {
		p, err := plan.New(m, mode)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range p.Nodes {
			if n.Place == plan.Host {
				t.Errorf("%s runs on the host: %s", n.Op.Kind, n.Reason)
			}
		}
		s := exec.NewSession(p, &routes{exec.Sim{Check: true}})
		for range 2 {
			got, _, err := s.Run(args)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				same := want[i].IsList == got[i].IsList && len(want[i].List) == len(got[i].List)
				for k := range want[i].List {
					same = same && alike(want[i].List[k], got[i].List[k])
				}
				if !same || want[i].Tensor != nil && !alike(want[i].Tensor, got[i].Tensor) {
					t.Errorf("%s: result %d is %v, expected %v", mode, i, got[i], want[i])
				}
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func alike(x, y *tensor.Tensor) bool {
	return x.String() == y.String() && string(x.Bytes()) == string(y.Bytes())
}

// Sequences whose elements only the run knows stay on the device, as its memory.
func TestLists(t *testing.T) {
	x := func(shape ...int64) interp.Value { return interp.Of(fill(tensor.Float32, shape, 1, false)) }
	n := func(v int64) interp.Value { return interp.Of(tensor.ScalarInt(v)) }
	for _, c := range []struct {
		name, text string
		args       []interp.Value
	}{
		{"grown", `
graph @f(%x : Float(2, 3), %n : Long()):
  %one : Long() = onnx::Constant[value={1}]()
  %s0 : FloatTensor[] = onnx::SequenceEmpty()
  %s : FloatTensor[] = onnx::Loop(%n, _, %s0)
    block0(%i : Long(), %c : Bool(), %l : FloatTensor[]):
      %f : Float() = onnx::Cast[to=1](%i)
      %y : Float(2, 3) = onnx::Add(%x, %f)
      %m : FloatTensor[] = onnx::SequenceInsert(%l, %y)
      -> (%c, %m)
  %k : Long() = onnx::SequenceLength(%s)
  %a : Float(A, B) = onnx::SequenceAt(%s, %one)
  %z : Float(A, B) = onnx::Neg(%a)
  %all : Float(C, D) = onnx::ConcatFromSequence[axis=-1](%s)
  %stack : Float(F, G, H) = onnx::ConcatFromSequence[axis=1, new_axis=1](%s)
  return (%s, %k, %z, %all, %stack)`, []interp.Value{x(2, 3), n(4)}},
		{"split", `
graph @f(%x : Float(N, 5), %n : Long(), %i : Long()):
  %s : Float(N, *)[] = onnx::SplitToSequence[axis=1](%x, %n)
  %a : Float(N, K) = onnx::SequenceAt(%s, %i)
  %e : Float(N, *)[] = onnx::SequenceErase(%s, %i)
  %t : Float(N, *)[] = onnx::SequenceInsert(%e, %a)
  %c : Float(N, M) = onnx::ConcatFromSequence[axis=1](%t)
  %r : Float(5)[] = onnx::SplitToSequence[axis=0, keepdims=0](%x)
  %d : Float(L, 5) = onnx::ConcatFromSequence[axis=0, new_axis=1](%r)
  %y : Float(N, 5) = onnx::Neg(%x)
  return (%a, %c, %d, %y, %r)`, []interp.Value{x(3, 5), n(2), n(-2)}},
		{"chosen", `
graph @f(%x : Float(2, 3), %n : Long()):
  %zero : Long() = onnx::Constant[value={0}]()
  %y : Float(2, 3) = onnx::Neg(%x)
  %s : Float(2, 3)[] = onnx::SequenceConstruct(%x, %y)
  %p : Bool() = onnx::Greater(%n, %zero)
  %t : Float(2, 3)[] = onnx::If(%p)
    block0():
      %m : Float(2, 3)[] = onnx::SequenceInsert(%s, %y, %zero)
      -> (%m)
    block1():
      -> (%s)
  %c : Float(N, 3) = onnx::ConcatFromSequence[axis=0](%t)
  %e : Float(N, 3) = onnx::Neg(%c)
  return (%e)`, []interp.Value{x(2, 3), n(1)}},
		{"mapped", `
graph @f(%x : Float(3, 5), %n : Long()):
  %s : Float(3, *)[] = onnx::SplitToSequence[axis=1](%x, %n)
  %t : Float(3, *)[], %u : Float(3)[] = onnx::SequenceMap(%s, %s, %x)
    block0(%e : Float(3, K), %f : Float(3, K), %k : Float(3, 5)):
      %p : Float(3, K) = onnx::Mul(%e, %f)
      %axes : Long(1) = onnx::Constant[value={1}]()
      %q : Float(3) = onnx::ReduceMax[keepdims=0](%k, %axes)
      -> (%p, %q)
  %c : Float(3, N) = onnx::ConcatFromSequence[axis=1](%t)
  %d : Float(M, 3) = onnx::ConcatFromSequence[axis=0, new_axis=1](%u)
  return (%c, %d)`, []interp.Value{x(3, 5), n(2)}},
		{"nested", `
graph @f(%x : Float(4, 3)):
  %four : Long() = onnx::Constant[value={4}]()
  %s0 : FloatTensor[] = onnx::SequenceEmpty()
  %s : FloatTensor[] = onnx::Loop(%four, _, %s0)
    block0(%i : Long(), %c : Bool(), %l : FloatTensor[]):
      %a : Float(3) = onnx::Gather(%x, %i)
      %m : FloatTensor[] = onnx::Loop(%i, _, %l)
        block0(%j : Long(), %d : Bool(), %k : FloatTensor[]):
          %b : Float(3) = onnx::Gather(%x, %j)
          %y : Float(3) = onnx::Sub(%a, %b)
          %q : FloatTensor[] = onnx::SequenceInsert(%k, %y)
          -> (%d, %q)
      -> (%c, %m)
  %z : Float(M, 3) = onnx::ConcatFromSequence[axis=0, new_axis=1](%s)
  return (%z)`, []interp.Value{x(4, 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, err := ssa.Parse(c.text, "test", onnx.Dialect{})
			if err != nil {
				t.Fatal(err)
			}
			runWhole(t, m, c.args)
		})
	}
}
