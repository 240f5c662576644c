package onnxfile

import (
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
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

// nodeName is the name that the node had in the file that it comes from, or else /scope/OpType.
func nodeName(f diag.Frame, k ssa.Kind) string {
	switch {
	case f.Node > 0 && f.Func != "":
		return f.Func
	case f.Scope == "":
		return "/" + k.Name()
	}
	return "/" + strings.ReplaceAll(f.Scope, ".", "/") + "/" + k.Name()
}
