// Package littests runs the .ir files of this folder. One file: go test ./lit-tests -run 'Lit/passes/cse'.
package littests

import (
	"flag"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	atonopt "github.com/aton-project/aton/tools/aton-opt/cmd"
	aton "github.com/aton-project/aton/tools/aton/cmd"
	"github.com/aton-project/aton/tools/filecheck"
	"github.com/aton-project/aton/tools/lit"
)

var update = flag.Bool("update", false, "rewrite the blocks of AUTOCHECK files; checks that people wrote stay")

func TestLit(t *testing.T) {
	runner := &lit.Runner{Commands: map[string]lit.Command{
		"FileCheck": filecheck.Main,
		"cat":       lit.Cat,
		"aton-opt": func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			// an internal error shows at the pass that caused it, and leaves nothing behind
			return atonopt.Main(append([]string{"--verify-each", "--verify-roundtrip", "--repro="}, args...), stdin, stdout, stderr)
		},
		"aton": func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return aton.Main(append(args, "--verify-each", "--repro="), stdin, stdout, stderr)
		},
	}}
	files, ran := 0, 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".ir") || strings.Contains(path, "fixtures") {
			return err
		}
		files++
		t.Run(strings.TrimSuffix(filepath.ToSlash(path), ".ir"), func(t *testing.T) {
			ran++ // before Parallel, files take turns
			t.Parallel()
			runFile(t, runner, path)
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 {
		t.Fatal("no .ir files found")
	}
	if ran == 0 {
		t.Fatalf("none of %d .ir files has a name that fits -run", files)
	}
}

func runFile(t *testing.T, runner *lit.Runner, path string) {
	test, err := lit.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	failed := error(nil)
	if !*update {
		if failed = runner.Run(test, t.TempDir()); failed == nil {
			return
		}
		t.Error(failed)
	}
	text, err := runner.Update(test, t.TempDir())
	switch {
	case err != nil:
		t.Error(err)
	case text == test.Text:
	case *update:
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: rewritten", path)
	default:
		t.Errorf("make update would change the AUTOCHECK block (-now +then):\n%s", cmp.Diff(strings.Split(test.Text, "\n"), strings.Split(text, "\n")))
	}
}
