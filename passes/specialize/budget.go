package specialize

import (
	"errors"
	"slices"

	"github.com/aton-project/aton/internal/python"
	"github.com/aton-project/aton/passes/specialize/internal/py"
	"github.com/aton-project/aton/ssa"
)

func newBudget(m *ssa.Module) budget {
	ops := int64(0)
	for _, f := range m.Funcs {
		for range f.Body.AllOps() {
			ops++
		}
	}
	return budget{maxSteps: m.Allow(baseSteps + stepsPerOp*ops), maxBytes: m.Allow(maxBytes)}
}

// step spends one operator.
func (s *context) step() {
	if s.spent.steps++; s.spent.steps > s.spent.maxSteps {
		s.fail("budget", "evaluating the program takes more than %d steps; %s", s.spent.maxSteps, ssa.BudgetHint)
	}
}

// made spends a result that is new: what an operator gives of its arguments is free.
func (s *context) made(x py.Value, args []py.Value) {
	n := sizeOf(x)
	if n <= smallValue {
		return
	}
	if l, ok := x.(*py.List); ok && slices.ContainsFunc(args, func(a py.Value) bool { b, ok := a.(*py.List); return ok && b == l }) {
		return
	}
	s.take(n)
}

// take spends bytes that are about to be made.
func (s *context) take(n int64) {
	if s.spent.bytes += n; n < 0 || s.spent.bytes < 0 || s.spent.bytes > s.spent.maxBytes {
		s.fail("budget", "the strings and lists that the program makes take more than %d bytes; %s", s.spent.maxBytes, ssa.BudgetHint)
	}
}

// takeElems spends n elements of so many bytes that are about to be made.
func (s *context) takeElems(n, size int64) {
	if n > s.spent.maxBytes/size { // the product may be more than an int64
		n, size = s.spent.maxBytes+1, 1
	}
	s.take(n * size)
}

// Bytes of an element of a list, and of values that are not counted.
const (
	elemBytes  = 16
	smallValue = 256
)

func sizeOf(x py.Value) int64 {
	switch x := x.(type) {
	case py.Const:
		if x.Kind == ssa.StrLit {
			return int64(len(x.Str()))
		}
		return elemBytes * int64(len(x.Elems))
	case *py.List:
		return elemBytes * int64(len(x.State().Elems))
	}
	return 0
}

// fold computes an operator on constants; ok is false where it has no meaning for them.
func (s *context) fold(name string, ret ssa.Type, args ...ssa.Literal) (l ssa.Literal, ok bool) {
	l, err := python.Eval(name, ret, args...)
	if errors.Is(err, python.ErrTooLarge) {
		s.take(maxBytes)
	}
	var raises *python.Exception
	if errors.As(err, &raises) {
		panic(s.raised(raises.Message))
	}
	return l, err == nil
}
