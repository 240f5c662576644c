package main

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/cost"
	"github.com/aton-project/aton/codegen/gpu/cuda"
	"github.com/aton-project/aton/codegen/gpu/driver"
	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

//go:embed times.tsv
var timesTSV string

// timesFile is where the times stand, from the root of the repository.
var timesFile = filepath.Join("tools", "measure", "gpureport", "times.tsv")

// times are microseconds by device and line: of our kernels, of Triton's and of PyTorch's. A zero is unknown.
type times struct {
	device, driver string
	lines          map[string]*[3]float64
}

const (
	ours = iota
	tritons
	pytorchs
)

var timesHeader = "kernel\taton, us\tTriton, us\tPyTorch, us"

// readTimes reads the table: a line that names the device, the header, and one line a kernel.
func readTimes(text string) (*times, error) {
	t := &times{lines: map[string]*[3]float64{}}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var ok bool
	if t.device, t.driver, ok = strings.Cut(strings.TrimPrefix(lines[0], "# "), ", driver "); !ok || len(lines) < 2 || lines[1] != timesHeader {
		return nil, fmt.Errorf("times.tsv: its first lines are not the device and %q", timesHeader)
	}
	for i, s := range lines[2:] {
		f := strings.Split(s, "\t")
		if len(f) != 4 {
			return nil, fmt.Errorf("times.tsv: line %d has %d columns", i+3, len(f))
		}
		var us [3]float64
		for k := range us {
			v, err := strconv.ParseFloat(f[k+1], 64)
			if err != nil || !(v >= 0) {
				return nil, fmt.Errorf("times.tsv: line %d: %q microseconds", i+3, f[k+1])
			}
			us[k] = v
		}
		t.lines[f[0]] = &us
	}
	return t, nil
}

func (t *times) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, driver %s\n%s\n", t.device, t.driver, timesHeader)
	for _, s := range suites() {
		for _, c := range s.cases {
			if us := t.lines[c.name]; us != nil && s.name != "triton" {
				fmt.Fprintf(&b, "%s\t%.1f\t%.1f\t%.1f\n", c.name, us[ours], us[tritons], us[pytorchs])
			}
		}
	}
	return b.String()
}

// stopwatch is a GPU that times each launch: the median of several, each behind the writing of a buffer larger than the L2 cache.
type stopwatch struct {
	*cuda.Backend
	dev    *driver.Device
	flush  driver.Memory
	micros float64 // of the launches so far
	count  int
}

const (
	flushBytes = 512 << 20
	repeats    = 11
)

// time is the median time of a launch, in microseconds. The device is busy with the buffer while the launch comes, so that no time of the host is in it.
func (w *stopwatch) time(launch func() error) (float64, error) {
	if err := launch(); err != nil {
		return 0, err
	}
	var all []float64
	for range repeats {
		if err := w.dev.Clear(w.flush, 0, flushBytes); err != nil {
			return 0, err
		}
		ms, err := w.dev.Time(launch)
		if err != nil {
			return 0, err
		}
		all = append(all, 1000*float64(ms))
	}
	slices.Sort(all)
	return all[repeats/2], nil
}

// Launch launches a kernel as often as it is timed.
func (w *stopwatch) Launch(k exec.Kernel, grid [3]int, args []exec.Arg) (exec.Stats, error) {
	us, err := w.time(func() error {
		_, err := w.Backend.Launch(k, grid, args)
		return err
	})
	w.micros += us
	w.count++
	return exec.Stats{}, err
}

// timeAll times the kernels of all tables on the first GPU of this machine, and those of Triton. PyTorch's times are taken over from before if the
// device is the same; tools/measure/gpureport/torchtimes.py makes them.
func timeAll(before *times, pytorch string) (*times, error) {
	d, err := driver.Open(0)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	w := &stopwatch{Backend: cuda.On(d), dev: d}
	if w.flush, err = d.Alloc(flushBytes); err != nil {
		return nil, err
	}
	t := &times{device: d.Info.Name, driver: fmt.Sprintf("%d.%d", d.Info.Driver/1000, d.Info.Driver%1000/10), lines: map[string]*[3]float64{}}
	for _, s := range suites() {
		if s.name == "triton" {
			continue
		}
		for _, c := range s.cases {
			us, err := w.workload(c)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			t.lines[c.name] = &[3]float64{ours: us}
			fmt.Fprintf(os.Stderr, "%-60s %10.1f us\n", c.name, us)
		}
	}
	kernels, err := readTriton()
	if err != nil {
		return nil, err
	}
	for _, k := range kernels {
		us, err := w.triton(k)
		if err != nil {
			return nil, fmt.Errorf("kernel of Triton, %s: %w", k.of, err)
		}
		t.lines[k.of][tritons] = us
		fmt.Fprintf(os.Stderr, "%-60s %10.1f us\n", "Triton: "+k.of, us)
	}
	return t, t.takePyTorch(before, pytorch)
}

// takePyTorch takes PyTorch's times from a file of lines with a name and microseconds, or from the times before.
func (t *times) takePyTorch(before *times, file string) error {
	if file == "" {
		for name, us := range t.lines {
			if old := before.lines[name]; old != nil && before.device == t.device {
				us[pytorchs] = old[pytorchs]
			}
		}
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		name, number, _ := strings.Cut(line, "\t")
		us, err := strconv.ParseFloat(number, 64)
		if err != nil || t.lines[name] == nil {
			return fmt.Errorf("%s:%d: %q is no line of the tables with its microseconds", file, i+1, line)
		}
		t.lines[name][pytorchs] = us
	}
	return nil
}

// workload is the time of all launches of a line.
func (w *stopwatch) workload(c workload) (float64, error) {
	m := newGraph().built(c.build)
	p, err := plan.New(m, fuse.Light)
	if err != nil {
		return 0, err
	}
	var args []interp.Value
	for i, v := range m.Main().Body.Params {
		x, err := someOf(v.Tensor(), uint64(i))
		if err != nil {
			return 0, err
		}
		args = append(args, interp.Value{Tensor: x})
	}
	session := exec.NewSession(p, w)
	defer session.Close()
	w.micros, w.count = 0, 0
	if _, _, err := session.Run(args); err != nil {
		return 0, err
	}
	return w.micros, nil
}

// someOf is a tensor of a type with normal numbers, or small integers.
func someOf(t *ssa.TensorType, seed uint64) (*tensor.Tensor, error) {
	var shape []int64
	n := int64(1)
	for _, d := range t.Dims {
		size, known := d.Int()
		if !known {
			return nil, fmt.Errorf("an input of the size %s", d)
		}
		shape = append(shape, size)
		n *= size
	}
	r := rand.New(rand.NewPCG(seed, 1))
	if t.DType.IsFloat() {
		v := make([]float64, n)
		for i := range v {
			v[i] = r.NormFloat64()
		}
		return tensor.FromFloats(t.DType, shape, v), nil
	}
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(r.IntN(2))
	}
	return tensor.FromInts(t.DType, shape, v), nil
}

var entryOf = regexp.MustCompile(`\.entry\s+(\w+)`)

// triton is the time of a kernel of Triton.
func (w *stopwatch) triton(k tritonKernel) (float64, error) {
	module, err := w.dev.Load(k.Text)
	if err != nil {
		return 0, err
	}
	defer func() { _ = module.Unload() }()
	entry := entryOf.FindStringSubmatch(k.Text)
	if entry == nil {
		return 0, errors.New("its text has no entry")
	}
	f, err := module.Function(entry[1])
	if err != nil {
		return 0, err
	}
	var args []driver.Arg
	for i, a := range k.Args {
		if a.Bytes == 0 {
			args = append(args, driver.I64(int64(a.Bits))) // a number of 4 bytes is the low half
			continue
		}
		m, err := w.dev.Alloc(int(a.Bytes))
		if err != nil {
			return 0, err
		}
		defer func() { _ = w.dev.Free(m) }()
		if err := w.dev.Upload(m, 0, normal(a.Bytes, strings.Contains(k.of, "f16"), uint64(i))); err != nil {
			return 0, err
		}
		args = append(args, driver.Ptr(m, 0))
	}
	grid := k.Grid
	for i := range grid {
		grid[i] = max(grid[i], 1)
	}
	return w.time(func() error { return f.Launch(grid, [3]int{int(k.Threads), 1, 1}, int(k.Dynamic), args...) })
}

// normal are the bytes of normal numbers of float32 or float16.
func normal(bytes int64, half bool, seed uint64) []byte {
	d, size := tensor.Float32, int64(4)
	if half {
		d, size = tensor.Float16, 2
	}
	r := rand.New(rand.NewPCG(seed, 2))
	v := make([]float64, bytes/size)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return tensor.FromFloats(d, []int64{bytes / size}, v).Bytes()
}

// table are the times beside what the tables say of the machine whose name the device's contains.
func (t *times) table(tables []*table) string {
	at := slices.IndexFunc(cost.Machines(), func(m *cost.Machine) bool { return strings.Contains(t.device, m.Name) })
	var b strings.Builder
	fmt.Fprintf(&b, "\n**Measured on an %s, CUDA %s**\n\n| kernel | launches | measured, us | roofline, us | roofline / measured | Triton's, us | PyTorch's, us |\n|---|---|---|---|---|---|---|\n", t.device, t.driver)
	known := func(us float64) string {
		switch {
		case us == 0:
			return "-"
		case us < 100:
			return fmt.Sprintf("%.1f", us)
		}
		return fmt.Sprintf("%.0f", us)
	}
	for _, s := range tables {
		if s.Name == "triton" {
			continue
		}
		for _, l := range s.Lines {
			us := t.lines[l.Name]
			if us == nil {
				continue
			}
			roofline, share := "-", "-"
			if at >= 0 {
				_, _, seconds := l.sum(at)
				roofline, share = known(seconds*1e6), fmt.Sprintf("%.0f %%", 100*seconds*1e6/us[ours])
			}
			fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s |\n", l.Name, l.Launches, known(us[ours]), roofline, share, known(us[tritons]), known(us[pytorchs]))
		}
	}
	return b.String()
}
