package lower

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
		Name:  "lower",
		Takes: []passes.State{passes.Functional, passes.Newest},
		Makes: []passes.State{passes.OnlyONNX},
		Doc:   "convert aten operators to ONNX operators in their newest form",
		Before: `
graph(%x : Float(N, 3)):
  %k : float = prim::Constant[value=0.5]()
  %y : Float(N, 3) = aten::leaky_relu(%x, %k)
  return (%y)`,
		After: `
graph(%x : Float(N, 3)):
  %y : Float(N, 3) = onnx::LeakyRelu[alpha=0.5](%x)
  return (%y)`,
		Options: []passes.Option{
			{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the ONNX opset to lower for", Int: true, Least: 1, Most: onnx.Newest},
			{Name: "fallthrough", Default: "", Doc: "namespaces whose operators stay, in custom domains, if they cannot be converted; * for all"},
			{Name: "training", Default: "preserve", Values: []string{"preserve", "eval", "train"}, Doc: "train: emit training-mode BatchNormalization, for the target onnx"},
			{Name: "target", Default: "ort", Values: []string{"ort", "onnx"}, Doc: "the runtime; onnxruntime's optimizer treats a training-mode BatchNormalization after a Conv as if it were in evaluation"},
			{Name: "mode", Default: string(Strict), Doc: "what happens to operators that cannot be converted", Values: Modes()},
		},
		Run: func(c *passes.Context) error {
			if onnx.DefaultOpset(c.Module) != 0 || !c.Module.UsesNamespace("aten") && !c.Module.UsesNamespace("prim") && c.Module.UsesNamespace("onnx") {
				return nil // an ONNX model, or converted already
			}
			opts := Options{Opset: c.IntOption("opset"), Table: table, Mode: Mode(c.Option("mode")), Warn: c.Report, Training: c.Option("training") == "train" && c.Option("target") == "onnx"}
			var err error
			if f := c.Option("fallthrough"); f != "" {
				if opts.Fallthrough, err = passes.SplitList(f); err != nil {
					return err
				}
			}
			err = Run(c.Module, opts)
			c.Changed("lowered")
			if err != nil && opts.Mode == Collect && !c.Module.UsesNamespace("aten") {
				var list *diag.List
				if errors.As(err, &list) { // the rest of the pipeline may have more to say
					for _, d := range list.Items {
						c.Report(d)
					}
					return nil
				}
			}
			var list *diag.List
			if errors.As(err, &list) {
				for _, d := range list.Items {
					c.Report(d)
				}
				return list
			}
			return err
		},
	}
}
