package specialize

import (
	"errors"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa/diag"
)

// Pass is the pass with the built-in operators.
var Pass = New(nil)

// New makes the pass for a table of operators; nil stands for the built-in ones.
func New(table *aten.Table) passes.Pass {
	return passes.Pass{
		Name:  "specialize",
		Takes: []passes.State{passes.Frozen},
		Makes: []passes.State{passes.Functional},
		Doc:   "evaluate what is known for the given inputs: containers, shapes, branches, mutation; what is left is pure",
		Before: `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %row : Tensor = aten::select(%x, %0, %0)
  %r : Tensor = aten::relu_(%row)
  %n : int = aten::size(%x, %1)
  %three : int = prim::Constant[value=3]()
  %c : bool = aten::eq(%n, %three)
  %y : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%r)
  return (%y)`,
		After: `
graph(%x : Float(N, 3)):
  %0 : int = prim::Constant[value=0]()
  %row : Float(3) = aten::select(%x, %0, %0)
  %r : Float(3) = aten::relu(%row)
  %1 : Float(N, 3) = aten::select_scatter(%x, %r, %0, %0)
  return (%1)`,
		Options: []passes.Option{
			{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the ONNX opset whose lowerings say what types operators give", Int: true, Least: 1, Most: onnx.Newest},
			{Name: "unroll", Default: "1024", Doc: "iterations up to which a loop that cannot stay one is unrolled", Int: true},
			{Name: "keep", Default: "false", Bool: true, Doc: "fold nothing that is computed of the weights"},
			{Name: "state", Default: "drop", Doc: "what becomes of buffers and attributes that the program changes: lost after the run with a warning, further outputs, or an error", Values: []string{"drop", "outputs", "refuse"}},
		},
		Run: func(c *passes.Context) error {
			if onnx.DefaultOpset(c.Module) != 0 || !c.Module.UsesNamespace("aten") && !c.Module.UsesNamespace("prim") && c.Module.UsesNamespace("onnx") {
				return nil // an ONNX model, or converted already
			}
			warnings, err := Run(c.Module, Options{Opset: c.IntOption("opset"), Table: table, UnrollMax: c.IntOption("unroll"), State: State(c.Option("state")), KeepWeights: c.BoolOption("keep")})
			if warnings != nil {
				for _, d := range warnings.Items {
					c.Report(d)
				}
			}
			c.Changed("specialized")
			var list *diag.List
			if errors.As(err, &list) {
				for _, d := range list.Items {
					c.Report(d)
				}
				return list // nothing behind this pass can go on
			}
			return err
		},
	}
}
