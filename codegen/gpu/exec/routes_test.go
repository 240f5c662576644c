package exec_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/aton-project/aton/codegen/gpu/exec"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/llvm"
	"github.com/aton-project/aton/codegen/gpu/ptx"
	"github.com/aton-project/aton/codegen/gpu/sim"
)

// routes is the simulator as a backend that runs each kernel from the PTX of our printer and from what llc makes of its LLVM IR,
// and fails on any word that differs. llc runs on one kernel in many, or on all with ATON_ROUTES=all.
type routes struct {
	exec.Sim
}

// count is what the routes of this package's tests did, for TestMain to report.
var count struct {
	sync.Mutex
	kernels, llc int
	used         map[string]bool
	seen         map[string]bool
}

const llcEvery = 25

type routedKernel struct {
	threads int
	own     *sim.Kernel
	ways    []way
	elems   []kir.Type // of the parameters that are buffers
}

type way struct {
	name string
	k    *sim.Kernel
	text string
}

// allLLC looks once.
var allLLC = sync.OnceValue(ptx.AllLLC)

func (r *routes) Load(k *kir.Kernel) (exec.Kernel, error) {
	out := &routedKernel{threads: k.Threads}
	text, err := ptx.Print(k, ptx.Options{})
	if err != nil {
		return nil, err
	}
	if out.own, err = sim.FromPTX(text, k.Name); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	for _, p := range k.Params {
		t := kir.I1
		if p.Mem != nil {
			t = p.Mem.Elem
		}
		out.elems = append(out.elems, t)
	}
	count.Lock()
	if count.seen == nil {
		count.seen, count.used = map[string]bool{}, map[string]bool{}
	}
	again := count.seen[text]
	count.seen[text] = true
	if !again {
		count.kernels++
	}
	compile := !again && (os.Getenv("ATON_ROUTES") == "all" || count.kernels%llcEvery == 1)
	if compile {
		count.llc += len(allLLC())
	}
	count.Unlock()
	if !compile {
		return out, nil
	}
	for _, l := range allLLC() {
		text, err := l.Compile(llvm.Lower(k), ptx.Options{})
		if err != nil {
			return nil, err
		}
		p, err := sim.FromPTX(text, k.Name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w\n%s", l.Path, err, text)
		}
		out.ways = append(out.ways, way{l.Path, p, text})
		count.Lock()
		count.used[l.Path] = true
		count.Unlock()
	}
	return out, nil
}

func (r *routes) launch(k *sim.Kernel, threads int, grid [3]int, args []exec.Arg) (exec.Stats, error) {
	l := sim.Launch{Grid: grid, Block: [3]int{threads, 1, 1}, Check: true}
	for _, a := range args {
		if a.Memory != nil {
			l.Args = append(l.Args, sim.Ptr(sim.NewBuffer(a.Memory.([]byte))))
		} else {
			l.Args = append(l.Args, sim.I32(a.Scalar))
		}
	}
	stats, err := k.Run(l)
	return exec.Stats{LaneInstructions: stats.LaneInstructions}, err
}

func (r *routes) Launch(k exec.Kernel, grid [3]int, args []exec.Arg) (exec.Stats, error) {
	c := k.(*routedKernel)
	before := make([][]byte, len(args))
	for i, a := range args {
		if a.Memory != nil {
			before[i] = bytes.Clone(a.Memory.([]byte))
		}
	}
	stats, err := r.launch(c.own, c.threads, grid, args)
	if err != nil {
		return stats, err
	}
	for _, w := range c.ways {
		copies := make([]exec.Arg, len(args))
		for i, a := range args {
			if copies[i] = a; a.Memory != nil {
				copies[i].Memory = bytes.Clone(before[i])
			}
		}
		if _, err := r.launch(w.k, c.threads, grid, copies); err != nil {
			return stats, fmt.Errorf("%s: %w\n%s", w.name, err, w.text)
		}
		for i, a := range args {
			if a.Memory == nil {
				continue
			}
			x, y := a.Memory.([]byte), copies[i].Memory.([]byte)
			if at := differ(x, y, c.elems[i]); at >= 0 { // LLVM may give any NaN where there is one
				return stats, fmt.Errorf("%s: argument %d differs at byte %d: % x, from the printer % x\n%s", w.name, i, at, y[at:min(at+8, len(y))], x[at:min(at+8, len(x))], w.text)
			}
		}
	}
	return stats, nil
}

// differ finds the first element that is not the same. All NaN are, of a type of floats.
func differ(x, y []byte, t kir.Type) int {
	if bytes.Equal(x, y) {
		return -1
	}
	size, exp := 1, uint64(0)
	switch t {
	case kir.F16:
		size, exp = 2, 0x7c00
	case kir.F32:
		size, exp = 4, 0x7f800000
	case kir.F64:
		size, exp = 8, 0x7ff0000000000000
	}
	for i := 0; i+size <= len(x); i += size {
		var a, b [8]byte
		copy(a[:], x[i:i+size])
		copy(b[:], y[i:i+size])
		u, v := binary.LittleEndian.Uint64(a[:]), binary.LittleEndian.Uint64(b[:])
		magnitude := uint64(1)<<(8*size-1) - 1
		if u != v && (size == 1 || u&magnitude <= exp || v&magnitude <= exp) {
			return i
		}
	}
	return -1
}

func TestMain(m *testing.M) {
	code := m.Run()
	var names []string
	for _, l := range allLLC() {
		if count.used[l.Path] {
			names = append(names, l.Path)
		}
	}
	if count.kernels > 0 {
		fmt.Printf("routes: %d kernels by own printer; %d also by llc (%s)\n", count.kernels, count.llc, strings.Join(names, ", "))
	}
	if len(names) == 0 && count.kernels > 0 && os.Getenv("ATON_NEED_LLVM") != "" {
		fmt.Println(ptx.ErrNoLLC)
		code = max(code, 1)
	}
	os.Exit(code)
}
