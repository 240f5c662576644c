package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/fuse"
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

// TestRanks plans operators whose operands have a rank that the operator is not for: they are the host's, which says what is wrong.
func TestRanks(t *testing.T) {
	for _, text := range []string{
		`graph(%x : Float(1, 3, 3), %w : Float(1, 9, 3), %b : Float()):
  %y : Float(1, 1, 3, 3), %h : Float(1, 3, 3) = onnx::GRU[hidden_size=3](%x, %w, %w, %b)
  return (%h)`,
		`graph(%x : Float(1, 3, 8, 8), %r : Float(4), %i : Long(1)):
  %y : Float(4, 3, 1, 1) = onnx::RoiAlign(%x, %r, %i)
  return (%y)`,
		`graph(%b : Float(6, 4), %s : Float(1, 2, 6), %n : Long(1)):
  %y : Long(K, 3) = onnx::NonMaxSuppression(%b, %s, %n)
  return (%y)`,
		`graph(%x : Float(3, 8), %g : Float(1, 2)):
  %y : Float(3, 8) = onnx::GridSample(%x, %g)
  return (%y)`,
	} {
		m, err := ssa.Parse(text, "test", onnx.Dialect{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.New(m, fuse.Light)
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		if counts, _ := p.Coverage(); counts[plan.Host] != 1 {
			t.Errorf("%s\n%v", text, counts)
		}
	}
}
