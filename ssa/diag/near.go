package diag

import "fmt"

// DidYouMean suggests the known name that is nearest to a wrong one: `, did you mean "cse"?`, or nothing.
func DidYouMean(name string, known []string) string {
	best, found := len(name)/2+1, ""
	for _, k := range known {
		if d := editDistance(name, k); d < best {
			best, found = d, k
		}
	}
	if found == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", found)
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
