package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
)

// TestRows insists that nothing is missing of an operator, or that its row says why, and that no row excuses what is there.
func TestRows(t *testing.T) {
	for _, name := range onnx.Names() {
		k := ssa.Kind("onnx::" + name)
		if strings.Contains(name, "::") || onnx.SchemaOf(k) == nil {
			continue
		}
		gap := onnx.Gaps(k)
		check := func(what, why string, there bool) {
			if there && why != "" {
				t.Errorf("%s has %s, though its row says that it has none: %s", name, what, why)
			} else if !there && why == "" {
				t.Errorf("%s has no %s, and its row does not say why", name, what)
			}
		}
		check("kernel", gap.Kernel, kernel.Supported(k))
		check("way to run on a GPU", gap.GPU, plan.Runs(k))
		check("step down from the opset that brought it", gap.Step, !came(name) || expressed(name))
	}
}

// came reports an operator that the oldest opset that models are written for does not have.
func came(name string) bool {
	const oldest = 7
	return onnx.Lookup(name, oldest) == nil && !onnx.Versions(name)[0].Deprecated
}

// expressed reports an operator that others express before it came. What had another meaning before an opset counts from
// that one on.
func expressed(name string) bool {
	first := onnx.Versions(name)[0].Since
	return slices.ContainsFunc(onnx.Steps(name), func(s onnx.Step) bool { return s.Opset == first }) ||
		name == "GroupNormalization" // which opset 21 gave another meaning
}
