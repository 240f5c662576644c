package pyast

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is a syntax error at a byte of the source.
type Error struct {
	Offset  int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Line gives the 1-based line and 0-based column of an offset.
func Line(src string, offset int) (line, col int) {
	if offset > len(src) {
		offset = len(src)
	}
	return 1 + strings.Count(src[:offset], "\n"), offset - 1 - strings.LastIndexByte(src[:offset], '\n')
}

type kind uint8

const (
	eof kind = iota
	newline
	indent
	dedent
	name
	number
	str
	op
)

type token struct {
	kind kind
	text string // of a string: its value
	pos  int
}

type lexer struct {
	src     string
	pos     int
	depth   int // of brackets
	indents []int
	pending int // dedents to give
	start   bool
	last    kind
}

func (l *lexer) fail(pos int, format string, args ...any) {
	panic(&Error{pos, fmt.Sprintf(format, args...)})
}

func isLetter(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// next gives the next token. Line structure is given as newline, indent and dedent.
func (l *lexer) next() token {
	t := l.scan()
	l.last = t.kind
	return t
}

func (l *lexer) scan() token {
	if l.pending > 0 {
		l.pending--
		return token{dedent, "", l.pos}
	}
	if l.start && l.depth == 0 {
		if t, ok := l.lineStart(); ok {
			return t
		}
	}
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		switch {
		case c == ' ' || c == '\t' || c == '\r' || c == '\f':
			l.pos++
		case c == '#':
			for l.pos < len(l.src) && l.src[l.pos] != '\n' {
				l.pos++
			}
		case c == '\\' && l.pos+1 < len(l.src) && l.src[l.pos+1] == '\n':
			l.pos += 2
		case c == '\n':
			l.pos++
			if l.depth > 0 {
				continue
			}
			l.start = true
			return token{newline, "\n", l.pos - 1}
		default:
			return l.token(c)
		}
	}
	if l.depth > 0 {
		l.fail(l.pos, "the file ends inside brackets")
	}
	if l.last != newline && l.last != dedent && l.last != eof {
		l.start = true
		return token{newline, "", l.pos}
	}
	if n := len(l.indents); n > 0 {
		l.indents = nil
		l.pending = n - 1
		return token{dedent, "", l.pos}
	}
	return token{eof, "", l.pos}
}

// lineStart measures the indentation of the next line that is not blank.
func (l *lexer) lineStart() (token, bool) {
	for {
		at, width := l.pos, 0
		for at < len(l.src) && (l.src[at] == ' ' || l.src[at] == '\t') {
			if l.src[at] == '\t' {
				width += 8 - width%8
			} else {
				width++
			}
			at++
		}
		if at < len(l.src) && l.src[at] == '\r' {
			at++
		}
		if at < len(l.src) && (l.src[at] == '\n' || l.src[at] == '#') {
			for at < len(l.src) && l.src[at] != '\n' {
				at++
			}
			if at < len(l.src) {
				at++
			}
			l.pos = at
			continue
		}
		l.pos, l.start = at, false
		if at >= len(l.src) {
			return token{}, false
		}
		have := 0
		if n := len(l.indents); n > 0 {
			have = l.indents[n-1]
		}
		if width == have {
			return token{}, false
		}
		if width > have {
			if len(l.indents) >= maxDepth {
				l.fail(at, "blocks nested too deeply")
			}
			l.indents = append(l.indents, width)
			return token{indent, "", at}, true
		}
		n := 0
		for len(l.indents) > 0 && l.indents[len(l.indents)-1] > width {
			l.indents = l.indents[:len(l.indents)-1]
			n++
		}
		have = 0
		if k := len(l.indents); k > 0 {
			have = l.indents[k-1]
		}
		if have != width {
			l.fail(at, "the indentation fits no outer block")
		}
		l.pending = n - 1
		return token{dedent, "", at}, true
	}
}

// operators of three and two characters, longest first.
var operators = [...]string{"**=", "//=", ">>=", "<<=", "...", "->", "**", "//", "==", "!=", "<=", ">=", "<<", ">>",
	"+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", ":="}

func (l *lexer) token(c byte) token {
	start := l.pos
	switch {
	case isLetter(c):
		for l.pos < len(l.src) && (isLetter(l.src[l.pos]) || isDigit(l.src[l.pos])) {
			l.pos++
		}
		return token{name, l.src[start:l.pos], start}
	case isDigit(c) || c == '.' && l.pos+1 < len(l.src) && isDigit(l.src[l.pos+1]):
		return l.number()
	case c == '"' || c == '\'':
		return token{str, l.str(c), start}
	}
	for _, o := range operators {
		if strings.HasPrefix(l.src[l.pos:], o) {
			l.pos += len(o)
			return token{op, o, start}
		}
	}
	switch c {
	case '(', '[', '{':
		l.depth++
	case ')', ']', '}':
		if l.depth--; l.depth < 0 {
			l.fail(start, "unexpected %q", c)
		}
	case '+', '-', '*', '/', '%', '<', '>', '=', '.', ',', ':', '&', '|', '^', '~', '@', ';':
	default:
		l.fail(start, "unexpected character %q", c)
	}
	l.pos++
	return token{op, l.src[start:l.pos], start}
}

func (l *lexer) number() token {
	start := l.pos
	if l.src[l.pos] == '0' && l.pos+1 < len(l.src) && strings.IndexByte("xXoObB", l.src[l.pos+1]) >= 0 {
		l.pos += 2
		for l.pos < len(l.src) && (isDigit(l.src[l.pos]) || isLetter(l.src[l.pos])) {
			l.pos++
		}
		return token{number, l.src[start:l.pos], start}
	}
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		if (c == '+' || c == '-') && (l.src[l.pos-1] == 'e' || l.src[l.pos-1] == 'E') || isDigit(c) || c == '.' || c == '_' || c == 'e' || c == 'E' || c == 'j' || c == 'J' {
			l.pos++
			continue
		}
		break
	}
	return token{number, l.src[start:l.pos], start}
}

// str reads a string and resolves its escapes.
func (l *lexer) str(quote byte) string {
	start := l.pos
	q := string(quote)
	if strings.HasPrefix(l.src[l.pos:], q+q+q) {
		q = q + q + q
	}
	l.pos += len(q)
	var b strings.Builder
	for {
		if l.pos >= len(l.src) || len(q) == 1 && l.src[l.pos] == '\n' {
			l.fail(start, "a string without end")
		}
		if strings.HasPrefix(l.src[l.pos:], q) {
			l.pos += len(q)
			return b.String()
		}
		c := l.src[l.pos]
		l.pos++
		if c != '\\' || l.pos >= len(l.src) {
			b.WriteByte(c)
			continue
		}
		c = l.src[l.pos]
		l.pos++
		if i := strings.IndexByte("ntrabfv", c); i >= 0 {
			b.WriteByte("\n\t\r\a\b\f\v"[i])
			continue
		}
		switch {
		case c >= '0' && c <= '7':
			v := int(c - '0')
			for i := 0; i < 2 && l.pos < len(l.src) && l.src[l.pos] >= '0' && l.src[l.pos] <= '7'; i++ {
				v = v*8 + int(l.src[l.pos]-'0')
				l.pos++
			}
			b.WriteByte(byte(v))
		case c == 'x' && l.pos+1 < len(l.src) && hex(l.src[l.pos]) >= 0 && hex(l.src[l.pos+1]) >= 0:
			b.WriteByte(byte(hex(l.src[l.pos])<<4 | hex(l.src[l.pos+1])))
			l.pos += 2
		case c == '\n':
		case c == '\\' || c == '"' || c == '\'':
			b.WriteByte(c)
		default:
			b.WriteByte('\\')
			b.WriteByte(c)
		}
	}
}

func hex(c byte) int {
	switch {
	case isDigit(c):
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
