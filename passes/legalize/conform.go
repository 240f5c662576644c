package legalize

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// conform checks an op against its version in the opset, so that the pass leaves nothing
// that the standard does not allow. It removes attributes that older versions do not have if
// their value is the older behaviour, and writes out defaults that have changed since.
func (l *legalizer) conform(d *onnx.Downgrade, s *onnx.OpSchema) {
	o := d.Node
	newest := onnx.SchemaOf(o.Kind)
	if newest == nil || newest == s {
		return
	}
	for _, a := range append([]ssa.Attr(nil), o.Attrs...) {
		if s.Attr(a.Name) != nil {
			continue
		}
		if na := newest.Attr(a.Name); na != nil {
			if def, ok := na.Value(); ok && def.Equal(a.Value) {
				o.RemoveAttr(a.Name)
				continue
			}
		}
		d.Fail(l.first(o, func(s *onnx.OpSchema) bool { return s.Attr(a.Name) != nil }), "the attribute %s", a.Name)
	}
	for i := range newest.Attrs {
		na := &newest.Attrs[i]
		def, ok := na.Value()
		if _, given := o.Attr(na.Name); given || !ok {
			continue
		}
		if old := s.Attr(na.Name); old != nil && old.Default != na.Default {
			o.SetAttr(na.Name, def)
		}
	}
	vs := o.Operands()
	for len(vs) > 0 && vs[len(vs)-1] == nil {
		vs = vs[:len(vs)-1]
	}
	if len(vs) < o.NumOperands() {
		o.SetOperands(vs...)
	}
	for i, p := range s.Inputs {
		if p.Option == onnx.Single && o.Operand(i) == nil {
			d.Fail(l.first(o, func(s *onnx.OpSchema) bool { p := s.Input(i); return p == nil || p.Option != onnx.Single }), "the absence of its input %s", p.Name)
		}
	}
	if n := len(vs); n > 0 && s.Input(n-1) == nil {
		d.Fail(l.first(o, func(s *onnx.OpSchema) bool { return s.Input(n-1) != nil }), "an input of the operator")
	}
	for n := len(o.Results); n > 0 && s.Output(n-1) == nil; n-- {
		if o.Results[n-1].HasUses() {
			d.Fail(l.first(o, func(s *onnx.OpSchema) bool { return s.Output(n-1) != nil }), "an output of the operator")
		}
		o.RemoveResult(n - 1)
	}
}

// first returns the lowest opset above the target whose version of the operator satisfies a condition.
func (l *legalizer) first(o *ssa.Op, ok func(*onnx.OpSchema) bool) int {
	for n := l.opset + 1; n <= l.target.Newest(); n++ {
		if s := onnx.Lookup(o.Kind.Name(), n); s != nil && ok(s) {
			return n
		}
	}
	return 0
}
