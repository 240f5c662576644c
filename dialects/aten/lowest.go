package aten

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa"
)

// lowestText is made by tools/gen/lowest: what legalize can do at an opset is seen by trying.
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

// LowestOpset returns the lowest opset at which an operator that is built in was seen to convert. It is 0 where that is the
// oldest, and where a definition of the user's holds at the given opset, of which nothing was seen.
func (t *Table) LowestOpset(k ssa.Kind, opset int) int {
	if list := t.custom[k]; len(list) > 0 && list[0].Since <= opset {
		return 0
	}
	return lowest()[k]
}
