package cmd

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa/diag"
)

// tryOpsets replaces the opsets that hints name by one at which the model converts: an operator that is there from opset 9
// on is no help where another needs 11. The hint goes where there is no such opset.
func (m *model) tryOpsets(err error) {
	var list *diag.List
	if !errors.As(err, &list) {
		return
	}
	least, others := 0, false
	for _, d := range list.Items {
		switch {
		case d.Severity != diag.Error:
		case d.Opset > 0:
			least = max(least, d.Opset)
		default:
			others = true
		}
	}
	if least == 0 {
		return
	}
	found := 0
	for n := least; n <= onnx.Newest && found == 0 && !others; n++ {
		if m.converts(n) {
			found = n
		}
	}
	for i := range list.Items {
		d := &list.Items[i]
		switch {
		case d.Opset == 0:
		case found > 0:
			d.Hint = fmt.Sprintf("export with --opset %d", found)
		default:
			d.Hint = ""
		}
	}
}

// converts reports whether the model converts at an opset.
func (m *model) converts(opset int) bool {
	if m.name == "-" && m.bytes == nil {
		return false
	}
	again := model{name: m.name, bytes: m.bytes, loading: m.loading, opts: m.opts}
	again.loading.Note = nil
	opts := &again.opts
	opts.Opset, opts.Warn, opts.Diagnosed, opts.Runner = opset, nil, nil, nil
	mod, err := again.read(bytes.NewReader(nil))
	if err != nil {
		return false
	}
	list, err := aton.Check(mod, opts.ConvertOptions)
	return err == nil && list.Err() == nil
}
