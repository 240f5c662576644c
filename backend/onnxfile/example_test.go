package onnxfile_test

import (
	"bytes"
	"fmt"
	"os"

	"github.com/aton-project/aton/backend/onnxfile"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// A module goes to a file and comes back.
func Example() {
	m, err := ssa.Parse(`graph(%x : Float(N, 3)):
  %y : Float(N, 3) = onnx::Elu[alpha=0.5](%x)
  return (%y)
`, "example", onnx.Dialect{})
	if err != nil {
		fmt.Println(err)
		return
	}
	onnx.SetOpset(m, 20)
	m.Main().OutputNames = []string{"result"}
	var file bytes.Buffer
	if err := onnxfile.WriteTo(&file, m, onnxfile.Options{}); err != nil {
		fmt.Println(err)
		return
	}
	back, err := onnxfile.Parse(file.Bytes())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("opset", onnx.DefaultOpset(back))
	_ = ssa.Fprint(os.Stdout, back, ssa.PrintOptions{NoLocs: true})
	// Output:
	// opset 20
	// graph @main_graph(%x : Float(N, 3)):
	//   %result : Float(N, 3) = onnx::Elu[alpha=0.5](%x)
	//   return (%result)
}
