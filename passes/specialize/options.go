package specialize

import "github.com/aton-project/aton/dialects/aten"

// Options steer the pass.
type Options struct {
	// Opset and Table are what types are inferred with: an operator's type is that of its lowering.
	Opset int
	Table *aten.Table
	// UnrollMax is the greatest number of iterations that are unrolled where
	// a loop has to be; 0 stands for 1024.
	UnrollMax int
	// OutputNames name the outputs in order; a prefix will do.
	OutputNames []string
	// State says what becomes of state that the program changes.
	State State

	// KeepWeights leaves named constants of floating point as they are: what is computed of them is not folded.
	KeepWeights bool
}

// State is what becomes of buffers, parameters and attributes that a program
// changes: an ONNX model keeps nothing from run to run.
type State string

// The new value is used within the run and then lost, with a warning; or it is
// a further output, named as the state is, with .next behind it if the state is an input too; or such a program is refused.
const (
	StateDropped State = "drop"
	StateOutput  State = "outputs"
	StateRefused State = "refuse"
)
