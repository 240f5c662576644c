package interp

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// raised runs an op of an older opset: a copy of it that takes the values at hand, raised to the newest encoding, for
// which the kernels are.
func (r *run) raised(o *ssa.Op, in []Value) ([]Value, error) {
	m := ssa.NewModule(onnx.Dialect{})
	f := m.NewFunc(o.Kind.Name())
	operands := make([]*ssa.Value, len(in))
	var args []Value
	for i, v := range in {
		if !v.IsNone() {
			operands[i] = f.Body.AddParam("", typeOf(v))
			args = append(args, v)
		}
	}
	types := make([]ssa.Type, len(o.Results))
	for i, v := range o.Results {
		types[i] = v.Type
	}
	c := f.Body.Append(o.Kind, 0, operands, types...)
	c.Attrs = append(c.Attrs, o.Attrs...)
	used := c.Results
	for len(used) > 0 && !o.Results[len(used)-1].HasUses() {
		used = used[:len(used)-1]
	}
	f.Body.SetReturns(used...)
	if err := onnx.Raise(c, r.opset); err != nil {
		return nil, err
	}
	sub := &run{Interpreter: &Interpreter{MaxTrips: r.MaxTrips}, m: m, opset: onnx.Newest, values: make([]Value, f.NumValues()), outer: r, copied: o}
	return sub.block(f.Body, args)
}

func typeOf(v Value) ssa.Type {
	if v.IsList {
		return &ssa.ListType{Elem: ssa.AnyTensor}
	}
	return ssa.TensorOf(v.Tensor)
}
