package pattern_test

import (
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/pattern"
)

// dialect compares what is written; constants are the results of t::Constant.
type dialect struct{ alone bool }

func (dialect) Literal(_ *pattern.Sought, v *ssa.Value) (ssa.Literal, bool) {
	if v == nil {
		return ssa.None, true
	}
	if d := v.Def(); d != nil && d.Kind == "t::Constant" {
		return d.Attr("value")
	}
	return ssa.None, false
}
func (d dialect) IsConst(l *pattern.Sought, v *ssa.Value) bool {
	_, known := d.Literal(l, v)
	return known
}
func (dialect) Elems(v *ssa.Value) ([]*ssa.Value, bool) {
	if d := v.Def(); d != nil && d.Kind == "t::List" {
		return d.Operands(), true
	}
	return nil, false
}
func (dialect) Attr(o *ssa.Op, name string) ssa.Literal {
	l, _ := o.Attr(name)
	return l
}
func (dialect) IsDefault(*ssa.Op, *ssa.Attr) bool { return false }
func (dialect) Bind(l ssa.Literal) ssa.Literal    { return l }
func (dialect) Same(a, b ssa.Literal) bool        { return a.Equal(b) }
func (d dialect) Alone() bool                     { return d.alone }
func (dialect) Namespace() string                 { return "t" }
func (dialect) Info(*ssa.Op) (ssa.OpInfo, bool)   { return ssa.OpInfo{}, true }
func (dialect) Verify(*ssa.Op) error              { return nil }

// TestMatch tries each form of a line on a program that fits it and on one that does not. Why not is what [pattern.Match.WhyNot] says.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ lines, body, whyNot string }{
		{"%y = t::f(%a)", "%y : Tensor = t::f(%x)", ""},
		{"%y = t::f(%a)", "%y : Tensor = t::g(%x)", "an operand is the result of t::g, not of t::f"},
		{"%y = t::f(%a)", "%y : Tensor = t::f(%x, %z)", "it has 2 operands and 1 result"},
		{"%y = t::f(%a, _)", "%y : Tensor = t::f(%x)", ""},
		{"%y = t::f(%a, _)", "%y : Tensor = t::f(%x, %z)", "operand 1 is not None"},
		{"%y = t::f(%a, %b)", "%y : Tensor = t::f(%x)", "operand 1 is None"},
		{"%y = t::f(%a, %a)", "%y : Tensor = t::f(%x, %x)", ""},
		{"%y = t::f(%a, %a)", "%y : Tensor = t::f(%x, %z)", "operand 1 is not the value that %a is already"},
		{"%y = t::f(%a!)", "%k : Tensor = t::Constant[value=3]()\n  %y : Tensor = t::f(%k)", ""},
		{"%y = t::f(%a!)", "%y : Tensor = t::f(%x)", "operand 0 is not known"},
		{"%y = t::f($n, $n)", "%k : Tensor = t::Constant[value=3]()\n  %l : Tensor = t::Constant[value=3]()\n  %y : Tensor = t::f(%k, %l)", ""},
		{"%y = t::f($n, $n)", "%k : Tensor = t::Constant[value=3]()\n  %l : Tensor = t::Constant[value=4]()\n  %y : Tensor = t::f(%k, %l)", "operand 1 is not what $n is already"},
		{"%y = t::f(3)", "%k : Tensor = t::Constant[value=3]()\n  %y : Tensor = t::f(%k)", ""},
		{"%y = t::f(3)", "%y : Tensor = t::f(%x)", "operand 0 is not 3"},
		{"%y = t::f([%a, %b])", "%k : Tensor = t::List(%x, %z)\n  %y : Tensor = t::f(%k)", ""},
		{"%y = t::f([%a, %a])", "%k : Tensor = t::List(%x, %z)\n  %y : Tensor = t::f(%k)", "element 1 of operand 0 is not the value that %a is already"},
		{"%y = t::f([%a, %b])", "%y : Tensor = t::f(%x)", "operand 0 is no list of 2 elements"},
		{"%y = t::f[n=2](%a)", "%y : Tensor = t::f[n=2](%x)", ""},
		{"%y = t::f[n=2](%a)", "%y : Tensor = t::f[n=3](%x)", `the attribute "n" is not 2`},
		{"%y = t::f[n=2](%a)", "%y : Tensor = t::f(%x)", `the attribute "n" is not 2`},
		{"%y = t::f[n=$p, m=$p](%a)", "%y : Tensor = t::f[n=3, m=4](%x)", `the attribute "m" is not what $p is already`},
		{"%y = t::f(%a)", "%y : Tensor = t::f[n=3](%x)", `the attribute "n" is 3, and the rule does not name it`},
		{"%y = t::f[*](%a)", "%y : Tensor = t::f[n=3](%x)", ""},
		{"%b = t::g(%a)\n%y = t::f(%b)", "%b : Tensor = t::g(%x)\n  %y : Tensor = t::f(%b)", ""},
		{"%b = t::g(%a)\n%y = t::f(%b)", "%y : Tensor = t::f(%x)", "operand 0 is an input"},
		{"%b = t::g(%a)\n%y = t::f(%b)", "%b : Tensor = t::g(%x)\n  %c : Tensor = t::h(%b)\n  %y : Tensor = t::f(%b)", "operand 0 has other users"},
		{"%b = t::g(%a)\n%y = t::f(%b*)", "%b : Tensor = t::g(%x)\n  %c : Tensor = t::h(%b)\n  %y : Tensor = t::f(%b)", ""},
		{"%b, %c = t::g(%a)\n%y = t::f(%c)", "%b : Tensor, %c : Tensor = t::g(%x)\n  %y : Tensor = t::f(%c)", ""},
		{"%b, %c = t::g(%a)\n%y = t::f(%c)", "%b : Tensor, %c : Tensor = t::g(%x)\n  %y : Tensor = t::f(%b)", "operand 0 is another result of its operator"},
		// one line is one operator: two that look alike may differ, as those that draw random numbers do
		{"%b = t::g(%a)\n%y = t::f(%b*, %b*)", "%b : Tensor = t::g(%x)\n  %c : Tensor = t::g(%x)\n  %y : Tensor = t::f(%b, %c)", "operand 1 is not the value that %b is already"},
	} {
		m, err := ssa.Parse("graph(%x : Tensor, %z : Tensor):\n  "+c.body+"\n  return (%y)\n", "test", dialect{})
		if err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		lines, err := pattern.Parse(c.lines)
		if err != nil {
			t.Fatal(err)
		}
		var sought []pattern.Sought
		for _, l := range lines {
			sought = append(sought, pattern.Sought{Line: l})
		}
		pattern.Resolve(sought)
		root := m.Main().Body.Last()
		var found pattern.Match
		if fits := found.Find(dialect{alone: true}, sought, root); fits != (c.whyNot == "") {
			t.Errorf("%q on %q: %v", c.lines, c.body, fits)
		}
		if why := found.WhyNot(dialect{alone: true}, sought, root); why != c.whyNot {
			t.Errorf("%q on %q: %q, want %q", c.lines, c.body, why, c.whyNot)
		}
		if c.whyNot == "" && strings.Contains(c.lines, "%a") && found.Value("a") == nil {
			t.Errorf("%q on %q: %%a is not bound", c.lines, c.body)
		}
	}
}

// BenchmarkFind is a match that fails at its second line, as most do.
func BenchmarkFind(b *testing.B) {
	m, err := ssa.Parse("graph(%x : Tensor, %z : Tensor):\n  %b : Tensor = t::h(%x)\n  %y : Tensor = t::f(%b, %z)\n  return (%y)\n", "test", dialect{})
	if err != nil {
		b.Fatal(err)
	}
	lines, err := pattern.Parse("%b = t::g(%a)\n%y = t::f(%b, %c)")
	if err != nil {
		b.Fatal(err)
	}
	sought := []pattern.Sought{{Line: lines[0]}, {Line: lines[1]}}
	pattern.Resolve(sought)
	root := m.Main().Body.Last()
	var found pattern.Match
	b.ReportAllocs()
	for b.Loop() {
		found.Find(dialect{}, sought, root)
	}
}
