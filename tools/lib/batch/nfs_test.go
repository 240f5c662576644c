package batch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Network file systems answer twice, forget files that are open, and keep those that are removed while they are open.
func TestNetworkFileSystem(t *testing.T) {
	usualRename, usualRemove := rename, remove
	defer func() { rename, remove = usualRename, usualRemove }()
	failed := func(from, to string, err error) error {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	for what, c := range map[string]struct {
		rename func(from, to string) error
		remove func(string) error
	}{
		"another file system":    {rename: func(from, to string) error { return failed(from, to, syscall.EXDEV) }},
		"a handle that is stale": {rename: func(from, to string) error { return failed(from, to, syscall.Errno(116)) }}, // ESTALE of Linux
		"done, and answered as late": {rename: func(from, to string) error {
			return errors.Join(usualRename(from, to), failed(from, to, syscall.ENOENT))
		}},
		"in use, in another file system": {
			rename: func(from, to string) error { return failed(from, to, syscall.EXDEV) },
			remove: func(name string) error { return &fs.PathError{Op: "remove", Path: name, Err: syscall.EBUSY} },
		},
	} {
		b := newBench(t, map[string]string{"a.ir": "fine a", "sub/b.ir": "fine b", "nfs.ir": "nfs"})
		b.cache = &Cache{Dir: filepath.Join(b.dir, "cache")}
		if rename = c.rename; c.remove != nil {
			remove = c.remove
		}
		for _, again := range []bool{false, true} {
			for name, r := range b.run() {
				text, err := os.ReadFile(b.out(name + ".onnx"))
				model, _ := os.ReadFile(filepath.Join(b.dir, "models", name+".ir"))
				if r.Status != OK || r.Tries != 1 || len(r.Outputs) != 1 || err != nil || string(text) != "made of "+string(model) {
					t.Errorf("%s: %s (again: %v): %+v, %q, %v", what, name, again, r, text, err)
				}
			}
			if err := os.RemoveAll(b.out("")); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.converted(); n != 3 { // the second time all come from the cache
			t.Errorf("%s: %d conversions", what, n)
		}
		rename, remove = usualRename, usualRemove
		_ = filepath.WalkDir(filepath.Join(b.dir, "cache"), func(name string, _ fs.DirEntry, _ error) error {
			if strings.HasSuffix(name, ".tmp") {
				t.Errorf("%s: %s is left", what, name)
			}
			return nil
		})
	}
}
