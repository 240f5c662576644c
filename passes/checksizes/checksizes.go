// Package checksizes is the pass that reports the conditions that a model puts on the dynamic axes of its inputs.
package checksizes

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/sizes"
	"github.com/aton-project/aton/dialects/onnx/typecheck"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
)

// Pass warns of conditions that the operators of an ONNX model put on its dynamic axes, and records them in the metadata
// aton.assumes. The author of a file named its axes, often carelessly, so the conditions are not errors. In a
// program of PyTorch the user names the axes, and the pass lower reports errors.
var Pass = passes.Pass{
	Name:  "check-sizes",
	Takes: []passes.State{passes.Newest},
	Makes: []passes.State{passes.Checked},
	Doc:   "report the conditions that the operators of an ONNX model put on its dynamic axes",
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
