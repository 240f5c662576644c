package frontend

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/ssa"
)

// apply records what the user stated of the inputs; the specialize pass
// matches it with the parameters. The file's name is for messages.
func (o Options) apply(m *ssa.Module, file string) error {
	if len(o.Inputs) == 0 {
		return nil
	}
	err := o.nameByPlace(m)
	if err == nil {
		err = applyInputs(m, o.ownNames(m))
	}
	if err != nil {
		return misfit{fmt.Errorf("%s: %w", file, err)}
	}
	return nil
}

// nameByPlace gives specs without a name that of the input at their place.
func (o *Options) nameByPlace(m *ssa.Module) error {
	f := m.Main()
	if f == nil || !slices.ContainsFunc(o.Inputs, func(in spec.Input) bool { return in.Name == "" }) {
		return nil
	}
	var have []string
	for _, p := range f.Body.Params {
		if _, self := p.Type.(*ssa.ClassType); !self {
			have = append(have, ssa.BareName(p.Name))
		}
	}
	specs := slices.Clone(o.Inputs)
	for i := range specs {
		if specs[i].Name != "" {
			continue
		}
		if i >= len(have) {
			return fmt.Errorf("there is a type for input %d, and the model has %d (%s)", i+1, len(have), strings.Join(have, ", "))
		}
		specs[i].Name = have[i]
	}
	o.Inputs = specs
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

// hasParam reports a parameter of that name.
func hasParam(f *ssa.Func, name string) bool {
	return slices.ContainsFunc(f.Body.Params, func(p *ssa.Value) bool { return isCalled(p, name) })
}

// isCalled reports that a parameter has that name, up to the number that PyTorch adds in printed graphs.
func isCalled(p *ssa.Value, name string) bool {
	return p.Name == name || ssa.BareName(p.Name) == name
}

// ownNames gives the specs with the program's names of inputs, where they have those of the file. A name that the program
// has means what it means there.
func (o Options) ownNames(m *ssa.Module) []spec.Input {
	f := m.Main()
	if f == nil || len(o.InputNames)+len(o.Names) == 0 {
		return o.Inputs
	}
	specs := slices.Clone(o.Inputs)
	for i, in := range specs {
		if !hasParam(f, in.Name) {
			specs[i].Name = spec.OldName(o.Names, in.Name)
		}
	}
	k := 0 // the inputs of the file before those of the parameter
	for _, p := range f.Body.Params {
		if _, self := p.Type.(*ssa.ClassType); self {
			continue
		}
		var in ssa.Input
		if i := slices.IndexFunc(m.Inputs, func(in ssa.Input) bool { return isCalled(p, in.Name) }); i >= 0 {
			in = m.Inputs[i] // of a trace
		}
		count := inputsOf(in, p.Type)
		i := slices.IndexFunc(specs, func(in spec.Input) bool { return isCalled(p, in.Name) })
		if i < 0 && count == 1 && k < len(o.InputNames) && !hasParam(f, o.InputNames[k]) {
			if i = slices.IndexFunc(specs, func(in spec.Input) bool { return in.Name == o.InputNames[k] }); i >= 0 {
				specs[i].Name = ssa.BareName(p.Name)
			}
		}
		if i >= 0 {
			count = inputsOf(moduleInput("", specs[i].Type), p.Type)
		}
		k += count
	}
	return specs
}

// inputsOf counts the inputs that the file has for an argument of the declared type.
func inputsOf(in ssa.Input, declared ssa.Type) int {
	n := 0
	switch {
	case in.Const != nil:
		return 0
	case in.Container != "":
		for _, e := range in.Elems {
			n += inputsOf(e, nil)
		}
		return n
	case in.Type != nil:
		return 1
	}
	switch t := declared.(type) {
	case *ssa.OptionalType: // None, if nothing is said
		return 0
	case *ssa.TupleType:
		for _, e := range t.Elems {
			n += inputsOf(ssa.Input{}, e)
		}
		return n
	}
	return 1
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
