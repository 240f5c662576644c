package legalize

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// variants express operators where their operands allow it.
var variants = map[ssa.Kind]expression{"onnx::MelWeightMatrix": melWeights}

// melWeights is a MelWeightMatrix of known operands: a constant.
func melWeights(_ *expander, b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	var in []*tensor.Tensor
	for _, v := range o.Operands() {
		t := onnx.ConstOf(v)
		if t == nil || !t.HasData() {
			unable("operands that only the run knows")
		}
		in = append(in, t)
	}
	out, err := kernel.Eval(o.Kind, o.Attrs, in, 1)
	if err != nil {
		unable(err.Error())
	}
	return []*ssa.Value{b.Const(out[0])}
}
