package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/aton-project/aton/ssa/diag"
)

// textWriter passes on text that a person may look at. Names in a file may hold characters that steer a terminal or turn the direction
// of a line; they are written as escapes. [Run] puts one before standard output and standard error, so that no command has to think of it.
// What is no text goes around it, see [Raw].
type textWriter struct {
	mu sync.Mutex // of all below: a command may warn from several goroutines
	w  io.Writer
	// escape spells a character that is not printable.
	escape func(rune) string
	rest   []byte // the first bytes of a character whose others are not written yet
}

// newText writes escapes as Go has them: \x1b.
func newText(w io.Writer) *textWriter { return &textWriter{w: Raw(w), escape: goEscape} }

// JSON gives a writer for JSON that a person may look at: its escapes are those of strings in JSON, so that the data stay the same.
func JSON(w io.Writer) io.Writer { return &textWriter{w: Raw(w), escape: jsonEscape} }

// Raw is what a writer of [Run] writes to. It is for bytes that are no text, such as ONNX files, and for what steers a terminal on purpose.
func Raw(w io.Writer) io.Writer {
	if t, ok := w.(*textWriter); ok {
		return t.w
	}
	return w
}

func goEscape(r rune) string {
	q := strconv.QuoteRune(r)
	return q[1 : len(q)-1]
}

func jsonEscape(r rune) string {
	if r > 0xffff {
		r -= 0x10000
		return fmt.Sprintf(`\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// shown reports a character that is written as it is.
func shown(r rune) bool { return r == '\n' || r == '\t' || unicode.IsPrint(r) }

func (t *textWriter) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := p
	if len(t.rest) > 0 {
		text = append(t.rest, p...)
		t.rest = nil
	}
	begin := 0 // of what is not written yet
	for i := 0; i < len(text); {
		if c := text[i]; c >= ' ' && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		if !utf8.FullRune(text[i:]) {
			t.rest = append([]byte{}, text[i:]...)
			text = text[:i]
			break
		}
		r, size := utf8.DecodeRune(text[i:])
		if shown(r) && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		spelled := string(utf8.RuneError) // of a byte that is none of UTF-8
		if r != utf8.RuneError {
			spelled = t.escape(r)
		}
		if _, err := t.w.Write(text[begin:i]); err != nil {
			return 0, err
		}
		if _, err := io.WriteString(t.w, spelled); err != nil {
			return 0, err
		}
		i += size
		begin = i
	}
	if begin < len(text) {
		if _, err := t.w.Write(text[begin:]); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// flush writes what is left of a character that did not become complete.
func (t *textWriter) flush() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.rest) == 0 {
		return nil
	}
	t.rest = nil
	_, err := io.WriteString(t.w, string(utf8.RuneError))
	return err
}

// Printable is text that a terminal shows as it is.
func Printable(text string) string {
	var b strings.Builder
	t := newText(&b)
	_, _ = io.WriteString(t, text) // a Builder does not fail
	_ = t.flush()
	return b.String()
}

// Inline is text for a line of its own or a part of one: line breaks and tabs of a name in it are escapes too, so that no name begins a line
// that looks like one of the program.
func Inline(text string) string {
	text = Printable(text)
	if !strings.ContainsAny(text, "\n\t") {
		return text
	}
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(text)
}

// Fprintf is [fmt.Fprintf] for text with names in it: the line breaks are those of the format. What is several lines goes through [io.WriteString].
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	inline := make([]any, len(args)) // the caller's stay as they are
	for i, a := range args {
		switch a := a.(type) {
		case error:
			inline[i] = Inline(a.Error())
		case fmt.Stringer:
			inline[i] = Inline(a.String())
		default:
			inline[i] = a
			if v := reflect.ValueOf(a); v.Kind() == reflect.String {
				inline[i] = Inline(v.String())
			}
		}
	}
	return fmt.Fprintf(w, format, inline...)
}

// told is an error as a person sees it: a line for each problem.
func told(err error) string {
	var list *diag.List
	if errors.As(err, &list) || IsMisuse(err) { // these have lines of their own, and what the caller typed
		return err.Error()
	}
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		var lines []string
		for _, e := range several.Unwrap() {
			lines = append(lines, told(e))
		}
		return strings.Join(lines, "\n")
	}
	return Inline(err.Error())
}

// EncodeJSON writes a value as JSON for programs and people: a line, or indented. All JSON that the commands write is made here.
func EncodeJSON(w io.Writer, v any, indented bool) error {
	e := json.NewEncoder(JSON(w))
	e.SetEscapeHTML(false)
	if indented {
		e.SetIndent("", "  ")
	}
	return e.Encode(v)
}
