package ssa

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/diag"
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
	p := &parser{src: src, file: file, m: NewModule(dialects...), tensors: strings.Contains(src, "Type{")}
	p.head.fresh, p.funcs = -1, map[string]map[string]*Value{}
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

type parser struct {
	src    string
	file   string
	pos    int
	m      *Module
	f      *Func
	values map[string]*Value            // of the function at hand
	funcs  map[string]map[string]*Value // of each function
	depth  int
	// tensors: the text may have tensors as PyTorch prints them.
	tensors bool
	head    head
	// nodes are notes of the head, by numbers of locations that come behind them.
	nodes []Literal
	// exact: the value of the constant at hand is said exactly, whatever its type.
	exact bool
	// starred: the text has sizes without names.
	starred bool
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

// unexpected fails for text that is not what there must be.
func (p *parser) unexpected(want string) {
	if rest := strings.TrimLeft(p.src[p.pos:], " \t"); strings.HasPrefix(rest, "...") || strings.HasPrefix(rest, "…") || strings.HasPrefix(rest, "---") {
		p.fail("lines of the graph are left out at %q: put them in, or take out what uses them", clip(rest))
	}
	p.fail("expected %s, found %q", want, clip(p.src[p.pos:]))
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
		p.unexpected(strconv.Quote(s))
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

func dottedByte(c byte) bool { return identByte(c) || c == '.' }

// dotted reads an identifier with dots.
func (p *parser) dotted() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.src) && dottedByte(p.src[p.pos]) {
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
		if len(p.m.Funcs) == 0 && p.has("module") {
			p.take("module")
			p.moduleHead()
			continue
		}
		if len(p.m.Funcs) > 0 && p.has("known") {
			p.take("known")
			p.known()
			continue
		}
		if len(p.m.Funcs) > 0 && p.has("data") {
			p.take("data")
			p.data()
			continue
		}
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
			name = p.name(func(c byte) bool { return nameByte(c) || c == ':' })
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
	p.finish()
}

func (p *parser) graph(name string) {
	p.f = p.m.NewFunc(name)
	p.values = map[string]*Value{}
	p.funcs[name] = p.values
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
		p.unexpected(`":"`)
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

// valueKey is one for all spellings of the name that valueName has read: a number without quotes is no name.
func valueKey(n string) string {
	if !strings.HasPrefix(n, "\"") && !isNumeric(n) {
		return "\"" + n
	}
	return n
}

func keepName(n string) string {
	if quoted, ok := strings.CutPrefix(n, "\""); ok {
		return quoted
	}
	if isNumeric(n) {
		return ""
	}
	return n
}

func (p *parser) valueName() string {
	p.blanks()
	if p.peek() != '%' {
		p.unexpected("a value (%name)")
	}
	p.pos++
	if p.peek() == '"' {
		// a name is what stands in quotes; the quotes tell the number of a value without a name from a name
		return "\"" + p.str()
	}
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
	key := valueKey(name)
	if _, dup := p.values[key]; dup {
		p.fail("%%%s is defined twice", name)
	}
	p.values[key] = v
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
		vs = append(vs, p.ref())
	}
}

func (p *parser) ref() *Value {
	name := p.valueName()
	v := p.values[valueKey(name)]
	if v == nil {
		p.fail("%%%s is not defined here: put in the line that defines it, before this one", name)
	}
	return v
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
		quoted := p.peek() == '"'
		if quoted {
			kind = p.str()
		} else {
			kind = p.kindName()
		}
		if kind == "" && !quoted {
			p.fail("expected an operator, found %q", clip(p.src[p.pos:]))
		}
		if !strings.Contains(kind, "::") && !quoted {
			kind = "onnx::" + kind // PyTorch 0.x wrote no namespaces
		}
	}
	p.exact = false
	if kind != "prim::PythonOp" && p.take("[") || kind == "prim::PythonOp" && len(attrs) == 0 && p.take("[") {
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
	if len(p.head.schemas) > 0 && p.take(", schema:") {
		n := p.int(p.attrValue(nil, 1))
		if n < 0 || n >= int64(len(p.head.schemas)) {
			p.fail("there is no schema %d", n)
		}
		o.Schema = p.head.schemas[n]
	}
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
	if i := strings.LastIndex(line, ", loc: "); i >= 0 && len(p.head.frames) > 0 { // which has all that the line says of it
		if n, err := strconv.ParseInt(strings.TrimRight(line[i+len(", loc: "):], " \t\r;"), 10, 64); err == nil {
			return p.locNumber(n)
		}
	}
	if rest, ok := strings.CutPrefix(line, ", scope: \""); ok {
		q := &parser{src: "\"" + rest, file: p.file}
		if !q.reads(func() { f.Scope = q.str() }) {
			p.fail("scope without end")
		}
		line = q.src[q.pos:]
	} else if i := strings.Index(line, ", scope: "); i >= 0 && strings.TrimSpace(line[:i]) == "" {
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
					if place[0] == '"' {
						q := &parser{src: place[:k], file: p.file}
						if !q.reads(func() { f.File = q.str() }) || q.pos != k {
							f.File = place[:k]
						}
					}
				}
			}
		}
	}
	return p.m.Locs.Add(f)
}
