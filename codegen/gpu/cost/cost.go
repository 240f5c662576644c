// Package cost tells what the kernels of a plan cost on a GPU, without one: what they do to memory and how many instructions they
// take is counted in the simulator, and set against the figures of [Machines].
//
// Three amounts of bytes are told apart:
//
//   - the least: each tensor that a launch reads or writes once, or only the part of it that is touched at all;
//   - what the SMs ask the L2 cache for: the sectors of 32 bytes that each access of a warp touches. Of a tensor of at most half an L1
//     cache, a sector counts once for each wave of blocks: blocks and passes read it anew, but from the cache of their SM;
//   - what goes to memory. Blocks run in waves, as many at a time as the SMs hold (Machine.Resident), in the order of their numbers. Blocks
//     of a wave share what they touch. A sector that an earlier wave touched is still in the L2 cache if the waves from that one on touched no
//     more distinct bytes than it holds; else it is read again. The cache is empty at the start of a launch, and a sector that is written
//     goes to memory once for each time that it is brought in.
//
// The first and the last are exact by this model: all blocks run, but with nothing of the kernel besides its accesses to global memory and what
// their addresses need. Instructions, operations and bank conflicts are those of a few blocks with the whole kernel, scaled by their share.
// Buffers hold zeros: addresses that come from data, as those of Gather, are those of index 0.
package cost

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa/sym"
)

// Options say how exactly to count.
type Options struct {
	// Machines are those to tell the costs for.
	Machines []*Machine
	// Blocks is how many blocks of a launch run with the whole kernel, 4 if 0; Seed chooses them.
	Blocks int64
	Seed   uint64
	// Budget is how many lane instructions may go into the accesses of all blocks of a launch, 1<<34 if 0. A launch with more of them runs only as
	// many blocks from the first one on, at least a wave of each machine, and its bytes are scaled by their share.
	Budget int64
	// Registers gives the registers a thread of a kernel has on a machine, 0 if that is not known.
	Registers func(k *kir.Kernel, m *Machine) (int64, error)
}

// filled are the options with the numbers that stand for 0.
func (o Options) filled() Options {
	if o.Blocks == 0 {
		o.Blocks = 4
	}
	if o.Budget == 0 {
		o.Budget = 1 << 34
	}
	return o
}

// Launch is what a launch costs.
type Launch struct {
	Step   *plan.Step `json:"-"`
	Node   string     `json:"node"`
	Kernel string     `json:"kernel"`
	Class  string     `json:"class"`
	// Blocks are those of the grid, Threads those of a block, Shared its bytes of shared memory.
	Blocks  int64 `json:"blocks"`
	Threads int64 `json:"threads"`
	Shared  int64 `json:"shared_bytes"`
	// Counted are the blocks that ran with the whole kernel, and from which Counts is scaled; Touching those whose accesses were followed.
	Counted  int64      `json:"blocks_counted"`
	Touching int64      `json:"blocks_touching"`
	Counts   sim.Counts `json:"counts"`
	// Least is the least number of bytes.
	Least int64 `json:"least_bytes"`
	// On are the costs on each machine.
	On []On `json:"on"`
}

// On is what a launch costs on a machine.
type On struct {
	Machine *Machine `json:"-"`
	Name    string   `json:"machine"`
	// Registers a thread has, 0 if that is not known, and the blocks of an SM that follow.
	Registers int64   `json:"registers,omitempty"`
	Resident  int64   `json:"resident_blocks"`
	Occupancy float64 `json:"occupancy"`
	// L2 are the bytes that the SMs ask the L2 cache for, and Memory those that go to memory and from there.
	L2     int64 `json:"l2_bytes"`
	Memory int64 `json:"memory_bytes"`
	// Seconds is the time by the roofline, the longest one of Memory by the bandwidth and the operations by their peaks, of tensor cores and others, and the launch itself.
	Seconds float64 `json:"seconds"`
}

// Skipped is a step of which nothing can be told.
type Skipped struct {
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

// Measure counts the launches of a plan, for values of the symbols in its sizes. Steps of the host, and what depends on data that only a run
// has, are skipped, with the reason.
func Measure(p *plan.Plan, env map[string]int64, o Options) ([]*Launch, []Skipped, error) {
	o = o.filled()
	var out []*Launch
	var skipped []Skipped
	same := map[string]*Launch{} // launches that differ only in what the buffers are
	for i, s := range p.Steps {
		skip := func(reason string) { skipped = append(skipped, Skipped{plan.NodeName(s.Op), reason}) }
		switch {
		case s.Launch == nil && s.Control != nil:
			skip("a loop or condition: how often its body runs is known from a run alone")
			continue
		case s.Sequence != nil:
			skip("a sequence: how long it is is known from a run alone")
			continue
		case s.Launch == nil && s.Host == "sizes":
			continue
		case s.Launch == nil:
			skip("a step of the host: " + s.Host)
			continue
		}
		m := &measure{Options: o, step: s, env: env}
		if !m.sized() {
			skip("its sizes depend on data")
			continue
		}
		if m.blocks == 0 {
			continue
		}
		key := fmt.Sprint(s.Kernel.Name, m.grid, m.sizes, m.scalars)
		if l := same[key]; l != nil {
			c := *l
			c.Step, c.Node = s, plan.NodeName(s.Op)
			out = append(out, &c)
			continue
		}
		m.Seed += uint64(i)
		l, err := m.launch()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: kernel %s: %w", plan.NodeName(s.Op), s.Kernel.Name, err)
		}
		same[key] = l
		out = append(out, l)
	}
	return out, skipped, nil
}

type measure struct {
	Options
	step    *plan.Step // nil of a kernel that is no step of a plan
	env     map[string]int64
	grid    [3]int
	blocks  int64
	threads int64
	dynamic int64   // bytes of shared memory that the launch asks for
	sizes   []int64 // of the buffers, in bytes, in the order of the parameters
	writes  []bool  // they are written
	buffers []int   // which parameters they are
	scalars []int64
	args    []sim.Arg
}

func (m *measure) eval(e sym.Expr) (int64, bool) { return e.Eval(m.env) }

// sized computes grid and arguments, and reports that all their sizes are known.
func (m *measure) sized() bool {
	m.blocks, m.threads = 1, int64(m.step.Kernel.Threads)
	for i, e := range m.step.Launch.Grid {
		n, ok := m.eval(e)
		if !ok {
			return false
		}
		m.grid[i] = int(n)
		m.blocks *= n
	}
	next := 0
	for _, p := range m.step.Kernel.Params {
		if p.Mem == nil {
			n, ok := m.eval(p.Size)
			if !ok {
				return false
			}
			m.args = append(m.args, sim.I32(int32(n)))
			m.scalars = append(m.scalars, n)
			continue
		}
		v := m.step.Args[next].Value
		next++
		n, ok := m.eval(index.Prod(v.Tensor().Dims))
		if !ok {
			return false
		}
		m.sizes = append(m.sizes, n*int64(v.DType().Size()))
		m.writes = append(m.writes, p.Mem.Writes)
		m.buffers = append(m.buffers, len(m.args))
		m.args = append(m.args, sim.Arg{})
	}
	return true
}

// fresh gives the buffers new memory. What no block touches takes none.
func (m *measure) fresh() (buffers map[*sim.Buffer]int) {
	buffers = map[*sim.Buffer]int{}
	for n, i := range m.buffers {
		b := sim.NewBuffer(make([]byte, m.sizes[n]))
		m.args[i] = sim.Ptr(b)
		buffers[b] = n
	}
	return buffers
}

func compile(k *kir.Kernel) (*sim.Kernel, error) {
	text, err := ptx.Print(k, ptx.Options{})
	if err != nil {
		return nil, err
	}
	return sim.FromPTX(text, k.Name)
}

func (m *measure) launch() (*Launch, error) {
	k := m.step.Kernel
	l := &Launch{Step: m.step, Node: plan.NodeName(m.step.Op), Kernel: k.Name, Class: k.Class, Blocks: m.blocks, Threads: m.threads, Shared: int64(k.SharedBytes())}
	for _, machine := range m.Machines {
		registers := int64(0)
		if m.Registers != nil {
			n, err := m.Registers(k.Kernel, machine)
			if err != nil {
				return nil, err
			}
			registers = n
		}
		if err := l.place(machine, registers); err != nil {
			return nil, err
		}
	}
	whole, err := compile(k.Kernel)
	if err != nil {
		return nil, err
	}
	if err := m.count(l, whole); err != nil {
		return nil, err
	}
	if err := m.follow(l, whole.Accesses()); err != nil {
		return nil, err
	}
	peak := func(machine *Machine) float64 {
		for _, b := range m.step.Args {
			if b.Value.DType().IsFloat() && b.Value.DType().Size() == 8 {
				return machine.F64
			}
		}
		return machine.F32
	}
	format := m.step.Kernel.Factors()
	matrixPeak := func(machine *Machine) float64 {
		switch {
		case format == nil:
		case format.Sum() == kir.I32:
			return machine.Int8
		case *format == kir.Tensor32:
			return machine.TF32
		}
		return machine.F16
	}
	for i := range l.On {
		on := &l.On[i]
		matrix := l.Counts.MatrixFlops
		on.Seconds = max(float64(on.Memory)/on.Machine.Bandwidth, float64(l.Counts.Flops-matrix)/peak(on.Machine), float64(matrix)/matrixPeak(on.Machine)) + on.Machine.Launch
	}
	return l, nil
}

// place says how many blocks an SM of a machine holds, whose threads have so many registers each.
func (l *Launch) place(machine *Machine, registers int64) error {
	on := On{Machine: machine, Name: machine.Name, Registers: registers, Resident: machine.Resident(l.Threads, registers, l.Shared)}
	if on.Resident == 0 {
		return fmt.Errorf("an SM of %s has no room for a block", machine.Name)
	}
	on.Occupancy = machine.Occupancy(l.Threads, registers, l.Shared)
	l.On = append(l.On, on)
	return nil
}

// count runs a few blocks with the whole kernel.
func (m *measure) count(l *Launch, code *sim.Kernel) error {
	begin, most := int64(0), m.Options.Blocks
	if code.Atomics() {
		most = m.blocks
	}
	for _, n := range m.parts() {
		blocks := choose(n, min(n, most), m.Seed)
		for i := range blocks {
			blocks[i] += begin
		}
		m.fresh()
		stats, err := code.Run(sim.Launch{Grid: m.grid, Block: [3]int{int(m.threads), 1, 1}, Dynamic: int(m.dynamic), Args: m.args, Blocks: blocks, Count: true})
		if err != nil {
			return err
		}
		counts := scale(stats.Counts, n, int64(len(blocks)))
		l.Counts.Add(&counts)
		l.Counted += int64(len(blocks))
		begin += n
	}
	return nil
}

// parts are the numbers of blocks of the parts of a launch, which differ in what a block does.
func (m *measure) parts() []int64 {
	if m.step == nil || m.step.Parts == nil {
		return []int64{m.blocks}
	}
	var out []int64
	for _, s := range m.step.Parts {
		if n, ok := m.eval(s.Launch.Grid[0]); ok && n > 0 { // as that of all is known
			out = append(out, n)
		}
	}
	return out
}

// choose gives n of total numbers, each set of them with equal chances, in ascending order: Floyd's choice.
func choose(total, n int64, seed uint64) []int64 {
	r := rand.New(rand.NewPCG(seed, 1))
	seen := map[int64]bool{}
	var out []int64
	for i := total - n; i < total; i++ {
		x := r.Int64N(i + 1)
		if seen[x] {
			x = i
		}
		seen[x] = true
		out = append(out, x)
	}
	slices.Sort(out)
	return out
}

// times is n * all / part.
func times(n, all, part int64) int64 {
	if all == part {
		return n
	}
	return int64(float64(n)*float64(all)/float64(part) + 0.5)
}

func scale(c sim.Counts, all, part int64) sim.Counts {
	for _, p := range []*int64{&c.Read, &c.Written, &c.Sectors, &c.LeastSectors, &c.Wavefronts, &c.Conflicts, &c.Flops, &c.MatrixFlops} {
		*p = times(*p, all, part)
	}
	for i := range c.Instructions {
		c.Instructions[i] = times(c.Instructions[i], all, part)
	}
	return c
}

// tracker follows the sectors of a launch through the L2 cache of a machine.
type tracker struct {
	wave     int64          // blocks of a wave
	capacity int64          // of the cache, in sectors
	private  []bool         // buffers that an SM's own cache holds
	stamps   [2][][]uint32  // of reads and writes, by buffer and sector: the number of the last wave that touched it, from 1 on
	now      uint32         // number of the wave that runs
	before   []int64        // distinct sectors that the waves before each one touched
	distinct atomic.Int64   // sectors that this wave touched
	missed   atomic.Int64   // sectors that went to memory
	shares   []atomic.Int64 // sectors of each buffer that a wave touched, summed over the waves
}

func newTracker(m *Machine, resident int64, sizes []int64, writes []bool) *tracker {
	t := &tracker{wave: resident * m.SMs, capacity: m.L2 / sim.SectorSize, now: 1, before: []int64{0, 0}, private: make([]bool, len(sizes)),
		shares: make([]atomic.Int64, len(sizes))}
	for i, n := range sizes {
		sectors := (n + sim.SectorSize - 1) / sim.SectorSize
		t.stamps[0] = append(t.stamps[0], make([]uint32, sectors))
		var w []uint32
		if writes[i] {
			w = make([]uint32, sectors)
		}
		t.stamps[1] = append(t.stamps[1], w)
		t.private[i] = n <= m.L1/2
	}
	return t
}

// next starts another wave.
func (t *tracker) next() {
	t.now++
	t.before = append(t.before, t.before[t.now-1]+t.distinct.Swap(0))
}

// touch notes sectors of a buffer.
func (t *tracker) touch(buffer int, first, last int64, direction int) {
	stamps := t.stamps[direction][buffer]
	fresh, missed := int64(0), int64(0)
	for s := first; s <= last; s++ {
		if atomic.LoadUint32(&stamps[s]) == t.now {
			continue
		}
		old := atomic.SwapUint32(&stamps[s], t.now)
		if old == t.now {
			continue
		}
		fresh++
		if old == 0 || t.before[t.now]-t.before[old] > t.capacity {
			missed++
		}
	}
	if fresh > 0 {
		t.distinct.Add(fresh)
		t.shares[buffer].Add(fresh)
		t.missed.Add(missed)
	}
}

// follow runs the blocks in their order, of a kernel that has at least the accesses.
func (m *measure) follow(l *Launch, code *sim.Kernel) error {
	var trackers []*tracker
	longest := int64(1)
	for _, on := range l.On {
		trackers = append(trackers, newTracker(on.Machine, on.Resident, m.sizes, m.writes))
		longest = max(longest, trackers[len(trackers)-1].wave)
	}
	buffers := m.fresh()
	asked := make([]atomic.Int64, len(m.sizes)) // accesses of sectors, by buffer
	run := func(from, to int64) (sim.Stats, error) {
		blocks := make([]int64, to-from)
		for i := range blocks {
			blocks[i] = from + int64(i)
		}
		return code.Run(sim.Launch{Grid: m.grid, Block: [3]int{int(m.threads), 1, 1}, Dynamic: int(m.dynamic), Args: m.args, Blocks: blocks, Count: true,
			Touched: func(b *sim.Buffer, first, last int64, write bool) {
				direction := 0
				if write {
					direction = 1
				}
				n := buffers[b]
				asked[n].Add(last - first + 1)
				for _, t := range trackers {
					t.touch(n, first, last, direction)
				}
			}})
	}
	var used, at int64
	end := m.blocks
	for at < end {
		to := end
		for _, t := range trackers { // up to the next end of a wave on any machine
			to = min(to, (at/t.wave+1)*t.wave)
		}
		stats, err := run(at, to)
		if err != nil {
			return err
		}
		at = to
		for _, t := range trackers {
			if at%t.wave == 0 {
				t.next()
			}
		}
		if used += stats.LaneInstructions; used > m.Budget && at >= longest {
			break
		}
	}
	l.Touching = at
	for i, n := range m.sizes {
		touched := int64(0)
		for s := range trackers[0].stamps[0][i] {
			if trackers[0].stamps[0][i][s] != 0 || m.writes[i] && trackers[0].stamps[1][i][s] != 0 {
				touched++
			}
		}
		if at < end {
			touched = (n + sim.SectorSize - 1) / sim.SectorSize // the blocks that did not run have the rest
		}
		l.Least += min(n, touched*sim.SectorSize)
	}
	for i, t := range trackers {
		on := &l.On[i]
		on.Memory = times(t.missed.Load()*sim.SectorSize, m.blocks, at)
		for b := range m.sizes {
			n := asked[b].Load()
			if t.private[b] {
				n = t.shares[b].Load()
			}
			on.L2 += times(n*sim.SectorSize, m.blocks, at)
		}
	}
	return nil
}

// Total adds up the launches of a plan on machine number i of the options: the least bytes of the launches, those that went to memory, and
// the time.
func Total(ls []*Launch, i int) (least, memory int64, seconds float64) {
	for _, l := range ls {
		least += l.Least
		memory += l.On[i].Memory
		seconds += l.On[i].Seconds
	}
	return least, memory, seconds
}
