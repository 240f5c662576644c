package ptx_test

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// program makes a kernel of the bytes: straight code, branches and loops over values of all types.
type program struct {
	*kir.Builder
	data []byte
	vals map[kir.Type][]kir.Value
	size int
}

var (
	scalarTypes  = []kir.Type{kir.I32, kir.F32, kir.I64, kir.F64, kir.I16, kir.I8, kir.F16, kir.I1}
	integerTypes = []kir.Type{kir.I8, kir.I16, kir.I32, kir.I64}
	floatTypes   = []kir.Type{kir.F16, kir.F32, kir.F64}
)

func (p *program) byte() int {
	if len(p.data) == 0 {
		return 0
	}
	c := p.data[0]
	p.data = p.data[1:]
	return int(c)
}

// one is one of a list.
func one[T any](p *program, of ...T) T { return of[p.byte()%len(of)] }

func (p *program) pick(t kir.Type) kir.Value {
	v := p.vals[t]
	n := p.byte()
	switch {
	case len(v) > 0 && n%5 != 0:
		return v[n%len(v)]
	case t.IsFloat():
		return p.Float(t, float64(int8(p.byte()))/4)
	case t == kir.I1:
		return p.Int(t, int64(n%2))
	}
	return p.Int(t, int64(int8(p.byte()))<<(n%3*7))
}

func (p *program) add(v kir.Value) { p.vals[v.Type] = append(p.vals[v.Type], v) }

func (p *program) step(depth int) {
	if p.size++; p.size > 200 {
		p.data = nil
		return
	}
	switch t := one(p, scalarTypes...); {
	case t.IsFloat():
		p.float(t)
	case t == kir.I1:
		p.predicate(depth)
	default:
		p.integer(t, depth)
	}
}

func (p *program) float(t kir.Type) {
	x, y := p.pick(t), p.pick(t)
	switch p.byte() % 9 {
	case 0, 1:
		p.add(p.Binary(one(p, kir.Add, kir.Sub, kir.Mul, kir.Div), x, y))
	case 2:
		p.add(p.Fma(x, y, p.pick(t)))
	case 3:
		p.add(p.Compare(one(p, kir.Eq, kir.Ne, kir.Lt, kir.Le), x, y))
	case 4:
		p.add(p.Select(p.pick(kir.I1), x, y))
	case 5:
		p.add(p.Unary(one(p, kir.Sqrt, kir.Floor, kir.Ceil, kir.Trunc, kir.Rint, kir.Abs), x))
	case 6:
		p.add(p.Convert(kir.FToS, p.within(x, -100), one(p, integerTypes...)))
		p.add(p.Convert(kir.FToU, p.within(x, 0), one(p, integerTypes...)))
	case 7:
		// LLVM may give another NaN than the device does, which bits would show
		x, y = p.Select(p.Compare(kir.Eq, x, x), x, p.Float(t, 0)), p.Select(p.Compare(kir.Eq, y, y), y, p.Float(t, 0))
		if t == kir.F32 {
			p.add(p.TF32(x))
		}
		p.add(p.Convert(kir.Bitcast, x, map[kir.Type]kir.Type{kir.F16: kir.I16, kir.F32: kir.I32, kir.F64: kir.I64}[t]))
		if t == kir.F16 {
			p.add(p.Pack(x, y))
		}
	default:
		for _, to := range floatTypes {
			switch {
			case to > t:
				p.add(p.Convert(kir.Widen, x, to))
			case to < t:
				p.add(p.Convert(kir.Round, x, to))
			}
		}
	}
}

// within is x where it is between two small numbers, else 0: converting others to an integer means nothing.
func (p *program) within(x kir.Value, least float64) kir.Value {
	inside := p.And(p.Lt(x, p.Float(x.Type, 100)), p.Compare(kir.Le, p.Float(x.Type, least), x))
	return p.Select(inside, x, p.Float(x.Type, 0))
}

func (p *program) predicate(depth int) {
	x, y := p.pick(kir.I1), p.pick(kir.I1)
	switch p.byte() % 6 {
	case 0:
		p.add(p.Binary(one(p, kir.And, kir.Or, kir.Xor), x, y))
	case 1:
		p.add(p.Compare(one(p, kir.Eq, kir.Ne), x, y))
	case 2:
		p.add(p.Convert(one(p, kir.SExt, kir.ZExt), x, one(p, integerTypes...)))
	case 3:
		p.add(p.Convert(kir.UToF, x, one(p, floatTypes...)))
	case 4:
		p.add(p.Select(p.pick(kir.I1), x, y))
	default:
		p.branch(x, depth)
	}
}

func (p *program) integer(t kir.Type, depth int) {
	x, y := p.pick(t), p.pick(t)
	switch p.byte() % 10 {
	case 0, 1:
		p.add(p.Binary(one(p, kir.Add, kir.Sub, kir.Mul, kir.And, kir.Or, kir.Xor), x, y))
	case 2:
		p.add(p.Binary(one(p, kir.Div, kir.Rem, kir.UDiv, kir.URem), x, p.Or(y, p.Int(t, 1))))
	case 3:
		p.add(p.Binary(one(p, kir.Shl, kir.LShr, kir.AShr), x, p.And(y, p.Int(t, int64(8*t.Size()-1)))))
	case 4:
		p.add(p.Compare(one(p, kir.Eq, kir.Ne, kir.Lt, kir.Le, kir.ULt, kir.ULe), x, y))
	case 5:
		p.add(p.Select(p.pick(kir.I1), x, y))
	case 6:
		p.add(p.Convert(one(p, kir.SToF, kir.UToF), x, one(p, floatTypes...)))
	case 7, 8:
		for _, to := range append([]kir.Type{kir.I1}, integerTypes...) {
			switch {
			case to < t:
				p.add(p.Convert(kir.Narrow, x, to))
			case to > t:
				p.add(p.Convert(one(p, kir.SExt, kir.ZExt), x, to))
			}
		}
		if t == kir.I16 {
			p.add(p.Pack(x, y))
			p.add(p.Convert(kir.Bitcast, x, kir.F16))
		}
	default:
		p.loop(depth)
	}
}

// inside keeps what a block defines from being used after it.
func (p *program) inside(f func()) {
	saved := map[kir.Type][]kir.Value{}
	for t, v := range p.vals {
		saved[t] = v[:len(v):len(v)]
	}
	f()
	p.vals = saved
}

// branch has two sides with several values, or one side with effects alone.
func (p *program) branch(c kir.Value, depth int) {
	if depth == 0 || c.Op == kir.Const {
		return
	}
	t, u := one(p, scalarTypes...), one(p, scalarTypes...)
	side := func() (out []kir.Value) {
		p.inside(func() {
			for range p.byte() % 4 {
				p.step(depth - 1)
			}
			out = []kir.Value{p.pick(t), p.pick(u)}
		})
		return out
	}
	for _, v := range p.If(c, side, side) {
		p.add(v)
	}
}

// loop turns a different number of times in each thread, and carries values that may change places.
func (p *program) loop(depth int) {
	if depth == 0 {
		return
	}
	t, u := one(p, scalarTypes...), one(p, scalarTypes...)
	from, to := p.And(p.pick(kir.I32), p.I32(1)), p.And(p.pick(kir.I32), p.I32(3))
	for _, v := range p.For(from, to, p.I32(1), []kir.Value{p.pick(t), p.pick(t), p.pick(u), p.pick(kir.I32)}, func(i kir.Value, v []kir.Value) []kir.Value {
		next := []kir.Value{v[1], v[0], v[2], i}
		p.inside(func() {
			p.add(i)
			for _, x := range v {
				p.add(x)
			}
			for range p.byte() % 4 {
				p.step(depth - 1)
			}
			if p.byte()%2 == 0 {
				next[0] = p.pick(t)
			}
			next[2] = p.pick(u)
		})
		return next
	}) {
		p.add(v)
	}
}

// kernelOf builds the kernel of the bytes: it reads and writes an element of each buffer, with what is in shared memory by the way.
func kernelOf(data []byte) *kir.Kernel {
	b := kir.New("k", 32)
	var mems []*kir.Mem
	for i, t := range scalarTypes[:7] {
		mems = append(mems, b.Buffer(string(rune('a'+i)), t, true))
	}
	p := &program{Builder: b, data: data, vals: map[kir.Type][]kir.Value{}}
	tid := b.ThreadX()
	for _, m := range mems {
		p.add(b.Load(m, tid))
	}
	p.add(tid)
	for len(p.data) > 0 {
		p.step(3)
	}
	last := func(t kir.Type) kir.Value { return p.vals[t][len(p.vals[t])-1] }
	s := b.SharedMem("s", kir.F64, 34)
	b.Store(s, b.Add(tid, b.I32(2)), last(kir.F64))
	b.Barrier()
	p.add(b.Load(s, b.Sub(b.I32(33), tid)))
	for i, m := range mems {
		b.Store(m, tid, last(scalarTypes[i]))
	}
	b.Prune()
	return b.K
}

// words runs a text on fixed bytes.
func words(t *testing.T, text string) [][]byte {
	t.Helper()
	k, err := sim.FromPTX(text, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var args []sim.Arg
	var out [][]byte
	for j := range 7 {
		x := make([]byte, 8*32)
		for n := range x {
			x[n] = byte(n*37 + j*11 + n*n/7)
		}
		out = append(out, x)
		args = append(args, sim.Ptr(sim.NewBuffer(x)))
	}
	if _, err := k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: args, Check: true}); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

func randomBytes(i int) []byte {
	seed := make([]byte, 160)
	s := uint32(i)*2654435761 + 1
	for j := range seed {
		s = s*1664525 + 1013904223
		seed[j] = byte(s >> 24)
	}
	return seed
}

// compare runs a random kernel from our PTX and from that of llc.
func compare(t *testing.T, data []byte, all []ptx.LLC) {
	t.Helper()
	k := kernelOf(data)
	own, err := ptx.Print(k, ptx.Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, k)
	}
	x := words(t, own)
	for _, l := range all {
		text, err := l.Compile(llvm.Lower(k), ptx.Options{})
		if err != nil {
			t.Fatal(err)
		}
		y := words(t, text)
		for j := range x {
			if at := differ(x[j], y[j], scalarTypes[j]); at >= 0 {
				t.Fatalf("%c differs at byte %d: %x, from llc %x\n%s\n%s\n%s", 'a'+j, at, x[j][at:min(at+8, 256)], y[j][at:min(at+8, 256)], k, own, text)
			}
		}
	}
}

// FuzzRoutes: a random kernel is printed, the simulator takes it without a fault, and where there is an llc its PTX gives the same.
func FuzzRoutes(f *testing.F) {
	for i := range 50 {
		f.Add(randomBytes(i))
	}
	n := 0
	f.Fuzz(func(t *testing.T, data []byte) {
		var all []ptx.LLC
		if n++; n%20 == 0 { // it takes a hundred times as long
			all = ptx.AllLLC()
		}
		compare(t, data, all)
	})
}

// TestRandomLLC compares random kernels with what llc makes of them.
func TestRandomLLC(t *testing.T) {
	n := 12
	if os.Getenv("ATON_ROUTES") == "all" {
		n = 300
	}
	all := llcs(t)
	for i := range n {
		compare(t, randomBytes(i), all)
	}
}

// differ finds the first element that is not the same; all NaN of a float type are, since LLVM may give another one than the device does.
func differ(x, y []byte, t kir.Type) int {
	size, exp := 1, uint64(0)
	switch t {
	case kir.F16:
		size, exp = 2, 0x7c00
	case kir.F32:
		size, exp = 4, 0x7f800000
	case kir.F64:
		size, exp = 8, 0x7ff0000000000000
	}
	for i := 0; i+size <= len(x); i += size {
		var a, b [8]byte
		copy(a[:], x[i:i+size])
		copy(b[:], y[i:i+size])
		u, v := binary.LittleEndian.Uint64(a[:]), binary.LittleEndian.Uint64(b[:])
		magnitude := uint64(1)<<(8*size-1) - 1
		if u != v && (size == 1 || u&magnitude <= exp || v&magnitude <= exp) {
			return i
		}
	}
	return -1
}
