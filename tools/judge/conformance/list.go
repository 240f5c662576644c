package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
)

// row is a case's result as run.py writes it.
type row struct {
	ID     string `json:"id"`
	Suite  string `json:"suite"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// peer is what became of a case with torch.onnx; "-" where it was not tried.
type peer struct{ torchscript, dynamo string }

// expectation is a line of the list: why a case may fail.
type expectation struct{ class, reason string }

var classes = []string{"pass", "export failed", "invalid model", "ort load failed", "ort run failed", "wrong dtype", "wrong shape", "wrong values", "harness error"}

func lines(name string, each func(n int, line string) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<24)
	for n := 1; s.Scan(); n++ {
		if err := each(n, s.Text()); err != nil {
			return fmt.Errorf("%s:%d: %w", name, n, err)
		}
	}
	return s.Err()
}

func readResults(name string) ([]row, error) {
	var rows []row
	err := lines(name, func(_ int, line string) error {
		if strings.TrimSpace(line) == "" {
			return nil
		}
		var r row
		err := json.Unmarshal([]byte(line), &r)
		rows = append(rows, r)
		return err
	})
	if err == nil && len(rows) == 0 {
		err = fmt.Errorf("%s: no results", name)
	}
	return rows, err
}

func readPeers(name string) (map[string]peer, error) {
	peers := map[string]peer{}
	err := lines(name, func(n int, line string) error {
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return fmt.Errorf("%d columns instead of 3", len(f))
		}
		if n > 1 {
			peers[f[0]] = peer{f[1], f[2]}
		}
		return nil
	})
	return peers, err
}

func readList(name string) (map[string]expectation, error) {
	list := map[string]expectation{}
	err := lines(name, func(_ int, line string) error {
		if line == "" || line[0] == '#' {
			return nil
		}
		f := strings.Split(line, "\t")
		if len(f) != 3 || !slices.Contains(classes, f[1]) {
			return fmt.Errorf("want SUITE/ID, class and reason, separated by tabs")
		}
		if _, twice := list[f[0]]; twice {
			return fmt.Errorf("%s comes twice", f[0])
		}
		list[f[0]] = expectation{f[1], f[2]}
		return nil
	})
	return list, err
}

// ratchet compares results with the list. A case that was not run stands as it is.
func ratchet(list map[string]expectation, rows []row) (string, bool) {
	var worse, better, changed []string
	for _, r := range rows {
		e, listed := list[r.ID]
		switch {
		case r.Result != "pass" && !listed:
			worse = append(worse, fmt.Sprintf("  %s  [%s] %s", r.ID, r.Result, clip(r.Detail, 150)))
		case r.Result == "pass" && listed:
			better = append(better, "  "+r.ID)
		case r.Result != "pass" && e.class != r.Result:
			changed = append(changed, fmt.Sprintf("  %s  [%s, was %s] %s", r.ID, r.Result, e.class, clip(r.Detail, 120)))
		}
	}
	var b strings.Builder
	section := func(title string, items []string) {
		if len(items) == 0 {
			return
		}
		fmt.Fprintf(&b, "\n%s: %d\n", title, len(items))
		const most = 40
		for i, item := range items {
			if i == most {
				fmt.Fprintf(&b, "  and %d more\n", len(items)-most)
				break
			}
			fmt.Fprintln(&b, item)
		}
	}
	section("fail in another way than listed (no error)", changed)
	section("pass but are listed as failures", better)
	section("fail and are not listed", worse)
	return b.String(), len(worse) == 0 && len(better) == 0
}

// renew spells the list that fits the results. Reasons stay as long as the class does; a new one is what the program said.
func renew(list map[string]expectation, rows []row) string {
	next := map[string]expectation{}
	for id, e := range list {
		next[id] = e
	}
	for _, r := range rows {
		if r.Result == "pass" {
			delete(next, r.ID)
		} else if next[r.ID].class != r.Result {
			next[r.ID] = expectation{r.Result, reasonOf(r.Detail)}
		}
	}
	ids := make([]string, 0, len(next))
	for id := range next {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	var b strings.Builder
	b.WriteString("# Cases that may fail, and why: SUITE/ID, class, reason (KIND: WHY). Kept by tools/judge/conformance --update.\n")
	for _, id := range ids {
		fmt.Fprintf(&b, "%s\t%s\t%s\n", id, next[id].class, next[id].reason)
	}
	return b.String()
}

var fileName = regexp.MustCompile(`\S*/\S*`)

// reasonOf makes one short line of a message, the same on every machine.
func reasonOf(detail string) string {
	s := strings.Join(strings.Fields(detail), " ")
	s = regexp.MustCompile(`^exit status \d+: `).ReplaceAllString(s, "")
	s = fileName.ReplaceAllStringFunc(s, path.Base)
	return clip(s, 160)
}

func clip(s string, n int) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > n {
		return strings.TrimSpace(string(r[:n])) + "..."
	}
	return string(r)
}

// scoreboard has a line a suite: the classes, and how torch.onnx does on the same cases.
func scoreboard(rows []row, peers map[string]peer) string {
	type score struct {
		class                                 map[string]int
		n, script, ofScript, dynamo, ofDynamo int
	}
	suites := map[string]*score{}
	used := map[string]bool{"pass": true}
	for _, r := range rows {
		for _, name := range []string{r.Suite, "all"} {
			s := suites[name]
			if s == nil {
				s = &score{class: map[string]int{}}
				suites[name] = s
			}
			s.n++
			s.class[r.Result]++
			p, ok := peers[r.ID]
			if ok && p.torchscript != "-" {
				s.ofScript++
				if p.torchscript == "pass" {
					s.script++
				}
			}
			if ok && p.dynamo != "-" {
				s.ofDynamo++
				if p.dynamo == "pass" {
					s.dynamo++
				}
			}
		}
		used[r.Result] = true
	}
	names := make([]string, 0, len(suites))
	for name := range suites {
		if name != "all" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "suite\tcases\t")
	for _, c := range classes {
		if used[c] {
			fmt.Fprintf(w, "%s\t", c)
		}
	}
	fmt.Fprint(w, "passed\ttorch.onnx script\tdynamo\t\n")
	share := func(a, n int) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f%% of %d", 100*float64(a)/float64(n), n)
	}
	for _, name := range append(names, "all") {
		s := suites[name]
		fmt.Fprintf(w, "%s\t%d\t", name, s.n)
		for _, c := range classes {
			if used[c] {
				fmt.Fprintf(w, "%d\t", s.class[c])
			}
		}
		fmt.Fprintf(w, "%.1f%%\t%s\t%s\t\n", 100*float64(s.class["pass"])/float64(s.n), share(s.script, s.ofScript), share(s.dynamo, s.ofDynamo))
	}
	w.Flush()
	return b.String()
}
