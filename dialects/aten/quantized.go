package aten

import (
	"math"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// quantized holds PyTorch's eager quantization. In ONNX a quantized tensor is
// the real numbers that it stands for, by QuantizeLinear and DequantizeLinear;
// operators of runtimes find their integer forms in these pairs. What comes out
// of a quantized operator is put on the grid that the operator names, or, if
// it names none, on that of its operand: quantOf finds it in the program.
var quantized = Defs{
	"aten::quantize_per_tensor":  {Doc: "the multiple of scale nearest to x, of those that an integer of the type counts from zero_point", namedGrid: tensorGrid, Lower: lowerQuantize},
	"aten::quantize_per_channel": {Doc: "quantize_per_tensor with a scale and a zero point for each index of an axis", namedGrid: channelGrid, Lower: lowerQuantize},
	"aten::dequantize":           {Doc: "the real numbers of a quantized tensor", LowerN: lowerDequantize},
	"aten::int_repr": {Doc: "the integers of a quantized tensor", Lower: func(l *Lowering) *ssa.Value {
		q := l.quantOf(l.must("self"))
		return l.toGrid(l.Tensor("self"), q)
	}},
	"aten::q_scale": {Doc: "the scale of a quantized tensor", Lower: func(l *Lowering) *ssa.Value {
		return l.Cast(l.quantOf(l.must("self")).scale, tensor.Float64)
	}},
	"aten::q_zero_point": {Doc: "the zero point of a quantized tensor", Lower: func(l *Lowering) *ssa.Value {
		return l.Cast(l.quantOf(l.must("self")).zero, tensor.Int64)
	}},
	"aten::_make_per_tensor_quantized_tensor":          {Doc: "the quantized tensor that integers stand for", namedGrid: madeGrid, Lower: lowerQMake},
	"aten::_make_per_channel_quantized_tensor":         {Doc: "the quantized tensor that integers stand for, with a scale and a zero point for each index of an axis", namedGrid: madeGrid, Lower: lowerQMake},
	"aten::fake_quantize_per_tensor_affine":            {Doc: "x on the grid of scale and zero_point, between those of quant_min and quant_max", Autocast: Float32OnCPU, Lower: func(l *Lowering) *ssa.Value { return l.fakeQuantize()[0] }},
	"aten::fake_quantize_per_channel_affine":           {Doc: "fake_quantize_per_tensor_affine with a scale and a zero point for each index of an axis", Lower: func(l *Lowering) *ssa.Value { return l.fakeQuantize()[0] }},
	"aten::fake_quantize_per_tensor_affine_cachemask":  {Doc: "fake_quantize_per_tensor_affine, and what was not clamped", LowerN: (*Lowering).fakeQuantize},
	"aten::fake_quantize_per_channel_affine_cachemask": {Doc: "fake_quantize_per_channel_affine, and what was not clamped", LowerN: (*Lowering).fakeQuantize},
	"aten::quantize_per_tensor_dynamic":                {Doc: "quantize_per_tensor with the scale and zero point of the range of x", namedGrid: dynamicGrid, Lower: lowerQuantize},
	"quantized::conv1d":                                {Doc: "1-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv1d_relu":                           {Doc: "relu of a 1-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv2d":                                {Doc: "2-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv2d_relu":                           {Doc: "relu of a 2-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv3d":                                {Doc: "3-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv3d_relu":                           {Doc: "relu of a 3-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv_transpose1d":                      {Doc: "adjoint of 1-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv_transpose2d":                      {Doc: "adjoint of 2-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv_transpose3d":                      {Doc: "adjoint of 3-D convolution of quantized tensors", Lower: lowerQConv},
	"quantized::conv1d_dynamic":                        {Doc: "1-D convolution with x quantized by its range", Lower: lowerQConvDynamic},
	"quantized::conv_transpose1d_dynamic":              {Doc: "adjoint of 1-D convolution with x quantized by its range", Lower: lowerQConvDynamic},
	"quantized::conv2d_dynamic":                        {Doc: "2-D convolution with x quantized by its range", Lower: lowerQConvDynamic},
	"quantized::conv_transpose2d_dynamic":              {Doc: "adjoint of 2-D convolution with x quantized by its range", Lower: lowerQConvDynamic},
	"quantized::conv3d_dynamic":                        {Doc: "3-D convolution with x quantized by its range", Lower: lowerQConvDynamic},
	"quantized::conv_transpose3d_dynamic":              {Doc: "adjoint of 3-D convolution with x quantized by its range", Lower: lowerQConvDynamic},
	"quantized::conv2d_add":                            {Doc: "2-D convolution of quantized tensors, plus one", Lower: lowerQConv},
	"quantized::conv2d_add_relu":                       {Doc: "relu of a 2-D convolution of quantized tensors, plus one", Lower: lowerQConv},
	"quantized::linear":                                {Doc: "x @ w.T + b of quantized tensors", Lower: lowerQLinear},
	"quantized::linear_relu":                           {Doc: "relu of x @ w.T + b of quantized tensors", Lower: lowerQLinear},
	"quantized::linear_leaky_relu":                     {Doc: "leaky relu of x @ w.T + b of quantized tensors", Lower: lowerQLinear},
	"quantized::linear_tanh":                           {Doc: "tanh of x @ w.T + b of quantized tensors", Lower: lowerQLinear},
	"quantized::linear_dynamic":                        {Doc: "x @ w.T + b with x quantized by its range", Lower: lowerQLinearDynamic},
	"quantized::linear_dynamic_fp16":                   {Doc: "x @ w.T + b with w rounded to 16 bits", Lower: lowerHLinearDynamic},
	"quantized::linear_relu_dynamic_fp16":              {Doc: "relu of x @ w.T + b with w rounded to 16 bits", Lower: lowerHLinearDynamic},
	"quantized::linear_relu_dynamic":                   {Doc: "relu of x @ w.T + b with x quantized by its range", Lower: lowerQLinearDynamic},
	"quantized::add":                                   {Doc: "a + b of quantized tensors", namedGrid: sumGrid, Lower: lowerQAdd},
	"quantized::add_relu":                              {Doc: "relu of a + b of quantized tensors", namedGrid: sumGrid, Lower: lowerQAdd},
	"quantized::add_scalar":                            {Doc: "a + b of a quantized tensor and a number", namedGrid: sumGrid, Lower: lowerQAdd},
	"quantized::add_scalar_relu":                       {Doc: "relu of a + b of a quantized tensor and a number", namedGrid: sumGrid, Lower: lowerQAdd},
	"quantized::mul":                                   {Doc: "a * b of quantized tensors", namedGrid: productGrid, Lower: lowerQMul},
	"quantized::mul_relu":                              {Doc: "relu of a * b of quantized tensors", namedGrid: productGrid, Lower: lowerQMul},
	"quantized::mul_scalar":                            {Doc: "a * b of a quantized tensor and a number", namedGrid: productGrid, Lower: lowerQMul},
	"quantized::mul_scalar_relu":                       {Doc: "relu of a * b of a quantized tensor and a number", namedGrid: productGrid, Lower: lowerQMul},
	"quantized::matmul":                                {Doc: "a @ b of quantized tensors", Lower: func(l *Lowering) *ssa.Value { return l.onGrid(l.MatMul(l.Tensor("qa"), l.Tensor("qb"))) }},
	"quantized::cat":                                   {Doc: "quantized tensors joined along dim", namedGrid: catGrid, Lower: lowerQCat},
	"quantized::cat_relu":                              {Doc: "relu of quantized tensors joined along dim", namedGrid: catGrid, Lower: lowerQCat},
	"quantized::sigmoid":                               onGridOf("aten::sigmoid", "qx"),
	"quantized::hardswish":                             onGridOf("aten::hardswish", "input"),
	"quantized::leaky_relu":                            onGridOf("aten::leaky_relu", "qx", "negative_slope"),
	"quantized::prelu":                                 {Why: "PyTorch's kernel multiplies what is above zero by the slope, too: no prelu"},
	"quantized::elu":                                   onGridOf("aten::elu", "self", "alpha", "scale", "input_scale"),
	"quantized::celu":                                  onGridOf("aten::celu", "self", "alpha"),
	"quantized::softmax":                               onGridOf("aten::softmax.int", "qx", "dim"),
	"quantized::layer_norm":                            onGridOf("aten::layer_norm", "input", "normalized_shape", "weight", "bias", "eps"),
	"quantized::group_norm":                            onGridOf("aten::group_norm", "input", "num_groups", "weight", "bias", "eps"),
	"quantized::instance_norm":                         {Doc: "aten::instance_norm of quantized tensors", Lower: lowerQInstanceNorm},
	"quantized::batch_norm":                            {Doc: "aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::batch_norm1d":                          {Doc: "aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::batch_norm2d":                          {Doc: "aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::batch_norm3d":                          {Doc: "aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::batch_norm_relu":                       {Doc: "relu of aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::batch_norm1d_relu":                     {Doc: "relu of aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::batch_norm2d_relu":                     {Doc: "relu of aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::batch_norm3d_relu":                     {Doc: "relu of aten::batch_norm of quantized tensors", Lower: lowerQBatchNorm},
	"quantized::relu6":                                 {Doc: "aten::relu6 of a quantized tensor", Grid: SnapsToGrid, Lower: func(l *Lowering) *ssa.Value { return l.Aten("aten::relu6", l.Tensor("qx")) }},
	"quantized::clamp": {Doc: "aten::clamp of a quantized tensor", Grid: SnapsToGrid, Lower: func(l *Lowering) *ssa.Value {
		return l.Aten("aten::clamp", l.Tensor("qx"), l.Literal("min"), l.Literal("max"))
	}},
	"quantized::threshold":          {Doc: "aten::threshold of a quantized tensor", Grid: SnapsToGrid, Lower: lowerQThreshold},
	"quantized::max_pool1d":         {Doc: "aten::max_pool1d of a quantized tensor", Grid: KeepsGrid, Lower: lowerQMaxPool},
	"quantized::max_pool2d":         {Doc: "aten::max_pool2d of a quantized tensor", Grid: KeepsGrid, Lower: lowerQMaxPool},
	"quantized::embedding_byte":     {Doc: "rows of a table of 8 bits, each of which has a scale and a zero point", Lower: lowerQEmbedding},
	"quantized::embedding_bag_byte": {Doc: "sums or means of bags of rows of a table of 8 bits", Lower: lowerQEmbeddingBag},
	"quantized::dropout":            {Doc: "a quantized tensor: it is not for training", Grid: KeepsGrid, Lower: func(l *Lowering) *ssa.Value { return l.Tensor("self") }},
	"aten::fake_quantize_per_tensor_affine_cachemask_backward": {Doc: "gradient where nothing was clamped", Lower: func(l *Lowering) *ssa.Value {
		return l.Mul(l.Tensor("grad"), l.Cast(l.Tensor("mask"), l.DType(l.Tensor("grad"))))
	}},
}

// grid is the numbers that a quantized tensor can hold: (q - zero) * scale for
// integers q of the type. Scale and zero are ONNX values of rank 0, or of rank 1 along an axis.
type grid struct {
	scale, zero *ssa.Value // float32, int64
	dtype       tensor.DType
	axis        int // -1: one scale for all
}

// gridArgs is the grid that arguments of an op name.
func (l *Lowering) gridArgs(scale, zero string, d tensor.DType) grid {
	return grid{l.reshape(l.as(scale, tensor.Float32)), l.reshape(l.as(zero, tensor.Int64)), d, -1}
}

// intType is the integers of a quantized type.
func (l *Lowering) intType(d tensor.DType) tensor.DType {
	switch d {
	case tensor.QInt8:
		return tensor.Int8
	case tensor.QUint8:
		return tensor.Uint8
	case tensor.QInt32:
		return tensor.Int32
	}
	l.Fail("quantization to %v", d)
	return d
}

// limits are the least and the greatest integer.
func limits(d tensor.DType) (lo, hi int64) {
	switch d {
	case tensor.Int8:
		return math.MinInt8, math.MaxInt8
	case tensor.Uint8:
		return 0, math.MaxUint8
	}
	return math.MinInt32, math.MaxInt32
}

// toGrid gives the integers of the grid points nearest to x, ties to the even one.
func (l *Lowering) toGrid(x *ssa.Value, g grid) *ssa.Value {
	x = l.Cast(x, tensor.Float32)
	if l.linear8(g.dtype, true) {
		return l.QuantizeLinear(x, g.scale, l.Cast(g.zero, g.dtype), axisAttr(g.axis)...)
	}
	rank := l.Rank(x)
	wide := tensor.Float32
	if g.dtype == tensor.Int32 { // it has more digits
		wide = tensor.Float64
	}
	q := l.Round(l.Div(l.Cast(x, wide), l.Cast(l.along(g.scale, g.axis, rank), wide)))
	q = l.Add(q, l.Cast(l.along(g.zero, g.axis, rank), wide))
	lo, hi := limits(g.dtype)
	return l.Cast(l.Clip(q, l.Scalar(wide, float64(lo)), l.Scalar(wide, float64(hi))), g.dtype)
}

// fromGrid gives the numbers of integers.
func (l *Lowering) fromGrid(q *ssa.Value, g grid) *ssa.Value {
	if l.linear8(g.dtype, true) {
		return l.DequantizeLinear(q, g.scale, l.Cast(g.zero, g.dtype), axisAttr(g.axis)...)
	}
	return l.unpaired(q, g)
}

// unpaired is fromGrid in plain arithmetic. onnxruntime takes the product with a DequantizeLinear of weights for one that may
// round what it multiplies to 8 bits (MatMulNBits), which it may not where PyTorch has put that on another grid.
func (l *Lowering) unpaired(q *ssa.Value, g grid) *ssa.Value {
	rank := l.Rank(q)
	steps := l.Sub(l.Cast(q, tensor.Int64), l.along(g.zero, g.axis, rank))
	return l.Mul(l.Cast(steps, tensor.Float32), l.along(g.scale, g.axis, rank))
}

func (l *Lowering) snap(x *ssa.Value, g grid) *ssa.Value { return l.fromGrid(l.toGrid(x, g), g) }

// onGrid puts a result on the grid that the op names, of its first operand's type.
func (l *Lowering) onGrid(y *ssa.Value) *ssa.Value {
	for _, n := range [][2]string{{"output_scale", "output_zero_point"}, {"Y_scale_i", "Y_zero_point_i"}, {"scale", "zero_point"}} {
		if l.HasArg(n[1]) {
			return l.snap(y, l.gridArgs(n[0], n[1], l.quantOf(l.Node.Operand(0)).dtype))
		}
	}
	l.Fail("this overload names no scale")
	return nil
}

// onGridOf lowers to another operator of the arguments that are named, in this order.
func onGridOf(name string, args ...string) *Def {
	base, _, _ := strings.Cut(name, ".")
	return &Def{Doc: base + " of quantized tensors", Lower: func(l *Lowering) *ssa.Value {
		vs := make([]any, len(args))
		for i, a := range args {
			switch v := l.Arg(a); {
			case l.IsNone(a):
			case ssa.AsTensor(v.Type) != nil:
				vs[i] = l.Value(v)
			default:
				vs[i] = l.Literal(a)
			}
		}
		return l.onGrid(l.Aten(name, vs...))
	}}
}

// lowerQuantize rounds self to the grid that the operator names.
func lowerQuantize(l *Lowering) *ssa.Value {
	g, _ := row(l.Node.Kind).namedGrid(l)
	return l.snap(l.Tensor("self"), g)
}

func tensorGrid(l *Lowering) (grid, bool) {
	if l.HasArg("tensors") {
		l.Fail("quantization of a list of tensors")
	}
	return l.gridArgs("scale", "zero_point", l.intType(l.DTypeArg("dtype"))), true
}

func channelGrid(l *Lowering) (grid, bool) {
	axis := l.Dim("axis", l.Rank(l.Tensor("self")))
	return grid{l.as("scales", tensor.Float32), l.as("zero_points", tensor.Int64), l.intType(l.DTypeArg("dtype")), axis}, true
}

func dynamicGrid(l *Lowering) (grid, bool) {
	return l.rangeGrid(l.Tensor("self"), l.intType(l.DTypeArg("dtype")), l.Bool("reduce_range")), true
}

func lowerQMake(l *Lowering) *ssa.Value {
	g, _ := madeGrid(l)
	return l.fromGrid(l.Tensor("self"), g)
}

// madeGrid is the grid that aten::_make_per_tensor_quantized_tensor and its form by channel name.
func madeGrid(l *Lowering) (grid, bool) {
	ints := l.Tensor("self")
	if !l.HasArg("axis") {
		return l.gridArgs("scale", "zero_point", l.DType(ints)), true
	}
	return grid{l.as("scale", tensor.Float32), l.as("zero_point", tensor.Int64), l.DType(ints), l.Dim("axis", l.Rank(ints))}, true
}

func lowerDequantize(l *Lowering) []*ssa.Value {
	for _, n := range []string{"self", "qtensor"} {
		if l.HasArg(n) {
			return []*ssa.Value{l.Cast(l.Tensor(n), tensor.Float32)}
		}
	}
	if v := l.Node.Operand(0); ssa.AsTensor(v.Type) != nil {
		return []*ssa.Value{l.Cast(l.Value(v), tensor.Float32)}
	}
	var out []*ssa.Value
	for _, v := range l.Tensors(l.Node.Schema.Args[0].Name) {
		out = append(out, l.Cast(v, tensor.Float32))
	}
	return out
}

// fakeQuantize: (clamp(round(x / scale) + zero_point, quant_min, quant_max) - zero_point) * scale, and where nothing was clamped.
func (l *Lowering) fakeQuantize() []*ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	lo, hi := l.Int("quant_min"), l.Int("quant_max")
	axis := -1
	if l.HasArg("axis") {
		axis = l.Dim("axis", l.Rank(x))
	}
	s, z := l.as("scale", tensor.Float32), l.as("zero_point", tensor.Float32)
	if axis < 0 {
		s, z = l.reshape(s), l.reshape(z)
	}
	onlyResult := len(l.Node.Schema.Returns) == 1
	for _, t := range []tensor.DType{tensor.Uint8, tensor.Int8} {
		if least, most := limits(t); onlyResult && lo == least && hi == most && l.linear8(t, axis >= 0) {
			z := l.Cast(l.Round(z), tensor.Int64)
			return []*ssa.Value{l.Cast(l.snap(x, grid{s, z, t, axis}), d)}
		}
	}
	rank := l.Rank(x)
	s, z = l.along(s, axis, rank), l.along(l.Round(z), axis, rank)
	f := func(v int64) *ssa.Value { return l.Scalar(tensor.Float32, float64(v)) }
	q := l.Add(l.Round(l.Div(l.Cast(x, tensor.Float32), s)), z)
	y := l.Cast(l.Mul(l.Sub(l.Clip(q, f(lo), f(hi)), z), s), d)
	if onlyResult {
		return []*ssa.Value{y}
	}
	return []*ssa.Value{y, l.And(l.LessOrEqual(f(lo), q), l.LessOrEqual(q, f(hi)))}
}

// rangeGrid is the grid of integers for the range of x, 0 included
// (ATen/native/quantized/cpu/QuantUtils.h, ChooseQuantizationParams).
func (l *Lowering) rangeGrid(x *ssa.Value, d tensor.DType, reduced bool) grid {
	lo, hi := limits(d)
	if reduced {
		lo, hi = lo/2, hi/2
	}
	f := tensor.Float64
	zero := l.Scalar(f, 0)
	least := l.Min(l.Cast(l.reduce("ReduceMin", x, nil, false), f), zero)
	most := l.Max(l.Cast(l.reduce("ReduceMax", x, nil, false), f), zero)
	scale := l.Div(l.Sub(most, least), l.Scalar(f, float64(hi-lo)))
	scale = l.Where(l.Less(scale, l.Scalar(f, math.SmallestNonzeroFloat32)), l.Scalar(f, 0.1), scale)
	point := l.Sub(l.Scalar(f, float64(lo)), l.Div(least, scale))
	point = l.Clip(l.Round(point), l.Scalar(f, float64(lo)), l.Scalar(f, float64(hi)))
	return grid{l.Cast(scale, tensor.Float32), l.Cast(point, tensor.Int64), d, -1}
}
