package passes

import (
	"fmt"
	"strings"
)

// maxDiffTable bounds the size of Diff's table. Beyond it, Diff shows both texts in full.
const maxDiffTable = 4 << 20

// Diff returns the difference between a and b, with some lines of context, or "" if they are equal.
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
	if n := len(y) + 1; (len(x)+1)*n <= maxDiffTable {
		// table[i*n+j] is the length of the longest common subsequence of x[i:] and y[j:]
		table := make([]int32, (len(x)+1)*n)
		for i := len(x) - 1; i >= 0; i-- {
			for j := len(y) - 1; j >= 0; j-- {
				if x[i] == y[j] {
					table[i*n+j] = table[(i+1)*n+j+1] + 1
				} else {
					table[i*n+j] = max(table[(i+1)*n+j], table[i*n+j+1])
				}
			}
		}
		i, j := 0, 0
		for i < len(x) || j < len(y) {
			switch {
			case i < len(x) && j < len(y) && x[i] == y[j]:
				lines = append(lines, line{' ', x[i], start + j})
				i++
				j++
			case i < len(x) && (j == len(y) || table[(i+1)*n+j] >= table[i*n+j+1]):
				lines = append(lines, line{'-', x[i], start + j})
				i++
			default:
				lines = append(lines, line{'+', y[j], start + j})
				j++
			}
		}
	} else {
		for _, s := range x {
			lines = append(lines, line{'-', s, start})
		}
		for j, s := range y {
			lines = append(lines, line{'+', s, start + j})
		}
	}
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
