package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// padding holds torch.nn.functional.pad and the operators it calls
// (ATen/native/PadNd.cpp). Pads come in pairs, the last dimension first; a
// negative one crops.
var padding = Defs{
	"aten::constant_pad_nd":   {Doc: "pads with a value", Gradient: "self: constant_pad_nd(grad, negatives(pad), 0)", Nature: Moves, Lower: func(l *Lowering) *ssa.Value { return l.padConstant(l.Tensor("self"), l.sizes("pad")) }},
	"aten::pad":               {Doc: "pads with a value, a reflection, the edge or the other side", Gradient: "[mode='constant'] self: constant_pad_nd(grad, negatives(pad), 0)", Nature: Moves, Lower: lowerPad},
	"aten::_pad_enum":         {Doc: "pad with the mode as a number", Lower: lowerPad},
	"aten::_pad_circular":     {Doc: "pads with the other side", Nature: Moves, Batching: FoldsImages, Lower: func(l *Lowering) *ssa.Value { return l.padCircular(l.Tensor("self"), l.sizes("pad")) }},
	"aten::reflection_pad1d":  {Doc: "pads with a reflection without the edge", Gradient: "self: reflection_pad1d_backward(grad, self, padding)", Nature: Moves, Batching: FoldsImages, Autocast: Float32OnCPU, Lower: lowerPadMode("reflect")},
	"aten::reflection_pad2d":  {Doc: "pads with a reflection without the edge", Gradient: "self: reflection_pad2d_backward(grad, self, padding)", Nature: Moves, Batching: FoldsImages, Autocast: Float32OnCPU, Lower: lowerPadMode("reflect")},
	"aten::reflection_pad3d":  {Doc: "pads with a reflection without the edge", Gradient: "self: reflection_pad3d_backward(grad, self, padding)", Nature: Moves, Batching: FoldsImages, Lower: lowerPadMode("reflect")},
	"aten::replication_pad1d": {Doc: "pads with the edge", Gradient: "self: replication_pad1d_backward(grad, self, padding)", Nature: Moves, Batching: FoldsImages, Autocast: Float32OnCPU, Lower: lowerPadMode("edge")},
	"aten::replication_pad2d": {Doc: "pads with the edge", Gradient: "self: replication_pad2d_backward(grad, self, padding)", Nature: Moves, Batching: FoldsImages, Autocast: Float32OnCPU, Lower: lowerPadMode("edge")},
	"aten::replication_pad3d": {Doc: "pads with the edge", Gradient: "self: replication_pad3d_backward(grad, self, padding)", Nature: Moves, Batching: FoldsImages, Autocast: Float32OnCPU, Lower: lowerPadMode("edge")},
}

func lowerPadMode(mode string) func(l *Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value { return l.padMode(l.Tensor("self"), l.sizes("padding"), mode) }
}

func lowerPad(l *Lowering) *ssa.Value {
	x, pad := l.Tensor("self"), l.sizes("pad")
	mode := "constant"
	if lit := l.Literal("mode"); lit.Kind == ssa.IntLit {
		// at::padding_mode
		modes := []string{"reflect", "replicate", "circular", "constant"}
		if lit.Int() < 0 || lit.Int() >= int64(len(modes)) {
			l.Fail("unknown padding mode %d", lit.Int())
		}
		mode = modes[lit.Int()]
	} else {
		mode = lit.Str()
	}
	switch mode {
	case "constant":
		return l.padConstant(x, pad)
	case "reflect":
		return l.padMode(x, pad, "reflect")
	case "replicate":
		return l.padMode(x, pad, "edge")
	case "circular":
		return l.padCircular(x, pad)
	}
	l.Fail("unknown padding mode %q", mode)
	return nil
}

// padPairs gives the pads in front of and behind each dimension.
func (l *Lowering) padPairs(x *ssa.Value, pad []Size) (before, after []Size) {
	rank := l.Rank(x)
	if len(pad)%2 != 0 || len(pad) > 2*rank {
		l.Fail("%d pads for a tensor of rank %d", len(pad), rank)
	}
	before, after = repeatSize(ConstSize(0), int64(rank)), repeatSize(ConstSize(0), int64(rank))
	for i := 0; 2*i < len(pad); i++ {
		before[rank-1-i], after[rank-1-i] = pad[2*i], pad[2*i+1]
	}
	return before, after
}

func (l *Lowering) padConstant(x *ssa.Value, pad []Size) *ssa.Value {
	before, after := l.padPairs(x, pad)
	value := l.Like(x, 0)
	if !l.IsNone("value") {
		value = l.reshape(l.as("value", l.DType(x)))
	}
	return l.pad(x, before, after, value)
}

// pad pads with a rank 0 value of x's type; negative pads crop.
func (l *Lowering) pad(x *ssa.Value, before, after []Size, value *ssa.Value) *ssa.Value {
	if allZero(before) && allZero(after) {
		return x
	}
	var b, a []Size
	crop := false
	for i := range before {
		crop = crop || before[i].least() < 0 || after[i].least() < 0
	}
	if crop {
		x, b, a = l.cropNegative(x, before, after)
		if allZero(b) && allZero(a) {
			return x
		}
	} else {
		b, a = before, after
	}
	return l.Pad(x, l.sizeTensor(append(append([]Size(nil), b...), a...)), value, nil)
}

func allZero(ss []Size) bool {
	for _, s := range ss {
		if n, ok := s.Int(); !ok || n != 0 {
			return false
		}
	}
	return true
}

// padZeros pads one dimension with zeros.
func (l *Lowering) padZeros(x *ssa.Value, dim int, before, after Size) *ssa.Value {
	b, a := repeatSize(ConstSize(0), int64(l.Rank(x))), repeatSize(ConstSize(0), int64(l.Rank(x)))
	b[dim], a[dim] = before, after
	return l.pad(x, b, a, l.Like(x, 0))
}

// cropNegative cuts off what negative pads ask for and gives the pads that are left.
func (l *Lowering) cropNegative(x *ssa.Value, before, after []Size) (y *ssa.Value, b, a []Size) {
	y = x
	b, a = append([]Size(nil), before...), append([]Size(nil), after...)
	zero := ConstSize(0)
	for i := range before {
		if before[i].least() >= 0 && after[i].least() >= 0 {
			continue
		}
		start := l.greatestSize(l.subSize(zero, before[i]), zero)
		end := ConstSize(toEnd)
		if after[i].least() < 0 {
			if n, ok := after[i].Int(); ok {
				end = ConstSize(n)
			} else {
				end = l.addSize(l.sizeOf(x, i), l.leastSize(after[i], zero))
			}
		}
		y = l.sliceDim(y, i, start, end, ConstSize(1))
		b[i], a[i] = l.greatestSize(before[i], zero), l.greatestSize(after[i], zero)
	}
	return y, b, a
}

// padMode pads by reflection or with the edge. The elements come from the whole
// input, so what negative pads crop is cut off at last.
func (l *Lowering) padMode(x *ssa.Value, pad []Size, mode string) *ssa.Value {
	before, after := l.padPairs(x, pad)
	zero := ConstSize(0)
	b, a := make([]Size, len(before)), make([]Size, len(after))
	for i := range before {
		b[i], a[i] = before[i], after[i]
		if b[i].least() < 0 {
			b[i] = l.greatestSize(b[i], zero)
		}
		if a[i].least() < 0 {
			a[i] = l.greatestSize(a[i], zero)
		}
	}
	y := x
	if !allZero(b) || !allZero(a) {
		y = l.Pad(x, l.sizeTensor(append(append([]Size(nil), b...), a...)), nil, nil, onnx.Mode(mode))
	}
	for i := range before {
		before[i], after[i] = l.leastSize(before[i], zero), l.leastSize(after[i], zero)
	}
	y, _, _ = l.cropNegative(y, before, after)
	return y
}

// padCircular pads with the other side of what negative pads leave.
func (l *Lowering) padCircular(x *ssa.Value, pad []Size) *ssa.Value {
	before, after := l.padPairs(x, pad)
	x, before, after = l.cropNegative(x, before, after)
	zero, one := ConstSize(0), ConstSize(1)
	for i := range before {
		var parts []*ssa.Value
		if n, ok := before[i].Int(); !ok || n > 0 {
			start := l.subSize(l.sizeOf(x, i), before[i])
			if ok {
				start = ConstSize(-n)
			}
			parts = append(parts, l.sliceDim(x, i, start, ConstSize(toEnd), one))
		}
		parts = append(parts, x)
		if n, ok := after[i].Int(); !ok || n > 0 {
			parts = append(parts, l.sliceDim(x, i, zero, after[i], one))
		}
		x = l.concatV(int64(i), parts...)
	}
	return x
}

// emptyConst makes an empty constant.
func (l *Lowering) emptyConst(d tensor.DType, shape ...int64) *ssa.Value {
	return l.Const(tensor.New(d, shape, nil))
}
