//go:build unix

package gputest

import (
	"syscall"
	"time"
)

// CPUTime is the processor time of this process, on all cores: what a loaded machine still measures well.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
