// Package fuse decides which operators share a kernel.
package fuse

import (
	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// Mode says how much is fused.
type Mode string

const (
	// None gives every node kernels of its own, and every value a buffer: the mode to look for the first difference in.
	None Mode = "none"
	// Light computes chains of elementwise operators, views and Concats of few operands where they are read, and what follows a product, a
	// convolution, a reduction or a normalization element by element in its kernel, and the rows that a reduction went along. A product, a Softmax and a product are one kernel, which sums in another order;
	// all else changes no bit.
	Light Mode = "light"
)

// Limits of a group: what a kernel of many operands needs in registers.
const (
	maxOperands = 16
	maxOps      = 24
	// maxShared is how many values of a group several of its operators read: a kernel is built as if each had its own.
	maxShared = 3
)

// Result is the partition of a block.
type Result struct {
	// Groups are the groups by the operator that they stand for: their root.
	Groups map[*ssa.Op]emit.Group
	// Inner are the operators that another one's kernel computes.
	Inner map[*ssa.Op]bool
}

// Partition groups the operators of a block for which hasKernel holds. What blocked names is not computed in another
// kernel.
func Partition(b *ssa.Block, mode Mode, hasKernel func(*ssa.Op) bool, blocked map[*ssa.Op]bool) Result {
	r := Result{map[*ssa.Op]emit.Group{}, map[*ssa.Op]bool{}}
	groups, taken, at := map[*ssa.Op]*group{}, map[*ssa.Op]int{}, map[*ssa.Op]int{}
	for o := range b.Ops() {
		at[o] = len(at)
		if !hasKernel(o) {
			continue
		}
		g := &group{emit.Group{Root: o, Inlined: map[*ssa.Value]bool{}}, 1, 0, map[*ssa.Value]bool{}}
		if emit.IsView(o.Kind) {
			g.ops = 0
		}
		groups[o] = g
		for _, v := range o.Operands() {
			if v != nil && onnx.ConstOf(v) == nil {
				g.reads[v] = true
			}
		}
		if mode == None {
			continue
		}
		free := func(v *ssa.Value) *group {
			if v == nil || v.Def() == nil || blocked[v.Def()] {
				return nil
			}
			return groups[v.Def()]
		}
		for _, in := range g.attends(o, free) {
			r.Inner[in] = true
			delete(groups, in)
		}
		for _, v := range o.Operands() {
			p := free(v)
			if p == nil {
				continue
			}
			if !g.takes(o, v, p) {
				continue
			}
			g.join(v, p)
			d := v.Def()
			if taken[d] += uses(o, v); taken[d] == allUses(d) { // who reads through a view does not need it
				r.Inner[d] = true
				delete(groups, d)
			}
		}
		for v := g.shares(at, free); v != nil; v = g.shares(at, free) {
			d := v.Def()
			g.join(v, groups[d])
			g.shared++
			r.Inner[d] = true
			delete(groups, d)
		}
	}
	for o, g := range groups {
		r.Groups[o] = g.Group
	}
	return r
}

type group struct {
	emit.Group
	ops    int                 // without views
	shared int                 // values that several operators of the group read
	reads  map[*ssa.Value]bool // what is read from memory
}

// shares gives the last value that only operators of the group read, several of them, at the place at hand, and which its kernel can compute, too: what an activation is a function of. nil if there is none.
func (g *group) shares(at map[*ssa.Op]int, free func(*ssa.Value) *group) *ssa.Value {
	root := g.Root.Results[0]
	inPlace := func(v *ssa.Value) bool {
		return emit.InPlace(v.Def().Kind) && SameDims(v, root) && len(v.Def().Results) == 1
	}
	if g.Hero != nil || g.Scores != nil || g.shared == maxShared || !inPlace(root) {
		return nil
	}
	for v := range g.Inlined {
		if !inPlace(v) {
			return nil
		}
	}
	var last *ssa.Value
	for v := range g.reads {
		p := free(v)
		if p == nil || len(v.Def().Results) > 1 || !SameDims(v, root) || last != nil && at[last.Def()] > at[v.Def()] || !g.readsAlone(v) {
			continue
		}
		hero := p.Hero
		if hero == nil {
			hero = p.Root
		}
		fits := emit.HasEpilogue(hero.Kind) || p.Hero == nil && emit.InPlace(p.Root.Kind)
		if fits && g.ops+p.ops <= maxOps && len(g.reads)+len(p.reads) <= maxOperands && g.shared+p.shared < maxShared {
			last = v
		}
	}
	return last
}

// readsAlone reports a value that only operators of the group read.
func (g *group) readsAlone(v *ssa.Value) bool {
	for u := range v.Uses() {
		if o := u.Op(); o == nil || o != g.Root && (len(o.Results) != 1 || !g.Inlined[o.Results[0]]) {
			return false
		}
	}
	return true
}

// takes reports that the kernel of o can compute v, the result of group p, too.
func (g *group) takes(o *ssa.Op, v *ssa.Value, p *group) bool {
	// views cost nothing but an index, so that each reader may go through them; all else is computed for one reader only
	views := p.only(func(o *ssa.Op) bool { return emit.IsView(o.Kind) })
	alone := v.HasOneUse() && len(v.Def().Results) == 1
	if !alone && (!views || g.Inlined[v]) || g.ops+p.ops > maxOps || len(g.reads)+len(p.reads) > maxOperands {
		return false
	}
	class := emit.Class(o.Kind)
	pointwise := emit.Pointwise(o)
	same := v.Tensor() != nil && v.Tensor().Ranked && o.Results[0].Tensor().Ranked && index.Prod(v.Tensor().Dims).Equal(index.Prod(o.Results[0].Tensor().Dims))
	same = same || pointwise && o.Kind == "onnx::Concat" // it reads each element once
	switch {
	case p.Hero != nil || emit.Class(p.Root.Kind) != "loop" && p.Root.Kind != "onnx::Transpose":
		// what follows a hero element by element, in its shape or what a Reshape makes of it; only one hero fits
		hero := p.Hero
		if hero == nil {
			hero = p.Root
		}
		if !emit.HasEpilogue(hero.Kind) || g.Hero != nil {
			return false
		}
		if emit.KeepsOrder(o.Kind) {
			return !along(hero, v)
		}
		return pointwise && emit.InPlace(o.Kind) && (SameDims(v, o.Results[0]) || SameDims(v, hero.Results[0]) && along(hero, o.Results[0])) && o.Operand(0) != nil && once(o, v)
	case p.Root.Kind == "onnx::Concat":
		return emit.Pointwise(p.Root) && pointwise && same
	case emit.IsView(p.Root.Kind):
		// reading through a view costs nothing but its index; an elementwise chain behind it is computed at most once for each element
		if !views && !same {
			return false
		}
		if o.Kind == "onnx::Transpose" && views && emit.KeepsOrder(p.Root.Kind) { // who asked for this kernel wants the Transpose to be read through, too
			return true
		}
		return pointwise || views && emit.ReadsThrough(o.Kind) && (!emit.AlongRows(o.Kind) || v == o.Operand(0) && p.only(emit.KeepsRows))
	case p.Root.Kind == "onnx::RotaryEmbedding": // two elements and two angles for each: not worth doing twice
		return emit.ReadsOnce(o, v) || pointwise && same && (emit.InPlace(o.Kind) || o.Kind == "onnx::Concat")
	}
	if class == "reduce" && o.Kind != "onnx::ReduceLogSumExp" { // it reads each element once
		return v == o.Operand(0) && p.only(func(o *ssa.Op) bool { return emit.InPlace(o.Kind) || emit.KeepsRows(o) })
	}
	return pointwise && same && emit.InPlace(p.Root.Kind)
}

// along reports a value of as many elements as a reduction reads, which its kernel can compute from its result.
func along(hero *ssa.Op, v *ssa.Value) bool {
	return emit.FollowsRows(hero) && SameDims(v, hero.Operand(0))
}

// only reports a group all of whose operators are of a kind.
func (g *group) only(is func(*ssa.Op) bool) bool {
	for v := range g.Inlined {
		if !is(v.Def()) {
			return false
		}
	}
	return g.Hero == nil && is(g.Root)
}

// allUses counts the uses of all results of o.
func allUses(o *ssa.Op) int {
	n := 0
	for _, v := range o.Results {
		n += v.NumUses()
	}
	return n
}

func once(o *ssa.Op, v *ssa.Value) bool { return uses(o, v) == 1 }

// uses counts the operands of o that are v.
func uses(o *ssa.Op, v *ssa.Value) int {
	n := 0
	for _, w := range o.Operands() {
		if w == v {
			n++
		}
	}
	return n
}

// SameDims reports values of one shape.
func SameDims(v, w *ssa.Value) bool {
	a, b := v.Tensor(), w.Tensor()
	if a == nil || b == nil || !a.Ranked || !b.Ranked || len(a.Dims) != len(b.Dims) {
		return false
	}
	for i := range a.Dims {
		if !a.Dims[i].Equal(b.Dims[i]) {
			return false
		}
	}
	return true
}

func (g *group) join(v *ssa.Value, p *group) {
	if emit.HasEpilogue(p.Root.Kind) && p.Hero == nil {
		g.Hero = p.Root
	} else {
		if p.Hero != nil {
			g.Hero = p.Hero
		}
		g.Inlined[v] = true
	}
	if p.Scores != nil {
		g.Scores = p.Scores
	}
	g.include(v, p)
}

// include takes over what the group of v reads and computes where it is read.
func (g *group) include(v *ssa.Value, p *group) {
	for w := range p.Inlined {
		g.Inlined[w] = true
	}
	g.ops += p.ops
	g.shared += p.shared
	delete(g.reads, v)
	for w := range p.reads {
		g.reads[w] = true
	}
}
