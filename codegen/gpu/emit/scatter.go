package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// maxUpdates bounds what each element of a result goes through to find its updates.
const maxUpdates = 4096

// scatterElements and scatterND turn the operators round: each element of the result looks for the updates that are meant
// for it, in their order. So nothing is written twice, the last update counts, and sums have one order. An index out of
// range is nobody's.
func scatterElements(p *point) value {
	x, ix, updates := p.in(0), p.in(1), p.in(2)
	p.wants(-1, rank(x), rank(x))
	k := p.axis(p.int("axis"), rank(x))
	n := shapeOf(ix)[k]
	b := p.b
	// along the other axes the indices may reach less far than the data
	reached := b.Int(kir.I1, 1)
	for i, s := range shapeOf(ix) {
		if i != k && !s.Equal(shapeOf(x)[i]) {
			reached = b.And(b.Lt(p.lower(p.coords[i]), b.Size(s)), reached)
		}
	}
	old := p.at(x, p.coords)
	return p.when(reached, old, func() value {
		return p.updates(old, n, func(i index.Expr) (hit value, u func() value) {
			at := append([]index.Expr(nil), p.coords...)
			at[k] = i
			hit = p.isAt(p.at(ix, at), k)
			return hit, func() value { return p.at(updates, at) }
		})
	})
}

func scatterND(p *point) value {
	x, ix, updates := p.in(0), p.in(1), p.in(2)
	p.wants(-1, max(rank(ix), 1))
	si := shapeOf(ix)
	m, ok := si[len(si)-1].Int()
	if !ok {
		refuse("the number of coordinates depends on the run")
	}
	if int(m) > rank(x) {
		refuse("%d coordinates in a tensor of rank %d", m, rank(x))
	}
	batch := si[:len(si)-1]
	p.wants(-1, -1, len(batch)+rank(x)-int(m))
	return p.updates(p.at(x, p.coords), index.Prod(batch), func(i index.Expr) (hit value, u func() value) {
		at := p.space.Unravel(batch, i)
		hit = p.b.Int(kir.I1, 1)
		for j := range m {
			hit = p.b.And(p.isAt(p.at(ix, append(at[:len(at):len(at)], index.Int(j))), int(j)), hit)
		}
		return hit, func() value { return p.at(updates, append(at[:len(at):len(at)], p.coords[m:]...)) }
	})
}

// isAt compares an index, of which negative ones count from the end, with the coordinate of an axis.
func (p *point) isAt(v value, axis int) value {
	b := p.b
	if v.Type == kir.I64 {
		v = b.Convert(kir.Narrow, v, kir.I32)
	}
	v = b.Select(b.Lt(v, b.I32(0)), b.Add(v, b.Size(shapeOf(p.in(0))[axis])), v)
	return b.Eq(v, p.lower(p.coords[axis]))
}

// updates goes through n updates, and combines those that hit with the element.
func (p *point) updates(old value, n sym.Expr, f func(i index.Expr) (hit value, u func() value)) value {
	b := p.b
	if k, ok := p.w.guess(n); ok && k > maxUpdates {
		refuse("%s updates are too many to go through for each element", n)
	}
	d := dtype(p.in(0))
	s := &scalarPoint{p, d, regType(d)}
	reduction := p.str("reduction")
	was := p.guarded
	p.guarded = true
	defer func() { p.guarded = was }()
	sizes, dims := len(p.space.Sizes), len(p.dims)
	out := b.For(b.I32(0), b.Size(n), b.I32(1), []value{old}, func(i value, c []value) []value {
		at := p.dim(i, n)
		hit, update := f(at)
		return b.If(hit, func() []value {
			u := update()
			switch reduction {
			case "", "none":
				return []value{u}
			case "add":
				if d == tensor.Bool {
					return []value{b.Or(c[0], u)}
				}
				return []value{b.Add(c[0], u)}
			case "mul":
				if d == tensor.Bool {
					return []value{b.And(c[0], u)}
				}
				return []value{b.Mul(c[0], u)}
			}
			if d == tensor.Bool {
				refuse("%s of bools", reduction)
			}
			if reduction == "max" {
				return []value{s.max(c[0], u)}
			}
			return []value{s.min(c[0], u)}
		}, func() []value { return c })
	})
	p.space.Sizes, p.dims = p.space.Sizes[:sizes], p.dims[:dims]
	return out[0]
}
