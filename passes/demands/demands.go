// Package demands is the pass that tells what a model demands of the dynamic axes of its inputs.
package demands

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/sizes"
	"github.com/aton-project/aton/dialects/onnx/typecheck"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// Pass warns of what the operators of an ONNX model demand of its dynamic axes, and records it in the metadata
// aton.assumes. The names of a file's axes are its author's and often careless, so that nothing is an error here; for a
// program of PyTorch, whose axes are named by the user, the pass lower does the same with errors.
var Pass = passes.Pass{
	Name:  "check-sizes",
	Takes: []passes.State{passes.Newest},
	Makes: []passes.State{passes.Checked},
	Doc:   "tell what the operators of an ONNX model demand of its dynamic axes",
	Before: `
graph(%x : Float(N), %w : Float(4, 3)):
  %y : Float(3) = onnx::MatMul(%x, %w)
  return (%y)`,
	After: `
graph(%x : Float(N), %w : Float(4, 3)):
  %y : Float(3) = onnx::MatMul(%x, %w)
  return (%y)`,
	Run: run,
}

func run(c *passes.Context) error {
	m := c.Module
	f := m.Main()
	if f == nil || onnx.DefaultOpset(m) == 0 || m.SizesSolved { // the operators have not the form that inference knows
		return nil
	}
	s := sizes.New(f.Body.Params)
	if !s.Dynamic() { // nothing to ask, which saves an inference of all types
		return nil
	}
	typecheck.Demands(m, func(op *ssa.Op, x, y sym.Expr, broadcast bool) {
		s.Require(sizes.Demand{X: x, Y: y, Broadcast: broadcast, Op: op})
	})
	conflicts, grants := s.Solve(&m.Locs)
	warn := func(op *ssa.Op, id, assumed, message, hint string) {
		if m.Assume(assumed) {
			c.Report(diag.Diagnostic{Severity: diag.Warning, ID: id, Op: string(op.Kind), Loc: op.Loc, Message: message, Hint: hint})
		}
	}
	for _, k := range conflicts {
		warn(k.Op, "axis-size", k.Message, k.Message, k.Hint)
	}
	for _, g := range grants {
		warn(g.Op, "assumes", g.What, "the model takes for granted that "+g.What+": "+sizes.Why, "")
	}
	return nil
}
