package reduce

import (
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/internal/pack"
	"github.com/aton-project/aton/ssa"
)

// mostLeft is the greatest number of operators that a reduced program may have.
const mostLeft = 5

// TestPrograms: random programs that cannot be converted, because an operator that each has is taken away, shrink to a few operators that
// cannot be converted for the same reason.
func TestPrograms(t *testing.T) {
	dirs, err := pack.Unpack("../../../testdata/random.tar.gz", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	without := []ssa.Kind{"aten::cumsum", "aten::index_put", "aten::where", "aten::amax", "aten::flip"}
	table := aten.NewTable()
	for _, k := range without {
		table.Register(k, aten.Def{Since: 7, Why: "it is taken away"})
	}
	reduced := 0
	for _, dir := range dirs {
		if reduced == 10 {
			break
		}
		file := filepath.Join(dir, "model.pt")
		load := func() (*ssa.Module, error) {
			m, err := aton.Load(file, aton.LoadOptions{Table: table})
			if err == nil {
				m, _, err = aton.Inspect(m, "freeze", aton.ConvertOptions{Table: table})
			}
			return m, err
		}
		// fails says which of the operators the conversion refuses, "" if it succeeds or fails in another way
		fails := func(m *ssa.Module) string {
			var text strings.Builder
			if err := ssa.Fprint(&text, m, ssa.PrintOptions{Complete: true}); err != nil {
				t.Fatal(err)
			}
			again, err := aton.LoadBytes([]byte(text.String()), "small.ir", aton.LoadOptions{Table: table})
			if err != nil {
				return ""
			}
			if err := aton.ExportTo(io.Discard, again, aton.ExportOptions{ConvertOptions: aton.ConvertOptions{Table: table}}); err != nil {
				for _, k := range without {
					if strings.Contains(err.Error(), string(k)+": it is taken away") {
						return string(k)
					}
				}
			}
			return ""
		}
		whole, err := load()
		if err != nil {
			t.Fatal(err)
		}
		k := fails(whole)
		if k == "" {
			continue
		}
		reduced++
		r := Reducer{Load: load, Test: func(m *ssa.Module) (bool, error) { return fails(m) == k, nil }}
		small, tested, err := r.Run()
		if err != nil {
			t.Fatal(err)
		}
		before, after := Operators(whole), Operators(small)
		t.Logf("%s: %s: %d operators, %d of %d are left, %d models tested", filepath.Base(dir), k, before, after, before, tested)
		if after > mostLeft || fails(small) != k {
			t.Errorf("%s: %d operators are left:\n%s", dir, after, ssa.Print(small))
		}
	}
	if reduced < 10 {
		t.Errorf("only %d programs were reduced", reduced)
	}
}

// TestKeepsOutput: the test decides alone: what it needs stays, whatever it is.
func TestKeepsOutput(t *testing.T) {
	load := func() (*ssa.Module, error) {
		return aton.LoadBytes([]byte(`graph(%x : Float(2), %c : bool):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::relu(%x)
      -> (%a)
    block1():
      %b : Tensor = aten::add(%x, %x, %one)
      %d : Tensor = aten::sigmoid(%b)
      -> (%d)
  return (%x, %y)
`), "graph.ir", aton.LoadOptions{})
	}
	r := Reducer{Load: load, Test: func(m *ssa.Module) (bool, error) { return strings.Contains(ssa.Print(m), "aten::sigmoid"), nil }}
	m, _, err := r.Run()
	if err != nil {
		t.Fatal(err)
	}
	if got := ssa.Print(m); !strings.Contains(got, "aten::sigmoid") || strings.Contains(got, "prim::If") || Operators(m) != 1 {
		t.Errorf("%s", got)
	}
}
