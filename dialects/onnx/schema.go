package onnx

import (
	"math/bits"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Newest is the newest opset of the default domain that the schemas know. The
// IR holds operators in the encoding of this opset until they are legalized.
const Newest = 28

// ExportOpset is the opset that programs are written for unless another is asked for, and ExportOpsetText its spelling in
// the options of passes.
const (
	ExportOpset     = 20
	ExportOpsetText = "20"
)

// OpSchema is one version of an operator as the ONNX standard declares it.
type OpSchema struct {
	Domain     string // "onnx" for the default domain
	Name       string
	Since      int // the opset in which this version appeared
	Deprecated bool
	// Function reports that the standard defines the operator by others.
	Function bool
	Inputs   []Param
	Outputs  []Param
	Attrs    []AttrSchema // sorted by name
}

// ParamOption says how often an input or output occurs.
type ParamOption uint8

// Parameter options.
const (
	Single ParamOption = iota
	Optional
	Variadic      // any number, one type
	VariadicMixed // any number, types may differ
)

// Param is a formal input or output.
type Param struct {
	Name   string
	Var    string // the type variable, or the concrete type as written
	Option ParamOption
	Min    int // of a variadic parameter: how many at least
	Types  TypeSet
}

// TypeSet is a set of ONNX types. Bit n of a mask stands for the element type
// whose TensorProto.DataType number is n.
type TypeSet struct {
	Tensor     uint32 // tensor(x)
	Seq        uint32 // seq(tensor(x))
	OptTensor  uint32 // optional(tensor(x))
	OptSeq     uint32 // optional(seq(tensor(x)))
	OtherTypes bool   // maps and sequences of them; sparse tensors
}

// HasTensor reports that tensor(d) is in the set.
func (s TypeSet) HasTensor(d tensor.DType) bool {
	return d.ONNX() > 0 && s.Tensor>>d.ONNX()&1 == 1
}

// Allows reports that a value of type t may be used; what is unknown of t is taken to be right.
func (s TypeSet) Allows(t ssa.Type) bool {
	switch t := t.(type) {
	case *ssa.TensorType:
		if t.DType == tensor.Undefined {
			return s.Tensor != 0 || !t.Ranked // AnyTensor also stands for "not inferred yet"
		}
		return s.HasTensor(t.DType)
	case *ssa.DictType, *ssa.WrapType:
		return s.OtherTypes
	case *ssa.ListType:
		if _, ok := t.Elem.(*ssa.DictType); ok {
			return s.OtherTypes
		}
		return allowsElem(s.Seq, t.Elem)
	case *ssa.OptionalType:
		if l, ok := t.Elem.(*ssa.ListType); ok {
			return allowsElem(s.OptSeq, l.Elem)
		}
		return allowsElem(s.OptTensor, t.Elem)
	}
	return true
}

func allowsElem(mask uint32, t ssa.Type) bool {
	tt := ssa.AsTensor(t)
	if tt == nil || tt.DType == tensor.Undefined {
		return mask != 0
	}
	return tt.DType.ONNX() > 0 && mask>>tt.DType.ONNX()&1 == 1
}

// DTypes lists the element types of the tensor types in the set that aton has, in ONNX's order.
func (s TypeSet) DTypes() []tensor.DType {
	var out []tensor.DType
	for m := s.Tensor; m != 0; m &= m - 1 {
		if d := tensor.FromONNX(bits.TrailingZeros32(m)); d != tensor.Undefined {
			out = append(out, d)
		}
	}
	return out
}

// AttrType is the kind of an attribute.
type AttrType uint8

// Attribute kinds.
const (
	AttrInt AttrType = iota
	AttrFloat
	AttrString
	AttrTensor
	AttrGraph
	AttrInts
	AttrFloats
	AttrStrings
	AttrSparseTensor
	AttrTypeProto
)

// String gives the name as the schemas print it.
func (k AttrType) String() string {
	return [...]string{"int", "float", "string", "tensor", "graph", "ints", "floats", "strings", "sparse_tensor", "type_proto"}[k]
}

// AttrSchema declares an attribute.
type AttrSchema struct {
	Name     string
	Type     AttrType
	Required bool
	Default  string // as written in schemas.txt, empty for none
}

// Value is the default value; ok is false if there is none.
func (a *AttrSchema) Value() (l ssa.Literal, ok bool) {
	if a.Default == "" {
		return ssa.None, false
	}
	switch a.Type {
	case AttrInt:
		n, err := strconv.ParseInt(a.Default, 10, 64)
		return ssa.Int(n), err == nil
	case AttrFloat:
		f, err := strconv.ParseFloat(a.Default, 64)
		return ssa.Float(f), err == nil
	case AttrString:
		s, err := strconv.Unquote(a.Default)
		return ssa.Str(s), err == nil
	case AttrInts, AttrStrings:
		var ints []int64
		var strs []string
		for _, e := range strings.Split(strings.Trim(a.Default, "[]"), ", ") {
			if a.Type == AttrStrings {
				s, err := strconv.Unquote(e)
				if err != nil {
					return ssa.None, false
				}
				strs = append(strs, s)
				continue
			}
			n, err := strconv.ParseInt(e, 10, 64)
			if err != nil {
				return ssa.None, false
			}
			ints = append(ints, n)
		}
		if a.Type == AttrStrings {
			return ssa.Strs(strs...), true
		}
		return ssa.Ints(ints...), true
	}
	return ssa.None, false
}

// Attr finds an attribute's declaration, nil if there is none.
func (s *OpSchema) Attr(name string) *AttrSchema {
	i := sort.Search(len(s.Attrs), func(i int) bool { return s.Attrs[i].Name >= name })
	if i < len(s.Attrs) && s.Attrs[i].Name == name {
		return &s.Attrs[i]
	}
	return nil
}

// Kind is the operator's name in the IR.
func (s *OpSchema) Kind() ssa.Kind { return ssa.Kind(s.Domain + "::" + s.Name) }

// Input gives the declaration of input i, the variadic one for those beyond; nil if there is none.
func (s *OpSchema) Input(i int) *Param { return paramAt(s.Inputs, i) }

// Output gives the declaration of output i, the variadic one for those beyond; nil if there is none.
func (s *OpSchema) Output(i int) *Param { return paramAt(s.Outputs, i) }

func paramAt(ps []Param, i int) *Param {
	if i < len(ps) {
		return &ps[i]
	}
	if n := len(ps); n > 0 && ps[n-1].Option >= Variadic {
		return &ps[n-1]
	}
	return nil
}

// Arity is how many inputs or outputs there are at least and at most; most is -1 for any number.
func Arity(ps []Param) (least, most int) {
	for i, p := range ps {
		switch {
		case p.Option == Single:
			least = i + 1
		case p.Option >= Variadic && p.Min > 0:
			least = i + p.Min
		}
		if p.Option >= Variadic {
			return least, -1
		}
	}
	return least, len(ps)
}

// ArityString says how many there are: "1 to 3 inputs".
func ArityString(what string, least, most int) string {
	n := strconv.Itoa(least)
	switch {
	case most < 0:
		return n + " or more " + what + "s"
	case most != least:
		n += " to " + strconv.Itoa(most)
	}
	if most == 1 {
		return n + " " + what
	}
	return n + " " + what + "s"
}

// Lookup finds the version of an operator that an opset has: the newest one
// that is not newer than the opset. The name is Relu, or domain::Name for
// domains other than ONNX's default one. Nil: the opset does not have it, or
// has it deprecated.
func Lookup(name string, opset int) *OpSchema {
	vs := Versions(name)
	i := sort.Search(len(vs), func(i int) bool { return vs[i].Since > opset })
	if i == 0 || vs[i-1].Deprecated {
		return nil
	}
	return &vs[i-1]
}

// Versions lists all versions of an operator, oldest first.
func Versions(name string) []OpSchema {
	if e := entries[strings.TrimPrefix(name, Namespace+"::")]; e != nil {
		return e.versions
	}
	return nil
}

// entry is what schemas.txt has of an operator.
type entry struct {
	versions []OpSchema
	newest   *OpSchema // that is not deprecated, nil if all are
}

// entries are the operators of all domains by the names that Lookup takes.
var entries = func() map[string]*entry {
	all := make(map[string]*entry, len(opIndex))
	for _, i := range opIndex {
		e := &entry{versions: schemas[i.first:i.end]}
		for k := range e.versions {
			if s := &e.versions[k]; !s.Deprecated {
				e.newest = s
			}
		}
		all[i.name] = e
	}
	return all
}()

// Names lists the operators of all domains in the spelling that Lookup takes, sorted.
func Names() []string {
	out := make([]string, len(opIndex))
	for i := range opIndex {
		out[i] = opIndex[i].name
	}
	return out
}

// opEntry is the range of an operator's versions in schemas.
type opEntry struct {
	name       string
	first, end int
}

// Kinds lists the operators of the standard, sorted by name.
func Kinds() []ssa.Kind {
	kinds := make([]ssa.Kind, 0, len(entries))
	for name := range entries {
		kinds = append(kinds, ssa.Kind(Namespace+"::"+name))
	}
	slices.Sort(kinds)
	return kinds
}

// SchemaOf finds the newest version of the operator of an IR kind, nil for unknown ones.
func SchemaOf(k ssa.Kind) *OpSchema {
	if e := entries[strings.TrimPrefix(string(k), Namespace+"::")]; e != nil {
		return e.newest
	}
	return nil
}
