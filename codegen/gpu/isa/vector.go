package isa

import "unsafe"

// vector is an operation that the processor does for 8 threads at a time: on n of them, a multiple of 8 and not 0, with
// results at d and operands a, b and c bytes from base. The widths of the elements are in bytes, 0 for an operand that there is not.
// It gives the same bits as the loop that it stands for.
type vector struct {
	run        func(d, base unsafe.Pointer, a, b, c, n int, imm uint64)
	d, a, b, c int
}

// vectored runs an operation by the processor's vectors where it has the one of that name, and by the loop slow where not.
func vectored(name string, slow Do) Do {
	v, ok := lanesOf[name]
	if !ok || !Vectors || slow == nil {
		return slow
	}
	return func(l *Lanes, o *Op) {
		lo, hi := l.Lo, l.Hi
		d := l.Base
		switch {
		case l.Idx != nil: // what lies between the threads in temp is nobody's
			lo, hi = lo&^7, (hi+7)&^7
			d = unsafe.Add(unsafe.Pointer(unsafe.SliceData(l.Temp)), lo*v.d)
		case hi == l.Threads && lo == 0: // slots are filled up to a multiple of 8
			hi = l.Stride
			d = unsafe.Add(d, int(o.D)*l.Stride)
		default:
			hi = lo + (hi-lo)&^7
			d = unsafe.Add(d, int(o.D)*l.Stride+lo*v.d)
		}
		if hi > lo {
			v.run(d, l.Base, int(o.A)*l.Stride+lo*v.a, int(o.B)*l.Stride+lo*v.b, int(o.C)*l.Stride+lo*v.c, hi-lo, o.Imm)
		}
		if l.Idx == nil && hi < l.Hi {
			l.Lo = hi
			slow(l, o)
			l.Lo = lo
		}
	}
}
