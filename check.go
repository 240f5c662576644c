package aton

import (
	"github.com/aton-project/aton/internal/conversion"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Check reports everything that blocks the conversion, from all passes at once. The error is about anything but the
// program. It works on a copy of the module.
func Check(m *ssa.Module, o ConvertOptions) (*diag.List, error) {
	m = m.Clone()
	if o.OperatorExport != "" && o.OperatorExport != ONNX || len(o.Fallthrough) > 0 {
		list, err := Convert(m, o)
		if err != nil && list != nil && list.Err() != nil {
			err = nil // the list has it
		}
		return list, err
	}
	p, err := o.pipeline(m, true)
	if err != nil {
		return nil, err
	}
	conversion.Begin(m, o.OpsetFor(m))
	list, err := p.Run(m, o.Runner)
	if list == nil {
		return nil, err
	}
	failed := list.Err() != nil
	list.Filter(o.Allow, o.Deny)
	if err != nil && list.Err() == nil {
		return list, err // a bug in aton
	}
	if err != nil || failed {
		conversion.AddUnsupported(list, m, o.Table, o.OpsetFor(m))
	}
	return list, nil
}
