package api

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write api.txt anew")

// TestAPI: the exported API is the one that api.txt lists. A line that goes is a change that programs notice: CHANGELOG.md says so.
func TestAPI(t *testing.T) {
	lines, err := Lines("../../..", Promised...)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "pkg github.com/aton-project/aton", "pkg aton")
	if *update {
		if err := os.WriteFile("api.txt", []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text, "\n")); diff != "" {
		t.Errorf("the API is not the one of api.txt (go test ./tools/analyzers/api -update writes it; say in CHANGELOG.md what goes):\n%s", diff)
	}
}

// TestPromise: COMPATIBILITY.md makes its promise for these packages.
func TestPromise(t *testing.T) {
	page, err := os.ReadFile("../../../COMPATIBILITY.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Promised {
		name := strings.TrimPrefix(p, "./")
		if name == "." {
			name = "aton"
		}
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("COMPATIBILITY.md does not name %s", name)
		}
	}
}

// TestExamples: each of these packages has an example.
func TestExamples(t *testing.T) {
	for _, p := range Promised {
		files, err := filepath.Glob(filepath.Join("../../..", p, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), "\nfunc Example") && strings.Contains(string(text), "// Output:")
		}
		if !found {
			t.Errorf("%s has no example", p)
		}
	}
}
