//go:build !linux

package batch

import "os"

func limitSystem(uint64) {}

// peak is what the runtime of Go has from the system, which it gives back late.
func peak() uint64 { return used() }

// peakOf is not known where the process could not tell.
func peakOf(*os.ProcessState) uint64 { return 0 }
