// Package littests runs the .ir files of this folder. One file: go test ./lit-tests -run 'Lit/passes/cse'.
package littests

import (
	"flag"
	"io"
	"testing"

	atonopt "github.com/aton-project/aton/tools/aton-opt/cmd"
	aton "github.com/aton-project/aton/tools/aton/cmd"
	"github.com/aton-project/aton/tools/filecheck"
	"github.com/aton-project/aton/tools/lit"
	"github.com/aton-project/aton/tools/lit/script"
)

var _ = flag.Bool("update", false, "rewrite the blocks of AUTOCHECK files; checks that people wrote stay")

func TestLit(t *testing.T) {
	lit.TestDir(t, ".", map[string]lit.Command{
		"FileCheck": filecheck.Main,
		"cat":       script.Cat,
		"aton-opt": func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			// an internal error shows at the pass that caused it, and leaves nothing behind
			return atonopt.Main(append([]string{"--verify-each", "--verify-roundtrip", "--repro="}, args...), stdin, stdout, stderr)
		},
		"aton": func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return aton.Main(append(args, "--verify-each", "--repro="), stdin, stdout, stderr)
		},
	})
}
