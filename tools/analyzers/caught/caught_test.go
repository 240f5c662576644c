package caught_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/aton-project/aton/tools/analyzers/caught"
)

func TestAnalyzer(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), caught.Analyzer, "panics")
}
