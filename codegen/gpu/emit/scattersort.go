package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// sortedUpdates makes the launches that order n updates by the elements of a result that they are meant for: target gives the
// row-major place of update i, or less than 0 for none. The updates of an element keep their order. What comes back are the places in
// order, and the numbers of the updates.
func (w *writer) sortedUpdates(n sym.Expr, target func(c *body, i value) value) (places, updates *ssa.Value) {
	keys := scratch(tensor.Int32, n)
	places, updates = scratch(tensor.Int32, n), scratch(tensor.Int32, n)
	w.scattered(n, func(c *body, i value) { c.b.Store(c.mem(keys, true), i, target(c, i)) })
	s := &sorter{sym.Const(1), n, func(t *team, i, j value) value {
		return t.b.Lt(t.b.Load(t.mem(keys, false), i), t.b.Load(t.mem(keys, false), j))
	}}
	s.launch(w, func(t *team, at func(i value) value) {
		b := t.b
		t.each(n, nil, func(i value, _ []value) []value {
			from := at(i)
			b.Store(t.mem(updates, true), i, from)
			b.Store(t.mem(places, true), i, b.Load(t.mem(keys, false), from))
			return nil
		})
	})
	return places, updates
}

// below finds how many of n ascending numbers are less than v.
func (c *body) below(list *ssa.Value, n sym.Expr, v value) value {
	b := c.b
	m := c.mem(list, false)
	return b.For(b.I32(0), b.I32(31), b.I32(1), []value{b.I32(0), b.Size(n)}, func(_ value, r []value) []value {
		return b.If(b.Lt(r[0], r[1]), func() []value {
			at := b.Binary(kir.LShr, b.Add(r[0], r[1]), b.I32(1))
			less := b.Lt(b.Load(m, at), v)
			return []value{b.Select(less, b.Add(at, b.I32(1)), r[0]), b.Select(less, r[1], at)}
		}, func() []value { return r })
	})[0]
}

// emitScatter lets each element of the result go through all updates, or find its own among many that have been put in order.
func emitScatter(w *writer) {
	x, ix, updates := w.in(0), w.in(1), w.in(2)
	n := index.Prod(shapeOf(ix)) // coordinates of elements, or of slices
	elements := w.o.Kind.Name() == "ScatterElements"
	through := n // what an element would go through
	if elements {
		if w.wants(-1, rank(x), rank(x)); rank(x) == 0 {
			refuse("rank 0")
		}
		through = shapeOf(ix)[w.axis(w.int("axis"), rank(x))]
	} else if w.wants(-1, max(rank(ix), 1)); rank(ix) > 0 {
		through = index.Prod(shapeOf(ix)[:rank(ix)-1])
	}
	if k, ok := w.guess(through); !ok || k <= maxUpdates {
		emitLoop(w)
		return
	}
	d, out := dtype(x), w.o.Results[0]
	reduction := w.str("reduction")
	if d == tensor.Bool && (reduction == "max" || reduction == "min") {
		refuse("%s of bools", reduction)
	}
	targets := shapeOf(x) // of which a place is numbered
	slice := []sym.Expr{}
	var batch []sym.Expr
	if !elements {
		m, ok := shapeOf(ix)[rank(ix)-1].Int()
		if !ok || int(m) > rank(x) {
			refuse("%s coordinates in a tensor of rank %d", shapeOf(ix)[rank(ix)-1], rank(x))
		}
		w.wants(-1, -1, rank(ix)-1+rank(x)-int(m))
		targets, slice, batch, n = shapeOf(x)[:m], shapeOf(x)[m:], shapeOf(ix)[:rank(ix)-1], through
	}
	places, order := w.sortedUpdates(n, func(c *body, i value) value {
		b := c.b
		ok, place := b.Int(kir.I1, 1), b.I32(0)
		along := func(v value, size sym.Expr) {
			if v.Type == kir.I64 {
				v = b.Convert(kir.Narrow, v, kir.I32)
			}
			v = b.Select(b.Lt(v, b.I32(0)), b.Add(v, b.Size(size)), v)
			ok = b.And(inside(b, v, b.Size(size)), ok)
			place = b.Add(b.Mul(place, b.Size(size)), v)
		}
		if elements {
			at := c.space.Unravel(shapeOf(ix), c.space.Dim(0))
			k := w.axis(w.int("axis"), rank(x))
			for a, size := range targets {
				if a == k {
					along(c.at(ix, at), size)
				} else {
					along(c.lower(at[a]), size)
				}
			}
		} else {
			at := c.space.Unravel(batch, c.space.Dim(0))
			for j, size := range targets {
				along(c.at(ix, append(at[:len(at):len(at)], index.Int(int64(j)))), size)
			}
		}
		return b.Select(ok, place, b.I32(-1))
	})
	w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
		b := c.b
		m := len(targets)
		mine := c.lower(c.space.Linear(targets, coords[:m]))
		old := c.at(x, coords)
		was := c.guarded
		c.guarded = true
		first, behind := c.below(places, n, mine), c.below(places, n, b.Add(mine, b.I32(1)))
		s := &scalarPoint{&point{body: c, node: w.node}, d, regType(d)}
		if reduction == "" || reduction == "none" { // only the last one counts
			first = b.Select(b.Lt(first, behind), b.Sub(behind, b.I32(1)), behind)
		}
		sizes, dims := len(c.space.Sizes), len(c.dims)
		sum := b.For(first, behind, b.I32(1), []value{old}, func(i value, v []value) []value {
			from := c.dim(b.Load(c.mem(order, false), i), n)
			at := c.space.Unravel(shapeOf(updates), from)
			if !elements {
				at = append(c.space.Unravel(batch, from), coords[m:m+len(slice)]...)
			}
			u := s.combined(reduction, v[0], c.at(updates, at))
			c.space.Sizes, c.dims = c.space.Sizes[:sizes], c.dims[:dims]
			return []value{u}
		})
		c.guarded = was
		return sum[0]
	})
}

// combined is an element and an update that is meant for it.
func (s *scalarPoint) combined(reduction string, old, update value) value {
	b := s.b
	switch {
	case reduction == "add" && s.d == tensor.Bool:
		return b.Or(old, update)
	case reduction == "add":
		return b.Add(old, update)
	case reduction == "mul" && s.d == tensor.Bool:
		return b.And(old, update)
	case reduction == "mul":
		return b.Mul(old, update)
	case reduction == "max":
		return s.max(old, update)
	case reduction == "min":
		return s.min(old, update)
	}
	return update
}

// emitMaxUnpool puts each element where its index says: a place in a tensor of the size that the windows span, of which a given size
// shows a part. Of several for one place the last one counts.
func emitMaxUnpool(w *writer) {
	x, ix, out := w.in(0), w.in(1), w.o.Results[0]
	d := rank(x) - 2
	kernel, strides, pads := w.ints("kernel_shape"), w.ints("strides"), w.ints("pads")
	if d < 0 || d != len(kernel) || rank(ix) != rank(x) || rank(out) != rank(x) {
		refuse("rank %d, indices of rank %d, windows of %d axes", rank(x), rank(ix), len(kernel))
	}
	span := append([]sym.Expr(nil), shapeOf(x)...)
	for i := range d {
		stride, pad := int64(1), int64(0)
		if strides != nil {
			stride = strides[i]
		}
		if pads != nil {
			pad = pads[i] + pads[d+i]
		}
		span[i+2] = span[i+2].Sub(sym.Const(1)).Mul(sym.Const(stride)).Add(sym.Const(kernel[i] - pad))
	}
	n := index.Prod(shapeOf(x))
	places, order := w.sortedUpdates(n, func(c *body, i value) value {
		v := c.at(ix, c.space.Unravel(shapeOf(ix), c.space.Dim(0)))
		if v.Type == kir.I64 {
			v = c.b.Convert(kir.Narrow, v, kir.I32)
		}
		return v
	})
	w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
		b := c.b
		within := b.Int(kir.I1, 1)
		for i, size := range span {
			if !size.Equal(shapeOf(out)[i]) {
				within = b.And(b.Lt(c.lower(coords[i]), b.Size(size)), within)
			}
		}
		mine := c.lower(c.space.Linear(span, coords))
		was := c.guarded
		c.guarded = true
		behind := c.below(places, n, b.Add(mine, b.I32(1)))
		last := b.Select(b.Lt(b.I32(0), behind), b.Sub(behind, b.I32(1)), b.I32(0))
		hit := b.And(b.And(b.Lt(b.I32(0), behind), b.Eq(b.Load(c.mem(places, false), last), mine)), within)
		c.guarded = was
		return c.when(hit, b.Num(regType(dtype(x)), 0), func() value {
			return c.at(x, c.space.Unravel(shapeOf(x), c.dim(b.Load(c.mem(order, false), last), n)))
		})
	})
}
