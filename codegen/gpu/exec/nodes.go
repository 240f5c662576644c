package exec

import (
	"errors"
	"fmt"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/bound"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// NodeResult is a node that the device computed, beside what the interpreter gives for the same operands.
type NodeResult struct {
	Node   string   `json:"node"`
	Source string   `json:"source,omitempty"` // the line of the user's program
	Kernel []string `json:"kernels"`
	Result int      `json:"result"` // which of the node's results
	*bound.Difference
	// Fault is what stopped the kernel, if anything did.
	Fault string `json:"fault,omitempty"`
}

// Bad reports a node that differs by more than its operator allows.
func (n *NodeResult) Bad() bool { return n.Fault != "" || n.Difference.Bad() }

// String tells the node and what is wrong with it.
func (n *NodeResult) String() string {
	s := "node " + n.Node
	if n.Source != "" {
		s = n.Source + ": " + s
	}
	if n.Fault != "" {
		return s + ": " + n.Fault
	}
	return fmt.Sprintf("%s, kernel %v: %s", s, n.Kernel, n.Difference)
}

var errFound = errors.New("found")

// CheckNodes runs a plan that fuses nothing, and compares each node with the interpreter on the operands that the device had:
// what differs is the node itself, not what came before. It gives the worst result of each node in order, up to the
// first bad one if stop is set.
func CheckNodes(p *plan.Plan, s *Session, inputs []interp.Value, stop bool) ([]NodeResult, error) {
	if p.Fusion != fuse.None {
		return nil, fmt.Errorf("nodes are compared one by one: the plan must not fuse any")
	}
	last := map[*ssa.Op]*plan.Step{} // an op may take several launches
	kernels := map[*ssa.Op][]string{}
	for step := range p.AllSteps() {
		if step.Launch != nil {
			last[step.Op] = step
			kernels[step.Op] = append(kernels[step.Op], step.Kernel.Name)
		}
	}
	var out []NodeResult
	var current *ssa.Op
	s.Observe = func(step *plan.Step, read func(v *ssa.Value) (*tensor.Tensor, error)) error {
		if step.Launch == nil || last[step.Op] != step || len(step.Op.Blocks) > 0 { // what a loop gives is compared in its body
			return nil
		}
		o := step.Op
		current = o
		in := make([]*tensor.Tensor, o.NumOperands())
		args := make([]interp.Value, len(in))
		for i := range in {
			if v := o.Operand(i); v != nil {
				t, err := read(v)
				if err != nil {
					return err
				}
				in[i], args[i] = t, interp.Of(t)
			}
		}
		want, err := s.interpreter(o, true).RunOp(o, args, nil)
		if err != nil {
			return err
		}
		var worst *NodeResult
		for i, v := range o.Results {
			if !v.HasUses() {
				continue
			}
			got, err := read(v)
			if err != nil {
				return err
			}
			allowed, err := tolerance(p, o, in, i, want[i].Tensor)
			if err != nil {
				return err
			}
			d := bound.Measure(got, want[i].Tensor, allowed)
			if worst == nil || d.Bad() && !worst.Bad() {
				worst = &NodeResult{Node: plan.NodeName(o), Source: p.Source(o), Kernel: kernels[o], Result: i, Difference: d}
			}
		}
		if worst != nil {
			out = append(out, *worst)
			if stop && worst.Bad() {
				return errFound
			}
		}
		return nil
	}
	defer func() { s.Observe = nil }()
	_, _, err := s.Run(inputs)
	var failed *StepError
	switch {
	case errors.Is(err, errFound):
		return out, nil
	case errors.Is(err, sim.ErrBudget): // nothing is wrong with the kernel
		return out, err
	case errors.As(err, &failed) && failed.Step.Launch != nil && failed.Step.Op != current:
		// the kernel itself was stopped
		o := failed.Step.Op
		return append(out, NodeResult{Node: plan.NodeName(o), Source: p.Source(o), Kernel: kernels[o], Difference: &bound.Difference{}, Fault: failed.Err.Error()}), nil
	}
	return out, err
}

// StepError is a step that failed.
type StepError struct {
	Step   *plan.Step
	Source string
	Err    error
}

// Error tells the line of the user's program, the node and what is wrong.
func (e *StepError) Error() string {
	s := plan.NodeName(e.Step.Op) + ": " + e.Err.Error()
	if e.Source != "" {
		return e.Source + ": " + s
	}
	return s
}

// Unwrap gives the cause.
func (e *StepError) Unwrap() error { return e.Err }

// tolerance is how far result i of an operator may be off by the kernels of a plan.
func tolerance(p *plan.Plan, o *ssa.Op, in []*tensor.Tensor, i int, want *tensor.Tensor) (func(at int) float64, error) {
	if p.TF32 {
		return bound.TF32(o.Kind, o.Attrs, in, i, want)
	}
	return bound.Tolerance(o.Kind, o.Attrs, in, i, want)
}
