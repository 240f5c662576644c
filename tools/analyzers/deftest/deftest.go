// Package deftest checks that each operator that is lowered has a test of its numbers.
package deftest

import (
	_ "embed"
	"go/ast"
	"go/constant"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/aton-project/aton/tools/analyzers/internal/typename"
)

// Analyzer reports rows of an aten.Defs whose operator no recorded program has. tested.txt lists those that programs have; the
// test of tools/lib/cases writes it. untested.txt lists the others that are known, by reason. Rows that only say why an operator
// is refused have no numbers to test.
var Analyzer = &analysis.Analyzer{
	Name:     "deftest",
	Doc:      "deftest checks that operators which are lowered are compared with PyTorch's numbers",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      run,
}

//go:embed tested.txt
var tested string

//go:embed untested.txt
var untested string

var known = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, k := range append(strings.Fields(tested), exceptions()...) {
		m[k] = true
	}
	return m
})

// exceptions are the operators of untested.txt.
func exceptions() []string {
	var all []string
	for line := range strings.Lines(untested) {
		if !strings.HasPrefix(line, "#") {
			all = append(all, strings.Fields(line)...)
		}
	}
	return all
}

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	in.Preorder([]ast.Node{(*ast.CompositeLit)(nil)}, func(n ast.Node) {
		table := n.(*ast.CompositeLit)
		if strings.HasSuffix(pass.Fset.Position(n.Pos()).Filename, "_test.go") || !typename.Is(pass.TypesInfo.Types[table].Type, "dialects/aten", "Defs") {
			return
		}
		for _, e := range table.Elts {
			row, ok := e.(*ast.KeyValueExpr)
			if !ok || refused(row.Value) {
				continue
			}
			if v := pass.TypesInfo.Types[row.Key].Value; v != nil && !known()[constant.StringVal(v)] {
				pass.Reportf(row.Pos(), "no recorded program has %s: add one to tools/maker/operators/operators.py, or a reason to tools/analyzers/deftest/untested.txt", constant.StringVal(v))
			}
		}
	})
	return nil, nil
}

// refused reports a row that only says why its operator is not lowered.
func refused(row ast.Expr) bool {
	lit, ok := row.(*ast.CompositeLit)
	if !ok {
		return false
	}
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if name, ok := kv.Key.(*ast.Ident); ok && name.Name == "Why" {
				return true
			}
		}
	}
	return false
}
