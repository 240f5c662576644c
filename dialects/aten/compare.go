package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// compare holds comparisons, logic and questions about values; all give bool.
var compare = Defs{
	"aten::eq":            {Doc: "self == other", Gradient: NoGradient, Nature: Pointwise, Prim: true, Complex: one((*Lowering).complexEqual), Type: ofComparison, Lower: comparison((*Lowering).Equal)},
	"aten::ne":            {Doc: "self != other", Gradient: NoGradient, Nature: Pointwise, Prim: true, Complex: one(complexUnequal), Type: ofComparison, Lower: comparison((*Lowering).notEqual)},
	"aten::not_equal":     {Doc: "self != other", Nature: Pointwise, Alias: "aten::ne", Type: ofComparison, Lower: comparison((*Lowering).notEqual)},
	"aten::lt":            {Doc: "self < other", Gradient: NoGradient, Nature: Pointwise, Prim: true, Type: ofComparison, Lower: comparison((*Lowering).Less)},
	"aten::less":          {Doc: "self < other", Nature: Pointwise, Alias: "aten::lt", Type: ofComparison, Lower: comparison((*Lowering).Less)},
	"aten::le":            {Doc: "self <= other", Gradient: NoGradient, Nature: Pointwise, Prim: true, Type: ofComparison, Lower: comparison((*Lowering).LessOrEqual)},
	"aten::less_equal":    {Doc: "self <= other", Nature: Pointwise, Alias: "aten::le", Type: ofComparison, Lower: comparison((*Lowering).LessOrEqual)},
	"aten::gt":            {Doc: "self > other", Gradient: NoGradient, Nature: Pointwise, Prim: true, Type: ofComparison, Lower: comparison((*Lowering).Greater)},
	"aten::greater":       {Doc: "self > other", Nature: Pointwise, Alias: "aten::gt", Type: ofComparison, Lower: comparison((*Lowering).Greater)},
	"aten::ge":            {Doc: "self >= other", Gradient: NoGradient, Nature: Pointwise, Prim: true, Type: ofComparison, Lower: comparison((*Lowering).GreaterOrEqual)},
	"aten::greater_equal": {Doc: "self >= other", Nature: Pointwise, Alias: "aten::ge", Type: ofComparison, Lower: comparison((*Lowering).GreaterOrEqual)},
	"aten::logical_and":   {Doc: "both are not 0", Gradient: NoGradient, Nature: Pointwise, Complex: ofNonzero, Lower: logical((*Lowering).And)},
	"aten::logical_or":    {Doc: "one is not 0", Gradient: NoGradient, Nature: Pointwise, Complex: ofNonzero, Lower: logical((*Lowering).Or)},
	"aten::logical_xor":   {Doc: "just one is not 0", Gradient: NoGradient, Nature: Pointwise, Complex: ofNonzero, Lower: logical((*Lowering).Xor)},
	"aten::logical_not":   {Doc: "x is 0", Gradient: NoGradient, Nature: Pointwise, Complex: ofNonzero, Lower: func(l *Lowering) *ssa.Value { return l.isZero(l.Tensor("self")) }},
	"aten::isnan":         {Doc: "x is not a number", Gradient: NoGradient, Nature: Pointwise, Complex: ofBothParts("Or"), Lower: func(l *Lowering) *ssa.Value { return l.isNaN(l.self()) }},
	"aten::isinf":         {Doc: "x is infinite", Gradient: NoGradient, Nature: Pointwise, Complex: ofBothParts("Or"), Lower: func(l *Lowering) *ssa.Value { return l.isInf(l.self()) }},
	"aten::isposinf":      {Doc: "x is inf", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.isInfOf(true) }},
	"aten::isneginf":      {Doc: "x is -inf", Nature: Pointwise, Lower: func(l *Lowering) *ssa.Value { return l.isInfOf(false) }},
	"aten::isfinite":      {Doc: "x is neither NaN nor infinite", Gradient: NoGradient, Nature: Pointwise, Complex: ofBothParts("And"), Lower: func(l *Lowering) *ssa.Value { return l.isFinite(l.self()) }},
	"aten::isreal":        {Doc: "the imaginary part is 0", Nature: Pointwise, Complex: one(complexIsReal), Lower: func(l *Lowering) *ssa.Value { return l.constLike(lowerReal(l), tensor.Bool, 1) }},
	"aten::signbit":       {Doc: "x has the sign bit; before opset 26 that of NaN is taken as unset", Nature: Pointwise, Prim: true, Lower: func(l *Lowering) *ssa.Value { l.signOfNaN(l.Tensor("self")); return l.signBit(l.Tensor("self")) }},
	"aten::isclose":       {Doc: "|self - other| <= atol + rtol * |other|", Gradient: NoGradient, Nature: Pointwise, Complex: one(complexIsClose), Lower: lowerIsClose},
	"aten::allclose":      {Doc: "all elements are close", Lower: func(l *Lowering) *ssa.Value { return l.allTrue(lowerIsClose(l), nil, false) }},
	"aten::equal":         {Doc: "same shape and elements", Lower: lowerEqual},
	"aten::is_nonzero":    {Doc: "the only element is not 0", Lower: func(l *Lowering) *ssa.Value { return l.scalarOf(l.Tensor("self"), tensor.Bool) }},
	"aten::isin":          {Doc: "whether each element occurs among the others", Batching: BatchesInFront, Lower: lowerIsIn},
}

// self is the operand of a question: self of tensors, a of Python numbers.
func (l *Lowering) self() *ssa.Value {
	if l.HasArg("a") {
		return l.Tensor("a")
	}
	return l.Tensor("self")
}

func (l *Lowering) notEqual(a, b *ssa.Value) *ssa.Value {
	if l.DType(a) == tensor.Bool {
		return l.Xor(a, b)
	}
	return l.Not(l.Equal(a, b))
}

// comparison promotes both operands and compares; bool counts as 0 and 1.
func comparison(f func(l *Lowering, a, b *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		if l.numbers() {
			a, b := l.Tensor("a"), l.Tensor("b")
			d := Promote(l.DType(a), l.DType(b))
			return f(l, l.ordered(l.Cast(a, d)), l.ordered(l.Cast(b, d)))
		}
		a, b, d := l.pair()
		if d == tensor.Bool && l.Node.Kind != "aten::eq" && l.Node.Kind != "aten::ne" && l.Node.Kind != "aten::not_equal" {
			a, b = l.ordered(a), l.ordered(b)
		}
		return f(l, a, b)
	}
}

// ordered makes a bool comparable by size.
func (l *Lowering) ordered(x *ssa.Value) *ssa.Value {
	if l.DType(x) == tensor.Bool {
		return l.Cast(x, tensor.Int32)
	}
	return x
}

// logical applies a connective to the truth of both operands.
func logical(f func(l *Lowering, a, b *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		return f(l, l.Cast(l.Tensor("self"), tensor.Bool), l.Cast(l.Tensor("other"), tensor.Bool))
	}
}

func (l *Lowering) isInfOf(positive bool) *ssa.Value {
	x := l.Tensor("self")
	if !l.DType(x).IsFloat() {
		return l.constLike(x, tensor.Bool, 0)
	}
	return l.IsInf(x, onnx.DetectNegative(!positive), onnx.DetectPositive(positive))
}

// isFinite is |x| < inf, false for NaN.
func (l *Lowering) isFinite(x *ssa.Value) *ssa.Value {
	if !l.DType(x).IsFloat() {
		return l.constLike(x, tensor.Bool, 1)
	}
	return l.Less(l.abs(x), l.Like(x, math.Inf(1)))
}

func lowerIsClose(l *Lowering) *ssa.Value {
	vs, d := l.promoted("self", "other")
	a, b := vs[0], vs[1]
	rtol, atol := l.NumberOr("rtol", 1e-5), l.NumberOr("atol", 1e-8)
	same := l.Equal(a, b)
	if d.IsFloat() && l.Bool("equal_nan") {
		same = l.Or(same, l.And(l.isNaN(a), l.isNaN(b)))
	}
	if rtol.is(0) && atol.is(0) {
		return same
	}
	if !d.IsFloat() {
		a, b = l.Cast(a, tensor.Float32), l.Cast(b, tensor.Float32)
	}
	allowed := l.plusNumber(l.abs(l.byNumber(b, rtol)), atol)
	gap := l.abs(l.Sub(a, b))
	near := l.LessOrEqual(gap, allowed)
	if d.IsFloat() {
		near = l.And(near, l.isFinite(gap))
	}
	return l.Or(same, near)
}

func lowerEqual(l *Lowering) *ssa.Value {
	vs, _ := l.promoted("self", "other")
	s, t := l.Shape(vs[0]), l.Shape(vs[1])
	differ := len(s) != len(t)
	unsure := false
	for i := 0; i < len(s) && !differ; i++ {
		m, known := s[i].Int()
		n, known2 := t[i].Int()
		switch {
		case known && known2:
			differ = m != n
		case !s[i].Equal(t[i]):
			unsure = true
		}
	}
	if differ {
		return l.scalarInt(tensor.Bool, 0)
	}
	if !unsure {
		return l.allTrue(l.Equal(vs[0], vs[1]), nil, false)
	}
	// what both have is compared, and their sizes
	a, b := l.shapeOf(vs[0]), l.shapeOf(vs[1])
	start, end := l.i64(make([]int64, len(s))...), l.Min(a, b)
	common := l.allTrue(l.Equal(l.Slice(vs[0], start, end, nil, nil), l.Slice(vs[1], start, end, nil, nil)), nil, false)
	return l.And(common, l.allTrue(l.Equal(a, b), nil, false))
}

func lowerIsIn(l *Lowering) *ssa.Value {
	name, among := "elements", "test_elements"
	if l.HasArg("element") {
		name = "element"
	}
	if l.HasArg("test_element") {
		among = "test_element"
	}
	vs, _ := l.promoted(name, among)
	x, set := vs[0], l.reshape(vs[1], -1)
	found := l.anyTrue(l.Equal(l.unsqueeze(x, -1), set), []int64{-1}, false)
	if l.Bool("invert") {
		return l.Not(found)
	}
	return found
}
