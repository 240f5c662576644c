//go:build !unix

package gputest

import "time"

// CPUTime is 0: it is not known here.
func CPUTime() time.Duration { return 0 }
