package script

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/aton-project/aton/passes"
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
	return false, errors.Join(failed, fmt.Errorf("%s: an update would change the AUTOCHECK block (-now +then):\n%s", t.Path, passes.Diff(strings.Split(t.Text, "\n"), strings.Split(text, "\n"), 3)))
}
