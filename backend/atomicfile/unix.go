//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package atomicfile

import (
	"errors"
	"io"
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

// hold locks a temporary file for as long as the process lives or until it is closed.
func hold(name string) io.Closer {
	f, err := os.Open(name)
	if err != nil {
		return io.NopCloser(nil)
	}
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) // without locks nothing is taken for abandoned
	return f
}

// abandoned reports a temporary file that no process holds.
func abandoned(name string) bool {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	return err == nil && info.Mode().IsRegular() && syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// Claim locks a file, which it makes if need be, for as long as the process lives or until the lock is closed. The error says that
// another process has it.
func Claim(path string) (io.Closer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		f.Close()
		return nil, &os.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil // where the file system has no locks, nobody is kept out
}
