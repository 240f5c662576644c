// Command graphdiff compares what aton imports of an archive with the graph
// that PyTorch prints of it.
//
//	graphdiff [-v] FOLDER...
//
// Each folder holds cases: folders with model.pt and graph.ir, which is
// print(torch.jit.load("model.pt").inlined_graph). PyTorch cleans graphs up
// while it compiles and inlines them; the same is done here to ours before the
// comparison, which is up to names and the places of constants.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sort"
	"strings"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/frontend/jit"
	"github.com/aton-project/aton/ssa"
)

// folded is the verdict on graphs that agree only after folding.
const folded = "folded"

func main() {
	verbose := flag.Bool("v", false, "print both graphs of every case that differs")
	flag.Parse()
	groups := map[string][]string{}
	n, ok, same := 0, 0, 0
	p := &places{}
	for _, root := range flag.Args() {
		dirs := []string{root}
		if _, err := os.Stat(filepath.Join(root, "model.pt")); err != nil {
			files, _ := filepath.Glob(filepath.Join(root, "*", "model.pt")) // the pattern is a good one
			dirs = nil
			for _, f := range files {
				dirs = append(dirs, filepath.Dir(f))
			}
		}
		for _, dir := range dirs {
			n++
			d := try(dir, *verbose, p)
			if d == "" {
				ok++
				continue
			}
			if d == folded {
				same++
				continue
			}
			groups[d] = append(groups[d], dir)
		}
	}
	var ks []string
	for k := range groups {
		ks = append(ks, k)
	}
	sort.Slice(ks, func(i, j int) bool {
		a, b := len(groups[ks[i]]), len(groups[ks[j]])
		return a > b || a == b && ks[i] < ks[j]
	})
	for _, k := range ks {
		fmt.Printf("%d %s\n   %s\n", len(groups[k]), k, groups[k][0])
	}
	fmt.Printf("%d of %d graphs are the same, %d more are when both are folded\n", ok, n, same)
	fmt.Printf("%d of %d operators are at the same line\n", p.same, p.all)
	if ok+same != n {
		os.Exit(1)
	}
}

// try compares one case and gives the first difference.
func try(dir string, verbose bool, p *places) (difference string) {
	defer func() {
		if r := recover(); r != nil {
			difference = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
		}
	}()
	m, err := jit.Load(filepath.Join(dir, "model.pt"), jit.Options{})
	if err != nil {
		return err.Error()
	}
	if err := ssa.Verify(m); err != nil {
		return "verify: " + err.Error()
	}
	if d := fixpoint(m); d != "" {
		return "import: " + d
	}
	text, err := os.ReadFile(filepath.Join(dir, "graph.ir"))
	if err != nil {
		return err.Error()
	}
	dialects := append(aten.Dialects(), prim.Dialect{})
	theirs, err := ssa.Parse(string(text), "graph.ir", dialects...)
	if err != nil {
		return err.Error()
	}
	aten.BindSchemas(theirs)
	if d := fixpoint(theirs); d != "" {
		return "graph.ir: " + d
	}
	t := &torch{m: m, done: map[*ssa.Func]bool{}}
	if err := t.prepare(m.Main()); err != nil {
		return "inline: " + err.Error()
	}
	for _, x := range []*ssa.Module{m, theirs} {
		normalize(x.Main())
		for removeDead(x, x.Main().Body) {
		}
		sortOutputs(x.Main())
	}
	if err := ssa.Verify(m); err != nil {
		return "verify: " + err.Error()
	}
	d := compare(m.Main(), theirs.Main(), p)
	if d != "" {
		// PyTorch folds more or less, by release; folded to the end, both must agree
		for _, x := range []*ssa.Module{m, theirs} {
			optimizeFully(x, x.Main())
			normalize(x.Main())
			for removeDead(x, x.Main().Body) {
			}
			sortOutputs(x.Main())
		}
		if d = compare(m.Main(), theirs.Main(), p); d == "" {
			return folded
		}
	}
	if d != "" && verbose {
		fmt.Printf("%s: %s\n--- aton\n%s\n--- PyTorch\n%s\n", dir, d, m.Main(), theirs.Main())
	}
	return d
}

// normalize drops what says nothing: with statements, which inlining resolves,
// and casts of values that have the type already.
func normalize(f *ssa.Func) {
	for o := range f.Body.AllOps() {
		if o.Kind == "prim::unchecked_cast" && ssa.IsSubtype(o.Operand(0).Type, o.Result(0).Type) {
			o.Replace(o.Operand(0))
			continue
		}
		if (o.Kind == "prim::Enter" || o.Kind == "prim::Exit") && !o.Result(0).HasUses() {
			o.Erase()
		}
	}
}

// fixpoint checks that printing, parsing and printing again gives the same text.
func fixpoint(m *ssa.Module) string {
	once := ssa.Print(m)
	again, err := ssa.Parse(once, "printed", m.Dialects...)
	if err != nil {
		return err.Error()
	}
	twice := ssa.Print(again)
	if once == twice {
		return ""
	}
	a, b := strings.Split(once, "\n"), strings.Split(twice, "\n")
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return "print, parse, print changes: " + a[i]
		}
	}
	return "print, parse, print adds text"
}
