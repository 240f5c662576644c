package interp_test

import (
	"fmt"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// A graph of ONNX operators on numbers.
func ExampleRun() {
	m, err := ssa.Parse(`graph(%x : Float(2, 3), %w : Float(3)):
  %p : Float(2, 3) = onnx::Mul(%x, %w)
  %y : Float(2, 3) = onnx::Relu(%p)
  return (%y)
`, "example", onnx.Dialect{})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := interp.Run(m, map[string]interp.Value{
		"x": interp.Of(tensor.Of(tensor.Float32, []int64{2, 3}, []float32{1, -2, 3, -4, 5, -6})),
		"w": interp.Of(tensor.Of(tensor.Float32, []int64{3}, []float32{1, 10, 100})),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	y := out[0].Tensor
	fmt.Println(y.DType, y.Shape, tensor.Data[float32](y))
	// Output:
	// Float [2 3] [1 0 300 0 50 0]
}
