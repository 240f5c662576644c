package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// fusedKinds are the parts of transformers that an operator each came for.
var fusedKinds = []ssa.Kind{"onnx::Attention", "onnx::RMSNormalization", "onnx::RotaryEmbedding"}

// fusingOpset is the first opset that has all of them.
var fusingOpset = func() (opset int) {
	for _, k := range fusedKinds {
		opset = max(opset, onnx.Versions(k.Name())[0].Since)
	}
	return opset
}()

// newer is what a file would be at a newer opset.
type newer struct {
	Opset     int            `json:"opset"`
	Operators map[string]int `json:"operators"`
}

// atNewer converts a file that was written to the first opset with the operators of transformers; nil if the file has that opset or would have none of
// them there.
func (m *model) atNewer(written exported) *newer {
	if written.Opsets[""] >= fusingOpset || len(m.opts.OnlyOps) > 0 || written.Operators["onnx::Softmax"]+written.Operators["onnx::ReduceMean"] == 0 {
		return nil
	}
	mod, err := aton.Load(written.Output, aton.LoadOptions{})
	if err != nil {
		return nil
	}
	o := aton.ConvertOptions{Opset: fusingOpset, Target: m.opts.Target}
	if _, err := aton.Convert(mod, o); err != nil {
		return nil
	}
	n := &newer{fusingOpset, operatorsOf(mod)}
	fused := slices.ContainsFunc(fusedKinds, func(k ssa.Kind) bool { return n.Operators[string(k)] > written.Operators[string(k)] })
	if !fused || count(n.Operators) >= count(written.Operators) {
		return nil
	}
	return n
}

// note says what the file would be at the newer opset.
func (n *newer) note(written exported) diag.Diagnostic {
	var names []string
	for _, k := range fusedKinds {
		if n.Operators[string(k)] > 0 {
			names = append(names, k.Name())
		}
	}
	return diag.Diagnostic{Severity: diag.Note, ID: "newer-opset", Opset: n.Opset,
		Message: fmt.Sprintf("at opset %d the file would have %d instead of %d operators, by %s", n.Opset, count(n.Operators), count(written.Operators), strings.Join(names, ", ")),
		Hint:    fmt.Sprintf("export with --opset %d if the runtime has it", n.Opset)}
}

// count is the number of operators without constants.
func count(operators map[string]int) int {
	n := 0
	for kind, k := range operators {
		if kind != "onnx::Constant" {
			n += k
		}
	}
	return n
}

// operatorsOf counts the operators of a model by kind.
func operatorsOf(m *ssa.Module) map[string]int {
	n := map[string]int{}
	if f := m.Main(); f != nil {
		for o := range f.Body.AllOps() {
			n[string(o.Kind)]++
		}
	}
	return n
}
