package prove

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
)

// The kinds of what is proved.
const (
	OfRules    = "rule"
	OfPasses   = "pass"
	OfSteps    = "step"
	OfPatterns = "pattern"
	OfLaws     = "law"
	// OfRuns are figures of a run: a name and a number.
	OfRuns = "run"
)

// Entry is a row of the table of what is proved.
type Entry struct {
	Kind, Name, Status string
	// Rounds says that inputs are known on which the results differ by rounding.
	Rounds  string
	Assumes string
	// Proved, Open and Inexpressible count claims.
	Proved, Open, Inexpressible string
	Ranks, By, Seconds, Left    string
}

// cells are the columns of the table.
func (e *Entry) cells() []*string {
	return []*string{&e.Kind, &e.Name, &e.Status, &e.Rounds, &e.Assumes, &e.Proved, &e.Open, &e.Inexpressible, &e.Ranks, &e.By, &e.Seconds, &e.Left}
}

const tableHead = "kind\tname\tstatus\trounds\tassumes\tproved\topen\tnot expressible\tranks\tby\tseconds\tleft\n"

// Table is what is proved, in the order in which it is printed.
type Table []Entry

// ReadTable reads a table as it is written.
func ReadTable(text string) (Table, error) {
	var t Table
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if i == 0 {
			continue
		}
		parts := strings.Split(line, "\t")
		var e Entry
		cells := e.cells()
		if len(parts) != len(cells) {
			return nil, fmt.Errorf("line %d has %d cells, not %d", i+1, len(parts), len(cells))
		}
		for k, c := range cells {
			*c = parts[k]
		}
		t = append(t, e)
	}
	return t, nil
}

// String writes the table, sorted by kind and name.
func (t Table) String() string {
	kinds := []string{OfRules, OfLaws, OfPasses, OfSteps, OfPatterns, OfRuns}
	t = slices.Clone(t)
	slices.SortStableFunc(t, func(a, b Entry) int {
		if c := slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind); c != 0 || a.Kind == OfLaws || a.Kind == OfRuns {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	var b strings.Builder
	b.WriteString(tableHead)
	clean := strings.NewReplacer("\t", " ", "\n", " ")
	for _, e := range t {
		for i, c := range e.cells() {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(clean.Replace(*c))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Renew replaces the entries of the same kinds and names by new ones; all says that the new entries are all there are of their kinds.
func (t Table) Renew(entries []Entry, all bool) Table {
	out := slices.DeleteFunc(slices.Clone(t), func(old Entry) bool {
		return slices.ContainsFunc(entries, func(e Entry) bool { return e.Kind == old.Kind && (all || e.Name == old.Name) })
	})
	return append(out, entries...)
}

// isProved reports that a row says that something is proved.
func (e *Entry) isProved() bool { return e.Status == "proved" || e.Status == "proved on real numbers" }

// counts says whether a step is among those whose operators have a body or an expression.
func (e *Entry) counts() bool {
	operator, _, _ := strings.Cut(e.Name, "-")
	return meaningless[operator] == ""
}

// StepsProved counts the steps that are proved, of those whose operators have a body or an expression.
func (t Table) StepsProved() (proved, all int) {
	for _, e := range t {
		if e.Kind == OfSteps && e.counts() {
			if all++; e.isProved() {
				proved++
			}
		}
	}
	return proved, all
}

// Markdown writes the table for people.
func (t Table) Markdown() string {
	var b strings.Builder
	for _, part := range []struct{ kind, title string }{{OfRules, "Rules of simplify"}, {OfPasses, "Passes shapes and ort-fusion"}, {OfSteps, "Steps down"}, {OfPatterns, "Patterns of legalize-indexing"}} {
		count, total := map[string]int{}, 0
		var rows strings.Builder
		for _, e := range t {
			if e.Kind != part.kind {
				continue
			}
			total++
			count[e.Status]++
			status := e.Status
			if e.Rounds != "" {
				status += "; rounds"
			}
			if e.Assumes != "" {
				status += "; assumes that " + e.Assumes
			}
			left := e.Left
			if len(left) > 100 {
				left = left[:100] + "..."
			}
			fmt.Fprintf(&rows, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", e.Name, status, e.Proved, e.Inexpressible, e.Ranks, e.By, e.Seconds, strings.NewReplacer("|", "\\|", "<", "&lt;").Replace(left))
		}
		fmt.Fprintf(&b, "### %s\n\n%d in all: %d proved up to the bound, %d of these on real numbers; %d in part, %d open, %d not expressible, %d refuted.", part.title,
			total, count["proved"]+count["proved on real numbers"], count["proved on real numbers"], count["proved in part"], count["open"], count["not expressible"], count["refuted"])
		if part.kind == OfSteps {
			proved, all := t.StepsProved()
			fmt.Fprintf(&b, " **%d of %d steps whose operators have bodies or expressions** are proved; the others are of", proved, all)
			for i, name := range sortedKeys(meaningless) {
				if i > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, " %s (%s)", name, meaningless[name])
			}
			b.WriteByte('.')
		}
		fmt.Fprintf(&b, "\n\n| | | claims proved | not expressible | ranks | by | seconds | what is left |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n%s\n", rows.String())
	}
	b.WriteString("### Laws of sizes\n\n| | | wrong variants refuted |\n| --- | --- | --- |\n")
	for _, e := range t {
		if e.Kind == OfLaws {
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Name, e.Status, e.Left)
		}
	}
	b.WriteString("\n### Runs\n\n| | |\n| --- | --- |\n")
	for _, e := range t {
		if e.Kind == OfRuns {
			fmt.Fprintf(&b, "| %s | %s |\n", e.Name, e.Status)
		}
	}
	return b.String() + "\n"
}

//go:embed proved.tsv
var provedTable string

// provedRules are the rules that the table says are proved.
func provedRules() map[string]bool {
	out := map[string]bool{}
	table, err := ReadTable(provedTable)
	if err != nil {
		return out // which proves nothing
	}
	for _, e := range table {
		if e.isProved() {
			out[e.Name] = true
		}
	}
	return out
}

// Entry is the row of a result.
func (r *Result) Entry(kind string) Entry {
	var ranks []string
	for n := range 16 {
		if r.Ranks[n] {
			ranks = append(ranks, fmt.Sprint(n))
		}
	}
	e := Entry{Kind: kind, Name: r.Rule, Status: r.Status(), Assumes: r.Assumes, Proved: fmt.Sprint(r.Claims[Proved]), Open: fmt.Sprint(r.Claims[Open]), Inexpressible: fmt.Sprint(r.Claims[Inexpressible]),
		Ranks: strings.Join(ranks, " "), By: strings.Join(sortedKeys(r.Theories), "; "), Seconds: fmt.Sprintf("%.1f", r.Time.Seconds())}
	if r.Needed != "" {
		e.Rounds = "rounds"
	}
	if r.Outcome() != Proved || r.Claims[Inexpressible] > 0 {
		most := 0
		for _, why := range sortedKeys(r.Whys) {
			if n := r.Whys[why]; n > most {
				most, e.Left = n, why
			}
		}
		if len(e.Left) > 200 {
			e.Left = e.Left[:200]
		}
	}
	return e
}
