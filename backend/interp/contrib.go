package interp

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// contrib has the operators of onnxruntime's domain com.microsoft that the pass contrib makes, as its documentation
// (docs/ContribOperators.md) defines them, by those of the standard.
var contrib = map[ssa.Kind]Kernel{
	"com.microsoft::SkipSimplifiedLayerNormalization": func(o *ssa.Op, in []Value) ([]Value, error) {
		return skipNormalization(o, in, "onnx::RMSNormalization", 3)
	},
	"com.microsoft::SkipLayerNormalization": func(o *ssa.Op, in []Value) ([]Value, error) {
		return skipNormalization(o, in, "onnx::LayerNormalization", 4)
	},
	"com.microsoft::BiasGelu": func(o *ssa.Op, in []Value) ([]Value, error) {
		sum, err := standard("onnx::Add", nil, in...)
		if err != nil {
			return nil, err
		}
		y, err := standard("onnx::Gelu", nil, sum)
		return []Value{y}, err
	},
	"com.microsoft::QuickGelu": func(o *ssa.Op, in []Value) ([]Value, error) {
		if len(in) != 1 || in[0].Tensor == nil {
			return nil, fmt.Errorf("%d inputs", len(in))
		}
		alpha := Of(tensor.Full(in[0].Tensor.DType, []int64{}, o.AttrFloat("alpha", 1.702)))
		gate, err := standard("onnx::Mul", nil, in[0], alpha)
		if err == nil {
			gate, err = standard("onnx::Sigmoid", nil, gate)
		}
		if err != nil {
			return nil, err
		}
		y, err := standard("onnx::Mul", nil, in[0], gate)
		return []Value{y}, err
	},
}

// standard computes an operator of the standard that has one result.
func standard(kind ssa.Kind, attrs []ssa.Attr, in ...Value) (Value, error) {
	ts := make([]*tensor.Tensor, len(in))
	for i, v := range in {
		ts[i] = v.Tensor
	}
	out, err := kernel.Eval(kind, attrs, ts, 1)
	if err != nil {
		return Value{}, err
	}
	return Of(out[0]), nil
}

// skipNormalization is the normalization of a sum, with the sum as the fourth result. The second and the third, which training
// reads, are not computed. Scale and bias of the normalization are the inputs from the third to the one before last; that at
// last is a bias of the sum.
func skipNormalization(o *ssa.Op, in []Value, kind ssa.Kind, last int) ([]Value, error) {
	if len(in) < 3 || len(in) > last+1 {
		return nil, fmt.Errorf("%d inputs", len(in))
	}
	sum, err := standard("onnx::Add", nil, in[0], in[1])
	if err == nil && len(in) > last && in[last].Tensor != nil {
		sum, err = standard("onnx::Add", nil, sum, in[last])
	}
	if err != nil {
		return nil, err
	}
	eps := ssa.Attr{Name: "epsilon", Value: ssa.Float(o.AttrFloat("epsilon", 1e-12))}
	y, err := standard(kind, []ssa.Attr{eps}, append([]Value{sum}, in[2:min(last, len(in))]...)...)
	if err != nil {
		return nil, err
	}
	out := make([]Value, len(o.Results))
	for i, v := range []Value{y, {}, {}, sum} {
		if i < len(out) {
			out[i] = v
		}
	}
	for i := 1; i < len(out) && i < 3; i++ {
		if o.Result(i).HasUses() {
			return nil, fmt.Errorf("output %d exists for training only", i)
		}
	}
	return out, nil
}
