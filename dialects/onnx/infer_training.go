package onnx

import (
	"fmt"

	"github.com/aton-project/aton/ssa"
)

// trainingDomain has the optimizers: operators that take tensors, gradients and states of their own, and give new ones.
const trainingDomain = "ai.onnx.preview.training"

// optimizers gives, for each operator, which of its groups of operands the results take the types of. The groups stand behind
// the learning rate and the step count, all of one length: the tensors, their gradients, and one or two states.
var optimizers = map[string]struct {
	groups  int
	results []int
}{
	"Adagrad":  {3, []int{0, 2}},
	"Adam":     {4, []int{0, 2, 3}},
	"Momentum": {3, []int{0, 2}},
}

// inferTraining infers the results of an optimizer.
func inferTraining(o *ssa.Op) error {
	f, ok := optimizers[o.Kind.Name()]
	if !ok {
		return nil
	}
	n := o.NumOperands() - 2
	if n < f.groups || n%f.groups != 0 {
		return fmt.Errorf("%s: %d operands behind the first two are not %d groups of one length", o.Kind, n, f.groups)
	}
	n /= f.groups
	if len(o.Results) != n*len(f.results) {
		return fmt.Errorf("%s: %d results for %d tensors, not %d", o.Kind, len(o.Results), n, n*len(f.results))
	}
	for i, r := range o.Results {
		if v := o.Operand(2 + f.results[i/n]*n + i%n); v != nil {
			r.Type = v.Type
		}
	}
	return nil
}
