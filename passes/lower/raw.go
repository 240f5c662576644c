package lower

import (
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Raw readies an inlined and frozen TorchScript graph for a file as it is:
// operators keep their names, prim and aten become domains, numbers are tensors
// of rank 0, and what the format has no form for is text, as it is printed (operator_export_type RAW).
func Raw(m *ssa.Module, opset int) {
	f := m.Main()
	if f == nil {
		return
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
			case ssa.ObjectLit:
				v = ssa.Str(v.Type().String() + " " + v.Object.Path)
			case ssa.FuncLit, ssa.DictLit, ssa.ComplexLit:
				v = ssa.Str(v.String()) // as it is printed
			}
			o.Attrs[i].Value = v
		}
	}
	if m.Opsets == nil {
		m.Opsets = map[string]int{}
	}
	m.Opsets[""] = opset
}
