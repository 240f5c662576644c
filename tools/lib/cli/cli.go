// Package cli is what aton's commands have in common: exit statuses, errors as text or data, files that
// are there in full or not at all.
package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/docs/diagnostics"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/tensor/mapfile"
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

// IsMisuse reports an error of a wrong call.
func IsMisuse(err error) bool {
	var misuse usageError
	return errors.As(err, &misuse)
}

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
func Run(command *cobra.Command, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, problems := newText(stdout), newText(stderr)
	stdout, stderr = out, problems
	defer func() { _, _ = out.flush(), problems.flush() }()
	command.SetArgs(args)
	command.SetIn(stdin)
	command.SetOut(stdout)
	command.SetErr(stderr)
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetFlagErrorFunc(FlagError)
	ran := false
	mark(command, &ran)
	found, err := execute(command)
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
		_ = EncodeJSON(stderr, struct { // the fields are strings and numbers
			Errors []Problem `json:"errors"`
		}{Problems(err)}, false)
		return status
	}
	printError(stderr, err)
	var f *passes.Failure
	var c *crash
	switch {
	case errors.As(err, &f):
		fmt.Fprint(stderr, f.Stack)
	case errors.As(err, &c):
		fmt.Fprint(stderr, c.stack)
	}
	if ids := explainable(found, err); len(ids) > 0 && Terminal(stderr) {
		fmt.Fprintf(stderr, "Run '%s explain %s' for more.\n", found.Root().Name(), strings.Join(ids, " "))
	}
	if status == Usage {
		fmt.Fprintf(stderr, "Run '%s --help' for usage.\n", found.CommandPath())
	}
	return status
}

// printError prints an error for a person. That of a model is printed with the lines of the program.
func printError(w io.Writer, err error) {
	var list *diag.List
	var of *ModelError
	switch isList := errors.As(err, &list); {
	case isList && errors.As(err, &of):
		r := &Report{Model: of.Model, Sources: of.Sources, Verbose: of.Verbose}
		problems := slices.DeleteFunc(Problems(list), func(p Problem) bool { return p.Level != diag.Error.String() })
		if r.Print(w, problems); len(problems) > 1 {
			_, _ = Fprintf(w, "%d errors in %s\n", len(problems), of.Model)
		}
	case isList: // a line each, with its place first
		fmt.Fprintln(w, told(err))
	default:
		first, rest, more := strings.Cut(told(err), "\n")
		Tell(w, diag.Error, first)
		if more {
			fmt.Fprintln(w, rest)
		}
	}
}

// explainable lists the identifiers in an error that the command's explain has more to say of.
func explainable(c *cobra.Command, err error) []string {
	if !slices.ContainsFunc(c.Root().Commands(), func(s *cobra.Command) bool { return s.Name() == "explain" }) {
		return nil
	}
	var list *diag.List
	if !errors.As(err, &list) {
		return nil
	}
	var ids []string
	for _, d := range list.Items {
		if _, ok := diagnostics.Page(d.ID); ok && d.Severity == diag.Error && !slices.Contains(ids, d.ID) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// execute runs a command. A panic is an error of ours and ends as one; so is a fault of memory, by which the system tells
// that a mapped file has become shorter.
func execute(c *cobra.Command) (found *cobra.Command, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		switch r := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }:
			found, err = c, errors.New("a file was changed or cut while it was read; run the command again when it is complete")
		default:
			found, err = c, &crash{r, string(debug.Stack())}
		}
	}()
	return c.ExecuteC()
}

// crash is a panic outside of the passes.
type crash struct {
	cause any
	stack string
}

func (c *crash) Error() string {
	return fmt.Sprintf("internal error: %v; this is a defect of aton: report it, with the model and what follows", c.cause)
}

// Signals has the process remove its temporary files before a signal from the keyboard or the system ends it.
func Signals() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-c
		atomicfile.RemoveTemporary()
		status := 1
		if n, ok := s.(syscall.Signal); ok {
			status = 128 + int(n) // as shells count
		}
		os.Exit(status)
	}()
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

// Problem is an error as data. Its place is the innermost one in the user's own files; Column counts from 0.
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
	// Frames are the other frames, the innermost first.
	Frames []Frame `json:"frames,omitempty"`

	place string // of what is in no file of the user's
}

// Frame is a place in a program. Column counts from 0.
type Frame struct {
	File     string `json:"file"`
	Line     int    `json:"line"`
	Column   int    `json:"column,omitempty"`
	Function string `json:"function,omitempty"`
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
				p.locate(list.Table, d.Loc)
			}
			ps = append(ps, p)
		}
		return ps
	case errors.As(err, &parse):
		return []Problem{{ID: "syntax", File: parse.File, Line: parse.Line, Column: parse.Col, Level: "error", Message: parse.Message}}
	}
	return []Problem{{ID: identify(err), Level: "error", Message: err.Error()}}
}

// locate notes the place of a problem and the frames around it.
func (p *Problem) locate(t *diag.Table, at diag.Loc) {
	f := t.Place(at)
	p.File, p.Line, p.Column, p.Scope, p.place = f.File, f.Line, f.Col, f.Scope, t.Position(at)
	for _, c := range t.Calls(at) {
		frame := Frame{c.File, c.Line, c.Col, c.Func}
		same := c.File == p.File && c.Line == p.Line && c.Col == p.Column
		if n := len(p.Frames); c.File != "" && !same && (n == 0 || p.Frames[n-1] != frame) {
			p.Frames = append(p.Frames, frame)
		}
	}
}

// DiskFull is the identifier of a file that could not be written because its disk has no room.
const DiskFull = "disk-full"

// identify finds the identifier of an error that is no list.
func identify(err error) string {
	var named interface{ ProblemID() string }
	var path *fs.PathError
	var failure *passes.Failure
	var c *crash
	id := "failed"
	switch {
	case IsMisuse(err):
		id = "usage"
	case errors.As(err, &failure), errors.As(err, &c):
		id = "internal"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		id = DiskFull
	case errors.As(err, &path):
		id = "file"
	case errors.As(err, &named):
		id = named.ProblemID()
	}
	return id
}

// maxStream is how much is read of standard input, in bytes.
var maxStream int64 = 2 << 30 // less in a test

// memoryStream is how much of standard input is kept in memory; more goes to a temporary file.
const memoryStream = 64 << 20

// ReadStream reads all of standard input, which may be endless.
func ReadStream(stdin io.Reader) ([]byte, error) {
	stdin = io.LimitReader(stdin, maxStream+1)
	// in parts: a buffer that grows would leave several of its size behind
	var parts [][]byte
	var readers []io.Reader
	b, err := []byte(nil), error(nil)
	for n, size := 0, 64<<10; err == nil && n < memoryStream; size = min(2*size, 4<<20) {
		part := make([]byte, min(size, memoryStream-n))
		var k int
		k, err = io.ReadFull(stdin, part)
		n += k
		parts, readers = append(parts, part[:k]), append(readers, bytes.NewReader(part[:k]))
	}
	switch {
	case err == nil:
		b, err = mapfile.Spool(io.MultiReader(append(readers, stdin)...), -1)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		b, err = bytes.Join(parts, nil), nil
	}
	if err == nil && int64(len(b)) > maxStream {
		return nil, fmt.Errorf("standard input has more than %d GiB; give a file", maxStream>>30)
	}
	return b, err
}

// ReadFile reads a file; "-" is standard input.
func ReadFile(name string, stdin io.Reader) ([]byte, error) {
	if name == "-" {
		return ReadStream(stdin)
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

// WriteText lets write fill a file with text, which appears only when that went well; "-" is standard output, which gets nothing before
// all is written. What a terminal would not show as it is comes out as escapes.
func WriteText(name string, stdout io.Writer, write func(w io.Writer) error) error {
	return WriteFile(name, stdout, func(w io.Writer) error {
		t := newText(w)
		if err := write(t); err != nil {
			return err
		}
		return t.flush()
	})
}

// WriteFile is WriteText for what is no text: its bytes stay as they are.
func WriteFile(name string, stdout io.Writer, write func(w io.Writer) error) error {
	if name == "-" {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			return err
		}
		_, err := Raw(stdout).Write(b.Bytes())
		return err
	}
	return plain(atomicfile.Write(name, write))
}

// Terminal says whether a person is likely to watch what is written.
func Terminal(w io.Writer) bool {
	f, ok := Raw(w).(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a character device, too, of which nobody reads
	return err != nil || !os.SameFile(info, null)
}
