package arch

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestHelp insists that `make help` has a line for every target that is no file.
func TestHelp(t *testing.T) {
	text, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	phony := regexp.MustCompile(`(?m)^\.PHONY: (.*)$`).FindSubmatch(text)
	if phony == nil {
		t.Fatal("the Makefile has no .PHONY")
	}
	for name := range strings.FieldsSeq(string(phony[1])) {
		if !regexp.MustCompile(`(?m)^` + name + `:[^#\n]* ## \S`).Match(text) {
			t.Errorf("the target %s has no ## and a line for make help", name)
		}
	}
}

// TestFolders: a command that runs in another folder does not name Python by a path from this one.
func TestFolders(t *testing.T) {
	text, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		moves := strings.Contains(line, "\tcd ") || strings.Contains(line, "$(ALONE) -C ")
		if moves && regexp.MustCompile(`\$\((BUILDER|PYTHON)\)`).MatchString(line) {
			t.Errorf("a relative path behind a change of the folder: %s", line)
		}
	}
}
