package pattern

import (
	"fmt"

	"github.com/aton-project/aton/ssa"
)

// Sought is a line that is looked for.
type Sought struct {
	Line
	// Calls are, for operators with schemas, the overloads that the line may be a call of: the operand of the line for each of
	// the arguments, nil for one that must have its default. Without them operands go by their place.
	Calls map[*ssa.Schema][]*Operand
}

// Resolve finds out which operands of the lines are defined by an earlier one. [Match.Find] wants it done once.
func Resolve(lines []Sought) {
	for i := range lines {
		for k := range lines[i].Operands {
			lines[i].Operands[k].resolve(lines[:i])
		}
	}
}

func (t *Term) resolve(earlier []Sought) {
	for k := range t.Terms {
		t.Terms[k].resolve(earlier)
	}
	t.line = 0
	if t.Kind != Value {
		return
	}
	for i := range earlier {
		for _, r := range earlier[i].Results {
			if r.Name == t.Name {
				t.line = i + 1
				return
			}
		}
	}
}

// Defined reports whether an earlier line defines the value that the term names.
func (t *Term) Defined() bool { return t.line > 0 }

// Dialect says how what a program has is compared with what a line says.
type Dialect interface {
	// Literal is what an operand holds, if that is known: None for one that is absent.
	Literal(l *Sought, v *ssa.Value) (lit ssa.Literal, known bool)
	// Bind is the literal that $p is bound to where an operand holds lit.
	Bind(lit ssa.Literal) ssa.Literal
	// IsConst tells the values that %x! stands for.
	IsConst(l *Sought, v *ssa.Value) bool
	// Elems are the elements of a list.
	Elems(v *ssa.Value) ([]*ssa.Value, bool)
	// Attr is an attribute of an operator: its default, or None, where it is not stated.
	Attr(o *ssa.Op, name string) ssa.Literal
	// IsDefault reports that a stated attribute says what its absence says, so that a line need not name it.
	IsDefault(o *ssa.Op, a *ssa.Attr) bool
	// Same compares literals.
	Same(a, b ssa.Literal) bool
	// Alone reports whether a value that an earlier line defines, and that is not marked %x*, must have no other user.
	Alone() bool
}

// Match is what the lines of a pattern have found, by the names that they give. Its zero value is ready for use, and is used again
// without allocations.
type Match struct {
	// Root is the operator that the last line stands for.
	Root     *ssa.Op
	values   bindings[*ssa.Value]
	literals bindings[ssa.Literal]

	in      Dialect
	lines   []Sought
	explain bool
	why     string
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

// Value is what %name stands for.
func (m *Match) Value(name string) *ssa.Value {
	v, _ := m.values.get(name)
	return v
}

// Literal is what $name stands for, None for an attribute that is absent.
func (m *Match) Literal(name string) ssa.Literal {
	l, _ := m.literals.get(name)
	return l
}

// SetValue binds %name.
func (m *Match) SetValue(name string, v *ssa.Value) { m.values.set(name, v) }

// SetLiteral binds $name.
func (m *Match) SetLiteral(name string, l ssa.Literal) { m.literals.set(name, l) }

// Find compares the lines, the last of which is root, with an operator and those that define its operands.
func (m *Match) Find(in Dialect, lines []Sought, root *ssa.Op) bool {
	m.in, m.lines, m.Root = in, lines, root
	m.values, m.literals = m.values[:0], m.literals[:0]
	return m.find(len(lines)-1, root)
}

// WhyNot is like [Match.Find] but says why the lines do not fit, "" if they do.
func (m *Match) WhyNot(in Dialect, lines []Sought, root *ssa.Op) string {
	m.explain, m.why = true, ""
	defer func() { m.explain = false }()
	m.Find(in, lines, root)
	return m.why
}

// no notes why the lines do not fit, if anybody asks.
func (m *Match) no(why func() string) bool {
	if m.explain {
		m.why = why()
	}
	return false
}

// find compares line i with an operator.
func (m *Match) find(i int, o *ssa.Op) bool {
	l := &m.lines[i]
	if o.Kind != l.Kind || len(o.Blocks) > 0 {
		return m.no(func() string { return fmt.Sprintf("an operand is the result of %s, not of %s", o.Kind, l.Kind) })
	}
	if l.Calls != nil {
		return m.call(l, o)
	}
	extra := len(o.Results) != len(l.Results)
	for k := len(l.Operands); k < o.NumOperands(); k++ {
		extra = extra || o.Operand(k) != nil
	}
	if extra {
		return m.no(func() string {
			return fmt.Sprintf("it has %s and %s", Count(o.NumOperands(), "operand"), Count(len(o.Results), "result"))
		})
	}
	m.results(l, o)
	if !m.attrs(l, o) {
		return false
	}
	for k := range l.Operands {
		if !m.bind(l, &l.Operands[k].Term, o.Operand(k), place{operand: k}) {
			return false
		}
	}
	return true
}

// call compares a line with a call of an operator that has a schema.
func (m *Match) call(l *Sought, o *ssa.Op) bool {
	plan, ok := l.Calls[o.Schema]
	if !ok || len(o.Results) != len(l.Results) {
		return m.no(func() string { return fmt.Sprintf("this is a call of another overload of %s", o.Kind) })
	}
	m.results(l, o)
	for k, want := range plan {
		arg := &o.Schema.Args[k]
		if want != nil {
			if !m.bind(l, &want.Term, o.Operand(k), place{arg: arg}) {
				return false
			}
		} else if lit, known := m.in.Literal(l, o.Operand(k)); !known || !m.in.Same(lit, arg.Default) {
			return m.no(func() string {
				return fmt.Sprintf("the argument %q is not the default, %s, and the rule does not name it", arg.Name, arg.Default)
			})
		}
	}
	return true
}

func (m *Match) results(l *Sought, o *ssa.Op) {
	for k := range l.Results {
		m.values.set(l.Results[k].Name, o.Results[k])
	}
}

func (m *Match) attrs(l *Sought, o *ssa.Op) bool {
	for k := range l.Attrs {
		a := &l.Attrs[k]
		have := m.in.Attr(o, a.Name)
		if a.Value.Kind == Bound {
			if old, bound := m.literals.get(a.Value.Name); bound && !m.in.Same(have, old) {
				return m.no(func() string { return fmt.Sprintf("the attribute %q is not what $%s is already", a.Name, a.Value.Name) })
			}
			m.literals.set(a.Value.Name, have)
		} else if want, _ := a.Value.Fixed(); !m.in.Same(have, want) {
			return m.no(func() string { return fmt.Sprintf("the attribute %q is not %s", a.Name, want) })
		}
	}
	if l.Others {
		return true
	}
stated:
	for k := range o.Attrs {
		a := &o.Attrs[k]
		for n := range l.Attrs {
			if l.Attrs[n].Name == a.Name {
				continue stated
			}
		}
		if !m.in.IsDefault(o, a) {
			return m.no(func() string {
				return fmt.Sprintf("the attribute %q is %s, and the rule does not name it", a.Name, a.Value)
			})
		}
	}
	return true
}

// place is which operand of an operator a value is, for messages.
type place struct {
	arg     *ssa.SchemaArg
	operand int
	of      *place // of an element: the list
}

func (p place) String() string {
	switch {
	case p.of != nil:
		return fmt.Sprintf("element %d of %s", p.operand, p.of)
	case p.arg != nil:
		return fmt.Sprintf("the argument %q", p.arg.Name)
	}
	return fmt.Sprintf("operand %d", p.operand)
}

// bind compares an operand of a line with a value.
func (m *Match) bind(l *Sought, t *Term, v *ssa.Value, at place) bool {
	lit, known := m.in.Literal(l, v)
	none := known && lit.IsNone()
	switch t.Kind {
	case Absent:
		return none || m.no(func() string { return at.String() + " is not None" })
	case Value:
		switch {
		case none:
			return m.no(func() string { return at.String() + " is None" })
		case t.Const && !m.in.IsConst(l, v):
			return m.no(func() string { return at.String() + " is not known" })
		}
		return m.value(t, v, at)
	case Bound:
		if !known {
			return m.no(func() string { return at.String() + " is not known" })
		}
		lit = m.in.Bind(lit)
		if old, bound := m.literals.get(t.Name); bound && !m.in.Same(old, lit) {
			return m.no(func() string { return fmt.Sprintf("%s is not what $%s is already", at, t.Name) })
		}
		m.literals.set(t.Name, lit)
		return true
	}
	if want, fixed := t.Fixed(); fixed {
		return known && m.in.Same(lit, want) || m.no(func() string { return fmt.Sprintf("%s is not %s", at, want) })
	}
	elems, ok := m.in.Elems(v)
	if !ok || len(elems) != len(t.Terms) {
		return m.no(func() string { return fmt.Sprintf("%s is no list of %s", at, Count(len(t.Terms), "element")) })
	}
	list := at // a copy: at itself stays off the heap
	for k, e := range elems {
		if !m.bind(l, &t.Terms[k], e, place{operand: k, of: &list}) {
			return false
		}
	}
	return true
}

// value compares %x with a value.
func (m *Match) value(t *Term, v *ssa.Value, at place) bool {
	old, bound := m.values.get(t.Name)
	switch {
	case bound && old != v:
		return m.no(func() string { return fmt.Sprintf("%s is not the value that %%%s is already", at, t.Name) })
	case bound:
		return true
	case t.line == 0:
		m.values.set(t.Name, v)
		return true
	case v.Def() == nil:
		return m.no(func() string { return at.String() + " is an input" })
	case !t.Shared && m.in.Alone() && !v.HasOneUse():
		return m.no(func() string { return at.String() + " has other users" })
	case !m.find(t.line-1, v.Def()):
		return false
	}
	return m.Value(t.Name) == v || m.no(func() string { return at.String() + " is another result of its operator" })
}

// Count is a number of things in words: 1 operand, 2 operands.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
