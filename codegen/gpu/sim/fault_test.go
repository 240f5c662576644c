package sim_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/llir/llvm/ir"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// faulty is a kernel of 64 threads over x, and what is wrong with it.
type faulty struct {
	name  string
	body  func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value)
	kind  sim.FaultKind
	text  string // in the message
	check bool   // seen only with Check
}

var i32 = gputest.I32

var faults = []faulty{
	{"over the end", func(b *gputest.Builder, x value.Value, _ *ir.Global, tid value.Value) {
		b.Store(x, b.C.NewAdd(tid, i32(1)), gputest.F32(1))
	}, sim.OutOfBounds, "write of 4 bytes at offset 256 of 256 bytes of global memory of parameter x", false},
	{"before the start", func(b *gputest.Builder, x value.Value, _ *ir.Global, tid value.Value) {
		b.Store(x, tid, b.Load(x, b.C.NewSub(tid, i32(1))))
	}, sim.OutOfBounds, "in block [0 0 0], thread [0 0 0], line ", false},
	{"misaligned", func(b *gputest.Builder, x value.Value, _ *ir.Global, tid value.Value) {
		b.StoreVec(x, i32(4), b.LoadVec(x, tid, 4))
	}, sim.Misaligned, "thread [1 0 0]", false},
	{"race", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.Store(s, tid, gputest.F32(1))
		b.Store(x, tid, b.Load(s, b.C.NewXor(tid, i32(1))))
	}, sim.SharedRace, "which thread [1 0 0] wrote without a barrier", true},
	{"write after read", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.Store(s, tid, gputest.F32(1))
		b.Barrier()
		v := b.Load(s, i32(5))
		b.Store(s, tid, v)
	}, sim.SharedRace, "write at offset 20, which more than one thread read", true},
	{"uninitialised", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.Store(x, tid, b.Load(s, tid))
	}, sim.Uninitialised, "thread [0 0 0]", true},
	{"over the end of a shared array", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.Store(s, b.C.NewAdd(tid, i32(1)), gputest.F32(1))
	}, sim.OutOfBounds, "after s, which has 256 bytes", true},
	{"divergent barrier", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.If(b.C.NewICmp(enum.IPredSLT, tid, i32(40)), b.Barrier)
	}, sim.Divergence, "has returned, others wait", false},
	{"a product by a part of a warp", func(b *gputest.Builder, x value.Value, _ *ir.Global, tid value.Value) {
		b.If(b.C.NewICmp(enum.IPredSLT, tid, i32(40)), func() {
			f, z := types.Float, gputest.F32(0)
			mma := b.M.NewFunc("llvm.nvvm.mma.m16n8k16.row.col.bf16", types.NewStruct(f, f, f, f))
			d := b.C.NewCall(mma, tid, tid, tid, tid, tid, tid, z, z, z, z)
			b.Store(x, tid, b.C.NewExtractValue(d, 0))
		})
	}, sim.Collective, "lane 8 of the warp does not take part", false},
	{"matrices for a part of a warp", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.Store(s, tid, gputest.F32(1))
		b.Barrier()
		b.If(b.C.NewICmp(enum.IPredSLT, tid, i32(40)), func() {
			at := &types.PointerType{ElemType: types.I16, AddrSpace: 3}
			load := b.M.NewFunc("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3i16", types.NewStruct(types.I32, types.I32, types.I32, types.I32), ir.NewParam("", at))
			b.C.NewCall(load, b.C.NewBitCast(s, at))
		})
	}, sim.Collective, "lane 8 of the warp does not take part", false},
	{"two barriers", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.If(b.C.NewICmp(enum.IPredSLT, tid, i32(40)), b.Barrier)
		b.Barrier()
	}, sim.Divergence, "waits at another barrier", false},
	{"divergent shuffle", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.If(b.C.NewICmp(enum.IPredSLT, tid, i32(40)), func() { b.Store(x, tid, b.Bfly(gputest.F32(1), 1)) })
	}, sim.Collective, "thread [40 0 0] of the mask is elsewhere", false},
	{"endless", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.For(i32(0), i32(1), i32(0), nil, func(value.Value, []value.Value) []value.Value { return nil })
	}, sim.Hang, "more than 1000 instructions", false},
	{"one place, two threads", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.Store(x, b.C.NewLShr(tid, i32(1)), gputest.F32(1))
	}, sim.GlobalRace, "thread [0 0 0] wrote", true},
	{"blocks in each other's way", func(b *gputest.Builder, x value.Value, s *ir.Global, tid value.Value) {
		b.Store(x, tid, gputest.F32(1))
	}, sim.GlobalConflict, "offset 0 of parameter x: block 0 wrote it, block 1 wrote it", true},
}

func TestFaults(t *testing.T) {
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			x := gputest.Array("x", types.Float, true)
			b := gputest.New("k", x)
			s := b.SharedArray("s", types.Float, 64)
			c.body(b, x, s, b.Sreg("tid.x"))
			b.Return()
			k, err := sim.FromIR(b.F)
			if err != nil {
				t.Fatal(err)
			}
			grid := 1
			if c.kind == sim.GlobalConflict {
				grid = 2
			}
			run := func(check bool) error {
				_, err := k.Run(sim.Launch{Grid: [3]int{grid}, Block: [3]int{64}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(make([]byte, 256)))}, Check: check, Steps: 1000})
				return err
			}
			err = run(true)
			var f *sim.Fault
			if !errors.As(err, &f) || f.Kind != c.kind || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %s with %q", err, c.kind, c.text)
			}
			grid = 1
			if err := run(false); (err != nil) == c.check {
				t.Errorf("without checks: %v", err)
			}
			if f != nil && f.Line > 0 && f.Text == "" {
				t.Errorf("line %d has no text", f.Line)
			}
		})
	}
}

func TestBadLaunch(t *testing.T) {
	c := gputest.AddRelu(8, 1)
	k, err := sim.FromIR(gputest.Kernel(c.Build()))
	if err != nil {
		t.Fatal(err)
	}
	ok := c.Args()
	for _, l := range []sim.Launch{
		{Grid: [3]int{1}, Block: [3]int{2048}, Args: ok},
		{Grid: [3]int{-1}, Block: [3]int{32}, Args: ok},
		{Grid: [3]int{1}, Block: [3]int{0}, Args: ok},
		{Grid: [3]int{1}, Block: [3]int{32}, Args: ok[:2]},
		{Grid: [3]int{1}, Block: [3]int{32}, Args: []sim.Arg{ok[0], ok[0], ok[0], ok[0]}},
		{Grid: [3]int{1}, Block: [3]int{32}, Args: ok, Dynamic: 1 << 20},
	} {
		_, err := k.Run(l)
		var f *sim.Fault
		if !errors.As(err, &f) || f.Kind != sim.BadLaunch {
			t.Errorf("%v: %v", l.Block, err)
		}
	}
	// an empty grid does nothing
	if _, err := k.Run(sim.Launch{Block: [3]int{32}, Args: ok}); err != nil {
		t.Error(err)
	}
}

// TestFma compares with exact arithmetic, on numbers chosen to be hard to round.
func TestFma(t *testing.T) {
	const n = 1 << 15
	r := rand.New(rand.NewPCG(1, 2))
	x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		switch i % 4 {
		case 0: // any bits
			x[i], y[i], z[i] = math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		case 1: // a sum just beside the middle of two neighbours
			x[i] = 1 + float32(r.IntN(1<<12))/(1<<12)
			y[i] = 1 + float32(r.IntN(1<<12))/(1<<12)
			z[i] = float32(math.Ldexp(1, -50-r.IntN(60)))
		case 2: // results among the subnormals
			x[i], y[i] = float32(math.Ldexp(1+r.Float64(), -70)), float32(math.Ldexp(1+r.Float64(), -70-r.IntN(12)))
			z[i] = math.Float32frombits(r.Uint32() % (1 << 24))
		default: // cancellation
			x[i], y[i] = 1+float32(r.Float64()), 1+float32(r.Float64())
			z[i] = -x[i] * y[i]
		}
	}
	px, py, pz, pw := gputest.Array("x", types.Float, false), gputest.Array("y", types.Float, false), gputest.Array("z", types.Float, false), gputest.Array("w", types.Float, true)
	b := gputest.New("fma", px, py, pz, pw)
	i := b.C.NewAdd(b.C.NewShl(b.Sreg("ctaid.x"), i32(8)), b.Sreg("tid.x"))
	b.Store(pw, i, b.Fma(b.Load(px, i), b.Load(py, i), b.Load(pz, i)))
	b.Return()
	k, err := sim.FromIR(b.F)
	if err != nil {
		t.Fatal(err)
	}
	out := sim.NewBuffer(make([]byte, 4*n))
	arg := func(v []float32) sim.Arg { return sim.Ptr(sim.NewBuffer(gputest.Bytes(v))) }
	if _, err := k.Run(sim.Launch{Grid: [3]int{n / 256}, Block: [3]int{256}, Args: []sim.Arg{arg(x), arg(y), arg(z), sim.Ptr(out)}}); err != nil {
		t.Fatal(err)
	}
	for i, got := range gputest.Values[float32](out, n) {
		a, b, c := float64(x[i]), float64(y[i]), float64(z[i])
		if s := a*b + c; s != s || math.IsInf(s, 0) {
			if got == got && float64(got) != s {
				t.Fatalf("fma(%g, %g, %g) = %g, want %g", a, b, c, got, s)
			}
			continue
		}
		exact := new(big.Float).SetPrec(2000).Mul(big.NewFloat(a), big.NewFloat(b))
		exact.SetPrec(2000).Add(exact, big.NewFloat(c))
		if want, _ := exact.Float32(); got != want {
			t.Fatalf("fma(%x, %x, %x) = %x, want %x", x[i], y[i], z[i], got, want)
		}
	}
}

// TestDeterminism: results and faults do not depend on the workers' order.
func TestDeterminism(t *testing.T) {
	x := gputest.Array("x", types.Float, true)
	b := gputest.New("k", x)
	block := b.Sreg("ctaid.x")
	b.If(b.C.NewICmp(enum.IPredUGE, block, i32(37)), func() { b.Store(x, i32(-1), gputest.F32(1)) })
	b.Return()
	k, err := sim.FromIR(b.F)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_, err := k.Run(sim.Launch{Grid: [3]int{200}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(make([]byte, 256)))}})
		var f *sim.Fault
		if !errors.As(err, &f) || f.Block[0] != 37 {
			t.Fatalf("got %v, want a fault in block 37", err)
		}
	}
}
