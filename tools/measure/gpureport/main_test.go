package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/cost"
	"github.com/aton-project/aton/codegen/gpu/isa"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/ssa"
)

const page = "../../../codegen/gpu/README.md"

// The tables in the README have the columns and lines of the report, each cell filled: `make gpu-report` writes them.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), begin)
	tables, _, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatal("it has no markers")
	}
	for _, s := range suites() {
		_, rest, ok := strings.Cut(tables, "**"+s.title+"**\n\n")
		if !ok {
			t.Errorf("no table %s", s.title)
			continue
		}
		body, _, _ := strings.Cut(rest, "\n\n")
		lines := strings.Split(strings.TrimSpace(body), "\n")
		cols := columns(s.name)
		var head []string
		for _, c := range cols {
			head = append(head, c.title)
		}
		if want := "| " + strings.Join(head, " | ") + " |"; lines[0] != want {
			t.Errorf("%s: the columns are %s, want %s", s.title, lines[0], want)
		}
		if len(lines) != len(s.cases)+2 {
			t.Errorf("%s: %d lines for %d cases: make gpu-report", s.title, len(lines)-2, len(s.cases))
			continue
		}
		for i, c := range s.cases {
			cells := strings.Split(strings.Trim(lines[i+2], "|"), "|")
			if len(cells) != len(cols) || strings.TrimSpace(cells[0]) != c.name {
				t.Errorf("%s: line %q for %s", s.title, lines[i+2], c.name)
			}
			for k, cell := range cells {
				if strings.TrimSpace(cell) == "" {
					t.Errorf("%s: %s has no %s", s.title, c.name, cols[k].title)
				}
			}
			if asked := c.goal != (goal{}); asked != (strings.Contains(cells[len(cells)-1], "<=")) {
				t.Errorf("%s: %s: goals %s", s.title, c.name, cells[len(cells)-1])
			}
		}
	}
}

// small is a suite of which the counts are plain.
func small(name string) suite {
	return suite{name, "Small", []workload{
		{"Add", one("Add", nil, shape{64, 1024}, shape{64, 1024}), goal{l2: 1.05, memory: 0.5, launches: 1, plan: 1.05}},
		{"two", func(g *graph) []*ssa.Value {
			x := g.op("MatMul", nil, g.f32(128, 128), g.f32(128, 128))
			return []*ssa.Value{g.op("Softmax", nil, x)}
		}, goal{launches: 1, growth: 2}},
	}}
}

func measured(t *testing.T, s suite) *table {
	t.Helper()
	regs, err := readRegisters()
	if err != nil {
		t.Fatal(err)
	}
	regs.ptxas = ""
	tab, err := measure(s, regs)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestMeasure(t *testing.T) {
	tab := measured(t, small("small"))
	add, two := tab.Lines[0], tab.Lines[1]
	if add.Least != 3*64*1024*4 || add.Launches != 1 || add.Nodes != 1 || add.Arena != 64*1024*4 || add.Bound != add.Arena {
		t.Errorf("Add: %+v", add)
	}
	var met []bool
	for _, v := range add.Goals {
		met = append(met, v.Met)
	}
	if len(met) != 4 || !met[0] || met[1] || !met[2] || !met[3] {
		t.Errorf("goals of Add: %+v", add.Goals)
	}
	// a launch reads what another one wrote, which a model need not
	if two.Launches != 2 || two.LaunchLeast != 5*128*128*4 || two.Arena != 2*128*128*4 {
		t.Errorf("two: %+v", two)
	}
	if n := len(two.Goals); n != 3 || two.Goals[0].Met || !two.Goals[1].Met || two.Goals[1].Is != 0.5 || two.Goals[2].Goal != "conflicts" {
		t.Errorf("goals of two: %+v", two.Goals)
	}
	tab = measured(t, small("models"))
	if two := tab.Lines[1]; two.Least != 3*128*128*4 {
		t.Errorf("the least bytes of a model of two nodes: %d", two.Least)
	}
}

func TestMarkdown(t *testing.T) {
	tab := measured(t, small("small"))
	text := markdown([]*table{tab, tab})
	for _, want := range []string{"**Small**\n\n| kernel | blocks | least, MB |", "| Add | 128 | 0.786 | 1.00 | 1.00 | 6.55e-05 |", "L2 <= 1.05: met; memory <= 0.5: **missed**, 1; launches <= 1: met", "launches <= 1: **missed**, 2; "} {
		if strings.Count(text, want) != 2 {
			t.Errorf("not twice %q in\n%s", want, text)
		}
	}
	for _, suite := range []string{"models", "attention"} {
		if text := markdown([]*table{measured(t, small(suite))}); !strings.Contains(text, "arena, MB") {
			t.Errorf("%s: %s", suite, text)
		}
	}
	if _, err := json.Marshal(tab); err != nil {
		t.Error(err)
	}
}

// Each kernel of Triton is one that the simulator reads, of a line of another table.
func TestTriton(t *testing.T) {
	kernels, err := readTriton()
	if err != nil {
		t.Fatal(err)
	}
	if s := tritonSuite(suites()[:6]); len(s.cases) != len(kernels) || len(kernels) < 10 {
		t.Errorf("%d lines for %d kernels", len(s.cases), len(kernels))
	}
	for _, k := range kernels {
		code, err := sim.CountPTX(k.Text, "")
		if err != nil {
			t.Errorf("%s: %v", k.of, err)
			continue
		}
		if widths := code.ParamSizes(); len(widths) != len(k.Args) {
			t.Errorf("%s: %d arguments for %d parameters", k.of, len(k.Args), len(widths))
		}
		if len(k.Registers) != len(cost.Machines()) {
			t.Errorf("%s: registers %v", k.of, k.Registers)
		}
	}
	for _, f := range [][]string{nil, {"", "no.ptx", "1", "1", "0", "", "", "1", "0"}, {"", "add_f32_8192x4096.ptx", "1", "one", "0", "", "", "1", "0"}} {
		if _, err := readTritonLine(f); err == nil {
			t.Errorf("no error for %q", f)
		}
	}
	l := &line{Name: "Add", Least: 64, Costs: []*cost.Launch{
		{Blocks: 2, Threads: 32, Shared: 1024, On: []cost.On{{Registers: 16, Occupancy: 1, L2: 64, Memory: 128}}},
		{Blocks: 4, Threads: 64, Counts: sim.Counts{Instructions: [isa.Classes]int64{isa.Integer: 3e6}}, On: []cost.On{{Registers: 255, Occupancy: 0.125, L2: 96, Memory: 64}}}}}
	text := markdown([]*table{{Name: "triton", Title: "Both", Lines: []*line{l}}})
	if want := "| Add | 2 / 4 | 32 / 64 | 1 / 0 | 16 / 255 | 100 / 12 | 1.00 / 1.50 | 2.00 / 1.00 | 0 / 3 | - / - | - / - |\n"; !strings.HasSuffix(text, want) {
		t.Errorf("%s, want %s", text, want)
	}
}

func TestBetween(t *testing.T) {
	got, err := between("a\n"+begin+"old\n"+end+"z\n", "new\n")
	if want := "a\n" + begin + "new\n" + end + "z\n"; got != want || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := between("a\n"+end+begin, "new\n"); err == nil {
		t.Error("no error for a page without markers")
	}
	if err := run(&strings.Builder{}, "nothing", false, ""); err == nil || !strings.Contains(err.Error(), "no table") {
		t.Errorf("error %v", err)
	}
	if err := run(&strings.Builder{}, "models", false, page); err == nil || !strings.Contains(err.Error(), "all tables") {
		t.Errorf("error %v", err)
	}
}

// The table of registers is written as it was read, without kernels that are gone.
func TestRegisters(t *testing.T) {
	r, err := readRegisters()
	if err != nil {
		t.Fatal(err)
	}
	r.ptxas = ""
	r.table["k_gone"] = []int64{1, 2, 3}
	for name := range r.table {
		r.seen[name] = name != "k_gone"
	}
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Dir(registersFile), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := r.save(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(registersFile); err != nil || string(text) != registersTSV {
		t.Errorf("%v: %s", err, text)
	}
	if len(r.table) < 20 {
		t.Errorf("%d kernels", len(r.table))
	}
	if n := strings.Count(r.header(), "\t"); n != len(cost.Machines()) {
		t.Errorf("%d machines", n)
	}
}

// The times name lines of the tables, have a time of ours for each, and are written as they are read.
func TestTimes(t *testing.T) {
	got, err := readTimes(timesTSV)
	if err != nil {
		t.Fatal(err)
	}
	if text := got.String(); text != timesTSV {
		t.Errorf("times.tsv is not as it would be written:\n%s", text)
	}
	for _, s := range suites() {
		for _, c := range s.cases {
			if us := got.lines[c.name]; us == nil || us[ours] <= 0 || s.name == "triton" && us[tritons] <= 0 {
				t.Errorf("%s has no time", c.name)
			}
		}
	}
	for _, bad := range []string{"", "# GPU, driver 13.0\nkernel\n", "# GPU, driver 13.0\n" + timesHeader + "\nAdd\t1\t2\n", "# GPU, driver 13.0\n" + timesHeader + "\nAdd\t1\tNaN\t2\n"} {
		if _, err := readTimes(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
	tab := measured(t, small("small"))
	got.device, got.lines = "NVIDIA H200", map[string]*[3]float64{"Add": {ours: 10, tritons: 0.5}}
	if text := got.table([]*table{tab}); !strings.Contains(text, "| Add | 1 | 10.0 |") || !strings.Contains(text, "| 0.5 | - |\n") {
		t.Errorf("the table is\n%s", text)
	}
}
