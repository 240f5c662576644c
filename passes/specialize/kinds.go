package specialize

import (
	_ "embed"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// kindsText is what tools/opsdoc finds in the cases of this package.
//
//go:embed kinds.txt
var kindsText string

// Kinds lists the operators that the pass itself gives meaning to, in
// alphabetical order: those on containers, numbers, types and shapes.
func Kinds() []ssa.Kind {
	var out []ssa.Kind
	for _, k := range strings.Fields(kindsText) {
		out = append(out, ssa.Kind(k))
	}
	return out
}
