package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
)

// rotary turns pairs of elements of a head by the angles of the place: (x, y) becomes (x cos - y sin, x sin + y cos). Pairs are neighbours, or half of
// what is turned apart.
func rotary(p *point) value {
	x, cos, sin := p.in(0), p.in(1), p.in(2)
	if !dtype(x).IsFloat() || dtype(cos) != dtype(x) || dtype(sin) != dtype(x) {
		refuse("elements of type %s", dtype(x))
	}
	b, shape := p.b, shapeOf(x)
	batch, length := shape[0], sym.Expr{}
	var row, in, head index.Expr
	var size int64
	switch len(shape) {
	case 3: // [batch, length, heads*size]
		n := p.int("num_heads")
		if n < 1 || known(shape[2])%n != 0 {
			refuse("%s elements in %d heads", shape[2], n)
		}
		size = known(shape[2]) / n
		row, length = p.coords[1], shape[1]
		head, in = p.space.Div(p.coords[2], sym.Const(size)), p.space.Mod(p.coords[2], sym.Const(size))
	case 4: // [batch, heads, length, size]
		size = known(shape[3])
		row, length, in = p.coords[2], shape[2], p.coords[3]
	default:
		refuse("rank %d", len(shape))
	}
	turned := p.int("rotary_embedding_dim")
	if turned == 0 {
		turned = size
	}
	half := turned / 2
	if turned = 2 * half; half < 1 || turned > size {
		refuse("%d of %d elements turned", turned, size)
	}
	at := []index.Expr{p.coords[0], row}
	angles := []sym.Expr{batch, length}
	if p.in(3) != nil {
		p.wants(-1, 2, 2, 2)
		if s := shapeOf(p.in(3)); !s[0].Equal(batch) || !s[1].Equal(length) {
			refuse("positions of shape %v", s)
		}
		at, angles = []index.Expr{p.index(3, at, shapeOf(cos)[0])}, shapeOf(cos)[:1]
	}
	for _, v := range p.o.Operands()[1:3] {
		s := shapeOf(v)
		if len(s) != len(angles)+1 || known(s[len(s)-1]) < half {
			refuse("angles of shape %v", s)
		}
		for i, n := range angles {
			if !s[i].Equal(n) {
				refuse("angles of shape %v", s)
			}
		}
	}
	d := p.lower(in)
	second, k, other := b.Compare(kir.Le, b.I32(half), d), d, b.Add(d, b.I32(half))
	if p.int("interleaved") != 0 {
		second, k = b.Eq(b.And(d, b.I32(1)), b.I32(1)), b.Binary(kir.LShr, d, b.I32(1))
		other = b.Xor(d, b.I32(1))
	} else {
		back := b.Sub(d, b.I32(half))
		k, other = b.Select(second, back, k), b.Select(second, back, other)
	}
	var rest value // elements behind those that are turned
	if turned < size {
		rest = b.Compare(kir.Le, b.I32(turned), d)
		k, other = b.Select(rest, b.I32(0), k), b.Select(rest, b.I32(0), other)
	}
	element := func(in index.Expr) value {
		coords := append([]index.Expr(nil), p.coords...)
		if len(shape) == 3 {
			in = p.space.Add(p.space.Scale(head, sym.Const(size)), in)
		}
		coords[len(coords)-1] = in
		return p.at(x, coords)
	}
	angle := append(at[:len(at):len(at)], p.named(k, half))
	v := element(in)
	y := b.Mul(element(p.named(other, size)), p.at(sin, angle))
	y = b.Fma(v, p.at(cos, angle), b.Select(second, y, b.Neg(y)))
	if rest != nil {
		y = b.Select(rest, v, y)
	}
	return y
}

// named is a coordinate of an axis of that size.
func (c *body) named(v value, size int64) index.Expr {
	if size == 1 {
		return index.Expr{}
	}
	return c.dim(v, sym.Const(size))
}
