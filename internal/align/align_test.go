package align

import (
	"slices"
	"testing"
)

func TestCommon(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want [][2]int
	}{
		{"", "x", nil},
		{"abc", "abc", [][2]int{{0, 0}, {1, 1}, {2, 2}}},
		{"axbyc", "abzc", [][2]int{{0, 0}, {2, 1}, {4, 3}}},
		{"ab", "ba", [][2]int{{1, 0}}},
	} {
		if got, ok := Common([]byte(tt.a), []byte(tt.b)); !ok || !slices.Equal(got, tt.want) {
			t.Errorf("%q, %q: %v, %v, want %v", tt.a, tt.b, got, ok, tt.want)
		}
	}
	long := make([]int, maxTable/1000)
	if _, ok := Common(long, make([]int, 1000)); ok {
		t.Error("a table beyond the bound is filled")
	}
}
