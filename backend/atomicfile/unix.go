//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package atomicfile

import (
	"io/fs"
	"os"
	"sync"
	"syscall"
)

// umask asks for the mask, which works by setting it: once, as tests run in parallel.
var umask = sync.OnceValue(func() fs.FileMode {
	old := syscall.Umask(0)
	syscall.Umask(old)
	return fs.FileMode(old)
})

// lock waits until no other process commits in a folder. Where the file system has no locks, it does not wait.
func lock(dir string) (unlock func()) {
	f, err := os.Open(dir)
	if err != nil {
		return func() {}
	}
	for syscall.Flock(int(f.Fd()), syscall.LOCK_EX) == syscall.EINTR {
	}
	return func() { f.Close() }
}
