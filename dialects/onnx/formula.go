package onnx

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
)

// Formula is what an operator computes, for those who look for it in programs that spell it out. It comes from the operator's
// expression or from its body: nothing else says it.
type Formula struct {
	Kind ssa.Kind
	// Since is the first opset for which to look: with an older one, what the program spells out is what the operator becomes.
	Since int
	// Ways are the formulas for each text that an attribute may have.
	Ways []Way
	// Scale is the place of an operand that the formula is multiplied by, and Offset that of one that is added then; 0 if there is none.
	Scale, Offset int
	// Double says that float64 needs no other way to compute.
	Double bool
}

// Way is a formula, where attributes have certain texts. A mean has two arguments: what it is of, and the attribute that is its first axis, where it is over that
// one and all behind.
type Way struct {
	Expr  *Expr
	Texts []ssa.Attr
}

// Formulas lists the formulas of operators that programs spell out, by the names of these.
func Formulas() []*Formula { return formulas() }

var formulas = sync.OnceValue(func() (out []*Formula) {
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		r := rows[name]
		if r.spelled == 0 {
			continue
		}
		f := &Formula{Kind: ssa.Kind(Namespace + "::" + name), Since: r.spelled, Double: r.other == nil}
		if e := r.expr; e != nil {
			f.Ways = waysOf(f.Kind, e)
		} else if !f.readBody(bodies()[name]) {
			panic("the body of " + name + " is no formula") // a mistake in the files, which are part of the program
		}
		out = append(out, f)
	}
	return out
})

// waysOf are the formulas of an expression, in which a text may choose.
func waysOf(kind ssa.Kind, e *Expr) []Way {
	var choice *Expr
	var find func(e *Expr)
	find = func(e *Expr) {
		if e.Is != "" {
			choice = e
		}
		for _, a := range e.Args {
			find(a)
		}
	}
	if find(e); choice == nil {
		return []Way{{Expr: e}}
	}
	def, _ := SchemaOf(kind).Attr(choice.Attr).Value()
	return []Way{
		{e.with(choice, choice.Args[0]), []ssa.Attr{{Name: choice.Attr, Value: ssa.Str(choice.Is)}}},
		{e.with(choice, choice.Args[1]), []ssa.Attr{{Name: choice.Attr, Value: def}}},
	}
}

// with is an expression with another part.
func (e *Expr) with(old, part *Expr) *Expr {
	if e == old {
		return part
	}
	c := *e
	c.Args = nil
	for _, a := range e.Args {
		c.Args = append(c.Args, a.with(old, part))
	}
	return &c
}

// readBody takes the formula from a body: what it gives first where no operand but the first is there, and what becomes of that with the others.
func (f *Formula) readBody(b *body) bool {
	plain, ok := b.expr(1)
	if !ok {
		return false
	}
	f.Ways = []Way{{Expr: plain}}
	for n := 2; n <= len(b.params); n++ {
		e, ok := b.expr(n)
		if !ok || len(e.Args) != 2 || e.Args[1].Operand != n {
			return false
		}
		switch e.Func {
		case "Mul":
			f.Scale = n - 1
		case "Add":
			f.Offset = n - 1
		default:
			return false
		}
	}
	return true
}

// expr is the first result of a body, of which the first n operands are there, as an expression; ok is false if it is none.
func (b *body) expr(n int) (e *Expr, ok bool) {
	args := make([]*Expr, len(b.params))
	for i := range min(n, len(args)) {
		args[i] = operand(i)
	}
	r := &formulaReader{bound: map[string]*Expr{}}
	given := r.call(b, args)
	return given[0], !r.failed && given[0] != nil
}

// formulaReader reads a body as an expression. What is absent is nil.
type formulaReader struct {
	bound  map[string]*Expr
	given  []*Expr
	failed bool
}

func (r *formulaReader) call(b *body, args []*Expr) []*Expr {
	for i := range b.params {
		r.bound[spelled(&b.params[i])] = args[i]
	}
	if r.stmts(b.stmts); len(r.given) == 0 {
		r.failed, r.given = true, []*Expr{nil}
	}
	return r.given
}

func (r *formulaReader) stmts(list []stmt) {
	for i := range list {
		s := &list[i]
		switch {
		case s.cond != nil && s.cond.Op == "" && s.cond.Left.Kind == pattern.Value:
			if r.term(&s.cond.Left) != nil {
				r.stmts(s.then)
			} else {
				r.stmts(s.not)
			}
		case s.gives:
			for k := range s.give {
				r.given = append(r.given, r.term(&s.give[k]))
			}
		case s.define != "":
			r.bound["$"+s.define] = r.term(&s.term)
		case s.line != nil:
			r.line(s.line)
		default:
			r.failed = true
		}
		if r.failed || r.given != nil {
			return
		}
	}
}

func (r *formulaReader) line(l *pattern.Line) {
	args := make([]*Expr, len(l.Operands))
	for i := range l.Operands {
		args[i] = r.term(&l.Operands[i].Term)
	}
	results := args
	if l.Kind != "" {
		results = r.apply(string(l.Kind), args)
	}
	r.failed = r.failed || len(l.Attrs) > 0 || len(results) < len(l.Results)
	for i := range l.Results {
		if !r.failed {
			r.bound["%"+l.Results[i].Name] = results[i]
		}
	}
}

func (r *formulaReader) term(t *pattern.Term) *Expr {
	switch t.Kind {
	case pattern.Absent:
		return nil
	case pattern.Value:
		return r.bound[spelled(t)]
	case pattern.Bound:
		if e := r.bound[spelled(t)]; e != nil {
			return e
		}
		return attribute(t.Name)
	case pattern.Literal:
		if t.Literal.IsNumber() {
			return number(t.Literal.Float())
		}
	case pattern.Call:
		args := make([]*Expr, len(t.Terms))
		for i := range t.Terms {
			args[i] = r.term(&t.Terms[i])
		}
		return r.apply(t.Name, args)[0]
	}
	r.failed = true
	return nil
}

// apply reads a call: that of a part as what it gives, that of an operator as a function. Types do not matter here, and axes are those from one on.
func (r *formulaReader) apply(name string, args []*Expr) []*Expr {
	if p := bodies()[name]; p != nil && p.isPart() {
		part := &formulaReader{bound: map[string]*Expr{}}
		given := part.call(p, args)
		r.failed = r.failed || part.failed
		return given
	}
	switch name {
	case "wide", "cast":
		return args[:1]
	case "dtype", "rank":
		return []*Expr{apply(name, args...)}
	case "axis":
		return args[1:]
	case "upto":
		r.failed = r.failed || args[0].Attr == "" || args[1].Func != "rank"
		return args[:1]
	}
	r.failed = r.failed || strings.ToUpper(name[:1]) != name[:1] || slices.Contains(args, nil)
	return []*Expr{apply(name, args...)}
}
