//go:build !unix

package batch

import (
	"errors"
	"io/fs"
	"syscall"
)

// diskIsFull reports an error of a disk that takes nothing more: ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL of Windows.
func diskIsFull(err error) bool {
	return errors.Is(err, syscall.Errno(39)) || errors.Is(err, syscall.Errno(112))
}

// private reports a folder. The folder for temporary files of Windows is the user's own.
func private(info fs.FileInfo) bool { return info.IsDir() }
