package cases

import (
	"errors"
	"flag"
	"path/filepath"
	"testing"

	"github.com/aton-project/aton/internal/pack"
)

var refusals = flag.Bool("refusals", false, "list the recorded programs that the eager evaluator refuses")

// TestEager runs the recorded programs in the eager evaluator, as they are read, beside what PyTorch gave: none gives other numbers, and
// few are refused. `make eager-cases` does so for all cases that PyTorch made.
func TestEager(t *testing.T) {
	for _, p := range []struct {
		name  string
		least float64 // the part that is equal, in percent
	}{{"cases", 99.8}, {"operators", 79.5}} { // of the operators, those on quantized tensors are refused
		folders, err := pack.Unpack(filepath.Join("..", "..", "..", "testdata", p.name+".tar.gz"), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		equal, total := 0, 0
		for _, dir := range folders {
			c, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range []Format{Archive, Exported} {
				if !c.Has(f) {
					continue
				}
				total++
				if err := c.RunEager(f); err == nil {
					equal++
				} else if refused := (*Refusal)(nil); !errors.As(err, &refused) {
					t.Errorf("%s %s: %v", c.ID, f, err)
				} else if *refusals {
					t.Logf("%s %s: %v", c.ID, f, err)
				}
			}
		}
		share := 100 * float64(equal) / float64(max(total, 1))
		t.Logf("%s: %d of %d equal", p.name, equal, total)
		if total == 0 || share < p.least {
			t.Errorf("%s: %.2f %% of %d programs are equal, not %v %%", p.name, share, total, p.least)
		}
	}
}
