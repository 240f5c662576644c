// Package analyzers lists the project's own checks of its Go code, in the form of go/analysis. `make lint` runs them
// through cmd/atonvet.
package analyzers

import (
	"golang.org/x/tools/go/analysis"

	"github.com/aton-project/aton/tools/analyzers/caught"
	"github.com/aton-project/aton/tools/analyzers/deftest"
	"github.com/aton-project/aton/tools/analyzers/docname"
	"github.com/aton-project/aton/tools/analyzers/opkind"
)

// All lists the analyzers. A new one is added here and nowhere else.
func All() []*analysis.Analyzer {
	return []*analysis.Analyzer{caught.Analyzer, deftest.Analyzer, docname.Analyzer, opkind.Analyzer}
}
