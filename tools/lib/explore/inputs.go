package explore

import (
	"errors"
	"slices"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Input is an argument of a model.
type Input struct {
	Name string `json:"name"`
	// Type is what the file says: Tensor, int, f32[N,3].
	Type string `json:"type"`
	// Example is a type that a person may state for it, such as f32[N,3,224,224]; empty where the file says all.
	Example string `json:"example,omitempty"`
}

var errEnough = errors.New("the inputs are known")

// Inputs are the arguments of a model. A scripted program does not say of what type its tensors are: the operators that read them tell what fits.
// The module is changed.
func Inputs(m *ssa.Module, o aton.ConvertOptions) []Input {
	out := inputs(m)
	if !slices.ContainsFunc(out, func(in Input) bool { return in.Example != "" }) {
		return out
	}
	known := false
	o = o.WithObserver(passes.Observer{AfterPass: func(e *passes.Event) {
		if e.Pass.Name == "freeze" { // the program is one function, in which weights are seen
			out, known = inputs(m), true
		}
	}})
	o.Runner.Stop = func() error {
		if known {
			return errEnough
		}
		return nil
	}
	_, _ = aton.Convert(m, o) // it does not come to the end
	return out
}

func inputs(m *ssa.Module) []Input {
	out := []Input{}
	f := m.Main()
	if f == nil {
		return out
	}
	stated := map[string]bool{}
	for _, in := range m.Inputs {
		stated[in.Name] = true
	}
	for _, p := range f.Body.Params {
		if _, self := p.Type.(*ssa.ClassType); self || m.Weights[p.Name] != nil {
			continue
		}
		in := Input{Name: ssa.BareName(p.Name), Type: short(p.Type)}
		switch x := ssa.AsTensor(p.Type); {
		case stated[in.Name]:
		case x != nil && !x.Ranked:
			in.Type, in.Example = "Tensor", passes.ExampleType(p)
		case p.Type == ssa.IntType, p.Type == ssa.FloatType, p.Type == ssa.BoolType:
			in.Example = p.Type.String()
		}
		out = append(out, in)
	}
	return out
}
