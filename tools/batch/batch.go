package batch

import (
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

	"github.com/nats-io/nats.go/jetstream"

	"github.com/aton-project/aton/backend/atomicfile"
)

// Batch is a plan and how it is done.
type Batch struct {
	Plan *Plan
	// Out is the folder for results.jsonl and what is written. What belongs to the work itself is in its folder .aton.
	Out string
	// Access is where the queue is; without URLs it is a server inside of this process, which listens at Listen if that is not empty.
	Access Access
	Listen string
	// Listening is told where workers come in, and the file with their token; it may be nil.
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
	placed sync.Map        // keys of results whose files were put in their places by this process
	log    *journal
	queue  *Queue
	job    *job
}

// Run does what has no result yet, and gives all results, in the order of the plan.
func (b *Batch) Run(ctx context.Context) (found []*Result, err error) {
	state := filepath.Join(b.Out, ".aton")
	if err := os.MkdirAll(state, 0o777); err != nil {
		return nil, err
	}
	lock, err := atomicfile.Claim(filepath.Join(state, "lock"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", b.Out, errors.Join(ErrBusy, err))
	}
	defer lock.Close()
	r := &run{Batch: b, items: map[string]*Item{}}
	if err := r.resume(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.log.file.Close()) }()
	var todo []*Item
	for _, it := range b.Plan.Items {
		if r.done[it.Key] == nil {
			todo = append(todo, it)
		}
	}
	if len(todo) > 0 {
		if err := r.work(ctx, state, todo); err != nil {
			return nil, err
		}
	}
	if err := writeJournal(r.log.path, b.Plan.Items, r.done); err != nil {
		return nil, err
	}
	for _, it := range b.Plan.Items {
		found = append(found, r.done[it.Key])
	}
	return found, nil
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
		if r.complete(it, old) && (old.Final() || !r.Retry) {
			r.done[it.Key] = old
		}
	}
	if err := writeJournal(path, r.Plan.Items, r.done); err != nil {
		return err
	}
	r.log, err = openJournal(path)
	return err
}

// complete says whether the files of a result are in their places.
func (r *run) complete(it *Item, result *Result) bool {
	for _, f := range result.Outputs {
		at, err := r.placeOf(it, f.Name)
		if err != nil {
			return false
		}
		if info, err := os.Stat(at); err != nil || !info.Mode().IsRegular() || info.Size() != f.Size {
			return false
		}
	}
	return true
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

// placeOf is where a file of an item belongs. Names come from workers, which may be anybody's: a file is beside the model of the
// item and has its name.
func (r *run) placeOf(it *Item, name string) (string, error) {
	base := path.Base(name)
	if checkName(base) != nil || !strings.HasPrefix(base, path.Base(it.Name)+".") {
		return "", fmt.Errorf("%s: %q is no file of this model", it.Name, name)
	}
	return filepath.Join(r.Out, filepath.FromSlash(path.Dir(it.Name)), base), nil
}

// place moves files of a result to their places, those before the model first.
func (r *run) place(it *Item, result *Result, dir string) (bool, error) {
	if !r.ours(it) {
		return false, nil
	}
	for i, f := range result.Outputs {
		to, err := r.placeOf(it, f.Name)
		if err != nil {
			return false, err
		}
		if err := move(filepath.Join(dir, f.Name), to); err != nil {
			return false, err
		}
		result.Outputs[i].Name = path.Join(path.Dir(it.Name), f.Name)
	}
	r.placed.Store(it.Key, true)
	return true, nil
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
	closeQueue, err := r.open(ctx, filepath.Join(state, "queue"))
	if err != nil {
		return err
	}
	defer closeQueue()
	if r.job, err = r.queue.makeJob(ctx, r.id); err != nil {
		return err
	}
	for _, it := range r.Plan.Items {
		it.Job = r.id
	}
	watch, err := r.job.results.WatchAll(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = watch.Stop() }()
	if err := r.enqueue(ctx, todo); err != nil {
		return err
	}
	if r.Jobs > 0 {
		w := r.Worker
		w.Folder = filepath.Join(state, "work")
		if err := os.RemoveAll(w.Folder); err != nil { // of a run that was killed
			return err
		}
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
	if err := r.collect(ctx, watch.Updates()); err != nil {
		return err
	}
	cancel() // workers have only what was done by others already
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer done()
	if err := r.queue.endJob(closing, r.id); err != nil {
		return err
	}
	return os.Remove(id)
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
func (r *run) open(ctx context.Context, folder string) (closeQueue func(), err error) {
	if r.Access.URLs != "" {
		if r.queue, err = Dial(ctx, r.Access, r.Worker.Version, r.Silence); err != nil {
			return nil, err
		}
		return r.queue.Close, nil
	}
	s, err := StartServer(folder, r.Listen)
	if err != nil {
		return nil, err
	}
	if r.queue, err = s.Connect(ctx, r.Worker.Version, r.Silence); err != nil {
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
			if err := r.job.results.Purge(ctx, it.Key); err != nil {
				return err
			}
		}
		if r.Upload {
			if err := r.upload(ctx, it); err != nil {
				return fmt.Errorf("%s: %w", it.Name, err)
			}
		}
	}
	return r.queue.publish(ctx, todo, again)
}

// upload puts the files of an item into the object store.
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
			if err := r.job.upload(ctx, o.Hash, filepath.Join(b.dir, b.names[i])); err != nil {
				return err
			}
		}
		*s = Source{Objects: objects, Entry: b.entry}
	}
	return nil
}

// collect takes results until each item has one.
func (r *run) collect(ctx context.Context, updates <-chan jetstream.KeyValueEntry) error {
	for len(r.done) < len(r.Plan.Items) {
		var e jetstream.KeyValueEntry
		select {
		case entry, ok := <-updates:
			if !ok {
				return errors.New("the queue gives no more results: the connection is closed")
			}
			e = entry
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if e == nil || e.Operation() != jetstream.KeyValuePut {
			continue // nil ends those that were there before
		}
		it := r.items[e.Key()]
		if it == nil || r.done[e.Key()] != nil {
			continue // of a manifest that has changed
		}
		var result Result
		if err := json.Unmarshal(e.Value(), &result); err != nil || result.Key != it.Key || result.Name != it.Name || !slices.Contains(Statuses, result.Status) {
			return fmt.Errorf("%s: the queue has a result of another form; is it used by another program?", it.Name)
		}
		if _, placed := r.placed.Load(it.Key); !placed && !r.same(it, &result) {
			if err := r.fetch(ctx, it, &result); err != nil {
				if !errors.Is(err, errLost) {
					return fmt.Errorf("%s: %w", it.Name, err)
				}
				// a process was killed, and its files are gone: once more
				if err := r.job.results.Purge(ctx, it.Key); err != nil {
					return err
				}
				if err := r.queue.publish(ctx, []*Item{it}, map[string]bool{it.Key: true}); err != nil {
					return err
				}
				continue
			}
		}
		for i, f := range result.Outputs {
			result.Outputs[i].Name = path.Join(path.Dir(it.Name), path.Base(f.Name))
		}
		if err := r.log.add(&result); err != nil {
			return err
		}
		r.done[it.Key] = &result
		if r.Progress != nil {
			r.Progress(&result, len(r.done), len(r.Plan.Items))
		}
	}
	return nil
}

// errLost says that the files of a result are nowhere.
var errLost = errors.New("the files of the result are not in the object store")

// fetch gets the files of a result from the object store, and removes them there.
func (r *run) fetch(ctx context.Context, it *Item, result *Result) error {
	for _, f := range result.Outputs {
		to, err := r.placeOf(it, f.Name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		name := object(it.Key, f.Hash)
		var g atomicfile.Group
		err = g.Add(to, func(w io.Writer) error {
			h := sha256.New()
			if err := r.job.download(ctx, name, io.MultiWriter(w, h)); err != nil {
				return err
			}
			if hex.EncodeToString(h.Sum(nil)) != f.Hash {
				return errLost
			}
			return nil
		})
		if err == nil {
			err = g.Commit()
		}
		g.Abandon()
		if errors.Is(err, jetstream.ErrObjectNotFound) {
			return errLost
		}
		if err != nil {
			return err
		}
	}
	for _, f := range result.Outputs {
		if err := r.job.files.Delete(ctx, object(it.Key, f.Hash)); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return err
		}
	}
	return nil
}
