package legalize

import (
	"slices"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
)

// TestEveryChangeHasAStep walks the versions: where an attribute became an
// input there is a step back.
func TestEveryChangeHasAStep(t *testing.T) {
	for _, name := range onnx.Names() {
		vs := onnx.Versions(name)
		if vs[0].Domain != "onnx" || vs[len(vs)-1].Deprecated {
			continue
		}
		for i := 1; i < len(vs); i++ {
			before, now := &vs[i-1], &vs[i]
			if now.Since <= 7 || before.Deprecated {
				continue
			}
			for _, a := range before.Attrs {
				if now.Attr(a.Name) != nil || a.Type == onnx.AttrGraph || a.Name == "spatial" || a.Name == "momentum" {
					continue
				}
				if !slices.ContainsFunc(onnx.Steps(name), func(s onnx.Step) bool { return s.Opset == now.Since }) {
					t.Errorf("%s-%d lost the attribute %s, and has no step", name, now.Since, a.Name)
				}
			}
			for k, p := range before.Inputs {
				if k >= len(now.Inputs) || p.Option == onnx.Single && now.Inputs[k].Option == onnx.Optional {
					if !slices.ContainsFunc(onnx.Steps(name), func(s onnx.Step) bool { return s.Opset == now.Since }) {
						t.Errorf("%s-%d does not need the input %s, and has no step", name, now.Since, p.Name)
					}
				}
			}
		}
	}
}

// TestStepsDescend checks the order of the table.
func TestStepsDescend(t *testing.T) {
	for _, name := range onnx.Names() {
		steps := onnx.Steps(name)
		for i := range steps {
			if i > 0 && steps[i].Opset > steps[i-1].Opset {
				t.Errorf("%s: step %d comes after step %d", name, steps[i].Opset, steps[i-1].Opset)
			}
		}
	}
}
