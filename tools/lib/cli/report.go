package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aton-project/aton/ssa/diag"
)

// ModelError is an error about a model. [Run] prints it with the lines of the program.
type ModelError struct {
	Model string
	Err   error
	// Sources gives the program as far as the model's file has it. It may be nil.
	Sources func() []diag.Source
	// Verbose prints all frames and all places.
	Verbose bool
}

// Error puts the model's name before each line.
func (e *ModelError) Error() string {
	name := Inline(e.Model)
	return name + ": " + strings.ReplaceAll(e.Err.Error(), "\n", "\n"+name+": ")
}

func (e *ModelError) Unwrap() error { return e.Err }

// Report prints problems as compilers do:
//
//	error[invalid-args]: aten::conv2d in features.0: the input has 4 channels, the weight is for 3
//	  --> model.py:17:13
//	   |
//	17 |         h = self.features(x)
//	   |             ^
//	   = help: correct the shape in --input
//
// Problems that differ in their places alone are one, with a count.
type Report struct {
	// Model is named where a problem has no place in the program.
	Model string
	// Sources gives the program as far as the model's file has it. It may be nil.
	Sources func() []diag.Source
	// Verbose prints all frames and all places.
	Verbose bool

	lines map[string]map[int]string
}

// maxPlaces is how many places of a problem are printed without Verbose.
const maxPlaces = 3

// Print prints problems in their order.
func (r *Report) Print(w io.Writer, problems []Problem) {
	type cause struct{ id, op, level, message, hint string }
	var order []cause
	groups := map[cause][]Problem{}
	for _, p := range problems {
		c := cause{p.ID, p.Op, p.Level, p.Message, p.Hint}
		if groups[c] == nil {
			order = append(order, c)
		}
		groups[c] = append(groups[c], p)
	}
	s := newStyle(w)
	for _, c := range order {
		r.group(s, groups[c])
	}
}

// group prints problems with one cause.
func (r *Report) group(s *style, problems []Problem) {
	p := problems[0]
	about := p.Op
	if about != "" && p.Scope != "" && len(problems) == 1 {
		about += " in " + p.Scope
	}
	if about != "" {
		about += ": "
	}
	message := about + p.Message
	if n := len(problems); n > 1 {
		message += fmt.Sprintf(" (%d times)", n)
	}
	s.head(p.Level, p.ID, message)
	var places []Problem // without those that are printed
	for _, q := range problems {
		if len(places) == 0 || q.Scope != "" || q.at() != places[len(places)-1].at() {
			places = append(places, q)
		}
	}
	margin := 2
	more := 0
	if n := len(places); n > maxPlaces && !r.Verbose {
		places, more = places[:maxPlaces], n-maxPlaces
	}
	for i, q := range places {
		text, known := r.line(q.File, q.Line)
		if i > 0 || strings.TrimSpace(text) == "" {
			known = false
		}
		if known {
			margin = max(2, len(strconv.Itoa(q.Line)))
		}
		place := q.at()
		if place == "" {
			place = r.Model
		}
		if place != "" {
			if q.Scope != "" && len(problems) > 1 {
				place += " in " + q.Scope
			}
			s.printf("%s%s %s\n", strings.Repeat(" ", margin), s.blue("-->"), place)
		}
		if known {
			s.excerpt(margin, q.Line, q.Column, text)
		}
		if r.Verbose {
			for _, f := range q.Frames {
				at := place0(f.File, f.Line, f.Column)
				if f.Function != "" {
					at += " in " + f.Function
				}
				s.printf("%s %s %s: %s\n", strings.Repeat(" ", margin), s.blue("="), s.bold("frame"), at)
			}
		}
	}
	if more > 0 {
		s.printf("%s %s %s: %d more places; --verbose lists them\n", strings.Repeat(" ", margin), s.blue("="), s.bold("note"), more)
	}
	if p.Hint != "" {
		s.printf("%s %s %s: %s\n", strings.Repeat(" ", margin), s.blue("="), s.bold("help"), p.Hint)
	}
}

// at is FILE:LINE:COL of a problem, which editors open; a node of an ONNX file has no such place.
func (p Problem) at() string {
	if p.File == "" {
		return p.place
	}
	return place0(p.File, p.Line, p.Column)
}

// place0 is FILE:LINE:COL, or as much of it as is known, for a column that counts from 0.
func place0(file string, line, column int) string {
	if line <= 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column+1)
}

// line is the text of a line of the program.
func (r *Report) line(file string, line int) (string, bool) {
	if r.lines == nil && r.Sources != nil {
		r.lines = map[string]map[int]string{}
		for _, src := range r.Sources() {
			lines := map[int]string{}
			for _, l := range src.Lines {
				lines[l.Number] = l.Text
			}
			r.lines[src.File] = lines
		}
	}
	text, ok := r.lines[file][line]
	return text, ok
}

// style writes text for people: in colour where a terminal shows it. Text of a model is written without what steers a terminal.
type style struct {
	w      io.Writer
	colour bool
}

// newStyle writes colours to a terminal, unless NO_COLOR is set (https://no-color.org) or the terminal has none.
func newStyle(w io.Writer) *style {
	return &style{w, Terminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// printf writes text whose values begin no line and have no unprintable characters but those of the style itself.
func (s *style) printf(format string, args ...any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = inline(text)
		} else if c, ok := a.(coloured); ok {
			args[i] = inline(c.text)
			if s.colour {
				args[i] = "\x1b[" + c.code + "m" + inline(c.text) + "\x1b[0m"
			}
		}
	}
	w := s.w
	if s.colour {
		w = Raw(w)
	}
	fmt.Fprintf(w, format, args...)
}

// coloured is text in a colour.
type coloured struct{ code, text string }

// inline is Inline that keeps tabs, which lines of a program have.
func inline(text string) string {
	parts := strings.Split(text, "\t")
	for i := range parts {
		parts[i] = Inline(parts[i])
	}
	return strings.Join(parts, "\t")
}

func (s *style) blue(text string) coloured { return coloured{"1;34", text} }
func (s *style) bold(text string) coloured { return coloured{"1", text} }

// levelColours are the colours that rustc has.
var levelColours = map[string]string{"error": "1;31", "warning": "1;33", "note": "1;32"}

// head writes the first line of a message.
func (s *style) head(level, id, message string) {
	if id != "" {
		id = "[" + id + "]"
	}
	s.printf("%s: %s\n", coloured{levelColours[level], level + id}, s.bold(message))
}

// excerpt writes a line of the program with a caret below the column, which counts from 0. Without a column, all of the line is underlined.
func (s *style) excerpt(margin, number, column int, text string) {
	text = strings.TrimRight(text, " \t\r\n")
	indent := len(text) - len(strings.TrimLeft(text, " \t"))
	column = min(max(column, 0), len(text))
	carets := "^"
	if column == 0 {
		column, carets = indent, strings.Repeat("^", max(1, utf8.RuneCountInString(Printable(text[indent:]))))
	}
	below := strings.Map(func(c rune) rune {
		if c == '\t' {
			return c
		}
		return ' '
	}, Printable(text[:column]))
	pad := strings.Repeat(" ", margin)
	s.printf("%s %s\n", pad, s.blue("|"))
	s.printf("%s %s %s\n", s.blue(fmt.Sprintf("%*d", margin, number)), s.blue("|"), text)
	s.printf("%s %s %s%s\n", pad, s.blue("|"), below, coloured{"1;31", carets})
}

// Tell writes a message of a level that has no place in the program.
func Tell(w io.Writer, level diag.Severity, message string) {
	newStyle(w).head(level.String(), "", message)
}
