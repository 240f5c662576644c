package ssa

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// ParseError is a syntax error in graph text.
type ParseError struct {
	File      string
	Line, Col int // 1-based
	Message   string
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Message)
}

const (
	maxNesting  = 200
	maxElements = 1 << 24 // of a tensor written out or splat in the text
)

// Parse reads graph text in any spelling that PyTorch has printed, and what
// [Print] writes. All graphs of the text become functions of the module; the
// first one is its main function. Errors are *ParseError.
func Parse(src, file string, dialects ...Dialect) (m *Module, err error) {
	p := &parser{src: src, file: file, m: NewModule(dialects...)}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(*ParseError)
			if !ok {
				panic(r)
			}
			m, err = nil, pe
		}
	}()
	p.text()
	return p.m, nil
}

// ParseType reads a type as it is written in graph text.
func ParseType(s string) (t Type, err error) {
	p := &parser{src: s, file: "type", m: NewModule()}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(*ParseError)
			if !ok {
				panic(r)
			}
			t, err = nil, pe
		}
	}()
	t = p.typ(0)
	p.blanks()
	if p.pos < len(p.src) {
		p.fail("unexpected %q after the type", clip(p.src[p.pos:]))
	}
	return t, nil
}

type parser struct {
	src    string
	file   string
	pos    int
	m      *Module
	f      *Func
	values map[string]*Value
	depth  int
}

func clip(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	if len(s) > 30 {
		s = s[:30] + "..."
	}
	return s
}

func (p *parser) fail(format string, args ...any) {
	line := 1 + strings.Count(p.src[:p.pos], "\n")
	col := p.pos - strings.LastIndexByte(p.src[:p.pos], '\n')
	panic(&ParseError{p.file, line, col, fmt.Sprintf(format, args...)})
}

// blanks skips blanks on the line.
func (p *parser) blanks() {
	for p.pos < len(p.src) && (p.src[p.pos] == ' ' || p.src[p.pos] == '\t' || p.src[p.pos] == '\r') {
		p.pos++
	}
}

// space skips blanks, line ends and comments.
func (p *parser) space() {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';':
			p.pos++
		case c == '#':
			for p.pos < len(p.src) && p.src[p.pos] != '\n' {
				p.pos++
			}
		default:
			return
		}
	}
}

func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) has(s string) bool { return strings.HasPrefix(p.src[p.pos:], s) }

// take consumes s if it comes next on the line.
func (p *parser) take(s string) bool {
	p.blanks()
	if p.has(s) {
		p.pos += len(s)
		return true
	}
	return false
}

// takeS is take after line ends and comments too.
func (p *parser) takeS(s string) bool {
	p.space()
	return p.take(s)
}

func (p *parser) want(s string) {
	if !p.takeS(s) {
		p.fail("expected %q, found %q", s, clip(p.src[p.pos:]))
	}
}

func identByte(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func (p *parser) ident() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.src) && identByte(p.src[p.pos]) {
		p.pos++
	}
	return p.src[start:p.pos]
}

// dotted reads an identifier with dots.
func (p *parser) dotted() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.src) && (identByte(p.src[p.pos]) || p.src[p.pos] == '.') {
		p.pos++
	}
	return p.src[start:p.pos]
}

func (p *parser) text() {
	for {
		p.space()
		if p.pos >= len(p.src) {
			break
		}
		name := ""
		if p.has("with ") {
			p.take("with")
			name = p.kindName()
			p.want("=")
			p.space()
		}
		if !p.has("graph") {
			p.fail("expected graph(...), found %q", clip(p.src[p.pos:]))
		}
		p.take("graph")
		if p.take("@") {
			p.blanks()
			start := p.pos
			for p.pos < len(p.src) && (nameByte(p.src[p.pos]) || p.src[p.pos] == ':') {
				p.pos++
			}
			name = p.src[start:p.pos]
		}
		if name == "" {
			name = "main"
			for i := 1; p.m.Func(name) != nil; i++ {
				name = "main." + strconv.Itoa(i)
			}
		}
		if p.m.Func(name) != nil {
			p.fail("graph %s is defined twice", name)
		}
		p.graph(name)
	}
	if len(p.m.Funcs) == 0 {
		p.fail("no graph in the text")
	}
}

func (p *parser) graph(name string) {
	p.f = p.m.NewFunc(name)
	p.values = map[string]*Value{}
	p.want("(")
	p.params(p.f.Body)
	p.opening()
	p.ops(p.f.Body)
	p.want("return")
	p.want("(")
	p.f.Body.SetReturns(p.refs()...)
	p.takeS("}")
}

// opening reads ":" or, in old text, "{" after a parameter list.
func (p *parser) opening() {
	if !p.takeS(":") && !p.takeS("{") {
		p.fail("expected %q, found %q", ":", clip(p.src[p.pos:]))
	}
}

func (p *parser) params(b *Block) {
	for {
		p.space()
		if p.take(")") {
			return
		}
		if p.take(",") {
			continue
		}
		if p.has("uses") {
			p.skipUses()
			continue
		}
		name := p.valueName()
		p.define(name, b.AddParam(keepName(name), p.annotation()))
	}
}

// skipUses skips ", uses = [[...]]" of PyTorch 0.2.
func (p *parser) skipUses() {
	for p.pos < len(p.src) && p.src[p.pos] != ';' && p.src[p.pos] != '\n' && p.src[p.pos] != '=' {
		p.pos++
	}
	p.take("=")
	depth := 0
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if c == '\n' {
			return
		}
		p.pos++
		if c == '[' {
			depth++
		} else if c == ']' {
			depth--
			if depth == 0 {
				return
			}
		}
	}
}

func (p *parser) annotation() Type {
	p.blanks()
	if p.peek() == ':' {
		p.pos++
		return p.typ(0)
	}
	return AnyTensor
}

func keepName(n string) string {
	if isNumeric(n) {
		return ""
	}
	return n
}

func (p *parser) valueName() string {
	p.blanks()
	if p.peek() != '%' {
		p.fail("expected a value (%%name), found %q", clip(p.src[p.pos:]))
	}
	p.pos++
	start := p.pos
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if c == ':' && p.pos+2 < len(p.src) && p.src[p.pos+1] == ':' && nameByte(p.src[p.pos+2]) {
			p.pos += 2
			continue
		}
		if !nameByte(c) {
			break
		}
		p.pos++
	}
	if p.pos == start {
		p.fail("empty value name")
	}
	return p.src[start:p.pos]
}

func (p *parser) define(name string, v *Value) {
	if _, dup := p.values[name]; dup {
		p.fail("%%%s is defined twice", name)
	}
	p.values[name] = v
}

func (p *parser) refs() []*Value {
	var vs []*Value
	for {
		p.space()
		if p.take(")") {
			return vs
		}
		if p.take(",") {
			continue
		}
		if p.peek() == '_' {
			p.pos++
			vs = append(vs, nil)
			continue
		}
		name := p.valueName()
		v := p.values[name]
		if v == nil {
			p.fail("%%%s is not defined here", name)
		}
		vs = append(vs, v)
	}
}

func (p *parser) kindName() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		if c == ':' && p.pos+1 < len(p.src) && p.src[p.pos+1] == ':' {
			p.pos += 2
			continue
		}
		if !identByte(c) && c != '.' && c != '-' {
			break
		}
		p.pos++
	}
	return p.src[start:p.pos]
}

// ops reads nodes up to "return", "->" or a closing brace.
func (p *parser) ops(b *Block) {
	p.depth++
	if p.depth > maxNesting {
		p.fail("blocks nested too deeply")
	}
	defer func() { p.depth-- }()
	for {
		p.space()
		if p.pos >= len(p.src) {
			p.fail("the graph ends without return")
		}
		if p.has("->") || p.has("return") || p.peek() == '}' {
			return
		}
		p.op(b)
	}
}

type result struct {
	name string
	typ  Type
}

func (p *parser) op(b *Block) {
	var results []result
	for p.peek() == '%' {
		name := p.valueName()
		results = append(results, result{name, p.annotation()})
		p.blanks()
		if p.take(",") {
			p.space()
			if p.has("uses") {
				p.skipUses()
				p.space()
			}
		}
		p.space()
	}
	p.want("=")
	p.blanks()
	var attrs []Attr
	kind := ""
	if p.take("^") {
		name := p.dotted()
		attrs = append(attrs, Attr{"name", Str(name)})
		kind = "prim::PythonOp"
		if p.take("[") {
			attrs = append(attrs, p.attrs(nil)...)
		}
		if scalars := p.balanced(); p.peek() == '(' {
			attrs = append(attrs, Attr{"scalars", Blob(scalars)})
		} else { // one pair of parentheses only: it holds the operands
			p.pos -= len(scalars)
		}
	} else {
		kind = p.kindName()
		if kind == "" {
			p.fail("expected an operator, found %q", clip(p.src[p.pos:]))
		}
		if !strings.Contains(kind, "::") {
			kind = "onnx::" + kind // PyTorch 0.x wrote no namespaces
		}
	}
	if p.take("[") {
		attrs = p.attrs(results)
	}
	p.want("(")
	operands := p.refs()
	o := b.Append(Kind(kind), 0, operands)
	for _, r := range results {
		v := o.AddResult(r.typ)
		v.Name = keepName(r.name)
		p.define(r.name, v)
	}
	o.Attrs = attrs
	p.finishConstant(o)
	p.blanks()
	braced := p.take("{") // PyTorch 1.1 and earlier put the blocks of an op in braces
	o.Loc = p.trailer()
	for {
		save := p.pos
		p.space()
		if !p.has("block") || !p.isBlockHead() {
			if !braced || !p.take("}") {
				p.pos = save
			}
			return
		}
		p.ident()
		c := o.AddBlock()
		p.want("(")
		p.params(c)
		p.opening()
		p.ops(c)
		p.want("->")
		p.want("(")
		c.SetReturns(p.refs()...)
		p.takeS("}")
	}
}

// balanced reads a parenthesized text and gives it, with its parentheses.
func (p *parser) balanced() string {
	p.blanks()
	start := p.pos
	depth := 0
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case '(':
			depth++
		case ')':
			depth--
			if depth == 0 {
				p.pos++
				return p.src[start:p.pos]
			}
		case '"':
			p.str()
			continue
		case '\n':
			p.fail("unbalanced parentheses")
		}
		if depth == 0 {
			return p.src[start:p.pos]
		}
		p.pos++
	}
	p.fail("unbalanced parentheses")
	return ""
}

func (p *parser) isBlockHead() bool {
	i := p.pos + len("block")
	for i < len(p.src) && p.src[i] >= '0' && p.src[i] <= '9' {
		i++
	}
	return i > p.pos+len("block") && i < len(p.src) && p.src[i] == '('
}

// trailer reads ", scope: X # file:line:col" up to the end of the line.
func (p *parser) trailer() diag.Loc {
	end := strings.IndexByte(p.src[p.pos:], '\n')
	if end < 0 {
		end = len(p.src)
	} else {
		end += p.pos
	}
	line := p.src[p.pos:end]
	p.pos = end
	var f diag.Frame
	if i := strings.Index(line, ", scope: "); i >= 0 && strings.TrimSpace(line[:i]) == "" {
		line = line[i+len(", scope: "):]
		if j := strings.Index(line, " #"); j >= 0 {
			f.Scope, line = strings.TrimSpace(line[:j]), line[j:]
		} else {
			f.Scope, line = strings.TrimSpace(line), ""
		}
	}
	line = strings.Trim(line, " \t\r;,")
	if uses := strings.HasPrefix(line, "uses"); line != "" && line[0] != '#' && !uses {
		p.pos = end - len(line)
		if p.pos < 0 {
			p.pos = 0
		}
		p.fail("unexpected %q after the operator", clip(line))
	} else if !uses && line != "" {
		place := strings.TrimSpace(line[1:])
		// split from the right: file names may hold colons and blanks
		if j := strings.LastIndexByte(place, ':'); j > 0 {
			col, err := strconv.Atoi(place[j+1:])
			if k := strings.LastIndexByte(place[:j], ':'); k > 0 && err == nil {
				if n, err := strconv.Atoi(place[k+1 : j]); err == nil && n >= 0 && col >= 0 {
					f.File, f.Line, f.Col = place[:k], n, col
				}
			}
		}
	}
	return p.m.Locs.Add(f)
}

func (p *parser) attrs(results []result) []Attr {
	var as []Attr
	for {
		p.space()
		if p.take("]") {
			return as
		}
		if p.take(",") {
			continue
		}
		name := p.ident()
		if name == "" {
			p.fail("expected an attribute, found %q", clip(p.src[p.pos:]))
		}
		p.want("=")
		var want Type
		if len(results) == 1 {
			want = results[0].typ
		}
		as = append(as, Attr{name, p.attrValue(want, 0)})
	}
}

// finishConstant gives a prim::Constant's value the kind that the result type asks for.
func (p *parser) finishConstant(o *Op) {
	if o.Kind != "prim::Constant" || len(o.Results) != 1 || len(o.Attrs) == 0 {
		return
	}
	for i := range o.Attrs {
		if o.Attrs[i].Name == "value" {
			o.Attrs[i].Value = retype(o.Attrs[i].Value, o.Results[0].Type)
		}
	}
}

func retype(l Literal, t Type) Literal {
	switch t := t.(type) {
	case Basic:
		switch {
		case t == BoolType && l.Kind == IntLit:
			return Bool(l.i != 0)
		case t == FloatType && l.Kind == IntLit:
			return Float(float64(l.i))
		case t == DeviceType && l.Kind == StrLit:
			return Device(l.s)
		case t == FunctionType && l.Kind == StrLit:
			return FuncName(l.s)
		}
	case *ListType:
		if l.Kind == ListLit {
			l.Elem = t.Elem
			for i := range l.Elems {
				l.Elems[i] = retype(l.Elems[i], t.Elem)
			}
		}
	case *OptionalType:
		return retype(l, t.Elem)
	case *TupleType:
		if l.Kind == TupleLit && len(l.Elems) == len(t.Elems) {
			for i := range l.Elems {
				l.Elems[i] = retype(l.Elems[i], t.Elems[i])
			}
		}
	case *DictType:
		if l.Kind == DictLit {
			for i := range l.Elems {
				if i%2 == 0 {
					l.Elems[i] = retype(l.Elems[i], t.Key)
				} else {
					l.Elems[i] = retype(l.Elems[i], t.Value)
				}
			}
		}
	}
	return l
}

func (p *parser) str() string {
	if p.peek() != '"' {
		p.fail("expected a string")
	}
	p.pos++
	var b strings.Builder
	for p.pos < len(p.src) {
		c := p.src[p.pos]
		p.pos++
		if c == '"' {
			return b.String()
		}
		if c == '\n' {
			break
		}
		if c != '\\' || p.pos >= len(p.src) {
			b.WriteByte(c)
			continue
		}
		e := p.src[p.pos]
		p.pos++
		switch e {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'v':
			b.WriteByte('\v')
		case '0', '1', '2', '3':
			n := int(e - '0')
			for k := 0; k < 2 && p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '7'; k++ {
				n = n*8 + int(p.src[p.pos]-'0')
				p.pos++
			}
			b.WriteByte(byte(n))
		default:
			b.WriteByte(e)
		}
	}
	p.fail("string without end")
	return ""
}

// number reads a number and reports whether it is written as an int.
func (p *parser) number() (f float64, i int64, isInt, ok bool) {
	p.blanks()
	start := p.pos
	if p.peek() == '-' || p.peek() == '+' {
		p.pos++
	}
	for _, w := range []string{"inf", "nan"} {
		if p.has(w) && (p.pos+3 >= len(p.src) || !identByte(p.src[p.pos+3]) || p.src[p.pos+3] == 'j') {
			p.pos += 3
			f, _ = strconv.ParseFloat(p.src[start:p.pos], 64)
			return f, 0, false, true
		}
	}
	digits := func() (n int) {
		for p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9' {
			p.pos++
			n++
		}
		return n
	}
	n := digits()
	isInt = true
	if p.peek() == '.' {
		p.pos++
		isInt = false
		n += digits()
	}
	if n == 0 {
		p.pos = start
		return 0, 0, false, false
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		save := p.pos
		p.pos++
		if p.peek() == '-' || p.peek() == '+' {
			p.pos++
		}
		if digits() == 0 {
			p.pos = save
		} else {
			isInt = false
		}
	}
	s := p.src[start:p.pos]
	f, _ = strconv.ParseFloat(s, 64)
	if isInt {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			if u, err := strconv.ParseUint(s, 10, 64); err == nil {
				return f, int64(u), true, true
			}
			p.fail("number %s is out of range", s)
		}
		i = v
	}
	return f, i, isInt, true
}

// attrValue reads the value of an attribute; want is the type of the op's only result, if it has one.
func (p *parser) attrValue(want Type, depth int) Literal {
	if depth > maxNesting {
		p.fail("values nested too deeply")
	}
	p.blanks()
	if depth == 0 {
		if l, ok := p.tensorText(); ok {
			return l
		}
	}
	switch c := p.peek(); {
	case c == '"':
		return Str(p.str())
	case c == '[':
		p.pos++
		l := Literal{Kind: ListLit}
		for !p.takeS("]") {
			if p.takeS(",") {
				continue
			}
			l.Elems = append(l.Elems, p.attrValue(nil, depth+1))
		}
		if len(l.Elems) == 1 && l.Elems[0].Kind == BlobLit && l.Elems[0].s == "<Tensors>" {
			return Blob("[<Tensors>]")
		}
		if len(l.Elems) > 0 && l.Elems[0].Kind != TypeLit {
			l.Elem = listElem(l.Elems)
		}
		return l
	case c == '(':
		p.pos++
		l := Literal{Kind: TupleLit}
		for !p.takeS(")") {
			if p.takeS(",") {
				continue
			}
			l.Elems = append(l.Elems, p.attrValue(nil, depth+1))
		}
		return l
	case c == '{':
		return p.braced(want, depth)
	case c == '<':
		end := strings.IndexByte(p.src[p.pos:], '>')
		if end < 0 {
			p.fail("expected >")
		}
		s := p.src[p.pos : p.pos+end+1]
		p.pos += end + 1
		if s == "<Tensor>" {
			if t := AsTensor(want); t != nil {
				if shape, ok := t.Static(); ok {
					return TensorValue(&tensor.Tensor{DType: t.DType, Shape: shape, Strides: tensor.ContiguousStrides(shape)})
				}
			}
		}
		return Blob(s)
	case c == '-' || c == '+' || c >= '0' && c <= '9' || c == '.' || p.has("inf") || p.has("nan"):
		f, i, isInt, ok := p.number()
		if !ok {
			p.fail("expected a value, found %q", clip(p.src[p.pos:]))
		}
		if c := p.peek(); c == '+' || c == '-' {
			save := p.pos
			if im, _, _, ok := p.number(); ok && p.peek() == 'j' {
				p.pos++
				return Complex(complex(f, im))
			}
			p.pos = save
		}
		if p.peek() == 'j' {
			p.pos++
			return Complex(complex(0, f))
		}
		if isInt {
			return Int(i)
		}
		return Float(f)
	}
	save := p.pos
	word := p.dotted()
	switch word {
	case "":
		p.fail("expected a value, found %q", clip(p.src[p.pos:]))
	case "None":
		return None
	case "True":
		return Bool(true)
	case "False":
		return Bool(false)
	case "annotate":
		p.want("(")
		t := p.typ(0)
		p.want(",")
		l := p.attrValue(nil, depth+1)
		p.want(")")
		if lt, ok := t.(*ListType); ok && l.Kind == ListLit {
			l.Elem = lt.Elem
		}
		return l
	case "type":
		if p.take("(") {
			t := p.typ(0)
			p.want(")")
			return TypeValue(t)
		}
	case "enum":
		if p.take("(") {
			name := p.dotted()
			p.want(",")
			v := p.attrValue(nil, depth+1)
			p.want(")")
			return Enum(name, v)
		}
	case "object":
		p.pos = save + len(word)
		return Blob(word + p.balanced())
	}
	if t := p.peek(); t != ',' && t != ']' && t != ')' || p.isTypeName(word) {
		p.pos = save
		return TypeValue(p.typ(0))
	}
	return Blob(word)
}

func (p *parser) isTypeName(w string) bool {
	if tensor.FromTorch(w) != tensor.Undefined || w == "Tensor" || basicTypes[w] != "" || strings.HasPrefix(w, "__torch__") {
		return true
	}
	return w == "List" || w == "Dict" || w == "Optional"
}

// braced reads {scalar}, a boxed element, or {"k" : v, ...}, a dict.
func (p *parser) braced(want Type, depth int) Literal {
	p.pos++
	p.space()
	if t := AsTensor(want); t != nil && depth == 0 {
		var v Literal
		if p.peek() == '(' { // a complex number as a pair
			pair := p.attrValue(nil, 1)
			p.want("}")
			if len(pair.Elems) != 2 {
				p.fail("expected a pair")
			}
			return p.boxed(t, Complex(complex(pair.Elems[0].Float(), pair.Elems[1].Float())))
		}
		v = p.attrValue(nil, 1)
		p.want("}")
		return p.boxed(t, v)
	}
	l := Literal{Kind: DictLit}
	for !p.takeS("}") {
		if p.takeS(",") {
			continue
		}
		k := p.attrValue(nil, depth+1)
		if !p.takeS(":") {
			p.want("}")
			return k // {5} without a tensor type
		}
		l.Elems = append(l.Elems, k, p.attrValue(nil, depth+1))
	}
	return l
}

// boxed makes the tensor of {v}: every element of the result type is v.
func (p *parser) boxed(t *TensorType, v Literal) Literal {
	if !v.IsNumber() {
		p.fail("expected a number in braces")
	}
	shape, ok := t.Static()
	if !ok {
		shape = []int64{}
	}
	if !p.sane(shape) {
		p.fail("constant of shape %v is too large", shape)
	}
	d := t.DType
	if d == tensor.Undefined {
		d = defaultDType(v)
	}
	switch {
	case v.Kind == ComplexLit && d.IsComplex():
		if d == tensor.Complex64 {
			return TensorValue(&tensor.Tensor{DType: d, Shape: shape, Strides: make([]int64, len(shape)), Storage: tensor.Of(d, []int64{}, []complex64{complex64(v.Complex())}).Storage})
		}
		return TensorValue(&tensor.Tensor{DType: tensor.Complex128, Shape: shape, Strides: make([]int64, len(shape)), Storage: tensor.Of(tensor.Complex128, []int64{}, []complex128{v.Complex()}).Storage})
	case d == tensor.String || d == tensor.Complex32 || d.Size() == 0:
		p.fail("no constant of type %v", d)
	case v.Kind == IntLit && !d.IsFloat():
		return TensorValue(tensor.FullInt(d, shape, v.i))
	}
	if d.Size() == 1 && d.IsFloat() {
		p.fail("no constant of type %v", d)
	}
	return TensorValue(tensor.Full(d, shape, v.Float()))
}

func defaultDType(v Literal) tensor.DType {
	switch v.Kind {
	case IntLit:
		return tensor.Int64
	case BoolLit:
		return tensor.Bool
	case ComplexLit:
		return tensor.Complex64
	}
	return tensor.Float32
}

func (p *parser) sane(shape []int64) bool {
	n := int64(1)
	for _, s := range shape {
		if s < 0 || s > maxElements {
			return false
		}
		if n *= max(s, 1); n > maxElements*64 {
			return false
		}
	}
	return true
}

// tensorText reads numbers followed by [ CPUFloatType{2,3} ], with PyTorch's
// matrix display: a factor "0.01 *" in front and "(1,.,.) =" before each plane.
func (p *parser) tensorText() (Literal, bool) {
	end := strings.IndexByte(p.src[p.pos:], '[')
	if end < 0 {
		return None, false
	}
	line := strings.IndexByte(p.src[p.pos:], '\n')
	if line >= 0 && line < end {
		if !strings.Contains(p.src[p.pos:], "Type{") {
			return None, false
		}
	}
	// cheap test before the real one: the bracket must open "[ CPU...Type{"
	head := strings.TrimLeft(p.src[p.pos+end+1:], " ")
	if !strings.HasPrefix(head, "CPU") && !strings.HasPrefix(head, "CUDA") && !strings.HasPrefix(head, "Quantized") {
		return None, false
	}
	save := p.pos
	factor := 1.0
	var fs []float64
	var is []int64
	allInt := true
	for {
		p.space()
		switch c := p.peek(); {
		case c == '[':
		case c == '(':
			i := strings.IndexByte(p.src[p.pos:], ')')
			if i < 0 {
				p.pos = save
				return None, false
			}
			p.pos += i + 1
			p.takeS("=")
			continue
		default:
			f, i, isInt, ok := p.number()
			if !ok {
				p.pos = save
				return None, false
			}
			if p.take("*") {
				factor = f
				continue
			}
			fs, is = append(fs, f), append(is, i)
			allInt = allInt && isInt
			continue
		}
		break
	}
	p.want("[")
	name := p.ident()
	for _, b := range []string{"Quantized", "CPU", "CUDA"} {
		name = strings.TrimPrefix(name, b)
	}
	d := tensor.FromTorch(strings.TrimSuffix(name, "Type"))
	if d.Size() == 0 || d.IsComplex() || d.Size() == 1 && d.IsFloat() {
		p.fail("constant of unknown type %s", name)
	}
	p.want("{")
	shape := []int64{}
	n := int64(1)
	for !p.takeS("}") {
		if p.takeS(",") {
			continue
		}
		_, v, isInt, ok := p.number()
		if !ok || !isInt || v < 0 || v > maxElements {
			p.fail("expected a size")
		}
		shape = append(shape, v)
		if n *= max(v, 1); n > maxElements {
			p.fail("constant is too large")
		}
	}
	p.want("]")
	n = 1
	for _, s := range shape {
		n *= s
	}
	if n != int64(len(fs)) {
		p.fail("constant of shape %v has %d elements in the text", shape, len(fs))
	}
	if allInt && factor == 1 && !d.IsFloat() {
		return TensorValue(tensor.FromInts(d, shape, is)), true
	}
	for i := range fs {
		fs[i] *= factor
	}
	return TensorValue(tensor.FromFloats(d, shape, fs)), true
}

var basicTypes = map[string]Basic{
	"int": IntType, "float": FloatType, "bool": BoolType, "complex": ComplexType, "Scalar": NumberType, "number": NumberType,
	"str": StrType, "NoneType": NoneType, "None": NoneType, "Device": DeviceType, "Any": AnyType, "Generator": GeneratorType,
	"Function": FunctionType, "Stream": StreamType, "Storage": StorageType, "QScheme": QSchemeType, "PyObject": PyObjectType,
	"Capsule": CapsuleType, "list": AnyListType, "tuple": AnyTupleType, "AnyEnumType": AnyEnumType, "AnyClassType": AnyClassType,
}

func (p *parser) typ(depth int) Type {
	if depth > maxNesting {
		p.fail("type nested too deeply")
	}
	t := p.baseType(depth)
	for {
		switch {
		case p.has("[]"):
			p.pos += 2
			t = &ListType{t}
		case p.has("?"):
			p.pos++
			t = &OptionalType{t}
		default:
			return t
		}
	}
}

func (p *parser) baseType(depth int) Type {
	p.blanks()
	if p.peek() == '(' {
		p.pos++
		t := &TupleType{}
		for !p.takeS(")") {
			if p.takeS(",") {
				continue
			}
			t.Elems = append(t.Elems, p.typ(depth+1))
		}
		return t
	}
	word := p.dotted()
	if word == "" {
		p.fail("expected a type, found %q", clip(p.src[p.pos:]))
	}
	d, isTensor := tensor.Undefined, false
	switch {
	case word == "Tensor" || word == "Dynamic" || word == "UNKNOWN_TYPE":
		isTensor = true
	case tensor.FromTorch(word) != tensor.Undefined:
		d, isTensor = tensor.FromTorch(word), true
	case strings.HasSuffix(word, "Tensor") && tensor.FromTorch(strings.TrimSuffix(word, "Tensor")) != tensor.Undefined:
		// FloatTensor(requires_grad=0): the rank is not known
		t := &TensorType{DType: tensor.FromTorch(strings.TrimSuffix(word, "Tensor"))}
		if p.peek() == '(' {
			p.dims(&TensorType{})
		}
		p.takeUndefined()
		return t
	}
	if isTensor {
		t := &TensorType{DType: d}
		if p.peek() == '(' {
			t.Ranked = true
			p.dims(t)
		}
		p.takeUndefined()
		if !t.Ranked && d == tensor.Undefined {
			return AnyTensor
		}
		return t
	}
	if b, ok := basicTypes[word]; ok {
		return b
	}
	brackets := func() []Type {
		closing := ")"
		if p.peek() == '[' {
			closing = "]"
		} else if p.peek() != '(' {
			p.fail("expected parameters of %s", word)
		}
		p.pos++
		var ts []Type
		for !p.takeS(closing) {
			if p.takeS(",") {
				continue
			}
			ts = append(ts, p.typ(depth+1))
		}
		return ts
	}
	need := func(n int) []Type {
		ts := brackets()
		if len(ts) != n {
			p.fail("%s takes %d parameters, not %d", word, n, len(ts))
		}
		return ts
	}
	switch word {
	case "Dict":
		ts := need(2)
		return &DictType{ts[0], ts[1]}
	case "List":
		return &ListType{need(1)[0]}
	case "Optional":
		return &OptionalType{need(1)[0]}
	case "Tuple":
		return &TupleType{Elems: brackets()}
	case "Future", "RRef", "Await":
		return &WrapType{word, need(1)[0]}
	case "Union":
		return &UnionType{brackets()}
	case "Enum", "InterfaceType":
		p.want("<")
		name := p.dotted()
		p.want(">")
		if word == "Enum" {
			return &EnumType{name}
		}
		return &InterfaceType{name}
	case "NamedTuple":
		p.want("(")
		t := &TupleType{Names: []string{}}
		for !p.takeS(")") {
			if p.takeS(",") {
				continue
			}
			t.Names = append(t.Names, p.ident())
			p.want(":")
			t.Elems = append(t.Elems, p.typ(depth+1))
		}
		return t
	}
	if strings.HasPrefix(word, "__torch__") {
		return &ClassType{word}
	}
	return &VarType{word}
}

func (p *parser) takeUndefined() {
	if p.has("[Undefined]") {
		p.pos += len("[Undefined]")
	}
}

// dims reads (2, N, strides=[...], requires_grad=0, device=cpu).
func (p *parser) dims(t *TensorType) {
	p.pos++
	for !p.takeS(")") {
		if p.takeS(",") {
			continue
		}
		p.space()
		start := p.pos
		depth := 0
	scan:
		for ; p.pos < len(p.src); p.pos++ {
			switch p.src[p.pos] {
			case '(', '[':
				depth++
			case ']':
				depth--
			case ')':
				if depth == 0 {
					break scan
				}
				depth--
			case ',':
				if depth == 0 {
					break scan
				}
			case '\n':
				break scan
			}
		}
		item := strings.TrimSpace(p.src[start:p.pos])
		if strings.Contains(item, "=") {
			continue // strides, requires_grad, device
		}
		item = strings.TrimSuffix(item, "!")
		if i := strings.IndexByte(item, ':'); i >= 0 {
			item = item[:i]
		}
		item = strings.TrimSpace(item)
		if item == "" {
			p.fail("expected a dimension")
		}
		if item == "*" || item == "?" || strings.HasPrefix(item, "SS(") || isNegative(item) {
			t.Dims = append(t.Dims, p.m.FreshSymbol("u", 0))
			continue
		}
		e, err := sym.Parse(item)
		if err != nil {
			p.fail("%v", err)
		}
		e.Symbols(p.m.noteSymbol)
		t.Dims = append(t.Dims, e)
	}
}

func isNegative(s string) bool {
	if len(s) < 2 || s[0] != '-' {
		return false
	}
	return isNumeric(s[1:])
}

// noteSymbol keeps FreshSymbol from handing out a name that the text uses.
func (m *Module) noteSymbol(name string) {
	i := len(name)
	for i > 0 && name[i-1] >= '0' && name[i-1] <= '9' {
		i--
	}
	if n, err := strconv.Atoi(name[i:]); err == nil && n >= m.fresh && n < math.MaxInt32 {
		m.fresh = n + 1
	}
}
