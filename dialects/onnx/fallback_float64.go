package onnx

import (
	"math"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pointwise operators on float64 by the operators that onnxruntime has for it:
// arithmetic, Exp, Log, Sqrt, Pow, Sin, Cos, Tanh, Sigmoid. A cast to float32
// would lose digits.

// wide computes an operator of one operand in float64.
func wide(f func(w *wideMath, x *ssa.Value) *ssa.Value) func(*Downgrade, tensor.DType) bool {
	return func(d *Downgrade, t tensor.DType) bool {
		if t != tensor.Float64 {
			return false
		}
		d.Replace(f(&wideMath{d}, d.in(0)))
		return true
	}
}

// wideMath builds float64 arithmetic.
type wideMath struct{ *Downgrade }

func (w *wideMath) num(v float64) *ssa.Value {
	return w.Const(tensor.FromFloats(tensor.Float64, []int64{}, []float64{v}))
}
func (w *wideMath) add(a, b *ssa.Value) *ssa.Value { return w.Op("Add", a, b) }
func (w *wideMath) sub(a, b *ssa.Value) *ssa.Value { return w.Op("Sub", a, b) }
func (w *wideMath) mul(a, b *ssa.Value) *ssa.Value { return w.Op("Mul", a, b) }
func (w *wideMath) div(a, b *ssa.Value) *ssa.Value { return w.Op("Div", a, b) }
func (w *wideMath) exp(x *ssa.Value) *ssa.Value    { return w.Op("Exp", x) }
func (w *wideMath) abs(x *ssa.Value) *ssa.Value    { return w.Op("Abs", x) }
func (w *wideMath) sqrt(x *ssa.Value) *ssa.Value   { return w.Op("Sqrt", x) }
func (w *wideMath) sq(x *ssa.Value) *ssa.Value     { return w.mul(x, x) }
func (w *wideMath) sign(x *ssa.Value) *ssa.Value   { return w.Op("Sign", x) }

func (w *wideMath) scale(x *ssa.Value, k float64) *ssa.Value {
	if k == 1 {
		return x
	}
	return w.mul(x, w.num(k))
}

func (w *wideMath) plus(x *ssa.Value, k float64) *ssa.Value { return w.add(x, w.num(k)) }

// expm1 is tanh(x/2) * (exp(x) + 1), which cancels nothing.
func (w *wideMath) expm1(x *ssa.Value) *ssa.Value {
	return w.mul(w.Op("Tanh", w.scale(x, 0.5)), w.plus(w.exp(x), 1))
}

// log1p corrects log(1 + x) for what the sum lost.
func (w *wideMath) log1p(x *ssa.Value) *ssa.Value {
	u := w.plus(x, 1)
	kept := w.plus(u, -1)
	y := w.Op("Log", u)
	return w.Op("Where", w.Op("Equal", kept, x), y, w.sub(y, w.div(w.sub(kept, x), u)))
}

// horner is a polynomial, highest power first.
func (w *wideMath) horner(x *ssa.Value, c ...float64) *ssa.Value {
	y := w.num(c[0])
	for _, k := range c[1:] {
		y = w.plus(w.mul(y, x), k)
	}
	return y
}

// atan halves the angle three times, after which a few terms of the series do.
func (w *wideMath) atan(x *ssa.Value) *ssa.Value {
	a := w.abs(x)
	// above 1 the reciprocal's angle is the rest of a quarter turn
	big := w.Op("Greater", a, w.num(1))
	t := w.Op("Where", big, w.Op("Reciprocal", a), a)
	for range 3 {
		t = w.div(t, w.plus(w.sqrt(w.plus(w.sq(t), 1)), 1))
	}
	c := make([]float64, 9)
	for i := range c {
		n := len(c) - 1 - i
		c[i] = 1 / float64(2*n+1)
		if n%2 == 1 {
			c[i] = -c[i]
		}
	}
	y := w.scale(w.mul(t, w.horner(w.sq(t), c...)), 8)
	y = w.Op("Where", big, w.sub(w.num(math.Pi/2), y), y)
	return w.Op("Where", w.Op("Less", x, w.num(0)), w.Op("Neg", y), y)
}

// erf is a series of positive terms up to 1; above, 1 less erfc.
func (w *wideMath) erf(x *ssa.Value) *ssa.Value {
	c := make([]float64, 20) // 2^n / (2n + 1)!!, highest power first
	term := 1.0
	for n := range c {
		if n > 0 {
			term *= 2 / float64(2*n+1)
		}
		c[len(c)-1-n] = term
	}
	a := w.Op("Clip", x, w.num(-1), w.num(1))
	a2 := w.sq(a)
	near := w.mul(w.scale(w.mul(a, w.exp(w.Op("Neg", a2))), 2/math.Sqrt(math.Pi)), w.horner(a2, c...))
	size := w.abs(x)
	p := w.horner(w.sub(w.num(1), w.div(w.num(7.5), w.plus(size, 3.75))), formula.Erfcx[:]...)
	tail := w.mul(w.exp(w.Op("Neg", w.sq(size))), w.div(p, w.plus(w.scale(size, 2), 1)))
	far := w.mul(w.sub(w.num(1), tail), w.sign(x))
	return w.Op("Where", w.Op("Less", size, w.num(1)), near, far)
}

// softplus is max(x, 0) + log1p(exp(-|x|)), which does not overflow.
func (w *wideMath) softplus(x *ssa.Value) *ssa.Value {
	return w.add(w.Op("Max", x, w.num(0)), w.log1p(w.exp(w.Op("Neg", w.abs(x)))))
}

func (w *wideMath) cosh(x *ssa.Value) *ssa.Value {
	return w.scale(w.add(w.exp(x), w.exp(w.Op("Neg", x))), 0.5)
}
