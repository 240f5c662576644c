package limited

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// limitMemory bounds the memory of this process, in bytes; 0 is no bound. Three things hold it:
//
//   - the garbage collector works harder when three quarters are used;
//   - a watcher looks at the heap and the stacks every 20 ms, and calls exceeded when they are more;
//   - on Linux, the system refuses more (RLIMIT_DATA), which ends the process. What counts is memory of the process's own: weights in a
//     file that is mapped do not. Other systems have no limit of that kind that they heed.
func limitMemory(bytes uint64, exceeded func()) {
	if bytes == 0 {
		return
	}
	debug.SetMemoryLimit(int64(bytes / 4 * 3))
	limitSystem(bytes)
	go func() {
		for range time.Tick(20 * time.Millisecond) {
			if used() > bytes {
				exceeded()
			}
		}
	}()
}

// used is the memory of the Go heap and its stacks, in bytes.
func used() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64() - s[2].Value.Uint64()
}
