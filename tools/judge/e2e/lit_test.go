package e2e

import (
	"flag"
	"io"
	"testing"

	atonopt "github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	atoncmd "github.com/aton-project/aton/tools/cmd/aton/cmd"
	"github.com/aton-project/aton/tools/lib/filecheck"
	"github.com/aton-project/aton/tools/lib/lit"
	"github.com/aton-project/aton/tools/lib/lit/script"
)

var _ = flag.Bool("update", false, "rewrite the blocks of AUTOCHECK files; checks that people wrote stay")

// TestLit runs the .ir files of lit-tests. One file: go test ./tools/judge/e2e -run Lit/passes/cse.
func TestLit(t *testing.T) {
	lit.TestDir(t, "lit-tests", map[string]lit.Command{
		"FileCheck": filecheck.Main,
		"cat":       script.Cat,
		"aton-opt": func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			// an internal error shows at the pass that caused it, and leaves nothing behind
			return atonopt.Main(append([]string{"--verify-each", "--verify-roundtrip", "--repro="}, args...), stdin, stdout, stderr)
		},
		"aton": func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return atoncmd.Main(append(args, "--verify-each", "--repro="), stdin, stdout, stderr)
		},
	})
}
