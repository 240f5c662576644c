package cases

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/internal/pack"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// TestRecorded exports small programs to the opsets that the list beside their archive names, and runs the files in the
// interpreter: their outputs are those that were recorded.
//
//   - cases are programs of PyTorch, which `make pick` chooses by the statements that they reach,
//   - operators are programs of one operator each that the cases have not (`make operators`),
//   - quantized are programs whose weights torchao quantized (`make quantized`),
//   - nodes are tests that the onnx package has for its operators, each written at other opsets.
//
// Together they have all operators of PyTorch that can be lowered, but for those that tested.txt leaves out: the analyzer
// deftest reads it.
func TestRecorded(t *testing.T) {
	var seen kinds
	t.Run("cases", func(t *testing.T) { picked(t, "cases", 300, &seen) })
	t.Run("operators", func(t *testing.T) { picked(t, "operators", 200, &seen) })
	t.Run("quantized", func(t *testing.T) { picked(t, "quantized", 60, &seen) })
	t.Run("nodes", func(t *testing.T) { picked(t, "nodes", 100, nil) })
	const list = "../../analyzers/deftest/tested.txt"
	var tested strings.Builder
	for _, k := range slices.Sorted(slices.Values(aten.NewTable().Kinds())) {
		if seen.m[k] {
			tested.WriteString(string(k) + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(list, []byte(tested.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(tested.String(), "\n")); diff != "" {
		t.Errorf("the operators that the programs have are not those of %s (go test ./tools/lib/cases -update writes it):\n%s", list, diff)
	}
}

var update = flag.Bool("update", false, "write the list of operators that the recorded programs have")

// kinds is the set of operators that were there before any pass.
type kinds struct {
	sync.Mutex
	m map[ssa.Kind]bool
}

// watch adds the operators of what runs through the passes.
func (s *kinds) watch() *passes.Runner {
	return &passes.Runner{Observers: []passes.Observer{{BeforePass: func(e *passes.Event) {
		s.Lock()
		defer s.Unlock()
		if s.m == nil {
			s.m = map[ssa.Kind]bool{}
		}
		for _, f := range e.Module.Funcs {
			for o := range f.Body.AllOps() {
				s.m[o.Kind] = true
			}
		}
	}}}}
}

func picked(t *testing.T, name string, least int, seen *kinds) {
	root := filepath.Join("..", "..", "..", "testdata")
	dir := t.TempDir()
	if _, err := pack.Unpack(filepath.Join(root, name+".tar.gz"), dir); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(root, name+".tsv"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(list)), "\n")
	if len(lines) < least {
		t.Fatalf("%d cases", len(lines))
	}
	for _, line := range lines {
		fields := strings.Split(line, "\t")
		if len(fields) != 3 {
			t.Fatalf("%q is no line of three fields", line)
		}
		var opsets []int
		for _, s := range strings.Fields(fields[2]) {
			n, err := strconv.Atoi(s)
			if err != nil {
				t.Fatal(err)
			}
			opsets = append(opsets, n)
		}
		t.Run(fields[0]+"/"+fields[1], func(t *testing.T) {
			t.Parallel()
			c, err := Read(filepath.Join(dir, fields[0]))
			if err != nil {
				t.Fatal(err)
			}
			if seen != nil {
				c.Runner = seen.watch()
			}
			for _, opset := range opsets {
				if err := c.Check(Format(fields[1]), opset); err != nil {
					t.Errorf("opset %d: %v", opset, err)
				}
			}
		})
	}
}
