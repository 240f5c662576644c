package exec_test

import (
	"bytes"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func long(v int64) *tensor.Tensor { return tensor.ScalarInt(v) }

func floats(v ...float64) *tensor.Tensor {
	return tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v)
}

// whole are whole numbers, whose sums are exact.
func whole(shape ...int64) *tensor.Tensor {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = float64((i*7+3)%11 - 5)
	}
	return tensor.FromFloats(tensor.Float32, shape, v)
}

func truth(v bool) *tensor.Tensor {
	n := int64(0)
	if v {
		n = 1
	}
	return tensor.FromInts(tensor.Bool, []int64{}, []int64{n})
}

// programs are graphs whose control flow, or whose sizes, depend on data.
var programs = []struct {
	name, text string
	runs       [][]*tensor.Tensor
}{
	{"counted", `
graph @f(%x : Float(N), %n : Long()):
  %y : Float(N), %all : Float(M, N) = onnx::Loop(%n, _, %x)
    block0(%i : Long(), %c : Bool(), %p : Float(N)):
      %f : Float() = onnx::Cast[to=1](%i)
      %q : Float(N) = onnx::Add(%p, %f)
      %r : Float(N) = onnx::Neg(%q)
      -> (%c, %q, %r)
  return (%y, %all)`, [][]*tensor.Tensor{{floats(1, 2, 3), long(4)}, {floats(5), long(1)}}},
	{"until", `
graph @f(%x : Float(3), %limit : Float()):
  %go : Bool() = onnx::Constant[value={1}]()
  %axes : Long(1) = onnx::Constant[value={0}]()
  %y : Float(3), %all : Float(M) = onnx::Loop(_, %go, %x)
    block0(%i : Long(), %c : Bool(), %p : Float(3)):
      %q : Float(3) = onnx::Add(%p, %p)
      %s : Float() = onnx::ReduceSum[keepdims=0](%q, %axes)
      %d : Bool() = onnx::Less(%s, %limit)
      -> (%d, %q, %s)
  return (%y, %all)`, [][]*tensor.Tensor{{floats(1, 2, 3), tensor.FromFloats(tensor.Float32, []int64{}, []float64{100})}, {floats(1, 2, 3), tensor.FromFloats(tensor.Float32, []int64{}, []float64{0})}}},
	// what is carried changes places, stays, or is what the body got or had from outside
	{"swapped", `
graph @f(%x : Float(3), %y : Float(3), %z : Float(3), %n : Long(), %go : Bool()):
  %a : Float(3), %b : Float(3), %c : Float(3), %d : Float(3), %e : Float(M, 3), %f : Float(M, 3) = onnx::Loop(%n, %go, %x, %y, %z, %z)
    block0(%i : Long(), %t : Bool(), %p : Float(3), %q : Float(3), %r : Float(3), %s : Float(3)):
      %u : Float(3) = onnx::Add(%p, %q)
      %v : Float(3) = onnx::Mul(%u, %z)
      -> (%t, %q, %u, %r, %x, %v, %v)
  return (%a, %b, %c, %d, %e, %f)`, [][]*tensor.Tensor{
		{floats(1, 2, 3), floats(4, 5, 6), floats(7, 8, 9), long(5), truth(true)},
		{floats(1, 2, 3), floats(4, 5, 6), floats(7, 8, 9), long(5), truth(false)},
		{floats(1, 2, 3), floats(4, 5, 6), floats(7, 8, 9), long(1), truth(true)}}},
	// the sizes change from turn to turn
	{"growing", `
graph @f(%x : Float(N), %n : Long()):
  %y : Float(M) = onnx::Loop(%n, _, %x)
    block0(%i : Long(), %c : Bool(), %p : Float(K)):
      %m : Float(L) = onnx::Neg(%p)
      %q : Float(J) = onnx::Concat[axis=0](%p, %m, %x)
      -> (%c, %q)
  return (%y)`, [][]*tensor.Tensor{{floats(1, 2, 3), long(4)}, {floats(1), long(0)}}},
	{"nested", `
graph @f(%x : Float(N, 4), %n : Long()):
  %one : Long() = onnx::Constant[value={1}]()
  %y : Float(N, 4), %all : Float(M, N, 4) = onnx::Loop(%n, _, %x)
    block0(%i : Long(), %c : Bool(), %p : Float(N, 4)):
      %k : Long() = onnx::Add(%i, %one)
      %odd : Long() = onnx::Mod(%i, %k)
      %is : Bool() = onnx::Greater(%odd, %one)
      %q : Float(N, 4) = onnx::Loop(%k, _, %p)
        block0(%j : Long(), %d : Bool(), %r : Float(N, 4)):
          %s : Float(N, 4) = onnx::Add(%r, %x)
          %t : Float(N, 4) = onnx::If(%is)
            block0():
              %u : Float(N, 4) = onnx::Neg(%s)
              -> (%u)
            block1():
              -> (%s)
          -> (%d, %t)
      -> (%c, %q, %q)
  return (%y, %all)`, [][]*tensor.Tensor{{whole(3, 4), long(4)}}},
	{"branches", `
graph @f(%x : Float(N), %y : Float(M)):
  %axes : Long(1) = onnx::Constant[value={0}]()
  %zero : Float() = onnx::Constant[value={0}]()
  %s : Float() = onnx::ReduceSum[keepdims=0](%x, %axes)
  %c : Bool() = onnx::Less(%s, %zero)
  %a : Float(K), %b : Float(L), %n : Long() = onnx::If(%c)
    block0():
      %p : Float(N) = onnx::Neg(%x)
      %k : Long() = onnx::Constant[value={7}]()
      -> (%p, %y, %k)
    block1():
      %q : Float(M) = onnx::Neg(%y)
      %l : Long() = onnx::Size(%x)
      -> (%q, %q, %l)
  %r : Float(K) = onnx::Abs(%a)
  return (%r, %a, %b, %n)`, [][]*tensor.Tensor{{floats(1, 2, 3), floats(4, 5)}, {floats(-1, -2, -3), floats(4, 5)}}},
	{"scan", `
graph @f(%x : Float(N, 5, 3), %w : Float(N), %s : Float(N, 3)):
  %e : Float(N, 3), %all : Float(N, 3, 5), %sums : Float(5, N) = onnx::Scan[num_scan_inputs=1, scan_input_axes=[1], scan_input_directions=[1], scan_output_axes=[2, 0], scan_output_directions=[0, 1]](%s, %x)
    block0(%p : Float(N, 3), %v : Float(N, 3)):
      %q : Float(N, 3) = onnx::Sub(%v, %p)
      %axes : Long(1) = onnx::Constant[value={1}]()
      %sum : Float(N) = onnx::ReduceSum[keepdims=0](%q, %axes)
      %h : Float(N) = onnx::Mul(%sum, %w)
      -> (%q, %p, %h)
  return (%e, %all, %sums)`, [][]*tensor.Tensor{{whole(2, 5, 3), whole(2), whole(2, 3)}}},
	// sizes from data: of a range, of a slice that may count from the end, and of what is picked
	{"sizes", `
graph @f(%x : Float(N), %m : Long(2)):
  %axes : Long(1) = onnx::Constant[value={0}]()
  %zero : Long() = onnx::Constant[value={0}]()
  %one : Long() = onnx::Constant[value={1}]()
  %k : Long() = onnx::ReduceMax[keepdims=0](%m, %axes)
  %from : Long() = onnx::Gather[axis=0](%m, %zero)
  %begin : Long(1) = onnx::Unsqueeze(%from, %axes)
  %end : Long(1) = onnx::Unsqueeze(%k, %axes)
  %r : Long(A) = onnx::Range(%zero, %k, %one)
  %y : Float(B) = onnx::Slice(%x, %begin, %end, %axes)
  %z : Float(B) = onnx::Neg(%y)
  %is : Bool(B) = onnx::Greater(%y, %z)
  %at : Long(1, D) = onnx::NonZero(%is)
  %p : Float(E) = onnx::Compress[axis=0](%y, %is)
  %q : Float(E) = onnx::Neg(%p)
  return (%r, %z, %at, %q)`, [][]*tensor.Tensor{{floats(1, -2, 3, 4), tensor.Ints(1, 3)}, {floats(1, -2, 3, 4), tensor.Ints(-3, 9)}, {floats(1, 2), tensor.Ints(2, 2)}}},
	// a size that a loop carries
	{"carried size", `
graph @f(%n : Long()):
  %one : Long() = onnx::Constant[value={1}]()
  %zero : Long() = onnx::Constant[value={0}]()
  %three : Long() = onnx::Constant[value={3}]()
  %two : Long() = onnx::Constant[value={2}]()
  %axes : Long(1) = onnx::Constant[value={0}]()
  %m : Long(), %sums : Long(M) = onnx::Loop(%three, _, %n)
    block0(%i : Long(), %c : Bool(), %k : Long()):
      %r : Long(A) = onnx::Range(%zero, %k, %one)
      %s : Long() = onnx::ReduceSum[keepdims=0](%r, %axes)
      %l : Long() = onnx::Mul(%k, %two)
      -> (%c, %l, %s)
  return (%m, %sums)`, [][]*tensor.Tensor{{long(3)}, {long(0)}}},
}

// TestControl runs programs with all nodes on the device, fused and not, by IR and by PTX.
func TestControl(t *testing.T) {
	for _, c := range programs {
		t.Run(c.name, func(t *testing.T) {
			m, err := ssa.Parse(c.text, c.name, onnx.Dialect{})
			if err != nil {
				t.Fatal(err)
			}
			m.Opsets = map[string]int{"": onnx.Newest}
			if err := onnx.InferBlock(m.Main().Body); err != nil {
				t.Fatal(err)
			}
			for _, inputs := range c.runs {
				var args []interp.Value
				for _, x := range inputs {
					args = append(args, interp.Of(x))
				}
				want, err := new(interp.Interpreter).RunFunc(m.Main(), args)
				if err != nil {
					t.Fatal(err)
				}
				for _, mode := range []fuse.Mode{fuse.None, fuse.Light} {
					p, err := plan.New(m, mode)
					if err != nil {
						t.Fatal(err)
					}
					for _, node := range p.Nodes {
						if node.Place == plan.Host {
							t.Errorf("%s runs on the host: %s", node.Op.Kind, node.Reason)
						}
					}
					s := exec.NewSession(p, &routes{exec.Sim{Check: true}})
					for again := range 2 { // a session serves several runs
						got, _, err := s.Run(args)
						if err != nil {
							t.Fatalf("%s, %v: %v", mode, inputs, err)
						}
						for i := range want {
							x, y := want[i].Tensor, got[i].Tensor
							if !bytes.Equal(x.Bytes(), y.Bytes()) || len(x.Shape) != len(y.Shape) || x.String() != y.String() {
								t.Errorf("%s, run %d, %v: result %d is %v %v, expected %v %v", mode, again, inputs, i, y, y.Float64s(), x, x.Float64s())
							}
						}
					}
					if mode == fuse.None {
						nodes, err := exec.CheckNodes(p, s, args, false)
						if err != nil {
							t.Fatal(err)
						}
						for _, n := range nodes {
							if n.Bad() {
								t.Error(&n)
							}
						}
					}
				}
			}
		})
	}
}
