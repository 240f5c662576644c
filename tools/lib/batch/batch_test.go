package batch

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/pflag"

	"github.com/aton-project/aton/tools/lib/batch/limited"
	"github.com/aton-project/aton/tools/lib/cli"
)

// converter is the variable of the environment that makes this test a program that converts: what a model's text says is done with it.
const converter = "ATON_BATCH_TEST_CONVERTER"

func TestMain(m *testing.M) {
	if os.Getenv(converter) == "" {
		os.Exit(m.Run())
	}
	// limited --memory=N --most=N; then export MODEL --json --repro= [--option=VALUE] --output=FILE
	memory, _ := strconv.ParseUint(strings.TrimPrefix(os.Args[2], "--memory="), 10, 64)
	most, _ := strconv.Atoi(strings.TrimPrefix(os.Args[3], "--most="))
	err := limited.Serve(memory, most, os.Stdin, os.Stdout, func(words []string) limited.Report { return convert(words[1], words[2:]) })
	if err != nil {
		panic(err)
	}
	os.Exit(0)
}

func convert(model string, options []string) limited.Report {
	text, err := os.ReadFile(model)
	if err != nil {
		return limited.Report{Exit: 1, Problems: []cli.Problem{refusal("file", "%v", err)}}
	}
	switch strings.Fields(string(text))[0] {
	case "sleep":
		time.Sleep(time.Hour)
	case "eat":
		var eaten [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			eaten = append(eaten, b)
			if len(eaten) > 4096 {
				panic("the limit does not hold")
			}
		}
	case "gulp": // at once, which the system refuses where it can
		b := make([]byte, 1<<30)
		for i := range b {
			b[i] = 1
		}
		time.Sleep(time.Hour)
	case "nfs": // a file that was removed while it was open
		for _, o := range options {
			if out, ok := strings.CutPrefix(o, "--output="); ok {
				if err := os.WriteFile(filepath.Join(filepath.Dir(out), ".nfs00000000000123"), nil, 0o666); err != nil {
					panic(err)
				}
			}
		}
	case "late":
		time.Sleep(2 * time.Second)
	case "change": // the model is written to meanwhile
		next := "fine " + string(text)
		if strings.Contains(string(text), "always") {
			next = string(text) + " more"
		}
		if err := os.WriteFile(model, []byte(next), 0o666); err != nil {
			panic(err)
		}
	case "die":
		panic("a defect")
	case "defect": // which the command recovers from
		return limited.Report{Exit: 1, Problems: []cli.Problem{refusal("internal", "no")}}
	case "leave":
		go func() { select {} }()
	case "refuse":
		return limited.Report{Exit: 1, Problems: []cli.Problem{refusal("unsupported-op", "no")}}
	}
	note()
	for _, o := range options {
		if out, ok := strings.CutPrefix(o, "--output="); ok {
			if err := os.WriteFile(out, append([]byte("made of "), text...), 0o666); err != nil {
				panic(err)
			}
		}
	}
	return limited.Report{}
}

// note counts a conversion.
func note() {
	f, err := os.OpenFile(os.Getenv(converter), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(f, "conversion")
	f.Close()
}

// commands are the options of a small command.
func commands(do string) *pflag.FlagSet {
	if do != "export" {
		return nil
	}
	f := pflag.NewFlagSet(do, pflag.ContinueOnError)
	f.StringArray("input", nil, "")
	f.StringArray("input-file", nil, "")
	f.Int("opset", 0, "")
	f.Bool("eval", false, "")
	f.String("weights", "", "")
	f.StringArray("only-ops", nil, "")
	return f
}

// bench is a batch on models that are written for a test, by name.
type bench struct {
	*testing.T
	dir         string
	conversions string
	cache       *Cache
	options     []Option
	limits      Limits
	change      func(*Batch)
}

func newBench(t *testing.T, models map[string]string) *bench {
	b := &bench{T: t, dir: t.TempDir()}
	b.conversions = filepath.Join(b.dir, "conversions")
	t.Setenv(converter, b.conversions)
	for name, text := range models {
		b.write(name, text)
	}
	return b
}

func (b *bench) write(name, text string) string {
	b.Helper()
	file := filepath.Join(b.dir, "models", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		b.Fatal(err)
	}
	return file
}

func (b *bench) out(name string) string { return filepath.Join(b.dir, "out", name) }

// converted counts the conversions so far.
func (b *bench) converted() int {
	text, _ := os.ReadFile(b.conversions)
	return strings.Count(string(text), "\n")
}

func (b *bench) worker(root string) *Worker {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	return &Worker{Commands: commands, Process: NewProcess(2, self, "limited"), Root: root, Cache: b.cache, Build: "1", Version: "1", Name: "here"}
}

func (b *bench) batch() *Batch {
	b.Helper()
	p, err := NewPlan(commands, Request{Models: filepath.Join(b.dir, "models"), Out: b.out(""), Do: "export", Options: b.options, Limits: b.limits, Tries: 3, Build: "1"})
	if err != nil {
		b.Fatal(err)
	}
	batch := &Batch{Plan: p, Out: b.out(""), Worker: b.worker(p.Root), Jobs: 2, Silence: 2 * time.Second, Log: b.Logf}
	if b.change != nil {
		b.change(batch)
	}
	return batch
}

func (b *bench) run() map[string]*Result {
	b.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	found, err := b.batch().Run(ctx)
	if err != nil {
		b.Fatal(err)
	}
	byName := map[string]*Result{}
	for _, r := range found {
		if byName[r.Name] != nil {
			b.Errorf("%s has two results", r.Name)
		}
		byName[r.Name] = r
	}
	return byName
}

// The runtime has several words for memory that it does not get.
func TestOutOfMemory(t *testing.T) {
	const fault = "SIGSEGV: segmentation violation\nPC=0x43a41d m=0 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x20431e0 m=0 mp=0x20447c0 [idle]:\n"
	for said, want := range map[string]bool{
		"fatal error: runtime: out of memory": true,
		"runtime: mmap(0x1, 4096) returned 0x0, errno=12\nfatal error: runtime: cannot allocate memory": true,
		fault + "runtime.(*spanQueue).tryDrain(0x7ffd00000400?)":                                        true,
		fault + "main.main()": false,
		"panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0]": false,
	} {
		if got := outOfMemory(said); got != want {
			t.Errorf("%v: %s", got, said)
		}
	}
}

// What is done is not done again, unless its files are gone or its model has changed; failures are with Retry.
func TestAgain(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "fine b", "c.ir": "die"})
	b.run()
	if n := b.converted(); n != 2 {
		t.Fatalf("%d conversions", n)
	}
	first, err := os.ReadFile(b.out(Results))
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	if again, _ := os.ReadFile(b.out(Results)); b.converted() != 2 || string(again) != string(first) {
		t.Errorf("%d conversions, results:\n%s", b.converted(), again)
	}
	if err := os.Remove(b.out("a.onnx")); err != nil {
		t.Fatal(err)
	}
	if b.run(); b.converted() != 3 {
		t.Errorf("%d conversions after a file was removed", b.converted())
	}
	b.write("b.ir", "fine, but another one")
	if b.run(); b.converted() != 4 {
		t.Errorf("%d conversions after a model was changed", b.converted())
	}
	b.write("c.ir", "die again")
	b.run()
	b.change = func(batch *Batch) { batch.Retry = true }
	if r := b.run()["c"]; r.Status != Failed || b.converted() != 4 {
		t.Errorf("%d conversions, %+v", b.converted(), r)
	}
	b.options = []Option{{Name: "opset", Value: "9"}}
	if b.run(); b.converted() != 6 {
		t.Errorf("%d conversions after the options were changed", b.converted())
	}
}

// A last line that was not finished is as if it had never been begun.
func TestHalfALine(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "fine b"})
	b.run()
	text, err := os.ReadFile(b.out(Results))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.out(Results), text[:len(text)-5], 0o666); err != nil {
		t.Fatal(err)
	}
	if found := b.run(); len(found) != 2 || b.converted() != 3 {
		t.Errorf("%d results, %d conversions", len(found), b.converted())
	}
	if again, _ := os.ReadFile(b.out(Results)); strings.Count(string(again), "\n") != 2 {
		t.Errorf("%s", again)
	}
}

// The same bytes with the same options are converted once, under any name. A file of the cache that was changed is made again.
func TestCache(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine"})
	b.cache = &Cache{Dir: filepath.Join(b.dir, "cache")}
	b.change = func(batch *Batch) { batch.Jobs = 1 } // two at a time may both find nothing
	b.run()
	b.write("other/name.ir", "fine")
	if r := b.run()["other/name"]; !r.Cached || b.converted() != 1 {
		t.Errorf("%d conversions, %+v", b.converted(), r)
	}
	if text, err := os.ReadFile(b.out("other/name.onnx")); err != nil || string(text) != "made of fine" {
		t.Error(string(text), err)
	}
	files, err := filepath.Glob(filepath.Join(b.dir, "cache/files/*/*"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte("damaged!"), 0o666); err != nil {
		t.Fatal(err)
	}
	b.write("third.ir", "fine")
	if r := b.run()["third"]; r.Cached || b.converted() != 2 {
		t.Errorf("%d conversions, %+v", b.converted(), r)
	}
	if text, _ := os.ReadFile(files[0]); string(text) != "made of fine" {
		t.Errorf("the cache has %q", text)
	}
	b.options = []Option{{Name: "opset", Value: "9"}}
	if b.run(); b.converted() != 3 {
		t.Errorf("%d conversions with another option", b.converted())
	}
	old := time.Now().Add(-2 * unused)
	if err := os.Chtimes(files[0], old, old); err != nil {
		t.Fatal(err)
	}
	if err := b.cache.Trim(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files[0]); err == nil {
		t.Error("what nobody asked for in two months is still there")
	}
}

// Two batches do not work on one folder.
func TestBusy(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "sleep"})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := b.batch().Run(ctx)
		ended <- err
	}()
	for {
		if _, err := os.Stat(b.out(".aton/queue")); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, err := b.batch().Run(context.Background()); err == nil || !strings.Contains(err.Error(), ErrBusy.Error()) {
		t.Errorf("%v", err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("a batch that was stopped has no error")
	}
	b.write("a.ir", "fine") // the model is another one, and the queue has the item of the first
	if r := b.run()["a"]; r.Status != OK {
		t.Errorf("%+v", r)
	}
}

// queueOf starts a server with the items of a batch, without a worker.
func queueOf(t *testing.T, b *bench) (*Queue, *job, *Batch) {
	t.Helper()
	s, err := StartServer(filepath.Join(b.dir, "server"), Listen{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	q, err := s.Connect(Access{}, "1", Coordinator, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	if err := q.prepare(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	batch := b.batch()
	id := randomID()
	j, err := q.makeJob(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range batch.Plan.Items {
		it.Job = id
	}
	if err := q.publish(t.Context(), batch.Plan.Items, nil); err != nil {
		t.Fatal(err)
	}
	return q, j, batch
}

// takeAll runs a worker until the queue is empty, and gives the results.
func takeAll(t *testing.T, q *Queue, j *job, w *Worker) map[string]*Result {
	t.Helper()
	w.Folder = t.TempDir()
	if err := w.Take(t.Context(), q, Serving{Jobs: 2, Idle: time.Second, Log: t.Logf}); err != nil {
		t.Fatal(err)
	}
	keys, err := j.results.ListKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*Result{}
	for key := range keys.Keys() {
		e, err := j.results.Get(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		r := &Result{}
		if key == probe || strings.HasPrefix(key, alive) {
			continue
		}
		if err := json.Unmarshal(e.Value(), r); err != nil {
			t.Fatal(err)
		}
		found[r.Name] = r
	}
	return found
}

// An item that ends its workers is set aside after as many tries as it has.
func TestSetAside(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine"})
	q, j, batch := queueOf(t, b)
	c, err := q.consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // workers that take it and are gone
		m, err := c.Next(jetstream.FetchMaxWait(10 * time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Nak(); err != nil {
			t.Fatal(err)
		}
	}
	r := takeAll(t, q, j, b.worker(batch.Plan.Root))["a"]
	if r == nil || r.Status != Failed || r.Tries != 3 || r.Diagnostics[0].ID != "set-aside" || b.converted() != 0 {
		t.Errorf("%+v, %d conversions", r, b.converted())
	}
}

// A worker that says nothing loses its item to another one; the result is that of whoever is first.
func TestFirstResult(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "fine b"})
	q, j, batch := queueOf(t, b)
	c, err := q.consumer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lost, err := c.Next(jetstream.FetchMaxWait(10 * time.Second)) // and never acknowledged
	if err != nil {
		t.Fatal(err)
	}
	var it Item
	if err := json.Unmarshal(lost.Data(), &it); err != nil {
		t.Fatal(err)
	}
	w := b.worker(batch.Plan.Root)
	w.Name = "second"
	w.Folder = t.TempDir()
	if err := w.Take(t.Context(), q, Serving{Jobs: 1, Idle: 4 * time.Second, Log: t.Logf}); err != nil {
		t.Fatal(err)
	}
	late := b.worker(batch.Plan.Root)
	late.Folder = t.TempDir()
	if err := late.handle(t.Context(), q, c, lost, Serving{Log: t.Logf}); err != nil {
		t.Fatal(err)
	}
	found := takeAll(t, q, j, late)
	for _, name := range []string{"a", "b"} {
		if r := found[name]; r == nil || r.Status != OK || r.Worker != "second" {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if found[it.Name].Tries != 2 || b.converted() != 2 {
		t.Errorf("%d tries, %d conversions", found[it.Name].Tries, b.converted())
	}
}

// Models and what is made of them go through the queue where workers see none of the files.
func TestUpload(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine a", "sub/b.ir": "fine b"})
	weights := b.write("../weights.bin", "numbers")
	b.options = []Option{{Name: "weights", Value: weights}, {Name: "input", Value: "x:f32[2]"}}
	s, err := StartServer(filepath.Join(b.dir, "server"), Listen{Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	address, token := s.Listening()
	elsewhere := b.worker(t.TempDir())
	elsewhere.Folder = t.TempDir()
	q, err := Dial(Access{URLs: address, Token: token}, "1", Taker, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if _, err := Dial(Access{URLs: address}, "1", Taker, nil); err == nil {
		t.Error("who has no token is let in")
	}
	if info, err := os.Stat(token); err != nil || info.Mode().Perm() != 0o600 {
		t.Error("others may read the token", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- elsewhere.Take(ctx, q, Serving{Jobs: 2, Log: t.Logf}) }()
	b.change = func(batch *Batch) {
		batch.Access, batch.Jobs, batch.Upload = Access{URLs: address, Token: token}, 0, true
	}
	found := b.run()
	cancel()
	<-ended
	for name, want := range map[string]string{"a": "made of fine a", "sub/b": "made of fine b"} {
		text, err := os.ReadFile(b.out(name + ".onnx"))
		if r := found[name]; r == nil || r.Status != OK || err != nil || string(text) != want {
			t.Errorf("%s: %+v: %s %v", name, r, text, err)
		}
	}
	streams := q.js.ListStreams(t.Context())
	for info := range streams.Info() {
		if name := info.Config.Name; name != stream && name != files.stream && name != outputs.stream || info.State.Msgs > 0 {
			t.Errorf("%s is left on the server, with %d messages", name, info.State.Msgs)
		}
	}
	if err := streams.Err(); err != nil {
		t.Error(err)
	}
}
