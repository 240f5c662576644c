// Package py has the values of a TorchScript program, and what Python's
// operators on numbers, strings, lists and dicts make of them.
//
// Value is a closed set: every type of it is in value.go. Functions here are
// pure. They know nothing of graphs being built, nor of where the program is.
package py

import (
	"errors"
	"maps"
	"math"
	"slices"

	"github.com/aton-project/aton/ssa"
)

// Exception is what Python raises.
type Exception struct{ Message string }

func (e *Exception) Error() string { return e.Message }

// ErrUnknown says that an operator has no meaning here for the constants it is given.
var ErrUnknown = errors.New("not computed on these constants")

// ErrTooLarge says that a string would be longer than maxText.
var ErrTooLarge = errors.New("too large a string")

// maxText is the greatest number of bytes of a string.
const maxText = 1 << 26

// Eval computes an operator of TorchScript, named without its namespace, on
// constants. The result type of its schema, ret, decides where Python's numbers
// do not: pow of two ints is an int or a float. The error is ErrUnknown, or an
// *Exception where the program raises.
func Eval(name string, ret ssa.Type, args ...ssa.Literal) (ssa.Literal, error) {
	for _, a := range args {
		if a.Kind == ssa.EnumLit && name != "eq" && name != "ne" {
			return ssa.None, ErrUnknown
		}
	}
	switch len(args) {
	case 1:
		return unary(name, ret, args[0])
	case 2:
		if l, err := binary(name, ret, args[0], args[1]); !errors.Is(err, ErrUnknown) {
			return l, err
		}
	case 3:
		if l, err := ternary(name, args); !errors.Is(err, ErrUnknown) {
			return l, err
		}
	}
	return text(name, args)
}

// Names lists the operators that Eval knows, in alphabetical order.
func Names() []string {
	known := map[string]bool{"eq": true, "ne": true, "len": true, "any": true, "all": true, "sum": true}
	add := func(names ...string) {
		for _, n := range names {
			known[n] = true
		}
	}
	add(slices.Collect(maps.Keys(floatFunctions))...)
	add(slices.Collect(maps.Keys(roundings))...)
	add(slices.Collect(maps.Keys(unaries))...)
	add(slices.Collect(maps.Keys(binaries))...)
	add(slices.Collect(maps.Keys(orders))...)
	add(slices.Collect(maps.Keys(intFunctions))...)
	add(slices.Collect(maps.Keys(pairFunctions))...)
	add(slices.Collect(maps.Keys(bits))...)
	add(slices.Collect(maps.Keys(complexFunctions))...)
	add(slices.Collect(maps.Keys(ternaries))...)
	add(slices.Collect(maps.Keys(texts))...)
	return slices.Sorted(maps.Keys(known))
}

// unary computes an operator of one argument.
func unary(name string, ret ssa.Type, x ssa.Literal) (ssa.Literal, error) {
	switch {
	case x.Kind == ssa.StrLit:
		return text(name, []ssa.Literal{x})
	case x.Kind == ssa.ListLit || x.Kind == ssa.TupleLit:
		return elements(name, ret, x)
	case x.IsNone() && name == "str":
		return ssa.Str("None"), nil
	case x.Kind == ssa.DeviceLit && name == "str":
		return ssa.Str(x.Str()), nil
	case !x.IsNumber():
		return ssa.None, ErrUnknown
	case x.Kind == ssa.ComplexLit:
		return unaryComplex(name, x)
	}
	if f := floatFunctions[name]; f != nil {
		return ssa.Float(f(x.Float())), nil
	}
	if f := roundings[name]; f != nil {
		v := f(x.Float())
		if ret == ssa.IntType || ret == ssa.NumberType && integral(x) {
			return ssa.Int(int64(v)), nil
		}
		return ssa.Float(v), nil
	}
	if f := unaries[name]; f != nil {
		return f(x), nil
	}
	return ssa.None, ErrUnknown
}

func unaryComplex(name string, x ssa.Literal) (ssa.Literal, error) {
	switch name {
	case "ScalarImplicit", "Complex", "ComplexImplicit":
		return x, nil
	case "neg":
		return ssa.Complex(-x.Complex()), nil
	case "Bool":
		return ssa.Bool(x.Complex() != 0), nil
	}
	return ssa.None, ErrUnknown
}

// binary computes an operator of two arguments. Of a bool and an int it is one
// of ints, of an int and a float one of floats.
func binary(name string, ret ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
	if name == "eq" || name == "ne" {
		if eq, ok := Equal(x, y); ok {
			return ssa.Bool(eq == (name == "eq")), nil
		}
		return ssa.None, ErrUnknown
	}
	if !x.IsNumber() || !y.IsNumber() {
		return ssa.None, ErrUnknown
	}
	if x.Kind == ssa.ComplexLit || y.Kind == ssa.ComplexLit {
		if f := complexFunctions[name]; f != nil {
			return ssa.Complex(f(x.Complex(), y.Complex())), nil
		}
		return ssa.None, ErrUnknown
	}
	ints := integral(x) && integral(y)
	if f := binaries[name]; f != nil {
		return f(ret, x, y)
	}
	if f := orders[name]; f != nil {
		if ints {
			return ssa.Bool(f(order(x.Int(), y.Int()))), nil
		}
		if math.IsNaN(x.Float()) || math.IsNaN(y.Float()) {
			return ssa.Bool(false), nil
		}
		return ssa.Bool(f(order(x.Float(), y.Float()))), nil
	}
	if f := bits[name]; f != nil && ints {
		n := f(x.Int(), y.Int())
		if x.Kind == ssa.BoolLit && y.Kind == ssa.BoolLit && !shifts[name] {
			return ssa.Bool(n != 0), nil
		}
		return ssa.Int(n), nil
	}
	if f := intFunctions[name]; f != nil && ints {
		n, err := f(x.Int(), y.Int())
		return ssa.Int(n), err
	}
	if f := pairFunctions[name]; f != nil && (!ints || intFunctions[name] == nil) {
		return ssa.Float(f(x.Float(), y.Float())), nil
	}
	return ssa.None, ErrUnknown
}

// integral reports ints and bools.
func integral(x ssa.Literal) bool { return x.Kind == ssa.IntLit || x.Kind == ssa.BoolLit }

// elements computes an operator on a list or a tuple.
func elements(name string, ret ssa.Type, x ssa.Literal) (ssa.Literal, error) {
	switch name {
	case "len":
		return ssa.Int(int64(len(x.Elems))), nil
	case "any", "all":
		r := name == "all"
		for _, e := range x.Elems {
			if e.Bool() != r {
				return ssa.Bool(!r), nil
			}
		}
		return ssa.Bool(r), nil
	case "str":
		return ssa.Str(Str(x)), nil
	}
	by := map[string]string{"min": "min", "max": "max", "sum": "add"}[name]
	if by == "" || len(x.Elems) == 0 {
		return ssa.None, ErrUnknown
	}
	best := x.Elems[0]
	for _, e := range x.Elems[1:] {
		l, err := binary(by, ret, e, best) // of equal ones the first stays
		if err != nil {
			return ssa.None, ErrUnknown
		}
		best = l
	}
	return best, nil
}
