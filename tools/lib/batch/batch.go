package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Batch is a plan and how it is done.
type Batch struct {
	Plan *Plan
	// Out is the folder for results.jsonl and what is written. What belongs to the work itself is in its folder .aton.
	Out string
	// Access is where the queue is; without URLs it is a server inside of this process, which listens at Listen if that is not empty.
	Access Access
	Listen Listen
	// Listening is told where workers come in, and the file with their token, if it is that which lets them in; it may be nil.
	Listening func(address, token string)
	// Worker does items here, as many at a time as Jobs; none with 0.
	Worker *Worker
	Jobs   int
	// Upload has the models go through the queue, for workers that do not see this machine's files.
	Upload bool
	// Retry does items again that failed or passed a limit in a run before.
	Retry bool
	// Silence is how long a worker may say nothing before its item goes to another one.
	Silence time.Duration
	// Patience is how long a server elsewhere may be gone, or take nothing, before the batch ends with an error.
	Patience time.Duration
	// Progress is told of each result that comes in, with how many there are of how many; it may be nil.
	Progress func(r *Result, done, all int)
	// Log is told what goes wrong with the queue; it may be nil.
	Log func(format string, args ...any)
}

// Results is the name of the file of results in the folder of outputs.
const Results = "results.jsonl"

// ErrBusy says that another process works on the folder of outputs.
var ErrBusy = errors.New("another batch works on this folder")

// run is a batch at work.
type run struct {
	*Batch
	id     string
	items  map[string]*Item // by key
	done   map[string]*Result
	before map[string]bool // what was done in a run before
	placed sync.Map        // by key, the hashes of files that this process has put in their places
	log    *journal
	queue  *Queue
	job    *job
	// heard is when an item was last put into the queue, or a worker last said that it is at work on it.
	heard map[string]time.Time
	// here are the paths of files that were put into the queue, by hash.
	here map[string]string
	// refused counts the results of a key that were not taken.
	refused map[string]int
	options map[string]string // hashes of what options name
}

// Run does what has no result yet, and gives all results, in the order of the plan. With an error it gives those that there are.
func (b *Batch) Run(ctx context.Context) (found []*Result, err error) {
	b.Patience = cmp.Or(b.Patience, time.Minute)
	state := filepath.Join(b.Out, ".aton")
	if err := os.MkdirAll(state, 0o700); err != nil { // it will have models, and the token of workers
		return nil, diskError(err)
	}
	lock, err := atomicfile.Claim(filepath.Join(state, "lock"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Out, errors.Join(ErrBusy, err))
	}
	defer lock.Close()
	r := &run{Batch: b, items: map[string]*Item{}, heard: map[string]time.Time{}, here: map[string]string{}, refused: map[string]int{}, options: map[string]string{}}
	if err := r.resume(); err != nil {
		return nil, diskError(err)
	}
	defer func() { err = diskError(errors.Join(err, r.log.file.Close())) }()
	var todo []*Item
	for _, it := range b.Plan.Items {
		if r.done[it.Key] == nil {
			todo = append(todo, it)
		}
	}
	if len(todo) > 0 {
		err = r.work(ctx, state, todo)
	}
	if err == nil {
		err = writeJournal(r.log.path, b.Plan.Items, r.done)
	}
	for _, it := range b.Plan.Items {
		if result := r.done[it.Key]; result != nil {
			found = append(found, result)
		}
	}
	return found, err
}

// resume reads what earlier runs have done.
func (r *run) resume() error {
	path := filepath.Join(r.Out, Results)
	done, err := readJournal(path)
	if err != nil {
		return err
	}
	r.done, r.before = map[string]*Result{}, map[string]bool{}
	for _, it := range r.Plan.Items {
		r.items[it.Key] = it
		old := done[it.Key]
		if old == nil {
			continue
		}
		r.before[it.Key] = true
		if (old.Final() || !r.Retry) && (old.Within == nil || *old.Within == it.Limits) && checkOutputs(it, old) == nil && r.same(it, old) && r.current(it, old) {
			r.done[it.Key] = old
		}
	}
	if err := writeJournal(path, r.Plan.Items, r.done); err != nil {
		return err
	}
	r.log, err = openJournal(path)
	return err
}

// current says whether a result was made of what the files are now, not only of files with these sizes and times.
func (r *run) current(it *Item, result *Result) bool {
	if result.Made == "" { // it came to no conversion
		return true
	}
	now, err := r.Plan.made(it, r.options)
	return err == nil && (now == "" || now == result.Made)
}

// same says whether the files of a result are in their places with the bytes that they should have.
func (r *run) same(it *Item, result *Result) bool {
	for _, f := range result.Outputs {
		at, err := r.placeOf(it, f.Name)
		if err != nil {
			return false
		}
		if got, err := hashFile(at); err != nil || got.Hash != f.Hash {
			return false
		}
	}
	return true
}

// place moves files of a result to their places, those before the model first.
func (r *run) place(it *Item, result *Result, dir string) (bool, error) {
	if !r.ours(it) {
		return false, nil
	}
	if err := checkOutputs(it, result); err != nil {
		return false, fmt.Errorf("%s: the result: %w", it.Name, err)
	}
	for i, f := range result.Outputs {
		to, err := r.placeOf(it, f.Name)
		if err != nil {
			return false, err
		}
		if err := move(filepath.Join(dir, f.Name), to, f.Hash); err != nil {
			return false, err
		}
		result.Outputs[i].Name = path.Join(path.Dir(it.Name), f.Name)
	}
	r.placed.Store(it.Key, hashes(result))
	return true, nil
}

// hashes are those of the files of a result.
func hashes(r *Result) string {
	var all []string
	for _, f := range r.Outputs {
		all = append(all, f.Hash)
	}
	return strings.Join(all, " ")
}

// ours says whether an item of the queue is one of this batch, as it was put there.
func (r *run) ours(it *Item) bool {
	own := r.items[it.Key]
	return own != nil && digest(own) == digest(it)
}

// work does items by the queue.
func (r *run) work(ctx context.Context, state string, todo []*Item) error {
	ctx, stop := context.WithCancelCause(ctx)
	cancel := func() { stop(nil) }
	defer cancel()
	id := filepath.Join(state, "job")
	if err := r.identify(id); err != nil {
		return err
	}
	closeQueue, err := r.open(filepath.Join(state, "queue"))
	if err != nil {
		return err
	}
	defer closeQueue()
	if err := r.patiently(ctx, func() error { return r.queue.prepare(ctx, r.Silence) }); err != nil {
		return err
	}
	if err := r.patiently(ctx, func() (err error) { r.job, err = r.queue.makeJob(ctx, r.id); return err }); err != nil {
		return err
	}
	for _, it := range r.Plan.Items {
		it.Job = r.id
	}
	if err := r.enqueue(ctx, todo); err != nil {
		return err
	}
	if r.Jobs > 0 {
		w := r.Worker
		w.Folder = filepath.Join(state, "work")
		_ = os.RemoveAll(w.Folder) // of a run that was killed; on a network file system a file may be in use, and stay
		w.Trusted = r.ours
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := w.Take(ctx, r.queue, Serving{Jobs: r.Jobs, Place: r.place, Log: r.Log}); err != nil {
				stop(err) // nobody would do the items
			}
		}()
		defer func() {
			cancel()
			<-ended
			os.RemoveAll(w.Folder)
		}()
	}
	if err := r.collect(ctx); err != nil {
		return err
	}
	cancel() // workers have only what was done by others already
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer done()
	if err := r.patiently(closing, func() error { return r.queue.endJob(closing, r.id) }); err != nil {
		return err
	}
	_ = os.Remove(id) // with that of a job that is over, the next batch begins it anew
	return nil
}

// identify gives the job the identifier that an earlier run began it with.
func (r *run) identify(file string) error {
	if text, err := os.ReadFile(file); err == nil && len(text) == 32 {
		r.id = string(text)
		return nil
	}
	r.id = randomID()
	return atomicfile.Write(file, func(w io.Writer) error {
		_, err := io.WriteString(w, r.id)
		return err
	})
}

// open connects to the queue.
func (r *run) open(folder string) (closeQueue func(), err error) {
	if r.Access.URLs != "" {
		if r.queue, err = Dial(r.Access, r.Worker.Version, Coordinator, r.Log); err != nil {
			return nil, err
		}
		return r.queue.Close, nil
	}
	s, err := StartServer(folder, r.Listen)
	if err != nil {
		return nil, err
	}
	if r.queue, err = s.Connect(r.Access, r.Worker.Version, Coordinator, r.Log); err != nil {
		s.Close()
		return nil, err
	}
	if address, token := s.Listening(); address != "" && r.Listening != nil {
		r.Listening(address, token)
	}
	return func() {
		r.queue.Close()
		s.Close()
		if len(r.done) == len(r.Plan.Items) {
			os.RemoveAll(folder) // nothing is left to do
		}
	}, nil
}

// enqueue puts items into the queue. What the server has a result of, from a run that was killed, comes by itself.
func (r *run) enqueue(ctx context.Context, todo []*Item) error {
	again := map[string]bool{}
	for _, it := range todo {
		if r.before[it.Key] { // its files are gone, or it is to be done again
			again[it.Key] = true
			if err := r.patiently(ctx, func() error { return r.job.forget(ctx, it.Key) }); err != nil {
				return err
			}
		}
		if r.Upload {
			if err := r.patiently(ctx, func() error { return r.upload(ctx, it) }); err != nil {
				return fmt.Errorf("%s: %w", it.Name, err)
			}
		}
	}
	return r.patiently(ctx, func() error { return r.publish(ctx, todo, again) })
}

// publish puts items into the queue, those that may be known to the server again.
func (r *run) publish(ctx context.Context, items []*Item, again map[string]bool) error {
	for _, it := range items {
		r.heard[it.Key] = time.Now()
	}
	return r.queue.publish(ctx, items, again)
}

// upload puts the files of an item into the queue.
func (r *run) upload(ctx context.Context, it *Item) error {
	sources := []*Source{&it.Model}
	it.Options = slices.Clone(it.Options)
	for i := range it.Options {
		if f := it.Options[i].File; f != nil {
			own := *f
			it.Options[i].File = &own
			sources = append(sources, &own)
		}
	}
	for _, s := range sources {
		if s.Path == "" {
			continue
		}
		b, err := filesOf(r.Plan.local(*s))
		if err != nil {
			return err
		}
		objects, _, err := b.hash()
		if err != nil {
			return err
		}
		for i, o := range objects {
			r.here[o.Hash] = filepath.Join(b.dir, b.names[i])
		}
		if err := r.provide(ctx, objects); err != nil {
			return err
		}
		*s = Source{Objects: objects, Entry: b.entry}
	}
	return nil
}

// provide puts files into the queue that are not there.
func (r *run) provide(ctx context.Context, objects []File) error {
	for _, o := range objects {
		there, err := r.queue.has(ctx, files, o.Size, r.id, o.Hash)
		if err == nil && !there {
			err = r.queue.put(ctx, files, r.here[o.Hash], r.id, o.Hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// looks is how often the server is looked at when nothing comes from it.
var looks = 5 * time.Second // less in a test

// collect takes results until each item has one.
func (r *run) collect(ctx context.Context) error {
	var watch jetstream.KeyWatcher
	var updates <-chan jetstream.KeyValueEntry
	stop := func() {
		if watch != nil {
			go func(watch jetstream.KeyWatcher) {
				_ = watch.Stop()            // waits for the server's answer
				for range watch.Updates() { // the watch does not end before it is read to its end
				}
			}(watch)
			watch = nil
		}
	}
	defer func() { stop() }()
	tick := time.NewTicker(looks)
	defer tick.Stop()
	early := true // what comes now was there before
	var ill illness
	var quiet silence
	var broken pauses
	for len(r.done) < len(r.Plan.Items) {
		if watch == nil {
			err := r.patiently(ctx, func() (err error) {
				if watch, err = r.job.watch(ctx); errors.Is(err, nats.ErrStreamNotFound) { // the bucket is lost, with results that are made again
					if _, err = r.queue.makeJob(ctx, r.id); err == nil {
						watch, err = r.job.watch(ctx)
					}
				}
				return err
			})
			if err != nil {
				return err
			}
			updates = watch.Updates()
		}
		select {
		case e, ok := <-updates:
			switch {
			case !ok && r.queue.nc.IsClosed():
				return r.queue.named(errors.New("the queue gives no more results: the connection is closed"))
			case !ok: // the library could not go on with it
				watch = nil
				broken.wait(ctx)
			case e == nil:
				early = false
			case e.Operation() == jetstream.KeyValuePut:
				if key, ok := strings.CutPrefix(e.Key(), alive); ok && r.items[key] != nil {
					r.heard[key] = time.Now()
				}
				it := r.items[e.Key()]
				if it == nil || r.done[e.Key()] != nil {
					continue // of a manifest that has changed
				}
				if err := r.take(ctx, it, e.Value(), early); err != nil {
					return err
				}
			}
		case <-tick.C:
			if err := ill.judge(ctx, r); err != nil {
				return err
			}
			if quiet.looks++; len(r.done) != quiet.done {
				quiet = silence{done: len(r.done)}
			}
			if quiet.looks < 3 || !ill.since.IsZero() {
				continue
			}
			// what is not answered now is by the next look, or the server is ill
			if missed, err := r.revive(ctx); err == nil {
				quiet.looks = 0
				if missed {
					stop()
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// silence counts how often the server was looked at while no result came.
type silence struct{ done, looks int }

// revive puts items into the queue again that it has lost: a server whose disk was full has dropped them, or its stream, and tells nobody; one
// whose clock was put back gives what workers gave back only when its clock is where it was. It says whether there are results that
// the watch has missed.
func (r *run) revive(ctx context.Context) (missed bool, err error) {
	if err := r.queue.prepare(ctx, r.Silence); err != nil {
		return false, err
	}
	waiting, err := r.queue.waiting(ctx, r.id)
	if err != nil {
		return false, err
	}
	idle, err := r.queue.idle(ctx)
	if err != nil {
		return false, err
	}
	// after what waits: an item leaves the queue when its result is stored
	stored, err := r.queue.keys(ctx, "KV_"+results+r.id, resultSubject(r.id, "*"))
	if err != nil {
		return false, err
	}
	var lost []*Item
	again := map[string]bool{}
	gone, stuck := 0, 0
	for _, it := range r.Plan.Items {
		switch {
		case r.done[it.Key] != nil:
			continue
		case stored[it.Key]:
			missed = true
			continue
		case !waiting[it.Key]:
			gone++
		case idle && time.Since(r.heard[it.Key]) > 2*r.Silence+looks: // no worker has it, and none gets it
			stuck++
		default:
			continue
		}
		objects := slices.Clone(it.Model.Objects) // there are some where files go through the queue
		for _, o := range it.Options {
			if o.File != nil {
				objects = append(objects, o.File.Objects...)
			}
		}
		if err := r.provide(ctx, objects); err != nil {
			return missed, err
		}
		lost = append(lost, it)
		again[it.Key] = true
	}
	if gone > 0 {
		r.tell("%d models are in the queue no longer, and are put there again", gone)
	}
	if stuck > 0 {
		r.tell("%d models are in the queue and come to no worker, and are put there again", stuck)
	}
	return missed, r.publish(ctx, lost, again)
}

// illness knows for how long the server has not been as it should.
type illness struct{ since time.Time }

func (i *illness) judge(ctx context.Context, r *run) error {
	err, hopeless := r.queue.check(ctx, r.job)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err == nil:
		i.since = time.Time{}
		return nil
	case hopeless:
		return err
	case i.since.IsZero():
		i.since = time.Now()
		r.tell("%v", err)
	case time.Since(i.since) > r.Patience:
		return fmt.Errorf("%w; nothing can be done without it for %v, so run the same command again later: it goes on", err, r.Patience)
	}
	return nil
}

// tell writes to the log.
func (r *run) tell(format string, args ...any) {
	if r.Log != nil {
		r.Log(format, args...)
	}
}

// patiently does something with the server, again and again with longer pauses while that can help.
func (r *run) patiently(ctx context.Context, do func() error) error {
	var p pauses
	var since time.Time // of the first failure
	for {
		err := diskError(do())
		var disk *DiskError
		var path *fs.PathError
		if err == nil || errors.As(err, &disk) || errors.As(err, &path) || errors.Is(err, errLost) || ctx.Err() != nil || !since.IsZero() && time.Since(since) > r.Patience {
			return err
		}
		if r.queue.inside != nil {
			if failed := r.queue.inside.failed(); failed != nil {
				return failed
			}
		}
		if since.IsZero() {
			since = time.Now()
			r.tell("%v; trying again", err)
		}
		p.wait(ctx)
	}
}

// readResult reads a result that came from the queue, of which nothing is taken on trust.
func readResult(it *Item, text []byte) (*Result, error) {
	var r Result
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	switch {
	case r.Key != it.Key || r.Name != it.Name:
		return nil, errors.New("it is that of another item")
	case !slices.Contains(Statuses, r.Status):
		return nil, fmt.Errorf("there is no status %q", r.Status)
	case r.Seconds < 0 || r.Tries < 0 || r.More < 0:
		return nil, errors.New("a number is below zero")
	case r.Hash != "" && !hexHash.MatchString(r.Hash), r.Made != "" && !hexHash.MatchString(r.Made), r.Status == OK && r.Made == "":
		return nil, errors.New("a hash is none")
	}
	for _, d := range r.Diagnostics {
		if !slices.Contains([]string{"error", "warning", "note"}, d.Level) {
			return nil, fmt.Errorf("a diagnostic has no level %q", d.Level)
		}
	}
	return &r, checkOutputs(it, &r)
}

// take takes a result, or has the item done again.
func (r *run) take(ctx context.Context, it *Item, text []byte, early bool) error {
	result, err := readResult(it, text)
	if err == nil && early && !r.current(it, result) {
		err = errors.New("the model was changed since")
	}
	if err == nil {
		if placed, _ := r.placed.Load(it.Key); placed != hashes(result) && !r.same(it, result) {
			err = r.patiently(ctx, func() error { return r.fetch(ctx, it, result) })
			if err != nil && !errors.Is(err, errLost) {
				return fmt.Errorf("%s: %w", it.Name, err)
			}
		}
	}
	if err != nil {
		r.refused[it.Key]++
		r.tell("%s: a result is not taken: %v", it.Name, err)
		if r.refused[it.Key] <= it.Tries {
			return r.patiently(ctx, func() error {
				if err := r.job.forget(ctx, it.Key); err != nil {
					return err
				}
				return r.publish(ctx, []*Item{it}, map[string]bool{it.Key: true})
			})
		}
		result = &Result{Name: it.Name, Key: it.Key, Status: Failed, Outputs: []File{}, Tries: r.refused[it.Key],
			Diagnostics: []cli.Problem{refusal("set-aside", "%d results came that could not be taken, the last one because %v", r.refused[it.Key], err)}}
	}
	for i := range result.Outputs {
		result.Outputs[i].Name = path.Join(path.Dir(it.Name), path.Base(result.Outputs[i].Name))
	}
	if result.Within = nil; result.Status == Timeout || result.Status == Memory {
		result.Within = &it.Limits
	}
	if err := r.log.add(result); err != nil {
		return diskError(err)
	}
	r.done[it.Key] = result
	if r.Progress != nil {
		r.Progress(result, len(r.done), len(r.Plan.Items))
	}
	return nil
}

// fetch gets the files of a result from the queue, and removes them there.
func (r *run) fetch(ctx context.Context, it *Item, result *Result) error {
	var g atomicfile.Group
	defer g.Abandon()
	for _, f := range result.Outputs {
		to, err := r.placeOf(it, f.Name)
		if err != nil {
			return fmt.Errorf("%w: %w", errLost, err)
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		err = g.Add(to, func(w io.Writer) error {
			h := sha256.New()
			if err := r.queue.get(ctx, outputs, io.MultiWriter(w, h), f.Size, r.id, it.Key, f.Hash); err != nil {
				return err
			}
			if hex.EncodeToString(h.Sum(nil)) != f.Hash {
				return errLost
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := g.Commit(); err != nil {
		return err
	}
	if len(result.Outputs) > 0 {
		_ = r.queue.drop(ctx, outputs.stream, outputs.subject(r.id, it.Key)+".>") // what stays goes with the job
	}
	return nil
}
