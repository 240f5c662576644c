package interp

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// modern brings an op of an older opset to the newest encoding: attributes
// that have become inputs, operators that have other names.
func modern(opset int, o *ssa.Op, in []*tensor.Tensor) (ssa.Kind, []ssa.Attr, []*tensor.Tensor, error) {
	kind, attrs := o.Kind, slices.Clone(o.Attrs)
	take := func(name string) (ssa.Literal, bool) {
		for i, a := range attrs {
			if a.Name == name {
				attrs = slices.Delete(attrs, i, i+1)
				return a.Value, true
			}
		}
		return ssa.None, false
	}
	set := func(name string, v ssa.Literal) {
		for _, a := range attrs {
			if a.Name == name {
				return
			}
		}
		attrs = append(attrs, ssa.Attr{Name: name, Value: v})
	}
	// input makes an attribute the input at a position, unless that is there.
	input := func(i int, name string, make func(ssa.Literal) *tensor.Tensor) {
		if l, ok := take(name); ok {
			for len(in) <= i {
				in = append(in, nil)
			}
			if in[i] == nil {
				in[i] = make(l)
			}
		}
	}
	ints := func(l ssa.Literal) *tensor.Tensor { v, _ := l.IntList(); return tensor.Ints(v...) }
	float := func(l ssa.Literal) *tensor.Tensor {
		return tensor.FromFloats(in[0].DType, []int64{}, []float64{l.Float()})
	}
	if len(in) == 0 || in[0] == nil {
		return kind, attrs, in, nil
	}
	switch name := kind.Name(); name {
	case "Squeeze", "Unsqueeze", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare":
		input(1, "axes", ints)
	case "Split":
		input(1, "split", ints)
		if _, ok := o.Attr("num_outputs"); !ok && (len(in) < 2 || in[1] == nil) {
			set("num_outputs", ssa.Int(int64(len(o.Results))))
		}
	case "Slice":
		input(1, "starts", ints)
		input(2, "ends", ints)
		input(3, "axes", ints)
	case "TopK":
		input(1, "k", func(l ssa.Literal) *tensor.Tensor { return tensor.Ints(l.Int()) })
	case "Clip":
		input(1, "min", float)
		input(2, "max", float)
	case "Pad":
		input(1, "pads", ints)
		if opset < 11 {
			input(2, "value", float)
		}
	case "Tile":
		if opset < 6 {
			return kind, nil, nil, fmt.Errorf("Tile of opset 1 is not supported")
		}
	case "Reshape":
		input(1, "shape", ints)
	case "DFT":
		if opset < 20 {
			axis := int64(1)
			if l, ok := take("axis"); ok {
				axis = l.Int()
			}
			for len(in) < 2 {
				in = append(in, nil)
			}
			in = append(in[:2], tensor.ScalarInt(axis))
		}
	case "Upsample", "Resize":
		return modernResize(opset, kind, attrs, in, take, set)
	case "Scatter":
		kind = "onnx::ScatterElements"
	case "Softmax", "LogSoftmax", "Hardmax":
		if opset < 13 {
			return flatSoftmax(kind, attrs, in)
		}
	case "BatchNormalization":
		take("spatial")
		take("consumed_inputs")
		take("is_test")
	case "GridSample":
		if l, ok := take("mode"); ok {
			switch m := l.Str(); m {
			case "bilinear":
				l = ssa.Str("linear")
			case "bicubic":
				l = ssa.Str("cubic")
			}
			set("mode", l)
		}
	case "GroupNormalization":
		if opset < 21 && len(in) == 3 && in[1] != nil && in[2] != nil && len(in[0].Shape) > 1 {
			for i := 1; i < 3; i++ { // one scale a group becomes one a channel
				per := in[0].Shape[1] / max(in[i].NumElements(), 1)
				t, err := repeat(in[i], per)
				if err != nil {
					return kind, nil, nil, err
				}
				in[i] = t
			}
		}
	case "RoiAlign":
		if opset < 16 {
			set("coordinate_transformation_mode", ssa.Str("output_half_pixel"))
		}
	case "MaxPool", "AveragePool", "LpPool", "Conv", "ConvTranspose", "GlobalLpPool":
		if l, ok := o.Attr("p"); ok && l.Kind == ssa.FloatLit {
			take("p")
			set("p", ssa.Int(int64(l.Float())))
		}
	case "LSTM", "GRU", "RNN", "Add", "Sub", "Mul", "Div":
		take("consumed_inputs")
		if l, ok := o.Attr("broadcast"); ok && l.Int() != 0 {
			return kind, nil, nil, fmt.Errorf("broadcasting of opset 6 is not supported")
		}
	}
	return kind, attrs, in, nil
}

func modernResize(opset int, kind ssa.Kind, attrs []ssa.Attr, in []*tensor.Tensor, take func(string) (ssa.Literal, bool), set func(string, ssa.Literal)) (ssa.Kind, []ssa.Attr, []*tensor.Tensor, error) {
	if kind == "onnx::Upsample" || opset < 11 {
		// Up to opset 10: scales right after the data, coordinates x/scale, nearest rounds down.
		mode, _ := take("mode")
		scales := (*tensor.Tensor)(nil)
		if l, ok := take("scales"); ok {
			v, _ := l.FloatList()
			scales = tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v)
		} else if len(in) > 1 {
			scales = in[1]
		}
		out := []ssa.Attr{{Name: "coordinate_transformation_mode", Value: ssa.Str("asymmetric")}, {Name: "nearest_mode", Value: ssa.Str("floor")}}
		if m := mode.Str(); m != "" {
			if m == "bilinear" {
				m = "linear"
			}
			out = append(out, ssa.Attr{Name: "mode", Value: ssa.Str(m)})
		}
		return "onnx::Resize", out, []*tensor.Tensor{in[0], nil, scales}, nil
	}
	for i := 1; i < len(in) && opset < 13; i++ { // empty tensors stood for absent inputs
		if in[i] != nil && in[i].NumElements() == 0 {
			in[i] = nil
		}
	}
	if len(in) > 3 && in[3] != nil && in[2] != nil && in[2].NumElements() == 0 {
		in[2] = nil
	}
	return kind, attrs, in, nil
}

// flatSoftmax is Softmax below opset 13: over all axes from axis on, taken as one.
func flatSoftmax(kind ssa.Kind, attrs []ssa.Attr, in []*tensor.Tensor) (ssa.Kind, []ssa.Attr, []*tensor.Tensor, error) {
	axis := int64(1)
	for _, a := range attrs {
		if a.Name == "axis" {
			axis = a.Value.Int()
		}
	}
	x := in[0]
	flat, err := kernel.Eval("onnx::Flatten", []ssa.Attr{{Name: "axis", Value: ssa.Int(axis)}}, []*tensor.Tensor{x}, 1)
	if err != nil {
		return kind, nil, nil, err
	}
	y, err := kernel.Eval(kind, []ssa.Attr{{Name: "axis", Value: ssa.Int(1)}}, flat, 1)
	if err != nil {
		return kind, nil, nil, err
	}
	return "onnx::Identity", nil, []*tensor.Tensor{y[0].Reshape(x.Shape)}, nil
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
