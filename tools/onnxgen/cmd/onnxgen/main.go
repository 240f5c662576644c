// The onnxgen command writes dialects/onnx/schemas_gen.go. Run it in the root of the repository.
package main

import (
	"fmt"
	"os"

	"github.com/aton-project/aton/tools/onnxgen"
)

func main() {
	text, err := os.ReadFile("dialects/onnx/schemas.txt")
	if err == nil {
		var src []byte
		if src, err = onnxgen.Generate(string(text)); err == nil {
			err = os.WriteFile("dialects/onnx/schemas_gen.go", src, 0o644)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "onnxgen:", err)
		os.Exit(1)
	}
}
