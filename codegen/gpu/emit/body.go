package emit

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// body is a kernel in the making: an iteration space whose coordinates are values, and the buffers that are read.
type body struct {
	w     *writer
	b     *kir.Builder
	space index.Space
	dims  []kir.Value // the coordinates
	mems  map[*ssa.Value]*kir.Mem
	order []*ssa.Value
	// given are values that stand in registers for the point at hand: the hero's result.
	given map[*ssa.Value]kir.Value

	// A thread may compute several neighbouring elements: coordinate 0 is base + lane then, and reads at exactly that
	// place become reads of vectors.
	lanes, lane int
	base        kir.Value
	vectors     map[*kir.Mem][]kir.Value
	scattered   bool // some read is neither at coordinate 0 nor the same for all
	atFlat      bool // some read is at coordinate 0
	run         *run // neighbours that a tile is filled with, or that are stored together
	stored      *stored
	seen        *seen // what is read, if somebody asks
	guarded     bool  // inside of a condition, where nothing is read for other lanes
}

func (w *writer) newBody(threads int) *body {
	return &body{w: w, b: kir.New("", threads), mems: map[*ssa.Value]*kir.Mem{}, given: map[*ssa.Value]kir.Value{}, lanes: 1}
}

// dim adds a coordinate.
func (c *body) dim(v kir.Value, size sym.Expr) index.Expr {
	c.space.Sizes = append(c.space.Sizes, size)
	c.dims = append(c.dims, v)
	return c.space.Dim(len(c.dims) - 1)
}

// mem is the buffer behind a value.
func (c *body) mem(v *ssa.Value, writes bool) *kir.Mem {
	m := c.mems[v]
	if m == nil {
		m = c.b.Buffer(fmt.Sprintf("b%d", len(c.order)), memType(dtype(v)), writes)
		c.mems[v] = m
		c.order = append(c.order, v)
	}
	return m
}

// lower computes an index expression at the point at hand.
func (c *body) lower(e index.Expr) kir.Value {
	sum := c.b.Size(e.C)
	constant := sum.Op == kir.Const
	var total kir.Value
	for _, t := range e.Terms {
		v := c.b.Mul(c.atom(t.Atom), c.b.Size(t.Coef))
		if total == nil {
			total = v
		} else {
			total = c.b.Add(total, v)
		}
	}
	switch {
	case total == nil:
		return sum
	case constant && sum.Int == 0:
		return total
	}
	return c.b.Add(total, sum)
}

func (c *body) atom(a index.Atom) kir.Value {
	switch a.Kind {
	case index.Dim:
		return c.dims[a.Dim]
	case index.Div:
		return c.b.UDiv(c.lower(*a.Arg), c.b.Size(a.By))
	}
	return c.b.URem(c.lower(*a.Arg), c.b.Size(a.By))
}

// at computes the element of a value at coordinates, where elements of its type are computed.
func (c *body) at(v *ssa.Value, coords []index.Expr) kir.Value {
	if x := c.given[v]; x != nil {
		return x
	}
	if len(coords) != rank(v) {
		refuse("%d coordinates of a tensor of rank %d", len(coords), rank(v))
	}
	if x := c.constant(v); x != nil {
		return x
	}
	if c.w.Inlined[v] {
		return c.compute(v, coords)
	}
	return c.load(v, c.space.Linear(shapeOf(v), coords))
}

// compute evaluates the operator behind a value at coordinates.
func (c *body) compute(v *ssa.Value, coords []index.Expr) kir.Value {
	o := v.Def()
	i := 0
	for o.Results[i] != v {
		i++
	}
	f := pointwise(o.Kind.Name())
	if f == nil {
		refuse("%s is not computed element by element", o.Kind)
	}
	return rounded(c.b, dtype(v), f(&point{body: c, node: node{o}, out: i, coords: coords}))
}

// constant is an element of a tensor that has the same one everywhere.
func (c *body) constant(v *ssa.Value) kir.Value {
	t := onnx.ConstOf(v)
	if t == nil || !t.HasData() || t.NumElements() == 0 || t.NumElements() > 1 && !t.IsSplat() {
		return nil
	}
	one := *t
	one.Shape, one.Strides = []int64{}, []int64{}
	return literal(c.b, &one)
}

// literal is the only element of a tensor.
func literal(b *kir.Builder, t *tensor.Tensor) kir.Value {
	rt := regType(t.DType)
	if float8Of(t.DType) != nil {
		return b.Int(rt, int64(tensor.Data[uint8](t)[0]))
	}
	if rt.IsFloat() {
		return b.Float(rt, t.Float64s()[0])
	}
	return b.Int(rt, t.Int64s()[0])
}

// load reads an element from a buffer.
func (c *body) load(v *ssa.Value, at index.Expr) kir.Value {
	m := c.mem(v, false)
	if at.IsDim(0) {
		c.atFlat = true
		if c.lanes > 1 && !c.guarded {
			if c.vectors[m] == nil {
				c.vectors[m] = c.b.LoadVec(m, c.base, c.lanes)
			}
			return fromMem(c.b, dtype(v), c.vectors[m][c.lane])
		}
	} else if at.Uses(0) {
		c.scattered = true
	}
	if c.run != nil && !c.guarded {
		if x := c.run.vector(c, m, at); x != nil {
			return fromMem(c.b, dtype(v), x)
		}
	}
	x := fromMem(c.b, dtype(v), c.b.Load(m, c.lower(at)))
	if c.seen != nil {
		*c.seen = seen{v, at, x}
	}
	return x
}

// store writes an element of a result, from where it is computed.
func (c *body) store(v *ssa.Value, at kir.Value, x kir.Value) {
	m, x := c.mem(v, true), toMem(c.b, dtype(v), x)
	if s := c.stored; s != nil {
		if s.mem == nil {
			s.mem, s.at = m, at
		}
		s.values = append(s.values, x)
		return
	}
	c.b.Store(m, at, x)
}

// broadcast brings coordinates of a result to those of an operand that is broadcast to it.
func broadcast(v *ssa.Value, coords []index.Expr) []index.Expr {
	shape := shapeOf(v)
	if len(shape) > len(coords) {
		refuse("an operand has more axes than the result")
	}
	out := append([]index.Expr(nil), coords[len(coords)-len(shape):]...)
	for i, n := range shape {
		if n.Is(1) {
			out[i] = index.Expr{}
		}
	}
	return out
}

// unlessOne is a coordinate along an axis of which only the run knows whether its size n is 1, and its only element is meant.
func (c *body) unlessOne(n sym.Expr, at index.Expr) index.Expr {
	return c.dim(c.b.Select(c.b.Eq(c.b.Size(n), c.b.I32(1)), c.b.I32(0), c.lower(at)), n)
}

// point is one element of a result that an operator is asked for.
type point struct {
	*body
	node
	out    int // which result
	coords []index.Expr
}

// arg is operand i at the same place, broadcast.
func (p *point) arg(i int) kir.Value { return p.at(p.in(i), p.broadcast(p.in(i))) }

// broadcast is broadcast. Of sizes of which only the run knows whether they are 1 the kernel finds out.
func (p *point) broadcast(v *ssa.Value) []index.Expr {
	shape, result := shapeOf(v), shapeOf(p.o.Results[p.out])
	out := broadcast(v, p.coords)
	for i, n := range shape {
		if m := result[len(result)-len(shape)+i]; !n.Is(1) && !n.Equal(m) {
			out[i] = p.unlessOne(n, out[i])
		}
	}
	return out
}
