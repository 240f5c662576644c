package passes

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// followsFromTypes has the identifiers of problems that an input of unknown type can cause.
var followsFromTypes = []string{"unknown-shape", "unknown-dtype", "dynamic-container", "dynamic-rank", "dynamic-axis", "loop-carried", "unsupported-args"}

// AskForTypes adds to the hints of problems the inputs of the main function that have no type, if these may be the cause: a
// scripted model does not state the types of its inputs.
func AskForTypes(m *ssa.Module, problems []diag.Diagnostic) {
	var asked []string
	for _, p := range m.Main().Body.Params {
		name := ssa.BareName(p.Name)
		if slices.ContainsFunc(m.Inputs, func(in ssa.Input) bool { return in.Name == name }) {
			continue
		}
		form, t := "f32[N,3,224,224]", p.Type
		if l, ok := t.(*ssa.ListType); ok {
			form, t = "[f32[3,H,W]]", l.Elem
		}
		if x := ssa.AsTensor(t); x != nil && !x.Ranked {
			asked = append(asked, fmt.Sprintf("--input '%s:%s'", name, form))
		}
	}
	if len(asked) == 0 {
		return
	}
	for i, d := range problems {
		if slices.Contains(followsFromTypes, d.ID) && (d.Hint == "" || strings.HasPrefix(d.Hint, "give the inputs'")) {
			problems[i].Hint = "give the inputs' types, such as " + strings.Join(asked, " ")
		}
	}
}
