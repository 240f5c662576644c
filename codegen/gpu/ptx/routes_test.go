package ptx_test

import (
	"os"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/llvm"
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
		t.Log("routes: own printer; not llc, which is not on PATH (Debian: llvm-14)")
		return nil
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Path)
	}
	t.Logf("routes: own printer, %s", strings.Join(names, ", "))
	return all
}

// TestRoutes runs each kernel from our PTX and from what every llc makes of its LLVM IR: all words agree.
func TestRoutes(t *testing.T) {
	all := llcs(t)
	for _, c := range gputest.Cases() {
		if c.Kernel == nil {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			texts, err := c.Texts()
			if err != nil {
				t.Fatal(err)
			}
			want := run(t, c, texts[0])
			if err := c.Verify(want); err != nil {
				t.Fatal(err)
			}
			for _, l := range all {
				text, err := l.Compile(llvm.Lower(c.Kernel()), ptx.Options{})
				if err != nil {
					t.Fatal(err)
				}
				got := run(t, c, text)
				for i := range want {
					if want[i].Buffer != nil && string(want[i].Buffer.Bytes()) != string(got[i].Buffer.Bytes()) {
						t.Errorf("%s: argument %d differs from the printer's\n%s", l.Path, i, text)
					}
				}
			}
		})
	}
}

func run(t *testing.T, c gputest.Case, text string) []sim.Arg {
	t.Helper()
	k, err := sim.FromPTX(text, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	args := c.Args()
	if _, err := k.Run(sim.Launch{Grid: c.Grid, Block: c.Block, Dynamic: c.Shared, Args: args, Check: true}); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return args
}
