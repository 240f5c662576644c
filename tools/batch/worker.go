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
	"strings"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/tools/cli"
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
	// Objects gets an object of a job; it may be nil.
	Objects func(ctx context.Context, job, hash string, to io.Writer) error
}

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
	model, err := w.bring(fetching, it.Job, it.Model, filepath.Join(dir, "model"), trusted)
	if err != nil {
		return nil, err
	}
	b, err := filesOf(model)
	if err != nil {
		return nil, err
	}
	_, hash, err := b.hash()
	if err != nil {
		return nil, err
	}
	words := []string{it.Do, model, "--json", "--repro="}
	made := []any{w.Build, it.Do, hash} // what the result is made of
	for i, o := range it.Options {
		value := o.Value
		if o.File != nil {
			file, err := w.bring(fetching, it.Job, *o.File, filepath.Join(dir, fmt.Sprint("option", i)), trusted)
			if err != nil {
				return nil, err
			}
			b, err := filesOf(file)
			if err != nil {
				return nil, err
			}
			_, h, err := b.hash()
			if err != nil {
				return nil, err
			}
			made = append(made, o.Name, value, h)
			value += file
		} else {
			made = append(made, o.Name, value)
		}
		words = append(words, "--"+o.Name+"="+value)
	}
	out := filepath.Join(dir, "out")
	if err := os.MkdirAll(out, 0o777); err != nil {
		return nil, err
	}
	file := path.Base(it.Name) + ".onnx"
	// a file of weights has the model's name, so that a model with one is the same only under its own name; others may be called anything
	keys := [2]string{digest(append(made, "")...), digest(append(made, file)...)}
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
			r.Hash = hash
			return r, nil
		}
	}
	if it.Do == "export" {
		words = append(words, "--output="+filepath.Join(out, file))
	}
	r := w.Process.Run(ctx, words, limits)
	r.Hash = hash
	if r.Status == OK {
		if r.Outputs, err = written(out, file); err != nil {
			return nil, err
		}
	}
	if w.Cache != nil && r.Final() {
		key := keys[0]
		if len(r.Outputs) > 1 {
			key = keys[1]
		}
		if err := w.Cache.Put(key, r, out); err != nil {
			return nil, fmt.Errorf("the cache: %w", err)
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
	local := filepath.FromSlash(s.Path)
	if filepath.IsAbs(local) {
		if !trusted && !w.AnyPath {
			return "", &stop{refusal("not-allowed", "%s is not below the root of this worker; name another one with --root, or allow all with --any-path", s.Path)}
		}
		return local, nil
	}
	file := filepath.Join(w.Root, local)
	if trusted || w.AnyPath {
		return file, nil
	}
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(w.Root)
	if err != nil {
		return "", err
	}
	if rel, err := filepath.Rel(root, real); err != nil || !filepath.IsLocal(rel) {
		return "", &stop{refusal("not-allowed", "%s leads out of the root of this worker; name another one with --root, or allow all with --any-path", s.Path)}
	}
	return real, nil
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

// redacted is a URL without what may be secret.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "this URL"
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
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

// objects gets the files of a source from the object store of the job.
func (w *Worker) objects(ctx context.Context, job string, s Source, dir string) (string, error) {
	if w.Objects == nil || !filepath.IsLocal(filepath.FromSlash(s.Entry)) {
		return "", fmt.Errorf("%s: there is no object store", s.Entry)
	}
	for _, o := range s.Objects {
		if !filepath.IsLocal(filepath.FromSlash(o.Name)) {
			return "", fmt.Errorf("%q is no name of a file", o.Name)
		}
		file, err := save(dir, o.Name, func(to io.Writer) error { return w.Objects(ctx, job, o.Hash, to) })
		if err != nil {
			return "", err
		}
		if got, err := hashFile(file); err != nil || got.Hash != o.Hash {
			return "", errors.Join(fmt.Errorf("%s: the object has other bytes than it should", o.Name), err)
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
	if err := os.MkdirAll(w.Folder, 0o777); err != nil {
		return "", err
	}
	return os.MkdirTemp(w.Folder, "item-")
}

// Home makes the folder for files that are worked on below another one, that of the system for temporary files if it is empty, and
// removes those of workers that were killed.
func (w *Worker) Home(below string) (free func(), err error) {
	if below == "" {
		below = filepath.Join(os.TempDir(), "aton-worker")
	}
	if err := os.MkdirAll(below, 0o777); err != nil {
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
		err = errors.Join(os.RemoveAll(strings.TrimSuffix(lock, ".lock")), held.Close(), os.Remove(lock))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
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

// Build tells programs of aton apart, by version and bytes: what one has made is not taken for what another would make.
func Build(version, program string) (string, error) {
	f, err := hashFile(program)
	return version + " " + f.Hash, err
}
