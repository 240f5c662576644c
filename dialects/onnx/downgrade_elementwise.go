package onnx

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// clipAttrs: the bounds were attributes, whose defaults were the range of float32.
func clipAttrs(d *Downgrade) {
	lo, hi := math.Inf(-1), math.Inf(1)
	ok := true
	if d.in(1) != nil {
		lo, ok = ConstFloat(d.in(1))
	}
	if d.in(2) != nil && ok {
		hi, ok = ConstFloat(d.in(2))
	}
	if !ok || lo > hi { // onnxruntime refuses attributes that cross; the result is the upper bound
		d.Replace(d.Body()...)
		return
	}
	d.Node.SetAttr("min", ssa.Float(lo))
	d.Node.SetAttr("max", ssa.Float(hi))
	d.dropOperands(1)
}

// extremeByWhere picks the greater or lesser of two, then of that and the next.
func extremeByWhere(d *Downgrade, t tensor.DType) bool {
	test := "Greater"
	if d.Node.Kind == "onnx::Min" {
		test = "Less"
	}
	acc := d.in(0)
	for _, v := range d.Node.Operands()[1:] {
		wins := d.Op(test, acc, v)
		if t.IsFloat() { // a NaN wins
			wins = d.Or(wins, d.IsNaN(acc))
		}
		acc = d.Where(wins, acc, v)
	}
	d.Replace(acc)
	return true
}

// equalByOrder: neither less nor greater, and not NaN. The sum of two equal
// elements is NaN only if they are.
func equalByOrder(d *Downgrade, t tensor.DType) bool {
	if !t.IsFloat() {
		return false
	}
	a, b := d.in(0), d.in(1)
	d.Replace(d.Not(d.Or(d.Or(d.Less(a, b), d.Greater(a, b)), d.IsNaN(d.Add(a, b)))))
	return true
}

// orderOfLong compares 64-bit integers by halves that float64 holds. Both
// halves of a number have its sign, so that they order as it does.
func orderOfLong(d *Downgrade, t tensor.DType) bool {
	if t != tensor.Int64 {
		return false
	}
	name := d.Node.Kind.Name()
	k := d.scalarInt(tensor.Int64, 1<<31)
	split := func(v *ssa.Value) (hi, lo *ssa.Value) {
		h := d.Div(v, k)
		return d.cast(h, tensor.Float64), d.cast(d.Sub(v, d.Mul(h, k)), tensor.Float64)
	}
	ah, al := split(d.in(0))
	bh, bl := split(d.in(1))
	same := d.Not(d.Or(d.Less(ah, bh), d.Greater(ah, bh)))
	d.Replace(d.Or(d.Op(name, ah, bh), d.And(same, d.Op(name, al, bl))))
	return true
}

// isNaN: what is neither less than 1 nor greater than 0.
func isNaN(d *Downgrade) *ssa.Value {
	x := d.in(0)
	return d.Not(d.Or(d.Less(x, d.like(x, 1)), d.Greater(x, d.like(x, 0))))
}

// isInf: what is beyond the greatest finite number.
func isInf(d *Downgrade) *ssa.Value {
	x := d.in(0)
	most := math.MaxFloat64
	switch x.DType() {
	case tensor.Float32, tensor.BFloat16:
		x = d.cast(x, tensor.Float32)
		most = math.MaxFloat32
	case tensor.Float16:
		most = 65504
	}
	up := d.Node.AttrInt("detect_positive", 1) != 0
	down := d.Node.AttrInt("detect_negative", 1) != 0
	switch {
	case up && down:
		return d.Greater(d.Abs(x), d.like(x, most))
	case up:
		return d.Greater(x, d.like(x, most))
	case down:
		return d.Less(x, d.like(x, -most))
	}
	return d.IsNaN(d.like(x, 0))
}

// roundByFloor rounds to the nearest integer, ties to the even one.
func roundByFloor(d *Downgrade) *ssa.Value {
	x := d.in(0)
	abs := d.Abs(x)
	f := d.Floor(abs)
	frac := d.Sub(abs, f)
	odd := d.Greater(d.Sub(f, d.Mul(d.like(x, 2), d.Floor(d.Mul(f, d.like(x, 0.5))))), d.like(x, 0.5))
	up := d.Or(d.Greater(frac, d.like(x, 0.5)), d.And(d.Not(d.Less(frac, d.like(x, 0.5))), odd))
	// the sign, that of zero too: where 2x is not clipped, the rounded number is 0 and keeps the sign of x
	sign := d.Clip(d.Add(x, x), d.like(x, -1), d.like(x, 1))
	return d.Mul(d.Add(f, d.cast(up, x.DType())), sign)
}

// signByOrder: 1, -1 or 0; NaN gives 0, as onnxruntime's Sign does.
func signByOrder(d *Downgrade) *ssa.Value {
	x := d.in(0)
	zero := d.like(x, 0)
	t := x.DType()
	return d.Sub(d.cast(d.Greater(x, zero), t), d.cast(d.Less(x, zero), t))
}

// modOfFloats: floats had only the remainder with the sign of the dividend. It is exact, and the divisor is added where the signs
// differ. A remainder of 0 has the sign of the divisor too, by a product: onnxruntime's Where does not keep the sign of 0.
func modOfFloats(d *Downgrade) {
	t := d.in(0).DType()
	if !t.IsFloat() || d.Node.AttrInt("fmod", 0) != 0 {
		return
	}
	b := d.up(d.in(1))
	r := d.Mod(d.up(d.in(0)), b, Fmod(true))
	sign := d.Sign(b)
	apart := d.Less(d.Mul(r, sign), d.like(r, 0))
	y := d.Where(apart, d.Add(r, b), r)
	d.Replace(d.cast(d.Mul(d.Abs(y), sign), t))
}

// modByDiv: the remainder of integers, with the sign of the divisor, and that of floats.
func modByDiv(d *Downgrade) *ssa.Value {
	a, b := d.in(0), d.in(1)
	if !a.DType().IsInt() {
		return modByStages(d)
	}
	r := d.Sub(a, d.Mul(b, d.Div(a, b)))
	if d.Node.AttrInt("fmod", 0) != 0 || a.DType().IsUnsigned() {
		return r
	}
	// other signs: r*b is negative, or a part of it
	zero := d.scalarInt(a.DType(), 0)
	apart := d.Or(d.And(d.Less(r, zero), d.Greater(b, zero)),
		d.And(d.Greater(r, zero), d.Less(b, zero)))
	return d.Add(r, d.Mul(b, d.cast(apart, a.DType())))
}

// digitsOfStage is how many binary digits of the quotient of two floats a stage of modByStages takes off: its product with a divisor of 24 digits is
// exact in float64.
const digitsOfStage = 29

// modByStages: the remainder of floats with the sign of the dividend, exactly, as long division in float64: each stage takes off digits of the quotient,
// and what it has taken off too much by rounding it gives back. Float64 itself has no type to be exact in.
func modByStages(d *Downgrade) *ssa.Value {
	a, b := d.up(d.in(0)), d.up(d.in(1))
	t, f := a.DType(), tensor.Float64
	if t != tensor.Float32 {
		return modByBits(d, a, b)
	}
	digits := 278 // of the greatest quotient
	if d.in(0).DType() == tensor.Float16 {
		digits = 41
	}
	var scales []float64
	for k := (digits - 1) / digitsOfStage; k >= 0; k-- {
		scales = append(scales, math.Ldexp(1, k*digitsOfStage))
	}
	divisor := d.cast(d.Abs(b), f)
	// an infinite divisor takes nothing off
	divisor = d.Where(d.Greater(divisor, d.like(divisor, math.MaxFloat32)), d.like(divisor, math.Ldexp(1, 200)), divisor)
	rest := d.Expand(d.cast(d.Abs(a), f), d.resultShape(a, b))
	yes := d.Const(tensor.FromInts(tensor.Bool, []int64{}, []int64{1}))
	loop := d.Block.InsertBefore(d.Before, "onnx::Loop", d.Loc, []*ssa.Value{d.long(int64(len(scales))), yes, rest}, rest.Type)
	body := loop.AddBlock()
	i, cond, r := body.AddParam("", ssa.Tensor(tensor.Int64)), body.AddParam("", ssa.Tensor(tensor.Bool)), body.AddParam("", rest.Type)
	in := *d
	in.Block, in.Before = body, nil
	m := in.Mul(divisor, in.gather(in.Const(tensor.FromFloats(f, []int64{int64(len(scales))}, scales)), i, 0))
	r = in.Sub(r, in.Mul(in.Floor(in.Div(r, m)), m))
	r = in.Add(r, in.Mul(m, in.cast(in.Less(r, in.like(r, 0)), f)))
	body.SetReturns(in.Identity(cond), r)
	// the sign, that of zero too: what two factors do not bring to 1 is 0
	far := d.like(a, 1e38)
	sign := d.Clip(d.Mul(d.Mul(a, far), far), d.like(a, -1), d.like(a, 1))
	return d.cast(d.cast(d.Mul(loop.Result(0), d.cast(sign, f)), t), d.in(0).DType())
}

// bitsOfQuotient is more than the binary digits that a quotient of two numbers of float64 has.
const bitsOfQuotient = 2100

// modByBits: the remainder of numbers of float64, as long division bit by bit, in which no difference is rounded. The first loop doubles the divisor while
// it fits; the second one takes it off where it does, and halves it until it is the divisor again.
func modByBits(d *Downgrade, a, b *ssa.Value) *ssa.Value {
	t := a.DType()
	shape := d.resultShape(a, b)
	dividend, divisor := d.Expand(d.Abs(a), shape), d.Expand(d.Abs(b), shape)
	zero := d.like(a, 0)
	yes := d.Const(tensor.FromInts(tensor.Bool, []int64{}, []int64{1}))
	any := func(in *Downgrade, c *ssa.Value) *ssa.Value {
		return in.Greater(in.ReduceSum(in.cast(c, tensor.Float32), nil, KeepDims(false)), in.scalar(tensor.Float32, 0))
	}
	number := func(in *Downgrade, c *ssa.Value) *ssa.Value { return in.cast(c, t) }
	loop := func(state []*ssa.Value, step func(in *Downgrade, state []*ssa.Value) (more *ssa.Value, next []*ssa.Value)) []*ssa.Value {
		types := make([]ssa.Type, len(state))
		for i, v := range state {
			types[i] = v.Type
		}
		o := d.Block.InsertBefore(d.Before, "onnx::Loop", d.Loc, append([]*ssa.Value{d.long(bitsOfQuotient), yes}, state...), types...)
		body := o.AddBlock()
		body.AddParam("", ssa.Tensor(tensor.Int64))
		body.AddParam("", ssa.Tensor(tensor.Bool))
		params := make([]*ssa.Value, len(state))
		for i := range state {
			params[i] = body.AddParam("", types[i])
		}
		in := *d
		in.Block, in.Before = body, nil
		more, next := step(&in, params)
		body.SetReturns(append([]*ssa.Value{more}, next...)...)
		return o.Results
	}
	first := loop([]*ssa.Value{divisor}, func(in *Downgrade, state []*ssa.Value) (*ssa.Value, []*ssa.Value) {
		m := state[0]
		fits := in.And(in.Not(in.Greater(in.Add(m, m), dividend)), in.Greater(m, zero))
		return any(in, fits), []*ssa.Value{in.Add(m, in.Mul(m, number(in, fits)))}
	})
	last := loop([]*ssa.Value{dividend, first[0]}, func(in *Downgrade, state []*ssa.Value) (*ssa.Value, []*ssa.Value) {
		r, m := state[0], state[1]
		rest := in.Sub(r, in.Mul(m, number(in, in.Not(in.Less(r, m)))))
		larger := in.Greater(m, divisor)
		return any(in, larger), []*ssa.Value{rest, in.Mul(m, in.Sub(in.like(m, 1), in.Mul(in.like(m, 0.5), number(in, larger))))}
	})
	// a divisor of 0 or NaN gives NaN, and an infinite one takes nothing off
	r := d.Add(last[0], d.Div(zero, divisor))
	r = d.Where(d.Greater(divisor, d.like(a, math.MaxFloat64)), d.Add(dividend, d.Mul(dividend, zero)), r)
	// the sign, that of zero too: 1 or -1 times a number that is not 0, which two factors make large
	far := d.like(a, 1e300)
	sign := d.Clip(d.Mul(d.Mul(a, far), far), d.like(a, -1), d.like(a, 1))
	return d.cast(d.Mul(r, sign), d.in(0).DType())
}

// powByProducts: integer powers with a constant exponent, by squaring.
func powByProducts(d *Downgrade, t tensor.DType) bool {
	e, ok := ConstFloat(d.in(1))
	if !t.IsInt() || !ok || e < 0 || e > 63 || e != math.Trunc(e) {
		return false
	}
	x := d.in(0)
	var acc *ssa.Value
	for n, p := int64(e), x; n > 0; n >>= 1 {
		if n&1 == 1 {
			if acc == nil {
				acc = p
			} else {
				acc = d.Mul(acc, p)
			}
		}
		if n > 1 {
			p = d.Mul(p, p)
		}
	}
	if acc == nil {
		acc = d.Add(d.Sub(x, x), d.scalarInt(t, 1))
	}
	if r := d.in(1).Tensor(); r != nil && len(r.Dims) > len(x.Tensor().Dims) {
		return false
	}
	d.Replace(acc)
	return true
}

// powTypes: base and exponent were of one type.
func powTypes(d *Downgrade) {
	x, y := d.in(0), d.in(1)
	if x.DType() == y.DType() {
		return
	}
	if !x.DType().IsFloat() {
		d.Fail(12, "an integer power of another type")
	}
	d.Node.SetOperand(1, d.cast(y, x.DType()))
}

// sumByAdd: for elements that the operator does not take.
func sumByAdd(d *Downgrade, t tensor.DType) bool {
	acc := d.in(0)
	for _, v := range d.Node.Operands()[1:] {
		acc = d.Add(acc, v)
	}
	if d.Node.Kind == "onnx::Mean" {
		acc = d.Div(acc, d.scalar(t, float64(d.Node.NumOperands())))
	}
	d.Replace(acc)
	return true
}

// whereOld: there was no selection. Of integers it is a sum of products, of
// bools a formula; floats are picked by position from both joined.
func whereOld(d *Downgrade) *ssa.Value {
	c, a, b := d.in(0), d.in(1), d.in(2)
	switch t := a.DType(); {
	case t == tensor.Bool:
		return d.Or(d.And(c, a), d.And(d.Not(c), b))
	case t.IsInt():
		return d.Add(d.Mul(d.cast(c, t), a), d.Mul(d.cast(d.Not(c), t), b))
	}
	shape := d.resultShape(a, b, d.cast(c, a.DType()))
	n := d.ReduceProd(shape, d.ints(0))
	if k, ok := ConstInts(shape); ok {
		all := int64(1)
		for _, s := range k {
			all *= s
		}
		n = d.ints(all)
	}
	full := func(v *ssa.Value) *ssa.Value { return d.reshape(d.Expand(v, shape), -1) }
	both := d.concat(0, full(b), full(a))
	places := d.Range(d.long(0), d.reshape(n), d.long(1))
	at := d.Add(d.Mul(full(d.cast(c, tensor.Int64)), n), places)
	return d.reshapeFlat(d.gather(both, at, 0), n, shape)
}

// reshapeFlat gives a vector of n elements a shape in which a size may be 0, which Reshape takes for the size that its operand has in that place:
// a vector without elements gets sizes of 0 in all places before.
func (d *Downgrade) reshapeFlat(v, n, shape *ssa.Value) *ssa.Value {
	r := d.Node.Result(0)
	t := r.Tensor()
	switch {
	case t == nil || !t.Ranked:
		if mayBeEmpty(r) {
			d.assume("where below opset 9 no size of a choice is 0")
		}
	case len(t.Dims) > 1 && slices.ContainsFunc(t.Dims[1:], func(e sym.Expr) bool { return !e.IsConst() || e.Is(0) }): // an axis of an input may be 0
		behind, first, axes := make([]int64, len(t.Dims)), make([]int64, len(t.Dims)), make([]int64, len(t.Dims)-1)
		first[0] = 1
		for i := range axes {
			behind[i+1], axes[i] = 1, int64(i+1)
		}
		some := d.cast(d.cast(n, tensor.Bool), tensor.Int64)
		v = d.Tile(d.Unsqueeze(v, d.ints(axes...)), d.Add(d.Mul(some, d.ints(behind...)), d.ints(first...)))
	}
	return d.Reshape(v, shape)
}

// resultShape is the shape of the op's result, broadcast from values of one type.
func (d *Downgrade) resultShape(vs ...*ssa.Value) *ssa.Value {
	if t := d.Node.Result(0).Tensor(); t != nil {
		if s, ok := t.Static(); ok {
			return d.ints(s...)
		}
	}
	acc := vs[0]
	for _, v := range vs[1:] {
		acc = d.Add(acc, v)
	}
	return d.Shape(acc)
}

// sameShapes: the operands of Max and Min were not broadcast.
func sameShapes(d *Downgrade) {
	vs := d.Node.Operands()
	out := d.Node.Result(0).Tensor()
	var shape *ssa.Value
	for i, v := range vs {
		if t := v.Tensor(); t != nil && out != nil && t.Ranked && ssa.SameType(t, out) {
			continue
		}
		if shape == nil {
			shape = d.resultShape(vs...)
		}
		vs[i] = d.Expand(v, shape)
	}
	d.Node.SetOperands(vs...)
}

// dropoutAttr: the ratio was an attribute, and whether to train was the runtime's affair.
func dropoutAttr(d *Downgrade) {
	if mode, ok := ConstInts(d.in(2)); d.in(2) != nil && (!ok || mode[0] != 0) {
		d.Fail(12, "dropout that drops")
	}
	if d.used(1) { // all ones by the standard; onnxruntime's kernels of these opsets give zeros
		d.Replace(d.in(0), d.Expand(d.scalarInt(tensor.Bool, 1), d.Shape(d.in(0))))
		return
	}
	if len(d.Node.Results) > 1 {
		d.Node.RemoveResult(1)
	}
	d.Replace(d.in(0))
}
