package export

import (
	"strings"
	"testing"
	"time"
)

func TestSizes(t *testing.T) {
	tests := []struct{ text, want string }{
		{"Symbol('s77', positive=True, integer=True)", "s77"},
		{"Mul(Integer(2), Symbol('s39', positive=True, integer=True))", "2*s39"},
		{"Add(Mul(Integer(24), Symbol('s53')), Integer(-48))", "24*s53 - 48"},
		{"FloorDiv(Add(Symbol('a'), Integer(1)), Integer(2))", "((a + 1) // 2)"},
		{"Mul(Rational(1, 2), Symbol('a'), Integer(4))", "2*a"},
		{"Pow(Symbol('a'), Integer(2))", "a*a"},
		{"Mod(Symbol('a'), Integer(4))", "-4*(a // 4) + a"},
		{"ModularIndexing(Symbol('a'), 2, 3)", "(a // 2) - 3*(a // 6)"},
		{"CeilDiv(Symbol('a'), Integer(1))", "a"},
		{"Max(Integer(1), Add(Symbol('a'), Integer(-2)))", "max(1, a - 2)"},
		{"LShift(Symbol('a'), Integer(3))", "8*a"},
		{"Identity(Symbol('a'))", "a"},
		{"s0 + 1", "s0 + 1"},
		{"2*s1 - s0", "-1*s0 + 2*s1"},
		{"s0**2", "s0*s0"},
		{"(s0//2)", "(s0 // 2)"},
		{"Mod(s0, 4)", "-4*(s0 // 4) + s0"},
		{"s0/2", "(s0 // 2)"},
		{"Piecewise(ExprCondPair(Symbol('a'), true))", "e0"},
		{"IntTrueDiv(Symbol('a'), Integer(2))", "e0"},
		{"TruncToInt(Symbol('a'))", "a"},
		{"RoundToInt(Mul(Rational(1, 2), Symbol('a')))", "e0"},
		{"CeilToInt(s0/2)", "e0"},
	}
	for _, tt := range tests {
		s := newSymbols(func(string, ...any) {})
		if got := s.size(symInt{expr: tt.text}).String(); got != tt.want {
			t.Errorf("%s is read as %s, not %s", tt.text, got, tt.want)
		}
	}
}

func TestExprIsPrintedForPeople(t *testing.T) {
	for _, text := range []string{"(a + b) * c", "a - (b - c)", "-(a + 1)", "x.shape[0] == 4", "not (a == b and c < d)", "max(a, 2) // 3", "2 ** n"} {
		e, err := parseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.str(); got != text {
			t.Errorf("%s is printed as %s", text, got)
		}
	}
}

func TestGuards(t *testing.T) {
	size := func(name string) symInt { return symInt{expr: "Symbol('" + name + "', positive=True, integer=True)"} }
	leaves := []userLeaf{
		{leaf: leaf{path: "x", steps: []any{"x"}}, name: "x", sizes: []symInt{size("s1"), size("s2")}},
		{leaf: leaf{path: "d.a.0", steps: []any{"d", "a", 0}}, name: "d_a_0", sizes: []symInt{size("s3")}},
		{leaf: leaf{path: "xs_1", steps: []any{"xs_1"}}, name: "xs_1", sizes: []symInt{size("s4")}},
		{leaf: leaf{path: "z", steps: []any{"z"}}, name: "z", sizes: []symInt{size("s5")}},
	}
	tests := []struct {
		guard string
		fact  string // "symbol = value"
		rest  string
	}{
		{"L['d']['a'][0].size()[0] == L['x'].size()[0]", "s3 = s1", ""},
		{"L['xs'][1].size()[0] == 2*L['x'].size()[1]", "s4 = 2*s2", ""},
		{"L['kw']['z'].size()[0] == 6", "s5 = 6", ""},
		{"L['flat_args'][3].size()[0] == L['flat_args'][0].size()[0] + 1", "s5 = s1 + 1", ""},
		{"L['x'].size()[0] != 1", "", ""},
		{"L['x'].size()[0] >= 2 and L['x'].size()[1] == 3", "s2 = 3", ""},
		{"(L['x'].size()[0] // 4) == 1", "", "x.shape[0] // 4 == 1"},
		{"L['x'].size()[0] % 2 == 0", "", "x.shape[0] % 2 == 0"},
		{"torch.sym_max(1, L['x'].size()[0]) == 2", "", "max(1, x.shape[0]) == 2"},
		{"L['nobody'].size()[0] == 2", "", "L['nobody'].size()[0] == 2"},
	}
	for _, tt := range tests {
		s := newSymbols(func(string, ...any) {})
		g := readGuards(s, leaves, []string{tt.guard})
		fact := ""
		for n, e := range s.facts {
			fact = n + " = " + e.String()
		}
		var rest []string
		for _, c := range g.rest {
			rest = append(rest, c.text)
		}
		if fact != tt.fact || strings.Join(rest, "; ") != tt.rest || len(g.bad) > 0 {
			t.Errorf("%s gives fact %q, rest %q, bad %q", tt.guard, fact, rest, g.bad)
		}
	}
}

func TestHostileExpressions(t *testing.T) {
	start := time.Now()
	for _, text := range []string{
		strings.Repeat("(", 100000),
		strings.Repeat("-", 60000) + "1",
		strings.Repeat("not ", 15000) + "1",
		"Max(" + strings.Repeat("a+b*c, ", 5000) + "1)",
		strings.Repeat("(a+b)*(c+d)*", 300) + "1",
		strings.Repeat("Max(a*b, Min(c, ", 60) + "1" + strings.Repeat("))", 60),
		"(a+b+c+d+e+f+g)**8",
		"9999999999999999999999",
		"'",
		"L['x'",
		"f(a=",
	} {
		s := newSymbols(func(string, ...any) {})
		s.size(symInt{expr: text})
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("it took %v", d)
	}
}

// nothing has no use for lines of text.
func nothing(string, int, string) {}

func TestStacks(t *testing.T) {
	strict := "  File \"/x/site-packages/torch/_dynamo/functional_export.py\", line 243, in forward\n    res = f()\n          ^^^\n  File \"model.py\", line 11, in forward\n    return after(self.fc(x))\n                 ^^^^^^^^^^\n"
	if f := parseStack(strict, nothing); f.File != "model.py" || f.Line != 11 || f.Func != "forward" {
		t.Errorf("strict: %+v", f)
	}
	if f := parseStack("File \"m.py\", line 3, in forward\n    x\nFile \"<eval_with_key>.4\", line 5, in forward\n    y", nothing); f.Line != 3 {
		t.Errorf("generated code: %+v", f)
	}
	if f := parseStack("File \"torch/fx/passes/runtime_assert.py\", line 24, in insert", nothing); f.File != "" {
		t.Errorf("of PyTorch: %+v", f)
	}
	for text, want := range map[string]string{
		"": "",
		"L__self__,,__main__.Outer;L__self__a,a,__main__.Inner;L__self__a.l,a.l,torch.nn.modules.linear.Linear": "a.l",
		"L__self__,,__main__.M[int, str];1234,fc,torch.nn.Linear":                                               "fc",
		"_empty_nn_module_stack_from_metadata_hook,_empty_nn_module_stack_from_metadata_hook,x":                 "",
	} {
		if got := (&importer{m: newModule()}).parseModules(text); got != want {
			t.Errorf("%q: module %q, not %q", text, got, want)
		}
	}
}
