package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// activation holds the activation functions (ATen/native/Activation.cpp).
var activation = Defs{
	"aten::relu":        {Doc: "max(x, 0)", Lower: lowerRelu},
	"aten::relu6":       {Doc: "min(max(x, 0), 6)", Lower: func(l *Lowering) *ssa.Value { return l.clip(l.Tensor("self"), 0, 6) }},
	"aten::hardtanh":    {Doc: "x clamped to [min_val, max_val]", Lower: lowerHardtanh},
	"aten::elu":         {Doc: "scale * (x if x > 0 else alpha * (exp(x * input_scale) - 1))", Lower: lowerElu},
	"aten::leaky_relu":  {Doc: "x if x > 0 else negative_slope * x", Lower: lowerLeakyRelu},
	"aten::sigmoid":     {Doc: "1 / (1 + exp(-x))", Lower: func(l *Lowering) *ssa.Value { return l.Op("Sigmoid", l.FloatArg("self")) }},
	"aten::tanh":        {Doc: "hyperbolic tangent", Lower: func(l *Lowering) *ssa.Value { return l.Op("Tanh", l.FloatArg("self")) }},
	"aten::silu":        {Doc: "x * sigmoid(x)", Lower: lowerSilu},
	"aten::mish":        {Doc: "x * tanh(softplus(x))", Lower: lowerMish},
	"aten::gelu":        {Doc: "x times the normal CDF of x, exact or by tanh", Lower: lowerGelu},
	"aten::hardsigmoid": {Doc: "min(max(x + 3, 0), 6) / 6", Lower: lowerHardsigmoid},
	"aten::hardswish":   {Doc: "x * hardsigmoid(x)", Lower: lowerHardswish},
	"aten::softmax":     {Doc: "exp(x) / sum(exp(x)) along dim", Lower: func(l *Lowering) *ssa.Value { return l.softmax("Softmax") }},
	"aten::log_softmax": {Doc: "log of softmax along dim", Lower: func(l *Lowering) *ssa.Value { return l.softmax("LogSoftmax") }},
}

func lowerRelu(l *Lowering) *ssa.Value { return l.Op("Relu", l.Tensor("self")) }

// clip clamps to constant bounds.
func (l *Lowering) clip(x *ssa.Value, lo, hi float64) *ssa.Value {
	return l.Op("Clip", x, l.Like(x, lo), l.Like(x, hi))
}

func lowerHardtanh(l *Lowering) *ssa.Value {
	return l.clip(l.Tensor("self"), l.Float("min_val"), l.Float("max_val"))
}

func lowerElu(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	alpha, scale, inScale := l.Float("alpha"), l.Float("scale"), l.Float("input_scale")
	if inScale == 1 {
		return l.Scale(l.OpA("Elu", []ssa.Attr{floatAttr("alpha", alpha)}, x), scale)
	}
	// input_scale acts on the negative side alone, so onnx::Elu cannot carry it.
	e := l.Op("Exp", l.Scale(x, inScale))
	negative := l.Scale(l.Sub(e, l.Like(x, 1)), alpha)
	return l.Scale(l.Where(l.Op("Greater", x, l.Like(x, 0)), x, negative), scale)
}

func lowerLeakyRelu(l *Lowering) *ssa.Value {
	return l.OpA("LeakyRelu", []ssa.Attr{floatAttr("alpha", l.FloatOr("negative_slope", 0.01))}, l.Tensor("self"))
}

func lowerSilu(l *Lowering) *ssa.Value {
	x := l.FloatArg("self")
	return l.Mul(x, l.Op("Sigmoid", x))
}

func lowerMish(l *Lowering) *ssa.Value {
	x := l.FloatArg("self")
	if l.Opset >= 18 {
		return l.Op("Mish", x)
	}
	return l.Mul(x, l.Op("Tanh", l.Op("Softplus", x)))
}

func lowerGelu(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	approx := l.Str("approximate")
	if approx == "" {
		approx = "none"
	}
	if l.Opset >= 20 {
		return l.OpA("Gelu", []ssa.Attr{attr("approximate", ssa.Str(approx))}, x)
	}
	half := l.Mul(x, l.Like(x, 0.5))
	if approx == "tanh" {
		cube := l.Mul(l.Mul(x, x), x)
		inner := l.Scale(l.Add(x, l.Scale(cube, 0.044715)), math.Sqrt(2/math.Pi))
		return l.Mul(half, l.Add(l.Op("Tanh", inner), l.Like(x, 1)))
	}
	return l.Mul(half, l.Add(l.Op("Erf", l.Scale(x, math.Sqrt2/2)), l.Like(x, 1)))
}

func lowerHardsigmoid(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	return l.OpA("HardSigmoid", []ssa.Attr{floatAttr("alpha", 1.0/6), floatAttr("beta", 0.5)}, x)
}

func lowerHardswish(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if l.Opset >= 14 {
		return l.Op("HardSwish", x)
	}
	return l.Mul(x, lowerHardsigmoid(l))
}

// softmax along dim; dtype, if given, is applied first.
func (l *Lowering) softmax(op string) *ssa.Value {
	x := l.Tensor("self")
	if d := l.DTypeArg("dtype"); d != tensor.Undefined {
		x = l.Cast(x, d)
	}
	rank := l.Rank(x)
	dim := l.Dim("dim", rank)
	if rank == 0 {
		return l.Squeeze(l.OpA(op, []ssa.Attr{intAttr("axis", 0)}, l.Unsqueeze(x, 0)), 0)
	}
	return l.OpA(op, []ssa.Attr{intAttr("axis", int64(dim))}, x)
}
