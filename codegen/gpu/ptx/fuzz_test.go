package ptx_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"testing"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// program makes a kernel of the bytes: straight code, branches and loops over values of all types.
type program struct {
	data []byte
	b    *gputest.Builder
	vals map[types.Type][]value.Value
	size int
}

var scalarTypes = []types.Type{types.I32, types.Float, types.I64, types.Double, types.I16, types.I8, types.Half, types.I1}

func (p *program) byte() int {
	if len(p.data) == 0 {
		return 0
	}
	c := p.data[0]
	p.data = p.data[1:]
	return int(c)
}

func (p *program) pick(t types.Type) value.Value {
	v := p.vals[t]
	n := p.byte()
	if len(v) > 0 && n%5 != 0 {
		return v[n%len(v)]
	}
	switch t := t.(type) {
	case *types.IntType:
		if t.BitSize == 1 {
			return constant.NewBool(n%2 == 0)
		}
		return constant.NewInt(t, int64(int8(p.byte()))<<(n%3*7))
	case *types.FloatType:
		return constant.NewFloat(t, float64(int8(p.byte()))/4)
	}
	return nil
}

func (p *program) add(v value.Value) {
	t := v.Type()
	for _, s := range scalarTypes {
		if types.Equal(s, t) {
			p.vals[s] = append(p.vals[s], v)
		}
	}
}

func (p *program) step(depth int) {
	if p.size++; p.size > 200 {
		p.data = nil
		return
	}
	b := p.b
	t := scalarTypes[p.byte()%len(scalarTypes)]
	op := p.byte()
	switch it := t.(type) {
	case *types.FloatType:
		x, y := p.pick(t), p.pick(t)
		switch op % 12 {
		case 0:
			p.add(b.C.NewFAdd(x, y))
		case 1:
			p.add(b.C.NewFSub(x, y))
		case 2:
			p.add(b.C.NewFMul(x, y))
		case 3:
			p.add(b.C.NewFDiv(x, y))
		case 4:
			p.add(b.Fma(x, y, p.pick(t)))
		case 5:
			p.add(b.C.NewFCmp([]enum.FPred{enum.FPredOLT, enum.FPredUEQ, enum.FPredONE, enum.FPredUNO, enum.FPredULE, enum.FPredOGE}[p.byte()%6], x, y))
		case 6:
			p.add(b.C.NewSelect(p.pick(types.I1), x, y))
		case 7:
			p.add(b.C.NewFNeg(x))
		case 8:
			name := map[types.FloatKind]string{types.FloatKindHalf: "f16", types.FloatKindFloat: "f32", types.FloatKindDouble: "f64"}[it.Kind]
			f := []string{"rint", "floor", "ceil", "trunc", "fabs", "sqrt", "minnum", "maxnum", "copysign"}[p.byte()%9]
			if f == "minnum" || f == "maxnum" || f == "copysign" {
				p.add(b.Call("llvm."+f+"."+name, t, x, y))
			} else {
				p.add(b.Call("llvm."+f+"."+name, t, x))
			}
		case 9:
			p.add(b.C.NewFPToSI(p.small(x, false), []types.Type{types.I8, types.I16, types.I32, types.I64}[p.byte()%4]))
		case 10:
			p.add(b.C.NewFPToUI(p.small(x, true), []types.Type{types.I8, types.I16, types.I32, types.I64}[p.byte()%4]))
		default:
			switch it.Kind {
			case types.FloatKindHalf:
				p.add(b.C.NewFPExt(x, []types.Type{types.Float, types.Double}[p.byte()%2]))
			case types.FloatKindFloat:
				p.add(b.C.NewFPExt(x, types.Double))
				p.add(b.C.NewFPTrunc(x, types.Half))
				p.add(b.C.NewBitCast(x, types.I32))
			default:
				p.add(b.C.NewFPTrunc(x, []types.Type{types.Float, types.Half}[p.byte()%2]))
				p.add(b.C.NewBitCast(x, types.I64))
			}
		}
	case *types.IntType:
		x, y := p.pick(t), p.pick(t)
		if it.BitSize == 1 {
			switch op % 6 {
			case 0:
				p.add(b.C.NewAnd(x, y))
			case 1:
				p.add(b.C.NewXor(x, y))
			case 2:
				p.add(b.C.NewSExt(x, []types.Type{types.I8, types.I16, types.I32, types.I64}[p.byte()%4]))
			case 3:
				p.add(b.C.NewUIToFP(x, []types.Type{types.Half, types.Float, types.Double}[p.byte()%3]))
			case 4:
				p.add(b.C.NewSelect(p.pick(t), x, y))
			default:
				p.branch(x, depth)
			}
			return
		}
		nonzero := b.C.NewOr(y, constant.NewInt(it, 1))
		amount := b.C.NewAnd(y, constant.NewInt(it, int64(it.BitSize)-1))
		switch op % 18 {
		case 0:
			p.add(b.C.NewAdd(x, y))
		case 1:
			p.add(b.C.NewSub(x, y))
		case 2:
			p.add(b.C.NewMul(x, y))
		case 3:
			p.add(b.C.NewSDiv(x, nonzero))
		case 4:
			p.add(b.C.NewUDiv(x, nonzero))
		case 5:
			p.add(b.C.NewSRem(x, nonzero))
		case 6:
			p.add(b.C.NewURem(x, nonzero))
		case 7:
			p.add(b.C.NewAnd(x, y))
		case 8:
			p.add(b.C.NewXor(x, y))
		case 9:
			p.add(b.C.NewShl(x, amount))
		case 10:
			p.add(b.C.NewLShr(x, amount))
		case 11:
			p.add(b.C.NewAShr(x, amount))
		case 12:
			p.add(b.C.NewICmp([]enum.IPred{enum.IPredEQ, enum.IPredSLT, enum.IPredULT, enum.IPredSGE, enum.IPredUGT, enum.IPredNE}[p.byte()%6], x, y))
		case 13:
			p.add(b.C.NewSelect(p.pick(types.I1), x, y))
		case 14:
			p.add(b.C.NewSIToFP(x, []types.Type{types.Half, types.Float, types.Double}[p.byte()%3]))
		case 15:
			p.add(b.C.NewUIToFP(x, []types.Type{types.Half, types.Float, types.Double}[p.byte()%3]))
		case 16:
			for _, w := range []*types.IntType{types.I1, types.I8, types.I16, types.I32, types.I64} {
				switch {
				case w.BitSize < it.BitSize && w.BitSize != 1 || w.BitSize == 1 && p.byte()%2 == 0:
					p.add(b.C.NewTrunc(x, w))
				case w.BitSize > it.BitSize && p.byte()%2 == 0:
					p.add(b.C.NewZExt(x, w))
				case w.BitSize > it.BitSize:
					p.add(b.C.NewSExt(x, w))
				}
			}
		default:
			p.loop(depth)
		}
	}
}

// small is x where an integer of 8 bits can hold it, else 0: converting others means nothing in LLVM.
func (p *program) small(x value.Value, positive bool) value.Value {
	t := x.Type().(*types.FloatType)
	name := map[types.FloatKind]string{types.FloatKindHalf: "f16", types.FloatKindFloat: "f32", types.FloatKindDouble: "f64"}[t.Kind]
	abs := p.b.Call("llvm.fabs."+name, t, x)
	if positive {
		x = abs
	}
	return p.b.C.NewSelect(p.b.C.NewFCmp(enum.FPredOLT, abs, constant.NewFloat(t, 100)), x, constant.NewFloat(t, 0))
}

// inside keeps what a branch defines from being used after it.
func (p *program) inside(f func()) {
	saved := map[types.Type][]value.Value{}
	for t, v := range p.vals {
		saved[t] = v[:len(v):len(v)]
	}
	f()
	p.vals = saved
}

func (p *program) branch(c value.Value, depth int) {
	if depth == 0 {
		return
	}
	b := p.b
	t := scalarTypes[p.byte()%7]
	before, other := b.C, p.pick(t)
	then, end := b.F.NewBlock(""), b.F.NewBlock("")
	var v value.Value
	before.NewCondBr(c, then, end)
	b.C = then
	p.inside(func() {
		for range p.byte() % 4 {
			p.step(depth - 1)
		}
		v = p.pick(t)
	})
	from := b.C
	from.NewBr(end)
	b.C = end
	p.add(end.NewPhi(ir.NewIncoming(v, from), ir.NewIncoming(other, before)))
}

func (p *program) loop(depth int) {
	if depth == 0 {
		return
	}
	t, u := scalarTypes[p.byte()%7], scalarTypes[p.byte()%7]
	// different counts in each thread, and two carried values that may change places
	count := p.b.C.NewAnd(p.pick(types.I32), gputest.I32(3))
	out := p.b.For(gputest.I32(0), count, gputest.I32(1), []value.Value{p.pick(t), p.pick(t), p.pick(u)}, func(i value.Value, v []value.Value) []value.Value {
		next := []value.Value{v[1], v[0], v[2]}
		p.inside(func() {
			p.add(i)
			p.add(v[0])
			p.add(v[2])
			for range p.byte() % 4 {
				p.step(depth - 1)
			}
			if p.byte()%2 == 0 {
				next[0] = p.pick(t)
			}
			next[2] = p.pick(u)
		})
		return next
	})
	for _, v := range out {
		p.add(v)
	}
}

// kernelOf builds the kernel of the bytes.
func kernelOf(data []byte) *gputest.Builder {
	var params []*ir.Param
	for i, s := range scalarTypes[:7] {
		params = append(params, gputest.Array(string(rune('a'+i)), s, true))
	}
	b := gputest.New("k", params...)
	p := &program{data: data, b: b, vals: map[types.Type][]value.Value{}}
	tid := b.Sreg("tid.x")
	for _, q := range params {
		p.add(b.Load(q, tid))
	}
	p.add(tid)
	for len(p.data) > 0 {
		p.step(3)
	}
	for i, q := range params {
		b.Store(q, tid, p.vals[scalarTypes[i]][len(p.vals[scalarTypes[i]])-1])
	}
	b.Return()
	return b
}

// words runs the kernel on fixed bytes.
func words(t *testing.T, k *sim.Kernel) [][]byte {
	t.Helper()
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
	if _, err := k.Run(sim.Launch{Grid: [3]int{1}, Block: [3]int{32}, Args: args}); err != nil {
		t.Fatal(err)
	}
	return out
}

func randomBytes(i int) []byte {
	seed := make([]byte, 120)
	s := uint32(i)*2654435761 + 1
	for j := range seed {
		s = s*1664525 + 1013904223
		seed[j] = byte(s >> 24)
	}
	return seed
}

// FuzzRoutes: the simulator gives the same for a random kernel and for the PTX that is printed of it.
func FuzzRoutes(f *testing.F) {
	for i := range 50 {
		f.Add(randomBytes(i))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b := kernelOf(data)
		k, err := sim.FromIR(b.F)
		if err != nil {
			t.Fatalf("%v\n%s", err, b.M)
		}
		text, err := ptx.Print(b.M, ptx.Options{})
		if err != nil {
			t.Fatalf("%v\n%s", err, b.M)
		}
		k2, err := sim.FromPTX(text, "")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		x, y := words(t, k), words(t, k2)
		for j := range x {
			if !bytes.Equal(x[j], y[j]) {
				t.Fatalf("%c differs:\n% x\n% x\n%s\n%s", 'a'+j, x[j], y[j], b.M, text)
			}
		}
	})
}

// TestRandomLLC does the same with the PTX of llc, which may give another NaN than the device does.
func TestRandomLLC(t *testing.T) {
	n := 12
	if os.Getenv("ATON_ROUTES") == "all" {
		n = 300
	}
	for _, l := range llcs(t) {
		for i := range n {
			b := kernelOf(randomBytes(i))
			k, err := sim.FromIR(b.F)
			if err != nil {
				t.Fatal(err)
			}
			text, err := l.Compile(b.M, ptx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			k2, err := sim.FromPTX(text, "")
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			x, y := words(t, k), words(t, k2)
			for j := range x {
				if at := differ(x[j], y[j], scalarTypes[j]); at >= 0 {
					t.Errorf("kernel %d: %c differs at byte %d: %x, from the IR %x\n%s\n%s", i, 'a'+j, at, y[j][at:min(at+8, 256)], x[j][at:min(at+8, 256)], b.M, text)
				}
			}
		}
	}
}

// differ finds the first element that is not the same; all NaN of a float type are.
func differ(x, y []byte, t types.Type) int {
	size, exp := 1, uint64(0)
	switch {
	case types.Equal(t, types.Half):
		size, exp = 2, 0x7c00
	case types.Equal(t, types.Float):
		size, exp = 4, 0x7f800000
	case types.Equal(t, types.Double):
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
