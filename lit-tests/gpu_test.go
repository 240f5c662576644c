package littests

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/passes"
)

// The passes that come before a plan for GPU kernels keep what is computed: TestSemantics for their files, whose graphs may grow.
func TestKernelPassesKeepNumbers(t *testing.T) {
	set := passes.Set{Passes: legalize.Passes(), Named: []passes.Named{legalize.Pipeline}}
	for _, pass := range legalize.Passes() {
		files, err := filepath.Glob("passes/" + pass.Name + "/*.ir")
		if err != nil {
			t.Fatal(err)
		}
		ran := 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, pipeline := range []string{pass.Name, legalize.Pipeline.Name} {
				p, err := set.Parse(pipeline)
				if err != nil {
					t.Fatal(err)
				}
				before, after := parse(t, text), parse(t, text)
				if _, err := p.Run(after, &passes.Runner{VerifyEach: true, VerifyRoundtrip: true}); err != nil {
					t.Fatal(file, err)
				}
				for i, f := range before.Funcs {
					if filepath.Base(file) == "stays.ir" {
						continue // of values without a rank
					}
					ran++
					for _, size := range []int64{3, 4} {
						compare(t, f, after.Funcs[i], size, 0, !finiteLine.Match(text))
					}
				}
			}
		}
		if ran == 0 {
			t.Errorf("no graph in passes/%s", pass.Name)
		}
	}
}
