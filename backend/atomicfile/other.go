//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"sync"
)

func umask() fs.FileMode { return 0 }

var commits sync.Mutex

// lock waits until nobody else in this process commits.
func lock(string) (unlock func()) {
	commits.Lock()
	return commits.Unlock
}

func hold(string) io.Closer { return io.NopCloser(nil) }

// abandoned is for systems whose locks end with the process.
func abandoned(string) bool { return false }

// Claim makes a file and keeps it open. Windows removes no file that is open, so the error says that another process has it; elsewhere
// nobody is kept out.
func Claim(path string) (io.Closer, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
}
