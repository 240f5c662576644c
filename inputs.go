package aton

import (
	"fmt"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
)

// applyInputs records what the user stated of the inputs; the specialize pass
// matches it with the parameters.
func applyInputs(m *ssa.Module, inputs []spec.Input) error {
	if len(inputs) == 0 {
		return nil
	}
	f := m.Main()
	if f == nil {
		return fmt.Errorf("the model has no inputs")
	}
	for _, in := range inputs {
		m.Inputs = append(m.Inputs, moduleInput(in.Name, in.Type))
	}
	return nil
}

func moduleInput(name string, t spec.Type) ssa.Input {
	in := ssa.Input{Name: name}
	switch t.Kind {
	case spec.None:
		none := ssa.None
		in.Const = &none
	case spec.List, spec.Tuple, spec.Dict:
		in.Container = t.Kind.String()
		for i, e := range t.Elems {
			key := ""
			if t.Kind == spec.Dict {
				key = t.Keys[i]
				in.Keys = append(in.Keys, ssa.Str(key))
			}
			in.Elems = append(in.Elems, moduleInput(key, e))
		}
	default:
		in.Type, in.Const = t.SSA(), t.Const
	}
	return in
}
