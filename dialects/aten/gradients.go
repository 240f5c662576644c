package aten

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// gradients holds the operators that autograd leaves in a program traced with its gradient (tools/autograd/derivatives.yaml).
// Those of slices and of max pooling stand beside the operators that they undo.
var gradients = Defs{
	"aten::tanh_backward":              {Doc: "g * (1 - y^2)", Nature: Pointwise, Lower: outputGradient(func(l *Lowering, y *ssa.Value) *ssa.Value { return l.Sub(l.Like(y, 1), l.square(y)) })},
	"aten::sigmoid_backward":           {Doc: "g * (1 - y) * y", Nature: Pointwise, Lower: outputGradient(func(l *Lowering, y *ssa.Value) *ssa.Value { return l.Mul(l.Sub(l.Like(y, 1), y), y) })},
	"aten::threshold_backward":         {Doc: "g, 0 where x <= threshold", Nature: Pointwise, Lower: lowerThresholdBackward},
	"aten::gelu_backward":              {Doc: "g times the derivative of gelu", Nature: Pointwise, Lower: inputGradient(geluSlope)},
	"aten::mish_backward":              {Doc: "g times the derivative of mish", Nature: Pointwise, Lower: inputGradient(mishSlope)},
	"aten::silu_backward":              {Doc: "gradient of silu: g * s * (1 + x * (1 - s)), s the sigmoid of x", Nature: Pointwise, Lower: inputGradient(siluSlope)},
	"aten::log_sigmoid_backward":       {Doc: "g * sigmoid(-x)", Lower: inputGradient(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.Sigmoid(l.neg(x)) })},
	"aten::softplus_backward":          {Doc: "g * sigmoid(beta * x), g above the threshold", Nature: Pointwise, Lower: inputGradient(softplusSlope)},
	"aten::elu_backward":               {Doc: "g times the derivative of elu, of its argument or of its result", Lower: lowerEluBackward},
	"aten::leaky_relu_backward":        {Doc: "g where x > 0, else g * negative_slope", Lower: func(l *Lowering) *ssa.Value { return l.leakyGradient(l.Number("negative_slope")) }},
	"aten::rrelu_with_noise_backward":  {Doc: "g times the noise in training, else leaky_relu's gradient of the mean slope", Lower: lowerRreluBackward},
	"aten::hardtanh_backward":          {Doc: "grad_output inside the bounds, else 0", Nature: Pointwise, Lower: lowerHardtanhBackward},
	"aten::hardsigmoid_backward":       {Doc: "g / 6 in (-3, 3), else 0", Nature: Pointwise, Lower: lowerHardsigmoidBackward},
	"aten::hardswish_backward":         {Doc: "g * (x / 3 + 1 / 2) in (-3, 3), g above, 0 below", Nature: Pointwise, Lower: lowerHardswishBackward},
	"aten::hardshrink_backward":        {Doc: "g, 0 where |x| <= lambd", Nature: Pointwise, Lower: lowerShrinkBackward("grad_out")},
	"aten::softshrink_backward":        {Doc: "g, 0 where |x| <= lambd", Nature: Pointwise, Lower: lowerShrinkBackward("grad_output")},
	"aten::logit_backward":             {Doc: "g / (x * (1 - x)); outside of [eps, 1 - eps] 0, and NaN outside of [0, 1] without eps", Nature: Pointwise, Lower: lowerLogitBackward},
	"aten::glu_backward":               {Doc: "gradients of the two halves of glu", Lower: lowerGluBackward},
	"aten::_prelu_kernel_backward":     {Doc: "gradients of the argument and of the weight, of the same shape", LowerN: lowerPreluBackward},
	"aten::native_dropout_backward":    {Doc: "g * mask * scale", Lower: lowerDropoutBackward},
	"aten::_softmax_backward_data":     {Doc: "gradient of softmax: (g - sum(g * y)) * y", Lower: lowerSoftmaxBackward},
	"aten::_log_softmax_backward_data": {Doc: "gradient of log_softmax: g - exp(y) * sum(g)", Lower: lowerLogSoftmaxBackward},

	"aten::mse_loss_backward":             {Doc: "2 * (x - y) * g", Lower: lossGradient(func(l *Lowering, x, y *ssa.Value) *ssa.Value { return l.scale(l.Sub(x, y), 2) })},
	"aten::smooth_l1_loss_backward":       {Doc: "(x - y) / beta clamped to [-1, 1], times g", Lower: lossGradient(smoothL1Slope)},
	"aten::huber_loss_backward":           {Doc: "x - y clamped to [-delta, delta], times g", Lower: lossGradient(huberSlope)},
	"aten::soft_margin_loss_backward":     {Doc: "-y * sigmoid(-x * y) * g", Lower: lossGradient(softMarginSlope)},
	"aten::binary_cross_entropy_backward": {Doc: "(x - y) / max((1 - x) * x, 1e-12) * g", Lower: lossGradient(bceSlope)},
	"aten::nll_loss_backward":             {Doc: "-weight[y] * g at the targets, else 0", Lower: lowerNLLBackward},
	"aten::nll_loss2d_backward":           {Doc: "-weight[y] * g at the targets, else 0", Lower: lowerNLLBackward},

	"aten::native_layer_norm_backward":      {Doc: "gradients of layer_norm's input, weight and bias", LowerN: lowerLayerNormBackward},
	"aten::_fused_rms_norm_backward":        {Doc: "gradients of rms_norm's input and weight", LowerN: lowerRMSNormBackward},
	"aten::native_batch_norm_backward":      {Doc: "gradients of batch_norm's input, weight and bias", LowerN: func(l *Lowering) []*ssa.Value { return l.batchNormBackward(l.Bool("train"), "save_invstd") }},
	"aten::batch_norm_backward":             {Doc: "gradients of batch_norm's input, weight and bias", LowerN: func(l *Lowering) []*ssa.Value { return l.batchNormBackward(l.Bool("update"), "save_var") }},
	"aten::native_group_norm_backward":      {Doc: "gradients of group_norm's input, weight and bias", LowerN: lowerGroupNormBackward},
	"aten::_weight_norm_interface_backward": {Doc: "gradients of weight_norm's direction and length", LowerN: lowerWeightNormBackward},

	"aten::max_pool2d_with_indices_backward": {Doc: "gradients put back at the places that max_pool2d gave", Lower: maxPoolBackward(2)},
	"aten::max_pool3d_with_indices_backward": {Doc: "gradients put back at the places that max_pool3d gave", Lower: maxPoolBackward(3)},
	"aten::adaptive_max_pool2d_backward":     {Doc: "gradients put back at the places that adaptive_max_pool2d gave", Lower: maxPoolBackward(2)},
	"aten::adaptive_max_pool3d_backward":     {Doc: "gradients put back at the places that adaptive_max_pool3d gave", Lower: maxPoolBackward(3)},
	"aten::avg_pool2d_backward":              {Doc: "gradients spread over the windows of avg_pool2d", Lower: avgPoolBackward(2)},
	"aten::avg_pool3d_backward":              {Doc: "gradients spread over the windows of avg_pool3d", Lower: avgPoolBackward(3)},
	"aten::_adaptive_avg_pool2d_backward":    {Doc: "gradients spread over the bins of adaptive_avg_pool2d", Lower: adaptiveAvgBackward(2)},
	"aten::_adaptive_avg_pool3d_backward":    {Doc: "gradients spread over the bins of adaptive_avg_pool3d", Lower: adaptiveAvgBackward(3)},
	"aten::reflection_pad1d_backward":        {Doc: "gradients added up where reflection_pad1d took the elements", Lower: padBackward(1, "reflect")},
	"aten::reflection_pad2d_backward":        {Doc: "gradients added up where reflection_pad2d took the elements", Lower: padBackward(2, "reflect")},
	"aten::reflection_pad3d_backward":        {Doc: "gradients added up where reflection_pad3d took the elements", Lower: padBackward(3, "reflect")},
	"aten::replication_pad1d_backward":       {Doc: "gradients added up where replication_pad1d took the elements", Lower: padBackward(1, "edge")},
	"aten::replication_pad2d_backward":       {Doc: "gradients added up where replication_pad2d took the elements", Lower: padBackward(2, "edge")},
	"aten::replication_pad3d_backward":       {Doc: "gradients added up where replication_pad3d took the elements", Lower: padBackward(3, "edge")},

	"aten::upsample_nearest1d_backward":        {Doc: "the transposed interpolation", Lower: upsampleBackward(1, resizeNearest)},
	"aten::upsample_nearest2d_backward":        {Doc: "the transposed interpolation", Lower: upsampleBackward(2, resizeNearest)},
	"aten::upsample_nearest3d_backward":        {Doc: "the transposed interpolation", Lower: upsampleBackward(3, resizeNearest)},
	"aten::_upsample_nearest_exact1d_backward": {Doc: "the transposed interpolation", Lower: upsampleBackward(1, resizeNearestExact)},
	"aten::_upsample_nearest_exact2d_backward": {Doc: "the transposed interpolation", Lower: upsampleBackward(2, resizeNearestExact)},
	"aten::_upsample_nearest_exact3d_backward": {Doc: "the transposed interpolation", Lower: upsampleBackward(3, resizeNearestExact)},
	"aten::upsample_linear1d_backward":         {Doc: "the transposed interpolation", Lower: upsampleBackward(1, resizeLinear)},
	"aten::upsample_bilinear2d_backward":       {Doc: "the transposed interpolation", Lower: upsampleBackward(2, resizeLinear)},
	"aten::upsample_trilinear3d_backward":      {Doc: "the transposed interpolation", Lower: upsampleBackward(3, resizeLinear)},
	"aten::upsample_bicubic2d_backward":        {Doc: "the transposed interpolation", Lower: upsampleBackward(2, resizeCubic)},
	"aten::_upsample_bilinear2d_aa_backward":   {Doc: "the transposed interpolation", Lower: upsampleBackward(2, resizeLinearAA)},
	"aten::_upsample_bicubic2d_aa_backward":    {Doc: "the transposed interpolation", Lower: upsampleBackward(2, resizeCubicAA)},
	"aten::_upsample_lanczos2d_aa_backward":    {Doc: "the transposed interpolation", Lower: upsampleBackward(2, resizeLanczosAA)},

	"aten::embedding_dense_backward": {Doc: "sums of the gradients for each row that embedding read", Lower: lowerEmbeddingBackward},
	"aten::diagonal_backward":        {Doc: "zeros with a diagonal replaced", Lower: lowerDiagonalBackward},
	"aten::unfold_backward":          {Doc: "sums of the gradients of the windows at each element", Lower: lowerUnfoldBackward},
	"aten::_cdist_backward":          {Doc: "gradient of cdist's first argument", Lower: lowerCdistBackward},
	"aten::convolution_backward":     {Doc: "gradients of a convolution's input, weight and bias", LowerN: lowerConvolutionBackward},

	"aten::_scaled_dot_product_flash_attention_for_cpu_backward": {Doc: "gradients of query, key and value", LowerN: attentionBackward("grad_out", "attn_mask")},
	"aten::_scaled_dot_product_flash_attention_backward":         {Doc: "gradients of query, key and value", LowerN: attentionBackward("grad_out", "")},
	"aten::_scaled_dot_product_efficient_attention_backward":     {Doc: "gradients of query, key, value and bias", LowerN: attentionBackward("grad_out_", "attn_bias")},
}

// inputGradient is grad_output times a slope, a function of self.
func inputGradient(slope func(l *Lowering, x *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x, back := l.widen(l.FloatArg("self"))
		return back(l.Mul(l.Cast(l.FloatArg("grad_output"), l.DType(x)), slope(l, x)))
	}
}

// outputGradient is grad_output times a slope, a function of the result that the operator gave.
func outputGradient(slope func(l *Lowering, y *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		y, back := l.widen(l.FloatArg("output"))
		return back(l.Mul(l.Cast(l.FloatArg("grad_output"), l.DType(y)), slope(l, y)))
	}
}

func lowerThresholdBackward(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	vs, _ := l.promoted("grad_output", "self")
	g := vs[0]
	return l.Where(l.LessOrEqual(x, l.LikeNumber(x, l.Number("threshold"))), l.Like(g, 0), g)
}

func geluSlope(l *Lowering, x *ssa.Value) *ssa.Value {
	if l.Str("approximate") == "tanh" {
		const beta, kappa = math.Sqrt2 / math.SqrtPi, 0.044715
		square := l.square(x)
		t := l.Tanh(l.scale(l.Mul(x, l.offset(l.scale(square, kappa), 1)), beta))
		inner := l.scale(l.offset(l.scale(square, 3*kappa), 1), beta)
		tangent := l.Mul(l.Sub(l.Like(x, 1), l.square(t)), inner)
		return l.scale(l.Add(l.offset(t, 1), l.Mul(x, tangent)), 0.5)
	}
	cdf := l.scale(l.offset(l.Erf(l.scale(x, math.Sqrt2/2)), 1), 0.5)
	pdf := l.scale(l.Exp(l.scale(l.square(x), -0.5)), 1/(math.Sqrt2*math.SqrtPi))
	return l.Add(cdf, l.Mul(x, pdf))
}

func mishSlope(l *Lowering, x *ssa.Value) *ssa.Value {
	t := l.Tanh(l.Softplus(x))
	return l.Add(t, l.Mul(l.Mul(x, l.Sigmoid(x)), l.Sub(l.Like(x, 1), l.square(t))))
}

func siluSlope(l *Lowering, x *ssa.Value) *ssa.Value {
	s := l.Sigmoid(x)
	return l.Mul(s, l.offset(l.Mul(x, l.Sub(l.Like(x, 1), s)), 1))
}

func softplusSlope(l *Lowering, x *ssa.Value) *ssa.Value {
	scaled := l.byNumber(x, l.Number("beta"))
	return l.Where(l.Greater(scaled, l.LikeNumber(x, l.Number("threshold"))), l.Like(x, 1), l.Sigmoid(scaled))
}

func lowerEluBackward(l *Lowering) *ssa.Value {
	v, back := l.widen(l.Tensor("self_or_result"))
	g := l.Cast(l.Tensor("grad_output"), l.DType(v))
	scale, inScale := l.Number("scale"), l.Number("input_scale")
	factor := l.timesNumber(l.Number("alpha"), scale)
	var slope *ssa.Value
	if l.Bool("is_result") {
		slope = l.byNumber(l.plusNumber(v, factor), inScale)
	} else {
		slope = l.byNumber(l.Exp(l.byNumber(v, inScale)), l.timesNumber(factor, inScale))
	}
	return back(l.Where(l.LessOrEqual(v, l.Like(v, 0)), l.Mul(g, slope), l.byNumber(g, scale)))
}

// leakyGradient is grad_output where self is positive, else slope times it.
func (l *Lowering) leakyGradient(slope Number) *ssa.Value {
	g, back := l.widen(l.Tensor("grad_output"))
	x := l.Tensor("self")
	return back(l.Where(l.Greater(x, l.Like(x, 0)), g, l.byNumber(g, slope)))
}

func lowerRreluBackward(l *Lowering) *ssa.Value {
	if lower, upper := l.Number("lower"), l.Number("upper"); !l.Bool("training") || known(lower, upper) && upper.k-lower.k <= 1e-6 {
		return l.leakyGradient(l.meanNumber(lower, upper))
	}
	return l.Mul(l.Tensor("grad_output"), l.Tensor("noise"))
}

func lowerHardtanhBackward(l *Lowering) *ssa.Value {
	g, x := l.Tensor("grad_output"), l.Tensor("self")
	inside := l.And(l.Greater(x, l.LikeNumber(x, l.Number("min_val"))), l.Less(x, l.LikeNumber(x, l.Number("max_val"))))
	return l.Where(inside, g, l.Like(g, 0))
}

func lowerHardsigmoidBackward(l *Lowering) *ssa.Value {
	g, x := l.Tensor("grad_output"), l.Tensor("self")
	inside := l.And(l.Greater(x, l.Like(x, -3)), l.Less(x, l.Like(x, 3)))
	sixth := float64(float32(1.0 / 6)) // of all types, as in ATen/native/cpu/Activation.cpp
	return l.Where(inside, l.scale(g, sixth), l.Like(g, 0))
}

func lowerHardswishBackward(l *Lowering) *ssa.Value {
	x, back := l.widen(l.Tensor("self"))
	g := l.Cast(l.Tensor("grad_output"), l.DType(x))
	between := l.Mul(g, l.offset(l.scale(x, 1.0/3), 0.5))
	return back(l.Where(l.LessOrEqual(x, l.Like(x, -3)), l.Like(x, 0), l.Where(l.Less(x, l.Like(x, 3)), between, g)))
}

func lowerShrinkBackward(grad string) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		g, x := l.Tensor(grad), l.Tensor("self")
		return l.Where(l.LessOrEqual(l.abs(x), l.LikeNumber(x, l.Number("lambd"))), l.Like(g, 0), g)
	}
}

func lowerLogitBackward(l *Lowering) *ssa.Value {
	x, back := l.widen(l.Tensor("self"))
	g := l.Cast(l.Tensor("grad_output"), l.DType(x))
	least, outside := constNumber(0), math.NaN()
	if !l.IsNone("eps") {
		least, outside = l.Number("eps"), 0
	}
	beyond := l.Or(l.Less(x, l.LikeNumber(x, least)), l.Greater(x, l.LikeNumber(x, l.linearNumber(least, -1, 1))))
	return back(l.Where(beyond, l.Like(x, outside), l.Div(g, l.Mul(x, l.Sub(l.Like(x, 1), x)))))
}

func lowerGluBackward(l *Lowering) *ssa.Value {
	x, back := l.widen(l.Tensor("self"))
	g := l.Cast(l.Tensor("grad_output"), l.DType(x))
	dim := l.Dim("dim", l.Rank(x))
	half := l.sizeOf(g, dim)
	parts := l.Split(2, x, l.sizeTensor([]Size{half, half}), onnx.Axis(dim))
	s := l.Sigmoid(parts[1])
	first := l.Mul(g, s)
	return back(l.concatV(int64(dim), first, l.Mul(l.Mul(first, l.Sub(l.Like(s, 1), s)), parts[0])))
}

func lowerPreluBackward(l *Lowering) []*ssa.Value {
	g, x, w := l.Tensor("grad_output"), l.Tensor("self"), l.Tensor("weight")
	positive := l.Greater(x, l.Like(x, 0))
	return []*ssa.Value{l.Where(positive, g, l.Mul(w, g)), l.Where(positive, l.Like(g, 0), l.Mul(x, g))}
}

func lowerDropoutBackward(l *Lowering) *ssa.Value {
	g := l.Tensor("grad_output")
	return l.byNumber(l.Mul(g, l.Cast(l.Tensor("mask"), l.DType(g))), l.Number("scale"))
}

func lowerSoftmaxBackward(l *Lowering) *ssa.Value {
	g, y, dim, back := l.softmaxGradient()
	return back(l.Mul(l.Sub(g, l.reduceOver("ReduceSum", l.Mul(g, y), dim, true)), y))
}

func lowerLogSoftmaxBackward(l *Lowering) *ssa.Value {
	g, y, dim, back := l.softmaxGradient()
	return back(l.Sub(g, l.Mul(l.Exp(y), l.reduceOver("ReduceSum", g, dim, true))))
}

// softmaxGradient reads the arguments of softmax's gradients.
func (l *Lowering) softmaxGradient() (g, y *ssa.Value, dim []int64, back func(*ssa.Value) *ssa.Value) {
	g, y = l.Tensor("grad_output"), l.Tensor("output")
	if d := l.DTypeArg("input_dtype"); d != l.DType(g) {
		l.Fail("a gradient of %v for an operand of %v", l.DType(g), d)
	}
	dim = []int64{int64(l.Dim("dim", l.Rank(g)))}
	y, _ = l.widen(y)
	g, back = l.widen(g)
	return g, y, dim, back
}

// lossGradient is grad_output times the slope of a loss of each element, divided by the number of elements for the mean.
func lossGradient(slope func(l *Lowering, x, y *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x, back := l.widen(l.Tensor("self"))
		y := l.Cast(l.Tensor("target"), l.DType(x))
		out := l.Mul(slope(l, x, y), l.Cast(l.Tensor("grad_output"), l.DType(x)))
		if l.Int("reduction") == 1 {
			n := l.sizeProduct(l.broadcastSizes(l.allSizes(x), l.allSizes(y))...)
			out = l.Div(out, l.Cast(l.sizeValue(n), l.DType(x)))
		}
		return back(out)
	}
}

func smoothL1Slope(l *Lowering, x, y *ssa.Value) *ssa.Value {
	d, beta := l.Sub(x, y), l.LikeNumber(x, l.Number("beta"))
	above, below := l.GreaterOrEqual(d, beta), l.LessOrEqual(d, l.neg(beta))
	return l.Where(below, l.Like(d, -1), l.Where(above, l.Like(d, 1), l.Div(d, beta)))
}

func huberSlope(l *Lowering, x, y *ssa.Value) *ssa.Value {
	d, delta := l.Sub(x, y), l.LikeNumber(x, l.Number("delta"))
	return l.Where(l.LessOrEqual(d, l.neg(delta)), l.neg(delta), l.Where(l.GreaterOrEqual(d, delta), delta, d))
}

func softMarginSlope(l *Lowering, x, y *ssa.Value) *ssa.Value {
	return l.neg(l.Mul(y, l.Sigmoid(l.neg(l.Mul(x, y)))))
}

func bceSlope(l *Lowering, x, y *ssa.Value) *ssa.Value {
	slope := l.Div(l.Sub(x, y), l.max(l.Mul(l.Sub(l.Like(x, 1), x), x), l.Like(x, 1e-12)))
	if w := l.TensorOr("weight"); w != nil {
		slope = l.Mul(slope, l.Cast(w, l.DType(x)))
	}
	return slope
}

// lowerNLLBackward compares the targets with the classes: the gradient is dense.
func lowerNLLBackward(l *Lowering) *ssa.Value {
	x, target, weight := l.Tensor("self"), l.Cast(l.Tensor("target"), tensor.Int64), l.TensorOr("weight")
	g := l.Tensor("grad_output")
	axis := min(1, l.Rank(x)-1)
	if l.Rank(x) == 1 && l.Rank(target) == 1 { // of one sample PyTorch reads the first target, and the first gradient
		target = l.selectAt(target, 0, ConstSize(0))
		if l.Rank(g) == 1 {
			g = l.selectAt(g, 0, ConstSize(0))
		}
	}
	if axis < 0 || l.Rank(target) != l.Rank(x)-1 {
		l.Fail("nll_loss of rank %d with a target of rank %d", l.Rank(x), l.Rank(target))
	}
	ignored := l.Equal(target, l.sizeValue(l.sizeArg("ignore_index")))
	if weight != nil {
		g = l.Mul(g, l.gather(weight, l.Where(ignored, l.scalarInt(tensor.Int64, 0), target), 0))
	}
	if l.Int("reduction") == 1 {
		g = l.Div(g, l.Tensor("total_weight"))
	}
	g = l.Where(ignored, l.Like(g, 0), l.neg(g)) // of the target's shape
	classes := l.unsqueeze(l.countTo(l.sizeOf(x, axis)), axesFrom(1, l.Rank(x)-1-axis)...)
	at := l.Equal(l.unsqueeze(target, int64(axis)), classes)
	return l.Where(at, l.unsqueeze(g, int64(axis)), l.Like(g, 0))
}

// asked gives the results that output_mask asks for. Nothing reads the others.
func (l *Lowering) asked(vs ...func() *ssa.Value) []*ssa.Value {
	name := "output_mask"
	if l.HasArg("grad_input_mask") {
		name = "grad_input_mask"
	}
	mask := slices.Repeat([]bool{true}, len(vs))
	if l.HasArg(name) {
		for i, e := range l.Literal(name).Elems {
			if i < len(mask) {
				mask[i] = e.Bool()
			}
		}
	}
	out := make([]*ssa.Value, len(vs))
	for i, v := range vs {
		switch used := i < len(l.Node.Results) && l.Node.Results[i].HasUses(); {
		case mask[i] && v != nil:
			out[i] = v()
		case used:
			l.Fail("gradient %d is read, and output_mask leaves it out", i)
		default:
			out[i] = l.Value(l.Node.Operand(0)) // no constant: folding would give it to a reader
		}
	}
	return out
}

// standardized is what gradients of normalizations need: the gradient of the normalized elements, these elements, and their scale.
type standardized struct{ g, y, rstd *ssa.Value }

// input is the gradient of the elements before they were normalized over axes: rstd * (g - mean(g) - y * mean(g * y)).
func (s standardized) input(l *Lowering, axes []int64, centered bool) *ssa.Value {
	d := s.g
	if centered {
		d = l.Sub(d, l.reduce("ReduceMean", s.g, axes, true))
	}
	return l.Mul(l.Sub(d, l.Mul(s.y, l.reduce("ReduceMean", l.Mul(s.g, s.y), axes, true))), s.rstd)
}

// summed is the sum over axes, x itself for none.
func (l *Lowering) summed(x *ssa.Value, axes []int64) *ssa.Value {
	if len(axes) == 0 {
		return x
	}
	return l.reduce("ReduceSum", x, axes, false)
}

func lowerLayerNormBackward(l *Lowering) []*ssa.Value {
	x, g, w := l.compute(l.Tensor("input")), l.compute(l.Tensor("grad_out")), l.TensorOr("weight")
	d := l.DType(x)
	n := l.normalizedAxes(x)
	outer, inner := axesFrom(0, l.Rank(x)-n), axesFrom(l.Rank(x)-n, n)
	rstd := l.Cast(l.Tensor("rstd"), d)
	y := l.Mul(l.Sub(x, l.Cast(l.Tensor("mean"), d)), rstd)
	gw := g
	if w != nil {
		gw = l.Mul(g, l.Cast(w, d))
	}
	back := func(v *ssa.Value) *ssa.Value { return l.Cast(v, l.DType(l.Tensor("input"))) }
	return l.asked(
		func() *ssa.Value { return back(standardized{gw, y, rstd}.input(l, inner, true)) },
		func() *ssa.Value { return back(l.summed(l.Mul(g, y), outer)) },
		func() *ssa.Value { return back(l.summed(g, outer)) })
}

func lowerRMSNormBackward(l *Lowering) []*ssa.Value {
	x, g, w := l.compute(l.Tensor("input")), l.compute(l.Tensor("grad_out")), l.TensorOr("weight")
	d := l.DType(x)
	n := l.normalizedAxes(x)
	rstd := l.Cast(l.Tensor("rstd"), d)
	y, gw := l.Mul(x, rstd), g
	if w != nil {
		gw = l.Mul(g, l.Cast(w, d))
	}
	back := func(v *ssa.Value) *ssa.Value { return l.Cast(v, l.DType(l.Tensor("input"))) }
	return l.asked(
		func() *ssa.Value { return back(standardized{gw, y, rstd}.input(l, axesFrom(l.Rank(x)-n, n), false)) },
		func() *ssa.Value { return back(l.summed(l.Mul(g, y), axesFrom(0, l.Rank(x)-n))) })
}

// batchNormBackward is the gradient of batch_norm by the statistics of the batch in training, by the running ones otherwise.
func (l *Lowering) batchNormBackward(train bool, invstd string) []*ssa.Value {
	x, g, w := l.compute(l.Tensor("input")), l.compute(l.Tensor("grad_out")), l.TensorOr("weight")
	d, r := l.DType(x), l.Rank(x)
	if r < 2 {
		l.Fail("batch_norm of rank %d", r)
	}
	vector := func(v *ssa.Value) *ssa.Value { return l.channelVector(l.Cast(v, d), r) }
	var mean, rstd *ssa.Value
	if train {
		mean, rstd = vector(l.Tensor("save_mean")), vector(l.Tensor(invstd))
	} else {
		mean = vector(l.Tensor("running_mean"))
		rstd = l.Reciprocal(l.Sqrt(l.plusNumber(vector(l.Tensor("running_var")), l.Number("eps"))))
	}
	y, gw := l.Mul(l.Sub(x, mean), rstd), g
	if w != nil {
		gw = l.Mul(g, vector(w))
	}
	axes := append([]int64{0}, axesFrom(2, r-2)...)
	parameter := l.DType(l.Tensor("input"))
	if w != nil {
		parameter = l.DType(w)
	}
	return l.asked(
		func() *ssa.Value {
			dx := l.Mul(gw, rstd)
			if train {
				dx = standardized{gw, y, rstd}.input(l, axes, true)
			}
			return l.Cast(dx, l.DType(l.Tensor("input")))
		},
		func() *ssa.Value { return l.Cast(l.summed(l.Mul(g, y), axes), parameter) },
		func() *ssa.Value { return l.Cast(l.summed(g, axes), parameter) })
}

func lowerGroupNormBackward(l *Lowering) []*ssa.Value {
	input := l.Tensor("input")
	x, g, w := l.compute(input), l.compute(l.Tensor("grad_out")), l.TensorOr("weight")
	d, r := l.DType(x), l.Rank(x)
	groups := l.numGroups(x, "group")
	sizes := l.allSizes(x)
	rstd := l.unsqueeze(l.Cast(l.Tensor("rstd"), d), 2)
	y := l.Mul(l.Sub(l.groups(x, groups), l.unsqueeze(l.Cast(l.Tensor("mean"), d), 2)), rstd)
	gw := g
	if w != nil {
		gw = l.Mul(g, l.channelVector(l.Cast(w, d), r))
	}
	axes := append([]int64{0}, axesFrom(2, r-2)...)
	back := func(v *ssa.Value) *ssa.Value { return l.Cast(v, l.DType(input)) }
	return l.asked(
		func() *ssa.Value {
			return back(l.reshapeSizes(standardized{l.groups(gw, groups), y, rstd}.input(l, []int64{2}, true), sizes...))
		},
		func() *ssa.Value { return back(l.summed(l.Mul(g, l.reshapeSizes(y, sizes...)), axes)) },
		func() *ssa.Value { return back(l.summed(g, axes)) })
}

// lowerWeightNormBackward: w = v * length / norm.
func lowerWeightNormBackward(l *Lowering) []*ssa.Value {
	gw, v, length, norm := l.Tensor("grad_w"), l.Tensor("saved_v"), l.Tensor("saved_g"), l.Tensor("saved_norms")
	dim := l.Dim("dim", l.Rank(v))
	var axes []int64
	for i := range l.Rank(v) {
		if i != dim {
			axes = append(axes, int64(i))
		}
	}
	along := l.Mul(gw, v)
	if len(axes) > 0 {
		along = l.reduce("ReduceSum", along, axes, true)
	}
	inner := l.Sub(gw, l.Mul(v, l.Div(along, l.square(norm))))
	return []*ssa.Value{l.Mul(l.Div(length, norm), inner), l.Div(along, norm)}
}

// maxPoolBackward adds up the gradients of n spatial axes at the places in their plane that the argument indices names.
func maxPoolBackward(n int) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x, lone := l.batched(l.Tensor("self"), n+2)
		g, _ := l.batched(l.Tensor("grad_output"), n+2)
		idx, _ := l.batched(l.Tensor("indices"), n+2)
		N, C := l.sizeOf(x, 0), l.sizeOf(x, 1)
		in, out := l.sizeProduct(l.sizesOf(g, 2, n+2)...), l.sizeProduct(l.sizesOf(x, 2, n+2)...)
		zeros := l.fill(l.sizeTensor([]Size{N, C, out}), l.DType(g), ssa.Int(0))
		y := l.scatter(zeros, l.reshapeSizes(idx, N, C, in), l.reshapeSizes(g, N, C, in), 2, "sum")
		return l.unbatched(l.reshapeSizes(y, l.allSizes(x)...), lone)
	}
}

// identity returns the identity matrix of a size.
func (l *Lowering) identity(n Size, d tensor.DType) *ssa.Value {
	at := l.countTo(n)
	return l.Cast(l.Equal(l.unsqueeze(at, 1), l.unsqueeze(at, 0)), d)
}

// transposed returns the gradient of an operator that is linear along each of the last axes separately. row applies the operator along the
// last axis i of a matrix. Of the identity matrix, row makes the transposed matrix of the operator.
func (l *Lowering) transposed(g *ssa.Value, in []Size, row func(unit *ssa.Value, i int) *ssa.Value) *ssa.Value {
	wide, back := l.widen(g)
	first := l.Rank(g) - len(in)
	l.assume("gradients of pools, pads and interpolations meet no infinity", "they are products with matrices, in which an infinity times 0 is NaN")
	for i, n := range in {
		if m := row(l.identity(n, l.DType(wide)), i); m != nil {
			wide = l.alongAxis(wide, m, first+i)
		}
	}
	return back(wide)
}

func avgPoolBackward(n int) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		p := l.poolArgs(n)
		x, g := l.Tensor("self"), l.Tensor("grad_output")
		divisor := int64(0)
		if !l.IsNone("divisor_override") {
			divisor = l.Int("divisor_override")
		}
		first := l.Rank(x) - n
		y := l.transposed(g, l.sizesOf(x, first, l.Rank(x)), func(unit *ssa.Value, i int) *ssa.Value {
			axis := poolArgs{p.kernel[i : i+1], p.stride[i : i+1], p.pad[i : i+1], p.dilation[i : i+1], p.ceil}
			by := divisor
			if by != 0 && i > 0 {
				by = 1
			}
			return l.squeeze(l.avgByWindows(l.unsqueeze(unit, 1), axis, l.Bool("count_include_pad"), by), 1)
		})
		return y
	}
}

func adaptiveAvgBackward(n int) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x, g := l.Tensor("self"), l.Tensor("grad_output")
		first := l.Rank(x) - n
		return l.transposed(g, l.sizesOf(x, first, l.Rank(x)), func(unit *ssa.Value, i int) *ssa.Value {
			return l.transpose(l.binMatrix(l.sizeOf(x, first+i), l.sizeOf(g, first+i), l.DType(unit)), 1, 0)
		})
	}
}

func padBackward(n int, mode string) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x, pad := l.Tensor("self"), l.sizes("padding")
		if len(pad) != 2*n {
			l.Fail("padding must have %d entries", 2*n)
		}
		return l.transposed(l.Tensor("grad_output"), l.sizesOf(x, l.Rank(x)-n, l.Rank(x)), func(unit *ssa.Value, i int) *ssa.Value {
			at := 2 * (n - 1 - i)
			return l.padMode(unit, pad[at:at+2], mode)
		})
	}
}

func upsampleBackward(n int, mode resizeMode) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		g, in := l.Tensor("grad_output"), l.sizes("input_size")
		if l.Rank(g) != n+2 || len(in) != n+2 {
			l.Fail("interpolation of rank %d expects an input of rank %d", n, n+2)
		}
		axes := l.scaleArgs(n)
		for i := range axes {
			axes[i].in, axes[i].out = in[2+i], l.sizeOf(g, 2+i)
		}
		return l.transposed(g, in[2:], func(unit *ssa.Value, i int) *ssa.Value {
			if axes[i].unchanged(mode) {
				return nil
			}
			return l.resizeAxis(unit, axes[i], 1, mode, l.Bool("align_corners"))
		})
	}
}

// lowerEmbeddingBackward leaves out the rows at padding_idx, and divides by how often a row was taken if asked to.
func lowerEmbeddingBackward(l *Lowering) *ssa.Value {
	g, idx := l.Tensor("grad_output"), l.reshape(l.Cast(l.Tensor("indices"), tensor.Int64), -1)
	width := l.sizeOf(g, l.Rank(g)-1)
	rows, back := l.widen(l.reshapeInto(g, []Size{ConstSize(-1), width}))
	rows = l.Where(l.unsqueeze(l.Equal(idx, l.sizeValue(l.sizeArg("padding_idx"))), 1), l.Like(rows, 0), rows)
	n := l.sizeArg("num_weights")
	if l.Bool("scale_grad_by_freq") {
		zeros := l.fill(l.sizeVec(n), l.DType(rows), ssa.Int(0))
		often := l.scatterNDAdd(zeros, l.unsqueeze(idx, 1), l.fill(l.shapeOf(idx), l.DType(rows), ssa.Int(1)))
		rows = l.Div(rows, l.unsqueeze(l.gather(often, idx, 0), 1))
	}
	zeros := l.fill(l.sizeTensor([]Size{n, width}), l.DType(rows), ssa.Int(0))
	return back(l.scatterNDAdd(zeros, l.unsqueeze(idx, 1), rows))
}

func lowerDiagonalBackward(l *Lowering) *ssa.Value {
	g := l.Tensor("grad_output")
	zeros := l.fill(l.sizeTensor(l.sizes("input_sizes")), l.DType(g), ssa.Int(0))
	return l.diagonalScatter(zeros, g)
}

// lowerUnfoldBackward multiplies with the matrix that says which element of which window an element of the input is.
func lowerUnfoldBackward(l *Lowering) *ssa.Value {
	g, back := l.widen(l.Tensor("grad_in"))
	in := l.sizes("input_sizes")
	if len(in) == 0 {
		return back(l.squeeze(g, 0))
	}
	dim, size, step := l.Dim("dim", len(in)), l.Int("size"), l.Int("step")
	windows := l.sizeOf(g, dim)
	at := l.reshape(l.windowIndex(windows, size, step, 1), -1)
	m := l.Cast(l.Equal(l.unsqueeze(l.countTo(in[dim]), 1), l.unsqueeze(at, 0)), l.DType(g))
	flat := slices.Clone(in)
	flat[dim] = l.mulSize(windows, ConstSize(size))
	return back(l.alongAxis(l.reshapeInto(l.moveDims(g, []int64{-1}, []int64{int64(dim)}), flat), m, dim))
}

// lowerCdistBackward sums the gradients of the distances of a row to all rows of x2 (ATen/native/cpu/DistanceOpsKernel.cpp).
func lowerCdistBackward(l *Lowering) *ssa.Value {
	x1, x2 := l.Tensor("x1"), l.Tensor("x2")
	grad := "grad"
	if l.HasArg("grad_output") {
		grad = "grad_output"
	}
	g, dist := l.unsqueeze(l.Tensor(grad), -1), l.unsqueeze(l.Tensor("cdist"), -1)
	d := l.Sub(l.unsqueeze(x1, -2), l.unsqueeze(x2, -3))
	zero := l.Like(d, 0)
	size := l.abs(d)
	var slope *ssa.Value
	none := l.Equal(dist, zero)
	safe := l.Where(none, l.Like(d, 1), dist)
	switch p := l.Float("p"); {
	case p == 0:
		slope = l.Mul(d, zero)
	case p == 1:
		return l.reduce("ReduceSum", l.Mul(g, l.Sign(d)), []int64{-2}, false)
	case p == 2:
		slope = l.Div(d, safe)
	case math.IsInf(p, 1):
		slope = l.Mul(l.Sign(d), l.Cast(l.Equal(size, dist), l.DType(d)))
	default:
		still := l.Equal(size, zero)
		slope = l.Mul(l.Sign(d), l.Where(still, zero, l.Pow(l.Div(l.Where(still, l.Like(d, 1), size), safe), l.Like(d, p-1))))
	}
	return l.reduce("ReduceSum", l.Where(none, zero, l.Mul(g, slope)), []int64{-2}, false)
}

// lowerConvolutionBackward: the gradient of the input is the other kind of convolution, that of the weight a product of the gradient with
// the windows under it.
func lowerConvolutionBackward(l *Lowering) []*ssa.Value {
	x, w, g := l.Tensor("input"), l.Tensor("weight"), l.Tensor("grad_output")
	c := convOf(l, g, w)
	n := len(c.stride)
	if l.Rank(x) != n+2 {
		l.Fail("the gradient of a convolution of %d axes expects an input of rank %d, found %d", n, n+2, l.Rank(x))
	}
	if c.before != nil {
		l.Fail("the gradient of a convolution whose padding is known at run time only")
	}
	l.checkSteps(c)
	forward := l.Bool("transposed")
	groups, kernel := c.groups, make([]int64, n)
	for i := range n {
		kernel[i] = l.static(w, 2+i)
	}
	return l.asked(
		func() *ssa.Value { return l.convInputGradient(c, x, !forward) },
		func() *ssa.Value {
			small, large := g, x // one window of large for each place of small
			if forward {
				small, large = x, g
			}
			d := l.DType(w)
			small, large = l.compute(small), l.compute(large)
			counts := l.sizesOf(small, 2, n+2)
			G, N := groups, l.sizeOf(x, 0)
			padded := l.padSpatial(large, c.padBegin, c.padEnd, nil)
			windows := l.gatherWindows(padded, counts, kernel, c.stride, c.dilation) // (N, C, K..., O...)
			places := l.sizeProduct(counts...)
			inner := l.sizeProduct(append([]Size{l.sizeOf(w, 1)}, constSizes(kernel)...)...)
			windows = l.reshapeSizes(windows, N, G, inner, places)
			rows := l.reshapeSizes(small, N, G, l.divSize(l.sizeOf(w, 0), G), places)
			sum := l.reduce("ReduceSum", l.MatMul(rows, l.transpose(windows, 0, 1, 3, 2)), []int64{0}, false)
			return l.Cast(l.reshapeSizes(sum, l.allSizes(w)...), d)
		},
		func() *ssa.Value {
			return l.Cast(l.reduce("ReduceSum", l.compute(g), append([]int64{0}, axesFrom(2, n)...), false), l.DType(g))
		})
}

// convInputGradient convolves the gradient c.x with the weight. A transposed convolution makes as many places as the input x has: the
// steps that the convolution left out at the end are padding.
func (l *Lowering) convInputGradient(c convArgs, x *ssa.Value, transposed bool) *ssa.Value {
	n := len(c.stride)
	c.bias, c.transposed = nil, transposed
	c.outPads = repeatInt(0, n)
	if !transposed {
		return l.conv(c)
	}
	cut := false
	for i := range n {
		span := c.dilation[i]*(l.static(c.w, 2+i)-1) + 1
		if in, ok := l.Shape(x)[2+i].Int(); ok {
			c.outPads[i] = (in + 2*c.padBegin[i] - span) % c.stride[i]
		} else if c.stride[i] > 1 {
			c.outPads[i], cut = c.stride[i]-1, true
		}
	}
	y := l.conv(c)
	if cut {
		y = l.Slice(y, l.i64(repeatInt(0, n)...), l.sizeTensor(l.sizesOf(x, 2, n+2)), l.i64(axesFrom(2, n)...), nil)
	}
	return y
}

// attentionBackward computes the weights of the attention anew.
func attentionBackward(grad, mask string) func(*Lowering) []*ssa.Value {
	return func(l *Lowering) []*ssa.Value {
		q := l.Tensor("query")
		if l.DType(q).Size() < 4 {
			l.Fail("the gradient of attention in %v", l.DType(q))
		}
		k, v, g := l.Tensor("key"), l.Tensor("value"), l.Tensor(grad)
		r := l.Rank(q)
		for _, t := range []*ssa.Value{k, v, g} {
			if l.Rank(t) != r {
				l.Fail("the gradient of attention on tensors with %d and %d dimensions", r, l.Rank(t))
			}
		}
		if r < 3 || !l.Shape(q)[r-3].Equal(l.Shape(k)[r-3]) {
			l.Fail("the gradient of attention whose keys are shared by several heads")
		}
		a := l.sdpa(mask)
		p := a.weights()
		dp := l.MatMul(g, l.swapAxes(v, r-1, r-2))
		inner := l.Mul(p, l.Sub(dp, l.reduce("ReduceSum", l.Mul(dp, p), []int64{-1}, true)))
		scaled := l.Mul(inner, a.scale)
		return l.asked(
			func() *ssa.Value { return l.MatMul(scaled, k) },
			func() *ssa.Value { return l.MatMul(l.swapAxes(scaled, r-1, r-2), q) },
			func() *ssa.Value { return l.MatMul(l.swapAxes(p, r-1, r-2), g) },
			func() *ssa.Value { return inner },
		)[:len(l.Node.Results)]
	}
}
