package batch

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/aton-project/aton/tools/lib/cli"
)

// Serving says how a worker takes items from a queue.
type Serving struct {
	// Jobs is how many items are done at a time.
	Jobs int
	// Idle ends the worker when there was nothing to do for so long; 0 for never.
	Idle time.Duration
	// Place puts the files of a result where they belong, if that can be done from here; if it does not (false), they go through the
	// queue. It may be nil.
	Place func(it *Item, r *Result, dir string) (bool, error)
	// Log is told what goes wrong with the queue; it may be nil.
	Log func(format string, args ...any)
}

// Take does items of a queue until the context ends, or nothing is left to do for as long as s.Idle. The error is a [DiskError] when the disk
// of this machine is full.
func (w *Worker) Take(ctx context.Context, q *Queue, s Serving) error {
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	w.Objects = func(ctx context.Context, job string, f File, to io.Writer) error {
		if !hexID.MatchString(job) || !hexHash.MatchString(f.Hash) {
			return errLost
		}
		return q.get(ctx, files, to, f.Size, job, f.Hash)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var all sync.WaitGroup
	for range s.Jobs {
		all.Go(func() {
			if err := w.take(ctx, q, s); err != nil {
				stop(err) // the others would fail too
			}
		})
	}
	all.Wait()
	w.Process.Close()
	var disk *DiskError
	if errors.As(context.Cause(ctx), &disk) {
		return disk
	}
	return nil
}

// The first and the longest pause after something went wrong. Each is twice the one before.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = time.Minute
)

// pauses says how long to wait after each of several failures in a row.
type pauses struct{ last time.Duration }

func (p *pauses) next() time.Duration {
	p.last = min(max(2*p.last, firstPause), longestPause)
	return p.last
}

// wait is a pause that the end of the context cuts short.
func (p *pauses) wait(ctx context.Context) {
	select {
	case <-time.After(p.next()):
	case <-ctx.Done():
	}
}

func (w *Worker) take(ctx context.Context, q *Queue, s Serving) error {
	last := time.Now()
	var c jetstream.Consumer
	var queue, items pauses
	told := ""
	for ctx.Err() == nil {
		if s.Idle > 0 && time.Since(last) > s.Idle {
			return nil
		}
		var err error
		if c == nil {
			if c, err = q.consumer(ctx); err == nil && c == nil { // there was no batch yet
				queue.last = min(queue.last, 2*time.Second)
				queue.wait(ctx)
				continue
			}
		}
		var m jetstream.Msg
		if err == nil {
			// one at a time: what waits here while another one is done would be taken for lost
			longest := 5 * time.Second
			if s.Idle > 0 {
				longest = min(longest, max(s.Idle/4, 100*time.Millisecond))
			}
			wait, cancel := context.WithTimeout(ctx, longest)
			m, err = c.Next(jetstream.FetchContext(wait))
			cancel()
		}
		switch {
		case err == nil:
			queue.last, told = 0, ""
			err := diskError(w.handle(ctx, q, c, m, s))
			var disk *DiskError
			switch { // if what is said here does not arrive, silence says the same
			case errors.As(err, &disk), err != nil && ctx.Err() != nil:
				_ = m.Nak()
				if disk != nil {
					return err
				}
			case err != nil:
				s.Log("%v", err)
				_ = m.NakWithDelay(items.next())
				items.wait(ctx)
			default:
				items.last = 0
			}
			last = time.Now()
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrNoMessages), ctx.Err() != nil:
		default:
			if err.Error() != told {
				told = err.Error()
				s.Log("%v", q.named(err))
			}
			c = nil
			queue.wait(ctx)
		}
	}
	return nil
}

// mostTries bounds what an item may ask for.
const mostTries = 1000

// handle does one message. The result is stored before the message is acknowledged, so that a death in between does the item again
// and loses nothing; and it is stored only if there is none.
func (w *Worker) handle(ctx context.Context, q *Queue, c jetstream.Consumer, m jetstream.Msg, s Serving) error {
	var it Item
	if err := json.Unmarshal(m.Data(), &it); err != nil || !hexID.MatchString(it.Key) {
		s.Log("a message that is no item is thrown away")
		return m.Term()
	}
	switch done, err := q.stored(ctx, &it); {
	case errors.Is(err, errOver):
		return m.Term() // nobody waits for it any more
	case err != nil:
		return err
	case done:
		return m.Ack()
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	tries, most := int(min(meta.NumDelivered, mostTries+1)), min(max(it.Tries, 1), mostTries)
	working, stop := context.WithCancel(ctx)
	defer stop()
	q.beat(m, &it)
	go func() {
		for tick := time.NewTicker(max(c.CachedInfo().Config.AckWait/3, 100*time.Millisecond)); ; {
			select {
			case <-tick.C:
				q.beat(m, &it)
			case <-working.Done():
				tick.Stop()
				return
			}
		}
	}()
	dir, err := w.temporary()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var r *Result
	var disk *DiskError
	if tries > most {
		r = &Result{Status: Failed, Diagnostics: []cli.Problem{refusal("set-aside", "%d workers took it, and none came to an end with it", most)}}
		w.sign(&it, r)
		tries-- // this one does not try
	} else if r, err = w.Do(ctx, &it, dir); errors.Is(err, errLost) {
		s.Log("%s: %v", it.Name, err)
		return m.Term() // the batch misses it, and puts both there again
	} else if err != nil && ctx.Err() == nil && tries == most && !errors.As(diskError(err), &disk) {
		r = &Result{Status: Failed, Diagnostics: []cli.Problem{refusal("file", "%v", err)}}
		w.sign(&it, r)
	} else if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err() // what the process said when it was stopped is no result
	}
	r.Tries = tries
	placed := false
	if s.Place != nil {
		if placed, err = s.Place(&it, r, filepath.Join(dir, "out")); err != nil {
			return err
		}
	}
	if !placed {
		for _, f := range r.Outputs {
			if err := q.put(ctx, outputs, filepath.Join(dir, "out", filepath.FromSlash(f.Name)), it.Job, it.Key, f.Hash); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := q.store(ctx, &it, text); errors.Is(err, errOver) {
		return m.Term()
	} else if err != nil {
		return err
	}
	return m.Ack()
}
