// The gpureport command tells what the kernels of codegen/gpu cost, by count and without a GPU: the tables of codegen/gpu/README.md.
//
//	go run ./tools/measure/gpureport                      # the tables, two minutes
//	go run ./tools/measure/gpureport --suite products     # one of them
//	go run ./tools/measure/gpureport --json
//	go run ./tools/measure/gpureport --write codegen/gpu/README.md
//	go run ./tools/measure/gpureport --time [--pytorch FILE]   # on a machine with an NVIDIA GPU: writes times.tsv, which the tables show beside the counts
//
// Counts and models are those of package codegen/gpu/cost. The registers of kernels are in registers.tsv; ATON_PTXAS names an assembler that
// tells them anew.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/aton-project/aton/backend/atomicfile"
	"github.com/aton-project/aton/codegen/gpu/cost"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/plan"
)

func main() {
	suite := flag.String("suite", "", "only the table of this name")
	asJSON := flag.Bool("json", false, "print all counts as JSON")
	write := flag.String("write", "", "put the tables between the markers of this file")
	timed := flag.Bool("time", false, "run the kernels on the first GPU, and write their times to "+timesFile)
	pytorch := flag.String("pytorch", "", "with --time: a file of PyTorch's times, as tools/measure/gpureport/torchtimes.py prints them")
	flag.Parse()
	if *timed {
		if err := writeTimes(*pytorch); err != nil {
			fmt.Fprintln(os.Stderr, "gpureport:", err)
			os.Exit(1)
		}
		return
	}
	if err := run(os.Stdout, *suite, *asJSON, *write); err != nil {
		fmt.Fprintln(os.Stderr, "gpureport:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, only string, asJSON bool, write string) error {
	if write != "" && (only != "" || asJSON) {
		return fmt.Errorf("--write puts all tables into the file, as Markdown")
	}
	regs, err := readRegisters()
	if err != nil {
		return err
	}
	var tables []*table
	for _, s := range suites() {
		if only != "" && only != s.name {
			continue
		}
		t, err := measure(s, regs)
		if err != nil {
			return err
		}
		tables = append(tables, t)
	}
	if len(tables) == 0 {
		return fmt.Errorf("there is no table %q", only)
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(tables)
	}
	text := markdown(tables)
	if only == "" {
		t, err := readTimes(timesTSV)
		if err != nil {
			return err
		}
		text += t.table(tables)
	}
	if write == "" {
		_, err := io.WriteString(w, text)
		return err
	}
	page, err := os.ReadFile(write)
	if err != nil {
		return err
	}
	changed, err := between(string(page), text)
	if err != nil {
		return fmt.Errorf("%s: %w", write, err)
	}
	if err := regs.save(); err != nil {
		return err
	}
	return save(write, changed)
}

// writeTimes times all kernels and saves the table.
func writeTimes(pytorch string) error {
	before, err := readTimes(timesTSV)
	if err != nil {
		return err
	}
	t, err := timeAll(before, pytorch)
	if err != nil {
		return err
	}
	return save(timesFile, t.String())
}

func save(path, text string) error {
	return atomicfile.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

const (
	begin = "<!-- costs: make gpu-report -->\n"
	end   = "<!-- end of costs -->\n"
)

// between puts text between the markers of a page.
func between(page, text string) (string, error) {
	before, rest, ok := strings.Cut(page, begin)
	_, after, also := strings.Cut(rest, end)
	if !ok || !also {
		return "", fmt.Errorf("it has not the lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + text + end + after, nil
}

// table is what was measured of a suite.
type table struct {
	Name  string  `json:"name"`
	Title string  `json:"title"`
	Lines []*line `json:"lines"`
}

// line is what was measured of a workload.
type line struct {
	Name     string `json:"name"`
	Nodes    int    `json:"nodes"`
	Launches int    `json:"launches"`
	// Least is what goes to memory at least if nothing but inputs, weights and outputs does; LaunchLeast the sum of what each launch needs.
	Least       int64 `json:"least_bytes"`
	LaunchLeast int64 `json:"least_bytes_of_launches"`
	// Arena is the memory of temporaries and outputs, Bound the most bytes of them that live at once.
	Arena   int64          `json:"arena_bytes"`
	Bound   int64          `json:"live_bytes"`
	Costs   []*cost.Launch `json:"costs"`
	Skipped []cost.Skipped `json:"skipped,omitempty"`
	Goals   []verdict      `json:"goals"`
	known   bool           // the registers of all kernels are
}

// verdict is what became of a goal.
type verdict struct {
	Goal string  `json:"goal"`
	Most float64 `json:"most"`
	Is   float64 `json:"is"`
	Met  bool    `json:"met"`
}

func measure(s suite, regs *registers) (*table, error) {
	if s.name == "triton" {
		return measureTriton(s, regs)
	}
	t := &table{Name: s.name, Title: s.title}
	var before *line
	for _, c := range s.cases {
		p, err := plan.New(newGraph().built(c.build), fuse.Light)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		l := &line{Name: c.name, known: true}
		for _, n := range p.Nodes {
			if n.Place != plan.Constant {
				l.Nodes++
			}
		}
		for _, s := range p.Steps {
			if s.Launch != nil {
				known, err := regs.know(s.Kernel.Kernel)
				if err != nil {
					return nil, fmt.Errorf("%s: kernel %s: %w", c.name, s.Kernel.Name, err)
				}
				l.known = l.known && known
			}
		}
		l.Costs, l.Skipped, err = cost.Measure(p, nil, cost.Options{Machines: cost.Machines(), Seed: 1, Registers: regs.of})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		l.Launches = len(l.Costs)
		for _, launch := range l.Costs {
			l.LaunchLeast += launch.Least
		}
		sizes, ok := p.BufferSizes(nil)
		if !ok {
			return nil, fmt.Errorf("%s: its sizes are not known", c.name)
		}
		_, l.Arena = p.Allocate(sizes)
		l.Bound = p.LiveBytes(sizes)
		for _, b := range p.Buffers {
			if b.Kind == plan.Temp || b.Kind == plan.Local {
				continue
			}
			n, _ := index.Prod(b.Value.Tensor().Dims).Int()
			l.Least += n * int64(b.Value.DType().Size())
		}
		if s.name != "models" && s.name != "attention" { // operators may need a part of their operands only
			l.Least = l.LaunchLeast
		}
		l.judge(c.goal, before)
		t.Lines = append(t.Lines, l)
		before = l
	}
	return t, nil
}

// sum adds up what the launches ask of a machine.
func (l *line) sum(machine int) (l2, memory int64, seconds float64) {
	for _, c := range l.Costs {
		l2 += c.On[machine].L2
		memory += c.On[machine].Memory
		seconds += c.On[machine].Seconds
	}
	return l2, memory, seconds
}

// conflicts are the bank conflicts of all launches, and the wavefronts that they are part of.
func (l *line) conflicts() (conflicts, wavefronts int64) {
	for _, c := range l.Costs {
		conflicts += c.Counts.Conflicts
		wavefronts += c.Counts.Wavefronts
	}
	return conflicts, wavefronts
}

// judge holds the goals against what was measured; of several machines the worst counts.
func (l *line) judge(g goal, before *line) {
	add := func(name string, most, is float64) {
		if most > 0 {
			l.Goals = append(l.Goals, verdict{name, most, is, is <= most})
		}
	}
	var l2, memory float64
	for i := range cost.Machines() {
		a, b, _ := l.sum(i)
		l2, memory = max(l2, float64(a)/float64(l.Least)), max(memory, float64(b)/float64(l.Least))
	}
	add("L2", g.l2, l2)
	add("memory", g.memory, memory)
	add("launches", float64(g.launches), float64(l.Launches))
	add("arena of bound", g.plan, float64(l.Arena)/float64(max(l.Bound, 1)))
	if before != nil {
		add("arena of the line before", g.growth, float64(l.Arena)/float64(max(before.Arena, 1)))
	}
	if n, waves := l.conflicts(); waves > 0 {
		l.Goals = append(l.Goals, verdict{"conflicts", 0, float64(n), n == 0})
	}
}
