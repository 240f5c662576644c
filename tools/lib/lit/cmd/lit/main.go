// Lit runs test files by their RUN lines, as LLVM's lit does.
//
//	lit [-filter RE] [-update] [-v] FILE|FOLDER...
//
// It has aton, aton-opt, FileCheck and cat built in; any other command of a RUN line is looked for in PATH. The exit status is 1 if a test fails, and 2
// if there is none or the command line is wrong.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	atonopt "github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	aton "github.com/aton-project/aton/tools/cmd/aton/cmd"
	"github.com/aton-project/aton/tools/lib/filecheck"
	"github.com/aton-project/aton/tools/lib/lit/script"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("lit", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Usage = func() {
		fmt.Fprintf(stderr, "usage: lit [options] FILE|FOLDER...\n\nexample: lit -filter simplify lit-tests\n\noptions:\n")
		flags.PrintDefaults()
	}
	filter := flags.String("filter", "", "run only tests whose path matches this regular `expression`")
	update := flags.Bool("update", false, "rewrite AUTOCHECK blocks")
	verbose := flags.Bool("v", false, "print the tests that pass too")
	jobs := flags.Int("j", runtime.NumCPU(), "tests at a time")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	match, err := regexp.Compile(*filter)
	if err != nil {
		fmt.Fprintln(stderr, "lit: -filter:", err)
		return 2
	}
	tests, err := find(flags.Args(), match)
	if err != nil {
		fmt.Fprintln(stderr, "lit:", err)
		return 2
	}
	outcomes := make([]error, len(tests))
	changed := make([]bool, len(tests))
	runner := &script.Runner{Commands: commands(tests)}
	next := make(chan int)
	var all sync.WaitGroup
	for range max(*jobs, 1) {
		all.Go(func() {
			for i := range next {
				changed[i], outcomes[i] = check(runner, tests[i], *update)
			}
		})
	}
	for i := range tests {
		next <- i
	}
	close(next)
	all.Wait()
	failed := 0
	for i, t := range tests {
		switch {
		case outcomes[i] != nil:
			failed++
			fmt.Fprintf(stdout, "FAIL: %s\n%v\n", t.Path, outcomes[i])
		case changed[i]:
			fmt.Fprintf(stdout, "UPDATED: %s\n", t.Path)
		case *verbose:
			fmt.Fprintf(stdout, "PASS: %s\n", t.Path)
		}
	}
	fmt.Fprintf(stdout, "%d tests, %d failed\n", len(tests), failed)
	if failed > 0 {
		return 1
	}
	return 0
}

// find reads the tests of files and folders. None is an error.
func find(args []string, match *regexp.Regexp) ([]*script.Test, error) {
	if len(args) == 0 {
		return nil, errors.New("name a test file or a folder of tests (lit -h)")
	}
	var tests []*script.Test
	for _, arg := range args {
		files := []string{arg}
		if info, err := os.Stat(arg); err != nil {
			return nil, err
		} else if info.IsDir() {
			if files, err = script.Files(arg); err != nil {
				return nil, err
			}
		}
		for _, file := range files {
			if !match.MatchString(filepath.ToSlash(file)) {
				continue
			}
			t, err := script.Parse(file)
			if err != nil {
				return nil, err
			}
			tests = append(tests, t)
		}
	}
	if len(tests) == 0 {
		return nil, fmt.Errorf("no test (a file that ends in .ir) in %s matches -filter %q", strings.Join(args, ", "), match)
	}
	return tests, nil
}

// check runs a test with a scratch folder of its own.
func check(r *script.Runner, t *script.Test, update bool) (changed bool, err error) {
	scratch, err := os.MkdirTemp("", "lit")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(scratch)
	return r.Check(t, scratch, update)
}

// commands are those built in, and a process for each other one that the tests name.
func commands(tests []*script.Test) map[string]script.Command {
	found := map[string]script.Command{"aton": aton.Main, "aton-opt": atonopt.Main, "FileCheck": filecheck.Main, "cat": script.Cat}
	for _, t := range tests {
		for _, line := range t.Lines {
			for _, p := range line.Chain {
				for _, s := range p {
					if found[s.Name] == nil {
						found[s.Name] = process(s.Name)
					}
				}
			}
		}
	}
	return found
}

func process(name string) script.Command {
	return func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		c := exec.Command(name, args...)
		c.Stdin, c.Stdout, c.Stderr = stdin, stdout, stderr
		err := c.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			fmt.Fprintf(stderr, "lit: %v\n", err)
			return 127
		}
		return c.ProcessState.ExitCode()
	}
}
