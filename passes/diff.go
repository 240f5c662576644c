package passes

import (
	"fmt"
	"strings"

	"github.com/aton-project/aton/internal/align"
)

// Diff returns the difference between a and b, with some lines of context, or "" if they are equal. Of texts that are too long to be compared
// line by line it shows both in full, from the first line that differs to the last.
func Diff(a, b []string, context int) string {
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	if start == len(a) && start == len(b) {
		return ""
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA--
		endB--
	}
	type line struct {
		mark byte
		text string
		at   int // in b, or where it would be
	}
	var lines []line
	for i := range a[:start] {
		lines = append(lines, line{' ', a[i], i})
	}
	x, y := a[start:endA], b[start:endB]
	pairs, _ := align.Common(x, y) // none of lists that are too long
	i, j := 0, 0
	until := func(p, q int) {
		for ; i < p; i++ {
			lines = append(lines, line{'-', x[i], start + j})
		}
		for ; j < q; j++ {
			lines = append(lines, line{'+', y[j], start + j})
		}
	}
	for _, p := range pairs {
		until(p[0], p[1])
		lines = append(lines, line{' ', x[i], start + j})
		i++
		j++
	}
	until(len(x), len(y))
	for j := endB; j < len(b); j++ {
		lines = append(lines, line{' ', b[j], j})
	}
	near := make([]bool, len(lines))
	for i, l := range lines {
		if l.mark != ' ' {
			for k := max(0, i-context); k <= min(len(lines)-1, i+context); k++ {
				near[k] = true
			}
		}
	}
	var out strings.Builder
	for i, l := range lines {
		if !near[i] {
			continue
		}
		if i == 0 || !near[i-1] {
			fmt.Fprintf(&out, "@@ line %d\n", l.at+1)
		}
		fmt.Fprintf(&out, "%c%s\n", l.mark, l.text)
	}
	return out.String()
}
