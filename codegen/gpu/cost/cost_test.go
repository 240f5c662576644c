package cost

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

func parse(t testing.TB, text string) *plan.Plan {
	t.Helper()
	m, err := ssa.Parse(text, "test.ir", onnx.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	m.Opsets = map[string]int{"": onnx.Newest}
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestMachines(t *testing.T) {
	var names []string
	for _, m := range Machines() {
		names = append(names, m.Name)
	}
	if got := strings.Join(names, " "); got != "H200 A100 L4" {
		t.Errorf("machines %s", got)
	}
	lines := strings.Split(strings.TrimSpace(machinesTSV), "\n")
	for _, c := range []struct{ from, to, want string }{
		{lines[2], "", "H200 has no sms"},
		{lines[2], "H200\tsms\t-1\ts", "no figure above 0"},
		{lines[2], "H200\tsms\t1.5\ts", "sms = 1.5"},
		{lines[2], "H200\tcores\t1\ts", "cores = 1"},
		{lines[2], lines[3], "twice"},
		{lines[2], "H200\tsms\t132\t", "its source"},
		{lines[1], "", "no target"},
	} {
		text := strings.Replace(machinesTSV, c.from+"\n", strings.TrimPrefix(c.to+"\n", "\n"), 1)
		if _, err := readMachines(text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: error %v, want %s", c.to, c.from, err, c.want)
		}
	}
}

// The cases are worked out by hand from the formula: registers of a warp in units of 256, warps in units of 4.
func TestOccupancy(t *testing.T) {
	h200, l4 := Machines()[0], Machines()[2]
	for _, c := range []struct {
		m                          *Machine
		threads, registers, shared int64
		want                       int64
		occupancy                  float64
	}{
		{h200, 128, 16, 0, 16, 1},
		{h200, 32, 16, 0, 32, 0.5},            // by the number of blocks
		{h200, 256, 99, 8448, 2, 0.25},        // 13 units of a warp: 19 warps, of which 16 are used
		{h200, 256, 128, 0, 2, 0.25},          // 16 units: 16 warps
		{h200, 256, 0, 0, 8, 1},               // registers are not known
		{h200, 1024, 65, 0, 0, 0},             // 28 warps do not hold a block of 32
		{h200, 128, 16, 100 * 1024, 2, 0.125}, // by shared memory, with 1 KiB more a block
		{h200, 128, 16, 228 * 1024, 0, 0},
		{l4, 256, 32, 0, 6, 1},
		{l4, 128, 32, 33 * 1024, 2, 8. / 48},
	} {
		if got := c.m.Resident(c.threads, c.registers, c.shared); got != c.want {
			t.Errorf("%s, %d threads, %d registers, %d bytes: %d blocks, want %d", c.m.Name, c.threads, c.registers, c.shared, got, c.want)
		}
		if got := c.m.Occupancy(c.threads, c.registers, c.shared); got != c.occupancy {
			t.Errorf("%s, %d threads, %d registers, %d bytes: occupancy %v, want %v", c.m.Name, c.threads, c.registers, c.shared, got, c.occupancy)
		}
	}
}

const kernels = `
graph @loop(%x : Float(3, 1, 43), %y : Float(5, 1)):
  %z : Tensor = onnx::Add(%x, %y)
  return (%z)
graph @transpose(%x : Float(2, 33, 70)):
  %z : Tensor = onnx::Transpose[perm=[0, 2, 1]](%x)
  return (%z)
graph @reduce(%x : Float(5, 1500)):
  %axis : Long(1) = onnx::Constant[value={1}]()
  %z : Tensor = onnx::ReduceLogSumExp(%x, %axis)
  return (%z)
graph @argmax(%x : Float(5, 1500)):
  %z : Tensor = onnx::ArgMax[axis=1](%x)
  return (%z)
graph @softmax(%x : Float(5, 1500)):
  %z : Tensor = onnx::Softmax(%x)
  return (%z)
graph @norm(%x : Float(5, 150), %s : Float(150)):
  %z : Tensor = onnx::LayerNormalization(%x, %s, %s)
  return (%z)
graph @gemm(%x : Float(70, 35), %y : Float(35, 90)):
  %z : Tensor = onnx::MatMul(%x, %y)
  %r : Tensor = onnx::Relu(%z)
  return (%r)
graph @thin(%x : Float(2, 70), %y : Float(11, 70)):
  %z : Tensor = onnx::Gemm[transB=1](%x, %y)
  return (%z)
graph @conv(%x : Float(2, 3, 9, 11), %w : Float(70, 3, 3, 3)):
  %z : Tensor = onnx::Conv[pads=[1, 1, 1, 1], kernel_shape=[3, 3]](%x, %w)
  return (%z)
graph @pool(%x : Float(1, 3, 9, 11)):
  %z : Tensor, %i : Tensor = onnx::MaxPool[kernel_shape=[3, 3], pads=[1, 1, 1, 1]](%x)
  return (%z, %i)
graph @gather(%x : Float(50, 7), %i : Long(30)):
  %z : Tensor = onnx::Gather(%x, %i)
  return (%z)
graph @scan(%x : Float(5, 130)):
  %axis : Long() = onnx::Constant[value={1}]()
  %z : Tensor = onnx::CumSum(%x, %axis)
  return (%z)
graph @sort(%x : Float(3, 300)):
  %k : Long(1) = onnx::Constant[value={10}]()
  %z : Tensor, %i : Tensor = onnx::TopK(%x, %k)
  return (%z, %i)
graph @long_sort(%x : Float(2, 2100)):
  %k : Long(1) = onnx::Constant[value={2100}]()
  %z : Tensor, %i : Tensor = onnx::TopK(%x, %k)
  return (%z, %i)
graph @lstm(%x : Float(3, 2, 4), %w : Float(1, 20, 4), %r : Float(1, 20, 5)):
  %y : Tensor, %h : Tensor, %c : Tensor = onnx::LSTM[hidden_size=5](%x, %w, %r)
  return (%y, %h, %c)
graph @grid(%x : Float(1, 3, 5, 7), %g : Float(1, 9, 9, 2)):
  %z : Tensor = onnx::GridSample(%x, %g)
  return (%z)
`

// each calls f for the launches of the graphs above.
func each(t *testing.T, f func(t *testing.T, m *measure)) {
	for _, g := range strings.Split(kernels, "\ngraph @")[1:] {
		name, rest, _ := strings.Cut(g, "(")
		p := parse(t, "graph("+rest)
		n := 0
		for _, s := range p.Steps {
			if s.Launch == nil {
				continue
			}
			n++
			t.Run(fmt.Sprintf("%s%d", name, n), func(t *testing.T) {
				m := &measure{step: s}
				if !m.sized() {
					t.Fatal("sizes are not known")
				}
				f(t, m)
			})
		}
		if n == 0 {
			t.Errorf("%s has no launches", name)
		}
	}
}

// A kernel and what is left of it make the same accesses to global memory.
func TestAccesses(t *testing.T) {
	each(t, func(t *testing.T, m *measure) {
		k := m.step.Kernel.Kernel
		whole, err := compile(k)
		if err != nil {
			t.Fatal(err)
		}
		var counts [2]sim.Counts
		var lanes [2]int64
		for i, code := range []*sim.Kernel{whole, whole.Accesses()} {
			m.fresh()
			stats, err := code.Run(sim.Launch{Grid: m.grid, Block: [3]int{k.Threads}, Args: m.args, Count: true})
			if err != nil {
				t.Fatalf("%v\n%s", err, k)
			}
			counts[i], lanes[i] = stats.Counts, stats.LaneInstructions
		}
		type access struct{ read, written, sectors, least int64 }
		of := func(c sim.Counts) access { return access{c.Read, c.Written, c.Sectors, c.LeastSectors} }
		if of(counts[0]) != of(counts[1]) {
			t.Errorf("kernel %+v, its accesses %+v\n%s", counts[0], counts[1], k)
		}
		if lanes[1] > lanes[0] {
			t.Errorf("the accesses take %d instructions, the kernel %d", lanes[1], lanes[0])
		}
		if m.step.Kernel.SharedBytes() > 4096 && m.step.Kernel.Class == "gemm" && lanes[1]*2 > lanes[0] {
			t.Errorf("the accesses of a product take %d instructions, the kernel %d", lanes[1], lanes[0])
		}
	})
}

// tiny is a machine of one SM, for one block at a time, with an L2 cache of that many bytes and next to no L1.
func tiny(l2 int64) *Machine {
	m := *Machines()[0]
	m.Name, m.SMs, m.Blocks, m.L2, m.L1 = fmt.Sprintf("tiny %d", l2), 1, 1, l2, 64
	return &m
}

// A product of 256 x 256 matrices in tiles of 64 x 64: 16 blocks, each of which reads 64 KiB of both operands and writes 16 KiB. Blocks follow
// each other along a row of tiles, with the same part of the first operand.
func TestProductTraffic(t *testing.T) {
	const kib = 1024
	p := parse(t, `
graph(%x : Float(256, 256), %y : Float(256, 256)):
  %z : Tensor = onnx::MatMul(%x, %y)
  return (%z)`)
	ls, skipped, err := Measure(p, nil, Options{Machines: []*Machine{tiny(32), tiny(160 * kib), tiny(1024 * kib), Machines()[0]}})
	if err != nil || len(skipped) > 0 || len(ls) != 1 {
		t.Fatalf("%v, %v, %d launches", err, skipped, len(ls))
	}
	l := ls[0]
	if l.Blocks != 16 || l.Counted != 4 || l.Touching != 16 || l.Least != 3*256*kib {
		t.Errorf("%d blocks, %d counted, %d followed, at least %d bytes", l.Blocks, l.Counted, l.Touching, l.Least)
	}
	if want := int64(2 * 256 * 256 * 256); l.Counts.Flops != want {
		t.Errorf("%d flops, want %d", l.Counts.Flops, want)
	}
	touched := int64(16 * (64 + 64 + 16) * kib)
	for i, want := range []int64{touched, (256 + 4*256 + 256) * kib, 3 * 256 * kib, 3 * 256 * kib} {
		if got := l.On[i].Memory; got != want {
			t.Errorf("%s: %d bytes of memory, want %d", l.On[i].Name, got, want)
		}
		if got := l.On[i].L2; got != touched { // each sector once: a thread stores its four neighbours together
			t.Errorf("%s: %d bytes of the L2 cache, want %d", l.On[i].Name, got, touched)
		}
	}
	on, h200 := l.On[3], Machines()[0]
	if want := float64(l.Counts.Flops)/h200.F32 + h200.Launch; on.Seconds != want {
		t.Errorf("%v s, want %v", on.Seconds, want)
	}
}

// Of a joined launch blocks of each part are counted, and scaled to the part: the floating-point operations are exact. What parts read in common is there once.
func TestJoinedCounts(t *testing.T) {
	const kib = 1024
	p := parse(t, `
graph(%x : Float(256, 256), %y : Float(256, 1024), %w : Float(256, 64), %p : Float(64, 16), %q : Float(16, 128)):
  %z : Tensor = onnx::MatMul(%x, %y)
  %v : Tensor = onnx::MatMul(%x, %w)
  %u : Tensor = onnx::MatMul(%p, %q)
  return (%z, %v, %u)`)
	ls, skipped, err := Measure(p, nil, Options{Machines: []*Machine{tiny(4096 * kib)}, Blocks: 3})
	if err != nil || len(skipped) > 0 || len(ls) != 1 {
		t.Fatalf("%v, %v, %d launches", err, skipped, len(ls))
	}
	l := ls[0]
	if l.Blocks != 64+4+2 || l.Counted != 3+3+2 || l.Touching != 70 || l.Least != (256+1024+64+1024+64+4+8+32)*kib {
		t.Errorf("%d blocks, %d counted, %d followed, at least %d bytes", l.Blocks, l.Counted, l.Touching, l.Least)
	}
	if want := int64(2*256*256*(1024+64) + 2*64*16*128); l.Counts.Flops != want {
		t.Errorf("%d flops, want %d", l.Counts.Flops, want)
	}
	if got := l.On[0].Memory; got != l.Least {
		t.Errorf("%d bytes of memory", got)
	}
}

// With a budget, the first blocks stand for all.
func TestBudget(t *testing.T) {
	p := parse(t, `
graph(%x : Float(512, 512), %y : Float(512)):
  %z : Tensor = onnx::Add(%x, %y)
  return (%z)`)
	ls, _, err := Measure(p, nil, Options{Machines: []*Machine{tiny(1 << 20)}, Budget: 1})
	if err != nil {
		t.Fatal(err)
	}
	l := ls[0]
	if l.Touching != 1 || l.Least != 2<<20+2<<10 {
		t.Errorf("%d of %d blocks, at least %d bytes", l.Touching, l.Blocks, l.Least)
	}
	if per := l.On[0].Memory / l.Blocks; l.On[0].Memory%l.Blocks != 0 || per < 2*128*4 {
		t.Errorf("%d bytes for %d blocks", l.On[0].Memory, l.Blocks)
	}
}

func TestSkipped(t *testing.T) {
	p := parse(t, `
graph(%x : Float(5, 7)):
  %i : Tensor = onnx::NonZero(%x)
  %k : Tensor = onnx::Neg(%i)
  %r : Tensor = onnx::RandomUniformLike(%x)
  return (%k, %r)`)
	ls, skipped, err := Measure(p, nil, Options{Machines: Machines()})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(skipped)
	if len(ls) == 0 || !strings.Contains(text, "depend on data") || !strings.Contains(text, "RandomUniformLike") {
		t.Errorf("%d launches, skipped %s", len(ls), text)
	}
	_, _, err = Measure(p, nil, Options{Machines: Machines(), Registers: func(*kir.Kernel, *Machine) (int64, error) { return 1 << 20, nil }})
	if err == nil || !strings.Contains(err.Error(), "no room for a block") {
		t.Errorf("error %v", err)
	}
}

// A launch costs the same as text; only what the operations are text does not tell.
func TestMeasurePTX(t *testing.T) {
	p := parse(t, `
graph(%x : Float(256, 256), %y : Float(256, 256)):
  %z : Tensor = onnx::MatMul(%x, %y)
  return (%z)`)
	o := Options{Machines: []*Machine{tiny(160 << 10), Machines()[0]}}
	ls, _, err := Measure(p, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	k, err := PTXOf(p, func(*kir.Kernel, *Machine) (int64, error) { return 0, nil }, o.Machines)
	if err != nil {
		t.Fatal(err)
	}
	l, err := MeasurePTX(k, o)
	if err != nil {
		t.Fatal(err)
	}
	want := ls[0]
	if l.Blocks != want.Blocks || l.Threads != want.Threads || l.Shared != want.Shared || l.Least != want.Least || l.Counts.Sectors != want.Counts.Sectors || l.Counts.Wavefronts != want.Counts.Wavefronts {
		t.Errorf("%+v, want %+v", l, want)
	}
	for i := range l.On {
		if a, b := l.On[i], want.On[i]; a.L2 != b.L2 || a.Memory != b.Memory || a.Resident != b.Resident {
			t.Errorf("%+v, want %+v", a, b)
		}
	}
	k.Args[0].Bytes = 4096
	if _, err := MeasurePTX(k, o); err == nil || !strings.Contains(err.Error(), string(sim.OutOfBounds)) {
		t.Errorf("a buffer that is too small: %v", err)
	}
	k.Registers = nil
	if _, err := MeasurePTX(k, o); err == nil || !strings.Contains(err.Error(), "registers of 0 machines") {
		t.Errorf("no registers: %v", err)
	}
	k.Text = "ret;"
	if _, err := MeasurePTX(k, o); err == nil {
		t.Error("no error for text that is no kernel")
	}
}
