package onnxfile

import (
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// names hands out names that are unique over the graph and its subgraphs.
type names struct {
	used map[string]int // how many times a name was asked for
}

// unique gives the name itself the first time and name_1, name_2, ... later.
func (n *names) unique(name string) string {
	k, taken := n.used[name]
	if !taken {
		n.used[name] = 0
		return name
	}
	for {
		k++
		c := name + "_" + strconv.Itoa(k)
		if _, taken := n.used[c]; !taken {
			n.used[name], n.used[c] = k, 0
			return c
		}
	}
}

// nodeName is /scope/OpType.
func nodeName(scope string, k ssa.Kind) string {
	if scope == "" {
		return "/" + k.Name()
	}
	return "/" + strings.ReplaceAll(scope, ".", "/") + "/" + k.Name()
}
