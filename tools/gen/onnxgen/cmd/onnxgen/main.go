// The onnxgen command writes the generated files of dialects/onnx. Run it in the root of the repository.
package main

import (
	"fmt"
	"os"

	"github.com/aton-project/aton/tools/gen/onnxgen"
)

func main() {
	for _, g := range []struct {
		from, to string
		generate func(string) ([]byte, error)
	}{
		{"dialects/onnx/schemas.txt", "dialects/onnx/schemas_gen.go", onnxgen.Generate},
		{"dialects/onnx/schemas.txt", "dialects/onnx/builder_gen.go", onnxgen.GenerateBuilder},
		{"dialects/onnx/ort_kernels.tsv", "dialects/onnx/ort_kernels_gen.go", onnxgen.GenerateKernels},
	} {
		text, err := os.ReadFile(g.from)
		if err == nil {
			var src []byte
			if src, err = g.generate(string(text)); err == nil {
				err = os.WriteFile(g.to, src, 0o644)
			}
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "onnxgen:", err)
			os.Exit(1)
		}
	}
}
