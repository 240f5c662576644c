package batch

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
)

// command is one that a process does between others.
type command struct {
	text   string
	limits Limits
	want   Status
	why    string // identifier and beginning of the message
	shared bool   // it is to run again by itself
	ends   bool   // another process does the next command
}

// What becomes of a command does not depend on what its process has done before, and what ends a process ends no other command.
func TestProcesses(t *testing.T) {
	between(t, map[string]command{
		"fine":           {text: "fine", want: OK},
		"refused":        {text: "refuse", want: Refused, why: "unsupported-op: no"},
		"a defect":       {text: "defect", want: Failed, why: "internal: no", ends: true},
		"a panic":        {text: "die", want: Failed, why: "internal: the process ended: exit status 2: panic: a defect", shared: true, ends: true},
		"too slow":       {text: "sleep", limits: Limits{Timeout: 300 * time.Millisecond}, want: Timeout, why: "timeout: it takes more than 300ms", ends: true},
		"something left": {text: "leave", want: OK, ends: true},
	})
}

// between has processes do each command between others.
func between(t *testing.T, commands map[string]command) {
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			model, other := b.write("model", c.text), b.write("other", "fine")
			p := b.worker("").Process
			t.Cleanup(p.Close)
			run := func(model string, limits Limits, alone bool) (*Result, error) {
				return p.Run(t.Context(), []string{"export", model}, limits, alone)
			}
			// which process does a command
			who := func() int {
				t.Helper()
				r, err := run(other, Limits{Memory: c.limits.Memory}, false)
				if err != nil || r.Status != OK || len(p.idle) != 1 {
					t.Fatalf("%+v, %v, %d processes wait", r, err, len(p.idle))
				}
				return p.idle[0].Process.Pid
			}
			first := who()
			if second := who(); second != first {
				t.Errorf("process %d, then %d", first, second)
			}
			r, err := run(model, c.limits, false)
			if c.shared {
				if !errors.Is(err, errShared) {
					t.Fatalf("in a process that has done others: %+v, %v", r, err)
				}
				r, err = run(model, c.limits, true)
			}
			if err != nil {
				t.Fatal(err)
			}
			why := ""
			for _, d := range r.Diagnostics {
				why += d.ID + ": " + d.Message
			}
			if r.Status != c.want || !strings.HasPrefix(why, c.why) || c.why == "" && why != "" {
				t.Errorf("%s: %s, want %s: %s", r.Status, why, c.want, c.why)
			}
			if next := who(); (next != first) != c.ends {
				t.Errorf("process %d, then %d", first, next)
			}
		})
	}
}

// A process that was killed while it waited is no matter of the next command.
func TestKilledInWait(t *testing.T) {
	b := newBench(t, map[string]string{"a": "fine"})
	w := b.worker(b.dir)
	w.Trusted = func(*Item) bool { return true }
	t.Cleanup(w.Process.Close)
	words := []string{"export", b.write("a", "fine")}
	if _, err := w.Process.Run(t.Context(), words, Limits{}, false); err != nil {
		t.Fatal(err)
	}
	if err := w.Process.idle[0].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if r, err := w.Do(t.Context(), &Item{Name: "a", Do: "export", Model: Source{Path: words[1]}}, t.TempDir()); err != nil || r.Status != OK {
		t.Errorf("%+v, %v", r, err)
	}
}

// A process ends after so many commands.
func TestMostCommands(t *testing.T) {
	b := newBench(t, nil)
	model := b.write("a", "fine")
	p := b.worker("").Process
	t.Cleanup(p.Close)
	for n := range 2*mostCommands + 1 {
		if _, err := p.Run(t.Context(), []string{"export", model}, Limits{}, false); err != nil {
			t.Fatal(err)
		}
		if last := (n+1)%mostCommands == 0; last != (len(p.idle) == 0) {
			t.Fatalf("%d processes wait after %d commands", len(p.idle), n+1)
		}
	}
}

// No process waits for commands with a limit that nobody asks for any more.
func TestManyLimits(t *testing.T) {
	b := newBench(t, nil)
	model := b.write("a", "fine")
	p := b.worker("").Process
	t.Cleanup(p.Close)
	for n := range 5 {
		if r, err := p.Run(t.Context(), []string{"export", model}, Limits{Memory: uint64(1+n) << 30}, false); err != nil || r.Status != OK {
			t.Fatalf("%+v, %v", r, err)
		}
		if len(p.idle) != 1 {
			t.Fatalf("%d processes wait after commands with %d limits, one at a time", len(p.idle), n+1)
		}
	}
}

// BenchmarkRun is what a command costs in a process that is there, and in one of its own.
func BenchmarkRun(b *testing.B) {
	for _, alone := range []bool{false, true} {
		b.Run(map[bool]string{false: "shared", true: "alone"}[alone], func(b *testing.B) {
			b.Setenv(converter, b.TempDir()+"/conversions")
			self, err := os.Executable()
			if err != nil {
				b.Fatal(err)
			}
			model := b.TempDir() + "/model"
			if err := os.WriteFile(model, []byte("fine"), 0o666); err != nil {
				b.Fatal(err)
			}
			p := NewProcess(1, self, "limited")
			defer p.Close()
			for b.Loop() {
				if r, err := p.Run(context.Background(), []string{"export", model}, Limits{}, alone); err != nil || r.Status != OK {
					b.Fatal(r, err)
				}
				if alone {
					p.Close()
				}
			}
		})
	}
}
