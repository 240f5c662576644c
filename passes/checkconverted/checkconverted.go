// Package checkconverted is the pass that finds the operators of a program that no pass has converted.
package checkconverted

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa/diag"
)

// Pass reports each operator of a dialect that is not ONNX's, so that none gets into a file unless the caller allows it. Operators of a
// domain that an ONNX file imports are the file's own.
var Pass = passes.Pass{
	Name: "check-converted",
	Doc:  "report the operators of PyTorch that no pass has converted",
	Before: `
graph(%x : Float(2)):
  %y : Float(2) = onnx::Relu(%x)
  return (%y)`,
	After: `
graph(%x : Float(2)):
  %y : Float(2) = onnx::Relu(%x)
  return (%y)`,
	Makes:   []passes.State{passes.OnlyONNX},
	Options: []passes.Option{{Name: "allow", Doc: "namespaces whose operators may stay, separated by commas; * for all"}},
	Run:     run,
}

func run(c *passes.Context) error {
	m := c.Module
	if m.Main() == nil || c.Diags.Err() != nil {
		return nil
	}
	allowed, err := passes.SplitList(c.Option("allow"))
	if err != nil {
		return err
	}
	foreign := map[string]bool{}
	for _, d := range m.Dialects {
		ns := d.Namespace()
		foreign[ns] = ns != onnx.Namespace && m.Opsets[ns] == 0 && !slices.Contains(allowed, ns) && !slices.Contains(allowed, "*")
	}
	for _, d := range onnx.Domains() {
		delete(foreign, d.Namespace())
	}
	for op := range m.Main().Body.AllOps() {
		if foreign[op.Kind.Namespace()] {
			c.Report(diag.Diagnostic{ID: "unsupported-op", Op: string(op.Kind), Loc: op.Loc, Message: "cannot be converted to ONNX"})
		}
	}
	return nil
}
