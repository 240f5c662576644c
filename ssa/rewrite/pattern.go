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
	from []pattern.Sought
	to   []pattern.Line
}

func (c *compiled) root() *pattern.Sought { return &c.from[len(c.from)-1] }

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
		var from []pattern.Line
		if from, err = parse("From", r.From); err == nil {
			c.to, err = parse("To", r.To)
		}
		for _, l := range from {
			c.from = append(c.from, pattern.Sought{Line: l})
		}
		if err == nil {
			err = c.check()
		}
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		k := c.root().Kind
		s.byKind[k] = append(s.byKind[k], c)
	}
	return s, nil
}

// check resolves which operands earlier lines define, and that every name means something.
func (c *compiled) check() error {
	if len(c.from) == 0 || len(c.to) == 0 {
		return fmt.Errorf("a pattern has no lines")
	}
	pattern.Resolve(c.from)
	known := map[string]bool{}
	for i := range c.from {
		l := &c.from[i]
		if l.Kind == "" {
			return fmt.Errorf("a line of From has no operator")
		}
		for j := range l.Operands {
			o := &l.Operands[j]
			if o.Shared && !o.Defined() {
				return fmt.Errorf("%s:%d:%d: * stands behind a value that an earlier line defines; none defines %%%s", "From", l.Number, o.Mark, o.Name)
			}
			known[o.Name] = true
		}
		for _, r := range l.Results {
			known[r.Name] = true
		}
	}
	made := map[string]bool{}
	for _, l := range c.to {
		for _, o := range l.Operands {
			if o.Shared || o.Const {
				return fmt.Errorf("%s:%d:%d: * and ! say what From matches and mean nothing in To", "To", l.Number, o.Mark)
			}
			if o.Kind == pattern.Value && !known[o.Name] && !made[o.Name] {
				return fmt.Errorf("%%%s is not defined", o.Name)
			}
		}
		for _, r := range l.Results {
			made[r.Name] = true
		}
	}
	for _, r := range c.root().Results {
		if !made[r.Name] {
			return fmt.Errorf("the pattern To does not define %%%s", r.Name)
		}
	}
	return nil
}

// parse reads From or To, which the side names in errors.
func parse(side, text string) ([]pattern.Line, error) {
	lines, err := pattern.Parse(text)
	for i := range lines {
		if err == nil {
			err = plain(&lines[i])
		}
	}
	var at *pattern.Error
	if !errors.As(err, &at) {
		return lines, err
	}
	s := strings.Split(text, "\n")[at.Line-1]
	return nil, fmt.Errorf("%s:%d:%d: %q: %w", side, at.Line, at.Column, strings.TrimSpace(s), err)
}

// plain refuses what only rules in a file have: lists, arguments by name, stated types.
func plain(l *pattern.Line) error {
	wrong := func(column int, format string, args ...any) error {
		return &pattern.Error{Line: l.Number, Column: column, Message: fmt.Sprintf(format, args...)}
	}
	for _, r := range l.Results {
		if r.Type != nil {
			return wrong(r.Type.At, "the types of results are inferred here")
		}
	}
	for i := range l.Attrs {
		a := &l.Attrs[i]
		if _, fixed := a.Value.Fixed(); !fixed && a.Value.Kind != pattern.Bound {
			return wrong(a.Value.At, "the value of attribute %s is no literal", a.Name)
		}
	}
	for i := range l.Operands {
		o := &l.Operands[i]
		if o.Arg != "" || o.Spread || o.Kind != pattern.Value && o.Kind != pattern.Absent {
			return wrong(o.At, "an operand is %%x or _ here")
		}
	}
	return nil
}

// Match is what a pattern has found. Check may bind more, and must not keep it.
type Match struct{ found pattern.Match }

// Value is what %name stands for.
func (m *Match) Value(name string) *ssa.Value { return m.found.Value(name) }

// Attr is what $name stands for, None if the attribute is absent.
func (m *Match) Attr(name string) ssa.Literal { return m.found.Literal(name) }

// Ints is the list of ints that $name stands for, nil if there is none.
func (m *Match) Ints(name string) []int64 {
	v, _ := m.Attr(name).IntList()
	return v
}

// Set binds $name for To.
func (m *Match) Set(name string, l ssa.Literal) { m.found.SetLiteral(name, l) }

// SetInts binds $name to a list of ints.
func (m *Match) SetInts(name string, v []int64) { m.Set(name, ssa.Ints(v...)) }

// SetValue binds %name for To.
func (m *Match) SetValue(name string, v *ssa.Value) { m.found.SetValue(name, v) }

// table tries a rule whose pattern was found.
func (r *Rewriter) table(c *compiled, o *ssa.Op) bool {
	m := &r.found
	if c.rule.Check != nil {
		if why := c.rule.Check(m); why != "" {
			if r.cfg.Explain != nil {
				r.cfg.Explain(c.rule.Name, o, why)
			}
			return false
		}
	}
	root := c.root()
	for i := range c.to {
		l := &c.to[i]
		operands := make([]*ssa.Value, len(l.Operands))
		for i := range l.Operands {
			if p := &l.Operands[i]; p.Kind == pattern.Value {
				operands[i] = m.Value(p.Name)
			}
		}
		made := operands
		if l.Kind != "" {
			made = r.CreateN(l.Kind, len(l.Results), operands, attrs(l, m, o, root)...)
			if r.cfg.Create == nil {
				takeTypes(l, made, o, root)
			}
		}
		for i := range l.Results {
			m.SetValue(l.Results[i].Name, made[i])
		}
	}
	out := make([]*ssa.Value, len(root.Results))
	for i := range root.Results {
		out[i] = m.Value(root.Results[i].Name)
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
func takeTypes(l *pattern.Line, made []*ssa.Value, o *ssa.Op, root *pattern.Sought) {
	for i := range l.Results {
		if k := slices.IndexFunc(root.Results, func(r pattern.Result) bool { return r.Name == l.Results[i].Name }); k >= 0 {
			made[i].Type = o.Results[k].Type
		}
	}
}

// attrs are the attributes of what a line of To makes: those that it names, and with [*] the others that the root has.
func attrs(l *pattern.Line, m *Match, o *ssa.Op, root *pattern.Sought) []ssa.Attr {
	var out []ssa.Attr
	if l.Others {
		for _, a := range o.Attrs {
			if !slices.ContainsFunc(root.Attrs, func(p pattern.Attr) bool { return p.Name == a.Name }) {
				out = append(out, a)
			}
		}
	}
	for i := range l.Attrs {
		a := &l.Attrs[i]
		v, fixed := a.Value.Fixed()
		if !fixed {
			v = m.Attr(a.Value.Name)
		}
		if !v.IsNone() {
			out = append(out, ssa.Attr{Name: a.Name, Value: v})
		}
	}
	return out
}

// written is the dialect of rules that are built in: they compare what is written.
type written struct{ cfg *Config }

func (written) Literal(_ *pattern.Sought, v *ssa.Value) (ssa.Literal, bool) {
	return ssa.None, v == nil
}
func (w written) IsConst(_ *pattern.Sought, v *ssa.Value) bool { return w.cfg.isConst(v) }
func (written) Elems(*ssa.Value) ([]*ssa.Value, bool)          { return nil, false }
func (written) IsDefault(*ssa.Op, *ssa.Attr) bool              { return false }
func (written) Bind(l ssa.Literal) ssa.Literal                 { return l }
func (written) Same(a, b ssa.Literal) bool                     { return a.Equal(b) }
func (written) Alone() bool                                    { return true }

func (written) Attr(o *ssa.Op, name string) ssa.Literal {
	v, _ := o.Attr(name)
	return v
}
