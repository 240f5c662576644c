package passes

import (
	"maps"
	"slices"
	"testing"
)

// TestLists: what is joined is read again, whatever the names hold, and what cannot be read is an error.
func TestLists(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"a", "b c"}, {"", "a,b", `"`, "x=y", ""}, {"\n"}} {
		if got, err := SplitList(JoinList(names)); err != nil || !slices.Equal(got, names) {
			t.Errorf("%q: %q, %v", names, got, err)
		}
	}
	for _, pairs := range []map[string]string{{}, {"a": "b"}, {"a=b": "c,d", "": `"`, "x": ""}} {
		if got, err := SplitPairs(JoinPairs(pairs)); err != nil || !maps.Equal(got, pairs) {
			t.Errorf("%q: %q, %v", pairs, got, err)
		}
	}
	for _, text := range []string{`"a`, `a,`, `"a"b`} {
		if got, err := SplitList(text); err == nil {
			t.Errorf("%q is read as %q", text, got)
		}
	}
	for _, text := range []string{`a`, `a=b,a=c`, `a="b`} {
		if got, err := SplitPairs(text); err == nil {
			t.Errorf("%q is read as %q", text, got)
		}
	}
}
