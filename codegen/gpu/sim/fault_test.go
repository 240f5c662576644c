package sim_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/internal/gputest"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// faulty is a kernel of 64 threads over x, and what is wrong with it.
type faulty struct {
	name  string
	body  func(b *kir.Builder, x, s *kir.Mem, tid kir.Value)
	kind  sim.FaultKind
	text  string // in the message
	check bool   // seen only with Check
}

// one is a number.
func one(b *kir.Builder) kir.Value { return b.Float(kir.F32, 1) }

// forSome does something in the first 40 threads.
func forSome(b *kir.Builder, tid kir.Value, f func()) { b.When(b.Lt(tid, b.I32(40)), f) }

var faults = []faulty{
	{"over the end", func(b *kir.Builder, x, _ *kir.Mem, tid kir.Value) {
		b.Store(x, b.Add(tid, b.I32(1)), one(b))
	}, sim.OutOfBounds, "write of 4 bytes at offset 256 of 256 bytes of global memory of parameter k_param_0", false},
	{"before the start", func(b *kir.Builder, x, _ *kir.Mem, tid kir.Value) {
		b.Store(x, tid, b.Load(x, b.Sub(tid, b.I32(1))))
	}, sim.OutOfBounds, "in block [0 0 0], thread [0 0 0], line ", false},
	{"misaligned", func(b *kir.Builder, x, _ *kir.Mem, tid kir.Value) {
		b.Store(x, b.I32(4), b.LoadVec(x, tid, 4)...)
	}, sim.Misaligned, "thread [1 0 0]", false},
	{"race", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.Store(s, tid, one(b))
		b.Store(x, tid, b.Load(s, b.Xor(tid, b.I32(1))))
	}, sim.SharedRace, "which thread [1 0 0] wrote without a barrier", true},
	{"write after read", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.Store(s, tid, one(b))
		b.Barrier()
		b.Store(s, tid, b.Load(s, b.I32(5)))
	}, sim.SharedRace, "write at offset 20, which more than one thread read", true},
	{"uninitialised", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.Store(x, tid, b.Load(s, tid))
	}, sim.Uninitialised, "thread [0 0 0]", true},
	{"over the end of a shared array", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.Store(s, b.Add(tid, b.I32(1)), one(b))
	}, sim.OutOfBounds, "after shared_$_s, which has 256 bytes", true},
	{"divergent barrier", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		forSome(b, tid, b.Barrier)
	}, sim.Divergence, "has returned, others wait", false},
	{"a product by a part of a warp", func(b *kir.Builder, x, _ *kir.Mem, tid kir.Value) {
		forSome(b, tid, func() {
			z := b.Float(kir.F32, 0)
			b.Store(x, tid, b.Mma(kir.BFloat16, [4]kir.Value{tid, tid, tid, tid}, [2]kir.Value{tid, tid}, [4]kir.Value{z, z, z, z})[0])
		})
	}, sim.Collective, "lane 8 of the warp does not take part", false},
	{"matrices for a part of a warp", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.Store(s, tid, one(b))
		b.Barrier()
		forSome(b, tid, func() { b.LoadMatrix(s, b.I32(0), false) })
	}, sim.Collective, "lane 8 of the warp does not take part", false},
	{"two barriers", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		forSome(b, tid, b.Barrier)
		b.Barrier()
	}, sim.Divergence, "waits at another barrier", false},
	{"divergent shuffle", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		forSome(b, tid, func() { b.Store(x, tid, b.Shuffle(one(b), 1)) })
	}, sim.Collective, "thread [40 0 0] of the mask is elsewhere", false},
	{"endless", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.For(b.I32(0), b.I32(1), b.I32(0), nil, func(kir.Value, []kir.Value) []kir.Value { return nil })
	}, sim.Hang, "more than 1000 instructions", false},
	{"one place, two threads", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.Store(x, b.Binary(kir.LShr, tid, b.I32(1)), one(b))
	}, sim.GlobalRace, "thread [0 0 0] wrote", true},
	{"blocks in each other's way", func(b *kir.Builder, x, s *kir.Mem, tid kir.Value) {
		b.Store(x, tid, one(b))
	}, sim.GlobalConflict, "offset 0 of parameter k_param_0: block 0 wrote it, block 1 wrote it", true},
}

func TestFaults(t *testing.T) {
	for _, c := range faults {
		t.Run(c.name, func(t *testing.T) {
			b := kir.New("k", 64)
			x, s := b.Buffer("x", kir.F32, true), b.SharedMem("s", kir.F32, 64)
			c.body(b, x, s, b.ThreadX())
			k := printed(t, b.K)
			grid := 1
			if c.kind == sim.GlobalConflict {
				grid = 2
			}
			run := func(check bool) error {
				_, err := k.Run(sim.Launch{Grid: [3]int{grid}, Block: [3]int{64}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(make([]byte, 256)))}, Check: check, Steps: 1000})
				return err
			}
			err := run(true)
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
	k := read(t, texts(t, c)[0])
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
	b := kir.New("fma", 256)
	px, py, pz, pw := b.Buffer("x", kir.F32, false), b.Buffer("y", kir.F32, false), b.Buffer("z", kir.F32, false), b.Buffer("w", kir.F32, true)
	i := b.Add(b.Mul(b.BlockIndex(0), b.I32(256)), b.ThreadX())
	b.Store(pw, i, b.Fma(b.Load(px, i), b.Load(py, i), b.Load(pz, i)))
	k := printed(t, b.K)
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
	b := kir.New("k", 32)
	x := b.Buffer("x", kir.F32, true)
	b.When(b.Compare(kir.ULe, b.I32(37), b.BlockIndex(0)), func() { b.Store(x, b.I32(-1), one(b)) })
	k := printed(t, b.K)
	for range 20 {
		_, err := k.Run(sim.Launch{Grid: [3]int{200}, Block: [3]int{32}, Args: []sim.Arg{sim.Ptr(sim.NewBuffer(make([]byte, 256)))}})
		var f *sim.Fault
		if !errors.As(err, &f) || f.Block[0] != 37 {
			t.Fatalf("got %v, want a fault in block 37", err)
		}
	}
}
