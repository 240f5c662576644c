package rewrite

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
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
	mark   int // the column of its first * or !
}

// Compile reads the patterns of rules, in the language of package pattern. A line is one of the IR without types:
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
				return fmt.Errorf("%s:%d:%d: * stands behind a value that an earlier line defines; none defines %%%s", "From", l.number, o.mark, o.name)
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
				return fmt.Errorf("%s:%d:%d: * and ! say what From matches and mean nothing in To", "To", l.number, o.mark)
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

// parseLines reads From or To, which the side names in errors.
func parseLines(side, text string) ([]line, error) {
	read, err := pattern.Parse(text)
	if err == nil {
		out := make([]line, len(read))
		for i := range read {
			if out[i], err = plain(&read[i]); err != nil {
				break
			}
		}
		if err == nil {
			return out, nil
		}
	}
	var at *pattern.Error
	if !errors.As(err, &at) {
		return nil, err
	}
	s := strings.Split(text, "\n")[at.Line-1]
	return nil, fmt.Errorf("%s:%d:%d: %q: %w", side, at.Line, at.Column, strings.TrimSpace(s), err)
}

// plain is a line of the language without what only rules in a file have: lists, arguments by name, stated types.
func plain(l *pattern.Line) (line, error) {
	wrong := func(column int, format string, args ...any) (line, error) {
		return line{}, &pattern.Error{Line: l.Number, Column: column, Message: fmt.Sprintf(format, args...)}
	}
	out := line{number: l.Number, kind: l.Kind, others: l.Others}
	for _, r := range l.Results {
		if r.Type != nil {
			return wrong(r.Type.At, "the types of results are inferred here")
		}
		out.results = append(out.results, r.Name)
	}
	for i := range l.Attrs {
		a := &l.Attrs[i]
		p := attrPattern{name: a.Name}
		if a.Value.Kind == pattern.Bound {
			p.bind = a.Value.Name
		} else {
			v, ok := a.Value.Fixed()
			if !ok {
				return wrong(a.Value.At, "the value of attribute %s is no literal", a.Name)
			}
			p.value = v
		}
		out.attrs = append(out.attrs, p)
	}
	for i := range l.Operands {
		o := &l.Operands[i]
		if o.Arg != "" || o.Spread || o.Kind != pattern.Value && o.Kind != pattern.Absent {
			return wrong(o.At, "an operand is %%x or _ here")
		}
		p := operandPattern{shared: o.Shared, konst: o.Const, mark: o.Mark}
		if o.Kind == pattern.Value {
			p.name = o.Name
		}
		out.operands = append(out.operands, p)
	}
	return out, nil
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
