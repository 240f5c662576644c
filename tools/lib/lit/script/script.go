// Package script runs test files that say themselves how: the RUN lines in their comments.
//
//	# RUN: aton-opt %s --passes=cse | FileCheck %s
//	# RUN: not aton-opt %s --passes=nonsense > %t.out 2>&1 \
//	# RUN:   && FileCheck %s --check-prefix=ERR < %t.out
//
// There is no shell. A line is a chain of pipelines joined by "&&"; a pipeline has commands
// joined by "|" and the redirections "< FILE", "> FILE" and "2>&1"; "not" in front of a command turns
// its exit status around. %s is the test file, %S its folder, %t a path for scratch files that no other
// test has, and %% a percent sign. Single and double quotes keep blanks and special characters together.
//
// Commands are Go functions, called in this process: fast, portable, and seen by the coverage and race tools.
package script

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// Command is a program. It gives its exit status.
type Command func(args []string, stdin io.Reader, stdout, stderr io.Writer) int

// Runner knows the commands that RUN lines may call.
type Runner struct {
	Commands map[string]Command
}

// Test is a test file, read and parsed.
type Test struct {
	Path  string // absolute
	Text  string
	Lines []Line
}

// Line is one RUN line, continuations included.
type Line struct {
	Number int // of its first line in the file
	Text   string
	Chain  []Pipeline
}

// Pipeline is a row of commands, each reading what the one before it wrote.
type Pipeline []Stage

// Stage is a command with its arguments, as written: substitutions come when it runs.
type Stage struct {
	Not      bool
	Name     string
	Args     []string
	Input    string // file, or ""
	Output   string // file, or ""
	Together bool   // 2>&1
}

// Parse reads a test file.
func Parse(path string) (*Test, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return nil, err
	}
	t := &Test{Path: path, Text: string(text)}
	open := false // the line before ended with a backslash
	for n, line := range strings.Split(t.Text, "\n") {
		_, run, found := strings.Cut(line, "RUN:")
		if before := strings.TrimSuffix(line, "RUN:"+run); !found || strings.Trim(before, " \t#/;") != "" {
			if open {
				return nil, fmt.Errorf("%s:%d: the RUN line before ends with a backslash, but none follows", path, n+1)
			}
			continue
		}
		run = strings.TrimSpace(run)
		if open {
			last := &t.Lines[len(t.Lines)-1]
			last.Text += " " + run
		} else {
			t.Lines = append(t.Lines, Line{Number: n + 1, Text: run})
		}
		last := &t.Lines[len(t.Lines)-1]
		last.Text, open = strings.CutSuffix(last.Text, "\\")
		last.Text = strings.TrimSpace(last.Text)
	}
	if len(t.Lines) == 0 {
		return nil, fmt.Errorf("%s: no RUN line", path)
	}
	for i := range t.Lines {
		l := &t.Lines[i]
		if l.Chain, err = parseLine(l.Text); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, l.Number, err)
		}
	}
	return t, nil
}

// Error is a RUN line that failed.
type Error struct {
	Path   string
	Line   Line
	Stage  int // of the pipeline
	Reason string
	Output string // what the commands wrote on standard error
}

// Error gives the line, the reason and what the commands said.
func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d: %s\nRUN: %s\n%s", e.Path, e.Line.Number, e.Reason, e.Line.Text, e.Output)
}

// Run runs all lines of a test, and gives the first failure. Scratch is a folder for its files.
func (r *Runner) Run(t *Test, scratch string) error {
	for _, line := range t.Lines {
		for _, p := range line.Chain {
			if _, err := r.Pipe(t, line, p, scratch); err != nil {
				return err
			}
		}
	}
	return nil
}

// Pipe runs one pipeline and gives what its last command wrote to standard output.
func (r *Runner) Pipe(t *Test, line Line, p Pipeline, scratch string) ([]byte, error) {
	var between []byte
	var said bytes.Buffer
	fail := func(i int, format string, args ...any) ([]byte, error) {
		return nil, &Error{Path: t.Path, Line: line, Stage: i, Reason: fmt.Sprintf(format, args...), Output: said.String()}
	}
	substitute := t.substitution(scratch)
	for i, s := range p {
		command, ok := r.Commands[s.Name]
		if !ok {
			return fail(i, "unknown command %q", s.Name)
		}
		args := make([]string, len(s.Args))
		for k, a := range s.Args {
			args[k] = substitute(a)
		}
		if s.Input != "" {
			var err error
			if between, err = os.ReadFile(substitute(s.Input)); err != nil {
				return fail(i, "%v", err)
			}
		}
		var out, errs bytes.Buffer
		stderr := &errs
		if s.Together {
			stderr = &out
		}
		code, crash := call(command, args, bytes.NewReader(between), &out, stderr)
		if errs.Len() > 0 || crash != "" {
			fmt.Fprintf(&said, "%s says:\n%s%s", s.Name, errs.String(), crash)
		}
		if s.Output != "" {
			if err := os.WriteFile(substitute(s.Output), out.Bytes(), 0o666); err != nil {
				return fail(i, "%v", err)
			}
			between = nil
		} else {
			between = out.Bytes()
		}
		switch {
		case crash != "":
			return fail(i, "%s panicked", s.Name)
		case code == 0 && s.Not:
			return fail(i, "%s should have failed", s.Name)
		case code != 0 && !s.Not:
			if s.Together && s.Output == "" {
				said.Write(between)
			}
			return fail(i, "%s: exit status %d", s.Name, code)
		}
	}
	return between, nil
}

func call(c Command, args []string, stdin io.Reader, stdout, stderr io.Writer) (code int, crash string) {
	defer func() {
		if p := recover(); p != nil {
			crash = fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c(args, stdin, stdout, stderr), ""
}

func (t *Test) substitution(scratch string) func(string) string {
	values := map[byte]string{
		's': t.Path,
		'S': filepath.Dir(t.Path),
		't': filepath.Join(scratch, filepath.Base(t.Path)+".tmp"),
		'%': "%",
	}
	return func(s string) string {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if s[i] == '%' && i+1 < len(s) {
				// %self is a value of the IR, not %s and "elf"
				word := i+2 < len(s) && s[i+1] != '%' && (s[i+2] == '_' || s[i+2] >= '0' && s[i+2] <= '9' || s[i+2] >= 'a' && s[i+2] <= 'z' || s[i+2] >= 'A' && s[i+2] <= 'Z')
				if v, ok := values[s[i+1]]; ok && !word {
					b.WriteString(v)
					i++
					continue
				}
			}
			b.WriteByte(s[i])
		}
		return b.String()
	}
}

// Cat writes the named files, or standard input, to standard output.
func Cat(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		io.Copy(stdout, stdin)
	}
	for _, name := range args {
		text, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintln(stderr, "cat:", err)
			return 1
		}
		stdout.Write(text)
	}
	return 0
}
