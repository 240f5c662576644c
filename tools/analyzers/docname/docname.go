// Package docname checks that exported names have comments, and that these begin with the name.
package docname

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzer reports doc comments of exported functions, methods, types, constants and variables that begin with another
// word than the name. An article before the name is fine, and so is "Deprecated:". The comment of a group in
// parentheses is free. The comment of a thing that is not exported may begin as it likes, but not with the name of
// another one of the package: such comments have survived a renaming. An exported name without a comment is reported, but for
// the methods Error, String and Unwrap, whose meaning the standard library tells, and for the members of a group that has one.
// Generated files, tests and commands are not checked.
var Analyzer = &analysis.Analyzer{
	Name: "docname",
	Doc:  "docname checks that exported names have comments that begin with the name",
	Run:  run,
}

func run(pass *analysis.Pass) (any, error) {
	for _, f := range pass.Files {
		if ast.IsGenerated(f) || strings.HasSuffix(pass.Fset.Position(f.Pos()).Filename, "_test.go") {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				check(pass, d.Doc, d.Name)
				if d.Doc == nil && !told[d.Name.Name] && (d.Recv == nil || ofExported(d.Recv)) {
					missing(pass, d.Name)
				}
			case *ast.GenDecl:
				group(pass, d)
			}
		}
	}
	return nil, nil
}

// told are the methods whose meaning the standard library tells.
var told = map[string]bool{"Error": true, "String": true, "Unwrap": true}

// ofExported reports that a method is one of an exported type.
func ofExported(receiver *ast.FieldList) bool {
	t := receiver.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}

// missing reports an exported name without a comment. Those of a command have no readers.
func missing(pass *analysis.Pass, name *ast.Ident) {
	if name.IsExported() && pass.Pkg.Name() != "main" {
		pass.Reportf(name.Pos(), "%s is exported and has no comment", name.Name)
	}
}

// group checks a declaration of types, constants or variables.
func group(pass *analysis.Pass, d *ast.GenDecl) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			check(pass, docOf(d, s.Doc), s.Name)
			if d.Doc == nil && s.Doc == nil && s.Comment == nil {
				missing(pass, s.Name)
			}
		case *ast.ValueSpec:
			check(pass, docOf(d, s.Doc), s.Names...)
			if d.Doc == nil && s.Doc == nil && s.Comment == nil {
				missing(pass, s.Names[0])
			}
		}
	}
}

// docOf is the comment of a single declaration, or of a member of a group.
func docOf(d *ast.GenDecl, member *ast.CommentGroup) *ast.CommentGroup {
	if d.Lparen == token.NoPos {
		return d.Doc
	}
	return member
}

var article = regexp.MustCompile(`^(A|An|The) `)

// check reports a comment that begins with none of the names, of which one at least is exported.
func check(pass *analysis.Pass, doc *ast.CommentGroup, names ...*ast.Ident) {
	text := article.ReplaceAllString(doc.Text(), "")
	first := word(text)
	var exported *ast.Ident
	for _, n := range names {
		if n.Name == first {
			return
		}
		if exported == nil && n.IsExported() {
			exported = n
		}
	}
	if exported == nil {
		if len(names) == 1 && pass.Pkg.Scope().Lookup(first) != nil {
			pass.Reportf(doc.Pos(), "the comment on %s begins with the name of something else, %s", names[0].Name, first)
		}
		return
	}
	if first == "" || strings.HasPrefix(text, "Deprecated:") {
		return
	}
	pass.Reportf(doc.Pos(), "the comment on %s begins with %q; it should begin with the name", exported.Name, first)
}

var leading = regexp.MustCompile(`^\S+`)

// word is the first word of a text, without what punctuation follows it.
func word(text string) string {
	w := leading.FindString(text)
	w, _ = strings.CutSuffix(w, "'s")
	return strings.TrimRight(w, ",.:;")
}
