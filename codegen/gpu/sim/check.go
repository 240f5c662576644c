package sim

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// sharedWord says who touched a unit of shared memory since which barrier. Epoch 0 is never.
type sharedWord struct {
	wrote, read    uint32 // epochs
	writer, reader int16
}

const (
	many    = -1 // more than one thread read it
	atomics = -2 // written by atomic operations
	copier  = -3 // is being copied to, in the epoch copied
)

// copied is later than any epoch: a word that is being copied to is written when somebody has waited for it.
const copied = math.MaxUint32

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
			if s.wrote == copied {
				w.copying(lane, off, size, "atomic access", in)
				return
			}
			if s.wrote == w.epoch && s.writer != atomics && s.writer != int16(lane) || s.read == w.epoch && s.reader != int16(lane) {
				w.fail(SharedRace, lane, in.line, "atomic access at offset %d, and plain access by %s without a barrier between", off, w.who(s))
				return
			}
			s.wrote, s.writer = w.epoch, atomics
			continue
		}
		if s.wrote >= w.epoch && s.writer != int16(lane) {
			verb := "read"
			if write {
				verb = "write"
			}
			if s.wrote == copied {
				w.copying(lane, u*w.k.gran, w.k.gran, verb, in)
				return
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
// read it, which are enough to name a conflict. The blocks of a checked run come one after another in the order of their numbers.
type globalShadow struct {
	read, wrote []uint64
	last        []uint64 // block, epoch and thread of the last write: for races within a block
}

const globalUnit = 4 // narrower kernels use units of a byte

func (k *Kernel) unit() int {
	if k.least < globalUnit {
		return 1
	}
	return globalUnit
}

// units are those of reads or writes, made when they are first needed.
func (g *globalShadow) units(w *worker, write bool) []uint64 {
	n := maxUnits(w, g)/w.k.unit() + 1
	if !write {
		if g.read == nil {
			g.read = make([]uint64, n)
		}
		return g.read
	}
	if g.wrote == nil {
		g.wrote, g.last = make([]uint64, n), make([]uint64, n)
	}
	return g.wrote
}

// me is what last says of a thread of the block that runs, since the last barrier.
func (w *worker) me(lane int) uint64 {
	return (uint64(uint32(w.number))+1)<<32 | uint64(w.epoch&(1<<21-1))<<11 | uint64(lane)
}

func (g *globalShadow) mark(w *worker, lane int, off int64, size int, write bool, in *inst) {
	if g == nil {
		return
	}
	unit := w.k.unit()
	units := g.units(w, write)
	g.race(w, lane, int(off)/unit, (int(off)+size+unit-1)/unit, write, in)
	for u := int(off) / unit; u*unit < int(off)+size; u++ {
		units[u] = w.by(units[u])
	}
}

// by adds the block that runs to the numbers of a unit.
func (w *worker) by(v uint64) uint64 {
	b := uint64(uint32(w.number)) + 1
	if v == 0 {
		return b<<32 | b
	}
	return v&^(1<<32-1) | b
}

// race finds a unit that another thread of the block wrote since the last barrier.
func (g *globalShadow) race(w *worker, lane, from, to int, write bool, in *inst) {
	if !write {
		// last is made together with wrote, by the first write of any block; its own block's writes are seen here in any case
		if !w.wroteGlobal {
			return
		}
	} else {
		w.wroteGlobal = true
	}
	me := w.me(lane)
	for u := from; u < to && u < len(g.last); u++ {
		v := g.last[u]
		if write {
			g.last[u] = me
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

// inOrder are the addresses of neighbouring threads from the first that runs on whose accesses break no rule, as far as a loop can tell
// without a word to each; with checks, they are noted. The next one, if there is one, is for access to judge.
func (w *worker) inOrder(in *inst, sp space, addr []uint64, total int, write bool) []uint64 {
	if w.Idx != nil {
		return nil
	}
	a := addr[w.Lo:w.Hi]
	if !w.check {
		return a
	}
	_, from, n := w.window(sp, a[0]+in.Imm)
	if n < uint64(total) {
		return nil
	}
	limit, mask, delta := n-uint64(total), uint64(total-1), in.Imm-from
	number, _ := unbias(a[0] + in.Imm)
	if write && len(w.copies) > 0 && sp != shared {
		return nil
	}
	if sp == shared || sp == generic && number == sharedTag {
		return a[:w.sharedRun(a, delta, limit, mask, total, write)]
	}
	g := w.shadows[number]
	if g == nil {
		return a
	}
	return a[:w.globalRun(g, a, delta, limit, mask, total, write)]
}

func (w *worker) sharedRun(a []uint64, delta, limit, mask uint64, total int, write bool) int {
	shift := bits.TrailingZeros(uint(w.k.gran))
	size := uint64(total)
	var obj object // that the last one was in
	for i, x := range a {
		o := x + delta
		if o > limit || o&mask != 0 {
			return i
		}
		if o < uint64(obj.off) || o+size > uint64(obj.off+obj.size) {
			at := slices.IndexFunc(w.objects, func(b object) bool { return o >= uint64(b.off) && o+size <= uint64(b.off+b.size) })
			if at < 0 {
				return i
			}
			obj = w.objects[at]
		}
		lane := int16(w.Lo + i)
		for u := o >> shift; u<<shift < o+size; u++ {
			s := &w.shadow[u]
			if s.wrote >= w.epoch && s.writer != lane {
				return i
			}
			if write {
				if s.read == w.epoch && s.reader != lane {
					return i
				}
				s.wrote, s.writer = w.epoch, lane
				continue
			}
			if s.wrote == 0 {
				return i
			}
			if s.read != w.epoch {
				s.read, s.reader = w.epoch, lane
			} else if s.reader != lane {
				s.reader = many
			}
		}
	}
	return len(a)
}

func (w *worker) globalRun(g *globalShadow, a []uint64, delta, limit, mask uint64, total int, write bool) int {
	shift := bits.TrailingZeros(uint(w.k.unit()))
	units, size := g.units(w, write), uint64(total)
	last := g.last
	if !write && !w.wroteGlobal {
		last = nil
	}
	w.wroteGlobal = w.wroteGlobal || write
	me := w.me(w.Lo)
	for i, x := range a {
		o := x + delta
		if o > limit || o&mask != 0 {
			return i
		}
		for u := o >> shift; u<<shift < o+size; u++ {
			if u < uint64(len(last)) {
				if v := last[u]; v>>11 == me>>11 && v != me {
					return i
				}
				if write {
					last[u] = me
				}
			}
			units[u] = w.by(units[u])
		}
		me++ // the next thread
	}
	return len(a)
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
			v := g.wrote[u]
			if v == 0 {
				continue
			}
			a, b, verb := v>>32-1, v&0xffffffff-1, "wrote"
			if a == b && u < len(g.read) {
				if x := g.read[u]; x != 0 {
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
