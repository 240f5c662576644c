package lower

import (
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor"
)

// Raw readies an inlined and frozen TorchScript graph for a file as it is:
// operators keep their names, prim and aten become domains, numbers are tensors
// of rank 0 (operator_export_type RAW). What a file cannot hold is in the list.
func Raw(m *ssa.Module, opset int) *diag.List {
	list := &diag.List{Table: &m.Locs}
	f := m.Main()
	if f == nil {
		return list
	}
	given := map[string]ssa.Type{}
	for _, in := range m.Inputs {
		if in.Type != nil {
			given[in.Name] = in.Type
		}
	}
	for i := len(f.Body.Params) - 1; i >= 0; i-- {
		p := f.Body.Params[i]
		if _, object := p.Type.(*ssa.ClassType); object && !p.HasUses() {
			f.Body.RemoveParam(i)
			continue
		}
		name := p.Name
		if dot := strings.LastIndexByte(name, '.'); dot > 0 && strings.Trim(name[dot+1:], "0123456789") == "" {
			name = name[:dot] // x.1 is the user's x
		}
		if t, ok := given[name]; ok {
			p.Type = t
		}
		p.Type = onnxType(m, p.Type)
		if t := p.Tensor(); t != nil && t.DType == tensor.Undefined {
			p.Type = t.WithDType(tensor.Float32) // torch's default
		}
	}
	for o := range f.Body.AllOps() {
		for i, a := range o.Attrs {
			v := plain(a.Value)
			switch v.Kind {
			case ssa.ObjectLit, ssa.FuncLit, ssa.DictLit, ssa.ComplexLit:
				list.Add(diag.Diagnostic{ID: "unsupported-value", Op: string(o.Kind), Loc: o.Loc, Message: "a value of type " + v.Type().String() + " has no form in an ONNX file"})
			}
			o.Attrs[i].Value = v
		}
	}
	if m.Opsets == nil {
		m.Opsets = map[string]int{}
	}
	m.Opsets[""] = opset
	return list
}
