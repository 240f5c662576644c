package aten

import (
	"github.com/aton-project/aton/ssa"
)

// Layers whose weights torch.utils.mobile_optimizer has packed for XNNPACK: a convolution or a linear layer, clamped.

var prepacked = Defs{
	"prepacked::conv2d_clamp_run":           {Doc: "2-D convolution with packed weights, clamped", Lower: lowerPrepackedConv},
	"prepacked::conv2d_transpose_clamp_run": {Doc: "adjoint of 2-D convolution with packed weights, clamped", Lower: lowerPrepackedConv},
	"prepacked::linear_clamp_run":           {Doc: "x @ w.T + b with packed weights, clamped", Lower: lowerPrepackedLinear},
}

// prepacked gives the n parts of packed weights, as passes/specialize makes them of the state of an object: the weight, the bias or
// None, the ints of a convolution, the bounds.
func (l *Lowering) prepacked(n int) []*ssa.Value {
	parts, ok := ListElems(l.must("W_prepack"))
	if !ok || len(parts) != n {
		l.Fail("the weights are not packed by the program")
	}
	return parts
}

// clamped is y within the last two of the parts, each of which may be None.
func (l *Lowering) clamped(y *ssa.Value, parts []*ssa.Value) *ssa.Value {
	low, _ := LiteralOf(parts[len(parts)-2])
	high, _ := LiteralOf(parts[len(parts)-1])
	if low.IsNone() && high.IsNone() {
		return y
	}
	return l.Aten("aten::clamp", y, low, high)
}

// The state is (weight, bias, stride, padding, dilation, groups, min, max), of a transposed convolution
// (weight, bias, stride, padding, output padding, dilation, groups, min, max): ATen/native/xnnpack/OpContext.h.
func lowerPrepackedConv(l *Lowering) *ssa.Value {
	transposed := l.Node.Kind == "prepacked::conv2d_transpose_clamp_run"
	n := 8
	if transposed {
		n = 9
	}
	parts := l.prepacked(n)
	ints := func(i int) []int64 {
		v, _ := LiteralOf(parts[i])
		list, _ := v.IntList()
		return list
	}
	groups, _ := LiteralOf(parts[n-3])
	c := convArgs{x: l.Tensor("X"), w: l.Value(parts[0]), bias: l.partOr(parts[1]), stride: ints(2), padBegin: ints(3), padEnd: ints(3),
		dilation: ints(n - 4), outPads: []int64{0, 0}, groups: ConstSize(groups.Int()), transposed: transposed}
	if transposed {
		c.outPads = ints(4)
	}
	return l.clamped(l.conv(c), parts)
}

// The state is (weight, bias, min, max).
func lowerPrepackedLinear(l *Lowering) *ssa.Value {
	parts := l.prepacked(4)
	return l.clamped(l.Aten("aten::linear", l.Tensor("X"), l.Value(parts[0]), l.partOr(parts[1])), parts)
}

// partOr is a part of packed weights, nil for None.
func (l *Lowering) partOr(v *ssa.Value) *ssa.Value {
	if p, ok := LiteralOf(v); ok && p.IsNone() {
		return nil
	}
	return l.Value(v)
}
