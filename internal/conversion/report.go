package conversion

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Warn passes the warnings of a list on, without the prefix "warning: ".
func Warn(list *diag.List, warn func(message string)) {
	for _, d := range list.Items {
		if d.Severity == diag.Warning {
			d.Severity = diag.Error
			warn(list.Format(d))
		}
	}
}

// AddUnsupported adds to a list the operators of a program that no pass knows, unless the list has an error of them already. A pass that
// stopped early has not seen the operators after that place.
func AddUnsupported(list *diag.List, m *ssa.Module, table *aten.Table, opset int) {
	f := m.Main()
	if f == nil || m.Opsets[""] != 0 {
		return // lowered: every operator was tried
	}
	s := all.NewSupport(table, opset)
	reported := map[ssa.Kind]bool{}
	for op := range f.Body.AllOps() {
		if _, seen := reported[op.Kind]; !seen {
			reported[op.Kind] = slices.ContainsFunc(list.Items, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.Op == string(op.Kind) })
		}
		if reported[op.Kind] || op.Kind.Namespace() == "prim" && op.Kind != "prim::PythonOp" || op.Kind.Namespace() == "onnx" {
			continue
		}
		if ok, why, opset := s.Of(op.Kind); !ok {
			d := diag.Diagnostic{ID: "unsupported-op", Op: string(op.Kind), Loc: op.Loc, Message: why, Opset: opset}
			if opset > 0 {
				d.ID, d.Hint = "opset", fmt.Sprintf("export with --opset %d", opset)
			}
			list.Add(d)
		}
	}
}
