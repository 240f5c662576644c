package isa

import (
	"math"
	"unsafe"
)

// tf32Rest has the bits of a float32 that tf32 lacks.
const tf32Rest = 1<<13 - 1

// TF32Bits drops the bits of a float32 that tf32 lacks.
func TF32Bits(bits uint32) uint32 { return bits &^ tf32Rest }

// toTF32 is cvt.rna.tf32.f32: to nearest, ties away from zero.
func toTF32(bits uint32) uint32 {
	if x := math.Float32frombits(bits); x != x {
		return nan32
	}
	return (bits + (tf32Rest+1)/2) &^ tf32Rest
}

// Bits32 are the bits of a float32 result, the canonical ones of NaN.
func Bits32(x float32) uint32 { return bits32(x) }

// roughly is an approximate instruction, of which the exact result stands for what no document fixes.
func roughly(f func(float64) float64) Do {
	return unary(func(x float32) uint32 { return bits32(float32(f(float64(x)))) })
}

// prmt picks bytes of b and a.
func prmt(a, b, c uint32) uint32 {
	x := uint64(b)<<32 | uint64(a)
	var out uint32
	for i := range 4 {
		s := c >> (4 * i) & 15
		v := uint32(x>>(8*(s&7))) & 255
		if s&8 != 0 {
			v = uint32(int32(int8(v))>>7) & 255
		}
		out |= v << (8 * i)
	}
	return out
}

// bfeOp takes a field of bits: b its position, c its length.
func bfeOp(t Type) Do {
	width := t.Width()
	size := uint32(8 * width)
	field := func(x uint64, pos, n uint32) uint64 {
		pos, n = pos&255, n&255
		if n == 0 {
			return 0
		}
		top := min(pos+n-1, size-1)
		var fill uint64
		if t.IsSigned() && x>>top&1 != 0 {
			fill = ^uint64(0)
		}
		var out uint64
		if pos < size {
			out = x >> pos
		}
		if have := top + 1 - min(pos, top+1); have < 64 {
			out = out&(1<<have-1) | fill&^(1<<have-1)
		}
		if n < 64 {
			mask := uint64(1)<<n - 1
			out = out&mask | fill&^mask
		}
		return out
	}
	return func(l *Lanes, o *Op) {
		pos, n := All[uint32](l, o.B), All[uint32](l, o.C)
		for i := l.Lo; i < l.Hi; i++ {
			l.put(o.D, width, i, field(l.bitsAt(o.A, width, i), pos[i], n[i]))
		}
	}
}

// Pack joins two elements, the lower and the upper half, to one of 4 or 8 bytes.
func Pack(to int) Do {
	if to == 4 {
		return pack[uint16, uint32](16)
	}
	return pack[uint32, uint64](32)
}

func pack[A, D unsigned](bits int) Do {
	return func(l *Lanes, o *Op) {
		d := Dst[D](l, o.D)
		a, b := Src[A](l, o.A)[:len(d)], Src[A](l, o.B)[:len(d)]
		for i := range d {
			d[i] = D(a[i]) | D(b[i])<<bits
		}
	}
}

// Unpack takes an element of 2 or 4 bytes out of a wider one, Op.Imm bits up.
func Unpack(from, to int) Do {
	switch {
	case from == 4:
		return unpack[uint32, uint16]
	case to == 2:
		return unpack[uint64, uint16]
	}
	return unpack[uint64, uint32]
}

func unpack[A, D unsigned](l *Lanes, o *Op) {
	d := Dst[D](l, o.D)
	a := Src[A](l, o.A)[:len(d)]
	for i := range d {
		d[i] = D(a[i] >> (o.Imm & 63))
	}
}

func (l *Lanes) bitsAt(s Slot, width, i int) uint64 {
	switch width {
	case 1:
		return uint64(All[uint8](l, s)[i])
	case 2:
		return uint64(All[uint16](l, s)[i])
	case 4:
		return uint64(All[uint32](l, s)[i])
	}
	return All[uint64](l, s)[i]
}

// put writes where Dst would.
func (l *Lanes) put(s Slot, width, i int, x uint64) {
	p := unsafe.Add(l.Base, int(s)*l.Stride)
	if l.Idx != nil {
		p = unsafe.Pointer(unsafe.SliceData(l.Temp))
	}
	switch width {
	case 1:
		*(*uint8)(unsafe.Add(p, i)) = uint8(x)
	case 2:
		*(*uint16)(unsafe.Add(p, 2*i)) = uint16(x)
	case 4:
		*(*uint32)(unsafe.Add(p, 4*i)) = uint32(x)
	default:
		*(*uint64)(unsafe.Add(p, 8*i)) = x
	}
}
