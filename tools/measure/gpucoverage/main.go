// The gpucoverage command tells which operators of PyTorch's traced cases (go doc ./tools/lib/cases) run on kernels of codegen/gpu, and which
// on the host: a table of the suites, and one of the operators that have host steps.
//
//	go run ./tools/measure/gpucoverage --cases out/cases
//	go run ./tools/measure/gpucoverage --cases out/cases --filter 'nn/(lstm|gru)' --list
//	go run ./tools/measure/gpucoverage --cases out/cases --run
//	go run ./tools/measure/gpucoverage --cases out/cases --suites models --forms trace,script --run
//	go run ./tools/measure/gpucoverage --cases out/cases --run --device cuda --part 1/8
//
//	go run ./tools/measure/gpucoverage --operators
//	go run ./tools/measure/gpucoverage --layers DIR [--filter RE] [--opsets 18,23]
//
// --layers tells how many launches models have, the exported programs (.pt2) of a folder: those of the layer that has the most, by the first number
// in a module's path, and those of all; and what the memory plan takes.
//
// A case is whole if no node of its graph is a host step. It is planned without fusion, so that every node stands for itself; --run
// executes it too, fused and node by node, in the simulator with all its checkers or on the first GPU, and compares outputs with PyTorch's and each
// node with the interpreter. A driver compiles the kernels of a process one after another, so a GPU is filled by several processes, each with a part of
// the cases.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/aton-project/aton"
	"github.com/aton-project/aton/codegen/gpu/cuda"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cases"
	"github.com/aton-project/aton/verify"
	"github.com/aton-project/aton/verify/device"
)

type options struct {
	cases, suites, filter string
	forms                 string
	layers, opsets        string
	run, list, operators  bool
	device, part          string
	jobs                  int
	budget                int64
}

func main() {
	var o options
	flag.StringVar(&o.cases, "cases", filepath.Join("out", "cases"), "the folder with the suites")
	flag.StringVar(&o.suites, "suites", "nn,opinfo,indexing", "the suites, with commas")
	flag.StringVar(&o.filter, "filter", "", "only cases whose SUITE/ID, or models whose name, matches this regular expression")
	flag.StringVar(&o.forms, "forms", "trace", "trace, script, or both with a comma: how the cases were made")
	flag.BoolVar(&o.run, "run", false, "run the cases in the simulator too, and compare")
	flag.StringVar(&o.device, "device", "sim", "what --run runs the cases on: sim or cuda")
	flag.StringVar(&o.part, "part", "1/1", "only part K of N of the cases, as K/N")
	flag.BoolVar(&o.list, "list", false, "list the cases that are not whole")
	flag.BoolVar(&o.operators, "operators", false, "tell of each operator how it runs, and of no case")
	flag.Int64Var(&o.budget, "budget", 1, "how many times 17 thousand million instructions the simulator may run for a case")
	flag.IntVar(&o.jobs, "jobs", runtime.NumCPU(), "cases at a time")
	flag.StringVar(&o.layers, "layers", "", "tell how many launches the models (.pt2) of this folder have, and of no case")
	flag.StringVar(&o.opsets, "opsets", "18,23", "the opsets for which --layers tells it, with commas")
	flag.Parse()
	if o.layers != "" {
		if err := showLayers(os.Stdout, o.layers, o.filter, o.opsets); err != nil {
			fmt.Fprintln(os.Stderr, "gpucoverage:", err)
			os.Exit(1)
		}
		return
	}
	if o.operators {
		fmt.Print(operators())
		return
	}
	bad, err := report(os.Stdout, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpucoverage:", err)
		os.Exit(1)
	}
	if bad > 0 {
		os.Exit(1)
	}
}

// operators are lines of how each operator runs: those of a kind, and each of the others with the reason why the host runs it.
func operators() string {
	var b strings.Builder
	groups, host := map[string][]string{}, map[string][]string{}
	count := 0
	for _, name := range onnx.Names() {
		k := ssa.Kind(onnx.Namespace + "::" + name)
		if strings.Contains(name, "::") {
			k = ssa.Kind(name)
		}
		how, what := plan.Way(k)
		count++
		switch how {
		case plan.Host:
			domain, _, other := strings.Cut(name, "::")
			if other {
				what, name = "no kernels for operators of "+domain, strings.TrimPrefix(name, domain+"::")
			}
			host[what] = append(host[what], name)
		case plan.Device:
			groups["kernels of class "+what] = append(groups["kernels of class "+what], name)
		default:
			groups[strings.TrimSpace(string(how)+" "+what)] = append(groups[strings.TrimSpace(string(how)+" "+what)], name)
		}
	}
	fmt.Fprintf(&b, "| %d operators | how |\n|---|---|\n", count)
	for _, list := range []map[string][]string{groups, host} {
		for _, how := range slices.Sorted(maps.Keys(list)) {
			text := how
			if _, there := groups[how]; !there {
				text = "host: " + how
			}
			fmt.Fprintf(&b, "| %s | %s |\n", strings.Join(list[how], ", "), text)
		}
	}
	return b.String()
}

// outcome is what became of a case.
type outcome struct {
	suite, id string
	refused   bool           // no graph, or inputs that are no tensors
	nodes     int            // without constants
	host      map[string]int // host steps, by operator
	reasons   map[string]string
	wrong     string // of a case that was run
	costly    bool   // beyond the simulator's budget
}

// report prints the tables, and counts the cases that were run and are wrong.
func report(w io.Writer, o options) (bad int, err error) {
	match, err := regexp.Compile(o.filter)
	if err != nil {
		return 0, err
	}
	var dirs []string
	for _, suite := range strings.Split(o.suites, ",") {
		for _, form := range strings.Split(o.forms, ",") {
			found, err := filepath.Glob(filepath.Join(o.cases, suite, "*."+form))
			if err != nil {
				return 0, err
			}
			for _, dir := range found {
				if match.MatchString(suite + "/" + filepath.Base(dir)) {
					dirs = append(dirs, dir)
				}
			}
		}
	}
	dirs, err = part(dirs, o.part)
	if err != nil {
		return 0, err
	}
	backend, closeDevice, err := o.open()
	if err != nil {
		return 0, err
	}
	defer closeDevice()
	if len(dirs) == 0 {
		return 0, fmt.Errorf("%s has no such cases of %s that match %q: name a folder with --cases (make cases makes one)", o.cases, o.suites, o.filter)
	}
	results := make([]outcome, len(dirs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range max(o.jobs, 1) {
		wg.Go(func() {
			for i := range next {
				results[i] = try(dirs[i], o, backend)
			}
		})
	}
	for i := range dirs {
		next <- i
	}
	close(next)
	wg.Wait()
	return show(w, results, o)
}

// part is every Nth case from the Kth on.
func part(dirs []string, which string) ([]string, error) {
	var k, n int
	if _, err := fmt.Sscanf(which, "%d/%d", &k, &n); err != nil || k < 1 || k > n {
		return nil, fmt.Errorf("--part %s: it is K/N with K from 1 to N", which)
	}
	var out []string
	for i := k - 1; i < len(dirs); i += n {
		out = append(out, dirs[i])
	}
	return out, nil
}

// open gives the device that runs a case.
func (o options) open() (backend func() exec.Backend, closeDevice func(), err error) {
	switch o.device {
	case "sim":
		return func() exec.Backend { return &exec.Sim{Check: true, Budget: o.budget << 34} }, func() {}, nil
	case "cuda":
		d, err := cuda.Open()
		if err != nil {
			return nil, nil, err
		}
		return func() exec.Backend { return d }, func() { _ = d.Close() }, nil
	}
	return nil, nil, fmt.Errorf("--device %s: it is sim or cuda", o.device)
}

// try plans a case, and runs it if asked to.
func try(dir string, o options, backend func() exec.Backend) outcome {
	r := outcome{suite: filepath.Base(filepath.Dir(dir)), id: filepath.Base(dir), host: map[string]int{}, reasons: map[string]string{}}
	c, err := cases.Read(dir)
	if err != nil {
		r.wrong = err.Error()
		return r
	}
	opts, err := c.LoadOptions(cases.Archive)
	if err != nil {
		r.refused = true
		return r
	}
	m, err := aton.Load(filepath.Join(dir, string(cases.Archive)), opts)
	if err == nil {
		_, err = aton.Convert(m, aton.ConvertOptions{})
	}
	if err != nil {
		r.refused = true
		return r
	}
	p, err := plan.New(m, fuse.None)
	if err != nil {
		r.refused = true
		return r
	}
	for _, n := range p.Nodes {
		if n.Place != plan.Constant {
			r.nodes++
		}
		if n.Place == plan.Host {
			name := n.Op.Kind.Name()
			r.host[name]++
			r.reasons[name] = n.Reason
		}
	}
	if !o.run {
		return r
	}
	var wrong []string
	for _, d := range c.DataSets {
		set, err := d.Read(c)
		if err != nil {
			wrong = append(wrong, err.Error())
			break
		}
		if !fits(m, set) {
			continue
		}
		v := verify.Verifier{Tolerance: c.Tolerance()}
		on, err := device.Verify(v, m, set, device.Options{Backend: backend(), Nodes: true})
		if errors.Is(err, sim.ErrBudget) {
			r.costly = true
			break
		} else if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", d.Dir, err))
			continue
		}
		if on.Node != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %s", d.Dir, on.Node))
		}
		plain, err := v.Verify(m, set)
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", d.Dir, err))
			continue
		}
		for i, out := range on.Outputs {
			if out.Wrong != "" && plain[i].Wrong == "" { // the interpreter is no better where the export is not PyTorch's
				wrong = append(wrong, fmt.Sprintf("%s, output %s: %s", d.Dir, out.Name, out.Wrong))
			}
		}
	}
	r.wrong = strings.Join(wrong, "\n")
	return r
}

// fits reports inputs of the sizes that the graph is for: some cases have a second data set to show that it is not for others.
func fits(m *ssa.Module, set verify.DataSet) bool {
	for _, p := range m.Main().Body.Params {
		for _, in := range set.Inputs {
			t := p.Tensor()
			if in.Name != p.Name || t == nil || !t.Ranked {
				continue
			}
			if len(t.Dims) != len(in.Tensor.Shape) {
				return false
			}
			for i, d := range t.Dims {
				if n, known := d.Int(); known && n != in.Tensor.Shape[i] {
					return false
				}
			}
		}
	}
	return true
}

func show(w io.Writer, results []outcome, o options) (bad int, err error) {
	type suite struct{ cases, whole, nodes, device int }
	type operator struct {
		name                string
		nodes, cases, alone int
		reasons             map[string]int
	}
	suites, operators := map[string]*suite{}, map[string]*operator{}
	var order []string
	total := &suite{}
	refused, costly := 0, 0
	for _, r := range results {
		if r.wrong != "" {
			bad++
			fmt.Fprintf(w, "WRONG %s/%s: %s\n", r.suite, r.id, r.wrong)
		}
		if r.costly {
			costly++
		}
		if r.refused {
			refused++
			continue
		}
		s := suites[r.suite]
		if s == nil {
			s = &suite{}
			suites[r.suite] = s
			order = append(order, r.suite)
		}
		host := 0
		for name, n := range r.host {
			host += n
			op := operators[name]
			if op == nil {
				op = &operator{name: name, reasons: map[string]int{}}
				operators[name] = op
			}
			op.nodes += n
			op.cases++
			op.reasons[r.reasons[name]]++
			if len(r.host) == 1 {
				op.alone++
			}
		}
		for _, s := range []*suite{s, total} {
			s.cases++
			s.nodes += r.nodes
			s.device += r.nodes - host
			if host == 0 {
				s.whole++
			}
		}
		if o.list && host > 0 {
			names := []string{}
			for name := range r.host {
				names = append(names, name+" ("+r.reasons[name]+")")
			}
			sort.Strings(names)
			fmt.Fprintf(w, "%s/%s: %s\n", r.suite, r.id, strings.Join(names, ", "))
		}
	}
	t := tabwriter.NewWriter(w, 2, 8, 2, ' ', 0)
	fmt.Fprintln(t, "suite\tcases\twithout a host step\t\tnodes\ton the device\t")
	line := func(name string, s *suite) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%.1f %%\t%d\t%.1f %%\t\n", name, s.cases, s.whole, percent(s.whole, s.cases), s.nodes, percent(s.device, s.nodes))
	}
	for _, name := range order {
		line(name, suites[name])
	}
	line("all", total)
	if err := t.Flush(); err != nil {
		return bad, err
	}
	fmt.Fprintf(w, "%d more are not exported, or have inputs that are no tensors\n", refused)
	if o.run {
		fmt.Fprintf(w, "run on %s: %d wrong, %d beyond its budget\n", o.device, bad, costly)
	}
	if len(operators) == 0 {
		return bad, nil
	}
	var ops []*operator
	for _, op := range operators {
		ops = append(ops, op)
	}
	slices.SortFunc(ops, func(a, b *operator) int {
		if a.cases != b.cases {
			return b.cases - a.cases
		}
		return strings.Compare(a.name, b.name)
	})
	fmt.Fprintln(t, "\non the host\tcases\tno other there\tnodes\twhy, most often\t")
	for _, op := range ops {
		why := ""
		for r, n := range op.reasons {
			if n > op.reasons[why] || n == op.reasons[why] && r < why {
				why = r
			}
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%s\t\n", op.name, op.cases, op.alone, op.nodes, why)
	}
	return bad, t.Flush()
}

func percent(n, of int) float64 {
	if of == 0 {
		return 100
	}
	return 100 * float64(n) / float64(of)
}
