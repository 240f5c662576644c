package ssa

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa/tensor"
)

// ParseSchema reads one operator declaration as PyTorch's registry prints it:
//
//	aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
func ParseSchema(line string) (s *Schema, err error) {
	p := &schemaParser{src: line}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(schemaError)
			if !ok {
				panic(r)
			}
			s, err = nil, fmt.Errorf("schema %q: column %d: %s", clip(line), e.pos+1, e.message)
		}
	}()
	s = p.schema()
	s.text = line
	return s, nil
}

type schemaError struct {
	pos     int
	message string
}

type schemaParser struct {
	src   string
	pos   int
	depth int
}

func (p *schemaParser) fail(format string, args ...any) {
	panic(schemaError{p.pos, fmt.Sprintf(format, args...)})
}

func (p *schemaParser) blanks() {
	for p.pos < len(p.src) && p.src[p.pos] == ' ' {
		p.pos++
	}
}

func (p *schemaParser) take(s string) bool {
	p.blanks()
	if strings.HasPrefix(p.src[p.pos:], s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *schemaParser) want(s string) {
	if !p.take(s) {
		p.fail("expected %q", s)
	}
}

// word reads a name; dots are part of it.
func (p *schemaParser) word() string {
	p.blanks()
	start := p.pos
	for p.pos < len(p.src) && (identByte(p.src[p.pos]) || p.src[p.pos] == '.' && !strings.HasPrefix(p.src[p.pos:], "...")) {
		p.pos++
	}
	return p.src[start:p.pos]
}

func (p *schemaParser) schema() *Schema {
	s := &Schema{}
	ns := p.word()
	p.want("::")
	name := p.word()
	if ns == "" || name == "" {
		p.fail("expected namespace::name")
	}
	if i := strings.IndexByte(name, '.'); i > 0 {
		name, s.Overload = name[:i], name[i+1:]
	}
	s.Name = ns + "::" + name
	p.want("(")
	kwOnly := false
	for !p.take(")") {
		switch {
		case p.take(","):
		case p.take("*"):
			kwOnly = true
		case p.take("..."):
			s.Vararg = true
		default:
			a := p.arg()
			a.KwOnly = kwOnly
			s.Args = append(s.Args, a)
		}
	}
	p.want("->")
	switch {
	case p.take("..."):
		s.VarReturn = true
	case p.take("("):
		for !p.take(")") {
			if p.take(",") {
				continue
			}
			s.Returns = append(s.Returns, p.arg())
		}
	default:
		s.Returns = append(s.Returns, p.arg())
	}
	if p.blanks(); p.pos < len(p.src) {
		p.fail("unexpected %q after the returns", p.src[p.pos:])
	}
	return s
}

// arg reads an argument or a return: a type, perhaps a name and a default.
func (p *schemaParser) arg() SchemaArg {
	var a SchemaArg
	a.Type = p.typ(&a)
	a.Name = p.word()
	if p.take("=") {
		a.HasDefault = true
		a.Default = p.value(a.Type, 0)
		if a.Size > 0 && a.Default.IsNumber() { // int[2] stride=1: one number stands for all
			l := Literal{Kind: ListLit, Elem: a.Default.Type()}
			for i := 0; i < a.Size; i++ {
				l.Elems = append(l.Elems, a.Default)
			}
			a.Default = l
		}
	}
	return a
}

// typ reads a type and notes alias set and list size in a.
func (p *schemaParser) typ(a *SchemaArg) Type {
	p.depth++
	if p.depth > maxNesting {
		p.fail("type nested too deeply")
	}
	defer func() { p.depth-- }()
	t := p.base(a)
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case '?':
			p.pos++
			t = &OptionalType{t}
		case '[':
			p.pos++
			end := strings.IndexByte(p.src[p.pos:], ']')
			if end < 0 {
				p.fail("expected ]")
			}
			if n := p.src[p.pos : p.pos+end]; n != "" {
				size, err := strconv.Atoi(n)
				if err != nil || size < 0 || size > 1<<16 {
					p.fail("list size %q", n)
				}
				a.Size = size
			}
			p.pos += end + 1
			t = &ListType{t}
		case '(':
			p.alias(a)
		default:
			return t
		}
	}
	return t
}

// alias reads (a), (a!), (a -> *), (b|a).
func (p *schemaParser) alias(a *SchemaArg) {
	p.want("(")
	end := strings.IndexByte(p.src[p.pos:], ')')
	if end < 0 {
		p.fail("expected )")
	}
	set := p.src[p.pos : p.pos+end]
	p.pos += end + 1
	before, after, ok := strings.Cut(set, "->")
	before = strings.TrimSpace(before)
	if strings.HasSuffix(before, "!") {
		a.Writes = true
		before = strings.TrimSuffix(before, "!")
	}
	if a.Alias == "" { // of Tensor(a!)[](b) the element's set is what counts
		a.Alias = before
	}
	if ok {
		a.AliasAfter = strings.TrimSpace(after)
	}
}

func (p *schemaParser) base(a *SchemaArg) Type {
	if p.take("(") {
		t := &TupleType{}
		for !p.take(")") {
			if p.take(",") {
				continue
			}
			t.Elems = append(t.Elems, p.typ(&SchemaArg{}))
		}
		return t
	}
	w := p.word()
	switch w {
	case "":
		p.fail("expected a type")
	case "Tensor":
		return AnyTensor
	case "SymInt", "ScalarType", "Layout", "MemoryFormat":
		return IntType
	case "SymBool":
		return BoolType
	case "Dimname":
		return StrType
	case "Dict":
		p.want("(")
		var inner SchemaArg
		k := p.typ(&inner)
		p.want(",")
		v := p.typ(&inner)
		p.want(")")
		return &DictType{k, v}
	case "Future", "RRef", "Await":
		p.want("(")
		e := p.typ(&SchemaArg{})
		p.want(")")
		return &WrapType{w, e}
	}
	if b, ok := basicTypes[w]; ok {
		return b
	}
	if strings.HasPrefix(w, "__torch__.") {
		return &ClassType{w}
	}
	return &VarType{w}
}

func (p *schemaParser) value(t Type, depth int) Literal {
	if depth > maxNesting {
		p.fail("value nested too deeply")
	}
	if o, ok := t.(*OptionalType); ok {
		t = o.Elem
	}
	p.blanks()
	rest := p.src[p.pos:]
	switch {
	case p.take("["):
		l := Literal{Kind: ListLit}
		if lt, ok := t.(*ListType); ok {
			l.Elem = lt.Elem
		}
		for !p.take("]") {
			if p.take(",") {
				continue
			}
			l.Elems = append(l.Elems, p.value(l.Elem, depth+1))
		}
		return l
	case rest != "" && (rest[0] == '"' || rest[0] == '\''):
		end := 1
		for end < len(rest) && rest[end] != rest[0] {
			if rest[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(rest) {
			p.fail("string without end")
		}
		p.pos += end + 1
		v := unescape(rest[1:end])
		if t == DeviceType {
			return Device(v)
		}
		return Str(v)
	}
	end := strings.IndexAny(rest, ",)] ")
	if end < 0 {
		end = len(rest)
	}
	w := rest[:end]
	p.pos += end
	switch w {
	case "None":
		return None
	case "True":
		return Bool(true)
	case "False":
		return Bool(false)
	case "inf":
		return Float(math.Inf(1))
	case "-inf":
		return Float(math.Inf(-1))
	case "Mean": // at::Reduction
		return Int(1)
	case "Sum":
		return Int(2)
	case "contiguous_format", "strided":
		return Int(0)
	case "preserve_format":
		return Int(1)
	case "float":
		return Int(int64(tensor.Float32.Code()))
	case "long":
		return Int(int64(tensor.Int64.Code()))
	}
	if lt, ok := t.(*ListType); ok {
		t = lt.Elem
	}
	if i, err := strconv.ParseInt(w, 10, 64); err == nil && t != FloatType {
		return Int(i)
	}
	f, err := strconv.ParseFloat(w, 64)
	if err != nil {
		p.fail("default %q is not understood", w)
	}
	return Float(f)
}

// unescape resolves the escapes that PyTorch writes in strings.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if j := strings.IndexByte("ntrabfv", s[i]); j >= 0 {
			b.WriteByte("\n\t\r\a\b\f\v"[j])
		} else {
			b.WriteByte(s[i])
		}
	}
	return b.String()
}

// SchemaTable holds the declarations of many operators as text, one a line,
// the overloads of an operator next to each other in the order in which they
// are tried. Lines are parsed when asked for. It is safe for concurrent use.
type SchemaTable struct {
	entries map[Kind]*schemaEntry
	kinds   []Kind
}

type schemaEntry struct {
	lines   []string
	one     [1]string // most operators have one overload
	once    sync.Once
	schemas []*Schema
}

// NewSchemaTable indexes the text. Lines that are empty or start with # are skipped.
func NewSchemaTable(text string) *SchemaTable {
	n := strings.Count(text, "\n") / 2 // operators have several overloads
	t := &SchemaTable{entries: make(map[Kind]*schemaEntry, n), kinds: make([]Kind, 0, n)}
	var last *schemaEntry
	for len(text) > 0 {
		line, rest, _ := strings.Cut(text, "\n")
		text = rest
		if line == "" || line[0] == '#' {
			continue
		}
		end := strings.IndexByte(line, '(')
		if end < 0 {
			continue
		}
		name := line[:end]
		if i := strings.IndexByte(name, '.'); i > 0 {
			name = name[:i]
		}
		e := last
		if len(t.kinds) == 0 || string(t.kinds[len(t.kinds)-1]) != name {
			if e = t.entries[Kind(name)]; e == nil {
				e = &schemaEntry{}
				e.lines = e.one[:0]
				t.entries[Kind(name)] = e
				t.kinds = append(t.kinds, Kind(name))
				last = e
			}
		}
		e.lines = append(e.lines, line)
	}
	return t
}

// Lookup gives the overloads of an operator in the order in which PyTorch tries
// them, nil for an unknown one. The slice must not be changed.
func (t *SchemaTable) Lookup(k Kind) []*Schema {
	e := t.entries[k]
	if e == nil {
		return nil
	}
	e.once.Do(func() {
		for _, line := range e.lines {
			s, err := ParseSchema(line)
			if err != nil {
				continue // the table's test parses every line
			}
			e.schemas = append(e.schemas, s)
		}
	})
	return e.schemas
}

// Find gives one overload; nil if there is none.
func (t *SchemaTable) Find(k Kind, overload string) *Schema {
	for _, s := range t.Lookup(k) {
		if s.Overload == overload {
			return s
		}
	}
	return nil
}

// Kinds lists the operators in alphabetical order.
func (t *SchemaTable) Kinds() []Kind {
	ks := append([]Kind(nil), t.kinds...)
	sort.Slice(ks, func(i, j int) bool { return ks[i] < ks[j] })
	return ks
}

// Lines gives the text of an operator's overloads.
func (t *SchemaTable) Lines(k Kind) []string {
	if e := t.entries[k]; e != nil {
		return e.lines
	}
	return nil
}
