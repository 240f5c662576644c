//go:build unix

package sim_test

import (
	"syscall"
	"time"
)

// cpuTime is the processor time of this process, on all cores: what a loaded machine still measures well.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
