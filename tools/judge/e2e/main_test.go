// Package e2e has the tests of whole conversions, from a model's file to an ONNX file and its numbers.
package e2e

import (
	"fmt"
	"os"
	"testing"
)

// TestMain runs the tests in the root of the repository, where the models are.
func TestMain(m *testing.M) {
	if err := os.Chdir("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}
