// Package lit runs text tests as subtests of a Go test. Package script runs one test file; package lit is all that links package testing.
package lit

import (
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/tools/lib/lit/script"
)

// Command is a program that RUN lines may call.
type Command = script.Command

// TestDir runs each test file in and below a folder as a parallel subtest with the path of the file, without .ir, as its name. A folder
// without tests fails, and so does a -run that fits no file.
//
// An AUTOCHECK block that differs from what the commands print fails too. It is rewritten instead if the test binary has a flag -update that is set:
//
//	var update = flag.Bool("update", false, "rewrite AUTOCHECK blocks")
func TestDir(t *testing.T, dir string, commands map[string]Command) {
	t.Helper()
	files, err := script.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatalf("%s has no .ir files", dir)
	}
	update := false
	if f := flag.Lookup("update"); f != nil {
		update = f.Value.String() == "true"
	}
	runner := &script.Runner{Commands: commands}
	ran := 0
	for _, path := range files {
		name, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.ToSlash(name), ".ir"), func(t *testing.T) {
			ran++ // before Parallel, files take turns
			t.Parallel()
			runFile(t, runner, path, update)
		})
	}
	if ran == 0 {
		t.Fatalf("none of %d .ir files has a name that fits -run", len(files))
	}
}

func runFile(t *testing.T, runner *script.Runner, path string, update bool) {
	test, err := script.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := runner.Check(test, t.TempDir(), update)
	if err != nil {
		t.Fatal(err)
	}
	if changed {
		t.Logf("%s: rewritten", path)
	}
}
