package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/aton-project/aton/backend/eager"
	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	opt "github.com/aton-project/aton/tools/cmd/aton-opt/cmd"
	"github.com/aton-project/aton/tools/cmd/aton/cmd"
	"github.com/aton-project/aton/tools/judge/fuzzprog/mutant"
)

// What a program may take through all commands together: processor time of the process, time on the clock (others may keep the
// machine busy), memory. The programs are small.
const (
	maxTime   = 20 * time.Second
	maxClock  = 3 * time.Minute
	maxMemory = 1 << 30
)

// limitStatus is the exit status of a child process that ends because a program passes a limit.
const limitStatus = 3

// worker runs programs one after the other.
type worker struct {
	options
	corpus *corpus
	eager  eager.Evaluator // whose forms of operators serve all programs
	w      io.Writer
	dir    string
	i      int
	kind   string
	mu     sync.Mutex // of seen
	seen   map[string]int
	// for the watchdog
	program atomic.Int64 // its number, -1 between programs
	spent   atomic.Int64 // processor time of the process when the program began
	began   atomic.Int64 // time on the clock then, in nanoseconds
	doing   atomic.Value
}

// work is the child process.
func work(o options, w io.Writer) error {
	limitAddresses(16 << 30)
	debug.SetMemoryLimit(maxMemory * 3 / 4)
	wk := &worker{options: o, w: w, dir: workFolder(o), seen: map[string]int{}}
	wk.program.Store(-1)
	wk.doing.Store("")
	if err := os.RemoveAll(wk.dir); err != nil {
		return err
	}
	if err := os.MkdirAll(wk.dir, 0o777); err != nil {
		return err
	}
	var err error
	if slices.ContainsFunc(o.kinds, func(k string) bool { return k != "random" && k != "loops" }) {
		if wk.corpus, err = readCorpus(o.root, filepath.Join(wk.dir, "corpus")); err != nil {
			return err
		}
	}
	go wk.watch()
	began := time.Now()
	for i := o.from; i < o.from+o.n && time.Since(began) < o.t; i++ {
		if err := wk.one(i); err != nil {
			return err
		}
	}
	return nil
}

// one runs a program.
func (w *worker) one(i int) error {
	w.i, w.kind = i, w.kinds[i%len(w.kinds)]
	old, err := filepath.Glob(filepath.Join(w.dir, "program.*"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if err := os.RemoveAll(f); err != nil {
			return err
		}
	}
	if used() > maxMemory/4 {
		debug.FreeOSMemory()
	}
	fmt.Fprintf(w.w, "begin\t%d\t%s\n", i, w.kind)
	w.spent.Store(int64(processorTime()))
	w.began.Store(time.Now().UnixNano())
	w.program.Store(int64(i))
	rng := rand.New(rand.NewPCG(w.seed, uint64(i)))
	var outcome string
	switch w.kind {
	case "random":
		outcome, err = w.random(rng)
	case "loops":
		outcome, err = w.loops(rng)
	default:
		outcome, err = w.mutant(rng)
	}
	w.program.Store(-1)
	if err != nil {
		return err
	}
	fmt.Fprintf(w.w, "end\t%d\t%s\n", i, outcome)
	return nil
}

// watch ends the process when a program takes too much.
func (w *worker) watch() {
	for range time.Tick(50 * time.Millisecond) {
		if w.program.Load() < 0 {
			continue
		}
		says := ""
		if t := processorTime() - time.Duration(w.spent.Load()); t > maxTime {
			says = fmt.Sprintf("%s takes more than %v", w.doing.Load(), maxTime)
		} else if t := time.Now().UnixNano() - w.began.Load(); time.Duration(t) > maxClock {
			says = fmt.Sprintf("%s takes more than %v on the clock", w.doing.Load(), maxClock)
		} else if used() > maxMemory {
			says = fmt.Sprintf("%s takes more than %d bytes of memory", w.doing.Load(), maxMemory)
		}
		if says != "" && w.program.Load() >= 0 {
			stacks := make([]byte, 1<<16)
			w.found(says, string(stacks[:runtime.Stack(stacks, true)]))
			os.Exit(limitStatus)
		}
	}
}

// used is the memory of the Go heap and its stacks, in bytes.
func used() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64() - s[2].Value.Uint64()
}

// found tells of a finding and keeps its program; of those that say the same, the first three.
func (w *worker) found(says, detail string) {
	fmt.Fprintf(w.w, "found\t%d\t%s\n", w.i, firstLine(says))
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := signature(says); w.seen[s] < 3 {
		w.seen[s]++
		if err := keep(w.options, w.i, w.kind, says+"\n"+detail); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if w.only >= 0 {
		fmt.Fprintln(w.w, detail)
	}
}

// pick gives one of a list.
func pick[T any](rng *rand.Rand, list []T) T { return list[rng.IntN(len(list))] }

// mutant changes a program of the corpus and runs the commands on it.
func (w *worker) mutant(rng *rand.Rand) (string, error) {
	ext := map[string]string{"code": ".pt", "number": ".pt", "pickle": ".pt", "json": ".pt2", "proto": ".onnx", "text": ".ir", "spec": ".pt"}[w.kind]
	s := pick(rng, w.corpus.sources[ext])
	data, specs := s.data, s.specs
	var err error
	switch w.kind {
	case "code":
		data, err = changed(data, func(n string) bool { return strings.HasSuffix(n, ".py") }, rng.IntN, func(b []byte) []byte {
			return []byte(mutant.Text(string(b), w.corpus.words, rng))
		})
	case "number":
		data, err = changed(data, func(n string) bool { return strings.HasSuffix(n, ".py") }, rng.IntN, func(b []byte) []byte { return []byte(mutant.Number(string(b), rng)) })
	case "pickle":
		data, err = changed(data, func(n string) bool { return strings.HasSuffix(n, ".pkl") }, rng.IntN, func(b []byte) []byte { return mutant.Pickle(b, rng) })
	case "json":
		data, err = changed(data, func(n string) bool { return strings.HasSuffix(n, ".json") }, rng.IntN, func(b []byte) []byte { return mutant.JSON(b, rng) })
	case "text":
		data = []byte(mutant.Text(string(data), w.corpus.words, rng))
	case "proto":
		p := &onnxpb.ModelProto{}
		if err := proto.Unmarshal(data, p); err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		if data, err = (proto.MarshalOptions{Deterministic: true}).Marshal(mutant.Model(p, rng)); err != nil {
			return "no file", nil // text that is no UTF-8
		}
	case "spec":
		specs = append([]string(nil), specs...)
		if len(specs) > 0 {
			k := rng.IntN(len(specs))
			specs[k] = mutant.Spec(specs[k], rng)
		}
	}
	if err != nil {
		return "no file", nil // an archive without records of the kind
	}
	file := filepath.Join(w.dir, "program"+ext)
	if err := os.WriteFile(file, data, 0o666); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(w.dir, "program.specs"), []byte(s.name+"\n"+strings.Join(specs, "\n")+"\n"), 0o666); err != nil {
		return "", err
	}
	return w.commands(file, specs, s.pipeline, rng), nil
}

// commands runs all commands on a program, with options by chance. The outcome is that of export.
func (w *worker) commands(file string, specs []string, pipeline string, rng *rand.Rand) string {
	var inputs []string
	for _, s := range specs {
		inputs = append(inputs, "--input", s)
	}
	opset := []string{"--opset", strconv.Itoa(7 + rng.IntN(20))}
	if rng.IntN(2) == 0 {
		opset = nil
	}
	line := append(append([]string{file}, inputs...), opset...)
	with := func(command string, more ...string) []string {
		return append(append([]string{command}, line...), append(more, "--repro", "")...)
	}
	out := filepath.Join(w.dir, "out.onnx")
	var more []string
	whole := true
	if rng.IntN(3) == 0 {
		more = pick(rng, [][]string{{"--external-data", "always"}, {"--no-weights"}, {"--keep-initializers-as-inputs"}, {"--eval"}, {"--state", "outputs"}, {"--state", "refuse"},
			{"--unroll", "8"}, {"--target", "onnx"}, {"--param-names", "learned"}, {"--verify-each"}, {"--verbose"}, {"--timing"}, {"--fallthrough", "*"}, {"--operator-export-type", "RAW"},
			{"--operator-export-type", "ONNX_ATEN_FALLBACK"}, {"--operator-export-type", "ONNX_FALLTHROUGH"}, {"--operator-export-type", "ONNX_ATEN"}})
		whole = more[0] != "--fallthrough" && more[0] != "--operator-export-type"
	}
	outcome := "refused"
	if w.aton(with("export", append(more, "-o", out)...)) == 0 {
		outcome = "exported"
		if status, said := w.run("check of what was written", cmd.Main, []string{"check", out, "--target", "onnx", "--repro", ""}); whole && status != 0 {
			w.found("what export writes is refused: "+firstLine(said), said)
		}
	}
	w.aton(with("check"))
	w.aton(with("inspect", "--at", pick(rng, []string{"import", "inline", "freeze", "onnx", "specialize", "functional"})))
	w.aton(with("verify", "--device", "sim", "--no-passes"))
	w.aton(with("run", "--random", "1"))
	w.aton(with("gpu", "--print", pick(rng, []string{"facts", "plan", "kir", "llir", "ptx"})))
	if pipeline == "" || rng.IntN(3) == 0 {
		pipeline = pick(rng, []string{"export", "optimize", "inline,freeze", "inline,canonicalize,freeze,specialize{opset=17},cse,lower{opset=17}", "fixpoint{max=3}(cse,simplify,shapes,fold-constants,dce)",
			"legalize{opset=9}", "legalize{opset=13}", "upgrade"})
	}
	if strings.HasSuffix(file, ".ir") {
		inputs = nil
	}
	w.run("aton-opt "+pipeline, opt.Main, append([]string{file, "--passes", pipeline, "--repro", ""}, inputs...))
	written, err := filepath.Glob(filepath.Join(w.dir, "out.*"))
	if err == nil {
		for _, f := range written {
			err = errors.Join(err, os.Remove(f))
		}
	}
	if err != nil {
		w.found("the files that were written: "+err.Error(), "")
	}
	return outcome
}

func (w *worker) aton(args []string) int {
	status, _ := w.run("aton "+args[0], cmd.Main, args)
	return status
}

// run runs a command in this process. An error of ours is a finding.
func (w *worker) run(what string, command func([]string, io.Reader, io.Writer, io.Writer) int, args []string) (status int, said string) {
	w.doing.Store(what)
	var stderr bytes.Buffer
	defer func() {
		if r := recover(); r != nil {
			w.found(fmt.Sprintf("%s: panic: %v", what, r), string(debug.Stack()))
			status = 1
		}
	}()
	if w.only >= 0 {
		fmt.Fprintf(w.w, "%s\n", strings.Join(args, " "))
	}
	status = command(args, strings.NewReader(""), io.Discard, &stderr)
	said = stderr.String()
	if i := strings.Index(said, "internal error"); i >= 0 {
		w.found(fmt.Sprintf("%s: %s", what, firstLine(said[i:])), said)
	} else if i := strings.Index(said, "runtime error"); i >= 0 {
		w.found(fmt.Sprintf("%s: %s", what, firstLine(said[strings.LastIndex(said[:i], "\n")+1:])), said)
	}
	if w.only >= 0 {
		fmt.Fprintf(w.w, "%d %s\n", status, said)
	}
	return status, said
}
