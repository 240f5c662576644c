// Package python has what Python's operators on numbers, strings and lists make of constants, and of ints that are sizes. Functions are pure. They
// know nothing of graphs being built, nor of where the program is.
package python

import (
	"cmp"
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
		if f := lookup(name); f.three != nil && args[0].Kind == ssa.IntLit && args[1].Kind == ssa.IntLit && args[2].Kind == ssa.IntLit {
			n, err := f.three(args[0].Int(), args[1].Int(), args[2].Int())
			return ssa.Int(n), err
		}
	}
	return text(name, args)
}

// Names lists the operators that Eval knows, in alphabetical order.
func Names() []string {
	known := slices.AppendSeq(slices.Collect(maps.Keys(functions)), maps.Keys(texts))
	slices.Sort(known)
	return slices.Compact(known)
}

// lookup returns the row of an operator, an empty one if there is none.
func lookup(name string) *function {
	if f := functions[name]; f != nil {
		return f
	}
	return &function{}
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
	}
	f := lookup(name)
	switch {
	case x.Kind == ssa.ComplexLit:
		if f.complexNumber != nil {
			return f.complexNumber(x), nil
		}
	case f.real != nil:
		return ssa.Float(f.real(x.Float())), nil
	case f.rounding != nil:
		v := f.rounding(x.Float())
		if ret == ssa.IntType || ret == ssa.NumberType && integral(x) {
			return ssa.Int(int64(v)), nil
		}
		return ssa.Float(v), nil
	case f.number != nil:
		if v := f.number(x); !v.IsNone() {
			return v, nil
		}
	}
	return ssa.None, ErrUnknown
}

// binary computes an operator of two arguments. Of a bool and an int it is one
// of ints, of an int and a float one of floats.
func binary(name string, ret ssa.Type, x, y ssa.Literal) (ssa.Literal, error) {
	f := lookup(name)
	if f.equal != nil {
		if eq, ok := Equal(x, y); ok {
			return ssa.Bool(f.equal(eq)), nil
		}
		return ssa.None, ErrUnknown
	}
	if !x.IsNumber() || !y.IsNumber() {
		return ssa.None, ErrUnknown
	}
	ints := integral(x) && integral(y)
	switch {
	case x.Kind == ssa.ComplexLit || y.Kind == ssa.ComplexLit:
		if f.complexes != nil {
			return ssa.Complex(f.complexes(x.Complex(), y.Complex())), nil
		}
	case f.two != nil:
		return f.two(ret, x, y)
	case f.order != nil && ints:
		return ssa.Bool(f.order(cmp.Compare(x.Int(), y.Int()))), nil
	case f.order != nil:
		return ssa.Bool(!math.IsNaN(x.Float()) && !math.IsNaN(y.Float()) && f.order(cmp.Compare(x.Float(), y.Float()))), nil
	case f.bits != nil && ints:
		n := f.bits(x.Int(), y.Int())
		if x.Kind == ssa.BoolLit && y.Kind == ssa.BoolLit && !f.shift {
			return ssa.Bool(n != 0), nil
		}
		return ssa.Int(n), nil
	case f.ints != nil && ints:
		n, err := f.ints(x.Int(), y.Int())
		return ssa.Int(n), err
	case f.reals != nil:
		return ssa.Float(f.reals(x.Float(), y.Float())), nil
	}
	return ssa.None, ErrUnknown
}

// integral reports ints and bools.
func integral(x ssa.Literal) bool { return x.Kind == ssa.IntLit || x.Kind == ssa.BoolLit }

// elements computes an operator on a list or a tuple.
func elements(name string, ret ssa.Type, x ssa.Literal) (ssa.Literal, error) {
	f := lookup(name)
	if f.list != nil {
		return f.list(x), nil
	}
	if f.folds == "" || len(x.Elems) == 0 {
		return ssa.None, ErrUnknown
	}
	best := x.Elems[0]
	for _, e := range x.Elems[1:] {
		l, err := binary(f.folds, ret, e, best) // of equal ones the first stays
		if err != nil {
			return ssa.None, ErrUnknown
		}
		best = l
	}
	return best, nil
}
