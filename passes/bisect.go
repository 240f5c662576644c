package passes

import (
	"fmt"
	"io"
)

// Bisect helps to find the run of a pass that makes a result wrong: halve the limit until one more run is one too many. After
// Limit runs that changed something, no pass runs; a negative Limit means no limit. Log gets a line for each run that changed
// something and for each run that was skipped.
type Bisect struct {
	Limit int
	Log   io.Writer

	changed int
}

// allows reports whether one more pass may run. A nil Bisect allows all.
func (b *Bisect) allows(pass string) bool {
	if b == nil || b.Limit < 0 || b.changed < b.Limit {
		return true
	}
	fmt.Fprintf(b.Log, "BISECT: not running pass %s\n", pass)
	return false
}

// ran counts a run that changed something.
func (b *Bisect) ran(e *Event) {
	if b == nil || !e.Changed() {
		return
	}
	b.changed++
	fmt.Fprintf(b.Log, "BISECT: change %d by pass %s\n", b.changed, e.Text)
}
