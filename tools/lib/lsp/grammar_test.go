package lsp

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestGrammar: what the grammar for editors calls an operator, a value, a type or a check is one.
func TestGrammar(t *testing.T) {
	b, err := os.ReadFile("vscode/syntaxes/aton-ir.tmLanguage.json")
	if err != nil {
		t.Fatal(err)
	}
	var grammar struct {
		Patterns   []struct{ Include string }
		Repository map[string]struct{ Name, Match, Begin string }
	}
	if err := json.Unmarshal(b, &grammar); err != nil {
		t.Fatal(err)
	}
	patterns := map[string]*regexp.Regexp{}
	for _, p := range grammar.Patterns {
		name := strings.TrimPrefix(p.Include, "#")
		rule, ok := grammar.Repository[name]
		if !ok {
			t.Fatalf("the repository has no %s", name)
		}
		text := rule.Match + rule.Begin
		patterns[name] = regexp.MustCompile(strings.ReplaceAll(text, "(?==)", "=")) // Go has no lookahead
	}
	for _, c := range []struct{ pattern, line, want string }{
		{"check", "# CHECK-NEXT:   %y : Tensor", "# CHECK-NEXT:   %y : Tensor"},
		{"check", "# RUN: aton-opt %s", "# RUN: aton-opt %s"},
		{"comment", "%y : Tensor # model.py:3", "# model.py:3"},
		{"operator", "  %y : Tensor = aten::add_(%x)", "aten::add_"},
		{"operator", "  %y : Tensor = com.microsoft::FusedMatMul(%x)", "com.microsoft::FusedMatMul"},
		{"value", "  %/layer/0.weight : Float(2)", "%/layer/0.weight"},
		{"symbol", "graph @main_graph(", "@main_graph"},
		{"keyword", "    block0(%i : int):", "block0"},
		{"keyword", "      -> (%y)", "->"},
		{"type", "  %y : BFloat16(N, 2)", "BFloat16"},
		{"number", "[value=-1.5e-3]", "-1.5e-3"},
		{"attribute", "onnx::Gemm[transB=1]", "transB="},
		{"string", `[mode="mean"]`, `"`},
	} {
		if got := patterns[c.pattern].FindString(c.line); got != c.want {
			t.Errorf("%s in %q: %q, want %q", c.pattern, c.line, got, c.want)
		}
	}
}
