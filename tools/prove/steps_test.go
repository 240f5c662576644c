package prove

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/aton-project/aton/tools/cases/pack"
)

func TestDbgSteps(t *testing.T) {
	dir := t.TempDir()
	pack.Unpack("../../testdata/nodes.tar.gz", dir)
	models, _ := filepath.Glob(filepath.Join(dir, "nodes/*/model.onnx"))
	p := solver(t)
	p.Solver.Limit = 300 * time.Millisecond
	s := NewSession(nil)
	s.Prover = p
	s.Variants = 2
	began := time.Now()
	s.Progress = func(x string) { fmt.Println(int(time.Since(began).Seconds()), x) }
	fmt.Println(s.Steps("../../lit-tests", models))
	fmt.Println(s.Pass("../../lit-tests", "shapes"), s.Indexing("../../lit-tests"))
	count := map[string]int{}
	for _, r := range s.Sorted() {
		count[r.Status()]++
		fmt.Print(r.Row())
		for _, c := range r.Refuted[:min(1, len(r.Refuted))] {
			fmt.Println(c.Verdict.Counterexample(), c.Claim.Before, c.Claim.After)
		}
	}
	fmt.Println(count)
}
