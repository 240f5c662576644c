// The mutate command changes a package in small ways, one at a time, and says which changes no test notices.
//
//	mutate -n 60 -seed 1 -tests ./lit-tests,./passes/all ./passes/simplify ...
//
// A change negates a condition, moves a bound (< becomes <=), drops a statement that assigns or calls, or drops one half of an
// and or an or. All changes of a package are compiled into one program, where a variable of the environment chooses
// one: a run costs the tests' time, not the compiler's. Which are tried is chosen by -seed. The sources stay as they are.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

type options struct {
	n       int
	seed    int64
	tests   string
	timeout time.Duration
	jobs    int
}

// mutant is one change.
type mutant struct {
	id    int
	file  string
	line  int
	what  string
	apply func(id int) // changes the syntax tree so that the change is there when its number is chosen

	killed bool
}

func main() {
	var o options
	flag.IntVar(&o.n, "n", 60, "the changes that are tried in each package")
	flag.Int64Var(&o.seed, "seed", 1, "chooses the changes")
	flag.StringVar(&o.tests, "tests", "", "packages whose tests are run besides the package's own, in this order, with commas")
	flag.DurationVar(&o.timeout, "timeout", 2*time.Minute, "for one run of a package's tests; a change that takes longer is noticed")
	flag.IntVar(&o.jobs, "jobs", 2, "runs at a time")
	flag.Parse()
	for _, dir := range flag.Args() {
		all, tried, err := run(o, dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "mutate:", err)
			os.Exit(1)
		}
		var survivors []string
		for _, m := range tried {
			if !m.killed {
				survivors = append(survivors, fmt.Sprintf("- %s:%d: %s\n", filepath.ToSlash(filepath.Clean(m.file)), m.line, m.what))
			}
		}
		fmt.Printf("%s: %d of %d tried changes are noticed (there are %d)\n%s", dir, len(tried)-len(survivors), len(tried), all, strings.Join(survivors, ""))
	}
}

func run(o options, dir string) (int, []*mutant, error) {
	fset := token.NewFileSet()
	files := map[string]*ast.File{}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return 0, nil, err
	}
	var all []*mutant
	pkg := ""
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			return 0, nil, err
		}
		if ast.IsGenerated(f) {
			continue
		}
		f.Comments = nil // they would be printed at wrong places
		f.Doc = nil
		files[name], pkg = f, f.Name.Name
		all = append(all, sites(fset, name, f)...)
	}
	if len(all) == 0 {
		return 0, nil, fmt.Errorf("%s: nothing to change", dir)
	}
	order := rand.New(rand.NewSource(o.seed)).Perm(len(all))
	var tried []*mutant
	for _, i := range order[:min(o.n, len(order))] {
		tried = append(tried, all[i])
	}
	slices.SortFunc(tried, func(a, b *mutant) int {
		if c := strings.Compare(a.file, b.file); c != 0 {
			return c
		}
		return a.line - b.line
	})
	// inner expressions first: what an outer change copies has them already
	for i, m := range tried {
		m.id = i + 1
	}
	for _, m := range slices.Backward(tried) {
		m.apply(m.id)
	}
	work, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return 0, nil, err
	}
	defer os.RemoveAll(work)
	binaries, err := build(fset, files, pkg, dir, work, o)
	if err != nil {
		return 0, nil, err
	}
	if out, ok := test(binaries, 0, o.timeout); !ok {
		return 0, nil, fmt.Errorf("%s: the tests fail without a change:\n%s", dir, out)
	}
	queue := make(chan *mutant)
	var wg sync.WaitGroup
	for range o.jobs {
		wg.Go(func() {
			for m := range queue {
				_, ok := test(binaries, m.id, o.timeout)
				m.killed = !ok
			}
		})
	}
	for _, m := range tried {
		queue <- m
	}
	close(queue)
	wg.Wait()
	return len(all), tried, nil
}

// binary is a test program and the folder that it runs in.
type binary struct{ path, dir string }

// chosen is added to the package: it says whether a change is the one to make.
const chosen = `package %s

import "os"

var mutateChosen = os.Getenv("ATON_MUTANT")

func mutateIs(n string) bool { return n == mutateChosen }
`

// build writes the changed files and compiles the tests with them in place of the package's.
func build(fset *token.FileSet, files map[string]*ast.File, pkg, dir, work string, o options) ([]binary, error) {
	replace := map[string]string{}
	put := func(name string, text []byte) error {
		at, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		to := filepath.Join(work, filepath.Base(name))
		replace[at] = to
		return os.WriteFile(to, text, 0o666)
	}
	for name, f := range files {
		var b bytes.Buffer
		if err := format.Node(&b, fset, f); err != nil {
			return nil, err
		}
		if err := put(name, b.Bytes()); err != nil {
			return nil, err
		}
	}
	if err := put(filepath.Join(dir, "zz_mutate_chosen.go"), fmt.Appendf(nil, chosen, pkg)); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	overlay := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o666); err != nil {
		return nil, err
	}
	var binaries []binary
	for i, p := range append([]string{dir}, strings.Split(o.tests, ",")...) {
		if p == "" || i > 0 && filepath.Clean(p) == filepath.Clean(dir) {
			continue
		}
		if tests, err := filepath.Glob(filepath.Join(p, "*_test.go")); err != nil || tests == nil {
			continue
		}
		path := filepath.Join(work, fmt.Sprintf("test%d", i))
		if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", path, "./"+filepath.Clean(p)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%s with the changes of %s: %w\n%s", p, dir, err, out)
		}
		binaries = append(binaries, binary{path, p})
	}
	if binaries == nil {
		return nil, fmt.Errorf("%s has no tests; name others by -tests", dir)
	}
	return binaries, nil
}

// test runs the programs until one fails.
func test(binaries []binary, id int, timeout time.Duration) (string, bool) {
	for _, b := range binaries {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		c := exec.CommandContext(ctx, b.path, "-test.failfast")
		c.Dir = b.dir
		c.Env = append(os.Environ(), fmt.Sprintf("ATON_MUTANT=%d", id))
		out, err := c.CombinedOutput()
		cancel()
		if err != nil {
			return string(out), false
		}
	}
	return "", true
}

// sites lists the changes of a file.
func sites(fset *token.FileSet, name string, f *ast.File) []*mutant {
	var out []*mutant
	add := func(n ast.Node, what string, apply func(id int)) {
		out = append(out, &mutant{file: name, line: fset.Position(n.Pos()).Line, what: what, apply: apply})
	}
	show := func(n any) string {
		var b strings.Builder
		if err := printer.Fprint(&b, token.NewFileSet(), n); err != nil {
			return "?"
		}
		s := strings.Join(strings.Fields(b.String()), " ")
		if r := []rune(s); len(r) > 80 {
			s = string(r[:80]) + "..."
		}
		return "`" + s + "`"
	}
	condition := func(at *ast.Expr) {
		old := show(*at)
		add(*at, "the condition "+old+" is negated", func(id int) {
			*at = &ast.BinaryExpr{X: &ast.ParenExpr{X: *at}, Op: token.NEQ, Y: is(id)}
		})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok == token.VAR // types and constants do nothing
		case *ast.IfStmt:
			condition(&n.Cond)
		case *ast.ForStmt:
			if n.Cond != nil {
				condition(&n.Cond)
			}
		case *ast.BlockStmt:
			statements(n.List, add, show)
		case *ast.CaseClause:
			statements(n.Body, add, show)
		case *ast.ParenExpr, *ast.CallExpr, *ast.ReturnStmt, *ast.AssignStmt:
			operands(n, add, show)
		case *ast.BinaryExpr:
			operands(n, add, show)
		}
		return true
	})
	return out
}

func is(id int) ast.Expr {
	return &ast.CallExpr{Fun: ast.NewIdent("mutateIs"), Args: []ast.Expr{&ast.BasicLit{Kind: token.STRING, Value: fmt.Sprintf("%q", fmt.Sprint(id))}}}
}

// statements has a change for each statement that assigns or calls: it is not done.
func statements(list []ast.Stmt, add func(ast.Node, string, func(int)), show func(any) string) {
	for i, s := range list {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt:
			if c, ok := s.X.(*ast.CallExpr); ok {
				if f, ok := c.Fun.(*ast.Ident); ok && f.Name == "panic" {
					continue // the compiler counts on it
				}
			}
		case *ast.IncDecStmt:
		default:
			continue
		}
		add(s, show(s)+" is not done", func(id int) {
			list[i] = &ast.IfStmt{Cond: &ast.UnaryExpr{Op: token.NOT, X: is(id)}, Body: &ast.BlockStmt{List: []ast.Stmt{list[i]}}}
		})
	}
}

// operands has the changes of comparisons and of and and or that stand in a node.
func operands(n ast.Node, add func(ast.Node, string, func(int)), show func(any) string) {
	var slots []*ast.Expr
	list := func(es []ast.Expr) {
		for i := range es {
			slots = append(slots, &es[i])
		}
	}
	switch n := n.(type) {
	case *ast.ParenExpr:
		slots = append(slots, &n.X)
	case *ast.CallExpr:
		list(n.Args)
	case *ast.ReturnStmt:
		list(n.Results)
	case *ast.AssignStmt:
		list(n.Rhs)
	case *ast.BinaryExpr:
		slots = append(slots, &n.X, &n.Y)
	}
	for _, at := range slots {
		b, ok := (*at).(*ast.BinaryExpr)
		if !ok {
			continue
		}
		old := show(b)
		switch b.Op {
		case token.LSS, token.GTR, token.LEQ, token.GEQ:
			add(b, "equal sides of "+old+" give the opposite", func(id int) {
				*at = &ast.ParenExpr{X: &ast.BinaryExpr{X: &ast.ParenExpr{X: *at}, Op: token.NEQ, Y: &ast.ParenExpr{X: &ast.BinaryExpr{
					X: is(id), Op: token.LAND, Y: &ast.BinaryExpr{X: b.X, Op: token.EQL, Y: b.Y}}}}}
			})
		case token.LAND:
			add(b, "the right side of "+old+" is taken as true", func(id int) {
				b.Y = &ast.ParenExpr{X: &ast.BinaryExpr{X: is(id), Op: token.LOR, Y: &ast.ParenExpr{X: b.Y}}}
			})
		case token.LOR:
			add(b, "the right side of "+old+" is taken as false", func(id int) {
				b.Y = &ast.ParenExpr{X: &ast.BinaryExpr{X: &ast.UnaryExpr{Op: token.NOT, X: is(id)}, Op: token.LAND, Y: &ast.ParenExpr{X: b.Y}}}
			})
		}
	}
}
