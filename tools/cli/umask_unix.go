//go:build unix

package cli

import (
	"io/fs"
	"sync"
	"syscall"
)

// umask asks for the mask, which works by setting it: once, as tests run in parallel.
var umask = sync.OnceValue(func() fs.FileMode {
	old := syscall.Umask(0)
	syscall.Umask(old)
	return fs.FileMode(old)
})
