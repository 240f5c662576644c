package interp

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// Captured lists the values from outside that the blocks of an op use, each once, in the order of their first use.
func Captured(o *ssa.Op) []*ssa.Value {
	inside, seen := map[*ssa.Value]bool{}, map[*ssa.Value]bool{}
	var out []*ssa.Value
	use := func(v *ssa.Value) {
		if v != nil && !inside[v] && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	var walk func(b *ssa.Block)
	walk = func(b *ssa.Block) {
		for _, p := range b.Params {
			inside[p] = true
		}
		for p := range b.Ops() {
			for _, v := range p.Operands() {
				use(v)
			}
			for _, in := range p.Blocks {
				walk(in)
			}
			for _, r := range p.Results {
				inside[r] = true
			}
		}
		for _, v := range b.Returns() {
			use(v)
		}
	}
	for _, b := range o.Blocks {
		walk(b)
	}
	return out
}

// RunOp runs one op on its operands' values; captured gives the values of [Captured].
func (in *Interpreter) RunOp(o *ssa.Op, operands []Value, captured func(v *ssa.Value) Value) ([]Value, error) {
	f := o.Block().Func()
	opset := onnx.DefaultOpset(f.Module())
	if opset == 0 {
		opset = onnx.Newest
	}
	r := &run{Interpreter: in, m: f.Module(), opset: opset, drawn: in.draws()}
	if len(o.Blocks) > 0 {
		r.values = make([]Value, f.NumValues())
		for _, v := range Captured(o) {
			r.values[v.ID] = captured(v)
		}
	}
	out, err := r.op(o, operands)
	if err != nil {
		return nil, r.at(o, err)
	}
	return out, nil
}
