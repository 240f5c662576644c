package ssa

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// AttrKind says which field of a Literal has its value.
type AttrKind uint8

// Literal kinds.
const (
	NoneLit AttrKind = iota
	IntLit
	FloatLit
	BoolLit
	StrLit
	ComplexLit
	DeviceLit
	TensorLit
	TypeLit
	ListLit   // of literals, also ONNX's ints, floats and strings
	TupleLit  // of literals
	DictLit   // alternating keys and values
	ObjectLit // a module object or custom class
	FuncLit   // a qualified function name
	EnumLit   // a qualified member name with its value as the only element
	BlobLit   // text that the parser keeps but does not understand
)

// Literal is a constant value: a number, a string, a tensor, a list of literals ...
type Literal struct {
	Kind   AttrKind
	i      int64
	f      float64
	s      string
	Tensor *tensor.Tensor
	Elems  []Literal
	Elem   Type // element type of an empty or ambiguous ListLit; the type of a TypeLit
	Object *Object
}

// None is the literal None.
var None = Literal{}

// Int makes an integer literal.
func Int(v int64) Literal { return Literal{Kind: IntLit, i: v} }

// Float makes a float literal.
func Float(v float64) Literal { return Literal{Kind: FloatLit, f: v} }

// Bool makes a bool literal.
func Bool(v bool) Literal {
	l := Literal{Kind: BoolLit}
	if v {
		l.i = 1
	}
	return l
}

// Str makes a string literal.
func Str(v string) Literal { return Literal{Kind: StrLit, s: v} }

// Device makes a device literal.
func Device(v string) Literal { return Literal{Kind: DeviceLit, s: v} }

// Complex makes a complex literal.
func Complex(v complex128) Literal {
	return Literal{Kind: ComplexLit, f: real(v), i: int64(math.Float64bits(imag(v)))}
}

// TensorValue makes a tensor literal.
func TensorValue(t *tensor.Tensor) Literal { return Literal{Kind: TensorLit, Tensor: t} }

// TypeValue makes a type literal.
func TypeValue(t Type) Literal { return Literal{Kind: TypeLit, Elem: t} }

// List makes a list literal; elem is its element type.
func List(elem Type, v ...Literal) Literal { return Literal{Kind: ListLit, Elems: v, Elem: elem} }

// Tuple makes a tuple literal.
func Tuple(v ...Literal) Literal { return Literal{Kind: TupleLit, Elems: v} }

// Dict makes a dict literal of alternating keys and values.
func Dict(kv ...Literal) Literal { return Literal{Kind: DictLit, Elems: kv} }

// ObjectValue makes a literal that refers to a module object.
func ObjectValue(o *Object) Literal { return Literal{Kind: ObjectLit, Object: o} }

// FuncName makes a literal that names a function.
func FuncName(name string) Literal { return Literal{Kind: FuncLit, s: name} }

// Enum makes an enum member of a qualified name (__torch__.Color.GREEN).
func Enum(name string, value Literal) Literal {
	return Literal{Kind: EnumLit, s: name, Elems: []Literal{value}}
}

// Blob makes a literal of text that is printed unchanged.
func Blob(s string) Literal { return Literal{Kind: BlobLit, s: s} }

// Ints makes a list of ints.
func Ints(v ...int64) Literal {
	l := Literal{Kind: ListLit, Elem: IntType, Elems: make([]Literal, len(v))}
	for i, x := range v {
		l.Elems[i] = Int(x)
	}
	return l
}

// Floats makes a list of floats.
func Floats(v ...float64) Literal {
	l := Literal{Kind: ListLit, Elem: FloatType, Elems: make([]Literal, len(v))}
	for i, x := range v {
		l.Elems[i] = Float(x)
	}
	return l
}

// Strs makes a list of strings.
func Strs(v ...string) Literal {
	l := Literal{Kind: ListLit, Elem: StrType, Elems: make([]Literal, len(v))}
	for i, x := range v {
		l.Elems[i] = Str(x)
	}
	return l
}

// Int returns the value of an IntLit or BoolLit.
func (l Literal) Int() int64 { return l.i }

// Float returns the value of a FloatLit, or the converted value of an IntLit or BoolLit.
func (l Literal) Float() float64 {
	if l.Kind == IntLit || l.Kind == BoolLit {
		return float64(l.i)
	}
	return l.f
}

// Bool returns the value of a BoolLit or IntLit.
func (l Literal) Bool() bool { return l.i != 0 }

// Str returns the text of a StrLit, DeviceLit, FuncLit, EnumLit or BlobLit.
func (l Literal) Str() string { return l.s }

// Complex returns the value of a ComplexLit, or the converted value of a real number.
func (l Literal) Complex() complex128 {
	if l.Kind == ComplexLit {
		return complex(l.f, math.Float64frombits(uint64(l.i)))
	}
	return complex(l.Float(), 0)
}

// IsNone reports whether the literal is None.
func (l Literal) IsNone() bool { return l.Kind == NoneLit }

// IsNumber reports whether the literal is an int, float, bool or complex number.
func (l Literal) IsNumber() bool {
	return l.Kind == IntLit || l.Kind == FloatLit || l.Kind == BoolLit || l.Kind == ComplexLit
}

// IntList returns the elements of a list or tuple of ints.
func (l Literal) IntList() ([]int64, bool) {
	if l.Kind != ListLit && l.Kind != TupleLit {
		return nil, false
	}
	out := make([]int64, len(l.Elems))
	for i, e := range l.Elems {
		if e.Kind != IntLit && e.Kind != BoolLit {
			return nil, false
		}
		out[i] = e.i
	}
	return out, true
}

// FloatList returns the elements of a list or tuple of numbers as floats.
func (l Literal) FloatList() ([]float64, bool) {
	if l.Kind != ListLit && l.Kind != TupleLit {
		return nil, false
	}
	out := make([]float64, len(l.Elems))
	for i, e := range l.Elems {
		if !e.IsNumber() || e.Kind == ComplexLit {
			return nil, false
		}
		out[i] = e.Float()
	}
	return out, true
}

// Type returns the TorchScript type of the literal.
func (l Literal) Type() Type {
	switch l.Kind {
	case IntLit:
		return IntType
	case FloatLit:
		return FloatType
	case BoolLit:
		return BoolType
	case StrLit:
		return StrType
	case ComplexLit:
		return ComplexType
	case DeviceLit:
		return DeviceType
	case TensorLit:
		return TensorOf(l.Tensor)
	case FuncLit:
		return FunctionType
	case ListLit:
		if l.Elem != nil {
			return &ListType{l.Elem}
		}
		if len(l.Elems) > 0 {
			return &ListType{listElem(l.Elems)}
		}
		return &ListType{AnyTensor}
	case TupleLit:
		t := &TupleType{}
		for _, e := range l.Elems {
			t.Elems = append(t.Elems, e.Type())
		}
		return t
	case DictLit:
		if len(l.Elems) >= 2 {
			return &DictType{l.Elems[0].Type(), generalTensor(l.Elems[1].Type())}
		}
		return &DictType{StrType, AnyTensor}
	case ObjectLit:
		return &ClassType{l.Object.Class}
	case EnumLit:
		name := l.s
		for i := len(name) - 1; i >= 0; i-- {
			if name[i] == '.' {
				name = name[:i]
				break
			}
		}
		return &EnumType{name}
	case NoneLit:
		return NoneType
	}
	return AnyType
}

func generalTensor(t Type) Type {
	if AsTensor(t) != nil {
		return AnyTensor
	}
	return t
}

func listElem(es []Literal) Type {
	none := false
	var t Type
	for _, e := range es {
		if e.IsNone() {
			none = true
		} else if t == nil {
			t = generalTensor(e.Type())
		}
	}
	switch {
	case t == nil:
		return NoneType
	case none:
		return &OptionalType{t}
	}
	return t
}

// Equal reports whether two literals are equal. Large tensors are equal if they are the same view of the same storage.
func (l Literal) Equal(m Literal) bool {
	if l.Kind != m.Kind || l.i != m.i || l.s != m.s || len(l.Elems) != len(m.Elems) || l.Object != m.Object {
		return false
	}
	if math.Float64bits(l.f) != math.Float64bits(m.f) {
		return false
	}
	if (l.Elem == nil) != (m.Elem == nil) || l.Elem != nil && !SameType(l.Elem, m.Elem) {
		return false
	}
	if l.Tensor != m.Tensor {
		if l.Tensor == nil || m.Tensor == nil || !sameView(l.Tensor, m.Tensor) {
			return false
		}
	}
	for i := range l.Elems {
		if !l.Elems[i].Equal(m.Elems[i]) {
			return false
		}
	}
	return true
}

// smallTensor is the number of bytes up to which tensors are compared by content.
const smallTensor = 256

func sameView(a, b *tensor.Tensor) bool {
	if a.DType != b.DType || len(a.Shape) != len(b.Shape) {
		return false
	}
	for i := range a.Shape {
		if a.Shape[i] != b.Shape[i] {
			return false
		}
	}
	if a.Storage == nil || b.Storage == nil {
		return false
	}
	if a.Storage == b.Storage && a.Offset == b.Offset {
		same := true
		for i := range a.Strides {
			same = same && (a.Strides[i] == b.Strides[i] || a.Shape[i] <= 1)
		}
		if same {
			return true
		}
	}
	if a.DType != tensor.String && a.NumBytes() <= smallTensor {
		return string(a.Bytes()) == string(b.Bytes())
	}
	return false
}

// Attr is a named literal of an op.
type Attr struct {
	Name  string
	Value Literal
}

// Object is an instance of a TorchScript class: the module tree of an archive.
type Object struct {
	Class  string // qualified name
	Path   string // the first path to it, such as features.0; empty for the top-level module
	Fields []Attr
	index  map[string]int
}

// Get returns a field.
func (o *Object) Get(name string) (Literal, bool) {
	if o.index == nil && len(o.Fields) > 8 {
		o.index = make(map[string]int, len(o.Fields))
		for i, f := range o.Fields {
			o.index[f.Name] = i
		}
	}
	if o.index != nil {
		i, ok := o.index[name]
		if !ok {
			return None, false
		}
		return o.Fields[i].Value, true
	}
	for _, f := range o.Fields {
		if f.Name == name {
			return f.Value, true
		}
	}
	return None, false
}

// Set adds or replaces a field.
func (o *Object) Set(name string, v Literal) {
	for i := range o.Fields {
		if o.Fields[i].Name == name {
			o.Fields[i].Value = v
			return
		}
	}
	o.Fields = append(o.Fields, Attr{name, v})
	o.index = nil
}

// Remove removes a field.
func (o *Object) Remove(name string) {
	o.Fields = slices.DeleteFunc(o.Fields, func(f Attr) bool { return f.Name == name })
	o.index = nil
}
