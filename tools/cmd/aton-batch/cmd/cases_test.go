//go:build data

package cmd

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aton-project/aton/tools/lib/batch"
	"github.com/aton-project/aton/tools/lib/cases"
)

// manifestOf writes a manifest of the cases below ATON_CASES, every nth of them, and gives how many it has.
func manifestOf(t *testing.T, nth int) (file string, n int) {
	t.Helper()
	root, err := filepath.Abs(os.Getenv("ATON_CASES"))
	if err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(root, "*", "*", "case.json"))
	if err != nil || len(found) == 0 {
		t.Fatalf("there are no cases in ATON_CASES=%s: %v", root, err)
	}
	var lines strings.Builder
	for i, f := range found {
		if i%nth != 0 {
			continue
		}
		c, err := cases.Read(filepath.Dir(f))
		if err != nil {
			t.Fatal(err)
		}
		if !c.Has(cases.Archive) {
			continue
		}
		n++
		text, err := json.Marshal(map[string]any{"model": filepath.Join(c.Dir, string(cases.Archive)), "name": c.Suite + "/" + c.ID, "input": c.InputSpecs, "opset": 17})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(text, '\n'))
	}
	file = filepath.Join(t.TempDir(), "cases.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return file, n
}

// built is the program aton of make build.
func built(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	program, err := filepath.Abs("../../../../bin/aton")
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, args...)
	c.Stderr = os.Stderr
	return c
}

// farm has a server and workers in processes of their own, one model at a time in each.
type farm struct {
	*testing.T
	work    string
	queue   []string
	workers []*exec.Cmd
}

func newFarm(t *testing.T, n int) *farm {
	server, err := batch.StartServer(t.TempDir(), batch.Listen{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	address, token := server.Listening()
	f := &farm{T: t, work: t.TempDir(), queue: []string{"--queue", address, "--queue-token-file", token, "--no-cache"}}
	for range n {
		f.workers = append(f.workers, f.start())
	}
	t.Cleanup(func() {
		for _, w := range f.workers {
			_ = w.Process.Kill()
			_ = w.Wait()
		}
	})
	return f
}

func (f *farm) start() *exec.Cmd {
	c := built(f.T, append([]string{"worker", "--any-path", "--work", f.work, "--jobs", "1"}, f.queue...)...)
	if err := c.Start(); err != nil {
		f.Fatal(err)
	}
	return c
}

// run does a manifest, and calls each second what is done meanwhile. It gives the lines that came in, and the processor time of batch.
func (f *farm) run(manifest, out string, each func()) (lines string, spent time.Duration) {
	f.Helper()
	c := built(f.T, append([]string{"batch", manifest, "-o", out, "--jobs", "0", "--ack-wait", "5s", "--json", "--tries", "10"}, f.queue...)...)
	var said strings.Builder
	c.Stderr = &said
	var text []byte
	ended := make(chan struct{})
	go func() {
		text, _ = c.Output() // the status says that some are refused
		close(ended)
	}()
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-tick.C:
			each()
		case <-ended:
			f.Log(strings.TrimSpace(said.String()))
			return string(text), c.ProcessState.UserTime() + c.ProcessState.SystemTime()
		}
	}
}

// TestCases converts all cases of ATON_CASES by three workers, one of which is killed every second, and compares the results with those of
// a run in which nothing is killed: none is lost, none comes twice, and the bytes are the same.
func TestCases(t *testing.T) {
	manifest, n := manifestOf(t, 1)
	calm, stormy := t.TempDir(), t.TempDir()
	began := time.Now()
	_ = built(t, "batch", manifest, "-o", calm, "--no-cache").Run()
	t.Logf("%d models, nothing killed: %.0f s", n, time.Since(began).Seconds())
	f := newFarm(t, 3)
	kills := 0
	// not at the beat of the queue: what was taken just before a kill comes again after --ack-wait, five beats later and just before the next one
	delay := rand.New(rand.NewPCG(1, 0))
	began = time.Now()
	text, _ := f.run(manifest, stormy, func() {
		time.Sleep(time.Duration(delay.IntN(300)) * time.Millisecond)
		i := kills % len(f.workers)
		_ = f.workers[i].Process.Kill()
		_ = f.workers[i].Wait()
		f.workers[i] = f.start()
		kills++
	})
	took := time.Since(began)
	came, got, want := read(t, text), results(t, stormy), results(t, calm)
	if len(came) != n || len(got) != n || len(want) != n {
		t.Fatalf("%d models: %d results came in, %d are in the file, %d without kills", n, len(came), len(got), len(want))
	}
	count := map[batch.Status]int{}
	tries, files := 0, 0
	for name, w := range want {
		g := got[name]
		if g == nil || g.Status != w.Status || !slices.Equal(g.Outputs, w.Outputs) {
			t.Errorf("%s: %+v, want %+v", name, g, w)
			continue
		}
		count[g.Status]++
		tries += g.Tries
		for _, o := range g.Outputs {
			files++
			a, err := os.ReadFile(filepath.Join(calm, o.Name))
			if err != nil {
				t.Error(err)
			}
			b, err := os.ReadFile(filepath.Join(stormy, o.Name))
			if err != nil || string(a) != string(b) {
				t.Errorf("%s differs: %v", o.Name, err)
			}
		}
	}
	t.Logf("three workers, one killed every second: %.0f s, %d kills, %d tries; %v, %d files, the same bytes", took.Seconds(), kills, tries, count, files)
}

// TestThroughput prints how many models a second are done by one process and by workers, and how much processor time a model takes,
// with the processes of the models. ATON_NTH=10 takes every tenth case.
func TestThroughput(t *testing.T) {
	nth, _ := strconv.Atoi(os.Getenv("ATON_NTH"))
	manifest, n := manifestOf(t, max(1, nth))
	spent := func(c *exec.Cmd) time.Duration { return c.ProcessState.UserTime() + c.ProcessState.SystemTime() }
	rate := func(what string, run func() time.Duration) {
		began := time.Now()
		processors := run()
		took := time.Since(began).Seconds()
		fmt.Printf("| %s | %.1f | %.1f ms |\n", what, float64(n)/took, 1000*processors.Seconds()/float64(n))
	}
	for _, jobs := range []string{"1", "2", "4"} {
		rate("one process, --jobs "+jobs, func() time.Duration {
			c := built(t, "batch", manifest, "-o", t.TempDir(), "--no-cache", "--jobs", jobs)
			_ = c.Run() // the status says that some are refused
			return spent(c)
		})
	}
	for _, workers := range []int{1, 2, 4} {
		f := newFarm(t, workers)
		rate(fmt.Sprintf("%d workers", workers), func() time.Duration {
			_, all := f.run(manifest, t.TempDir(), func() {})
			for _, w := range f.workers {
				_ = w.Process.Signal(os.Interrupt) // its processes count when it has waited for them
				_ = w.Wait()
				all += spent(w)
			}
			f.workers = nil
			return all
		})
	}
}
