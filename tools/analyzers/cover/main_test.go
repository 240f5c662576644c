package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/tools/analyzers/cover/profile"
)

// A block that two test programs have counts once, and is hit if one of them hits it.
func TestTable(t *testing.T) {
	name := filepath.Join(t.TempDir(), "profile")
	text := `mode: set
github.com/aton-project/aton/ssa/a.go:1.1,2.1 3 0
github.com/aton-project/aton/ssa/a.go:3.1,4.1 1 0
github.com/aton-project/aton/ssa/a.go:1.1,2.1 3 7
github.com/aton-project/aton/tools/judge/graphdiff/a.go:1.1,2.1 100 0
`
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	blocks, err := profile.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if got := table(&b, blocks, false); got != 75 {
		t.Errorf("%g %%, want 75", got)
	}
	if got := b.String(); !strings.Contains(got, "75.0          1           4 ./ssa") || !strings.Contains(got, "0.0        100         100 left out") {
		t.Errorf("table:\n%s", got)
	}
}

func TestProfileErrors(t *testing.T) {
	for _, text := range []string{"a.go:1.1,2.1 3", "a.go:1.1,2.1 x 0"} {
		name := filepath.Join(t.TempDir(), "profile")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := profile.Read(name); err == nil {
			t.Errorf("%q is read as a profile", text)
		}
	}
	if _, err := profile.Read("nosuch"); err == nil {
		t.Error("a profile that is not there is read")
	}
}

// What is left out is there: a package that is renamed is counted until somebody decides again.
func TestLeftOut(t *testing.T) {
	for pkg, why := range leftOut {
		if _, err := os.Stat(filepath.Join("..", "..", "..", filepath.FromSlash(pkg))); err != nil {
			t.Errorf("%s (%s): %v", pkg, why, err)
		}
	}
}
