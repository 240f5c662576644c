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
func (w *wideMath) sq(x *ssa.Value) *ssa.Value { return w.Mul(x, x) }

func (w *wideMath) scale(x *ssa.Value, k float64) *ssa.Value {
	if k == 1 {
		return x
	}
	return w.Mul(x, w.num(k))
}

func (w *wideMath) plus(x *ssa.Value, k float64) *ssa.Value { return w.Add(x, w.num(k)) }

// expm1 is tanh(x/2) * (exp(x) + 1), which cancels nothing.
func (w *wideMath) expm1(x *ssa.Value) *ssa.Value {
	return w.Mul(w.Tanh(w.scale(x, 0.5)), w.plus(w.Exp(x), 1))
}

// log1p corrects log(1 + x) for what the sum lost.
func (w *wideMath) log1p(x *ssa.Value) *ssa.Value {
	u := w.plus(x, 1)
	kept := w.plus(u, -1)
	y := w.Log(u)
	return w.Where(w.Equal(kept, x), y, w.Sub(y, w.Div(w.Sub(kept, x), u)))
}

// horner is a polynomial, highest power first.
func (w *wideMath) horner(x *ssa.Value, c ...float64) *ssa.Value {
	y := w.num(c[0])
	for _, k := range c[1:] {
		y = w.plus(w.Mul(y, x), k)
	}
	return y
}

// atan halves the angle three times, after which a few terms of the series do.
func (w *wideMath) atan(x *ssa.Value) *ssa.Value {
	a := w.Abs(x)
	// above 1 the reciprocal's angle is the rest of a quarter turn
	big := w.Greater(a, w.num(1))
	t := w.Where(big, w.Reciprocal(a), a)
	for range 3 {
		t = w.Div(t, w.plus(w.Sqrt(w.plus(w.sq(t), 1)), 1))
	}
	c := make([]float64, 9)
	for i := range c {
		n := len(c) - 1 - i
		c[i] = 1 / float64(2*n+1)
		if n%2 == 1 {
			c[i] = -c[i]
		}
	}
	y := w.scale(w.Mul(t, w.horner(w.sq(t), c...)), 8)
	y = w.Where(big, w.Sub(w.num(math.Pi/2), y), y)
	return w.Where(w.Less(x, w.num(0)), w.Neg(y), y)
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
	a := w.Clip(x, w.num(-1), w.num(1))
	a2 := w.sq(a)
	near := w.Mul(w.scale(w.Mul(a, w.Exp(w.Neg(a2))), 2/math.Sqrt(math.Pi)), w.horner(a2, c...))
	size := w.Abs(x)
	p := w.horner(w.Sub(w.num(1), w.Div(w.num(7.5), w.plus(size, 3.75))), formula.Erfcx[:]...)
	tail := w.Mul(w.Exp(w.Neg(w.sq(size))), w.Div(p, w.plus(w.scale(size, 2), 1)))
	far := w.Mul(w.Sub(w.num(1), tail), w.Sign(x))
	return w.Where(w.Less(size, w.num(1)), near, far)
}

// softplus is max(x, 0) + log1p(exp(-|x|)), which does not overflow.
func (w *wideMath) softplus(x *ssa.Value) *ssa.Value {
	return w.Add(w.Max(x, w.num(0)), w.log1p(w.Exp(w.Neg(w.Abs(x)))))
}

func (w *wideMath) cosh(x *ssa.Value) *ssa.Value {
	return w.scale(w.Add(w.Exp(x), w.Exp(w.Neg(x))), 0.5)
}
