//go:build !race

package batch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A process under the race detector has more memory than the limit of this test.

// Each model has one result, whatever becomes of its process, and only what is right has a file.
func TestEnds(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine", "sub/b.pt": "refuse", "c.ir": "sleep", "d.ir": "eat", "e.ir": "die", "f.ir": "gulp"})
	b.limits = Limits{Timeout: 8 * time.Second, Memory: 256 << 20}
	found := b.run()
	for name, want := range map[string]Status{"a": OK, "sub/b": Refused, "c": Timeout, "d": Memory, "e": Failed, "f": Memory} {
		if r := found[name]; r == nil || r.Status != want {
			t.Errorf("%s: %+v, want %s", name, r, want)
		}
	}
	if d := found["e"].Diagnostics[0]; d.ID != "internal" || !strings.Contains(d.Message, "a defect") {
		t.Errorf("%+v", d)
	}
	if text, err := os.ReadFile(b.out("a.onnx")); err != nil || string(text) != "made of fine" {
		t.Error(string(text), err)
	}
	if _, err := os.Stat(b.out("c.onnx")); err == nil {
		t.Error("a model that was stopped has a file")
	}
	if r := found["a"]; r.Seconds <= 0 || r.PeakMemory == 0 || len(r.Hash) != 64 || r.Tries != 1 || r.Worker != "here" {
		t.Errorf("%+v", r)
	}
	if left, _ := filepath.Glob(b.out(".aton/*")); len(left) != 1 { // the lock
		t.Errorf("left behind: %v", left)
	}
}

// A process that passes its limit of memory takes no other command with it.
func TestProcessesOutOfMemory(t *testing.T) {
	limits := Limits{Memory: 256 << 20}
	between(t, map[string]command{
		"by and by":   {text: "eat", limits: limits, want: Memory, why: "memory: it takes more than", shared: true, ends: true},
		"all at once": {text: "gulp", limits: limits, want: Memory, why: "memory: it takes more than", shared: true, ends: true},
	})
}
