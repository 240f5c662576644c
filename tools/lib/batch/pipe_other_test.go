//go:build !unix

package batch

import (
	"errors"
	"syscall"
)

func pipe(string) error { return errors.New("there are no pipes in folders") }

const full = syscall.Errno(112)
