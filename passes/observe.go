package passes

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/aton-project/aton/ssa"
)

// PrintAfter returns an observer that writes the module after each run of the named passes; "all" stands for all passes.
func PrintAfter(w io.Writer, names ...string) Observer {
	all := slices.Contains(names, "all")
	return Observer{AfterPass: func(e *Event) {
		if all || slices.Contains(names, e.Pass.Name) {
			fmt.Fprintf(w, "# after %s\n%s", e.Text, ssa.Print(e.Module))
		}
	}}
}

// PrintChanged returns an observer that writes what each pass changed, as a diff.
func PrintChanged(w io.Writer) Observer {
	var before []string
	return Observer{
		BeforePass: func(e *Event) {
			if before == nil {
				before = strings.Split(ssa.Print(e.Module), "\n")
			}
		},
		AfterPass: func(e *Event) {
			after := strings.Split(ssa.Print(e.Module), "\n")
			if text := Diff(before, after, 2); text != "" {
				fmt.Fprintf(w, "# %s\n%s", e.Text, text)
			}
			before = after
		},
	}
}

// Timing measures the time that passes take.
type Timing struct {
	total map[string]time.Duration
	runs  map[string]int
}

// Observer returns the observer that updates t.
func (t *Timing) Observer() Observer {
	t.total, t.runs = map[string]time.Duration{}, map[string]int{}
	return Observer{AfterPass: func(e *Event) {
		t.total[e.Text] += e.Elapsed
		t.runs[e.Text]++
	}}
}

// Report writes a table, the slowest pass first.
func (t *Timing) Report(w io.Writer) {
	names := make([]string, 0, len(t.total))
	sum := time.Duration(0)
	for name, d := range t.total {
		names = append(names, name)
		sum += d
	}
	sort.Slice(names, func(i, j int) bool {
		if a, b := t.total[names[i]], t.total[names[j]]; a != b {
			return a > b
		}
		return names[i] < names[j]
	})
	for _, name := range names {
		share := 0.0
		if sum > 0 {
			share = 100 * float64(t.total[name]) / float64(sum)
		}
		fmt.Fprintf(w, "%12.3f ms  %5.1f%%  %3dx  %s\n", float64(t.total[name].Microseconds())/1000, share, t.runs[name], name)
	}
	fmt.Fprintf(w, "%12.3f ms  in all\n", float64(sum.Microseconds())/1000)
}

// Stats counts what passes did.
type Stats struct{ counts map[string]int }

// Observer returns the observer that updates s.
func (s *Stats) Observer() Observer {
	s.counts = map[string]int{}
	return Observer{AfterPass: func(e *Event) {
		for _, c := range e.Counts {
			s.counts[e.Pass.Name+": "+c.What] += c.N
		}
	}}
}

// Report writes the counts, by pass and name.
func (s *Stats) Report(w io.Writer) {
	for _, c := range sorted(s.counts) {
		fmt.Fprintf(w, "%8d  %s\n", c.N, c.What)
	}
}
