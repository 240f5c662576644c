//go:build unix

package main

import (
	"syscall"
	"time"
)

// processorTime is what this process has used.
func processorTime() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// limitAddresses bounds the address space, so that one huge allocation ends the process and not the machine.
func limitAddresses(bytes uint64) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &r) == nil && r.Cur > bytes {
		r.Cur = bytes
		_ = syscall.Setrlimit(syscall.RLIMIT_AS, &r) // without it the limit of the machine holds
	}
}
