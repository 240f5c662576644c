// Package sim runs GPU kernels without a GPU: a lane-vectorised SIMT interpreter of PTX.
//
// Every value is a slot with one element per thread of the block, every instruction one loop over the threads that
// stand at it: what it computes is in the table of package isa. A kernel is cut at barriers and branches into segments; a thread is its slots and the number of its
// segment. The scheduler runs the lowest segment with all threads that wait there, so divergence and reconvergence come
// out as on the device for reducible control flow, and a barrier is just the end of a segment. The blocks of a grid
// run on GOMAXPROCS workers, each with registers and shared memory of its own.
//
// Addresses are (buffer, offset) packed into 64 bits, so each access is checked: range, alignment, space. With
// Launch.Check the run also reports races in shared memory, reads of shared memory that nothing wrote, and global
// memory that two blocks share without atomics.
package sim

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/aton-project/aton/codegen/gpu/isa"
)

// Buffer is global memory of a launch. The bytes stay the caller's: kernels read and write them in place.
// The start counts as aligned to 256 bytes, as the driver's allocations are.
type Buffer struct {
	b       []byte
	written []bool // by units of unit bytes: what the last launch with Note wrote
	unit    int
}

// NewBuffer makes the bytes addressable by kernels. No copy is made.
func NewBuffer(bytes []byte) *Buffer { return &Buffer{b: bytes} }

// Bytes is the buffer's memory.
func (b *Buffer) Bytes() []byte { return b.b }

// Written reports that the last launch with Launch.Note wrote the byte at an offset, or another one of the element that it is in.
func (b *Buffer) Written(offset int) bool {
	return b.written != nil && b.written[offset/b.unit]
}

// Arg is a kernel argument: a Buffer (with Bits as the byte offset of the pointer into it), or a scalar's bits.
type Arg struct {
	Buffer *Buffer
	Bits   uint64
}

// Ptr passes the address of the buffer's first byte.
func Ptr(b *Buffer) Arg { return Arg{Buffer: b} }

// I32 passes a 32-bit integer.
func I32(v int32) Arg { return Arg{Bits: uint64(uint32(v))} }

// I64 passes a 64-bit integer.
func I64(v int64) Arg { return Arg{Bits: uint64(v)} }

// F32 passes a float32.
func F32(v float32) Arg { return Arg{Bits: uint64(math.Float32bits(v))} }

// F64 passes a float64.
func F64(v float64) Arg { return Arg{Bits: math.Float64bits(v)} }

// Launch is one execution of a kernel.
type Launch struct {
	Grid, Block [3]int // blocks of the grid, threads of a block; a 0 counts as 1 in the second and third dimension
	Dynamic     int    // bytes of dynamic shared memory
	Args        []Arg
	Blocks      []int64 // the numbers of the blocks that run, in ascending order, x fastest; nil for all
	Note        bool    // note what is written: see Buffer.Written
	Check       bool    // races, uninitialised shared reads, global memory shared between blocks
	Count       bool    // fill Stats.Counts
	Steps       int64   // instructions a block may run before it counts as hanging; 0 is 1<<26
	Most        int64   // lane instructions of all blocks before the run ends with ErrBudget; 0 is no bound

	// Touched, if set besides Count, is told the sectors, from first to last, of a buffer that an access of a warp touches, by several
	// goroutines at a time. An access of scattered threads touches several such runs.
	Touched func(b *Buffer, first, last int64, write bool)
}

// ErrBudget says that a launch takes more lane instructions than Launch.Most. It blames no kernel.
var ErrBudget = errors.New("too many instructions")

// Stats counts what ran.
type Stats struct {
	LaneInstructions int64 // instructions times the threads that executed them
	Barriers         int64 // barriers times blocks
	Counts           Counts
}

// FaultKind says what went wrong in a kernel.
type FaultKind string

// The kinds of faults.
const (
	OutOfBounds    FaultKind = "out of bounds"
	Misaligned     FaultKind = "misaligned access"
	SharedRace     FaultKind = "shared memory race"
	GlobalRace     FaultKind = "global memory race"
	CopyRace       FaultKind = "use of memory that is being copied"
	Uninitialised  FaultKind = "uninitialised shared memory read"
	GlobalConflict FaultKind = "global memory conflict between blocks"
	Divergence     FaultKind = "divergent barrier"
	Collective     FaultKind = "warp operation in divergent code"
	Hang           FaultKind = "step limit exceeded"
	BadLaunch      FaultKind = "bad launch"
	Trap           FaultKind = "trap"
)

// Fault is the error of a kernel that did what a device would not forgive.
type Fault struct {
	Kind   FaultKind
	Kernel string
	Block  [3]int
	Thread [3]int
	Line   int // of the PTX text; 0 when no instruction is to blame
	Text   string
	Detail string
}

func (f *Fault) Error() string {
	s := fmt.Sprintf("kernel %s: %s", f.Kernel, f.Kind)
	if f.Kind != BadLaunch && f.Kind != GlobalConflict {
		s += fmt.Sprintf(" in block %v, thread %v", f.Block, f.Thread)
	}
	if f.Line > 0 {
		s += fmt.Sprintf(", line %d", f.Line)
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	if f.Text != "" {
		s += ": " + f.Text
	}
	return s
}

type slot = isa.Slot

const none = isa.None

type runner func(w *worker, in *inst)

// inst is one instruction. D is blended when only some threads run it; those with D == none write by themselves.
type inst struct {
	isa.Op
	do       isa.Do // of one that computes on registers
	run      runner // of others
	width    int8   // bytes of D
	guardNeg bool
	guard    slot // predicate, or none
	line     int32
	v        []slot
	outs     int8 // how many of v are results
	move     bool // from A to D

	// what Launch.Count counts
	class isa.Class
	flops int16
	dir   direction // of a memory access, of this many bytes a thread
	bytes int8
	space space
	copy  bool   // to shared memory: where b says,
	to    uint64 // and this is added
}

type termKind uint8

const (
	termJump termKind = iota
	termBranch
	termRet
	termBarrier
	termTrap
)

// segment is straight-line code up to a branch, a barrier or the end.
type segment struct {
	insts []inst
	term  termKind
	neg   bool
	cond  slot
	to    [2]int32
	line  int32
}

type constSlot struct {
	s     slot
	width int8
	bits  uint64
}

type param struct {
	s     slot
	width int8 // one of 8 bytes takes a buffer or a scalar
	name  string
}

// special registers, in slots of 4 bytes
const (
	sregTid = iota
	sregNtid
	sregCtaid
	sregNctaid
	sregLane // dims used: 0 laneid, 1 warpid, 2 nwarps
	sregCount
)

// object is a variable in shared memory.
type object struct {
	name      string
	off, size int
}

// Kernel is a kernel made executable. It is immutable and may run many times, also at once.
type Kernel struct {
	Name      string
	segs      []segment
	slots     int // bytes of registers a thread has
	consts    []constSlot
	params    []param
	sregs     [sregCount][3]slot
	objects   []object
	shared    int  // extent of the static shared memory with the gaps between objects
	size      int  // bytes of static shared memory as the device counts them
	dynamic   int  // offset of the dynamic shared memory, -1 when the kernel has none
	local     int  // bytes of local memory a thread has
	gran      int  // least width of a shared access: the unit of the race check
	least     int  // least width of a global access
	atomics   bool // there are atomic operations on global memory
	copies    bool // and asynchronous copies
	clear     bool // registers start as zero in every block: some may be read before they are written
	serial    bool // float atomics: the order of the blocks matters
	maxThread int
	text      func(line int) string
}

// StaticShared is the static shared memory of a block in bytes.
func (k *Kernel) StaticShared() int { return k.size }

// Atomics reports a kernel with atomic operations on memory that its blocks may share.
func (k *Kernel) Atomics() bool { return k.atomics }

// ParamSizes is the bytes of each parameter; those of 8 take a buffer or a scalar.
func (k *Kernel) ParamSizes() []int {
	var out []int
	for _, p := range k.params {
		out = append(out, int(p.width))
	}
	return out
}

const (
	maxObjects = 1024
	maxShared  = 232448 // 227 KiB, what a block may have on sm_90; sm_80 has 163 KiB
	maxLocal   = 1 << 16
	maxThreads = 1024
	// objects in shared memory are kept apart so that running over the end of one is seen
	redZone = 4096
)

func (k *Kernel) bad(format string, args ...any) error {
	return &Fault{Kind: BadLaunch, Kernel: k.Name, Detail: fmt.Sprintf(format, args...)}
}

// addObject lays out a shared variable; align is a power of two.
func (k *Kernel) addObject(name string, size, align int) (int, error) {
	if len(k.objects) == maxObjects || size < 0 || size > maxShared || k.size+size > maxShared {
		return 0, fmt.Errorf("shared memory over %d bytes, or more than %d objects", maxShared, maxObjects)
	}
	if align < 16 {
		align = 16
	}
	if align > 1024 {
		return 0, fmt.Errorf("alignment %d of shared memory", align)
	}
	off := (k.shared + align - 1) / align * align
	k.objects = append(k.objects, object{name, off, size})
	k.shared = off + size + redZone
	k.size = (k.size+align-1)/align*align + size
	return off, nil
}

// launch is what all workers of a run share.
type launch struct {
	Launch
	k       *Kernel
	grid    [3]int
	block   [3]int
	threads int
	stride  int // threads rounded up to a multiple of 8
	bufs    []*Buffer
	shadows []*globalShadow
	extent  int // shared bytes with gaps
	objects []object
	steps   int64
	next    atomic.Int64
	least   atomic.Int64 // number of the first block that failed, among those that run
	lanes   atomic.Int64 // lane instructions of the blocks that are done
	mu      sync.Mutex
	faults  map[int64]*Fault
}

// spent reports that the blocks that are done took more than the launch may.
func (r *launch) spent() bool { return r.Most > 0 && r.lanes.Load() > r.Most }

// Run executes the kernel. A *Fault in the error says what went wrong and where; of several blocks that fail it is
// that of the first. Faults do not depend on the number of workers, nor do results unless blocks touch what others write, which
// Check reports; with Check the blocks run one after another.
func (k *Kernel) Run(l Launch) (Stats, error) {
	r := &launch{Launch: l, k: k, grid: l.Grid, block: l.Block, faults: map[int64]*Fault{}}
	total := int64(1)
	r.threads = 1
	for i := range 3 {
		if i > 0 && r.grid[i] == 0 {
			r.grid[i] = 1
		}
		if i > 0 && r.block[i] == 0 {
			r.block[i] = 1
		}
		if r.grid[i] < 0 || r.grid[i] > math.MaxInt32 || i > 0 && r.grid[i] > 65535 {
			return Stats{}, k.bad("grid %v", l.Grid)
		}
		if r.block[i] < 1 || r.block[i] > maxThreads {
			return Stats{}, k.bad("block %v", l.Block)
		}
		total *= int64(r.grid[i])
		r.threads *= r.block[i]
	}
	if r.threads > maxThreads || k.maxThread > 0 && r.threads > k.maxThread {
		return Stats{}, k.bad("%d threads a block", r.threads)
	}
	if l.Blocks != nil {
		last := int64(-1)
		for _, b := range l.Blocks {
			if b <= last || b >= total {
				return Stats{}, k.bad("block %d after %d, of %d blocks", b, last, total)
			}
			last = b
		}
		total = int64(len(l.Blocks))
	}
	if l.Dynamic < 0 || k.size+l.Dynamic > maxShared {
		return Stats{}, k.bad("%d bytes of shared memory", k.size+l.Dynamic)
	}
	if len(l.Args) != len(k.params) {
		return Stats{}, k.bad("%d arguments for %d parameters", len(l.Args), len(k.params))
	}
	for i, p := range k.params {
		if l.Args[i].Buffer != nil && p.width != 8 {
			return Stats{}, k.bad("argument %d is a buffer, parameter %s has %d bytes", i, p.name, p.width)
		}
	}
	r.stride = (r.threads + 7) &^ 7
	if int64(k.slots)*int64(r.stride) > 1<<31 || int64(k.local)*int64(r.stride) > 1<<30 {
		return Stats{}, k.bad("registers of %d threads do not fit", r.threads)
	}
	r.bind()
	if l.Note {
		for _, b := range r.bufs[1:] {
			b.unit = k.unit()
			b.written = make([]bool, len(b.b)/b.unit+1)
		}
	}
	r.objects, r.extent = k.objects, k.shared
	if k.dynamic >= 0 {
		r.objects = append(append([]object(nil), k.objects...), object{"dynamic", k.dynamic, l.Dynamic})
		r.extent = max(r.extent, k.dynamic+l.Dynamic+redZone)
	}
	if r.steps = l.Steps; r.steps == 0 {
		r.steps = 1 << 26
	}
	r.least.Store(total)
	workers := min(int64(runtime.GOMAXPROCS(0)), total)
	if k.serial || l.Check { // blocks that disturb each other do so in the same way each time
		workers = min(workers, 1)
	}
	stats := make([]Stats, workers)
	var wg sync.WaitGroup
	for i := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			w := newWorker(r)
			w.loop()
			stats[i] = w.stats
		}()
	}
	wg.Wait()
	var sum Stats
	for _, s := range stats {
		sum.LaneInstructions += s.LaneInstructions
		sum.Barriers += s.Barriers
		sum.Counts.Add(&s.Counts)
	}
	if r.spent() {
		return sum, fmt.Errorf("kernel %s: %w", k.Name, ErrBudget)
	}
	if n := r.least.Load(); n < total {
		f := r.faults[n]
		if k.text != nil && f.Line > 0 {
			f.Text = k.text(f.Line)
		}
		return sum, f
	}
	if l.Check {
		if f := r.conflict(); f != nil {
			return sum, f
		}
	}
	return sum, nil
}

// bind numbers the distinct buffers of the arguments; number 0 stays free for the null pointer.
func (r *launch) bind() {
	r.bufs = []*Buffer{nil}
	for _, a := range r.Args {
		if a.Buffer == nil {
			continue
		}
		if r.find(a.Buffer) == 0 {
			r.bufs = append(r.bufs, a.Buffer)
		}
	}
	if r.Check {
		r.shadows = make([]*globalShadow, len(r.bufs))
		for i, b := range r.bufs {
			if i > 0 && len(b.b) <= maxTracked {
				r.shadows[i] = &globalShadow{}
			}
		}
	}
}

func (r *launch) find(b *Buffer) int {
	for i, x := range r.bufs {
		if x == b {
			return i
		}
	}
	return 0
}
