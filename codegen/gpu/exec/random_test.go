package exec_test

import (
	"fmt"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// The device draws what the interpreter draws.
func TestRandom(t *testing.T) {
	for _, d := range append(floatTypes, tensor.BFloat16) {
		of := number("dtype", int64(d.ONNX()))
		x := fill(d, []int64{3, 43}, 1, false)
		chances := x.Float64s()
		for i := range chances {
			chances[i] = float64(i%11) / 10
		}
		p := tensor.FromFloats(d, x.Shape, chances)
		for _, n := range []node{
			{op: "RandomUniform", attrs: []ssa.Attr{of, ints("shape", 5, 103)}},
			{op: "RandomUniform", attrs: []ssa.Attr{of, ints("shape", 7), attr("low", ssa.Float(-2.5)), attr("high", ssa.Float(3.7)), attr("seed", ssa.Float(4))}},
			{op: "RandomUniformLike", in: []*tensor.Tensor{x}},
			{op: "RandomNormal", attrs: []ssa.Attr{of, ints("shape", 5, 103)}},
			{op: "RandomNormal", attrs: []ssa.Attr{of, ints("shape", 7), attr("mean", ssa.Float(-2.5)), attr("scale", ssa.Float(3.7)), attr("seed", ssa.Float(4))}},
			{op: "RandomNormalLike", in: []*tensor.Tensor{x}},
			{op: "Bernoulli", in: []*tensor.Tensor{p}},
			{op: "Bernoulli", in: []*tensor.Tensor{p}, attrs: []ssa.Attr{number("dtype", int64(tensor.Int64.ONNX()))}},
			{op: "Bernoulli", in: []*tensor.Tensor{p}, attrs: []ssa.Attr{number("dtype", int64(tensor.Bool.ONNX()))}},
			{op: "Dropout", in: []*tensor.Tensor{x, tensor.Full(d, []int64{}, 0.3), tensor.FullInt(tensor.Bool, []int64{}, 1)}, results: 2, consts: []bool{false, true, true}},
			{op: "Dropout", in: []*tensor.Tensor{x, nil, tensor.FullInt(tensor.Bool, []int64{}, 1)}, results: 2},
			{op: "Dropout", in: []*tensor.Tensor{x, nil, tensor.FullInt(tensor.Bool, []int64{}, 0)}, results: 2},
			{op: "Dropout", in: []*tensor.Tensor{x, nil, tensor.FullInt(tensor.Bool, []int64{}, 0)}, results: 2, consts: []bool{false, true, true}},
			{op: "Dropout", in: []*tensor.Tensor{x}, results: 2},
			{op: "Multinomial", in: []*tensor.Tensor{x}, attrs: []ssa.Attr{number("sample_size", 57)}},
			{op: "Multinomial", in: []*tensor.Tensor{x}, attrs: []ssa.Attr{number("sample_size", 5), number("dtype", int64(tensor.Int64.ONNX()))}},
		} {
			if d == tensor.BFloat16 && len(n.in) == 0 && n.op != "" {
				continue // has no such type
			}
			t.Run(fmt.Sprintf("%s/%s", n.op, d.Spec()), func(t *testing.T) {
				n.check(t)
				if len(n.in) == 1 && d == tensor.Float32 {
					n.dynamic = true
					n.check(t)
				}
			})
		}
	}
}

const drawing = `graph @f(%x : Float(3), %n : Long()):
  %true : Bool() = onnx::Constant[value={1}]()
  %first : Float(3) = onnx::RandomNormalLike(%x)
  %all : Float(3), %each : Float(K, 3) = onnx::Loop(%n, %true, %first)
    block0(%i : Long(), %c : Bool(), %s : Float(3)):
      %d : Float(3) = onnx::RandomNormalLike[scale=3](%s)
      %y : Float(3) = onnx::Add(%s, %d)
      %u : Float(3) = onnx::RandomUniformLike(%s)
      -> (%c, %y, %u)
  %m : Float(3) = onnx::RandomNormalLike(%x)
  return (%first, %all, %each, %m)`

// Each turn of a loop draws anew, and another seed draws other numbers, on the device as in the interpreter.
func TestDrawing(t *testing.T) {
	m, err := ssa.Parse(drawing, "test", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	args := []interp.Value{interp.Of(fill(tensor.Float32, []int64{3}, 1, false)), interp.Of(tensor.ScalarInt(4))}
	seen := map[string]bool{}
	for _, seed := range []uint64{0, 5, 5 << 32} {
		want, err := (&interp.Interpreter{Seed: seed}).RunFunc(m.Main(), args)
		if err != nil {
			t.Fatal(err)
		}
		for _, mode := range []fuse.Mode{fuse.None, fuse.Light} {
			p, err := plan.New(m, mode)
			if err != nil {
				t.Fatal(err)
			}
			s := exec.NewSession(p, &routes{exec.Sim{Check: true}})
			s.Seed = seed
			for range 2 { // each run begins anew
				got, _, err := s.Run(args)
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					x, y := want[i].Tensor.Float64s(), got[i].Tensor.Float64s()
					for k := range x {
						if d := x[k] - y[k]; d > 1e-6 || d < -1e-6 {
							t.Fatalf("seed %d, result %d: %v, expected %v", seed, i, y, x)
						}
					}
				}
			}
			if mode == fuse.None {
				checked, err := exec.CheckNodes(p, s, args, true)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range checked {
					if n.Bad() {
						t.Error(n)
					}
				}
			}
		}
		for i := range want {
			v := want[i].Tensor.Float64s()
			for k := 0; k+3 <= len(v); k += 3 {
				text := fmt.Sprint(v[k : k+3])
				if seen[text] {
					t.Errorf("%s is drawn twice", text)
				}
				seen[text] = true
			}
		}
	}
}
