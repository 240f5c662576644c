package legalize_test

import (
	"fmt"
	"os"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/legalize"
	"github.com/aton-project/aton/ssa"
)

// The axes of ReduceMean are an operand today; until opset 17 they were an attribute.
func Example() {
	m, err := ssa.Parse(`graph(%x : Float(2, 3)):
  %axes : Long(1) = onnx::Constant[value={1}]()
  %y : Float(2, 1) = onnx::ReduceMean(%x, %axes)
  return (%y)
`, "example", onnx.Dialect{})
	if err != nil {
		fmt.Println(err)
		return
	}
	set := passes.Set{Passes: []*passes.Pass{&legalize.Pass}}
	p, err := set.Parse("legalize{opset=13}")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := p.Run(m, nil); err != nil {
		fmt.Println(err)
		return
	}
	_ = ssa.Fprint(os.Stdout, m, ssa.PrintOptions{NoLocs: true})
	// Output:
	// graph(%x : Float(2, 3)):
	//   %y : Float(2, 1) = onnx::ReduceMean[axes=[1]](%x)
	//   return (%y)
}
