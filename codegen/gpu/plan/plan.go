// Package plan turns a module of the ONNX dialect into a list of kernel launches and host steps over buffers.
//
// Sizes are expressions over symbols: those of the inputs' axes, and those that a step brings about: a size that a kernel has
// counted, or an integer that sizes depend on, is read from the device. One plan serves all sizes that they may have. If and
// Loop are steps with steps of their own.
package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/fuse"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/codegen/gpu/legalize"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Plan is how to run a module. It owns a copy of it, in the newest encoding, whose values and ops it refers to.
type Plan struct {
	Fusion  fuse.Mode
	TF32    bool // see Options
	Module  *ssa.Module
	Func    *ssa.Func
	Buffers []*Buffer // in the order of their first use
	Kernels []*Kernel // each once, however often it is launched
	Steps   []*Step
	Nodes   []Node // what became of each node of the graph, in order

	buffers map[*ssa.Value]*Buffer
	aliases map[*ssa.Op]bool
	copies  map[*ssa.Op]bool // operators that could be an alias, and are none: they have memory of their own, or are computed where they are read
}

// BufferKind says where the content of a buffer comes from.
type BufferKind string

// Kinds of buffers.
const (
	Input  BufferKind = "input"
	Weight BufferKind = "weight"
	Temp   BufferKind = "temp"
	Output BufferKind = "output"
	// Local is the memory of a value in an If or a Loop, or of a result of one: it has no place in the arena.
	Local BufferKind = "local"
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

// Step is one thing to do. Exactly one of Launch, Read, Control, Sequence, Resolve and Host is set.
type Step struct {
	// Op is the node whose result the step computes; Ops are all nodes that it computes.
	Op  *ssa.Op
	Ops []*ssa.Op
	// Group are the nodes that its kernel computes on its way, in order, Op the last one: those of Ops, and such as other kernels
	// compute, too. Nil for Op alone.
	Group []*ssa.Op
	// Launch starts kernel Kernel.
	Launch *emit.Launch
	Kernel *Kernel
	Args   []*Buffer // of the kernel, those that are buffers
	First  bool      // it is the first launch of Op
	// Parts are the steps that Launch does the work of, one after another in its blocks; nil for a launch of one operator. See join.
	Parts []*Step
	// Read is a value whose elements are brought from the device: they are the values of its Sym.
	Read *ssa.Value
	// Resolve infers the sizes of the results of Op from the sizes and, where they decide, the elements of its operands.
	Resolve bool
	// Control is set for an If or a Loop, Sequence for an operator on sequences.
	Control  *Control
	Sequence *Sequence
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
	return NewWith(m, Options{Fusion: mode, Hint: hint})
}

// Options say how a module is planned.
type Options struct {
	Fusion fuse.Mode
	// Hint has likely values of symbols, for which tiles are chosen.
	Hint map[string]int64
	// TF32 rounds the factors of large products and convolutions of float32 to tf32, for tensor cores.
	TF32 bool
}

// NewWith is New with options.
func NewWith(m *ssa.Module, o Options) (*Plan, error) {
	c, err := copyModule(m)
	if err != nil {
		return nil, err
	}
	p := &Plan{Fusion: o.Fusion, TF32: o.TF32, Module: c, Func: c.Main(), buffers: map[*ssa.Value]*Buffer{}, aliases: map[*ssa.Op]bool{}, copies: map[*ssa.Op]bool{}}
	b := &builder{Plan: p, hint: o.Hint, refusals: map[*ssa.Op]string{}, built: map[*ssa.Op]*built{}, launches: map[*ssa.Op][]emit.Launch{}, groups: map[*ssa.Op][]*ssa.Op{}, kernels: map[string]*Kernel{}, bound: map[string]bool{}, named: map[string]bool{}, local: map[*ssa.Value]bool{},
		needed: map[*ssa.Op]bool{}, regions: map[*ssa.Block]*Region{}}
	for _, name := range []string{emit.SeedLow, emit.SeedHigh, emit.Drawn} {
		b.bound[name] = true
	}
	if err := legalize.Module(c, func(o *ssa.Op) error { _, err := b.alone(o); return err }); err != nil {
		return nil, err
	}
	b.ownElements(p.Func.Body)
	b.ownReturns(p.Func.Body)
	if err := b.nameContents(p.Func.Body); err != nil {
		return nil, err
	}
	b.reach()
	b.try(p.Func.Body)
	if err := b.steps(); err != nil {
		return nil, err
	}
	b.lives()
	b.collect()
	return p, nil
}

// AllSteps are the steps in order, those of regions after the step that they belong to.
func (p *Plan) AllSteps() func(yield func(*Step) bool) {
	return func(yield func(*Step) bool) { eachStep(p.Steps, yield) }
}

func eachStep(steps []*Step, yield func(*Step) bool) bool {
	for _, s := range steps {
		if !yield(s) {
			return false
		}
		if s.Control == nil {
			continue
		}
		for _, r := range s.Control.Regions {
			if !eachStep(r.Steps, yield) {
				return false
			}
		}
		if !eachStep(s.Control.Stack, yield) {
			return false
		}
	}
	return true
}

type builder struct {
	*Plan
	hint     map[string]int64
	needed   map[*ssa.Op]bool
	refusals map[*ssa.Op]string // why an op has no kernel
	built    map[*ssa.Op]*built // by alone
	launches map[*ssa.Op][]emit.Launch
	groups   map[*ssa.Op][]*ssa.Op // what the launches of an op compute, see Step.Group
	kernels  map[string]*Kernel    // by digest
	bound    map[string]bool       // symbols that have a value
	named    map[string]bool       // symbols for elements that are read
	local    map[*ssa.Value]bool   // values that have memory of their own, as those in blocks have
	region   *Region               // what is being planned, nil for the function itself
	regions  map[*ssa.Block]*Region
}

// reach marks what the results need, and of an If or a Loop all that its blocks return.
func (b *builder) reach() {
	var visit func(v *ssa.Value)
	visit = func(v *ssa.Value) {
		if v == nil || v.Def() == nil || b.needed[v.Def()] {
			return
		}
		o := v.Def()
		b.needed[o] = true
		for _, w := range o.Operands() {
			visit(w)
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

// built are the launches of an operator alone, or why it has none, and what they were built of.
type built struct {
	values   []*ssa.Value // operands and results
	known    string       // of the values
	launches []emit.Launch
	err      error
}

// alone builds the kernels of an op that shares none. What was built before is used again, if nothing that kernels are built of has changed since: the
// values, their types, what is known of their elements, and which results are used.
func (b *builder) alone(o *ssa.Op) ([]emit.Launch, error) {
	now := &built{values: slices.Concat(o.Operands(), o.Results)}
	var known strings.Builder
	for i, v := range now.values {
		if v != nil {
			fmt.Fprintf(&known, "%s %v %t;", v.Type, v.Sym, i < o.NumOperands() || v.HasUses())
		}
	}
	now.known = known.String()
	if before := b.built[o]; before != nil && before.known == now.known && slices.Equal(before.values, now.values) {
		return before.launches, before.err
	}
	now.launches, now.err = emit.Build(emit.Group{Root: o, Hint: b.hint, TF32: b.TF32})
	b.built[o] = now
	return now.launches, now.err
}

// try builds every op's kernels alone, to know which have any, and then those of the groups. A group that is refused
// is taken apart.
func (b *builder) try(block *ssa.Block) {
	alone := map[*ssa.Op][]emit.Launch{}
	for o := range block.Ops() {
		if !b.needed[o] || isConstant(o) {
			continue
		}
		for _, in := range o.Blocks {
			b.try(in)
		}
		launches, err := b.alone(o)
		if err != nil {
			b.refusals[o] = err.(*emit.Refusal).Reason
			continue
		}
		alone[o] = launches
	}
	launches := alone
	if b.Fusion != fuse.None {
		launches = b.fused(block, alone)
	}
	for o, l := range launches {
		b.launches[o] = l
	}
}

// fused builds the groups of a block.
func (b *builder) fused(block *ssa.Block, alone map[*ssa.Op][]emit.Launch) map[*ssa.Op][]emit.Launch {
	blocked, at := map[*ssa.Op]bool{}, map[*ssa.Op]int{}
	for o := range block.Ops() {
		at[o] = len(at)
	}
	through := b.readThrough(block, alone)
	for {
		out := map[*ssa.Op][]emit.Launch{}
		parts := fuse.Partition(block, b.Fusion, func(o *ssa.Op) bool { return alone[o] != nil && b.fusible(o) }, blocked)
		again := false
		for o := range block.Ops() {
			g, ok := parts.Groups[o]
			if !ok {
				continue
			}
			if g.Hero == nil && len(g.Inlined) == 0 && g.Scores == nil {
				out[o] = alone[o]
				continue
			}
			g.Hint, g.TF32 = b.hint, b.TF32
			launches, err := emit.Build(g)
			if err != nil {
				again = true
				for _, o := range members(at, g) {
					if through[o] { // an alias costs less than a kernel that does nothing else
						delete(b.copies, o)
					}
				}
				if g.Scores != nil { // the rest of the group may do without
					blocked[g.Scores.Softmax] = true
					continue
				}
				if g.Hero != nil {
					blocked[g.Hero] = true
				}
				for v := range g.Inlined {
					blocked[v.Def()] = true
				}
				continue
			}
			out[o] = launches
			b.groups[o] = members(at, g)
		}
		if again {
			continue
		}
		for o, launches := range alone {
			if !b.fusible(o) {
				out[o] = launches
			}
		}
		return out
	}
}

// members are the ops of a group in their order, at is the place of each op of the block.
func members(at map[*ssa.Op]int, g emit.Group) []*ssa.Op {
	out := []*ssa.Op{g.Root}
	if g.Hero != nil {
		out = append(out, g.Hero)
	}
	if g.Scores != nil {
		out = append(out, g.Scores.Ops...)
	}
	for v := range g.Inlined {
		out = append(out, v.Def())
	}
	slices.SortFunc(out, func(a, b *ssa.Op) int { return at[a] - at[b] })
	return slices.Compact(out)
}

// once remembers what f says of an op, so that chains are followed once.
func once(f func(*ssa.Op) bool) func(*ssa.Op) bool {
	said := map[*ssa.Op]bool{}
	return func(o *ssa.Op) bool {
		yes, known := said[o]
		if !known {
			yes = f(o)
			said[o] = yes
		}
		return yes
	}
}

// readThrough finds operators that could be an alias, but for which another operator's result would have to be in memory then: a Reshape of what a
// view gives, if all that read it can go through both, and one between a product and what follows from it element by element.
func (b *builder) readThrough(block *ssa.Block, alone map[*ssa.Op][]emit.Launch) map[*ssa.Op]bool {
	through := map[*ssa.Op]bool{}
	here := func(o *ssa.Op) bool { return o != nil && o.Block() == block && alone[o] != nil }
	// keepsRows reports a view of a chain of views, all of which keep rows.
	var keepsRows func(o *ssa.Op) bool
	keepsRows = once(func(o *ssa.Op) bool {
		d := o.Operand(0).Def()
		return emit.KeepsRows(o) && (!here(d) || !emit.IsView(d.Kind) || keepsRows(d))
	})
	// indexed reports an op whose results are not needed in memory: all readers compute an index for each element that they read.
	var indexed func(o *ssa.Op) bool
	indexed = once(func(o *ssa.Op) bool {
		if brings(o) {
			return false
		}
		read := false
		for _, v := range o.Results {
			if v.Sym != nil {
				return false
			}
			for u := range v.Uses() {
				user := u.Op()
				if !here(user) {
					return false
				}
				read = true
				if b.alias(user) || user.Kind == "onnx::Transpose" && !emit.Pointwise(user) {
					if !indexed(user) {
						return false
					}
					continue
				}
				if !emit.Pointwise(user) && (!emit.ReadsThrough(user.Kind) || emit.AlongRows(user.Kind) && !keepsRows(o)) {
					return false
				}
			}
		}
		return read
	})
	// followed reports an op whose only reader computes an element of each one of its result.
	var followed func(o *ssa.Op) bool
	followed = once(func(o *ssa.Op) bool {
		v := o.Results[0]
		if !v.HasOneUse() || v.Sym != nil || len(o.Results) > 1 || brings(o) {
			return false
		}
		for u := range v.Uses() {
			user := u.Op()
			if !here(user) || !b.fusible(user) {
				return here(user) && b.alias(user) && followed(user)
			}
			return emit.InPlace(user.Kind) && fuse.SameDims(v, user.Results[0])
		}
		return false
	})
	for o := range block.Ops() {
		if alone[o] == nil || !alias(o) || !b.alias(o) {
			continue
		}
		x := o.Operand(0)
		d := x.Def()
		if !here(d) || !b.fusible(d) {
			continue
		}
		hero := x.HasOneUse() && (emit.HasEpilogue(d.Kind) || emit.InPlace(d.Kind) || through[d])
		if emit.IsView(d.Kind) && indexed(d) || hero && emit.KeepsOrder(o.Kind) && followed(o) {
			through[o] = true
			b.copies[o] = true
		}
	}
	return through
}

// fusible reports an op that is computed on the device, if it has kernels: not one that only names its operand's elements, nor
// one that the sizes tell, or that brings sizes with it.
func (b *builder) fusible(o *ssa.Op) bool {
	for _, v := range o.Results {
		if v.Sym != nil {
			return false
		}
	}
	return !b.alias(o) && !brings(o)
}

// brings reports an op the sizes of whose results do not follow from those of its operands.
func brings(o *ssa.Op) bool {
	known := map[string]bool{}
	for _, v := range o.Operands() {
		symbols(v, func(name string) { known[name] = true })
		if v != nil {
			for _, e := range v.Sym {
				e.Symbols(func(name string) { known[name] = true })
			}
		}
	}
	found := false
	for _, v := range o.Results {
		symbols(v, func(name string) { found = found || !known[name] })
	}
	return found
}

// alias reports an op whose result is its operand under another shape, and which needs no memory of its own.
func (b *builder) alias(o *ssa.Op) bool { return alias(o) && !b.copies[o] }

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
	read := map[string]bool{} // by a launch before
	known := func(e sym.Expr) bool {
		ok := true
		e.Symbols(func(name string) { ok = ok && (b.bound[name] || read[name]) })
		return ok
	}
	for _, l := range ls {
		if l.Read != nil {
			for _, e := range l.Read.Sym {
				e.Symbols(func(name string) { read[name] = true })
			}
			continue
		}
		for _, e := range append(l.Grid[:], l.Guards...) {
			if !known(e) {
				return false
			}
		}
		for _, p := range l.Kernel.Params {
			if p.Mem == nil && !known(p.Size) {
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
			if d := v.Def(); b.launches[d] == nil && b.refusals[d] == "" && b.needed[d] && !isConstant(d) && d.Block() == o.Block() {
				visit(d)
			}
		}
		out = append(out, o)
	}
	visit(o)
	return out
}

func isConstant(o *ssa.Op) bool {
	return o != nil && (o.Kind == "onnx::Constant" || o.Kind == "prim::Constant")
}

func (b *builder) steps() error {
	for i, v := range b.Func.Body.Params {
		if v.Tensor() == nil && v.HasUses() {
			return fmt.Errorf("input %d, %s, is no tensor", i, v.Name)
		}
		symbols(v, func(name string) { b.bound[name] = true })
		b.bind(v)
	}
	b.Steps = b.block(b.Func.Body)
	return nil
}

// block plans the ops of a block.
func (b *builder) block(block *ssa.Block) []*Step {
	b.regions[block] = b.region
	var steps []*Step
	add := func(s *Step) { steps = append(steps, s) }
	for _, v := range block.Params {
		if b.region != nil && v.Sym != nil && b.region.Block.Owner().Kind == "onnx::Loop" && v != block.Params[0] {
			add(&Step{Op: block.Owner(), Ops: []*ssa.Op{block.Owner()}, Read: v})
		}
	}
	for o := range block.Ops() {
		if !b.needed[o] {
			continue
		}
		n := Node{Op: o}
		launches := b.launches[o]
		if launches != nil && !b.fromSizes(o) && !b.runnable(launches) && b.resolvable(o) {
			add(&Step{Op: o, Ops: []*ssa.Op{o}, Resolve: true})
			for _, v := range o.Results {
				b.bind(v)
			}
		}
		switch {
		case isConstant(o):
			n.Place = Constant
		case b.fromSizes(o):
			n.Place = Sizes
			add(&Step{Op: o, Ops: []*ssa.Op{o}, Host: "sizes"})
		case b.alias(o) && b.sized(o.Results[0]):
			n.Place = Alias
			b.aliases[o] = true
		case launches != nil && b.runnable(launches):
			n.Place, n.Class = Device, launches[0].Class
			ops := b.computed(o)
			for i := range launches {
				s := b.launch(o, ops, &launches[i])
				s.First = i == 0
				add(s)
			}
		case launches == nil && b.refusals[o] == "":
			n.Place, n.Class = Fused, emit.Class(o.Kind)
		default:
			if s, _ := b.sequence(o); s != nil {
				n.Place, n.Class = Device, "sequence"
				add(s)
				break
			}
			nodes := len(b.Nodes)
			c, reason := b.control(o)
			if c != nil {
				n.Place, n.Class = Device, "control"
				add(&Step{Op: o, Ops: []*ssa.Op{o}, Control: c})
				break
			}
			b.Nodes = b.Nodes[:nodes]
			if reason == "" {
				reason = "sizes that depend on data"
			}
			n.Place, n.Reason = Host, reason
			add(&Step{Op: o, Ops: []*ssa.Op{o}, Host: reason})
			for _, v := range o.Results {
				b.bind(v)
			}
		}
		if n.Place == Device || n.Place == Alias {
			for _, v := range o.Results {
				if v.Sym != nil && v.HasUses() {
					add(&Step{Op: o, Ops: []*ssa.Op{o}, Read: v})
					b.bind(v)
				}
			}
		}
		b.Nodes = append(b.Nodes, n)
	}
	if b.Fusion == fuse.None {
		return steps
	}
	return b.join(block, steps)
}

// launch is the step of a launch, or of what is read before the next one.
func (b *builder) launch(o *ssa.Op, ops []*ssa.Op, l *emit.Launch) *Step {
	if l.Read != nil {
		b.bind(l.Read)
		b.buffer(l.Read)
		return &Step{Op: o, Ops: ops, Read: l.Read}
	}
	s := &Step{Op: o, Ops: ops, Group: b.groups[o], Launch: l, Kernel: b.kernel(l)}
	for _, v := range l.Buffers {
		s.Args = append(s.Args, b.buffer(v))
	}
	return s
}

// kernel is the kernel of a launch, the same one for launches that differ in their buffers alone.
func (b *builder) kernel(l *emit.Launch) *Kernel {
	k := b.kernels[l.Kernel.Name]
	if k == nil {
		k = &Kernel{l.Kernel, l.Class}
		b.kernels[l.Kernel.Name] = k
	}
	return k
}

// collect lists the kernels that steps launch, in their order.
func (b *builder) collect() {
	listed := map[*Kernel]bool{}
	for s := range b.AllSteps() {
		if s.Sequence != nil && s.Sequence.Copy != nil {
			s = s.Sequence.Copy
		}
		if s.Kernel != nil && !listed[s.Kernel] {
			listed[s.Kernel] = true
			b.Kernels = append(b.Kernels, s.Kernel)
		}
	}
}

// resolvable reports an op the sizes of whose results follow from sizes that are known and elements that can be read.
func (b *builder) resolvable(o *ssa.Op) bool {
	if contents[o.Kind] == nil {
		return false
	}
	for _, v := range o.Operands() {
		if v == nil {
			continue
		}
		if v.Tensor() == nil || !b.sized(v) {
			return false
		}
		for _, e := range v.Sym {
			if !b.isBound(e) {
				return false
			}
		}
	}
	return true
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
		region := b.regions[v.Block()]
		switch {
		case emit.IsScratch(v):
			if region = b.region; region != nil {
				f.Kind = Local
			}
		case v.Def() == nil && region == nil:
			f.Kind = Input
		case v.Def() != nil && isConstant(v.Def()):
			f.Kind, region = Weight, nil
		case region != nil || len(v.Def().Blocks) > 0 || b.local[v]:
			f.Kind = Local
		}
		if region != nil {
			region.Buffers = append(region.Buffers, f)
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
		if f.First < 0 {
			f.First = i
		}
		f.Last = i
	}
	for i, step := range b.Steps {
		b.touched(step, func(f *Buffer) { use(f, i) })
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

// touched calls use for the buffers that a step needs, with those that its own steps need.
func (b *builder) touched(step *Step, use func(*Buffer)) {
	value := func(v *ssa.Value) {
		if f := b.BufferOf(v); f != nil {
			use(f)
		}
	}
	eachStep([]*Step{step}, func(s *Step) bool {
		for _, part := range s.parts() {
			for _, f := range part.Args {
				use(f)
			}
		}
		if s.Read != nil {
			value(s.Read)
		} else if s.Launch == nil && s.Parts == nil {
			for _, v := range HostReads(s.Op) {
				value(v)
			}
			for _, v := range s.Op.Results {
				value(v)
			}
		}
		return true
	})
}
