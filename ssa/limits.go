package ssa

import (
	"fmt"
	"strconv"
	"strings"
)

// LimitsKey is the entry of a module's metadata that bounds the sizes of its dynamic axes: "N>=2, M>=4".
const LimitsKey = "aton.symbols"

// Limit is what a module needs the size of a dynamic axis to be.
type Limit struct {
	Symbol string
	Min    int64
}

// String is the limit as the metadata has it.
func (l Limit) String() string { return l.Symbol + ">=" + strconv.FormatInt(l.Min, 10) }

// ParseLimits reads limits, separated by commas. Of several for one symbol the greatest holds. The order is that in which the
// symbols are first named.
func ParseLimits(text string) ([]Limit, error) {
	var out []Limit
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, number, ok := strings.Cut(part, ">=")
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%q is no bound of a size, such as N>=2", part)
		}
		out = withLimit(out, Limit{strings.TrimSpace(name), n})
	}
	return out, nil
}

func withLimit(ls []Limit, l Limit) []Limit {
	for i := range ls {
		if ls[i].Symbol == l.Symbol {
			ls[i].Min = max(ls[i].Min, l.Min)
			return ls
		}
	}
	return append(ls, l)
}

// AtLeast records that the module is right only where the size that the symbol stands for is n or more: in Limits, for the
// passes, and in the metadata, for the readers of the file.
func (m *Module) AtLeast(symbol string, n int64) {
	m.Limits = withLimit(m.Limits, Limit{symbol, n})
	parts := make([]string, len(m.Limits))
	for i, l := range m.Limits {
		parts[i] = l.String()
	}
	m.SetMetadata(LimitsKey, strings.Join(parts, ", "))
}
