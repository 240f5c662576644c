//go:build unix

// Command cost prints what the default pipeline costs on programs of several
// kinds and sizes: processor time, time for an operator, and the greatest
// resident memory. Each row is a process of its own.
//
//	go run ./tools/measure/bench/cost [-sizes 1000,10000,100000,1000000] [-kinds chain,writes] [-passes export] [-top 3]
//	go run ./tools/measure/bench/cost -one chain:100000 -profile FILE
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/passes/all"
	"github.com/aton-project/aton/passes/passtest"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/tools/lib/cli"
)

// row is what one run gives.
type row struct {
	Ops, Left int
	Parse     time.Duration
	Pipeline  time.Duration
	Wall      time.Duration
	Passes    map[string]time.Duration
	Alloc     uint64
}

func main() {
	sizes := flag.String("sizes", "1000,10000,100000,1000000", "numbers of operators")
	kinds := flag.String("kinds", strings.Join(passtest.Kinds(), ","), "kinds of programs")
	pipeline := flag.String("passes", "export", "the pipeline")
	top := flag.Int("top", 3, "how many passes to name")
	one := flag.String("one", "", "KIND:SIZE: run it and print JSON")
	profile := flag.String("profile", "", "with -one: write a profile of the processor to this file (go tool pprof)")
	flag.Parse()
	var err error
	if *one != "" {
		err = child(*one, *pipeline, *profile)
	} else {
		err = table(strings.Split(*kinds, ","), strings.Split(*sizes, ","), *pipeline, *top)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// cpu is the processor time of this process: other programs on the machine do not count.
func cpu() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func child(what, pipeline, profile string) error {
	kind, size, _ := strings.Cut(what, ":")
	n, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	cli.Collect() // as the command does
	text, err := passtest.Program(kind, n)
	if err != nil {
		return err
	}
	p, err := all.Set.Parse(pipeline)
	if err != nil {
		return err
	}
	r := row{Passes: map[string]time.Duration{}}
	began := cpu()
	m, err := ssa.Parse(text, what, all.Dialects()...)
	if err != nil {
		return err
	}
	aten.BindSchemas(m)
	r.Parse = cpu() - began
	r.Ops = count(m)
	runtime.GC()
	var start time.Duration
	runner := &passes.Runner{Observers: []passes.Observer{{
		BeforePass: func(*passes.Event) { start = cpu() },
		AfterPass:  func(e *passes.Event) { r.Passes[e.Pass.Name] += cpu() - start },
	}}}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	wall := time.Now()
	began = cpu()
	if _, err := p.Run(m, runner); err != nil {
		return err
	}
	r.Pipeline, r.Wall = cpu()-began, time.Since(wall)
	r.Left = count(m)
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	r.Alloc = mem.TotalAlloc
	return json.NewEncoder(os.Stdout).Encode(r)
}

func count(m *ssa.Module) (n int) {
	for _, f := range m.Funcs {
		for range f.Body.AllOps() {
			n++
		}
	}
	return n
}

func table(kinds, sizes []string, pipeline string, top int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	failed := false
	fmt.Println("| program | operators | left | parse | pipeline (wall) | ns/operator | peak MB | passes |\n|---|---|---|---|---|---|---|---|")
	for _, k := range kinds {
		for _, n := range sizes {
			cmd := exec.Command(self, "-one", k+":"+n, "-passes", pipeline)
			cmd.Stderr = os.Stderr
			out, err := cmd.Output()
			if err != nil {
				failed = true
				fmt.Printf("| %s | %s | %v |\n", k, n, err)
				continue
			}
			var r row
			if err := json.Unmarshal(out, &r); err != nil {
				return err
			}
			peak := int64(0)
			if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
				peak = u.Maxrss
				if runtime.GOOS == "darwin" { // bytes there, KiB elsewhere
					peak /= 1024
				}
			}
			var names []string
			for p := range r.Passes {
				names = append(names, p)
			}
			sort.Slice(names, func(i, j int) bool {
				a, b := r.Passes[names[i]], r.Passes[names[j]]
				return a > b || a == b && names[i] < names[j]
			})
			var most []string
			for _, p := range names[:min(top, len(names))] {
				most = append(most, fmt.Sprintf("%s %d%%", p, int(100*r.Passes[p]/max(r.Pipeline, 1))))
			}
			fmt.Printf("| %s | %d | %d | %.2f s | %.2f s (%.2f s) | %d | %d | %s |\n", k, r.Ops, r.Left, r.Parse.Seconds(), r.Pipeline.Seconds(), r.Wall.Seconds(),
				int(r.Pipeline)/max(r.Ops, 1), peak/1024, strings.Join(most, ", "))
		}
	}
	if failed {
		return errors.New("a program failed")
	}
	return nil
}
