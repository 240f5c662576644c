package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Number is a real number that an argument holds: one that is known at export, or a value of the run. A formula that takes
// Numbers serves both; attributes of ONNX operators need the first.
type Number struct {
	k float64
	v *ssa.Value // of rank 0 and float64; nil for a number that is known
}

// constNumber is a number that is known.
func constNumber(k float64) Number { return Number{k: k} }

// Number is a number that an argument holds.
func (l *Lowering) Number(name string) Number {
	if l.IsConst(name) {
		return constNumber(l.Float(name))
	}
	v := l.Tensor(name)
	if l.DType(v).IsComplex() || l.Rank(v) != 0 {
		l.Fail("argument %q must be a real number", name)
	}
	return Number{v: l.Cast(v, tensor.Float64)}
}

// NumberOr is Number, def if the argument is None or the overload lacks it.
func (l *Lowering) NumberOr(name string, def float64) Number {
	if l.IsNone(name) {
		return constNumber(def)
	}
	return l.Number(name)
}

// Known gives the number if it is known at export.
func (n Number) Known() (k float64, ok bool) { return n.k, n.v == nil }

// is reports a number that is known to be k.
func (n Number) is(k float64) bool { return n.v == nil && n.k == k }

// known reports that all numbers are known at export.
func known(ns ...Number) bool {
	for _, n := range ns {
		if n.v != nil {
			return false
		}
	}
	return true
}

// LikeNumber is a number as a rank 0 tensor of x's type.
func (l *Lowering) LikeNumber(x *ssa.Value, n Number) *ssa.Value {
	if n.v == nil {
		return l.Like(x, n.k)
	}
	return l.Cast(n.v, l.DType(x))
}

// byNumber is x * n.
func (l *Lowering) byNumber(x *ssa.Value, n Number) *ssa.Value {
	if n.is(1) {
		return x
	}
	return l.Mul(x, l.LikeNumber(x, n))
}

// plusNumber is x + n.
func (l *Lowering) plusNumber(x *ssa.Value, n Number) *ssa.Value {
	if n.is(0) {
		return x
	}
	return l.Add(x, l.LikeNumber(x, n))
}

// linearNumber is a * n + b.
func (l *Lowering) linearNumber(n Number, a, b float64) Number {
	if n.v == nil {
		return constNumber(a*n.k + b)
	}
	return Number{v: l.offset(l.scale(n.v, a), b)}
}

// oneOver is 1 / n.
func (l *Lowering) oneOver(n Number) Number {
	if n.v == nil {
		return constNumber(1 / n.k)
	}
	return Number{v: l.Div(l.Like(n.v, 1), n.v)}
}

// timesNumber is a * b.
func (l *Lowering) timesNumber(a, b Number) Number {
	if known(a, b) {
		return constNumber(a.k * b.k)
	}
	unit := l.Scalar(tensor.Float64, 1)
	return Number{v: l.Mul(l.LikeNumber(unit, a), l.LikeNumber(unit, b))}
}

// meanNumber is (a + b) / 2.
func (l *Lowering) meanNumber(a, b Number) Number {
	if known(a, b) {
		return constNumber((a.k + b.k) / 2)
	}
	unit := l.Scalar(tensor.Float64, 1)
	return Number{v: l.scale(l.Add(l.LikeNumber(unit, a), l.LikeNumber(unit, b)), 0.5)}
}
