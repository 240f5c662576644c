package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// emitNonMaxSuppression orders the boxes of each class by their scores, and then goes through them: a block of threads compares a box
// with those that are kept already. Overlaps are computed in double, as the interpreter does.
func emitNonMaxSuppression(w *writer) {
	w.wants(3, 3)
	boxes, scores, out := w.in(0), w.in(1), w.o.Results[0]
	if dtype(boxes) != tensor.Float32 || dtype(scores) != tensor.Float32 {
		refuse("boxes of type %s, scores of type %s", dtype(boxes), dtype(scores))
	}
	classes, n := shapeOf(scores)[1], shapeOf(boxes)[1]
	rows := shapeOf(boxes)[0].Mul(classes)
	kept, counts := scratch(tensor.Int32, rows, n), scratch(tensor.Int32, rows)
	// scalar reads an optional operand of one element
	scalar := func(c *body, i int, def value) value {
		v := w.in(i)
		if v == nil {
			return def
		}
		return convert(c.b, c.at(v, make([]index.Expr, rank(v))), dtype(v), tensor.Float64)
	}
	wide := func(c *body, v *ssa.Value, at ...index.Expr) value {
		return c.b.Convert(kir.Widen, c.at(v, at), kir.F64)
	}
	// element has the batch, the class and box i of the row at hand
	element := func(t *team, i value) (batch, class, box index.Expr) {
		t.space.Sizes, t.dims = t.space.Sizes[:1], t.dims[:1]
		at := t.space.Unravel([]sym.Expr{shapeOf(boxes)[0], classes}, t.space.Dim(0))
		return at[0], at[1], t.dim(i, n)
	}
	score := func(t *team, i value) value {
		batch, class, box := element(t, i)
		return wide(t.body, scores, batch, class, box)
	}
	counted := func(t *team, s value) value {
		return t.b.Lt(scalar(t.body, 4, t.b.Float(kir.F64, math.Inf(-1))), s)
	}
	corners := func(t *team, i value) [4]value { // y0, x0, y1, x1
		b := t.b
		batch, _, box := element(t, i)
		var p [4]value
		for k := range p {
			p[k] = wide(t.body, boxes, batch, box, index.Int(int64(k)))
		}
		if w.int("center_point_box") != 0 {
			half := func(v value) value { return b.Div(v, b.Float(kir.F64, 2)) }
			return [4]value{b.Sub(p[1], half(p[3])), b.Sub(p[0], half(p[2])), b.Add(p[1], half(p[3])), b.Add(p[0], half(p[2]))}
		}
		return [4]value{lesser(b, p[0], p[2]), lesser(b, p[1], p[3]), greater(b, p[0], p[2]), greater(b, p[1], p[3])}
	}
	overlap := func(t *team, i, j value) value {
		b := t.b
		zero := b.Float(kir.F64, 0)
		p, q := corners(t, i), corners(t, j)
		side := func(k int) value {
			return greater(b, zero, b.Sub(lesser(b, p[k+2], q[k+2]), greater(b, p[k], q[k])))
		}
		area := func(p [4]value) value { return b.Mul(b.Sub(p[2], p[0]), b.Sub(p[3], p[1])) }
		inter := b.Mul(side(0), side(1))
		union := b.Sub(b.Add(area(p), area(q)), inter)
		some := b.And(b.Lt(zero, inter), b.Lt(zero, union))
		return b.Select(some, b.Div(inter, b.Select(some, union, b.Float(kir.F64, 1))), zero)
	}
	s := &sorter{rows, n, func(t *team, i, j value) value {
		b := t.b
		u, v := score(t, i), score(t, j)
		return b.And(counted(t, u), b.Or(b.Not(counted(t, v)), b.Lt(v, u)))
	}}
	s.launch(w, func(t *team, at func(i value) value) {
		b := t.b
		list, number := t.mem(kept, true), t.mem(counts, true)
		from := b.Mul(t.row, b.Size(n))
		limit, most := scalar(t.body, 2, b.Float(kir.F64, 0)), scalar(t.body, 3, b.Float(kir.F64, 0))
		done := b.For(b.I32(0), b.Size(n), b.I32(1), []value{b.I32(0)}, func(place value, c []value) []value {
			i := at(place)
			hit := b.For(t.lane, c[0], b.I32(t.size), []value{b.I32(0)}, func(k value, h []value) []value {
				over := b.Lt(most, overlap(t, i, b.Load(list, b.Add(from, k))))
				return []value{b.Select(over, b.I32(1), h[0])}
			})
			hit = t.all(hit, func(x, y []value) []value { return []value{b.Or(x[0], y[0])} })
			room := b.Lt(b.Convert(kir.SToF, c[0], kir.F64), limit)
			keep := b.And(b.And(counted(t, score(t, i)), room), b.Eq(hit[0], b.I32(0)))
			b.When(keep, func() { t.leader(func() { b.Store(list, b.Add(from, c[0]), i) }) })
			b.Barrier() // all see the list, and have read what the others said
			return []value{b.Add(c[0], b.Select(keep, b.I32(1), b.I32(0)))}
		})[0]
		t.leader(func() { b.Store(number, t.row, done) })
	})
	all := rows.Mul(n)
	picked := w.selected(all, shapeOf(out)[0], func(c *body, i value) value {
		b := c.b
		row := b.UDiv(i, b.Size(n))
		return b.Lt(b.Sub(i, b.Mul(row, b.Size(n))), b.Load(c.mem(counts, false), row))
	})
	w.elementwise(out, shapeOf(out), nil, func(c *body, coords []index.Expr) value {
		b := c.b
		k := c.lower(c.number(picked, coords[0], all))
		row := b.UDiv(k, b.Size(n))
		batch := b.UDiv(row, b.Size(classes))
		column := c.lower(coords[1])
		v := b.Select(b.Eq(column, b.I32(0)), batch, b.Select(b.Eq(column, b.I32(1)), b.Sub(row, b.Mul(batch, b.Size(classes))), b.Load(c.mem(kept, false), k)))
		return b.Convert(kir.SExt, v, kir.I64)
	})
}

func lesser(b *kir.Builder, x, y value) value  { return b.Select(b.Lt(y, x), y, x) }
func greater(b *kir.Builder, x, y value) value { return b.Select(b.Lt(x, y), y, x) }
