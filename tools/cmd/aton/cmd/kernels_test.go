package cmd

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Arguments of a kernel that is run by itself are what the kernel says of them, or refused.
func TestKernelArguments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "k.kir")
	text := `kernel k threads=1 {
  symbol N min 5
  param 0: x f32 reads
  param 1: y i32 writes
  param 2: i32 = 3*max(N, 3)
  %v = load.f32 x[0]
  store.i32 y[0], $2
}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--arg x=1.5,2 --arg y=0 --arg N=5", "y = 15"},
		{"--arg x=1 --arg y=0 --arg N=1", "N is at least 5"},
		{"--arg x=1 --arg y=0 --arg N=6148914691236517206", "has no value of 32 bits"},
		{"--arg x=1 --arg y=0 --arg N=5 --arg x=2", "--arg x is given twice"},
		{"--arg x=1 --arg y=0 --arg N=5 --arg z=1 --arg w=1", "--arg z: k has no such memory"},
		{"--arg x=1e39 --arg y=0 --arg N=5", `"1e39" is no number of f32`},
		{"--arg x=9223372036854775800..9223372036854775807 --arg y=9223372036854775807 --arg N=5", "is no integer of i32"},
		{"--arg x=-9223372036854775808..9223372036854775807 --arg y=0 --arg N=5", "is no range of integers"},
		{"--arg x=0..16777216 --arg y=0 --arg N=5", "is no range of integers"},
		{"--arg x=0*16777216,1 --arg y=0 --arg N=5", "more than 16777216 elements"},
		{"--arg x=1 --arg y=0 --arg N=5 --print ptx", "--run stands without --print"},
		{"--arg x=1 --arg y=0 --arg N=5 --device interp", `--device must be sim or cuda, not "interp"`},
	} {
		var out bytes.Buffer
		root := New()
		root.SetArgs(append([]string{"gpu", file, "--run", "1"}, strings.Fields(c.args)...))
		root.SetOut(&out)
		root.SetErr(&out)
		said := ""
		if err := root.Execute(); err != nil {
			said = err.Error()
		}
		if said += out.String(); !strings.Contains(said, c.want) {
			t.Errorf("%s: %q, want %q", c.args, said, c.want)
		}
	}
}
