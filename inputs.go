package aton

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
)

// applyInputs gives the parameters of the main function the types that the user stated. Values with a constant are built in.
func applyInputs(m *ssa.Module, inputs []spec.Input) error {
	if len(inputs) == 0 {
		return nil
	}
	f := m.Main()
	if f == nil {
		return fmt.Errorf("the model has no inputs")
	}
	for _, in := range inputs {
		i, err := findParam(f, in.Name)
		if err != nil {
			return err
		}
		v := f.Body.Params[i]
		if l, ok := constant(in.Type); ok {
			c := f.Body.InsertBefore(f.Body.First(), "prim::Constant", 0, nil, in.Type.SSA())
			if !l.IsNone() {
				c.SetAttr("value", l)
			}
			v.ReplaceUses(c.Results[0])
			f.Body.RemoveParam(i)
			continue
		}
		v.Type = in.Type.SSA()
	}
	return nil
}

// constant is the value that a spec builds in, if it does.
func constant(t spec.Type) (ssa.Literal, bool) {
	switch {
	case t.Kind == spec.None:
		return ssa.None, true
	case t.Const != nil:
		return *t.Const, true
	}
	return ssa.None, false
}

// findParam finds a parameter by its name. TorchScript numbers names: x.1 is x.
func findParam(f *ssa.Func, name string) (int, error) {
	var names []string
	for i, v := range f.Body.Params {
		base, _, _ := strings.Cut(v.Name, ".")
		if v.Name == name || base == name {
			return i, nil
		}
		names = append(names, v.Name)
	}
	return 0, fmt.Errorf("the model has no input %q (it has: %s)", name, strings.Join(names, ", "))
}
