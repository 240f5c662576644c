package sim

import (
	"math"
	"math/bits"
	"strconv"
	"strings"
	"unsafe"

	"github.com/aton-project/aton/codegen/gpu/internal/llir"
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

// copyAsync asks for copies of so many bytes from a to b, or of as many as keep says, and zeros.
func (b *builder) copyAsync(from slot, off uint64, to slot, at uint64, keep slot, size, line int) {
	b.k.copies = true
	b.access(global, size)
	b.access(shared, size)
	b.emit(inst{run: copyAsync(size), d: none, a: from, b: to, c: keep, guard: none, line: int32(line), imm: off, dir: reads, bytes: int8(size), space: global, copy: true, to: at})
}

func copyAsync(size int) runner {
	return func(w *worker, in *inst) {
		from, to := whole[uint64](w, in.a), whole[uint64](w, in.b)
		w.each(0, func(i int) bool {
			c := copying{lane: i, group: w.groups[i], from: from[i] + in.imm, to: int(to[i] + in.to), size: size}
			read := size
			if in.c != none {
				read = min(int(whole[uint32](w, in.c)[i]), size)
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
	to := whole[uint64](w, in.b)
	most := 32 * bankWidth / int(in.bytes)
	for first := 0; first < 32; first += most {
		inner := w.inner[:0]
		for m := active >> first & (1<<most - 1); m != 0; m &= m - 1 {
			inner = append(inner, to[warp*32+first+bits.TrailingZeros32(m)]+in.to)
		}
		w.stats.Counts.wavefronts(inner, int(in.bytes))
	}
}

// copy reads the instructions of PTX.
func (r *ptxReader) copy(name string, ops []ptxOperand) {
	simple := func(run runner) {
		r.emit(inst{run: run, d: none, a: none, b: none, c: none, guard: none, line: int32(r.line)})
	}
	switch name {
	case "cp.async.commit_group":
		if r.args(ops, 0) {
			simple(commitCopies)
		}
		return
	case "cp.async.wait_all":
		if r.args(ops, 0) {
			simple(waitCopies(-1))
		}
		return
	case "cp.async.wait_group":
		if r.args(ops, 1) {
			if !ops[0].isImm || int64(ops[0].imm) < 0 {
				r.fail("wait for a number of groups that is no constant")
				return
			}
			simple(waitCopies(int64(ops[0].imm)))
		}
		return
	}
	rest, ok := strings.CutPrefix(name, "cp.async.")
	cache, rest, both := strings.Cut(rest, ".")
	prefetch := rest == "shared.global.L2::128B" || rest == "shared.global.L2::256B" || rest == "shared.global.L2::64B"
	if !ok || !both || rest != "shared.global" && !prefetch || len(ops) != 3 && len(ops) != 4 || !ops[0].memory || !ops[1].memory || !ops[2].isImm {
		r.fail("instruction is not known")
		return
	}
	size := int(ops[2].imm)
	if !llir.CopyFits(cache, size) {
		r.fail("copy of %s bytes by way of %s", strconv.Itoa(size), cache)
		return
	}
	keep := none
	if len(ops) == 4 {
		keep = r.in(ops[3], 4)
	}
	to, at := r.addressOf(ops[0])
	from, off := r.addressOf(ops[1])
	if r.err == nil {
		r.copyAsync(from, off, to, at, keep, size, r.line)
	}
}
