package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

const scanThreads = 256

// places makes a kernel that numbers the elements of 0 .. n-1 for which flag holds: the number stands in place, and how many they
// are in count. One block of threads goes along, each time with a scan through shared memory.
func (w *writer) places(n sym.Expr, place, count *ssa.Value, flag func(c *body, i value) value) {
	c := w.newBody(scanThreads)
	b := c.b
	one, zero := b.I32(1), b.I32(0)
	to, total := c.mem(place, true), c.mem(count, true)
	turns := [2]*kir.Mem{b.SharedMem("scan.0", kir.I32, scanThreads), b.SharedMem("scan.1", kir.I32, scanThreads)}
	thread := b.ThreadX()
	c.dim(thread, sym.Const(scanThreads))
	sum := b.For(zero, b.Size(n), b.I32(scanThreads), []value{zero}, func(base value, carried []value) []value {
		i := b.Add(base, thread)
		inside := b.Lt(i, b.Size(n))
		mine := b.If(inside, func() []value { return []value{b.Select(flag(c, i), one, zero)} }, func() []value { return []value{zero} })[0]
		upTo := mine
		b.Barrier() // all have read the last total
		b.Store(turns[0], thread, upTo)
		b.Barrier()
		turn := 0
		for step := int64(1); step < scanThreads; step *= 2 {
			before := b.If(b.Lt(thread, b.I32(step)), func() []value { return []value{zero} },
				func() []value { return []value{b.Load(turns[turn], b.Sub(thread, b.I32(step)))} })[0]
			upTo = b.Add(upTo, before)
			turn = 1 - turn
			b.Store(turns[turn], thread, upTo)
			b.Barrier()
		}
		b.When(inside, func() { b.Store(to, i, b.Add(carried[0], b.Sub(upTo, mine))) })
		return []value{b.Add(carried[0], b.Load(turns[turn], b.I32(scanThreads-1)))}
	})
	b.When(b.Eq(thread, zero), func() { b.Store(total, zero, b.Convert(kir.SExt, sum[0], kir.I64)) })
	w.finish(c, sym.Const(1))
}

// selected makes the launches that list those of 0 .. n-1 for which flag holds, in order. How many they are is read: it is size.
func (w *writer) selected(n, size sym.Expr, flag func(c *body, i value) value) *ssa.Value {
	place, count, list := scratch(tensor.Int32, n), scratch(tensor.Int64, sym.Const(1)), scratch(tensor.Int32, size)
	count.Sym = []sym.Expr{size}
	w.places(n, place, count, flag)
	w.out = append(w.out, Launch{Class: w.class, Read: count})
	w.scattered(n, func(c *body, i value) {
		c.b.When(flag(c, i), func() { c.b.Store(c.mem(list, true), c.b.Load(c.mem(place, false), i), i) })
	})
	return list
}

// scattered makes a kernel with a thread for each of 0 .. n-1, which stores where it will.
func (w *writer) scattered(n sym.Expr, f func(c *body, i value)) {
	c := w.newBody(loopThreads)
	b := c.b
	i := b.Add(b.Mul(b.BlockIndex(0), b.I32(loopThreads)), b.ThreadX())
	c.dim(i, n)
	b.When(b.Lt(i, b.Size(n)), func() { f(c, i) })
	w.finish(c, ceilDiv(n, loopThreads))
}

// isSet tells whether element i of a value in row-major order is not zero.
func isSet(v *ssa.Value) func(c *body, i value) value {
	return func(c *body, i value) value {
		d := dtype(v)
		x := c.at(v, c.flat(v, i))
		if d == tensor.Bool {
			return x
		}
		return c.b.Compare(kir.Ne, x, c.b.Num(x.Type, 0))
	}
}

// flat are the coordinates of element i of a value in row-major order.
func (c *body) flat(v *ssa.Value, i value) []index.Expr {
	return c.space.Unravel(shapeOf(v), c.dim(i, index.Prod(shapeOf(v))))
}

// number reads element at of a list of indices below n as a coordinate.
func (c *body) number(list *ssa.Value, at index.Expr, n sym.Expr) index.Expr {
	return c.dim(c.load(list, at), n)
}

// emitNonZero lists the elements that are not zero, and then their coordinates.
func emitNonZero(w *writer) {
	x, out := w.in(0), w.o.Results[0]
	list := w.selected(index.Prod(shapeOf(x)), shapeOf(out)[1], isSet(x))
	if rank(x) == 0 {
		return // a scalar has no coordinates
	}
	w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
		b := c.b
		at := c.space.Unravel(shapeOf(x), c.number(list, coords[1], index.Prod(shapeOf(x))))
		row := c.lower(coords[0])
		v := c.lower(at[len(at)-1])
		for k := len(at) - 2; k >= 0; k-- {
			v = b.Select(b.Eq(row, b.I32(int64(k))), c.lower(at[k]), v)
		}
		return b.Convert(kir.SExt, v, kir.I64)
	})
}

// emitCompress lists the places that the condition picks, and then gathers there.
func emitCompress(w *writer) {
	x, cond, out := w.in(0), w.in(1), w.o.Results[0]
	k, shape := 0, []sym.Expr{index.Prod(shapeOf(x))}
	if w.has("axis") {
		k, shape = w.axis(w.int("axis"), rank(x)), shapeOf(x)
	}
	set := isSet(cond)
	list := w.selected(index.Prod(shapeOf(cond)), shapeOf(out)[k], func(c *body, i value) value {
		return c.b.And(c.b.Lt(i, c.b.Size(shape[k])), set(c, i)) // a condition may reach beyond the data
	})
	w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
		at := append([]index.Expr(nil), coords...)
		at[k] = c.number(list, coords[k], shape[k])
		if !w.has("axis") {
			at = c.space.Unravel(shapeOf(x), at[0])
		}
		return c.at(x, at)
	})
}
