package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Type promotion as in c10/core/ScalarType.cpp and ATen/native/TypeProperties.cpp:
// operands count in three priorities, tensors with dimensions, rank 0 tensors and
// Python numbers ("wrapped"); a lower priority only matters through its category.

// Promote is plain promotion of two types; Undefined is neutral.
func Promote(a, b tensor.DType) tensor.DType {
	switch {
	case a == b || b == tensor.Undefined:
		return a
	case a == tensor.Undefined:
		return b
	case a == tensor.Bool:
		return b
	case b == tensor.Bool:
		return a
	case a.IsComplex() || b.IsComplex():
		// the width of the wider real part
		return complexOf(Promote(RealOf(a), RealOf(b)))
	case a.IsFloat() && b.IsFloat():
		if a.Size() == b.Size() {
			return tensor.Float32 // float16 with bfloat16
		}
		if a.Size() > b.Size() {
			return a
		}
		return b
	case a.IsFloat():
		return a
	case b.IsFloat():
		return b
	case a.IsUnsigned() == b.IsUnsigned():
		if a.Size() >= b.Size() {
			return a
		}
		return b
	case a.IsUnsigned():
		return mixedSign(a, b)
	}
	return mixedSign(b, a)
}

func mixedSign(unsigned, signed tensor.DType) tensor.DType {
	if signed.Size() > unsigned.Size() {
		return signed
	}
	switch unsigned.Size() {
	case 1:
		return tensor.Int16
	case 2:
		return tensor.Int32
	}
	return tensor.Int64
}

// RealOf is the type of the parts of complex numbers of a type; types of real numbers are their own.
func RealOf(d tensor.DType) tensor.DType {
	switch d {
	case tensor.Complex32:
		return tensor.Float16
	case tensor.Complex64:
		return tensor.Float32
	case tensor.Complex128:
		return tensor.Float64
	}
	if !d.IsFloat() {
		return tensor.Undefined
	}
	return d
}

func complexOf(d tensor.DType) tensor.DType {
	switch d {
	case tensor.Float16:
		return tensor.Complex32
	case tensor.Float64:
		return tensor.Complex128
	}
	return tensor.Complex64
}

func category(d tensor.DType) int {
	switch {
	case d == tensor.Undefined:
		return -1
	case d == tensor.Bool:
		return 0
	case d.IsFloat():
		return 2
	case d.IsComplex():
		return 3
	}
	return 1
}

// CanCast reports that an operator whose result has one element type may write it to a tensor of another one, as torch.can_cast does.
func CanCast(from, to tensor.DType) bool { return category(from) <= category(to) }

// combine lets a lower priority raise the result only by its category.
func combine(high, low tensor.DType) tensor.DType {
	if high == tensor.Undefined {
		return low
	}
	if low == tensor.Undefined || category(low) <= category(high) {
		return high
	}
	if high.IsFloat() && low.IsComplex() {
		return complexOf(high)
	}
	return Promote(high, low)
}

// Priorities of an operand.
const (
	dimensioned = iota
	zeroDim
	wrapped
)

// priorityOf classes a source value.
func priorityOf(v *ssa.Value) int {
	t := v.Tensor()
	switch {
	case t == nil:
		return wrapped
	case t.Rank() == 0:
		return zeroDim
	}
	return dimensioned
}

// numberDType is the type that a Python number brings into promotion.
func (l *Lowering) numberDType(v *ssa.Value) tensor.DType {
	lit, ok := LiteralOf(v)
	if ok {
		switch lit.Kind {
		case ssa.BoolLit:
			return tensor.Bool
		case ssa.IntLit:
			return tensor.Int64
		case ssa.FloatLit:
			return tensor.Float32
		case ssa.ComplexLit:
			return tensor.Complex64
		}
	}
	switch v.Type {
	case ssa.BoolType:
		return tensor.Bool
	case ssa.IntType:
		return tensor.Int64
	case ssa.ComplexType:
		return tensor.Complex64
	}
	if v.Type == ssa.NumberType {
		if w := l.lowered(v); w != nil && !w.DType().IsFloat() {
			return w.DType()
		}
	}
	return tensor.Float32
}

// resultType is torch.result_type of source values; nil ones do not count.
func (l *Lowering) resultType(vs ...*ssa.Value) tensor.DType {
	var by [3]tensor.DType
	for _, v := range vs {
		if v == nil {
			continue
		}
		if lit, ok := LiteralOf(v); ok && lit.IsNone() {
			continue
		}
		p := priorityOf(v)
		d := v.DType()
		if p == wrapped {
			d = l.numberDType(v)
		} else {
			l.DType(v)
		}
		by[p] = Promote(by[p], d)
	}
	return combine(by[dimensioned], combine(by[zeroDim], by[wrapped]))
}

// argType is ResultType of the arguments of the given names.
func (l *Lowering) argType(names ...string) tensor.DType {
	vs := make([]*ssa.Value, len(names))
	for i, n := range names {
		vs[i] = l.Arg(n)
	}
	return l.resultType(vs...)
}

// floatType is ArgType with integers and bool made the default float type, float32.
func (l *Lowering) floatType(names ...string) tensor.DType {
	d := l.argType(names...)
	if category(d) < 2 {
		return tensor.Float32
	}
	return d
}

// as is an argument converted to an element type.
func (l *Lowering) as(name string, d tensor.DType) *ssa.Value { return l.asType(l.must(name), d) }

func (l *Lowering) asType(v *ssa.Value, d tensor.DType) *ssa.Value {
	if lit, ok := LiteralOf(v); ok && lit.IsNumber() && lit.Kind != ssa.ComplexLit && !d.IsComplex() {
		if lit.Kind == ssa.FloatLit {
			return l.Scalar(d, lit.Float())
		}
		return l.scalarInt(d, lit.Int())
	}
	return l.Cast(l.Value(v), d)
}

// promoted gives the arguments converted to their common type.
func (l *Lowering) promoted(names ...string) (vs []*ssa.Value, d tensor.DType) {
	d = l.argType(names...)
	vs = make([]*ssa.Value, len(names))
	for i, n := range names {
		vs[i] = l.as(n, d)
	}
	return vs, d
}

// FloatArg is an argument converted to float32 if it holds integers or bools.
func (l *Lowering) FloatArg(name string) *ssa.Value { return l.as(name, l.floatType(name)) }
