package sim

import (
	"fmt"
	"sort"
)

// builder is what the readers share: registers, constants, segments.
type builder struct {
	k      *Kernel
	segs   []segment
	cur    int
	consts map[constSlot]slot
	dyn    []int // constants that are the address of the dynamic shared memory
	err    error
}

func newBuilder(name string) *builder {
	b := &builder{k: &Kernel{Name: name, dynamic: -1, gran: 16, least: 16}, consts: map[constSlot]slot{}}
	for i := range b.k.sregs {
		b.k.sregs[i] = [3]slot{none, none, none}
	}
	return b
}

// fail keeps the first error.
func (b *builder) fail(format string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(format, args...)
	}
}

func (b *builder) alloc(width int) slot {
	s := slot(b.k.slots)
	b.k.slots += width
	return s
}

func (b *builder) constant(width int, bits uint64) slot {
	if width < 8 {
		bits &= 1<<(8*width) - 1
	}
	c := constSlot{width: int8(width), bits: bits}
	s, ok := b.consts[c]
	if !ok {
		s = b.alloc(width)
		b.consts[c] = s
		b.k.consts = append(b.k.consts, constSlot{s, c.width, bits})
	}
	return s
}

// dynamicBase is the address of the dynamic shared memory, known when all static objects are.
func (b *builder) dynamicBase() slot {
	b.k.dynamic = 0
	s := b.alloc(8)
	b.dyn = append(b.dyn, len(b.k.consts))
	b.k.consts = append(b.k.consts, constSlot{s: s, width: 8})
	return s
}

func (b *builder) sreg(kind, dim int) slot {
	p := &b.k.sregs[kind][dim]
	if *p == none {
		*p = b.alloc(4)
	}
	return *p
}

func (b *builder) emit(in inst) {
	if in.run == nil {
		b.fail("no such operation")
		return
	}
	s := &b.segs[b.cur]
	s.insts = append(s.insts, in)
}

// op emits d = run(a, b, c).
func (b *builder) op(run runner, line int, width int, args ...slot) slot {
	d := b.alloc(width)
	b.into(run, line, d, width, args...)
	return d
}

func (b *builder) into(run runner, line int, d slot, width int, args ...slot) {
	in := inst{run: run, d: d, a: none, b: none, c: none, width: int8(width), guard: none, line: int32(line)}
	for i, s := range args {
		switch i {
		case 0:
			in.a = s
		case 1:
			in.b = s
		case 2:
			in.c = s
		}
	}
	b.emit(in)
}

// segment starts a new one and makes it the current.
func (b *builder) segment() int {
	b.segs = append(b.segs, segment{cond: none})
	b.cur = len(b.segs) - 1
	return b.cur
}

// access notes the widths that the checks work in.
func (b *builder) access(sp space, width int) {
	if sp != global && sp != locals {
		b.k.gran = min(b.k.gran, width)
	}
	if sp == global || sp == generic {
		b.k.least = min(b.k.least, width)
	}
}

const maxSegments = 1 << 14

// finish orders the segments for the scheduler and hands the kernel over.
func (b *builder) finish() (*Kernel, error) {
	if b.err != nil {
		return nil, b.err
	}
	if len(b.segs) > maxSegments {
		return nil, fmt.Errorf("more than %d basic blocks", maxSegments)
	}
	order := orderSegments(b.segs)
	at := make([]int32, len(b.segs))
	for i, s := range order {
		at[s] = int32(i)
	}
	for _, s := range order {
		seg := b.segs[s]
		for i := range seg.to {
			seg.to[i] = at[seg.to[i]]
		}
		b.k.segs = append(b.k.segs, seg)
	}
	if b.k.dynamic >= 0 {
		b.k.dynamic = (b.k.shared + 1023) &^ 1023
		for _, i := range b.dyn {
			b.k.consts[i].bits = uint64(b.k.dynamic)
		}
	}
	return b.k, nil
}

func (s *segment) successors() []int32 {
	switch s.term {
	case termJump, termBarrier:
		return s.to[:1]
	case termBranch:
		return s.to[:2]
	}
	return nil
}

// orderSegments is a reverse post order in which the blocks of a loop stand together and what follows it comes after
// them, so that running the lowest segment first brings threads together again where the source does.
func orderSegments(segs []segment) []int32 {
	n := len(segs)
	// back edges of a first walk, and the loops they close
	state := make([]uint8, n)
	preds := make([][]int32, n)
	type edge struct{ from, to int32 }
	var backs []edge
	walk(segs, func(s int32) []int32 { return segs[s].successors() }, state, func(from, to int32, open bool) {
		preds[to] = append(preds[to], from)
		if open {
			backs = append(backs, edge{from, to})
		}
	}, nil)
	in := make([]map[int32]bool, 0, len(backs)) // members of each loop
	byHeader := map[int32]map[int32]bool{}
	for _, e := range backs {
		loop := byHeader[e.to]
		if loop == nil {
			loop = map[int32]bool{e.to: true}
			byHeader[e.to] = loop
			in = append(in, loop)
		}
		for stack := []int32{e.from}; len(stack) > 0; {
			s := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if loop[s] {
				continue
			}
			loop[s] = true
			stack = append(stack, preds[s]...)
		}
	}
	loops := make([][]int, n)
	for i, l := range in {
		for s := range l {
			loops[s] = append(loops[s], i)
		}
	}
	left := func(from, to int32) int {
		count := 0
		for _, l := range loops[from] {
			if !in[l][to] {
				count++
			}
		}
		return count
	}
	clear(state)
	var post []int32
	walk(segs, func(s int32) []int32 {
		next := append([]int32(nil), segs[s].successors()...)
		if len(next) == 2 {
			// the side that leaves more loops is finished first and so comes last
			next[0], next[1] = next[1], next[0]
			sort.SliceStable(next, func(i, j int) bool { return left(s, next[i]) > left(s, next[j]) })
		}
		return next
	}, state, nil, func(s int32) { post = append(post, s) })
	for i, j := 0, len(post)-1; i < j; i, j = i+1, j-1 {
		post[i], post[j] = post[j], post[i]
	}
	return post
}

// walk visits segments depth first from 0; on is called for each edge, open telling whether its target is still open.
func walk(segs []segment, next func(int32) []int32, state []uint8, on func(from, to int32, open bool), done func(int32)) {
	if len(segs) == 0 {
		return
	}
	type frame struct {
		s    int32
		next []int32
	}
	stack := []frame{{0, next(0)}}
	state[0] = 1
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if len(f.next) == 0 {
			state[f.s] = 2
			if done != nil {
				done(f.s)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		to := f.next[0]
		f.next = f.next[1:]
		if on != nil {
			on(f.s, to, state[to] == 1)
		}
		if state[to] == 0 {
			state[to] = 1
			stack = append(stack, frame{to, next(to)})
		}
	}
}
