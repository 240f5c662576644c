package rules

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/pattern"
)

// reader reads and checks files.
type reader struct {
	set   *Set
	list  diag.List
	table *aten.Table      // of the declarations
	names map[string]place // of rules
	at    place            // of the line at hand
	vague bool             // what the rule at hand binds is not known
}

// fail notes what is wrong at a column of the line at hand.
func (r *reader) fail(column int, hint, format string, args ...any) {
	at := r.at
	at.column = column
	r.failAt(at, hint, format, args...)
}

func (r *reader) failAt(at place, hint, format string, args ...any) {
	loc := r.set.locs.Add(diag.Frame{File: at.file, Line: at.line, Col: at.column - 1})
	r.list.Add(diag.Diagnostic{ID: "rules", Loc: loc, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// failErr notes an error of the pattern reader.
func (r *reader) failErr(err error) {
	var e *pattern.Error
	if errors.As(err, &e) {
		r.fail(e.Column, "", "%s", e.Message)
	}
}

// The parts of a rule.
const (
	noPart = iota
	fromPart
	wherePart
	toPart
)

var parts = map[string]int{"from": fromPart, "where": wherePart, "to": toPart}

var ruleName = regexp.MustCompile(`^[A-Za-z_][\w.-]*$`)

var domainName = regexp.MustCompile(`^[A-Za-z_][\w.-]*$`)

// file reads one file. A line is a statement; its first word says which.
func (r *reader) file(s Source) {
	var u *rule
	part := noPart
	n := 0
	for line := range strings.Lines(s.Text) {
		n++
		text := strings.TrimRight(withoutComment(line), " \t\r\n")
		trimmed := strings.TrimLeft(text, " \t")
		if trimmed == "" {
			continue
		}
		r.at = place{s.Name, n, len(text) - len(trimmed) + 1}
		word, rest, _ := strings.Cut(trimmed, " ")
		rest = strings.TrimSpace(rest)
		next, isPart := parts[trimmed]
		switch {
		case word == "rule":
			u, part = r.begin(rest), noPart
		case word == "declare":
			r.declare(rest)
		case word == "domain":
			r.domain(rest)
		case isPart && u == nil:
			r.fail(r.at.column, "begin one with: rule NAME", "%q stands outside of a rule", trimmed)
		case isPart:
			part = next
		case u == nil || part == noPart:
			r.fail(r.at.column, "a line is: declare SCHEMA, domain NAME VERSION, rule NAME, from, where, to; or a part of one of the last three",
				"%q is not understood here", clip(trimmed))
		default:
			r.statement(u, part, text)
		}
	}
}

// withoutComment cuts a line at a # that stands in no string.
func withoutComment(line string) string {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && quoted:
			i++
		case line[i] == '"':
			quoted = !quoted
		case line[i] == '#' && !quoted:
			return line[:i]
		}
	}
	return line
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}

func (r *reader) begin(name string) *rule {
	if !ruleName.MatchString(name) {
		r.fail(r.at.column, "write: rule NAME, of letters, digits, _, - and .", "%q is no name of a rule", clip(name))
	}
	if before, taken := r.names[name]; taken {
		r.fail(r.at.column, "choose another name", "rule %s is there already, at %s", name, before)
	}
	r.names[name] = r.at
	u := &rule{name: name, place: r.at}
	r.set.rules = append(r.set.rules, u)
	return u
}

// declare reads: declare mylib::op(Tensor x, float alpha=1.0) -> Tensor
func (r *reader) declare(text string) {
	s, err := ssa.ParseSchema(text)
	if err != nil {
		r.fail(r.at.column, "write it as torch.library takes it, such as: declare mylib::op(Tensor x, *, float alpha=1.0) -> Tensor", "%s", err)
		return
	}
	for _, a := range append(append([]ssa.SchemaArg(nil), s.Args...), s.Returns...) {
		if v := variable(a.Type); v != "" {
			r.fail(r.at.column, "a type is Tensor, int, float, bool, str, Scalar, ScalarType, or one of these with [] or ?", "%s: there is no type %q", s.FullName(), v)
			return
		}
	}
	for i, a := range s.Args {
		if a.Name == "" || s.Arg(a.Name) != i {
			r.fail(r.at.column, "give each argument a name of its own", "%s: argument %d has no name, or that of another", s.FullName(), i)
			return
		}
	}
	if err := r.table.Declare(s); err != nil {
		r.fail(r.at.column, "", "%s", err)
		return
	}
	r.set.declared = append(r.set.declared, s)
}

// variable is a word in a type that names none.
func variable(t ssa.Type) string {
	switch t := t.(type) {
	case *ssa.VarType:
		return t.String()
	case *ssa.ListType:
		return variable(t.Elem)
	case *ssa.OptionalType:
		return variable(t.Elem)
	}
	return ""
}

// domain reads: domain com.example 2
func (r *reader) domain(text string) {
	name, version, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(strings.TrimSpace(version))
	switch {
	case !domainName.MatchString(name) || err != nil || n < 1:
		r.fail(r.at.column, "write: domain NAME VERSION, such as: domain com.example 2", "%q is no domain with a version", clip(text))
	case name == "onnx" || name == "ai.onnx":
		r.fail(r.at.column, "choose it with --opset", "the version of ONNX's own domain is the opset")
	case r.set.Domains[name] != 0 && r.set.Domains[name] != n:
		r.fail(r.at.column, "keep one of the two", "domain %s has version %d already", name, r.set.Domains[name])
	default:
		r.set.Domains[name] = n
	}
}

// statement reads a line of a part of a rule.
func (r *reader) statement(u *rule, part int, text string) {
	if part == wherePart {
		c, err := pattern.ParseCondition(text)
		if err != nil {
			u.broken = true
			r.failErr(err)
			return
		}
		u.where = append(u.where, condition{c, text, r.at})
		return
	}
	l, err := pattern.ParseLine(text)
	switch {
	case err != nil:
		u.broken = true
		r.failErr(err)
	case part == fromPart:
		u.from, u.lines = append(u.from, pattern.Sought{Line: l}), append(u.lines, fromLine{text, r.at})
	default:
		u.to = append(u.to, toLine{l, text, r.at})
	}
}
