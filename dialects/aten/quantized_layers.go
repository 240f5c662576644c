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
	if l.DType(l.Value(es[2])).IsFloat() {
		l.Fail("the weights are a table of embeddings")
	}
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
	if name != "linear_leaky_relu" && (strings.HasSuffix(name, "_relu") || strings.Contains(name, "_relu_")) {
		return l.Relu(y)
	}
	return y
}

// convPacked is the convolution of x by packed weights.
func (l *Lowering) convPacked(x *ssa.Value) *ssa.Value {
	c := l.packedWeight().conv
	if c.w == nil {
		l.Fail("the weights are not those of a convolution")
	}
	c.x = x
	rank := l.Rank(c.x)
	lone := rank == l.Rank(c.w)-1 // one dimension, packed as two
	if lone {
		c.x = l.unsqueeze(c.x, int64(rank-1))
	}
	y := l.conv(c)
	if lone {
		y = l.squeeze(y, int64(rank-1))
	}
	return y
}

func lowerQConv(l *Lowering) *ssa.Value {
	y := l.convPacked(l.Tensor("qx"))
	if l.HasArg("qaccum") {
		y = l.Add(y, l.Tensor("qaccum"))
	}
	return l.onGrid(l.relued(y))
}

// lowerQConvDynamic rounds the result, too, to the grid of the operand's range (ATen/native/quantized/cpu/qconv_dynamic.cpp and apply_dynamic of qconv.cpp).
func lowerQConvDynamic(l *Lowering) *ssa.Value {
	x := l.Tensor("qx")
	g := l.rangeGrid(x, tensor.Uint8, l.Bool("reduce_range"))
	return l.snap(l.convPacked(l.snap(x, g)), g)
}

// lowerQThreshold compares with the threshold as it is on the grid of x.
func lowerQThreshold(l *Lowering) *ssa.Value {
	x, g := l.Tensor("qx"), l.quantOf(l.must("qx"))
	limit := l.snap(l.Scalar(tensor.Float32, l.Float("threshold")), g)
	return l.Where(l.Greater(x, limit), x, l.Scalar(tensor.Float32, l.Float("value")))
}

func lowerQMaxPool(l *Lowering) *ssa.Value {
	return l.Aten("aten::"+l.Node.Kind.Name(), l.Tensor("qx"), l.Literal("kernel_size"), l.Literal("stride"), l.Literal("padding"), l.Literal("dilation"), l.Literal("ceil_mode"))
}

func lowerQLinear(l *Lowering) *ssa.Value {
	y := l.linearPacked(l.Tensor("X"), l.packedWeight())
	switch l.Node.Kind {
	case "quantized::linear_leaky_relu":
		y = l.Aten("aten::leaky_relu", y, l.Literal("negative_slope"))
	case "quantized::linear_tanh":
		y = l.Tanh(y)
	}
	return l.onGrid(l.relued(y))
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
	y := l.MatMul(x, l.fromGrid(l.transpose(p.q, 1, 0), g)) // the transposed integers are a constant
	if p.bias != nil {
		y = l.Add(y, p.bias)
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
		return l.onGrid(l.relued(l.Add(a, l.Value(b))))
	}
	g := l.quantOf(l.must("qa"))
	return l.relued(l.snap(l.Add(a, l.Mul(l.Cast(l.gridSteps(g), tensor.Float32), g.scale)), l.shiftedGrid(g)))
}

// gridSteps is the number argument b in steps of a grid.
func (l *Lowering) gridSteps(g grid) *ssa.Value {
	return l.Cast(l.Round(l.Div(l.Scalar(tensor.Float32, l.Float("b")), g.scale)), tensor.Int64)
}

// shiftedGrid is the grid of a quantized tensor plus the number b, which moves the zero point, and stretches the scale where that leaves the range
// (ATen/native/quantized/cpu/BinaryOps.cpp, add_scalar).
func (l *Lowering) shiftedGrid(g grid) grid {
	lo, hi := limits(g.dtype)
	low, high := l.scalarInt(tensor.Int64, lo), l.scalarInt(tensor.Int64, hi)
	z := l.Sub(g.zero, l.gridSteps(g))
	reach := l.Max(l.Sub(high, z), l.Sub(z, low))
	stretch := l.Div(l.Cast(reach, tensor.Float32), l.Scalar(tensor.Float32, float64(hi-lo)))
	inside := l.And(l.LessOrEqual(low, z), l.LessOrEqual(z, high))
	return grid{
		scale: l.Where(inside, g.scale, l.Mul(g.scale, stretch)),
		zero:  l.Min(l.Max(z, low), high), dtype: g.dtype, axis: -1,
	}
}

func lowerQMul(l *Lowering) *ssa.Value {
	if b := l.Arg("qb"); b != nil {
		return l.onGrid(l.relued(l.Mul(l.Tensor("qa"), l.Value(b))))
	}
	return l.relued(l.scale(l.Tensor("qa"), l.Float("b"))) // of the scale alone
}

func lowerQCat(l *Lowering) *ssa.Value {
	es := l.elems("qx")
	if len(es) == 0 {
		l.Fail("cat of no tensors")
	}
	y := l.relued(l.concatV(int64(l.Dim("dim", l.Rank(l.Value(es[0])))), l.Tensors("qx")...))
	g, _ := catGrid(l)
	return l.snap(y, g)
}

// catGrid is the grid of quantized::cat: that of its first operand, unless it names one.
func catGrid(l *Lowering) (grid, bool) {
	g := l.quantOf(l.elems("qx")[0])
	if !l.IsNone("scale") {
		g.scale = l.reshape(l.as("scale", tensor.Float32))
	}
	if !l.IsNone("zero_point") {
		g.zero = l.reshape(l.as("zero_point", tensor.Int64))
	}
	return g, true
}

// sumGrid is the grid of the sum of a quantized tensor and a number; a sum of two tensors names its own.
func sumGrid(l *Lowering) (grid, bool) {
	if l.Arg("qb") != nil {
		return grid{}, false
	}
	return l.shiftedGrid(l.quantOf(l.must("qa"))), true
}

// productGrid is the grid of the product of a quantized tensor and a number; a product of two tensors names its own.
func productGrid(l *Lowering) (grid, bool) {
	if l.Arg("qb") != nil {
		return grid{}, false
	}
	g := l.quantOf(l.must("qa"))
	switch b := l.Float("b"); {
	case b == 0:
		g.scale, g.zero = l.Scalar(tensor.Float32, 0.1), l.scalarInt(tensor.Int64, 0)
	case b < 0:
		lo, hi := limits(g.dtype)
		g.scale, g.zero = l.scale(g.scale, -b), l.Sub(l.scalarInt(tensor.Int64, lo+hi), g.zero)
	default:
		g.scale = l.scale(g.scale, b)
	}
	return g, true
}

func lowerQInstanceNorm(l *Lowering) *ssa.Value {
	return l.onGrid(l.Aten("aten::instance_norm", l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias"), nil, nil, true, 0.1, l.Float("eps"), false))
}

func lowerQBatchNorm(l *Lowering) *ssa.Value {
	return l.onGrid(l.relued(l.Aten("aten::batch_norm", l.Tensor("qx"), l.TensorOr("weight"), l.TensorOr("bias"), l.Tensor("mean"), l.Tensor("var"), false, 0.1, l.Float("eps"), false)))
}

// packedTable reads a table of embeddings of 8 bits: each row has a scale and a bias, q*scale - scale*zero point
// (ATen/native/quantized/cpu/qembeddingbag_prepack.cpp).
func (l *Lowering) packedTable() rowTable {
	es, ok := ListElems(l.must("weight"))
	if !ok || len(es) != 6 || half(es) {
		l.Fail("the table is not packed by the program")
	}
	q, scale, zero := l.Value(es[0]), l.Value(es[1]), l.Value(es[2])
	if !l.DType(zero).IsFloat() || l.Rank(q) != 2 || l.DType(q) != tensor.Uint8 {
		l.Fail("the weights are no table of embeddings of 8 bits")
	}
	bias := l.Neg(l.Mul(scale, zero))
	return rowTable{dtype: tensor.Float32, width: l.sizeOf(q, 1), rows: func(at *ssa.Value) *ssa.Value {
		column := func(v *ssa.Value) *ssa.Value { return l.unsqueeze(l.gather(v, at, 0), int64(l.Rank(at))) }
		return l.Add(l.Mul(l.Cast(l.gather(q, at, 0), tensor.Float32), column(scale)), column(bias))
	}}
}

func lowerQEmbedding(l *Lowering) *ssa.Value {
	return l.packedTable().rows(l.Cast(l.Tensor("indices"), tensor.Int64))
}

func lowerQEmbeddingBag(l *Lowering) *ssa.Value {
	if l.Bool("pruned_weights") && !l.IsNone("compressed_indices_mapping") {
		l.Fail("a table whose rows were pruned")
	}
	idx, mode := l.Cast(l.Tensor("indices"), tensor.Int64), l.Int("mode")
	t := l.packedTable()
	if l.Rank(idx) == 2 { // a row is a bag
		op := map[int64]string{0: "ReduceSum", 1: "ReduceMean"}[mode]
		if op == "" || l.TensorOr("per_sample_weights") != nil {
			l.Fail("rows of indices as bags, with mode %d", mode)
		}
		return l.reduce(op, t.rows(idx), []int64{1}, false)
	}
	y, _ := l.embeddingBag(t, idx, mode, -1)
	return y
}
