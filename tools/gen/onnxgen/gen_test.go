package onnxgen

import (
	"bytes"
	"os"
	"testing"
)

// TestDrift fails when a generated file is not what its source generates.
func TestDrift(t *testing.T) {
	for _, g := range []struct {
		from, to string
		generate func(string) ([]byte, error)
	}{
		{"schemas.txt", "schemas_gen.go", Generate},
		{"schemas.txt", "builder_gen.go", GenerateBuilder},
		{"ort_kernels.tsv", "ort_kernels_gen.go", GenerateKernels},
	} {
		text, err := os.ReadFile("../../../dialects/onnx/" + g.from)
		if err != nil {
			t.Fatal(err)
		}
		want, err := g.generate(string(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile("../../../dialects/onnx/" + g.to)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("dialects/onnx/%s is out of date: go run ./tools/gen/onnxgen/cmd/onnxgen", g.to)
		}
	}
}
