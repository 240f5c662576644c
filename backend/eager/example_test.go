package eager_test

import (
	"fmt"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/ssa/tensor"
)

// A program runs as it is read: the row is a view of x, and what is added to it is seen in x.
func ExampleRun() {
	m, err := aton.LoadBytes([]byte(`graph(%x : Float(2, 2)):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %row : Tensor = aten::select(%x, %0, %1)
  %sum : Tensor = aten::add_(%row, %1, %1)
  return (%x)
`), "graph.ir", aton.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := tensor.FromFloats(tensor.Float32, []int64{2, 2}, []float64{1, 2, 3, 4})
	outputs, err := eager.Run(m, []eager.Named{{Name: "x", Tensor: x}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outputs[0].Name, outputs[0].Tensor.Float64s())
	// Output: output [1 2 4 5]
}
