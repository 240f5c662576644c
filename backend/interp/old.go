package interp

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// modern brings an op of an older opset to the newest encoding, for which the kernels are.
func modern(opset int, o *ssa.Op, in []*tensor.Tensor) (ssa.Kind, []ssa.Attr, []*tensor.Tensor, error) {
	if opset >= onnx.Newest || len(in) == 0 || in[0] == nil {
		return o.Kind, o.Attrs, in, nil
	}
	m, err := onnx.Modern(opset, o, func(i int) bool { return in[i] != nil }, in[0].DType)
	if err != nil {
		return o.Kind, nil, nil, err
	}
	args := make([]*tensor.Tensor, len(m.Inputs))
	for i, p := range m.Inputs {
		if args[i] = p.Const; p.Index >= 0 {
			args[i] = in[p.Index]
		}
	}
	if m.PerGroup && len(args) == 3 && len(args[0].Shape) > 1 {
		for i := 1; i < 3; i++ {
			if args[i], err = repeat(args[i], args[0].Shape[1]/max(args[i].NumElements(), 1)); err != nil {
				return m.Kind, nil, nil, err
			}
		}
	}
	if m.FlatAxis != nil {
		x := args[0]
		flat, err := kernel.Eval("onnx::Flatten", []ssa.Attr{{Name: "axis", Value: ssa.Int(*m.FlatAxis)}}, args, 1)
		if err != nil {
			return m.Kind, nil, nil, err
		}
		y, err := kernel.Eval(m.Kind, []ssa.Attr{{Name: "axis", Value: ssa.Int(1)}}, flat, 1)
		if err != nil {
			return m.Kind, nil, nil, err
		}
		return "onnx::Identity", nil, []*tensor.Tensor{y[0].Reshape(x.Shape)}, nil
	}
	return m.Kind, m.Attrs, args, nil
}

// repeat repeats each element of a vector n times.
func repeat(t *tensor.Tensor, n int64) (*tensor.Tensor, error) {
	size := t.NumElements()
	out, err := kernel.Eval("onnx::Expand", nil, []*tensor.Tensor{t.Reshape([]int64{size, 1}), tensor.Ints(size, n)}, 1)
	if err != nil {
		return nil, err
	}
	return out[0].Reshape([]int64{size * n}), nil
}
