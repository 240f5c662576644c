package cmd

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/tools/lib/cli"
)

// activity tells who watches a terminal what the command is doing, once that takes long enough for somebody to wonder. All methods do
// nothing on nil.
type activity struct {
	mu    sync.Mutex
	w     io.Writer
	what  string
	began time.Time
	shown bool
	next  string // what comes after a pass
}

// patience is how long a part of the work may take before it is named.
const patience = time.Second

// watched makes the activity of a terminal.
func watched(w io.Writer) *activity {
	a := &activity{w: w}
	go func() {
		for range time.Tick(patience / 4) { // as long as the process
			a.show()
		}
	}()
	return a
}

// begin names a part of the work, in the place of the one before.
func (a *activity) begin(what string) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.clear()
	a.what, a.began = what, time.Now()
}

// pause takes the line away: something else is printed now.
func (a *activity) pause() { a.begin("") }

// show writes the line anew.
func (a *activity) show() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if took := time.Since(a.began); a.what != "" && took > patience {
		fmt.Fprintf(a.w, "\r\x1b[K%s ... %.0f s", cli.Printable(a.what), took.Seconds())
		a.shown = true
	}
}

func (a *activity) clear() {
	if a.shown {
		fmt.Fprint(a.w, "\r\x1b[K")
		a.shown = false
	}
}

// passes names the pass at work.
func (a *activity) passes() passes.Observer {
	return passes.Observer{
		BeforePass: func(e *passes.Event) { a.begin("pass " + e.Pass.Name) },
		AfterPass:  func(*passes.Event) { a.begin(a.next) },
	}
}

// follow says what comes after the last pass.
func (a *activity) follow(what string) {
	if a != nil {
		a.next = what
	}
}
