package cost

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Machine is a GPU by its published figures. machines.tsv names the source of each.
type Machine struct {
	Name   string
	Target string // what ptxas calls the processor
	SMs    int64  // multiprocessors
	// Bandwidth is that of its memory, in bytes a second.
	Bandwidth float64
	// L2 and L1 are the sizes of the caches in bytes: of all, and of one SM together with its shared memory.
	L2, L1 int64
	// F32 and F64 are the floating-point operations a second without tensor cores, a fused multiply-add being two.
	F32, F64 float64
	// F16 is what tensor cores do of float16 and bfloat16 with sums of float32, without sparsity.
	F16 float64
	// TF32 is what they do of float32 that is rounded to tf32.
	TF32 float64
	// Int8 is what they do of integers of 8 bits with sums of int32, without sparsity.
	Int8 float64
	// Launch is what a kernel costs besides its own time, in seconds, where launches follow each other.
	Launch float64

	// What an SM has for the blocks on it, and the units in which that is given away: registers in units for a warp, whose number is rounded
	// up to WarpUnit; shared memory in bytes, with SharedReserved for each block besides its own.
	Threads, Blocks, Registers, RegisterUnit, WarpUnit, Shared, SharedUnit, SharedReserved int64
}

//go:embed machines.tsv
var machinesTSV string

// Machines are those of machines.tsv, in its order.
var Machines = sync.OnceValue(func() []*Machine {
	ms, err := readMachines(machinesTSV)
	if err != nil {
		panic("cost: machines.tsv: " + err.Error()) // a test reads it
	}
	return ms
})

func readMachines(text string) ([]*Machine, error) {
	var out []*Machine
	seen := map[string]bool{}
	for i, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[3] == "" {
			return nil, fmt.Errorf("line %d has not a machine, a figure, its value and its source", i+2)
		}
		if len(out) == 0 || out[len(out)-1].Name != f[0] {
			out = append(out, &Machine{Name: f[0]})
		}
		m := out[len(out)-1]
		if seen[f[0]+" "+f[1]] {
			return nil, fmt.Errorf("line %d: %s has its %s twice", i+2, f[0], f[1])
		}
		seen[f[0]+" "+f[1]] = true
		if f[1] == "target" {
			m.Target = f[2]
			continue
		}
		x, err := strconv.ParseFloat(f[2], 64)
		if err != nil || !(x > 0) {
			return nil, fmt.Errorf("line %d: %q is no figure above 0", i+2, f[2])
		}
		switch real, whole := m.reals()[f[1]], m.wholes()[f[1]]; {
		case real != nil:
			*real = x
		case whole != nil && x == float64(int64(x)):
			*whole = int64(x)
		default:
			return nil, fmt.Errorf("line %d: figure %s = %s", i+2, f[1], f[2])
		}
	}
	for _, m := range out {
		for name := range m.reals() {
			if !seen[m.Name+" "+name] {
				return nil, fmt.Errorf("%s has no %s", m.Name, name)
			}
		}
		for name := range m.wholes() {
			if !seen[m.Name+" "+name] {
				return nil, fmt.Errorf("%s has no %s", m.Name, name)
			}
		}
		if m.Target == "" {
			return nil, fmt.Errorf("%s has no target", m.Name)
		}
	}
	return out, nil
}

func (m *Machine) reals() map[string]*float64 {
	return map[string]*float64{"bandwidth": &m.Bandwidth, "f32": &m.F32, "f64": &m.F64, "f16": &m.F16, "tf32": &m.TF32, "int8": &m.Int8, "launch": &m.Launch}
}

func (m *Machine) wholes() map[string]*int64 {
	return map[string]*int64{"sms": &m.SMs, "l2": &m.L2, "l1": &m.L1, "threads": &m.Threads, "blocks": &m.Blocks, "registers": &m.Registers,
		"register_unit": &m.RegisterUnit, "warp_unit": &m.WarpUnit, "shared": &m.Shared, "shared_unit": &m.SharedUnit, "shared_reserved": &m.SharedReserved}
}

const warp = 32

// Resident is the number of blocks that an SM has at a time, at most: by threads, by registers a thread (0 is not known, and bounds
// nothing) and by shared memory in bytes a block. It is 0 if there is no room for one. The formula is that of NVIDIA's CUDA
// Occupancy Calculator.
func (m *Machine) Resident(threads, registers, shared int64) int64 {
	warps := (threads + warp - 1) / warp
	n := min(m.Blocks, m.Threads/warp/warps)
	if registers > 0 {
		perWarp := (registers*warp + m.RegisterUnit - 1) / m.RegisterUnit * m.RegisterUnit
		held := m.Registers / perWarp / m.WarpUnit * m.WarpUnit // warps
		n = min(n, held/warps)
	}
	room := (shared + m.SharedReserved + m.SharedUnit - 1) / m.SharedUnit * m.SharedUnit
	return min(n, m.Shared/room)
}

// Occupancy is the part of the threads that an SM can have which are there, from 0 to 1. Arguments are those of Resident.
func (m *Machine) Occupancy(threads, registers, shared int64) float64 {
	warps := (threads + warp - 1) / warp
	return float64(m.Resident(threads, registers, shared)*warps) / float64(m.Threads/warp)
}
