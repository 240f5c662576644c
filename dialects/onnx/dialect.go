// Package onnx gives meaning to the operators of ONNX: the schemas of all their
// versions, the types of their results, and what they do besides computing.
//
// An operator's kind is its domain and name: "onnx::Add" for the default domain,
// "ai.onnx.ml::Scaler", "com.microsoft::Gelu". Operands stand in ONNX's order,
// nil for an absent optional input. Attributes have ONNX's names. The subgraphs
// of If are two blocks (then_branch, else_branch); Loop and Scan have one (body),
// whose parameters and returns are in ONNX's order.
//
// The IR holds operators in their newest encoding (see [Newest]) until a pass
// legalizes them for an opset.
package onnx

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Namespace is the prefix of the kinds of ONNX's default domain.
const Namespace = "onnx"

// Dialect describes the operators of ONNX's default domain.
type Dialect struct{}

// Namespace is "onnx".
func (Dialect) Namespace() string { return Namespace }

// Info gives an op's effects; ok is false for operators that no opset has.
func (Dialect) Info(o *ssa.Op) (ssa.OpInfo, bool) {
	r := rows[o.Kind.Name()]
	if r == nil {
		return ssa.OpInfo{Effects: ssa.Unknown}, false
	}
	info := ssa.OpInfo{Effects: ssa.Pure}
	switch {
	case r.traits&random != 0:
		info.Effects = ssa.Random
	case o.Kind == "onnx::Dropout":
		mode, constant := ConstInts(o.Operand(2))
		evaluates := o.Operand(2) == nil || constant && len(mode) == 1 && mode[0] == 0
		ratio, constant := ConstFloat(o.Operand(1))
		if dropsNone := constant && ratio == 0; !evaluates && !dropsNone {
			info.Effects = ssa.Random
		}
	}
	return info, true
}

// NamedOutputs returns the number of leading outputs that a file must name even where nothing uses them. It is 0 for most operators.
func NamedOutputs(o *ssa.Op) int {
	if o.Kind.Namespace() != Namespace {
		return 0
	}
	if named := rowOf(o.Kind.Name()).named; named != nil {
		return named(o)
	}
	return 0
}

// StaysQuantized reports an op on constants that is not to be computed at export: it makes numbers of more bits out of
// quantized weights, which are small as long as they are integers or 8-bit floats. Runtimes compute with these, or compute it
// when they load the file.
func StaysQuantized(o *ssa.Op) bool {
	switch o.Kind {
	case "onnx::DequantizeLinear":
		t := o.Operand(0).Tensor()
		return t != nil && t.Ranked && len(t.Dims) > 0
	case "onnx::Cast":
		t := o.Operand(0).Tensor()
		if t == nil || t.DType == tensor.Bool || !many(t) || tensor.FromONNX(int(o.AttrInt("to", 0))).Size() <= t.DType.Size() {
			return false
		}
		return t.DType.Bits() <= 8 && t.DType.Size() > 0 || isScale(o.Results[0])
	}
	return false
}

// isScale reports a value that is the scale of DequantizeLinears, and nothing else.
func isScale(v *ssa.Value) bool {
	for u := range v.Uses() {
		if u.Op() == nil || u.Op().Kind != "onnx::DequantizeLinear" || u.Op().Operand(1) != v {
			return false
		}
	}
	return v.HasUses()
}

// CastScale converts the scales of a DequantizeLinear, which are as much a part of quantized weights: many constants stay as
// they are, and a Cast is built ([StaysQuantized]).
func (b *Builder) CastScale(v *ssa.Value, d tensor.DType) *ssa.Value {
	as := *b
	if t := v.Tensor(); t != nil && many(t) && v.DType().Size() < d.Size() {
		as.FoldLimit = 0
	}
	return as.Cast(v, d)
}

// many reports a tensor that is large enough to be a quantized weight.
func many(t *ssa.TensorType) bool {
	shape, ok := t.Static()
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return ok && n >= QuantizedWeight
}

// QuantizedWeight is the number of elements from which on constants of 8 bits and less are taken for quantized weights.
const QuantizedWeight = 256

// ConstOf gives the tensor that a value always has: that of an onnx::Constant or
// of a prim::Constant of a tensor. Nil if there is none.
func ConstOf(v *ssa.Value) *tensor.Tensor {
	if v == nil || v.Def() == nil {
		return nil
	}
	switch o := v.Def(); o.Kind {
	case "onnx::Constant", "prim::Constant":
		if l, ok := o.Attr("value"); ok && l.Kind == ssa.TensorLit {
			return l.Tensor
		}
	}
	return nil
}

// Verify checks number and types of operands, results and attributes against
// the schema: the newest one, or that of the opset that the module is for.
func (Dialect) Verify(o *ssa.Op) error {
	vs := Versions(string(o.Kind))
	if vs == nil {
		return fmt.Errorf("%s is not an operator of ONNX", o.Kind)
	}
	s := SchemaOf(o.Kind)
	var err error
	if s != nil {
		if err = s.verify(o); err == nil {
			return nil
		}
	}
	opset := DefaultOpset(o.Block().Func().Module())
	if opset == 0 {
		opset = Newest
	}
	old := Lookup(string(o.Kind), opset)
	switch {
	case old == nil && s == nil:
		return fmt.Errorf("%s is deprecated", o.Kind)
	case old == nil || old == s:
		return err
	}
	if e := old.verify(o); e != nil && err == nil || e != nil && s.Since <= opset {
		return e
	} else if e != nil {
		return err
	}
	return nil
}

// DefaultOpset is the version of ONNX's default domain that the module is for, 0 if none is set.
func DefaultOpset(m *ssa.Module) int {
	for _, name := range [...]string{"", "ai.onnx", "onnx"} {
		if v, ok := m.Opsets[name]; ok {
			return v
		}
	}
	return 0
}

// TargetOpset is the opset that a module will be written for: its own, or the one that is asked for if it has none or is in the newest form, in which passes
// work whatever the target is.
func TargetOpset(m *ssa.Module, asked int) int {
	if own := DefaultOpset(m); own != 0 && own != Newest {
		return own
	}
	return asked
}

func (s *OpSchema) verify(o *ssa.Op) error {
	var few [8]ssa.Type
	in, out := few[:0:5], few[5:5]
	for i := range o.NumOperands() {
		in = append(in, typeOf(o.Operand(i)))
	}
	for _, r := range o.Results {
		out = append(out, typeOf(r))
	}
	if err := s.CheckTypes(in, out); err != nil {
		return err
	}
	for i := range o.Attrs {
		a := s.Attr(o.Attrs[i].Name)
		if a == nil {
			return fmt.Errorf("%s-%d has no attribute %q", s.Kind(), s.Since, o.Attrs[i].Name)
		}
		if !a.accepts(o.Attrs[i].Value) {
			return fmt.Errorf("attribute %s of %s-%d must be of kind %v", a.Name, s.Kind(), s.Since, a.Type)
		}
	}
	graphs := 0
	for i := range s.Attrs {
		a := &s.Attrs[i]
		if a.Type == AttrGraph {
			if a.Required {
				graphs++
			}
			continue
		}
		if _, ok := o.Attr(a.Name); a.Required && !ok {
			return fmt.Errorf("%s-%d needs the attribute %s", s.Kind(), s.Since, a.Name)
		}
	}
	if len(o.Blocks) != graphs {
		return fmt.Errorf("%s has %d subgraphs, not %d", s.Kind(), graphs, len(o.Blocks))
	}
	for i, b := range o.Blocks {
		if err := s.verifyBlock(o, i, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *OpSchema) verifyBlock(o *ssa.Op, i int, b *ssa.Block) error {
	params, returns := -1, -1
	switch o.Kind {
	case "onnx::If":
		params, returns = 0, len(o.Results)
	case "onnx::Loop":
		params = max(o.NumOperands(), 2)
		returns = len(o.Results) + 1
	case "onnx::Scan":
		params, returns = o.NumOperands(), len(o.Results)
		if s.Since < 9 {
			params-- // the lengths of the sequences are no parameter of the body
		}
	}
	if params >= 0 && (len(b.Params) != params || b.NumReturns() != returns) {
		return fmt.Errorf("block %d of %s takes %d and returns %d values, not %d and %d", i, o.Kind, params, returns, len(b.Params), b.NumReturns())
	}
	return nil
}

// typeOf gives the type of a value, nil for an absent one.
func typeOf(v *ssa.Value) ssa.Type {
	if v == nil {
		return nil
	}
	return v.Type
}

// TypeError says that an operator takes no elements of a type, or none of two types at once.
type TypeError struct {
	DType, Beside tensor.DType // Undefined for Beside where one type is the matter
	text          string
}

func (e *TypeError) Error() string { return e.text }

// CheckTypes checks the number and the types of operands and results; nil stands for an absent one. What is unknown of
// a type is taken to be right.
func (s *OpSchema) CheckTypes(in, out []ssa.Type) error {
	var few [4]binding
	vars, err := s.checkParams("input", s.Inputs, in, few[:0])
	if err == nil {
		_, err = s.checkParams("output", s.Outputs, out, vars)
	}
	return err
}

// binding is the element type that a type variable stands for.
type binding struct {
	name  string
	dtype tensor.DType
}

func (s *OpSchema) checkParams(what string, ps []Param, types []ssa.Type, vars []binding) ([]binding, error) {
	if least, most := Arity(ps); len(types) < least || most >= 0 && len(types) > most {
		return nil, fmt.Errorf("%s-%d takes %s, not %d", s.Kind(), s.Since, ArityString(what, least, most), len(types))
	}
	for i, t := range types {
		p := paramAt(ps, i)
		if t == nil {
			if p.Option != Optional {
				return nil, fmt.Errorf("%s %s of %s-%d is absent", what, p.Name, s.Kind(), s.Since)
			}
			continue
		}
		if !p.Types.Allows(t) {
			return nil, &TypeError{DType: ElemType(t), text: fmt.Sprintf("%s %s of %s-%d cannot be of type %v", what, p.Name, s.Kind(), s.Since, t)}
		}
		elem := ElemType(t)
		if p.Option == VariadicMixed || elem == tensor.Undefined {
			continue
		}
		bound := slices.IndexFunc(vars, func(b binding) bool { return b.name == p.Var })
		if bound < 0 {
			vars = append(vars, binding{p.Var, elem})
		} else if d := vars[bound].dtype; d.ONNX() != elem.ONNX() {
			return nil, &TypeError{DType: elem, Beside: d,
				text: fmt.Sprintf("%s %s of %s-%d has elements of type %v, and another parameter of type %s has %v", what, p.Name, s.Kind(), s.Since, elem, p.Var, d)}
		}
	}
	return vars, nil
}

// ElemType is the element type of a tensor, and of those in a sequence or an optional; Undefined for other types.
func ElemType(t ssa.Type) tensor.DType {
	switch x := t.(type) {
	case *ssa.TensorType:
		return x.DType
	case *ssa.ListType:
		return ElemType(x.Elem)
	case *ssa.OptionalType:
		return ElemType(x.Elem)
	}
	return tensor.Undefined
}

// accepts reports whether a literal is of the attribute's kind.
func (a *AttrSchema) accepts(l ssa.Literal) bool {
	list := func(f func(ssa.Literal) bool) bool {
		if l.Kind != ssa.ListLit {
			return false
		}
		for _, e := range l.Elems {
			if !f(e) {
				return false
			}
		}
		return true
	}
	isInt := func(l ssa.Literal) bool { return l.Kind == ssa.IntLit || l.Kind == ssa.BoolLit }
	isFloat := func(l ssa.Literal) bool { return l.Kind == ssa.FloatLit || l.Kind == ssa.IntLit }
	isStr := func(l ssa.Literal) bool { return l.Kind == ssa.StrLit }
	switch a.Type {
	case AttrInt:
		return isInt(l)
	case AttrFloat:
		return isFloat(l)
	case AttrString:
		return isStr(l)
	case AttrInts:
		return list(isInt)
	case AttrFloats:
		return list(isFloat)
	case AttrStrings:
		return list(isStr)
	case AttrTensor:
		return l.Kind == ssa.TensorLit
	case AttrTypeProto:
		return l.Kind == ssa.TypeLit
	}
	return false
}
