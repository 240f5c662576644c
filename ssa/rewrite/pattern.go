package rewrite

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/ssa"
)

// Set is a list of rules, ready to run.
type Set struct {
	byKind map[ssa.Kind][]*compiled
	all    []*compiled
}

type compiled struct {
	rule *Rule
	from []line
	to   []line
}

// line is an op of a pattern.
type line struct {
	number   int // in From or To, from 1
	results  []string
	kind     ssa.Kind // empty: the results are operands, as in "%y = %x"
	attrs    []attrPattern
	others   bool // attributes not named are allowed
	operands []operandPattern
}

type attrPattern struct {
	name, bind string
	value      ssa.Literal
}

type operandPattern struct {
	name   string // empty: absent
	isNew  bool   // defined by an earlier line of the pattern
	shared bool   // may have other users
	konst  bool
	mark   int // the offset in the line of its first * or !
}

// Compile reads the patterns of rules. The syntax of a line is that of the IR without types:
//
//		%y = onnx::Op[name=3, other=$p, *](%x, %w!, _)
//
//	  - %x stands for any value, the same one everywhere; _ for an absent operand.
//	  - %w! is a constant.
//	  - A value that an earlier line defines has no other user, unless it is written %t*.
//	  - $p binds an attribute's literal, None if it is absent. In To it is the bound literal, left out when it is None.
//	  - * allows further attributes in From; in To it copies those that the root has besides the named ones.
//	  - ! and * behind values stand in the operands of From and nowhere else.
//	  - To may say %y = %x: the value is passed on.
//
// The last line of From is the root; its results are what To defines.
func Compile(rules ...Rule) (*Set, error) {
	s := &Set{byKind: map[ssa.Kind][]*compiled{}}
	names := map[string]bool{}
	for i := range rules {
		r := &rules[i]
		c := &compiled{rule: r}
		if r.Name == "" || names[r.Name] {
			return nil, fmt.Errorf("rule %q: the name is missing or taken", r.Name)
		}
		names[r.Name] = true
		if r.Apply != nil {
			if r.From != "" {
				return nil, fmt.Errorf("rule %s has both a pattern and a function", r.Name)
			}
			if len(r.Kinds) == 0 {
				s.all = append(s.all, c)
			}
			for _, k := range r.Kinds {
				s.byKind[k] = append(s.byKind[k], c)
			}
			continue
		}
		var err error
		if c.from, err = parseLines("From", r.From); err == nil {
			c.to, err = parseLines("To", r.To)
		}
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		k := c.from[len(c.from)-1].kind
		s.byKind[k] = append(s.byKind[k], c)
	}
	return s, nil
}

// check resolves which operands earlier lines define.
func (c *compiled) check() error {
	if len(c.from) == 0 || len(c.to) == 0 {
		return fmt.Errorf("a pattern has no lines")
	}
	known := map[string]bool{}
	for i := range c.from {
		l := &c.from[i]
		if l.kind == "" {
			return fmt.Errorf("a line of From has no operator")
		}
		for j := range l.operands {
			o := &l.operands[j]
			o.isNew = defines(c.from[:i], o.name)
			if o.shared && !o.isNew {
				return fmt.Errorf("%s:%d:%d: * stands behind a value that an earlier line defines; none defines %%%s", "From", l.number, o.mark+1, o.name)
			}
			known[o.name] = true
		}
		for _, r := range l.results {
			known[r] = true
		}
	}
	root := c.from[len(c.from)-1].results
	made := map[string]bool{}
	for _, l := range c.to {
		for _, o := range l.operands {
			if o.shared || o.konst {
				return fmt.Errorf("%s:%d:%d: * and ! say what From matches and mean nothing in To", "To", l.number, o.mark+1)
			}
			if o.name != "" && !known[o.name] && !made[o.name] {
				return fmt.Errorf("%%%s is not defined", o.name)
			}
		}
		for _, r := range l.results {
			made[r] = true
		}
	}
	for _, r := range root {
		if !made[r] {
			return fmt.Errorf("the pattern To does not define %%%s", r)
		}
	}
	return nil
}

func defines(lines []line, name string) bool {
	for _, l := range lines {
		for _, r := range l.results {
			if r == name {
				return true
			}
		}
	}
	return false
}

// place is a column of a line, counted from 1, and what is wrong there.
type place struct {
	column int
	what   string
}

func (p *place) Error() string { return p.what }

// wrong makes the error for what stands at an offset of a line.
func wrong(offset int, format string, args ...any) error {
	return &place{offset + 1, fmt.Sprintf(format, args...)}
}

// parseLines reads From or To, which the side names in errors.
func parseLines(side, text string) ([]line, error) {
	var out []line
	for i, s := range strings.Split(text, "\n") {
		if strings.TrimSpace(s) == "" {
			continue
		}
		l, err := parseLine(s)
		if err != nil {
			column := len(s) - len(strings.TrimLeft(s, " \t")) + 1
			var at *place
			if errors.As(err, &at) {
				column = at.column
			}
			return nil, fmt.Errorf("%s:%d:%d: %q: %w", side, i+1, column, strings.TrimSpace(s), err)
		}
		l.number = i + 1
		out = append(out, l)
	}
	return out, nil
}

// field is a part of a line between commas, without blanks, and its offset in the line.
type field struct {
	text   string
	offset int
}

// fields cuts a part of a line, which begins at the offset, at its commas.
func fields(s string, offset int) []field {
	var out []field
	for f := range strings.SplitSeq(s, ",") {
		blanks := len(f) - len(strings.TrimLeft(f, " \t"))
		out = append(out, field{strings.TrimSpace(f), offset + blanks})
		offset += len(f) + 1
	}
	return out
}

var valueName = regexp.MustCompile(`^[\w.]+$`)

func parseLine(s string) (l line, err error) {
	left, right, ok := strings.Cut(s, " = ")
	if !ok {
		return l, fmt.Errorf("no =")
	}
	for _, f := range fields(left, 0) {
		name, is := strings.CutPrefix(f.text, "%")
		if base := strings.TrimRight(name, "*!"); is && base != name {
			return l, wrong(f.offset+1+len(base), "%s stands behind an operand, not behind the value that a line defines", name[len(base):])
		}
		if !is || !valueName.MatchString(name) {
			return l, wrong(f.offset, "%q is no value", f.text)
		}
		l.results = append(l.results, name)
	}
	start := len(left) + len(" = ")
	blanks := len(right) - len(strings.TrimLeft(right, " \t"))
	start, right = start+blanks, strings.TrimSpace(right)
	args := right
	if !strings.HasPrefix(right, "%") {
		open := strings.IndexByte(right, '(')
		if open < 0 || !strings.HasSuffix(right, ")") {
			return l, fmt.Errorf("no operands")
		}
		head := right[:open]
		args = right[open+1 : len(right)-1]
		start += open + 1
		if name, rest, has := strings.Cut(head, "["); has {
			if !strings.HasSuffix(rest, "]") {
				return l, fmt.Errorf("no ]")
			}
			if err := l.parseAttrs(rest[:len(rest)-1]); err != nil {
				return l, err
			}
			head = name
		}
		l.kind = ssa.Kind(head)
	}
	for _, f := range fields(args, start) {
		if f.text == "" {
			continue
		}
		o, err := parseOperand(f)
		if err != nil {
			return l, err
		}
		l.operands = append(l.operands, o)
	}
	if l.kind == "" && len(l.operands) != len(l.results) {
		return l, fmt.Errorf("%d values for %d results", len(l.operands), len(l.results))
	}
	return l, nil
}

// parseOperand reads _, %x, %x! or %x*.
func parseOperand(f field) (o operandPattern, err error) {
	if f.text == "_" {
		return o, nil
	}
	name, is := strings.CutPrefix(f.text, "%")
	if name, o.shared = strings.CutSuffix(name, "*"); o.shared {
		o.mark = f.offset + len(f.text) - 1
	}
	if name, o.konst = strings.CutSuffix(name, "!"); o.konst {
		o.mark = f.offset + 1 + len(name)
	}
	if !is || !valueName.MatchString(name) {
		return o, wrong(f.offset, "%q is no operand", f.text)
	}
	o.name = name
	return o, nil
}

func (l *line) parseAttrs(s string) error {
	for _, f := range splitAttrs(s) {
		if f == "*" {
			l.others = true
			continue
		}
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return fmt.Errorf("attribute %q has no value", f)
		}
		a := attrPattern{name: name}
		if bind, is := strings.CutPrefix(value, "$"); is {
			a.bind = bind
		} else {
			v, err := parseLiteral(value)
			if err != nil {
				return err
			}
			a.value = v
		}
		l.attrs = append(l.attrs, a)
	}
	return nil
}

// splitAttrs cuts at commas outside of brackets.
func splitAttrs(s string) []string {
	var out []string
	depth, start := 0, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || s[i] == ',' && depth == 0:
			if f := strings.TrimSpace(s[start:i]); f != "" {
				out = append(out, f)
			}
			start = i + 1
		case s[i] == '[':
			depth++
		case s[i] == ']':
			depth--
		}
	}
	return out
}

func parseLiteral(s string) (ssa.Literal, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return ssa.Int(n), nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		return ssa.Float(f), nil
	}
	if strings.HasPrefix(s, `"`) {
		t, err := strconv.Unquote(s)
		return ssa.Str(t), err
	}
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
		ints := []int64{}
		for _, f := range strings.Split(s[1:len(s)-1], ",") {
			if f = strings.TrimSpace(f); f == "" {
				continue
			}
			n, err := strconv.ParseInt(f, 10, 64)
			if err != nil {
				return ssa.None, err
			}
			ints = append(ints, n)
		}
		return ssa.Ints(ints...), nil
	}
	return ssa.None, fmt.Errorf("literal %q", s)
}

// Match is what a pattern has found. Check may bind more, and must not keep it.
type Match struct {
	// Root is the op that the last line of From stands for.
	Root   *ssa.Op
	values bindings[*ssa.Value]
	attrs  bindings[ssa.Literal]
}

// bindings are what names stand for. A pattern has few of them, and is tried on every operator: a list that is used again
// is quicker than a map.
type bindings[V any] []binding[V]

type binding[V any] struct {
	name string
	v    V
}

func (b bindings[V]) get(name string) (v V, bound bool) {
	for i := range b {
		if b[i].name == name {
			return b[i].v, true
		}
	}
	return v, false
}

func (b *bindings[V]) set(name string, v V) {
	for i := range *b {
		if (*b)[i].name == name {
			(*b)[i].v = v
			return
		}
	}
	*b = append(*b, binding[V]{name, v})
}

func (m *Match) value(name string) *ssa.Value {
	v, _ := m.values.get(name)
	return v
}

func (m *Match) attr(name string) ssa.Literal {
	l, _ := m.attrs.get(name)
	return l
}

// Value is what %name stands for.
func (m *Match) Value(name string) *ssa.Value { return m.value(name) }

// Attr is what $name stands for, None if the attribute is absent.
func (m *Match) Attr(name string) ssa.Literal { return m.attr(name) }

// Ints is the list of ints that $name stands for, nil if there is none.
func (m *Match) Ints(name string) []int64 {
	v, _ := m.attr(name).IntList()
	return v
}

// Set binds $name for To.
func (m *Match) Set(name string, l ssa.Literal) { m.attrs.set(name, l) }

// SetInts binds $name to a list of ints.
func (m *Match) SetInts(name string, v []int64) { m.attrs.set(name, ssa.Ints(v...)) }

// SetValue binds %name for To.
func (m *Match) SetValue(name string, v *ssa.Value) { m.values.set(name, v) }

// table tries a rule of patterns.
func (r *Rewriter) table(c *compiled, o *ssa.Op) bool {
	m := &r.found
	m.Root, m.values, m.attrs = o, m.values[:0], m.attrs[:0]
	if !r.match(c, m, len(c.from)-1, o) {
		return false
	}
	if c.rule.Check != nil {
		if why := c.rule.Check(m); why != "" {
			if r.cfg.Explain != nil {
				r.cfg.Explain(c.rule.Name, o, why)
			}
			return false
		}
	}
	root := &c.from[len(c.from)-1]
	for _, l := range c.to {
		operands := make([]*ssa.Value, len(l.operands))
		for i, p := range l.operands {
			if p.name != "" {
				operands[i] = m.value(p.name)
			}
		}
		made := operands
		if l.kind != "" {
			made = r.CreateN(l.kind, len(l.results), operands, l.build(m, o, root)...)
			if r.cfg.Create == nil {
				l.takeTypes(made, o, root)
			}
		}
		for i, name := range l.results {
			m.values.set(name, made[i])
		}
	}
	out := make([]*ssa.Value, len(root.results))
	for i, name := range root.results {
		out[i] = m.value(name)
		if !ssa.SameType(out[i].Type, o.Results[i].Type) && !finer(out[i].Type, o.Results[i].Type) {
			return false // inference lost something
		}
	}
	r.Replace(o, out...)
	return true
}

// finer says that a knows what b leaves open.
func finer(a, b ssa.Type) bool {
	x, y := ssa.AsTensor(a), ssa.AsTensor(b)
	return x != nil && y != nil && (x.DType == y.DType || y.DType == 0) && !y.Ranked
}

// takeTypes gives results of a line that replace results of the root the types of those.
func (l *line) takeTypes(made []*ssa.Value, o *ssa.Op, root *line) {
	for i, name := range l.results {
		if k := slices.Index(root.results, name); k >= 0 {
			made[i].Type = o.Results[k].Type
		}
	}
}

func (l *line) build(m *Match, o *ssa.Op, root *line) []ssa.Attr {
	var out []ssa.Attr
	if l.others {
	next:
		for _, a := range o.Attrs {
			for _, p := range root.attrs {
				if p.name == a.Name {
					continue next
				}
			}
			out = append(out, a)
		}
	}
	for _, p := range l.attrs {
		v := p.value
		if p.bind != "" {
			v = m.attr(p.bind)
		}
		if !v.IsNone() {
			out = append(out, ssa.Attr{Name: p.name, Value: v})
		}
	}
	return out
}

// match compares line i of From with an op, and the lines that define its operands with theirs.
func (r *Rewriter) match(c *compiled, m *Match, i int, o *ssa.Op) bool {
	l := &c.from[i]
	if o.Kind != l.kind || len(o.Results) != len(l.results) || len(o.Blocks) > 0 {
		return false
	}
	for k := len(l.operands); k < o.NumOperands(); k++ {
		if o.Operand(k) != nil {
			return false
		}
	}
	named := 0
	for _, p := range l.attrs {
		v, has := o.Attr(p.name)
		if has {
			named++
		}
		if p.bind == "" {
			if !has || !v.Equal(p.value) {
				return false
			}
		} else if old, bound := m.attrs.get(p.bind); bound && !old.Equal(v) {
			return false
		} else {
			m.attrs.set(p.bind, v)
		}
	}
	if !l.others && named != len(o.Attrs) {
		return false
	}
	for k, name := range l.results {
		m.values.set(name, o.Results[k])
	}
	for k, p := range l.operands {
		v := o.Operand(k)
		if p.name == "" {
			if v != nil {
				return false
			}
			continue
		}
		if v == nil || p.konst && !r.cfg.isConst(v) {
			return false
		}
		if old, bound := m.values.get(p.name); bound {
			if old != v {
				return false
			}
			continue
		}
		if !p.isNew {
			m.values.set(p.name, v)
			continue
		}
		if v.Def() == nil || !p.shared && !v.HasOneUse() {
			return false
		}
		at := lineOf(c.from[:i], p.name)
		if !r.match(c, m, at, v.Def()) || m.value(p.name) != v {
			return false
		}
	}
	return true
}

func lineOf(lines []line, name string) int {
	for i, l := range lines {
		for _, r := range l.results {
			if r == name {
				return i
			}
		}
	}
	return -1
}
