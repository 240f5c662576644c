package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Short forms for the ONNX operators that lowerings build most.

// i64 makes a rank 1 int64 constant.
func (l *Lowering) i64(v ...int64) *ssa.Value { return l.Const(tensor.Ints(v...)) }

// Scalar makes a rank 0 constant of a type.
func (l *Lowering) Scalar(d tensor.DType, v float64) *ssa.Value {
	return l.Const(tensor.FromFloats(d, []int64{}, []float64{v}))
}

// scalarInt makes a rank 0 constant of a type from an integer, exact over all of int64.
func (l *Lowering) scalarInt(d tensor.DType, v int64) *ssa.Value {
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
		x = l.Builder.Cast(x, tensor.Int64)
	}
	return l.Builder.Cast(x, d)
}

// reshape changes the shape to known sizes; one may be -1. Sizes of 0 mean 0.
func (l *Lowering) reshape(x *ssa.Value, shape ...int64) *ssa.Value {
	return l.reshapeTo(x, l.i64(shape...))
}

// reshapeTo changes the shape to that in a rank 1 int64 tensor; a 0 in it means 0.
func (l *Lowering) reshapeTo(x, shape *ssa.Value) *ssa.Value {
	sizes, known := onnx.SymOf(shape)
	mayBeZero := !known
	for _, e := range sizes {
		mayBeZero = mayBeZero || e.Min() < 1 && !e.Is(-1)
	}
	if mayBeZero {
		return l.Reshape(x, shape, onnx.AllowZero(true))
	}
	return l.Reshape(x, shape)
}

// unsqueeze inserts axes of size 1 at the given places of the result.
func (l *Lowering) unsqueeze(x *ssa.Value, axes ...int64) *ssa.Value {
	if len(axes) == 0 {
		return x
	}
	return l.Unsqueeze(x, l.i64(axes...))
}

// squeeze removes axes of size 1.
func (l *Lowering) squeeze(x *ssa.Value, axes ...int64) *ssa.Value {
	if len(axes) == 0 {
		return x
	}
	return l.Squeeze(x, l.i64(axes...))
}

// transpose permutes the axes.
func (l *Lowering) transpose(x *ssa.Value, perm ...int64) *ssa.Value {
	return l.Transpose(x, onnx.Perm(perm...))
}

// swapAxes exchanges two axes.
func (l *Lowering) swapAxes(x *ssa.Value, a, b int) *ssa.Value {
	l.dimension(x, a)
	l.dimension(x, b)
	perm := axesFrom(0, l.Rank(x))
	perm[a], perm[b] = perm[b], perm[a]
	return l.transpose(x, perm...)
}

// concatV joins along an axis.
func (l *Lowering) concatV(axis int64, vs ...*ssa.Value) *ssa.Value {
	if len(vs) == 1 {
		return vs[0]
	}
	return l.Concat(axis, vs...)
}

// gather picks along an axis by constant or computed indices.
func (l *Lowering) gather(x, indices *ssa.Value, axis int) *ssa.Value {
	return l.Gather(x, indices, onnx.Axis(axis))
}

// sliceC slices one axis by constants.
func (l *Lowering) sliceC(x *ssa.Value, axis int, start, end, step int64) *ssa.Value {
	return l.Slice(x, l.i64(start), l.i64(end), l.i64(int64(axis)), l.i64(step))
}

// reduce applies a Reduce operator over axes; no axes means all of them.
func (l *Lowering) reduce(op string, x *ssa.Value, axes []int64, keep bool) *ssa.Value {
	switch d := l.DType(x); { // ONNX has no types of these
	case (op == "ReduceMax" || op == "ReduceMin") && (d == tensor.Bool || d == tensor.Int16):
		return l.Cast(l.reduce(op, l.Cast(x, tensor.Int32), axes, keep), d)
	case (op == "ReduceSum" || op == "ReduceProd") && d.IsInt() && d.Size() < 4: // sums and products wrap around
		return l.Cast(l.reduce(op, l.Cast(x, tensor.Int64), axes, keep), d)
	}
	var over *ssa.Value
	if len(axes) > 0 {
		over = l.i64(axes...)
	}
	return l.OpA(op, []ssa.Attr{onnx.KeepDims(keep)}, x, over)
}

// shapeOf is the shape as a rank 1 int64 tensor.
func (l *Lowering) shapeOf(x *ssa.Value) *ssa.Value { return l.Builder.Shape(x) }

// fill makes a tensor of the shape in a rank 1 int64 tensor, all v; of a complex type, the pair of two.
func (l *Lowering) fill(shape *ssa.Value, d tensor.DType, v ssa.Literal) *ssa.Value {
	if d.IsComplex() {
		c := v.Complex()
		return l.Pair(l.fill(shape, RealOf(d), ssa.Float(real(c))), l.fill(shape, RealOf(d), ssa.Float(imag(c))))
	}
	one := l.fillValue(d, v)
	return l.ConstantOfShape(shape, onnx.Value(one))
}

func (l *Lowering) fillValue(d tensor.DType, v ssa.Literal) *tensor.Tensor {
	if v.Kind == ssa.FloatLit {
		return tensor.FromFloats(d, []int64{1}, []float64{v.Float()})
	}
	return tensor.FromInts(d, []int64{1}, []int64{v.Int()})
}

// Arithmetic on values of one type.

// scale multiplies by a constant; nothing is built for 1.
func (l *Lowering) scale(x *ssa.Value, k float64) *ssa.Value {
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
	var made []*ssa.Op
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
			made = append(made, list)
			continue
		}
		c := l.literalOp(toLiteral(a))
		operands[i] = c.Results[0]
		made = append(made, c)
	}
	types := make([]ssa.Type, len(s.Returns))
	for i := range types {
		types[i] = s.Returns[i].Type
	}
	o := b.InsertBefore(l.Before, ssa.Kind(s.Name), l.Loc, operands, types...)
	o.Schema = s
	return l.lowerMade(o, own, made)
}

// literalOp makes a constant for an op that is lowered by lowerMade.
func (l *Lowering) literalOp(lit ssa.Literal) *ssa.Op {
	c := l.Block.InsertBefore(l.Before, "prim::Constant", l.Loc, nil, lit.Type())
	c.SetAttr("value", lit)
	return c
}

// lowerMade lowers an op that was made for that, and erases it and what was made for its operands. Operands that are ONNX values already are in own.
func (l *Lowering) lowerMade(o *ssa.Op, own map[*ssa.Value]bool, made []*ssa.Op) []*ssa.Value {
	outer := l.env
	l.env = func(v *ssa.Value) (*ssa.Value, *Failure) {
		if own[v] {
			return v, nil
		}
		return outer(v)
	}
	vs, err := l.Lower(o)
	l.env = outer
	o.Erase()
	for _, m := range made {
		if !m.Results[0].HasUses() {
			m.Erase()
		}
	}
	if err != nil {
		panic(err)
	}
	return vs
}

// argumentsFor are the arguments of the op at hand for a schema that begins with self: another self, and others in place of those that are named.
func (l *Lowering) argumentsFor(s *ssa.Schema, self *ssa.Value, with map[string]any) []any {
	args := []any{self}
	for _, a := range s.Args[1:] {
		other, replaced := with[a.Name]
		switch v := l.Arg(a.Name); {
		case replaced:
			args = append(args, other)
		case v.Tensor() != nil:
			args = append(args, l.Value(v))
		default:
			args = append(args, l.Literal(a.Name))
		}
	}
	return args
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
