package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// masks holds operators that choose elements by a condition.
var masks = Defs{
	"aten::where":          {Doc: "self where the condition holds, else other; without these, nonzero as a list", Gradient: "self: where(condition, grad, 0.0); other: where(condition, 0.0, grad)", Nature: Pointwise, Complex: one(complexWhere), LowerN: lowerWhere},
	"aten::masked_fill":    {Doc: "value where mask holds, else self", Gradient: "self: masked_fill(grad, mask, 0)", Nature: Pointwise, Layout: RowMajor, Complex: one(complexMaskedFill), Type: ofFill, Lower: lowerMaskedFill},
	"aten::masked_select":  {Doc: "the elements where mask holds, in one dimension", Gradient: "self: sum_to_size(masked_scatter(zeros_like(self * mask), mask, grad), size(self))", Nature: Moves, Lower: lowerMaskedSelect},
	"aten::masked_scatter": {Doc: "the elements of source, in order, where mask holds, else self", Gradient: "self: sum_to_size(masked_fill(grad, mask, 0), size(self))", Nature: Scatters, Layout: RowMajor, Lower: lowerMaskedScatter},
	"aten::nonzero":        {Doc: "the indices of elements that are not 0, a row for each", Gradient: NoGradient, Layout: AnyLayout, Complex: ofNonzero, Lower: lowerNonzero},
	"aten::argwhere":       {Doc: "nonzero", Layout: AnyLayout, Complex: ofNonzero, Lower: lowerNonzero},
	"aten::nonzero_numpy":  {Doc: "nonzero as a list of vectors", Complex: ofNonzero, LowerN: func(l *Lowering) []*ssa.Value { return l.nonzeroList(l.Tensor("self")) }},
	"aten::nonzero_static": {Doc: "nonzero of a given length, filled up or cut", Complex: ofNonzero, Lower: lowerNonzeroStatic},
}

// boolOf is a condition as bool; masks may be uint8.
func (l *Lowering) boolOf(name string) *ssa.Value { return l.as(name, tensor.Bool) }

func lowerWhere(l *Lowering) []*ssa.Value {
	if !l.HasArg("self") {
		return l.nonzeroList(l.Tensor("condition"))
	}
	vs, d := l.promoted("self", "other")
	if d.IsComplex() {
		l.Fail("ONNX has no arithmetic on complex numbers")
	}
	return []*ssa.Value{l.Where(l.boolOf("condition"), vs[0], vs[1])}
}

func lowerMaskedFill(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if d := l.DType(l.Tensor("mask")); !isMask(d) {
		// PyTorch 2 refuses them; before, it read the first byte of each element, which of -inf is 0
		l.Fail("masked_fill with a mask of %v; PyTorch fills where a mask of bool or uint8 is true", d)
	}
	return l.Where(l.boolOf("mask"), l.as("value", l.DType(x)), x)
}

// isMask reports that PyTorch takes tensors of a dtype as masks.
func isMask(d tensor.DType) bool { return d == tensor.Bool || d == tensor.Uint8 }

func lowerMaskedSelect(l *Lowering) *ssa.Value {
	x, mask := l.Tensor("self"), l.boolOf("mask")
	xt, mt := x.Tensor(), mask.Tensor()
	if xt == nil || mt == nil || !xt.Ranked || !mt.Ranked {
		shape := l.shapeOf(l.And(mask, l.Cast(x, tensor.Bool)))
		return l.Compress(l.Expand(x, shape), l.reshape(l.Expand(mask, shape), -1))
	}
	sizes := l.broadcastSizes(l.allSizes(x), l.allSizes(mask))
	x, mask = l.expandTo(x, sizes), l.expandTo(mask, sizes)
	switch len(sizes) {
	case 0:
		x, mask = l.unsqueeze(x, 0), l.unsqueeze(mask, 0)
	case 1:
	default:
		return l.Compress(x, l.reshape(mask, -1))
	}
	return l.Compress(x, mask, onnx.Axis(0))
}

func lowerMaskedScatter(l *Lowering) *ssa.Value {
	x, mask := l.Tensor("self"), l.boolOf("mask")
	source := l.reshape(l.Cast(l.Tensor("source"), l.DType(x)), -1)
	sizes := l.broadcastSizes(l.allSizes(x), l.allSizes(mask))
	x, mask = l.expandTo(x, sizes), l.expandTo(mask, sizes)
	rank := len(sizes)
	l.oneDim(&x, &mask)
	idx := l.transpose(l.NonZero(mask), 1, 0)
	count := l.sizeOf(idx, 0)
	return l.likeRank(l.scatterND(x, idx, l.sliceDim(source, 0, ConstSize(0), count, ConstSize(1))), rank)
}

// nonzeroInput gives ONNX NonZero a type whose conversion does not round to 0.
func (l *Lowering) nonzeroInput(x *ssa.Value) *ssa.Value {
	switch l.DType(x) {
	case tensor.Bool, tensor.Float32, tensor.Int64, tensor.Int32, tensor.Uint8:
		return x
	}
	return l.Cast(x, tensor.Bool)
}

// nonzeroColumns gives the indices of elements that are not 0, a column for each.
func (l *Lowering) nonzeroColumns(x *ssa.Value) *ssa.Value { return l.NonZero(l.nonzeroInput(x)) }

func lowerNonzero(l *Lowering) *ssa.Value { return l.nonzero(l.Tensor("self")) }

func (l *Lowering) nonzero(x *ssa.Value) *ssa.Value {
	switch l.Rank(x) {
	case 0:
		// one row without columns, or none
		count := l.Cast(l.Cast(x, tensor.Bool), tensor.Int64)
		return l.fill(l.concatV(0, l.unsqueeze(count, 0), l.i64(0)), tensor.Int64, ssa.Int(0))
	case 1:
		return l.reshape(l.nonzeroColumns(x), -1, 1)
	}
	return l.transpose(l.nonzeroColumns(x), 1, 0)
}

func (l *Lowering) nonzeroList(x *ssa.Value) []*ssa.Value {
	return l.nonzeroRows(l.nonzeroInput(l.atLeast1(x)))
}

func lowerNonzeroStatic(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	size := l.sizeArg("size")
	rows := l.nonzero(x)
	if l.Rank(x) == 0 {
		return l.fill(l.sizeTensor([]Size{size, ConstSize(0)}), tensor.Int64, ssa.Int(0))
	}
	// fill up with as many rows as may be missing, then cut
	filler := l.fill(l.sizeTensor([]Size{size, ConstSize(int64(l.Rank(x)))}), tensor.Int64, ssa.Int(l.Int("fill_value")))
	return l.sliceDim(l.concatV(0, rows, filler), 0, ConstSize(0), size, ConstSize(1))
}
