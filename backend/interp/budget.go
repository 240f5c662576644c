package interp

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

const (
	// maxOps is far more than a model of thousands of operators does in a loop of a thousand iterations.
	maxOps = 1 << 22
	// maxElements is half a gigabyte of float32.
	maxElements = 1 << 27
	// insertedAsOp is how many elements of a sequence are copied in the time of an operator.
	insertedAsOp = 64
	// maxKnown is the number of elements up to which an operand's values may say how large a result is.
	maxKnown = 64
)

// sizedByData are operators whose results can have more elements than the product of what their operands have.
var sizedByData = map[string]bool{
	"AffineGrid": true, "BlackmanWindow": true, "CenterCropPad": true, "Col2Im": true, "ConstantOfShape": true, "Expand": true, "HammingWindow": true,
	"HannWindow": true, "MaxUnpool": true, "Multinomial": true, "OneHot": true, "Pad": true, "RandomNormal": true, "RandomUniform": true, "Range": true,
	"Resize": true, "Tile": true,
}

// takeOps counts operators of the run.
func (r *run) takeOps(n int64) error {
	limit := r.MaxOps
	if limit == 0 {
		limit = r.m.Allow(maxOps)
	}
	if r.ops += n; r.ops > limit {
		return fmt.Errorf("the run takes more than %d operators; %s", limit, ssa.BudgetHint)
	}
	return nil
}

// outsized fails for an operator whose results have more elements than a value may have, before they are made. Only where that can be
// are the types of the results inferred, from those of the operands and the values of small ones.
func (r *run) outsized(o *ssa.Op, in []Value) error {
	limit := r.m.Allow(maxElements)
	large, product := false, int64(1)
	for _, v := range in {
		if v.Tensor == nil {
			continue
		}
		n := max(v.Tensor.NumElements(), 1)
		if large = large || n > limit/product; !large {
			product *= n
		}
	}
	if len(o.Blocks) > 0 || !large && !sizedByData[o.Kind.Name()] {
		return nil
	}
	scratch := ssa.NewModule().NewFunc("scratch")
	b := &onnx.Builder{Block: scratch.Body, Loc: o.Loc}
	operands := make([]*ssa.Value, len(in))
	for i, v := range in {
		switch t := v.Tensor; {
		case t == nil:
		case t.NumElements() <= maxKnown && t.DType != tensor.String:
			operands[i] = b.Const(t)
		default:
			operands[i] = scratch.Body.AddParam("", ssa.TensorOf(t))
		}
	}
	types := make([]ssa.Type, len(o.Results))
	for i := range types {
		types[i] = ssa.AnyTensor
	}
	like := scratch.Body.Append(o.Kind, o.Loc, operands, types...)
	like.Attrs = o.Attrs
	if onnx.Infer(like) != nil {
		return nil // its kernel says what is wrong
	}
	for _, v := range like.Results {
		t := v.Tensor()
		if t == nil || !t.Ranked {
			continue
		}
		n := int64(1)
		for _, d := range t.Dims {
			size, ok := d.Int()
			if !ok || size <= 0 {
				n = 0
				break
			}
			if size > limit/n {
				return fmt.Errorf("a result %s has more than %d elements; %s", t, limit, ssa.BudgetHint)
			}
			n *= size
		}
	}
	return nil
}
