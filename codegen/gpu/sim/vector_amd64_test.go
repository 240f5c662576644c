package sim

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// hard are bits that show mistakes, in any of the types.
var hard = []uint64{0, 1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x80000001, math.MaxUint64, 1 << 63, 1<<63 - 1, 31, 32, 33,
	0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001, 0x00400000, 0x3f800000, 0xbf800000, 0x3f000000, 0x4f000000, 0xcf000000, 0xcf000001, 0x4effffff,
	0x33000000, 0x33000001, 0x387fe000, 0x477fefff, 0x477ff000, 0x7e00, 0xfe01, 0x7c00, 0x03ff, 0x4b000001, 0x4affffff, 0x3effffff}

// withVectors makes runners with or without the processor's vectors.
func withVectors(on bool, f func()) {
	was := vectors
	defer func() { vectors = was }()
	vectors = on
	f()
}

// Each operation that the processor does on vectors gives the bits of its loop, for all threads, some neighbours and scattered ones.
func TestVectorBits(t *testing.T) {
	if !vectors {
		t.Skip("the processor has no AVX2")
	}
	ops := map[string]func() runner{
		"select 4": func() runner { return selectOp(4) }, "select 8": func() runner { return selectOp(8) },
		"addimm": func() runner { return vectored("addimm", addImm) }, "madwide": func() runner { return vectored("madwide", madWide[int32]) },
		"mulwide":  func() runner { return vectored("mulwide", mulWide[int32, int64]) },
		"madwide3": func() runner { return vectored("madwide3", madWide3[int32, int64]) },
		"mad i32":  func() runner { return vectored("mad i32", mad[uint32]) }, "add i64": func() runner { return intOp("add", 8) },
		"fma f32": func() runner { return fmaOp(4) }, "neg f32": func() runner { return signOp("neg", 4) }, "abs f32": func() runner { return signOp("abs", 4) },
	}
	for _, name := range strings.Fields("add sub mul and or xor smin smax umin umax") {
		ops[name+" i32"] = func() runner { return intOp(name, 4) }
	}
	for _, name := range strings.Fields("and or xor") {
		ops[name+" i8"] = func() runner { return intOp(name, 1) }
	}
	for _, name := range strings.Fields("shl lshr ashr") {
		ops[name+" i32"] = func() runner { return shiftOp(name, 4) }
	}
	for _, name := range strings.Fields("eq ne slt sle sgt sge ult ule ugt uge") {
		ops[name+" i32"] = func() runner { return compareOp(name, 4) }
	}
	for _, name := range strings.Fields("oeq one olt ole ogt oge ord uno ueq une ult ule ugt uge") {
		ops[name+" f32"] = func() runner { return floatCompareOp(name, 4) }
	}
	for _, name := range strings.Fields("add sub mul div min max") {
		ops[name+" f32"] = func() runner { return floatOp(name, 4) }
	}
	for _, name := range strings.Fields("rint floor ceil trunc sqrt") {
		ops[name+" f32"] = func() runner { return roundOp(name, 4) }
	}
	for _, name := range []string{"s32 s64", "u32 u64", "u64 u32", "u8 u32", "u16 u32", "u32 u16", "s32 f32", "f32 s32", "f16 f32", "f32 f16"} {
		from, to, _ := strings.Cut(name, " ")
		ops[name] = func() runner { return convertOp(from, to) }
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
		var loop, fast runner
		withVectors(false, func() { loop = make() })
		withVectors(true, func() { fast = make() })
		for round := range 60 {
			k := newBuilder(name).k
			k.slots = 32
			w := newWorker(&launch{k: k, threads: threads, stride: 80})
			again := newWorker(w.launch)
			for i := range w.regs {
				w.regs[i] = r.Uint64()
				if r.IntN(2) == 0 {
					w.regs[i] = hard[r.IntN(len(hard))] | hard[r.IntN(len(hard))]<<32
				}
			}
			if v.c == 1 { // predicates are 0 or 1
				for i, p := 0, whole[uint8](w, 24); i < len(p); i++ {
					p[i] &= 1
				}
			}
			copy(again.regs, w.regs)
			in := &inst{d: 0, a: 8, b: 16, c: 24, imm: uint64(r.Uint32() >> 1)}
			if v.b == 0 {
				in.b = none
			}
			if v.c == 0 {
				in.c = none
			}
			if round%5 == 4 && v.d == v.a { // in place
				in.d = in.a
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
			for i, w := range []*worker{w, again} {
				if w.lo, w.hi = lo, hi; idx != nil {
					w.use(idx)
				}
				if in.width = int8(v.d); i == 0 {
					loop(w, in)
				} else {
					fast(w, in)
				}
				if w.idx != nil {
					w.blend(in)
				}
			}
			for s := slot(0); s < 32; s += 8 {
				width := 8 // of what the slot holds; what follows the threads in it is nobody's
				if s == in.d {
					width = v.d
				}
				have := func(w *worker) []byte {
					return unsafe.Slice((*byte)(unsafe.Add(w.base, int(s)*w.n)), width*threads)
				}
				if a, b := have(w), have(again); !bytes.Equal(a, b) {
					t.Errorf("%s, threads %d to %d of %v: slot %d is %x from the loop, %x from vectors", name, lo, hi, idx, s, a, b)
				}
			}
		}
	}
}

// Accesses on vectors serve the threads that the loop serves, with what it gives them.
func TestVectorAccess(t *testing.T) {
	if !vectors {
		t.Skip("the processor has no AVX2")
	}
	r := rand.New(rand.NewPCG(3, 4))
	const threads, size = 77, 2048
	for round := range 4000 {
		k := newBuilder("access").k
		k.slots = 40
		w := newWorker(&launch{k: k, threads: threads, stride: 80, extent: size})
		for i := range w.regs {
			w.regs[i] = r.Uint64()
		}
		for i := range w.mem {
			w.mem[i] = byte(r.Uint32())
		}
		in := &inst{a: 0, imm: uint64(r.IntN(5) * 4), v: []slot{8, 12, 16, 20}[:1+3*r.IntN(2)]}
		w.lo = r.IntN(20)
		w.hi = w.lo + 1 + r.IntN(threads-w.lo)
		addr := whole[uint64](w, 0)
		for i := range addr {
			switch x := uint64(i); r.IntN(4) + round%4 {
			case 0:
				addr[i] = uint64(r.IntN(size/16-10)) * 16
			case 5:
				addr[i] = 64
			case 6:
				addr[i] = x / 16 * 16
			default:
				addr[i] = x * 4 * uint64(len(in.v)) // neighbours
			}
		}
		if round%5 == 0 { // one that is out of range, or not aligned
			addr[w.lo+r.IntN(w.hi-w.lo)] = []uint64{size, size - in.imm - 2, 1, math.MaxUint64, 1 << 62, size - 4}[r.IntN(6)]
		}
		for write, run := range []func(*worker, *inst, space, []uint64, int) int{loadRun[uint32], storeRun[uint32]} {
			var served [2]int
			var mem [2][]byte
			regs := slices.Clone(w.regs)
			for on := range 2 {
				again := newWorker(w.launch)
				copy(again.regs, regs)
				copy(again.mem, w.mem)
				again.lo, again.hi = w.lo, w.hi
				withVectors(on == 1, func() {
					served[on] = run(again, in, shared, whole[uint64](again, 0)[w.lo:w.hi], 4*len(in.v))
				})
				mem[on] = again.mem
				for _, s := range in.v {
					mem[on] = append(mem[on], unsafe.Slice((*byte)(again.at(s)), 4*served[on])...)
				}
			}
			if served[0] != served[1] || !bytes.Equal(mem[0], mem[1]) {
				t.Fatalf("access %d of %d elements, threads %d to %d: %d threads served by the loop, %d by vectors", write, len(in.v), w.lo, w.hi, served[0], served[1])
			}
		}
	}
}
