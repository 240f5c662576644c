package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Infer computes the types of an op's results, and the Sym of those that are
// small integer tensors, from its operands and attributes in the newest
// encoding; for If, Loop and Scan from their blocks, whose ops are inferred on
// the way. What cannot be known stays unknown: an unranked type, a fresh
// symbol. An error means that the op cannot run. Ops of other domains are left
// as they are.
func Infer(o *ssa.Op) error { return InferWith(o, nil) }

// InferWith is Infer that also tells require of the sizes that must be equal.
func InferWith(o *ssa.Op, require Require) error {
	switch o.Kind.Namespace() {
	case Namespace:
	case trainingDomain:
		return inferTraining(o)
	default:
		return nil
	}
	f := rowOf(o.Kind.Name()).infer
	if f == nil {
		return fmt.Errorf("%s is not an operator of ONNX", o.Kind)
	}
	if s := SchemaOf(o.Kind); s != nil {
		for i, p := range s.Inputs {
			if p.Option == Single && o.Operand(i) == nil {
				return &InferError{o.Kind, fmt.Errorf("input %s is absent", p.Name)}
			}
		}
	}
	c := &infer{o: o, m: o.Block().Func().Module(), require: require}
	for _, r := range o.Results {
		r.Sym = nil
	}
	if c.limits(); c.err == nil {
		f(c)
	}
	if c.err != nil {
		return &InferError{o.Kind, c.err}
	}
	return nil
}

// InferError is why an operator has no result types: it cannot run on its operands.
type InferError struct {
	Kind ssa.Kind
	Err  error
}

func (e *InferError) Error() string { return fmt.Sprintf("%s: %v", e.Kind, e.Err) }
func (e *InferError) Unwrap() error { return e.Err }

// OpError is why an op of a block cannot run.
type OpError struct {
	Op  *ssa.Op
	Err error
}

func (e *OpError) Error() string { return e.Err.Error() }
func (e *OpError) Unwrap() error { return e.Err }

// InferBlock infers all ops of a block in order. Its error is an *OpError of the innermost op that cannot run.
func InferBlock(b *ssa.Block) error {
	for o := range b.Ops() {
		if err := Infer(o); err != nil {
			var inner *OpError
			if errors.As(err, &inner) {
				return inner
			}
			return &OpError{o, err}
		}
	}
	return nil
}

// infer is the state of one call of Infer. The first error sticks.
type infer struct {
	o       *ssa.Op
	m       *ssa.Module
	err     error
	require Require
}

func (c *infer) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// in is the tensor type of operand i, the unknown one if it is absent.
func (c *infer) in(i int) *ssa.TensorType {
	if v := c.o.Operand(i); v != nil {
		if t := v.Tensor(); t != nil {
			return t
		}
	}
	return ssa.AnyTensor
}

func (c *infer) has(i int) bool { return c.o.Operand(i) != nil }

// out sets the type of result i if the op has one.
func (c *infer) out(i int, t ssa.Type) {
	if i < len(c.o.Results) {
		c.o.Results[i].Type = t
	}
}

// outOpen sets the type of result 0 where the rank depends on data: what
// whoever built the op said of it stays.
func (c *infer) outOpen(d tensor.DType) {
	if old := c.o.Results[0].Tensor(); old != nil && old.Ranked {
		c.out(0, old.WithDType(d))
		return
	}
	c.out(0, ssa.Unranked(d))
}

// outSym sets the content of result 0.
func (c *infer) outSym(s []sym.Expr) {
	if len(c.o.Results) > 0 && s != nil && len(s) <= maxSym {
		c.o.Results[0].Sym = s
	}
}

// ranked makes a tensor type with dims, the unranked one if dims is nil.
func ranked(d tensor.DType, dims []sym.Expr) *ssa.TensorType {
	if dims == nil {
		return ssa.Unranked(d)
	}
	return ssa.Tensor(d, dims...)
}

// dims is the shape of operand i; nil if the rank is unknown.
func (c *infer) dims(i int) []sym.Expr {
	t := c.in(i)
	if !t.Ranked {
		return nil
	}
	if t.Dims == nil {
		return []sym.Expr{}
	}
	return slices.Clone(t.Dims)
}

// fresh is an unknown size for an axis of result i. A symbol that the result
// already has there is kept, so that inferring again changes nothing.
func (c *infer) fresh(i, axis, rank int) sym.Expr {
	if i < len(c.o.Results) {
		if t := c.o.Results[i].Tensor(); t != nil && t.Ranked && len(t.Dims) == rank && axis < rank && !t.Dims[axis].IsConst() {
			return t.Dims[axis]
		}
	}
	return c.m.FreshSymbol("u", 0)
}

// freshDims is rank unknown sizes for result i.
func (c *infer) freshDims(i, rank int) []sym.Expr {
	out := make([]sym.Expr, rank)
	for a := range out {
		out[a] = c.fresh(i, a, rank)
	}
	return out
}

// maxSym bounds the length of the integer tensors that are tracked symbolically.
const maxSym = 256

// ints is the content of an integer operand if it is constant.
func (c *infer) ints(i int) ([]int64, bool) {
	s, ok := c.syms(i)
	if !ok {
		if t := ConstOf(c.o.Operand(i)); t != nil && t.HasData() && (t.DType.IsInt() || t.DType == tensor.Bool) {
			return t.Int64s(), true
		}
		return nil, false
	}
	out := make([]int64, len(s))
	for k, e := range s {
		if out[k], ok = e.Int(); !ok {
			return nil, false
		}
	}
	return out, true
}

func (c *infer) syms(i int) ([]sym.Expr, bool) { return SymOf(c.o.Operand(i)) }

// SymOf is what is known of the content of an integer tensor of rank 0 or 1:
// its Sym, or the elements of a small constant.
func SymOf(v *ssa.Value) ([]sym.Expr, bool) {
	if v == nil {
		return nil, false
	}
	if v.Sym != nil {
		return v.Sym, true
	}
	t := ConstOf(v)
	if t == nil || !t.HasData() || len(t.Shape) > 1 || t.NumElements() > maxSym || !t.DType.IsInt() {
		return nil, false
	}
	return ssa.Sizes(t.Int64s()), true
}

// axis normalizes an axis of a tensor of a rank; it fails if it is out of range.
func (c *infer) axis(a int64, rank int) int {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		c.fail("axis %d is out of range for rank %d", a, rank)
		return 0
	}
	return int(a)
}

func (c *infer) dtypeAttr(name string, def tensor.DType) tensor.DType {
	n := c.o.AttrInt(name, 0)
	if n == 0 {
		return def
	}
	d := tensor.FromONNX(int(n))
	if d == tensor.Undefined {
		c.fail("element type %d is not supported", n)
	}
	return d
}

// broadcast combines shapes as NumPy does; nil if one of them is of unknown rank.
func (c *infer) broadcast(shapes ...[]sym.Expr) []sym.Expr {
	var out []sym.Expr
	for i, s := range shapes {
		if s == nil {
			return nil
		}
		if i == 0 {
			out = slices.Clone(s)
			continue
		}
		before := out
		var ok bool
		if out, ok = BroadcastDims(out, s); !ok {
			c.fail("shapes %v and %v cannot be broadcast together", dimString(shapes[0]), dimString(s))
		}
		if c.require != nil {
			for k := min(len(before), len(s)); k > 0; k-- {
				c.require.pair(c.o.Block(), before[len(before)-k], s[len(s)-k], true)
			}
		}
	}
	if out == nil {
		out = []sym.Expr{}
	}
	return out
}

// BroadcastDims combines two shapes as NumPy does; ok is false if sizes that are known do not go together.
func BroadcastDims(a, b []sym.Expr) (out []sym.Expr, ok bool) {
	ok = true
	if len(a) < len(b) {
		out = make([]sym.Expr, len(b)-len(a), len(b))
		for k := range out {
			out[k] = sym.Const(1)
		}
	}
	out = append(out, a...)
	off := len(out) - len(b)
	for k, d := range b {
		e := out[off+k]
		if n, known := e.Int(); known && n != 1 {
			if m, known := d.Int(); known && m != 1 && m != n {
				ok = false
			}
		}
		out[off+k] = e.Broadcast(d)
	}
	return out, ok
}

func dimString(d []sym.Expr) string {
	s := make([]string, len(d))
	for i, e := range d {
		s[i] = e.String()
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// joinDims keeps what two shapes have in common: equal sizes, fresh symbols
// where they differ. Nil if the rank differs or is unknown.
func joinDims(a, b *ssa.TensorType, fresh func(axis, rank int) sym.Expr) []sym.Expr {
	if !a.Ranked || !b.Ranked || len(a.Dims) != len(b.Dims) {
		return nil
	}
	out := make([]sym.Expr, len(a.Dims))
	for i := range out {
		if out[i] = a.Dims[i]; !a.Dims[i].Equal(b.Dims[i]) {
			out[i] = fresh(i, len(out))
		}
	}
	return out
}

// Join is the narrowest type that values of both types have. Sizes that differ
// become symbols from fresh. ok is false for types that cannot meet, such as
// tensors of different element types.
func Join(a, b ssa.Type, fresh func(axis, rank int) sym.Expr) (t ssa.Type, ok bool) {
	if _, isOptional := a.(*ssa.OptionalType); isOptional { // a value is an optional that is there
		if _, both := b.(*ssa.OptionalType); !both {
			b = &ssa.OptionalType{Elem: b}
		}
	} else if _, isOptional := b.(*ssa.OptionalType); isOptional {
		a = &ssa.OptionalType{Elem: a}
	}
	switch x := a.(type) {
	case *ssa.TensorType:
		y, isTensor := b.(*ssa.TensorType)
		if !isTensor {
			return nil, false
		}
		d := x.DType
		switch {
		case d == tensor.Undefined || y.DType == tensor.Undefined:
			d = tensor.Undefined
		case d != y.DType:
			return nil, false
		}
		return ranked(d, joinDims(x, y, fresh)), true
	case *ssa.ListType:
		if y, isList := b.(*ssa.ListType); isList {
			e, ok := Join(x.Elem, y.Elem, varying)
			return &ssa.ListType{Elem: e}, ok
		}
	case *ssa.OptionalType:
		if y, isOptional := b.(*ssa.OptionalType); isOptional {
			e, ok := Join(x.Elem, y.Elem, varying)
			return &ssa.OptionalType{Elem: e}, ok
		}
	}
	return a, a != nil && b != nil && ssa.SameType(a, b)
}

// varying is sym.Varying for Join.
func varying(axis, _ int) sym.Expr { return sym.Varying(axis) }

// inferRMSNorm: the result has the element type of the scale.
func inferRMSNorm(c *infer) { c.out(0, ranked(c.in(1).DType, c.dims(0))) }

// inferIs: a test of each element.
func inferIs(c *infer) { c.out(0, c.in(0).WithDType(tensor.Bool)) }

// inferLikeInput: the shape of the input, with elements of the attribute dtype.
func inferLikeInput(c *infer) { c.out(0, c.in(0).WithDType(c.dtypeAttr("dtype", c.in(0).DType))) }

// inferRandom: the shape is an attribute.
func inferRandom(c *infer) {
	c.out(0, ssa.Tensor(c.dtypeAttr("dtype", tensor.Float32), ssa.Sizes(c.o.AttrInts("shape"))...))
}

// inferDropout: the mask is the second result.
func inferDropout(c *infer) { c.out(0, c.in(0)); c.out(1, c.in(0).WithDType(tensor.Bool)) }

// inferDequantize: the scale has the element type of the result.
func inferDequantize(c *infer) {
	c.out(0, c.in(0).WithDType(c.dtypeAttr("output_dtype", c.in(1).DType)))
}

// inferDynamicQuantize: the quantized tensor, its scale and its zero point.
func inferDynamicQuantize(c *infer) {
	c.out(0, c.in(0).WithDType(tensor.Uint8))
	c.out(1, ssa.Tensor(tensor.Float32))
	c.out(2, ssa.Tensor(tensor.Uint8))
}

func inferUnary(c *infer) {
	c.out(0, c.in(0))
	switch s, ok := c.syms(0); {
	case !ok:
	case c.o.Kind == "onnx::Neg":
		c.outSym(mapSym(s, sym.Expr.Neg))
	case c.o.Kind == "onnx::Abs":
		for _, e := range s {
			if e.Min() < 0 && !e.IsConst() {
				return
			}
		}
		c.outSym(mapSym(s, func(e sym.Expr) sym.Expr {
			if n, ok := e.Int(); ok && n < 0 {
				return sym.Const(-n)
			}
			return e
		}))
	case c.o.Kind == "onnx::Relu":
		c.outSym(mapSym(s, func(e sym.Expr) sym.Expr { return e.Max(sym.Const(0)) }))
	case c.o.Kind == "onnx::Clip":
		for i, f := range [...]func(a, b sym.Expr) sym.Expr{1: sym.Expr.Max, 2: sym.Expr.Minimum} {
			if i == 0 || !c.has(i) {
				continue
			}
			b, ok := c.syms(i)
			if !ok || len(b) != 1 {
				return
			}
			s = mapSym(s, func(e sym.Expr) sym.Expr { return f(e, b[0]) })
		}
		c.outSym(s)
	}
}

func mapSym(s []sym.Expr, f func(sym.Expr) sym.Expr) []sym.Expr {
	out := make([]sym.Expr, len(s))
	for i, e := range s {
		out[i] = f(e)
	}
	return out
}

func inferIdentity(c *infer) {
	if v := c.o.Operand(0); v != nil {
		c.out(0, v.Type)
		c.outSym(v.Sym)
		if s, ok := c.syms(0); ok {
			c.outSym(s)
		}
	}
}

func inferBroadcast(c *infer) {
	n := c.o.NumOperands()
	shapes := make([][]sym.Expr, n)
	d := c.in(0).DType
	for i := range n {
		shapes[i] = c.dims(i)
		if d == tensor.Undefined && c.o.Kind != "onnx::Pow" {
			d = c.in(i).DType
		}
	}
	out := c.broadcast(shapes...)
	c.out(0, ranked(d, out))
	if !d.IsInt() || len(out) > 1 || out == nil {
		return
	}
	acc, ok := c.syms(0)
	for i := 1; i < n && ok; i++ {
		var s []sym.Expr
		if s, ok = c.syms(i); ok {
			acc, ok = c.combine(acc, s)
		}
	}
	if ok {
		c.outSym(acc)
	}
}

// combine computes an arithmetic operator on symbolic contents.
func (c *infer) combine(a, b []sym.Expr) ([]sym.Expr, bool) {
	n := max(len(a), len(b))
	if len(a) == 0 || len(b) == 0 {
		n = 0
	}
	if len(a) != n && len(a) != 1 || len(b) != n && len(b) != 1 {
		return nil, false
	}
	out := make([]sym.Expr, n)
	for i := range out {
		x, y := a[min(i, len(a)-1)], b[min(i, len(b)-1)]
		switch c.o.Kind.Name() {
		case "Add", "Sum":
			out[i] = x.Add(y)
		case "Sub":
			out[i] = x.Sub(y)
		case "Mul":
			out[i] = x.Mul(y)
		case "Max":
			if out[i] = x.Max(y); !orZero(out[i]).Equal(orZero(x).Max(orZero(y))) {
				return nil, false // which is greater hangs on a size that may be 0
			}
		case "Min":
			out[i] = x.Minimum(y)
		case "Div":
			m, known := x.Int()
			k, both := y.Int()
			switch {
			case known && both && k != 0:
				out[i] = sym.Const(m / k)
			case x.Min() >= 0 && y.Min() >= 1:
				out[i] = x.FloorDiv(y)
			default:
				q, exact := x.Divide(y)
				if !exact {
					return nil, false
				}
				out[i] = q
			}
		case "Mod":
			if y.Min() < 1 || c.o.AttrInt("fmod", 0) != 0 && x.Min() < 0 {
				return nil, false
			}
			out[i] = x.Mod(y)
		default:
			return nil, false
		}
	}
	return out, true
}

func inferCompare(c *infer) {
	c.out(0, ranked(tensor.Bool, c.broadcast(c.dims(0), c.dims(1))))
}

func inferWhere(c *infer) {
	d := c.in(1).DType
	if d == tensor.Undefined {
		d = c.in(2).DType
	}
	out := c.broadcast(c.dims(0), c.dims(1), c.dims(2))
	c.out(0, ranked(d, out))
	if out == nil || len(out) > 1 {
		return
	}
	x, okX := c.syms(1)
	y, okY := c.syms(2)
	cond, okC := c.condition(c.o.Operand(0))
	if !okX || !okY || !okC || len(x) == 0 || len(y) == 0 || len(cond) == 0 {
		return
	}
	n := max(len(x), len(y), len(cond))
	s := make([]sym.Expr, n)
	for i := range s {
		s[i] = y[min(i, len(y)-1)]
		if cond[min(i, len(cond)-1)] {
			s[i] = x[min(i, len(x)-1)]
		}
	}
	c.outSym(s)
}

// orZero is a size whose symbols may be 0, as axes of inputs may, which are at least 1 only because nobody has said more of them: what
// the program asks of a size is not answered by that.
func orZero(e sym.Expr) sym.Expr {
	if e.IsConst() {
		return e
	}
	return e.Subst(func(name string) (sym.Expr, bool) { return sym.Symbol(name, 0), sym.Least(e, name) == 1 })
}

// condition decides a bool tensor: a constant, or a comparison of known integers.
func (c *infer) condition(v *ssa.Value) ([]bool, bool) {
	if t := ConstOf(v); t != nil && t.HasData() && t.DType == tensor.Bool && len(t.Shape) <= 1 && t.NumElements() <= maxSym {
		var out []bool
		for _, b := range t.Int64s() {
			out = append(out, b != 0)
		}
		return out, true
	}
	if v == nil || v.Def() == nil {
		return nil, false
	}
	o := v.Def()
	a, okA := SymOf(o.Operand(0))
	b, okB := SymOf(o.Operand(1))
	if !okA || !okB || len(a) == 0 || len(b) == 0 {
		return nil, false
	}
	out := make([]bool, max(len(a), len(b)))
	for i := range out {
		sign, ok := orZero(a[min(i, len(a)-1)]).Compare(orZero(b[min(i, len(b)-1)]))
		if !ok {
			return nil, false
		}
		switch o.Kind {
		case "onnx::Equal":
			out[i] = sign == 0
		case "onnx::Greater":
			out[i] = sign > 0
		case "onnx::Less":
			out[i] = sign < 0
		case "onnx::GreaterOrEqual":
			out[i] = sign >= 0
		case "onnx::LessOrEqual":
			out[i] = sign <= 0
		default:
			return nil, false
		}
	}
	return out, true
}

func inferCast(c *infer) {
	d := c.dtypeAttr("to", tensor.Undefined)
	if c.o.Kind == "onnx::CastLike" {
		d = c.in(1).DType
	}
	c.out(0, c.in(0).WithDType(d))
	if c.o.Kind == "onnx::BitCast" {
		if from := c.in(0).DType; from.Size() != d.Size() && from.Size() > 0 && d.Size() > 0 {
			c.fail("BitCast from %v to %v", from, d)
		}
		return
	}
	s, ok := c.syms(0)
	if !ok || !c.in(0).DType.IsInt() || d != tensor.Int64 && d != tensor.Int32 {
		return
	}
	for _, e := range s {
		if n, known := e.Int(); known && d == tensor.Int32 && n != int64(int32(n)) {
			return
		}
	}
	c.outSym(s)
}

func inferConstant(c *infer) {
	if t := ConstOf(c.o.Result(0)); t != nil {
		c.out(0, ssa.TensorOf(t))
		if s, ok := SymOf(c.o.Result(0)); ok {
			c.outSym(s)
		}
	}
}

func inferQuantize(c *infer) {
	d := c.dtypeAttr("output_dtype", tensor.Uint8)
	if c.has(2) {
		d = c.in(2).DType
	}
	c.out(0, c.in(0).WithDType(d))
}
