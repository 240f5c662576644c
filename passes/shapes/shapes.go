// Package shapes is the pass that computes each size once, in the cheapest way.
//
// Integer tensors with equal symbolic elements are equal, however they are computed. The pass uses the first of them for all, a
// constant if the elements are known, and one Shape of a graph input if that has the sizes.
package shapes

import (
	"slices"
	"strings"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/facts"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass merges computations of sizes.
var Pass = passes.Pass{
	Name: "shapes",
	Doc:  "compute equal sizes once, from the shapes of inputs if possible",
	Before: `
graph(%x : Float(N, 4)):
  %two : Long() = onnx::Constant[value={2}]()
  %i : Long(1) = onnx::Constant[value={0}]()
  %a : Float(N, 4) = onnx::Exp(%x)
  %s : Long(2) = onnx::Shape(%a)
  %n : Long(1) = onnx::Gather[axis=0](%s, %i)
  %m : Long(1) = onnx::Mul(%n, %two)
  %k : Long(1) = onnx::Add(%n, %n)
  %y : Long(2) = onnx::Concat[axis=0](%m, %k)
  return (%y)`,
	After: `
graph(%x : Float(N, 4)):
  %two : Long() = onnx::Constant[value={2}]()
  %n : Long(1) = onnx::Shape[start=0, end=1](%x)
  %m : Long(1) = onnx::Mul(%n, %two)
  %y : Long(2) = onnx::Concat[axis=0](%m, %m)
  return (%y)`,
	Options: []passes.Option{
		{Name: "opset", Default: onnx.ExportOpsetText, Doc: "the target opset: Shape has start and end from 15 on", Int: true, Least: 1, Most: onnx.Newest},
	},
	Run: passes.EachFunc(run),
}

func run(c *passes.Context, f *ssa.Func) error {
	s := &pass{c: c, f: f, opset: onnx.TargetOpset(c.Module, c.IntOption("opset")), known: map[string]*ssa.Value{}, dims: map[string][]place{}}
	for _, p := range f.Body.Params {
		t := p.Tensor()
		if t == nil || !t.Ranked {
			continue
		}
		for i, d := range t.Dims {
			if k := d.String(); !d.IsConst() {
				s.dims[k] = append(s.dims[k], place{p, i})
			}
		}
	}
	facts.Refresh(f)
	s.block(f.Body)
	for i := len(s.dead) - 1; i >= 0; i-- {
		ssa.EraseChain(s.dead[i], func(o *ssa.Op) bool { return len(o.Results) == 1 && c.Module.Effects(o) == ssa.Pure })
	}
	return nil
}

// place is an axis of an input.
type place struct {
	input *ssa.Value
	axis  int
}

type pass struct {
	c     *passes.Context
	f     *ssa.Func
	opset int
	known map[string]*ssa.Value // by content
	dims  map[string][]place    // where a size can be read
	dead  []*ssa.Op             // that were replaced
}

func (s *pass) block(b *ssa.Block) {
	var added []string
	for o := range b.Ops() {
		for _, inner := range o.Blocks {
			s.block(inner)
		}
		if len(o.Blocks) > 0 || o.Kind == "onnx::Constant" || o.Kind.Namespace() != onnx.Namespace || len(o.Results) != 1 {
			continue
		}
		v := o.Results[0]
		t := v.Tensor()
		if t == nil || !t.Ranked || len(t.Dims) > 1 || t.DType != tensor.Int64 && t.DType != tensor.Int32 || !v.HasUses() {
			continue
		}
		if v.Sym == nil {
			continue
		}
		if w := s.better(o, v); w != nil {
			rewrite.TakeOver(v, w)
			s.dead = append(s.dead, o)
			if o.Kind == "onnx::Shape" {
				s.c.Changed("shape-of-input")
			} else {
				s.c.Changed("same-size")
			}
			v = w
		}
		if k, ok := key(v); ok && s.known[k] == nil && v.Block() == b {
			s.known[k] = v
			added = append(added, k)
		}
	}
	for _, k := range added {
		delete(s.known, k)
	}
}

// key identifies the contents of a value. ok is false if some of it may differ between places.
func key(v *ssa.Value) (string, bool) {
	t := v.Tensor()
	var b strings.Builder
	b.WriteString(t.DType.String())
	b.WriteByte(byte('0' + len(t.Dims)))
	ok := true
	for _, e := range v.Sym {
		b.WriteByte(' ')
		b.WriteString(e.String())
		ok = ok && !sym.Varies(e)
	}
	return b.String(), ok
}

// better finds a replacement for v.
func (s *pass) better(o *ssa.Op, v *ssa.Value) *ssa.Value {
	t := v.Tensor()
	if len(t.Dims) == 0 && len(v.Sym) != 1 { // only in a damaged graph
		return nil
	}
	if ints, ok := constants(v.Sym); ok {
		shape := []int64{}
		if len(t.Dims) == 1 {
			shape = []int64{int64(len(ints))}
		}
		b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
		return b.Const(tensor.FromInts(t.DType, shape, ints))
	}
	k, ok := key(v)
	if !ok || slices.ContainsFunc(v.Sym, sym.Expr.NegativeOfNothing) {
		return nil
	}
	if w := s.known[k]; w != nil && w != v && ssa.SameType(w.Type, v.Type) {
		return w
	}
	if t.DType != tensor.Int64 || len(v.Sym) == 0 {
		return nil
	}
	if p, ok := s.find(v.Sym); ok {
		whole := p.axis == 0 && len(v.Sym) == len(p.input.Tensor().Dims)
		if s.opset < 15 && !whole {
			return nil
		}
		if o.Kind == "onnx::Shape" && o.Operand(0).Param() == s.f.Body {
			return nil
		}
		if len(t.Dims) == 1 {
			return s.shape(o, p, len(v.Sym), whole)
		}
		// a number needs a Squeeze besides: a gain if more than these two go
		have := s.known["Long1 "+v.Sym[0].String()]
		cost := 2
		if have != nil {
			cost = 1
		}
		if lonely(o, cost+1) <= cost {
			return nil
		}
		if have == nil {
			have = s.shape(o, p, 1, len(p.input.Tensor().Dims) == 1)
		}
		b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
		return b.Squeeze(have, b.Const(tensor.Ints(0)))
	}
	if len(t.Dims) == 1 {
		return s.join(o, v.Sym)
	}
	return nil
}

// maxJoin bounds the number of elements that join concatenates.
const maxJoin = 16

// join computes a list of sizes by one Concat of constants, existing sizes and sizes of inputs, if that makes more operators
// dead than it adds.
func (s *pass) join(o *ssa.Op, want []sym.Expr) *ssa.Value {
	if len(want) > maxJoin || lonely(o, 2) < 2 {
		return nil
	}
	type part struct {
		ints []int64    // of a constant
		have *ssa.Value // or a value
		at   place      // or an axis of an input
	}
	var parts []part
	cost := 1
	for _, e := range want {
		n, isConst := e.Int()
		have := s.known["Long1 "+e.String()]
		switch {
		case isConst && len(parts) > 0 && parts[len(parts)-1].ints != nil:
			parts[len(parts)-1].ints = append(parts[len(parts)-1].ints, n)
		case isConst:
			parts = append(parts, part{ints: []int64{n}})
		case have != nil && !sym.Varies(e):
			parts = append(parts, part{have: have})
		default:
			p, ok := s.find([]sym.Expr{e})
			if !ok || s.opset < 15 && len(p.input.Tensor().Dims) != 1 {
				return nil
			}
			parts = append(parts, part{at: p})
			cost++
		}
	}
	keep := make([]*ssa.Value, len(parts))
	for i, p := range parts {
		keep[i] = p.have
	}
	if lonely(o, cost+1, keep...) <= cost {
		return nil
	}
	b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	vs := make([]*ssa.Value, len(parts))
	for i, p := range parts {
		switch {
		case p.ints != nil:
			vs[i] = b.Const(tensor.Ints(p.ints...))
		case p.have != nil:
			vs[i] = p.have
		default:
			vs[i] = s.shape(o, p.at, 1, len(p.at.input.Tensor().Dims) == 1)
		}
	}
	return b.Concat(0, vs...)
}

// shape creates the Shape of n axes of an input.
func (s *pass) shape(o *ssa.Op, p place, n int, whole bool) *ssa.Value {
	b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	if whole {
		return b.Shape(p.input)
	}
	return b.Shape(p.input, onnx.Start(p.axis), onnx.End(p.axis+n))
}

// find looks for an input whose shape has the sizes next to each other.
func (s *pass) find(want []sym.Expr) (place, bool) {
	var first string
	at := -1
	for i, e := range want {
		if !e.IsConst() {
			first, at = e.String(), i
			break
		}
	}
	if at < 0 {
		return place{}, false
	}
next:
	for _, p := range s.dims[first] {
		dims := p.input.Tensor().Dims
		from := p.axis - at
		if from < 0 || from+len(want) > len(dims) {
			continue
		}
		for i, e := range want {
			if !e.Equal(dims[from+i]) {
				continue next
			}
		}
		return place{p.input, from}, true
	}
	return place{}, false
}

func constants(s []sym.Expr) ([]int64, bool) {
	out := make([]int64, len(s))
	for i, e := range s {
		n, ok := e.Int()
		if !ok {
			return nil, false
		}
		out[i] = n
	}
	return out, true
}

// lonely counts the ops that become dead if o is removed, up to limit. Ops in keep do not count.
func lonely(o *ssa.Op, limit int, keep ...*ssa.Value) int {
	n := 1
	for i := range o.NumOperands() {
		v := o.Operand(i)
		if n >= limit || v == nil || v.Def() == nil || slices.Contains(keep, v) || v.Def().Kind == "onnx::Constant" || len(v.Def().Results) != 1 || !v.HasOneUse() {
			continue
		}
		n += lonely(v.Def(), limit-n, keep...)
	}
	return n
}
