//go:build unix

package batch

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// diskIsFull reports an error of a disk that takes nothing more.
func diskIsFull(err error) bool {
	for _, full := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EFBIG} {
		if errors.Is(err, full) {
			return true
		}
	}
	return false
}

// private reports a folder of this user's that nobody else may look into.
func private(info fs.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.IsDir() && info.Mode().Perm()&0o077 == 0 && int(s.Uid) == os.Getuid()
}
