package opkind

import (
	"slices"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), Analyzer, "kinds")
}

// TestUndeclared insists that the list has nothing that a schema declares, and nothing twice.
func TestUndeclared(t *testing.T) {
	list, all := exceptions(), declared()
	if len(list) == 0 {
		t.Fatal("the list is empty")
	}
	for i, k := range list {
		if slices.Contains(all, k) {
			t.Errorf("%s is declared: take it out of undeclared.txt", k)
		}
		if slices.Contains(list[:i], k) {
			t.Errorf("%s is listed twice", k)
		}
	}
}
