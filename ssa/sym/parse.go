package sym

import (
	"fmt"
	"strconv"
)

// maxDepth bounds the nesting that Parse accepts.
const maxDepth = 200

// Parse reads what String prints. Unknown names are symbols that are at least 0.
func Parse(s string) (Expr, error) { return ParseWith(s, nil) }

// ParseWith is Parse with symbols of which more is known, by their names. A name that begins with $, as no size of a model has it, is read only if it is one of them.
func ParseWith(s string, known map[string]Expr) (Expr, error) {
	p := parser{s: s, known: known}
	e := p.sum(0)
	p.blanks()
	if p.err == nil && p.i < len(p.s) {
		p.fail("unexpected %.40q", p.s[p.i:])
	}
	return e, p.err
}

type parser struct {
	s     string
	i     int
	err   error
	known map[string]Expr
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf("dimension %.60q: %s", p.s, fmt.Sprintf(format, args...))
	}
	p.i = len(p.s)
}

func (p *parser) blanks() {
	for p.i < len(p.s) && p.s[p.i] == ' ' {
		p.i++
	}
}

func (p *parser) take(tok string) bool {
	p.blanks()
	if len(p.s)-p.i >= len(tok) && p.s[p.i:p.i+len(tok)] == tok {
		p.i += len(tok)
		return true
	}
	return false
}

func (p *parser) sum(depth int) Expr {
	e := p.product(depth)
	for p.err == nil {
		switch {
		case p.take("+"):
			e = e.Add(p.product(depth))
		case p.take("-"):
			e = e.Sub(p.product(depth))
		default:
			return e
		}
	}
	return e
}

func (p *parser) product(depth int) Expr {
	e := p.primary(depth)
	for p.err == nil {
		switch {
		case p.take("//"):
			e = e.FloorDiv(p.primary(depth))
		case p.take("%"):
			e = e.Mod(p.primary(depth))
		case p.take("*"):
			e = e.Mul(p.primary(depth))
		default:
			return e
		}
	}
	return e
}

func isIdent(c byte, first bool) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || !first && (c >= '0' && c <= '9' || c == '.')
}

func (p *parser) primary(depth int) Expr {
	if depth > maxDepth {
		p.fail("nested too deeply")
		return Expr{}
	}
	if p.take("(") {
		e := p.sum(depth + 1)
		if !p.take(")") {
			p.fail("missing )")
		}
		return e
	}
	if p.take("-") {
		return p.primary(depth + 1).Neg()
	}
	start := p.i
	if p.i >= len(p.s) {
		p.fail("ends too early")
		return Expr{}
	}
	if c := p.s[p.i]; c >= '0' && c <= '9' {
		for p.i < len(p.s) && p.s[p.i] >= '0' && p.s[p.i] <= '9' {
			p.i++
		}
		n, err := strconv.ParseInt(p.s[start:p.i], 10, 64)
		if p.s[start:p.i] == "9223372036854775808" && start > 0 && p.s[start-1] == '-' {
			n, err = minInt, nil // the negative of itself
		}
		if err != nil {
			p.fail("%v", err)
		}
		return Const(n)
	}
	internal := p.s[p.i] == '$'
	if internal {
		p.i++
	} else if !isIdent(p.s[p.i], true) {
		p.fail("unexpected %.40q", p.s[p.i:])
		return Expr{}
	}
	for p.i < len(p.s) && isIdent(p.s[p.i], false) {
		p.i++
	}
	name := p.s[start:p.i]
	if !p.take("(") {
		if e, ok := p.known[name]; ok {
			return e
		}
		if internal {
			p.fail("unknown %s", name)
		}
		return Symbol(name, 0)
	}
	var args []Expr
	for p.err == nil {
		args = append(args, p.sum(depth+1))
		if p.take(")") {
			break
		}
		if !p.take(",") {
			p.fail("missing , or )")
		}
	}
	switch name {
	case "min", "max", "bcast", "mul":
		if len(args) == 2 {
			return apply(name, args)
		}
	}
	p.fail("unknown function %s of %d arguments", name, len(args))
	return Expr{}
}
