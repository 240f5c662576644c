package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A run is short, and most runs have little alive: collecting less often halves their time. So garbage may come to four times
// what is alive, and always to half of it. Between the two, little garbage keeps a model with large weights small, of whose graph a
// few megabytes are alive; a large graph is collected at most every 192 MB, since each collection goes through all of it.
const (
	mostPercent, leastPercent = 400, 50
	leastGarbage, mostGarbage = 24 << 20, 192 << 20
	smallGraph                = 10 << 20 // bytes alive, beyond which garbage may grow by four times as much
)

// Collect sets how often the memory of this process is collected, unless GOGC says it.
func Collect() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(mostPercent)
	afterCollection()
}

// afterCollection sets the percentage anew after the next collection, and each one behind it.
func afterCollection() {
	mark := new([16]byte) // of a size that shares no block with others
	runtime.SetFinalizer(mark, func(*[16]byte) {
		debug.SetGCPercent(percent(alive()))
		afterCollection()
	})
}

// alive is how many bytes the last collection left.
func alive() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}

// percent is the garbage that may come to so much that is alive, in percent of it.
func percent(live uint64) int {
	allowed := min(max(4*(max(live, smallGraph)-smallGraph), leastGarbage), mostGarbage)
	return int(min(max(allowed*100/max(live, 1), leastPercent), mostPercent))
}
