// Aton-prove proves the rewrite rules of passes, the steps between opsets, the patterns of legalize-indexing and the laws of sizes, makes wrong
// variants of them and refutes these, and writes what is proved into tools/judge/prove/README.md. With -exports it proves conversions of models instead.
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/frontend/spec"
	"github.com/aton-project/aton/internal/pack"
	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/tools/judge/prove"
)

func main() {
	lit := flag.String("lit", "lit-tests", "the `folder` of text tests, whose graphs the rules are tried on")
	variants := flag.Int("variants", 24, "changed copies of each graph")
	part := flag.String("part", "", "prove the rules of one of `K/N` parts only; K may be any text, such as a commit")
	only := flag.String("rules", "", "prove the rules of these `names` only, separated by commas, and print the claims that are open")
	steps := flag.Bool("steps", false, "prove steps between opsets, passes without rules and patterns alone")
	mutants := flag.Int("mutants", 200, "wrong variants of rules that must be refuted")
	sizes := flag.Int("sizes", 2000, "random expressions of sizes whose normal form is proved")
	limit := flag.Duration("limit", 3*time.Second, "time for one question to the solver")
	perStep := flag.Duration("step-time", 30*time.Second, "make no further claim on a step between opsets after this time")
	most := flag.Duration("time", 0, "begin no further claim after this time, a fifth of which is for wrong variants; 0 for no bound")
	write := flag.String("write", "", "write the table into this `file`, between its marks")
	models := flag.String("models", "testdata/nodes.tar.gz", "an `archive` of models of single operators, on which the steps between opsets are tried")
	exports := flag.String("exports", "", "prove the conversions of the models that this `file` lists, and nothing else")
	verbose := flag.Bool("v", false, "print the reason of each claim that is not proved")
	flag.Parse()
	o := options{*lit, *models, *variants, *part, *only, *mutants, *sizes, *limit, *most, *perStep, *write, *verbose, *steps}
	do := o.run
	if *exports != "" {
		do = func() error { return conversions(*exports, *limit, *write) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "aton-prove:", err)
		os.Exit(1)
	}
}

type options struct {
	lit, models    string
	variants       int
	part, only     string
	mutants, sizes int
	limit          time.Duration
	most, perStep  time.Duration
	write          string
	verbose, steps bool
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

// unpacked are the models of an archive, in a folder that done removes.
func unpacked(archive string) (models []string, done func(), err error) {
	dir, err := os.MkdirTemp("", "aton-prove")
	if err != nil {
		return nil, nil, err
	}
	done = func() { os.RemoveAll(dir) }
	cases, err := pack.Unpack(archive, dir)
	for _, c := range cases {
		models = append(models, filepath.Join(dir, c, "model.onnx"))
	}
	return models, done, err
}

func (o options) run() error {
	began := time.Now()
	s := prove.NewSession(simplify.Rules())
	defer s.Close()
	s.Variants, s.Solver.Limit, s.PerStep = o.variants, o.limit, o.perStep
	s.Progress = func(what string) { fmt.Fprintf(os.Stderr, "%4.0f s  %s\n", time.Since(began).Seconds(), what) }
	if o.part != "" {
		s.Only = func(rule string) bool { return inPart(rule, o.part) }
	}
	if o.only != "" {
		s.Only = func(rule string) bool { return slices.Contains(strings.Split(o.only, ","), rule) }
		o.verbose = true
	}
	if o.most > 0 {
		s.Until = began.Add(o.most * 4 / 5)
	}
	models, done, err := unpacked(o.models)
	if err != nil {
		return err
	}
	defer done()
	for _, prove := range []func() error{
		func() error {
			if o.steps {
				return nil
			}
			return s.Simplify(o.lit)
		},
		func() error { return s.Fusion(o.lit) },
		func() error { return s.Pass(o.lit, "shapes") },
		func() error { return s.Steps(o.lit, models) },
		func() error { return s.Indexing(o.lit) },
	} {
		if err := prove(); err != nil {
			return err
		}
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
		if o.verbose {
			for why, n := range r.Whys {
				fmt.Printf("  %d: %s\n", n, why)
			}
		}
	}
	if o.most > 0 { // whatever the claims took
		s.Until = time.Now().Add(o.most / 5)
	}
	m, err := s.Mutate(o.mutants, 1)
	if err != nil {
		return err
	}
	fmt.Printf("%d wrong variants of %d rules and steps refuted, %d not decided; %d changes made another right one\n", m.Refuted, len(m.Rules), m.Left, m.Same)
	if o.part == "" && o.only == "" && !o.steps && m.Refuted < o.mutants {
		failed = append(failed, fmt.Sprintf("%d wrong variants are refuted, fewer than %d", m.Refuted, o.mutants))
	}
	var laws strings.Builder
	wrong := 0
	for _, l := range prove.Laws() {
		answer, applied, err := s.Law(l)
		if err != nil {
			return err
		}
		if answer != prove.Unsat || !applied {
			failed = append(failed, fmt.Sprintf("the law %s: %s, applied: %v", l.Name, answer, applied))
		}
		n, err := s.WrongLaws(l)
		if err != nil {
			return err
		}
		wrong += n
		fmt.Fprintf(&laws, "| `%s` | %s | %d |\n", l.Name, map[bool]string{true: "proved, for all sizes", false: string(answer)}[answer == prove.Unsat], n)
	}
	proved, open, refuted, err := s.Sizes(o.sizes, 1)
	if err != nil {
		return err
	}
	if refuted != "" {
		failed = append(failed, refuted)
	}
	fmt.Printf("%d laws, %d wrong variants of them refuted; %d normal forms of sizes proved, %d open\n", len(prove.Laws()), wrong, proved, open)
	if s.Late > 0 {
		fmt.Printf("%d claims and graphs were left out for want of time\n", s.Late)
	}
	fmt.Printf("%d questions, %.0f s in the solver, %.0f s in all\n", s.Solver.Questions, s.Solver.Spent.Seconds(), time.Since(began).Seconds())
	var wrongs error
	if len(failed) > 0 {
		wrongs = errors.New(strings.Join(failed, "\n\n"))
	}
	if o.write == "" || s.Late > 0 { // the table is of all claims
		return wrongs
	}
	if o.only != "" {
		return errors.Join(wrongs, renew(o.write, s))
	}
	steps, isRule := prove.StepNames(), map[string]bool{}
	for _, r := range simplify.Rules() {
		isRule[r.Name] = true
	}
	step := func(name string) bool { return slices.Contains(steps, name) }
	pattern := func(name string) bool { return strings.HasPrefix(name, patterns) }
	var second strings.Builder
	section(&second, s, "Passes shapes and ort-fusion", func(name string) bool { return !isRule[name] && !step(name) && !pattern(name) })
	section(&second, s, "Steps down", step)
	section(&second, s, "Patterns of legalize-indexing", pattern)
	wrongs = errors.Join(wrongs, between(o.write, stepsMark, second.String()))
	if o.steps {
		return wrongs
	}
	var b strings.Builder
	section(&b, s, "Rules of simplify", func(name string) bool { return isRule[name] })
	fmt.Fprintf(&b, "%d wrong variants of %d rules and steps are refuted by inputs on which the interpreter differs, %d could not be decided; %d changes made another right one.\n\n", m.Refuted, len(m.Rules), m.Left, m.Same)
	fmt.Fprintf(&b, "| law of sizes | | wrong variants refuted |\n| --- | --- | --- |\n%s\nOf %d random expressions, %d have a normal form and a lower bound that are proved for all sizes; %d are open. In all %d questions took the solver %.0f s.\n",
		laws.String(), proved+open, proved, open, s.Solver.Questions, s.Solver.Spent.Seconds())
	return errors.Join(wrongs, between(o.write, rulesMark, b.String()))
}

// The marks behind which tables stand, and what the names of patterns begin with.
const (
	rulesMark = "<!-- made by make prove -->\n"
	stepsMark = "<!-- made by make prove: steps -->\n"
	patterns  = "legalize-indexing: "
)

// section writes the table of the results whose names belong to it.
func section(b *strings.Builder, s *prove.Session, title string, belongs func(name string) bool) {
	var rows []string
	for _, r := range s.Sorted() {
		if belongs(r.Rule) {
			rows = append(rows, r.Row())
		}
	}
	fmt.Fprintf(b, "### %s\n\n%s\n\n| | | claims proved | not expressible | ranks | by | seconds | what is left |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n%s\n", title, summary(rows), strings.Join(rows, ""))
}

// summary counts rows by what they say.
func summary(rows []string) string {
	count := map[string]int{}
	for _, row := range rows {
		status, _, _ := strings.Cut(strings.Split(row, " | ")[1], ";")
		count[status]++
	}
	return fmt.Sprintf("%d in all: %d proved up to the bound, %d of these on real numbers; %d in part, %d open, %d not expressible, %d refuted.",
		len(rows), count["proved"]+count["proved on real numbers"], count["proved on real numbers"], count["proved in part"], count["open"], count["not expressible"], count["refuted"])
}

// renew replaces the rows of what a session has proved in the tables of a file, and counts anew.
func renew(file string, s *prove.Session) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(old), "\n")
	for i, line := range lines {
		for _, r := range s.Sorted() {
			if s.Only(r.Rule) && strings.HasPrefix(line, "| "+r.Rule+" | ") {
				lines[i] = r.Row()
			}
		}
	}
	for i, line := range lines {
		if strings.Contains(line, " in all: ") {
			var rows []string
			for _, row := range lines[i+4:] {
				if !strings.HasPrefix(row, "| ") {
					break
				}
				rows = append(rows, row)
			}
			lines[i] = summary(rows) + "\n"
		}
	}
	return os.WriteFile(file, []byte(strings.Join(lines, "")), 0o644)
}

// between puts text into a file, between a mark and the next end.
func between(file, from, text string) error {
	const to = "<!-- end -->\n"
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), from)
	_, after, also := strings.Cut(rest, to)
	if !ok || !also {
		return fmt.Errorf("%s has no marks", file)
	}
	return os.WriteFile(file, []byte(before+from+text+to+after), 0o644)
}

// conversions proves the conversions of models: lines of a name, a file, inputs and sizes.
func conversions(list string, limit time.Duration, write string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("| model | equations proved | same operators | constants | for all elements | on real numbers | at smaller sizes | by a proved rule | values that follow from proved ones | seconds | left to the numbers |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if len(cells) != 4 {
			return fmt.Errorf("%s: %q has not four cells", list, line)
		}
		var o aton.LoadOptions
		if o.Inputs, err = spec.ParseAll(strings.Fields(cells[2]), nil); err != nil {
			return err
		}
		m, err := aton.Load(cells[1], o)
		if err != nil {
			return err
		}
		p := prove.New()
		p.Solver.Limit = limit
		v := prove.NewValidation(p)
		v.Dims = map[string]int64{}
		for _, size := range strings.FieldsFunc(cells[3], func(r rune) bool { return r == ',' }) {
			name, n, _ := strings.Cut(size, "=")
			if v.Dims[name], err = strconv.ParseInt(n, 10, 64); err != nil {
				return err
			}
		}
		began := time.Now()
		_, err = aton.Convert(m, aton.ConvertOptions{}.WithObserver(v.Watch(m)))
		err = errors.Join(err, v.Err())
		p.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", cells[0], err)
		}
		by, all, left := v.Count(), 0, map[string]int{}
		for _, n := range by {
			all += n
		}
		for _, c := range v.Changes {
			if n := c.By[prove.AgreesOnInputs] + c.By[prove.Unproved]; n > 0 {
				left[cmp.Or(c.Rule, c.Pass)] += n
			}
		}
		var rest []string
		for _, name := range slices.Sorted(maps.Keys(left)) {
			rest = append(rest, fmt.Sprintf("%s: %d", name, left[name]))
		}
		proved := all - by[prove.AgreesOnInputs] - by[prove.Unproved]
		row := fmt.Sprintf("| %s | %d of %d | %d | %d | %d | %d | %d | %d | %d of %d | %.1f | %s |\n", cells[0], proved, all, by[prove.Congruent], by[prove.Computed], by[prove.ForAllElements], by[prove.OnReals], by[prove.AtSmallSizes], by[prove.ByRule],
			v.Sure, v.Values, time.Since(began).Seconds(), strings.Join(rest, ", "))
		fmt.Print(row)
		b.WriteString(row)
	}
	if write == "" {
		return nil
	}
	return between(write, "<!-- made by make prove-exports -->\n", b.String())
}
