// Package plan turns a module of the ONNX dialect into a list of kernel launches and host steps over buffers.
//
// Sizes are expressions over symbols: those of the inputs' axes, and those that a host step brings about. One plan serves
// all sizes that they may have.
package plan

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Plan is how to run a module. It owns a copy of it, in the newest encoding, whose values and ops it refers to.
type Plan struct {
	Fusion  fuse.Mode
	Module  *ssa.Module
	Func    *ssa.Func
	Buffers []*Buffer // in the order of their first use
	Kernels []*Kernel // each once, however often it is launched
	Steps   []*Step
	Nodes   []Node // what became of each node of the graph, in order

	buffers map[*ssa.Value]*Buffer
	aliases map[*ssa.Op]bool
}

// BufferKind says where the content of a buffer comes from.
type BufferKind string

// Kinds of buffers.
const (
	Input  BufferKind = "input"
	Weight BufferKind = "weight"
	Temp   BufferKind = "temp"
	Output BufferKind = "output"
)

// Buffer is memory for a tensor. Reading one through a view of the same order of elements (Reshape and the like) needs no
// other: several values may share it.
type Buffer struct {
	ID    int
	Kind  BufferKind
	Value *ssa.Value // the first one
	// First and Last are the steps between which the content is needed.
	First, Last int
}

// Kernel is a kernel of the plan.
type Kernel struct {
	*kir.Kernel
	Class string
}

// Step is one thing to do. Exactly one of Launch and Host is set.
type Step struct {
	// Op is the node whose result the step computes; Ops are all nodes that it computes.
	Op  *ssa.Op
	Ops []*ssa.Op
	// Launch starts kernel Kernel.
	Launch *emit.Launch
	Kernel *Kernel
	Args   []*Buffer // of the kernel, those that are buffers
	// Host is the reason why the interpreter runs Op, or "sizes" for one whose result is known from the sizes.
	Host string
}

// Place is where a node is computed.
type Place string

// Places.
const (
	Device   Place = "device" // by kernels of its own
	Fused    Place = "fused"  // in the kernel of another node
	Alias    Place = "alias"  // it is its operand's buffer under another shape
	Sizes    Place = "sizes"  // from the sizes, by the host
	Host     Place = "host"   // by the interpreter
	Constant Place = "constant"
)

// Node is a line of the coverage table.
type Node struct {
	Op     *ssa.Op
	Place  Place
	Class  string // of its kernel
	Reason string // why there is none
}

// BufferOf is the buffer behind a value, nil if it has none.
func (p *Plan) BufferOf(v *ssa.Value) *Buffer { return p.buffers[p.Root(v)] }

// Root is the value whose buffer a value is.
func (p *Plan) Root(v *ssa.Value) *ssa.Value {
	for {
		o := v.Def()
		if o == nil || !p.aliases[o] {
			return v
		}
		v = o.Operand(0)
	}
}

// New plans a module. It must be of the ONNX dialect, with typed inputs; errors are those of inference.
func New(m *ssa.Module, mode fuse.Mode) (*Plan, error) { return NewFor(m, mode, nil) }

// NewFor is New with likely values of the symbols, for which tiles are chosen. The plan serves all sizes all the same.
func NewFor(m *ssa.Module, mode fuse.Mode, hint map[string]int64) (*Plan, error) {
	c, err := copyModule(m)
	if err != nil {
		return nil, err
	}
	p := &Plan{Fusion: mode, Module: c, Func: c.Main(), buffers: map[*ssa.Value]*Buffer{}, aliases: map[*ssa.Op]bool{}}
	b := &builder{Plan: p, hint: hint, refusals: map[*ssa.Op]string{}, launches: map[*ssa.Op][]emit.Launch{}, kernels: map[string]*Kernel{}, bound: map[string]bool{}, needed: map[*ssa.Op]bool{}}
	b.reach()
	b.try()
	if err := b.steps(); err != nil {
		return nil, err
	}
	b.lives()
	return p, nil
}

type builder struct {
	*Plan
	hint     map[string]int64
	needed   map[*ssa.Op]bool
	refusals map[*ssa.Op]string // why an op has no kernel
	launches map[*ssa.Op][]emit.Launch
	kernels  map[string]*Kernel // by digest
	bound    map[string]bool    // symbols that have a value
}

// reach marks what the results need.
func (b *builder) reach() {
	var visit func(v *ssa.Value)
	visit = func(v *ssa.Value) {
		if v == nil || v.Def() == nil || b.needed[v.Def()] || v.Def().Block() != b.Func.Body {
			return
		}
		o := v.Def()
		b.needed[o] = true
		for _, w := range o.Operands() {
			visit(w)
		}
		for in := range nested(o) {
			for _, w := range in.Operands() {
				visit(w)
			}
			for _, c := range in.Blocks {
				for _, w := range c.Returns() {
					visit(w)
				}
			}
		}
		for _, c := range o.Blocks {
			for _, w := range c.Returns() {
				visit(w)
			}
		}
	}
	for _, v := range b.Func.Body.Returns() {
		visit(v)
	}
}

// nested are the ops in the blocks of an op.
func nested(o *ssa.Op) func(yield func(*ssa.Op) bool) {
	return func(yield func(*ssa.Op) bool) {
		for _, c := range o.Blocks {
			for in := range c.AllOps() {
				if !yield(in) {
					return
				}
			}
		}
	}
}

// try builds every op's kernels alone, to know which have any, and then those of the groups. A group that is refused
// is taken apart.
func (b *builder) try() {
	for o := range b.Func.Body.Ops() {
		if !b.needed[o] || o.Kind == "onnx::Constant" || o.Kind == "prim::Constant" {
			continue
		}
		launches, err := emit.Build(emit.Group{Root: o, Hint: b.hint})
		if err != nil {
			b.refusals[o] = err.(*emit.Refusal).Reason
			continue
		}
		b.launches[o] = launches
	}
	if b.Fusion == fuse.None {
		return
	}
	alone := b.launches
	blocked := map[*ssa.Op]bool{}
	for {
		b.launches = map[*ssa.Op][]emit.Launch{}
		parts := fuse.Partition(b.Func.Body, b.Fusion, func(o *ssa.Op) bool { return alone[o] != nil && fusible(o) }, blocked)
		again := false
		for o := range b.Func.Body.Ops() {
			g, ok := parts.Groups[o]
			if !ok {
				continue
			}
			if g.Hero == nil && len(g.Inlined) == 0 {
				b.launches[o] = alone[o]
				continue
			}
			g.Hint = b.hint
			launches, err := emit.Build(g)
			if err != nil {
				again = true
				if g.Hero != nil {
					blocked[g.Hero] = true
				}
				for v := range g.Inlined {
					blocked[v.Def()] = true
				}
				continue
			}
			b.launches[o] = launches
		}
		if !again {
			break
		}
	}
	for o, launches := range alone {
		if !fusible(o) {
			b.launches[o] = launches
		}
	}
}

// fusible reports an op that is computed on the device, if it has kernels: not one that only names its operand's elements, nor
// one that the sizes tell.
func fusible(o *ssa.Op) bool {
	for _, v := range o.Results {
		if v.Sym != nil {
			return false
		}
	}
	return !alias(o)
}

// symbols calls f for the symbols in the sizes of a value.
func symbols(v *ssa.Value, f func(name string)) {
	if t := v.Tensor(); t != nil {
		for _, d := range t.Dims {
			d.Symbols(f)
		}
	}
}

func (b *builder) isBound(e sym.Expr) bool {
	ok := true
	e.Symbols(func(name string) { ok = ok && b.bound[name] })
	return ok
}

// sized reports a value whose sizes are known once the steps before have run.
func (b *builder) sized(v *ssa.Value) bool {
	ok := true
	symbols(v, func(name string) { ok = ok && b.bound[name] })
	return ok
}

// runnable reports launches whose sizes are all known once the steps before have run.
func (b *builder) runnable(ls []emit.Launch) bool {
	for _, l := range ls {
		for _, e := range append(l.Grid[:], l.Guards...) {
			if !b.isBound(e) {
				return false
			}
		}
		for _, p := range l.Kernel.Params {
			if p.Mem == nil && !b.isBound(p.Size) {
				return false
			}
		}
	}
	return true
}

// computed are all ops of which a step computes the results.
func (b *builder) computed(o *ssa.Op) []*ssa.Op {
	// the group is what o reaches through ops that are in no step of their own
	var out []*ssa.Op
	seen := map[*ssa.Op]bool{}
	var visit func(o *ssa.Op)
	visit = func(o *ssa.Op) {
		if seen[o] {
			return
		}
		seen[o] = true
		for _, v := range o.Operands() {
			if v == nil || v.Def() == nil {
				continue
			}
			if d := v.Def(); b.launches[d] == nil && b.refusals[d] == "" && b.needed[d] && !isConstant(d) {
				visit(d)
			}
		}
		out = append(out, o)
	}
	visit(o)
	return out
}

func isConstant(o *ssa.Op) bool { return o.Kind == "onnx::Constant" || o.Kind == "prim::Constant" }

func (b *builder) steps() error {
	for i, v := range b.Func.Body.Params {
		if v.Tensor() == nil && v.HasUses() {
			return fmt.Errorf("input %d, %s, is no tensor", i, v.Name)
		}
		symbols(v, func(name string) { b.bound[name] = true })
	}
	for o := range b.Func.Body.Ops() {
		if !b.needed[o] {
			continue
		}
		n := Node{Op: o}
		launches := b.launches[o]
		switch {
		case isConstant(o):
			n.Place = Constant
		case b.fromSizes(o):
			n.Place = Sizes
			b.Steps = append(b.Steps, &Step{Op: o, Ops: []*ssa.Op{o}, Host: "sizes"})
		case alias(o) && b.sized(o.Results[0]):
			n.Place = Alias
			b.aliases[o] = true
		case launches != nil && b.runnable(launches):
			n.Place, n.Class = Device, launches[0].Class
			ops := b.computed(o)
			for i := range launches {
				l := &launches[i]
				k := b.kernels[l.Kernel.Name]
				if k == nil {
					k = &Kernel{l.Kernel, l.Class}
					b.kernels[l.Kernel.Name] = k
					b.Kernels = append(b.Kernels, k)
				}
				s := &Step{Op: o, Ops: ops, Launch: l, Kernel: k}
				for _, v := range l.Buffers {
					s.Args = append(s.Args, b.buffer(v))
				}
				b.Steps = append(b.Steps, s)
			}
		case launches == nil && b.refusals[o] == "":
			n.Place, n.Class = Fused, emit.Class(o.Kind)
		default:
			n.Place, n.Reason = Host, b.refusals[o]
			if n.Reason == "" {
				n.Reason = "sizes that depend on data"
			}
			b.Steps = append(b.Steps, &Step{Op: o, Ops: []*ssa.Op{o}, Host: n.Reason})
			for _, v := range o.Results {
				symbols(v, func(name string) { b.bound[name] = true })
				for _, e := range v.Sym {
					e.Symbols(func(name string) { b.bound[name] = true })
				}
			}
		}
		b.Nodes = append(b.Nodes, n)
	}
	return nil
}

// fromSizes reports an op whose results are known from symbols that have values.
func (b *builder) fromSizes(o *ssa.Op) bool {
	for _, v := range o.Results {
		t := v.Tensor()
		if v.Sym == nil || t == nil || !t.Ranked || len(t.Dims) > 1 {
			return false
		}
		for _, e := range v.Sym {
			if !b.isBound(e) {
				return false
			}
		}
	}
	return len(o.Results) > 0
}

// buffer is the buffer of a value.
func (b *builder) buffer(v *ssa.Value) *Buffer {
	v = b.Root(v)
	f := b.buffers[v]
	if f == nil {
		f = &Buffer{ID: len(b.Buffers), Kind: Temp, Value: v}
		switch {
		case v.Def() == nil:
			f.Kind = Input
		case isConstant(v.Def()):
			f.Kind = Weight
		}
		b.buffers[v] = f
		b.Buffers = append(b.Buffers, f)
	}
	return f
}

// lives finds between which steps each buffer is needed. The results of the function are needed to the end, and so is
// everything where no node is fused: to compare it.
func (b *builder) lives() {
	end := len(b.Steps)
	for _, f := range b.Buffers {
		f.First, f.Last = -1, -1
	}
	use := func(f *Buffer, i int) {
		if f == nil {
			return
		}
		if f.First < 0 {
			f.First = i
		}
		f.Last = i
	}
	for i, s := range b.Steps {
		for _, f := range s.Args {
			use(f, i)
		}
		if s.Launch == nil {
			for _, v := range HostReads(s.Op) {
				use(b.BufferOf(v), i)
			}
			for _, v := range s.Op.Results {
				use(b.BufferOf(v), i)
			}
		}
	}
	for _, v := range b.Func.Body.Returns() {
		if f := b.BufferOf(v); f != nil {
			use(f, end)
			if f.Kind == Temp {
				f.Kind = Output
			}
		}
	}
	if b.Fusion == fuse.None {
		for _, f := range b.Buffers {
			f.Last = end
		}
	}
}
