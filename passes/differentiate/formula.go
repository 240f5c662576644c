package differentiate

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"

	"github.com/aton-project/aton/ssa"
)

// formula is how the gradient of one operand is computed.
type formula struct {
	operand string
	choices []*expr // the first one whose names the overload has
}

// expr is a node of a formula.
type expr struct {
	op    string // name, number, list, call, index, "?", or an operator: + - * / //
	name  string // of a name or a call
	value ssa.Literal
	args  []*expr
	named map[string]*expr // arguments by keyword
}

// rule is the text of a row, parsed.
type rule struct {
	guards   map[string]ssa.Literal // arguments, and the constants that they must be
	formulas []formula
}

var parsed sync.Map // of the text of a row: *rule

// ruleOf parses the text of a row: guards in brackets, then for each operand a formula. Formulas are separated by ";", and the choices of
// one by "|".
func ruleOf(text string) (*rule, error) {
	if r, ok := parsed.Load(text); ok {
		return r.(*rule), nil
	}
	r, rest := &rule{guards: map[string]ssa.Literal{}}, text
	if guards, formulas, ok := strings.Cut(text, "]"); ok && strings.HasPrefix(text, "[") {
		for _, g := range strings.Split(guards[1:], ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(g), "=")
			p := &parser{text: value}
			e := p.expression()
			if p.err != nil || e.op != "number" {
				return nil, fmt.Errorf("%q is no constant", value)
			}
			r.guards[name] = e.value
		}
		rest = formulas
	}
	for _, f := range strings.Split(rest, ";") {
		name, body, ok := strings.Cut(strings.TrimSpace(f), ":")
		if !ok {
			return nil, fmt.Errorf("%q has no operand", f)
		}
		fo := formula{operand: strings.TrimSpace(name)}
		for _, choice := range strings.Split(body, "|") {
			p := &parser{text: choice}
			e := p.expression()
			if p.skip(); p.err == nil && p.at < len(p.text) {
				p.fail("unexpected %q", p.text[p.at:])
			}
			if p.err != nil {
				return nil, fmt.Errorf("%s: %v", strings.TrimSpace(choice), p.err)
			}
			fo.choices = append(fo.choices, e)
		}
		r.formulas = append(r.formulas, fo)
	}
	parsed.Store(text, r)
	return r, nil
}

// parser reads the expressions of formulas: Python's, with c ? a : b for a if c else b.
type parser struct {
	text string
	at   int
	err  error
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) skip() {
	for p.at < len(p.text) && p.text[p.at] == ' ' {
		p.at++
	}
}

// take consumes a token if it is next.
func (p *parser) take(token string) bool {
	p.skip()
	if strings.HasPrefix(p.text[p.at:], token) {
		p.at += len(token)
		return true
	}
	return false
}

func (p *parser) want(token string) {
	if !p.take(token) {
		p.fail("%q is missing at %q", token, p.text[p.at:])
	}
}

func (p *parser) expression() *expr {
	e := p.sum()
	if p.take("==") {
		e = &expr{op: "==", args: []*expr{e, p.sum()}}
	}
	if p.take("?") {
		then := p.expression()
		p.want(":")
		return &expr{op: "?", args: []*expr{e, then, p.expression()}}
	}
	return e
}

func (p *parser) sum() *expr {
	e := p.product()
	for p.err == nil {
		switch {
		case p.take("+"):
			e = &expr{op: "+", args: []*expr{e, p.product()}}
		case p.take("-"):
			e = &expr{op: "-", args: []*expr{e, p.product()}}
		default:
			return e
		}
	}
	return e
}

func (p *parser) product() *expr {
	e := p.unary()
	for p.err == nil {
		switch {
		case p.take("//"):
			e = &expr{op: "//", args: []*expr{e, p.unary()}}
		case p.take("*"):
			e = &expr{op: "*", args: []*expr{e, p.unary()}}
		case p.take("/"):
			e = &expr{op: "/", args: []*expr{e, p.unary()}}
		default:
			return e
		}
	}
	return e
}

func (p *parser) unary() *expr {
	if p.take("-") {
		e := p.unary()
		if e.op == "number" {
			return &expr{op: "number", value: negated(e.value)}
		}
		return &expr{op: "call", name: "neg", args: []*expr{e}}
	}
	e := p.primary()
	for p.err == nil && p.take("[") {
		e = &expr{op: "index", args: []*expr{e, p.expression()}}
		p.want("]")
	}
	return e
}

func negated(l ssa.Literal) ssa.Literal {
	if l.Kind == ssa.IntLit {
		return ssa.Int(-l.Int())
	}
	return ssa.Float(-l.Float())
}

func (p *parser) primary() *expr {
	p.skip()
	if p.err != nil || p.at >= len(p.text) {
		p.fail("the formula ends too early")
		return &expr{}
	}
	switch c := rune(p.text[p.at]); {
	case p.take("("):
		e := p.expression()
		p.want(")")
		return e
	case p.take("["):
		e := &expr{op: "list"}
		for !p.take("]") && p.err == nil {
			e.args = append(e.args, p.expression())
			p.take(",")
		}
		return e
	case p.take("'"):
		text, rest, ok := strings.Cut(p.text[p.at:], "'")
		if !ok {
			p.fail("a string has no end")
		}
		p.at = len(p.text) - len(rest)
		return &expr{op: "number", value: ssa.Str(text)}
	case unicode.IsDigit(c):
		return p.number()
	case unicode.IsLetter(c) || c == '_':
		return p.name()
	}
	p.fail("unexpected %q", p.text[p.at:])
	return &expr{}
}

func (p *parser) number() *expr {
	from := p.at
	for p.at < len(p.text) && strings.ContainsRune("0123456789.e", rune(p.text[p.at])) {
		p.at++
	}
	word := p.text[from:p.at]
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return &expr{op: "number", value: ssa.Int(n)}
	}
	x, err := strconv.ParseFloat(word, 64)
	if err != nil {
		p.fail("%q is no number", word)
	}
	return &expr{op: "number", value: ssa.Float(x)}
}

func (p *parser) word() string {
	from := p.at
	for p.at < len(p.text) && (unicode.IsLetter(rune(p.text[p.at])) || unicode.IsDigit(rune(p.text[p.at])) || p.text[p.at] == '_') {
		p.at++
	}
	return p.text[from:p.at]
}

func (p *parser) name() *expr {
	word := p.word()
	switch word {
	case "None":
		return &expr{op: "number", value: ssa.Literal{}}
	case "True":
		return &expr{op: "number", value: ssa.Bool(true)}
	case "False":
		return &expr{op: "number", value: ssa.Bool(false)}
	}
	if !p.take("(") {
		return &expr{op: "name", name: word}
	}
	e := &expr{op: "call", name: word, named: map[string]*expr{}}
	for !p.take(")") && p.err == nil {
		at := p.at
		p.skip()
		if key := p.word(); key != "" && p.take("=") && !strings.HasPrefix(p.text[p.at:], "=") {
			e.named[key] = p.expression()
		} else {
			p.at = at
			e.args = append(e.args, p.expression())
		}
		p.take(",")
	}
	return e
}

// names calls yield with each name of an argument or result in the expression.
func (e *expr) names(yield func(name string)) {
	if e.op == "name" {
		yield(e.name)
	}
	for _, a := range e.args {
		a.names(yield)
	}
	for _, a := range e.named {
		a.names(yield)
	}
}
