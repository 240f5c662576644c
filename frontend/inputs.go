package frontend

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
)

// ApplyInputs records what the user stated of the inputs; the specialize pass
// matches it with the parameters.
func ApplyInputs(m *ssa.Module, inputs []spec.Input) error {
	if len(inputs) == 0 {
		return nil
	}
	if err := applyInputs(m, inputs); err != nil {
		return misfit{err}
	}
	return nil
}

// misfit is why what the user says of the inputs does not fit the model.
type misfit struct{ error }

func (e misfit) Unwrap() error { return e.error }

// ProblemID is the identifier of the problem, for tools.
func (misfit) ProblemID() string {
	id := "input-spec"
	return id
}

func applyInputs(m *ssa.Module, inputs []spec.Input) error {
	f := m.Main()
	if f == nil {
		return fmt.Errorf("the model has no inputs")
	}
	if m.UsesNamespace("onnx") && !m.UsesNamespace("aten") && !m.UsesNamespace("prim") { // an ONNX model: its inputs have types already
		for _, in := range inputs {
			p := param(f, in.Name)
			if p == nil {
				return fmt.Errorf("the model has no input %q (it has: %s)", in.Name, names(f))
			}
			if in.Type.Kind != spec.Tensor {
				return fmt.Errorf("input %q of an ONNX model is a tensor", in.Name)
			}
			p.Type = in.Type.Tensor
		}
		return nil
	}
	// what the user says goes before what the archive says; names that the model does not have mean positions
	named := map[string]bool{}
	for _, in := range inputs {
		named[in.Name] = true
	}
	var kept []ssa.Input
	for _, in := range m.Inputs {
		if !named[in.Name] {
			kept = append(kept, in)
		}
	}
	for _, in := range inputs {
		if !hasParam(f, in.Name) {
			kept = nil
		}
	}
	m.Inputs = kept
	for _, in := range inputs {
		m.Inputs = append(m.Inputs, moduleInput(in.Name, in.Type))
	}
	return nil
}

// hasParam reports a parameter of that name, up to the number that PyTorch adds in printed graphs.
func hasParam(f *ssa.Func, name string) bool {
	for _, p := range f.Body.Params {
		base, number, _ := strings.Cut(p.Name, ".")
		if p.Name == name || base == name && strings.Trim(number, "0123456789") == "" {
			return true
		}
	}
	return false
}

func moduleInput(name string, t spec.Type) ssa.Input {
	in := ssa.Input{Name: name}
	switch t.Kind {
	case spec.None:
		none := ssa.None
		in.Const = &none
	case spec.List, spec.Tuple, spec.Dict:
		if t.Open {
			in.Type = t.SSA()
			break
		}
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

func param(f *ssa.Func, name string) *ssa.Value {
	for _, p := range f.Body.Params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func names(f *ssa.Func) string {
	var ns []string
	for _, p := range f.Body.Params {
		ns = append(ns, p.Name)
	}
	return strings.Join(ns, ", ")
}
