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

	"github.com/aton-project/aton/tools/cli"
)

// Serving says how a worker takes items from a queue.
type Serving struct {
	// Jobs is how many items are done at a time.
	Jobs int
	// Idle ends the worker when there was nothing to do for so long; 0 for never.
	Idle time.Duration
	// Place puts the files of a result where they belong, if that can be done from here; if it does not (false), they go through the
	// object store. It may be nil.
	Place func(it *Item, r *Result, dir string) (bool, error)
	// Log is told what goes wrong with the queue; it may be nil.
	Log func(format string, args ...any)
}

// Take does items of a queue until the context ends, or nothing is left to do for as long as s.Idle.
func (w *Worker) Take(ctx context.Context, q *Queue, s Serving) error {
	c, err := q.consumer(ctx)
	if err != nil {
		return err
	}
	if s.Log == nil {
		s.Log = func(string, ...any) {}
	}
	w.Objects = func(ctx context.Context, job, hash string, to io.Writer) error {
		j, err := q.findJob(ctx, job)
		if err != nil {
			return err
		}
		return j.download(ctx, hash, to)
	}
	var all sync.WaitGroup
	for range s.Jobs {
		all.Go(func() { w.take(ctx, q, c, s) })
	}
	all.Wait()
	return nil
}

func (w *Worker) take(ctx context.Context, q *Queue, c jetstream.Consumer, s Serving) {
	last := time.Now()
	for ctx.Err() == nil {
		// one at a time: what waits here while another one is done would be taken for lost
		wait, cancel := context.WithTimeout(ctx, 5*time.Second)
		m, err := c.Next(jetstream.FetchContext(wait))
		cancel()
		switch {
		case err == nil:
			err := w.handle(ctx, q, m, s)
			switch { // if what is said here does not arrive, silence says the same
			case err != nil && ctx.Err() != nil:
				_ = m.Nak()
			case err != nil:
				s.Log("%v", err)
				_ = m.NakWithDelay(time.Second)
			}
			last = time.Now()
		case errors.Is(err, nats.ErrTimeout), errors.Is(err, context.DeadlineExceeded), errors.Is(err, jetstream.ErrNoMessages), ctx.Err() != nil:
		default:
			s.Log("the queue: %v", err)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
		}
		if s.Idle > 0 && time.Since(last) > s.Idle {
			return
		}
	}
}

// handle does one message. The result is stored before the message is acknowledged, so that a death in between does the item again
// and loses nothing; and it is stored only if there is none.
func (w *Worker) handle(ctx context.Context, q *Queue, m jetstream.Msg, s Serving) error {
	var it Item
	if err := json.Unmarshal(m.Data(), &it); err != nil || len(it.Key) != 32 {
		s.Log("a message that is no item is thrown away")
		return m.Term()
	}
	j, err := q.findJob(ctx, it.Job)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return m.Term() // nobody waits for it any more
	}
	if err != nil {
		return err
	}
	if _, err := j.results.Get(ctx, it.Key); err == nil {
		return m.Ack()
	}
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	tries := int(meta.NumDelivered)
	alive, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for tick := time.NewTicker(q.silence / 3); ; {
			select {
			case <-tick.C:
				_ = m.InProgress() // the next one may arrive
			case <-alive.Done():
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
	if tries > it.Tries {
		r = &Result{Status: Failed, Diagnostics: []cli.Problem{refusal("set-aside", "%d workers took it, and none came to an end with it", it.Tries)}}
		w.sign(&it, r)
		tries-- // this one does not try
	} else if r, err = w.Do(ctx, &it, dir); err != nil && ctx.Err() == nil && tries == it.Tries {
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
	for _, f := range r.Outputs {
		if placed {
			break
		}
		if err := j.upload(ctx, object(it.Key, f.Hash), filepath.Join(dir, "out", filepath.FromSlash(f.Name))); err != nil {
			return err
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := j.results.Create(ctx, it.Key, text); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	return m.Ack()
}
