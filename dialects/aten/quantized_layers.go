package aten

import (
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// packedWeight is the operand of a quantized layer, as passes/specialize makes
// it of a packed object: (integers, scales, zero points, axis, bias, ints).
type packedWeight struct {
	q    *ssa.Value // the integers of the weight
	grid grid
	bias *ssa.Value // nil if there is none
	conv convArgs   // of a convolution
}

func (l *Lowering) packedWeight() packedWeight {
	for _, n := range []string{"weight", "packed_weight", "W_prepack"} {
		if !l.HasArg(n) {
			continue
		}
		return l.packedOf(l.must(n))
	}
	l.Fail("this overload has no packed weights")
	return packedWeight{}
}

// packedOf reads packed weights.
func (l *Lowering) packedOf(v *ssa.Value) packedWeight {
	es, ok := ListElems(v)
	if !ok || len(es) != 6 {
		l.Fail("the weights are not packed by the program")
	}
	axis, _ := LiteralOf(es[3])
	ints, _ := LiteralOf(es[5])
	if half(es) {
		l.Fail("the weights have 16 bits, and the operator takes those of 8 bits")
	}
	p := packedWeight{}
	if bias, ok := LiteralOf(es[4]); !ok || !bias.IsNone() {
		p.bias = l.Value(es[4])
	}
	q := l.Value(es[0])
	p.q, p.grid = q, grid{l.Value(es[1]), l.Cast(l.Value(es[2]), tensor.Int64), l.DType(q), int(axis.Int())}
	list, _ := ints.IntList()
	if n := l.Rank(q) - 2; n > 0 {
		if len(list) != 4*n+2 {
			l.Fail("the weights are not those of a convolution")
		}
		p.conv = convArgs{
			w: l.fromGrid(q, p.grid), bias: p.bias, stride: list[:n], padBegin: list[n : 2*n], padEnd: list[n : 2*n], dilation: list[2*n : 3*n],
			outPads: list[3*n : 4*n], groups: ConstSize(list[4*n]), transposed: list[4*n+1] != 0,
		}
	}
	return p
}

// half reports packed weights of 16 bits, which are float32 here and have no grid.
func half(packed []*ssa.Value) bool {
	scale, known := LiteralOf(packed[1])
	return known && scale.IsNone()
}

// halfOf reads packed weights of 16 bits: (O, I), and the bias, nil if there is none. ok is false for others.
func (l *Lowering) halfOf(v *ssa.Value) (w, bias *ssa.Value, ok bool) {
	es, listed := ListElems(v)
	if !listed || len(es) != 6 || !half(es) {
		return nil, nil, false
	}
	if none, known := LiteralOf(es[4]); !known || !none.IsNone() {
		bias = l.Value(es[4])
	}
	return l.Value(es[0]), bias, true
}

// lowerHLinearDynamic is a linear layer whose weights were rounded to 16 bits; it computes in float32.
func lowerHLinearDynamic(l *Lowering) *ssa.Value {
	w, bias, ok := l.halfOf(l.must("W_prepack"))
	if !ok {
		l.Fail("the weights are not packed by the program to 16 bits")
	}
	return l.relued(l.linear(l.Tensor("X"), w, bias))
}

// relued is relu of y if the operator's name says so.
func (l *Lowering) relued(y *ssa.Value) *ssa.Value {
	name := l.Node.Kind.Name()
	if strings.HasSuffix(name, "_relu") || strings.Contains(name, "_relu_") {
		return l.Op("Relu", y)
	}
	return y
}

func lowerQConv(l *Lowering) *ssa.Value {
	c := l.packedWeight().conv
	if c.w == nil {
		l.Fail("the weights are not those of a convolution")
	}
	c.x = l.Tensor("qx")
	rank := l.Rank(c.x)
	lone := rank == l.Rank(c.w)-1 // one dimension, packed as two
	if lone {
		c.x = l.unsqueeze(c.x, int64(rank-1))
	}
	y := l.conv(c)
	if lone {
		y = l.squeeze(y, int64(rank-1))
	}
	return l.onGrid(l.relued(y))
}

func lowerQLinear(l *Lowering) *ssa.Value {
	return l.onGrid(l.relued(l.linearPacked(l.Tensor("X"), l.packedWeight())))
}

func (l *Lowering) linearPacked(x *ssa.Value, p packedWeight) *ssa.Value {
	if p.bias != nil && l.Rank(x) == 2 {
		return l.linear(x, l.fromGrid(p.q, p.grid), p.bias)
	}
	l.Rank(x)
	if shape, static := x.Tensor().Static(); p.bias != nil && static && len(shape) > 2 {
		// onnxruntime makes of a MatMul and an Add of known sizes a product that rounds x to 8 bits once more
		k := shape[len(shape)-1]
		rows := l.reshape(x, -1, k)
		y := l.linear(rows, l.fromGrid(p.q, p.grid), p.bias)
		return l.reshapeSizes(y, append(l.sizesOf(x, 0, len(shape)-1), l.sizeOf(y, 1))...)
	}
	g := p.grid
	if g.axis >= 0 {
		g.axis = 1 - g.axis
	}
	y := l.Op("MatMul", x, l.fromGrid(l.transpose(p.q, 1, 0), g)) // the transposed integers are a constant
	if p.bias != nil {
		y = l.add(y, p.bias)
	}
	return y
}

func lowerQLinearDynamic(l *Lowering) *ssa.Value {
	p := l.packedWeight()
	x := l.Tensor("X")
	return l.relued(l.linearPacked(l.snap(x, l.rangeGrid(x, tensor.Uint8, l.Bool("reduce_range"))), p))
}

func lowerQAdd(l *Lowering) *ssa.Value {
	a, b := l.Tensor("qa"), l.Arg("qb")
	if b != nil {
		return l.onGrid(l.relued(l.add(a, l.Value(b))))
	}
	// ATen/native/quantized/cpu/BinaryOps.cpp, add_scalar: the number moves the
	// zero point, and stretches the scale if that leaves the range.
	g := l.quantOf(l.must("qa"))
	return l.relued(l.snap(l.add(a, l.mul(l.Cast(l.gridSteps(g), tensor.Float32), g.scale)), l.shiftedGrid(g)))
}

// gridSteps is the number argument b in steps of a grid.
func (l *Lowering) gridSteps(g grid) *ssa.Value {
	return l.Cast(l.Op("Round", l.div(l.Scalar(tensor.Float32, l.Float("b")), g.scale)), tensor.Int64)
}

// shiftedGrid is the grid of a quantized tensor plus the number b.
func (l *Lowering) shiftedGrid(g grid) grid {
	lo, hi := limits(g.dtype)
	low, high := l.scalarInt(tensor.Int64, lo), l.scalarInt(tensor.Int64, hi)
	z := l.sub(g.zero, l.gridSteps(g))
	reach := l.Op("Max", l.sub(high, z), l.sub(z, low))
	stretch := l.div(l.Cast(reach, tensor.Float32), l.Scalar(tensor.Float32, float64(hi-lo)))
	inside := l.and(l.lessEqual(low, z), l.lessEqual(z, high))
	return grid{
		scale: l.where(inside, g.scale, l.mul(g.scale, stretch)),
		zero:  l.Op("Min", l.Op("Max", z, low), high), dtype: g.dtype, axis: -1,
	}
}

func lowerQMul(l *Lowering) *ssa.Value {
	if b := l.Arg("qb"); b != nil {
		return l.onGrid(l.relued(l.mul(l.Tensor("qa"), l.Value(b))))
	}
	return l.relued(l.scale(l.Tensor("qa"), l.Float("b"))) // of the scale alone
}

func lowerQCat(l *Lowering) *ssa.Value {
	es := l.elems("qx")
	if len(es) == 0 {
		l.Fail("cat of no tensors")
	}
	y := l.relued(l.concatV(int64(l.Dim("dim", l.Rank(l.Value(es[0])))), l.Tensors("qx")...))
	return l.snap(y, l.catGrid())
}

// catGrid is the grid of quantized::cat: that of its first operand, unless it names one.
func (l *Lowering) catGrid() grid {
	g := l.quantOf(l.elems("qx")[0])
	if !l.IsNone("scale") {
		g.scale = l.reshape(l.as("scale", tensor.Float32))
	}
	if !l.IsNone("zero_point") {
		g.zero = l.reshape(l.as("zero_point", tensor.Int64))
	}
	return g
}

func lowerQInstanceNorm(l *Lowering) *ssa.Value {
	return l.onGrid(l.Aten("aten::instance_norm", l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias"), nil, nil, true, 0.1, l.Float("eps"), false))
}

func lowerQBatchNorm(l *Lowering) *ssa.Value {
	return l.onGrid(l.relued(l.Aten("aten::batch_norm", l.Tensor("qx"), l.TensorOr("weight"), l.TensorOr("bias"), l.Tensor("mean"), l.Tensor("var"), false, 0.1, l.Float("eps"), false)))
}
