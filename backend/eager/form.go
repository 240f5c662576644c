package eager

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

const (
	// maxForms bounds how many ONNX forms of operators are kept.
	maxForms = 1 << 13
	// foldLimit bounds the elements of a constant that is computed while an operator is lowered.
	foldLimit = 1 << 14
	// maxKnown is the number of elements up to which an operand's values are told to a lowering that needs them.
	maxKnown = 1 << 12
)

// form is the ONNX form of an operator for operands of given types and sizes.
type form struct {
	f       *ssa.Func
	list    bool // the results are the elements of one list
	random  bool // it draws random numbers
	failure *aten.Failure
}

// pure computes an operator that neither writes nor gives views, by its ONNX form. Results have memory of their own, row-major.
func (k *machine) pure(kind ssa.Kind, schema *ssa.Schema, args []Value) ([]Value, error) {
	key, leaves, err := k.signature(kind, schema, args)
	if err != nil {
		return nil, err
	}
	f := k.forms[key]
	if f == nil {
		if f, err = k.lower(kind, schema, args, false); err != nil {
			return nil, err
		}
		if len(k.forms) >= maxForms {
			clear(k.forms)
		}
		k.forms[key] = f
	}
	if f.failure != nil && known(leaves) { // it may need the elements of its operands
		g, err := k.lower(kind, schema, args, true)
		if err != nil {
			return nil, err
		}
		if g.failure != nil {
			return nil, failure(f.failure)
		}
		f, leaves = g, nil
	}
	if f.failure != nil {
		return nil, failure(f.failure)
	}
	in := make([]interp.Value, len(leaves))
	for i, t := range leaves {
		x := t.Tensor()
		if !x.HasData() {
			return nil, refuse("unsupported-value", "the elements of an operand are not there")
		}
		if x.DType.IsComplex() {
			x = pairs(x)
		}
		in[i] = interp.Of(x)
	}
	var drawn map[*ssa.Op]int64
	if f.random {
		drawn = map[*ssa.Op]int64{}
		for o := range f.f.Body.AllOps() {
			drawn[o] = k.drawn[f]
		}
		k.drawn[f]++
		k.Random = true
	}
	out, err := (&interp.Interpreter{Seed: k.Seed, Drawn: drawn}).RunFunc(f.f, in)
	if err != nil {
		return nil, refuse("failed", "%v", err)
	}
	return k.results(f, schema, out)
}

func failure(f *aten.Failure) error { return &refusal{f.ID, f.Message, f.Hint} }

// known reports that all tensors are small enough to tell a lowering their elements.
func known(ts []*Tensor) bool {
	for _, t := range ts {
		if t.numel() > maxKnown || t.dtype.IsComplex() || !t.plain().HasData() {
			return false
		}
	}
	return len(ts) > 0
}

// pairs shows complex numbers as pairs of real ones along a new last axis.
func pairs(t *tensor.Tensor) *tensor.Tensor {
	return tensor.New(aten.RealOf(t.DType), append(slices.Clone(t.Shape), 2), t.Bytes())
}

// results makes values of what an ONNX form gave.
func (k *machine) results(f *form, schema *ssa.Schema, out []interp.Value) ([]Value, error) {
	rets := f.f.Body.Returns()
	vals := make([]Value, len(out))
	for i, v := range out {
		var want ssa.Type
		switch {
		case f.list:
			want = ssa.AnyTensor
		case i < len(schema.Returns):
			want = schema.Returns[i].Type
		}
		x, err := fromONNX(v, want, f.complex(rets[i]))
		if err != nil {
			return nil, err
		}
		vals[i] = x
	}
	if f.list {
		return []Value{&List{Elem: ssa.AnyTensor, Elems: vals}}, nil
	}
	return vals, nil
}

// complexOf are the types of complex numbers by those of their parts.
var complexOf = map[tensor.DType]tensor.DType{tensor.Float16: tensor.Complex32, tensor.Float32: tensor.Complex64, tensor.Float64: tensor.Complex128}

// complexName marks the returns of a form that are complex numbers as pairs.
const complexName = "complex."

func (f *form) complex(v *ssa.Value) bool {
	return v != nil && strings.HasPrefix(v.Name, complexName)
}

func fromONNX(v interp.Value, want ssa.Type, complex bool) (Value, error) {
	if v.IsList {
		l := &List{Elem: ssa.AnyTensor}
		for _, t := range v.List {
			l.Elems = append(l.Elems, Of(t))
		}
		return l, nil
	}
	if v.Tensor == nil {
		return nil, nil
	}
	t := v.Tensor
	if complex && complexOf[t.DType] != tensor.Undefined {
		d := complexOf[t.DType]
		t = tensor.New(d, t.Shape[:len(t.Shape)-1], t.Bytes())
	}
	x := Of(t)
	if !t.IsContiguous() {
		x = Of(t.Clone())
	}
	switch want := want.(type) {
	case ssa.Basic:
		switch want {
		case ssa.IntType, ssa.FloatType, ssa.BoolType, ssa.NumberType, ssa.ComplexType:
			n, err := number(x)
			if err != nil {
				return nil, err
			}
			return coerce(n, want), nil
		}
	case *ssa.ListType:
		if ssa.AsTensor(want.Elem) == nil {
			return numbers(x, want.Elem)
		}
	}
	return x, nil
}

// numbers makes a list of a vector.
func numbers(t *Tensor, elem ssa.Type) (Value, error) {
	l := &List{Elem: elem}
	if len(t.shape) != 1 {
		return nil, refuse("internal", "a list of numbers of a tensor %v", t)
	}
	for i := range t.shape[0] {
		n, err := number(t.view(t.offset+i*t.strides[0], []int64{}, []int64{}))
		if err != nil {
			return nil, err
		}
		l.Elems = append(l.Elems, n)
	}
	return l, nil
}

// signature tells apart the calls of operators that have forms of their own: by the types and sizes of tensors, and the values of the
// rest. leaves are the tensors in their order.
func (k *machine) signature(kind ssa.Kind, schema *ssa.Schema, args []Value) (string, []*Tensor, error) {
	var leaves []*Tensor
	b := make([]byte, 0, 64)
	b = append(b, kind...)
	b = append(b, '.')
	b = append(b, schema.Overload...)
	var add func(v Value) error
	add = func(v Value) error {
		if err := k.step(); err != nil {
			return err
		}
		switch v := v.(type) {
		case nil:
			b = append(b, 'N')
		case int64:
			b = strconv.AppendInt(append(b, 'i'), v, 10)
		case float64:
			b = strconv.AppendFloat(append(b, 'f'), v, 'g', -1, 64)
		case bool:
			b = strconv.AppendBool(b, v)
		case complex128:
			b = fmt.Append(append(b, 'c'), v)
		case string:
			b = strconv.AppendQuote(b, v)
		case Device:
			b = strconv.AppendQuote(append(b, 'd'), string(v))
		case *Tensor:
			if v.dtype.IsQuantized() {
				return refuse("unsupported-op", "an operand is a quantized tensor")
			}
			leaves = append(leaves, v)
			b = append(b, 't', byte(v.dtype))
			for _, d := range v.shape {
				b = strconv.AppendInt(append(b, ','), d, 10)
			}
		case *List:
			b = append(b, '[')
			for _, e := range v.Elems {
				if err := add(e); err != nil {
					return err
				}
			}
			b = append(b, ']')
		case *Tuple:
			b = append(b, '(')
			for _, e := range v.Elems {
				if err := add(e); err != nil {
					return err
				}
			}
			b = append(b, ')')
		default:
			return refuse("unsupported-value", "an operand is %s", describe(v))
		}
		b = append(b, ' ')
		return nil
	}
	for i, a := range args {
		if i < len(schema.Args) && isGenerator(schema.Args[i].Type) {
			continue
		}
		if err := add(a); err != nil {
			return "", nil, err
		}
	}
	return string(b), leaves, nil
}

func isGenerator(t ssa.Type) bool {
	if o, ok := t.(*ssa.OptionalType); ok {
		t = o.Elem
	}
	return t == ssa.GeneratorType
}

// source builds a function of one operator of the program, whose operands are its parameters and constants.
type source struct {
	b      *ssa.Block
	valued bool // tensors are constants
	params []*ssa.Value
}

func (s *source) constant(l ssa.Literal, t ssa.Type) *ssa.Value {
	o := s.b.Append("prim::Constant", 0, nil, t)
	if !l.IsNone() {
		o.SetAttr("value", l)
	}
	if l.Kind == ssa.IntLit {
		o.Results[0].Sym = []sym.Expr{sym.Const(l.Int())}
	}
	return o.Results[0]
}

func (s *source) value(v Value, declared ssa.Type) *ssa.Value {
	if o, ok := declared.(*ssa.OptionalType); ok {
		declared = o.Elem
	}
	switch v := v.(type) {
	case *Tensor:
		if s.valued {
			return s.constant(ssa.TensorValue(v.Tensor()), v.typ())
		}
		p := s.b.AddParam("x"+strconv.Itoa(len(s.params)), v.typ())
		s.params = append(s.params, p)
		return p
	case *List:
		if l, ok := literal(v); ok {
			if lt, isList := declared.(*ssa.ListType); isList && l.Elem == nil {
				l.Elem = lt.Elem
			}
			return s.constant(l, l.Type())
		}
		vs := make([]*ssa.Value, len(v.Elems))
		elem := ssa.Type(ssa.AnyTensor)
		for i, e := range v.Elems {
			vs[i] = s.value(e, nil)
			if e == nil {
				elem = &ssa.OptionalType{Elem: ssa.AnyTensor}
			}
		}
		return s.b.Append("prim::ListConstruct", 0, vs, &ssa.ListType{Elem: elem}).Results[0]
	case *Tuple:
		vs := make([]*ssa.Value, len(v.Elems))
		tt := &ssa.TupleType{}
		for i, e := range v.Elems {
			vs[i] = s.value(e, nil)
			tt.Elems = append(tt.Elems, vs[i].Type)
		}
		return s.b.Append("prim::TupleConstruct", 0, vs, tt).Results[0]
	}
	l, _ := literal(v)
	return s.constant(l, l.Type())
}

// literal is the constant that a value without tensors is.
func literal(v Value) (ssa.Literal, bool) {
	switch v := v.(type) {
	case nil:
		return ssa.None, true
	case int64:
		return ssa.Int(v), true
	case float64:
		return ssa.Float(v), true
	case bool:
		return ssa.Bool(v), true
	case complex128:
		return ssa.Complex(v), true
	case string:
		return ssa.Str(v), true
	case Device:
		return ssa.Device(string(v)), true
	case *List:
		l := ssa.Literal{Kind: ssa.ListLit, Elem: v.Elem}
		for _, e := range v.Elems {
			x, ok := literal(e)
			if !ok || x.IsNone() || x.Kind == ssa.ListLit {
				return ssa.None, false
			}
			l.Elems = append(l.Elems, x)
		}
		if len(l.Elems) > 0 {
			l.Elem = l.Elems[0].Type()
		} else if ssa.AsTensor(v.Elem) != nil {
			return ssa.None, false
		}
		return l, true
	}
	return ssa.None, false
}

// lower makes the ONNX form of an operator for operands of these types and sizes; with valued, of these elements. A failure of the
// lowering is in the form, so that it is kept too.
func (k *machine) lower(kind ssa.Kind, schema *ssa.Schema, args []Value, valued bool) (*form, error) {
	m := ssa.NewModule(k.m.Dialects...)
	m.Budget = k.m.Budget
	src := &source{b: m.NewFunc("source").Body, valued: valued}
	operands := make([]*ssa.Value, len(args))
	for i, a := range args {
		var declared ssa.Type
		if i < len(schema.Args) {
			if declared = schema.Args[i].Type; isGenerator(declared) {
				a = nil
			}
		}
		operands[i] = src.value(a, declared)
	}
	types := make([]ssa.Type, len(schema.Returns))
	for i, r := range schema.Returns {
		types[i] = r.Type
	}
	o := src.b.Append(kind, 0, operands, types...)
	o.Schema = schema

	dst := m.NewFunc("main")
	env := map[*ssa.Value]*ssa.Value{}
	low := aten.NewLowering(k.Table, onnx.Newest, onnx.Builder{Eval: kernel.Eval, Block: dst.Body, FoldLimit: foldLimit}, func(v *ssa.Value) (*ssa.Value, *aten.Failure) {
		if w := env[v]; w != nil {
			return w, nil
		}
		if d := v.Def(); d != nil && d.Kind == "prim::Constant" {
			if lit, _ := d.Attr("value"); lit.Kind == ssa.TensorLit {
				c := dst.Body.InsertBefore(dst.Body.First(), "onnx::Constant", 0, nil, ssa.TensorOf(lit.Tensor))
				c.SetAttr("value", lit)
				env[v] = c.Results[0]
				return c.Results[0], nil
			}
		}
		return nil, nil
	})
	for _, p := range src.params {
		t := p.Tensor()
		if !t.DType.IsComplex() {
			env[p] = dst.Body.AddParam(p.Name, t)
			continue
		}
		real := dst.Body.AddParam(p.Name, ssa.Tensor(aten.RealOf(t.DType), append(slices.Clone(t.Dims), sym.Const(2))...))
		if env[p] = low.Aten("aten::view_as_complex", real); env[p] == nil {
			return nil, refuse("internal", "no complex numbers")
		}
	}
	f := &form{f: dst, random: m.Effects(o)&ssa.Random != 0}
	vs, fail := low.Lower(o)
	if fail != nil {
		f.failure = fail
		return f, nil
	}
	if len(schema.Returns) == 1 {
		if lt, ok := schema.Returns[0].Type.(*ssa.ListType); ok && ssa.AsTensor(lt.Elem) != nil {
			if len(vs) != 1 {
				f.list = true
			} else if _, sequence := vs[0].Type.(*ssa.ListType); !sequence {
				f.list = true
			}
		}
	}
	if !f.list && len(vs) != len(schema.Returns) {
		return nil, refuse("internal", "the lowering gives %d results of %d", len(vs), len(schema.Returns))
	}
	for i, v := range vs {
		if v == nil || !v.DType().IsComplex() {
			continue
		}
		vs[i] = low.Aten("aten::view_as_real", v)
		if vs[i].Def() == nil || vs[i].Name != "" { // a parameter, say
			vs[i] = dst.Body.Append("onnx::Identity", 0, []*ssa.Value{vs[i]}, vs[i].Type).Results[0]
		}
		vs[i].Name = complexName + strconv.Itoa(i)
	}
	dst.Body.SetReturns(vs...)
	ssa.EraseUnused(dst.Body, func(o *ssa.Op) bool { return true })
	for o := range dst.Body.AllOps() {
		if o.Kind.Namespace() == "aton" {
			f.failure = &aten.Failure{ID: "complex-value", Message: "computes with complex numbers in a way that is not known"}
			return f, nil
		}
	}
	m.Opsets = map[string]int{"": onnx.Newest}
	return f, nil
}

// coerce makes a number one of the type that a schema asks for.
func coerce(v Value, want ssa.Type) Value {
	switch want {
	case ssa.FloatType:
		switch v := v.(type) {
		case int64:
			return float64(v)
		case bool:
			if v {
				return 1.0
			}
			return 0.0
		}
	case ssa.IntType:
		switch v := v.(type) {
		case bool:
			if v {
				return int64(1)
			}
			return int64(0)
		case float64:
			return int64(v)
		}
	case ssa.BoolType:
		switch v := v.(type) {
		case int64:
			return v != 0
		case float64:
			return v != 0
		}
	case ssa.ComplexType:
		switch v := v.(type) {
		case int64:
			return complex(float64(v), 0)
		case float64:
			return complex(v, 0)
		}
	}
	return v
}
