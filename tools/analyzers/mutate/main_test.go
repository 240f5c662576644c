package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A package whose tests look at the sign alone: what makes another sign is noticed, what makes another number is not.
func TestRun(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module small\n\ngo 1.24\n",
		"a/a.go": `package a

// Half is half of n, or 0.
func Half(n int) int {
	r := 0
	if n > 0 && n != 4 {
		r = n / 2
	}
	r += 0
	return r
}
`,
		"a/a_test.go": `package a

import "testing"

func TestHalf(t *testing.T) {
	if Half(6) <= 0 || Half(-6) != 0 {
		t.Error("the sign is wrong")
	}
}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	all, tried, err := run(options{n: 100, seed: 1, timeout: time.Minute, jobs: 2}, "./a")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, m := range tried {
		got[m.what] = m.killed
	}
	want := map[string]bool{
		"the condition `n > 0 && n != 4` is negated": true,
		"`r = n / 2` is not done":                    true,
		"`r += 0` is not done":                       false,
		"equal sides of `n > 0` give the opposite":   false,
	}
	if diff := cmp.Diff(want, got); diff != "" || all != len(tried) {
		t.Errorf("%d of %d changes, noticed (-want +got):\n%s", len(tried), all, diff)
	}
	if _, _, err := run(options{n: 1}, "./nosuch"); err == nil || !strings.Contains(err.Error(), "nothing to change") {
		t.Errorf("a package that is not there: %v", err)
	}
}
