package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// activation holds the activation functions (ATen/native/Activation.cpp).
var activation = Defs{
	"aten::relu":          {Doc: "max(x, 0)", Gradient: "self: threshold_backward(grad, result, 0)", Nature: Pointwise, Idempotent: true, Grid: KeepsGrid, Type: likeFloats, Lower: lowerRelu},
	"aten::relu6":         {Doc: "min(max(x, 0), 6)", Gradient: "self: hardtanh_backward(grad, self, 0, 6)", Nature: Pointwise, Idempotent: true, Grid: SnapsToGrid, Type: likeFloats, Lower: func(l *Lowering) *ssa.Value { return l.clip(l.Tensor("self"), 0, 6) }},
	"aten::hardtanh":      {Doc: "x clamped to [min_val, max_val]", Gradient: "self: hardtanh_backward(grad, self, min_val, max_val)", Nature: Pointwise, Idempotent: true, Grid: SnapsToGrid, Type: likeFloats, Lower: lowerHardtanh},
	"aten::elu":           {Doc: "scale * (x if x > 0 else alpha * (exp(x * input_scale) - 1))", Gradient: "self: elu_backward(grad, alpha, scale, input_scale, False, self)", Nature: Pointwise, Grid: SnapsToGrid, Type: likeFloats, Lower: lowerElu},
	"aten::selu":          {Doc: "scaled elu with fixed constants", Gradient: "self: elu_backward(grad, 1.6732632423543772, 1.0507009873554805, 1, False, self)", Nature: Pointwise, Type: likeFloats, Lower: lowerSelu},
	"aten::celu":          {Doc: "x if x > 0 else alpha * (exp(x / alpha) - 1)", Gradient: "self: elu_backward(grad, alpha, 1, 1 / alpha, False, self)", Nature: Pointwise, Grid: SnapsToGrid, Type: likeFloats, Lower: lowerCelu},
	"aten::leaky_relu":    {Doc: "x if x > 0 else negative_slope * x", Gradient: "self: leaky_relu_backward(grad, self, negative_slope, False)", Nature: Pointwise, Grid: SnapsToGrid, Type: likeFloats, Lower: lowerLeakyRelu},
	"aten::prelu":         {Doc: "x if x > 0 else weight * x, a weight for each channel or one for all", Layout: LikeOperands, Autocast: LowerPrecision, Lower: lowerPrelu},
	"aten::_prelu_kernel": {Doc: "x if x > 0 else weight * x", Layout: LikeOperands, Lower: func(l *Lowering) *ssa.Value { return l.PRelu(l.Tensor("self"), l.Tensor("weight")) }},
	"aten::sigmoid":       {Doc: "1 / (1 + exp(-x))", Gradient: "self: sigmoid_backward(grad, result)", Nature: Pointwise, Grid: UnitGrid, Complex: one(complexSigmoid), Type: asFloats, Lower: floatOp((*Lowering).Sigmoid)},
	"aten::tanh":          {Doc: "hyperbolic tangent", Gradient: "self: tanh_backward(grad, result)", Nature: Pointwise, Prim: true, Grid: SignedUnitGrid, Complex: one(complexTanh), Type: asFloats, Lower: floatOp((*Lowering).Tanh)},
	"aten::silu":          {Doc: "x * sigmoid(x)", Gradient: "self: silu_backward(grad, self)", Nature: Pointwise, Complex: one(complexSilu), Type: likeFloats, Lower: lowerSilu},
	"aten::mish":          {Doc: "x * tanh(softplus(x))", Gradient: "self: mish_backward(grad, self)", Nature: Pointwise, Type: likeFloats, Lower: lowerMish},
	"aten::gelu":          {Doc: "x times the normal CDF of x, exact or by tanh", Gradient: "self: gelu_backward(grad, self, approximate=approximate)", Nature: Pointwise, Type: likeFloats, Lower: lowerGelu},
	"aten::glu":           {Doc: "one half along dim times the sigmoid of the other", Gradient: "self: glu_backward(grad, self, dim)", Nature: AlongDim, Lower: lowerGlu},
	"aten::hardsigmoid":   {Doc: "min(max(x + 3, 0), 6) / 6", Gradient: "self: hardsigmoid_backward(grad, self)", Nature: Pointwise, Grid: UnitGrid, Type: likeFloats, Lower: lowerHardsigmoid},
	"aten::hardswish":     {Doc: "x * hardsigmoid(x)", Gradient: "self: hardswish_backward(grad, self)", Nature: Pointwise, Type: likeFloats, Lower: lowerHardswish},
	"aten::softplus":      {Doc: "log(1 + exp(beta * x)) / beta, x where beta * x > threshold", Gradient: "self: softplus_backward(grad, self, beta, threshold)", Nature: Pointwise, Autocast: Float32OnCUDA, Type: likeFloats, Lower: lowerSoftplus},
	"aten::log_sigmoid":   {Doc: "log(sigmoid(x))", Gradient: "self: grad * sigmoid(-self)", Nature: Pointwise, Layout: RowMajor, Type: likeFloats, Lower: lowerLogSigmoid},
	"aten::log_sigmoid_forward": {Doc: "log(sigmoid(x)), and exp(-|x|) as on the CPU", LowerN: func(l *Lowering) []*ssa.Value {
		return []*ssa.Value{lowerLogSigmoid(l), l.Exp(l.neg(l.Abs(l.Tensor("self"))))}
	}},
	"aten::softshrink":          {Doc: "x moved towards 0 by lambd", Gradient: "self: softshrink_backward(grad, self, lambd)", Nature: Pointwise, Type: likeFloats, Lower: lowerSoftshrink},
	"aten::hardshrink":          {Doc: "x, 0 in [-lambd, lambd]", Gradient: "self: hardshrink_backward(grad, self, lambd)", Nature: Pointwise, Type: likeFloats, Lower: lowerHardshrink},
	"aten::tanhshrink":          {Doc: "x - tanh(x)", Nature: Pointwise, Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.Sub(x, l.Tanh(x)) })},
	"aten::softsign":            {Doc: "x / (1 + |x|)", Nature: Pointwise, Lower: floatOp((*Lowering).Softsign)},
	"aten::threshold":           {Doc: "x if x > threshold else value", Gradient: "self: threshold_backward(grad, self, threshold)", Nature: Pointwise, Grid: SnapsToGrid, Type: likeFloats, Lower: lowerThreshold},
	"aten::softmax":             {Doc: "exp(x) / sum(exp(x)) along dim", Gradient: "self: type_as((grad - sum(grad * result, [dim], True)) * result, self)", Nature: AlongDim, Layout: RowMajor, Autocast: Float32OnCUDA, Lower: func(l *Lowering) *ssa.Value { return l.softmax("Softmax") }},
	"aten::_softmax":            {Doc: "exp(x) / sum(exp(x)) along dim", Nature: AlongDim, Lower: func(l *Lowering) *ssa.Value { return l.softmax("Softmax") }},
	"aten::special_softmax":     {Doc: "exp(x) / sum(exp(x)) along dim", Alias: "aten::softmax", Lower: func(l *Lowering) *ssa.Value { return l.softmax("Softmax") }},
	"aten::_safe_softmax":       {Doc: "softmax along dim, 0 where all are -inf", Lower: lowerSafeSoftmax},
	"aten::log_softmax":         {Doc: "log of softmax along dim", Gradient: "self: type_as(grad - exp(result) * sum(grad, [dim], True), self)", Nature: AlongDim, Layout: RowMajor, Autocast: Float32OnCUDA, Lower: func(l *Lowering) *ssa.Value { return l.softmax("LogSoftmax") }},
	"aten::_log_softmax":        {Doc: "log of softmax along dim", Nature: AlongDim, Lower: func(l *Lowering) *ssa.Value { return l.softmax("LogSoftmax") }},
	"aten::special_log_softmax": {Doc: "log of softmax along dim", Alias: "aten::log_softmax", Lower: func(l *Lowering) *ssa.Value { return l.softmax("LogSoftmax") }},
}

func lowerRelu(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if !l.DType(x).IsFloat() {
		return l.max(x, l.Like(x, 0)) // runtimes have Relu for floats
	}
	return l.Relu(x)
}

// clip clamps to constant bounds.
func (l *Lowering) clip(x *ssa.Value, lo, hi float64) *ssa.Value {
	return l.Clip(x, l.Like(x, lo), l.Like(x, hi))
}

func lowerHardtanh(l *Lowering) *ssa.Value {
	x, least, most := l.Tensor("self"), l.Number("min_val"), l.Number("max_val")
	if !known(least, most) {
		return l.min(l.max(x, l.LikeNumber(x, least)), l.LikeNumber(x, most))
	}
	lo, hi := least.k, most.k
	if d := l.DType(x); d.IsInt() && d != tensor.Int64 {
		least, greatest := intRange(d)
		lo, hi = max(lo, float64(least)), min(hi, float64(greatest))
	}
	return l.clip(x, lo, hi)
}

func lowerElu(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	alpha, scale, inScale := l.Number("alpha"), l.Number("scale"), l.Number("input_scale")
	if !known(alpha, scale, inScale) {
		return l.eluOf(x, alpha, scale, inScale)
	}
	if inScale.is(1) {
		return l.byNumber(l.Elu(x, onnx.Alpha(alpha.k)), scale)
	}
	// input_scale acts on the negative side alone, so onnx::Elu cannot carry it.
	e := l.Exp(l.byNumber(x, inScale))
	negative := l.byNumber(l.Sub(e, l.Like(x, 1)), alpha)
	return l.byNumber(l.Where(l.Greater(x, l.Like(x, 0)), x, negative), scale)
}

// eluOf is elu by numbers of the run (ATen/native/cpu/Elu.h).
func (l *Lowering) eluOf(x *ssa.Value, alpha, scale, inScale Number) *ssa.Value {
	x, back := l.widen(x)
	negative := l.byNumber(l.expm1(l.byNumber(x, inScale)), l.timesNumber(alpha, scale))
	return back(l.Where(l.Less(x, l.Like(x, 0)), negative, l.byNumber(x, scale)))
}

func lowerSelu(l *Lowering) *ssa.Value {
	return l.Selu(l.Tensor("self"), onnx.Alpha(1.6732632423543772848170429916717), onnx.Gamma(1.0507009873554804934193349852946))
}

func lowerCelu(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	of := l.NumberOr("alpha", 1)
	alpha, ok := of.Known()
	if !ok {
		return l.eluOf(x, of, constNumber(1), l.oneOver(of))
	}
	if alpha == 1 {
		return l.Elu(x, onnx.Alpha(1))
	}
	if l.DType(x) == tensor.Float32 {
		return l.Celu(x, onnx.Alpha(alpha))
	}
	return l.scale(l.Elu(l.scale(x, 1/alpha), onnx.Alpha(1)), alpha)
}

func lowerLeakyRelu(l *Lowering) *ssa.Value {
	return l.leakyRelu(l.Tensor("self"), l.NumberOr("negative_slope", 0.01))
}

// leakyRelu is x where it is positive, else slope * x.
func (l *Lowering) leakyRelu(x *ssa.Value, slope Number) *ssa.Value {
	if k, ok := slope.Known(); ok {
		return l.LeakyRelu(x, onnx.Alpha(k))
	}
	x, back := l.widen(x)
	return back(l.Where(l.Greater(x, l.Like(x, 0)), x, l.byNumber(x, slope)))
}

// lowerPrelu aligns the weights with dimension 1, the channels.
func lowerPrelu(l *Lowering) *ssa.Value {
	x, w := l.Tensor("self"), l.Tensor("weight")
	rank := l.Rank(x)
	if l.Rank(w) == 1 {
		n := l.Shape(w)[0]
		switch {
		case n.Is(1) && rank == 0:
			w = l.squeeze(w, 0)
		case !n.Is(1) && rank > 2:
			axes := make([]int64, rank-2)
			for i := range axes {
				axes[i] = int64(i + 1)
			}
			w = l.unsqueeze(w, axes...)
		}
	}
	return l.PRelu(x, w)
}

func lowerSilu(l *Lowering) *ssa.Value {
	x, back := l.widen(l.FloatArg("self"))
	return back(l.Mul(x, l.Sigmoid(x)))
}

func lowerMish(l *Lowering) *ssa.Value {
	return l.Mish(l.FloatArg("self"))
}

func lowerGelu(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	approx := l.Str("approximate")
	if approx == "" {
		approx = "none"
	}
	return l.Gelu(x, onnx.Approximate(approx))
}

func lowerGlu(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	dim := l.Dim("dim", l.Rank(x))
	half := l.divSize(l.sizeOf(x, dim), ConstSize(2))
	rs := l.Split(2, x, l.sizeTensor([]Size{half, half}), onnx.Axis(dim))
	a, back := l.widen(rs[0])
	b, _ := l.widen(rs[1])
	return back(l.Mul(a, l.Sigmoid(b)))
}

func lowerHardsigmoid(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	return l.HardSigmoid(x, onnx.Alpha(1.0/6), onnx.Beta(0.5))
}

func lowerHardswish(l *Lowering) *ssa.Value { return l.HardSwish(l.Tensor("self")) }

// lowerSoftplus keeps the threshold only where it can be seen: above 20 the
// difference between x and softplus(x) is below 3e-9.
func lowerSoftplus(l *Lowering) *ssa.Value {
	x, back := l.widen(l.FloatArg("self"))
	beta, threshold := l.NumberOr("beta", 1), l.NumberOr("threshold", 20)
	scaled := l.byNumber(x, beta)
	y := scaled
	if known(threshold) {
		y = l.Softplus(scaled)
	} else {
		y = l.log1p(l.Exp(scaled)) // inf where the exponential is and the threshold lets it
	}
	y = l.byNumber(y, l.oneOver(beta))
	same := 20.0 // from where on x is the nearest number to softplus(x)
	if l.DType(x) == tensor.Float64 {
		same = 34
	}
	if !known(beta, threshold) || threshold.k < same {
		y = l.Where(l.Greater(scaled, l.LikeNumber(x, threshold)), x, y)
	}
	return back(y)
}

func lowerLogSigmoid(l *Lowering) *ssa.Value {
	x, back := l.widen(l.FloatArg("self"))
	return back(l.neg(l.Softplus(l.neg(x))))
}

// lowerSoftshrink keeps NaN, of which onnx::Shrink makes 0.
func lowerSoftshrink(l *Lowering) *ssa.Value {
	x, lambd := l.Tensor("self"), l.NumberOr("lambd", 0.5)
	if k, ok := lambd.Known(); ok {
		return l.Sub(x, l.clip(x, -k, k))
	}
	return l.Sub(x, l.min(l.max(x, l.LikeNumber(x, l.linearNumber(lambd, -1, 0))), l.LikeNumber(x, lambd)))
}

func lowerHardshrink(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	return l.Where(l.LessOrEqual(l.abs(x), l.LikeNumber(x, l.NumberOr("lambd", 0.5))), l.Like(x, 0), x)
}

func lowerThreshold(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	return l.Where(l.LessOrEqual(x, l.as("threshold", d)), l.as("value", d), x)
}

// softmax along dim; dtype, if given, is applied first.
func (l *Lowering) softmax(op string) *ssa.Value {
	x := l.Tensor("self")
	if d := l.DTypeArg("dtype"); d != tensor.Undefined {
		x = l.Cast(x, d)
	} else if l.Bool("half_to_float") {
		x = l.Cast(x, tensor.Float32)
	}
	rank := l.Rank(x)
	dim := l.Dim("dim", rank)
	if rank == 0 {
		return l.squeeze(l.OpA(op, []ssa.Attr{onnx.Axis(0)}, l.unsqueeze(x, 0)), 0)
	}
	if op == "LogSoftmax" && l.DType(x) == tensor.Float64 {
		// onnxruntime's kernel for float64 gives -inf beside an infinity, where PyTorch gives NaN
		axis := []int64{int64(dim)}
		c := l.Sub(x, l.reduce("ReduceMax", x, axis, true))
		return l.Sub(c, l.Log(l.reduce("ReduceSum", l.Exp(c), axis, true)))
	}
	return l.OpA(op, []ssa.Attr{onnx.Axis(dim)}, x)
}

func lowerSafeSoftmax(l *Lowering) *ssa.Value {
	y := l.softmax("Softmax")
	// softmax of -inf alone is NaN
	x := l.Tensor("self")
	rank := l.Rank(x)
	masked := l.Equal(x, l.Like(x, math.Inf(-1)))
	if rank > 0 {
		masked = l.allTrue(masked, []int64{int64(l.Dim("dim", rank))}, true)
	}
	return l.Where(masked, l.Like(y, 0), y)
}
