package kernel

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// evalBody computes a composite operator by its body, in float64 throughout, so that each result is rounded once.
func evalBody(c *call) []*tensor.Tensor {
	m := ssa.NewModule(onnx.Dialect{})
	block := m.NewFunc(c.kind.Name()).Body
	b := onnx.Builder{Block: block}
	attrs := make([]ssa.Attr, len(c.attrs))
	for i, a := range c.attrs {
		if attrs[i] = a; a.Value.Kind == ssa.FloatLit {
			attrs[i].Value = ssa.Float(c.float(a.Name))
		}
	}
	// as types that the results have, and again in float64
	node := func(wide bool) *ssa.Op {
		in := make([]*ssa.Value, len(c.in))
		for i, t := range c.in {
			switch {
			case t == nil:
			case wide && t.DType.IsFloat():
				in[i] = b.Const(cast(t, tensor.Float64))
			default:
				in[i] = b.Const(t)
			}
		}
		return b.Create(c.kind, c.n, in, attrs...)[0].Def()
	}
	var stated, o *ssa.Op
	var results []*ssa.Value
	if err := onnx.Build(func() {
		stated, o = node(false), node(true)
		d := &onnx.Downgrade{Builder: onnx.Builder{Block: block}, Node: o, Opset: onnx.Newest, Target: onnx.Standard}
		results = d.WideBody()
	}); err != nil {
		c.fail("%v", err)
	}
	done := map[*ssa.Value]*tensor.Tensor{}
	out := make([]*tensor.Tensor, len(results))
	for i, v := range results {
		out[i] = c.value(v, done)
		if t := stated.Result(i).DType(); out[i] != nil && t != out[i].DType && t != tensor.Undefined {
			out[i] = cast(out[i], t)
		}
	}
	return out
}

// value computes a value of a body and whatever it is made of.
func (c *call) value(v *ssa.Value, done map[*ssa.Value]*tensor.Tensor) *tensor.Tensor {
	if v == nil {
		return nil
	}
	if t := onnx.ConstOf(v); t != nil {
		return t
	}
	if t := done[v]; t != nil {
		return t
	}
	o := v.Def()
	in := make([]*tensor.Tensor, o.NumOperands())
	for i := range in {
		in[i] = c.value(o.Operand(i), done)
	}
	out, err := Eval(o.Kind, o.Attrs, in, len(o.Results))
	if err != nil {
		c.fail("%v", err)
	}
	for i, r := range o.Results {
		if i < len(out) {
			done[r] = out[i]
		}
	}
	return done[v]
}
