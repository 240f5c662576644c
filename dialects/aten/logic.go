package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Short forms for logic and for questions about values.

// isZero is x == 0, for bool tensors !x.
func (l *Lowering) isZero(x *ssa.Value) *ssa.Value {
	if l.DType(x) == tensor.Bool {
		return l.Not(x)
	}
	return l.Equal(x, l.Like(x, 0))
}

// isNegative is x < 0; never for types without negative numbers.
func (l *Lowering) isNegative(x *ssa.Value) *ssa.Value { return l.Less(x, l.Like(x, 0)) }

// abs is the absolute value.
func (l *Lowering) abs(x *ssa.Value) *ssa.Value {
	if d := l.DType(x); d == tensor.Bool || d.IsUnsigned() {
		return x
	}
	return l.Abs(x)
}

// neg is -x; unsigned integers wrap.
func (l *Lowering) neg(x *ssa.Value) *ssa.Value {
	if d := l.DType(x); d.IsUnsigned() {
		return l.Sub(l.Like(x, 0), x)
	}
	return l.Neg(x)
}

// square is x * x.
func (l *Lowering) square(x *ssa.Value) *ssa.Value { return l.Mul(x, x) }

// offset adds a constant; nothing is built for 0.
func (l *Lowering) offset(x *ssa.Value, k float64) *ssa.Value {
	if k == 0 {
		return x
	}
	return l.Add(x, l.Like(x, k))
}

// max is the greater of both, NaN if one is; true if one is for bool tensors.
func (l *Lowering) max(a, b *ssa.Value) *ssa.Value {
	if l.DType(a) == tensor.Bool {
		return l.Or(a, b)
	}
	return l.Max(a, b)
}

// min is the lesser of both, NaN if one is; true if both are for bool tensors.
func (l *Lowering) min(a, b *ssa.Value) *ssa.Value {
	if l.DType(a) == tensor.Bool {
		return l.And(a, b)
	}
	return l.Min(a, b)
}

// signBit is the sign bit as far as ONNX can see it: negative numbers and -0; the sign of NaN is not visible.
func (l *Lowering) signBit(x *ssa.Value) *ssa.Value {
	d := l.DType(x)
	switch {
	case d == tensor.Bool || d.IsUnsigned():
		return l.Less(l.Cast(x, tensor.Int64), l.Scalar(tensor.Int64, 0))
	case !d.IsFloat():
		return l.isNegative(x)
	}
	if l.Opset >= 26 && d != tensor.BFloat16 {
		return l.isNegative(l.sameBits(x, signedInts[d.Size()]))
	}
	zero := l.And(l.isZero(x), l.isNegative(l.Reciprocal(x)))
	return l.Or(l.isNegative(x), zero)
}

// signOfNaN notes that the sign of NaN cannot be read before opset 26, for an operator whose result depends on it.
func (l *Lowering) signOfNaN(x *ssa.Value) {
	if d := l.DType(x); d.IsFloat() && (l.Opset < 26 || d == tensor.BFloat16) {
		l.assume("the sign of NaN is not asked for", "no operator reads it before opset 26; it is taken as positive")
	}
}

// isNaN is x != x; never for integers.
func (l *Lowering) isNaN(x *ssa.Value) *ssa.Value {
	if !l.DType(x).IsFloat() {
		return l.constLike(x, tensor.Bool, 0)
	}
	return l.IsNaN(x)
}

// isInf is x == inf or x == -inf; never for integers.
func (l *Lowering) isInf(x *ssa.Value) *ssa.Value {
	if !l.DType(x).IsFloat() {
		return l.constLike(x, tensor.Bool, 0)
	}
	return l.IsInf(x)
}

// constLike makes a tensor of x's shape that holds one number.
func (l *Lowering) constLike(x *ssa.Value, d tensor.DType, v float64) *ssa.Value {
	return l.fill(l.shapeOf(x), d, ssa.Float(v))
}

// number is the content of a value of rank 0 if it is known.
func number(v *ssa.Value) (float64, bool) {
	t := onnx.ConstOf(v)
	if t == nil || len(t.Shape) != 0 || !t.HasData() || t.DType == tensor.String || t.DType.IsComplex() {
		return 0, false
	}
	return t.Float64s()[0], true
}

// atLeast reports that an integer value is known to be at least n.
func atLeast(v *ssa.Value, n int64) bool {
	if k, ok := number(v); ok {
		return k >= float64(n)
	}
	return len(v.Sym) == 1 && v.Sym[0].Min() >= n
}

// isNumber reports that a value is the known number k.
func isNumber(v *ssa.Value, k float64) bool {
	n, ok := number(v)
	return ok && n == k
}

// computing is the type in which PyTorch computes: float32 for narrower floats.
func computing(d tensor.DType) tensor.DType {
	if d == tensor.Float16 || d == tensor.BFloat16 {
		return tensor.Float32
	}
	return d
}

// widen gives x in the type in which a formula of several operators computes,
// and the way back, so that the result is rounded once.
func (l *Lowering) widen(x *ssa.Value) (w *ssa.Value, back func(*ssa.Value) *ssa.Value) {
	d := l.DType(x)
	return l.Cast(x, computing(d)), func(y *ssa.Value) *ssa.Value { return l.Cast(y, d) }
}

// broadcast expands both values to their common shape.
func (l *Lowering) broadcast(a, b *ssa.Value) (*ssa.Value, *ssa.Value) {
	if sameShape(a, b) {
		return a, b
	}
	// Expand broadcasts both ways
	return l.Expand(a, l.shapeOf(b)), l.Expand(b, l.shapeOf(a))
}

func sameShape(a, b *ssa.Value) bool {
	s, t := a.Tensor(), b.Tensor()
	if s == nil || t == nil || !s.Ranked || !t.Ranked || len(s.Dims) != len(t.Dims) {
		return false
	}
	for i := range s.Dims {
		if !s.Dims[i].Equal(t.Dims[i]) {
			return false
		}
	}
	return true
}

// mayBeEmpty reports that a value could have no elements. A dynamic axis may be given a size of 0 at run time, whatever
// its lower bound says.
func mayBeEmpty(x *ssa.Value) bool {
	t := x.Tensor()
	if t == nil || !t.Ranked {
		return true
	}
	for _, d := range t.Dims {
		if n, ok := d.Int(); !ok || n < 1 {
			return true
		}
	}
	return false
}

// allTrue is the conjunction over axes, true where there is nothing.
func (l *Lowering) allTrue(x *ssa.Value, axes []int64, keep bool) *ssa.Value {
	op := "ReduceMin"
	if mayBeEmpty(x) {
		op = "ReduceProd"
	}
	return l.Cast(l.reduce(op, l.Cast(x, tensor.Int32), axes, keep), tensor.Bool)
}

// anyTrue is the disjunction over axes, false where there is nothing.
func (l *Lowering) anyTrue(x *ssa.Value, axes []int64, keep bool) *ssa.Value {
	op := "ReduceMax"
	if mayBeEmpty(x) {
		op = "ReduceSum"
	}
	return l.Cast(l.reduce(op, l.Cast(x, tensor.Int32), axes, keep), tensor.Bool)
}
