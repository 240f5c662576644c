package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// token of PTX text: a word (with its dots and percent sign), a number, a string, or one character.
type token struct {
	text string
	line int
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c == '%' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func lexPTX(text string) ([]token, error) {
	var out []token
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c == '\n':
			line++
			i++
		case c == ' ' || c == '\t' || c == '\r':
			i++
		case strings.HasPrefix(text[i:], "//"):
			n := strings.IndexByte(text[i:], '\n')
			if n < 0 {
				n = len(text) - i
			}
			i += n
		case strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i:], "*/")
			if n < 0 {
				return nil, fmt.Errorf("line %d: the comment does not end", line)
			}
			line += strings.Count(text[i:i+n], "\n")
			i += n + 2
		case c == '"':
			n := strings.IndexAny(text[i+1:], "\"\n")
			if n < 0 || text[i+1+n] == '\n' {
				return nil, fmt.Errorf("line %d: the string does not end", line)
			}
			out = append(out, token{text[i : i+n+2], line})
			i += n + 2
		case isWord(c):
			j := i
			for j < len(text) && (isWord(text[j]) || text[j] == ':' && j+1 < len(text) && text[j+1] == ':') {
				if text[j] == ':' {
					j++ // as in L1::no_allocate
				}
				j++
			}
			out = append(out, token{text[i:j], line})
			i = j
		case strings.IndexByte("{}[]()<>,;:@!|+-=", c) >= 0:
			out = append(out, token{text[i : i+1], line})
			i++
		default:
			return nil, fmt.Errorf("line %d: character %q", line, c)
		}
	}
	return out, nil
}

// ptxOperand is one operand of an instruction.
type ptxOperand struct {
	name   string // register or symbol
	second string // of d|p
	imm    uint64 // number, or what is added to an address
	isImm  bool
	isFlt  int // width of an 0f or 0d literal
	memory bool
	neg    bool // !p
	list   []ptxOperand
}

// ptxNumber reads an integer or a literal of float bits.
func ptxNumber(s string) (v uint64, width int, err error) {
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'f', 'F':
			v, err = strconv.ParseUint(s[2:], 16, 32)
			return v, 4, err
		case 'd', 'D':
			v, err = strconv.ParseUint(s[2:], 16, 64)
			return v, 8, err
		}
	}
	s = strings.TrimSuffix(s, "U")
	v, err = strconv.ParseUint(s, 0, 64)
	return v, 0, err
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
