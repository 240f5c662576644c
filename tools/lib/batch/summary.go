package batch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Summary counts results by status, and what is wrong with those that are not ok by identifier.
func Summary(results []*Result) string {
	count := map[Status]int{}
	cached := 0
	models := map[string]int{} // by identifier
	for _, r := range results {
		count[r.Status]++
		if r.Cached {
			cached++
		}
		if r.Status == OK {
			continue
		}
		seen := map[string]bool{}
		for _, d := range r.Diagnostics {
			if d.Level == "error" && !seen[d.ID] {
				seen[d.ID] = true
				models[d.ID]++
			}
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d models:", len(results))
	sep := " "
	for _, s := range Statuses {
		if count[s] > 0 || s == OK {
			fmt.Fprintf(&b, "%s%d %s", sep, count[s], s)
			sep = ", "
		}
	}
	if cached > 0 {
		fmt.Fprintf(&b, " (%d from the cache)", cached)
	}
	b.WriteString("\n")
	ids := slices.SortedFunc(maps.Keys(models), func(a, b string) int {
		return cmp.Or(cmp.Compare(models[b], models[a]), strings.Compare(a, b))
	})
	for _, id := range ids {
		fmt.Fprintf(&b, "%8d %s\n", models[id], id)
	}
	return b.String()
}
