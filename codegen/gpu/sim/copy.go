package sim

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// copying is an asynchronous copy of a thread, cp.async, that it has not waited for. The simulator reads what is copied when the thread asks for it and writes it
// when the thread waits, so that nobody sees it earlier; a checked run reports who looks, or writes to either side, before that.
type copying struct {
	lane     int
	group    int64
	from     uint64 // a generic address
	to, size int
	data     [16]byte
}

// copyAsync asks for copies of so many bytes from A to B, or of as many as C says, and zeros.
func copyAsync(size int) runner {
	return func(w *worker, in *inst) {
		from, to := whole[uint64](w, in.A), whole[uint64](w, in.B)
		w.each(0, func(i int) bool {
			c := copying{lane: i, group: w.groups[i], from: from[i] + in.Imm, to: int(to[i] + in.to), size: size}
			read := size
			if in.C != none {
				read = min(int(whole[uint32](w, in.C)[i]), size)
			}
			if w.access(shared, i, uint64(c.to), size, size, true, in) == nil {
				return false
			}
			if read > 0 {
				p := w.access(global, i, c.from, read, 1, false, in)
				if p == nil {
					return false
				}
				if c.from&uint64(size-1) != 0 {
					w.fail(Misaligned, i, in.line, "copy of %d bytes from address %#x", size, c.from)
					return false
				}
				copy(c.data[:read], unsafe.Slice((*byte)(p), read))
			}
			if w.check {
				w.marked(&c, copied, copier)
			}
			w.copies = append(w.copies, c)
			return true
		})
	}
}

// marked notes who wrote the words of a copy, and when.
func (w *worker) marked(c *copying, epoch uint32, writer int16) {
	for u := c.to / w.k.gran; u*w.k.gran < c.to+c.size; u++ {
		w.shadow[u].wrote, w.shadow[u].writer = epoch, writer
	}
}

// commitCopies makes a group of what each thread has asked for since the last one.
func commitCopies(w *worker, _ *inst) {
	if w.groups != nil {
		w.each(0, func(i int) bool { w.groups[i]++; return true })
	}
}

// waitCopies waits for all groups of each thread but the last n, or for all copies if n is negative.
func waitCopies(n int64) runner {
	return func(w *worker, _ *inst) {
		if len(w.copies) == 0 {
			return
		}
		clear(w.until)
		w.each(0, func(i int) bool {
			if w.until[i] = w.groups[i] - n; n < 0 {
				w.until[i] = math.MaxInt64
			}
			return true
		})
		rest := w.copies[:0]
		for k := range w.copies {
			c := &w.copies[k]
			if c.group >= w.until[c.lane] {
				rest = append(rest, *c)
				continue
			}
			copy(w.mem[c.to:], c.data[:c.size])
			if w.check {
				w.marked(c, w.epoch, int16(c.lane))
			}
		}
		w.copies = rest
	}
}

// copying records the fault of a thread that uses shared memory to which a copy is on its way.
func (w *worker) copying(lane, off, size int, verb string, in *inst) {
	for i := range w.copies {
		if c := &w.copies[i]; c.to < off+size && off < c.to+c.size {
			w.fail(CopyRace, lane, in.line, "%s at offset %d of shared memory, where a copy is on its way that thread %v has not waited for", verb, off, w.thread(c.lane))
			return
		}
	}
}

// overwrites records the fault of a thread that writes what a copy may still have to read.
func (w *worker) overwrites(lane int, addr uint64, size int, in *inst) {
	for i := range w.copies {
		if c := &w.copies[i]; c.from < addr+uint64(size) && addr < c.from+uint64(c.size) {
			_, off := unbias(addr)
			w.fail(CopyRace, lane, in.line, "write at offset %d of global memory, which a copy reads that thread %v has not waited for", off, w.thread(c.lane))
			return
		}
	}
}

// copyWavefronts counts the shared memory's side of copies by a warp.
func (w *worker) copyWavefronts(in *inst, warp int, active uint32) {
	to := whole[uint64](w, in.B)
	most := 32 * bankWidth / int(in.bytes)
	for first := 0; first < 32; first += most {
		inner := w.inner[:0]
		for m := active >> first & (1<<most - 1); m != 0; m &= m - 1 {
			inner = append(inner, to[warp*32+first+bits.TrailingZeros32(m)]+in.to)
		}
		w.stats.Counts.wavefronts(inner, int(in.bytes))
	}
}

// readCopy reads cp.async.
func (r *ptxReader) readCopy(row *isa.Row, _ string, ops []ptxOperand) {
	if len(ops) != 3 && len(ops) != 4 || !ops[0].memory || !ops[1].memory || !ops[2].isImm {
		r.fail("this form is not known")
		return
	}
	size := int(ops[2].imm)
	if size != 16 && (size != 4 && size != 8 || row.Type != "ca") {
		r.fail("copy of %d bytes", size)
		return
	}
	keep := none
	if len(ops) == 4 {
		keep = r.in(ops[3], 4)
	}
	to, at := r.addressOf(ops[0])
	from, off := r.addressOf(ops[1])
	if r.err != nil {
		return
	}
	r.k.copies = true
	r.access(global, size)
	r.access(shared, size)
	r.effect(inst{run: copyAsync(size), Op: isa.Op{A: from, B: to, C: keep, Imm: off}, dir: reads, bytes: int8(size), space: global, copy: true, to: at})
}

func (r *ptxReader) readCommit(_ *isa.Row, _ string, ops []ptxOperand) {
	if r.args(ops, 0) {
		r.effect(inst{run: commitCopies, Op: isa.Op{A: none, B: none, C: none}})
	}
}

// readWait reads cp.async.wait_group and cp.async.wait_all.
func (r *ptxReader) readWait(row *isa.Row, _ string, ops []ptxOperand) {
	if !r.args(ops, len(row.Args)) {
		return
	}
	n := int64(-1)
	if len(ops) > 0 {
		if n = int64(ops[0].imm); !ops[0].isImm || n < 0 {
			r.fail("wait for a number of groups that is no constant")
			return
		}
	}
	r.effect(inst{run: waitCopies(n), Op: isa.Op{A: none, B: none, C: none}})
}
