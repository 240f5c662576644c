package passes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/diag"
)

// Runner says how a pipeline is run. The zero value runs it and nothing else.
type Runner struct {
	Observers []Observer
	// VerifyEach checks the module after every pass, and what passes require and ensure.
	VerifyEach bool
	// VerifyRoundtrip prints the module before the first pass and after every one, reads the text, prints what was read, and fails
	// if that differs.
	VerifyRoundtrip bool
	// Repro is where the reproducer of a failure goes; empty: none is written.
	Repro string
	// Reload makes the module anew that the run began with. With it, the reproducer costs nothing unless there is a
	// failure; without it, the module is printed before every pass.
	Reload func() (*ssa.Module, error)
	// Stop, if not nil, is asked before every pass. An error of it ends the run.
	Stop func() error
	// Bisect, if not nil, stops the passes after a number of changes.
	Bisect *Bisect
}

// With returns a copy of the runner that has one more observer. A nil Runner stands for one without observers.
func (r *Runner) With(watch Observer) *Runner {
	var c Runner
	if r != nil {
		c = *r
	}
	c.Observers = append(slices.Clone(c.Observers), watch)
	return &c
}

// Observer watches a run. Its functions may be nil; they must not change the module.
type Observer struct {
	BeforePass func(e *Event)
	AfterPass  func(e *Event)
}

// Event is one run of one pass.
type Event struct {
	Pass    *Pass
	Text    string // the pass as in the pipeline, with its options
	Index   int    // counts the runs of passes from 0
	Depth   int    // fixpoints around it
	Module  *ssa.Module
	Elapsed time.Duration // after the pass
	Counts  []Count       // after the pass: what changed, by name
}

// Changed says whether the pass told of a change.
func (e *Event) Changed() bool { return len(e.Counts) > 0 }

// Failure is a bug of ours: a panic in a pass, a broken contract, or an invalid module.
type Failure struct {
	Pass  string // as in the pipeline
	Cause error
	Stack string // of a panic
	Repro string // the file that was written, or ""
}

// Error says what happened, and where the reproducer is.
func (f *Failure) Error() string {
	s := fmt.Sprintf("internal error in pass %s: %v", f.Pass, f.Cause)
	if f.Repro != "" {
		s += "; the module before the pass is in " + f.Repro
	}
	return s
}

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Cause }

type run struct {
	*Runner
	m     *ssa.Module
	diags *diag.List
	index int
	until int    // stop before this run of a pass; -1: never
	text  string // the module before the pass, when there is no Reload
}

var errStop = errors.New("stop")

// Run runs the pipeline on the module. What is wrong with the user's program is in the list, whose Err is also the
// error unless there is a graver one. A nil runner is the zero Runner.
func (p *Pipeline) Run(m *ssa.Module, r *Runner) (*diag.List, error) {
	if r == nil {
		r = &Runner{}
	}
	state := &run{Runner: r, m: m, diags: &diag.List{Table: &m.Locs}, until: -1}
	for _, remark := range p.remarks {
		state.diags.Add(diag.Diagnostic{Severity: diag.Warning, ID: "renamed-pass", Message: remark})
	}
	if err := state.roundtrip(); err != nil {
		return state.diags, &Failure{Pass: "none", Cause: err}
	}
	if _, err := state.steps(p.steps, 0); err != nil {
		var f *Failure
		if errors.As(err, &f) && r.Repro != "" {
			if text, ok := state.reproducer(p.steps); ok {
				text = fmt.Sprintf("# RUN: aton-opt %%s --verify-each --passes='%s'\n# %s\n%s", f.Pass, strings.ReplaceAll(f.Cause.Error(), "\n", "\n# "), text)
				f.Repro = writeNew(r.Repro, text)
			}
		}
		return state.diags, err
	}
	return state.diags, state.diags.Err()
}

// writeNew writes a file that was not there, under the name or, if that is taken, with a number in it: a reproducer never
// takes the place of another file. It returns the name, "" if it cannot.
func writeNew(name, text string) string {
	ext := filepath.Ext(name)
	for i := range 100 {
		try := name
		if i > 0 {
			try = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), i+1, ext)
		}
		f, err := os.OpenFile(try, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) // which follows no link
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return ""
		}
		_, err = f.WriteString(text)
		if errors.Join(err, f.Close()) != nil {
			os.Remove(try)
			return ""
		}
		return try
	}
	return ""
}

// reproducer gives the text of the module as it was before the pass that failed.
func (r *run) reproducer(steps []step) (string, bool) {
	if r.Reload == nil {
		return r.text, r.text != ""
	}
	m, err := r.Reload()
	if err != nil {
		return "", false
	}
	again := &run{Runner: &Runner{}, m: m, diags: &diag.List{Table: &m.Locs}, until: r.index}
	if _, err := again.steps(steps, 0); !errors.Is(err, errStop) {
		return "", false
	}
	return spelledOut(m), true
}

const reproElements = 1 << 16

// spelledOut prints the module, with the elements of its constants unless they are many.
func spelledOut(m *ssa.Module) string {
	n := int64(0)
	for _, f := range m.Funcs {
		for o := range f.Body.AllOps() {
			for _, a := range o.Attrs {
				if a.Value.Kind == ssa.TensorLit {
					n += a.Value.Tensor.NumElements()
				}
			}
		}
	}
	return text(m, n > reproElements)
}

func (r *run) steps(steps []step, depth int) (changed bool, err error) {
	for i := range steps {
		s := &steps[i]
		if s.pass != nil {
			did, err := r.pass(s, depth)
			changed = changed || did
			if err != nil {
				return changed, err
			}
			continue
		}
		did, err := r.fixpoint(s, depth+1)
		changed = changed || did
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// fixpoint runs the steps in turn until none of them changes anything. A step that would see what it saw
// when it last changed nothing is left out.
func (r *run) fixpoint(s *step, depth int) (changed bool, err error) {
	version := 0                     // counts changes
	seen := make([]int, len(s.body)) // the version that a step has left alone, plus 1
	for range s.max {
		before := version
		for i := range s.body {
			if seen[i] == version+1 {
				continue
			}
			did, err := r.steps(s.body[i:i+1], depth)
			if err != nil {
				return changed, err
			}
			if did {
				version++
				changed = true
			} else {
				seen[i] = version + 1
			}
		}
		if version == before {
			break
		}
	}
	return changed, nil
}

func (r *run) pass(s *step, depth int) (bool, error) {
	if r.index == r.until {
		return false, errStop
	}
	if r.Stop != nil {
		if err := r.Stop(); err != nil {
			return false, err
		}
	}
	if !r.Bisect.allows(s.pass.Name + s.given) {
		return false, nil
	}
	if r.Repro != "" && r.Reload == nil {
		r.text = spelledOut(r.m)
	}
	e := &Event{Pass: s.pass, Text: s.pass.Name + s.given, Index: r.index, Depth: depth, Module: r.m}
	if err := r.contract(s.pass.Requires, "requires"); err != nil {
		if r.diags.Err() != nil {
			return false, r.diags.Err() // no wonder, and told already
		}
		return false, &Failure{Pass: e.Text, Cause: err}
	}
	for _, o := range r.Observers {
		if o.BeforePass != nil {
			o.BeforePass(e)
		}
	}
	c := &Context{Module: r.m, Diags: r.diags, options: s.options, counts: map[string]int{}}
	reported := len(r.diags.Items)
	began := time.Now()
	err := r.call(s.pass, c, e.Text)
	e.Elapsed, e.Counts = time.Since(began), sorted(c.counts)
	if err != nil {
		return false, err
	}
	r.Bisect.ran(e)
	for _, o := range r.Observers {
		if o.AfterPass != nil {
			o.AfterPass(e)
		}
	}
	if r.VerifyEach {
		if err := ssa.Verify(r.m); err != nil {
			return false, &Failure{Pass: e.Text, Cause: fmt.Errorf("the module is invalid after it: %w", err)}
		}
	}
	if err := r.roundtrip(); err != nil {
		return false, &Failure{Pass: e.Text, Cause: err}
	}
	if len(r.diags.Items) == reported {
		if err := r.contract(s.pass.Ensures, "ensures"); err != nil {
			return false, &Failure{Pass: e.Text, Cause: err}
		}
	}
	r.index++
	return e.Changed(), nil
}

// roundtrip checks that the text of the module holds all of it.
func (r *run) roundtrip() error {
	if !r.VerifyRoundtrip {
		return nil
	}
	once := text(r.m, false)
	again, err := ssa.Parse(once, "text", r.m.Dialects...)
	if err != nil {
		return fmt.Errorf("the text of the module cannot be read: %w", err)
	}
	if twice := text(again, false); twice != once {
		return fmt.Errorf("the text of the module loses something:\n%s", Diff(strings.Split(once, "\n"), strings.Split(twice, "\n"), 1))
	}
	return nil
}

func text(m *ssa.Module, noData bool) string {
	var b strings.Builder
	_ = ssa.Fprint(&b, m, ssa.PrintOptions{Complete: true, NoData: noData}) // a Builder does not fail
	return b.String()
}

func (r *run) contract(ps []Predicate, verb string) error {
	if !r.VerifyEach {
		return nil
	}
	for _, p := range ps {
		if err := p.Check(r.m); err != nil {
			return fmt.Errorf("it %s %s: %w", verb, p.Name, err)
		}
	}
	return nil
}

// call runs the pass. A panic is our bug and becomes a Failure.
func (r *run) call(p *Pass, c *Context, text string) (err error) {
	defer func() {
		v := recover()
		if _, fault := v.(interface{ Addr() uintptr }); fault { // of a file that is mapped, which is no bug: the command tells
			panic(v)
		}
		if v != nil {
			err = &Failure{Pass: text, Cause: fmt.Errorf("panic: %v", v), Stack: string(debug.Stack())}
		}
	}()
	return p.Run(c)
}
