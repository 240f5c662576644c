package sim

import (
	"math/bits"

	"github.com/aton-project/aton/ssa/tensor"
)

type unsigned interface {
	uint8 | uint16 | uint32 | uint64
}

type signed interface{ int8 | int16 | int32 | int64 }

type float interface{ float32 | float64 }

// unary, binary and ternary make a runner of a function that the compiler may not inline: for what is slow or rare.
func unary[A, D any](f func(A) D) runner {
	return func(w *worker, in *inst) {
		d := dst[D](w, in.d)
		a := src[A](w, in.a)[:len(d)]
		for i := range d {
			d[i] = f(a[i])
		}
	}
}

func binary[A, D any](f func(a, b A) D) runner {
	return func(w *worker, in *inst) {
		d := dst[D](w, in.d)
		a, b := src[A](w, in.a)[:len(d)], src[A](w, in.b)[:len(d)]
		for i := range d {
			d[i] = f(a[i], b[i])
		}
	}
}

func ternary[T any](f func(a, b, c T) T) runner {
	return func(w *worker, in *inst) {
		d := dst[T](w, in.d)
		a, b, c := src[T](w, in.a)[:len(d)], src[T](w, in.b)[:len(d)], src[T](w, in.c)[:len(d)]
		for i := range d {
			d[i] = f(a[i], b[i], c[i])
		}
	}
}

func mov[T any](w *worker, in *inst) {
	copy(dst[T](w, in.d), src[T](w, in.a))
}

func movOp(width int) runner {
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

func sel[T any](w *worker, in *inst) {
	d := dst[T](w, in.d)
	a, b, c := src[T](w, in.a)[:len(d)], src[T](w, in.b)[:len(d)], src[uint8](w, in.c)[:len(d)]
	for i := range d {
		v := b[i]
		if c[i] != 0 {
			v = a[i]
		}
		d[i] = v
	}
}

// selectOp is c ? a : b.
func selectOp(width int) runner {
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
func intOp(name string, width int) runner {
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

func intOps[U unsigned, S signed](name string) runner {
	size := uint(sizeof[U]() * 8)
	switch name {
	case "add":
		return func(w *worker, in *inst) {
			d := dst[U](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
			for i := range d {
				d[i] = a[i] + b[i]
			}
		}
	case "sub":
		return func(w *worker, in *inst) {
			d := dst[U](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
			for i := range d {
				d[i] = a[i] - b[i]
			}
		}
	case "mul":
		return func(w *worker, in *inst) {
			d := dst[U](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
			for i := range d {
				d[i] = a[i] * b[i]
			}
		}
	case "and":
		return func(w *worker, in *inst) {
			d := dst[U](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
			for i := range d {
				d[i] = a[i] & b[i]
			}
		}
	case "or":
		return func(w *worker, in *inst) {
			d := dst[U](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
			for i := range d {
				d[i] = a[i] | b[i]
			}
		}
	case "xor":
		return func(w *worker, in *inst) {
			d := dst[U](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
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

// udivBy divides by the constant of which imm is the reciprocal, ceil(2^64/d): exact for all operands of 32 bits (Lemire, Kaser and
// Kurz, Faster remainder by direct computation, 2019).
func udivBy(w *worker, in *inst) {
	d := dst[uint32](w, in.d)
	a := src[uint32](w, in.a)[:len(d)]
	for i := range d {
		q, _ := bits.Mul64(uint64(a[i]), in.imm)
		d[i] = uint32(q)
	}
}

// shiftOp shifts by a 32-bit amount; amounts of the width and more clamp, as PTX has it.
func shiftOp(name string, width int) runner {
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

func shifts[U unsigned, S signed](name string) runner {
	return func(w *worker, in *inst) {
		d := dst[U](w, in.d)
		a, b := src[U](w, in.a)[:len(d)], src[uint32](w, in.b)[:len(d)]
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

// madWide is d = b + extend(a) * imm, the address of an array element.
func madWide[I signed](w *worker, in *inst) {
	d := dst[uint64](w, in.d)
	a, b := src[I](w, in.a)[:len(d)], src[uint64](w, in.b)[:len(d)]
	scale := in.imm
	for i := range d {
		d[i] = b[i] + uint64(int64(a[i]))*scale
	}
}

func addImm(w *worker, in *inst) {
	d := dst[uint64](w, in.d)
	a := src[uint64](w, in.a)[:len(d)]
	for i := range d {
		d[i] = a[i] + in.imm
	}
}

// mulWide is the product of two integers in twice their width.
func mulWide[A, D signed | unsigned](w *worker, in *inst) {
	d := dst[D](w, in.d)
	a, b := src[A](w, in.a)[:len(d)], src[A](w, in.b)[:len(d)]
	for i := range d {
		d[i] = D(a[i]) * D(b[i])
	}
}

func mad[U unsigned](w *worker, in *inst) {
	d := dst[U](w, in.d)
	a, b, c := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)], src[U](w, in.c)[:len(d)]
	for i := range d {
		d[i] = a[i]*b[i] + c[i]
	}
}

func madWide3[A, D signed | unsigned](w *worker, in *inst) {
	d := dst[D](w, in.d)
	a, b, c := src[A](w, in.a)[:len(d)], src[A](w, in.b)[:len(d)], src[D](w, in.c)[:len(d)]
	for i := range d {
		d[i] = D(a[i])*D(b[i]) + c[i]
	}
}

// bitOp is an operation on the bits of one integer. clz and popc give 32 bits.
func bitOp(name string, width int) runner {
	wide := width == 8
	if width != 4 && width != 8 {
		if name == "not" {
			if width == 1 {
				return unary(func(a uint8) uint8 { return a ^ 1 }) // a predicate
			}
			return unary(func(a uint16) uint16 { return ^a })
		}
		return nil
	}
	switch name {
	case "not":
		if wide {
			return unary(func(a uint64) uint64 { return ^a })
		}
		return unary(func(a uint32) uint32 { return ^a })
	case "clz":
		if wide {
			return unary(func(a uint64) uint32 { return uint32(bits.LeadingZeros64(a)) })
		}
		return unary(func(a uint32) uint32 { return uint32(bits.LeadingZeros32(a)) })
	case "popc":
		if wide {
			return unary(func(a uint64) uint32 { return uint32(bits.OnesCount64(a)) })
		}
		return unary(func(a uint32) uint32 { return uint32(bits.OnesCount32(a)) })
	case "brev":
		if wide {
			return unary(bits.Reverse64)
		}
		return unary(bits.Reverse32)
	}
	return nil
}

// compareOp gives a predicate. Names: eq ne, slt sle sgt sge, ult ule ugt uge.
func compareOp(name string, width int) runner {
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

func compares[U unsigned, S signed](name string) runner {
	switch name {
	case "eq":
		return func(w *worker, in *inst) {
			d := dst[bool](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
			for i := range d {
				d[i] = a[i] == b[i]
			}
		}
	case "ne":
		return func(w *worker, in *inst) {
			d := dst[bool](w, in.d)
			a, b := src[U](w, in.a)[:len(d)], src[U](w, in.b)[:len(d)]
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

func lessOp[T signed | unsigned](orEqual, swap bool) runner {
	return func(w *worker, in *inst) {
		x, y := in.a, in.b
		if swap {
			x, y = y, x
		}
		d := dst[bool](w, in.d)
		a, b := src[T](w, x)[:len(d)], src[T](w, y)[:len(d)]
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

// floatCompareOp knows LLVM's names: o or u, then eq ne lt le gt ge; ord and uno.
func floatCompareOp(name string, width int) runner {
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

func floatCompares[T float](name string) runner {
	if name == "olt" || name == "ogt" {
		return func(w *worker, in *inst) {
			x, y := in.a, in.b
			if name == "ogt" {
				x, y = y, x
			}
			d := dst[bool](w, in.d)
			a, b := src[T](w, x)[:len(d)], src[T](w, y)[:len(d)]
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
