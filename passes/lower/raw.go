package lower

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Raw is the pass of the operator export type RAW. Operators keep their names, prim and aten become domains, numbers become tensors of
// rank 0, and what the format has no form for becomes text, as it is printed.
var Raw = passes.Pass{
	Name:  "make-storable",
	Takes: []passes.State{passes.OneFunction, passes.Frozen},
	Doc:   "give a TorchScript graph types and attributes that an ONNX file can hold",
	Before: `
graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %x, %one)
  return (%y)`,
	After: `
graph(%x : FloatTensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %x, %one)
  return (%y)`,
	Options: []passes.Option{{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the version of the default domain", Int: true}},
	Run:     raw,
}

func raw(c *passes.Context) error {
	m := c.Module
	f := m.Main()
	if f == nil {
		return nil
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
		if t, ok := given[ssa.BareName(p.Name)]; ok {
			p.Type = t
		}
		p.Type = onnxType(m, p.Type)
		if t := p.Tensor(); t != nil && t.DType == tensor.Undefined {
			p.Type = t.WithDType(tensor.Float32) // torch's default
		}
	}
	for o := range f.Body.AllOps() {
		for i, a := range o.Attrs {
			o.Attrs[i].Value = storable(a.Value)
		}
	}
	if m.Opsets == nil {
		m.Opsets = map[string]int{}
	}
	m.Opsets[""] = c.IntOption("opset")
	c.Changed("raw")
	return nil
}

// storable is a literal that the attribute of a file can be: itself, or the text that it is printed as.
func storable(l ssa.Literal) ssa.Literal {
	switch l = plain(l); l.Kind {
	case ssa.IntLit, ssa.BoolLit, ssa.StrLit, ssa.TensorLit:
		return l
	case ssa.FloatLit:
		if fitsFloat32(l.Float()) {
			return l
		}
	case ssa.ObjectLit:
		return ssa.Str(l.Type().String() + " " + l.Object.Path)
	case ssa.ListLit:
		if _, ok := l.IntList(); ok {
			return l
		}
		if v, ok := l.FloatList(); ok && !slices.ContainsFunc(v, func(f float64) bool { return !fitsFloat32(f) }) {
			return l
		}
		texts := make([]ssa.Literal, len(l.Elems))
		for i, e := range l.Elems {
			if texts[i] = e; e.Kind != ssa.StrLit {
				texts[i] = ssa.Str(e.String())
			}
		}
		l.Elem, l.Elems = ssa.StrType, texts
		return l
	}
	return ssa.Str(l.String())
}

// fitsFloat32 reports that a number is not too large for the floats of attributes.
func fitsFloat32(f float64) bool { return math.IsInf(f, 0) || !math.IsInf(float64(float32(f)), 0) }
