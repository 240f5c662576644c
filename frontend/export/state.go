package export

import (
	"slices"
	"strings"
)

// stateOrder brings the names of a program's tensors into the order of a state dict: those of a module, its parameters before its
// buffers, before those of the modules in it. An archive lists all parameters and then all buffers; the order of the modules is
// that of their first parameters, and one without parameters stands behind the one whose buffers come before its own.
func stateOrder(names []string) []string {
	var own []string // of the module
	var children []string
	inner := map[string][]string{}
	last := ""
	for _, name := range names {
		child, rest, more := strings.Cut(name, ".")
		if !more {
			own = append(own, name)
			continue
		}
		if _, known := inner[child]; !known {
			at := len(children)
			if i := slices.Index(children, last); i >= 0 {
				at = i + 1
			}
			children = slices.Insert(children, at, child)
		}
		inner[child], last = append(inner[child], rest), child
	}
	for _, child := range children {
		for _, rest := range stateOrder(inner[child]) {
			own = append(own, child+"."+rest)
		}
	}
	return own
}
