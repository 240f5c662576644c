// Package all is the list of passes: the only place that knows them all.
package all

import (
	"slices"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/canonicalize"
	"github.com/aton-project/aton/passes/checkconverted"
	"github.com/aton-project/aton/passes/checksizes"
	"github.com/aton-project/aton/passes/cse"
	"github.com/aton-project/aton/passes/dce"
	"github.com/aton-project/aton/passes/differentiate"
	"github.com/aton-project/aton/passes/dropunused"
	"github.com/aton-project/aton/passes/floattype"
	"github.com/aton-project/aton/passes/foldconstants"
	"github.com/aton-project/aton/passes/freeze"
	"github.com/aton-project/aton/passes/guard"
	"github.com/aton-project/aton/passes/indexing"
	"github.com/aton-project/aton/passes/infertypes"
	"github.com/aton-project/aton/passes/inline"
	"github.com/aton-project/aton/passes/legalize"
	"github.com/aton-project/aton/passes/lift"
	"github.com/aton-project/aton/passes/lower"
	"github.com/aton-project/aton/passes/nameinitializers"
	"github.com/aton-project/aton/passes/ortfusion"
	"github.com/aton-project/aton/passes/rename"
	"github.com/aton-project/aton/passes/setdomains"
	"github.com/aton-project/aton/passes/shapes"
	"github.com/aton-project/aton/passes/simplify"
	"github.com/aton-project/aton/passes/specialize"
	"github.com/aton-project/aton/passes/unroll"
	"github.com/aton-project/aton/passes/upgrade"
	"github.com/aton-project/aton/passes/userrules"
	"github.com/aton-project/aton/ssa"
)

// Dialects gives meaning to everything that passes may meet.
func Dialects() []ssa.Dialect {
	return slices.Concat(aten.Dialects(), []ssa.Dialect{prim.Dialect{}, onnx.Dialect{}}, onnx.Domains())
}

// Set is what pipeline strings may name, with the built-in operators.
var Set = New(nil)

// New makes a set whose passes know the operators of a table; nil stands for the built-in ones.
func New(table *aten.Table) *passes.Set {
	folding, index, infer, low, spec, repl := foldconstants.New(table), indexing.New(table), infertypes.New(table), lower.New(table), specialize.New(table), userrules.New(table)
	return &passes.Set{
		Passes: []*passes.Pass{
			&nameinitializers.Pass,
			&canonicalize.Pass,
			&floattype.Pass,
			&ortfusion.Pass,
			&cse.Pass,
			&dce.Pass,
			&checkconverted.Pass,
			&checksizes.Pass,
			&differentiate.Pass,
			&dropunused.Pass,
			&folding,
			&freeze.Pass,
			&guard.Pass,
			&index,
			&infer,
			&inline.Pass,
			&legalize.Pass,
			&lift.Pass,
			&low,
			&lower.Raw,
			&rename.Pass,
			&setdomains.Pass,
			&upgrade.Pass,
			&repl,
			&shapes.Pass,
			&simplify.Pass,
			&spec,
			&unroll.Pass,
		},
		Named:   pipelines,
		Renamed: renamed,
	}
}
