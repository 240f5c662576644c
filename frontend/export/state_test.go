package export

import (
	"slices"
	"strings"
	"testing"
)

func TestStateOrder(t *testing.T) {
	for _, c := range []struct{ archive, want string }{
		{"z b.scale b.lin.weight b.lin.bias b.bn.weight a.weight off b.idx b.bn.mean a.seen", "z off b.scale b.idx b.lin.weight b.lin.bias b.bn.weight b.bn.mean a.weight a.seen"},
		{"a.w c.w a.n b.n c.n", "a.w a.n b.n c.w c.n"}, // b has buffers alone
		{"w", "w"},
		{"", ""},
	} {
		if got := stateOrder(strings.Fields(c.archive)); !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%s: %s, want %s", c.archive, strings.Join(got, " "), c.want)
		}
	}
}
