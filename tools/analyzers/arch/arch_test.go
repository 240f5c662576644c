// Package arch keeps the imports one-way: frontend -> ssa -> passes -> backend. Its test compares the
// imports that go/packages finds with the table below; a new package needs a line here, and thereby a decision.
package arch

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/tools/go/packages"
)

const module = "github.com/aton-project/aton"

// rule says what a package may import of this module. "x/..." is x and all below it. The first rule
// that fits a package holds. Packages outside the module and the standard library are in `outside`.
type rule struct{ pkg, may, outside string }

var table = []rule{
	{"ssa/diag", "", ""},
	{"ssa/tensor", "", ""},
	{"ssa/sym", "", ""},
	{"ssa", "ssa/diag ssa/tensor ssa/sym", ""},
	{"ssa/rewrite", "ssa ssa/diag ssa/pattern", ""},
	{"ssa/...", "ssa ssa/diag ssa/tensor ssa/sym", ""},

	{"dialects/prim", "ssa/...", ""},
	{"dialects/onnx", "ssa/... dialects/prim internal/formula internal/naming", ""},
	{"dialects/onnx/...", "ssa/... dialects/prim dialects/onnx/... internal/formula", ""},
	// the one arrow between the big dialects: lowering sits with the op
	{"dialects/aten/...", "ssa/... dialects/prim dialects/onnx/... dialects/aten/... internal/formula internal/naming", ""},

	{"passes", "ssa/... internal/align", ""},
	{"passes/all", "ssa/... dialects/... passes/...", ""},
	// the rooms of specialize: each knows those above it
	{"passes/specialize/internal/journal", "", ""},
	{"passes/specialize/internal/py", "ssa/... dialects/aten internal/python passes/specialize/internal/journal", ""},
	{"passes/specialize/internal/layout", "ssa/...", ""},
	{"passes/specialize/internal/heap", "ssa/... passes/specialize/internal/journal passes/specialize/internal/py passes/specialize/internal/layout", ""},
	{"passes/specialize/internal/form", "ssa/... passes/specialize/internal/journal passes/specialize/internal/py passes/specialize/internal/heap", ""},
	{"passes/specialize/internal/view", "ssa/... dialects/aten passes/specialize/internal/py passes/specialize/internal/layout passes/specialize/internal/heap", ""},
	{"passes/*", "ssa/... dialects/... passes internal/formula internal/naming internal/python internal/align", ""}, // never another pass

	{"frontend", "ssa/... dialects/prim dialects/aten/... dialects/onnx frontend/... backend/onnxfile", ""},
	{"frontend/spec", "ssa/...", ""},
	// the importers share readers, but know nothing of each other
	{"frontend/jit/...", "ssa/... dialects/prim dialects/aten/... internal/python frontend/... !frontend !frontend/export/...", ""},
	{"frontend/export/...", "ssa/... dialects/prim dialects/aten/... frontend/... !frontend !frontend/jit/...", ""},
	{"frontend/...", "ssa/... dialects/prim dialects/aten/... frontend/... !frontend !frontend/jit/... !frontend/export/...", ""},

	{"backend/internal/filetest", "", ""},
	{"backend/atomicfile", "", ""},
	{"backend/onnxfile/...", "ssa/... dialects/prim dialects/onnx/... backend/onnxfile/... backend/atomicfile", "google.golang.org/protobuf"},
	{"backend/interp/...", "ssa/... dialects/prim dialects/onnx/... dialects/aten/... backend/interp/... internal/random", ""},
	{"backend/surgery", "ssa/... dialects/onnx passes/all", ""},
	// the judge of the passes knows none of them
	{"backend/eager/...", "ssa/... dialects/prim dialects/onnx/... dialects/aten/... backend/interp backend/eager/...", ""},

	{"codegen/gpu/index", "ssa/sym", ""},
	{"codegen/gpu/kir", "ssa/sym", ""},
	{"codegen/gpu/approx", "codegen/gpu/kir", ""},
	{"codegen/gpu/internal/gputest", "ssa/tensor codegen/gpu/kir codegen/gpu/sim codegen/gpu/ptx", ""},
	{"codegen/gpu/internal/...", "codegen/gpu/internal/...", ""},
	{"codegen/gpu/emit", "ssa/... dialects/onnx internal/formula internal/random codegen/gpu/index codegen/gpu/kir codegen/gpu/approx", ""},
	// from here on kernels are LLVM IR or PTX
	{"codegen/gpu/llvm", "codegen/gpu/kir", "github.com/llir/llvm"},
	{"codegen/gpu/isa", "ssa/tensor codegen/gpu/kir", "golang.org/x/sys/cpu"},
	{"codegen/gpu/ptx", "ssa/tensor codegen/gpu/kir codegen/gpu/isa", "github.com/llir/llvm"},
	{"codegen/gpu/sim", "ssa/tensor codegen/gpu/kir codegen/gpu/isa codegen/gpu/internal/cfg", ""},
	{"codegen/gpu/driver", "", "github.com/ebitengine/purego"},
	{"codegen/gpu/cuda", "codegen/gpu/...", ""},
	{"codegen/gpu/fuse", "ssa/... dialects/onnx codegen/gpu/index codegen/gpu/emit", ""},
	{"codegen/gpu/legalize", "ssa/... dialects/onnx/... passes codegen/gpu/emit", ""},
	{"codegen/gpu/plan", "ssa/... dialects/onnx/... backend/interp codegen/gpu/... !codegen/gpu/exec/... !codegen/gpu/driver !codegen/gpu/sim", ""},
	{"codegen/gpu/...", "ssa/... dialects/onnx/... backend/interp codegen/gpu/...", "github.com/llir/llvm"},

	// running and comparing: on the host without a line of code for GPUs, but for what a difference is
	{"verify", "ssa/... dialects/... passes backend/interp backend/eager backend/onnxfile backend/atomicfile frontend/weights codegen/gpu/bound", ""},
	{"verify/device", "ssa/... backend/interp codegen/gpu/... verify !codegen/gpu/driver !codegen/gpu/cuda", ""},

	// many models: the queue is in aton-batch alone, so that aton stays small and quick to start
	{"tools/lib/batch/limited", "tools/lib/cli", ""},
	{"tools/lib/batch", "frontend dialects/onnx/profiles ssa/tensor/mapfile backend/atomicfile ssa/diag tools/lib/cli tools/lib/batch/limited", "github.com/nats-io github.com/spf13/pflag golang.org/x/text/unicode/norm google.golang.org/protobuf/encoding/protowire"},
	{"tools/cmd/aton/...", "... !tools/lib/batch !tools/cmd/aton-batch/...", "github.com/spf13/cobra github.com/spf13/pflag github.com/BurntSushi/toml"},
	{"tools/...", "...", "*"},
	{"lit-tests", "...", "*"},
	{"docs/...", "...", "*"},
	{"internal/version", "", ""},
	{"internal/formula", "", ""},
	{"internal/align", "", ""},
	{"internal/naming", "ssa", ""},
	{"internal/python", "ssa/... dialects/aten", ""},
	{"internal/random", "ssa", ""},
	{"internal/pack", "", ""},     // for tests
	{"internal/markdown", "", ""}, // for tests
	{"internal/conversion", "ssa/... dialects/aten passes passes/all", ""},
	{"", "ssa/... dialects/... passes/... frontend/... backend/onnxfile internal/...", ""}, // the facade: it loads, converts and writes
}

// fits says whether a package, relative to the module, is what the pattern names.
func fits(pattern, pkg string) bool {
	if pattern == "..." {
		return true
	}
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == dir || strings.HasPrefix(pkg, dir+"/")
	}
	if dir, ok := strings.CutSuffix(pattern, "/*"); ok {
		return strings.HasPrefix(pkg, dir+"/")
	}
	return pkg == pattern
}

func (r rule) allows(from, to string) bool {
	ok := false
	for _, p := range strings.Fields(r.may) {
		if no, negated := strings.CutPrefix(p, "!"); negated {
			if fits(no, to) {
				ok = false
			}
		} else if fits(p, to) {
			ok = true
		}
	}
	// what lies below a pass is its own
	if dir, star := strings.CutSuffix(r.pkg, "/*"); star {
		own, _, _ := strings.Cut(strings.TrimPrefix(from, dir+"/"), "/")
		ok = ok || strings.HasPrefix(to, dir+"/"+own+"/") || to == dir+"/"+own
	}
	return ok
}

func (r rule) allowsOutside(path string) bool {
	for _, p := range strings.Fields(r.outside) {
		if p == "*" || path == p || strings.HasPrefix(path, p+"/") {
			return true
		}
	}
	return false
}

func ruleFor(pkg string) (rule, bool) {
	for _, r := range table {
		if fits(r.pkg, pkg) {
			return r, true
		}
	}
	return rule{}, false
}

func TestImports(t *testing.T) {
	all, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports, Dir: "../../.."}, "./...", "./tools/...")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) == 0 {
		t.Fatal("no packages found")
	}
	for _, p := range all {
		for _, err := range p.Errors {
			t.Errorf("%s: %v", p.PkgPath, err)
		}
		for _, file := range p.GoFiles { // so that go test runs this again when one has changed
			if _, err := os.Stat(file); err != nil {
				t.Error(err)
			}
		}
		from := strings.TrimPrefix(strings.TrimPrefix(p.PkgPath, module), "/")
		r, ok := ruleFor(from)
		if !ok {
			t.Errorf("%s: no rule for this package: add a line to the table in tools/analyzers/arch", from)
			continue
		}
		for _, path := range slices.Sorted(maps.Keys(p.Imports)) {
			to, ours := strings.CutPrefix(path, module)
			first, _, _ := strings.Cut(path, "/")
			switch {
			case ours && !r.allows(from, strings.TrimPrefix(to, "/")):
				t.Errorf("%s may not import %s (it may: %s)", from, strings.TrimPrefix(to, "/"), r.may)
			case !ours && strings.Contains(first, ".") && !r.allowsOutside(path):
				t.Errorf("%s may not import %s: dependencies are few, and each has its place", from, path)
			}
		}
	}
}

// TestFacade: a program that loads, converts and writes models links no code for GPUs, no interpreter, no command line and no server.
func TestFacade(t *testing.T) {
	roots, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps, Dir: "../../.."}, ".")
	if err != nil {
		t.Fatal(err)
	}
	links := map[string]bool{}
	packages.Visit(roots, func(p *packages.Package) bool {
		to, ours := strings.CutPrefix(p.PkgPath, module)
		first, _, _ := strings.Cut(p.PkgPath, "/")
		for _, no := range []string{"codegen/...", "tools/...", "backend/eager/...", "backend/interp/...", "verify/..."} {
			if ours && fits(no, strings.TrimPrefix(to, "/")) {
				t.Errorf("the root package links %s", p.PkgPath)
			}
		}
		if !ours && strings.Contains(first, ".") {
			links[strings.Join(strings.SplitN(p.PkgPath, "/", 3)[:2], "/")] = true
		}
		return true
	}, nil)
	if got := slices.Sorted(maps.Keys(links)); !slices.Equal(got, []string{"google.golang.org/protobuf"}) {
		t.Errorf("the root package links modules outside: %v", got)
	}
}

// TestModule: the module of the library requires what its packages and their tests import, and nothing for commands.
func TestModule(t *testing.T) {
	text, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, r := range file.Require {
		if !r.Indirect {
			direct = append(direct, r.Mod.Path)
		}
	}
	want := []string{"github.com/ebitengine/purego", "github.com/google/go-cmp", "github.com/llir/llvm", "golang.org/x/sys", "google.golang.org/protobuf"}
	if !slices.Equal(direct, want) || len(file.Tool)+len(file.Replace) > 0 {
		t.Errorf("go.mod requires %v, replaces %d modules and has %d tools; want %v alone", direct, len(file.Replace), len(file.Tool), want)
	}
}

// TestCommand: the commands link no packages that are for tests.
func TestCommand(t *testing.T) {
	roots, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedImports | packages.NeedDeps, Dir: "../../.."}, "./tools/cmd/aton", "./tools/cmd/aton-opt", "./tools/cmd/aton-batch")
	if err != nil {
		t.Fatal(err)
	}
	packages.Visit(roots, func(p *packages.Package) bool {
		for _, no := range []string{"testing", "github.com/google/go-cmp/cmp", module + "/tools/lib/lit"} {
			if p.PkgPath == no {
				t.Errorf("a command links %s", no)
			}
		}
		return true
	}, nil)
}

// mostBytes is what a program may have that loads and exports models, without symbols and debug information, for linux/amd64.
const mostBytes = 15 << 20

// TestProgramSize builds such a program. With -v it prints the size.
func TestProgramSize(t *testing.T) {
	if runtime.GOOS+"/"+runtime.GOARCH != "linux/amd64" || testing.Short() {
		t.Skip("the limit is for linux/amd64")
	}
	file := filepath.Join(t.TempDir(), "program")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", file, "./testdata/program").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d bytes", info.Size()); info.Size() > mostBytes {
		t.Errorf("a program that loads and exports models has %d bytes, more than %d", info.Size(), mostBytes)
	}
}

// TestFacadeSize: the root package stays a facade. What is more than a call of another package belongs to that package.
func TestFacadeSize(t *testing.T) {
	files, err := filepath.Glob("../../../*.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			lines += strings.Count(string(text), "\n")
		}
	}
	if lines == 0 || lines >= 600 {
		t.Errorf("the root package has %d lines", lines)
	}
}

func TestTable(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     bool
	}{
		{"dialects/aten", "dialects/onnx", true},
		{"dialects/onnx", "dialects/aten", false},
		{"dialects/onnx", "dialects/onnx/kernel", false},
		{"ssa", "ssa/tensor", true},
		{"ssa/tensor", "ssa", false},
		{"ssa/rewrite", "ssa", true},
		{"passes/cse", "passes", true},
		{"passes/cse", "passes/dce", false},
		{"passes/lower", "passes/lower/index", true},
		{"passes/all", "passes/dce", true},
		{"passes", "passes/dce", false},
		{"frontend/jit", "frontend/export", false},
		{"frontend/jit", "frontend/pickle", true},
		{"frontend/jit", "frontend", false},
		{"frontend", "frontend/jit", true},
		{"frontend/jit", "tools/lib/lit", false},
		{"backend/interp", "dialects/onnx/kernel", true},
		{"codegen/gpu/emit", "codegen/gpu/sim", false},
		{"codegen/gpu/sim", "codegen/gpu/emit", false},
		{"", "passes/all", true},
		{"", "tools/lib/lit", false},
	} {
		r, ok := ruleFor(c.from)
		if !ok || r.allows(c.from, c.to) != c.want {
			t.Errorf("%s imports %s: got %v", c.from, c.to, !c.want)
		}
	}
	if r, _ := ruleFor("ssa"); r.allowsOutside("github.com/google/go-cmp/cmp") {
		t.Error("ssa may import what is outside")
	}
}
