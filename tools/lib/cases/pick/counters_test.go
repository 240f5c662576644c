package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The counters of a small program are those that its statements say. It is built here, so a version of Go with another format fails.
func TestCounters(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module small\n\ngo 1.24\n")
	write("main.go", `package main

import (
	"os"
	"runtime/coverage"
)

func half(n int) int {
	if n > 3 {
		return n / 2
	}
	return n
}

func never() { half(8) }

func main() {
	coverage.ClearCounters()
	half(2)
	f, _ := os.Create(os.Args[1])
	coverage.WriteCounters(f)
	if len(os.Args) > 5 {
		never()
	}
}
`)
	run := func(name string, args ...string) {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "GOCOVERDIR="+dir, "GOFLAGS=")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", name, err, out)
		}
	}
	run("go", "build", "-cover", "-covermode=atomic", "-o", "small", ".")
	run(filepath.Join(dir, "small"), "counters")
	data, err := os.ReadFile(filepath.Join(dir, "counters"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[uint32]int{} // of each function
	for _, p := range got {
		blocks[p.fn]++
	}
	// half runs its condition and the last line; the block that main is in began before the counters were cleared
	if diff := cmp.Diff(map[uint32]int{0: 2}, blocks); diff != "" {
		t.Errorf("blocks by function (-want +got): %s", diff)
	}
	for n := range len(data) - 1 {
		if n < fileHeader+segmentHeader {
			if _, err := decode(data[:n]); err == nil {
				t.Errorf("%d bytes are taken for counters", n)
			}
		} else {
			decode(data[:n]) // an error or few places, no panic
		}
	}
}

func TestBlocks(t *testing.T) {
	n := numbering{}
	a, b := n.set([]place{{0, 0, 0}, {0, 0, 1}}), n.set([]place{{0, 0, 1}, {1, 2, 3}})
	for i := range uint32(200) {
		n.set([]place{{9, i, 0}})
	}
	far := n.set([]place{{0, 0, 0}, {9, 199, 0}})
	if a.beyond(nil) != 2 || b.beyond(a) != 1 || far.beyond(a) != 1 || a.beyond(far) != 1 || far.beyond(a.with(far)) != 0 || b.beyond(far.with(a)) != 1 {
		t.Error("sets of blocks are not what they hold")
	}
}
