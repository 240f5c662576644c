package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// primitives are the operators of torch/_prims, to which decompositions of
// exported programs may go. They broadcast nothing and promote nothing, so that
// aten's operators do what they do.
var primitives = Defs{
	"prims::broadcast_in_dim": {Doc: "a with its axes at the places of broadcast_dimensions, expanded to shape", Lower: lowerBroadcastInDim},
	"prims::reshape":          {Doc: "a in another shape", Lower: lowerPrimsReshape},
	"prims::resize":           {Doc: "a in another shape of as many elements", Lower: lowerPrimsReshape},
	"prims::squeeze":          {Doc: "a without the axes of size 1 that are named", Lower: func(l *Lowering) *ssa.Value { return l.squeeze(l.Tensor("a"), l.primDims("a", "dimensions")...) }},
	"prims::transpose":        {Doc: "a with its axes permuted", Lower: func(l *Lowering) *ssa.Value { return l.transpose(l.Tensor("a"), l.primDims("a", "permutation")...) }},
	"prims::sum":              {Doc: "sum over axes", Lower: lowerPrimsSum},
	"prims::var":              {Doc: "variance over axes", Lower: lowerPrimsVar},
	"prims::where":            {Doc: "a where pred, else b", Lower: func(l *Lowering) *ssa.Value { return l.where(l.Tensor("pred"), l.Tensor("a"), l.Tensor("b")) }},
	"prims::div": {Doc: "a / b, towards zero for integers", Lower: func(l *Lowering) *ssa.Value {
		a, b := l.Input(0), l.Input(1)
		if l.DType(a).IsInt() {
			return l.Aten("aten::div.Tensor_mode", a, b, "trunc")
		}
		return l.Aten("aten::div.Tensor", a, b)
	}},
}

// addPrims adds the operators that are aten's under another name.
func addPrims(families []Defs) {
	for _, f := range families {
		for k, d := range f {
			if d.Prim {
				primitives[ssa.Kind("prims::"+k.Name())] = Def{Doc: string(k), Lower: func(l *Lowering) *ssa.Value { return l.asAten(k) }}
			}
		}
	}
}

// asAten is the operator k of aten on the same operands.
func (l *Lowering) asAten(k ssa.Kind) *ssa.Value {
	args := make([]any, l.NumInputs())
	for i := range args {
		args[i] = l.Input(i)
	}
	switch name := string(k); {
	case len(args) == 1:
		return l.Aten(name, args...)
	case Schema(k, "Tensor") == nil:
		return l.Aten(name+".Tensor_Tensor", args...)
	default:
		return l.Aten(name+".Tensor", args...)
	}
}

// primDims are axes of an argument.
func (l *Lowering) primDims(of, name string) []int64 {
	rank := l.Rank(l.Tensor(of))
	dims := l.Ints(name)
	out := make([]int64, len(dims))
	for i, d := range dims {
		out[i] = int64(l.wrap(d, rank))
	}
	return out
}

func lowerBroadcastInDim(l *Lowering) *ssa.Value {
	x := l.Tensor("a")
	shape := l.sizes("shape")
	at := map[int64]bool{}
	for _, d := range l.Ints("broadcast_dimensions") {
		at[int64(l.wrap(d, len(shape)))] = true
	}
	var added []int64
	for i := range shape {
		if !at[int64(i)] {
			added = append(added, int64(i))
		}
	}
	return l.expand(l.unsqueeze(x, added...), l.sizeTensor(shape))
}

func lowerPrimsReshape(l *Lowering) *ssa.Value {
	return l.reshapeTo(l.Tensor("a"), l.sizeTensor(l.sizes("shape")))
}

func lowerPrimsSum(l *Lowering) *ssa.Value {
	y := l.Aten("aten::sum.dim_IntList", l.Tensor("inp"), l.primDims("inp", "dims"), false)
	if d := l.DTypeArg("output_dtype"); d != tensor.Undefined {
		y = l.Cast(y, d)
	}
	return y
}

func lowerPrimsVar(l *Lowering) *ssa.Value {
	x := l.Tensor("inp")
	dims := l.primDims("inp", "dims")
	y := l.Aten("aten::var.correction", x, dims, l.FloatOr("correction", 1), false)
	if d := l.DTypeArg("output_dtype"); d != tensor.Undefined {
		y = l.Cast(y, d)
	}
	return y
}
