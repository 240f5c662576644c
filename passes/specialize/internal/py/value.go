// Package py has the values of a TorchScript program.
//
// Value is a closed set: every type of it is in value.go.
package py

import (
	"github.com/aton-project/aton/passes/specialize/internal/journal"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Value is what a value of the program is known to be. The set is closed: Const,
// Dynamic, *Tensor, *List, *Tuple, *Dict, *Object, *Maybe, *Choice, Unknown, Unset.
type Value interface{ value() }

// Const is a constant: a number, string, None, dtype, device, enum, function or type.
type Const struct{ ssa.Literal }

// Dynamic is a number that depends on data or on symbolic shapes: a value of the target function.
type Dynamic struct{ *ssa.Value }

// Tensor is one tensor object of the program: what Python's `is` compares.
type Tensor struct {
	Cell *journal.Cell // of *heap.View
	// Base and Val remember the last value read: Val is the view of Base.
	Base, Val *ssa.Value
	// Element is set for what was taken out of a run-time list: the object that the list holds is another one.
	Element bool
}

// List is a list object.
type List struct {
	Cell *journal.Cell // of *ListState
	Elem ssa.Type      // of the elements; nil or Any if it is not known
}

// ListState is what a list holds: elements, or a run-time list, or run-time lists of what its elements are made of.
type ListState struct {
	Elems []Value
	// Dyn is a list of unknown length: of type Tensor[], int[], float[] or bool[].
	Dyn *ssa.Value
	// Parts is set if Dyn holds views of a tensor.
	Parts *Parts
	// Columns is set, in the place of Dyn, for a list of unknown length of tuples, or of what may be None.
	Columns *Columns
	grown   *[]Value // the memory that Elems lies in, if With made it
}

// Parts says that a run-time list holds the views of a tensor that split, chunk
// or unbind give, in a number that is only known at run time.
type Parts struct {
	Op   *ssa.Op
	Args []Value
	Self *Tensor
	Dim  int        // along which the tensor is split, from 0
	Val  *ssa.Value // the tensor's value that the list was made of
	// Places, if set, is a list of ints, and the parts are the rows of Self at these places. There is no Op then.
	Places *ssa.Value
}

// Tuple is a tuple or a NamedTuple. It cannot change.
type Tuple struct {
	Elems []Value
	Typ   *ssa.TupleType // nil for plain tuples
}

// Dict is a dict object.
type Dict struct {
	Cell *journal.Cell // of *DictState
	Typ  ssa.Type
}

// DictState is what a dict holds, in the order in which keys were first set.
type DictState struct {
	Keys []ssa.Literal
	Vals []Value

	grownKeys *keys    // as grown of a list
	grownVals *[]Value // likewise
}

// Object is a module or another class instance.
type Object struct {
	Class string
	Path  string      // of a module within the program, such as features.0
	Src   *ssa.Object // nil for objects that the program makes
	Attrs map[string]*journal.Cell
}

// Maybe is Val where Has is true at run time, else None.
type Maybe struct {
	Has *ssa.Value
	Val Value
}

// Choice is one of two constants of a type that ONNX lacks, such as strings. An operation on
// it is computed for both at export.
type Choice struct {
	Cond    *ssa.Value
	Yes, No Value // Const or *Choice
}

// Unknown is a string that data decides, which ONNX has no form for, or a number that follows from one. Only the messages of
// exceptions may depend on it.
type Unknown struct {
	Text string // with "..." for what is not known; "" for numbers
	// Exact says which string it is, with expressions in the place of sizes, "" where that is not known: two that are alike are equal.
	Exact string
}

// Unset is prim::Uninitialized: never read, so any value will do.
type Unset struct{}

func (Const) value()   {}
func (Dynamic) value() {}
func (*Tensor) value() {}
func (*List) value()   {}
func (*Tuple) value()  {}
func (*Dict) value()   {}
func (*Object) value() {}
func (*Maybe) value()  {}
func (*Choice) value() {}
func (Unknown) value() {}
func (Unset) value()   {}

// Describe names the kind of a value for a message.
func Describe(x Value) string {
	switch x := x.(type) {
	case Const:
		return x.Type().String() + " constants"
	case Dynamic:
		return x.Type.String()
	case *Tensor:
		return "tensors"
	case *List:
		return "lists"
	case *Tuple:
		return "tuples"
	case *Dict:
		return "dicts"
	case *Object:
		return "objects of class " + x.Class
	case *Maybe:
		return "optional values"
	case *Choice:
		return "constants that depend on data"
	case Unknown:
		return "strings that depend on data"
	}
	return "unset values"
}

// None is Python's None.
var None = Of(ssa.None)

// Of is a constant as a value.
func Of(l ssa.Literal) Const { return Const{Literal: l} }

// Dyn is a number of the target function as a value.
func Dyn(v *ssa.Value) Dynamic { return Dynamic{Value: v} }

// Int is an int that is known.
func Int(n int64) Const { return Of(ssa.Int(n)) }

// Float is a float that is known.
func Float(x float64) Const { return Of(ssa.Float(x)) }

// Bool is a bool that is known.
func Bool(b bool) Const { return Of(ssa.Bool(b)) }

// String is a string.
func String(s string) Const { return Of(ssa.Str(s)) }

// Device is a device by its name.
func Device(name string) Const { return Of(ssa.Device(name)) }

// AsValue is the value that a cell holds, nil where it holds none or something else.
func AsValue(content any) Value {
	v, _ := content.(Value)
	return v
}

// State is what the list holds now.
func (l *List) State() *ListState { return l.Cell.Content().(*ListState) }

// State is what the dict holds now.
func (d *Dict) State() *DictState { return d.Cell.Content().(*DictState) }

// IsNone reports None. A Maybe is not None.
func IsNone(v Value) bool {
	l, ok := v.(Const)
	return ok && l.IsNone()
}

// IsOptional reports None, and a Maybe.
func IsOptional(v Value) bool {
	_, ok := v.(*Maybe)
	return ok || IsNone(v)
}

// Same reports that two values are the same constant or the same object. Tuples
// are the same if their elements are.
func Same(a, b Value) bool {
	switch a := a.(type) {
	case Const:
		b, ok := b.(Const)
		return ok && a.Equal(b.Literal)
	case *Tuple:
		b, ok := b.(*Tuple)
		if !ok || len(a.Elems) != len(b.Elems) {
			return false
		}
		for i := range a.Elems {
			if !Same(a.Elems[i], b.Elems[i]) {
				return false
			}
		}
		return true
	}
	if _, ok := b.(Const); ok {
		return false
	}
	return a == b
}

// LiteralOf gives x as a literal if all of it is constant. Tensors are not looked into.
func LiteralOf(x Value) (ssa.Literal, bool) {
	switch x := x.(type) {
	case Const:
		return x.Literal, true
	case Dynamic:
		if e, ok := ExprOf(x); ok {
			n, ok := e.Int()
			return ssa.Int(n), ok
		}
	case *List:
		st := x.State()
		if st.AtRunTime() {
			return ssa.None, false
		}
		l := ssa.Literal{Kind: ssa.ListLit, Elem: x.Elem}
		elems, ok := literals(st.Elems)
		l.Elems = elems
		if len(elems) > 0 && (l.Elem == nil || l.Elem == ssa.AnyType) {
			l.Elem = elems[0].Type()
		}
		return l, ok
	case *Tuple:
		elems, ok := literals(x.Elems)
		return ssa.Literal{Kind: ssa.TupleLit, Elems: elems}, ok
	}
	return ssa.None, false
}

func literals(xs []Value) ([]ssa.Literal, bool) {
	var out []ssa.Literal
	for _, x := range xs {
		l, ok := LiteralOf(x)
		if !ok {
			return nil, false
		}
		out = append(out, l)
	}
	return out, true
}

// IntOf gives an int that is known; none stands for None.
func IntOf(x Value, none int64) (int64, bool) {
	l, ok := LiteralOf(x)
	switch {
	case !ok:
		return 0, false
	case l.IsNone():
		return none, true
	}
	return l.Int(), true
}

// IntsOf gives a known list of ints, or one int as a list.
func IntsOf(l ssa.Literal) []int64 {
	if l.Kind == ssa.IntLit {
		return []int64{l.Int()}
	}
	v, _ := l.IntList()
	return v
}

// ExprOf is the symbolic value of an int or of a constant bool.
func ExprOf(x Value) (sym.Expr, bool) {
	switch x := x.(type) {
	case Const:
		if x.Kind == ssa.IntLit || x.Kind == ssa.BoolLit {
			return sym.Const(x.Int()), true
		}
	case Dynamic:
		if x.Type == ssa.IntType && len(x.Sym) == 1 {
			return x.Sym[0], true
		}
	}
	return sym.Expr{}, false
}

// NumberType is the type of a number: int, float, bool, or complex for constants.
func NumberType(x Value) (ssa.Type, bool) {
	switch x := x.(type) {
	case Const:
		if x.IsNumber() {
			return x.Type(), true
		}
	case Dynamic:
		if b, ok := x.Type.(ssa.Basic); ok {
			return b, b == ssa.IntType || b == ssa.FloatType || b == ssa.BoolType
		}
	}
	return nil, false
}

// Tensorial reports that a tensor is among the values, or in a container among them.
func Tensorial(args []Value) bool {
	for _, a := range args {
		switch a := a.(type) {
		case *Tensor:
			return true
		case *List:
			st := a.State()
			if st.AtRunTime() || Tensorial(st.Elems) {
				return true
			}
		case *Tuple:
			if Tensorial(a.Elems) {
				return true
			}
		}
	}
	return false
}

// Choosable reports that x can be an alternative of a Choice.
func Choosable(x Value) bool {
	switch x := x.(type) {
	case *Choice, Unknown:
		return true
	case Const:
		return x.Kind == ssa.StrLit || x.Kind == ssa.EnumLit || x.Kind == ssa.DeviceLit
	}
	return false
}

// Exprs are the ints args as expressions; ok is false where one has none.
func Exprs(args []Value) (es []sym.Expr, ok bool) {
	es = make([]sym.Expr, len(args))
	for i, a := range args {
		if es[i], ok = ExprOf(a); !ok {
			return nil, false
		}
	}
	return es, true
}
