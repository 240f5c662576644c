package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// windowElement is an element of HannWindow, HammingWindow or BlackmanWindow: a0 - a1 cos t + a2 cos 2t, computed in double.
func windowElement(p *point) value {
	b := p.b
	num := func(v float64) value { return b.Float(kir.F64, v) }
	float := func(v value) value { return b.Convert(kir.SToF, v, kir.F64) }
	size := b.Size(shapeOf(p.o.Results[0])[0])
	span := size
	if p.int("periodic") == 0 {
		span = b.Sub(size, b.I32(1))
	}
	a0, a1, a2 := 0.42, 0.5, 0.08
	switch p.o.Kind.Name() {
	case "HannWindow":
		a0, a1, a2 = 0.5, 0.5, 0
	case "HammingWindow":
		a0, a1, a2 = 25.0/46, 21.0/46, 0
	}
	t := b.Div(b.Mul(num(2*math.Pi), float(p.lower(p.coords[0]))), float(span))
	v := b.Sub(num(a0), b.Mul(num(a1), approx.Cos(b, t)))
	if a2 != 0 {
		v = b.Add(v, b.Mul(num(a2), approx.Cos(b, b.Mul(num(2), t))))
	}
	v = b.Select(b.Eq(size, b.I32(1)), num(1), v)
	d := dtype(p.o.Results[0])
	if !d.IsFloat() {
		refuse("elements of type %s", d)
	}
	return convert(b, v, tensor.Float64, d)
}

// transform is a discrete Fourier transform of lines of n numbers, of which the first terms are kept. It is computed in double.
//
// A length of several factors is done in as many passes. With y_1[r][0] = x[r], a pass for the factor f makes of transforms of
// every (n/m)th number, y_m[r], those of every (n/(m f))th one:
//
//	y_mf[r][k] = sum over s < f of y_m[r + s n/(m f)][k mod m] * w^(s k n/(m f)),  w = exp(-2 pi i / n)
//
// All powers of w come from one table, each rounded once: no error adds up along them (Cooley and Tukey, 1965; in this order,
// without a reversal of digits, Stockham).
type transform struct {
	n, terms sym.Expr
	lines    []sym.Expr
	inverse  bool
	// read gives number t of a line; imag may be nil for 0.
	read func(c *body, line []index.Expr, t value) (re, im value)
	// put stores term k.
	put func(c *body, line []index.Expr, k index.Expr, re, im value)
}

// longestPass is the greatest factor that other factors are joined to; a length up to directPass is one pass.
const (
	longestPass = 16
	directPass  = 64
)

// passes splits a length into the factors of its passes: prime factors, small ones joined.
func passes(n sym.Expr) []int64 {
	k, known := n.Int()
	if !known || k <= directPass {
		return nil
	}
	var out []int64
	for f := int64(2); k > 1; f++ {
		if f*f > k {
			f = k
		}
		for k%f == 0 {
			if last := len(out) - 1; last >= 0 && out[last]*f <= longestPass {
				out[last] *= f
			} else {
				out = append(out, f)
			}
			k /= f
		}
	}
	return out
}

// root computes cos(2 pi j / n), or the sine with odd set: by the angle in the first octant, which loses nothing.
func root(b *kir.Builder, j, n, odd value) value {
	float := func(v value) value { return b.Convert(kir.SToF, v, kir.F64) }
	num := func(v float64) value { return b.Float(kir.F64, v) }
	// the turn in eighths, as whole numbers: 8j/n in the half circle, the quarter and the octant
	eight := b.Mul(float(j), num(8))
	whole := float(n)
	second := b.Lt(b.Mul(num(4), whole), eight) // beyond the half circle: cos is even, sin odd
	eight = b.Select(second, b.Sub(b.Mul(num(8), whole), eight), eight)
	left := b.Lt(b.Mul(num(2), whole), eight) // beyond the quarter: cos changes its sign
	eight = b.Select(left, b.Sub(b.Mul(num(4), whole), eight), eight)
	high := b.Lt(whole, eight) // beyond the octant: they change places
	eight = b.Select(high, b.Sub(b.Mul(num(2), whole), eight), eight)
	angle := b.Div(b.Mul(num(math.Pi/4), eight), whole)
	sine := b.Compare(kir.Ne, high, odd)
	v := b.Select(sine, approx.Sin(b, angle), approx.Cos(b, angle))
	negative := b.Select(odd, second, left)
	return b.Select(negative, b.Neg(v), v)
}

func (w *writer) transform(f *transform) {
	two := sym.Const(2)
	table := scratch(tensor.Float64, f.n, two)
	w.elementwise(table, shapeOf(table), nil, func(c *body, coords []index.Expr) value {
		b := c.b
		odd := b.Eq(c.lower(coords[1]), b.I32(1))
		v := root(b, c.lower(coords[0]), b.Size(f.n), odd)
		if !f.inverse {
			v = b.Select(odd, b.Neg(v), v)
		}
		return v
	})
	factors := passes(f.n)
	lines := index.Prod(f.lines)
	if factors == nil {
		w.pass(f, table, nil, nil, sym.Const(1), f.n)
		return
	}
	m, from := sym.Const(1), (*ssa.Value)(nil)
	for i, k := range factors {
		var to *ssa.Value
		if i < len(factors)-1 {
			to = scratch(tensor.Float64, lines, f.n, two)
		}
		w.pass(f, table, from, to, m, sym.Const(k))
		m, from = m.Mul(sym.Const(k)), to
	}
}

// pass makes transforms of m*k numbers of those of m: from the data if from is nil, and to the result if to is.
func (w *writer) pass(f *transform, table, from, to *ssa.Value, m, k sym.Expr) {
	long := m.Mul(k)
	rest := f.n.FloorDiv(long) // how many transforms a line has afterwards
	if from == nil {
		rest = f.n.FloorDiv(k)
	}
	if long.Equal(f.n) {
		rest = sym.Const(1)
	}
	terms := long
	if to == nil {
		terms = f.terms
	}
	shape := append(append([]sym.Expr(nil), f.lines...), rest, terms)
	w.scattered(index.Prod(shape), func(c *body, _ value) {
		b := c.b
		coords := c.space.Unravel(shape, c.space.Dim(0))
		at := len(f.lines)
		line, r, term := coords[:at], c.lower(coords[at]), c.lower(coords[at+1])
		number := c.lower(c.space.Linear(f.lines, line))
		roots := c.mem(table, false)
		step := b.Mul(b.Size(rest), term) // below n
		n := b.Size(f.n)
		sizes, dims := len(c.space.Sizes), len(c.dims)
		c.guarded = true
		var begin value // of the elements of a line that this one is made of
		if from != nil {
			begin = b.Add(b.Mul(number, n), b.Add(b.Mul(r, b.Size(m)), b.URem(term, b.Size(m))))
		}
		zero := b.Float(kir.F64, 0)
		sum := b.For(b.I32(0), b.Size(k), b.I32(1), []value{zero, zero, b.I32(0)}, func(s value, t []value) []value {
			var re, im value
			if from == nil {
				re, im = f.read(c, line, b.Add(r, b.Mul(s, b.Size(rest))))
			} else {
				at := b.Mul(b.Add(begin, b.Mul(s, b.Size(rest.Mul(m)))), b.I32(2))
				re, im = b.Load(c.mem(from, false), at), b.Load(c.mem(from, false), b.Add(at, b.I32(1)))
			}
			c.space.Sizes, c.dims = c.space.Sizes[:sizes], c.dims[:dims]
			at := b.Mul(t[2], b.I32(2))
			co, si := b.Load(roots, at), b.Load(roots, b.Add(at, b.I32(1)))
			next := b.Add(t[2], step)
			next = b.Select(b.Lt(next, n), next, b.Sub(next, n))
			if im == nil {
				return []value{b.Fma(re, co, t[0]), b.Fma(re, si, t[1]), next}
			}
			return []value{b.Sub(b.Fma(re, co, t[0]), b.Mul(im, si)), b.Fma(re, si, b.Fma(im, co, t[1])), next}
		})
		c.guarded = false
		re, im := sum[0], sum[1]
		if to == nil {
			if f.inverse {
				whole := b.Convert(kir.SToF, n, kir.F64)
				re, im = b.Div(re, whole), b.Div(im, whole)
			}
			f.put(c, line, coords[at+1], re, im)
			return
		}
		place := b.Mul(b.Add(b.Mul(number, n), b.Add(b.Mul(r, b.Size(long)), term)), b.I32(2))
		b.Store(c.mem(to, true), place, re)
		b.Store(c.mem(to, true), b.Add(place, b.I32(1)), im)
	})
}

// complexWidth is the size of the last axis: 1 for real numbers, 2 for complex ones.
func complexWidth(v *ssa.Value) int64 {
	n, ok := shapeOf(v)[rank(v)-1].Int()
	if !ok || n != 1 && n != 2 {
		refuse("the last axis has size %s", shapeOf(v)[rank(v)-1])
	}
	return n
}

// length is the only element of operand i.
func (n node) length(i int) sym.Expr {
	s := n.sizes(i)
	if len(s) != 1 {
		refuse("operand %d has %d elements", i, len(s))
	}
	return s[0]
}

// emitDFT transforms along an axis. The numbers behind the length are cut off, and those that are missing are 0.
func emitDFT(w *writer) {
	x, out := w.in(0), w.o.Results[0]
	r := rank(x)
	axis := int64(-2)
	if w.in(2) != nil {
		a := w.consts(2)
		if len(a) != 1 {
			refuse("%d axes", len(a))
		}
		axis = a[0]
	}
	k := w.axis(axis, r)
	if r < 2 || k == r-1 || !dtype(x).IsFloat() {
		refuse("axis %d of rank %d, elements of type %s", k, r, dtype(x))
	}
	shape, width, stored := shapeOf(x), complexWidth(x), complexWidth(out)
	have := shape[k]
	inverse, half := w.int("inverse") != 0, w.int("onesided") != 0
	n := have
	switch {
	case w.in(1) != nil:
		n = w.length(1)
	case inverse && half:
		n = have.Sub(sym.Const(1)).Mul(sym.Const(2))
	}
	mirror := inverse && half
	lines := append(append([]sym.Expr(nil), shape[:k]...), shape[k+1:r-1]...)
	coords := func(line []index.Expr, at, part index.Expr) []index.Expr {
		return append(append(append([]index.Expr(nil), line[:k]...), at), append(append([]index.Expr(nil), line[k:]...), part)...)
	}
	w.transform(&transform{
		n: n, terms: shapeOf(out)[k], lines: lines, inverse: inverse,
		read: func(c *body, line []index.Expr, t value) (re, im value) {
			b := c.b
			zero := b.Float(kir.F64, 0)
			size := b.Size(have)
			var turned value
			if mirror { // the other half is the conjugate of the first
				back := b.Sub(b.Size(n), t)
				turned = b.And(b.Lt(b.Size(n.FloorDiv(sym.Const(2))), t), b.Lt(back, size))
				t = b.Select(turned, back, t)
			}
			part := func(i int64) value {
				read := func() value {
					at := coords(line, c.dim(t, have), index.Int(i))
					return convert(b, c.at(x, at), dtype(x), tensor.Float64)
				}
				if have.Equal(n) && !mirror {
					return read()
				}
				return c.when(b.Lt(t, size), zero, read)
			}
			re = part(0)
			if width == 2 {
				if im = part(1); mirror {
					im = b.Select(turned, b.Neg(im), im)
				}
			}
			return re, im
		},
		put: func(c *body, line []index.Expr, term index.Expr, re, im value) {
			c.storeParts(out, stored, func(part index.Expr) []index.Expr { return coords(line, term, part) }, re, im)
		},
	})
}

// storeParts stores a complex number, or its real part, rounded from double by way of float32 as the interpreter does.
func (c *body) storeParts(out *ssa.Value, width int64, coords func(part index.Expr) []index.Expr, re, im value) {
	for i, v := range []value{re, im}[:width] {
		if dtype(out) != tensor.Float64 {
			v = c.b.Convert(kir.Round, v, kir.F32)
		}
		c.store(out, c.lower(c.space.Linear(shapeOf(out), coords(index.Int(int64(i))))), v)
	}
}

// emitSTFT transforms frames of a signal, each multiplied by the window.
func emitSTFT(w *writer) {
	x, out := w.in(0), w.o.Results[0]
	if rank(x) < 2 || rank(x) > 3 || !dtype(x).IsFloat() {
		refuse("rank %d, elements of type %s", rank(x), dtype(x))
	}
	width := int64(1)
	if rank(x) == 3 {
		width = complexWidth(x)
	}
	step := w.length(1)
	var n sym.Expr
	switch {
	case w.in(3) != nil:
		n = w.length(3)
	case w.in(2) != nil:
		n = shapeOf(w.in(2))[0]
	default:
		n = shapeOf(x)[1]
	}
	w.transform(&transform{
		n: n, terms: shapeOf(out)[2], lines: shapeOf(out)[:2],
		read: func(c *body, line []index.Expr, t value) (re, im value) {
			b := c.b
			at := c.dim(b.Add(b.Mul(c.lower(line[1]), b.Size(step)), t), shapeOf(x)[1])
			var weight value
			if v := w.in(2); v != nil {
				weight = convert(b, c.at(v, []index.Expr{c.dim(t, n)}), dtype(v), tensor.Float64)
			}
			part := func(i int64) value {
				coords := []index.Expr{line[0], at}
				if rank(x) == 3 {
					coords = append(coords, index.Int(i))
				}
				v := convert(b, c.at(x, coords), dtype(x), tensor.Float64)
				if weight != nil {
					v = b.Mul(v, weight)
				}
				return v
			}
			if re = part(0); width == 2 {
				im = part(1)
			}
			return re, im
		},
		put: func(c *body, line []index.Expr, term index.Expr, re, im value) {
			c.storeParts(out, 2, func(part index.Expr) []index.Expr { return []index.Expr{line[0], line[1], term, part} }, re, im)
		},
	})
}
