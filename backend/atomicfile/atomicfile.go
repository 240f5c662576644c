// Package atomicfile writes files that appear under their names only when they are complete.
//
// A file is filled under a temporary name beside its place and renamed to it in the end. What was there before stays until
// then, and stays for good when anything fails or the process is killed.
package atomicfile

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Write has fill write a file. A path that is there and is no regular file, such as a pipe, is written to as it is.
// Errors of the system name the path.
func Write(path string, fill func(io.Writer) error) error {
	if !Replaceable(path) {
		return named(path, stream(path, fill))
	}
	var g Group
	defer g.Abandon()
	if err := g.Add(path, fill); err != nil {
		return err
	}
	return g.Commit()
}

// Replaceable reports whether a file can be put in the place of what is at path: nothing, or a regular file.
func Replaceable(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

func stream(path string, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(buffered(f, fill), f.Close())
}

func buffered(w io.Writer, fill func(io.Writer) error) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := fill(b); err != nil {
		return err
	}
	return b.Flush()
}

// Group is a number of files that appear together. The zero value is ready for use.
type Group struct {
	// Fault is called before each step with its name (create, write, close, rename) and may have it fail; for tests.
	Fault func(step string) error
	// Before and After are called by Commit, before it does anything and when all is done, while nobody else commits in
	// that folder, in this process or another one.
	Before, After func()

	files []member
}

type member struct {
	temporary, path string
	held            io.Closer // says that the temporary file is in use
}

// Add has fill write a file that Commit puts in its place.
func (g *Group) Add(path string, fill func(io.Writer) error) error {
	f, held, err := g.create(path)
	if err != nil {
		return named(path, err)
	}
	g.files = append(g.files, member{f.Name(), path, held})
	err = buffered(faulty{f, g}, fill)
	if err == nil {
		err = f.Chmod(0o666 &^ umask())
	}
	if err == nil {
		err = g.step("close")
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return named(path, err)
}

// Rename changes the name that the file added last gets.
func (g *Group) Rename(path string) { g.files[len(g.files)-1].path = path }

// create makes a temporary file, and removes those that killed processes have left.
func (g *Group) create(path string) (f *os.File, held io.Closer, err error) {
	if err := g.step("create"); err != nil {
		return nil, nil, err
	}
	const suffix = ".tmp"
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+"."
	unlock := lock(dir)
	defer unlock()
	entries, _ := os.ReadDir(dir) // who may write a folder may be unable to list it
	for _, e := range entries {
		if name := filepath.Join(dir, e.Name()); strings.HasPrefix(e.Name(), prefix) && strings.HasSuffix(e.Name(), suffix) && abandoned(name) {
			os.Remove(name)
		}
	}
	if f, err = os.CreateTemp(dir, prefix+"*"+suffix); err != nil {
		return nil, nil, err
	}
	live.add(f.Name())
	return f, hold(f.Name()), nil
}

// Commit puts the files in their places, in the order in which they were added: who reads the last one finds all. If one
// cannot be put there, those before it are taken away again, unless there was a file in its place.
func (g *Group) Commit() error {
	if len(g.files) == 0 {
		return nil
	}
	unlock := lock(filepath.Dir(g.files[0].path))
	defer unlock()
	if g.Before != nil {
		g.Before()
	}
	var made []string
	for len(g.files) > 0 {
		f := g.files[0]
		_, statErr := os.Lstat(f.path)
		err := g.step("rename")
		if err == nil {
			err = os.Rename(f.temporary, f.path)
		}
		if err != nil {
			for _, name := range made {
				os.Remove(name)
			}
			return named(f.path, err)
		}
		live.drop(f.temporary)
		f.held.Close()
		if errors.Is(statErr, fs.ErrNotExist) {
			made = append(made, f.path)
		}
		g.files = g.files[1:]
	}
	if g.After != nil {
		g.After()
	}
	return nil
}

// Abandon removes what was not committed.
func (g *Group) Abandon() {
	for _, f := range g.files {
		os.Remove(f.temporary)
		live.drop(f.temporary)
		f.held.Close()
	}
	g.files = nil
}

func (g *Group) step(name string) error {
	if g.Fault == nil {
		return nil
	}
	return g.Fault(name)
}

// faulty is a file whose writes are steps.
type faulty struct {
	f *os.File
	g *Group
}

func (w faulty) Write(b []byte) (int, error) {
	if err := w.g.step("write"); err != nil {
		return 0, err
	}
	return w.f.Write(b)
}

// named puts the path that the user knows into errors about temporary files.
func named(path string, err error) error {
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &l):
		return &os.PathError{Op: "write", Path: path, Err: l.Err}
	case errors.As(err, &p):
		return &os.PathError{Op: "write", Path: path, Err: p.Err}
	}
	return err
}

// registry has the temporary files of the process.
type registry struct {
	sync.Mutex
	names map[string]bool
}

var live registry

func (r *registry) add(name string) {
	r.Lock()
	defer r.Unlock()
	if r.names == nil {
		r.names = map[string]bool{}
	}
	r.names[name] = true
}

func (r *registry) drop(name string) {
	r.Lock()
	defer r.Unlock()
	delete(r.names, name)
}

// RemoveTemporary removes the temporary files of the process, which is about to end by a signal.
func RemoveTemporary() {
	live.Lock()
	defer live.Unlock()
	for name := range live.names {
		os.Remove(name)
	}
}
