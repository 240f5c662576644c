//go:build unix

package batch

import "syscall"

func pipe(path string) error { return syscall.Mkfifo(path, 0o600) }

const full = syscall.ENOSPC
