// Package naming has the names of values that several passes make.
package naming

import (
	"strings"

	"github.com/aton-project/aton/ssa"
)

// Folded is the name of what an operator computes of a weight: the weight's, and the operator's, as in
// fc.weight.transpose. That of a constant without a name is empty, for it is no weight. Names do not grow without end, so that
// a long chain of operators costs no more than its length.
func Folded(weight string, kind ssa.Kind) string {
	switch {
	case weight == "":
		return ""
	case len(weight) > longestFolded:
		return strings.ToValidUTF8(weight[:longestFolded], "")
	}
	return weight + "." + strings.ToLower(kind.Name())
}

// longestFolded is the length in bytes up to which names of folded weights get longer.
const longestFolded = 200
