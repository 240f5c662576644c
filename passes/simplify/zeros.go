package simplify

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
)

// zeroOperands holds the rules on operands that are zeros, which is what an absent one stands for.
var zeroOperands = []rewrite.Rule{
	{Name: "zero-bias", Kinds: []ssa.Kind{"onnx::Conv", "onnx::ConvTranspose", "onnx::Gemm"}, Apply: func(r *rewrite.Rewriter, o *ssa.Op) bool { return withoutZeros(r, o, 2) }},
	{Name: "zero-state", Kinds: []ssa.Kind{"onnx::LSTM", "onnx::GRU", "onnx::RNN"}, Apply: func(r *rewrite.Rewriter, o *ssa.Op) bool { return withoutZeros(r, o, 5, 6) }},
}

// withoutZeros leaves out the operands in these places that are zeros. As a bias they make no difference to a sum that starts
// at 0.
func withoutZeros(r *rewrite.Rewriter, o *ssa.Op, places ...int) bool {
	operands := o.Operands()
	found := false
	for _, i := range places {
		if i < len(operands) && operands[i] != nil && zeros(operands[i], maxZeros) {
			operands[i], found = nil, true
		}
	}
	if !found {
		return false
	}
	vs := r.CreateN(o.Kind, len(o.Results), operands, o.Attrs...)
	for i, v := range vs {
		if !r.Fits(v, o.Result(i)) {
			return false
		}
	}
	r.Replace(o, vs...)
	return true
}

// maxZeros bounds the operators that zeros are followed through.
const maxZeros = 8

// zeros reports a tensor of zeros, stored or made at run time.
func zeros(v *ssa.Value, depth int) bool {
	d := v.Def()
	if d == nil || depth == 0 {
		return false
	}
	switch d.Kind {
	case "onnx::ConstantOfShape":
		l, ok := d.Attr("value")
		return !ok || l.Tensor != nil && l.Tensor.HasData() && l.Tensor.NumElements() == 1 && l.Tensor.DType.IsFloat() && allZero(l.Tensor.Float64s())
	case "onnx::Expand", "onnx::Reshape", "onnx::Split", "onnx::Slice", "onnx::Transpose", "onnx::Unsqueeze", "onnx::Squeeze", "onnx::Gather", "onnx::Identity":
		return d.Operand(0) != nil && zeros(d.Operand(0), depth-1)
	}
	return allAre(v, 0)
}

// allZero reports that no element differs from 0; -0 is not 0.
func allZero(v []float64) bool {
	for _, e := range v {
		if e != 0 || 1/e < 0 {
			return false
		}
	}
	return true
}
