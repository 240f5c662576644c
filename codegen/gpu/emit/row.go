package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// emitSoftmax goes through each row three times: for the greatest element, for the sum, and to write. It is read once, if the threads can hold it.
func emitSoftmax(w *writer) {
	x := w.in(0)
	shape := shapeOf(x)
	if !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	along := make([]bool, len(shape))
	if len(shape) > 0 {
		along[w.axis(w.int("axis"), len(shape))] = true
	}
	rows := splitAxes(shape, along)
	name := w.o.Kind.Name()
	w.teams(rows.rows, w.longTeam(&rows, regType(dtype(x))), func(t *team) {
		b, rt := t.b, regType(dtype(x))
		s := &scalarPoint{&point{body: t.body, node: w.node}, dtype(x), rt}
		row := t.hold(rows.n, rt, func(i value) value { return t.at(x, t.element(&rows, i)) })
		fold := func(start value, f func(v value) value, combine func(x, y value) value) value {
			part := row.each([]value{start}, func(_, v value, c []value) []value { return []value{combine(c[0], f(v))} })
			return t.all(part, func(x, y []value) []value { return []value{combine(x[0], y[0])} })[0]
		}
		write := func(f func(v value) value) {
			row.each(nil, func(i, v value, _ []value) []value {
				t.put(t.element(&rows, i), f(v))
				return nil
			})
		}
		add := func(x, y value) value { return b.Add(x, y) }
		if name == "LpNormalization" {
			f := func(v value) value { return b.Unary(kir.Abs, v) }
			if w.int("p") != 1 {
				f = func(v value) value { return b.Mul(v, v) }
			}
			norm := fold(b.Float(rt, 0), f, add)
			if w.int("p") != 1 {
				norm = b.Unary(kir.Sqrt, norm)
			}
			zero := b.Eq(norm, b.Float(rt, 0))
			write(func(v value) value { return b.Select(zero, b.Float(rt, 0), b.Div(v, norm)) })
			return
		}
		top := fold(b.Float(rt, math.Inf(-1)), func(v value) value { return v }, s.max)
		weight := func(v value) value { return approx.Exp(b, b.Sub(v, top)) }
		if name == "Softmax" {
			row.change(weight)
			sum := fold(b.Float(rt, 0), func(v value) value { return v }, add)
			write(func(v value) value { return b.Div(v, sum) })
			return
		}
		sum := fold(b.Float(rt, 0), weight, add)
		// LogSoftmax: an infinite maximum is the logarithm of the sum
		log := approx.Log(b, sum)
		finite := b.Lt(b.Unary(kir.Abs, top), b.Float(rt, math.Inf(1)))
		write(func(v value) value { return b.Select(finite, b.Sub(b.Sub(v, top), log), b.Sub(v, top)) })
	})
}

// emitNorm serves the normalizations: mean and variance of a row in two passes, then a line for each element. The row is read once, if the
// threads can hold it.
func emitNorm(w *writer) {
	x := w.in(0)
	shape := shapeOf(x)
	name := w.o.Kind.Name()
	if !dtype(x).IsFloat() {
		refuse("elements of type %s", dtype(x))
	}
	for _, r := range w.o.Results[1:] {
		if r.HasUses() {
			refuse("mean and deviation as results")
		}
	}
	rowShape := shape
	var per, area sym.Expr // channels of a group, and elements of a channel
	along := make([]bool, len(shape))
	switch {
	case hasAttr(w.o.Kind, "axis"):
		for i := w.axis(w.int("axis"), len(shape)); i < len(shape); i++ {
			along[i] = true
		}
	case hasAttr(w.o.Kind, "axes"):
		for _, a := range w.ints("axes") {
			along[w.axis(a, len(shape))] = true
		}
	default:
		groups := shape[1]
		if name == "GroupNormalization" {
			groups = sym.Const(w.int("num_groups"))
		}
		var ok bool
		if per, ok = shape[1].Divide(groups); !ok {
			refuse("%s channels in %s groups", shape[1], groups)
		}
		area = index.Prod(shape[2:])
		rowShape = []sym.Expr{shape[0], groups, per.Mul(area)}
		along = []bool{false, false, true}
	}
	rows := splitAxes(rowShape, along)
	onRows := AlongRows(w.o.Kind) // rows are of the tensor's own axes
	w.teams(rows.rows, w.longTeam(&rows, regType(dtype(x))), func(t *team) {
		b, rt := t.b, regType(dtype(x))
		// a group has its elements one after another, as in the shape of its rows
		place := func(at []index.Expr) index.Expr { return t.space.Linear(rowShape, at) }
		count := b.Convert(kir.SToF, b.Size(rows.n), rt)
		zero := b.Float(rt, 0)
		row := t.hold(rows.n, rt, func(i value) value {
			if at := t.element(&rows, i); onRows {
				return t.at(x, at)
			} else {
				return t.load(x, place(at))
			}
		})
		above := func(v value) value { return v } // the mean of the row
		if name != "RMSNormalization" {
			part := row.each([]value{zero}, func(_, v value, c []value) []value { return []value{b.Add(c[0], v)} })
			mean := b.Div(t.sum(part[0]), count)
			above = func(v value) value { return b.Sub(v, mean) }
		}
		part := row.each([]value{zero}, func(_, v value, c []value) []value {
			d := above(v)
			return []value{b.Fma(d, d, c[0])}
		})
		variance := b.Div(t.sum(part[0]), count)
		var scale value
		if name == "MeanVarianceNormalization" {
			scale = b.Div(b.Float(rt, 1), b.Add(b.Unary(kir.Sqrt, variance), b.Float(rt, 1e-9)))
		} else {
			scale = b.Div(b.Float(rt, 1), b.Unary(kir.Sqrt, b.Add(variance, b.Float(rt, w.float("epsilon")))))
		}
		row.each(nil, func(i, v value, _ []value) []value {
			at := t.element(&rows, i)
			y := b.Mul(above(v), scale)
			operand := func(k int) value {
				v := w.in(k)
				if v == nil {
					return nil
				}
				if onRows {
					return widenTo(b, t.at(v, broadcast(v, at)), rt)
				}
				channel := t.space.Add(t.space.Scale(at[1], per), t.space.Div(at[2], area))
				return widenTo(b, t.at(v, []index.Expr{channel}), rt)
			}
			g, beta := operand(1), operand(2)
			switch {
			case g != nil && beta != nil:
				y = b.Fma(y, g, beta)
			case g != nil:
				y = b.Mul(y, g)
			}
			switch {
			case w.Hero == nil: // straight to its place: a group need not be taken apart into channels
				t.store(w.o.Results[0], t.lower(place(at)), y)
			case onRows:
				t.put(at, y)
			default:
				t.put(t.space.Unravel(shape, place(at)), y)
			}
			return nil
		})
	})
}

// emitScan lets a thread go along each line: sums have the order that the operator says.
func emitScan(w *writer) {
	x := w.in(0)
	d := dtype(x)
	k := w.axis(w.consts(1)[0], rank(x))
	along := make([]bool, rank(x))
	along[k] = true
	rows := splitAxes(shapeOf(x), along)
	product, exclusive, reverse := w.o.Kind.Name() == "CumProd", w.int("exclusive") != 0, w.int("reverse") != 0
	if d == tensor.Bool {
		refuse("elements of type %s", d)
	}
	w.teams(rows.rows, 1, func(t *team) {
		b, rt := t.b, regType(d)
		start := b.Num(rt, 0)
		if product {
			start = b.Num(rt, 1)
		}
		t.each(rows.n, []value{start}, func(i value, c []value) []value {
			if reverse {
				i = b.Sub(b.Size(rows.n.Sub(sym.Const(1))), i)
			}
			at := t.element(&rows, i)
			v := t.at(x, at)
			next := b.Add(c[0], v)
			if product {
				next = b.Mul(c[0], v)
			}
			if exclusive {
				t.put(at, c[0])
			} else {
				t.put(at, next)
			}
			return []value{next}
		})
	})
}
