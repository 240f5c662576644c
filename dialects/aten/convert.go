package aten

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// convert holds changes of the element type and operators that give their operand back.
var convert = Defs{
	"aten::to":                             {Doc: "x with another element type; devices do not matter", Gradient: "self: is_floating_point(result) ? type_as(grad, self) : (is_complex(result) ? grad : zeros_like(self))", Batching: BatchesInFront, View: ViewIfUnchanged, Layout: LikeOperands, Grid: KeepsGrid, TakesComplex: true, Lower: lowerTo},
	"aten::_to_copy":                       {Doc: "x with another element type", TakesComplex: true, Lower: lowerTo},
	"aten::_autocast_to_full_precision":    {Doc: "x", Lower: same("self")},
	"aten::_autocast_to_reduced_precision": {Doc: "x", Lower: same("self")},
	"aten::type_as":                        {Doc: "x with the element type of other", Gradient: "self: is_floating_point(result) ? type_as(grad, self) : (is_complex(result) ? grad : zeros_like(self)); other: 0", Batching: ReadsOther, View: ViewIfUnchanged, Layout: LikeOperands, TakesComplex: true, Lower: func(l *Lowering) *ssa.Value { return l.Cast(l.Tensor("self"), l.DType(l.Tensor("other"))) }},
	"prim::convert_element_type":           {Doc: "x with another element type", Lower: lowerConvertElementType},
	"prims::convert_element_type":          {Doc: "x with another element type", Lower: lowerConvertElementType},
	"aten::_cast_Byte":                     {Doc: "x as uint8", Lower: castTo(tensor.Uint8)},
	"aten::_cast_Char":                     {Doc: "x as int8", Lower: castTo(tensor.Int8)},
	"aten::_cast_Short":                    {Doc: "x as int16", Lower: castTo(tensor.Int16)},
	"aten::_cast_Int":                      {Doc: "x as int32", Lower: castTo(tensor.Int32)},
	"aten::_cast_Long":                     {Doc: "x as int64", Lower: castTo(tensor.Int64)},
	"aten::_cast_Half":                     {Doc: "x as float16", Lower: castTo(tensor.Float16)},
	"aten::_cast_Float":                    {Doc: "x as float32", Lower: castTo(tensor.Float32)},
	"aten::_cast_Double":                   {Doc: "x as float64", Lower: castTo(tensor.Float64)},
	"aten::_cast_Bool":                     {Doc: "x as bool", Lower: castTo(tensor.Bool)},
	"aten::_cast_BFloat16":                 {Doc: "x as bfloat16", Lower: castTo(tensor.BFloat16)},
	"aten::_cast_ComplexFloat":             {Doc: "x as complex numbers of float32", Lower: castTo(tensor.Complex64)},
	"aten::_cast_ComplexDouble":            {Doc: "x as complex numbers of float64", Lower: castTo(tensor.Complex128)},
	"aten::clone":                          {Doc: "x", Gradient: "self: grad", Nature: Identity, Layout: LikeOperands, Type: likeSelf, Lower: same("self")},
	"aten::contiguous":                     {Doc: "x", Gradient: "self: grad", Nature: Identity, View: ViewIfUnchanged, Layout: RowMajor, Type: likeSelf, Lower: same("self")},
	"aten::detach":                         {Doc: "x", Gradient: NoGradient, Nature: Identity, Lower: same("self")},
	"aten::detach_copy":                    {Doc: "x", Nature: Identity, Lower: same("self")},
	"aten::alias":                          {Doc: "x", Gradient: "self: grad", Nature: Identity, Lower: same("self")},
	"aten::alias_copy":                     {Doc: "x", Nature: Identity, Lower: same("self")},
	"aten::lift":                           {Doc: "x", Nature: Identity, View: AlwaysView, Lower: same("self")},
	"aten::lift_fresh":                     {Doc: "x", Nature: Identity, Lower: same("self")},
	"aten::lift_fresh_copy":                {Doc: "x", Nature: Identity, Lower: same("self")},
	"aten::cpu":                            {Doc: "x", Nature: Identity, View: ViewIfUnchanged, Lower: same("self")},
	"aten::cuda":                           {Doc: "x", Nature: Identity, View: ViewIfUnchanged, Lower: same("self")},
	"aten::to_mkldnn":                      {Doc: "x, in another layout, which ONNX does not know", Lower: lowerLayout},
	"aten::to_dense":                       {Doc: "x, which is no sparse tensor", Lower: lowerLayout},
	"aten::pin_memory":                     {Doc: "x", Nature: Identity, Lower: same("self")},
	"aten::requires_grad_":                 {Doc: "x", Gradient: "self: grad", View: ViewIfUnchanged, Lower: same("self")},
	"aten::_assert_async":                  {Doc: "x", Effects: raises, Lower: same("self")},
	"prim::data":                           {Doc: "x", Lower: same("a")},
	"aten::data":                           {Doc: "x", Nature: Identity, Lower: same("self")},
	"prims::device_put":                    {Doc: "x", Lower: same("a")},
	"prims::clone":                         {Doc: "x", Lower: same("self")},
	"prims::view_of":                       {Doc: "x", Lower: same("a")},
	"aten::copy":                           {Doc: "src broadcast to the shape of self, in its element type", Complex: (*Lowering).complexParts, Lower: lowerCopy},
	"aten::fill":                           {Doc: "value everywhere", Nature: Pointwise, Idempotent: true, Complex: one(complexFill), Lower: func(l *Lowering) *ssa.Value { return l.filled(l.Tensor("self"), "value") }},
	"aten::zero":                           {Doc: "0 everywhere", Nature: Pointwise, Idempotent: true, Lower: func(l *Lowering) *ssa.Value { x := l.Tensor("self"); return l.constLike(x, l.DType(x), 0) }},
}

// lowerLayout gives x in the element type that is asked for.
func lowerLayout(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	return l.Cast(x, l.typeArg(l.DType(x)))
}

// same gives an argument back.
func same(name string) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value { return l.Tensor(name) }
}

func castTo(d tensor.DType) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value { return l.Cast(l.Tensor("self"), d) }
}

func lowerTo(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	if l.HasArg("other") {
		return l.Cast(x, l.DType(l.Tensor("other")))
	}
	if d := l.DTypeArg("dtype"); d != tensor.Undefined {
		return l.Cast(x, d)
	}
	return x
}

func lowerConvertElementType(l *Lowering) *ssa.Value {
	return l.Cast(l.Tensor("a"), l.DTypeArg("dtype"))
}

func lowerCopy(l *Lowering) *ssa.Value {
	x, src := l.Tensor("self"), l.Tensor("src")
	if to, from := x.Tensor(), src.Tensor(); to.Ranked && from.Ranked && !fitsInto(from.Dims, to.Dims) {
		l.Fail("%v cannot be written to %v", from, to) // Expand would make it larger
	}
	src = l.Cast(src, l.DType(x))
	if sameShape(x, src) {
		return src
	}
	return l.Expand(src, l.shapeOf(x))
}

// fitsInto reports sizes that are broadcast to others, as far as they are known.
func fitsInto(from, to []sym.Expr) bool {
	for i := range from {
		k := len(to) - len(from) + i
		if k < 0 {
			return false
		}
		n, known := from[i].Int()
		if m, fixed := to[k].Int(); known && fixed && n != 1 && n != m {
			return false
		}
	}
	return true
}

// filled makes a tensor like x that holds a number, known or not.
func (l *Lowering) filled(x *ssa.Value, name string) *ssa.Value {
	return l.full(l.shapeOf(x), l.DType(x), name)
}

// full makes a tensor of a shape that holds the number of an argument.
func (l *Lowering) full(shape *ssa.Value, d tensor.DType, name string) *ssa.Value {
	if lit, ok := LiteralOf(l.must(name)); ok && lit.IsNumber() && (lit.Kind != ssa.ComplexLit || d.IsComplex()) {
		return l.fill(shape, d, lit)
	}
	v := l.Tensor(name)
	if l.Rank(v) > 0 {
		v = l.reshapeTo(v, l.Const(tensor.Ints()))
	}
	return l.Expand(l.Cast(v, d), shape)
}
