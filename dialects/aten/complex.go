package aten

import (
	"math"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// ONNX has no operators on complex numbers, so a complex value is a pair of
// real ones: an op of the kind complexPair, which stands for nothing in the ONNX
// model and goes away when all its users have read its parts.
const (
	complexPair ssa.Kind = "aton::Complex"
	// realOfOp and imagOfOp read the parts of a value that is not a pair: while
	// types are inferred, or where one comes from outside, which is an error in the end.
	realOfOp ssa.Kind = "aton::Real"
	imagOfOp ssa.Kind = "aton::Imag"
)

// Pair is the complex tensor of two real ones of one type. It has the shape of the first, over which the second broadcasts.
func (l *Lowering) Pair(re, im *ssa.Value) *ssa.Value {
	t := re.Tensor()
	if !t.Ranked {
		l.Rank(re)
	}
	o := l.Block.InsertBefore(l.Before, complexPair, l.Loc, []*ssa.Value{re, im}, ssa.Tensor(complexOf(t.DType), t.Dims...))
	return o.Results[0]
}

// parts are the real and the imaginary part of a value; the latter is nil for a real one.
func (l *Lowering) parts(v *ssa.Value) (re, im *ssa.Value) {
	if !v.DType().IsComplex() {
		return v, nil
	}
	if d := v.Def(); d != nil && d.Kind == complexPair {
		return d.Operand(0), d.Operand(1)
	}
	rd := RealOf(v.DType())
	if t := onnx.ConstOf(v); t != nil && t.HasData() && t.DType != tensor.Complex32 {
		n := t.NumElements()
		a, b := make([]float64, n), make([]float64, n)
		if t.DType == tensor.Complex64 {
			for i, c := range tensor.Data[complex64](t) {
				a[i], b[i] = float64(real(c)), float64(imag(c))
			}
		} else {
			for i, c := range tensor.Data[complex128](t) {
				a[i], b[i] = real(c), imag(c)
			}
		}
		return l.Const(tensor.FromFloats(rd, t.Shape, a)), l.Const(tensor.FromFloats(rd, t.Shape, b))
	}
	t := v.Tensor().WithDType(rd)
	part := func(k ssa.Kind) *ssa.Value {
		return l.Block.InsertBefore(l.Before, k, l.Loc, []*ssa.Value{v}, t).Results[0]
	}
	return part(realOfOp), part(imagOfOp)
}

// Parts are the real and the imaginary part of a complex tensor, of the same shape.
func (l *Lowering) Parts(v *ssa.Value) (re, im *ssa.Value) {
	re, im = l.parts(v)
	if a, b := re.Tensor(), im.Tensor(); !a.Ranked || !b.Ranked || !slices.EqualFunc(a.Dims, b.Dims, sym.Expr.Equal) {
		im = l.Expand(im, l.shapeOf(re))
	}
	return re, im
}

// partsAs gives both parts of an argument, a number or a tensor, in a real type.
func (l *Lowering) partsAs(name string, d tensor.DType) (re, im *ssa.Value) {
	v := l.must(name)
	if lit, ok := LiteralOf(v); ok && lit.IsNumber() {
		c := lit.Complex()
		return l.Scalar(d, real(c)), l.Scalar(d, imag(c))
	}
	re, im = l.parts(l.Value(v))
	if im == nil {
		re = l.Cast(re, d)
		return re, l.fill(l.shapeOf(re), d, ssa.Int(0))
	}
	return l.Cast(re, d), l.Cast(im, d)
}

// isComplexValue reports a source value that is complex or a list with such a member.
func isComplexValue(v *ssa.Value) bool {
	if v == nil {
		return false
	}
	if v.DType().IsComplex() || v.Type == ssa.ComplexType {
		return true
	}
	if es, ok := ListElems(v); ok {
		for _, e := range es {
			if isComplexValue(e) {
				return true
			}
		}
	}
	return false
}

// complexDef finds how an operator acts on complex operands. ok is false if it has none of them.
func (t *Table) complexDef(o *ssa.Op) (d Def, ok bool) {
	any := false
	tensors := false
	for i := range o.NumOperands() {
		if v := o.Operand(i); v != nil {
			any = any || isComplexValue(v)
			tensors = tensors || v.Tensor() != nil
			if _, list := ListElems(v); list {
				tensors = true
			}
		}
	}
	if tensors && t.custom[o.Kind] == nil {
		if d, ok := t.complexCast(o); ok {
			return d, true
		}
	}
	if !any || !tensors || t.custom[o.Kind] != nil {
		return Def{}, false
	}
	if rule := complexRule(o.Kind); rule != nil {
		return Def{LowerN: rule}, true
	}
	if o.Kind.Namespace() != "aten" || row(o.Kind).TakesComplex {
		return Def{}, false
	}
	return Def{Why: "complex numbers: ONNX has no operators on them, and the operator is not among those that aton takes apart"}, true
}

// complexCast is how an operator acts that makes real tensors complex first, or complex ones real, by its argument dtype.
func (t *Table) complexCast(o *ssa.Op) (d Def, ok bool) {
	s := o.Schema
	if s == nil || len(s.Args) == 0 || s.Args[0].Name != "self" || o.NumOperands() == 0 || o.Operand(0).Tensor() == nil {
		return Def{}, false
	}
	at := slices.IndexFunc(s.Args, func(a ssa.SchemaArg) bool { return a.Name == "dtype" })
	if at < 0 || at >= o.NumOperands() {
		return Def{}, false
	}
	lit, known := LiteralOf(o.Operand(at))
	if !known || lit.Kind != ssa.IntLit {
		return Def{}, false
	}
	to, complex := tensor.FromCode(int(lit.Int())), isComplexValue(o.Operand(0))
	if to.IsComplex() == complex {
		return Def{}, false
	}
	name := o.Kind.Name()
	if strings.Contains(name, "_like") || strings.HasPrefix(name, "new_") || name == "to" || name == "_to_copy" || name == "view" || name == "view_copy" {
		return Def{}, false // what they make has the type, and they cast nothing else, or nothing at all
	}
	if !complex && complexRule(o.Kind) == nil {
		return Def{}, false
	}
	return Def{LowerN: func(l *Lowering) []*ssa.Value {
		return l.AtenN(s.Name+overloadSuffix(s), l.argumentsFor(s, l.Cast(l.Tensor("self"), to), map[string]any{"dtype": ssa.None})...)
	}}, true
}

// complexRule is how an operator acts on pairs: what its row says, or what follows from its nature; nil if there is no rule.
func complexRule(k ssa.Kind) func(l *Lowering) []*ssa.Value {
	d := row(k)
	switch n := d.Nature; {
	case d.Complex != nil:
		return d.Complex
	case n.MovesElements(), n == Scatters, n == Joins:
		return (*Lowering).complexParts
	case n == Multilinear:
		return (*Lowering).complexBilinear
	case n == CreatesLike:
		return one(complexLike)
	}
	return nil
}

// one is the rule of an operator with one result.
func one(f func(l *Lowering) *ssa.Value) func(l *Lowering) []*ssa.Value {
	return func(l *Lowering) []*ssa.Value { return []*ssa.Value{f(l)} }
}

func complexConj(l *Lowering) *ssa.Value {
	re, im := l.parts(l.Tensor("self"))
	return l.Pair(re, l.Neg(im))
}

// complexAdjoint is of what transposes and conjugates.
func complexAdjoint(l *Lowering) *ssa.Value {
	return l.Pair(l.onParts(0)[0], l.Neg(l.onParts(1)[0]))
}

// ofBothParts joins what a predicate says of each part.
func ofBothParts(join string) func(l *Lowering) []*ssa.Value {
	return one(func(l *Lowering) *ssa.Value { return l.Op(join, l.onParts(0)[0], l.onParts(1)[0]) })
}

// complexTrapezoid multiplies what is below the curve and the steps, where these are given.
func complexTrapezoid(l *Lowering) []*ssa.Value {
	if l.HasArg("x") {
		return l.complexBilinear()
	}
	return l.complexParts()
}

// ofRealPart is of what only the shape matters to.
func ofRealPart(l *Lowering) []*ssa.Value { return l.onParts(0) }

// onParts lowers the op at hand on part k[i] of its i-th complex operand, 0 for
// the real and 1 for the imaginary one; the last entry stands for all that follow.
//
// A number that fills the result up is taken apart too, by the first entry.
func (l *Lowering) onParts(k ...int) []*ssa.Value {
	seen := 0
	number := func(c complex128) float64 { return real(c) }
	if k[0] == 1 {
		number = func(c complex128) float64 { return imag(c) }
	}
	return l.onReal(number, func(v *ssa.Value) *ssa.Value {
		which := k[min(seen, len(k)-1)]
		seen++
		re, im := l.parts(v)
		if which == 0 {
			return re
		}
		if im == nil { // a real member of a list
			im = l.fill(l.shapeOf(re), l.DType(re), ssa.Int(0))
		}
		return im
	})
}

// written are the arguments whose elements go into others.
var written = []string{"src", "source", "values", "tensor1"}

// onReal lowers the op at hand on a real tensor for each complex operand, on a real number for one that fills, and without
// a bias. A real tensor that is written into a complex one is taken for complex.
func (l *Lowering) onReal(number func(c complex128) float64, of func(v *ssa.Value) *ssa.Value) []*ssa.Value {
	o := l.Node
	own := map[*ssa.Value]bool{}
	part := func(v *ssa.Value) *ssa.Value {
		x := of(l.Value(v))
		own[x] = true
		return x
	}
	var made []*ssa.Op
	constant := func(lit ssa.Literal) *ssa.Value {
		c := l.literalOp(lit)
		made = append(made, c)
		return c.Results[0]
	}
	argument := func(i int) string {
		if o.Schema == nil || i >= len(o.Schema.Args) {
			return ""
		}
		return o.Schema.Args[i].Name
	}
	into := l.HasArg("self") && isComplexValue(l.Arg("self"))
	operands := make([]*ssa.Value, o.NumOperands())
	for i := range operands {
		v := o.Operand(i)
		operands[i] = v
		es, list := ListElems(v)
		lit, known := LiteralOf(v)
		name := argument(i)
		switch {
		case name == "bias" && !l.IsNone("bias"):
			operands[i] = constant(ssa.None)
		case number != nil && (name == "value" || name == "fill_value") && known && lit.IsNumber():
			operands[i] = constant(ssa.Float(number(lit.Complex())))
		case name == "dtype" && known && lit.Kind == ssa.IntLit && tensor.FromCode(int(lit.Int())).IsComplex():
			operands[i] = constant(ssa.Int(int64(RealOf(tensor.FromCode(int(lit.Int()))).Code())))
		case v.DType().IsComplex() || into && v.Tensor() != nil && slices.Contains(written, name):
			operands[i] = part(v)
		case list && isComplexValue(v):
			members := make([]*ssa.Value, len(es))
			for j, e := range es {
				members[j] = part(e)
			}
			list := l.Block.InsertBefore(l.Before, "prim::ListConstruct", l.Loc, members, &ssa.ListType{Elem: ssa.AnyTensor})
			made = append(made, list)
			operands[i] = list.Results[0]
		case v.Type == ssa.ComplexType:
			l.Fail("a complex number as argument")
		}
	}
	types := make([]ssa.Type, len(o.Results))
	for i, r := range o.Results {
		types[i] = r.Type
	}
	n := l.Block.InsertBefore(l.Before, o.Kind, l.Loc, operands, types...)
	n.Schema, n.Attrs = o.Schema, o.Attrs
	return l.lowerMade(n, own, made)
}

// pairUp makes complex results of the lowerings of both parts.
func (l *Lowering) pairUp(re, im []*ssa.Value) []*ssa.Value {
	out := make([]*ssa.Value, len(re))
	for i := range re {
		if re[i].Tensor() == nil {
			l.Fail("a list of unknown length of complex tensors")
		}
		out[i] = l.Pair(re[i], im[i])
	}
	return out
}

// complexParts acts on each part alone.
func (l *Lowering) complexParts() []*ssa.Value {
	switch {
	case l.HasArg("self") && l.Arg("self").Tensor() != nil && !isComplexValue(l.Arg("self")):
		if n := l.Node.Kind.Name(); n != "copy" && !strings.HasSuffix(n, "_as") {
			l.Fail("complex numbers written into a real tensor")
		}
		return l.onParts(0) // a copy drops the imaginary part; of what is only shaped alike, the shape matters
	case l.HasArg("reduce") && !l.IsNone("reduce") && l.Str("reduce") != "add":
		l.Fail("complex numbers joined by %q", l.Str("reduce"))
	case l.HasArg("train") && l.Bool("train") && l.Float("p") != 0 && l.Float("p") != 1: // all or nothing is not drawn
		l.Fail("dropout of complex numbers in training: their parts would be drawn apart")
	}
	return l.pairUp(l.onParts(0), l.onParts(1))
}

// mostComplex bounds the complex operands of a product: each doubles the real products that it is multiplied out to.
const mostComplex = 4

// complexBilinear is (a + ib)(c + id) for a product that is linear in each of its operands, of which several may be complex.
func (l *Lowering) complexBilinear() []*ssa.Value {
	n := 0
	for i := range l.Node.NumOperands() {
		v := l.Node.Operand(i)
		if l.HasArg("bias") && v == l.Arg("bias") {
			continue
		}
		if es, ok := ListElems(v); ok && isComplexValue(v) {
			n += len(es) // a real one among them has a part of zeros
		} else if v.DType().IsComplex() {
			n++
		} else if v.Type == ssa.ComplexType {
			return []*ssa.Value{l.complexTimesNumber()}
		}
	}
	if n > mostComplex {
		l.Fail("a product of %d complex operands", n)
	}
	var parts [2]*ssa.Value
	for pick := range 1 << n {
		which := make([]int, max(n, 1))
		imaginary := 0
		for i := range n {
			which[i] = pick >> i & 1
			imaginary += which[i]
		}
		term := l.onParts(which...)[0]
		sum := &parts[imaginary%2]
		switch {
		case *sum == nil && imaginary < 2:
			*sum = term
		case imaginary%4 < 2:
			*sum = l.Add(*sum, term)
		default: // i² and i³
			*sum = l.Sub(*sum, term)
		}
	}
	if parts[1] == nil { // only the bias is complex
		parts[1] = l.fill(l.shapeOf(parts[0]), l.DType(parts[0]), ssa.Int(0))
	}
	z := l.Pair(parts[0], parts[1])
	if l.HasArg("bias") && !l.IsNone("bias") {
		bias := l.Tensor("bias")
		if l.HasArg("weight") && l.Node.Kind.Name() != "linear" { // along the channels of a convolution
			re, im := l.parts(bias)
			axes := make([]int64, max(0, l.Rank(l.Tensor("weight"))-2))
			for i := range axes {
				axes[i] = int64(i) + 1
			}
			re = l.unsqueeze(re, axes...)
			if bias = re; im != nil {
				bias = l.Pair(re, l.unsqueeze(im, axes...))
			}
		}
		z = l.Aten("aten::add.Tensor", z, bias)
	}
	return []*ssa.Value{z}
}

// complexView is of another shape, or has the parts side by side as real numbers.
func complexView(l *Lowering) []*ssa.Value {
	if !l.HasArg("dtype") {
		return l.complexParts()
	}
	z := l.Tensor("self")
	switch to := l.DTypeArg("dtype"); to {
	case l.DType(z):
		return []*ssa.Value{z}
	case RealOf(l.DType(z)):
		return []*ssa.Value{l.Aten("aten::flatten.using_ints", l.Aten("aten::view_as_real", z), -2, -1)}
	default:
		l.Fail("complex numbers viewed as %v", to)
		return nil
	}
}

// complexType is the type of the parts of what the arguments promote to.
func (l *Lowering) complexType(names ...string) tensor.DType {
	d := RealOf(l.argType(names...))
	if d == tensor.Undefined {
		return tensor.Float32
	}
	return d
}

// complexTimesNumber is a tensor times a complex Python number.
func (l *Lowering) complexTimesNumber() *ssa.Value {
	d := l.complexType("self", "other")
	a, b := l.partsAs("self", d)
	c, e := l.partsAs("other", d)
	return l.Pair(l.timesComplex(a, b, c, e))
}

// timesComplex is (a + ib)(c + ie) in parts.
func (l *Lowering) timesComplex(a, b, c, e *ssa.Value) (re, im *ssa.Value) {
	return l.Sub(l.Mul(a, c), l.Mul(b, e)), l.Add(l.Mul(a, e), l.Mul(b, c))
}

func (l *Lowering) complexSum(sign float64) *ssa.Value {
	d := l.complexType("self", "other")
	a, b := l.partsAs("self", d)
	c, e := l.partsAs("other", d)
	if l.HasArg("alpha") {
		sign *= l.Float("alpha")
	}
	return l.Pair(l.Add(a, l.scale(c, sign)), l.Add(b, l.scale(e, sign)))
}

// complexRsub is other - alpha * self.
func complexRsub(l *Lowering) *ssa.Value {
	d := l.complexType("self", "other")
	a, b := l.partsAs("self", d)
	c, e := l.partsAs("other", d)
	k := 1.0
	if l.HasArg("alpha") {
		k = l.Float("alpha")
	}
	return l.Pair(l.Sub(c, l.scale(a, k)), l.Sub(e, l.scale(b, k)))
}

func complexDiv(l *Lowering) *ssa.Value {
	if l.Str("rounding_mode") != "" {
		l.Fail("rounded division of complex numbers")
	}
	d := l.complexType("self", "other")
	a, b := l.partsAs("self", d)
	if !isComplexValue(l.Arg("other")) {
		c := l.as("other", d)
		return l.Pair(l.Div(a, c), l.Div(b, c))
	}
	c, e := l.partsAs("other", d)
	n := l.Add(l.Mul(c, c), l.Mul(e, e))
	re, im := l.Add(l.Mul(a, c), l.Mul(b, e)), l.Sub(l.Mul(b, c), l.Mul(a, e))
	return l.Pair(l.Div(re, n), l.Div(im, n))
}

func complexReciprocal(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	n := l.Add(l.Mul(a, a), l.Mul(b, b))
	return l.Pair(l.Div(a, n), l.Neg(l.Div(b, n)))
}

func (l *Lowering) complexSquare() *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	return l.Pair(l.Sub(l.Mul(a, a), l.Mul(b, b)), l.scale(l.Mul(a, b), 2))
}

// mostFactors bounds the products that a power is.
const mostFactors = 16

// complexPow multiplies a small power out. Another one is exp(exponent log(base)), and a positive power of 0 is 0.
func complexPow(l *Lowering) *ssa.Value {
	z := l.Value(l.must("self"))
	if k, ok := LiteralOf(l.Arg("exponent")); ok && k.IsNumber() && imag(k.Complex()) == 0 {
		switch p := real(k.Complex()); {
		case p == 0:
			re, _ := l.Parts(z)
			one := l.fill(l.shapeOf(re), l.DType(re), ssa.Int(1))
			return l.Pair(one, l.Sub(one, one))
		case p == 2:
			return l.complexSquare()
		case p == 0.5:
			return complexSqrt(l)
		case p == -0.5:
			return l.Aten("aten::reciprocal", complexSqrt(l))
		case p == math.Trunc(p) && math.Abs(p) <= mostFactors:
			a, b := l.parts(z)
			re, im := a, b
			for range int(math.Abs(p)) - 1 {
				re, im = l.timesComplex(re, im, a, b)
			}
			if p < 0 {
				return l.Aten("aten::reciprocal", l.Pair(re, im))
			}
			return l.Pair(re, im)
		}
	}
	d := l.complexType("self", "exponent")
	wide := func(name string) *ssa.Value { // the angle is multiplied: it needs the digits of double precision
		re, im := l.partsAs(name, d)
		return l.Pair(l.Cast(re, tensor.Float64), l.Cast(im, tensor.Float64))
	}
	base := wide("self")
	w := l.Aten("aten::exp", l.Aten("aten::mul.Tensor", wide("exponent"), l.Aten("aten::log", base)))
	power, _ := l.parts(wide("exponent"))
	zero := l.And(l.Equal(l.complexLength(base), l.Scalar(tensor.Float64, 0)), l.Greater(power, l.Scalar(tensor.Float64, 0)))
	re, im := l.parts(w)
	nothing := l.Scalar(tensor.Float64, 0)
	return l.Pair(l.Cast(l.Where(zero, nothing, re), d), l.Cast(l.Where(zero, nothing, im), d))
}

func complexExp(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	r := l.Exp(a)
	return l.Pair(l.Mul(r, l.Cos(b)), l.Mul(r, l.Sin(b)))
}

func complexAbs(l *Lowering) *ssa.Value { return l.complexLength(l.Tensor("self")) }

// complexLength is the length of a number; squares of what float32 holds, small and large, are in the range of float64.
func (l *Lowering) complexLength(z *ssa.Value) *ssa.Value {
	a, b := l.parts(z)
	d := l.DType(a)
	if d == tensor.Float64 {
		return l.hypot(a, b)
	}
	a, b = l.Cast(a, tensor.Float64), l.Cast(b, tensor.Float64)
	return l.Cast(l.Sqrt(l.Add(l.square(a), l.square(b))), d)
}

func complexAngle(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	return l.Aten("aten::atan2", b, a)
}

// complexLog is that of the length, and the angle.
func complexLog(l *Lowering) *ssa.Value {
	return l.Pair(l.Log(complexAbs(l)), complexAngle(l))
}

// complexSqrt has the root of the length, and half of the angle.
func complexSqrt(l *Lowering) *ssa.Value {
	r, angle := l.Sqrt(complexAbs(l)), l.scale(complexAngle(l), 0.5)
	return l.Pair(l.Mul(r, l.Cos(angle)), l.Mul(r, l.Sin(angle)))
}

// complexSgn is the number of length 1 in the same direction; 0 stays.
func complexSgn(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	r := complexAbs(l)
	r = l.Where(l.Equal(r, l.Scalar(l.DType(r), 0)), l.Scalar(l.DType(r), 1), r)
	return l.Pair(l.Div(a, r), l.Div(b, r))
}

// complexCos is cos(a) cosh(b) - i sin(a) sinh(b).
func complexCos(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	return l.Pair(l.Mul(l.Cos(a), l.Cosh(b)), l.Neg(l.Mul(l.Sin(a), l.Sinh(b))))
}

// complexSin is sin(a) cosh(b) + i cos(a) sinh(b).
func complexSin(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	return l.Pair(l.Mul(l.Sin(a), l.Cosh(b)), l.Mul(l.Cos(a), l.Sinh(b)))
}

// complexTanh is (t (1 + k²) + i k / cosh²(a)) / (1 + t² k²), where t is tanh(a) and k is tan(b): no part of it overflows where the result does not.
func complexTanh(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	one := l.Like(a, 1)
	square := func(v *ssa.Value) *ssa.Value { return l.Mul(v, v) }
	t, k := l.Tanh(a), l.Tan(b)
	by := l.Add(one, l.Mul(square(t), square(k)))
	flat := l.Reciprocal(square(l.Cosh(a)))
	return l.Pair(l.Div(l.Mul(t, l.Add(one, square(k))), by), l.Div(l.Mul(k, flat), by))
}

// complexFill has one number everywhere.
func complexFill(l *Lowering) *ssa.Value {
	if !isComplexValue(l.Arg("self")) {
		l.Fail("a real tensor filled with a complex number")
	}
	a, _ := l.parts(l.Tensor("self"))
	x, y := l.partsAs("value", l.DType(a))
	return l.Pair(l.Expand(x, l.shapeOf(a)), l.Expand(y, l.shapeOf(a)))
}

// complexLike makes a tensor of one real number in the type of a complex one, or in a real type.
func complexLike(l *Lowering) *ssa.Value {
	x := l.onParts(0)[0]
	if d := l.DTypeArg("dtype"); d != tensor.Undefined && !d.IsComplex() {
		return x
	}
	if l.HasArg("fill_value") {
		return l.Pair(x, l.onParts(1)[0])
	}
	return l.Pair(x, l.fill(l.shapeOf(x), l.DType(x), ssa.Int(0)))
}

func complexMaskedFill(l *Lowering) *ssa.Value {
	a, b := l.parts(l.Tensor("self"))
	mask := l.Cast(l.Tensor("mask"), tensor.Bool)
	x, y := l.partsAs("value", l.DType(a))
	return l.Pair(l.Where(mask, x, a), l.Where(mask, y, b))
}

func (l *Lowering) complexEqual() *ssa.Value {
	d := l.complexType("self", "other")
	a, b := l.partsAs("self", d)
	c, e := l.partsAs("other", d)
	return l.And(l.Equal(a, c), l.Equal(b, e))
}

func complexWhere(l *Lowering) *ssa.Value {
	d := l.complexType("self", "other")
	c := l.Cast(l.Tensor("condition"), tensor.Bool)
	a, b := l.partsAs("self", d)
	x, y := l.partsAs("other", d)
	return l.Pair(l.Where(c, a, x), l.Where(c, b, y))
}

// castComplex converts where one of the types is complex: a real number has the
// imaginary part 0, and a complex one loses it.
func (l *Lowering) castComplex(x *ssa.Value, d tensor.DType) *ssa.Value {
	re, im := l.parts(x)
	if !d.IsComplex() {
		return l.Cast(re, d)
	}
	rd := RealOf(d)
	re = l.Cast(re, rd)
	if im == nil {
		return l.Pair(re, l.fill(l.shapeOf(re), rd, ssa.Int(0)))
	}
	return l.Pair(re, l.Cast(im, rd))
}

// complexNumbers holds the operators that take complex numbers apart and put them together.
var complexNumbers = Defs{
	"aten::complex":              {Doc: "a complex tensor of two real ones", Lower: lowerComplex},
	"aten::polar":                {Doc: "a complex tensor of radius and angle", Autocast: Float32OnCPU, Lower: lowerPolarForm},
	"aten::view_as_complex":      {Doc: "pairs along the last axis as complex numbers", Autocast: Float32OnCPU, Lower: lowerViewAsComplex},
	"aten::view_as_complex_copy": {Doc: "pairs along the last axis as complex numbers", Lower: lowerViewAsComplex},
	"aten::view_as_real":         {Doc: "real and imaginary part along a new last axis", TakesComplex: true, Lower: lowerViewAsReal},
	"aten::view_as_real_copy":    {Doc: "real and imaginary part along a new last axis", TakesComplex: true, Lower: lowerViewAsReal},
	"aten::imag":                 {Doc: "the imaginary part", Layout: AnyLayout, TakesComplex: true, Lower: lowerImag},
}

func lowerComplex(l *Lowering) *ssa.Value {
	re, im := l.Tensor("real"), l.Tensor("imag")
	if !ssa.SameType(re.Tensor(), im.Tensor()) {
		shape := l.shapeOf(l.Add(re, im))
		re, im = l.Expand(re, shape), l.Expand(im, shape)
	}
	return l.Pair(re, im)
}

func lowerPolarForm(l *Lowering) *ssa.Value {
	r, a := l.Tensor("abs"), l.Tensor("angle")
	return l.Pair(l.Mul(r, l.Cos(a)), l.Mul(r, l.Sin(a)))
}

func lowerViewAsComplex(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	at := func(i int64) *ssa.Value { return l.gather(x, l.scalarInt(tensor.Int64, i), l.Rank(x)-1) }
	return l.Pair(at(0), at(1))
}

func lowerViewAsReal(l *Lowering) *ssa.Value {
	re, im := l.parts(l.Tensor("self"))
	if im == nil {
		l.Fail("view_as_real of a real tensor")
	}
	r := int64(l.Rank(re))
	return l.concatV(r, l.unsqueeze(re, r), l.unsqueeze(im, r))
}

func lowerImag(l *Lowering) *ssa.Value {
	_, im := l.parts(l.Tensor("self"))
	if im == nil {
		l.Fail("imag of a real tensor")
	}
	return im
}
