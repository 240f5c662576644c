package surgery_test

import (
	"fmt"

	"github.com/aton-project/aton/backend/surgery"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

const net = `module {
  opsets = {"" : 17}
  outputs = {"net" : ["y"]}
}
graph @net(%x : Float(N, 2)):
  %h : Float(N, 2) = onnx::Exp(%x)
  %y : Float(N, 2) = onnx::Relu(%h)
  return (%y)
`

func ExampleCut() {
	m, err := ssa.Parse(net, "net.ir", all.Dialects()...)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := surgery.Cut(m, []string{"h"}, nil); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Main())
	// Output:
	// graph @net(%h : Float(N, 2)):
	//   %y : Float(N, 2) = onnx::Relu(%h)
	//   return (%y)
}

func ExampleJoin() {
	var models []*ssa.Module
	for range 2 {
		m, err := ssa.Parse(net, "net.ir", all.Dialects()...)
		if err != nil {
			fmt.Println(err)
			return
		}
		models = append(models, m)
	}
	if err := surgery.Join(models[0], models[1], map[string]string{"x": "y"}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(models[0].Main())
	// Output:
	// graph @net(%x : Float(N, 2)):
	//   %h : Float(N, 2) = onnx::Exp(%x)
	//   %y_2 : Float(N, 2) = onnx::Relu(%h)
	//   %h_2 : Float(N, 2) = onnx::Exp(%y_2)
	//   %y : Float(N, 2) = onnx::Relu(%h_2)
	//   return (%y)
}
