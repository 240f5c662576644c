package passes

import (
	"fmt"
	"io"
)

// Bisect finds the run of a pass that makes a result wrong: halve the limit until one more is one too many. After Limit
// runs that changed something, no pass runs any more; a Limit below 0 is none. Each run that changed something, and
// each that was left out, is a line of Log.
type Bisect struct {
	Limit int
	Log   io.Writer

	changed int
}

// allows says whether one more pass may run. A nil Bisect allows all.
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
