package diagnostics

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// identifiers finds those in the code: constants for a field ID of a diagnostic, for a parameter called id, and for a
// variable called id, with the place of each. It reads the files without types, which takes a tenth of the time.
func identifiers(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		switch d.Name() {
		case "testdata", ".git", "out":
			return fs.SkipDir
		case "codegen", "analyzers": // buffers and kernels have IDs of their own
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root && path != filepath.Join(root, "tools") {
			return fs.SkipDir // a module outside of the workspace
		}
		return scan(path, found)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// scan finds the identifiers in the package of a folder.
func scan(folder string, found map[string]string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return err
	}
	fset := token.NewFileSet()
	var parsed []*ast.File
	consts := map[string]string{} // string constants by name
	takes := map[string]int{}     // which argument of a function is the identifier
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, file, nil, 0)
		if err != nil {
			return err
		}
		parsed = append(parsed, f)
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i, v := range n.Values {
					if text, ok := literal(v); ok && len(n.Names) == len(n.Values) {
						consts[n.Names[i].Name] = text
					}
				}
			case *ast.FuncDecl:
				at := 0
				for _, field := range n.Type.Params.List {
					for _, name := range field.Names {
						// the importers' parameters of that name are names of Python
						if name.Name == "id" && !strings.Contains(filepath.ToSlash(folder), "/frontend/") {
							takes[n.Name.Name] = at
						}
						at++
					}
				}
			}
			return true
		})
	}
	note := func(e ast.Expr) {
		id, ok := literal(e)
		if name, is := e.(*ast.Ident); is {
			id, ok = consts[name.Name]
		}
		if ok && id != "" {
			found[id] = fset.Position(e.Pos()).String()
		}
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "ID" {
					note(n.Value)
				}
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if name, ok := l.(*ast.Ident); ok && name.Name == "id" && len(n.Lhs) == len(n.Rhs) {
						note(n.Rhs[i])
					}
				}
			case *ast.CallExpr:
				name := ""
				switch f := n.Fun.(type) {
				case *ast.Ident:
					name = f.Name
				case *ast.SelectorExpr:
					name = f.Sel.Name
				}
				if at, ok := takes[name]; ok && at < len(n.Args) {
					note(n.Args[at])
				}
			}
			return true
		})
	}
	return nil
}

func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(l.Value)
	return s, err == nil
}

// TestPages insists that each identifier in the code has a page and that each page is of an identifier, and on what a page has.
func TestPages(t *testing.T) {
	found := identifiers(t)
	if len(found) < 40 {
		t.Errorf("only %d identifiers are found in the code", len(found))
	}
	for id, at := range found {
		if _, ok := Page(id); !ok {
			t.Errorf("%s: there is no page docs/diagnostics/%s.md", at, id)
		}
	}
	for _, id := range IDs() {
		if found[id] == "" {
			t.Errorf("%s.md: no message has this identifier", id)
		}
		text, _ := Page(id)
		if Title(id) == "" || strings.HasPrefix(Title(id), "#") {
			t.Errorf("%s.md begins with something else than its identifier and a sentence", id)
		}
		for _, part := range []string{"\n## Why\n", "\n## What to do\n"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s.md has no part %q", id, strings.TrimSpace(part))
			}
		}
	}
}
