package main

import (
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// TestLists tells declarations that list operators from those that build them, and from words that only look like names.
func TestLists(t *testing.T) {
	const text = `package aten

var table = Defs{"aten::relu": {Doc: "the sum of all", Lower: func() { build("aten::mul") }}}

var words = fields("relu_ add sub")

var prose = "add one to the sum of these"

func special(k string) bool {
	switch k {
	case "aten::relu", "sum":
		return true
	}
	return k == "aten::div" || k == "mean"
}
`
	f, err := parser.ParseFile(token.NewFileSet(), "dialects/aten/x.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := listsOf([]source{{path: "dialects/aten/x.go", ast: f}, {path: "tools/x/x.go", ast: f}, {path: "backend/eager/x.go", ast: f}})
	for name, want := range map[string]int{"relu": 3, "add": 1, "sub": 1, "div": 1, "mul": 0, "sum": 0, "mean": 0} {
		if n := len(got[name]); n != want {
			t.Errorf("%s stands in %d lists (%v), want %d", name, n, got[name], want)
		}
	}
}

// TestOrder finds an order of a graph with one cycle in which a single arrow runs back.
func TestOrder(t *testing.T) {
	to := map[string]map[string]bool{"a": {"b": true}, "b": {"c": true, "d": true}, "c": {"a": true, "d": true}, "d": {}}
	row, back := order(to), 0
	for f, targets := range to {
		for g := range targets {
			if slices.Index(row, g) < slices.Index(row, f) {
				back++
			}
		}
	}
	if len(row) != 4 || back != 1 {
		t.Errorf("order %v, %d arrows back, want 1", row, back)
	}
}

// TestRooms puts files into the first room that fits.
func TestRooms(t *testing.T) {
	for file, want := range map[string]string{"aton.go": "root", "dialects/aten/x.go": "dialects/aten", "dialects/prim/x.go": "dialects", "passes/specialize/x.go": "passes/specialize",
		"passes/dce/dce.go": "passes", "tools/lib/lit/lit.go": "tools (Go)", "tools/maker/zoo/zoo.py": "tools (Python)", "lit-tests/run.go": "tools (Go)"} {
		if got := roomOf(file); got != want {
			t.Errorf("%s is in %q, want %q", file, got, want)
		}
	}
}

func TestSplit(t *testing.T) {
	got := split("A pass is a value. It gets the module,\nsuch as m.ir, and changes it. Too short.")
	want := []string{"A pass is a value.", "It gets the module, such as m.ir, and changes it."}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	page := "# Heading of four words\n\nText of a paragraph, here.\n\n```go\nfunc f() int { return 1 }\n\nvar x = f() + 2\n```\n\n| a | row of a table |\n"
	if s := ofPage("p.md", page); len(s) != 1 || s[0].text != "Text of a paragraph, here." {
		t.Errorf("got %v", s)
	}
}
