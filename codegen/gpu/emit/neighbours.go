package emit

import (
	"math/bits"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
)

// Results of a tile lie in registers as the product wants them, which is not how a warp should write them: its threads side by side would be some
// numbers apart, and each of their stores would touch sectors of which it fills a part. So a thread stores several neighbours at once where they are neighbours in
// memory too, else threads exchange results until those of a store lie side by side.

// run is a row of neighbours along a coordinate, read as vectors where they are neighbours in memory too.
type run struct {
	dim   int
	first value // the coordinate of the first one, a multiple of n
	n     int64
	lane  int64
	read  map[runKey][]value
	// result is where the result at hand stands, if the neighbours are results: an operand at the same place is read as they are stored.
	result *index.Expr
}

type runKey struct {
	mem *kir.Mem
	at  value
}

// vector gives the element of a run that is asked for, nil if the run cannot be read as vectors.
func (r *run) vector(c *body, m *kir.Mem, at index.Expr) value {
	width := min(r.n, 4)
	if m.Writes || int64(m.Elem.Size())*width > 16 || (r.result == nil || !at.Equal(*r.result)) && !r.aligned(at) {
		return nil
	}
	here := c.dims[r.dim]
	c.dims[r.dim] = r.first
	first := c.lower(at)
	c.dims[r.dim] = here
	k := runKey{m, first}
	if r.read[k] == nil && m.Elem == kir.I8 && r.n%4 == 0 {
		for _, w := range c.b.LoadWords(m, first, int(r.n/4)) {
			for e := range int64(4) {
				r.read[k] = append(r.read[k], c.b.Convert(kir.Narrow, c.b.Binary(kir.LShr, w, c.b.I32(8*e)), kir.I8))
			}
		}
	}
	if r.read[k] == nil {
		for i := int64(0); i < r.n; i += width {
			r.read[k] = append(r.read[k], c.b.LoadVec(m, c.b.Add(first, c.b.I32(i)), int(width))...)
		}
	}
	return r.read[k][r.lane]
}

// aligned reports that a place runs along with the coordinate, from a multiple of n on.
func (r *run) aligned(at index.Expr) bool {
	coef, ok := at.Coef(r.dim)
	if !ok || !coef.Is(1) {
		return false
	}
	n := sym.Const(r.n)
	for _, t := range at.Terms {
		if t.Atom.Kind == index.Dim && t.Atom.Dim == r.dim {
			continue
		}
		if _, whole := t.Coef.Divide(n); !whole {
			return false
		}
	}
	_, whole := at.C.Divide(n)
	return whole
}

// stored collects neighbours that one store writes, the first of them at a place.
type stored struct {
	mem    *kir.Mem
	at     value
	values []value
}

// inVectors reports that so many results of a product that are side by side along n, from a multiple of their number on, can be stored at once.
func (c *body) inVectors(p *product, n int64) bool {
	r := c.w.o.Results[0]
	if c.w.Hero != nil {
		r = c.w.Root.Results[0]
	}
	_, whole := p.line.Divide(sym.Const(n))
	return whole && n*int64(memType(dtype(r)).Size()) <= 16
}

// putResults stores results of a product that are side by side along n from a place on: one, or as many as inVectors admits.
func (c *body) putResults(p *product, m, n value, sums ...value) {
	b := c.b
	if len(sums) > 1 {
		c.run = &run{dim: dimN, first: n, n: int64(len(sums)), read: map[runKey][]value{}}
		c.stored = &stored{}
	}
	for i, s := range sums {
		if c.run != nil {
			c.run.lane = int64(i)
		}
		c.forget()
		c.dims[dimM], c.dims[dimN], c.dims[dimK] = m, b.Add(n, b.I32(int64(i))), b.I32(0)
		p.done(c, s)
	}
	s := c.stored
	c.run, c.stored = nil, nil
	if s != nil {
		b.Store(s.mem, s.at, s.values...)
	}
}

// swapBits exchanges values, whose number is a power of 2, among the threads of a warp: afterwards the bit reg of a value's place in v is what the bit lane of the number of
// its thread was, and the other way round.
func swapBits(b *kir.Builder, v []value, reg, lane int) {
	low := b.Eq(b.And(b.ThreadX(), b.I32(1<<lane)), b.I32(0))
	for i := range v {
		if j := i | 1<<reg; i != j {
			got := b.Shuffle(b.Select(low, v[j], v[i]), 1<<lane)
			v[i], v[j] = b.Select(low, v[i], got), b.Select(low, got, v[j])
		}
	}
}

// putRow stores row m of a tile whose columns begin at n. across threads side by side have it, in turn: each so many neighbours along n as a vector has, and then again.
func (c *body) putRow(p *product, m, n value, sums []value, vector, across int64, t tile) {
	b := c.b
	lane := b.URem(b.ThreadX(), b.I32(across))
	if !c.inVectors(p, vector) {
		// As many bits of the number of the thread as a vector has take the place of those within the vector: then the threads have all columns of a row side by
		// side, though not in order.
		sums = append([]value(nil), sums...)
		g, a := bits.TrailingZeros64(uint64(vector)), bits.TrailingZeros64(uint64(across))
		for i := range g {
			swapBits(b, sums, g-1-i, a-1-i)
		}
		if g > 0 {
			lane = b.Add(b.Mul(b.And(lane, b.I32(across/vector-1)), b.I32(vector)), b.Binary(kir.LShr, lane, b.I32(int64(a-g))))
		}
		vector = 1
	}
	n = b.Add(n, b.Mul(lane, b.I32(vector)))
	c.within(m, p.m, t.m, func() {
		for i := int64(0); i < t.cols; i += vector {
			at := b.Add(n, b.I32(i*across))
			c.within(at, p.n, t.n, func() { c.putResults(p, m, at, sums[i:i+vector]...) })
		}
	})
}
