package export

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/aton-project/aton/frontend/archive"
)

// maxDepth bounds the nesting of JSON: a graph within a graph takes about eight levels.
const maxDepth = 2000

// scanner reads JSON in one pass, without a tree. Besides JSON it knows the
// bare tokens Infinity, -Infinity and NaN, which PyTorch wrote up to 2.6.
// Its methods panic with an *archive.Error.
type scanner struct {
	file, record string
	data         []byte
	pos          int
	depth        int
	names        map[string]string // strings that were met, so that equal ones share memory
	buf          []byte
}

func newScanner(file, record string, data []byte) *scanner {
	return &scanner{file: file, record: record, data: data, names: map[string]string{}}
}

func (s *scanner) fail(format string, args ...any) {
	panic(&archive.Error{File: s.file, Record: s.record, Offset: int64(s.pos), Err: fmt.Errorf(format, args...)})
}

// peek skips blanks and gives the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) want(c byte) {
	if s.peek() != c {
		if s.pos >= len(s.data) {
			s.fail("the text ends where %q is expected; is the file complete?", c)
		}
		s.fail("%q where %q is expected", s.data[s.pos], c)
	}
	s.pos++
}

func (s *scanner) enter() {
	if s.depth++; s.depth > maxDepth {
		s.fail("nested too deeply")
	}
}

// object calls f for each key; f reads the value. The key is valid until then.
func (s *scanner) object(f func(key []byte)) {
	s.want('{')
	s.enter()
	for first := true; ; first = false {
		if s.peek() == '}' {
			s.pos++
			break
		}
		if !first {
			s.want(',')
		}
		key := s.raw()
		s.want(':')
		f(key)
	}
	s.depth--
}

// array calls f for each element; f reads it.
func (s *scanner) array(f func()) {
	s.want('[')
	s.enter()
	for first := true; ; first = false {
		if s.peek() == ']' {
			s.pos++
			break
		}
		if !first {
			s.want(',')
		}
		f()
	}
	s.depth--
}

// tagged reads a union: an object of exactly one key.
func (s *scanner) tagged(what string, f func(tag []byte)) {
	n := 0
	s.object(func(tag []byte) {
		if n++; n > 1 {
			s.fail("%s has two tags, the second is %q", what, tag)
		}
		f(tag)
	})
	if n == 0 {
		s.fail("%s has no tag", what)
	}
}

// raw reads a string; the bytes are valid until the next call.
func (s *scanner) raw() []byte {
	s.want('"')
	start := s.pos
	for i := start; i < len(s.data); i++ {
		switch s.data[i] {
		case '"':
			s.pos = i + 1
			return s.data[start:i]
		case '\\':
			return s.escaped(start, i)
		}
	}
	s.fail("a string does not end; is the file complete?")
	return nil
}

func (s *scanner) escaped(start, i int) []byte {
	b := append(s.buf[:0], s.data[start:i]...)
	for i < len(s.data) {
		c := s.data[i]
		switch {
		case c == '"':
			s.pos, s.buf = i+1, b
			return b
		case c != '\\':
			b = append(b, c)
			i++
			continue
		}
		if i+1 >= len(s.data) {
			break
		}
		i += 2
		switch c := s.data[i-1]; c {
		case '"', '\\', '/':
			b = append(b, c)
		case 'n':
			b = append(b, '\n')
		case 't':
			b = append(b, '\t')
		case 'r':
			b = append(b, '\r')
		case 'b':
			b = append(b, '\b')
		case 'f':
			b = append(b, '\f')
		case 'u':
			r := s.hex4(i)
			i += 4
			if utf16.IsSurrogate(r) {
				r2 := rune(utf8.RuneError)
				if i+6 <= len(s.data) && s.data[i] == '\\' && s.data[i+1] == 'u' {
					r2 = utf16.DecodeRune(r, s.hex4(i+2))
					if r2 != utf8.RuneError {
						i += 6
					}
				}
				r = r2
			}
			b = utf8.AppendRune(b, r)
		default:
			s.pos = i - 2
			s.fail("bad escape in a string")
		}
	}
	s.fail("a string does not end; is the file complete?")
	return nil
}

func (s *scanner) hex4(i int) rune {
	if i+4 > len(s.data) {
		s.fail("a string does not end; is the file complete?")
	}
	n, err := strconv.ParseUint(string(s.data[i:i+4]), 16, 32)
	if err != nil {
		s.pos = i
		s.fail("bad escape in a string")
	}
	return rune(n)
}

// str reads a string; equal strings share memory.
func (s *scanner) str() string {
	b := s.raw()
	if v, ok := s.names[string(b)]; ok {
		return v
	}
	v := string(b)
	s.names[v] = v
	return v
}

// optStr reads a string or null, which is "".
func (s *scanner) optStr() string {
	if s.null() {
		return ""
	}
	return s.str()
}

func (s *scanner) strs() []string {
	out := []string{}
	s.array(func() { out = append(out, s.str()) })
	return out
}

// word takes a bare token if it is next.
func (s *scanner) word(w string) bool {
	s.peek()
	if len(s.data)-s.pos >= len(w) && string(s.data[s.pos:s.pos+len(w)]) == w {
		s.pos += len(w)
		return true
	}
	return false
}

func (s *scanner) null() bool { return s.peek() == 'n' && s.word("null") }

func (s *scanner) boolean() bool {
	switch {
	case s.word("true"):
		return true
	case s.word("false"):
		return false
	}
	s.fail("a bool is expected")
	return false
}

// number takes the text of a number.
func (s *scanner) number() []byte {
	s.peek()
	start := s.pos
	for s.pos < len(s.data) {
		c := s.data[s.pos]
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			break
		}
		s.pos++
	}
	if s.pos == start {
		s.fail("a number is expected")
	}
	return s.data[start:s.pos]
}

// integer reads an int64, exactly.
func (s *scanner) integer() int64 {
	at := s.pos
	b := s.number()
	n, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		s.pos = at
		s.fail("%.40q is not a 64-bit integer", b)
	}
	return n
}

// float reads a number, or what stands for one that JSON lacks.
func (s *scanner) float() float64 {
	switch s.peek() {
	case '"':
		return s.special(s.raw())
	case 'I', 'N':
		switch {
		case s.word("Infinity"):
			return math.Inf(1)
		case s.word("NaN"):
			return math.NaN()
		}
	case '-':
		if s.word("-Infinity") {
			return math.Inf(-1)
		}
	}
	at := s.pos
	b := s.number()
	v, err := strconv.ParseFloat(string(b), 64)
	if err != nil && !math.IsInf(v, 0) {
		s.pos = at
		s.fail("%.40q is not a number", b)
	}
	return v
}

func (s *scanner) special(b []byte) float64 {
	switch string(b) {
	case "Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	case "NaN":
		return math.NaN()
	}
	s.fail("%.40q is not a number", b)
	return 0
}

// skip passes over any value.
func (s *scanner) skip() {
	depth := 0
	for {
		switch c := s.peek(); c {
		case '"':
			s.skipString()
		case '{', '[':
			s.pos++
			if depth++; depth > maxDepth {
				s.fail("nested too deeply")
			}
			continue
		case '}', ']':
			if depth == 0 {
				s.fail("%q where a value is expected", c)
			}
			s.pos++
			depth--
		case ',', ':':
			if depth == 0 {
				s.fail("%q where a value is expected", c)
			}
			s.pos++
			continue
		case 't', 'f', 'n', 'I', 'N':
			if !s.word("true") && !s.word("false") && !s.word("null") && !s.word("Infinity") && !s.word("NaN") {
				s.fail("a value is expected")
			}
		case 0:
			s.fail("the text ends early; is the file complete?")
		default:
			if !s.word("-Infinity") {
				s.number()
			}
		}
		if depth == 0 {
			return
		}
	}
}

func (s *scanner) skipString() {
	for i := s.pos + 1; i < len(s.data); i++ {
		switch s.data[i] {
		case '"':
			s.pos = i + 1
			return
		case '\\':
			i++
		}
	}
	s.fail("a string does not end; is the file complete?")
}

// end checks that nothing follows.
func (s *scanner) end() {
	if s.peek() != 0 {
		s.fail("%q after the end", s.data[s.pos])
	}
}
