package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// reasonsTable counts a list's cases by reason. A reason is "KIND: WHY", as in
// "ONNX cannot express it: ..."; what has no kind comes under "other".
func reasonsTable(list map[string]expectation) string {
	type key struct{ kind, why, class string }
	counts := map[key]int{}
	kinds := map[string]int{}
	for _, e := range list {
		kind, why, ok := strings.Cut(e.reason, ": ")
		if !ok {
			kind, why = "other", e.reason
		}
		counts[key{kind, why, e.class}]++
		kinds[kind]++
	}
	keys := make([]key, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b key) int {
		if kinds[a.kind] != kinds[b.kind] {
			return kinds[b.kind] - kinds[a.kind]
		}
		if a.kind != b.kind {
			return strings.Compare(a.kind, b.kind)
		}
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a.why+a.class, b.why+b.class)
	})
	var b strings.Builder
	b.WriteString("| reason | | result | cases |\n| --- | --- | --- | --- |\n")
	last := ""
	for _, k := range keys {
		kind := ""
		if k.kind != last {
			kind, last = fmt.Sprintf("%s (%d)", k.kind, kinds[k.kind]), k.kind
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d |\n", kind, k.why, k.class, counts[k])
	}
	fmt.Fprintf(&b, "| all | | | %d |\n", len(list))
	return b.String()
}

// opsets runs the cases at each of several opsets.
func opsets(o options, spelled string) (int, error) {
	byOpset := map[int][]row{}
	var order []int
	for _, s := range strings.Split(spelled, ",") {
		n, err := strconv.Atoi(s)
		if err != nil {
			return 0, fmt.Errorf("--opsets is a list of numbers, such as 11,13,21: %w", err)
		}
		o.opset = n
		o.results = filepath.Join("out", fmt.Sprintf("conformance-opset%d.jsonl", n))
		if err := score(o); err != nil {
			return 0, err
		}
		if byOpset[n], err = readResults(o.results); err != nil {
			return 0, err
		}
		order = append(order, n)
	}
	fmt.Print(opsetTable(order, byOpset))
	return 0, nil
}

var (
	whatFails = regexp.MustCompile(`\b((aten|onnx|prim|prims|quantized|torchvision)::\w+)[^:]*: (.*)`)
	remedy    = regexp.MustCompile(`; .*| \(\d+ times\)`)
)

// opsetTable has a line an opset with the cases that pass, and why the others do not.
func opsetTable(order []int, byOpset map[int][]row) string {
	suites := map[string]bool{}
	for _, rows := range byOpset {
		for _, r := range rows {
			suites[r.Suite] = true
		}
	}
	names := make([]string, 0, len(suites))
	for s := range suites {
		names = append(names, s)
	}
	sort.Strings(names)
	var b strings.Builder
	fmt.Fprintf(&b, "| opset | %s | not passed |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+2))
	for _, n := range order {
		passed, all, why := map[string]int{}, map[string]int{}, map[string]int{}
		for _, r := range byOpset[n] {
			all[r.Suite]++
			if r.Result == "pass" {
				passed[r.Suite]++
				continue
			}
			why[shortReason(r)]++
		}
		var cells, reasons []string
		for _, s := range names {
			cells = append(cells, fmt.Sprintf("%d/%d", passed[s], all[s]))
		}
		for w, k := range why {
			reasons = append(reasons, fmt.Sprintf("%s: %d", w, k))
		}
		sort.Strings(reasons)
		fmt.Fprintf(&b, "| %d | %s | %s |\n", n, strings.Join(cells, " | "), strings.Join(reasons, "; "))
	}
	return b.String()
}

// shortReason is the operator and what is said of it.
func shortReason(r row) string {
	text := strings.Join(strings.Fields(r.Detail), " ")
	if m := whatFails.FindStringSubmatch(text); r.Result == "export failed" && m != nil {
		return m[1] + ": " + remedy.ReplaceAllString(m[3], "")
	}
	return r.Result + ": " + clip(text, 80)
}
