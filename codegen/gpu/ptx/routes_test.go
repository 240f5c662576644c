package ptx_test

import (
	"os"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// llcs is every llc on PATH; the log says what ran.
func llcs(t *testing.T) []ptx.LLC {
	all := ptx.AllLLC()
	if len(all) == 0 {
		if os.Getenv("ATON_NEED_LLVM") != "" {
			t.Fatal(ptx.ErrNoLLC)
		}
		t.Log("routes: IR, own printer; not llc, which is not on PATH (Debian: llvm-14)")
		return nil
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Path)
	}
	t.Logf("routes: IR, own printer, %s", strings.Join(names, ", "))
	return all
}

// TestRoutes runs each kernel from its IR, from our PTX and from that of every llc: all words agree.
func TestRoutes(t *testing.T) {
	all := llcs(t)
	for _, c := range gputest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			m := c.Build()
			k, err := sim.FromIR(gputest.Kernel(m))
			if err != nil {
				t.Fatal(err)
			}
			want := run(t, c, k)
			if err := c.Verify(want); err != nil {
				t.Fatal("IR:", err)
			}
			own, err := ptx.Print(m, ptx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			compare(t, c, "own printer", own, want)
			for _, l := range all {
				text, err := l.Compile(m, ptx.Options{})
				if err != nil {
					t.Fatal(err)
				}
				compare(t, c, l.Path, text, want)
			}
		})
	}
}

func run(t *testing.T, c gputest.Case, k *sim.Kernel) []sim.Arg {
	t.Helper()
	args := c.Args()
	if _, err := k.Run(sim.Launch{Grid: c.Grid, Block: c.Block, Dynamic: c.Shared, Args: args, Check: true}); err != nil {
		t.Fatal(err)
	}
	return args
}

func compare(t *testing.T, c gputest.Case, route, text string, want []sim.Arg) {
	t.Helper()
	k, err := sim.FromPTX(text, "")
	if err != nil {
		t.Errorf("%s: %v\n%s", route, err, text)
		return
	}
	got := run(t, c, k)
	for i := range want {
		if want[i].Buffer == nil {
			continue
		}
		a, b := want[i].Buffer.Bytes(), got[i].Buffer.Bytes()
		for j := range a {
			if a[j] != b[j] {
				t.Errorf("%s: argument %d differs from the IR's at byte %d", route, i, j)
				break
			}
		}
	}
}
