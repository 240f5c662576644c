package sim

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/internal/cfg"
	"github.com/aton-project/aton/codegen/gpu/isa"
)

// builder has the registers, constants and segments of a kernel that is read.
type builder struct {
	k      *Kernel
	segs   []segment
	cur    int
	consts map[constSlot]slot
	dyn    []int // constants that are the address of the dynamic shared memory
	err    error
	line   int
	row    *isa.Row // of the instruction that is read
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
	in.line, in.guard = int32(b.line), none
	in.class, in.flops = b.row.Class, int16(b.row.Flops)
	b.k.atomics = b.k.atomics || in.dir == updates && in.space != shared
	s := &b.segs[b.cur]
	s.insts = append(s.insts, in)
}

// effect emits an instruction that has no result to blend.
func (b *builder) effect(in inst) {
	in.D = none
	b.emit(in)
}

// op emits an instruction on registers, with a result of its own.
func (b *builder) op(do isa.Do, width int, args ...slot) slot {
	d := b.alloc(width)
	b.into(do, d, width, 0, args...)
	return d
}

// into emits an instruction on registers.
func (b *builder) into(do isa.Do, d slot, width int, imm uint64, args ...slot) {
	in := inst{Op: isa.Op{D: d, A: none, B: none, C: none, Imm: imm}, do: do, width: int8(width)}
	for i, s := range args {
		*[...]*slot{&in.A, &in.B, &in.C}[i] = s
	}
	b.emit(in)
}

// move emits a copy of an element of so many bytes.
func (b *builder) move(d, from slot, width int) {
	b.into(isa.Mov(width), d, width, 0, from)
	s := &b.segs[b.cur]
	s.insts[len(s.insts)-1].move = true
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
	b.settle()
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

// orderSegments is the order in which the scheduler prefers them: the ones after a loop follow it.
func orderSegments(segs []segment) []int32 {
	next := make([][]int32, len(segs))
	for i := range segs {
		next[i] = segs[i].successors()
	}
	return cfg.Order(next)
}
