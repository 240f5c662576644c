package kir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa/sym"
)

// maxNesting bounds how deep blocks stand in each other in text.
const maxNesting = 100

// Parse reads one kernel, as String prints it. Errors begin with the name of the text, the line and the column. The kernel is one that Verify accepts.
func Parse(name, text string) (*Kernel, error) {
	ks, err := ParseAll(name, text)
	if err != nil {
		return nil, err
	}
	if len(ks) != 1 {
		return nil, fmt.Errorf("%s:1:1: expected one kernel, found %d", name, len(ks))
	}
	return ks[0], nil
}

// ParseAll is Parse of any number of kernels.
func ParseAll(name, text string) (kernels []*Kernel, err error) {
	p := &parser{file: name, text: text}
	defer func() {
		if e := recover(); e != nil {
			failed, ok := e.(syntaxError)
			if !ok {
				panic(e) // a fault of the parser
			}
			kernels, err = nil, failed.error
		}
	}()
	for p.nextLine(); !p.atEnd(); p.nextLine() {
		kernels = append(kernels, p.kernel())
	}
	return kernels, nil
}

// syntaxError ends parsing.
type syntaxError struct{ error }

type parser struct {
	file, text string
	i          int // where the rest begins

	k      *Kernel
	at     *Block
	depth  int
	mems   map[string]*Mem
	values map[string]*Node // known here, by name
	seen   map[string]bool  // names that have been given in the kernel
	open   []string         // names that are known, in their order
	consts map[constKey]*Node
	parts  map[part]*Node
}

// part is a result of an operation that has several.
type part struct {
	of *Node
	n  int64
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.i, format, args...) }

func (p *parser) failAt(i int, format string, args ...any) {
	before := p.text[:i]
	line := strings.Count(before, "\n") + 1
	col := i - strings.LastIndexByte(before, '\n')
	panic(syntaxError{fmt.Errorf("%s:%d:%d: %s", p.file, line, col, fmt.Sprintf(format, args...))})
}

// expected says what is missing, and what is there.
func (p *parser) expected(what string) {
	rest, _, _ := strings.Cut(p.text[p.i:], "\n")
	switch rest = strings.TrimSpace(rest); {
	case rest == "" && p.i >= len(p.text):
		rest = "the end of the text"
	case rest == "":
		rest = "the end of the line"
	default:
		n := strings.IndexAny(rest, " \t")
		if n > 0 {
			rest = rest[:n]
		}
		if len(rest) > 40 {
			rest = rest[:40]
		}
		rest = strconv.Quote(rest)
	}
	p.fail("expected %s, found %s", what, rest)
}

// blanks goes past blanks, and a comment to the end of its line.
func (p *parser) blanks() {
	for p.i < len(p.text) && (p.text[p.i] == ' ' || p.text[p.i] == '\t' || p.text[p.i] == '\r') {
		p.i++
	}
	if p.i < len(p.text) && p.text[p.i] == '#' {
		if n := strings.IndexByte(p.text[p.i:], '\n'); n >= 0 {
			p.i += n
		} else {
			p.i = len(p.text)
		}
	}
}

// nextLine goes to the next line that has something.
func (p *parser) nextLine() {
	for p.blanks(); p.i < len(p.text) && p.text[p.i] == '\n'; p.blanks() {
		p.i++
	}
}

func (p *parser) atEnd() bool { return p.i >= len(p.text) }

// endLine demands that the line ends here.
func (p *parser) endLine() {
	if p.blanks(); !p.atEnd() && p.text[p.i] != '\n' {
		p.expected("the end of the line")
	}
	p.nextLine()
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// word reads letters, digits, points and underscores, none if there is none.
func (p *parser) word() string {
	p.blanks()
	start := p.i
	for !p.atEnd() && isWord(p.text[p.i]) {
		p.i++
	}
	return p.text[start:p.i]
}

// peek reads a word and stays before it.
func (p *parser) peek() string {
	p.blanks()
	i := p.i
	w := p.word()
	p.i = i
	return w
}

// take goes past a sign if it is there.
func (p *parser) take(sign string) bool {
	if p.blanks(); strings.HasPrefix(p.text[p.i:], sign) {
		p.i += len(sign)
		return true
	}
	return false
}

// need goes past a sign that must be there.
func (p *parser) need(sign string) {
	if !p.take(sign) {
		p.expected(strconv.Quote(sign))
	}
}

// keyword goes past a word that must be there.
func (p *parser) keyword(w string) {
	if p.peek() != w {
		p.expected(strconv.Quote(w))
	}
	p.word()
}

// identifier reads a name.
func (p *parser) identifier(what string) string {
	if w := p.peek(); w == "" || w[0] >= '0' && w[0] <= '9' {
		p.expected(what)
	}
	return p.word()
}

// integer reads a decimal number from least to most.
func (p *parser) integer(what string, least, most int64) int64 {
	p.blanks()
	start := p.i
	p.take("-")
	for !p.atEnd() && p.text[p.i] >= '0' && p.text[p.i] <= '9' {
		p.i++
	}
	n, err := strconv.ParseInt(p.text[start:p.i], 10, 64)
	if err != nil || n < least || n > most {
		p.i = start
		p.expected(fmt.Sprintf("%s, %d to %d", what, least, most))
	}
	return n
}

// typ reads the name of a type.
func (p *parser) typ() Type {
	p.blanks()
	start := p.i
	t := typeOf(p.word())
	if t == None {
		p.i = start
		p.expected("a type")
	}
	return t
}

// typeOf is the type with a name, None if there is none.
func typeOf(name string) Type { return Type(max(0, slices.Index(typeNames[:], name))) }

func (p *parser) kernel() *Kernel {
	start := p.i
	p.keyword("kernel")
	k := &Kernel{Name: p.identifier("the name of the kernel"), Body: &Block{known: map[key]*Node{}}}
	*p = parser{file: p.file, text: p.text, i: p.i, k: k, at: k.Body, mems: map[string]*Mem{}, values: map[string]*Node{}, seen: map[string]bool{},
		consts: map[constKey]*Node{}, parts: map[part]*Node{}}
	p.keyword("threads")
	p.need("=")
	k.Threads = int(p.integer("a number of threads", 1, maxThreads))
	if p.peek() == "resident" {
		p.word()
		p.need("=")
		k.Resident = int(p.integer("a number of blocks", 1, 32))
	}
	p.need("{")
	p.endLine()
	p.head()
	if err := k.check(); err != nil {
		p.failAt(start, "%v", err)
	}
	p.operations()
	p.need("}")
	p.endLine()
	return k
}

// head reads symbols, parameters and shared memory.
func (p *parser) head() {
	known := map[string]sym.Expr{}
	for {
		switch p.peek() {
		case "symbol":
			p.word()
			f := sym.Fact{Name: p.symbol()}
			if _, twice := known[f.Name]; twice {
				p.fail("symbol %s is there already", f.Name)
			}
			p.keyword("min")
			f.Min = p.integer("the least value", math.MinInt64, math.MaxInt64)
			if p.peek() == "max" {
				p.word()
				f.Max = new(p.size(known))
			}
			if p.peek() == "of" {
				p.word()
				f.Free = []string{p.symbol()}
				for p.take(",") {
					f.Free = append(f.Free, p.symbol())
				}
			}
			known[f.Name] = f.Symbol()
		case "param":
			p.word()
			if n := p.integer("the number of the parameter", 0, maxParams); int(n) != len(p.k.Params) {
				p.fail("parameter %d stands where parameter %d does", n, len(p.k.Params))
			}
			p.need(":")
			if p.peek() == I32.String() {
				p.word()
				p.need("=")
				p.k.Params = append(p.k.Params, &Param{Size: p.size(known), node: &Node{Op: Scalar, Type: I32, Int: int64(len(p.k.Params))}})
				break
			}
			m := p.memory()
			m.Param = len(p.k.Params)
			switch p.peek() {
			case "writes":
				m.Writes = true
			case "reads":
			default:
				p.expected("reads or writes")
			}
			p.word()
			p.k.Params = append(p.k.Params, &Param{Mem: m})
		case "shared":
			p.word()
			m := p.memory()
			m.Shared, m.Writes = true, true
			p.need("[")
			m.Len = int(p.integer("a number of elements", 1, maxShared))
			p.need("]")
			p.k.Shared = append(p.k.Shared, m)
		default:
			return
		}
		p.endLine()
	}
}

// symbol reads the name of a symbol.
func (p *parser) symbol() string {
	if p.take("$") {
		return "$" + p.identifier("the name of a symbol")
	}
	return p.identifier("the name of a symbol")
}

// size reads an expression: the rest of the line, without what a symbol depends on and without a comment.
func (p *parser) size(known map[string]sym.Expr) sym.Expr {
	p.blanks()
	rest := p.text[p.i:]
	for _, end := range []string{"\n", "#", " of "} {
		rest, _, _ = strings.Cut(rest, end)
	}
	if strings.TrimSpace(rest) == "" {
		p.expected("a size")
	}
	e, err := sym.ParseWith(strings.TrimSpace(rest), known)
	if err != nil {
		p.fail("%v", err)
	}
	p.i += len(rest)
	return e
}

// memory reads the name and the type of a memory.
func (p *parser) memory() *Mem {
	p.blanks()
	start := p.i
	m := &Mem{Name: p.identifier("the name of a memory")}
	m.Elem = p.typ()
	if p.mems[m.Name] != nil {
		p.failAt(start, "memory %s is there already", m.Name)
	}
	p.mems[m.Name] = m
	return m
}

// enter opens a block of an operation.
func (p *parser) enter(owner *Node) *Block {
	if p.depth++; p.depth > maxNesting {
		p.fail("blocks in more than %d others", maxNesting)
	}
	p.at = &Block{parent: p.at, depth: p.at.depth + 1, known: map[key]*Node{}}
	owner.Blocks = append(owner.Blocks, p.at)
	return p.at
}

// leave closes the block; what has become known since then is so no more.
func (p *parser) leave(then int) {
	for _, name := range p.open[then:] {
		delete(p.values, name)
	}
	p.open = p.open[:then]
	p.at = p.at.parent
	p.depth--
}

// body reads what stands between braces: operations, and what they give.
func (p *parser) body(gives []Type) {
	p.need("{")
	p.endLine()
	p.operations()
	if len(gives) > 0 {
		p.keyword("give")
		for i, t := range gives {
			if i > 0 {
				p.need(",")
			}
			p.at.Results = append(p.at.Results, p.value(t))
		}
		p.endLine()
	}
	p.need("}")
}

// operations reads operations as long as there are any.
func (p *parser) operations() {
	for p.blanks(); !p.atEnd() && p.text[p.i] != '}' && p.peek() != "give"; p.blanks() {
		p.operation()
	}
}

// define gives a name to a value.
func (p *parser) define(at int, name string, v *Node) {
	if p.seen[name] {
		p.failAt(at, "%%%s is there already", name)
	}
	p.seen[name] = true
	p.values[name] = v
	p.open = append(p.open, name)
}

// valueName reads the name of a value.
func (p *parser) valueName() (at int, name string) {
	at = p.i
	p.need("%")
	if p.atEnd() || !isWord(p.text[p.i]) {
		p.expected("the name of a value")
	}
	return at, p.word()
}

// value reads an operand of a type: a value that is known, a size, or a constant.
func (p *parser) value(t Type) *Node {
	p.blanks()
	start := p.i
	v := p.anyValue(t)
	if v.Type != t {
		p.failAt(start, "expected a value of type %s, found one of type %s", t, v.Type)
	}
	return v
}

func (p *parser) anyValue(t Type) *Node {
	start := p.i
	switch {
	case p.atEnd():
	case p.text[p.i] == '%':
		_, name := p.valueName()
		v := p.values[name]
		if v == nil {
			p.failAt(start, "%%%s is not known here", name)
		}
		several := v.results()
		if several == nil {
			return v
		}
		if p.atEnd() || p.text[p.i] != '#' { // not need, for which it begins a comment
			p.expected("\"#\" and the number of a result")
		}
		p.i++
		n := p.integer("the number of a result", 0, int64(len(several)-1))
		k := part{v, n}
		if p.parts[k] == nil {
			p.parts[k] = &Node{Op: Result, Type: several[n], Int: n, Args: []*Node{v}, block: v.block}
		}
		return p.parts[k]
	case p.text[p.i] == '$':
		p.i++
		n := p.integer("the number of a parameter", 0, maxParams)
		if int(n) >= len(p.k.Params) || p.k.Params[n].Mem != nil {
			p.failAt(start, "parameter %d is no size", n)
		}
		return p.k.Params[n].node
	case p.text[p.i] == '-' || p.text[p.i] == '+' || isWord(p.text[p.i]):
		return p.constant(t)
	}
	p.expected("a value of type " + t.String())
	return nil
}

// constant reads a number of a type.
func (p *parser) constant(t Type) *Node {
	start := p.i
	for !p.atEnd() && (isWord(p.text[p.i]) || (p.text[p.i] == '-' || p.text[p.i] == '+') && (p.i == start || strings.ContainsRune("epEP", rune(p.text[p.i-1])))) {
		p.i++
	}
	s := p.text[start:p.i]
	v := &Node{Op: Const, Type: t}
	var k constKey
	var err error
	if t.IsFloat() {
		bits := 64
		if t == F32 {
			bits = 32
		}
		if v.Float, err = strconv.ParseFloat(s, bits); s == "-nan" { // which ParseFloat does not know
			v.Float, err = math.Copysign(math.NaN(), -1), nil
		} else if t == F16 && !math.IsInf(v.Float, 0) && math.Abs(v.Float) >= 65520 { // which rounds to infinity
			err = strconv.ErrRange
		}
		k = constKey{t, floatBits(&t, &v.Float)}
	} else {
		bits := 8 * t.Size()
		v.Int, err = strconv.ParseInt(s, 10, max(bits, 1))
		if t == I1 && (v.Int < 0 || v.Int > 1) {
			err = strconv.ErrRange
		}
		k = constKey{t, uint64(v.Int)}
	}
	if err != nil {
		p.i = start
		p.expected("a value of type " + t.String())
	}
	if p.consts[k] == nil {
		p.consts[k] = v
	}
	return p.consts[k]
}

// place reads a memory and an index into it.
func (p *parser) place() (*Mem, *Node) {
	p.blanks()
	start := p.i
	name := p.identifier("the name of a memory")
	m := p.mems[name]
	if m == nil {
		p.failAt(start, "no memory %s", name)
	}
	p.need("[")
	at := p.value(I32)
	p.need("]")
	return m, at
}

// operands reads n operands of a type.
func (p *parser) operands(v *Node, n int, t Type) {
	for range n {
		if len(v.Args) > 0 {
			p.need(",")
		}
		v.Args = append(v.Args, p.value(t))
	}
}

// operation reads a line, or all lines of an operation with blocks.
func (p *parser) operation() {
	nameAt, name := p.i, ""
	if p.text[p.i] == '%' {
		nameAt, name = p.valueName()
		p.need("=")
	}
	p.blanks()
	start := p.i
	op, rest := operationOf(p.word())
	if op == 0 {
		p.i = start
		p.expected("an operation")
	}
	v := &Node{Op: op, block: p.at}
	p.detail(v, rest)
	if err := v.check(); err != nil {
		p.failAt(start, "%v", err)
	}
	switch {
	case v.gives() && name == "":
		p.failAt(start, "%s gives a value, which has no name", op)
	case !v.gives() && name != "":
		p.failAt(nameAt, "%s gives no value", op)
	case name != "":
		p.define(nameAt, name, v)
	}
	p.at.Nodes = append(p.at.Nodes, v)
	p.endLine()
}

// operationOf splits a word into the operation and what follows its name; 0 if there is no such operation.
func operationOf(w string) (op Op, rest string) {
	for i := int(ThreadX); i < len(opNames); i++ {
		if name := opNames[i]; w == name || strings.HasPrefix(w, name+".") {
			if op == 0 || len(name) > len(op.String()) { // load.matrix is no load
				op, rest = Op(i), strings.TrimPrefix(w[len(name):], ".")
			}
		}
	}
	return op, rest
}

// detail reads what stands behind the name of an operation.
func (p *parser) detail(v *Node, rest string) {
	typed := func(s string) Type {
		t := typeOf(s)
		if t == None {
			p.fail("%s of %q, which is no type", v.Op, s)
		}
		return t
	}
	bare := func() {
		if rest != "" {
			p.fail("%s has no %q", v.Op, rest)
		}
	}
	switch v.Op.shape() {
	case index:
		bare()
		v.Type = I32
		return
	case computes:
		v.Type = typed(rest)
		if v.Op == Select {
			p.operands(v, 1, I1)
		}
		p.operands(v, v.Op.operands()-len(v.Args), v.Type)
		return
	case compares:
		v.Type = I1
		p.operands(v, 2, typed(rest))
		return
	case packs:
		v.Type = I32
		p.operands(v, 2, typed(rest))
		return
	case rounds:
		bare()
		v.Type = I32
		p.operands(v, 1, F32)
		return
	case converts:
		to, from, _ := strings.Cut(rest, ".")
		v.Type = typed(to)
		p.operands(v, 1, typed(from))
		return
	}
	switch v.Op {
	case Load, Store:
		t, n, several := strings.Cut(rest, "x")
		elem := typed(t)
		v.Width = 1
		if several {
			v.Width, _ = strconv.Atoi(n) // check refuses 0
		}
		m, at := p.place()
		v.Mem, v.Args = m, []*Node{at}
		if v.Words = v.Op == Load && elem == I32 && m.Elem == I8; !v.Words && elem != m.Elem {
			p.fail("%s of %s from %s of %s", v.Op, elem, m.Name, m.Elem)
		}
		if v.Op == Store {
			p.operands(v, v.Width, elem)
		} else if v.Width == 1 {
			v.Type = elem
		}
	case Shuffle:
		v.Type = typed(rest)
		p.operands(v, 1, v.Type)
		p.need("^")
		v.Int = p.integer("a number of a lane", 0, 31)
	case Mma:
		f := Half
		for f <= U8 && f.String() != rest {
			f++
		}
		if f > U8 {
			p.fail("mma of %q, which is no format", rest)
		}
		v.Int = int64(f)
		p.operands(v, 6, I32)
		p.operands(v, 4, f.Sum())
	case LoadMatrix:
		if rest == "transposed" {
			v.Int, rest = 1, ""
		}
		bare()
		m, at := p.place()
		v.Mem, v.Args = m, []*Node{at}
	case CopyAsync:
		n, err := strconv.Atoi(rest)
		if err != nil {
			p.fail("%s of %q bytes", v.Op, rest)
		}
		v.Int = int64(n)
		to, at := p.place()
		p.keyword("from")
		from, place := p.place()
		v.Mem, v.From, v.Args = to, from, []*Node{at, place}
	case CopyWait:
		bare()
		v.Int = p.integer("a number of groups", 0, 7)
	case For:
		bare()
		p.loop(v)
	case If:
		bare()
		p.condition(v)
	default: // Barrier, CopyCommit
		bare()
	}
}

func (p *parser) loop(v *Node) {
	p.blanks()
	type named struct {
		at   int
		name string
		t    Type
	}
	at, name := p.valueName()
	params := []named{{at, name, I32}}
	for _, w := range []string{"=", "to", "step"} {
		if w == "=" {
			p.need(w)
		} else {
			p.keyword(w)
		}
		v.Args = append(v.Args, p.value(I32))
	}
	var carried []Type
	if p.peek() == "carrying" {
		p.word()
		for {
			p.blanks()
			at, name := p.valueName()
			p.need(":")
			t := p.typ()
			p.need("=")
			v.Args = append(v.Args, p.value(t))
			params, carried = append(params, named{at, name, t}), append(carried, t)
			if !p.take(",") {
				break
			}
		}
	}
	then := len(p.open)
	in := p.enter(v)
	for _, q := range params {
		n := &Node{Op: Result, Type: q.t, block: in}
		in.Params = append(in.Params, n)
		p.define(q.at, q.name, n)
	}
	p.body(carried)
	p.leave(then)
}

func (p *parser) condition(v *Node) {
	p.operands(v, 1, I1)
	var gives []Type
	if p.peek() == "giving" {
		p.word()
		for {
			gives = append(gives, p.typ())
			if !p.take(",") {
				break
			}
		}
	}
	side := func() {
		then := len(p.open)
		p.enter(v)
		p.body(gives)
		p.leave(then)
	}
	side()
	if p.peek() == "else" || len(gives) > 0 {
		p.keyword("else")
		side()
		return
	}
	p.enter(v)
	p.leave(len(p.open))
}
