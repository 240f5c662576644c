// Package caught checks that no panic can leave the project by surprise.
package caught

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports panics that input might reach. A panic is fine where
//
//   - its value has a type that a recover of the same package asks for: it is how a deep parser or lowering gives up,
//   - it is in a function that recovers, which passes on what is not its own,
//   - its type says in its doc comment that it is what others panic with, and so tells its callers to recover,
//   - the function's doc comment says when it panics: a contract that its callers keep,
//   - a comment on its line says why it cannot happen.
//
// Generated files, tests and the project's tools are not checked.
var Analyzer = &analysis.Analyzer{
	Name:      "caught",
	Doc:       "caught checks that panics are recovered, documented or explained",
	Run:       run,
	FactTypes: []analysis.Fact{new(thrown)},
}

// thrown is the fact that a type's doc comment tells of panics.
type thrown struct{}

// AFact makes thrown a fact.
func (*thrown) AFact() {}

// String is what tests compare.
func (*thrown) String() string { return "thrown" }

func run(pass *analysis.Pass) (any, error) {
	if strings.Contains(pass.Pkg.Path(), "/tools/") {
		return nil, nil
	}
	var files []*ast.File
	for _, f := range pass.Files {
		if !ast.IsGenerated(f) && !strings.HasSuffix(pass.Fset.Position(f.Pos()).Filename, "_test.go") {
			files = append(files, f)
		}
	}
	c := &checker{pass: pass, asked: map[string]bool{}}
	for _, f := range files {
		c.types(f)
		ast.Inspect(f, c.recovers)
	}
	for _, f := range files {
		c.explained = map[int]bool{}
		for _, g := range f.Comments {
			for _, line := range g.List {
				c.explained[pass.Fset.Position(line.Pos()).Line] = true
			}
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && (fn.Body == nil || strings.Contains(fn.Doc.Text(), "panic") || handles(fn.Body)) {
				continue
			}
			ast.Inspect(d, c.panics)
		}
	}
	return nil, nil
}

type checker struct {
	pass      *analysis.Pass
	asked     map[string]bool // types that a recover of the package asks for
	explained map[int]bool    // lines of the file with a comment
}

// types notes those whose doc comment tells of panics.
func (c *checker) types(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.TYPE {
			continue
		}
		for _, s := range g.Specs {
			t := s.(*ast.TypeSpec)
			doc := t.Doc
			if doc == nil {
				doc = g.Doc
			}
			if strings.Contains(doc.Text(), "panic") {
				c.pass.ExportObjectFact(c.pass.TypesInfo.Defs[t.Name], new(thrown))
			}
		}
	}
}

// handles reports a body with a call of recover.
func handles(body ast.Node) bool {
	found := false
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if ok {
			if name, ok := call.Fun.(*ast.Ident); ok && name.Name == "recover" {
				found = true
			}
		}
		return !found
	})
	return found
}

// recovers notes the types that a function with a recover asks for.
func (c *checker) recovers(n ast.Node) bool {
	fn, ok := n.(*ast.FuncDecl)
	if !ok || fn.Body == nil || !handles(fn.Body) {
		return true
	}
	ask := func(e ast.Expr) {
		if t := c.pass.TypesInfo.Types[e].Type; t != nil {
			c.asked[t.String()] = true
		}
	}
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSwitchStmt:
			for _, s := range n.Body.List {
				for _, e := range s.(*ast.CaseClause).List {
					ask(e)
				}
			}
		case *ast.TypeAssertExpr:
			if n.Type != nil {
				ask(n.Type)
			}
		}
		return true
	})
	return true
}

func (c *checker) panics(n ast.Node) bool {
	if fn, ok := n.(*ast.FuncLit); ok && handles(fn.Body) {
		return false
	}
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return true
	}
	name, ok := call.Fun.(*ast.Ident)
	if !ok || c.pass.TypesInfo.Uses[name] != types.Universe.Lookup("panic") {
		return true
	}
	t := c.pass.TypesInfo.Types[call.Args[0]].Type
	if c.asked[t.String()] || c.isThrown(t) || c.explained[c.pass.Fset.Position(call.Pos()).Line] {
		return true
	}
	c.pass.Reportf(call.Args[0].Pos(), "nobody recovers a panic with %s: recover it, return an error, or say when it panics (doc comment) or why it cannot (on the line)",
		types.TypeString(t, types.RelativeTo(c.pass.Pkg)))
	return true
}

func (c *checker) isThrown(t types.Type) bool {
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := t.(*types.Named)
	return ok && c.pass.ImportObjectFact(n.Obj(), new(thrown))
}
