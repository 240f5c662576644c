package aton

import (
	"fmt"

	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Run runs a module that Load returned, without converting it, on the inputs of a data set, and returns its outputs. A program of PyTorch
// runs in backend/eager, which has PyTorch's semantics; a module of ONNX operators runs in the reference interpreter. Inputs are matched
// by name if the data set has all of the model's names, else by position.
func Run(m *ssa.Module, data DataSet) ([]Named, error) {
	r, err := Verifier{}.RunProgram(m, data, nil)
	if err != nil {
		return nil, err
	}
	return r.Outputs, nil
}

// Ran is the result of a run of a program.
type Ran struct {
	Outputs []Named
	// Random reports whether the program drew random numbers: another implementation gives other ones.
	Random bool
}

// RunProgram is like [Run] but uses the verifier's kernels for operators of custom domains, and a table of operators. A nil
// table means the built-in operators.
func (v Verifier) RunProgram(m *ssa.Module, data DataSet, table *aten.Table) (*Ran, error) {
	if !isProgram(m) {
		out, err := v.Run(m, data)
		return &Ran{Outputs: out}, err
	}
	inputs := make([]eager.Named, len(data.Inputs))
	for i, in := range data.Inputs {
		inputs[i] = eager.Named(in)
	}
	e := eager.Evaluator{Table: table}
	outputs, err := e.Run(m, inputs)
	if err != nil {
		return nil, err
	}
	r := &Ran{Random: e.Random}
	for _, o := range outputs {
		r.Outputs = append(r.Outputs, Named(o))
	}
	return r, nil
}

// isProgram reports whether a module is a program of PyTorch, and not one of ONNX operators.
func isProgram(m *ssa.Module) bool {
	return m.Main() != nil && (m.UsesNamespace("aten") || m.UsesNamespace("prim") || !m.UsesNamespace("onnx") && len(m.Opsets) == 0)
}

// inputTypes returns the names and types of the tensors that a module takes.
func inputTypes(m *ssa.Module) ([]eager.Input, error) {
	if isProgram(m) {
		return eager.Inputs(m)
	}
	f := m.Main()
	if f == nil {
		return nil, fmt.Errorf("the module has no function")
	}
	ins := make([]eager.Input, len(f.Body.Params))
	for i, p := range f.Body.Params {
		ins[i] = eager.Input{Name: p.Name, Type: p.Type}
	}
	return ins, nil
}

// sizesOf chooses the sizes of dynamic axes for a run: the given ones, else one that depends on the seed.
func (o RandomOptions) sizesOf(m *ssa.Module, dims []sym.Expr) map[string]int64 {
	env := map[string]int64{}
	limits, err := ssa.ParseLimits(m.GetMetadata(ssa.LimitsKey))
	if err != nil { // metadata that aton did not write
		limits = nil
	}
	for _, d := range dims {
		d.Symbols(func(name string) {
			n, given := o.Sizes[name]
			if !given {
				n = [...]int64{2, 1, 3, 0}[o.Seed%4]
				for _, l := range limits {
					if l.Symbol == name {
						n = max(n, l.Min)
					}
				}
				n = max(n, sym.Least(d, name))
			}
			env[name] = n
		})
	}
	return env
}
