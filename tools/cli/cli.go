// Package cli is what aton's commands have in common: exit statuses, errors as text or data, files that
// are there in full or not at all.
package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Exit statuses.
const (
	Done   = 0
	Failed = 1
	Usage  = 2
)

// usageError is a mistake in how the command was called.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }
func (e usageError) Unwrap() error { return e.err }

// Misuse makes an error of a wrong call: exit status 2. It keeps nil.
func Misuse(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Misusef is Misuse with a message.
func Misusef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// ErrQuiet is a failure that has been told already.
var ErrQuiet = errors.New("failed")

// Run runs a command in this process. Its flag --json, if it has one, makes errors data.
func Run(c *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c.SetArgs(args)
	c.SetIn(stdin)
	c.SetOut(stdout)
	c.SetErr(stderr)
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return Misuse(err) })
	ran := false
	mark(c, &ran)
	found, err := c.ExecuteC()
	if err == nil {
		return Done
	}
	if errors.Is(err, ErrQuiet) {
		return Failed
	}
	status := Failed
	var misuse usageError
	if errors.As(err, &misuse) || !ran { // what cobra finds before the command runs
		status = Usage
	}
	if slices.Contains(args, "--json") {
		b, _ := json.Marshal(struct { // the fields are strings and numbers
			Errors []Problem `json:"errors"`
		}{Problems(err)})
		fmt.Fprintf(stderr, "%s\n", b)
		return status
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		fmt.Fprintln(stderr, line)
	}
	var f *passes.Failure
	if errors.As(err, &f) && f.Stack != "" {
		fmt.Fprint(stderr, f.Stack)
	}
	if status == Usage {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", found.CommandPath())
	}
	return status
}

// mark notes when a command's own code begins to run.
func mark(c *cobra.Command, ran *bool) {
	if inner := c.RunE; inner != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			*ran = true
			return inner(c, args)
		}
	}
	for _, sub := range c.Commands() {
		mark(sub, ran)
	}
}

// Version is what the Go command recorded of the module and of the commit that it built.
func Version() string {
	b, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	out := b.Main.Version
	for _, s := range b.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(out, s.Value[:min(12, len(s.Value))]) {
			out += " " + s.Value
		}
	}
	return out
}

// Problem is an error as data.
type Problem struct {
	ID      string `json:"id,omitempty"`
	Op      string `json:"op,omitempty"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Scope   string `json:"scope,omitempty"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Problems takes an error apart.
func Problems(err error) []Problem {
	var list *diag.List
	var parse *ssa.ParseError
	switch {
	case errors.As(err, &list):
		var ps []Problem
		for _, d := range list.Items {
			p := Problem{ID: d.ID, Op: d.Op, Level: d.Severity.String(), Message: d.Message, Hint: d.Hint}
			if list.Table != nil {
				f := list.Table.Frame(d.Loc)
				p.File, p.Line, p.Column, p.Scope = f.File, f.Line, f.Col, f.Scope
			}
			ps = append(ps, p)
		}
		return ps
	case errors.As(err, &parse):
		return []Problem{{ID: "syntax", File: parse.File, Line: parse.Line, Column: parse.Col, Level: "error", Message: parse.Message}}
	}
	return []Problem{{Level: "error", Message: err.Error()}}
}

// ReadFile reads a file; "-" is standard input.
func ReadFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(stdin)
	}
	b, err := os.ReadFile(name)
	return b, plain(err)
}

// plain leaves the system call out of a message.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Path, p.Err)
	}
	return err
}

// WriteFile lets write fill a file, which appears only when that went well; "-" is standard output,
// which gets nothing before all is written.
func WriteFile(name string, stdout io.Writer, write func(w io.Writer) error) error {
	if name == "-" {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		_, err := stdout.Write(b.Bytes())
		return err
	}
	return plain(atomicfile.Write(name, write))
}

// Terminal says whether a person is likely to watch what is written.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
