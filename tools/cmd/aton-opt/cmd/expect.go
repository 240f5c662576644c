package cmd

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/lib/cli"
)

// expectation is a comment "# expected-error {{text}}": the line that it stands on gives an error with that text. The line may be
// another: @+1, @-2, @above, @below, or @unknown for errors without a place.
type expectation struct {
	level string
	line  int // 0: unknown
	text  string
	at    int // the comment's own line
	met   bool
}

var (
	expected = regexp.MustCompile(`#.*?expected-(error|warning|note)(@[a-z0-9+-]+)?\s*\{\{(.*?)\}\}`)
	opLine   = regexp.MustCompile(`^[^#]*=\s*[A-Za-z_][\w.]*::\w`)
)

func expectations(text string) ([]*expectation, error) {
	var out []*expectation
	for i, line := range strings.Split(text, "\n") {
		for rest := line; ; {
			m := expected.FindStringSubmatchIndex(rest)
			if m == nil {
				if strings.Contains(rest, "expected-error") && !strings.Contains(rest, "RUN:") && len(rest) == len(line) {
					return nil, fmt.Errorf("line %d: a comment for --verify-diagnostics looks like this: # expected-error {{text}}", i+1)
				}
				break
			}
			e := &expectation{level: rest[m[2]:m[3]], line: i + 1, at: i + 1, text: rest[m[6]:m[7]]}
			if m[4] >= 0 {
				switch where := rest[m[4]+1 : m[5]]; where {
				case "above":
					e.line--
				case "below":
					e.line++
				case "unknown":
					e.line = 0
				default:
					n, err := strconv.Atoi(where)
					if err != nil || where[0] != '+' && where[0] != '-' {
						return nil, fmt.Errorf("line %d: @%s is none of @+N, @-N, @above, @below, @unknown", i+1, where)
					}
					e.line += n
				}
			}
			out = append(out, e)
			rest = "#" + rest[m[1]:]
		}
	}
	return out, nil
}

// expect runs the parts and compares what they report with what their comments expect.
func (o *options) expect(c *cobra.Command, name string, parts []string, pipeline *passes.Pipeline) error {
	clean := true
	complain := func(line int, format string, args ...any) {
		clean = false
		fmt.Fprintf(c.ErrOrStderr(), "%s:%d: %s\n", name, line, fmt.Sprintf(format, args...))
	}
	for _, part := range parts {
		wanted, err := expectations(part)
		if err != nil {
			return cli.Misusef("%s: %w", name, err)
		}
		items, table, err := o.diagnose(name, part, pipeline)
		if err != nil {
			return err
		}
		format := diag.List{}
		for _, d := range items {
			line := 0
			if f := table.Frame(d.Loc); f.File == name {
				line = f.Line
			}
			text := format.Format(diag.Diagnostic{Op: d.Op, Message: d.Message, Hint: d.Hint})
			found := false
			for _, e := range wanted {
				if !e.met && e.level == d.Severity.String() && e.line == line && strings.Contains(text, e.text) {
					e.met, found = true, true
					break
				}
			}
			if !found {
				complain(line, "unexpected %s: %s", d.Severity, text)
			}
		}
		for _, e := range wanted {
			if !e.met {
				complain(e.at, "expected %s {{%s}} did not come", e.level, e.text)
			}
		}
	}
	if !clean {
		return cli.ErrQuiet
	}
	return nil
}

// diagnose gives all that is reported for a part. Ops are located in the part itself, not in the program it came from.
func (o *options) diagnose(name, text string, pipeline *passes.Pipeline) ([]diag.Diagnostic, *diag.Table, error) {
	m, err := o.parse(name, text)
	var syntax *ssa.ParseError
	if errors.As(err, &syntax) {
		var table diag.Table
		loc := table.Add(diag.Frame{File: name, Line: syntax.Line})
		return []diag.Diagnostic{{ID: "syntax", Loc: loc, Message: syntax.Message}}, &table, nil
	}
	if err != nil {
		return nil, nil, err
	}
	locate(m, name, text)
	var list *diag.List
	if err := ssa.Verify(m); err != nil {
		if !errors.As(err, &list) {
			return nil, nil, err
		}
		return list.Items, &m.Locs, nil
	}
	r, _ := o.runner(io.Discard)
	r.Reload = func() (*ssa.Module, error) { return o.parse(name, text) }
	list, err = pipeline.Run(m, r)
	var failed *passes.Failure
	if errors.As(err, &failed) {
		return nil, nil, err
	}
	items := list.Items
	if other := (*diag.List)(nil); err != nil && !errors.As(err, &other) {
		items = append(items, diag.Diagnostic{Message: err.Error()})
	}
	return items, &m.Locs, nil
}

// locate sets the location of each op to its line in the text, where an op has a line of its own.
func locate(m *ssa.Module, name, text string) {
	var lines []int
	for i, line := range strings.Split(text, "\n") {
		if opLine.MatchString(line) {
			lines = append(lines, i+1)
		}
	}
	n := 0
	for _, f := range m.Funcs {
		for range f.Body.AllOps() {
			n++
		}
	}
	if n != len(lines) {
		return
	}
	n = 0
	for _, f := range m.Funcs {
		for op := range f.Body.AllOps() {
			op.Loc = m.Locs.Add(diag.Frame{File: name, Line: lines[n]})
			n++
		}
	}
}
