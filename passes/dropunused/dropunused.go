// Package dropunused is the pass that removes the inputs that nothing uses.
package dropunused

import (
	"slices"

	"github.com/aton-project/aton/passes"
)

// Pass removes the inputs of the main function that nothing uses, as torch.onnx.export(dynamo=False) does, and notes their positions in
// Module.DroppedInputs. Weights stay: who lists them among the inputs has asked for all of them.
var Pass = passes.Pass{
	Name:  "drop-unused-inputs",
	Takes: []passes.State{passes.OneFunction},
	Doc:   "remove the inputs that nothing uses",
	Before: `
graph(%x : Float(2), %z : Float(2)):
  %y : Float(2) = onnx::Relu(%x)
  return (%y)`,
	After: `
graph(%x : Float(2)):
  %y : Float(2) = onnx::Relu(%x)
  return (%y)`,
	Run: run,
}

func run(c *passes.Context) error {
	m := c.Module
	if m.Main() == nil || c.Diags.Err() != nil {
		return nil
	}
	body, position := m.Main().Body, 0
	for _, p := range slices.Clone(body.Params) {
		if m.Weights[p.Name] != nil {
			continue
		}
		if !p.HasUses() {
			body.RemoveParam(slices.Index(body.Params, p))
			m.DroppedInputs = append(m.DroppedInputs, int64(position))
			c.Changed("dropped")
		}
		position++
	}
	return nil
}
