// Package diag holds source locations and diagnostics.
package diag

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// Loc is a source location: an index into a Table. The zero Loc is unknown.
type Loc int32

// Frame is one place in the user's program. Caller is the place it was called from.
type Frame struct {
	File  string
	Line  int // 1-based
	Col   int // 0-based, as Python counts
	Func  string
	Scope string // module path, such as features.0
	// Node is the position of a node in its ONNX graph, counted from 1, or -1 for a function of the model; 0 for what
	// is no such thing. Func is its name then, and Caller the node or function that it stands in.
	Node   int
	Caller Loc
}

// Source is the text of a file of a program, or what is known of it.
type Source struct {
	File string
	// Saved says that it is a file of the model's own, such as TorchScript: PyTorch made it from the files that its lines name.
	Saved bool
	Lines []SourceLine // by rising numbers, which may leave some out
}

// SourceLine is a line of a Source.
type SourceLine struct {
	Number int // 1-based
	Text   string
	// From are the places that the line was made from.
	From []Frame
}

// SourceFiles collects lines of files. The zero value is ready for use.
type SourceFiles struct {
	lines map[string]map[int]string
}

// Add notes a line of a file. The first text that is known of it stays.
func (s *SourceFiles) Add(file string, line int, text string) {
	if s.lines == nil {
		s.lines = map[string]map[int]string{}
	}
	if s.lines[file] == nil {
		s.lines[file] = map[int]string{}
	}
	if _, ok := s.lines[file][line]; !ok {
		s.lines[file][line] = strings.TrimRight(text, "\r\n")
	}
}

// Sources lists the files by name.
func (s *SourceFiles) Sources() []Source {
	var out []Source
	for _, file := range slices.Sorted(maps.Keys(s.lines)) {
		src := Source{File: file}
		for _, n := range slices.Sorted(maps.Keys(s.lines[file])) {
			src.Lines = append(src.Lines, SourceLine{Number: n, Text: s.lines[file][n]})
		}
		out = append(out, src)
	}
	return out
}

// Table interns frames. The zero value is ready for use.
type Table struct {
	frames []Frame
	index  map[Frame]Loc
}

// Clone returns a copy of the table.
func (t *Table) Clone() Table { return Table{slices.Clone(t.frames), maps.Clone(t.index)} }

// Add interns a frame.
func (t *Table) Add(f Frame) Loc {
	if f == (Frame{}) {
		return 0
	}
	if l, ok := t.index[f]; ok {
		return l
	}
	if t.index == nil {
		t.index = map[Frame]Loc{}
		t.frames = []Frame{{}}
	}
	l := Loc(len(t.frames))
	t.frames = append(t.frames, f)
	t.index[f] = l
	return l
}

// Frame looks a location up; the zero Frame for an unknown one.
func (t *Table) Frame(l Loc) Frame {
	if int(l) >= len(t.frames) || l < 0 {
		return Frame{}
	}
	return t.frames[l]
}

// InPyTorch reports files of PyTorch and of the code that it generates.
func InPyTorch(file string) bool {
	file = strings.ReplaceAll(file, "\\", "/")
	return strings.HasPrefix(file, "<eval_with_key>") || strings.HasPrefix(file, "torch/") || strings.Contains(file, "-packages/torch/") ||
		strings.Contains(file, "/torch/nn/") || strings.Contains(file, "/torch/_") || strings.HasSuffix(file, "/torch/functional.py")
}

// Calls lists the frames of a location: its own, the one that it was called from, and so on.
func (t *Table) Calls(l Loc) []Frame {
	var out []Frame
	for l > 0 && int(l) < len(t.frames) {
		f := t.frames[l]
		out = append(out, f)
		if f.Caller >= l { // of a text that somebody wrote: callers are in the table first
			break
		}
		l = f.Caller
	}
	return out
}

// Place gives the innermost frame of a location that is not in PyTorch's own files, with the module path of the location itself. If all
// frames are PyTorch's, it is the innermost one.
func (t *Table) Place(l Loc) Frame {
	own := t.Frame(l)
	for f := own; f.File != ""; f = t.Frame(f.Caller) {
		if !InPyTorch(f.File) {
			f.Scope = own.Scope
			return f
		}
		if f.Caller >= l {
			break
		}
		l = f.Caller
	}
	return own
}

// String gives file:line of a location.
func (t *Table) String(l Loc) string {
	f := t.Frame(l)
	if f.File == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// Position gives file:line of the user's program or, for a node of an ONNX graph, which one it is: node 3 "conv1", counted from 0.
func (t *Table) Position(l Loc) string {
	f := t.Place(l)
	switch {
	case f.File != "":
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	case f.Node == 0:
		return ""
	}
	s := f.Func // of a function of the model
	if f.Node > 0 {
		s = fmt.Sprintf("node %d", f.Node-1)
		if f.Func != "" {
			s += fmt.Sprintf(" %q", f.Func)
		}
	}
	if outer := t.Position(f.Caller); outer != "" {
		return outer + ", " + s
	}
	return s
}

// Severity orders diagnostics.
type Severity int

// Severities.
const (
	Error Severity = iota
	Warning
	Note
)

func (s Severity) String() string { return [...]string{"error", "warning", "note"}[s] }

// Diagnostic is one message about the user's program.
type Diagnostic struct {
	Severity Severity `json:"-"`
	// ID names the kind of message and never changes: unsupported-op, const-arg, ...
	ID string `json:"id"`
	// Op is the operator concerned, such as aten::elu.
	Op string `json:"op,omitempty"`
	// Loc is resolved against the table of the module that the message is about.
	Loc     Loc    `json:"-"`
	Message string `json:"message"`
	// Hint says what the user can do.
	Hint string `json:"hint,omitempty"`
	// Opset is the lowest opset that would do, where one is known.
	Opset int `json:"opset,omitempty"`
}

// List collects diagnostics. It is an error when it holds one of severity Error.
type List struct {
	Table *Table
	Items []Diagnostic
}

// Add appends a diagnostic.
func (l *List) Add(d Diagnostic) { l.Items = append(l.Items, d) }

// Err gives the list as an error if it holds one, else nil.
func (l *List) Err() error {
	for _, d := range l.Items {
		if d.Severity == Error {
			return l
		}
	}
	return nil
}

// Format renders one diagnostic: file.py:12: aten::foo: what is wrong; what to do.
func (l *List) Format(d Diagnostic) string {
	var b strings.Builder
	if l.Table != nil {
		if at := l.Table.Position(d.Loc); at != "" {
			b.WriteString(at + ": ")
		}
	}
	if d.Severity != Error {
		b.WriteString(d.Severity.String() + ": ")
	}
	if d.Op != "" {
		b.WriteString(d.Op)
		if l.Table != nil {
			if s := l.Table.Frame(d.Loc).Scope; s != "" {
				b.WriteString(" in " + s)
			}
		}
		b.WriteString(": ")
	}
	b.WriteString(d.Message)
	if d.Hint != "" {
		b.WriteString("; " + d.Hint)
	}
	return strings.ReplaceAll(b.String(), "\n", `\n`) // of a name, which would begin a line
}

// Error lists the errors, one a line; equal messages about one operator are counted.
func (l *List) Error() string {
	type group struct {
		first string
		n     int
	}
	var order []string
	groups := map[string]*group{}
	for _, d := range l.Items {
		if d.Severity != Error {
			continue
		}
		key := d.ID + "\x00" + d.Op + "\x00" + d.Message
		g := groups[key]
		if g == nil {
			g = &group{first: l.Format(d)}
			groups[key] = g
			order = append(order, key)
		}
		g.n++
	}
	lines := make([]string, 0, len(order))
	for _, k := range order {
		g := groups[k]
		if g.n > 1 {
			g.first += fmt.Sprintf(" (%d times)", g.n)
		}
		lines = append(lines, g.first)
	}
	return strings.Join(lines, "\n")
}

// Sort orders by severity, then location, keeping the order of equals.
func (l *List) Sort() {
	sort.SliceStable(l.Items, func(i, j int) bool { return l.Items[i].Severity < l.Items[j].Severity })
}

// AllWarnings stands for the identifiers of all warnings in [List.Filter].
const AllWarnings = "warnings"

// Filter removes the warnings and notes whose identifiers are in allow, and turns the warnings whose identifiers are in deny into errors.
func (l *List) Filter(allow, deny []string) {
	l.Items = slices.DeleteFunc(l.Items, func(d Diagnostic) bool { return d.Severity != Error && slices.Contains(allow, d.ID) })
	for i := range l.Items {
		if d := &l.Items[i]; d.Severity == Warning && (slices.Contains(deny, d.ID) || slices.Contains(deny, AllWarnings)) {
			d.Severity = Error
		}
	}
}
