package batch

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/aton-project/aton/backend/atomicfile"
)

// Cache keeps results and the files of them by what they were made of: the bytes of the model and of the files in its options, the
// options, and the version of aton. It is a folder that several processes may use at a time:
//
//	results/KEY  a Result, in JSON
//	files/HASH   a file that was written, by its content
//
// An entry appears when it is complete. A file whose content is no longer that of its name is taken away and made again.
type Cache struct {
	// Dir is the folder. Only its owner can look into what is made here.
	Dir string
	// Now is the time; nil for the clock of the system.
	Now func() time.Time
}

func (c *Cache) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

// unused is how long an entry stays that nobody asks for.
const unused = 30 * 24 * time.Hour

func (c *Cache) result(key string) string { return filepath.Join(c.Dir, "results", key[:2], key) }
func (c *Cache) file(hash string) string  { return filepath.Join(c.Dir, "files", hash[:2], hash) }

// Get looks for a result and puts its files into a folder.
func (c *Cache) Get(key, dir string) (*Result, bool) {
	text, err := os.ReadFile(c.result(key))
	if err != nil {
		return nil, false
	}
	var r Result
	if json.Unmarshal(text, &r) != nil || !r.Final() {
		os.Remove(c.result(key))
		return nil, false
	}
	for _, f := range r.Outputs {
		if len(f.Hash) != 64 || checkName(f.Name) != nil || c.take(f, dir) != nil {
			return nil, false
		}
	}
	now := c.now()
	_ = os.Chtimes(c.result(key), now, now) // says that it is used
	r.Cached = true
	return &r, true
}

// take puts a file of the cache into a folder, if its content is right.
func (c *Cache) take(f File, dir string) error {
	path := c.file(f.Hash)
	got, err := hashFile(path)
	if err != nil {
		return err
	}
	if got.Hash != f.Hash {
		return errors.Join(errors.New("the file was changed"), os.Remove(path))
	}
	now := c.now()
	_ = os.Chtimes(path, now, now)
	return link(path, filepath.Join(dir, filepath.FromSlash(f.Name)))
}

// Put keeps a result and its files, which lie in a folder.
func (c *Cache) Put(key string, r *Result, dir string) error {
	for _, f := range r.Outputs {
		path := c.file(f.Hash)
		if _, err := os.Stat(path); err == nil {
			if got, err := hashFile(path); err == nil && got.Hash == f.Hash {
				now := c.now()
				_ = os.Chtimes(path, now, now)
				continue
			}
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := link(filepath.Join(dir, filepath.FromSlash(f.Name)), path); err != nil {
			return err
		}
	}
	path := c.result(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}

// Trim removes what nobody has asked for in a month.
func (c *Cache) Trim() error {
	if _, err := os.Stat(c.Dir); err != nil {
		return nil // nothing could be kept
	}
	limit := c.now().Add(-unused)
	err := filepath.WalkDir(c.Dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // another process trims too
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil && info.ModTime().Before(limit) {
			err = os.Remove(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return err
}

// link gives a file a further name, or copies it where that cannot be. The file appears in full, in the place of one that is there.
// Both names are of one file then, which is made read-only: who writes into it would change what the other name has.
func link(from, to string) error {
	f, err := os.CreateTemp(filepath.Dir(to), ".link.*.tmp")
	if err != nil {
		return err
	}
	temporary := f.Name()
	if err := errors.Join(f.Close(), os.Remove(temporary)); err != nil {
		return err
	}
	if err := os.Link(from, temporary); err != nil {
		return copyFile(from, to)
	}
	if runtime.GOOS != "windows" { // where nothing could be put in the place of such a file
		_ = os.Chmod(temporary, 0o444) // a file of another owner stays as it is
	}
	defer os.Remove(temporary) // rename leaves both names if they are of one file already
	if err := rename(temporary, to); err != nil {
		return copyFile(from, to)
	}
	return nil
}

func copyFile(from, to string) error {
	f, err := os.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	return atomicfile.Write(to, func(w io.Writer) error {
		_, err := io.Copy(w, f)
		return err
	})
}

// What a network file system does otherwise than others; other ones in a test.
var rename, remove = os.Rename, os.Remove

// move gives a file that has a hash another name, across file systems if need be.
func move(from, to, hash string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	if rename(from, to) == nil {
		return nil
	}
	err := copyFile(from, to)
	if err != nil {
		// a network file system that was asked twice says that there is no such file, because it has been moved the first time
		if got, e := hashFile(to); e != nil || got.Hash != hash {
			return err
		}
	}
	_ = remove(from) // what stays goes with the folder
	return nil
}
