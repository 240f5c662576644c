package batch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aton-project/aton/tools/lib/batch/limited"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Process runs a command of aton with its limits: the program itself, with the words that Args gives before those of the command.
type Process struct {
	// Args is the program and its first words: those of its subcommand that calls limited.Serve.
	Args []string
	// Threads bounds how many processors it uses; 0 is no bound.
	Threads int
}

// NewProcess is for n processes at a time, which share the processors.
func NewProcess(n int, args ...string) *Process {
	return &Process{Args: args, Threads: max(1, runtime.GOMAXPROCS(0)/max(1, n))}
}

// head keeps the first bytes that are written: what a runtime says when it ends comes before its stacks.
type head struct {
	b   []byte
	max int
}

func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), h.max-len(h.b))]...)
	return len(p), nil
}

// bounded fails when more is written than there should be.
type bounded struct {
	bytes.Buffer
	max int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.max {
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}

// Run runs the words of a command. The result has its status, diagnostics, seconds and memory.
func (p *Process) Run(ctx context.Context, words []string, limits Limits) *Result {
	within := ctx
	if limits.Timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, limits.Timeout)
		defer cancel()
	}
	args := append(slices.Clone(p.Args[1:]), "--memory="+strconv.FormatUint(limits.Memory, 10), "--")
	c := exec.CommandContext(within, p.Args[0], append(args, words...)...)
	c.WaitDelay = 5 * time.Second
	if p.Threads > 0 {
		c.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(p.Threads))
	}
	stdout, stderr := &bounded{max: 64 << 20}, &head{max: 8 << 10}
	c.Stdout, c.Stderr = stdout, stderr
	began := time.Now()
	r := &Result{Diagnostics: []cli.Problem{}, Outputs: []File{}}
	stdin, err := c.StdinPipe() // stays open: when this process is gone, the other one ends
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		r.Status, r.Diagnostics = Failed, []cli.Problem{refusal("failed", "the process cannot be started: %v", err)}
		return r
	}
	err = c.Wait()
	_ = stdin.Close()
	r.Seconds = float64(time.Since(began).Milliseconds()) / 1000
	r.PeakMemory = limited.PeakOf(c.ProcessState)
	var report limited.Report
	told := json.Unmarshal(stdout.Bytes(), &report) == nil
	said := strings.TrimSpace(string(stderr.b))
	switch {
	case within.Err() != nil && ctx.Err() == nil && !told:
		r.Status, r.Diagnostics = Timeout, []cli.Problem{refusal("timeout", "it takes more than %v; give it more time with --timeout", limits.Timeout)}
	case c.ProcessState.ExitCode() == limited.Exit || !told && limits.Memory > 0 && outOfMemory(said):
		r.Status, r.Diagnostics = Memory, []cli.Problem{refusal("memory", "it takes more than %d bytes of memory; give it more with --memory", limits.Memory)}
	case !told:
		if i := strings.Index(said, "\n"); i >= 0 {
			said = said[:i]
		}
		r.Status, r.Diagnostics = Failed, []cli.Problem{refusal("internal", "the process ended: %v: %s", err, said)}
	default:
		r.judge(words[0], &report)
	}
	return r
}

// outOfMemory recognizes what the runtime of Go says when the system gives no more. Its garbage collector reads from address 0 then (Go
// 1.26, spanQueue.drain). A fault in other code is a panic, which says something else.
func outOfMemory(said string) bool {
	return strings.Contains(said, "out of memory") || strings.Contains(said, "cannot allocate memory") || runtimeFault.MatchString(said)
}

var runtimeFault = regexp.MustCompile(`^SIGSEGV: segmentation violation\nPC=.* addr=0x0\n\ngoroutine .*:\nruntime\.`)

// causes are identifiers of problems that lie with aton, the machine or the call, and not with the model.
var causes = []string{"internal", "failed", "file", cli.DiskFull, "usage", "differs"}

// judge takes status and diagnostics from what the process told.
func (r *Result) judge(do string, report *limited.Report) {
	if report.PeakMemory > 0 {
		r.PeakMemory = report.PeakMemory
	}
	r.Diagnostics = append(r.Diagnostics, report.Problems...)
	if do == "verify" {
		r.Diagnostics = append(r.Diagnostics, differences(report.Output)...)
	}
	switch {
	case report.Exit == cli.Done:
		r.Status = OK
	case report.Exit == cli.Usage, slices.ContainsFunc(r.Diagnostics, func(p cli.Problem) bool { return p.Level == "error" && slices.Contains(causes, p.ID) }):
		r.Status = Failed
	default:
		r.Status = Refused
	}
}

// differences are the outputs that verify finds wrong, by what it writes with --json.
func differences(output string) (found []cli.Problem) {
	type compared struct{ Set, Name, Wrong string }
	var report struct {
		Outputs []compared
		Device  []struct {
			Set     string
			Outputs []compared
		}
		Suspects []json.RawMessage
	}
	if json.Unmarshal([]byte(output), &report) != nil {
		return nil
	}
	outputs := report.Outputs
	for _, d := range report.Device {
		for _, out := range d.Outputs {
			out.Set = d.Set
			outputs = append(outputs, out)
		}
	}
	for _, out := range outputs {
		if out.Wrong != "" {
			found = append(found, refusal("differs", "data set %s: output %s: %s", out.Set, out.Name, out.Wrong))
		}
	}
	for _, s := range report.Suspects {
		found = append(found, refusal("differs", "suspect: %s", s))
	}
	return found
}
