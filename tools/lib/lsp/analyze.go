package lsp

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"

	protocol "github.com/tliron/glsp/protocol_3_16"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// problem is something wrong with a text, on a line from 0 on and from a byte of it on.
type problem struct {
	line, col int
	message   string
	warning   bool
}

// parse reads a text, and says what is wrong with it: what the parser, the verifier and the schemas of the operators say.
func parse(name, text string) (*ssa.Module, []problem) {
	m, err := ssa.Parse(text, name, all.Dialects()...)
	var at *ssa.ParseError
	switch {
	case errors.As(err, &at):
		return nil, []problem{{line: at.Line - 1, col: at.Col - 1, message: at.Message}}
	case err != nil:
		return nil, []problem{{message: err.Error()}}
	}
	var found []problem
	for _, err := range []error{ssa.Verify(m), aten.CheckOperands(m)} {
		found = append(found, problemsOf(text, m, name, err)...)
	}
	for _, o := range aten.BindSchemas(m) {
		found = append(found, problem{line: lineOf(text, m, name, o), message: fmt.Sprintf("no overload of %s takes these operands", o.Kind), warning: true})
	}
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			if why := unknown(o.Kind); why != "" {
				found = append(found, problem{line: lineOf(text, m, name, o), message: why, warning: true})
			}
		}
	}
	return m, found
}

// unknown says why an operator of a dialect is none, "" if it is one. Operators of other namespaces are custom ones.
func unknown(k ssa.Kind) string {
	switch k.Namespace() {
	case "aten":
		if len(aten.Schemas(k)) == 0 {
			return fmt.Sprintf("PyTorch has no operator %s%s", k, diag.DidYouMean(string(k), kindNames(aten.Kinds())))
		}
	case onnx.Namespace:
		if onnx.SchemaOf(k) == nil {
			return fmt.Sprintf("ONNX has no operator %s%s", k, diag.DidYouMean(string(k), kindNames(onnx.Kinds())))
		}
	}
	return ""
}

func kindNames(kinds []ssa.Kind) []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
	}
	return names
}

func problemsOf(text string, m *ssa.Module, name string, err error) []problem {
	var list *diag.List
	if !errors.As(err, &list) {
		if err != nil {
			return []problem{{message: err.Error()}}
		}
		return nil
	}
	var found []problem
	for _, d := range list.Items {
		message := d.Message
		if d.Op != "" {
			message = d.Op + ": " + message
		}
		if d.Hint != "" {
			message += "; " + d.Hint
		}
		p := problem{message: message, warning: d.Severity != diag.Error}
		if f := m.Locs.Frame(d.Loc); f.File == name && f.Line > 0 {
			p.line = f.Line - 1
		} else {
			for o := range m.Main().Body.AllOps() {
				if o.Loc == d.Loc && string(o.Kind) == d.Op {
					p.line = lineOf(text, m, name, o)
					break
				}
			}
		}
		found = append(found, p)
	}
	return found
}

// lineOf is the line that an operator stands on: the one that its location names, or, if that is a line of Python, the one that defines its
// first result.
func lineOf(text string, m *ssa.Module, name string, o *ssa.Op) int {
	if f := m.Locs.Frame(o.Loc); f.File == name && f.Line > 0 {
		return f.Line - 1
	}
	if len(o.Results) > 0 && o.Result(0).Name != "" {
		if line, _, ok := definition(text, o.Result(0).Name, -1); ok {
			return line
		}
	}
	return 0
}

// valueName matches the name of a value behind %.
const valueName = `[A-Za-z0-9_.:/\[\]-]+`

var valueAt = regexp.MustCompile(`%` + valueName)

// definition finds where a value is defined: as a result or a parameter, the last time before a line (-1: the first time).
func definition(text, name string, before int) (line, col int, ok bool) {
	where := regexp.MustCompile(`%` + regexp.QuoteMeta(name) + `(\s*:|\s*,\s*%[^=]*=)`)
	for i, l := range strings.Split(text, "\n") {
		if before >= 0 && i > before {
			break
		}
		if strings.HasPrefix(strings.TrimSpace(l), "#") {
			continue
		}
		if at := where.FindStringIndex(l); at != nil {
			line, col, ok = i, at[0], true
			if before < 0 {
				return line, col, ok
			}
		}
	}
	return line, col, ok
}

// word is the name of a value or of an operator around a byte of a line.
func word(line string, col int) string {
	for _, re := range []*regexp.Regexp{valueAt, kindAt} {
		for _, at := range re.FindAllStringIndex(line, -1) {
			if at[0] <= col && col <= at[1] {
				return line[at[0]:at[1]]
			}
		}
	}
	return ""
}

var kindAt = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_.]*::[A-Za-z0-9_.]+`)

// lineText is a line of a text, "" behind its end.
func lineText(text string, n int) string {
	lines := strings.Split(text, "\n")
	if n < 0 || n >= len(lines) {
		return ""
	}
	return lines[n]
}

// position is the place of a byte of a line as the protocol counts it, in units of UTF-16.
func position(text string, line, col int) protocol.Position {
	l := lineText(text, line)
	return protocol.Position{Line: uint32(max(line, 0)), Character: uint32(len(utf16.Encode([]rune(l[:min(max(col, 0), len(l))]))))}
}

// column is the byte of a line at a place that counts units of UTF-16.
func column(line string, character uint32) int {
	units := uint32(0)
	for i, r := range line {
		if units >= character {
			return i
		}
		units += uint32(utf16.RuneLen(r))
	}
	return len(line)
}

// lineRange is from a byte of a line to its end.
func lineRange(text string, line, col int) protocol.Range {
	return protocol.Range{Start: position(text, line, col), End: position(text, line, len(lineText(text, line)))}
}

// describe is what a person wants to know of an operator: its schemas, what it does, and from which opset on it converts.
func describe(k ssa.Kind) string {
	var b strings.Builder
	if k.Namespace() == onnx.Namespace {
		s := onnx.SchemaOf(k)
		if s == nil {
			return ""
		}
		fmt.Fprintf(&b, "**%s** of ONNX, in this form since opset %d\n\n", s.Name, s.Since)
		for what, params := range map[string][]onnx.Param{"inputs": s.Inputs, "outputs": s.Outputs} {
			names := make([]string, len(params))
			for i, p := range params {
				names[i] = p.Name
			}
			fmt.Fprintf(&b, "%s: %s\n\n", what, strings.Join(names, ", "))
		}
		for _, a := range s.Attrs {
			fmt.Fprintf(&b, "- `%s`: %s", a.Name, a.Type)
			switch {
			case a.Required:
				b.WriteString(", required")
			case a.Default != "":
				fmt.Fprintf(&b, " = %s", a.Default)
			}
			b.WriteString("\n")
		}
		return b.String()
	}
	schemas := aten.Schemas(k)
	if len(schemas) == 0 {
		return ""
	}
	b.WriteString("```\n")
	for _, s := range schemas {
		b.WriteString(s.String() + "\n")
	}
	b.WriteString("```\n\n")
	if d, ok := aten.NewTable().Lookup(k, onnx.Newest); ok {
		if d.Doc != "" {
			b.WriteString(d.Doc + "\n\n")
		}
		if d.Why != "" {
			b.WriteString("It cannot be converted: " + d.Why + "\n")
		}
	}
	return b.String()
}
