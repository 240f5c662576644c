package exec_test

import (
	"math"
	"testing"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Operators that others express run on the device, and give what the interpreter gives for the operator itself.
func TestExpressed(t *testing.T) {
	f := func(seed uint64, shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, seed, false) }
	q := func(d tensor.DType, seed uint64, shape ...int64) *tensor.Tensor {
		return fill(d, append([]int64{}, shape...), seed, false)
	}
	s := func(v ...float64) *tensor.Tensor {
		shape := []int64{int64(len(v))}
		if len(v) == 1 {
			shape = []int64{}
		}
		return tensor.FromFloats(tensor.Float32, shape, v)
	}
	i64 := func(v ...int64) *tensor.Tensor { return tensor.Ints(v...) }
	targets := tensor.FromInts(tensor.Int64, []int64{2, 3}, []int64{1, 3, 0, 4, 3, -2})
	for _, n := range []node{
		{op: "AffineGrid", in: []*tensor.Tensor{f(1, 2, 2, 3), i64(2, 3, 4, 5)}, consts: []bool{false, true}},
		{op: "AffineGrid", in: []*tensor.Tensor{f(1, 2, 3, 4), i64(2, 3, 4, 5, 6)}, consts: []bool{false, true}, attrs: []ssa.Attr{number("align_corners", 1)}},
		{op: "Col2Im", in: []*tensor.Tensor{f(1, 1, 8, 9), i64(4, 4), i64(2, 2)}, consts: []bool{false, true, true}},
		{op: "CenterCropPad", in: []*tensor.Tensor{f(1, 5, 7), i64(8, 4)}, consts: []bool{false, true}},
		{op: "RotaryEmbedding", in: []*tensor.Tensor{f(1, 2, 3, 5, 8), f(2, 2, 5, 4), f(3, 2, 5, 4)}},
		{op: "RotaryEmbedding", in: []*tensor.Tensor{f(1, 2, 5, 24), f(2, 9, 4), f(3, 9, 4), tensor.FromInts(tensor.Int64, []int64{2, 5}, []int64{0, 1, 2, 3, 4, 8, 7, 6, 5, 4})},
			attrs: []ssa.Attr{number("num_heads", 3), number("interleaved", 1)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 2, 3, 4, 8), f(2, 2, 3, 6, 8), f(3, 2, 3, 6, 5)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 2, 6, 4, 8), f(2, 2, 3, 4, 8), f(3, 2, 3, 4, 8)}, attrs: []ssa.Attr{number("is_causal", 1)}},
		{op: "Attention", in: []*tensor.Tensor{f(1, 2, 4, 24), f(2, 2, 4, 24), f(3, 2, 4, 24), f(4, 4, 7), f(5, 2, 3, 3, 8), f(6, 2, 3, 3, 8)}, results: 3,
			attrs: []ssa.Attr{number("q_num_heads", 3), number("kv_num_heads", 3), attr("softcap", ssa.Float(5))}},
		{op: "DeformConv", in: []*tensor.Tensor{f(1, 1, 2, 5, 5), f(2, 3, 2, 2, 2), f(3, 1, 8, 4, 4)}},
		{op: "TensorScatter", in: []*tensor.Tensor{f(1, 2, 6, 3), f(2, 2, 2, 3), i64(1, 4)}, attrs: []ssa.Attr{number("axis", 1)}},
		{op: "MatMulInteger", in: []*tensor.Tensor{q(tensor.Uint8, 1, 2, 5, 7), q(tensor.Int8, 2, 7, 6)}},
		{op: "MatMulInteger", in: []*tensor.Tensor{q(tensor.Uint8, 1, 5, 7), q(tensor.Int8, 2, 7, 6), q(tensor.Uint8, 3, 5), q(tensor.Int8, 4, 6)}},
		{op: "MatMulInteger", in: []*tensor.Tensor{q(tensor.Int8, 1, 7), q(tensor.Int8, 2, 7, 6), q(tensor.Int8, 3), q(tensor.Int8, 4)}},
		{op: "QLinearMatMul", in: []*tensor.Tensor{q(tensor.Uint8, 1, 2, 5, 7), s(0.02), q(tensor.Uint8, 2), q(tensor.Uint8, 3, 7, 6), s(0.03), q(tensor.Uint8, 4), s(0.05), q(tensor.Uint8, 5)}},
		{op: "QLinearMatMul", in: []*tensor.Tensor{q(tensor.Int8, 1, 5, 7), s(0.02), q(tensor.Int8, 2), q(tensor.Int8, 3, 7, 3), s(0.03, 0.1, 0.01), q(tensor.Int8, 4, 3), s(0.05), q(tensor.Int8, 5)}},
		{op: "ConvInteger", in: []*tensor.Tensor{q(tensor.Uint8, 1, 1, 2, 5, 6), q(tensor.Uint8, 2, 3, 2, 3, 2), q(tensor.Uint8, 3), q(tensor.Uint8, 4)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 0)}},
		{op: "QLinearConv", in: []*tensor.Tensor{q(tensor.Uint8, 1, 1, 2, 5, 6), s(0.02), q(tensor.Uint8, 2), q(tensor.Uint8, 3, 3, 2, 3, 2), s(0.03, 0.1, 0.01), q(tensor.Uint8, 4), s(0.05), q(tensor.Uint8, 5),
			fill(tensor.Int32, []int64{3}, 6, false)}, attrs: []ssa.Attr{ints("pads", 1, 1, 1, 0)}},
		{op: "DynamicQuantizeLinear", in: []*tensor.Tensor{f(1, 5, 7)}, results: 3},
		{op: "DynamicQuantizeLinear", in: []*tensor.Tensor{tensor.FromFloats(tensor.Float32, []int64{3}, []float64{0, 0, 0})}, results: 3},
		{op: "BitCast", in: []*tensor.Tensor{fill(tensor.Uint8, []int64{90}, 1, true)}, attrs: []ssa.Attr{number("to", int64(tensor.Int8.ONNX()))}},
		{op: "Hardmax", in: []*tensor.Tensor{f(1, 3, 5, 4)}, attrs: []ssa.Attr{number("axis", 1)}},
		{op: "GlobalLpPool", in: []*tensor.Tensor{f(1, 2, 3, 4, 5)}},
		{op: "GlobalLpPool", in: []*tensor.Tensor{f(1, 2, 3, 4)}, attrs: []ssa.Attr{number("p", 3)}},
		{op: "NegativeLogLikelihoodLoss", in: []*tensor.Tensor{f(1, 4, 5), i64(1, 0, 4, 2)}},
		{op: "NegativeLogLikelihoodLoss", in: []*tensor.Tensor{f(1, 2, 5, 3), targets, f(2, 5)}, attrs: []ssa.Attr{text("reduction", "none"), number("ignore_index", 3)}},
		{op: "NegativeLogLikelihoodLoss", in: []*tensor.Tensor{f(1, 2, 5, 3), targets, f(2, 5)}, attrs: []ssa.Attr{number("ignore_index", 3)}},
		{op: "NegativeLogLikelihoodLoss", in: []*tensor.Tensor{f(1, 2, 5, 3), targets}, attrs: []ssa.Attr{text("reduction", "sum")}},
		{op: "SoftmaxCrossEntropyLoss", in: []*tensor.Tensor{f(1, 2, 5, 3), targets, f(2, 5)}, attrs: []ssa.Attr{number("ignore_index", -1)}, results: 2},
		{op: "SoftmaxCrossEntropyLoss", in: []*tensor.Tensor{f(1, 4, 5), tensor.FromInts(tensor.Int32, []int64{4}, []int64{1, 0, 4, 2})}, attrs: []ssa.Attr{text("reduction", "none")}},
		{op: "CausalConvWithState", in: []*tensor.Tensor{f(1, 2, 3, 7), f(2, 3, 1, 4), f(3, 3)}, results: 2},
		{op: "BatchNormalization", in: []*tensor.Tensor{f(1, 4, 3, 5, 2), f(2, 3), f(3, 3), f(4, 3), s(0.5, 2, 0.01)}, attrs: []ssa.Attr{number("training_mode", 1), attr("momentum", ssa.Float(0.8))}, results: 3},
		{op: "BatchNormalization", in: []*tensor.Tensor{f(1, 4, 3), f(2, 3), f(3, 3), f(4, 3), s(0.5, 2, 0.01)}, attrs: []ssa.Attr{number("training_mode", 1)}, results: 3},
		{op: "LayerNormalization", in: []*tensor.Tensor{f(1, 4, 3, 5), f(2, 3, 5), f(3, 3, 5)}, attrs: []ssa.Attr{number("axis", 1)}, results: 3},
		{op: "LayerNormalization", in: []*tensor.Tensor{f(1, 4, 6), f(2, 6)}, results: 2},
		{op: "MelWeightMatrix", in: []*tensor.Tensor{long(8), long(16), long(8192), s(0), s(4096)}, consts: []bool{true, true, true, true, true}},
		{op: "CausalConvWithState", in: []*tensor.Tensor{f(1, 2, 3, 7), f(2, 3, 1, 4), nil, f(4, 2, 3, 3)}, attrs: []ssa.Attr{text("activation", "silu")}, results: 2},
	} {
		t.Run(n.op, func(t *testing.T) {
			m, args := n.module(t)
			want, err := new(interp.Interpreter).RunFunc(m.Main(), args)
			if err != nil {
				t.Fatal(err)
			}
			p, err := plan.New(m, fuse.Light)
			if err != nil {
				t.Fatal(err)
			}
			for _, node := range p.Nodes {
				if node.Place == plan.Host {
					t.Errorf("%s runs on the host: %s", node.Op.Kind, node.Reason)
				}
			}
			got, _, err := exec.NewSession(p, &routes{exec.Sim{Check: true}}).Run(args)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				x, y := want[i].Tensor, got[i].Tensor
				if x.String() != y.String() {
					t.Fatalf("result %d is %v, expected %v", i, y, x)
				}
				v, w := x.Float64s(), y.Float64s()
				for k := range v {
					if math.Abs(v[k]-w[k]) > 1e-5*(1+math.Abs(v[k])) || math.IsNaN(v[k]) != math.IsNaN(w[k]) {
						t.Fatalf("result %d: element %d is %v, expected %v", i, k, w[k], v[k])
					}
				}
			}
		})
	}
}
