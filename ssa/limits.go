package ssa

import (
	"fmt"
	"strconv"
	"strings"
)

// LimitsKey is the metadata key of the bounds of dynamic axes: "N>=2, M>=4".
const LimitsKey = "aton.symbols"

// Limit is a lower bound of the size of a dynamic axis.
type Limit struct {
	Symbol string
	Min    int64
}

// String returns the limit as it is written in the metadata.
func (l Limit) String() string { return l.Symbol + ">=" + strconv.FormatInt(l.Min, 10) }

// ParseLimits reads comma-separated lists of limits. If a symbol has several, the greatest counts. The result is in the order
// in which the symbols first occur.
func ParseLimits(texts ...string) ([]Limit, error) {
	var out []Limit
	for _, text := range texts {
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

// AtLeast records in the metadata that the module is correct only if the symbol is at least n.
func (m *Module) AtLeast(symbol string, n int64) {
	ls, err := ParseLimits(m.GetMetadata(LimitsKey))
	if err != nil { // metadata that aton did not write
		ls = nil
	}
	ls = withLimit(ls, Limit{symbol, n})
	parts := make([]string, len(ls))
	for i, l := range ls {
		parts[i] = l.String()
	}
	text := strings.Join(parts, ", ")
	m.Guarded = m.Guarded && text == m.GetMetadata(LimitsKey)
	m.SetMetadata(LimitsKey, text)
}
