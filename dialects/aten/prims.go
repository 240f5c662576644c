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
	"prims::prod":             {Doc: "product over axes", Lower: lowerPrimsProd},
	"prims::amax": {Doc: "greatest over axes", Lower: func(l *Lowering) *ssa.Value {
		return l.Aten("aten::amax", l.Tensor("inp"), l.primDims("inp", "dims"), false)
	}},
	"prims::amin": {Doc: "least over axes", Lower: func(l *Lowering) *ssa.Value {
		return l.Aten("aten::amin", l.Tensor("inp"), l.primDims("inp", "dims"), false)
	}},
	"prims::collapse":      {Doc: "the axes from start to end as one", Lower: lowerCollapse},
	"prims::collapse_view": {Doc: "the axes from start to end as one", Lower: lowerCollapse},
	"prims::split_dim":     {Doc: "an axis as two, the outer one of outer_length", Lower: lowerSplitDim},
	"prims::rev":           {Doc: "a with axes in reverse", Lower: func(l *Lowering) *ssa.Value { return l.Aten("aten::flip", l.Tensor("a"), l.primDims("a", "dims")) }},
	"prims::cat":           {Doc: "tensors joined along an axis", Lower: func(l *Lowering) *ssa.Value { return l.concatV(l.Int("dim"), l.Tensors("tensors")...) }},
	"prims::full_like": {Doc: "fill_value in the shape of a", Lower: func(l *Lowering) *ssa.Value {
		return l.full(l.shapeOf(l.Tensor("a")), l.DTypeArg("dtype"), "fill_value")
	}},
	"prims::full": {Doc: "fill_value everywhere", Lower: func(l *Lowering) *ssa.Value {
		return l.full(l.sizeTensor(l.sizes("shape")), l.DTypeArg("dtype"), "fill_value")
	}},
	"prims::scalar_tensor": {Doc: "a number as a tensor of rank 0", Lower: func(l *Lowering) *ssa.Value { return l.Cast(l.Tensor("s"), l.DTypeArg("dtype")) }},
	"prims::where":         {Doc: "a where pred, else b", Lower: func(l *Lowering) *ssa.Value { return l.Where(l.Tensor("pred"), l.Tensor("a"), l.Tensor("b")) }},
	"prims::div": {Doc: "a / b, towards zero for integers", Lower: func(l *Lowering) *ssa.Value {
		a, b := l.Input(0), l.Input(1)
		if l.DType(a).IsInt() {
			return l.Aten("aten::div.Tensor_mode", a, b, "trunc")
		}
		return l.Aten("aten::div.Tensor", a, b)
	}},
}

// otherNames are operators of one element for another, or of one for two, that torch/_prims calls something else than aten does.
var otherNames = map[ssa.Kind]ssa.Kind{
	"prims::erf_inv": "aten::erfinv", "prims::ndtri": "aten::special_ndtri", "prims::erfcx": "aten::special_erfcx", "prims::zeta": "aten::special_zeta",
	"prims::bessel_j0": "aten::special_bessel_j0", "prims::bessel_j1": "aten::special_bessel_j1", "prims::bessel_i0": "aten::i0", "prims::bessel_i0e": "aten::special_i0e",
	"prims::bessel_i1": "aten::special_i1", "prims::bessel_i1e": "aten::special_i1e", "prims::shift_left": "aten::bitwise_left_shift",
	"prims::shift_right_arithmetic": "aten::bitwise_right_shift", "prims::spherical_bessel_j0": "aten::special_spherical_bessel_j0",
}

// addPrims adds the operators that are aten's, also under another name.
func addPrims(families []Defs) {
	for prim, k := range otherNames {
		primitives[prim] = &Def{Doc: string(k), Lower: func(l *Lowering) *ssa.Value { return l.asAten(k) }}
	}
	for _, f := range families {
		for k, d := range f {
			if d.Prim {
				primitives[ssa.Kind("prims::"+k.Name())] = &Def{Doc: string(k), Lower: func(l *Lowering) *ssa.Value { return l.asAten(k) }}
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
	plain := Schema(k, "")
	switch name := string(k); {
	case len(args) == 1 || plain != nil && len(plain.Args) == len(args) && ssa.AsTensor(plain.Args[0].Type) != nil:
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
	return l.Expand(l.unsqueeze(x, added...), l.sizeTensor(shape))
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

func lowerPrimsProd(l *Lowering) *ssa.Value {
	y := l.Tensor("inp")
	if d := l.DTypeArg("output_dtype"); d != tensor.Undefined {
		y = l.Cast(y, d)
	}
	return l.reduce("ReduceProd", y, l.primDims("inp", "dims"), false)
}

func lowerCollapse(l *Lowering) *ssa.Value {
	x := l.Tensor("a")
	start, end := l.Dim("start", l.Rank(x)), l.Dim("end", l.Rank(x))
	if end < start {
		l.Fail("axes from %d to %d", start, end)
	}
	sizes := l.sizesOf(x, 0, start)
	sizes = append(sizes, l.sizeProduct(l.sizesOf(x, start, end+1)...))
	return l.reshapeInto(x, append(sizes, l.sizesOf(x, end+1, l.Rank(x))...))
}

func lowerSplitDim(l *Lowering) *ssa.Value {
	x := l.Tensor("a")
	dim := l.Dim("dim", l.Rank(x))
	outer := l.sizeArg("outer_length")
	sizes := append(l.sizesOf(x, 0, dim), outer, l.divSize(l.sizeOf(x, dim), outer))
	return l.reshapeInto(x, append(sizes, l.sizesOf(x, dim+1, l.Rank(x))...))
}
