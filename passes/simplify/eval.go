package simplify

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// evaluate computes an operator on constants.
func evaluate(r *rewrite.Rewriter, kind ssa.Kind, operands ...*ssa.Value) (*ssa.Value, bool) {
	ins := make([]*tensor.Tensor, len(operands))
	for i, v := range operands {
		ins[i] = onnx.ConstOf(v)
	}
	out, err := kernel.Eval(kind, nil, ins, 1)
	if err != nil {
		return nil, false
	}
	return constant(r, out[0]), true
}
