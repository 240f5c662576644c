package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

const loopThreads = 128

// loopEmitter serves the operators that are computed element by element.
func loopEmitter(name string) *emitter {
	if pointwise(name) == nil {
		return nil
	}
	return &emitter{"loop", emitLoop, false}
}

// pointwise finds how an operator computes one element, nil if it does not work that way.
func pointwise(name string) func(p *point) kir.Value {
	if s := scalarOf(name); s != nil {
		return s.eval
	}
	if f := viewOf(name); f != nil {
		return func(p *point) kir.Value { return p.at(p.in(0), f(p)) }
	}
	return pickOf(name)
}

// IsView reports an operator whose result has the operand's elements at other places.
func IsView(k ssa.Kind) bool { return k.Namespace() == onnx.Namespace && viewOf(k.Name()) != nil }

// emitLoop makes one kernel for each result that is used.
func emitLoop(w *writer) {
	for _, r := range w.o.Results {
		if r.HasUses() || len(w.o.Results) == 1 {
			w.elementwise(r, shapeOf(r), nil, func(c *body, coords []index.Expr) kir.Value { return c.compute(r, coords) })
		}
	}
}

// elementwise makes a kernel that computes f at each point of a shape and stores it to out, at the same row-major place
// or where place says.
func (w *writer) elementwise(out *ssa.Value, shape []sym.Expr, place func(s *index.Space, coords []index.Expr) index.Expr, f func(c *body, coords []index.Expr) kir.Value) {
	n := index.Prod(shape)
	build := func(lanes int64) *body {
		c := w.newBody(loopThreads)
		m := c.mem(out, true)
		b := c.b
		thread := b.Add(b.Mul(b.BlockIndex(0), b.I32(loopThreads)), b.ThreadX())
		flat := c.dim(nil, n)
		one := func(at kir.Value) (kir.Value, kir.Value) {
			c.dims[0] = at
			coords := c.space.Unravel(shape, flat)
			x := toMem(b, dtype(out), f(c, coords))
			if place != nil {
				at = c.lower(place(&c.space, coords))
			}
			c.space.Sizes, c.dims = c.space.Sizes[:1], c.dims[:1] // without what f added
			return at, x
		}
		if lanes == 1 {
			b.When(b.Lt(thread, b.Size(n)), func() { at, x := one(thread); b.Store(m, at, x) })
			return c
		}
		base := b.Mul(thread, b.I32(lanes))
		last := b.Add(base, b.I32(lanes-1))
		vector := func() []kir.Value {
			c.lanes, c.base, c.vectors = int(lanes), base, map[*kir.Mem][]kir.Value{}
			var xs []kir.Value
			for c.lane = range c.lanes {
				_, x := one(b.Add(base, b.I32(int64(c.lane))))
				xs = append(xs, x)
			}
			c.lanes = 1
			b.Store(m, base, xs...)
			return nil
		}
		if _, whole := n.Divide(sym.Const(lanes)); whole {
			b.When(b.Lt(base, b.Size(n)), func() { vector() })
			return c
		}
		b.If(b.Lt(last, b.Size(n)), vector, func() []kir.Value {
			b.For(base, b.Size(n), b.I32(1), nil, func(i kir.Value, _ []kir.Value) []kir.Value {
				at, x := one(i)
				b.Store(m, at, x)
				return nil
			})
			return nil
		})
		return c
	}
	lanes := int64(1)
	c := build(1)
	if c.atFlat && !c.scattered && place == nil && n.AtLeast(sym.Const(2)) {
		lanes = 4
		for _, v := range c.order {
			if memType(dtype(v)).Size() > 4 {
				lanes = 2
			}
		}
		if n.AtLeast(sym.Const(lanes)) {
			c = build(lanes)
		} else {
			lanes = 1
		}
	}
	w.finish(c, ceilDiv(n, loopThreads*lanes))
}

// maxJoined is the number of operands up to which a Concat is one launch, each of whose elements finds its operand by comparisons.
const maxJoined = 4

// joined are the operands of a Concat that have elements, with where each begins along the axis.
type joined struct {
	axis   int
	parts  []*ssa.Value
	begins []sym.Expr
}

func (n node) joined() *joined {
	out := n.o.Results[0]
	j := &joined{axis: n.axis(n.int("axis"), rank(out)), begins: []sym.Expr{sym.Const(0)}}
	for _, v := range n.o.Operands() {
		if rank(v) != rank(out) {
			refuse("operands of several ranks")
		}
		if shape := shapeOf(v); !index.Prod(shape).Is(0) {
			j.parts = append(j.parts, v)
			j.begins = append(j.begins, j.begins[len(j.begins)-1].Add(shape[j.axis]))
		}
	}
	return j
}

// concat finds the operand that an element is of, by comparisons.
func concat(p *point) value {
	j := p.joined()
	if len(j.parts) == 0 || len(j.parts) > maxJoined {
		refuse("%d operands", len(j.parts))
	}
	b := p.b
	was := p.guarded
	p.guarded = p.guarded || len(j.parts) > 1
	var pick func(i int) value
	pick = func(i int) value {
		part := func() value {
			moved := append([]index.Expr(nil), p.coords...)
			moved[j.axis] = p.space.Add(moved[j.axis], index.Const(j.begins[i].Neg()))
			return p.at(j.parts[i], moved)
		}
		if i == len(j.parts)-1 {
			return part()
		}
		return b.If(b.Lt(p.lower(p.coords[j.axis]), b.Size(j.begins[i+1])), func() []value { return []value{part()} }, func() []value { return []value{pick(i + 1)} })[0]
	}
	v := pick(0)
	p.guarded = was
	return v
}

// emitConcat joins few operands in one launch, and copies each of many to its place, with a launch for each.
func emitConcat(w *writer) {
	j, out := w.joined(), w.result(0)
	if len(j.parts) <= maxJoined {
		if len(j.parts) > 0 {
			emitLoop(w)
		}
		return
	}
	for i, v := range j.parts {
		place := func(s *index.Space, coords []index.Expr) index.Expr {
			moved := append([]index.Expr(nil), coords...)
			moved[j.axis] = s.Add(moved[j.axis], index.Const(j.begins[i]))
			return s.Linear(shapeOf(out), moved)
		}
		w.elementwise(out, shapeOf(v), place, func(c *body, coords []index.Expr) kir.Value { return c.at(v, coords) })
	}
}

// Pointwise reports an operator that computes each element of its result by itself, in a kernel that may compute its operands too: not a Concat
// of so many that each is copied by a launch of its own, nor a Transpose that goes through a tile.
func Pointwise(o *ssa.Op) bool {
	if o.Kind == "onnx::Transpose" {
		perm := (node{o}).permutation()
		return len(perm) > 0 && perm[len(perm)-1] == len(perm)-1
	}
	return Class(o.Kind) == "loop" && (o.Kind != "onnx::Concat" || o.NumOperands() <= maxJoined)
}

// KeepsOrder reports an operator whose result has the elements of its operand in the same order, under another shape.
func KeepsOrder(k ssa.Kind) bool {
	switch k {
	case "onnx::Reshape", "onnx::Flatten", "onnx::Squeeze", "onnx::Unsqueeze", "onnx::Identity":
		return true
	}
	return false
}

// InPlace reports an operator that computes an element from the elements at the same place.
func InPlace(k ssa.Kind) bool {
	return k.Namespace() == onnx.Namespace && (scalarOf(k.Name()) != nil || k.Name() == "BatchNormalization")
}
