package ssa_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/ssa"
)

// A copy reads as its original does, and what passes do with it leaves the original as it was.
func TestClone(t *testing.T) {
	files, err := filepath.Glob("../lit-tests/passes/*/*.ir")
	if err != nil || len(files) < 100 {
		t.Fatal(len(files), err)
	}
	p, err := all.Set.Parse("simplify,cse,dce")
	if err != nil {
		t.Fatal(err)
	}
	print := func(m *ssa.Module) string {
		var b strings.Builder
		if err := ssa.Fprint(&b, m, ssa.PrintOptions{Complete: true}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	changed := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := ssa.Parse(string(text), file, all.Dialects()...)
		if err != nil {
			continue // of what a parser refuses
		}
		before := print(m)
		c := m.Clone()
		if got := print(c); got != before {
			t.Errorf("%s: the copy is\n%s\nof\n%s", file, got, before)
		}
		if err := ssa.Verify(m); err == nil {
			if err := ssa.Verify(c); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		_, _ = p.Run(c, &passes.Runner{}) // an error may leave it anyhow
		if print(c) != before {
			changed++
		}
		if got := print(m); got != before {
			t.Errorf("%s: what passes did with the copy made\n%s\nof\n%s", file, got, before)
		}
	}
	if changed < 30 {
		t.Errorf("passes changed %d copies", changed)
	}
}
