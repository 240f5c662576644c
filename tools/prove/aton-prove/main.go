// Aton-prove proves the rewrite rules of the pass simplify and the laws of sizes, and writes what is proved into tools/prove/README.md.
package main

import (
	"flag"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/tools/prove"
)

func main() {
	lit := flag.String("lit", "lit-tests", "the `folder` of text tests, whose graphs the rules are tried on")
	variants := flag.Int("variants", 24, "changed copies of each graph")
	part := flag.String("part", "", "prove the rules of one of `K/N` parts only; K may be any text, such as a commit")
	only := flag.String("rules", "", "prove the rules of these `names` only, separated by commas, and print the claims that are open")
	mutants := flag.Int("mutants", 200, "wrong variants of rules that must be refuted")
	sizes := flag.Int("sizes", 2000, "random expressions of sizes whose normal form is proved")
	limit := flag.Duration("limit", 3*time.Second, "time for one question to the solver")
	write := flag.String("write", "", "write the table into this `file`, between its marks")
	verbose := flag.Bool("v", false, "print the reason of each claim that is not proved")
	flag.Parse()
	if err := run(*lit, *variants, *part, *only, *mutants, *sizes, *limit, *write, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "aton-prove:", err)
		os.Exit(1)
	}
}

func hash(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// inPart reports that a rule belongs to part K of N.
func inPart(rule, part string) bool {
	k, text, ok := strings.Cut(part, "/")
	n := uint32(1)
	if _, err := fmt.Sscan(text, &n); !ok || err != nil || n == 0 {
		return true
	}
	return hash(rule)%n == hash(k)%n
}

func run(lit string, variants int, part, only string, mutants, sizes int, limit time.Duration, write string, verbose bool) error {
	began := time.Now()
	s := prove.NewSession(simplify.Rules())
	defer s.Close()
	s.Variants, s.Solver.Limit = variants, limit
	s.Progress = func(what string) { fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(began).Seconds(), what) }
	if part != "" {
		s.Only = func(rule string) bool { return inPart(rule, part) }
	}
	if only != "" {
		s.Only = func(rule string) bool { return slices.Contains(strings.Split(only, ","), rule) }
		verbose = true
	}
	if err := s.Simplify(lit); err != nil {
		return err
	}
	var failed []string
	for _, r := range s.Sorted() {
		if s.Only != nil && !s.Only(r.Rule) {
			continue
		}
		fmt.Println(r)
		for _, c := range r.Refuted {
			failed = append(failed, fmt.Sprintf("%s is refuted: %s\n%s%s", r.Rule, c.Verdict.Counterexample(), c.Claim.Before, c.Claim.After))
		}
		if verbose {
			for why, n := range r.Whys {
				fmt.Printf("  %d: %s\n", n, why)
			}
		}
	}
	m, err := s.Mutate(mutants, 1)
	if err != nil {
		return err
	}
	fmt.Printf("%d wrong variants of %d rules refuted, %d not decided; %d changes made another right rule\n", m.Refuted, len(m.Rules), m.Left, m.Same)
	if part == "" && m.Refuted < mutants {
		failed = append(failed, fmt.Sprintf("%d wrong variants are refuted, fewer than %d", m.Refuted, mutants))
	}
	var laws strings.Builder
	for _, l := range prove.Laws() {
		answer, applied, err := s.Law(l)
		if err != nil {
			return err
		}
		if answer != prove.Unsat || !applied {
			failed = append(failed, fmt.Sprintf("the law %s: %s, applied: %v", l.Name, answer, applied))
		}
		fmt.Fprintf(&laws, "| `%s` | %s |\n", l.Name, map[bool]string{true: "proved, for all sizes", false: string(answer)}[answer == prove.Unsat])
	}
	proved, open, refuted, err := s.Sizes(sizes, 1)
	if err != nil {
		return err
	}
	if refuted != "" {
		failed = append(failed, refuted)
	}
	fmt.Printf("%d laws; %d normal forms of sizes proved, %d open\n", len(prove.Laws()), proved, open)
	fmt.Printf("%d questions, %.0f s in the solver, %.0f s in all\n", s.Solver.Questions, s.Solver.Spent.Seconds(), time.Since(began).Seconds())
	if len(failed) > 0 {
		return fmt.Errorf("%s", strings.Join(failed, "\n\n"))
	}
	if write == "" {
		return nil
	}
	var b strings.Builder
	all := s.Sorted()
	count := map[string]int{}
	for _, r := range all {
		count[r.Status()]++
	}
	fmt.Fprintf(&b, "%d rules of simplify: %d proved up to the bound, %d of these on real numbers; %d in part, %d open, %d not expressible, none refuted. %d wrong variants (of %d rules) are refuted by inputs on which the interpreter differs, %d could not be decided; %d changes made another right rule.\n\n",
		len(all), count["proved"]+count["proved on real numbers"], count["proved on real numbers"], count["proved in part"], count["open"], count["not expressible"], m.Refuted, len(m.Rules), m.Left, m.Same)
	b.WriteString("| rule | | claims proved | not expressible | ranks | by | seconds | what is left |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, r := range all {
		b.WriteString(r.Row())
	}
	fmt.Fprintf(&b, "\n| law of sizes | |\n| --- | --- |\n%s\nOf %d random expressions, %d have a normal form and a lower bound that are proved for all sizes; %d are open. In all %d questions took the solver %.0f s.\n",
		laws.String(), proved+open, proved, open, s.Solver.Questions, s.Solver.Spent.Seconds())
	text, err := os.ReadFile(write)
	if err != nil {
		return err
	}
	const from, to = "<!-- made by make prove -->\n", "<!-- end -->\n"
	i, j := strings.Index(string(text), from), strings.Index(string(text), to)
	if i < 0 || j < i {
		return fmt.Errorf("%s has no marks", write)
	}
	return os.WriteFile(write, slices.Concat(text[:i+len(from)], []byte(b.String()), text[j:]), 0o644)
}
