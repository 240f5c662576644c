package limited

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// runtimeShare is what the runtime of Go has besides the heap: room that it has asked for and not used.
const runtimeShare = 128 << 20

func limitSystem(limit uint64) {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_DATA, &r) == nil && r.Cur > limit+runtimeShare {
		r.Cur = limit + runtimeShare
		_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &r) // without it the watcher is left
	}
}

// forgetPeak makes peak count from now on.
func forgetPeak() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // without it the peak is that of all models so far
}

// peak is the most memory that this process had since forgetPeak. Getrusage would count what the parent had when it made the process.
func peak() uint64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(text, []byte("\nVmHWM:"))
	fields := bytes.Fields(rest[:min(len(rest), 40)])
	if len(fields) == 0 {
		return 0
	}
	kb, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}

// PeakOf is the most memory that a process had which has ended, in bytes, or its parent, if that had more.
func PeakOf(p *os.ProcessState) uint64 {
	if r, ok := p.SysUsage().(*syscall.Rusage); ok {
		return uint64(r.Maxrss) << 10
	}
	return 0
}
