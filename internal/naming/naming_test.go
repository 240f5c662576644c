package naming_test

import (
	"testing"

	"github.com/aton-project/aton/internal/naming"
	"github.com/aton-project/aton/ssa"
)

// TestFolded: names tell what was done to a weight, and a chain of operators has names of bounded length, each its own.
func TestFolded(t *testing.T) {
	if have := naming.Folded("fc.weight", "onnx::Transpose"); have != "fc.weight.transpose" {
		t.Error(have)
	}
	if have := naming.Folded("", "onnx::Transpose"); have != "" {
		t.Error(have)
	}
	names := ssa.NamesOf(ssa.NewModule().NewFunc("f"))
	seen := map[string]bool{}
	for name := "w"; len(seen) < 1000; {
		if name = names.Unique(naming.Folded(name, "onnx::Add")); seen[name] || len(name) > 220 {
			t.Fatalf("%q after %d names", name, len(seen))
		}
		seen[name] = true
	}
}
