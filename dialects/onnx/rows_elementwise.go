package onnx

import (
	"math"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
)

// elementwiseRows holds the operators that work on each element alone.
func elementwiseRows() map[string]row {
	x, y := operand(0), operand(1)
	return map[string]row{
		"Abs": {class: Ring, infer: inferUnary, traits: pointwise},
		"Acos": {
			infer:  inferUnary,
			traits: pointwise,
			other: wide(func(w *wideMath, x *ssa.Value) *ssa.Value {
				return w.scale(w.atan(w.Sqrt(w.Div(w.Sub(w.num(1), x), w.plus(x, 1)))), 2)
			}),
			off: ofOperand(4),
		},
		"Acosh": {
			infer:  inferUnary,
			traits: pointwise,
			down:   []Step{{9, throughDouble}},
			other: wide(func(w *wideMath, x *ssa.Value) *ssa.Value {
				t := w.plus(x, -1)
				return w.log1p(w.Add(t, w.Mul(w.Sqrt(t), w.Sqrt(w.plus(t, 2))))) // NaN below 1, where t and t + 2 may have a positive product
			}),
			off: ofResult(6),
		},
		"Add": {class: Ring, infer: inferBroadcast, traits: broadcasts, up: []Rise{{7, broadcastAt}}},
		"And": {infer: inferCompare, traits: broadcasts, up: []Rise{{7, broadcastAt}}},
		"Asin": {
			infer:  inferUnary,
			traits: pointwise,
			other: wide(func(w *wideMath, x *ssa.Value) *ssa.Value {
				return w.atan(w.Div(x, w.Sqrt(w.Mul(w.Sub(w.num(1), x), w.plus(x, 1)))))
			}),
			off: ofResult(6),
		},
		"Asinh": {
			infer:  inferUnary,
			traits: pointwise,
			down:   []Step{{9, throughDouble}},
			other: wide(func(w *wideMath, x *ssa.Value) *ssa.Value {
				a := w.Abs(x)
				a2 := w.sq(a)
				y := w.log1p(w.Add(a, w.Div(a2, w.plus(w.Sqrt(w.plus(a2, 1)), 1))))
				// where the square could overflow, 1 is nothing beside it
				far := w.plus(w.Log(a), math.Ln2)
				return w.Mul(w.Sign(x), w.Where(w.Less(a, w.num(1e9)), y, far))
			}),
			off: ofResult(6),
		},
		"Atan": {infer: inferUnary, traits: pointwise, other: wide((*wideMath).atan), off: ofResult(4)},
		"Atanh": {
			infer:  inferUnary,
			traits: pointwise,
			down:   []Step{{9, throughDouble}},
			other: wide(func(w *wideMath, x *ssa.Value) *ssa.Value {
				a := w.Abs(x)
				return w.Mul(w.scale(w.Sign(x), 0.5), w.log1p(w.Div(w.scale(a, 2), w.Sub(w.num(1), a))))
			}),
			off: ofResult(6),
		},
		"BitCast":    {infer: inferCast, traits: moves, down: []Step{express(26, bitCast)}},
		"BitShift":   {class: Ring, infer: inferBroadcast, noStep: nothingElse, other: shiftUnsigned},
		"BitwiseAnd": {class: Ring, infer: inferBroadcast, traits: broadcasts, down: []Step{express(18, bitwise("And"))}},
		"BitwiseNot": {class: Ring, infer: inferUnary, traits: pointwise, down: []Step{express(18, bitwiseNot)}},
		"BitwiseOr":  {class: Ring, infer: inferBroadcast, traits: broadcasts, down: []Step{express(18, bitwise("Or"))}},
		"BitwiseXor": {class: Ring, infer: inferBroadcast, traits: broadcasts, down: []Step{express(18, bitwise("Xor"))}},
		"Cast":       {infer: inferCast, traits: moves | pointwise, down: []Step{unsaid(24, "round_mode"), unsaid(19, "saturate")}, up: []Rise{{6, castByName}}},
		"CastLike":   {infer: inferCast, traits: moves, down: []Step{byBody(15)}},
		"Ceil":       {infer: inferUnary, traits: pointwise},
		"Celu": {
			infer: inferUnary, traits: pointwise,
			expr: where(apply("Greater", x, number(0)), x, times(apply("Expm1", quotient(x, attribute("alpha"))), attribute("alpha"))),
			down: []Step{half(12, celu)}, other: byExpression, off: ofResult(4),
		},
		"Clip":             {class: Orders, infer: inferUnary, traits: pointwise, down: []Step{{11, clipAttrs}}, up: []Rise{{11, clipInputs}}, other: bodyOfAny},
		"Cos":              {infer: inferUnary, traits: pointwise, off: ofResult(2)},
		"Cosh":             {infer: inferUnary, traits: pointwise, down: []Step{{9, throughDouble}}, other: wide((*wideMath).cosh), off: ofResult(6)},
		"DequantizeLinear": {infer: inferDequantize, traits: moves, noStep: nothingElse},
		"Div":              {class: Quotients, infer: inferBroadcast, traits: broadcasts, up: []Rise{{7, broadcastAt}}},
		"Elu": {
			infer: inferUnary, traits: pointwise,
			expr:  where(apply("Greater", x, number(0)), x, times(apply("Expm1", x), attribute("alpha"))),
			other: byExpression, off: ofResult(4),
		},
		"Equal": {class: Orders, infer: inferCompare, traits: broadcasts, up: []Rise{{7, broadcastAt}}, other: equalByOrder},
		"Erf":   {infer: inferUnary, traits: pointwise, down: []Step{{9, throughDouble}}, other: wide((*wideMath).erf), off: ofResult(2)},
		"Exp":   {infer: inferUnary, traits: pointwise, off: ofResult(2)},
		"Floor": {infer: inferUnary, traits: pointwise},
		"Gelu": {
			infer: inferUnary, traits: pointwise, spelled: 20,
			expr: times(times(x, number(0.5)), sum(either("approximate", "tanh",
				apply("Tanh", times(sum(x, times(times(times(x, x), x), number(formula.GeluCube))), number(formula.GeluScale))),
				apply("Erf", times(x, number(math.Sqrt2/2)))), number(1))),
			down: []Step{expressed(20)}, other: byExpression, off: ofOperand(4),
		},
		"Greater":        {class: Orders, infer: inferCompare, traits: broadcasts, up: []Rise{{7, broadcastAt}}, other: orderOfLong},
		"GreaterOrEqual": {class: Orders, infer: inferCompare, traits: broadcasts, down: []Step{byBody(12)}},
		"HardSigmoid": {
			infer: inferUnary, traits: pointwise, spelled: 1,
			expr:  apply("Clip", apply("Fma", x, attribute("alpha"), attribute("beta")), number(0), number(1)),
			other: byExpression, off: ofOperand(4),
		},
		"HardSwish": {
			infer: inferUnary, traits: pointwise, spelled: 1,
			expr: times(x, apply("Clip", sum(quotient(x, number(6)), number(0.5)), number(0), number(1))),
			down: []Step{half(14, hardSwish)}, other: byExpression, off: ofOperand(4),
		},
		"IsInf": {class: Orders, infer: inferIs, traits: pointwise, down: []Step{express(10, isInf)}},
		"IsNaN": {class: Orders, infer: inferIs, traits: pointwise, down: []Step{express(9, isNaN)}},
		"LeakyRelu": {
			infer: inferUnary, traits: pointwise,
			expr:  where(apply("Less", x, number(0)), times(x, attribute("alpha")), x),
			other: byExpression, off: ofOperand(4),
		},
		"Less":        {class: Orders, infer: inferCompare, traits: broadcasts, up: []Rise{{7, broadcastAt}}, other: orderOfLong},
		"LessOrEqual": {class: Orders, infer: inferCompare, traits: broadcasts, down: []Step{byBody(12)}},
		"Log":         {infer: inferUnary, traits: pointwise, off: ofResult(2)},
		"Max":         {class: Orders, infer: inferBroadcast, traits: broadcasts, down: []Step{{8, sameShapes}}, other: extremeByWhere},
		"Mean":        {infer: inferBroadcast, other: sumByAdd, off: ofOperand(4)},
		"Min":         {class: Orders, infer: inferBroadcast, traits: broadcasts, down: []Step{{8, sameShapes}}, other: extremeByWhere},
		"Mish": {
			infer: inferUnary, traits: pointwise, spelled: 18,
			expr: times(x, apply("Tanh", apply("Softplus", x))),
			down: []Step{expressed(18)}, other: byExpression, off: ofOperand(4),
		},
		"Mod": {class: Quotients, infer: inferBroadcast, traits: broadcasts, down: []Step{{28, modOfFloats}, express(10, modByDiv)}},
		"Mul": {class: Ring, infer: inferBroadcast, traits: broadcasts, up: []Rise{{7, broadcastAt}}},
		"Neg": {class: Ring, infer: inferUnary, traits: pointwise},
		"Not": {infer: inferUnary, traits: pointwise},
		"Or":  {infer: inferCompare, traits: broadcasts, up: []Rise{{7, broadcastAt}}},
		"PRelu": {
			infer: inferUnary,
			expr:  where(apply("Less", x, number(0)), times(x, y), x),
			up:    []Rise{{7, slopePerChannel}}, other: byExpressionOfAny, off: ofOperand(4),
		},
		"Pow":        {class: Quotients, infer: inferBroadcast, traits: broadcasts, down: []Step{{12, powTypes}}, up: []Rise{{7, broadcastAt}}, other: powByProducts, off: ofResult(32)},
		"Reciprocal": {infer: inferUnary, traits: pointwise},
		"Relu":       {class: Orders, infer: inferUnary, traits: pointwise, other: bodyOfAny},
		"Round":      {infer: inferUnary, traits: pointwise, down: []Step{express(11, roundByFloor)}},
		"Selu": {
			infer: inferUnary, traits: pointwise,
			expr:  times(where(apply("Greater", x, number(0)), x, times(apply("Expm1", x), attribute("alpha"))), attribute("gamma")),
			up:    []Rise{was(6, "alpha", ssa.Float(1.6732)), was(6, "gamma", ssa.Float(1.0507))},
			other: byExpression, off: ofResult(4),
		},
		"Shrink":   {infer: inferUnary, traits: pointwise, down: []Step{byBody(9)}, off: ofOperand(4)},
		"Sigmoid":  {infer: inferUnary, traits: pointwise, off: ofResult(4)},
		"Sign":     {class: Orders, infer: inferUnary, traits: pointwise, down: []Step{express(9, signByOrder)}},
		"Sin":      {infer: inferUnary, traits: pointwise, off: ofResult(2)},
		"Sinh":     {infer: inferUnary, traits: pointwise, down: []Step{{9, throughDouble}}, other: wide(func(w *wideMath, x *ssa.Value) *ssa.Value { return w.Mul(w.Tanh(x), w.cosh(x)) }), off: ofResult(6)},
		"Softplus": {infer: inferUnary, traits: pointwise, other: wide((*wideMath).softplus), off: ofResult(6)},
		"Softsign": {
			infer: inferUnary, traits: pointwise,
			expr:  quotient(x, sum(apply("Abs", x), number(1))),
			other: byExpression, off: ofResult(4),
		},
		"Sqrt": {infer: inferUnary, traits: pointwise},
		"Sub":  {class: Ring, infer: inferBroadcast, traits: broadcasts, up: []Rise{{7, broadcastAt}}},
		"Sum":  {class: Ring, infer: inferBroadcast, other: sumByAdd},
		"SwiGLU": {
			infer: inferBroadcast,
			expr:  times(times(x, apply("Sigmoid", times(x, attribute("alpha")))), y),
			down:  []Step{expressed(28)}, off: ofOperand(4),
		},
		"Swish": {
			infer: inferUnary, traits: pointwise,
			expr: times(x, apply("Sigmoid", times(x, attribute("alpha")))),
			down: []Step{expressed(24)}, other: byExpressionOfAny, off: ofResult(6),
		},
		"Tan":  {infer: inferUnary, traits: pointwise, other: wide(func(w *wideMath, x *ssa.Value) *ssa.Value { return w.Div(w.Sin(x), w.Cos(x)) }), off: ofResult(6)},
		"Tanh": {infer: inferUnary, traits: pointwise, off: ofResult(2)},
		"ThresholdedRelu": {
			infer: inferUnary, traits: pointwise,
			expr: where(apply("Greater", x, attribute("alpha")), x, number(0)),
			down: []Step{expressed(10)}, other: byExpression, off: ofOperand(4),
		},
		"Where": {class: Copies, infer: inferWhere, traits: moves | broadcasts, down: []Step{express(9, whereOld)}},
		"Xor":   {infer: inferCompare, traits: broadcasts, up: []Rise{{7, broadcastAt}}},
	}
}
