// Package prim is the dialect of TorchScript's own operators: constants,
// control flow, containers, attributes and calls.
package prim

import (
	_ "embed"
	"fmt"
	"slices"
	"sync"

	"github.com/aton-project/aton/ssa"
)

//go:embed schemas.txt
var schemasText string

var table = sync.OnceValue(func() *ssa.SchemaTable { return ssa.NewSchemaTable(schemasText) })

// Schemas gives the declarations of a prim operator in the order in which
// overload resolution tries them, nil if it has none.
func Schemas(k ssa.Kind) []*ssa.Schema { return table().Lookup(k) }

// Kinds lists the prim operators that have declarations.
func Kinds() []ssa.Kind { return table().Kinds() }

// Undeclared lists the operators of TorchScript that the dialect knows without a declaration, in alphabetical order.
func Undeclared() []ssa.Kind {
	var out []ssa.Kind
	for k := range infos() {
		if len(Schemas(k)) == 0 {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// Operators of TorchScript that have no declaration.
const (
	Constant       ssa.Kind = "prim::Constant"
	If             ssa.Kind = "prim::If"
	Loop           ssa.Kind = "prim::Loop"
	ListConstruct  ssa.Kind = "prim::ListConstruct"
	ListUnpack     ssa.Kind = "prim::ListUnpack"
	TupleConstruct ssa.Kind = "prim::TupleConstruct"
	TupleUnpack    ssa.Kind = "prim::TupleUnpack"
	TupleIndex     ssa.Kind = "prim::TupleIndex"
	TupleSlice     ssa.Kind = "prim::TupleSlice"
	DictConstruct  ssa.Kind = "prim::DictConstruct"
	GetAttr        ssa.Kind = "prim::GetAttr"
	SetAttr        ssa.Kind = "prim::SetAttr"
	CallMethod     ssa.Kind = "prim::CallMethod"
	CallFunction   ssa.Kind = "prim::CallFunction"
	CreateObject   ssa.Kind = "prim::CreateObject"
	Uninitialized  ssa.Kind = "prim::Uninitialized"
	UncheckedCast  ssa.Kind = "prim::unchecked_cast"
	IsInstance     ssa.Kind = "prim::isinstance"
	Fork           ssa.Kind = "prim::fork"
	Enter          ssa.Kind = "prim::Enter"
	Exit           ssa.Kind = "prim::Exit"
	Print          ssa.Kind = "prim::Print"
	RaiseException ssa.Kind = "prim::RaiseException"
	ToList         ssa.Kind = "prim::tolist"
	ContainerIndex ssa.Kind = "prim::ModuleContainerIndex"
	NumToTensor    ssa.Kind = "prim::NumToTensor"
	PythonOp       ssa.Kind = "prim::PythonOp"
	EnumName       ssa.Kind = "prim::EnumName"
	EnumValue      ssa.Kind = "prim::EnumValue"
	UnwrapOptional ssa.Kind = "prim::unchecked_unwrap_optional"
	RequiresGrad   ssa.Kind = "prim::requires_grad"
	DType          ssa.Kind = "prim::dtype"
	Device         ssa.Kind = "prim::device"
)

// Dialect is the prim dialect.
type Dialect struct{}

// Namespace is "prim".
func (Dialect) Namespace() string { return "prim" }

var infos = sync.OnceValue(func() map[ssa.Kind]ssa.OpInfo {
	return map[ssa.Kind]ssa.OpInfo{
		Constant:          {Effects: ssa.Pure, Doc: "a literal value"},
		If:                {Effects: ssa.Pure, Doc: "runs one of two blocks"},
		Loop:              {Effects: ssa.Pure, Doc: "runs a block up to a number of times while a condition holds"},
		ListConstruct:     {Effects: ssa.Fresh, Doc: "a new list of the operands"},
		ListUnpack:        {Effects: ssa.Reads | ssa.Raises, Doc: "the elements of a list of known length"},
		TupleConstruct:    {Effects: ssa.Pure, Doc: "a tuple of the operands"},
		TupleUnpack:       {Effects: ssa.Pure, Doc: "the elements of a tuple"},
		TupleIndex:        {Effects: ssa.Pure, Doc: "one element of a tuple"},
		TupleSlice:        {Effects: ssa.Pure, Doc: "a part of a tuple"},
		DictConstruct:     {Effects: ssa.Fresh, Doc: "a new dict of alternating keys and values"},
		GetAttr:           {Effects: ssa.Reads, Doc: "an attribute of an object"},
		SetAttr:           {Effects: ssa.Writes, Doc: "assigns an attribute of an object"},
		CallMethod:        {Effects: ssa.Unknown, Doc: "calls a method; inline replaces it by the body"},
		CallFunction:      {Effects: ssa.Unknown, Doc: "calls a function; inline replaces it by the body"},
		CreateObject:      {Effects: ssa.Fresh, Doc: "a new object without attributes"},
		Uninitialized:     {Effects: ssa.Pure, Doc: "a value that is never read"},
		UncheckedCast:     {Effects: ssa.Pure, Doc: "the operand with a narrower static type"},
		UnwrapOptional:    {Effects: ssa.Pure, Doc: "the operand, known not to be None"},
		IsInstance:        {Effects: ssa.Pure, Doc: "whether the operand has one of the types"},
		Fork:              {Effects: ssa.Unknown, Doc: "starts a function; inline replaces it by the body"},
		Enter:             {Effects: ssa.Unknown, Doc: "enters a context manager"},
		Exit:              {Effects: ssa.Unknown, Doc: "leaves a context manager"},
		Print:             {Effects: ssa.Raises | ssa.Reads, Doc: "prints the operands"},
		RaiseException:    {Effects: ssa.Raises, Doc: "raises an exception"},
		ToList:            {Effects: ssa.Reads | ssa.Fresh | ssa.Raises, Doc: "the elements of a tensor as nested lists"},
		PythonOp:          {Effects: ssa.Unknown, Doc: "a Python function that was not compiled"},
		"prim::Await":     {Effects: ssa.Unknown, Doc: "starts a function; inline replaces it by the body"},
		"prim::Exception": {Effects: ssa.Fresh, Doc: "an exception object"},
	}
})

// Info describes an operator.
func (Dialect) Info(o *ssa.Op) (ssa.OpInfo, bool) {
	if info, ok := infos()[o.Kind]; ok {
		return info, true
	}
	s := o.Schema
	if s == nil {
		all := Schemas(o.Kind)
		if s = ssa.MatchSchema(all, operandTypes(o)); s == nil && len(all) > 0 {
			s = all[0]
		}
	}
	if s == nil {
		return ssa.OpInfo{Effects: ssa.Unknown}, false
	}
	e := s.Effects()
	if s.VarReturn {
		e = ssa.Unknown
	}
	return ssa.OpInfo{Effects: e}, true
}

func operandTypes(o *ssa.Op) []ssa.Type {
	ts := make([]ssa.Type, o.NumOperands())
	for i := range ts {
		if v := o.Operand(i); v != nil {
			ts[i] = v.Type
		}
	}
	return ts
}

// Verify checks operand and result counts of the operators without declarations.
func (Dialect) Verify(o *ssa.Op) error {
	operands, results := -1, -1
	switch o.Kind {
	case Constant, Uninitialized, CreateObject:
		operands, results = 0, 1
	case GetAttr, UncheckedCast, IsInstance:
		operands, results = 1, 1
		if o.Kind == GetAttr && o.AttrStr("name", "") == "" {
			return fmt.Errorf("has no name")
		}
	case SetAttr:
		operands, results = 2, 0
		if o.AttrStr("name", "") == "" {
			return fmt.Errorf("has no name")
		}
	case ListConstruct, TupleConstruct, DictConstruct:
		results = 1
		if o.Kind == DictConstruct && o.NumOperands()%2 != 0 {
			return fmt.Errorf("has a key without a value")
		}
	case TupleUnpack, ListUnpack:
		operands = 1
	case TupleIndex:
		operands, results = 2, 1
	}
	if operands >= 0 && o.NumOperands() != operands {
		return fmt.Errorf("has %d operands, not %d", o.NumOperands(), operands)
	}
	if results >= 0 && len(o.Results) != results {
		return fmt.Errorf("has %d results, not %d", len(o.Results), results)
	}
	if o.Kind == TupleUnpack {
		if t, ok := o.Operand(0).Type.(*ssa.TupleType); ok && len(t.Elems) != len(o.Results) {
			return fmt.Errorf("gives %d results of a tuple of %d", len(o.Results), len(t.Elems))
		}
	}
	return nil
}
