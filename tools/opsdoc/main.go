// Command opsdoc writes dialects/aten/OPS.md, the page of all operators, and
// passes/specialize/kinds.txt, the operators that specialize evaluates. It runs
// in dialects/aten, by go generate.
package main

import (
	_ "embed"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/ssa"
)

// tiers are the operators that are asked for, by tier: 1 the documented list and
// torchvision's models, 2 the rest of what torch.onnx 1.13 converts, 3 that of
// PyTorch's newer exporter.
//
//go:embed tiers.tsv
var tiers string

func main() {
	if err := run("../.."); err != nil {
		fmt.Fprintln(os.Stderr, "opsdoc: "+err.Error())
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := generate(root)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// generate gives the files by name.
func generate(root string) (map[string]string, error) {
	kinds, err := evaluated(filepath.Join(root, "passes/specialize"))
	if err != nil {
		return nil, err
	}
	names, err := familyNames(filepath.Join(root, "dialects/aten/table.go"))
	if err != nil {
		return nil, err
	}
	page, err := page(names, kinds)
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	front, err := insert(string(readme), page)
	return map[string]string{"dialects/aten/OPS.md": page, "README.md": front, "passes/specialize/kinds.txt": strings.Join(kinds, "\n") + "\n"}, err
}

// The README repeats the table of coverage between these lines.
const coverageBegin, coverageEnd = "<!-- coverage: make gen -->\n", "<!-- end of coverage -->\n"

// insert puts the table of the page into the README.
func insert(readme, page string) (string, error) {
	_, rest, ok := strings.Cut(page, "## Coverage\n\n")
	table, _, ok2 := strings.Cut(rest, "\n\n")
	head, tail, ok3 := strings.Cut(readme, coverageBegin)
	_, tail, ok4 := strings.Cut(tail, coverageEnd)
	if !ok || !ok2 || !ok3 || !ok4 {
		return "", errors.New("README.md has no place for the table of coverage")
	}
	return head + coverageBegin + table + "\n" + coverageEnd + tail, nil
}

// evaluated finds the operators in the cases of a package's switches.
func evaluated(dir string) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return nil, err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CaseClause:
				for _, e := range n.List {
					if s := literal(e); strings.Contains(s, "::") {
						found[s] = true
					}
				}
			case *ast.BinaryExpr:
				if s := literal(n.Y); n.Op == token.EQL && strings.Contains(s, "::") {
					found[s] = true
				}
			case *ast.SwitchStmt: // of the names of aten's operators on containers and numbers
				if !namesKind(n.Tag) {
					break
				}
				for _, c := range n.Body.List {
					for _, e := range c.(*ast.CaseClause).List {
						if s := literal(e); s != "" && aten.Schemas(ssa.Kind("aten::"+s)) != nil {
							found["aten::"+s] = true
						}
					}
				}
			}
			return true
		})
	}
	var out []string
	for k := range found {
		out = append(out, k)
	}
	slices.Sort(out)
	return out, nil
}

// literal is the string that an expression spells, "" if it is none.
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

// namesKind reports the tags o.Kind.Name(), kind.Name() and name.
func namesKind(tag ast.Expr) bool {
	switch t := tag.(type) {
	case *ast.CallExpr:
		sel, ok := t.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Name" && len(t.Args) == 0
	case *ast.Ident:
		return t.Name == "name"
	}
	return false
}

// familyNames gives the variables that the function families lists, in order.
func familyNames(file string) ([]string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "families" {
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if c, ok := n.(*ast.CompositeLit); ok {
					for _, e := range c.Elts {
						if id, ok := e.(*ast.Ident); ok {
							out = append(out, id.Name)
						}
					}
				}
				return true
			})
		}
	}
	return out, nil
}

func page(names, evaluated []string) (string, error) {
	families := aten.Families()
	if len(names) != len(families) {
		return "", fmt.Errorf("%d families, of which %d have names", len(families), len(names))
	}
	table := aten.NewTable()
	byEvaluation := map[string]bool{}
	for _, k := range evaluated {
		byEvaluation[k] = true
	}
	byEvaluation["prim::fork"] = true // a call to passes/inline
	var b strings.Builder
	b.WriteString(`# Operators

Generated by tools/opsdoc (make gen) from the operators' table and their schemas.

Opset is the lowest at which an entry holds; arguments may ask for more, which the error says. An in-place form
(aten::relu_) goes with its operator. Operators that need no entry of their own are at the end.

## Coverage

| tier | operators | convert | not expressible in ONNX | not converted |
| --- | --- | --- | --- | --- |
`)
	b.WriteString(summary(table, byEvaluation))
	for i, kinds := range families {
		fmt.Fprintf(&b, "\n## %s\n\n| operator | overloads | opset | notes |\n| --- | --- | --- | --- |\n", title(names[i]))
		for _, k := range kinds {
			d, _ := table.Lookup(k, 0)
			opset, notes := fmt.Sprint(max(d.Since, table.LowestOpset(k, 0))), d.Doc
			if d.Why != "" {
				opset, notes = "-", d.Why
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", k, overloads(k), opset, strings.NewReplacer("|", `\|`, "\n", " ").Replace(notes))
		}
	}
	b.WriteString("\n## Evaluated\n\nThese are on containers, numbers, types and shapes, or are forms of others: specialize gives them their meaning.\n\n")
	var plain []string
	for _, k := range evaluated {
		if d, _ := table.Lookup(ssa.Kind(k), 0); d.Since == 0 {
			plain = append(plain, k)
		}
	}
	b.WriteString(strings.Join(plain, ", ") + "\n")
	return b.String(), nil
}

func summary(table *aten.Table, evaluated map[string]bool) string {
	var count [4][3]int
	var missing [4][]string
	for _, line := range strings.Split(strings.TrimSpace(tiers), "\n") {
		op, tier, _ := strings.Cut(line, "\t")
		n, err := strconv.Atoi(tier)
		if err != nil || n < 1 || n > 3 {
			continue
		}
		d, _ := table.Lookup(ssa.Kind(op), 0)
		if d.Since == 0 {
			d, _ = table.Lookup(ssa.Kind(functional(op)), 0)
		}
		switch {
		case d.Since > 0 && d.Why == "" || evaluated[op]:
			count[n][0]++
		case d.Why != "":
			count[n][1]++
		default:
			count[n][2]++
			missing[n] = append(missing[n], op)
		}
	}
	var b strings.Builder
	for n := 1; n <= 3; n++ {
		c := count[n]
		fmt.Fprintf(&b, "| %d | %d | %d | %d | %d |\n", n, c[0]+c[1]+c[2], c[0], c[1], c[2])
	}
	for n := 1; n <= 3; n++ {
		if len(missing[n]) > 0 {
			fmt.Fprintf(&b, "\nNot converted of tier %d: %s\n", n, strings.Join(missing[n], ", "))
		}
	}
	return b.String()
}

// functional is the operator of which another is the in-place form: relu of relu_, __and__ of __iand__.
func functional(op string) string {
	if rest, special := strings.CutPrefix(op, "aten::__i"); special && strings.HasSuffix(rest, "__") {
		return "aten::__" + rest
	}
	return strings.TrimSuffix(op, "_")
}

func overloads(k ssa.Kind) string {
	var out []string
	for _, s := range aten.Schemas(k) {
		name := s.Overload
		if name == "" {
			name = "default"
		}
		out = append(out, name)
	}
	return strings.Join(out, ", ")
}

// title makes words of a variable's name.
func title(name string) string {
	var b strings.Builder
	for i, r := range name {
		switch {
		case i == 0:
			b.WriteString(strings.ToUpper(string(r)))
		case r >= 'A' && r <= 'Z':
			b.WriteString(" " + strings.ToLower(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
