// Package filecheck tells whether a text has the parts that the check lines of another file
// ask for, in the way of LLVM's FileCheck. The supported subset behaves as LLVM's does, which a test
// establishes case by case; where it differs, it is stricter: near-miss directives are errors.
//
// Regular expressions are POSIX extended ones, leftmost-longest, and never cross a line end
// unless they spell it.
package filecheck

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Options are those of the command line.
type Options struct {
	Prefixes         []string          // CHECK when empty
	CommentPrefixes  []string          // COM and RUN when empty
	ImplicitCheckNot []string          // patterns that may not occur between positive matches
	Defines          map[string]string // variables; a name that starts with # is numeric
	StrictWhitespace bool              // runs of blanks count as they are
	MatchFullLines   bool              // patterns match whole lines
	AllowEmpty       bool              // an empty input is no mistake
	AllowUnused      bool              // a prefix without directives is no mistake
	EnableVarScope   bool              // variables without $ end at each -LABEL
}

// File is a named text.
type File struct {
	Name string
	Text string
}

// SetupError says that the check file or the options are wrong, whatever the input.
type SetupError struct{ Problems []string }

// Error gives the problems, one a line.
func (e *SetupError) Error() string { return strings.Join(e.Problems, "\n") }

// Mismatch says where the input is not what the checks ask for.
type Mismatch struct{ Reports []string }

// Error gives the reports, one after the other.
func (e *Mismatch) Error() string { return strings.Join(e.Reports, "\n") }

var (
	defaultPrefixes = []string{"CHECK"}
	defaultComments = []string{"COM", "RUN"}
	prefixForm      = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
)

// Check compares the input with the directives in the check file. The result is nil, a
// *SetupError or a *Mismatch.
func Check(check, input File, opts Options) error {
	if len(opts.Prefixes) == 0 {
		opts.Prefixes = defaultPrefixes
	}
	if len(opts.CommentPrefixes) == 0 {
		opts.CommentPrefixes = defaultComments
	}
	if err := validPrefixes(opts); err != nil {
		return err
	}
	vars, err := newVariables(opts.Defines)
	if err != nil {
		return &SetupError{[]string{err.Error()}}
	}
	checks, err := parseChecks(check, opts, vars)
	if err != nil {
		return err
	}
	text := canonical(input.Text, opts.StrictWhitespace)
	if text == "" && !opts.AllowEmpty {
		return &SetupError{[]string{fmt.Sprintf("%s: error: the input is empty (--allow-empty permits it)", input.Name)}}
	}
	m := matcher{check: check, input: File{input.Name, text}, opts: opts, vars: vars}
	m.run(checks)
	if len(m.reports) > 0 {
		return &Mismatch{m.reports}
	}
	return nil
}

func validPrefixes(opts Options) error {
	seen := map[string]bool{}
	for _, p := range append(append([]string{}, opts.Prefixes...), opts.CommentPrefixes...) {
		if !prefixForm.MatchString(p) {
			return &SetupError{[]string{fmt.Sprintf("error: %q is no check prefix: it must start with a letter and go on with letters, digits, '-' and '_'", p)}}
		}
		if seen[p] {
			return &SetupError{[]string{fmt.Sprintf("error: check and comment prefixes must differ: %q comes twice", p)}}
		}
		seen[p] = true
	}
	return nil
}

// canonical ends lines with \n alone and, unless strict, makes each run of blanks one space.
func canonical(s string, strict bool) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strict {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	blank := false
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' || s[i] == '\t' {
			blank = true
			continue
		}
		if blank {
			b.WriteByte(' ')
			blank = false
		}
		b.WriteByte(s[i])
	}
	if blank {
		b.WriteByte(' ')
	}
	return b.String()
}

// IsSetup says whether the error is about the checks rather than the input.
func IsSetup(err error) bool {
	var s *SetupError
	return errors.As(err, &s)
}
