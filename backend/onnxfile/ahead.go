package onnxfile

import (
	"io"
	"sync/atomic"
)

// Buffers of ahead: how many, and their size in bytes.
const (
	aheadBuffers = 4
	aheadSize    = 1 << 20
)

// ahead writes to another writer in a goroutine of its own, while the caller makes what comes next: of gigabytes of weights that are
// transposed, making takes about as long as writing.
type ahead struct {
	at         []byte // being filled
	free, full chan []byte
	failed     atomic.Bool
	err        error // of the goroutine; to be read when it has ended
	ended      chan struct{}
}

// writeAhead begins to write to w. The caller has to call close.
func writeAhead(w io.Writer) *ahead {
	a := &ahead{free: make(chan []byte, aheadBuffers), full: make(chan []byte, aheadBuffers), ended: make(chan struct{})}
	for range aheadBuffers {
		a.free <- make([]byte, 0, aheadSize)
	}
	go func() {
		defer close(a.ended)
		for b := range a.full {
			if a.err == nil {
				if _, a.err = w.Write(b); a.err != nil {
					a.failed.Store(true)
				}
			}
			a.free <- b[:0]
		}
	}()
	return a
}

// Write takes bytes to be written. That some before them could not be written is told by an error of a later call, or by close.
func (a *ahead) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if a.failed.Load() {
			return 0, io.ErrClosedPipe // close says why
		}
		if a.at == nil {
			a.at = <-a.free
		}
		k := min(len(p), cap(a.at)-len(a.at))
		a.at, p = append(a.at, p[:k]...), p[k:]
		if len(a.at) == cap(a.at) {
			a.full <- a.at
			a.at = nil
		}
	}
	return n, nil
}

// close waits until all is written, and gives the first error of w.
func (a *ahead) close() error {
	if len(a.at) > 0 {
		a.full <- a.at
	}
	close(a.full)
	<-a.ended
	return a.err
}
