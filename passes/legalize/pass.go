package legalize

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Pass is the pass.
var Pass = passes.Pass{
	Name:  "legalize",
	Takes: []passes.State{passes.Newest, passes.OnlyONNX},
	Makes: []passes.State{passes.AtOpset},
	Ends:  []passes.State{passes.Newest},
	Doc:   "convert ONNX operators from their newest form to that of an opset, with element types that the target supports",
	Before: `
graph(%x : Float(2, 3)):
  %axes : Long(1) = onnx::Constant[value={1}]()
  %y : Float(2) = onnx::ReduceMax[keepdims=0](%x, %axes)
  return (%y)`,
	After: `
graph(%x : Float(2, 3)):
  %y : Float(2) = onnx::ReduceMax[keepdims=0, axes=[1]](%x)
  return (%y)`,
	Demo: "opset=17",
	Options: []passes.Option{
		{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the version of the default domain", Int: true, Least: 1, Most: onnx.Newest},
		{Name: "target", Default: "ort", Doc: "the runtime whose kernels determine element types: ort, or onnx for none", Values: []string{string(onnx.OnnxRuntime), string(onnx.Standard)}},
		{Name: Only, Doc: "the operators that the file may have, separated by commas; others are replaced or reported. None stands for all"},
	},
	Run: run,
}

// Only is the option that lists the operators that a file may have.
const Only = "only"

func run(c *passes.Context) error {
	m := c.Module
	opset := c.IntOption("opset")
	if v := onnx.DefaultOpset(m); v != 0 && v != onnx.Newest {
		if v != opset {
			c.Report(diag.Diagnostic{ID: "opset", Message: fmt.Sprintf("the module is at opset %d, not in the newest form that can be taken to opset %d", v, opset), Hint: "run the pass upgrade first"})
		}
		return nil // the module is legal for the opset already
	}
	l := &legalizer{c: c, m: m, opset: opset, target: onnx.Target(c.Option("target")), done: map[*ssa.Op]bool{}, kept: map[*ssa.Op]bool{}, instead: map[*ssa.Op][]ssa.Kind{}}
	only, err := passes.SplitList(c.Option(Only))
	if err != nil {
		return fmt.Errorf("option %s: %w", Only, err)
	}
	if len(only) > 0 {
		l.only = map[ssa.Kind]bool{}
		for _, name := range only {
			if !strings.Contains(name, "::") {
				name = onnx.Namespace + "::" + name
			}
			l.only[ssa.Kind(name)] = true
		}
	}
	for _, f := range m.Funcs {
		l.names = ssa.NamesOf(f)
		l.block(f.Body)
		ssa.EraseUnused(f.Body, func(o *ssa.Op) bool { return o.Kind == "onnx::Constant" || o.Kind == "onnx::Cast" })
		l.returns(f.Body)
		if l.only != nil {
			l.outside(f.Body)
		}
	}
	if n := len(l.bfloat16); n > 0 {
		first := l.bfloat16[0]
		c.Report(diag.Diagnostic{Severity: diag.Warning, ID: "wider-bfloat16", Op: string(first.Kind), Loc: first.Loc,
			Message: fmt.Sprintf("bfloat16 is computed in float32, between casts, since onnxruntime has no such kernels on a processor (places: %d)", n),
			Hint:    "for a GPU convert with --target onnx, which leaves bfloat16"})
	}
	onnx.SetOpset(m, opset)
	return nil
}
