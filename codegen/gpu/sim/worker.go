package sim

import (
	"fmt"
	"math"
	"math/bits"
	"unsafe"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// worker runs blocks, one after another.
type worker struct {
	*launch
	isa.Lanes
	regs   []uint64
	slots  [4]unsafe.Pointer // what a vector access goes to
	list   []int32
	side   [2][]int32
	pc     []int32
	number int64 // of the block
	ctaid  [3]int
	mem    []byte // shared
	shadow []sharedWord
	local  []byte
	epoch  uint32
	fault  *Fault
	stats  Stats
	steps  int64
	outer  [32]uint64 // addresses of a warp that are counted
	inner  [32]uint64
	check  bool
	copies []copying // that the threads have not waited for
	groups []int64   // how many groups of copies each thread has made
	until  []int64   // up to which it waits now
	// a block that wrote no global memory races with nobody
	wroteGlobal bool
}

const (
	waiting = 1 << 30
	exited  = math.MaxInt32
)

func newWorker(r *launch) *worker {
	w := &worker{launch: r, Lanes: isa.Lanes{Stride: r.stride, Threads: r.threads}, check: r.Check}
	k := r.k
	w.regs = make([]uint64, (k.slots*w.Stride+7)/8+1)
	w.Base = unsafe.Pointer(unsafe.SliceData(w.regs))
	w.Temp = make([]uint64, w.Stride)
	w.pc = make([]int32, r.threads)
	w.list = make([]int32, 0, r.threads)
	w.side = [2][]int32{make([]int32, r.threads), make([]int32, r.threads)}
	if r.extent > 0 {
		w.mem = make([]byte, r.extent)
		if r.Check {
			w.shadow = newSharedShadow(r)
		}
	}
	w.local = make([]byte, k.local*r.threads)
	if k.copies {
		w.groups, w.until = make([]int64, r.threads), make([]int64, r.threads)
	}
	w.fixed()
	return w
}

// whole is all elements of a slot, src those of the running threads.
func whole[T any](w *worker, s slot) []T { return isa.All[T](&w.Lanes, s) }

func src[T any](w *worker, s slot) []T { return isa.Src[T](&w.Lanes, s) }

func fill[T any](s []T, v T) {
	for i := range s {
		s[i] = v
	}
}

func (w *worker) set(s slot, width int8, bits uint64) {
	switch width {
	case 1:
		fill(whole[uint8](w, s), uint8(bits))
	case 2:
		fill(whole[uint16](w, s), uint16(bits))
	case 4:
		fill(whole[uint32](w, s), uint32(bits))
	default:
		fill(whole[uint64](w, s), bits)
	}
}

// fixed fills what is the same in all blocks.
func (w *worker) fixed() {
	k := w.k
	for _, c := range k.consts {
		w.set(c.s, c.width, c.bits)
	}
	for i, p := range k.params {
		if p.s == none {
			continue
		}
		bits := w.Args[i].Bits
		if b := w.Args[i].Buffer; b != nil {
			bits = globalAddress(w.find(b), int64(bits))
		}
		w.set(p.s, p.width, bits)
	}
	for dim := range 3 {
		if s := k.sregs[sregTid][dim]; s != none {
			for i, v := 0, whole[uint32](w, s); i < w.threads; i++ {
				v[i] = uint32(w.thread(i)[dim])
			}
		}
		if s := k.sregs[sregNtid][dim]; s != none {
			w.set(s, 4, uint64(w.block[dim]))
		}
		if s := k.sregs[sregNctaid][dim]; s != none {
			w.set(s, 4, uint64(w.grid[dim]))
		}
		if s := k.sregs[sregLane][dim]; s != none {
			v := whole[uint32](w, s)
			for i := range w.threads {
				v[i] = uint32([3]int{i % 32, i / 32, (w.threads + 31) / 32}[dim])
			}
		}
	}
}

func (w *worker) thread(i int) [3]int {
	x, y := w.block[0], w.block[1]
	return [3]int{i % x, i / x % y, i / (x * y)}
}

func (w *worker) loop() {
	for {
		n := w.next.Add(1) - 1
		if n >= w.least.Load() || w.launch.spent() { // without a fault, least is the number of blocks
			return
		}
		before := w.stats.LaneInstructions
		at := n
		if w.Blocks != nil {
			n = w.Blocks[n]
		}
		w.number = n
		x, y := int64(w.grid[0]), int64(w.grid[1])
		w.ctaid = [3]int{int(n % x), int(n / x % y), int(n / (x * y))}
		w.run()
		w.lanes.Add(w.stats.LaneInstructions - before)
		if w.fault != nil {
			w.mu.Lock()
			w.faults[at] = w.fault
			if at < w.least.Load() {
				w.least.Store(at)
			}
			w.mu.Unlock()
			return
		}
	}
}

// fail records the first fault of the block.
func (w *worker) fail(kind FaultKind, lane int, line int32, format string, args ...any) {
	if w.fault == nil {
		w.fault = &Fault{Kind: kind, Kernel: w.k.Name, Block: w.ctaid, Thread: w.thread(lane), Line: int(line),
			Detail: fmt.Sprintf(format, args...)}
	}
}

// run executes one block.
func (w *worker) run() {
	if w.k.clear {
		clear(w.regs)
		w.fixed()
	}
	for dim, s := range w.k.sregs[sregCtaid] {
		if s != none {
			w.set(s, 4, uint64(w.ctaid[dim]))
		}
	}
	clear(w.mem)
	clear(w.shadow)
	clear(w.local)
	clear(w.groups)
	w.copies = w.copies[:0]
	w.epoch, w.steps, w.wroteGlobal = 1, 0, false
	together, cur := true, int32(0)
	for w.fault == nil {
		if !together {
			var live bool
			if cur, live = w.pick(); !live {
				return
			}
			together = w.Idx == nil && w.Lo == 0 && w.Hi == w.threads
		} else {
			w.Lo, w.Hi, w.Idx = 0, w.threads, nil
		}
		seg := &w.k.segs[cur]
		if w.steps += int64(len(seg.insts)) + 1; w.steps > w.launch.steps {
			w.fail(Hang, w.first(), seg.line, "more than %d instructions", w.launch.steps)
			return
		}
		w.stats.LaneInstructions += int64(len(seg.insts)+1) * int64(w.count())
		w.exec(seg.insts)
		if w.fault != nil {
			return
		}
		switch seg.term {
		case termJump:
			cur = seg.to[0]
			if !together {
				w.move(cur)
			}
		case termBranch:
			yes := w.split(seg)
			switch {
			case yes == w.count():
				cur = seg.to[0]
			case yes == 0:
				cur = seg.to[1]
			default:
				for side := range 2 {
					w.use(w.side[side])
					w.move(seg.to[side])
				}
				together = false
				continue
			}
			if !together {
				w.move(cur)
			}
		case termRet:
			if together {
				return
			}
			w.move(exited)
		case termBarrier:
			if together {
				w.epoch++
				w.stats.Barriers++
				cur = seg.to[0]
			} else {
				w.move(cur | waiting)
			}
		case termTrap:
			w.fail(Trap, w.first(), seg.line, "")
		}
	}
}

func (w *worker) first() int {
	if w.Idx != nil {
		return int(w.Idx[0])
	}
	return w.Lo
}

func (w *worker) count() int {
	if w.Idx != nil {
		return len(w.Idx)
	}
	return w.Hi - w.Lo
}

// use makes the given threads the running ones; list is in ascending order and not empty.
func (w *worker) use(list []int32) {
	w.Lo, w.Hi = int(list[0]), int(list[len(list)-1])+1
	w.Idx = list
	if w.Hi-w.Lo == len(list) {
		w.Idx = nil
	}
}

// move sets the next segment of the running threads.
func (w *worker) move(pc int32) {
	if w.Idx == nil {
		fill(w.pc[w.Lo:w.Hi], pc)
		return
	}
	for _, i := range w.Idx {
		w.pc[i] = pc
	}
}

// pick makes the threads of the lowest segment the running ones. When all wait at the same barrier it opens.
func (w *worker) pick() (int32, bool) {
	least := int32(exited)
	for _, pc := range w.pc {
		least = min(least, pc)
	}
	if least == exited {
		return 0, false
	}
	if least >= waiting {
		for i, pc := range w.pc {
			if pc != least {
				line := w.k.segs[least&^waiting].line
				if pc == exited {
					w.fail(Divergence, i, line, "this thread has returned, others wait at the barrier")
				} else {
					w.fail(Divergence, i, line, "this thread waits at another barrier (line %d)", w.k.segs[pc&^waiting].line)
				}
				return 0, false
			}
		}
		w.epoch++
		w.stats.Barriers++
		least = w.k.segs[least&^waiting].to[0]
		fill(w.pc, least)
	}
	w.list = w.list[:0]
	for i, pc := range w.pc {
		if pc == least {
			w.list = append(w.list, int32(i))
		}
	}
	w.use(w.list)
	return least, true
}

// split sorts the running threads by the branch condition and counts those for which it holds.
func (w *worker) split(seg *segment) int {
	cond := whole[uint8](w, seg.cond)
	var want uint8 = 1
	if seg.neg {
		want = 0
	}
	if w.Idx == nil {
		if yes := count(cond[w.Lo:w.Hi], want); yes == 0 || yes == w.Hi-w.Lo {
			return yes
		}
	}
	yes, no := w.side[0][:w.threads], w.side[1][:w.threads]
	n, m := 0, 0
	put := func(i int32) {
		yes[n], no[m] = i, i
		if cond[i] == want {
			n++
		} else {
			m++
		}
	}
	if w.Idx == nil {
		for i := w.Lo; i < w.Hi; i++ {
			put(int32(i))
		}
	} else {
		for _, i := range w.Idx {
			put(i)
		}
	}
	w.side[0], w.side[1] = yes[:n], no[:m]
	return n
}

// count says how many of the predicates, which are 0 or 1, are the wanted one.
func count(p []uint8, want uint8) int {
	n, all := 0, len(p)
	for ; len(p) >= 8; p = p[8:] {
		n += bits.OnesCount64(*(*uint64)(unsafe.Pointer(&p[0])))
	}
	for _, x := range p {
		n += int(x)
	}
	if want == 0 {
		return all - n
	}
	return n
}

func (w *worker) exec(insts []inst) {
	for i := range insts {
		in := &insts[i]
		if in.guard != none {
			w.guarded(in)
		} else {
			w.perform(in)
		}
		if w.fault != nil {
			return
		}
	}
}

// perform runs an instruction for the running threads.
func (w *worker) perform(in *inst) {
	if w.Count {
		w.tally(in)
	}
	if in.do == nil {
		in.run(w, in)
		return
	}
	in.do(&w.Lanes, &in.Op)
	if w.Idx != nil {
		w.Blend(in.D, int(in.width))
	}
}

// guarded runs an instruction for the threads whose predicate holds.
func (w *worker) guarded(in *inst) {
	lo, hi, idx := w.Lo, w.Hi, w.Idx
	cond := whole[uint8](w, in.guard)
	var want uint8 = 1
	if in.guardNeg {
		want = 0
	}
	list := make([]int32, 0, hi-lo)
	if idx == nil {
		for i := lo; i < hi; i++ {
			if cond[i] == want {
				list = append(list, int32(i))
			}
		}
	} else {
		for _, i := range idx {
			if cond[i] == want {
				list = append(list, i)
			}
		}
	}
	if len(list) > 0 {
		w.use(list)
		w.perform(in)
	}
	w.Lo, w.Hi, w.Idx = lo, hi, idx
}
