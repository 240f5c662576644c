package sim

import (
	"unsafe"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// space is the address space of an access.
type space uint8

const (
	generic space = iota
	global
	shared
	locals
)

// A generic address holds a number above bit 44 and an offset around the middle of what lies below, so that running
// off either end stays in the same buffer. Shared and local memory have numbers of their own; their own addresses
// are plain offsets.
const (
	numberShift = 44
	middle      = 1 << (numberShift - 1)
	sharedTag   = 0xffffe
	localTag    = 0xfffff
)

func globalAddress(number int, off int64) uint64 {
	return uint64(number)<<numberShift + middle + uint64(off)
}

// toGeneric is what cvta adds to an address of the space.
func toGeneric(s space) uint64 {
	switch s {
	case shared:
		return globalAddress(sharedTag, 0)
	case locals:
		return globalAddress(localTag, 0)
	}
	return 0
}

// unbias splits a generic address.
func unbias(addr uint64) (number int, off int64) {
	return int(addr >> numberShift), int64(addr&(1<<numberShift-1)) - middle
}

// window is the memory around a thread's address: p is its start, at the address from.
func (w *worker) window(sp space, addr uint64) (p unsafe.Pointer, from, size uint64) {
	var b []byte
	switch sp {
	case shared:
		b = w.mem
	case locals:
		return nil, 0, 0
	default:
		n, _ := unbias(addr)
		switch {
		case n > 0 && n < len(w.bufs):
			b = w.bufs[n].b
		case n == sharedTag && sp == generic:
			b = w.mem
		}
		from = uint64(n)<<numberShift + middle
	}
	return unsafe.Pointer(unsafe.SliceData(b)), from, uint64(len(b))
}

// access finds the bytes of one thread's access, with all checks. nil means that the fault is recorded.
func (w *worker) access(sp space, lane int, addr uint64, size, align int, write bool, in *inst) unsafe.Pointer {
	var b []byte
	off, number := int64(addr), 0
	if sp == generic || sp == global {
		number, off = unbias(addr)
		switch {
		case number > 0 && number < len(w.bufs):
			sp = global
			b = w.bufs[number].b
		case number == sharedTag && sp == generic:
			sp = shared
		case number == localTag && sp == generic:
			sp = locals
		default:
			w.fail(OutOfBounds, lane, in.line, "address %#x is in no buffer", addr)
			return nil
		}
	}
	what := "global"
	switch sp {
	case shared:
		b, what = w.mem, "shared"
	case locals:
		b, what = w.local[lane*w.k.local:(lane+1)*w.k.local], "local"
	}
	verb := "read"
	if write {
		verb = "write"
	}
	if off < 0 || off > int64(len(b))-int64(size) {
		n := len(b)
		if sp == shared {
			n = w.k.size + w.Dynamic
		}
		w.fail(OutOfBounds, lane, in.line, "%s of %d bytes at offset %d of %d bytes of %s memory%s", verb, size, off, n, what, w.whose(sp, number))
		return nil
	}
	if off&int64(align-1) != 0 {
		w.fail(Misaligned, lane, in.line, "%s of %d bytes at offset %d of %s memory%s", verb, size, off, what, w.whose(sp, number))
		return nil
	}
	if w.check {
		switch sp {
		case shared:
			w.checkShared(lane, int(off), size, write, false, in)
		case global:
			if write {
				w.overwrites(lane, addr, size, in)
			}
			w.shadows[number].mark(w, lane, off, size, write, in)
		}
		if w.fault != nil {
			return nil
		}
	}
	return unsafe.Pointer(&b[off])
}

func (w *worker) whose(sp space, number int) string {
	if sp != global {
		return ""
	}
	for i, a := range w.Args {
		if a.Buffer != nil && w.find(a.Buffer) == number {
			return " of parameter " + w.k.params[i].name
		}
	}
	return ""
}

func sizeof[T any]() int {
	var x T
	return int(unsafe.Sizeof(x))
}

// each runs f for the threads that stand here but for the first n, until it answers false.
func (w *worker) each(n int, f func(i int) bool) {
	if w.Idx != nil {
		for _, i := range w.Idx[n:] {
			if !f(int(i)) {
				return
			}
		}
		return
	}
	for i := w.Lo + n; i < w.Hi && f(i); i++ {
	}
}

// load reads one element, or a vector of up to 16 bytes, into the slots v. a is the address, imm is added.
func load[T any](sp space) runner {
	size := sizeof[T]()
	return func(w *worker, in *inst) {
		addr := whole[uint64](w, in.A)
		total := size * len(in.v)
		i := 0
		if a := w.inOrder(in, sp, addr, total, false); len(a) > 0 {
			i = loadRun[T](w, in, sp, a, total)
		} else if w.Idx != nil && !w.check {
			i = loadList[T](w, in, sp, addr, total)
		}
		one := func(i int) bool {
			p := w.access(sp, i, addr[i]+in.Imm, total, total, false, in)
			if p == nil {
				return false
			}
			for j, s := range in.v {
				whole[T](w, s)[i] = *(*T)(unsafe.Add(p, j*size))
			}
			return true
		}
		w.each(i, one)
	}
}

// loadRun serves neighbouring threads while they stay in one buffer and returns how many it served.
func loadRun[T any](w *worker, in *inst, sp space, a []uint64, total int) int {
	p, from, n := w.window(sp, a[0]+in.Imm)
	if n < uint64(total) {
		return 0
	}
	limit, mask, delta := n-uint64(total), uint64(total-1), in.Imm-from
	size := uintptr(sizeof[T]())
	if isa.Vectors && size == 4 {
		switch len(in.v) {
		case 1:
			return isa.Load32(w.at(in.v[0]), unsafe.Pointer(&a[0]), p, len(a), delta, limit)
		case 4:
			return isa.Load32x4(w.four(in.v), unsafe.Pointer(&a[0]), p, len(a), delta, limit)
		}
	}
	d0 := src[T](w, in.v[0])[:len(a)]
	switch len(in.v) {
	case 1:
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			d0[i] = *(*T)(unsafe.Add(p, o))
		}
	case 2:
		d1 := src[T](w, in.v[1])[:len(a)]
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			q := unsafe.Add(p, o)
			d0[i] = *(*T)(q)
			d1[i] = *(*T)(unsafe.Add(q, size))
		}
	case 4:
		d1, d2, d3 := src[T](w, in.v[1])[:len(a)], src[T](w, in.v[2])[:len(a)], src[T](w, in.v[3])[:len(a)]
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			q := unsafe.Add(p, o)
			d0[i] = *(*T)(q)
			d1[i] = *(*T)(unsafe.Add(q, size))
			d2[i] = *(*T)(unsafe.Add(q, 2*size))
			d3[i] = *(*T)(unsafe.Add(q, 3*size))
		}
	default:
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			q := unsafe.Add(p, o)
			for j, s := range in.v {
				src[T](w, s)[i] = *(*T)(unsafe.Add(q, uintptr(j)*size))
			}
		}
	}
	return len(a)
}

// loadList and storeList serve scattered threads while they stay in one buffer and return how many they served.
func loadList[T any](w *worker, in *inst, sp space, addr []uint64, total int) int {
	p, from, n := w.window(sp, addr[w.Lo]+in.Imm)
	if n < uint64(total) || len(in.v) != 1 {
		return 0
	}
	limit, mask, delta := n-uint64(total), uint64(total-1), in.Imm-from
	d := whole[T](w, in.v[0])
	for k, i := range w.Idx {
		o := addr[i] + delta
		if o > limit || o&mask != 0 {
			return k
		}
		d[i] = *(*T)(unsafe.Add(p, o))
	}
	return len(w.Idx)
}

func storeList[T any](w *worker, in *inst, sp space, addr []uint64, total int) int {
	p, from, n := w.window(sp, addr[w.Lo]+in.Imm)
	if n < uint64(total) || len(in.v) != 1 {
		return 0
	}
	limit, mask, delta := n-uint64(total), uint64(total-1), in.Imm-from
	s := whole[T](w, in.v[0])
	for k, i := range w.Idx {
		o := addr[i] + delta
		if o > limit || o&mask != 0 {
			return k
		}
		*(*T)(unsafe.Add(p, o)) = s[i]
	}
	return len(w.Idx)
}

// at is where the running threads' elements of a slot of 4 bytes are.
func (w *worker) at(s slot) unsafe.Pointer { return unsafe.Add(w.Base, int(s)*w.Stride+4*w.Lo) }

func (w *worker) four(v []slot) *[4]unsafe.Pointer {
	for i := range w.slots {
		w.slots[i] = w.at(v[i])
	}
	return &w.slots
}

// store writes the slots v, one element or a vector.
func store[T any](sp space) runner {
	size := sizeof[T]()
	return func(w *worker, in *inst) {
		addr := whole[uint64](w, in.A)
		total := size * len(in.v)
		i := 0
		if a := w.inOrder(in, sp, addr, total, true); len(a) > 0 {
			i = storeRun[T](w, in, sp, a, total)
		} else if w.Idx != nil && !w.check {
			i = storeList[T](w, in, sp, addr, total)
		}
		one := func(i int) bool {
			p := w.access(sp, i, addr[i]+in.Imm, total, total, true, in)
			if p == nil {
				return false
			}
			for j, s := range in.v {
				*(*T)(unsafe.Add(p, j*size)) = whole[T](w, s)[i]
			}
			return true
		}
		w.each(i, one)
		if w.Note && w.fault == nil {
			w.each(0, func(i int) bool { w.note(sp, addr[i]+in.Imm, total); return true })
		}
	}
}

// note records a write to global memory that has been done.
func (w *worker) note(sp space, addr uint64, size int) {
	number, off := unbias(addr)
	if sp != global && sp != generic || number == 0 || number >= len(w.bufs) {
		return
	}
	b := w.bufs[number]
	for u := int(off) / b.unit; u*b.unit < int(off)+size; u++ {
		b.written[u] = true
	}
}

func storeRun[T any](w *worker, in *inst, sp space, a []uint64, total int) int {
	p, from, n := w.window(sp, a[0]+in.Imm)
	if n < uint64(total) {
		return 0
	}
	limit, mask, delta := n-uint64(total), uint64(total-1), in.Imm-from
	size := uintptr(sizeof[T]())
	if isa.Vectors && size == 4 {
		switch len(in.v) {
		case 1:
			return isa.Store32(w.at(in.v[0]), unsafe.Pointer(&a[0]), p, len(a), delta, limit)
		case 4:
			return isa.Store32x4(w.four(in.v), unsafe.Pointer(&a[0]), p, len(a), delta, limit)
		}
	}
	s0 := src[T](w, in.v[0])[:len(a)]
	switch len(in.v) {
	case 1:
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			*(*T)(unsafe.Add(p, o)) = s0[i]
		}
	case 2:
		s1 := src[T](w, in.v[1])[:len(a)]
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			q := unsafe.Add(p, o)
			*(*T)(q) = s0[i]
			*(*T)(unsafe.Add(q, size)) = s1[i]
		}
	case 4:
		s1, s2, s3 := src[T](w, in.v[1])[:len(a)], src[T](w, in.v[2])[:len(a)], src[T](w, in.v[3])[:len(a)]
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			q := unsafe.Add(p, o)
			*(*T)(q) = s0[i]
			*(*T)(unsafe.Add(q, size)) = s1[i]
			*(*T)(unsafe.Add(q, 2*size)) = s2[i]
			*(*T)(unsafe.Add(q, 3*size)) = s3[i]
		}
	default:
		for i, x := range a {
			o := x + delta
			if o > limit || o&mask != 0 {
				return i
			}
			q := unsafe.Add(p, o)
			for j, s := range in.v {
				*(*T)(unsafe.Add(q, uintptr(j)*size)) = src[T](w, s)[i]
			}
		}
	}
	return len(a)
}

// loadOp and storeOp pick the instance for an element of the given width in bytes, 0 when there is none.
func loadOp(width int, sp space) runner {
	switch width {
	case 1:
		return load[uint8](sp)
	case 2:
		return load[uint16](sp)
	case 4:
		return load[uint32](sp)
	case 8:
		return load[uint64](sp)
	}
	return nil
}

func storeOp(width int, sp space) runner {
	switch width {
	case 1:
		return store[uint8](sp)
	case 2:
		return store[uint16](sp)
	case 4:
		return store[uint32](sp)
	case 8:
		return store[uint64](sp)
	}
	return nil
}

// update is an atomic read-modify-write: d gets the old value, b is the operand. Threads go one after the other; other
// blocks are kept out by a lock.
func update[T any](sp space, f func(old, v T) T) runner {
	return func(w *worker, in *inst) {
		addr, v := whole[uint64](w, in.A), whole[T](w, in.B)
		w.mu.Lock()
		defer w.mu.Unlock()
		one := func(i int) bool {
			check := w.check
			w.check = false
			p := w.access(sp, i, addr[i]+in.Imm, sizeof[T](), sizeof[T](), true, in)
			w.check = check
			if p == nil {
				return false
			}
			if check && sp == shared {
				w.checkShared(i, int(addr[i]+in.Imm), sizeof[T](), true, true, in)
			}
			old := *(*T)(p)
			*(*T)(p) = f(old, v[i])
			if in.C != none {
				whole[T](w, in.C)[i] = old
			}
			return w.fault == nil
		}
		if w.Idx != nil {
			for _, i := range w.Idx {
				if !one(int(i)) {
					return
				}
			}
			return
		}
		for i := w.Lo; i < w.Hi; i++ {
			if !one(i) {
				return
			}
		}
	}
}
