package deftest

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), Analyzer, "rows")
}

// TestLists insists that an operator stands in one list, once, and that aton lowers it.
func TestLists(t *testing.T) {
	programs, kinds := strings.Fields(tested), aten.NewTable().Kinds()
	if len(programs) < 800 {
		t.Errorf("%d operators are in programs", len(programs))
	}
	list := exceptions()
	for i, k := range list {
		switch {
		case slices.Contains(programs, k):
			t.Errorf("a program has %s: take it out of untested.txt", k)
		case slices.Contains(list[:i], k):
			t.Errorf("%s is in untested.txt twice", k)
		case !slices.ContainsFunc(kinds, func(have ssa.Kind) bool { return string(have) == k }):
			t.Errorf("there is no row for %s: take it out of untested.txt", k)
		}
	}
}
