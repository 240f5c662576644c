// Package pattern reads the language of rewrite rules: lines of the IR with names for what a rule binds, and the terms of
// conditions. It knows what is written; who uses it says what that means, and refuses what means nothing there. Both the
// rules that are built in (package ssa/rewrite) and those of a user's file (package dialects/aten/rules) are read by it.
package pattern

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Line is one operator of a pattern.
type Line struct {
	Number  int // in its text, from 1; set by [Parse]
	Results []Result
	// Kind is the operator. It is empty where the results are the operands, as in "%y = %x".
	Kind     ssa.Kind
	At       int // the column of the operator, from 1, as all columns here
	Attrs    []Attr
	Others   bool // attributes that are not named: [*]
	Operands []Operand
}

// Result is a value that a line defines.
type Result struct {
	Name string
	At   int
	Type *Type // nil where none is stated
}

// Attr is an attribute of a line.
type Attr struct {
	Name  string
	At    int
	Value Term
}

// Operand is an operand of a line: by place, or by the name of an argument.
type Operand struct {
	Arg string // empty: by place
	Term
}

// TermKind says what a term is.
type TermKind uint8

// Kinds of terms.
const (
	Absent  TermKind = iota // _
	Value                   // %x
	Bound                   // $p
	Literal                 // 1, 0.5, "s", True, None
	List                    // [%a, 2]
	Call                    // rank(%x)
	Word                    // f32, opset
)

// Term is an operand, the value of an attribute, or a part of a condition.
type Term struct {
	Kind    TermKind
	At, End int         // its columns: of its first byte, and of the one behind it
	Name    string      // of %x, of $p, of a function, or the word itself
	Literal ssa.Literal // of a Literal
	Terms   []Term      // of a List, or the arguments of a Call
	// Shared is %x*, Const is %x!, Spread is %x...; Mark is the column of the first of these.
	Shared, Const, Spread bool
	Mark                  int

	line int // of a Value that an earlier line defines: the number of that line, from 1
}

// Fixed is the literal that a term stands for without any binding: a Literal, or a List of such.
func (t *Term) Fixed() (ssa.Literal, bool) {
	switch t.Kind {
	case Literal:
		return t.Literal, true
	case List:
		elems := make([]ssa.Literal, len(t.Terms))
		for i := range t.Terms {
			l, ok := t.Terms[i].Fixed()
			if !ok {
				return ssa.None, false
			}
			elems[i] = l
		}
		return ListOf(elems), true
	}
	return ssa.None, false
}

// ListOf makes a list of literals. Its type is that of the elements: of numbers that of floats where one of them is a float,
// of none that of ints.
func ListOf(elems []ssa.Literal) ssa.Literal {
	elem := ssa.Type(ssa.IntType)
	for i, l := range elems {
		if i == 0 || l.Kind == ssa.FloatLit && elems[0].IsNumber() {
			elem = l.Type()
		}
	}
	if elem == ssa.FloatType {
		for i, l := range elems {
			if l.Kind == ssa.IntLit {
				elems[i] = ssa.Float(l.Float())
			}
		}
	}
	return ssa.List(elem, elems...)
}

// Type is what a line says of a result: f32[%x.0, 3], %x, i64[%x...], seq(%x).
type Type struct {
	At int
	// Seq is a sequence of such tensors.
	Seq bool
	// DType is the element type; that of the value Like where it is Undefined.
	DType tensor.DType
	Like  string
	// Whole is the type of Like, sizes included. Otherwise Ranked says whether Dims are known.
	Whole, Ranked bool
	Dims          []Dim
}

// Dim is the size of an axis, or with Spread all sizes of a value.
type Dim struct {
	At     int
	Spread string
	Any    bool // ?
	// Size has the symbol d0 for the first of Refs, d1 for the second, ...
	Size sym.Expr
	Refs []Ref
}

// Ref is a number that a size is computed from: %x.1, the size of an axis (negative ones count from the end), or $p.
type Ref struct {
	Value string
	Axis  int
	Bound string
}

// Error says what is wrong at a column.
type Error struct {
	Line    int // set by [Parse]
	Column  int
	Message string
}

func (e *Error) Error() string { return e.Message }

// Parse reads the lines of a pattern; empty ones are skipped. The error is an *[Error].
func Parse(text string) ([]Line, error) {
	var out []Line
	for i, s := range strings.Split(text, "\n") {
		if strings.TrimSpace(s) == "" {
			continue
		}
		l, err := ParseLine(s)
		if err != nil {
			e := err.(*Error)
			e.Line = i + 1
			return nil, e
		}
		l.Number = i + 1
		out = append(out, l)
	}
	return out, nil
}

// ParseLine reads one line. The error is an *[Error].
func ParseLine(s string) (l Line, err error) {
	p := &parser{s: s}
	defer p.recovered(&err)
	l = p.line()
	return l, nil
}

// ParseTerm reads one term. The error is an *[Error].
func ParseTerm(s string) (t Term, err error) {
	p := &parser{s: s}
	defer p.recovered(&err)
	t = p.term()
	if p.blanks(); p.i < len(p.s) {
		p.fail(p.i, "%q stands behind the term's end", p.s[p.i:])
	}
	return t, nil
}

// Condition is a demand on what a pattern has bound: Left Op Right, or Left alone.
type Condition struct {
	Left  Term
	Op    string // ==, !=, <, <=, >, >=, in, not in; empty for Left alone
	OpAt  int
	Right Term
}

// ParseCondition reads a condition. The error is an *[Error].
func ParseCondition(s string) (c Condition, err error) {
	p := &parser{s: s}
	defer p.recovered(&err)
	c.Left = p.term()
	p.blanks()
	c.OpAt = p.i + 1
	for _, op := range [...]string{"==", "!=", "<=", ">=", "<", ">", "not in ", "in "} {
		if p.take(op) {
			c.Op = strings.TrimSpace(op)
			c.Right = p.term()
			break
		}
	}
	if p.blanks(); p.i < len(p.s) {
		p.fail(p.i, "%q is not understood; a condition is one comparison (==, !=, <, <=, >, >=, in, not in), and each stands on a line of its own", p.s[p.i:])
	}
	return c, nil
}

// maxDepth bounds the nesting of terms.
const maxDepth = 20

type parser struct {
	s     string
	i     int
	depth int
}

// fail gives up; the offset becomes a column.
func (p *parser) fail(offset int, format string, args ...any) {
	panic(&Error{Column: offset + 1, Message: fmt.Sprintf(format, args...)})
}

func (p *parser) recovered(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		panic(r)
	}
}

func (p *parser) blanks() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\t') {
		p.i++
	}
}

func (p *parser) take(s string) bool {
	p.blanks()
	if !strings.HasPrefix(p.s[p.i:], s) {
		return false
	}
	p.i += len(s)
	return true
}

func (p *parser) peek() byte {
	if p.blanks(); p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

func letter(c byte) bool { return c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// word reads letters, digits, and what else is allowed.
func (p *parser) word(also string) string {
	start := p.i
	for p.i < len(p.s) && (letter(p.s[p.i]) || digit(p.s[p.i]) || strings.IndexByte(also, p.s[p.i]) >= 0) {
		p.i++
	}
	return p.s[start:p.i]
}

// field is what stands at an offset up to the next comma, bracket or =, for messages.
func (p *parser) field(offset int) string {
	rest := p.s[offset:]
	if end := strings.IndexAny(rest, ",)]="); end >= 0 {
		rest = rest[:end]
	}
	return strings.TrimSpace(rest)
}

func (p *parser) line() Line {
	var l Line
	indent := len(p.s) - len(strings.TrimLeft(p.s, " \t"))
	if !strings.Contains(p.s, " = ") {
		p.fail(indent, "no =")
	}
	for {
		l.Results = append(l.Results, p.result())
		if !p.take(",") {
			break
		}
	}
	if !p.take("=") {
		p.fail(p.i, "%q stands where = is due", p.field(p.i))
	}
	if c := p.peek(); c != '%' && c != '[' {
		p.blanks()
		l.At = p.i + 1
		l.Kind = ssa.Kind(p.word("._:-"))
		if p.take("[") {
			p.attrs(&l)
		}
		if !p.take("(") {
			p.fail(indent, "no operands")
		}
	}
	for p.peek() != 0 && p.peek() != ')' {
		if p.take(",") {
			continue
		}
		l.Operands = append(l.Operands, p.operand())
		if c := p.peek(); c != 0 && c != ',' && c != ')' {
			last := &l.Operands[len(l.Operands)-1]
			p.fail(last.At-1, "%q is no operand", p.field(last.At-1))
		}
	}
	switch {
	case l.Kind != "" && !p.take(")"):
		p.fail(indent, "no operands: the ) is missing")
	case l.Kind == "" && len(l.Operands) != len(l.Results):
		p.fail(indent, "%d values for %d results", len(l.Operands), len(l.Results))
	}
	if p.blanks(); p.i < len(p.s) {
		p.fail(p.i, "%q stands behind the line's end", p.s[p.i:])
	}
	return l
}

// result reads %y, or %y : TYPE.
func (p *parser) result() Result {
	p.blanks()
	at := p.i
	r := Result{At: at + 1}
	if p.take("%") {
		r.Name = p.word(".")
	}
	if r.Name == "" {
		p.fail(at, "%q is no value", p.field(at))
	}
	if c := p.peek(); c == '*' || c == '!' {
		end := p.i
		for end < len(p.s) && (p.s[end] == '*' || p.s[end] == '!') {
			end++
		}
		p.fail(p.i, "%s stands behind an operand, not behind the value that a line defines", p.s[p.i:end])
	}
	if p.take(":") {
		r.Type = p.typ()
	}
	return r
}

func (p *parser) attrs(l *Line) {
	for !p.take("]") {
		switch {
		case p.take(","):
			continue
		case p.take("*"):
			l.Others = true
			continue
		}
		p.blanks()
		a := Attr{At: p.i + 1, Name: p.word("")}
		switch {
		case a.Name == "" && p.i == len(p.s):
			p.fail(p.i, "no ]")
		case a.Name == "" || !p.take("="):
			p.fail(a.At-1, "attribute %q has no value", p.field(a.At-1))
		}
		a.Value = p.term()
		l.Attrs = append(l.Attrs, a)
		if c := p.peek(); c != ',' && c != ']' {
			p.fail(a.At-1, "the ] behind attribute %q is missing", a.Name)
		}
	}
}

// operand reads a term, or NAME=TERM.
func (p *parser) operand() Operand {
	p.blanks()
	start := p.i
	if name := p.word(""); name != "" && !digit(name[0]) && p.take("=") {
		return Operand{Arg: name, Term: p.term()}
	}
	p.i = start
	return Operand{Term: p.term()}
}

func (p *parser) term() Term {
	p.depth++
	defer func() { p.depth-- }()
	p.blanks()
	t := Term{At: p.i + 1}
	if p.depth > maxDepth {
		p.fail(p.i, "the nesting is too deep")
	}
	p.termAt(&t)
	t.End = p.i + 1
	return t
}

func (p *parser) termAt(t *Term) {
	start := p.i
	switch c := p.peek(); {
	case c == '%':
		p.i++
		t.Kind = Value
		name := p.word(".")
		t.Name = strings.TrimSuffix(name, "...")
		t.Mark = p.i + 1
		if t.Spread = t.Name != name; t.Spread {
			t.Mark -= len("...")
		}
		t.Const = p.i < len(p.s) && p.s[p.i] == '!'
		if t.Const {
			p.i++
		}
		t.Shared = p.i < len(p.s) && p.s[p.i] == '*'
		if t.Shared {
			p.i++
		}
		if t.Name == "" {
			p.fail(start, "%q is no operand", p.field(start))
		}
	case c == '$':
		p.i++
		t.Kind = Bound
		if t.Name = p.word(""); t.Name == "" {
			p.fail(start, "%q is no name; a constant is called $ and letters", p.field(start))
		}
	case c == '[':
		p.i++
		t.Kind = List
		p.terms(t, ']')
	case c == '"':
		quoted, err := strconv.QuotedPrefix(p.s[p.i:])
		if err != nil {
			p.fail(start, "the string has no end, or an escape that there is not")
		}
		p.i += len(quoted)
		text, _ := strconv.Unquote(quoted) // a prefix that is quoted
		t.Kind, t.Literal = Literal, ssa.Str(text)
	case c == '-' || digit(c):
		p.number(t)
	case letter(c):
		p.wordOrCall(t)
	default:
		p.fail(start, "literal %q is not understood", p.field(start))
	}
}

// terms reads terms up to a closing bracket.
func (p *parser) terms(t *Term, end byte) {
	for p.peek() != end {
		if p.take(",") {
			continue
		}
		if p.peek() == 0 {
			p.fail(t.At-1, "the %c is missing", end)
		}
		t.Terms = append(t.Terms, p.term())
		if c := p.peek(); c != ',' && c != end {
			p.fail(p.i, "%q stands where a comma or %c is due", p.field(p.i), end)
		}
	}
	p.i++
}

func (p *parser) number(t *Term) {
	start := p.i
	p.i++
	for p.i < len(p.s) && (digit(p.s[p.i]) || letter(p.s[p.i]) || p.s[p.i] == '.' ||
		(p.s[p.i] == '-' || p.s[p.i] == '+') && p.s[p.i-1]|0x20 == 'e') {
		p.i++
	}
	text := p.s[start:p.i]
	t.Kind = Literal
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		t.Literal = ssa.Int(n)
		return
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		p.fail(start, "literal %q is not understood", text)
	}
	t.Literal = ssa.Float(f)
}

var words = map[string]ssa.Literal{
	"None": ssa.None, "True": ssa.Bool(true), "False": ssa.Bool(false), "true": ssa.Bool(true), "false": ssa.Bool(false),
	"inf": ssa.Float(math.Inf(1)), "nan": ssa.Float(math.NaN()),
}

func (p *parser) wordOrCall(t *Term) {
	t.Name = p.word("")
	if l, is := words[t.Name]; is {
		t.Kind, t.Literal = Literal, l
		return
	}
	switch {
	case t.Name == "_":
		t.Kind = Absent
	case p.i < len(p.s) && p.s[p.i] == '(':
		p.i++
		t.Kind = Call
		p.terms(t, ')')
	default:
		t.Kind = Word
	}
}

// DType is the element type of a name such as f32, as input specifications spell it.
func DType(name string) (tensor.DType, bool) {
	d := tensor.FromSpec(name)
	return d, d != tensor.Undefined
}

// typ reads the type of a result.
func (p *parser) typ() *Type {
	p.blanks()
	t := &Type{At: p.i + 1}
	if strings.HasPrefix(p.s[p.i:], "seq(") {
		p.i += len("seq(")
		t = p.typ()
		if t.Seq || !p.take(")") {
			p.fail(p.i, "a sequence is seq(TYPE) of tensors")
		}
		t.Seq = true
		return t
	}
	at := p.i
	if p.take("%") {
		if t.Like = p.word(""); t.Like == "" {
			p.fail(at, "%q is no type", p.field(at))
		}
	} else {
		name := p.word("")
		var ok bool
		if t.DType, ok = DType(name); !ok {
			p.fail(at, "%q is no type; a type is f32[2,3], %%x (that of %%x), or %%x[%%x.0,3]", p.field(at))
		}
	}
	if p.i >= len(p.s) || p.s[p.i] != '[' {
		if t.Whole = t.Like != ""; !t.Whole {
			p.fail(p.i, "the sizes are missing: write %s[2,3], %s[...] where the rank is not known", p.s[at:p.i], p.s[at:p.i])
		}
		return t
	}
	p.i++
	if p.take("...") {
		if !p.take("]") {
			p.fail(p.i, "nothing stands beside ...")
		}
		return t
	}
	t.Ranked = true
	for !p.take("]") {
		if p.take(",") {
			continue
		}
		if p.peek() == 0 {
			p.fail(at, "the ] of the type is missing")
		}
		t.Dims = append(t.Dims, p.dim())
	}
	return t
}

// dim reads the size of one axis.
func (p *parser) dim() Dim {
	p.blanks()
	start := p.i
	d := Dim{At: start + 1}
	var expr strings.Builder
	for p.i < len(p.s) && p.s[p.i] != ',' && p.s[p.i] != ']' {
		switch c := p.s[p.i]; c {
		case '%':
			p.i++
			name := p.word("")
			switch {
			case name == "":
				p.fail(start, "%q is no size", p.field(start))
			case strings.HasPrefix(p.s[p.i:], "..."):
				p.i += len("...")
				d.Spread = name
				if next := p.peek(); strings.TrimSpace(expr.String()) != "" || next != ',' && next != ']' {
					p.fail(start, "%%%s... stands for all sizes, and nothing is computed with it", name)
				}
				return d
			}
			axis, ok := 0, p.i < len(p.s) && p.s[p.i] == '.'
			if ok {
				p.i++
				from := p.i
				if p.i < len(p.s) && p.s[p.i] == '-' {
					p.i++
				}
				for p.i < len(p.s) && digit(p.s[p.i]) {
					p.i++
				}
				n, err := strconv.ParseInt(p.s[from:p.i], 10, 16)
				axis, ok = int(n), err == nil
			}
			if !ok {
				p.fail(start, "%%%s is no size: write %%%s.0 for that of its first axis, %%%s... for all", name, name, name)
			}
			d.ref(&expr, Ref{Value: name, Axis: axis})
		case '$':
			p.i++
			name := p.word("")
			if name == "" {
				p.fail(start, "%q is no size", p.field(start))
			}
			d.ref(&expr, Ref{Bound: name})
		case '?':
			p.i++
			d.Any = true
		default:
			if letter(c) {
				p.fail(p.i, "%q is no size; sizes are numbers, %%x.0 and $n", p.field(p.i))
			}
			expr.WriteByte(c)
			p.i++
		}
	}
	text := strings.TrimSpace(expr.String())
	if d.Any {
		if text != "" {
			p.fail(start, "nothing is computed with ?")
		}
		return d
	}
	e, err := sym.Parse(text)
	if err != nil {
		p.fail(start, "%q is no size; sizes are numbers, %%x.0 and $n, and sums and products of these", strings.TrimSpace(p.s[start:p.i]))
	}
	d.Size = e
	return d
}

// ref puts a symbol for a number that is found later.
func (d *Dim) ref(expr *strings.Builder, r Ref) {
	fmt.Fprintf(expr, "d%d", len(d.Refs))
	d.Refs = append(d.Refs, r)
}

// Text is how the part of a line that a term covers is written.
func (t *Term) Text(line string) string {
	if t.At < 1 || t.End < t.At || t.End-1 > len(line) {
		return ""
	}
	return line[t.At-1 : t.End-1]
}
