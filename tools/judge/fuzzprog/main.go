// Command fuzzprog sends changed programs and random ones through the whole line in one process, and looks for panics, for what takes
// too much time or memory, for files that are not valid, and for numbers that differ: `make fuzz-programs T=1h`.
//
//	go run ./tools/judge/fuzzprog [-t 1h] [-seed 1] [-out out/fuzz-programs] [-kinds random,code,...] [-from N] [-n N] [-only N]
//
// Changed programs are those of testdata and of lit-tests with a few changes (package mutant); random ones (random.go) and those of loops
// (loops.go) are TorchScript that a generator makes, with the numbers that backend/eager gives (judge.go). Program number N of a seed is the
// same in every run. What is found is a folder in -out with the program and finding.txt; -only N runs that program again and prints what it
// says. Exit status 1 if anything was found.
//
// The programs run in a child process, which the parent replaces when it ends before its time: a program that exhausts
// memory or the stack is a finding like the others.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kinds of programs. All but random and loops are changed ones: the code of an archive, its pickles, the JSON of an exported program, the
// fields of an ONNX model, graph text, and what is stated of the inputs.
var kinds = []string{"random", "loops", "code", "number", "pickle", "json", "proto", "text", "spec"}

type options struct {
	t             time.Duration
	seed          uint64
	from, n, only int
	out, root     string
	write         string
	kinds         []string
	worker        bool
}

func main() {
	o := options{}
	flag.DurationVar(&o.t, "t", time.Minute, "how long to run")
	flag.Uint64Var(&o.seed, "seed", 1, "the seed")
	flag.IntVar(&o.from, "from", 0, "the number of the first program")
	flag.IntVar(&o.n, "n", 1<<40, "how many programs at most")
	flag.IntVar(&o.only, "only", -1, "run this program alone and print what it says")
	flag.StringVar(&o.out, "out", "out/fuzz-programs", "where findings go")
	flag.StringVar(&o.write, "write", "", "write the programs of the kind loops to this folder, with what the eager evaluator gives; beside.py compares that with PyTorch")
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	which := flag.String("kinds", strings.Join(kinds, ","), "the kinds of programs, in turn; one may be there several times")
	flag.IntVar(&smallest, "smallest", 0, "the least size of a dynamic axis of the kind random")
	flag.BoolVar(&o.worker, "worker", false, "be the child process")
	flag.Parse()
	o.kinds = strings.Split(*which, ",")
	for _, k := range o.kinds {
		if !slices.Contains(kinds, k) {
			fmt.Fprintf(os.Stderr, "no kind %q (there are: %s)\n", k, strings.Join(kinds, ", "))
			os.Exit(2)
		}
	}
	var found int
	var err error
	switch {
	case o.worker:
		err = work(o, os.Stdout)
	case o.only >= 0:
		o.from, o.n = o.only, 1
		err = work(o, os.Stdout)
	default:
		found, err = run(o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if found > 0 {
		os.Exit(1)
	}
}

// tally counts the programs of a kind by outcome.
type tally struct {
	programs int
	outcomes map[string]int
}

// record is what the parent knows of a run.
type record struct {
	began    time.Time
	kinds    map[string]*tally
	findings map[string]int // by what they say, without numbers
	deaths   int
}

// run has child processes work until the time is over, and reports.
func run(o options) (int, error) {
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return 0, err
	}
	r := &record{began: time.Now(), kinds: map[string]*tally{}, findings: map[string]int{}}
	next := o.from
	for next < o.from+o.n && time.Since(r.began) < o.t {
		last, err := r.child(o, next)
		if err != nil {
			return 0, err
		}
		if last < next {
			return 0, fmt.Errorf("the child process does not start")
		}
		next = last + 1
		if err := os.WriteFile(filepath.Join(o.out, fmt.Sprintf("record-%d.txt", o.seed)), []byte(r.String(o.seed, next)), 0o666); err != nil {
			return 0, err
		}
	}
	fmt.Print(r.String(o.seed, next))
	return len(r.findings), nil
}

// child runs a child process from a program on, and gives the number of the last one that it began.
func (r *record) child(o options, from int) (last int, err error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// a child is replaced now and then, so that the record on disk is never old
	left := min(o.t-time.Since(r.began), 5*time.Minute)
	c := exec.Command(self, "-worker", "-t", left.String(), "-seed", strconv.FormatUint(o.seed, 10), "-from", strconv.Itoa(from), "-n", strconv.Itoa(o.from+o.n-from),
		"-out", o.out, "-root", o.root, "-write", o.write, "-smallest", strconv.Itoa(smallest), "-kinds", strings.Join(o.kinds, ","))
	var stderr beginning
	c.Stderr = &stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := c.Start(); err != nil {
		return 0, err
	}
	last, kind, inside := from-1, "", false
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		f := strings.SplitN(lines.Text(), "\t", 3)
		if len(f) != 3 {
			continue
		}
		switch f[0] {
		case "begin":
			if last, err = strconv.Atoi(f[1]); err != nil {
				return 0, err
			}
			kind, inside = f[2], true
			if r.kinds[kind] == nil {
				r.kinds[kind] = &tally{outcomes: map[string]int{}}
			}
			r.kinds[kind].programs++
		case "end":
			r.kinds[kind].outcomes[f[2]]++
			inside = false
		case "found":
			r.found(kind, last, f[2])
		}
	}
	if err := c.Wait(); err != nil && inside {
		if c.ProcessState.ExitCode() != limitStatus { // what a limit ended has told so
			r.deaths++
			says := "the process ends: " + firstLine(stderr.String())
			r.found(kind, last, says)
			if err := keep(o, last, kind, says+"\n"+stderr.String()); err != nil {
				return 0, err
			}
		}
	} else if err != nil {
		return 0, fmt.Errorf("the child process: %w\n%s", err, stderr.String())
	}
	return last, nil
}

func (r *record) found(kind string, i int, says string) {
	fmt.Printf("%s program %d (%s): %s\n", time.Since(r.began).Round(time.Second), i, kind, says)
	r.findings[kind+": "+signature(says)]++
}

var digits = regexp.MustCompile(`[0-9]+`)

// signature is what a finding says without what differs from one to the next.
func signature(says string) string { return digits.ReplaceAllString(firstLine(says), "#") }

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

func (r *record) String(seed uint64, next int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d programs in %v, %d processes ended early\n", seed, next, time.Since(r.began).Round(time.Second), r.deaths)
	for _, k := range kinds {
		if t := r.kinds[k]; t != nil {
			fmt.Fprintf(&b, "  %-8s %8d", k, t.programs)
			for _, name := range slices.Sorted(maps.Keys(t.outcomes)) {
				fmt.Fprintf(&b, "  %s %d", name, t.outcomes[name])
			}
			fmt.Fprintln(&b)
		}
	}
	fmt.Fprintf(&b, "%d findings\n", len(r.findings))
	for _, s := range slices.Sorted(maps.Keys(r.findings)) {
		fmt.Fprintf(&b, "  %d times %s\n", r.findings[s], s)
	}
	return b.String()
}

// workFile is where a child has the program that it runs, with the extension of its kind behind.
func workFolder(o options) string { return filepath.Join(o.out, fmt.Sprintf("work-%d", o.seed)) }

// keep copies the program that runs to a folder of its own.
func keep(o options, i int, kind, text string) error {
	dir := filepath.Join(o.out, fmt.Sprintf("seed%d-%d-%s", o.seed, i, kind))
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	inputs, err := filepath.Glob(filepath.Join(workFolder(o), "program.*"))
	if err != nil {
		return err
	}
	for _, f := range inputs {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(f)), b, 0o666); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "finding.txt"), []byte(text+"\n"), 0o666)
}

// beginning keeps the first 16 KiB or so of what is written.
type beginning struct{ head bytes.Buffer }

func (t *beginning) Write(b []byte) (int, error) {
	if t.head.Len() < 1<<14 {
		t.head.Write(b)
	}
	return len(b), nil
}

func (t *beginning) String() string { return t.head.String() }

var _ io.Writer = (*beginning)(nil)
