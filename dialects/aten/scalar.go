package aten

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// scalar holds what TorchScript does with Python numbers that are not known
// until run time: rank 0 tensors of int64, float64 or bool here.
var scalar = Defs{
	"aten::Int":                 {Doc: "a number as an int, truncated", Item: true, Lower: func(l *Lowering) *ssa.Value { return l.scalarOf(l.Tensor("a"), tensor.Int64) }},
	"aten::IntImplicit":         {Doc: "the only element as an int", Item: true, Lower: func(l *Lowering) *ssa.Value { return l.scalarOf(l.Tensor("a"), tensor.Int64) }},
	"aten::Float":               {Doc: "a number as a float", Item: true, Lower: func(l *Lowering) *ssa.Value { return l.scalarOf(l.Tensor("a"), tensor.Float64) }},
	"aten::FloatImplicit":       {Doc: "the only element as a float", Item: true, Lower: func(l *Lowering) *ssa.Value { return l.scalarOf(l.Tensor("a"), tensor.Float64) }},
	"aten::Bool":                {Doc: "whether a number is not 0", Item: true, Lower: func(l *Lowering) *ssa.Value { return l.scalarOf(l.Tensor("a"), tensor.Bool) }},
	"aten::ScalarImplicit":      {Doc: "the only element as a number", Item: true, Lower: func(l *Lowering) *ssa.Value { return l.item(l.Tensor("a")) }},
	"aten::item":                {Doc: "the only element as a number", Item: true, Lower: func(l *Lowering) *ssa.Value { return l.item(l.Tensor("self")) }},
	"aten::_local_scalar_dense": {Doc: "the only element as a number", Item: true, Alias: "aten::item", Lower: func(l *Lowering) *ssa.Value { return l.item(l.Tensor("self")) }},
	"prim::NumToTensor":         {Doc: "a number as a tensor of rank 0", Lower: func(l *Lowering) *ssa.Value { return l.Tensor("a") }},
	"aten::__range_length":      {Doc: "the length of range(lo, hi, step)", Lower: lowerRangeLength},
	"aten::__derive_index":      {Doc: "start + index * step", Lower: lowerDeriveIndex},
	"prim::min":                 {Doc: "the least of two numbers or of a list", Lower: func(l *Lowering) *ssa.Value { return l.extremeNumber("Min") }},
	"prim::max":                 {Doc: "the greatest of two numbers or of a list", Lower: func(l *Lowering) *ssa.Value { return l.extremeNumber("Max") }},
	"prim::abs":                 {Doc: "absolute value of a number", TakesComplex: true, Lower: lowerAbsNumber},
	"aten::fabs":                {Doc: "absolute value of a number as a float", Lower: floatOp((*Lowering).Abs)},
	"aten::degrees":             {Doc: "radians to degrees", Gradient: NoGradient, Alias: "aten::rad2deg", Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.scale(x, 180/math.Pi) })},
	"aten::radians":             {Doc: "degrees to radians", Gradient: NoGradient, Alias: "aten::deg2rad", Lower: floatUnary(func(l *Lowering, x *ssa.Value) *ssa.Value { return l.scale(x, math.Pi/180) })},
	"aten::mathremainder": {Doc: "a less the nearest multiple of b", Lower: func(l *Lowering) *ssa.Value {
		a, b, _ := l.floatPair()
		return l.Sub(a, l.Mul(b, l.Round(l.Div(a, b))))
	}},
	"aten::factorial": {Doc: "n!, up to 20", Lower: lowerFactorial},
	"aten::gamma": {Doc: "the gamma function of a number", Lower: func(l *Lowering) *ssa.Value {
		x := l.operand()
		y := l.Exp(l.lgamma(x))
		// below 0 the sign changes at each integer
		odd := l.Not(l.isZero(l.cmod(l.Floor(x), l.Like(x, 2))))
		return l.Where(l.And(l.isNegative(x), odd), l.neg(y), y)
	}},
	"aten::modf":                     {Doc: "fraction and whole part of a number", LowerN: lowerModf},
	"aten::divmod":                   {Doc: "x // y and x % y of numbers", LowerN: lowerDivmod},
	"aten::sym_max":                  {Doc: "the greatest of two sizes", Lower: func(l *Lowering) *ssa.Value { return l.extremeNumber("Max") }},
	"aten::sym_min":                  {Doc: "the least of two sizes", Lower: func(l *Lowering) *ssa.Value { return l.extremeNumber("Min") }},
	"prim::unchecked_cast":           {Doc: "x with a narrower type", Lower: func(l *Lowering) *ssa.Value { return l.Tensor("x") }},
	"aten::_number_to_tensor":        {Doc: "a number as a tensor of rank 0", Lower: func(l *Lowering) *ssa.Value { return l.Tensor("a") }},
	"aten::__round_to_zero_floordiv": {Doc: "a / b of ints, truncated", Lower: func(l *Lowering) *ssa.Value { a, b, _ := l.pair(); return l.Div(a, b) }},
}

// scalarOf is the only element of a tensor as a rank 0 value of a type.
func (l *Lowering) scalarOf(x *ssa.Value, d tensor.DType) *ssa.Value {
	if l.Rank(x) > 0 {
		x = l.reshapeTo(x, l.Const(tensor.Ints()))
	}
	return l.Cast(x, d)
}

// item keeps the kind of number: int, float or bool.
func (l *Lowering) item(x *ssa.Value) *ssa.Value {
	switch d := l.DType(x); {
	case d == tensor.Bool:
		return l.scalarOf(x, d)
	case d.IsFloat():
		return l.scalarOf(x, tensor.Float64)
	}
	return l.scalarOf(x, tensor.Int64)
}

// lowerRangeLength is max(0, ceil((hi - lo) / step)).
func lowerRangeLength(l *Lowering) *ssa.Value {
	lo, hi, step := l.Tensor("lo"), l.Tensor("hi"), l.Tensor("step")
	zero := l.Scalar(tensor.Int64, 0)
	span := l.Sub(hi, lo)
	if isNumber(step, 1) {
		if atLeast(span, 0) {
			return span
		}
		return l.max(span, zero)
	}
	// ceil(a / b) is -((-a) // b)
	return l.max(l.neg(l.floorDiv(l.neg(span), step)), zero)
}

func lowerDeriveIndex(l *Lowering) *ssa.Value {
	v := l.Tensor("index")
	if step := l.Tensor("step"); !isNumber(step, 1) {
		v = l.Mul(v, step)
	}
	if start := l.Tensor("start"); !isNumber(start, 0) {
		v = l.Add(start, v)
	}
	return v
}

func (l *Lowering) extremeNumber(op string) *ssa.Value {
	if l.numbers() {
		a, b, d := l.pair()
		switch {
		case !d.IsFloat():
			return l.Op(op, a, b)
		case op == "Max": // the comparison decides: b, if one of them is not a number
			return l.Where(l.Greater(a, b), a, b)
		}
		return l.Where(l.Less(a, b), a, b)
	}
	x := l.Tensor("self")
	d := l.DType(x)
	if l.Rank(x) != 1 {
		l.Fail("elementwise extremes of lists")
	}
	if d == tensor.Bool {
		x = l.Cast(x, tensor.Int32)
	}
	if !d.IsFloat() {
		return l.Cast(l.reduce("Reduce"+op, x, nil, false), d)
	}
	// the first element, unless a later one is greater, which none is where one of the two is not a number
	worst := math.Inf(-1)
	if op == "Min" {
		worst = math.Inf(1)
	}
	first := l.gather(x, l.Const(tensor.ScalarInt(0)), 0)
	best := l.reduce("Reduce"+op, l.Where(l.IsNaN(x), l.Like(x, worst), x), nil, false)
	return l.Where(l.IsNaN(first), first, best)
}

func lowerAbsNumber(l *Lowering) *ssa.Value {
	name := "a"
	if !l.HasArg(name) {
		name = "x"
	}
	x := l.Tensor(name)
	if l.DType(x).IsComplex() {
		return l.complexLength(x)
	}
	return l.abs(x)
}

func lowerModf(l *Lowering) []*ssa.Value {
	x := l.operand()
	whole := l.trunc(x)
	return []*ssa.Value{l.Sub(x, whole), whole}
}

// lowerFactorial looks the result up: no more than 20! fits into an int.
func lowerFactorial(l *Lowering) *ssa.Value {
	v := []int64{1}
	for i := int64(1); i <= 20; i++ {
		v = append(v, v[i-1]*i)
	}
	return l.gather(l.i64(v...), l.Tensor("a"), 0)
}
