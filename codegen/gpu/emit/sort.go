package emit

import (
	"math/bits"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

const (
	sortThreads = 128
	// rows of up to that many elements are ordered in shared memory
	sortShared = 2048
)

// sorter orders rows, each by a block of threads: runs are merged to runs of twice the length. Where an element goes is its place in
// its run and how many of the other run go before it, which a binary search tells. Equal elements keep their order.
type sorter struct {
	rows, n sym.Expr
	// before reports that element i of the row at hand goes before element j whatever their order was.
	before func(t *team, i, j value) value
}

// launch makes the kernel. done is told how to read the index of the element that is at a place of the row at hand.
func (s *sorter) launch(w *writer, done func(t *team, at func(i value) value)) {
	passes, shared := int64(31), false
	if n, ok := s.n.Int(); ok {
		passes, shared = int64(bits.Len64(uint64(max(n-1, 0)))), n <= sortShared
	}
	w.teams(s.rows, sortThreads, func(t *team) {
		b := t.b
		n := b.Size(s.n)
		var order *kir.Mem // two halves in turn
		from := b.I32(0)
		if shared {
			count, _ := s.n.Int()
			order = b.SharedMem("order", kir.I32, int(max(2*count, 1)))
		} else {
			two := sym.Const(2)
			order = t.mem(scratch(tensor.Int32, s.rows, s.n.Mul(two)), true)
			from = b.Mul(t.row, b.Size(s.n.Mul(two)))
		}
		t.each(s.n, nil, func(i value, _ []value) []value {
			b.Store(order, b.Add(from, i), i)
			return nil
		})
		b.Barrier()
		half := b.For(b.I32(0), b.I32(passes), b.I32(1), []value{b.I32(0)}, func(pass value, c []value) []value {
			width := b.Binary(kir.Shl, b.I32(1), pass)
			return b.If(b.Lt(width, n), func() []value {
				next := b.Sub(n, c[0])
				src, dst := b.Add(from, c[0]), b.Add(from, next)
				t.each(s.n, nil, func(i value, _ []value) []value {
					v := b.Load(order, b.Add(src, i))
					right := b.Compare(kir.Ne, b.And(i, width), b.I32(0))
					base := b.Sub(i, b.And(i, b.Sub(b.Binary(kir.Shl, width, b.I32(1)), b.I32(1))))
					middle := b.Add(base, width)
					least := func(x, y value) value { return b.Select(b.Lt(x, y), x, y) }
					// of the other run, those in front of lo go before, those from hi on do not
					lo := b.Select(right, base, least(middle, n))
					hi := b.Select(right, least(middle, n), least(b.Add(middle, width), n))
					first := lo
					found := b.For(b.I32(0), b.Add(pass, b.I32(1)), b.I32(1), []value{lo, hi}, func(_ value, r []value) []value {
						return b.If(b.Lt(r[0], r[1]), func() []value {
							at := b.Binary(kir.LShr, b.Add(r[0], r[1]), b.I32(1))
							other := b.Load(order, b.Add(src, at))
							// an element of the left run goes before its equals
							goes := b.If(right, func() []value { return []value{b.Not(s.before(t, v, other))} },
								func() []value { return []value{s.before(t, other, v)} })[0]
							return []value{b.Select(goes, b.Add(at, b.I32(1)), r[0]), b.Select(goes, r[1], at)}
						}, func() []value { return r })
					})
					place := b.Add(b.Sub(i, b.Select(right, width, b.I32(0))), b.Sub(found[0], first))
					b.Store(order, b.Add(dst, place), v)
					return nil
				})
				b.Barrier()
				return []value{next}
			}, func() []value { return c })
		})[0]
		at := b.Add(from, half)
		done(t, func(i value) value { return b.Load(order, b.Add(at, i)) })
	})
}

// precedes compares two elements: NaN is the greatest, and bools are 0 and 1.
func (s *scalarPoint) precedes(x, y value) value {
	b := s.b
	if s.d == tensor.Bool {
		return b.And(b.Not(x), y)
	}
	v := s.less(x, y)
	if s.t.IsFloat() {
		v = b.Or(v, b.And(b.IsNaN(y), b.Not(b.IsNaN(x))))
	}
	return v
}

// emitTopK orders each row and writes the first elements, with their indices.
func emitTopK(w *writer) {
	x := w.in(0)
	d := dtype(x)
	shape := shapeOf(x)
	if len(shape) == 0 {
		shape = []sym.Expr{sym.Const(1)}
	}
	k := w.axis(w.int("axis"), len(shape))
	along := make([]bool, len(shape))
	along[k] = true
	rows := splitAxes(shape, along)
	largest := w.int("largest") != 0
	values, places := w.result(0), w.result(1)
	kept := sym.Const(1)
	if rank(x) > 0 {
		kept = shapeOf(w.o.Results[0])[k]
	}
	// the place in a tensor of the result's shape of element i of the row
	place := func(t *team, i value) value {
		out := rows
		out.shape = append([]sym.Expr(nil), shape...)
		out.shape[k], out.n, out.inner = kept, kept, []sym.Expr{kept}
		return t.lower(t.space.Linear(out.shape, t.element(&out, i)))
	}
	read := func(t *team, i value) value {
		at := t.element(&rows, i)
		if rank(x) == 0 {
			at = nil
		}
		return t.at(x, at)
	}
	s := &sorter{rows.rows, rows.n, func(t *team, i, j value) value {
		p := &scalarPoint{&point{body: t.body, node: w.node}, d, regType(d)}
		a, b := read(t, i), read(t, j)
		if largest {
			a, b = b, a
		}
		return p.precedes(a, b)
	}}
	s.launch(w, func(t *team, at func(i value) value) {
		b := t.b
		t.each(kept, nil, func(i value, _ []value) []value {
			v := at(i)
			if values != nil && values.HasUses() {
				e := read(t, v)
				t.store(values, place(t, i), e)
			}
			if places != nil && places.HasUses() {
				t.store(places, place(t, i), b.Convert(kir.SExt, v, kir.I64))
			}
			return nil
		})
	})
}

// emitUnique orders the elements, or the slices along an axis, numbers the groups of equal ones, and writes for each group its
// element, where it occurs first, and how often. Groups that are not to be sorted are numbered by where they occur first.
func emitUnique(w *writer) {
	x := w.in(0)
	d := dtype(x)
	k, shape := 0, []sym.Expr{index.Prod(shapeOf(x))}
	if w.has("axis") {
		k, shape = w.axis(w.int("axis"), rank(x)), shapeOf(x)
	}
	n := shape[k]
	along := make([]bool, len(shape))
	along[k] = true
	rest := splitAxes(shape, along) // its rows are the places within a slice
	read := func(c *body, i, place value) value {
		sizes, dims := len(c.space.Sizes), len(c.dims)
		at := c.space.Unravel(rest.outer, c.dim(place, rest.rows))
		at = append(at[:k:k], append([]index.Expr{c.dim(i, n)}, at[k:]...)...)
		if !w.has("axis") {
			at = c.space.Unravel(shapeOf(x), at[0])
		}
		v := c.at(x, at)
		c.space.Sizes, c.dims = c.space.Sizes[:sizes], c.dims[:dims]
		return v
	}
	// compare is below, at or above 0 as slice i stands before, beside or behind slice j
	compare := func(c *body, i, j value) value {
		b := c.b
		p := &scalarPoint{&point{body: c, node: w.node}, d, regType(d)}
		return b.For(b.I32(0), b.Size(rest.rows), b.I32(1), []value{b.I32(0)}, func(place value, r []value) []value {
			return b.If(b.Eq(r[0], b.I32(0)), func() []value {
				u, v := read(c, i, place), read(c, j, place)
				return []value{b.Select(p.precedes(u, v), b.I32(-1), b.Select(p.precedes(v, u), b.I32(1), b.I32(0)))}
			}, func() []value { return r })
		})[0]
	}
	i32 := func(size ...sym.Expr) *ssa.Value { return scratch(tensor.Int32, size...) }
	order := i32(n)
	(&sorter{sym.Const(1), n, func(t *team, i, j value) value { return t.b.Lt(compare(t.body, i, j), t.b.I32(0)) }}).launch(w,
		func(t *team, at func(i value) value) {
			to := t.mem(order, true)
			t.each(n, nil, func(i value, _ []value) []value {
				t.b.Store(to, i, at(i))
				return nil
			})
		})
	// a group begins where an element differs from the one before
	begins := func(c *body, i value) value {
		b := c.b
		return b.If(b.Eq(i, b.I32(0)), func() []value { return []value{b.Int(kir.I1, 1)} }, func() []value {
			m := c.mem(order, false)
			return []value{b.Compare(kir.Ne, compare(c, b.Load(m, b.Sub(i, b.I32(1))), b.Load(m, i)), b.I32(0))}
		})[0]
	}
	result := w.o.Results[0]
	size := shapeOf(result)[k]
	count := scratch(tensor.Int64, sym.Const(1))
	count.Sym = []sym.Expr{size}
	group, start := i32(n), i32(n.Add(sym.Const(1))) // the group of the place before which i elements begin one; where groups begin
	w.places(n, group, count, begins)
	w.out = append(w.out, Launch{Class: w.class, Read: count})
	w.scattered(n, func(c *body, i value) {
		b := c.b
		g := b.Load(c.mem(group, false), i)
		to := c.mem(start, true)
		first := begins(c, i)
		b.When(first, func() { b.Store(to, g, i) })
		b.When(b.Eq(i, b.Size(n.Sub(sym.Const(1)))), func() { b.Store(to, b.Size(size), b.Size(n)) })
	})
	firstOf := func(c *body, g value) value {
		return c.b.Load(c.mem(order, false), c.b.Load(c.mem(start, false), g))
	}
	// number is the place of a group in the results, listed the group of a place
	number := func(_ *body, g value) value { return g }
	listed := number
	if w.int("sorted") == 0 {
		flags, place, of := i32(n), i32(n), i32(size)
		total := scratch(tensor.Int64, sym.Const(1))
		w.scattered(n, func(c *body, i value) {
			b := c.b
			at := b.Load(c.mem(order, false), i)
			b.Store(c.mem(flags, true), at, b.Select(begins(c, i), b.I32(1), b.I32(0)))
		})
		w.places(n, place, total, func(c *body, i value) value {
			return c.b.Compare(kir.Ne, c.b.Load(c.mem(flags, false), i), c.b.I32(0))
		})
		number = func(c *body, g value) value { return c.b.Load(c.mem(place, false), firstOf(c, g)) }
		w.scattered(size, func(c *body, g value) { c.b.Store(c.mem(of, true), number(c, g), g) })
		listed = func(c *body, at value) value { return c.b.Load(c.mem(of, false), at) }
	}
	w.elementwise(result, shapeOf(result), nil, func(c *body, coords []index.Expr) value {
		at := append([]index.Expr(nil), coords...)
		at[k] = c.dim(firstOf(c, listed(c, c.lower(coords[k]))), n)
		if !w.has("axis") {
			at = c.space.Unravel(shapeOf(x), at[0])
		}
		return c.at(x, at)
	})
	long := func(c *body, v value) value { return c.b.Convert(kir.SExt, v, kir.I64) }
	used := func(i int) *ssa.Value {
		if r := w.result(i); r != nil && r.HasUses() {
			return r
		}
		return nil
	}
	if r := used(1); r != nil {
		w.elementwise(r, shapeOf(r), nil, func(c *body, coords []index.Expr) value {
			return long(c, firstOf(c, listed(c, c.lower(coords[0]))))
		})
	}
	if r := used(2); r != nil {
		w.scattered(n, func(c *body, i value) {
			b := c.b
			// the group of place i is the one that begins there, or the one before that
			g := b.Sub(b.Add(b.Load(c.mem(group, false), i), b.Select(begins(c, i), b.I32(1), b.I32(0))), b.I32(1))
			b.Store(c.mem(r, true), b.Load(c.mem(order, false), i), long(c, number(c, g)))
		})
	}
	if r := used(3); r != nil {
		w.elementwise(r, shapeOf(r), nil, func(c *body, coords []index.Expr) value {
			b := c.b
			g := listed(c, c.lower(coords[0]))
			m := c.mem(start, false)
			return long(c, b.Sub(b.Load(m, b.Add(g, b.I32(1))), b.Load(m, g)))
		})
	}
}
