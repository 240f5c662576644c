// Package upgrade is the pass that converts the operators of an ONNX model to their newest encoding, which the other
// passes expect.
package upgrade

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Pass converts ONNX operators to their newest encoding.
var Pass = passes.Pass{
	Name:  "upgrade",
	Makes: []passes.State{passes.Newest, passes.Standard, passes.Total},
	Doc:   "convert ONNX operators from their opset to their newest form, and infer their types",
	Before: `
graph(%x : Float(2, 1, 3)):
  %s : Float(2, 3) = onnx::Squeeze[axes=[1]](%x)
  %y : Tensor = onnx::Clip[min=0., max=6.](%s)
  return (%y)`,
	After: `
graph(%x : Float(2, 1, 3)):
  %0 : Long(1) = onnx::Constant[value={1}]()
  %s : Float(2, 3) = onnx::Squeeze(%x, %0)
  %1 : Float() = onnx::Constant[value={0}]()
  %2 : Float() = onnx::Constant[value={6}]()
  %y : Float(2, 3) = onnx::Clip(%s, %1, %2)
  return (%y)`,
	Demo: "from=9",
	Options: []passes.Option{
		{Name: "from", Default: "0", Doc: "the opset of operators in a module that does not state it, such as graph text; 0 means the newest form", Int: true},
	},
	Run: run,
}

// run leaves a program of PyTorch unchanged, since it has no opset.
func run(c *passes.Context) error {
	m := c.Module
	opset := onnx.DefaultOpset(m)
	if opset == 0 {
		opset = c.IntOption("from")
	}
	if opset == 0 {
		return nil
	}
	if err := onnx.Raisable(opset); err != nil {
		c.Report(diag.Diagnostic{ID: "opset", Message: err.Error()})
		return nil
	}
	bad := &diag.List{Table: &m.Locs}
	for _, f := range m.Funcs {
		n := onnx.RaiseBlock(f.Body, opset, func(o *ssa.Op, err error) {
			bad.Add(diag.Diagnostic{ID: "onnx-op", Op: string(o.Kind), Loc: o.Loc, Message: err.Error()})
		})
		for range n {
			c.Changed("raise")
		}
	}
	onnx.SetOpset(m, onnx.Newest)
	for _, d := range bad.Items {
		c.Report(d)
	}
	return bad.Err() // what is partly raised is at no opset: the passes behind cannot go on
}
