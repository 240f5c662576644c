// Package all is the list of passes: the only place that knows them all.
package all

import (
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/cse"
	"github.com/aton-project/aton/passes/dce"
)

// Set is what pipeline strings may name.
var Set = passes.Set{
	Passes: []*passes.Pass{
		&cse.Pass,
		&dce.Pass,
	},
	Named:  pipelines,
	Orders: orders,
}
