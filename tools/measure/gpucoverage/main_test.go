package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table of operators in the README is what the command prints.
func TestOperators(t *testing.T) {
	path := filepath.Join("..", "..", "..", "codegen", "gpu", "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- operators: go run ./tools/measure/gpucoverage --operators -->\n", "<!-- end of operators -->"
	_, rest, ok := strings.Cut(string(text), begin)
	table, _, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no table of operators", path)
	}
	if want := operators(); table != want {
		t.Errorf("the table of operators is\n%s\nin %s, but should be\n%s", table, path, want)
	}
}

func TestLayerOf(t *testing.T) {
	for scope, want := range map[string]string{
		"model.model.layers.11.self_attn.q_proj": "model.model.layers.11",
		"h.0":                                    "h.0",
		"m.decoder.block.3.layer.1.EncDecAttention": "m.decoder.block.3",
		"conv1.bn": "",
		"lm_head":  "",
		"":         "",
		"0.weight": "0",
	} {
		if got := layerOf(scope); got != want {
			t.Errorf("%q is in layer %q, not %q", scope, got, want)
		}
	}
}
