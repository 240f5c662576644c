// Package verify runs models and compares their outputs: with recorded ones, with those of the program that a model was converted
// from, and between the passes of a conversion. Package verify/device does so on a GPU or its simulator.
//
//	sets, err := verify.ReadData("inputs.npz")
//	outputs, err := verify.Run(m, sets[0])
package verify

import (
	"fmt"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/ssa"
)

// Verifier runs modules and compares their outputs with expected ones.
type Verifier struct {
	// Tolerance bounds the difference of floats; the zero value allows none. [DefaultTolerance] suits most models.
	Tolerance Tolerance
	// Kernels compute operators of custom domains in the reference interpreter.
	Kernels map[ssa.Kind]interp.Kernel
	// Observe, if not nil, is called for each operator that Run and Verify run, including those in blocks of control flow, with its
	// operands and results. An error ends the run.
	Observe func(o *ssa.Op, in, out []interp.Value) error
}

// Verify runs a module of ONNX operators (converted by Lower, or read from an ONNX file) in the reference interpreter and
// compares its outputs with those of the data set. Inputs are matched by name if the data set has all of the model's names,
// else by position.
func (v Verifier) Verify(m *ssa.Module, data DataSet) ([]Compared, error) {
	got, err := v.Run(m, data)
	if err != nil {
		return nil, err
	}
	if len(got) != len(data.Outputs) {
		return nil, fmt.Errorf("the model gives %d outputs, data set %s has %d", len(got), data.Name, len(data.Outputs))
	}
	var out []Compared
	for i, want := range data.Outputs {
		out = append(out, v.Tolerance.Compare(want.Name, got[i].Tensor, want.Tensor))
	}
	return out, nil
}
