package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	span = regexp.MustCompile("`[^`\\n]*`") // code in a line
)

// TestLinks follows the links of all pages to files of the repository.
func TestLinks(t *testing.T) {
	root := ".."
	pages, links := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			switch d.Name() {
			case ".git", ".venv", "out", "node_modules":
				return fs.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		pages++
		for i, part := range strings.Split(string(text), "```") {
			if i%2 == 1 {
				continue // code
			}
			for _, m := range link.FindAllStringSubmatch(span.ReplaceAllString(part, ""), -1) {
				target, _, _ := strings.Cut(m[1], "#")
				if target == "" || strings.Contains(target, "://") {
					continue
				}
				links++
				if _, err := os.Stat(filepath.Join(filepath.Dir(path), filepath.FromSlash(target))); err != nil {
					t.Errorf("%s: the link %s leads nowhere", path, m[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if pages < 20 || links < 100 {
		t.Errorf("%d pages with %d links", pages, links)
	}
}

// named are files and folders in tables and text of the page on the architecture.
var named = regexp.MustCompile("`([a-z_]+/[A-Za-z0-9_./-]+)`")

// TestArchitecture looks for the files that the page on the architecture names.
func TestArchitecture(t *testing.T) {
	text, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := named.FindAllStringSubmatch(string(text), -1)
	for _, m := range found {
		if _, err := os.Stat(filepath.Join("..", filepath.FromSlash(m[1]))); err != nil {
			t.Errorf("architecture.md: there is no %s", m[1])
		}
	}
	if len(found) < 20 {
		t.Errorf("the page names %d files", len(found))
	}
}
