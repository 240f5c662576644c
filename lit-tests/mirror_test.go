package littests

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/passes/all"
)

// noFolder are the families that text cannot show, with the reason.
var noFolder = map[string]string{
	"pt2e":    "its operators get their schemas from the torch.export archive that has them; frontend/export tests them",
	"torchao": "as pt2e; tools/lib/cases has recorded programs",
}

// TestMirror insists that the tree of text tests is that of the code: a folder with tests for each pass and each family of operators,
// and no folder for what is not there. The families are the headings of dialects/aten/OPS.md.
func TestMirror(t *testing.T) {
	want := map[string]bool{}
	for _, p := range slices.Concat(all.Set.Passes, legalize.Passes()) {
		want["passes/"+p.Name] = true
	}
	text, err := os.ReadFile("../dialects/aten/OPS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(text), -1) {
		family := strings.ReplaceAll(strings.ToLower(m[1]), " ", "_")
		if family == "coverage" || family == "evaluated" { // no families: a table, and what specialize evaluates
			continue
		}
		if noFolder[family] == "" {
			want["aten/"+family] = true
		}
	}
	if len(want) < 50 {
		t.Errorf("only %d passes and families are known", len(want))
	}
	for folder := range want {
		files, err := filepath.Glob(filepath.Join(folder, "*.ir"))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 {
			t.Errorf("lit-tests/%s has no test: a reader sees there what the pass or the operators do", folder)
		}
	}
	for _, parent := range []string{"passes", "aten"} {
		folders, err := os.ReadDir(parent)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range folders {
			if folder := parent + "/" + f.Name(); !want[folder] {
				t.Errorf("lit-tests/%s stands for nothing: there is no pass and no family of that name", folder)
			}
		}
	}
}

// TestBeside insists that the checks of a function stand beside it: a file of several functions has no block of checks for all of
// them before the first one.
func TestBeside(t *testing.T) {
	function := regexp.MustCompile(`^(graph|func)\b`)
	label := regexp.MustCompile(`^# [A-Z0-9_-]+-LABEL:`)
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".ir") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		labels := 0 // since the last function
		for n, line := range strings.Split(string(text), "\n") {
			switch {
			case function.MatchString(line):
				labels = 0
			case label.MatchString(line):
				if labels++; labels > 3 { // a file may have several prefixes
					t.Errorf("%s:%d: the checks of %d functions stand together; put each above its function", path, n+1, labels)
					labels = 0
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
