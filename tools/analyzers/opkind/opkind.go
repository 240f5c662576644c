// Package opkind checks that operators which the code names exist.
package opkind

import (
	_ "embed"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/passes/inspect"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
	"github.com/aton-project/aton/tools/analyzers/internal/typename"
)

// Analyzer reports operators that no schema declares and that undeclared.txt does not list either.
//
// An operator is named by a constant of type ssa.Kind ("aten::relu"), by the first argument of a method Op or OpA of
// the builders of ONNX operators ("Relu"), or in the From and To of a rewrite.Rule. An attribute that is given to the method
// of an operator, such as onnx.Axis(1) in b.Softmax(x, onnx.Axis(1)), must be one of those that its schema declares. Namespaces without schemas, such
// as a user's own, are not checked. Test files are not checked either: they name unknown operators on purpose.
var Analyzer = &analysis.Analyzer{
	Name:     "opkind",
	Doc:      "opkind checks that operators named in the code have a schema",
	Requires: []*analysis.Analyzer{inspect.Analyzer},
	Run:      run,
}

//go:embed undeclared.txt
var undeclared string

// exceptions are the kinds of undeclared.txt.
func exceptions() []ssa.Kind {
	var out []ssa.Kind
	for line := range strings.Lines(undeclared) {
		if kind, _, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(kind, "#") {
			out = append(out, ssa.Kind(kind))
		}
	}
	return out
}

// declared lists the kinds that a schema or the prim dialect has.
func declared() []ssa.Kind {
	kinds := slices.Concat(aten.Kinds(), prim.Kinds(), prim.Undeclared())
	for _, name := range onnx.Names() {
		kinds = append(kinds, onnxKind(name))
	}
	return kinds
}

// known has the kinds that may be named, by namespace.
var known = sync.OnceValue(func() map[string]map[ssa.Kind]bool {
	out := map[string]map[ssa.Kind]bool{}
	for _, k := range append(declared(), exceptions()...) {
		ns := k.Namespace()
		if out[ns] == nil {
			out[ns] = map[ssa.Kind]bool{}
		}
		out[ns][k] = true
	}
	return out
})

// onnxKind is the kind of an operator in the spelling of the ONNX schemas, which leaves the default domain out.
func onnxKind(name string) ssa.Kind {
	if strings.Contains(name, "::") {
		return ssa.Kind(name)
	}
	return ssa.Kind(onnx.Namespace + "::" + name)
}

func run(pass *analysis.Pass) (any, error) {
	in := pass.ResultOf[inspect.Analyzer].(*inspector.Inspector)
	types := []ast.Node{(*ast.BasicLit)(nil), (*ast.CallExpr)(nil), (*ast.CompositeLit)(nil)}
	in.Preorder(types, func(n ast.Node) {
		if strings.HasSuffix(pass.Fset.Position(n.Pos()).Filename, "_test.go") {
			return
		}
		switch n := n.(type) {
		case *ast.BasicLit:
			literal(pass, n)
		case *ast.CallExpr:
			call(pass, n)
		case *ast.CompositeLit:
			rule(pass, n)
		}
	})
	return nil, nil
}

// check reports a kind that its namespace does not have.
func check(pass *analysis.Pass, at token.Pos, k ssa.Kind) {
	kinds := known()[k.Namespace()]
	if kinds == nil || kinds[k] {
		return
	}
	var names []string
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		names = append(names, string(k))
	}
	pass.Reportf(at, "no schema declares the operator %s%s", k, diag.DidYouMean(string(k), names))
}

// literal checks a string literal of type ssa.Kind.
func literal(pass *analysis.Pass, n *ast.BasicLit) {
	tv := pass.TypesInfo.Types[n]
	if !typename.Is(tv.Type, "ssa", "Kind") || tv.Value == nil {
		return
	}
	if k := ssa.Kind(constant.StringVal(tv.Value)); whole.MatchString(string(k)) {
		check(pass, n.Pos(), k)
	}
}

var (
	whole  = regexp.MustCompile(`^[A-Za-z_][\w.]*::\w+$`)
	inText = regexp.MustCompile(`[A-Za-z_][\w.]*::\w+`)
)

// call checks the name that is given to a builder of ONNX operators.
func call(pass *analysis.Pass, n *ast.CallExpr) {
	f, ok := n.Fun.(*ast.SelectorExpr)
	if !ok || len(n.Args) == 0 {
		return
	}
	method, ok := pass.TypesInfo.Uses[f.Sel].(*types.Func)
	if !ok || method.Signature().Recv() == nil {
		return
	}
	recv := method.Signature().Recv().Type()
	if !typename.Is(recv, "dialects/onnx", "Builder") && !typename.Is(recv, "dialects/aten", "Lowering") {
		return
	}
	if name := method.Name(); name != "Op" && name != "OpA" {
		schema := onnx.SchemaOf(onnxKind(name))
		if schema == nil { // MaxPoolN is MaxPool with several results
			schema = onnx.SchemaOf(onnxKind(strings.TrimSuffix(name, "N")))
		}
		if schema != nil {
			attributes(pass, n, schema)
		}
		return
	}
	if v := pass.TypesInfo.Types[n.Args[0]].Value; v != nil && v.Kind() == constant.String {
		check(pass, n.Args[0].Pos(), onnxKind(constant.StringVal(v)))
	}
}

// attributes checks the attributes that the method of an operator is given.
func attributes(pass *analysis.Pass, n *ast.CallExpr, schema *onnx.OpSchema) {
	for _, arg := range n.Args {
		made, ok := arg.(*ast.CallExpr)
		if !ok {
			continue
		}
		name := made.Fun
		if sel, ok := name.(*ast.SelectorExpr); ok {
			name = sel.Sel
		}
		id, ok := name.(*ast.Ident)
		if !ok {
			continue
		}
		f, ok := pass.TypesInfo.Uses[id].(*types.Func)
		if !ok || f.Pkg() == nil || f.Pkg().Name() != "onnx" || !typename.Is(pass.TypesInfo.Types[arg].Type, "ssa", "Attr") || !token.IsExported(f.Name()) {
			continue
		}
		if !slices.ContainsFunc(schema.Attrs, func(a onnx.AttrSchema) bool {
			return strings.EqualFold(strings.ReplaceAll(a.Name, "_", ""), f.Name())
		}) {
			pass.Reportf(arg.Pos(), "%s has no attribute %s", schema.Name, f.Name())
		}
	}
}

// rule checks the patterns of a rewrite.Rule.
func rule(pass *analysis.Pass, n *ast.CompositeLit) {
	if !typename.Is(pass.TypesInfo.Types[n].Type, "ssa/rewrite", "Rule") {
		return
	}
	for _, e := range n.Elts {
		kv, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		field, ok := kv.Key.(*ast.Ident)
		v := pass.TypesInfo.Types[kv.Value].Value
		if !ok || field.Name != "From" && field.Name != "To" || v == nil {
			continue
		}
		for _, k := range inText.FindAllString(constant.StringVal(v), -1) {
			check(pass, kv.Value.Pos(), ssa.Kind(k))
		}
	}
}
