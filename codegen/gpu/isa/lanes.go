package isa

import "unsafe"

// Slot is the place of a value in the register file: the bytes per thread that lie before it.
type Slot int32

// None is the slot of an operand that there is not.
const None Slot = -1

// Lanes are the registers of a block of threads, and which of the threads run. A value is a slot with one element per thread.
type Lanes struct {
	Base    unsafe.Pointer
	Stride  int // elements of a slot: the threads rounded up to a multiple of 8
	Threads int
	// The threads that run are [Lo, Hi), or those of the list Idx, which is in ascending order, if it is not nil.
	Lo, Hi int
	Idx    []int32
	Temp   []uint64 // where an operation writes if Idx is set, before Blend
}

// Op are the operands of an instruction: the result D, up to three sources, a constant.
type Op struct {
	D, A, B, C Slot
	Imm        uint64
}

// Do is what an instruction does, for all threads that run.
type Do func(l *Lanes, o *Op)

// All is all elements of a slot.
func All[T any](l *Lanes, s Slot) []T {
	return unsafe.Slice((*T)(unsafe.Add(l.Base, int(s)*l.Stride)), l.Stride)
}

// Src is a slot's elements of the running threads, and of those between them.
func Src[T any](l *Lanes, s Slot) []T {
	return unsafe.Slice((*T)(unsafe.Add(l.Base, int(s)*l.Stride)), l.Stride)[l.Lo:l.Hi]
}

// Dst is where the running threads' results go.
func Dst[T any](l *Lanes, s Slot) []T {
	if l.Idx != nil {
		return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(l.Temp))), l.Stride)[l.Lo:l.Hi]
	}
	return unsafe.Slice((*T)(unsafe.Add(l.Base, int(s)*l.Stride)), l.Stride)[l.Lo:l.Hi]
}

// Blend moves the results of scattered threads from Temp to the slot d, of so many bytes an element.
func (l *Lanes) Blend(d Slot, width int) {
	switch width {
	case 1:
		blend[uint8](l, d)
	case 2:
		blend[uint16](l, d)
	case 4:
		blend[uint32](l, d)
	case 8:
		blend[uint64](l, d)
	}
}

func blend[T any](l *Lanes, s Slot) {
	d := All[T](l, s)
	t := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(l.Temp))), len(d))
	for _, i := range l.Idx {
		d[i] = t[i]
	}
}
