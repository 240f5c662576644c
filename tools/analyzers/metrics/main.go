// Metrics prints figures of the source that a change should not make worse: lines written by hand by room, the longest function, the type
// with the most methods, in how many lists the operators of PyTorch are named, and the arrows between the files of passes/specialize that run back.
//
//	go run ./tools/analyzers/metrics            # the figures
//	go run ./tools/analyzers/metrics -lists     # each operator that stands in more than two lists, and where
//	go run ./tools/analyzers/metrics -sentences 60 -seed 1   # sentences of comments, messages and pages, drawn by the seed, for a reader to judge
//
// It reports, and never fails because of a figure.
package main

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

func main() {
	lists := flag.Bool("lists", false, "print each operator that stands in more than two lists, and where")
	sentences := flag.Int("sentences", 0, "print so many sentences of comments, messages and pages instead")
	seed := flag.Uint64("seed", 1, "choose other sentences")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	run := func() error { return report(os.Stdout, root, *lists) }
	if *sentences > 0 {
		run = func() error { return draw(os.Stdout, root, *sentences, *seed) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "metrics:", err)
		os.Exit(1)
	}
}

// source is a file that is written by hand.
type source struct {
	path  string // from the root, with slashes
	lines int
	ast   *ast.File // nil for Python
}

func report(w io.Writer, root string, spelled bool) error {
	fset := token.NewFileSet()
	files, err := read(fset, root)
	if err != nil {
		return err
	}
	lists := listsOf(files)
	if spelled {
		return lists.print(w)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	total := 0
	for _, r := range rooms {
		n := 0
		for _, f := range files {
			if roomOf(f.path) == r {
				n += f.lines
			}
		}
		if r != "tools (Python)" {
			total += n
		}
		fmt.Fprintf(t, "lines by hand, %s\t%d\n", r, n)
	}
	fmt.Fprintf(t, "lines by hand, all Go\t%d\n", total)
	function, length := longest(fset, files)
	fmt.Fprintf(t, "longest function\t%d lines, %s\n", length, function)
	typ, methods := mostMethods(files)
	fmt.Fprintf(t, "most methods of a type\t%d, %s\n", methods, typ)
	few, all := lists.atMost(2)
	fmt.Fprintf(t, "operators in at most two lists\t%d of %d (%.1f %%)\n", few, all, 100*float64(few)/float64(max(all, 1)))
	few, _ = lists.atMost(3)
	fmt.Fprintf(t, "operators in four or more lists\t%d\n", all-few)
	back, arrows, err := arrowsBack(root, "./passes/specialize")
	if err != nil {
		return err
	}
	fmt.Fprintf(t, "arrows back in passes/specialize\t%d of %d\n", back, arrows)
	return t.Flush()
}

// rooms are the parts of the project, and the folders in them; the first that fits counts.
var rooms = []string{"dialects/aten", "dialects/onnx", "dialects", "ssa", "frontend", "passes/specialize", "passes", "backend", "codegen", "tools (Go)", "tools (Python)", "root"}

func roomOf(file string) string {
	for _, r := range rooms {
		if strings.HasPrefix(file, r+"/") {
			return r
		}
	}
	switch {
	case strings.HasSuffix(file, ".py"):
		return "tools (Python)"
	case strings.Contains(file, "/"):
		return "tools (Go)"
	}
	return "root"
}

// read gives the files in Go and Python that are written by hand: no tests, no generated files, no fixtures.
func read(fset *token.FileSet, root string) (files []source, err error) {
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if file != root && (name == "testdata" || name == "out" || name == "bin" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		goFile, python := strings.HasSuffix(name, ".go"), strings.HasSuffix(name, ".py")
		if !goFile && !python || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "test_") {
			return nil
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		f := source{path: filepath.ToSlash(rel), lines: strings.Count(string(text), "\n")}
		if goFile {
			if f.ast, err = parser.ParseFile(fset, f.path, text, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				return err
			}
			if ast.IsGenerated(f.ast) {
				return nil
			}
		}
		files = append(files, f)
		return nil
	})
	return files, err
}

// longest is the function with the most lines.
func longest(fset *token.FileSet, files []source) (name string, lines int) {
	for _, f := range files {
		if f.ast == nil {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				if n := fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1; n > lines {
					name, lines = fmt.Sprintf("%s in %s", d.Name.Name, f.path), n
				}
			}
		}
	}
	return name, lines
}

// mostMethods is the type with the most methods.
func mostMethods(files []source) (name string, most int) {
	count := map[string]int{}
	for _, f := range files {
		if f.ast == nil {
			continue
		}
		for _, d := range f.ast.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
				t := path.Dir(f.path) + "." + receiver(d.Recv.List[0].Type)
				if count[t]++; count[t] > most {
					name, most = t, count[t]
				}
			}
		}
	}
	return name, most
}

// receiver is the name of the type of a receiver.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
