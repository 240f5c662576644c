package aten

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Def says how an operator is converted. It is all that aton knows of an
// operator besides its schemas: types are inferred by lowering it.
type Def struct {
	// Doc is one sentence, with the source of a formula that is not obvious.
	Doc string
	// Alias is the operator of which this one is another name (torch/csrc/jit/passes/normalize_ops.cpp). Complex and Grid are those of it.
	Alias ssa.Kind
	// Prim reports that torch/_prims has the operator under the same name, for operands of one type and shape.
	Prim bool
	// Nature is what the operator has in common with others; see [NatureOf].
	Nature Nature
	// Batching is the operator's rule under torch.vmap.
	Batching Batching
	// Gradient has the rule for the gradients of the operands, which the pass differentiate reads: see there. NoGradient is of operators whose results have none:
	// they are constant around almost every point, or no floats.
	Gradient string
	// Idempotent is of operators of one tensor that, applied to their own result, give it again: in place, it does not matter how often
	// they come by an element that several places of a view show.
	Idempotent bool
	// Item is of operators that read the only element of a tensor as a number.
	Item bool
	// Lower builds the ONNX form. It reads the arguments from l by their schema
	// names and gives one value per result.
	Lower func(l *Lowering) *ssa.Value
	// LowerN is Lower for operators with several results. For an operator that
	// gives a list of tensors they are its elements, or, if the length is not
	// known, one value of list type: an ONNX sequence.
	LowerN func(l *Lowering) []*ssa.Value
	// Type gives the type of the result of Lower, where the types of the arguments tell it; nil where they do not. It is
	// there to be quick: without it, types are inferred by lowering into a scratch function. See [Table.TypeOf].
	Type func(l *Lowering) *ssa.TensorType
	// Complex builds the results for complex operands, of which one at least is complex. Nil stands for what follows from the nature.
	Complex func(l *Lowering) []*ssa.Value
	// TakesComplex reports that Lower and LowerN take complex operands.
	TakesComplex bool
	// Grid is the grid of the results for quantized operands.
	Grid Grid
	// namedGrid is the grid that the operator names, or makes, for its result; false for overloads that leave it to the arguments of that name.
	namedGrid func(l *Lowering) (grid, bool)
	// View is what the result shares with self.
	View View
	// Layout is how the result lies in memory.
	Layout Layout
	// Effects are those that the declarations of the operator leave out.
	Effects Effects
	// Autocast says to which element type the operator converts its arguments in a region of torch.autocast.
	Autocast Autocast
	// Since is the lowest opset at which the entry holds; 0 stands for 7.
	Since int
	// Why says why no opset can express the operator. Set instead of Lower.
	Why string
}

// Defs is the table of one family of operators. Its rows are pointers: a table of values takes 180 KB of code more to fill.
type Defs map[ssa.Kind]*Def

// Failure says why an operator was not lowered.
type Failure struct {
	ID      string // const-arg, unsupported-op, unknown-shape, opset, ...
	Message string
	Hint    string
	Opset   int // the lowest opset that would do, 0 if none is known
}

func (f *Failure) Error() string {
	if f.Hint != "" {
		return f.Message + "; " + f.Hint
	}
	return f.Message
}

// Lowering is the context in which an operator is lowered: its arguments, by
// schema name, and a builder for ONNX operators. Methods that cannot do what
// is asked abandon the lowering with a Failure; rules read as straight lines.
//
// A rule of one's own uses these methods, in groups:
//
//   - arguments by the names of the schema: Arg, HasArg, IsNone, IsConst; constants Int, IntOr, Ints, Float, FloatOr,
//     Floats, Bool, Str, Literal, Dim, Dims, DTypeArg; numbers that may be of the run Number, NumberOr; values Tensor, TensorOr,
//     Tensors, FloatArg, Value
//   - arguments by place, where there is no schema: NumInputs, Input, InputLiteral, PythonName, PythonScalars
//   - what is known of a value: DType, Rank, Shape
//   - building: Op, OpA, Create and Const of the Builder, Cast, Scalar, Like; operators of other domains Custom, Aten, AtenN
//   - giving up: Fail, NeedOpset; Decline leaves the operator to the built-in definition
type Lowering struct {
	onnx.Builder
	// Node is the operator at hand with its types, location and schema.
	Node *ssa.Op
	// Opset is the target opset.
	Opset int
	// Regrid puts the results of operators that PyTorch computes on quantized
	// tensors on the grid of these. No type depends on it: inference needs it not.
	Regrid bool
	// Training makes an operator in training of a normalization by the batch, for those who train the file; the same numbers
	// come of plain arithmetic. Types do not depend on it.
	Training bool

	// Assume receives what the ONNX form takes for granted of its operands, such as "no NaN reaches max pooling", and
	// why. Nil drops it: types do not depend on it.
	Assume func(what, why string)
	// Note is Assume for what almost every model of a kind takes for granted: it is no reason to warn. Nil drops it.
	Note func(what, why string)
	// Wider receives the opset that could have kept weights of fewer bits, where they are written with more. Nil drops it.
	Wider func(opset, bits, written int)

	table *Table
	env   Env
	// real are values of the source program that are known not to be quantized.
	real map[*ssa.Value]bool
}

// Env gives the ONNX value for a value of the source program: nil if it has none, and a failure if what would have computed it failed.
type Env func(v *ssa.Value) (*ssa.Value, *Failure)

// NewLowering makes a context; env maps values of the source program to ONNX values.
func NewLowering(t *Table, opset int, b onnx.Builder, env Env) *Lowering {
	return &Lowering{Builder: b, Opset: opset, table: t, env: env}
}

// Lower lowers an op at the builder's insertion point and gives its results.
// Ops that were built before a failure stay behind, unused.
func (l *Lowering) Lower(o *ssa.Op) (vs []*ssa.Value, err *Failure) {
	d, ok := l.table.complexDef(o)
	if ok {
		return l.lowerBy(d, o)
	}
	d, ok = l.table.Lookup(o.Kind, l.Opset)
	if !ok {
		if d.Since > 0 {
			return nil, &Failure{ID: "opset", Message: fmt.Sprintf("needs opset %d", d.Since), Hint: fmt.Sprintf("export with --opset %d", d.Since), Opset: d.Since}
		}
		return nil, &Failure{ID: "unsupported-op", Message: "the operator is not supported", Hint: "give a rule for it (--rules), register a symbolic function, or export with --fallthrough " + o.Kind.Namespace()}
	}
	var why *Failure // of the first that declined: it is the user's
	for n := 1; ; n++ {
		if vs, err = l.lowerBy(d, o); err == nil || err.ID != declined {
			return vs, err
		}
		if why == nil {
			why = err
		}
		if d, ok = l.table.next(o.Kind, l.Opset, n); !ok {
			return nil, why
		}
	}
}

// Replacement makes what the table has for an ONNX operator ([Table.Replace]); it is nil where that declines.
func (l *Lowering) Replacement(o *ssa.Op) ([]*ssa.Value, *Failure) {
	vs, err := l.lowerBy(l.table.replaced[o.Kind], o)
	if err != nil && err.ID == declined {
		return nil, nil
	}
	return vs, err
}

// declined is the ID of a failure of a definition that leaves the operator to others.
const declined = "no-rule"

// Decline abandons the lowering in favor of the definition that would hold without this one: that for a lower opset, or the
// built-in one. Where there is none, the message is the error.
func (l *Lowering) Decline(format string, args ...any) {
	panic(&Failure{ID: declined, Message: fmt.Sprintf(format, args...)})
}

// lowerBy lowers an op by a definition.
func (l *Lowering) lowerBy(d Def, o *ssa.Op) (vs []*ssa.Value, err *Failure) {
	if d.Lower == nil && d.LowerN == nil {
		return nil, &Failure{ID: "not-expressible", Message: d.Why}
	}
	if o.Kind.Namespace() == "aten" && slices.ContainsFunc(o.Operands(), isText) {
		return nil, &Failure{ID: "unsupported-type", Message: "PyTorch has no tensors of strings"}
	}
	saved := l.Node
	l.Node = o
	defer func() { l.Node = saved }()
	err = Try(func() {
		if l.Regrid {
			vs = l.onItsGrid(d, o)
		} else {
			vs = d.results(l)
		}
		l.checkSizes(vs)
	})
	if err != nil {
		return nil, err
	}
	return vs, nil
}

// Try runs a function that uses a Lowering, and returns the failure that ended it early.
func Try(f func()) (failure *Failure) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *Failure:
			failure = r
		default:
			panic(r)
		}
	}()
	err := onnx.Build(f)
	if err == nil {
		return nil
	}
	var b *onnx.BuildError
	if errors.As(err, &b) {
		return &Failure{ID: "invalid-args", Message: b.Reason()}
	}
	return &Failure{ID: "invalid-args", Message: err.Error()}
}

func (d Def) results(l *Lowering) []*ssa.Value {
	if d.LowerN != nil {
		return d.LowerN(l)
	}
	return []*ssa.Value{d.Lower(l)}
}

// checkSizes fails where a result has a size that no tensor has.
func (l *Lowering) checkSizes(vs []*ssa.Value) {
	for _, v := range vs {
		if v == nil {
			continue
		}
		if t := v.Tensor(); t != nil {
			for _, d := range t.Dims {
				if n, ok := d.Int(); ok && n < 0 {
					l.Fail("gives an axis of size %d", n)
				}
			}
		}
	}
}

// isText reports a tensor of strings.
func isText(v *ssa.Value) bool {
	t := v.Tensor()
	return t != nil && t.DType == tensor.String
}

// assume notes that the ONNX form at hand is right only where what holds.
func (l *Lowering) assume(what, why string) {
	if l.Assume != nil {
		l.Assume(what, why)
	}
}

// note is assume for what almost every model with the operator takes for granted.
func (l *Lowering) note(what, why string) {
	if l.Note != nil {
		l.Note(what, why)
	}
}

// Fail abandons the lowering.
func (l *Lowering) Fail(format string, args ...any) {
	panic(&Failure{ID: "unsupported-args", Message: fmt.Sprintf(format, args...)})
}

// NeedOpset abandons the lowering unless the target opset is at least n.
func (l *Lowering) NeedOpset(n int, what string) {
	if l.Opset < n {
		panic(&Failure{ID: "opset", Message: fmt.Sprintf("%s needs opset %d", what, n), Hint: fmt.Sprintf("export with --opset %d", n), Opset: n})
	}
}

// Arg is the source value of an argument, nil if the overload has none of that name.
func (l *Lowering) Arg(name string) *ssa.Value {
	if l.Node.Schema == nil {
		l.Fail("%s has no schema", l.Node.Kind)
	}
	i := l.Node.Schema.Arg(name)
	if i < 0 || i >= l.Node.NumOperands() {
		return nil
	}
	return l.Node.Operand(i)
}

// HasArg reports that the overload has an argument of that name.
func (l *Lowering) HasArg(name string) bool {
	return l.Node.Schema != nil && l.Node.Schema.Arg(name) >= 0
}

func (l *Lowering) must(name string) *ssa.Value {
	v := l.Arg(name)
	if v == nil {
		l.Fail("this overload has no argument %q", name)
	}
	return v
}

// ConstInt is the int that a source value is known to be.
func ConstInt(v *ssa.Value) (int64, bool) {
	lit, ok := LiteralOf(v)
	if !ok || lit.Kind != ssa.IntLit {
		return 0, false
	}
	return lit.Int(), true
}

// LiteralOf gives the constant that a source value holds; ok is false if it is none. An absent value is None.
func LiteralOf(v *ssa.Value) (lit ssa.Literal, ok bool) {
	if v == nil {
		return ssa.None, true
	}
	d := v.Def()
	if d == nil {
		return ssa.None, v.Type == ssa.NoneType
	}
	switch d.Kind {
	case "prim::Constant", "onnx::Constant":
		lit, _ := d.Attr("value")
		return lit, true
	case "prim::ListConstruct", "prim::TupleConstruct":
		lit := ssa.Literal{Kind: ssa.ListLit}
		if d.Kind == "prim::TupleConstruct" {
			lit.Kind = ssa.TupleLit
		} else if lt, ok := v.Type.(*ssa.ListType); ok {
			lit.Elem = lt.Elem
		}
		for i := range d.NumOperands() {
			e, ok := LiteralOf(d.Operand(i))
			if !ok {
				return ssa.None, false
			}
			lit.Elems = append(lit.Elems, e)
		}
		return lit, true
	}
	if v.Type == ssa.IntType && len(v.Sym) == 1 {
		if n, ok := v.Sym[0].Int(); ok {
			return ssa.Int(n), true
		}
	}
	if lt, ok := v.Type.(*ssa.ListType); ok && lt.Elem == ssa.IntType && v.Sym != nil {
		lit := ssa.Literal{Kind: ssa.ListLit, Elem: ssa.IntType}
		for _, e := range v.Sym {
			n, ok := e.Int()
			if !ok {
				return ssa.None, false
			}
			lit.Elems = append(lit.Elems, ssa.Int(n))
		}
		return lit, true
	}
	return ssa.None, false
}

// Literal is the constant value of an argument; a value that depends on data is a failure.
func (l *Lowering) Literal(name string) ssa.Literal {
	lit, ok := LiteralOf(l.must(name))
	if !ok {
		panic(&Failure{ID: "const-arg", Message: fmt.Sprintf("argument %q must be a constant", name), Hint: "pass a Python number, or declare the input that it comes from as a constant (--input name:int=3)"})
	}
	return lit
}

// IsConst reports that the argument is known at export.
func (l *Lowering) IsConst(name string) bool {
	_, ok := LiteralOf(l.Arg(name))
	return ok
}

// IsNone reports that the argument is None or that the overload lacks it.
func (l *Lowering) IsNone(name string) bool {
	v := l.Arg(name)
	if v == nil {
		return true
	}
	lit, ok := LiteralOf(v)
	return ok && lit.IsNone()
}

// scalarLit is a literal number; a 0-d or one-element constant tensor is one too.
func (l *Lowering) scalarLit(name string) ssa.Literal {
	lit := l.Literal(name)
	if lit.Kind == ssa.TensorLit && lit.Tensor.NumElements() == 1 && lit.Tensor.HasData() {
		switch d := lit.Tensor.DType; {
		case d == tensor.Bool:
			return ssa.Bool(lit.Tensor.Int64s()[0] != 0)
		case d.IsInt():
			return ssa.Int(lit.Tensor.Int64s()[0])
		case d.IsFloat():
			return ssa.Float(lit.Tensor.Float64s()[0])
		}
	}
	if (lit.Kind == ssa.ListLit || lit.Kind == ssa.TupleLit) && len(lit.Elems) == 1 {
		return lit.Elems[0]
	}
	return lit
}

// Int is a constant int argument.
func (l *Lowering) Int(name string) int64 {
	lit := l.scalarLit(name)
	if lit.Kind == ssa.FloatLit && lit.Float() == math.Trunc(lit.Float()) {
		return int64(lit.Float())
	}
	if lit.Kind != ssa.IntLit && lit.Kind != ssa.BoolLit {
		l.Fail("argument %q must be an int", name)
	}
	return lit.Int()
}

// IntOr is Int, def if the argument is None or the overload lacks it.
func (l *Lowering) IntOr(name string, def int64) int64 {
	if l.IsNone(name) {
		return def
	}
	return l.Int(name)
}

// Float is a constant number.
func (l *Lowering) Float(name string) float64 {
	lit := l.scalarLit(name)
	if !lit.IsNumber() || lit.Kind == ssa.ComplexLit {
		l.Fail("argument %q must be a real number", name)
	}
	return lit.Float()
}

// FloatOr is Float, def if the argument is None or the overload lacks it.
func (l *Lowering) FloatOr(name string, def float64) float64 {
	if l.IsNone(name) {
		return def
	}
	return l.Float(name)
}

// Bool is a constant bool argument, false if the overload lacks it.
func (l *Lowering) Bool(name string) bool {
	if l.IsNone(name) {
		return false
	}
	return l.scalarLit(name).Bool()
}

// Str is a constant string argument, "" for None or where the overload lacks it.
func (l *Lowering) Str(name string) string {
	if l.IsNone(name) {
		return ""
	}
	return l.Literal(name).Str()
}

// Ints is a constant list of ints; a lone int is a list of one. Nil for None or where the overload lacks it.
func (l *Lowering) Ints(name string) []int64 {
	if l.IsNone(name) {
		return nil
	}
	lit := l.Literal(name)
	if lit.Kind == ssa.IntLit {
		return []int64{lit.Int()}
	}
	v, ok := lit.IntList()
	if !ok {
		l.Fail("argument %q must be a list of ints", name)
	}
	return v
}

// Floats is a constant list of numbers. Nil for None or where the overload lacks it.
func (l *Lowering) Floats(name string) []float64 {
	if l.IsNone(name) {
		return nil
	}
	lit := l.Literal(name)
	if lit.IsNumber() {
		return []float64{lit.Float()}
	}
	v, ok := lit.FloatList()
	if !ok {
		l.Fail("argument %q must be a list of numbers", name)
	}
	return v
}

// intsN is Ints spread to n entries: one entry stands for all, as in int[2] arguments.
func (l *Lowering) intsN(name string, n int) []int64 {
	v := l.Ints(name)
	if len(v) == 1 && n != 1 {
		return slices.Repeat(v, n)
	}
	return v
}

// Dim is a constant dimension argument, wrapped into [0, rank). A rank of 0 counts as 1.
func (l *Lowering) Dim(name string, rank int) int { return l.wrap(l.Int(name), rank) }

func (l *Lowering) wrap(d int64, rank int) int {
	n := int64(max(rank, 1))
	if d < -n || d >= n {
		l.Fail("dimension %d is out of range for rank %d", d, rank)
	}
	if d < 0 {
		d += n
	}
	return int(d)
}

// Dims is a list of dimensions, wrapped; all dimensions if the argument is None or empty.
func (l *Lowering) Dims(name string, rank int) []int64 {
	v := l.Ints(name)
	if len(v) == 0 {
		out := make([]int64, rank)
		for i := range out {
			out[i] = int64(i)
		}
		return out
	}
	out := make([]int64, len(v))
	for i, d := range v {
		out[i] = int64(l.wrap(d, rank))
	}
	return out
}

// DTypeArg is a ScalarType argument, Undefined for None or where the overload lacks it.
func (l *Lowering) DTypeArg(name string) tensor.DType {
	if l.IsNone(name) {
		return tensor.Undefined
	}
	d := tensor.FromCode(int(l.Int(name)))
	if d == tensor.Undefined {
		l.Fail("unknown dtype %d", l.Int(name))
	}
	return d
}

// Tensor is an argument as an ONNX tensor; numbers become rank 0 tensors
// (int64, float64, bool). None is a failure.
func (l *Lowering) Tensor(name string) *ssa.Value {
	v := l.TensorOr(name)
	if v == nil {
		l.Fail("argument %q is None", name)
	}
	return v
}

// TensorOr is Tensor, nil if the argument is None or the overload lacks it.
func (l *Lowering) TensorOr(name string) *ssa.Value {
	v := l.Arg(name)
	if v == nil || l.IsNone(name) {
		return nil
	}
	return l.Value(v)
}

// Value is the ONNX value for a source value. Constants are made on the spot.
func (l *Lowering) Value(v *ssa.Value) *ssa.Value {
	if v.Def() != nil && v.Def().Kind == "prim::Constant" {
		lit, _ := v.Def().Attr("value")
		if lit.Kind == ssa.TensorLit {
			if w := l.lowered(v); w != nil {
				return w
			}
		}
		return l.Const(l.literalTensor(lit))
	}
	if d := v.Def(); d != nil && (d.Kind == "prim::ListConstruct" || d.Kind == "prim::TupleConstruct") {
		if lt, ok := v.Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) == nil {
			return l.stackScalars(v)
		}
		return l.sequence(v)
	}
	w := l.lowered(v)
	if w == nil {
		l.Fail("the operand %s was not lowered", v.Type)
	}
	return w
}

// lowered returns the ONNX value for a source value, or nil.
func (l *Lowering) lowered(v *ssa.Value) *ssa.Value {
	w, err := l.env(v)
	if err != nil {
		panic(err)
	}
	return w
}

func (l *Lowering) literalTensor(lit ssa.Literal) *tensor.Tensor {
	switch lit.Kind {
	case ssa.TensorLit:
		return lit.Tensor
	case ssa.IntLit:
		return tensor.ScalarInt(lit.Int())
	case ssa.BoolLit:
		return tensor.FromInts(tensor.Bool, []int64{}, []int64{lit.Int()})
	case ssa.FloatLit:
		return tensor.FromFloats(tensor.Float64, []int64{}, []float64{lit.Float()})
	case ssa.ComplexLit:
		return tensor.Of(tensor.Complex128, []int64{}, []complex128{lit.Complex()})
	case ssa.ListLit, ssa.TupleLit:
		if v, ok := lit.IntList(); ok && (len(v) > 0 || lit.Elem == ssa.IntType) {
			if !slices.ContainsFunc(lit.Elems, func(e ssa.Literal) bool { return e.Kind != ssa.BoolLit }) && len(v) > 0 {
				return tensor.FromInts(tensor.Bool, []int64{int64(len(v))}, v)
			}
			return tensor.Ints(v...)
		}
		if v, ok := lit.FloatList(); ok {
			return tensor.FromFloats(tensor.Float64, []int64{int64(len(v))}, v)
		}
	}
	l.Fail("a constant %s is not a tensor", lit.Type())
	return nil
}

// stackScalars makes a rank 1 tensor of a list of numbers.
func (l *Lowering) stackScalars(v *ssa.Value) *ssa.Value {
	d := v.Def()
	parts := make([]*ssa.Value, 0, d.NumOperands())
	if d.NumOperands() == 0 {
		if lt, ok := v.Type.(*ssa.ListType); ok {
			return l.emptyConst(elemDType(lt), 0)
		}
		return l.Const(tensor.Ints())
	}
	for i := range d.NumOperands() {
		parts = append(parts, l.Unsqueeze(l.Value(d.Operand(i)), l.i64(0)))
	}
	return l.concatV(0, parts...)
}

// elems are the source values of a list argument whose length is known.
func (l *Lowering) elems(name string) []*ssa.Value {
	v := l.must(name)
	es, ok := ListElems(v)
	if !ok {
		l.Fail("the length of list %q is not known", name)
	}
	return es
}

// ListElems gives the elements of a list that is built in place.
func ListElems(v *ssa.Value) ([]*ssa.Value, bool) {
	d := v.Def()
	if d != nil && (d.Kind == "prim::ListConstruct" || d.Kind == "prim::TupleConstruct") {
		return d.Operands(), true
	}
	return nil, false
}

// isSequence reports that the argument is a list of tensors of unknown length.
func (l *Lowering) isSequence(name string) bool {
	v := l.must(name)
	if _, ok := ListElems(v); ok {
		return false
	}
	lt, ok := v.Type.(*ssa.ListType)
	return ok && ssa.AsTensor(lt.Elem) != nil
}

// Tensors is a list argument as ONNX tensors; an element that is None is nil, where the operator takes such.
func (l *Lowering) Tensors(name string) []*ssa.Value {
	es := l.elems(name)
	out := make([]*ssa.Value, len(es))
	for i, e := range es {
		if lit, ok := LiteralOf(e); ok && lit.IsNone() {
			if !l.takesNone(name) {
				l.Fail("element %d of %q is None", i, name)
			}
			continue
		}
		out[i] = l.Value(e)
	}
	return out
}

// takesNone reports a list argument whose elements may be None.
func (l *Lowering) takesNone(name string) bool {
	i := l.Node.Schema.Arg(name)
	if i < 0 {
		return false
	}
	t, list := l.Node.Schema.Args[i].Type.(*ssa.ListType)
	if !list {
		return false
	}
	_, optional := t.Elem.(*ssa.OptionalType)
	return optional
}

// sequence makes an ONNX sequence of a list of tensors.
func (l *Lowering) sequence(v *ssa.Value) *ssa.Value {
	es, ok := ListElems(v)
	if !ok {
		w := l.lowered(v)
		if w == nil {
			l.Fail("the operand %s was not lowered", v.Type)
		}
		return w
	}
	if len(es) == 0 {
		d := tensor.Float32
		if lt, ok := v.Type.(*ssa.ListType); ok {
			if t := ssa.AsTensor(lt.Elem); t != nil && t.DType != tensor.Undefined {
				d = t.DType
			}
		}
		seq := l.SequenceEmpty(onnx.Dtype(d))
		seq.Type = v.Type // what will be put in
		return seq
	}
	vs := make([]*ssa.Value, len(es))
	for i, e := range es {
		vs[i] = l.Value(e)
	}
	return l.SequenceConstruct(vs...)
}

// sizes is a list of ints that may depend on shapes: each entry is known, symbolic, or data.
func (l *Lowering) sizes(name string) []Size {
	v := l.must(name)
	if lit, ok := LiteralOf(v); ok {
		if lit.Kind == ssa.IntLit {
			return []Size{{Expr: sym.Const(lit.Int()), Known: true}}
		}
		ints, ok := lit.IntList()
		if t := lit.Tensor; t != nil && t.DType.IsInt() && len(t.Shape) == 1 {
			ints, ok = t.Int64s(), true
		}
		if !ok {
			l.Fail("argument %q must be a list of ints", name)
		}
		out := make([]Size, len(ints))
		for i, n := range ints {
			out[i] = Size{Expr: sym.Const(n), Known: true}
		}
		return out
	}
	if es, ok := ListElems(v); ok {
		out := make([]Size, len(es))
		for i, e := range es {
			out[i] = l.size(e)
		}
		return out
	}
	w := l.Value(v)
	t := w.Tensor()
	if t != nil && t.Rank() == 0 {
		return []Size{l.size(v)}
	}
	n, ok := int64(0), false
	if t != nil && t.Rank() == 1 {
		n, ok = t.Dims[0].Int()
	}
	if !ok {
		l.Fail("the length of %q is not known", name)
	}
	out := make([]Size, n)
	for i := range out {
		out[i] = Size{Value: l.Gather(w, l.Const(tensor.ScalarInt(int64(i))))}
		if len(w.Sym) == int(n) {
			out[i].Expr, out[i].Known = w.Sym[i], true
		}
	}
	return out
}

func (l *Lowering) size(e *ssa.Value) Size {
	if lit, ok := LiteralOf(e); ok && (lit.Kind == ssa.IntLit || lit.Kind == ssa.BoolLit) {
		return Size{Expr: sym.Const(lit.Int()), Known: true}
	}
	w := l.Value(e)
	s := Size{Value: w}
	if t := w.Tensor(); t != nil && t.Rank() > 0 {
		s.Value = l.reshape(w)
	}
	if t := w.Tensor(); t != nil && t.DType.IsInt() && t.DType != tensor.Int64 { // a tensor in place of an int
		s.Value = l.Cast(s.Value, tensor.Int64)
	}
	if len(w.Sym) == 1 {
		s.Expr, s.Known = w.Sym[0], true
	}
	return s
}

// Size is an int that may be computed at run time.
type Size struct {
	// Expr is the value if Known.
	Expr  sym.Expr
	Known bool
	// Value is a rank 0 integer tensor that holds it; nil if Expr is a constant.
	Value *ssa.Value
}

// Int gives a constant size.
func (s Size) Int() (int64, bool) {
	if !s.Known {
		return 0, false
	}
	return s.Expr.Int()
}

// sizeTensor makes a rank 1 int64 tensor of sizes.
func (l *Lowering) sizeTensor(ss []Size) *ssa.Value {
	var parts []*ssa.Value
	var run []int64
	flush := func() {
		if len(run) > 0 {
			parts = append(parts, l.Const(tensor.Ints(run...)))
			run = nil
		}
	}
	for _, s := range ss {
		if n, ok := s.Int(); ok {
			run = append(run, n)
			continue
		}
		flush()
		parts = append(parts, l.Unsqueeze(l.Cast(s.Value, tensor.Int64), l.i64(0)))
	}
	flush()
	switch len(parts) {
	case 0:
		return l.Const(tensor.Ints())
	case 1:
		return parts[0]
	}
	return l.concatV(0, parts...)
}

// sizeValue makes a rank 0 int64 tensor of a size.
func (l *Lowering) sizeValue(s Size) *ssa.Value {
	if n, ok := s.Int(); ok {
		return l.Const(tensor.ScalarInt(n))
	}
	return s.Value
}

// Rank is the rank of an ONNX value; unknown rank is a failure that names the missing input.
func (l *Lowering) Rank(v *ssa.Value) int {
	t := v.Tensor()
	if t == nil {
		l.Fail("expected a tensor, found %s", v.Type)
	}
	if !t.Ranked {
		panic(&Failure{ID: "unknown-shape", Message: "the rank of its operand is not known", Hint: "give the inputs' shapes, such as --input 'x:f32[N,3,224,224]'"})
	}
	return len(t.Dims)
}

// DType is the element type of an ONNX value; an unknown one is a failure.
func (l *Lowering) DType(v *ssa.Value) tensor.DType {
	d := v.DType()
	if d == tensor.Undefined {
		panic(&Failure{ID: "unknown-dtype", Message: "the element type of its operand is not known", Hint: "give the inputs' types, such as --input 'x:f32[N,3,224,224]'"})
	}
	return d
}

// Shape gives the dims of a value of known rank.
func (l *Lowering) Shape(v *ssa.Value) []sym.Expr {
	l.Rank(v)
	return v.Tensor().Dims
}

// dimension is the size of a dimension that the operator needs to be there.
func (l *Lowering) dimension(v *ssa.Value, dim int) sym.Expr {
	dims := l.Shape(v)
	if dim < 0 || dim >= len(dims) {
		l.Fail("an operand has %d dimensions, too few for this operator", len(dims))
	}
	return dims[dim]
}

// static gives the size of a dimension that must be known.
func (l *Lowering) static(v *ssa.Value, dim int) int64 {
	n, ok := l.dimension(v, dim).Int()
	if !ok {
		panic(&Failure{ID: "dynamic-axis", Message: fmt.Sprintf("needs the size of dimension %d, which is %s", dim, l.dimension(v, dim)), Hint: "make this axis static in --input"})
	}
	return n
}

// sizeOf is the size of a dimension, computed at run time if it is not known.
func (l *Lowering) sizeOf(v *ssa.Value, dim int) Size {
	e := l.dimension(v, dim)
	s := Size{Expr: e, Known: true}
	if !e.IsConst() {
		s.Value = l.Gather(l.shapeOf(v), l.Const(tensor.ScalarInt(int64(dim))))
	}
	return s
}

// ConstSize is a known size.
func ConstSize(n int64) Size { return Size{Expr: sym.Const(n), Known: true} }

// sizeOp computes with sizes at compile time where they are known.
func (l *Lowering) sizeOp(op string, f func(a, b sym.Expr) sym.Expr, a, b Size) Size {
	if a.Known && b.Known {
		e := f(a.Expr, b.Expr)
		if n, ok := e.Int(); ok {
			return ConstSize(n)
		}
		if e.Equal(a.Expr) {
			return a
		}
		if e.Equal(b.Expr) {
			return b
		}
	}
	var v *ssa.Value
	if op == "Min" || op == "Max" {
		v = l.Op(op, l.sizeValue(a), l.sizeValue(b))
	} else {
		v = l.Op(op, l.sizeValue(a), l.sizeValue(b))
	}
	s := Size{Value: v}
	if a.Known && b.Known {
		s.Expr, s.Known = f(a.Expr, b.Expr), true
	}
	return s
}

// addSize is a + b.
func (l *Lowering) addSize(a, b Size) Size { return l.sizeOp("Add", sym.Expr.Add, a, b) }

// subSize is a - b.
func (l *Lowering) subSize(a, b Size) Size { return l.sizeOp("Sub", sym.Expr.Sub, a, b) }

// mulSize is a * b.
func (l *Lowering) mulSize(a, b Size) Size { return l.sizeOp("Mul", sym.Expr.Mul, a, b) }

// divSize is a // b for sizes that are not negative.
func (l *Lowering) divSize(a, b Size) Size { return l.sizeOp("Div", sym.Expr.FloorDiv, a, b) }

// NodeLoc is the user's line of the op at hand.
func (l *Lowering) NodeLoc() diag.Loc { return l.Node.Loc }

// SchemaByName finds a schema by its full name, such as aten::add.Tensor; nil if there is none.
func SchemaByName(name string) *ssa.Schema {
	overload := ""
	for i := len(name) - 1; i > 0 && name[i] != ':'; i-- {
		if name[i] == '.' {
			name, overload = name[:i], name[i+1:]
			break
		}
	}
	return Schema(ssa.Kind(name), overload)
}
