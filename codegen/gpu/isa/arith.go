package isa

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/aton-project/aton/ssa/tensor"
)

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type signed interface{ int8 | int16 | int32 | int64 }

type float interface{ float32 | float64 }

// unary, binary and ternary make a Do of a function that the compiler may not inline: for what is slow or rare.
func unary[A, D any](f func(A) D) Do {
	return func(l *Lanes, o *Op) {
		d := Dst[D](l, o.D)
		a := Src[A](l, o.A)[:len(d)]
		for i := range d {
			d[i] = f(a[i])
		}
	}
}

func binary[A, D any](f func(a, b A) D) Do {
	return func(l *Lanes, o *Op) {
		d := Dst[D](l, o.D)
		a, b := Src[A](l, o.A)[:len(d)], Src[A](l, o.B)[:len(d)]
		for i := range d {
			d[i] = f(a[i], b[i])
		}
	}
}

func ternary[T any](f func(a, b, c T) T) Do {
	return func(l *Lanes, o *Op) {
		d := Dst[T](l, o.D)
		a, b, c := Src[T](l, o.A)[:len(d)], Src[T](l, o.B)[:len(d)], Src[T](l, o.C)[:len(d)]
		for i := range d {
			d[i] = f(a[i], b[i], c[i])
		}
	}
}

func mov[T any](l *Lanes, o *Op) {
	copy(Dst[T](l, o.D), Src[T](l, o.A))
}

// Mov copies an element of so many bytes.
func Mov(width int) Do {
	switch width {
	case 1:
		return mov[uint8]
	case 2:
		return mov[uint16]
	case 4:
		return mov[uint32]
	}
	return mov[uint64]
}

func sel[T any](l *Lanes, o *Op) {
	d := Dst[T](l, o.D)
	a, b, c := Src[T](l, o.A)[:len(d)], Src[T](l, o.B)[:len(d)], Src[uint8](l, o.C)[:len(d)]
	for i := range d {
		v := b[i]
		if c[i] != 0 {
			v = a[i]
		}
		d[i] = v
	}
}

// selectOp is c ? a : b.
func selectOp(width int) Do {
	switch width {
	case 1:
		return sel[uint8]
	case 2:
		return sel[uint16]
	case 4:
		return vectored("select 4", sel[uint32])
	}
	return vectored("select 8", sel[uint64])
}

// intOp is an operation on two integers; the name says the signedness where it matters.
func intOp(name string, width int) Do {
	switch width {
	case 1:
		return vectored(name+" i8", intOps[uint8, int8](name))
	case 2:
		return intOps[uint16, int16](name)
	case 4:
		return vectored(name+" i32", intOps[uint32, int32](name))
	case 8:
		return vectored(name+" i64", intOps[uint64, int64](name))
	}
	return nil
}

func intOps[U unsigned, S signed](name string) Do {
	size := uint(unsafe.Sizeof(U(0)) * 8)
	switch name {
	case "add":
		return func(l *Lanes, o *Op) {
			d := Dst[U](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] + b[i]
			}
		}
	case "sub":
		return func(l *Lanes, o *Op) {
			d := Dst[U](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] - b[i]
			}
		}
	case "mul":
		return func(l *Lanes, o *Op) {
			d := Dst[U](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] * b[i]
			}
		}
	case "and":
		return func(l *Lanes, o *Op) {
			d := Dst[U](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] & b[i]
			}
		}
	case "or":
		return func(l *Lanes, o *Op) {
			d := Dst[U](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] | b[i]
			}
		}
	case "xor":
		return func(l *Lanes, o *Op) {
			d := Dst[U](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] ^ b[i]
			}
		}
	case "udiv":
		return binary(func(a, b U) U {
			if b == 0 {
				return ^U(0)
			}
			return a / b
		})
	case "urem":
		return binary(func(a, b U) U {
			if b == 0 {
				return a
			}
			return a % b
		})
	case "sdiv":
		return binary(func(a, b S) S {
			if b == 0 {
				return -1
			}
			return a / b
		})
	case "srem":
		return binary(func(a, b S) S {
			if b == 0 {
				return a
			}
			return a % b
		})
	case "smin":
		return binary(func(a, b S) S { return min(a, b) })
	case "smax":
		return binary(func(a, b S) S { return max(a, b) })
	case "umin":
		return binary(func(a, b U) U { return min(a, b) })
	case "umax":
		return binary(func(a, b U) U { return max(a, b) })
	case "smulhi":
		return binary(func(a, b S) S {
			hi, _ := bits.Mul64(uint64(int64(a)), uint64(int64(b)))
			if size == 64 { // signed from unsigned
				if a < 0 {
					hi -= uint64(int64(b))
				}
				if b < 0 {
					hi -= uint64(int64(a))
				}
				return S(hi)
			}
			return S(int64(a) * int64(b) >> size)
		})
	case "umulhi":
		return binary(func(a, b U) U {
			if size == 64 {
				hi, _ := bits.Mul64(uint64(a), uint64(b))
				return U(hi)
			}
			return U(uint64(a) * uint64(b) >> size)
		})
	}
	return nil
}

// Reciprocal is what udivBy takes for a divisor of more than 1: ceil(2^64/d).
func Reciprocal(d uint32) uint64 { return math.MaxUint64/uint64(d) + 1 }

// udivBy divides by the constant of which imm is the reciprocal: exact for all operands of 32 bits (Lemire, Kaser and
// Kurz, Faster remainder by direct computation, 2019).
func udivBy(l *Lanes, o *Op) {
	d := Dst[uint32](l, o.D)
	a := Src[uint32](l, o.A)[:len(d)]
	for i := range d {
		q, _ := bits.Mul64(uint64(a[i]), o.Imm)
		d[i] = uint32(q)
	}
}

// shiftOp shifts by a 32-bit amount; amounts of the width and more clamp, as PTX has it.
func shiftOp(name string, width int) Do {
	switch width {
	case 1:
		return shifts[uint8, int8](name)
	case 2:
		return shifts[uint16, int16](name)
	case 4:
		return vectored(name+" i32", shifts[uint32, int32](name))
	case 8:
		return shifts[uint64, int64](name)
	}
	return nil
}

func shifts[U unsigned, S signed](name string) Do {
	return func(l *Lanes, o *Op) {
		d := Dst[U](l, o.D)
		a, b := Src[U](l, o.A)[:len(d)], Src[uint32](l, o.B)[:len(d)]
		switch name {
		case "shl":
			for i := range d {
				d[i] = a[i] << b[i]
			}
		case "lshr":
			for i := range d {
				d[i] = a[i] >> b[i]
			}
		default:
			for i := range d {
				d[i] = U(S(a[i]) >> b[i])
			}
		}
	}
}

// AddImm is d = a + Op.Imm, of 64 bits.
var AddImm = vectored("addimm", addImm)

func addImm(l *Lanes, o *Op) {
	d := Dst[uint64](l, o.D)
	a := Src[uint64](l, o.A)[:len(d)]
	for i := range d {
		d[i] = a[i] + o.Imm
	}
}

// mulWide is the product of two integers in twice their width.
func mulWide[A, D signed | unsigned](l *Lanes, o *Op) {
	d := Dst[D](l, o.D)
	a, b := Src[A](l, o.A)[:len(d)], Src[A](l, o.B)[:len(d)]
	for i := range d {
		d[i] = D(a[i]) * D(b[i])
	}
}

func mad[U unsigned](l *Lanes, o *Op) {
	d := Dst[U](l, o.D)
	a, b, c := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)], Src[U](l, o.C)[:len(d)]
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func madWide[A, D signed | unsigned](l *Lanes, o *Op) {
	d := Dst[D](l, o.D)
	a, b, c := Src[A](l, o.A)[:len(d)], Src[A](l, o.B)[:len(d)], Src[D](l, o.C)[:len(d)]
	for i := range d {
		d[i] = D(a[i])*D(b[i]) + c[i]
	}
}

// mulWideOp, madOp and madWideOp are products of integers, with a sum, and in twice their width.
func mulWideOp(t Type) Do {
	switch t {
	case "s16":
		return mulWide[int16, int32]
	case "u16":
		return mulWide[uint16, uint32]
	case "s32":
		return vectored("mulwide", mulWide[int32, int64])
	}
	return mulWide[uint32, uint64]
}

func madOp(t Type) Do {
	switch t.Width() {
	case 2:
		return mad[uint16]
	case 4:
		return vectored("mad i32", mad[uint32])
	}
	return mad[uint64]
}

func madWideOp(t Type) Do {
	switch t {
	case "s16":
		return madWide[int16, int32]
	case "u16":
		return madWide[uint16, uint32]
	case "s32":
		return vectored("madwide", madWide[int32, int64])
	}
	return madWide[uint32, uint64]
}

// bitOp is an operation on one integer: not, neg or abs.
func bitOp(name string, width int) Do {
	switch width {
	case 1:
		return unary(func(a uint8) uint8 { return a ^ 1 }) // not, of a predicate
	case 2:
		return bitOps[uint16, int16](name)
	case 4:
		return bitOps[uint32, int32](name)
	}
	return bitOps[uint64, int64](name)
}

func bitOps[U unsigned, S signed](name string) Do {
	switch name {
	case "not":
		return unary(func(a U) U { return ^a })
	case "neg":
		return unary(func(a U) U { return -a })
	case "abs":
		return unary(func(a S) S { return max(a, -a) })
	}
	return nil
}

// compareOp gives a predicate. Names: eq ne, slt sle sgt sge, ult ule ugt uge.
func compareOp(name string, width int) Do {
	switch width {
	case 1:
		return compares[uint8, int8](name)
	case 2:
		return compares[uint16, int16](name)
	case 4:
		return vectored(name+" i32", compares[uint32, int32](name))
	case 8:
		return compares[uint64, int64](name)
	}
	return nil
}

func compares[U unsigned, S signed](name string) Do {
	switch name {
	case "eq":
		return func(l *Lanes, o *Op) {
			d := Dst[bool](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] == b[i]
			}
		}
	case "ne":
		return func(l *Lanes, o *Op) {
			d := Dst[bool](l, o.D)
			a, b := Src[U](l, o.A)[:len(d)], Src[U](l, o.B)[:len(d)]
			for i := range d {
				d[i] = a[i] != b[i]
			}
		}
	case "slt", "sle":
		return lessOp[S](name == "sle", false)
	case "sgt", "sge":
		return lessOp[S](name == "sge", true)
	case "ult", "ule":
		return lessOp[U](name == "ule", false)
	case "ugt", "uge":
		return lessOp[U](name == "uge", true)
	}
	return nil
}

func lessOp[T signed | unsigned](orEqual, swap bool) Do {
	return func(l *Lanes, o *Op) {
		x, y := o.A, o.B
		if swap {
			x, y = y, x
		}
		d := Dst[bool](l, o.D)
		a, b := Src[T](l, x)[:len(d)], Src[T](l, y)[:len(d)]
		if orEqual {
			for i := range d {
				d[i] = a[i] <= b[i]
			}
		} else {
			for i := range d {
				d[i] = a[i] < b[i]
			}
		}
	}
}

// floatCompareOp is a comparison of floats: false for NaN (o) or true (u), with eq ne lt le gt ge; ord for no NaN, uno for one.
func floatCompareOp(name string, width int) Do {
	switch width {
	case 2:
		c := floatCompare[float32](name)
		if c == nil {
			return nil
		}
		return binary(func(a, b uint16) bool { return c(tensor.HalfToFloat(a), tensor.HalfToFloat(b)) })
	case 4:
		return vectored(name+" f32", floatCompares[float32](name))
	case 8:
		return floatCompares[float64](name)
	}
	return nil
}

func floatCompares[T float](name string) Do {
	if name == "olt" || name == "ogt" {
		return func(l *Lanes, o *Op) {
			x, y := o.A, o.B
			if name == "ogt" {
				x, y = y, x
			}
			d := Dst[bool](l, o.D)
			a, b := Src[T](l, x)[:len(d)], Src[T](l, y)[:len(d)]
			for i := range d {
				d[i] = a[i] < b[i]
			}
		}
	}
	c := floatCompare[T](name)
	if c == nil {
		return nil
	}
	return binary(c)
}

func floatCompare[T float](name string) func(a, b T) bool {
	switch name {
	case "oeq":
		return func(a, b T) bool { return a == b }
	case "one":
		return func(a, b T) bool { return a < b || a > b }
	case "olt":
		return func(a, b T) bool { return a < b }
	case "ole":
		return func(a, b T) bool { return a <= b }
	case "ogt":
		return func(a, b T) bool { return a > b }
	case "oge":
		return func(a, b T) bool { return a >= b }
	case "ord":
		return func(a, b T) bool { return a == a && b == b }
	case "uno":
		return func(a, b T) bool { return a != a || b != b }
	case "ueq":
		return func(a, b T) bool { return !(a < b || a > b) }
	case "une":
		return func(a, b T) bool { return a != b }
	case "ult":
		return func(a, b T) bool { return !(a >= b) }
	case "ule":
		return func(a, b T) bool { return !(a > b) }
	case "ugt":
		return func(a, b T) bool { return !(a <= b) }
	case "uge":
		return func(a, b T) bool { return !(a < b) }
	}
	return nil
}
