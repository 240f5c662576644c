package exec

import (
	"errors"
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa"
)

// Sim is the simulator as a backend.
type Sim struct {
	// Check looks for races, reads of what nobody wrote, and blocks that share memory.
	Check bool
	// Count fills the Counts of the launches.
	Count bool
	// Steps bounds the instructions of a block, 0 for the simulator's own limit.
	Steps int64
	// Budget bounds the lane instructions of all launches, each launch itself among them for as many as it takes the time of; 0 for no
	// bound. A launch that passes it ends with sim.ErrBudget.
	Budget int64

	used int64 // lane instructions of the launches so far
}

type simKernel struct {
	*sim.Kernel
	threads int
}

// Name is "sim".
func (s *Sim) Name() string { return "sim" }

// Load reads the PTX that a driver would be given.
func (s *Sim) Load(k *kir.Kernel) (Kernel, error) {
	text, err := ptx.Print(k, ptx.Options{})
	if err != nil {
		return nil, err
	}
	c, err := sim.FromPTX(text, k.Name)
	if err != nil {
		return nil, err
	}
	return &simKernel{c, k.Threads}, nil
}

// maxAlloc bounds what the simulator takes for one value.
const maxAlloc = 1 << 32

// Alloc makes a slice of bytes.
func (s *Sim) Alloc(bytes int64) (Memory, error) {
	if bytes < 0 || bytes > maxAlloc {
		return nil, fmt.Errorf("a value of %d bytes is more than the simulator takes", bytes)
	}
	return make([]byte, bytes), nil
}

// Slice is a part of it: kernels cannot reach beyond.
func (s *Sim) Slice(m Memory, offset, bytes int64) Memory {
	return m.([]byte)[offset : offset+bytes : offset+bytes]
}

// Free does nothing.
func (s *Sim) Free(Memory) error { return nil }

// Upload copies.
func (s *Sim) Upload(m Memory, data []byte) error { copy(m.([]byte), data); return nil }

// Download copies.
func (s *Sim) Download(m Memory, data []byte) error { copy(data, m.([]byte)); return nil }

// Launch runs the kernel.
func (s *Sim) Launch(k Kernel, grid [3]int, args []Arg) (Stats, error) {
	stats, _, err := s.launch(k.(*simKernel), sim.Launch{Grid: grid}, args)
	return stats, err
}

// LaunchSome runs the blocks with the given numbers, which ascend, or all blocks if the list is nil. The function that it returns reports whether they
// wrote a byte of an argument.
func (s *Sim) LaunchSome(k Kernel, grid [3]int, args []Arg, blocks []int64) (Stats, func(arg, offset int) bool, error) {
	stats, bound, err := s.launch(k.(*simKernel), sim.Launch{Grid: grid, Blocks: blocks, Note: blocks != nil}, args)
	return stats, func(arg, offset int) bool { return bound[arg].Buffer.Written(offset) }, err
}

// Depends returns why the blocks of a kernel depend on each other, or "" if they do not.
func (s *Sim) Depends(k Kernel) string {
	if k.(*simKernel).Atomics() {
		return "its blocks share memory by atomic operations"
	}
	return ""
}

// launching is the cost of a launch in lane instructions. It stands for about 40 microseconds.
const launching = 1 << 16

func (s *Sim) launch(c *simKernel, l sim.Launch, args []Arg) (Stats, []sim.Arg, error) {
	l.Block, l.Check, l.Count, l.Steps = [3]int{c.threads, 1, 1}, s.Check, s.Count, s.Steps
	if s.Budget > 0 {
		l.Most = max(s.Budget-s.used, 1)
	}
	for _, a := range args {
		if a.Memory != nil {
			l.Args = append(l.Args, sim.Ptr(sim.NewBuffer(a.Memory.([]byte))))
		} else {
			l.Args = append(l.Args, sim.I32(a.Scalar))
		}
	}
	stats, err := c.Run(l)
	s.used += stats.LaneInstructions + launching
	if errors.Is(err, sim.ErrBudget) {
		err = fmt.Errorf("%w: the simulator runs %d lane instructions, and fewer with many launches; %s", err, s.Budget, ssa.BudgetHint)
	}
	return Stats{LaneInstructions: stats.LaneInstructions, Counts: stats.Counts}, l.Args, err
}

// Sync does nothing: launches are over when they return.
func (s *Sim) Sync() error { return nil }
