package docname_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/aton-project/aton/tools/analyzers/docname"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), docname.Analyzer, "docs")
}
