package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
)

// An operator stands in a list where a declaration names it to say something of it: as a key or an element of a composite literal, in a case
// of a switch, in a comparison, or among the words of a string. A declaration is one list, however often it names the operator. Calls that build an operator
// are no lists. The tools are left out, and so is the eager evaluator: it is the judge of the rest, and shares no table with it on purpose.

// lists has the declarations that name an operator.
type lists map[string][]string

func (l lists) atMost(n int) (few, all int) {
	for _, places := range l {
		if all++; len(places) <= n {
			few++
		}
	}
	return few, all
}

// print writes the operators that stand in more than two lists.
func (l lists) print(w io.Writer) error {
	for _, name := range slices.SortedFunc(maps.Keys(l), func(a, b string) int {
		if n := len(l[b]) - len(l[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	}) {
		if len(l[name]) > 2 {
			if _, err := fmt.Fprintf(w, "%d %s: %s\n", len(l[name]), name, strings.Join(l[name], ", ")); err != nil {
				return err
			}
		}
	}
	return nil
}

// listsOf finds the lists in which the operators with a row in dialects/aten stand.
func listsOf(files []source) lists {
	out := lists{}
	for _, family := range aten.Families() {
		for _, k := range family {
			if k.Namespace() == "aten" {
				out[k.Name()] = nil
			}
		}
	}
	for _, f := range files {
		if f.ast == nil || strings.HasPrefix(f.path, "tools/") || strings.HasPrefix(f.path, "backend/eager/") {
			continue
		}
		bare := f.ast.Name.Name == "aten" || imports(f.ast, "dialects/aten") || strings.HasPrefix(f.path, "passes/specialize/internal/")
		for _, d := range f.ast.Decls {
			named := map[string]bool{}
			n := namer{out, bare, named}
			ast.Inspect(d, n.visit)
			for name := range named {
				out[name] = append(out[name], f.path+":"+declared(d))
			}
		}
	}
	return out
}

func imports(f *ast.File, path string) bool {
	return slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return strings.HasSuffix(strings.Trim(i.Path.Value, `"`), path) })
}

// declared is the name of what a declaration declares.
func declared(d ast.Decl) string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return d.Name.Name
	case *ast.GenDecl:
		for _, s := range d.Specs {
			if v, ok := s.(*ast.ValueSpec); ok {
				return v.Names[0].Name
			}
		}
	}
	return "?"
}

// namer collects the operators that a declaration names.
type namer struct {
	known lists
	bare  bool // names without a namespace may be operators
	named map[string]bool
}

func (n namer) visit(at ast.Node) bool {
	switch at := at.(type) {
	case *ast.KeyValueExpr:
		if field, ok := at.Key.(*ast.Ident); ok && field.Name == "Doc" { // "degrees to radians" is a sentence
			return false
		}
	case *ast.CompositeLit:
		var names []string
		for _, e := range at.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if _, field := kv.Key.(*ast.Ident); field {
					continue
				}
				e = kv.Key
			}
			if s, ok := text(e); ok {
				names = append(names, strings.Fields(s)...)
			}
		}
		n.add(names)
	case *ast.SwitchStmt:
		var names []string
		for _, c := range at.Body.List {
			for _, e := range c.(*ast.CaseClause).List {
				if s, ok := text(e); ok && strings.HasPrefix(s, "aten::") { // others are values of arguments, such as "sum"
					names = append(names, s)
				}
			}
		}
		n.add(names)
	case *ast.BinaryExpr:
		if at.Op == token.EQL || at.Op == token.NEQ {
			for _, e := range []ast.Expr{at.X, at.Y} {
				if s, ok := text(e); ok && strings.HasPrefix(s, "aten::") {
					n.add([]string{s})
				}
			}
		}
	case *ast.BasicLit:
		if s, ok := text(at); ok {
			if words := strings.Fields(s); len(words) > 1 {
				n.add(words)
			}
		}
	}
	return true
}

// add takes the operators among names. Names without a namespace count where most of at least two are operators.
func (n namer) add(names []string) {
	var bare []string
	for _, name := range names {
		if rest, ok := strings.CutPrefix(name, "aten::"); ok {
			rest, _, _ = strings.Cut(rest, ".")
			n.mark(rest)
		} else {
			bare = append(bare, name)
		}
	}
	if !n.bare || len(bare) < 2 {
		return
	}
	known := 0
	for _, name := range bare {
		if n.base(name) != "" {
			known++
		}
	}
	if known*5 >= len(bare)*4 {
		for _, name := range bare {
			n.mark(name)
		}
	}
}

// base is the operator that has a row, of which name may be the form that writes; empty if there is none.
func (n namer) base(name string) string {
	if _, ok := n.known[name]; ok {
		return name
	}
	if rest, ok := strings.CutSuffix(name, "_"); ok {
		if _, ok := n.known[rest]; ok {
			return rest
		}
	}
	return ""
}

func (n namer) mark(name string) {
	if b := n.base(name); b != "" {
		n.named[b] = true
	}
}

func text(e ast.Expr) (string, bool) {
	b, ok := e.(*ast.BasicLit)
	if !ok || b.Kind != token.STRING {
		return "", false
	}
	s, err := strconv.Unquote(b.Value)
	return s, err == nil
}
