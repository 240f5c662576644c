// Package exec runs plans: launches on a device behind the Backend interface, host steps in the interpreter.
package exec

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aton-project/aton/backend/interp"
	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/plan"
	"github.com/aton-project/aton/codegen/gpu/sim"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Backend is a device. Its methods are called by one goroutine at a time, in the order of the program.
type Backend interface {
	// Name says what the device is.
	Name() string
	// Load makes a kernel ready to be launched.
	Load(k *kir.Kernel) (Kernel, error)
	// Alloc reserves memory; Slice names a part of it, from a multiple of [plan.Alignment] on.
	Alloc(bytes int64) (Memory, error)
	Slice(m Memory, offset, bytes int64) Memory
	Free(m Memory) error
	Upload(m Memory, data []byte) error
	Download(m Memory, data []byte) error
	// Launch starts a kernel; it may return before the kernel has run, and report its failure later.
	Launch(k Kernel, grid [3]int, args []Arg) (Stats, error)
	Sync() error
}

// Kernel and Memory are what a backend makes of them.
type (
	Kernel any
	Memory any
)

// Arg is an argument of a kernel: a buffer, or an i32.
type Arg struct {
	Memory Memory // nil for a scalar
	Scalar int32
}

// Stats is what a backend counts of a launch.
type Stats struct {
	// LaneInstructions are instructions times threads, where the backend counts them.
	LaneInstructions int64
	// Counts are those of a simulator that counts.
	Counts sim.Counts
}

// StepReport is what a step took.
type StepReport struct {
	Step     *plan.Step
	Elapsed  time.Duration
	Skipped  bool // nothing to compute: an empty result
	Grid     [3]int
	Bytes    int64 // of the buffers of a launch
	Flops    int64 // of a product or convolution
	HostRead int64 // bytes that a host step brought from the device
	Stats
}

// Report is what a run took.
type Report struct {
	Device   string
	Elapsed  time.Duration // without loading kernels and weights
	Steps    []StepReport
	Launches int
	Arena    int64 // bytes of temporaries and outputs
	Stats
}

// Session holds a plan's kernels and weights on a device.
type Session struct {
	Plan    *plan.Plan
	Backend Backend
	// Observe, if set, is called after each step that computes values, with an accessor for the values that are at hand: those
	// with a buffer, and those of host steps. An error ends the run.
	Observe func(s *plan.Step, read func(v *ssa.Value) (*tensor.Tensor, error)) error
	// Replace, if set, may change a kernel before it is loaded: tests plant faults with it.
	Replace func(k *kir.Kernel) *kir.Kernel
	// Seed starts the generator of the random operators, as that of the interpreter.
	Seed uint64

	kernels map[string]Kernel
	weights map[*plan.Buffer]Memory
	sample  *sampler          // of CheckSample
	drawn   map[*ssa.Op]int64 // how often each random operator has drawn in this run
}

// NewSession loads the kernels of a plan.
func NewSession(p *plan.Plan, b Backend) *Session {
	return &Session{Plan: p, Backend: b, kernels: map[string]Kernel{}, weights: map[*plan.Buffer]Memory{}}
}

// Close frees the weights.
func (s *Session) Close() error {
	var first error
	for _, f := range s.Plan.Buffers {
		if m, ok := s.weights[f]; ok {
			if err := s.Backend.Free(m); err != nil && first == nil {
				first = err
			}
		}
	}
	clear(s.weights)
	return first
}

// Run runs the plan. Inputs are those of the function, in order.
func (s *Session) Run(inputs []interp.Value) ([]interp.Value, *Report, error) {
	f := s.Plan.Func
	if len(inputs) != len(f.Body.Params) {
		return nil, nil, fmt.Errorf("%d arguments for %d inputs", len(inputs), len(f.Body.Params))
	}
	if err := s.load(); err != nil {
		return nil, nil, err
	}
	r := &run{Session: s, lists: map[*ssa.Value][]handed{}, env: map[string]int64{}, host: make([]interp.Value, f.NumValues()), onHost: make([]bool, f.NumValues()),
		memory: map[*plan.Buffer]Memory{}, fresh: map[*plan.Buffer]bool{}, pool: newPool(), report: &Report{Device: s.Backend.Name()}}
	began := time.Now()
	defer r.free()
	s.drawn = map[*ssa.Op]int64{}
	r.env[emit.SeedLow], r.env[emit.SeedHigh] = int64(int32(s.Seed)), int64(int32(s.Seed>>32))
	for i, p := range f.Body.Params {
		if err := r.bind(p, inputs[i]); err != nil {
			return nil, nil, fmt.Errorf("input %s: %w", p.Name, err)
		}
		r.set(p, inputs[i])
	}
	if err := r.steps(s.Plan.Steps); err != nil {
		return nil, nil, err
	}
	var out []interp.Value
	for _, v := range f.Body.Returns() {
		x, err := r.value(v)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, x)
	}
	r.report.Elapsed = time.Since(began)
	return out, r.report, nil
}

// steps runs steps in order. Its error is a *StepError of the innermost step that failed.
func (r *run) steps(steps []*plan.Step) error {
	for _, step := range steps {
		began := time.Now()
		rep := StepReport{Step: step}
		var err error
		switch {
		case step.Launch != nil:
			err = r.launch(step, &rep)
		case step.Read != nil:
			err = r.read(step.Read, &rep)
		case step.Resolve:
			err = r.resolve(step.Op, &rep)
		case step.Control != nil:
			err = r.control(step, &rep)
		case step.Sequence != nil:
			err = r.sequence(step, &rep)
		case step.Host == "sizes":
			err = r.fromSizes(step.Op)
		default:
			err = r.hostStep(step, &rep)
		}
		if err == nil && r.Observe != nil {
			err = r.Observe(step, func(v *ssa.Value) (*tensor.Tensor, error) {
				x, err := r.value(v)
				return x.Tensor, err
			})
		}
		if err != nil {
			var inner *StepError
			if errors.As(err, &inner) {
				return inner
			}
			return &StepError{step, r.Plan.Source(step.Op), err}
		}
		rep.Elapsed = time.Since(began)
		r.report.Steps = append(r.report.Steps, rep)
		r.report.LaneInstructions += rep.LaneInstructions
		if step.Launch != nil && !rep.Skipped {
			r.report.Launches++
		}
	}
	return nil
}

// load brings kernels and weights to the device, once.
func (s *Session) load() error {
	for _, k := range s.Plan.Kernels {
		if _, ok := s.kernels[k.Name]; ok {
			continue
		}
		code := k.Kernel
		if s.Replace != nil {
			code = s.Replace(code)
		}
		l, err := s.Backend.Load(code)
		if err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
		s.kernels[k.Name] = l
	}
	for _, f := range s.Plan.Buffers {
		if f.Kind != plan.Weight || s.weights[f] != nil {
			continue
		}
		t := onnx.ConstOf(f.Value)
		if t == nil || !t.HasData() {
			return fmt.Errorf("the elements of %s are not at hand", f.Value.Name)
		}
		m, err := s.Backend.Alloc(t.NumBytes())
		if err != nil {
			return err
		}
		s.weights[f] = m
		if err := s.Backend.Upload(m, t.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

type run struct {
	*Session
	env    map[string]int64
	host   []interp.Value          // by value ID, where onHost
	lists  map[*ssa.Value][]handed // of sequences on the device
	onHost []bool
	memory map[*plan.Buffer]Memory
	fresh  map[*plan.Buffer]bool // the content on the device is what it should be
	arena  Memory
	sizes  []int64
	offset []int64
	own    []Memory // freed at the end
	pool   pool
	report *Report
}

func (r *run) free() {
	for _, m := range r.own {
		_ = r.Backend.Free(m) // what failed has been reported by the step that it made fail
	}
}

// bind gives the symbols in a value's type their values, and checks the sizes that are known.
func (r *run) bind(v *ssa.Value, x interp.Value) error {
	t := v.Tensor()
	if x.Tensor == nil || t == nil {
		return nil
	}
	have := x.Tensor
	if t.DType != tensor.Undefined && t.DType != have.DType {
		return fmt.Errorf("is %v, expected %v", have, t)
	}
	if err := r.bindShape(v, have.Shape); err != nil {
		return err
	}
	if v.Sym != nil && have.DType.IsInt() && have.NumElements() == int64(len(v.Sym)) {
		for i, n := range have.Int64s() {
			if err := r.pair(v.Sym[i], n); err != nil {
				return err
			}
		}
	}
	return nil
}

// bindShape gives the symbols in the sizes of a value their values, and checks the sizes that are known.
func (r *run) bindShape(v *ssa.Value, shape []int64) error {
	t := v.Tensor()
	if !t.Ranked {
		return nil
	}
	if len(t.Dims) != len(shape) {
		return fmt.Errorf("has the sizes %v, expected %v", shape, t)
	}
	for i, e := range t.Dims {
		if err := r.pair(e, shape[i]); err != nil {
			return fmt.Errorf("has the sizes %v, expected %v: %w", shape, t, err)
		}
	}
	return nil
}

// pair gives a symbol its value; any other expression, and a symbol that has one, must have that value.
func (r *run) pair(e sym.Expr, n int64) error {
	if name, ok := e.Name(); ok {
		if _, bound := r.env[name]; !bound {
			r.env[name] = n
			return nil
		}
	}
	if want, ok := e.Eval(r.env); ok && want != n {
		return fmt.Errorf("size %s is %d, not %d", e, want, n)
	}
	return nil
}

// set records a value that the host has.
func (r *run) set(v *ssa.Value, x interp.Value) {
	r.host[v.ID], r.onHost[v.ID] = x, true
	if f := r.Plan.BufferOf(v); f != nil {
		r.fresh[f] = false
	}
}

func (r *run) isOnHost(v *ssa.Value) bool { return v.ID >= 0 && r.onHost[v.ID] }

func (r *run) eval(e sym.Expr) (int64, error) {
	n, ok := e.Eval(r.env)
	if !ok {
		return 0, fmt.Errorf("size %s is not known", e)
	}
	return n, nil
}

func (r *run) shape(v *ssa.Value) ([]int64, error) {
	out := []int64{}
	for _, e := range v.Tensor().Dims {
		n, err := r.eval(e)
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, fmt.Errorf("size %s is %d", e, n)
		}
		out = append(out, n)
	}
	return out, nil
}

// value brings a value to the host.
func (r *run) value(v *ssa.Value) (interp.Value, error) {
	if v == nil {
		return interp.Value{}, nil
	}
	if r.isOnHost(v) {
		return r.host[v.ID], nil
	}
	if t := onnx.ConstOf(v); t != nil {
		return interp.Of(t), nil
	}
	if l, is := v.Type.(*ssa.ListType); is {
		return r.listValue(v, l)
	}
	root := r.Plan.Root(v)
	shape, err := r.shape(v)
	if err != nil {
		return interp.Value{}, err
	}
	if root != v {
		x, err := r.value(root)
		if err != nil || x.Tensor == nil {
			return x, err
		}
		return interp.Of(x.Tensor.Reshape(shape)), nil
	}
	f := r.Plan.BufferOf(v)
	d := v.DType()
	n := int64(d.Size())
	for _, s := range shape {
		n *= s
	}
	if n > 0 && (f == nil || r.memory[f] == nil || !r.fresh[f]) {
		return interp.Value{}, fmt.Errorf("value %s is not at hand", v.Name)
	}
	data := make([]byte, n)
	if n > 0 {
		if err := r.Backend.Sync(); err != nil {
			return interp.Value{}, err
		}
		if err := r.Backend.Download(r.memory[f], data); err != nil {
			return interp.Value{}, err
		}
	}
	return interp.Of(tensor.New(d, shape, data)), nil
}

// device gives the memory of a buffer, with the content that the host has for it.
func (r *run) device(f *plan.Buffer, reads bool) (Memory, error) {
	if f.Kind == plan.Weight {
		return r.weights[f], nil
	}
	if r.sizes == nil {
		if err := r.allocate(); err != nil {
			return nil, err
		}
	}
	m := r.memory[f]
	if m == nil {
		n, err := r.eval(index.Prod(f.Value.Tensor().Dims))
		if err != nil {
			return nil, err
		}
		if n < 0 {
			return nil, fmt.Errorf("value %s of type %v has a negative size for these inputs", f.Value.Name, f.Value.Type)
		}
		bytes := n * int64(f.Value.DType().Size())
		if r.offset != nil && r.offset[f.ID] >= 0 {
			m = r.Backend.Slice(r.arena, r.offset[f.ID], bytes)
		} else {
			h, err := r.take(bytes)
			if err != nil {
				return nil, err
			}
			m, r.pool.held[f] = h.memory, h
		}
		r.memory[f] = m
	}
	if reads && !r.fresh[f] {
		if !r.isOnHost(f.Value) || r.host[f.Value.ID].Tensor == nil {
			return nil, fmt.Errorf("value %s is not at hand", f.Value.Name)
		}
		if err := r.Backend.Upload(m, r.host[f.Value.ID].Tensor.Bytes()); err != nil {
			return nil, err
		}
		r.fresh[f] = true
	}
	return m, nil
}

// allocate makes the arena, if the sizes are all known from the inputs; else each buffer gets memory of its own.
func (r *run) allocate() error {
	sizes, ok := r.Plan.BufferSizes(r.env)
	r.sizes = []int64{}
	if !ok {
		return nil
	}
	r.sizes = sizes
	offset, total := r.Plan.Allocate(sizes)
	m, err := r.Backend.Alloc(total)
	if err != nil {
		return err
	}
	r.own = append(r.own, m)
	r.arena, r.offset, r.report.Arena = m, offset, total
	return nil
}

// draws gives the symbol of how often the operator of a launch has drawn its value; a run of the operator begins with its first launch.
func (r *run) draws(s *plan.Step) {
	if !emit.Draws(s.Op.Kind) {
		return
	}
	if s.First {
		r.drawn[s.Op]++
	}
	r.env[emit.Drawn] = r.drawn[s.Op] - 1
}

// interpreter runs an operator as the device does, or has done if it has run already.
func (s *Session) interpreter(o *ssa.Op, done bool) *interp.Interpreter {
	in := &interp.Interpreter{Seed: s.Seed, Drawn: s.drawn}
	if done && emit.Draws(o.Kind) {
		in.Drawn = map[*ssa.Op]int64{o: s.drawn[o] - 1}
	}
	return in
}

func (r *run) launch(s *plan.Step, rep *StepReport) error {
	r.draws(s)
	for _, e := range s.Launch.Guards {
		n, err := r.eval(e)
		if err != nil {
			return err
		}
		if n > math.MaxInt32 {
			return fmt.Errorf("%s = %d elements are more than indices of 32 bits reach", e, n)
		}
	}
	for i, e := range s.Launch.Grid {
		n, err := r.eval(e)
		if err != nil {
			return err
		}
		if n > math.MaxInt32 {
			return fmt.Errorf("a grid of %d blocks", n)
		}
		rep.Grid[i] = int(n)
	}
	skip := rep.Grid[0] == 0 || rep.Grid[1] == 0 || rep.Grid[2] == 0
	if n, ok := s.Launch.Work.Eval(r.env); ok {
		rep.Flops = n
	}
	var args []Arg
	next := 0
	for _, p := range s.Launch.Kernel.Params {
		if p.Mem == nil {
			n, err := r.eval(p.Size)
			if err != nil {
				return err
			}
			if n != int64(int32(n)) {
				return fmt.Errorf("%s = %d does not fit 32 bits", p.Size, n)
			}
			args = append(args, Arg{Scalar: int32(n)})
			continue
		}
		f := s.Args[next]
		next++
		m, err := r.device(f, !p.Mem.Writes && !skip)
		if err != nil {
			return err
		}
		if p.Mem.Writes {
			r.fresh[f] = true
		}
		n, err := r.eval(index.Prod(f.Value.Tensor().Dims))
		if err != nil {
			return err
		}
		rep.Bytes += n * int64(f.Value.DType().Size())
		args = append(args, Arg{Memory: m})
	}
	if skip {
		rep.Skipped = true
		return nil
	}
	if r.sample != nil {
		return r.sampled(s, rep, args)
	}
	var err error
	rep.Stats, err = r.Backend.Launch(r.kernels[s.Kernel.Name], rep.Grid, args)
	return err
}

// fromSizes computes a tensor of integers from the sizes.
func (r *run) fromSizes(o *ssa.Op) error {
	for _, v := range o.Results {
		ns := make([]int64, len(v.Sym))
		for i, e := range v.Sym {
			n, err := r.eval(e)
			if err != nil {
				return err
			}
			ns[i] = n
		}
		shape := []int64{}
		if v.Tensor().Rank() == 1 {
			shape = append(shape, int64(len(ns)))
		}
		r.set(v, interp.Of(tensor.FromInts(v.DType(), shape, ns)))
	}
	return nil
}

func (r *run) hostStep(s *plan.Step, rep *StepReport) error {
	var first error
	read := func(v *ssa.Value) interp.Value {
		x, err := r.value(v)
		if err != nil && first == nil {
			first = err
		}
		if x.Tensor != nil && !r.onHost[v.ID] && onnx.ConstOf(v) == nil {
			rep.HostRead += x.Tensor.NumBytes()
		}
		return x
	}
	in := make([]interp.Value, s.Op.NumOperands())
	for i := range in {
		if v := s.Op.Operand(i); v != nil {
			in[i] = read(v)
		}
	}
	captured := map[*ssa.Value]interp.Value{}
	for _, v := range interp.Captured(s.Op) {
		captured[v] = read(v)
	}
	if first != nil {
		return first
	}
	out, err := r.interpreter(s.Op, false).RunOp(s.Op, in, func(v *ssa.Value) interp.Value { return captured[v] })
	if err != nil {
		return err
	}
	for i, v := range s.Op.Results {
		if i < len(out) {
			if err := r.bind(v, out[i]); err != nil {
				return err
			}
			r.set(v, out[i])
		}
	}
	return nil
}
