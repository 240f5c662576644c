package pyast

import (
	"slices"
	"strings"
)

const maxDepth = 1000 // of nested expressions and of nested blocks

// Parse parses a source file. Errors are *Error.
func Parse(src string) (f *File, err error) {
	p := &parser{lexer: lexer{src: src, start: true}}
	defer recovered(&err)
	p.advance()
	f = &File{}
	for p.tok.kind != eof {
		if s := p.statement(); s != nil {
			f.Body = append(f.Body, s...)
		}
	}
	return f, nil
}

// ParseExpr parses one expression.
func ParseExpr(src string) (e Expr, err error) {
	p := &parser{lexer: lexer{src: src}}
	defer recovered(&err)
	p.advance()
	e = p.expr()
	for p.tok.kind == newline {
		p.advance()
	}
	if p.tok.kind != eof {
		p.unexpected("after the expression")
	}
	return e, nil
}

func recovered(err *error) {
	if r := recover(); r != nil {
		e, ok := r.(*Error)
		if !ok {
			panic(r)
		}
		*err = e
	}
}

type parser struct {
	lexer
	tok    token
	nested int
	end    int // of the last token
}

func (p *parser) advance() {
	p.end = p.pos
	p.tok = p.next()
}

func (p *parser) unexpected(where string) {
	text := p.tok.text
	switch p.tok.kind {
	case newline:
		text = "end of line"
	case eof:
		text = "end of file"
	case indent:
		text = "indentation"
	case dedent:
		text = "end of block"
	}
	if len(text) > 40 {
		text = text[:40] + "..."
	}
	p.fail(p.tok.pos, "unexpected %q %s", text, where)
}

func (p *parser) is(text string) bool {
	return (p.tok.kind == op || p.tok.kind == name) && p.tok.text == text
}

func (p *parser) take(text string) bool {
	if p.is(text) {
		p.advance()
		return true
	}
	return false
}

func (p *parser) want(text, where string) {
	if !p.take(text) {
		p.unexpected(where)
	}
}

func (p *parser) ident(where string) string {
	if p.tok.kind != name {
		p.unexpected(where)
	}
	s := p.tok.text
	p.advance()
	return s
}

func (p *parser) enter() {
	if p.nested++; p.nested > maxDepth {
		p.fail(p.tok.pos, "nested too deeply")
	}
}

func (p *parser) leave() { p.nested-- }

func (p *parser) endLine() {
	if p.take(";") && p.tok.kind != newline {
		return
	}
	if p.tok.kind == eof {
		return
	}
	if p.tok.kind != newline {
		p.unexpected("at the end of a statement")
	}
	p.advance()
}

func (p *parser) block() []Stmt {
	p.want(":", "where a block begins")
	if p.tok.kind != newline { // on the same line
		return p.statement()
	}
	p.advance()
	if p.tok.kind != indent {
		p.unexpected("where a block is expected")
	}
	p.advance()
	p.enter()
	var body []Stmt
	for p.tok.kind != dedent {
		if p.tok.kind == eof {
			p.unexpected("inside a block")
		}
		body = append(body, p.statement()...)
	}
	p.leave()
	p.advance()
	return body
}

func (p *parser) statement() []Stmt {
	pos := Pos(p.tok.pos)
	if p.tok.kind == newline {
		p.advance()
		return nil
	}
	if p.tok.kind == indent {
		p.unexpected("at the start of a statement")
	}
	if p.tok.kind == name {
		switch p.tok.text {
		case "class":
			return []Stmt{p.class()}
		case "def":
			return []Stmt{p.def()}
		case "pass":
			p.advance()
			p.endLine()
			return []Stmt{&Pass{pos}}
		case "return":
			p.advance()
			s := &Return{Pos: pos}
			if p.tok.kind != newline && p.tok.kind != eof && !p.is(";") {
				s.X = p.exprList()
			}
			p.endLine()
			return []Stmt{s}
		case "if":
			return []Stmt{p.ifStmt()}
		case "for":
			p.advance()
			target := p.targets()
			p.want("in", "in a for statement")
			iter := p.exprList()
			return []Stmt{&For{pos, target, iter, p.block()}}
		case "while":
			p.advance()
			cond := p.expr()
			return []Stmt{&While{pos, cond, p.block()}}
		case "with":
			p.advance()
			w := &With{Pos: pos, X: p.expr()}
			if p.take("as") {
				w.Name = p.ident("after as")
			}
			w.Body = p.block()
			return []Stmt{w}
		case "import", "from": // version 1 and 2; names are global anyway
			for p.tok.kind != newline && p.tok.kind != eof {
				p.advance()
			}
			p.endLine()
			return []Stmt{&Pass{pos}}
		case "break", "continue", "raise", "assert", "del", "try", "global", "nonlocal", "async", "yield":
			what := p.tok.text
			for p.tok.kind != newline && p.tok.kind != eof {
				p.advance()
			}
			p.endLine()
			return []Stmt{&Other{pos, what}}
		}
	}
	if p.is("@") { // a decorator
		for p.tok.kind != newline && p.tok.kind != eof {
			p.advance()
		}
		p.endLine()
		return nil
	}
	return []Stmt{p.simple(pos)}
}

// targets reads the left side of a for.
func (p *parser) targets() Expr {
	pos := Pos(p.tok.pos)
	first := p.postfix()
	if !p.is(",") {
		return first
	}
	t := &Tuple{pos, []Expr{first}}
	for p.take(",") {
		if p.is("in") {
			break
		}
		t.Elems = append(t.Elems, p.postfix())
	}
	return t
}

// simple reads an assignment or an expression statement.
func (p *parser) simple(pos Pos) Stmt {
	elems := []Expr{p.expr()}
	comma := false
	for p.take(",") {
		comma = true
		if p.is("=") || p.tok.kind == newline {
			break
		}
		comma = false
		elems = append(elems, p.expr())
	}
	a := &Assign{Pos: pos, Targets: elems}
	switch {
	case p.take(":"):
		a.Type = p.expr()
		if p.take("=") {
			a.Value = p.exprList()
		}
		p.endLine()
		return a
	case p.take("="):
		a.Unpack = comma
		a.Value = p.exprList()
		if p.is("=") {
			p.unexpected("in a chained assignment, which TorchScript does not have")
		}
		p.endLine()
		return a
	}
	if p.tok.kind == op && len(p.tok.text) >= 2 && strings.HasSuffix(p.tok.text, "=") && len(elems) == 1 {
		switch p.tok.text {
		case "==", "!=", "<=", ">=", ":=":
			p.unexpected("at the end of a statement")
		}
		a.Op = strings.TrimSuffix(p.tok.text, "=")
		p.advance()
		a.Value = p.exprList()
		p.endLine()
		return a
	}
	var x Expr = &Tuple{pos, elems}
	if len(elems) == 1 && !comma {
		x = elems[0]
	}
	p.endLine()
	return &ExprStmt{pos, x}
}

func (p *parser) ifStmt() Stmt {
	p.enter()
	defer p.leave()
	pos := Pos(p.tok.pos)
	p.advance()
	s := &If{Pos: pos, Cond: p.expr()}
	s.Then = p.block()
	switch {
	case p.is("elif"):
		s.Else = []Stmt{p.ifStmt()}
	case p.take("else"):
		s.Else = p.block()
	}
	return s
}

func (p *parser) def() Stmt {
	d := &Def{Pos: Pos(p.tok.pos)}
	p.advance()
	d.Name = p.ident("after def")
	p.want("(", "in a function's head")
	for !p.take(")") {
		prm := Param{Pos: Pos(p.tok.pos)}
		if p.take("*") {
			prm.Name = "*"
			if p.tok.kind == name {
				p.fail(p.tok.pos, "*%s: TorchScript has no variable arguments", p.tok.text)
			}
		} else {
			prm.Name = p.ident("in a list of parameters")
			if slices.ContainsFunc(d.Params, func(q Param) bool { return q.Name == prm.Name }) {
				p.fail(int(prm.Pos), "the parameter %s is there twice", prm.Name)
			}
			if p.take(":") {
				prm.Type = p.expr()
			}
			if p.take("=") {
				prm.Default = p.expr()
			}
		}
		d.Params = append(d.Params, prm)
		if !p.is(")") {
			p.want(",", "in a list of parameters")
		}
	}
	if p.take("->") {
		d.Ret = p.expr()
	}
	d.Body = p.block()
	return d
}

func (p *parser) class() Stmt {
	c := &Class{Pos: Pos(p.tok.pos)}
	p.advance()
	c.Name = p.ident("after class")
	if p.take("(") {
		if !p.is(")") {
			switch x := p.expr().(type) {
			case *Name:
				c.Base = x.ID
			case *Attr:
				c.Base = x.Name
			}
		}
		p.want(")", "after a base class")
	}
	c.Body = p.block()
	return c
}

// exprList reads expressions separated by commas: a tuple unless there is one without comma.
func (p *parser) exprList() Expr {
	pos := Pos(p.tok.pos)
	first := p.expr()
	if !p.is(",") {
		return first
	}
	t := &Tuple{pos, []Expr{first}}
	for p.take(",") {
		if p.tok.kind == newline || p.tok.kind == eof || p.is(")") || p.is("=") || p.is("]") {
			break
		}
		t.Elems = append(t.Elems, p.expr())
	}
	return t
}

func (p *parser) expr() Expr {
	p.enter()
	defer p.leave()
	pos := Pos(p.tok.pos)
	x := p.binary(0)
	if p.take("if") {
		cond := p.binary(0)
		p.want("else", "in a conditional expression")
		return &Cond{pos, cond, x, p.expr()}
	}
	return x
}

// precedence of binary operators; comparisons do not chain here.
func precedence(t token) int {
	if t.kind != op && t.kind != name {
		return -1
	}
	switch t.text {
	case "or":
		return 1
	case "and":
		return 2
	case "in", "not", "is", "<", ">", "<=", ">=", "==", "!=":
		return 4
	case "|":
		return 5
	case "^":
		return 6
	case "&":
		return 7
	case "<<", ">>":
		return 8
	case "+", "-":
		return 9
	case "*", "/", "//", "%", "@":
		return 10
	}
	return -1
}

func (p *parser) binary(min int) Expr {
	pos := Pos(p.tok.pos)
	var x Expr
	if p.tok.kind == name && p.tok.text == "not" {
		p.enter()
		p.advance()
		x = &Unary{pos, "not", p.binary(3)}
		p.leave()
	} else {
		x = p.unary()
	}
	for {
		prec := precedence(p.tok)
		if prec < 0 || prec < min {
			return x
		}
		o := p.tok.text
		p.advance()
		switch o {
		case "not":
			p.want("in", "after not")
			o = "not in"
		case "is":
			if p.take("not") {
				o = "is not"
			}
		}
		p.enter()
		y := p.binary(prec + 1)
		p.leave()
		x = &Binary{pos, o, x, y}
	}
}

func (p *parser) unary() Expr {
	pos := Pos(p.tok.pos)
	if p.is("-") || p.is("+") || p.is("~") {
		o := p.tok.text
		p.advance()
		p.enter()
		defer p.leave()
		return &Unary{pos, o, p.unary()}
	}
	x := p.postfix()
	if p.is("**") {
		p.advance()
		p.enter()
		defer p.leave()
		return &Binary{pos, "**", x, p.unary()}
	}
	return x
}

func (p *parser) postfix() Expr {
	pos := Pos(p.tok.pos)
	x := p.primary()
	for n := 0; ; n++ {
		if n > maxDepth*10 {
			p.fail(p.tok.pos, "nested too deeply")
		}
		switch {
		case p.take("."):
			x = &Attr{pos, x, p.ident("after a dot")}
		case p.is("("):
			c := &Call{Pos: pos, Fn: x, Paren: p.tok.pos}
			p.advance()
			for !p.take(")") {
				if p.is("*") || p.is("**") {
					p.unexpected("in a call")
				}
				a := Arg{Value: p.expr()}
				if p.is("=") {
					id, ok := a.Value.(*Name)
					if !ok {
						p.unexpected("in a call")
					}
					p.advance()
					a = Arg{id.ID, p.expr()}
				}
				c.Args = append(c.Args, a)
				if !p.is(")") {
					p.want(",", "in a call")
				}
			}
			x = c
		case p.take("["):
			ix := &Index{Pos: pos, X: x}
			for !p.take("]") {
				ix.Items = append(ix.Items, p.subscript())
				if !p.is("]") {
					p.want(",", "in a subscript")
				}
			}
			x = ix
		default:
			return x
		}
	}
}

func (p *parser) subscript() Expr {
	pos := Pos(p.tok.pos)
	var lo Expr
	if !p.is(":") {
		lo = p.expr()
		if !p.is(":") {
			return lo
		}
	}
	p.advance()
	s := &Slice{Pos: pos, Lo: lo}
	if !p.is("]") && !p.is(",") && !p.is(":") {
		s.Hi = p.expr()
	}
	if p.take(":") && !p.is("]") && !p.is(",") {
		s.Step = p.expr()
	}
	return s
}

func (p *parser) primary() Expr {
	p.enter()
	defer p.leave()
	t := p.tok
	pos := Pos(t.pos)
	switch t.kind {
	case name:
		switch t.text {
		case "lambda", "if", "else", "for", "while", "in", "is", "and", "or", "def", "class", "return", "pass":
			p.unexpected("in an expression")
		}
		p.advance()
		return &Name{pos, t.text}
	case number:
		p.advance()
		n := &Num{Pos: pos, Text: strings.ReplaceAll(t.text, "_", "")}
		if k := len(n.Text); n.Text[k-1] == 'j' || n.Text[k-1] == 'J' {
			n.Text, n.Imag = n.Text[:k-1], true
		}
		return n
	case str:
		p.advance()
		s := &Str{pos, t.text}
		for p.tok.kind == str { // adjacent strings are one
			s.Value += p.tok.text
			p.advance()
		}
		return s
	}
	switch {
	case p.take("("):
		tup := &Tuple{Pos: pos}
		comma := false
		for !p.take(")") {
			tup.Elems = append(tup.Elems, p.expr())
			comma = p.take(",")
			if !comma && !p.is(")") {
				p.unexpected("in parentheses")
			}
		}
		if len(tup.Elems) == 1 && !comma {
			return tup.Elems[0]
		}
		return tup
	case p.take("["):
		l := &List{Pos: pos}
		for !p.take("]") {
			l.Elems = append(l.Elems, p.expr())
			if p.is("for") {
				p.unexpected("in a list: comprehensions do not occur in archives")
			}
			if !p.is("]") {
				p.want(",", "in a list")
			}
		}
		return l
	case p.take("{"):
		d := &Dict{Pos: pos}
		for !p.take("}") {
			d.Keys = append(d.Keys, p.expr())
			p.want(":", "in a dict")
			d.Values = append(d.Values, p.expr())
			if !p.is("}") {
				p.want(",", "in a dict")
			}
		}
		return d
	case p.take("..."):
		return &Name{pos, "..."}
	}
	p.unexpected("in an expression")
	return nil
}
