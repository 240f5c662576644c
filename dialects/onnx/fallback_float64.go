package onnx

import (
	"math"

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

// attr is a float attribute of the op.
func (w *wideMath) attr(name string, def float64) float64 { return w.Node.AttrFloat(name, def) }

// positive chooses a where x > 0.
func (w *wideMath) positive(x, a, b *ssa.Value) *ssa.Value {
	return w.Op("Where", w.Op("Greater", x, w.num(0)), a, b)
}

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

// erf is a series of positive terms up to 3; above, 1 less erfc (Numerical Recipes, erfcc).
func (w *wideMath) erf(x *ssa.Value) *ssa.Value {
	c := make([]float64, 64) // 2^n / (2n + 1)!!, highest power first
	term := 1.0
	for n := range c {
		if n > 0 {
			term *= 2 / float64(2*n+1)
		}
		c[len(c)-1-n] = term
	}
	a := w.Op("Clip", x, w.num(-3), w.num(3))
	a2 := w.sq(a)
	near := w.mul(w.scale(w.mul(a, w.exp(w.Op("Neg", a2))), 2/math.Sqrt(math.Pi)), w.horner(a2, c...))
	size := w.abs(x)
	t := w.Op("Reciprocal", w.plus(w.scale(size, 0.5), 1))
	p := w.horner(t, 0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223)
	tail := w.mul(t, w.exp(w.sub(p, w.sq(size))))
	far := w.mul(w.sub(w.num(1), tail), w.sign(x))
	return w.Op("Where", w.Op("Less", size, w.num(3)), near, far)
}

func (w *wideMath) elu(x *ssa.Value, alpha, gamma float64) *ssa.Value {
	return w.scale(w.positive(x, x, w.scale(w.expm1(x), alpha)), gamma)
}

func (w *wideMath) hardSigmoid(x *ssa.Value, alpha, beta float64) *ssa.Value {
	return w.Op("Clip", w.plus(w.scale(x, alpha), beta), w.num(0), w.num(1))
}

// softplus is max(x, 0) + log1p(exp(-|x|)), which does not overflow.
func (w *wideMath) softplus(x *ssa.Value) *ssa.Value {
	return w.add(w.Op("Max", x, w.num(0)), w.log1p(w.exp(w.Op("Neg", w.abs(x)))))
}

func (w *wideMath) cosh(x *ssa.Value) *ssa.Value {
	return w.scale(w.add(w.exp(x), w.exp(w.Op("Neg", x))), 0.5)
}

func (w *wideMath) gelu(x *ssa.Value) *ssa.Value {
	half := w.scale(x, 0.5)
	if w.Node.AttrStr("approximate", "none") == "tanh" {
		inner := w.add(x, w.scale(w.mul(w.sq(x), x), 0.044715))
		return w.mul(half, w.plus(w.Op("Tanh", w.scale(inner, math.Sqrt(2/math.Pi))), 1))
	}
	return w.mul(half, w.plus(w.erf(w.scale(x, math.Sqrt2/2)), 1))
}

func float64Fallbacks() map[string]func(*Downgrade, tensor.DType) bool {
	type value = *ssa.Value
	return map[string]func(*Downgrade, tensor.DType) bool{
		"Acos": wide(func(w *wideMath, x value) value {
			return w.scale(w.atan(w.sqrt(w.div(w.sub(w.num(1), x), w.plus(x, 1)))), 2)
		}),
		"Acosh": wide(func(w *wideMath, x value) value {
			t := w.plus(x, -1)
			return w.log1p(w.add(t, w.sqrt(w.mul(t, w.plus(t, 2)))))
		}),
		"Asin": wide(func(w *wideMath, x value) value {
			return w.atan(w.div(x, w.sqrt(w.mul(w.sub(w.num(1), x), w.plus(x, 1)))))
		}),
		"Asinh": wide(func(w *wideMath, x value) value {
			a := w.abs(x)
			a2 := w.sq(a)
			y := w.log1p(w.add(a, w.div(a2, w.plus(w.sqrt(w.plus(a2, 1)), 1))))
			// where the square could overflow, 1 is nothing beside it
			far := w.plus(w.Op("Log", a), math.Ln2)
			return w.mul(w.sign(x), w.Op("Where", w.Op("Less", a, w.num(1e9)), y, far))
		}),
		"Atan": wide((*wideMath).atan),
		"Atanh": wide(func(w *wideMath, x value) value {
			a := w.abs(x)
			return w.mul(w.scale(w.sign(x), 0.5), w.log1p(w.div(w.scale(a, 2), w.sub(w.num(1), a))))
		}),
		"Celu": wide(func(w *wideMath, x value) value {
			k := w.attr("alpha", 1)
			return w.positive(x, x, w.scale(w.expm1(w.scale(x, 1/k)), k))
		}),
		"Cosh":      wide((*wideMath).cosh),
		"Elu":       wide(func(w *wideMath, x value) value { return w.elu(x, w.attr("alpha", 1), 1) }),
		"Erf":       wide((*wideMath).erf),
		"Gelu":      wide((*wideMath).gelu),
		"HardSwish": wide(func(w *wideMath, x value) value { return w.mul(x, w.hardSigmoid(x, 1.0/6, 0.5)) }),
		"HardSigmoid": wide(func(w *wideMath, x value) value {
			return w.hardSigmoid(x, w.attr("alpha", 0.2), w.attr("beta", 0.5))
		}),
		"LeakyRelu": wide(func(w *wideMath, x value) value {
			return w.positive(x, x, w.scale(x, w.attr("alpha", 0.01)))
		}),
		"Mish": wide(func(w *wideMath, x value) value { return w.mul(x, w.Op("Tanh", w.softplus(x))) }),
		"Selu": wide(func(w *wideMath, x value) value {
			return w.elu(x, w.attr("alpha", 1.67326319217681884765625), w.attr("gamma", 1.05070102214813232421875))
		}),
		"Sinh":     wide(func(w *wideMath, x value) value { return w.mul(w.Op("Tanh", x), w.cosh(x)) }),
		"Softplus": wide((*wideMath).softplus),
		"Softsign": wide(func(w *wideMath, x value) value { return w.div(x, w.plus(w.abs(x), 1)) }),
		"Tan":      wide(func(w *wideMath, x value) value { return w.div(w.Op("Sin", x), w.Op("Cos", x)) }),
		"ThresholdedRelu": wide(func(w *wideMath, x value) value {
			return w.Op("Where", w.Op("Greater", x, w.num(w.attr("alpha", 1))), x, w.num(0))
		}),
	}
}
