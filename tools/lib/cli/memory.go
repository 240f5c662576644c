package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// A run is short, and most runs have little alive: collecting less often halves their time. So garbage may come to four times
// what is alive, but where much is alive to no more than garbage bytes, and always to half of what is alive.
const (
	mostPercent, leastPercent = 400, 50
	garbage                   = 24 << 20
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

func percent(live uint64) int {
	return int(min(max(garbage*100/max(live, 1), leastPercent), mostPercent))
}
