package onnxgen

import (
	"bytes"
	"os"
	"testing"
)

// TestDrift fails when schemas_gen.go is not what schemas.txt generates.
func TestDrift(t *testing.T) {
	text, err := os.ReadFile("../../dialects/onnx/schemas.txt")
	if err != nil {
		t.Fatal(err)
	}
	want, err := Generate(string(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../dialects/onnx/schemas_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("dialects/onnx/schemas_gen.go is out of date: go run ./tools/onnxgen/cmd/onnxgen")
	}
}
