package batch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Worker does items, one at a time in each call. It trusts no item but those that its owner made itself: the others read below Root,
// from URLs that are allowed, and have options that write nothing.
type Worker struct {
	// Commands has the options that there are.
	Commands Commands
	Process  *Process
	// Root is the folder that relative paths begin at. AnyPath allows absolute ones and links that lead out.
	Root    string
	AnyPath bool
	// URLs are beginnings of the URLs that may be fetched, such as https://models.example.org/.
	URLs []string
	// Limits hold besides those of the items.
	Limits Limits
	// Folder is where files lie while they are worked on.
	Folder string
	// Cache may be nil. Build is in its keys, see [Build]. Version is that of aton: a queue has items for each by itself.
	Cache          *Cache
	Build, Version string
	// Name stands in results.
	Name string
	// Trusted says that the owner made an item: no rule on paths and URLs holds for it. It may be nil.
	Trusted func(*Item) bool
	// Objects gets a file of a job from the queue; it may be nil.
	Objects func(ctx context.Context, job string, f File, to io.Writer) error
	// Warn is told once what goes wrong and ends nothing, such as a cache that cannot be written; it may be nil.
	Warn func(format string, args ...any)

	warned sync.Map // by kind
}

func (w *Worker) warn(kind, format string, args ...any) {
	if _, before := w.warned.LoadOrStore(kind, true); !before && w.Warn != nil {
		w.Warn(format, args...)
	}
}

// errChanged says that a model or a file of an option did not stay the same while it was worked on.
var errChanged = errors.New("the model, or a file that an option names, was changed while it was converted")

// stop is a problem that ends an item before its command runs.
type stop struct{ problem cli.Problem }

func (s *stop) Error() string { return s.problem.Message }

// Do does an item. The files of the result are in the folder out of dir, which the worker's caller removes. An error is one of this
// machine, such as a full disk or a file that is not there: another worker may do the item.
func (w *Worker) Do(ctx context.Context, it *Item, dir string) (*Result, error) {
	r, err := w.do(ctx, it, dir)
	var s *stop
	if errors.As(err, &s) {
		r, err = &Result{Status: Failed, Diagnostics: []cli.Problem{s.problem}}, nil
	}
	if err != nil {
		return nil, err
	}
	w.sign(it, r)
	return r, nil
}

// sign says in a result what it is of, and who made it.
func (w *Worker) sign(it *Item, r *Result) {
	if r.Outputs == nil {
		r.Outputs = []File{}
	}
	r.Name, r.Key, r.Worker = it.Name, it.Key, w.Name
	r.shorten()
}

func (w *Worker) do(ctx context.Context, it *Item, dir string) (*Result, error) {
	if err := checkName(it.Name); err != nil {
		return nil, &stop{refusal("usage", "%v", err)}
	}
	if err := w.Commands.check(it.Do, it.Options); err != nil {
		return nil, &stop{refusal("usage", "%v", err)}
	}
	trusted := w.Trusted != nil && w.Trusted(it)
	limits := it.Limits.Within(w.Limits)
	fetching := ctx // has as much time as the command after it
	if limits.Timeout > 0 {
		var cancel context.CancelFunc
		fetching, cancel = context.WithTimeout(ctx, limits.Timeout)
		defer cancel()
	}
	in := &inputs{files: make([]string, len(it.Options))}
	var err error
	if in.model, err = w.bring(fetching, it.Job, it.Model, filepath.Join(dir, "model"), trusted); err != nil {
		return nil, err
	}
	words := []string{it.Do, in.model, "--json", "--repro="}
	for i, o := range it.Options {
		value := o.Value
		if o.File != nil {
			if in.files[i], err = w.bring(fetching, it.Job, *o.File, filepath.Join(dir, fmt.Sprint("option", i)), trusted); err != nil {
				return nil, err
			}
			value += in.files[i]
		}
		words = append(words, "--"+o.Name+"="+value)
	}
	out := filepath.Join(dir, "out")
	if it.Do == "export" {
		words = append(words, "--output="+filepath.Join(out, path.Base(output(it))))
	}
	alone := false
	for changed := 0; changed < 2; { // who writes to a model is mostly done with it soon
		if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o777)); err != nil {
			return nil, err
		}
		var r *Result
		switch r, err = w.convert(ctx, it, in, words, out, limits, alone); {
		case errors.Is(err, errShared):
			alone = true
		case errors.Is(err, errChanged):
			changed++
		default:
			return r, err
		}
	}
	return nil, &stop{refusal("file", "%v, twice", err)}
}

// inputs are what an item is made of on this machine: the model, and the file of each option that has one.
type inputs struct {
	model string
	files []string
}

// hash gives the hash of the model, and that of all of it.
func (in *inputs) hash(it *Item) (model, all string, err error) {
	if model, err = hashOf(in.model); err != nil {
		return "", "", err
	}
	hashes := make([]string, len(in.files))
	for i, file := range in.files {
		if file == "" {
			continue
		}
		if hashes[i], err = hashOf(file); err != nil {
			return "", "", err
		}
	}
	return model, made(it, model, hashes), nil
}

// convert runs the command of an item, alone or in a process that has done others, or takes its result from the cache. What is converted is what was hashed, or the error is errChanged.
func (w *Worker) convert(ctx context.Context, it *Item, in *inputs, words []string, out string, limits Limits, alone bool) (*Result, error) {
	model, all, err := in.hash(it)
	if err != nil {
		return nil, err
	}
	file := path.Base(output(it))
	// a file of weights has the model's name, so that a model with one is the same only under its own name; others may be called anything
	keys := [2]string{digest(w.Build, all, ""), digest(w.Build, all, file)}
	for _, key := range keys {
		if w.Cache == nil {
			break
		}
		if r, ok := w.Cache.Get(key, out); ok {
			if len(r.Outputs) == 1 && r.Outputs[0].Name != file {
				if err := os.Rename(filepath.Join(out, r.Outputs[0].Name), filepath.Join(out, file)); err != nil {
					return nil, err
				}
				r.Outputs[0].Name = file
			}
			r.Hash, r.Made = model, all
			return r, nil
		}
	}
	r, err := w.Process.Run(ctx, words, limits, alone)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	if _, again, err := in.hash(it); err != nil || again != all {
		return nil, errChanged
	}
	r.Hash, r.Made = model, all
	if r.Status == OK {
		if r.Outputs, err = written(out, file); err != nil {
			return nil, err
		}
	}
	if slices.ContainsFunc(r.Diagnostics, func(p cli.Problem) bool { return p.ID == cli.DiskFull }) { // nothing that says anything of the model
		return nil, &DiskError{out, syscall.ENOSPC}
	}
	if w.Cache != nil && r.Final() {
		key := keys[0]
		if len(r.Outputs) > 1 {
			key = keys[1]
		}
		if err := w.Cache.Put(key, r, out); err != nil {
			w.warn("cache", "nothing more is kept in the cache: %v", err)
		}
	}
	return r, nil
}

// written are the files in a folder, the model last: who sees it finds its weights.
func written(dir, model string) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	files := []File{}
	var last []File
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".nfs") { // what a network file system calls a file that was removed while it was open
			continue
		}
		f, err := hashFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if e.Name() == model {
			last = append(last, f)
		} else {
			files = append(files, f)
		}
	}
	return append(files, last...), nil
}

// bring gives the path of a source on this machine, and fetches into a folder what is not there.
func (w *Worker) bring(ctx context.Context, job string, s Source, dir string, trusted bool) (string, error) {
	switch {
	case s.URL != "":
		if !trusted && !allowed(w.URLs, s.URL) {
			return "", &stop{refusal("not-allowed", "this worker does not fetch %s; allow it with --url", redacted(s.URL))}
		}
		return w.fetch(ctx, s.URL, dir, trusted)
	case len(s.Objects) > 0:
		return w.objects(ctx, job, s, dir)
	}
	local := filepath.Clean(filepath.FromSlash(s.Path))
	if trusted || w.AnyPath {
		if !filepath.IsAbs(local) {
			local = filepath.Join(w.Root, local)
		}
		return local, nil
	}
	// what is refused says the same whether there is something outside or not
	if filepath.IsAbs(local) {
		return "", &stop{refusal("not-allowed", "%s is not below the root of this worker; name another one with --root, or allow all with --any-path", s.Path)}
	}
	out := &stop{refusal("not-allowed", "%s leads out of the root of this worker, or is no file; name another one with --root, or allow all with --any-path", s.Path)}
	if !filepath.IsLocal(local) {
		return "", out
	}
	root, err := os.OpenRoot(w.Root)
	if err != nil {
		return "", err
	}
	defer root.Close()
	switch err := below(root, filepath.ToSlash(local)); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return "", fmt.Errorf("%s: it is not below the root of this worker, or cannot be read", s.Path)
	case err != nil:
		return "", out
	}
	return filepath.Join(w.Root, local), nil
}

// below says what is wrong with a path that a worker reads: it, or something in it, is a link that leads out, or no file. The data of an
// ONNX file are files in its folder, and no links that lead out of that, when the file is read.
func below(root *os.Root, name string) error {
	info, err := root.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		_, err := walk(root.FS(), path.Clean(name))
		return err
	}
	if !info.Mode().IsRegular() {
		return irregular(name)
	}
	locations, err := externalOf(filepath.Join(root.Name(), name))
	if err != nil {
		return err
	}
	for _, l := range locations {
		l = path.Join(path.Dir(name), filepath.ToSlash(l))
		if _, err := root.Stat(l); err != nil && !errors.Is(err, fs.ErrNotExist) { // without data there is no model, as its reader says
			return err
		}
	}
	return nil
}

// allowed says whether a URL begins as one of those that are allowed.
func allowed(beginnings []string, address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return false
	}
	for _, b := range beginnings {
		// part by part: https://models.example.org is the beginning of https://models.example.org.other.net too
		p, err := url.Parse(b)
		if err == nil && p.Scheme == u.Scheme && p.Host == u.Host && p.Host != "" && strings.HasPrefix(path.Clean("/"+u.Path), strings.TrimSuffix(path.Clean("/"+p.Path), "/")+"/") {
			return true
		}
	}
	return false
}

// unnamed stands for a URL that is none.
const unnamed = "this URL"

// redacted is a URL without what may be secret: user, password or token, query and fragment.
func redacted(address string) string {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" {
		return unnamed
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// fetch downloads a model.
func (w *Worker) fetch(ctx context.Context, address, dir string, trusted bool) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", errors.New("the URL is not well-formed")
	}
	client := http.Client{CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= 10 {
			return errors.New("too many redirections")
		}
		if !trusted && !allowed(w.URLs, r.URL.String()) {
			return fmt.Errorf("it leads to %s, which this worker does not fetch", redacted(r.URL.String()))
		}
		return nil
	}}
	answer, err := client.Do(request)
	if err != nil {
		var e *url.Error
		if errors.As(err, &e) {
			err = e.Err // without the URL
		}
		return "", fmt.Errorf("%s: %w", redacted(address), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s", redacted(address), answer.Status)
	}
	name := path.Base(request.URL.Path)
	if checkName(name) != nil {
		name = "model"
	}
	return save(dir, name, func(to io.Writer) error {
		_, err := io.Copy(to, answer.Body)
		return err
	})
}

// objects gets the files of a source from the queue.
func (w *Worker) objects(ctx context.Context, job string, s Source, dir string) (string, error) {
	if w.Objects == nil || !filepath.IsLocal(filepath.FromSlash(s.Entry)) {
		return "", fmt.Errorf("%s: there is no queue to get it from", s.Entry)
	}
	for _, o := range s.Objects {
		if !filepath.IsLocal(filepath.FromSlash(o.Name)) {
			return "", fmt.Errorf("%q is no name of a file", o.Name)
		}
		file, err := save(dir, o.Name, func(to io.Writer) error { return w.Objects(ctx, job, o, to) })
		if err != nil {
			return "", err
		}
		if got, err := hashFile(file); err != nil || got.Hash != o.Hash {
			return "", errors.Join(fmt.Errorf("%s: the file in the queue has other bytes than it should", o.Name), err)
		}
	}
	return filepath.Join(dir, filepath.FromSlash(s.Entry)), nil
}

// save writes a file in a folder of the worker's own.
func save(dir, name string, fill func(io.Writer) error) (string, error) {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return "", err
	}
	if err := errors.Join(fill(f), f.Close()); err != nil {
		return "", err
	}
	return file, nil
}

// temporary makes a folder for an item.
func (w *Worker) temporary() (string, error) {
	if err := os.MkdirAll(w.Folder, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(w.Folder, "item-")
}

// Home makes the folder for files that are worked on, and removes those of workers that were killed. It is below another folder: that of
// the system for temporary files if it is empty, in one that belongs to this user alone.
func (w *Worker) Home(below string) (free func(), err error) {
	if below == "" {
		if below, err = privateFolder(os.TempDir()); err != nil {
			return nil, err
		}
	} else if err := os.MkdirAll(below, 0o700); err != nil {
		return nil, err
	}
	locks, err := filepath.Glob(filepath.Join(below, "*.lock"))
	if err != nil {
		return nil, err
	}
	for _, lock := range locks {
		held, err := atomicfile.Claim(lock)
		if err != nil {
			continue // of a worker that lives, or of another user
		}
		// what is left, such as a file that another machine has open on a network file system, goes with the next worker
		if os.RemoveAll(strings.TrimSuffix(lock, ".lock")) == nil {
			_ = os.Remove(lock)
		}
		held.Close()
	}
	w.Folder = filepath.Join(below, randomID())
	held, err := atomicfile.Claim(w.Folder + ".lock")
	if err != nil {
		return nil, err
	}
	return func() { // what is left in the folder goes with the next worker
		os.RemoveAll(w.Folder)
		held.Close()
		os.Remove(w.Folder + ".lock")
	}, os.Mkdir(w.Folder, 0o700)
}

// privateFolder is a folder in another one, where anybody may write, that belongs to this user and that nobody else can look into. It is
// found again by its name; where somebody else has taken the name, it gets another one.
func privateFolder(in string) (string, error) {
	dir := filepath.Join(in, fmt.Sprint("aton-worker-", os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := os.Lstat(dir); err == nil && private(info) {
		return dir, nil
	}
	return os.MkdirTemp(in, "aton-worker-")
}

// Build tells programs of aton apart, by version and bytes: what one has made is not taken for what another would make.
func Build(version, program string) (string, error) {
	f, err := hashFile(program)
	return version + " " + f.Hash, err
}
