package sim

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// sharedWord says who touched a unit of shared memory since which barrier. Epoch 0 is never.
type sharedWord struct {
	wrote, read    uint32 // epochs
	writer, reader int16
}

const (
	many    = -1 // more than one thread read it
	atomics = -2 // written by atomic operations
)

func newSharedShadow(r *launch) []sharedWord { return make([]sharedWord, r.extent/r.k.gran+1) }

func (w *worker) checkShared(lane, off, size int, write, atomic bool, in *inst) {
	inside := false
	for _, o := range w.objects {
		if off >= o.off && off+size <= o.off+o.size {
			inside = true
			break
		}
	}
	if !inside {
		near := ""
		for _, o := range w.objects {
			if off >= o.off {
				near = fmt.Sprintf(" after %s, which has %d bytes", o.name, o.size)
			}
		}
		w.fail(OutOfBounds, lane, in.line, "access of %d bytes of shared memory in a gap%s", size, near)
		return
	}
	for u := off / w.k.gran; u*w.k.gran < off+size; u++ {
		s := &w.shadow[u]
		if atomic {
			if s.wrote == w.epoch && s.writer != atomics && s.writer != int16(lane) || s.read == w.epoch && s.reader != int16(lane) {
				w.fail(SharedRace, lane, in.line, "atomic access at offset %d, and plain access by %s without a barrier between", off, w.who(s))
				return
			}
			s.wrote, s.writer = w.epoch, atomics
			continue
		}
		if s.wrote == w.epoch && s.writer != int16(lane) {
			verb := "read"
			if write {
				verb = "write"
			}
			w.fail(SharedRace, lane, in.line, "%s at offset %d, which %s wrote without a barrier between", verb, off, w.name(s.writer))
			return
		}
		if write {
			if s.read == w.epoch && s.reader != int16(lane) {
				w.fail(SharedRace, lane, in.line, "write at offset %d, which %s read without a barrier between", off, w.name(s.reader))
				return
			}
			s.wrote, s.writer = w.epoch, int16(lane)
			continue
		}
		if s.wrote == 0 {
			w.fail(Uninitialised, lane, in.line, "offset %d", off)
			return
		}
		if s.read != w.epoch {
			s.read, s.reader = w.epoch, int16(lane)
		} else if s.reader != int16(lane) {
			s.reader = many
		}
	}
}

func (w *worker) name(lane int16) string {
	switch lane {
	case many:
		return "more than one thread"
	case atomics:
		return "an atomic operation"
	}
	return fmt.Sprintf("thread %v", w.thread(int(lane)))
}

func (w *worker) who(s *sharedWord) string {
	if s.wrote == w.epoch {
		return w.name(s.writer)
	}
	return w.name(s.reader)
}

// maxTracked is the largest buffer whose use by several blocks is watched, in bytes.
const maxTracked = 16 << 20

// globalShadow holds, for each unit of a buffer, the least and the greatest number of a block that wrote it and of one that
// read it: enough to name a conflict, and independent of the order in which the blocks ran.
type globalShadow struct {
	once        [2]sync.Once
	read, wrote []atomic.Uint64
	last        []atomic.Uint64 // block, epoch and thread of the last write: for races within a block
}

const globalUnit = 4 // narrower kernels use units of a byte

func (k *Kernel) unit() int {
	if k.least < globalUnit {
		return 1
	}
	return globalUnit
}

func (g *globalShadow) mark(w *worker, lane int, off int64, size int, write bool, in *inst) {
	if g == nil {
		return
	}
	unit := w.k.unit()
	n := 0
	if write {
		n = 1
	}
	g.once[n].Do(func() {
		units := make([]atomic.Uint64, maxUnits(w, g)/unit+1)
		if write {
			g.last = make([]atomic.Uint64, len(units))
			g.wrote = units
		} else {
			g.read = units
		}
	})
	units := g.read
	if write {
		units = g.wrote
	}
	b := uint64(uint32(w.number)) + 1
	g.race(w, lane, int(off)/unit, (int(off)+size+unit-1)/unit, b, write, in)
	for u := int(off) / unit; u*unit < int(off)+size; u++ {
		for {
			v := units[u].Load()
			lo, hi := v>>32, v&0xffffffff
			if v != 0 && lo <= b && b <= hi {
				break
			}
			if v == 0 {
				lo, hi = b, b
			}
			if units[u].CompareAndSwap(v, min(lo, b)<<32|max(hi, b)) {
				break
			}
		}
	}
}

// race finds a unit that another thread of the block wrote since the last barrier.
func (g *globalShadow) race(w *worker, lane, from, to int, block uint64, write bool, in *inst) {
	if !write {
		// last is made together with wrote, by the first write of any block; its own block's writes are seen here in any case
		if !w.wroteGlobal {
			return
		}
	} else {
		w.wroteGlobal = true
	}
	me := block<<32 | uint64(w.epoch&(1<<21-1))<<11 | uint64(lane)
	for u := from; u < to && u < len(g.last); u++ {
		v := g.last[u].Load()
		if write {
			v = g.last[u].Swap(me)
		}
		if v>>11 == me>>11 && v != me {
			verb := "read"
			if write {
				verb = "write"
			}
			w.fail(GlobalRace, lane, in.line, "%s at offset %d, which thread %v wrote without a barrier between", verb, u*w.k.unit(), w.thread(int(v&(1<<11-1))))
			return
		}
	}
}

func maxUnits(w *worker, g *globalShadow) int {
	for i, s := range w.shadows {
		if s == g {
			return len(w.bufs[i].b)
		}
	}
	return 0
}

// conflict looks for memory that one block wrote and another one touched.
func (r *launch) conflict() *Fault {
	unit := r.k.unit()
	for i, g := range r.shadows {
		if g == nil {
			continue
		}
		for u := range g.wrote {
			v := g.wrote[u].Load()
			if v == 0 {
				continue
			}
			a, b, verb := v>>32-1, v&0xffffffff-1, "wrote"
			if a == b && u < len(g.read) {
				if x := g.read[u].Load(); x != 0 {
					if lo, hi := x>>32-1, x&0xffffffff-1; lo != a {
						b, verb = lo, "read"
					} else if hi != a {
						b, verb = hi, "read"
					}
				}
			}
			if a != b {
				name := fmt.Sprint(i)
				for j, arg := range r.Args {
					if arg.Buffer == r.bufs[i] {
						name = r.k.params[j].name
						break
					}
				}
				return &Fault{Kind: GlobalConflict, Kernel: r.k.Name,
					Detail: fmt.Sprintf("offset %d of parameter %s: block %d wrote it, block %d %s it", u*unit, name, a, b, verb)}
			}
		}
	}
	return nil
}
