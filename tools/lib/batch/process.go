package batch

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aton-project/aton/tools/lib/batch/limited"
	"github.com/aton-project/aton/tools/lib/cli"
)

// Process runs commands of aton with their limits: the program itself, with the words that Args gives first. A process does one command after
// the other, and ends when one passes a limit or leaves something behind; several that run at the same time are in processes of their own.
type Process struct {
	// Args is the program and its first words: those of its subcommand that calls limited.Serve.
	Args []string
	// Threads bounds how many processors it uses; 0 is no bound.
	Threads int

	mu   sync.Mutex
	idle []*child
}

// NewProcess is for n processes at a time, which share the processors.
func NewProcess(n int, args ...string) *Process {
	return &Process{Args: args, Threads: max(1, runtime.GOMAXPROCS(0)/max(1, n))}
}

// mostCommands bounds how many commands a process does, and with it what may gather in one.
const mostCommands = 64

// child is a process that waits for a command, or does one.
type child struct {
	*exec.Cmd
	memory uint64 // its limit
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *head
	done   int // commands
}

// start starts a process.
func (p *Process) start(memory uint64) (*child, error) {
	args := append(slices.Clone(p.Args[1:]), "--memory="+strconv.FormatUint(memory, 10), "--most="+strconv.Itoa(mostCommands))
	c := &child{Cmd: exec.Command(p.Args[0], args...), memory: memory, stderr: &head{max: 8 << 10}}
	c.WaitDelay = 5 * time.Second
	if p.Threads > 0 {
		c.Env = append(os.Environ(), "GOMAXPROCS="+strconv.Itoa(p.Threads))
	}
	c.Stderr = c.stderr
	var err error
	if c.stdin, err = c.StdinPipe(); err != nil { // stays open: when this process is gone, the other one ends
		return nil, err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.stdout = bufio.NewReader(stdout)
	return c, c.Start()
}

// take gives a process with this limit of memory that waits, or a new one, in the place of one that waits: there are no more processes than
// commands run at a time, however many limits they have.
func (p *Process) take(memory uint64, alone bool) (*child, error) {
	p.mu.Lock()
	i := slices.IndexFunc(p.idle, func(c *child) bool { return c.memory == memory && !alone })
	fits := i >= 0
	var c *child
	if len(p.idle) > 0 {
		i = max(i, 0)
		c = p.idle[i]
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	p.mu.Unlock()
	if fits {
		return c, nil
	}
	if c != nil {
		_ = c.end()
	}
	return p.start(memory)
}

// give lets a process wait for the next command.
func (p *Process) give(c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
}

// Close ends the processes that wait.
func (p *Process) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle {
		_ = c.end()
	}
	p.idle = nil
}

// end ends the process, if it has not ended by itself, and says how it ended.
func (c *child) end() error {
	_ = c.stdin.Close()
	_ = c.Process.Kill() // who has ended keeps his exit status
	return c.Wait()
}

// mostOutput bounds what a process may tell of a command.
const mostOutput = 64 << 20

// ask lets the process do a command. Without a report it has ended, or is to be: the context ended first, or it tells what is no report.
func (c *child) ask(ctx context.Context, words []string) (*limited.Report, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	c.stderr.forget()
	c.done++
	if err := json.NewEncoder(c.stdin).Encode(limited.Request{Words: words}); err != nil {
		return nil, err
	}
	var line []byte
	for {
		part, err := c.stdout.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > mostOutput:
			return nil, errors.New("too much output")
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return nil, err
		}
		report := &limited.Report{}
		if err := json.Unmarshal(line, report); err != nil {
			return nil, err
		}
		report.Last = report.Last || !stop() // the process is being killed
		return report, nil
	}
}

// head keeps the first bytes that are written: what a runtime says when it ends comes before its stacks.
type head struct {
	mu  sync.Mutex
	b   []byte
	max int
}

func (h *head) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b = append(h.b, p[:min(len(p), h.max-len(h.b))]...)
	return len(p), nil
}

func (h *head) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.b = h.b[:0]
}

// errShared says that a process ended that had done other commands before: what the command does by itself is still to be found out.
var errShared = errors.New("the process ended, and had done others before")

// Run runs the words of a command. The result has its status, diagnostics, seconds and memory. The error is errShared, and never that if the command
// is to run alone, in a process that has done no other.
func (p *Process) Run(ctx context.Context, words []string, limits Limits, alone bool) (*Result, error) {
	within := ctx
	if limits.Timeout > 0 {
		var cancel context.CancelFunc
		within, cancel = context.WithTimeout(ctx, limits.Timeout)
		defer cancel()
	}
	began := time.Now()
	r := &Result{Diagnostics: []cli.Problem{}, Outputs: []File{}}
	c, err := p.take(limits.Memory, alone)
	if err != nil {
		r.Status, r.Diagnostics = Failed, []cli.Problem{refusal("failed", "the process cannot be started: %v", err)}
		return r, nil
	}
	report, err := c.ask(within, words)
	r.Seconds = float64(time.Since(began).Milliseconds()) / 1000
	switch {
	case err != nil:
		ended := c.end()
		if within.Err() == nil && c.done > 1 {
			return nil, errShared
		}
		r.PeakMemory = limited.PeakOf(c.ProcessState)
		r.died(c, cmp.Or(ended, err), within.Err() != nil && ctx.Err() == nil, limits)
	case report.Last:
		_ = c.end() // it has said what there is to say
		r.judge(words[0], report)
	default:
		p.give(c)
		r.judge(words[0], report)
	}
	return r, nil
}

// died takes the status from how a process ended that told nothing.
func (r *Result) died(c *child, err error, late bool, limits Limits) {
	said := strings.TrimSpace(string(c.stderr.b))
	switch {
	case late:
		r.Status, r.Diagnostics = Timeout, []cli.Problem{refusal("timeout", "it takes more than %v; give it more time with --timeout", limits.Timeout)}
	case c.ProcessState.ExitCode() == limited.Exit || limits.Memory > 0 && outOfMemory(said):
		r.Status, r.Diagnostics = Memory, []cli.Problem{refusal("memory", "it takes more than %d bytes of memory; give it more with --memory", limits.Memory)}
	default:
		if i := strings.Index(said, "\n"); i >= 0 {
			said = said[:i]
		}
		r.Status, r.Diagnostics = Failed, []cli.Problem{refusal("internal", "the process ended: %v: %s", err, said)}
	}
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
