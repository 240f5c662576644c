package main

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/cost"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
)

//go:embed triton/*.ptx triton/launches.tsv
var tritonFiles embed.FS

// tritonMachine is the one that Triton's kernels are compiled for.
const tritonMachine = "A100"

// tritonKernel is a line of triton/launches.tsv, which triton/kernels.py writes.
type tritonKernel struct {
	of string // the line of the other tables that computes the same
	cost.PTX
}

func readTriton() ([]tritonKernel, error) {
	text, err := tritonFiles.ReadFile("triton/launches.tsv")
	if err != nil {
		return nil, err
	}
	var out []tritonKernel
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		k, err := readTritonLine(strings.Split(line, "\t"))
		if err != nil {
			return nil, fmt.Errorf("triton/launches.tsv: line %d: %w", i+2, err)
		}
		out = append(out, k)
	}
	return out, nil
}

func readTritonLine(f []string) (k tritonKernel, err error) {
	if len(f) != 9 {
		return k, fmt.Errorf("%d columns, not 9", len(f))
	}
	number := func(s string) uint64 {
		n, e := strconv.ParseUint(s, 10, 63)
		if e != nil && err == nil {
			err = fmt.Errorf("%q is no number", s)
		}
		return n
	}
	k.of = f[0]
	text, e := tritonFiles.ReadFile("triton/" + f[1])
	if e != nil {
		return k, e
	}
	k.Text = string(text)
	for i, s := range strings.SplitN(f[2], "x", 3) {
		k.Grid[i] = int(number(s))
	}
	k.Threads, k.Dynamic = int64(number(f[3])), int64(number(f[4]))
	for _, s := range strings.Fields(f[5]) {
		var a cost.PTXArg
		if bits, ok := strings.CutPrefix(s, "="); ok {
			a.Bits = number(bits)
		} else {
			s, a.Writes = strings.CutSuffix(s, "!")
			a.Bytes = int64(number(s))
		}
		k.Args = append(k.Args, a)
	}
	for _, s := range strings.Fields(f[7]) {
		k.Registers = append(k.Registers, int64(number(s)))
	}
	return k, err
}

// tritonSuite has the lines of other tables for which there is a kernel of Triton.
func tritonSuite(others []suite) suite {
	s := suite{name: "triton", title: "Beside kernels of Triton, on an A100"}
	kernels, err := readTriton()
	if err != nil {
		panic("gpureport: " + err.Error()) // a test reads them
	}
	for _, k := range kernels {
		for _, other := range others {
			for _, c := range other.cases {
				if c.name == k.of {
					s.cases = append(s.cases, workload{name: c.name, build: c.build})
				}
			}
		}
	}
	return s
}

// measureTriton counts our kernels and Triton's, both as PTX.
func measureTriton(s suite, regs *registers) (*table, error) {
	kernels, err := readTriton()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(cost.Machines(), func(m *cost.Machine) bool { return m.Name == tritonMachine })
	o := cost.Options{Machines: cost.Machines()[at : at+1], Seed: 1, Budget: 1 << 40}
	t := &table{Name: s.name, Title: s.title}
	for _, c := range s.cases {
		p, err := plan.New(newGraph().built(c.build), fuse.Light)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		l := &line{Name: c.name, known: true}
		ours, err := cost.PTXOf(p, regs.of, o.Machines)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		theirs := kernels[slices.IndexFunc(kernels, func(k tritonKernel) bool { return k.of == c.name })].PTX
		theirs.Registers = theirs.Registers[at : at+1]
		for _, k := range []cost.PTX{ours, theirs} {
			launch, err := cost.MeasurePTX(k, o)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			l.Costs = append(l.Costs, launch)
		}
		l.Launches, l.Least = len(l.Costs), l.Costs[0].Least
		t.Lines = append(t.Lines, l)
	}
	return t, nil
}

// tritonColumns have two figures each, ours and Triton's.
func tritonColumns() []column {
	both := func(title string, f func(l *line, c *cost.Launch) string) column {
		return column{title, func(l *line) string { return f(l, l.Costs[0]) + " / " + f(l, l.Costs[1]) }}
	}
	return []column{
		{"kernel, ours / Triton's", func(l *line) string { return l.Name }},
		both("blocks", func(_ *line, c *cost.Launch) string { return fmt.Sprint(c.Blocks) }),
		both("threads", func(_ *line, c *cost.Launch) string { return fmt.Sprint(c.Threads) }),
		both("shared, KiB", func(_ *line, c *cost.Launch) string { return fmt.Sprintf("%.3g", float64(c.Shared)/1024) }),
		both("registers", func(_ *line, c *cost.Launch) string { return fmt.Sprint(c.On[0].Registers) }),
		both("occupancy, %", func(_ *line, c *cost.Launch) string { return fmt.Sprintf("%.0f", 100*c.On[0].Occupancy) }),
		both("L2 / least", func(l *line, c *cost.Launch) string { return ratio(c.On[0].L2, l.Least) }),
		both("memory / least", func(l *line, c *cost.Launch) string { return ratio(c.On[0].Memory, l.Least) }),
		both("10^6 instructions", func(_ *line, c *cost.Launch) string {
			n := int64(0)
			for _, k := range c.Counts.Instructions {
				n += k
			}
			return fmt.Sprintf("%.0f", float64(n)/1e6)
		}),
		both("conflicts", func(_ *line, c *cost.Launch) string { return percent(c.Counts.Conflicts, c.Counts.Wavefronts) }),
		both("uncoalesced", func(_ *line, c *cost.Launch) string {
			return percent(c.Counts.Sectors-c.Counts.LeastSectors, c.Counts.Sectors)
		}),
	}
}
