package sim

import "unsafe"

// vector is an operation that the processor does for 8 threads at a time: on n of them, a multiple of 8 and not 0, with
// results at d and operands a, b and c bytes from base. The widths of the elements are in bytes, 0 for an operand that there is not.
// It gives the same bits as the loop that it stands for.
type vector struct {
	run        func(d, base unsafe.Pointer, a, b, c, n int, imm uint64)
	d, a, b, c int
}

// vectored runs an operation by the processor's vectors where it has the one of that name, and by the loop slow where not.
func vectored(name string, slow runner) runner {
	v, ok := lanesOf[name]
	if !ok || !vectors || slow == nil {
		return slow
	}
	return func(w *worker, in *inst) {
		lo, hi := w.lo, w.hi
		d := w.base
		switch {
		case w.idx != nil: // what lies between the threads in temp is nobody's
			lo, hi = lo&^7, (hi+7)&^7
			d = unsafe.Add(unsafe.Pointer(unsafe.SliceData(w.temp)), lo*v.d)
		case hi == w.threads && lo == 0: // slots are filled up to a multiple of 8
			hi = w.n
			d = unsafe.Add(d, int(in.d)*w.n)
		default:
			hi = lo + (hi-lo)&^7
			d = unsafe.Add(d, int(in.d)*w.n+lo*v.d)
		}
		if hi > lo {
			v.run(d, w.base, int(in.a)*w.n+lo*v.a, int(in.b)*w.n+lo*v.b, int(in.c)*w.n+lo*v.c, hi-lo, in.imm)
		}
		if w.idx == nil && hi < w.hi {
			w.lo = hi
			slow(w, in)
			w.lo = lo
		}
	}
}
