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

// ParseLimits reads lists of limits, separated by commas. Of several for one symbol the greatest holds. The order is that
// in which the symbols are first named.
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

// AtLeast records in the metadata that the module is right only where the size that the symbol stands for is n or more.
func (m *Module) AtLeast(symbol string, n int64) {
	ls, err := ParseLimits(m.GetMetadata(LimitsKey))
	if err != nil { // somebody else's text
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
