package rules

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus are the files of rules in the repository: those of the text tests, and the blocks of the pages.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../../lit-tests/rules/*.rules")
	if err != nil || len(files) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	out := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = string(text)
	}
	page, err := os.ReadFile("../../../docs/rules.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(page), "```rules\n")
	for _, part := range parts[1:] {
		text, _, _ := strings.Cut(part, "```")
		out["docs/rules.md: "+strings.SplitN(text, "\n", 2)[0]] = text
	}
	return out
}

// FuzzParse reads any text: it is accepted, the same twice, or refused with a place for each error.
func FuzzParse(f *testing.F) {
	for _, text := range corpus(f) {
		f.Add(text)
		for _, part := range strings.Split(text, "\nrule ") {
			f.Add("rule " + part)
		}
	}
	f.Add("rule a\nfrom\n%y = aten::relu(%x)\nto\n%y : %x[%x.0*2, $n, ?, %x...] = a::b[c=[1, 2.5], d=\"#\"](%x, const(1, f32), _)")
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Parse(Source{"fuzz", text})
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				if !strings.HasPrefix(line, "fuzz:") {
					t.Errorf("an error without a place: %q", line)
				}
			}
			return
		}
		again, err := Parse(Source{"fuzz", text})
		if err != nil || len(again.rules) != len(set.rules) {
			t.Errorf("the second reading differs: %v", err)
		}
	})
}
