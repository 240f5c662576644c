package isa

import (
	"bytes"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// hard are bits that show mistakes, in any of the types.
var hard = []uint64{0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x80000001, math.MaxUint64, 1 << 63, 1<<63 - 1, 31, 32, 33,
	0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x00400000, 0x3f800000, 0xbf800000, 0x3f000000, 0x4f000000, 0xcf000000, 0xcf000001, 0x4effffff,
	0x33000000, 0x33000001, 0x387fe000, 0x477fefff, 0x477ff000, 0x7e00, 0xfe01, 0x7c00, 0x03ff, 0x4b000001, 0x4affffff, 0x3effffff}

// file is registers of threads.
type file struct {
	Lanes
	regs []uint64
}

// lanes has so many bytes of registers a thread.
func lanes(threads, slots int) *file {
	stride := (threads + 7) &^ 7
	f := &file{regs: make([]uint64, slots*stride/8+1)}
	f.Lanes = Lanes{Base: unsafe.Pointer(unsafe.SliceData(f.regs)), Stride: stride, Threads: threads, Hi: threads, Temp: make([]uint64, stride)}
	return f
}

// withVectors makes Dos with or without the processor's vectors.
func withVectors(on bool, f func()) {
	was := Vectors
	defer func() { Vectors = was }()
	Vectors = on
	f()
}

// Each operation that the processor does on vectors gives the bits of its loop, for all threads, some neighbours and scattered ones.
func TestVectorBits(t *testing.T) {
	if !Vectors {
		t.Skip("the processor has no AVX2")
	}
	ops := map[string]func() Do{
		"select 4": func() Do { return selectOp(4) }, "select 8": func() Do { return selectOp(8) },
		"addimm": func() Do { return vectored("addimm", addImm) }, "mulwide": func() Do { return mulWideOp("s32") },
		"madwide": func() Do { return madWideOp("s32") },
		"mad i32": func() Do { return madOp("u32") }, "add i64": func() Do { return intOp("add", 8) },
		"fma f32": func() Do { return fmaOp(4) }, "neg f32": func() Do { return signOp("neg", 4) }, "abs f32": func() Do { return signOp("abs", 4) },
	}
	for _, name := range strings.Fields("add sub mul and or xor smin smax umin umax") {
		ops[name+" i32"] = func() Do { return intOp(name, 4) }
	}
	for _, name := range strings.Fields("and or xor") {
		ops[name+" i8"] = func() Do { return intOp(name, 1) }
	}
	for _, name := range strings.Fields("shl lshr ashr") {
		ops[name+" i32"] = func() Do { return shiftOp(name, 4) }
	}
	for _, name := range strings.Fields("eq ne slt sle sgt sge ult ule ugt uge") {
		ops[name+" i32"] = func() Do { return compareOp(name, 4) }
	}
	for _, name := range strings.Fields("oeq one olt ole ogt oge ord uno ueq une ult ule ugt uge") {
		ops[name+" f32"] = func() Do { return floatCompareOp(name, 4) }
	}
	for _, name := range strings.Fields("add sub mul div min max") {
		ops[name+" f32"] = func() Do { return floatOp(name, 4) }
	}
	for _, name := range strings.Fields("rint floor ceil trunc sqrt") {
		ops[name+" f32"] = func() Do { return roundOp(name, 4) }
	}
	for _, name := range []string{"s32 s64", "u32 u64", "u64 u32", "u8 u32", "u16 u32", "u32 u16", "s32 f32", "f32 s32", "f16 f32", "f32 f16"} {
		from, to, _ := strings.Cut(name, " ")
		ops[name] = func() Do { return convertOp(from, to) }
	}
	for name := range lanesOf {
		if ops[name] == nil {
			t.Errorf("%s is not tested", name)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	const threads = 77
	for name, make := range ops {
		v, ok := lanesOf[name]
		if !ok {
			t.Errorf("%s has no vectors", name)
			continue
		}
		var loop, fast Do
		withVectors(false, func() { loop = make() })
		withVectors(true, func() { fast = make() })
		for round := range 60 {
			w, again := lanes(threads, 32), lanes(threads, 32)
			for i := range w.regs {
				w.regs[i] = r.Uint64()
				if r.IntN(2) == 0 {
					w.regs[i] = hard[r.IntN(len(hard))] | hard[r.IntN(len(hard))]<<32
				}
			}
			if v.c == 1 { // predicates are 0 or 1
				for i, p := 0, All[uint8](&w.Lanes, 24); i < len(p); i++ {
					p[i] &= 1
				}
			}
			copy(again.regs, w.regs)
			o := &Op{D: 0, A: 8, B: 16, C: 24, Imm: uint64(r.Uint32() >> 1)}
			if v.b == 0 {
				o.B = None
			}
			if v.c == 0 {
				o.C = None
			}
			if round%5 == 4 && v.d == v.a { // in place
				o.D = o.A
			}
			var idx []int32
			lo, hi := 0, threads
			switch round % 3 {
			case 1:
				lo = r.IntN(threads)
				hi = lo + 1 + r.IntN(threads-lo)
			case 2:
				for i := range int32(threads) {
					if r.IntN(3) > 0 {
						idx = append(idx, i)
					}
				}
			}
			for i, w := range []*file{w, again} {
				if w.Lo, w.Hi = lo, hi; idx != nil {
					w.Lo, w.Hi, w.Idx = int(idx[0]), int(idx[len(idx)-1])+1, idx
				}
				if i == 0 {
					loop(&w.Lanes, o)
				} else {
					fast(&w.Lanes, o)
				}
				if w.Idx != nil {
					w.Blend(o.D, v.d)
				}
			}
			for s := Slot(0); s < 32; s += 8 {
				width := 8 // of what the slot holds; what follows the threads in it is nobody's
				if s == o.D {
					width = v.d
				}
				have := func(w *file) []byte {
					return unsafe.Slice((*byte)(unsafe.Add(w.Base, int(s)*w.Stride)), width*threads)
				}
				if a, b := have(w), have(again); !bytes.Equal(a, b) {
					t.Errorf("%s, threads %d to %d of %v: slot %d is %x from the loop, %x from vectors", name, lo, hi, idx, s, a, b)
				}
			}
		}
	}
}
