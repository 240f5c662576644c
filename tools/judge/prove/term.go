package prove

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Term is the symbolic value of one element: a variable, a constant, or a function of other terms. Equal terms of one table are one
// pointer.
type Term struct {
	// Func is the operator that computes the element; empty for a variable and for a constant. Dot stands for a sum of
	// products, accumulated as the kernels do.
	Func  string
	Attrs []ssa.Attr
	Args  []*Term
	DType tensor.DType

	Name  string         // of a variable
	Value *tensor.Tensor // of a constant, of rank 0

	id int
}

// terms is the table of all terms of an obligation.
type terms struct {
	byKey map[string]*Term
	list  []*Term // by id
}

func newTerms() *terms { return &terms{byKey: map[string]*Term{}} }

func (ts *terms) intern(key string, t *Term) *Term {
	if old := ts.byKey[key]; old != nil {
		return old
	}
	t.id = len(ts.list)
	ts.list = append(ts.list, t)
	ts.byKey[key] = t
	return t
}

func (ts *terms) variable(name string, d tensor.DType) *Term {
	return ts.intern("v"+name, &Term{Name: name, DType: d})
}

// constant makes the term of a tensor with one element. All NaN are one: no operator tells them apart.
func (ts *terms) constant(v *tensor.Tensor) *Term {
	v = v.Reshape([]int64{})
	key := fmt.Sprintf("c%d:%s", v.DType, text(v))
	return ts.intern(key, &Term{Value: v, DType: v.DType})
}

// text is an element as text, by which equal elements are known.
func text(v *tensor.Tensor) string {
	switch {
	case v.DType == tensor.String:
		return v.StringData()[0]
	case v.DType.IsFloat():
		return fmt.Sprint(v.Float64s()[0])
	}
	return fmt.Sprint(v.Clone().Bytes())
}

func (ts *terms) zero(d tensor.DType) *Term {
	if d == tensor.String {
		return ts.constant(tensor.Strings([]int64{}, []string{""}))
	}
	return ts.constant(tensor.New(d, []int64{}, make([]byte, d.Size())))
}

func (ts *terms) boolean(b bool) *Term {
	n := int64(0)
	if b {
		n = 1
	}
	return ts.constant(tensor.FromInts(tensor.Bool, []int64{}, []int64{n}))
}

// commutative operators give the same number, bit for bit, whichever operand comes first; of two NaN either may come out.
var commutative = map[string]bool{"Add": true, "Mul": true, "And": true, "Or": true, "Xor": true, "Equal": true, "BitwiseAnd": true, "BitwiseOr": true, "BitwiseXor": true}

// apply makes the term of an operator on elements. Constants are computed by the operator's kernel.
func (ts *terms) apply(name string, d tensor.DType, attrs []ssa.Attr, args ...*Term) *Term {
	if name == "Where" {
		if c := args[0]; c.Value != nil {
			if c.Value.Int64s()[0] != 0 {
				return args[1]
			}
			return args[2]
		}
	}
	if name == "Cast" && args[0].DType == d {
		return args[0]
	}
	if t := ts.converted(name, d, attrs, args); t != nil {
		return t
	}
	if name == "Sub" && args[1].Func == "Neg" { // IEEE 754 defines x - y as x + -y, and integers wrap around
		name, args = "Add", []*Term{args[0], args[1].Args[0]}
	}
	if commutative[name] {
		args = slices.Clone(args)
		slices.SortFunc(args, func(a, b *Term) int { return a.id - b.id })
	}
	if len(args) > 0 && !slices.ContainsFunc(args, func(a *Term) bool { return a.Value == nil }) && kernel.Supported("onnx::"+ssa.Kind(name)) {
		in := make([]*tensor.Tensor, len(args))
		for i, a := range args {
			in[i] = a.Value
		}
		if out, err := kernel.Eval("onnx::"+ssa.Kind(name), attrs, in, 1); err == nil && len(out) == 1 && out[0].NumElements() == 1 && out[0].DType == d {
			return ts.constant(out[0])
		}
	}
	if c := ts.folded(name, d, args); c != nil {
		return c
	}
	var key strings.Builder
	fmt.Fprintf(&key, "f%s:%d:", name, d)
	for _, a := range attrs {
		key.WriteString(a.Name + "=" + a.Value.String() + ",")
	}
	for _, a := range args {
		fmt.Fprintf(&key, "%d,", a.id)
	}
	return ts.intern(key.String(), &Term{Func: name, Attrs: attrs, Args: args, DType: d})
}

// exactly reports that a conversion keeps every number of a type.
func exactly(from, to tensor.DType) bool {
	bits := func(d tensor.DType) (n int, sign, ok bool) {
		return d.Bits(), d.IsSigned(), d.IsInt() && d.Size() > 0 && d.Bits() == 8*d.Size()
	}
	n, signed, isInt := bits(from)
	if from == tensor.Bool {
		n, signed, isInt = 1, false, true
	}
	ef, sf, isFloat := format(from)
	et, st, toFloat := format(to)
	switch m, wide, toInt := bits(to); {
	case isInt && toInt:
		return signed == wide && n <= m || !signed && wide && n < m
	case isInt && toFloat: // float16 has no number above 65504
		return n <= st && to != tensor.Float16 || n <= 8 && to == tensor.Float16
	case isFloat && toFloat:
		return ef <= et && sf <= st
	}
	return false
}

// converted is a conversion of a conversion that keeps every number, without the latter: a conversion depends on the number alone, to integers
// on the integer. It is nil where this does not hold, such as of floats that do not fit an integer. Such a conversion keeps the order of numbers
// too, so that the extreme of converted numbers is the converted extreme.
func (ts *terms) converted(name string, d tensor.DType, attrs []ssa.Attr, args []*Term) *Term {
	if name != "Cast" || args[0].Value != nil {
		return nil
	}
	x := args[0]
	if x.Func == "Cast" {
		from := x.Args[0].DType
		fits := exactly(from, d) || d != tensor.Uint64 && exactly(from, tensor.Int32)
		if exactly(from, x.DType) && (from.IsFloat() || x.DType.IsInt() || !d.IsInt() || fits) {
			return ts.apply(name, d, attrs, x.Args[0])
		}
	}
	from := func(t *Term) bool { return t.Func == "Cast" && t.Args[0].DType == d }
	if exactly(d, x.DType) && (x.Func == "of ReduceMax" || x.Func == "of ReduceMin" || d != tensor.Bool && (x.Func == "Max" || x.Func == "Min")) && !slices.ContainsFunc(x.Args, func(t *Term) bool { return !from(t) }) {
		narrow := make([]*Term, len(x.Args))
		for i, t := range x.Args {
			narrow[i] = t.Args[0]
		}
		if x.Func != "Max" && x.Func != "Min" {
			narrow = sorted(narrow)
		}
		return ts.apply(x.Func, d, x.Attrs, narrow...)
	}
	return nil
}

// foldOf is the reduction that a fold of elements of a type is, whatever their order: sums and products of integers, and extremes.
func foldOf(name string, d tensor.DType) (reduction string, ok bool) {
	switch name {
	case "Dot", "of ReduceSum":
		return "ReduceSum", d.IsInt()
	case "of ReduceProd":
		return "ReduceProd", d.IsInt()
	case "of ReduceMax", "of ReduceMin":
		return strings.TrimPrefix(name, "of "), true
	}
	return "", false
}

// folded is a fold of constants, nil if it is none.
func (ts *terms) folded(name string, d tensor.DType, args []*Term) *Term {
	reduction, ok := foldOf(name, d)
	if !ok || len(args) == 0 || slices.ContainsFunc(args, func(a *Term) bool { return a.Value == nil || a.DType != d }) || d.Size() == 0 {
		return nil
	}
	var b []byte
	for _, a := range args {
		b = append(b, a.Value.Clone().Bytes()...)
	}
	in := []*tensor.Tensor{tensor.New(d, []int64{int64(len(args))}, b), tensor.Ints(0)}
	out, err := kernel.Eval("onnx::"+ssa.Kind(reduction), []ssa.Attr{{Name: "keepdims", Value: ssa.Int(0)}}, in, 1)
	if err != nil || out[0].DType != d || out[0].NumElements() != 1 {
		return nil
	}
	return ts.constant(out[0])
}

// Tensor is a tensor of terms, of known sizes.
type Tensor struct {
	DType tensor.DType
	Shape []int64
	Elems []*Term
}

// value is what a value of the graph holds: a tensor, a sequence of tensors, or nothing.
type value struct {
	t      *Tensor
	list   []*Tensor
	isList bool
}

// concrete is the tensor if all elements are constants.
func (t *Tensor) concrete() (*tensor.Tensor, bool) {
	if t.DType == tensor.String {
		s := make([]string, len(t.Elems))
		for i, e := range t.Elems {
			if e.Value == nil {
				return nil, false
			}
			s[i] = e.Value.StringData()[0]
		}
		return tensor.Strings(t.Shape, s), true
	}
	var b []byte
	for _, e := range t.Elems {
		if e.Value == nil {
			return nil, false
		}
		b = append(b, e.Value.Clone().Bytes()...)
	}
	return tensor.New(t.DType, t.Shape, b), true
}

// constants makes the terms of a tensor.
func (ts *terms) constants(t *tensor.Tensor) *Tensor {
	out := &Tensor{DType: t.DType, Shape: t.Shape}
	if t.DType == tensor.String {
		for _, s := range t.StringData() {
			out.Elems = append(out.Elems, ts.constant(tensor.Strings([]int64{}, []string{s})))
		}
		return out
	}
	b, n := t.Clone().Bytes(), t.DType.Size()
	for i := range int(t.NumElements()) {
		out.Elems = append(out.Elems, ts.constant(tensor.New(t.DType, []int64{}, slices.Clone(b[i*n:(i+1)*n]))))
	}
	return out
}

// variables makes a tensor of variables named after an input.
func (ts *terms) variables(name string, d tensor.DType, shape []int64) *Tensor {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	out := &Tensor{DType: d, Shape: shape}
	for i := range n {
		out.Elems = append(out.Elems, ts.variable(fmt.Sprintf("%s.%d", name, i), d))
	}
	return out
}

// handles is the tensor of the numbers of the terms, counted from 1, for kernels that move elements: 0 is what they fill with.
func (t *Tensor) handles() *tensor.Tensor {
	v := make([]int64, len(t.Elems))
	for i, e := range t.Elems {
		v[i] = int64(e.id) + 1
	}
	return tensor.FromInts(tensor.Int64, t.Shape, v)
}

func (ts *terms) fromHandles(t *tensor.Tensor, d tensor.DType) *Tensor {
	out := &Tensor{DType: d, Shape: t.Shape}
	for _, h := range t.Int64s() {
		if h == 0 {
			out.Elems = append(out.Elems, ts.zero(d))
		} else {
			out.Elems = append(out.Elems, ts.list[h-1])
		}
	}
	return out
}

// String spells the term, in the names of operators.
func (t *Term) String() string {
	var b strings.Builder
	t.write(&b, 6)
	return b.String()
}

func (t *Term) write(b *strings.Builder, depth int) {
	switch {
	case t.Name != "":
		b.WriteString(t.Name)
	case t.Value != nil:
		b.WriteString(text(t.Value))
	case depth == 0:
		b.WriteString("...")
	default:
		b.WriteString(t.Func + "(")
		for i, a := range t.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			a.write(b, depth-1)
		}
		b.WriteString(")")
	}
}
