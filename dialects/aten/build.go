package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Short forms for the ONNX operators that lowerings build most.

func attr(name string, v ssa.Literal) ssa.Attr { return ssa.Attr{Name: name, Value: v} }

// intAttr is an int attribute.
func intAttr(name string, v int64) ssa.Attr { return attr(name, ssa.Int(v)) }

// floatAttr is a float attribute.
func floatAttr(name string, v float64) ssa.Attr { return attr(name, ssa.Float(v)) }

// I64 makes a rank 1 int64 constant.
func (l *Lowering) I64(v ...int64) *ssa.Value { return l.Const(tensor.Ints(v...)) }

// Scalar makes a rank 0 constant of a type.
func (l *Lowering) Scalar(d tensor.DType, v float64) *ssa.Value {
	return l.Const(tensor.FromFloats(d, []int64{}, []float64{v}))
}

// ScalarInt makes a rank 0 constant of a type from an integer, exact over all of int64.
func (l *Lowering) ScalarInt(d tensor.DType, v int64) *ssa.Value {
	return l.Const(tensor.FromInts(d, []int64{}, []int64{v}))
}

// Like makes a rank 0 constant of x's type.
func (l *Lowering) Like(x *ssa.Value, v float64) *ssa.Value { return l.Scalar(l.DType(x), v) }

// Cast converts to an element type as PyTorch does; nothing is built if x has it already.
func (l *Lowering) Cast(x *ssa.Value, d tensor.DType) *ssa.Value {
	if x.DType() == d {
		return x
	}
	if d.IsComplex() || x.DType().IsComplex() {
		return l.castComplex(x, d)
	}
	if d.ONNX() == 0 || d == tensor.String {
		l.Fail("no conversion from %v to %v in ONNX", x.DType(), d)
	}
	// ONNX leaves float -> narrow unsigned or out of range integers undefined; int64 first, as C++ compilers for x86 do.
	if x.DType().IsFloat() && d.IsInt() && d.Size() < 4 {
		x = l.OpA("Cast", []ssa.Attr{intAttr("to", int64(tensor.Int64.ONNX()))}, x)
	}
	return l.OpA("Cast", []ssa.Attr{intAttr("to", int64(d.ONNX()))}, x)
}

// Reshape changes the shape to known sizes; one may be -1. Sizes of 0 mean 0.
func (l *Lowering) Reshape(x *ssa.Value, shape ...int64) *ssa.Value {
	return l.ReshapeTo(x, l.I64(shape...))
}

// ReshapeTo changes the shape to that in a rank 1 int64 tensor; a 0 in it means 0.
func (l *Lowering) ReshapeTo(x, shape *ssa.Value) *ssa.Value {
	mayBeZero := true
	if t := onnx.ConstOf(shape); t != nil {
		mayBeZero = false
		for _, n := range t.Int64s() {
			mayBeZero = mayBeZero || n == 0
		}
	} else if shape.Sym != nil {
		mayBeZero = false
		for _, e := range shape.Sym {
			mayBeZero = mayBeZero || e.Min() < 1 && !e.Is(-1)
		}
	}
	if mayBeZero && l.Opset >= 14 {
		hasMinusOne := false
		if t := onnx.ConstOf(shape); t != nil {
			for _, n := range t.Int64s() {
				hasMinusOne = hasMinusOne || n == -1
			}
		}
		if !hasMinusOne && shape.Sym != nil || onnx.ConstOf(shape) != nil && !hasMinusOne {
			return l.OpA("Reshape", []ssa.Attr{intAttr("allowzero", 1)}, x, shape)
		}
	}
	return l.Op("Reshape", x, shape)
}

// Unsqueeze inserts axes of size 1 at the given places of the result.
func (l *Lowering) Unsqueeze(x *ssa.Value, axes ...int64) *ssa.Value {
	if len(axes) == 0 {
		return x
	}
	return l.Op("Unsqueeze", x, l.I64(axes...))
}

// Squeeze removes axes of size 1.
func (l *Lowering) Squeeze(x *ssa.Value, axes ...int64) *ssa.Value {
	if len(axes) == 0 {
		return x
	}
	return l.Op("Squeeze", x, l.I64(axes...))
}

// Transpose permutes the axes.
func (l *Lowering) Transpose(x *ssa.Value, perm ...int64) *ssa.Value {
	return l.OpA("Transpose", []ssa.Attr{attr("perm", ssa.Ints(perm...))}, x)
}

// SwapAxes exchanges two axes.
func (l *Lowering) SwapAxes(x *ssa.Value, a, b int) *ssa.Value {
	l.dimension(x, a)
	l.dimension(x, b)
	perm := axesFrom(0, l.Rank(x))
	perm[a], perm[b] = perm[b], perm[a]
	return l.Transpose(x, perm...)
}

// ConcatV joins along an axis.
func (l *Lowering) ConcatV(axis int64, vs ...*ssa.Value) *ssa.Value {
	if len(vs) == 1 {
		return vs[0]
	}
	return l.OpA("Concat", []ssa.Attr{intAttr("axis", axis)}, vs...)
}

// Gather picks along an axis by constant or computed indices.
func (l *Lowering) Gather(x, indices *ssa.Value, axis int) *ssa.Value {
	return l.OpA("Gather", []ssa.Attr{intAttr("axis", int64(axis))}, x, indices)
}

// SliceC slices one axis by constants.
func (l *Lowering) SliceC(x *ssa.Value, axis int, start, end, step int64) *ssa.Value {
	return l.Op("Slice", x, l.I64(start), l.I64(end), l.I64(int64(axis)), l.I64(step))
}

// Reduce applies a Reduce operator over axes; no axes means all of them.
func (l *Lowering) Reduce(op string, x *ssa.Value, axes []int64, keep bool) *ssa.Value {
	k := int64(0)
	if keep {
		k = 1
	}
	if len(axes) == 0 {
		return l.OpA(op, []ssa.Attr{intAttr("keepdims", k)}, x)
	}
	return l.OpA(op, []ssa.Attr{intAttr("keepdims", k)}, x, l.I64(axes...))
}

// ShapeOf is the shape as a rank 1 int64 tensor.
func (l *Lowering) ShapeOf(x *ssa.Value) *ssa.Value { return l.Op("Shape", x) }

// Expand broadcasts to a shape in a rank 1 int64 tensor.
func (l *Lowering) Expand(x, shape *ssa.Value) *ssa.Value { return l.Op("Expand", x, shape) }

// Fill makes a tensor of the shape in a rank 1 int64 tensor, all v.
func (l *Lowering) Fill(shape *ssa.Value, d tensor.DType, v ssa.Literal) *ssa.Value {
	one := l.fillValue(d, v)
	return l.OpA("ConstantOfShape", []ssa.Attr{attr("value", ssa.TensorValue(one))}, shape)
}

func (l *Lowering) fillValue(d tensor.DType, v ssa.Literal) *tensor.Tensor {
	if v.Kind == ssa.FloatLit {
		return tensor.FromFloats(d, []int64{1}, []float64{v.Float()})
	}
	return tensor.FromInts(d, []int64{1}, []int64{v.Int()})
}

// Arithmetic on values of one type.

// Add is a + b.
func (l *Lowering) Add(a, b *ssa.Value) *ssa.Value { return l.Op("Add", a, b) }

// Sub is a - b.
func (l *Lowering) Sub(a, b *ssa.Value) *ssa.Value { return l.Op("Sub", a, b) }

// Mul is a * b.
func (l *Lowering) Mul(a, b *ssa.Value) *ssa.Value { return l.Op("Mul", a, b) }

// Div is a / b; integers truncate.
func (l *Lowering) Div(a, b *ssa.Value) *ssa.Value { return l.Op("Div", a, b) }

// Where selects a where c is true, else b.
func (l *Lowering) Where(c, a, b *ssa.Value) *ssa.Value { return l.Op("Where", c, a, b) }

// Scale multiplies by a constant; nothing is built for 1.
func (l *Lowering) Scale(x *ssa.Value, k float64) *ssa.Value {
	if k == 1 {
		return x
	}
	return l.Mul(x, l.Like(x, k))
}

// Aten lowers another operator with the given arguments in schema order:
// values, numbers, bools, strings, nil, []int64 or []*ssa.Value (a list of
// tensors). Values are ONNX values. name is aten::add.Tensor, with its
// overload. Missing trailing arguments take their defaults.
func (l *Lowering) Aten(name string, args ...any) *ssa.Value { return l.AtenN(name, args...)[0] }

// AtenN is Aten for operators with several results.
func (l *Lowering) AtenN(name string, args ...any) []*ssa.Value {
	s := SchemaByName(name)
	if s == nil {
		l.Fail("no schema %s", name)
	}
	b := l.Block
	operands := make([]*ssa.Value, len(s.Args))
	own := map[*ssa.Value]bool{}
	for i := range s.Args {
		var a any
		switch {
		case i < len(args):
			a = args[i]
		case s.Args[i].HasDefault:
			a = s.Args[i].Default
		}
		v, isValue := a.(*ssa.Value)
		if isValue && v != nil {
			operands[i] = v
			own[v] = true
			continue
		}
		if vs, ok := a.([]*ssa.Value); ok {
			list := b.InsertBefore(l.Before, "prim::ListConstruct", l.Loc, vs, &ssa.ListType{Elem: ssa.AnyTensor})
			for _, v := range vs {
				own[v] = true
			}
			operands[i] = list.Results[0]
			continue
		}
		lit := toLiteral(a)
		c := b.InsertBefore(l.Before, "prim::Constant", l.Loc, nil, lit.Type())
		c.SetAttr("value", lit)
		operands[i] = c.Results[0]
	}
	types := make([]ssa.Type, len(s.Returns))
	for i := range types {
		types[i] = s.Returns[i].Type
	}
	o := b.InsertBefore(l.Before, ssa.Kind(s.Name), l.Loc, operands, types...)
	o.Schema = s
	outer := l.env
	l.env = func(v *ssa.Value) *ssa.Value {
		if own[v] {
			return v
		}
		return outer(v)
	}
	vs, err := l.Lower(o)
	l.env = outer
	o.Erase()
	for _, v := range operands {
		if d := v.Def(); d != nil && !own[v] && !v.HasUses() && (d.Kind == "prim::Constant" || d.Kind == "prim::ListConstruct") {
			d.Erase()
		}
	}
	if err != nil {
		panic(err)
	}
	return vs
}

func toLiteral(a any) ssa.Literal {
	switch a := a.(type) {
	case ssa.Literal:
		return a
	case int:
		return ssa.Int(int64(a))
	case int64:
		return ssa.Int(a)
	case float64:
		return ssa.Float(a)
	case bool:
		return ssa.Bool(a)
	case string:
		return ssa.Str(a)
	case []int64:
		return ssa.Ints(a...)
	case tensor.DType:
		return ssa.Int(int64(a.Code()))
	}
	return ssa.None
}
