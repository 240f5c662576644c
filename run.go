package aton

import (
	"fmt"

	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Run runs a module as Load gives it, without converting it, on the inputs of a data set, and gives its outputs. A program of PyTorch
// runs in backend/eager, which has PyTorch's semantics, and a module of the ONNX dialect in the reference interpreter. Inputs go by
// name if all of the model's are there, else in order.
func Run(m *ssa.Module, data DataSet) ([]Named, error) {
	r, err := Verifier{}.RunProgram(m, data, nil)
	if err != nil {
		return nil, err
	}
	return r.Outputs, nil
}

// Ran is what a run of a program gives.
type Ran struct {
	Outputs []Named
	// Random reports that the program has drawn random numbers: another run of it in another place gives others.
	Random bool
}

// RunProgram is [Run] with the kernels of the verifier for operators of custom domains, and a table of operators, nil for the
// built-in ones.
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

// isProgram reports a module that is not in the ONNX dialect: a program of PyTorch.
func isProgram(m *ssa.Module) bool {
	return m.Main() != nil && (m.UsesNamespace("aten") || m.UsesNamespace("prim") || !m.UsesNamespace("onnx") && len(m.Opsets) == 0)
}

// inputTypes are the types of the tensors that a module takes, with their names.
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

// sizesOf gives the axes of a type the sizes of a run: those that are asked for, else one that depends on the seed.
func (o RandomOptions) sizesOf(m *ssa.Module, dims []sym.Expr) map[string]int64 {
	env := map[string]int64{}
	limits, err := ssa.ParseLimits(m.GetMetadata(ssa.LimitsKey))
	if err != nil { // somebody else's text
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
