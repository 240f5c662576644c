package cost

import (
	"errors"
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// PTX is a kernel as text, wherever it comes from, and how it is launched.
type PTX struct {
	// Name is that of the entry.
	Name string
	Text string
	Grid [3]int
	// Threads are those of a block, Dynamic the bytes of shared memory that it gets besides those that the text declares.
	Threads, Dynamic int64
	Args             []PTXArg
	// Registers are those of a thread, by the machines of the options, 0 where they are not known.
	Registers []int64
}

// PTXArg is an argument: a buffer of so many bytes, which the kernel may write, or the bits of a number where there are none.
type PTXArg struct {
	Bytes  int64
	Writes bool
	Bits   uint64
}

// MeasurePTX counts a launch as Measure does, but for the time, since text does not tell the type of what is computed.
func MeasurePTX(k PTX, o Options) (*Launch, error) {
	code, err := sim.CountPTX(k.Text, k.Name)
	if err != nil {
		return nil, err
	}
	if len(k.Registers) != len(o.Machines) {
		return nil, fmt.Errorf("registers of %d machines, not %d", len(k.Registers), len(o.Machines))
	}
	m := &measure{Options: o.filled(), grid: k.Grid, blocks: 1, threads: k.Threads, dynamic: k.Dynamic}
	for _, n := range k.Grid {
		m.blocks *= int64(max(n, 1))
	}
	for _, a := range k.Args {
		if a.Bytes > 0 {
			m.sizes, m.writes, m.buffers = append(m.sizes, a.Bytes), append(m.writes, a.Writes), append(m.buffers, len(m.args))
		}
		m.args = append(m.args, sim.Arg{Bits: a.Bits})
	}
	l := &Launch{Node: k.Name, Kernel: k.Name, Class: "ptx", Blocks: m.blocks, Threads: k.Threads, Shared: int64(code.StaticShared()) + k.Dynamic}
	for i, machine := range o.Machines {
		if err := l.place(machine, k.Registers[i]); err != nil {
			return nil, err
		}
	}
	if err := m.count(l, code); err != nil {
		return nil, err
	}
	return l, m.follow(l, code.Accesses())
}

// PTXOf is the only launch of a plan of fixed sizes, as text. The registers are those of Options.Registers.
func PTXOf(p *plan.Plan, registers func(k *kir.Kernel, m *Machine) (int64, error), machines []*Machine) (PTX, error) {
	var m *measure
	for _, s := range p.Steps {
		if s.Launch == nil {
			continue
		}
		if m != nil {
			return PTX{}, errors.New("it has several launches")
		}
		m = &measure{step: s}
	}
	if m == nil || !m.sized() {
		return PTX{}, errors.New("it has no launch of fixed size")
	}
	kernel := m.step.Kernel.Kernel
	text, err := ptx.Print(kernel, ptx.Options{})
	if err != nil {
		return PTX{}, err
	}
	out := PTX{Name: kernel.Name, Text: text, Grid: m.grid, Threads: m.threads}
	for _, a := range m.args {
		out.Args = append(out.Args, PTXArg{Bits: a.Bits})
	}
	for n, i := range m.buffers {
		out.Args[i] = PTXArg{Bytes: m.sizes[n], Writes: m.writes[n]}
	}
	for _, machine := range machines {
		n, err := registers(kernel, machine)
		if err != nil {
			return PTX{}, err
		}
		out.Registers = append(out.Registers, n)
	}
	return out, nil
}
