package ssa

import (
	"strings"

	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Type is the static type of a value. Types are immutable; compare them with [SameType].
type Type interface {
	// String prints the type as PyTorch prints it in graphs.
	String() string
}

// Basic is a type without parameters.
type Basic string

// The basic types.
const (
	IntType       Basic = "int"
	FloatType     Basic = "float"
	BoolType      Basic = "bool"
	ComplexType   Basic = "complex"
	NumberType    Basic = "Scalar"
	StrType       Basic = "str"
	NoneType      Basic = "NoneType"
	DeviceType    Basic = "Device"
	AnyType       Basic = "Any"
	GeneratorType Basic = "Generator"
	FunctionType  Basic = "Function"
	StreamType    Basic = "Stream"
	StorageType   Basic = "Storage"
	QSchemeType   Basic = "QScheme"
	PyObjectType  Basic = "PyObject"
	CapsuleType   Basic = "Capsule"
	AnyListType   Basic = "list"
	AnyTupleType  Basic = "tuple"
	AnyEnumType   Basic = "AnyEnumType"
	AnyClassType  Basic = "AnyClassType"
)

func (t Basic) String() string { return string(t) }

// TensorType is a tensor type: an element type, and dims if the rank is known. Use [Tensor], [Unranked] or [AnyTensor] to make one.
type TensorType struct {
	DType  tensor.DType // Undefined: unknown
	Ranked bool
	Dims   []sym.Expr // when Ranked
	// Example is set if text states it; it is nil in types that aton makes.
	Example *Example
}

// AnyTensor is the tensor type without any information.
var AnyTensor = &TensorType{}

// Tensor returns a ranked tensor type. It keeps dims without copying them.
func Tensor(d tensor.DType, dims ...sym.Expr) *TensorType {
	return &TensorType{DType: d, Ranked: true, Dims: dims}
}

// TensorOf returns the type of a constant.
func TensorOf(t *tensor.Tensor) *TensorType { return Tensor(t.DType, Sizes(t.Shape)...) }

// Unranked returns a tensor type of unknown rank.
func Unranked(d tensor.DType) *TensorType { return &TensorType{DType: d} }

// Sizes returns dims of known sizes.
func Sizes(shape []int64) []sym.Expr {
	d := make([]sym.Expr, len(shape))
	for i, n := range shape {
		d[i] = sym.Const(n)
	}
	return d
}

// Rank returns the number of dimensions, or -1 if it is unknown.
func (t *TensorType) Rank() int {
	if !t.Ranked {
		return -1
	}
	return len(t.Dims)
}

// Static returns the shape if every size is known.
func (t *TensorType) Static() ([]int64, bool) {
	if !t.Ranked {
		return nil, false
	}
	out := make([]int64, len(t.Dims))
	for i, d := range t.Dims {
		n, ok := d.Int()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// WithDType returns the type with another element type.
func (t *TensorType) WithDType(d tensor.DType) *TensorType {
	c := *t
	c.DType, c.Example = d, nil
	return &c
}

// String returns text such as Float(2, N), Float() for rank 0, FloatTensor for an unknown rank, Tensor(2, N), or Tensor.
func (t *TensorType) String() string {
	if !t.Ranked {
		if t.DType == tensor.Undefined {
			return "Tensor"
		}
		return t.DType.String() + "Tensor"
	}
	var b strings.Builder
	b.WriteString(t.DType.String())
	b.WriteByte('(')
	for i, d := range t.Dims {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(d.String())
	}
	b.WriteByte(')')
	return b.String()
}

// ListType is List[Elem].
type ListType struct{ Elem Type }

func (t *ListType) String() string { return suffixed(t.Elem, "[]") }

// OptionalType is Optional[Elem].
type OptionalType struct{ Elem Type }

func (t *OptionalType) String() string { return suffixed(t.Elem, "?") }

func suffixed(t Type, s string) string { return t.String() + s }

// TupleType is a tuple, a NamedTuple when Names is set.
type TupleType struct {
	Elems []Type
	Names []string // field names of a NamedTuple
	Name  string   // qualified name of a NamedTuple's class
}

func (t *TupleType) String() string {
	if t.Name != "" {
		return t.Name
	}
	var b strings.Builder
	if t.Names != nil {
		b.WriteString("NamedTuple")
	}
	b.WriteByte('(')
	for i, e := range t.Elems {
		if i > 0 {
			b.WriteString(", ")
		}
		if t.Names != nil {
			b.WriteString(attrName(t.Names[i]) + " : ")
		}
		b.WriteString(e.String())
	}
	b.WriteByte(')')
	return b.String()
}

// DictType is Dict[Key, Value].
type DictType struct{ Key, Value Type }

func (t *DictType) String() string { return "Dict(" + t.Key.String() + ", " + t.Value.String() + ")" }

// Sparse is the name of the WrapType of a sparse tensor in an ONNX file, whose parameter is the tensor that it stands for.
const Sparse = "Sparse"

// WrapType is a generic type of one parameter besides List and Optional: Future, Await, RRef, Sparse.
type WrapType struct {
	Name string
	Elem Type
}

func (t *WrapType) String() string { return t.Name + "[" + t.Elem.String() + "]" }

// UnionType is Union[...].
type UnionType struct{ Elems []Type }

func (t *UnionType) String() string {
	var s []string
	for _, e := range t.Elems {
		s = append(s, e.String())
	}
	return "Union(" + strings.Join(s, ", ") + ")"
}

// ClassType is a class, interface or module type, by qualified name (__torch__.a.B).
type ClassType struct{ Name string }

func (t *ClassType) String() string {
	if strings.HasPrefix(t.Name, "__torch__") && dotted(t.Name) {
		return t.Name
	}
	return "Class<" + dottedText(t.Name) + ">"
}

// dotted reports a name that stands in the text of types as it is.
func dotted(s string) bool {
	for i := 0; i < len(s); i++ {
		if !dottedByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func dottedText(s string) string {
	if dotted(s) {
		return s
	}
	return Quote(s)
}

// CustomClasses is the prefix of the names of classes that a library registered in C++. Archives have their state but not their code.
const CustomClasses = "__torch__.torch.classes."

// IsCustomClass reports whether the name is that of a class written in C++.
func IsCustomClass(name string) bool { return strings.HasPrefix(name, CustomClasses) }

// EnumType is an enumeration, by qualified name.
type EnumType struct{ Name string }

func (t *EnumType) String() string { return "Enum<" + dottedText(t.Name) + ">" }

// InterfaceType is an interface type, by qualified name.
type InterfaceType struct{ Name string }

func (t *InterfaceType) String() string { return "InterfaceType<" + dottedText(t.Name) + ">" }

// VarType is a type variable of a schema (t, t1, tVal).
type VarType struct{ Name string }

func (t *VarType) String() string { return t.Name }

// SameType reports whether two types are structurally equal.
func SameType(a, b Type) bool {
	if a == b {
		return true
	}
	switch a := a.(type) {
	case *TensorType:
		b, ok := b.(*TensorType)
		if !ok || a.DType != b.DType || a.Ranked != b.Ranked || len(a.Dims) != len(b.Dims) {
			return false
		}
		for i := range a.Dims {
			if !a.Dims[i].Equal(b.Dims[i]) {
				return false
			}
		}
		return true
	case nil:
		return false
	case Basic:
		return false
	}
	if b == nil {
		return false
	}
	if _, ok := b.(Basic); ok {
		return false
	}
	return a.String() == b.String()
}

// AsTensor returns the type as a tensor type, or nil if it is another type.
// Optional[Tensor] is not a tensor type.
func AsTensor(t Type) *TensorType {
	tt, _ := t.(*TensorType)
	return tt
}
