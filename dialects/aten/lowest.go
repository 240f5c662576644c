package aten

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa"
)

// lowestText is made by tools/lowest: what legalize can do at an opset is seen by trying.
//
//go:embed lowest.tsv
var lowestText string

var lowest = sync.OnceValue(func() map[ssa.Kind]int {
	out := map[ssa.Kind]int{}
	for line := range strings.Lines(lowestText) {
		kind, opset, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if n, err := strconv.Atoi(opset); ok && err == nil {
			out[ssa.Kind(kind)] = n
		}
	}
	return out
})

// LowestOpset returns the lowest opset at which a built-in operator was seen to convert, 0 where that is the oldest or is
// not known.
func LowestOpset(k ssa.Kind) int { return lowest()[k] }
