package simplify

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// halves holds the rules that give operators halves (float16, bfloat16) which are widened for them, where the operators widen by
// themselves: RMSNormalization by its stash_type, which is float32, and Attention by its softmax_precision.
func (s *simplifier) halves() []rewrite.Rule {
	return s.from(fusedOpset, []rewrite.Rule{
		{Name: "half-normalization", Kinds: []ssa.Kind{"onnx::Cast"}, Apply: halfNormalization, Rounds: true},
		{Name: "half-attention", Kinds: []ssa.Kind{"onnx::Cast"}, Apply: halfAttention, Rounds: true},
	})
}

func isHalf(d tensor.DType) bool { return d == tensor.Float16 || d == tensor.BFloat16 }

// widened is the operator of a kind, on float32, whose only result is used by a cast to a half alone.
func widened(cast *ssa.Op, kind ssa.Kind) *ssa.Op {
	d := definedBy(cast.Operand(0), kind)
	if d == nil || !isHalf(cast.Result(0).DType()) || len(d.Results) > 1 || d.Result(0).DType() != tensor.Float32 || !d.Result(0).HasOneUse() {
		return nil
	}
	return d
}

// asHalf is the value of a half type that a float32 was made of, turned as the float32 was; nil if there is none.
func asHalf(r *rewrite.Rewriter, v *ssa.Value, half tensor.DType) *ssa.Value {
	turn := definedBy(v, "onnx::Transpose")
	if turn != nil {
		v = turn.Operand(0)
	}
	d := definedBy(v, "onnx::Cast")
	if d == nil || d.Operand(0).DType() != half {
		return nil
	}
	if turn == nil {
		return d.Operand(0)
	}
	return r.Create(turn.Kind, []*ssa.Value{d.Operand(0)}, turn.Attrs...)
}

// halfNormalization: what the operator computes in float32 is rounded before the scale there, and behind it here, which is the same
// for a scale of ones. [normScale] finds the scale of halves behind the cast.
func halfNormalization(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := widened(o, "onnx::RMSNormalization")
	if d == nil || d.AttrInt("stash_type", int64(tensor.Float32.ONNX())) != int64(tensor.Float32.ONNX()) || !allAre(d.Operand(1), 1) {
		return false
	}
	half := o.Result(0).DType()
	x := asHalf(r, d.Operand(0), half)
	if x == nil {
		return false
	}
	y := r.Create(d.Kind, []*ssa.Value{x, constant(r, tensor.Full(half, onnx.ConstOf(d.Operand(1)).Shape, 1))}, d.Attrs...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}

// halfAttention: products of halves are sums in float32 rounded once in either form. A mask of floats stays in float32: onnxruntime takes
// the least number for minus infinity, and adds halves with their few digits where PyTorch adds in float32.
func halfAttention(r *rewrite.Rewriter, o *ssa.Op) bool {
	d := widened(o, "onnx::Attention")
	if d == nil || d.NumOperands() > 3 && d.Operand(3) != nil && d.Operand(3).DType() != tensor.Bool {
		return false
	}
	operands := d.Operands()
	for i, v := range operands {
		if i == 3 || v == nil {
			continue
		}
		if i > 3 {
			return false
		}
		if operands[i] = asHalf(r, v, o.Result(0).DType()); operands[i] == nil {
			return false
		}
	}
	y := r.Create(d.Kind, operands, append(slices.Clone(d.Attrs), onnx.SoftmaxPrecision(tensor.Float32))...)
	if !r.Fits(y, o.Result(0)) {
		return false
	}
	r.Replace(o, y)
	return true
}
