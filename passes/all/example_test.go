package all_test

import (
	"fmt"

	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

// A pass runs alone, on text of either dialect.
func Example() {
	m, err := ssa.Parse(`graph(%x : Float(N, 4)):
  %y : Tensor = onnx::Relu(%x)
  return (%y)
`, "graph.ir", all.Dialects()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := all.Set.Parse("infer-types")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := p.Run(m, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(ssa.Print(m))
	// Output:
	// graph(%x : Float(N, 4)):
	//   %y : Float(N, 4) = onnx::Relu(%x)
	//   return (%y)
}

// What converts is asked for an opset.
func ExampleNewSupport() {
	s := all.NewSupport(nil, 9)
	fmt.Println(s.Of("aten::relu"))
	fmt.Println(s.Of("aten::max_pool2d_with_indices_backward"))
	// Output:
	// true  0
	// false needs opset 16 16
}
