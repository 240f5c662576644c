package cmd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An opset that a hint names converts the whole model: nonzero is there from opset 9 on, unique elements from 11 on.
func TestOpsetHints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "g.ir")
	text := `graph(%x : Float(N, 3)):
  %t : bool = prim::Constant[value=1]()
  %f : bool = prim::Constant[value=0]()
  %a : Tensor = aten::nonzero(%x)
  %b : Tensor, %c : Tensor, %d : Tensor = aten::_unique2(%x, %t, %f, %f)
  return (%a, %b)
`
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"check", "export"} {
		args := []string{command, file, "--opset", "7"}
		if command == "export" {
			args = append(args, "-o", filepath.Join(t.TempDir(), "o.onnx"))
		}
		status, _, said := call("", args...)
		if status != 1 || !strings.Contains(inOneLine(said), "onnx::NonZero: the operator needs opset 9; export with --opset 11") || strings.Contains(said, "--opset 9") {
			t.Errorf("%s: status %d: %s", command, status, said)
		}
	}
}
