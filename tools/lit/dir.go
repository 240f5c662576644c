package lit

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files lists the test files in and below a folder: those whose name ends in .ir, in the order of their paths. A folder named fixtures has inputs of
// tests, and no tests.
func Files(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "fixtures" && path != dir:
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".ir"):
			files = append(files, path)
		}
		return nil
	})
	return files, err
}

// TestDir runs each test file in and below a folder as a parallel subtest with the path of the file, without .ir, as its name. A folder
// without tests fails, and so does a -run that fits no file.
//
// An AUTOCHECK block that differs from what the commands print fails too. It is rewritten instead if the test binary has a flag -update that is set:
//
//	var update = flag.Bool("update", false, "rewrite AUTOCHECK blocks")
func TestDir(t *testing.T, dir string, commands map[string]Command) {
	t.Helper()
	files, err := Files(dir)
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
	runner := &Runner{Commands: commands}
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

func runFile(t *testing.T, runner *Runner, path string, update bool) {
	test, err := Parse(path)
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

// Check runs a test. The error of one that fails also shows how an update would change its AUTOCHECK blocks. With update the commands run for these
// blocks only, and Check rewrites the file where they differ, and reports that.
func (r *Runner) Check(t *Test, scratch string, update bool) (changed bool, err error) {
	var failed error
	if !update {
		if failed = r.Run(t, scratch); failed == nil {
			return false, nil
		}
	}
	text, err := r.Update(t, scratch)
	switch {
	case err != nil || text == t.Text:
		return false, errors.Join(failed, err)
	case update:
		return true, os.WriteFile(t.Path, []byte(text), 0o666)
	}
	return false, errors.Join(failed, fmt.Errorf("%s: an update would change the AUTOCHECK block (-now +then):\n%s", t.Path, cmp.Diff(strings.Split(t.Text, "\n"), strings.Split(text, "\n"))))
}
