package isa

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// Division by the reciprocal of a constant is exact at both sides of each multiple, too.
func TestDivideByConstant(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	regs := make([]uint64, 64)
	w := &Lanes{Base: unsafe.Pointer(unsafe.SliceData(regs)), Stride: 64, Threads: 64, Hi: 64}
	divisors := []uint32{2, 3, 5, 7, 49, 64, 147, 641, 1 << 16, 65537, 1<<31 - 1, 1 << 31, 1<<31 + 1, math.MaxUint32 - 1, math.MaxUint32}
	for range 2000 {
		divisors = append(divisors, max(2, r.Uint32()>>r.IntN(32)))
	}
	for _, d := range divisors {
		a := All[uint32](w, 0)
		for i := range a {
			switch a[i] = r.Uint32(); i % 4 {
			case 0:
				a[i] = a[i] / d * d
			case 1:
				a[i] = a[i]/d*d - 1
			case 2:
				a[i] = math.MaxUint32 - uint32(i)
			}
		}
		udivBy(w, &Op{D: 4, A: 0, B: None, C: None, Imm: Reciprocal(d)})
		for i, q := range All[uint32](w, 4) {
			if q != a[i]/d {
				t.Fatalf("%d / %d = %d, want %d", a[i], d, q, a[i]/d)
			}
		}
	}
}
