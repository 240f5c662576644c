package cli

import "testing"

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{
		{0, mostPercent},
		{4 << 20, mostPercent},
		{12 << 20, 200},
		{16 << 20, 150},
		{48 << 20, 316},
		{192 << 20, 100},
		{1 << 30, leastPercent},
	} {
		if got := percent(c.live); got != c.want {
			t.Errorf("with %d bytes alive %d %%, want %d", c.live, got, c.want)
		}
	}
}
