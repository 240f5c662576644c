package export

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of an expression in a file.
const (
	maxExprBytes = 1 << 16
	maxExprNodes = 4000
	maxExprDepth = 200
)

// expr is a parsed expression: sympy's constructor form, its plain form, or the
// Python of a guard. Nothing is evaluated on the way.
type expr struct {
	op   string // int, float, str, name, call, index, attr, neg, not, and, or, an infix operator
	text string // of a name, string, float; the function of a call; the attribute
	n    int64
	args []*expr
}

// parseExpr reads an expression.
func parseExpr(text string) (*expr, error) {
	p := exprParser{s: text}
	if len(text) > maxExprBytes {
		return nil, fmt.Errorf("an expression of %d bytes", len(text))
	}
	e := p.or(0)
	p.blanks()
	if p.err == nil && p.i < len(p.s) {
		p.fail("unexpected %.20q", p.s[p.i:])
	}
	return e, p.err
}

type exprParser struct {
	s     string
	i     int
	count int
	err   error
}

func (p *exprParser) fail(format string, args ...any) *expr {
	if p.err == nil {
		p.err = fmt.Errorf("expression %.80q, byte %d: %s", p.s, p.i, fmt.Sprintf(format, args...))
	}
	p.i = len(p.s)
	return &expr{op: "int"}
}

func (p *exprParser) node(op string, args ...*expr) *expr {
	if p.count++; p.count > maxExprNodes {
		return p.fail("too long")
	}
	return &expr{op: op, args: args}
}

func (p *exprParser) blanks() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\n' || p.s[p.i] == '\t') {
		p.i++
	}
}

func (p *exprParser) take(tok string) bool {
	p.blanks()
	if strings.HasPrefix(p.s[p.i:], tok) {
		p.i += len(tok)
		return true
	}
	return false
}

// keyword takes a word that no identifier continues.
func (p *exprParser) keyword(w string) bool {
	p.blanks()
	rest := p.s[p.i:]
	if strings.HasPrefix(rest, w) && (len(rest) == len(w) || !isWord(rest[len(w)])) {
		p.i += len(w)
		return true
	}
	return false
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (p *exprParser) or(depth int) *expr {
	if depth > maxExprDepth {
		return p.fail("nested too deeply")
	}
	e := p.and(depth)
	for p.err == nil && (p.keyword("or") || p.take("|")) {
		e = p.node("or", e, p.and(depth))
	}
	return e
}

func (p *exprParser) and(depth int) *expr {
	e := p.not(depth)
	for p.err == nil && (p.keyword("and") || p.take("&")) {
		e = p.node("and", e, p.not(depth))
	}
	return e
}

func (p *exprParser) not(depth int) *expr {
	if depth > maxExprDepth {
		return p.fail("nested too deeply")
	}
	if p.keyword("not") || p.take("~") {
		return p.node("not", p.not(depth+1))
	}
	return p.comparison(depth)
}

var comparisons = [...]string{"==", "!=", "<=", ">=", "<", ">"}

func (p *exprParser) comparison(depth int) *expr {
	e := p.shift(depth)
	last := e
	for p.err == nil {
		op := ""
		for _, c := range comparisons {
			// << and >> are no comparisons
			p.blanks()
			if rest := p.s[p.i:]; strings.HasPrefix(rest, c) && !strings.HasPrefix(rest, "<<") && !strings.HasPrefix(rest, ">>") {
				p.i += len(c)
				op = c
				break
			}
		}
		if op == "" {
			return e
		}
		next := p.shift(depth)
		c := p.node(op, last, next)
		if e == last {
			e = c
		} else { // a < b < c
			e = p.node("and", e, c)
		}
		last = next
	}
	return e
}

func (p *exprParser) shift(depth int) *expr {
	e := p.sum(depth)
	for p.err == nil {
		switch {
		case p.take("<<"):
			e = p.node("<<", e, p.sum(depth))
		case p.take(">>"):
			e = p.node(">>", e, p.sum(depth))
		default:
			return e
		}
	}
	return e
}

func (p *exprParser) sum(depth int) *expr {
	e := p.product(depth)
	for p.err == nil {
		switch {
		case p.take("+"):
			e = p.node("+", e, p.product(depth))
		case p.take("-"):
			e = p.node("-", e, p.product(depth))
		default:
			return e
		}
	}
	return e
}

func (p *exprParser) product(depth int) *expr {
	e := p.unary(depth)
	for p.err == nil {
		p.blanks()
		if strings.HasPrefix(p.s[p.i:], "**") {
			return e
		}
		switch {
		case p.take("//"):
			e = p.node("//", e, p.unary(depth))
		case p.take("/"):
			e = p.node("/", e, p.unary(depth))
		case p.take("%"):
			e = p.node("%", e, p.unary(depth))
		case p.take("*"):
			e = p.node("*", e, p.unary(depth))
		default:
			return e
		}
	}
	return e
}

func (p *exprParser) unary(depth int) *expr {
	if depth > maxExprDepth {
		return p.fail("nested too deeply")
	}
	if p.take("-") {
		return p.node("neg", p.unary(depth+1))
	}
	if p.take("+") {
		return p.unary(depth + 1)
	}
	e := p.postfix(depth)
	if p.err == nil && p.take("**") {
		return p.node("**", e, p.unary(depth+1))
	}
	return e
}

func (p *exprParser) postfix(depth int) *expr {
	e := p.primary(depth)
	for p.err == nil {
		switch {
		case p.take("["):
			e = p.node("index", e, p.or(depth+1))
			if !p.take("]") {
				return p.fail("missing ]")
			}
		case p.take("."):
			name := p.ident()
			if p.err != nil {
				return e
			}
			e = p.node("attr", e)
			e.text = name
		case p.take("("):
			e = p.call(e, depth)
		default:
			return e
		}
	}
	return e
}

func (p *exprParser) ident() string {
	start := p.i
	for p.i < len(p.s) && isWord(p.s[p.i]) {
		p.i++
	}
	if start == p.i {
		p.fail("a name is missing")
		return ""
	}
	return p.s[start:p.i]
}

// relations are sympy's names of operators, in its plain form and in that of constructors.
var relations = map[string]string{
	"Eq": "==", "Ne": "!=", "Equality": "==", "Unequality": "!=", "LessThan": "<=", "GreaterThan": ">=", "StrictLessThan": "<", "StrictGreaterThan": ">",
}

// call reads a call; sympy's functions for relations become operators.
func (p *exprParser) call(fn *expr, depth int) *expr {
	c := p.arguments(fn, depth)
	op := relations[c.text]
	switch {
	case op != "" && len(c.args) == 2:
		return &expr{op: op, args: c.args}
	case c.text == "Not" && len(c.args) == 1:
		return &expr{op: "not", args: c.args}
	case (c.text == "And" || c.text == "Or") && len(c.args) > 1:
		e := c.args[0]
		for _, a := range c.args[1:] {
			e = &expr{op: strings.ToLower(c.text), args: []*expr{e, a}}
		}
		return e
	}
	return c
}

// arguments reads what stands in the parentheses; keyword arguments (assumptions on symbols) are dropped.
func (p *exprParser) arguments(fn *expr, depth int) *expr {
	c := p.node("call")
	switch fn.op {
	case "name":
		c.text = fn.text
	case "attr":
		c.text = fn.text
		if base := fn.args[0]; base.op == "name" && (base.text == "torch" || base.text == "math") {
			c.text = base.text + "." + fn.text
		} else {
			c.args = append(c.args, base)
			c.text = "." + fn.text
		}
	default:
		return p.fail("a call of what is no function")
	}
	if p.take(")") {
		return c
	}
	for p.err == nil {
		p.blanks()
		at := p.i
		if p.i < len(p.s) && isWord(p.s[p.i]) {
			p.ident()
			p.blanks()
			if p.i+1 < len(p.s) && p.s[p.i] == '=' && p.s[p.i+1] != '=' {
				p.i++
				p.or(depth + 1)
			} else {
				p.i = at
				c.args = append(c.args, p.or(depth+1))
			}
		} else {
			c.args = append(c.args, p.or(depth+1))
		}
		if p.take(")") {
			return c
		}
		if !p.take(",") {
			return p.fail("missing , or )")
		}
	}
	return c
}

func (p *exprParser) primary(depth int) *expr {
	p.blanks()
	if p.i >= len(p.s) {
		return p.fail("it ends too early")
	}
	switch c := p.s[p.i]; {
	case c == '(':
		p.i++
		e := p.or(depth + 1)
		if !p.take(")") {
			return p.fail("missing )")
		}
		return e
	case c == '\'' || c == '"':
		end := strings.IndexByte(p.s[p.i+1:], c)
		if end < 0 {
			return p.fail("a string does not end")
		}
		e := p.node("str")
		e.text = p.s[p.i+1 : p.i+1+end]
		if strings.IndexByte(e.text, '\\') >= 0 {
			return p.fail("an escape in a string")
		}
		p.i += end + 2
		return e
	case c >= '0' && c <= '9' || c == '.':
		start := p.i
		for p.i < len(p.s) && (isWord(p.s[p.i]) || p.s[p.i] == '.' || (p.s[p.i] == '-' || p.s[p.i] == '+') && (p.s[p.i-1] == 'e' || p.s[p.i-1] == 'E')) {
			p.i++
		}
		text := p.s[start:p.i]
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			e := p.node("int")
			e.n = n
			return e
		}
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return p.fail("%.20q is not a number", text)
		}
		e := p.node("float")
		e.text = text
		return e
	case isWord(c):
		e := p.node("name")
		e.text = p.ident()
		return e
	}
	return p.fail("unexpected %.20q", p.s[p.i:])
}

// str prints the expression for people, infix.
func (e *expr) str() string {
	var b strings.Builder
	e.print(&b, 0)
	return b.String()
}

func (e *expr) print(b *strings.Builder, level int) {
	levels := map[string]int{"or": 1, "and": 2, "==": 4, "!=": 4, "<=": 4, ">=": 4, "<": 4, ">": 4, "<<": 5, ">>": 5, "+": 6, "-": 6, "*": 7, "/": 7, "//": 7, "%": 7, "**": 9}
	switch e.op {
	case "int":
		b.WriteString(strconv.FormatInt(e.n, 10))
	case "float", "name":
		b.WriteString(e.text)
	case "str":
		b.WriteString("'" + e.text + "'")
	case "neg":
		b.WriteString("-")
		e.args[0].print(b, 8)
	case "not":
		b.WriteString("not ")
		e.args[0].print(b, 3)
	case "index":
		e.args[0].print(b, 10)
		b.WriteString("[")
		e.args[1].print(b, 0)
		b.WriteString("]")
	case "attr":
		e.args[0].print(b, 10)
		b.WriteString("." + e.text)
	case "call":
		args := e.args
		if strings.HasPrefix(e.text, ".") && len(args) > 0 {
			args[0].print(b, 10)
			args = args[1:]
		}
		b.WriteString(e.text + "(")
		for i, a := range args {
			if i > 0 {
				b.WriteString(", ")
			}
			a.print(b, 0)
		}
		b.WriteString(")")
	default:
		mine := levels[e.op]
		if mine < level {
			b.WriteString("(")
		}
		e.args[0].print(b, mine)
		b.WriteString(" " + e.op + " ")
		e.args[1].print(b, mine+1)
		if mine < level {
			b.WriteString(")")
		}
	}
}
