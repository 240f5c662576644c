package aton

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Check reports everything that blocks the conversion, from all passes at once. The error is about anything but the
// program. It works on a copy of the module.
func Check(m *ssa.Module, o Options) (*diag.List, error) {
	m = m.Clone()
	if o.OperatorExport != "" && o.OperatorExport != ONNX || len(o.Fallthrough) > 0 {
		list, err := Lower(m, o)
		if err != nil && list != nil && list.Err() != nil {
			err = nil // the list has it
		}
		return list, err
	}
	p, err := o.pipeline(m, lower.Collect)
	if err != nil {
		return nil, err
	}
	o.begin(m)
	list, err := p.Run(m, o.Runner)
	if list == nil {
		return nil, err
	}
	failed := list.Err() != nil
	_ = o.Judge(list, nil) // the list is the result
	if err != nil && list.Err() == nil {
		return list, err // a bug in aton
	}
	if err == nil && !failed {
		return list, nil
	}
	// A pass that stopped early has not seen the operators after that place.
	o.unknown(m, list)
	return list, nil
}

// told reports whether the list has an error of the operator, or any error if op is empty.
func told(list *diag.List, op string) bool {
	return slices.ContainsFunc(list.Items, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && (op == "" || d.Op == op) })
}

// unknown adds operators of the program that no pass knows and that the list does not have yet.
func (o Options) unknown(m *ssa.Module, list *diag.List) {
	f := m.Main()
	if f == nil || m.Opsets[""] != 0 {
		return // lowered: every operator was tried
	}
	s := all.NewSupport(o.Table, o.OpsetFor(m))
	said := map[ssa.Kind]bool{}
	for op := range f.Body.AllOps() {
		if _, seen := said[op.Kind]; !seen {
			said[op.Kind] = told(list, string(op.Kind))
		}
		if said[op.Kind] || op.Kind.Namespace() == "prim" && op.Kind != "prim::PythonOp" || op.Kind.Namespace() == "onnx" {
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
