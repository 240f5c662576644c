package plan

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// composed are operators that others express whatever the opset is.
var composed = map[ssa.Kind]func(b *onnx.Builder, o *ssa.Op) []*ssa.Value{
	"onnx::CausalConvWithState": causalConv,
	"onnx::GlobalLpPool":        fallback,
	"onnx::Hardmax":             fallback,
	"onnx::NegativeLogLikelihoodLoss": func(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
		return []*ssa.Value{likelihoodLoss(b, o, o.Operand(0))}
	},
	"onnx::SoftmaxCrossEntropyLoss": func(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
		log := b.OpA("LogSoftmax", []ssa.Attr{{Name: "axis", Value: ssa.Int(1)}}, o.Operand(0))
		return []*ssa.Value{likelihoodLoss(b, o, log), log}[:len(o.Results)]
	},
}

// fallback is the way that targets take which lack the operator for a type.
func fallback(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	stand := &onnx.Downgrade{Builder: *b, Node: o, Target: onnx.Standard, Opset: onnx.Newest}
	if !onnx.TypeFallback(o.Kind.Name())(stand, o.Result(0).DType()) {
		unable("no other way to compute it")
	}
	return nil
}

func zeroOf(b *onnx.Builder, d tensor.DType) *ssa.Value {
	return b.Const(tensor.Full(d, []int64{}, 0))
}

// likelihoodLoss is the negative log likelihood of the targets, operand 1, with weights of the classes, operand 2. It is computed in
// double, as the interpreter does.
func likelihoodLoss(b *onnx.Builder, o *ssa.Op, log *ssa.Value) *ssa.Value {
	d := log.DType()
	wide := tensor.Float64
	target := castTo(b, o.Operand(1), tensor.Int64)
	var ignored *ssa.Value
	if _, ok := o.Attr("ignore_index"); ok {
		ignored = b.Op("Equal", target, b.Const(tensor.ScalarInt(o.AttrInt("ignore_index", 0))))
		target = b.Op("Where", ignored, b.Const(tensor.ScalarInt(0)), target)
	}
	one := b.Const(tensor.Ints(1))
	axis := []ssa.Attr{{Name: "axis", Value: ssa.Int(1)}}
	loss := b.Op("Squeeze", b.OpA("GatherElements", axis, log, b.Op("Unsqueeze", target, one)), one)
	loss = b.Op("Neg", castTo(b, loss, wide))
	var weight *ssa.Value // of each target
	if w := o.Operand(2); w != nil {
		weight = castTo(b, b.Op("Gather", w, target), wide)
		loss = b.Op("Mul", loss, weight)
	} else {
		weight = b.Op("Expand", b.Const(tensor.Full(wide, []int64{}, 1)), b.Op("Shape", target))
	}
	if ignored != nil {
		loss, weight = b.Op("Where", ignored, zeroOf(b, wide), loss), b.Op("Where", ignored, zeroOf(b, wide), weight)
	}
	flat := []ssa.Attr{{Name: "keepdims", Value: ssa.Int(0)}}
	switch o.AttrStr("reduction", "mean") {
	case "sum":
		loss = b.OpA("ReduceSum", flat, loss)
	case "mean":
		loss = b.Op("Div", b.OpA("ReduceSum", flat, loss), b.OpA("ReduceSum", flat, weight))
	}
	if d != tensor.Float64 {
		loss = castTo(b, loss, tensor.Float32) // halves are rounded from there
	}
	return castTo(b, loss, d)
}

// causalConv is a depthwise convolution behind the state, which is the end of what it has seen.
func causalConv(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	x, w, past := o.Operand(0), o.Operand(1), o.Operand(3)
	xt, wt := x.Tensor(), w.Tensor()
	if xt == nil || wt == nil || !xt.Ranked || !wt.Ranked || len(xt.Dims) != 3 || len(wt.Dims) != 3 {
		unable("data or weights that are not of rank 3")
	}
	channels, known := wt.Dims[0].Int()
	taps, counted := wt.Dims[2].Int()
	if !known || !counted || taps < 1 {
		unable("weights of unknown size")
	}
	d := x.DType()
	ints := func(v ...int64) *ssa.Value { return b.Const(tensor.Ints(v...)) }
	if past == nil {
		shape := b.Op("Slice", b.Op("Shape", x), ints(0), ints(2), ints(0))
		past = b.Op("Expand", zeroOf(b, d), b.OpA("Concat", []ssa.Attr{{Name: "axis", Value: ssa.Int(0)}}, shape, ints(taps-1)))
	}
	all := b.OpA("Concat", []ssa.Attr{{Name: "axis", Value: ssa.Int(2)}}, past, x)
	operands := []*ssa.Value{castTo(b, all, tensor.Float32), castTo(b, w, tensor.Float32)}
	if bias := o.Operand(2); bias != nil {
		operands = append(operands, castTo(b, bias, tensor.Float32))
	}
	y := b.OpA("Conv", []ssa.Attr{{Name: "group", Value: ssa.Int(channels)}}, operands...)
	if a := o.AttrStr("activation", "none"); a == "silu" || a == "swish" {
		y = b.Op("Mul", y, b.Op("Sigmoid", y))
	}
	end := b.Op("Slice", b.Op("Shape", all), ints(2), ints(3), ints(0))
	state := b.Op("Slice", all, b.Op("Sub", end, ints(taps-1)), end, ints(2))
	return []*ssa.Value{castTo(b, y, d), state}[:len(o.Results)]
}
