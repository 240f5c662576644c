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
