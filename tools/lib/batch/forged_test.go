package batch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// forger is somebody who has the token of the workers, and gives results of his own before an honest worker can.
type forger struct {
	*bench
	q     *Queue
	items map[string]Item // by name
}

// outputs puts files into the queue, as a worker does, and gives what a result says of them.
func (f *forger) outputs(it Item, names []string, text string) []File {
	f.Helper()
	var found []File
	file := filepath.Join(f.TempDir(), "file")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		f.Fatal(err)
	}
	got, err := hashFile(file)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		if err := f.q.put(f.Context(), outputs, file, it.Job, it.Key, got.Hash); err != nil {
			f.Fatal(err)
		}
		found = append(found, File{name, got.Size, got.Hash})
	}
	return found
}

// No result of a worker replaces a model, a file of the run or one of another model, or ends the batch: it is refused, and an honest worker
// does the model.
func TestForgedResults(t *testing.T) {
	ok := func(it Item, files ...File) *Result {
		return &Result{Name: it.Name, Key: it.Key, Status: OK, Outputs: files, Hash: strings.Repeat("0", 64), Made: strings.Repeat("0", 64), Tries: 1}
	}
	named := func(names ...string) func(*forger, Item) any {
		return func(f *forger, it Item) any { return ok(it, f.outputs(it, names, "forged")...) }
	}
	changed := func(change func(*Result)) func(*forger, Item) any {
		return func(f *forger, it Item) any {
			r := ok(it, f.outputs(it, []string{"net.onnx"}, "forged")...)
			change(r)
			return r
		}
	}
	for name, forge := range map[string]func(f *forger, it Item) any{
		"the model's own file":             named("net.pt"),
		"a file beside the model":          named("net.other", "net.onnx"),
		"the results":                      named("results.jsonl"),
		"a file above":                     named("../net.onnx.evil"),
		"an absolute path":                 named("/tmp/net.onnx/x"),
		"another model's file":             named("second.onnx"),
		"the model behind its weights":     named("net.onnx", "net.onnx.0123456789abcdef.data"),
		"weights by another hash":          named("net.onnx.0123.data", "net.onnx"),
		"weights twice":                    named("net.onnx.0123456789abcdef.data", "net.onnx.1123456789abcdef.data", "net.onnx"),
		"no file":                          named(),
		"files of a model that is refused": changed(func(r *Result) { r.Status = Refused }),
		"a status that there is not":       changed(func(r *Result) { r.Status = "fine" }),
		"the name of another model":        changed(func(r *Result) { r.Name = "second" }),
		"the key of another model":         changed(func(r *Result) { r.Key = strings.Repeat("0", 32) }),
		"a hash that is a path":            changed(func(r *Result) { r.Outputs[0].Hash = "../../secret" }),
		"a hash of other bytes":            changed(func(r *Result) { r.Outputs[0].Hash = strings.Repeat("a", 64) }),
		"a size below zero":                changed(func(r *Result) { r.Outputs[0].Size = -1 }),
		"a size that is too small":         changed(func(r *Result) { r.Outputs[0].Size = 1 }),
		"a result of nothing":              changed(func(r *Result) { r.Made = "" }),
		"time that runs back":              changed(func(r *Result) { r.Seconds = -1 }),
		"no JSON":                          func(*forger, Item) any { return json.RawMessage(`"text"`) },
		"a list":                           func(*forger, Item) any { return []string{"net.onnx"} },
		"nothing":                          func(*forger, Item) any { return nil },
	} {
		t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
			b := newForgery(t)
			before := b.contents()
			found, log := b.batchBeside(forge)
			for _, model := range []string{"net", "second"} {
				if r := found[model]; r == nil || r.Status != OK || r.Worker != "here" {
					t.Errorf("%s: %+v", model, r)
				}
			}
			if !strings.Contains(log, "a result is not taken") {
				t.Errorf("nobody is told: %s", log)
			}
			after := b.contents()
			for file, text := range before {
				if after[file] != text {
					t.Errorf("%s was changed to %q", file, after[file])
				}
				delete(after, file)
			}
			delete(after, Results)
			if len(after) != 2 || after["net.onnx"] != "made of fine net" || after["second.onnx"] != "made of fine second" {
				t.Errorf("the folder has %v", after)
			}
		})
	}
}

// Results that are refused again and again end as a failure, and not never.
func TestForgedForEver(t *testing.T) {
	b := newForgery(t)
	b.always = true
	found, _ := b.batchBeside(func(f *forger, it Item) any { return []string{"never"} })
	if r := found["net"]; r == nil || r.Status != Failed || r.Diagnostics[0].ID != "set-aside" {
		t.Errorf("%+v", r)
	}
	if r := found["second"]; r == nil || r.Status != OK {
		t.Errorf("%+v", r)
	}
}

// forgery is a batch whose outputs go to the folder of its models.
type forgery struct {
	*bench
	always bool
}

func newForgery(t *testing.T) *forgery {
	return &forgery{bench: newBench(t, map[string]string{"net.pt": "fine net", "second.ir": "fine second"})}
}

// contents are the texts of the files in the folder, but for the run's own.
func (b *forgery) contents() map[string]string {
	b.Helper()
	found := map[string]string{}
	err := fs.WalkDir(os.DirFS(filepath.Join(b.dir, "models")), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".aton" {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			var text []byte
			text, err = os.ReadFile(filepath.Join(b.dir, "models", name))
			found[name] = string(text)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return found
}

// lockedLog keeps what several goroutines tell.
type lockedLog struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedLog) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.b, format+"\n", args...)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// batchBeside runs the batch. The forger answers for the model net before an honest worker begins.
func (b *forgery) batchBeside(forge func(f *forger, it Item) any) (map[string]*Result, string) {
	b.Helper()
	s, err := StartServer(filepath.Join(b.dir, "server"), Listen{Address: "127.0.0.1:0"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	address, token := s.Listening()
	a := Access{URLs: address, Token: token}
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	models := filepath.Join(b.dir, "models")
	p, err := NewPlan(commands, Request{Models: models, Out: models, Do: "export", Tries: 3, Build: "1"})
	if err != nil {
		b.Fatal(err)
	}
	var log lockedLog
	batch := &Batch{Plan: p, Out: models, Access: a, Worker: b.worker(p.Root), Silence: 2 * time.Second, Log: log.printf}
	type end struct {
		found []*Result
		err   error
	}
	ended := make(chan end, 1)
	go func() {
		found, err := batch.Run(ctx)
		ended <- end{found, err}
	}()
	q, err := Dial(a, "1", Taker, nil)
	if err != nil {
		b.Fatal(err)
	}
	defer q.Close()
	f := &forger{bench: b.bench, q: q, items: map[string]Item{}}
	var c jetstream.Consumer
	for c == nil && ctx.Err() == nil {
		if c, err = q.consumer(ctx); err != nil {
			b.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	for len(f.items) < 2 || b.always && ctx.Err() == nil {
		if b.always && strings.Count(log.String(), "not taken") > 3 {
			break
		}
		m, err := c.Next(jetstream.FetchMaxWait(time.Second))
		if err != nil && ctx.Err() == nil {
			continue // a machine with other work
		}
		if err != nil {
			b.Fatalf("%v; what was told:\n%s", err, log.String())
		}
		var it Item
		if err := json.Unmarshal(m.Data(), &it); err != nil {
			b.Fatal(err)
		}
		f.items[it.Name] = it
		if it.Name == "net" {
			text, err := json.Marshal(forge(f, it))
			if err != nil {
				b.Fatal(err)
			}
			if err := q.store(ctx, &it, text); err != nil {
				b.Fatal(err)
			}
			_ = m.Ack()
		} else if err := m.NakWithDelay(200 * time.Millisecond); err != nil {
			b.Fatal(err)
		}
	}
	honest, stop := context.WithCancel(ctx)
	w := b.worker(models)
	w.Folder = b.TempDir()
	done := make(chan error, 1)
	go func() { done <- w.Take(honest, q, Serving{Jobs: 1, Log: b.Logf}) }()
	e := <-ended
	stop()
	if err := errors.Join(e.err, <-done); err != nil {
		b.Fatalf("%v; %d results; what was told:\n%s", err, len(e.found), log.String())
	}
	byName := map[string]*Result{}
	for _, r := range e.found {
		byName[r.Name] = r
	}
	return byName, log.String()
}
