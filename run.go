package aton

import (
	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/ssa"
)

// Run runs a module as Load gives it, without converting it, on the inputs of a data set, and gives its outputs. A program of PyTorch
// runs in backend/eager, which has PyTorch's semantics, and a module of the ONNX dialect in the reference interpreter. Inputs go by name if all of
// the model's are there, else in order.
func Run(m *ssa.Module, data DataSet) ([]Named, error) { return Verifier{}.RunProgram(m, data) }

// RunProgram is [Run] with the kernels of the verifier for operators of custom domains.
func (v Verifier) RunProgram(m *ssa.Module, data DataSet) ([]Named, error) {
	if m.Main() != nil && !m.UsesNamespace("aten") && !m.UsesNamespace("prim") && m.UsesNamespace("onnx") {
		return v.Run(m, data)
	}
	inputs := make([]eager.Named, len(data.Inputs))
	for i, in := range data.Inputs {
		inputs[i] = eager.Named(in)
	}
	outputs, err := eager.Run(m, inputs)
	if err != nil {
		return nil, err
	}
	out := make([]Named, len(outputs))
	for i, o := range outputs {
		out[i] = Named(o)
	}
	return out, nil
}
