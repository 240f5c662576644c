package batch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// What an item asks for is never more than the worker allows, whatever the number is.
func TestLimitsAreUpperBounds(t *testing.T) {
	worker := Limits{Timeout: time.Minute, Memory: 1 << 30}
	for _, c := range []struct{ asks, want Limits }{
		{Limits{}, worker}, {Limits{Timeout: -1}, worker}, {Limits{Timeout: -1 << 63}, worker}, {Limits{Timeout: 1<<63 - 1, Memory: 1<<64 - 1}, worker},
		{Limits{Timeout: time.Second}, Limits{time.Second, 1 << 30}}, {Limits{Memory: 1}, Limits{time.Minute, 1}}, {Limits{Timeout: time.Hour, Memory: 1 << 40}, worker},
	} {
		if got := c.asks.Within(worker); got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.asks, got, c.want)
		}
	}
	if got := (Limits{Timeout: -5}).Within(Limits{Timeout: -7}); got != (Limits{}) {
		t.Errorf("%+v", got)
	}
	b := newBench(t, map[string]string{"a.ir": "sleep"})
	w := b.worker(filepath.Join(b.dir, "models"))
	w.Limits = Limits{Timeout: time.Second}
	if r := do(t, b, w, Item{Model: Source{Path: "a.ir"}, Limits: Limits{Timeout: -1}}); r.Status != Timeout {
		t.Errorf("%+v", r)
	}
}

// Folders and links in them, and the data of a model, are read below the root alone; and what is refused is refused in the same words
// whether there is something outside or not.
func TestRootHolds(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine", "data/x": "x"})
	root := filepath.Join(b.dir, "models")
	b.write("../secret/x", "secret")
	link := func(to, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Skip(err)
		}
	}
	link("../data", "inside/again")
	link("../../secret", "outside/there")
	link("../../nothing", "outside2/there")
	link("../../secret/x", "file/there")
	link("../../secret/none", "file2/there")
	link(filepath.Join(b.dir, "secret"), "absolute/there")
	link(filepath.Join(b.dir, "nothing"), "absolute2/there")
	link("../../secret", "deep/a/b/there")
	link("../secret/x", "w.data")
	b.write("m.onnx", external1("w.data"))
	b.write("up.onnx", external1("../secret/x"))
	say := func(path string) string {
		t.Helper()
		r := do(t, b, b.worker(root), Item{Model: Source{Path: "a.ir"}, Options: []Option{{Name: "weights", File: &Source{Path: path}}}})
		if r.Status == OK {
			return ""
		}
		return "PATH" + strings.TrimPrefix(r.Diagnostics[0].Message, path)
	}
	for _, path := range []string{"data", "inside", "inside/again", "data/x"} {
		if said := say(path); said != "" {
			t.Errorf("%s: %s", path, said)
		}
	}
	for _, pair := range [][2]string{
		{"outside", "outside2"}, {"file", "file2"}, {"absolute", "absolute2"}, {"outside/there", "outside2/there"}, {"file/there", "file2/there"},
		{"outside/there/x", "outside2/there/x"}, {"../secret/x", "../secret/none"}, {"../secret", "../nothing"}, {filepath.Join(b.dir, "secret"), filepath.Join(b.dir, "nothing")},
	} {
		there, not := say(pair[0]), say(pair[1])
		if there == "" || there != not || strings.Contains(there, b.dir) {
			t.Errorf("%s: %s\n%s: %s", pair[0], there, pair[1], not)
		}
	}
	if say("deep") == "" {
		t.Error("a link in a folder in a folder leads out")
	}
	for _, model := range []string{"m.onnx", "up.onnx"} {
		if r := do(t, b, b.worker(root), Item{Model: Source{Path: model}}); r.Status != Failed || r.Hash != "" || !strings.Contains(r.Diagnostics[0].Message, "leads out") {
			t.Errorf("%s: %+v", model, r)
		}
	}
}

// The folder of a worker is its user's alone, also where somebody else has taken its name.
func TestPrivateFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the folder for temporary files is the user's own")
	}
	name := fmt.Sprint("aton-worker-", os.Getuid())
	for what, taken := range map[string]func(dir string) error{
		"free": func(string) error { return nil },
		"ours": func(dir string) error { return os.Mkdir(filepath.Join(dir, name), 0o700) },
		"open to all": func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, name), 0o777), os.Chmod(filepath.Join(dir, name), 0o777))
		},
		"a link":       func(dir string) error { return os.Symlink(t.TempDir(), filepath.Join(dir, name)) },
		"a file":       func(dir string) error { return os.WriteFile(filepath.Join(dir, name), nil, 0o600) },
		"not readable": func(dir string) error { return os.Mkdir(filepath.Join(dir, name), 0) },
		"of another user": func(dir string) error {
			if os.Getuid() != 0 {
				return os.Mkdir(filepath.Join(dir, name), 0o750) // only the superuser can give a folder away
			}
			return errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.Chown(filepath.Join(dir, name), 65534, 65534))
		},
	} {
		tmp := t.TempDir()
		t.Setenv("TMPDIR", tmp)
		if err := taken(tmp); err != nil {
			t.Fatal(err)
		}
		w := &Worker{}
		free, err := w.Home("")
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		info, err := os.Lstat(filepath.Dir(w.Folder))
		if err != nil || !private(info) {
			t.Errorf("%s: %v, %v", what, info, err)
		}
		if inside := filepath.Base(filepath.Dir(w.Folder)) == name; inside != (what == "free" || what == "ours") && what != "not readable" {
			t.Errorf("%s: %s", what, w.Folder)
		}
		free()
	}
}

// Who may not look into the folder of the run or the cache sees none of the models.
func TestModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	b := newBench(t, map[string]string{"a.ir": "fine"})
	b.cache = &Cache{Dir: filepath.Join(b.dir, "cache")}
	b.run()
	for _, dir := range []string{b.out(".aton"), b.cache.Dir, filepath.Join(b.cache.Dir, "files"), filepath.Join(b.cache.Dir, "results")} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
}

// stay changes a file and gives it the time and size that it had.
func stay(t *testing.T, file, text string) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil || int(info.Size()) != len(text) {
		t.Fatal(info, err)
	}
	if err := errors.Join(os.Remove(file), os.WriteFile(file, []byte(text), 0o666), os.Chtimes(file, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

// What is done again goes by content: models, files of options and outputs that were changed under their old sizes and times.
func TestResumeByContent(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "fine b"})
	weights := b.write("../w.bin", "weights")
	b.options = []Option{{Name: "weights", Value: weights}}
	b.run()
	again := func(what string, want int) {
		t.Helper()
		before := b.converted()
		found := b.run()
		if n := b.converted() - before; n != want {
			t.Errorf("%s: %d conversions, want %d", what, n, want)
		}
		for _, name := range []string{"a", "b"} {
			text, err := os.ReadFile(filepath.Join(b.dir, "models", name+".ir"))
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(b.out(name + ".onnx"))
			if err != nil || string(got) != "made of "+string(text) || found[name].Status != OK {
				t.Errorf("%s: %q, %v, %+v", what, got, err, found[name])
			}
		}
	}
	again("nothing", 0)
	stay(t, b.out("a.onnx"), "made by magic!")
	again("an output", 1)
	stay(t, filepath.Join(b.dir, "models/b.ir"), "fine c")
	again("a model", 1)
	stay(t, weights, "WEIGHTS")
	again("a file of an option", 2)
	b.options = append(b.options, Option{Name: "opset", Value: "13"})
	again("another option", 2)
	b.options = b.options[:1]
	again("the option is taken back", 2)
}

// A limit that a model passed is no reason to leave it, once there is another limit.
func TestOtherLimits(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "late"})
	b.limits = Limits{Timeout: 500 * time.Millisecond}
	if r := b.run()["a"]; r.Status != Timeout {
		t.Fatalf("%+v", r)
	}
	before := b.converted()
	if r := b.run()["a"]; r.Status != Timeout || b.converted() != before {
		t.Errorf("%+v", r)
	}
	b.limits = Limits{Timeout: time.Minute}
	if r := b.run()["a"]; r.Status != OK {
		t.Errorf("%+v", r)
	}
}

// A model that is changed while it is converted has the result of what it is in the end, or none.
func TestChangedMeanwhile(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "change once", "b.ir": "change always"})
	b.cache = &Cache{Dir: filepath.Join(b.dir, "cache")}
	found := b.run()
	r := found["a"]
	model, err := hashFile(filepath.Join(b.dir, "models/a.ir"))
	if err != nil || r.Status != OK || r.Hash != model.Hash {
		t.Errorf("%+v, %v", r, err)
	}
	text, _ := os.ReadFile(filepath.Join(b.dir, "models/a.ir"))
	if got, _ := os.ReadFile(b.out("a.onnx")); string(got) != "made of "+string(text) {
		t.Errorf("%q of %q", got, text)
	}
	if r := found["b"]; r.Status != Failed || !strings.Contains(r.Diagnostics[0].Message, "was changed while it was converted") {
		t.Errorf("%+v", r)
	}
	entries := 0
	_ = fs.WalkDir(os.DirFS(b.cache.Dir), "results", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			entries++
		}
		return nil
	})
	if entries != 1 {
		t.Errorf("the cache has %d results", entries)
	}
}

// A cache that cannot be written is told once, and the models are converted.
func TestCacheNotWritable(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "fine b"})
	b.cache = &Cache{Dir: filepath.Join(b.write("../file", ""), "cache")} // below a file there is no folder
	var log lockedLog
	b.change = func(batch *Batch) { batch.Worker.Warn = log.printf }
	for name, r := range b.run() {
		if r.Status != OK {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if n := strings.Count(log.String(), "nothing more is kept in the cache"); n != 1 {
		t.Errorf("told %d times: %s", n, log.String())
	}
}

// A clock that jumps empties the cache at the most: results stay right.
func TestClock(t *testing.T) {
	b := newBench(t, map[string]string{"a.ir": "fine"})
	now := time.Now()
	b.cache = &Cache{Dir: filepath.Join(b.dir, "cache"), Now: func() time.Time { return now }}
	kept := func() bool {
		found, err := filepath.Glob(filepath.Join(b.cache.Dir, "*/*/*"))
		return err == nil && len(found) == 2
	}
	const year = 365 * 24 * time.Hour
	for _, jump := range []time.Duration{0, -10 * year, 20 * year, -10 * year} {
		now = now.Add(jump)
		if err := b.cache.Trim(); err != nil {
			t.Fatal(err)
		}
		if jump < 0 && !kept() {
			t.Errorf("%v: entries are gone", jump)
		}
		if err := os.RemoveAll(b.out("")); err != nil {
			t.Fatal(err)
		}
		if r := b.run()["a"]; r.Status != OK || r.Cached != (jump < 0) {
			t.Errorf("%v: %+v", jump, r)
		}
		if text, err := os.ReadFile(b.out("a.onnx")); err != nil || string(text) != "made of fine" {
			t.Errorf("%v: %q, %v", jump, text, err)
		}
	}
}

// A batch ends with what it has, and says which, when a disk is full.
func TestFullFolder(t *testing.T) {
	for err, want := range map[error]bool{&fs.PathError{Op: "write", Path: "/a/b", Err: full}: true, &os.LinkError{Op: "rename", Old: "/x/y", New: "/a/b", Err: full}: true, full: false, errors.New("no"): false} {
		var disk *DiskError
		if got := errors.As(diskError(fmt.Errorf("more: %w", err)), &disk); got != want || got && disk.Folder != filepath.FromSlash("/a") {
			t.Errorf("%v: %+v", err, disk)
		}
	}
	if err := writable(t.TempDir()); err != nil {
		t.Error(err)
	}
}

// Failures in a row are tried again later and later.
func TestPauses(t *testing.T) {
	var p pauses
	last := time.Duration(0)
	for range 20 {
		next := p.next()
		if next < last || next > longestPause || last > 0 && next != min(2*last, longestPause) {
			t.Errorf("%v after %v", next, last)
		}
		last = next
	}
	if last != longestPause {
		t.Error(last)
	}
}

// Items that a server has lost, with its stream, with the bucket of results, without their files or one by one, are put into the queue again.
func TestLostItems(t *testing.T) {
	defer func(usual time.Duration) { looks = usual }(looks)
	looks = 300 * time.Millisecond
	for _, what := range []string{"messages", "stream", "results", "results early", "files"} {
		b := newBench(t, map[string]string{"a.ir": "fine a", "b.ir": "fine b"})
		s, err := StartServer(filepath.Join(b.dir, "server"), Listen{Address: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		address, token := s.Listening()
		q, err := Dial(Access{URLs: address, Token: token}, "1", Taker, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		var log lockedLog
		b.change = func(batch *Batch) {
			batch.Access, batch.Jobs, batch.Log = Access{URLs: address, Token: token}, 0, log.printf
			batch.Upload = what == "files"
		}
		root := filepath.Join(b.dir, "models")
		if what == "files" {
			root = t.TempDir()
		}
		worker := b.worker(root)
		worker.Folder = t.TempDir()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			for {
				if str, err := q.js.Stream(ctx, stream); err == nil {
					if info, err := str.Info(ctx); err == nil && info.State.Msgs == 2 {
						break
					}
				}
				time.Sleep(10 * time.Millisecond)
			}
			if what == "stream" {
				_ = q.js.DeleteStream(ctx, stream)
			} else if what == "files" {
				_ = q.drop(ctx, files.stream, files.subjects+".>")
			} else if strings.HasPrefix(what, "results") {
				for name := range q.js.StreamNames(ctx, jetstream.WithStreamListSubject("$KV.>")).Name() {
					for watched := what != "results"; !watched; time.Sleep(10 * time.Millisecond) {
						if str, err := q.js.Stream(ctx, name); err == nil {
							watched = str.CachedInfo().State.Consumers > 0
						}
					}
					_ = q.js.DeleteStream(ctx, name)
				}
			} else if str, err := q.js.Stream(ctx, stream); err == nil {
				_ = str.Purge(ctx)
			}
			ended <- worker.Take(ctx, q, Serving{Jobs: 1, Log: t.Logf})
		}()
		for name, r := range b.run() {
			if r.Status != OK {
				t.Errorf("%s: %s: %+v", what, name, r)
			}
		}
		if what != "results early" && !strings.Contains(log.String(), "in the queue no longer") { // a bucket that is made anew in time loses no item
			t.Errorf("%s: %s", what, log.String())
		}
		stop()
		<-ended
	}
}
