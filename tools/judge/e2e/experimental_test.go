package e2e

import (
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa/tensor"
)

// TestExperimental reads files with operators that ONNX had as experimental ones: they are written in operators of the standard, with the same numbers, and one
// without an attribute that it needs is refused.
func TestExperimental(t *testing.T) {
	float := func(name string, v float32) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_FLOAT.Enum(), F: proto.Float32(v)}
	}
	ints := func(name string, v ...int64) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: proto.String(name), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: v}
	}
	bias := &onnxpb.AttributeProto{Name: proto.String("bias"), Type: onnxpb.AttributeProto_FLOATS.Enum(), Floats: []float32{1, -2}}
	each := func(f func(x float64) float64) func(i, j, k int, x []float64) float64 {
		return func(i, j, k int, x []float64) float64 { return f(x[(i*3+j)*4+k]) }
	}
	for _, c := range []struct {
		op            string
		attrs         []*onnxpb.AttributeProto
		height, width int
		want          func(i, j, k int, x []float64) float64
	}{
		{"Affine", []*onnxpb.AttributeProto{float("alpha", 2), float("beta", 0.5)}, 3, 4, each(func(x float64) float64 { return 2*x + 0.5 })},
		{"Affine", nil, 3, 4, each(func(x float64) float64 { return x })},
		{"Scale", []*onnxpb.AttributeProto{float("scale", 3)}, 3, 4, each(func(x float64) float64 { return 3 * x })},
		{"ScaledTanh", []*onnxpb.AttributeProto{float("alpha", 2), float("beta", 0.5)}, 3, 4, each(func(x float64) float64 { return 2 * math.Tanh(x/2) })},
		{"ScaledTanh", nil, 0, 0, nil},
		{"ParametricSoftplus", []*onnxpb.AttributeProto{float("alpha", 2), float("beta", 0.5)}, 3, 4, each(func(x float64) float64 { return 2 * math.Log1p(math.Exp(x/2)) })},
		{"ImageScaler", []*onnxpb.AttributeProto{float("scale", 0.5), bias}, 3, 4, func(i, j, k int, x []float64) float64 { return x[(i*3+j)*4+k]/2 + float64(1-3*i) }},
		{"Crop", []*onnxpb.AttributeProto{ints("border", 1, 0, 2, 1)}, 2, 1, func(i, j, k int, x []float64) float64 { return x[(i*3+j)*4+k+1] }},
		{"Crop", []*onnxpb.AttributeProto{ints("border", 1, 1, 0, 0)}, 2, 3, func(i, j, k int, x []float64) float64 { return x[(i*3+j+1)*4+k+1] }},
		{"Crop", []*onnxpb.AttributeProto{ints("border", 1, 1, 0, 0), ints("scale", 1, 2)}, 1, 2, func(i, j, k int, x []float64) float64 { return x[(i*3+j+1)*4+k+1] }},
		{"Crop", []*onnxpb.AttributeProto{ints("border", 1)}, 0, 0, nil},
		{"GivenTensorFill", nil, 0, 0, nil},
	} {
		for _, opset := range []int64{5, 7, 13} {
			value := func(name string, sizes ...int64) *onnxpb.ValueInfoProto {
				shape := &onnxpb.TensorShapeProto{}
				for _, n := range sizes {
					shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: n}})
				}
				typ := &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: shape}
				return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: typ}}}
			}
			p := &onnxpb.ModelProto{IrVersion: proto.Int64(3), OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(opset)}}, Graph: &onnxpb.GraphProto{
				Name: proto.String("g"), Input: []*onnxpb.ValueInfoProto{value("x", 1, 2, 3, 4)}, Output: []*onnxpb.ValueInfoProto{value("y", 1, 2, int64(c.height), int64(c.width))},
				Node: []*onnxpb.NodeProto{{OpType: proto.String(c.op), Input: []string{"x"}, Output: []string{"y"}, Attribute: c.attrs}},
			}}
			file, err := proto.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			m, err := aton.LoadBytes(file, "model.onnx", aton.LoadOptions{})
			if c.want == nil {
				if err == nil {
					t.Errorf("%s at opset %d is read", c.op, opset)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s at opset %d: %v", c.op, opset, err)
				continue
			}
			x := make([]float64, 24)
			for i := range x {
				x[i] = float64(i*i%11)/4 - 1
			}
			in := map[string]interp.Value{"x": interp.Of(tensor.FromFloats(tensor.Float32, []int64{1, 2, 3, 4}, x))}
			y := run(t, parsed(t, written(t, m, converting(aton.ConvertOptions{Opset: 17}))), in)[0].Tensor
			if got := fmt.Sprint(y.Shape); got != fmt.Sprint([]int{1, 2, c.height, c.width}) {
				t.Errorf("%s at opset %d gives the shape %s", c.op, opset, got)
				continue
			}
			got := y.Float64s()
			for n := range got {
				i, j, k := n/c.width/c.height, n/c.width%c.height, n%c.width
				if want := c.want(i, j, k, x); math.Abs(got[n]-want) > 1e-6 {
					t.Errorf("%s at opset %d: element %d is %g, not %g", c.op, opset, n, got[n], want)
				}
			}
		}
	}
}
