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

// flash is a batch of softmax(score(q @ k')) @ v without a matrix of scores in memory: a block of threads goes along the keys tile by tile, with
// the softmax of Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018), and the tiles of Dao et al., "FlashAttention"
// (2022). Of each query it keeps the greatest score m so far, the sum of exp(s - m) and that of exp(s - m) v, and scales both sums when m grows.
//
// The coordinates of its space are those from flashBatch on. The queries of a group share keys and values, and stand beside each other.
type flash struct {
	batch, rows, group, keys sym.Expr
	size, width              int64    // of a query and a key; of a value and a result
	t                        kir.Type // in which all is computed
	// factors is the format of queries, keys and values if tensor cores can multiply them, else nil.
	factors *kir.Format
	// masked says that the scores need elements of a mask.
	masked bool
	// single says that neighbours are read one by one.
	single bool
	// q, k and v give the elements at the coordinates at hand, which are in range.
	q, k, v func(c *body) value
	// keepK and keepV, if set, are called once for each element of keys and values, to store it elsewhere too.
	keepK, keepV func(c *body, x value)
	// score makes the score that counts of the product of a query and a key; minus infinity hides the key.
	score func(c *body, dot value) value
	// limits, if set, narrows the keys first .. end-1 to those that may count for one of the queries from .. to-1.
	limits func(c *body, from, to, first, end value) (value, value)
	// zeros says that a query without key gives 0, nans that so does one of which a score is NaN; else they give NaN.
	zeros, nans bool
	// done stores an element of a result.
	done func(c *body, x value)
}

const (
	flashBatch = iota
	flashRow
	flashGroup
	flashKey
	flashAt // in a query and a key, or in a value and a result
	flashDims
)

// fewQueries is up to how many queries are one tile, for which blocks share the keys.
const fewQueries = 16

// flashKeys are the keys of a tile.
const flashKeys = 64

// flashTile is how a block works: teams of lanes, each with rows queries. Of the scores of a tile a thread has those of its team with the keys lane,
// lane + lanes, ...; of the results cols elements of each.
type flashTile struct {
	teams, lanes, rows int64
	// A query has chunks parts of step elements, with zeros at the end; the keys of a tile are in shared memory part by part.
	step, chunks int64
	// cols are vectors of as many neighbours; values are in shared memory some at a time.
	cols, vector, values int64
	// splits are the parts of the keys that blocks of their own go along.
	splits int64
	t      kir.Type
}

// The distances of rows in shared memory, odd multiples of 16 bytes of float32: 8 lanes that read 4 neighbours each of rows that follow each other
// meet all banks.
func flashPitch(n int64) int64 {
	n = (n + 3) / 4 * 4
	if n/4%2 == 0 {
		n += 4
	}
	return n
}

func (t *flashTile) queries() int64 { return t.teams * t.rows }
func (t *flashTile) threads() int64 { return t.teams * t.lanes }
func (t *flashTile) pitchQ() int64  { return flashPitch(t.step * t.chunks) }
func (t *flashTile) pitchK() int64  { return flashPitch(t.step) }

// pitchP also spreads what the two teams of a warp store: it is an odd multiple of 16 words times as many queries as they are apart.
func (t *flashTile) pitchP() int64 { return flashKeys + 16/min(t.rows, 4) }
func (t *flashTile) wide() int64   { return t.cols * t.lanes }
func (t *flashTile) shared() int64 {
	return (t.queries()*(t.pitchQ()+t.pitchP()) + max(flashKeys*t.pitchK(), t.values*t.wide())) * int64(t.t.Size())
}

const (
	// flashShared is the shared memory of a block that all processors have without being asked.
	flashShared = 48 << 10
	// flashHeld is how many registers of 32 bits a thread spends on scores and results.
	flashHeld = 48
	// dealt is how many elements a thread reads at a time.
	dealt = int64(4)
	// flashResident is how many threads a multiprocessor holds at least, with 128 registers each. Without a wish ptxas spills some to hold more.
	flashResident = 512
	// flashBlocks is how many blocks should run at least, for all multiprocessors to have one.
	flashBlocks = 128
)

// flashTileFor chooses the tile: few queries are those of a team of a warp, and blocks share the keys; else tiles are as large as shared memory and
// registers allow, and small enough that there are blocks for all multiprocessors.
func (w *writer) flashTileFor(p *flash) flashTile {
	step := int64(32)
	if p.t == kir.F64 {
		step = 16
	}
	whole := (p.size + 3) / 4 * 4
	t := flashTile{t: p.t, splits: 1, chunks: (whole + step - 1) / step}
	t.step = ((whole+t.chunks-1)/t.chunks + 3) / 4 * 4
	queries := p.rows.Mul(p.group)
	thinly := w.atMost(queries, fewQueries)
	fits := func(rows int64) bool {
		t.rows = rows
		t.cols = (p.width + t.lanes - 1) / t.lanes
		t.vector = 1
		for t.cols%(2*t.vector) == 0 && t.vector < 4 {
			t.vector *= 2
		}
		for t.values = flashKeys; t.values > 4 && t.values*t.wide() > flashKeys*t.pitchK(); {
			t.values /= 2
		}
		return t.shared() <= flashShared && t.rows*(t.cols+flashKeys/t.lanes)*int64(p.t.Size())/4 <= flashHeld
	}
	blocks := func() (int64, bool) { return w.guess(p.batch.Mul(ceilDiv(queries, t.queries()))) }
	if thinly {
		t.teams, t.lanes = 4, warp
		rows := int64(1)
		for !w.atMost(queries, t.teams*rows) {
			rows *= 2
		}
		if !fits(rows) {
			refuse("queries of %d and values of %d elements", p.size, p.width)
		}
		most := int64(16) // of keys whose number is not known
		if n, ok := w.guess(p.keys); ok {
			most = n / (2 * flashKeys)
		}
		t.splits = most
		if n, ok := blocks(); ok && n > 0 {
			t.splits = min(most, (2*flashBlocks+n-1)/n)
		}
		t.splits = max(t.splits, 1)
		return t
	}
	t.teams, t.lanes = 16, 16
	for rows := int64(4); rows > 0; rows /= 2 {
		if !fits(rows) {
			continue
		}
		if n, ok := blocks(); !ok || n >= flashBlocks || rows == 1 {
			return t
		}
	}
	refuse("queries of %d and values of %d elements", p.size, p.width)
	return t
}

// flashSpace begins with the coordinates of a flash.
func (c *body) flashSpace(p *flash) {
	c.space = index.Of(p.batch, p.rows, p.group, p.keys, sym.Const(max(p.size, p.width)))
	zero := c.b.I32(0)
	c.dims = []value{zero, zero, zero, zero, zero}
}

// flashAt names element at of the axis of that size, and drops the coordinates that loaders have added.
func (c *body) flashAt(at value, size int64) {
	c.space.Sizes, c.dims = c.space.Sizes[:flashDims], c.dims[:flashDims]
	c.space.Sizes[flashAt], c.dims[flashAt] = sym.Const(size), at
}

// flashBlock is what a block of threads has: a tile of queries, and a range of keys.
type flashBlock struct {
	p     *flash
	b     *kir.Builder
	c     *body
	rows  int64
	tiles sym.Expr // of queries, of a batch
	tile  value
	row0  value // the first query
	// part is which part of the keys it is, of so many.
	part   value
	splits int64
	// end is behind the last key, and even says that tiles end there.
	end  value
	even bool
}

// flashBlock says what the block at hand has: so many queries, and one part of so many of the keys.
func (c *body) flashBlock(p *flash, rows, splits int64) *flashBlock {
	b := c.b
	f := &flashBlock{p: p, b: b, c: c, rows: rows, splits: splits, tiles: ceilDiv(p.rows.Mul(p.group), rows), part: b.I32(0), tile: b.I32(0)}
	block := b.BlockIndex(0)
	if splits > 1 {
		block, f.part = b.UDiv(block, b.I32(splits)), b.URem(block, b.I32(splits))
	}
	batch := block
	if !f.tiles.Is(1) {
		f.tile, batch = b.URem(block, b.Size(f.tiles)), b.UDiv(block, b.Size(f.tiles))
	}
	if !p.batch.Is(1) {
		c.dims[flashBatch] = batch
	}
	f.row0 = b.Mul(f.tile, b.I32(rows))
	return f
}

// query names one of the tile, or for one beyond the last some other, and reports whether it is one.
func (f *flashBlock) query(i value) (is value) {
	b, p, dims := f.b, f.p, f.c.dims
	queries := p.rows.Mul(p.group)
	at := b.Add(f.row0, i)
	if _, even := queries.Divide(sym.Const(f.rows)); !even {
		is = b.Lt(at, b.Size(queries))
		at = b.Select(is, at, b.I32(0))
	}
	dims[flashRow], dims[flashGroup] = at, b.I32(0)
	if !p.group.Is(1) {
		dims[flashRow], dims[flashGroup] = b.UDiv(at, b.Size(p.group)), b.URem(at, b.Size(p.group))
	}
	return is
}

func (f *flashBlock) owns() value { return f.b.Eq(f.tile, f.b.I32(0)) } // the first queries of a batch

// keysOf are the keys that count for the block, and whether tiles end with them.
func (f *flashBlock) keysOf(c *body) (first, end value, even bool) {
	b, p := f.b, f.p
	first, end = b.I32(0), b.Size(p.keys)
	_, even = p.keys.Divide(sym.Const(flashKeys))
	if f.splits > 1 {
		each := ceilDiv(ceilDiv(p.keys, f.splits), flashKeys).Mul(sym.Const(flashKeys))
		first = b.Mul(f.part, b.Size(each))
		last := b.Add(first, b.Size(each))
		end, even = b.Select(b.Lt(last, end), last, end), false
	}
	if p.limits != nil {
		from := b.UDiv(f.row0, b.Size(p.group))
		to := b.Add(b.UDiv(b.Add(f.row0, b.I32(f.rows-1)), b.Size(p.group)), b.I32(1))
		a, z := p.limits(c, from, to, first, end)
		if p.keepK != nil || p.keepV != nil { // all are kept, whichever count
			a, z = b.Select(f.owns(), first, a), b.Select(f.owns(), end, z)
		}
		first, end, even = a, z, false
	}
	return first, end, even
}

// key names one of the keys at hand, or for one beyond the last some other.
func (f *flashBlock) key(j value) (is value) {
	if !f.even {
		is = f.b.Lt(j, f.end)
		j = f.b.Select(is, j, f.b.I32(0))
	}
	f.c.dims[flashKey] = j
	return is
}

// read gives an element of keys or values, 0 where there is none.
func (f *flashBlock) read(c *body, ok value, load func(c *body) value, keep func(c *body, x value)) value {
	b, zero := f.b, f.b.Float(f.p.t, 0)
	if keep == nil {
		x := load(c)
		if ok != nil {
			x = b.Select(ok, x, zero)
		}
		return x
	}
	one := func() value {
		x := load(c)
		b.When(f.owns(), func() { keep(c, x) })
		return x
	}
	if ok == nil {
		return one()
	}
	return c.when(ok, zero, one)
}

// inRow brings a place in a row that has zeros behind its size back into it, and reports whether it is one.
func inRow(b *kir.Builder, at value, size, width int64) (in, is value) {
	if size == width {
		return at, nil
	}
	is = b.Lt(at, b.I32(size))
	return b.Select(is, at, b.I32(0)), is
}

// onlyWhen does something under a condition, which may be nil, which holds.
func onlyWhen(b *kir.Builder, is value, do func()) {
	if is == nil {
		do()
		return
	}
	b.When(is, do)
}

// both is a condition of two, either of which may be nil, which holds.
func both(b *kir.Builder, x, y value) value {
	switch {
	case x == nil:
		return y
	case y == nil:
		return x
	}
	return b.And(x, y)
}

func (w *writer) flash(p *flash) {
	if p.onMatrices(w) {
		w.matrixFlash(p)
		return
	}
	t := w.flashTileFor(p)
	c := w.newBody(int(t.threads()))
	b := c.b
	b.K.Resident = int(flashResident / t.threads())
	c.flashSpace(p)
	zero, hidden := b.Float(p.t, 0), b.Float(p.t, math.Inf(-1))
	n := func(v int64) value { return b.I32(v) }
	qs := b.SharedMem("q", p.t, int(t.queries()*t.pitchQ()))
	ps := b.SharedMem("p", p.t, int(t.queries()*t.pitchP()))
	kvs := b.SharedMem("kv", p.t, int(max(flashKeys*t.pitchK(), t.values*t.wide())))

	thread := b.ThreadX()
	lane, team := b.URem(thread, n(t.lanes)), b.UDiv(thread, n(t.lanes))
	queries := p.rows.Mul(p.group)
	f := c.flashBlock(p, t.queries(), t.splits)
	query, key, tiles, part := f.query, f.key, f.tiles, f.part
	// deal gives out the elements of a matrix of rows of that width to the threads. Each reads a few of them before it stores them.
	deal := func(rows, width int64, f func(row, col value)) {
		one := func(e value) { f(b.UDiv(e, n(width)), b.URem(e, n(width))) }
		whole := rows * width / t.threads()
		by := dealt
		for whole%by != 0 {
			by /= 2
		}
		b.For(n(0), n(whole*t.threads()), n(by*t.threads()), nil, func(from value, _ []value) []value {
			for j := range by {
				one(b.Add(b.Add(from, thread), n(j*t.threads())))
			}
			return nil
		})
		if rest := whole * t.threads(); rest < rows*width {
			e := b.Add(thread, n(rest))
			b.When(b.Lt(e, n(rows*width)), func() { one(e) })
		}
	}
	long := t.step * t.chunks
	deal(t.queries(), long, func(row, col value) {
		is := query(row)
		at, ok := inRow(b, col, p.size, long)
		c.flashAt(at, p.size)
		x := p.q(c)
		if ok = both(b, ok, is); ok != nil {
			x = b.Select(ok, x, zero)
		}
		b.Store(qs, b.Add(b.Mul(row, n(t.pitchQ())), col), x)
	})

	first, end, even := f.keysOf(c)
	f.even, f.end = even, end
	read := func(ok value, load func(c *body) value, keep func(c *body, x value)) value {
		return f.read(c, ok, load, keep)
	}
	each := flashKeys / t.lanes // scores of a query that a thread has
	repeat := func(v value, k int64) []value {
		out := make([]value, k)
		for i := range out {
			out[i] = v
		}
		return out
	}
	// turns goes along a part in shared memory by 4, two times 4 a turn if that comes out even: more would take more registers.
	turns := func(size int64, sums []value, f func(at value, sums []value)) []value {
		by := int64(4)
		if size%8 == 0 {
			by = 8
		}
		return b.For(n(0), n(size), n(by), sums, func(at value, sums []value) []value {
			sums = append([]value(nil), sums...)
			for e := int64(0); e < by; e += 4 {
				f(b.Add(at, n(e)), sums)
			}
			return sums
		})
	}
	greater := func(x, y value) value { return b.Select(b.Lt(x, y), y, x) }
	row := b.Mul(team, n(t.rows))
	ofQ, ofK, ofP := b.Mul(row, n(t.pitchQ())), b.Mul(lane, n(t.pitchK())), b.Mul(row, n(t.pitchP()))
	carried := append(append(repeat(hidden, t.rows), repeat(zero, t.rows)...), repeat(zero, t.rows*t.cols)...)
	sums := b.For(first, end, n(flashKeys), carried, func(j0 value, before []value) []value {
		top, norm, acc := before[:t.rows], before[t.rows:2*t.rows], before[2*t.rows:]
		scores := b.For(n(0), n(t.chunks), n(1), repeat(zero, t.rows*each), func(part value, s []value) []value {
			from := b.Mul(part, n(t.step))
			b.Barrier()
			deal(flashKeys, t.step, func(r, col value) {
				at, ok := inRow(b, b.Add(from, col), p.size, long)
				is := key(b.Add(j0, r))
				c.flashAt(at, p.size)
				b.Store(kvs, b.Add(b.Mul(r, n(t.pitchK())), col), read(both(b, is, ok), p.k, p.keepK))
			})
			b.Barrier()
			return turns(t.step, s, func(e value, s []value) {
				var x, y [][]value
				for i := range t.rows {
					x = append(x, c.neighbours(qs, b.Add(b.Add(b.Add(ofQ, from), e), n(i*t.pitchQ())), 4))
				}
				for j := range each {
					y = append(y, c.neighbours(kvs, b.Add(b.Add(ofK, e), n(j*t.lanes*t.pitchK())), 4))
				}
				for i := range t.rows {
					for j := range each {
						for u := range 4 {
							s[i*each+j] = b.Fma(x[i][u], y[j][u], s[i*each+j])
						}
					}
				}
			})
		})
		var after, norms []value
		results := make([]value, len(acc))
		for i := range t.rows {
			s := make([]value, each)
			m := top[i]
			query(b.Add(row, n(i)))
			for j := range s {
				is := key(b.Add(j0, b.Add(lane, n(int64(j)*t.lanes))))
				c.flashAt(n(0), 1)
				s[j] = p.score(c, scores[i*each+int64(j)])
				if is != nil {
					s[j] = b.Select(is, s[j], hidden)
				}
				m = greater(m, s[j])
			}
			for mask := t.lanes / 2; mask > 0; mask /= 2 {
				m = greater(m, b.Shuffle(m, mask))
			}
			shift := b.Select(b.Eq(m, hidden), zero, m) // as long as no key counts
			scale := approx.Exp(b, b.Sub(top[i], shift))
			l := b.Mul(norm[i], scale)
			for j, v := range s {
				x := approx.Exp(b, b.Sub(v, shift))
				l = b.Add(l, x)
				b.Store(ps, b.Add(b.Add(ofP, lane), n(i*t.pitchP()+int64(j)*t.lanes)), x)
			}
			after, norms = append(after, m), append(norms, l)
			for j := range t.cols {
				results[i*t.cols+j] = b.Mul(acc[i*t.cols+j], scale)
			}
		}
		results = b.For(n(0), n(flashKeys), n(t.values), results, func(k0 value, acc []value) []value {
			b.Barrier()
			deal(t.values, t.wide(), func(r, col value) {
				at, ok := inRow(b, col, p.width, t.wide())
				is := key(b.Add(j0, b.Add(k0, r)))
				c.flashAt(at, p.width)
				b.Store(kvs, b.Add(b.Mul(r, n(t.wide())), col), read(both(b, is, ok), p.v, p.keepV))
			})
			b.Barrier()
			return turns(t.values, acc, func(k value, acc []value) {
				var x [][]value
				for i := range t.rows {
					x = append(x, c.neighbours(ps, b.Add(b.Add(b.Add(ofP, k0), k), n(i*t.pitchP())), 4))
				}
				for u := range int64(4) {
					var y []value
					at := b.Add(b.Mul(k, n(t.wide())), b.Mul(lane, n(t.vector)))
					for j := int64(0); j < t.cols; j += t.vector {
						y = append(y, c.neighbours(kvs, b.Add(at, n(u*t.wide()+j*t.lanes)), t.vector)...)
					}
					for i := range t.rows {
						for j := range t.cols {
							acc[i*t.cols+j] = b.Fma(x[i][u], y[j], acc[i*t.cols+j])
						}
					}
				}
			})
		})
		return append(append(after, norms...), results...)
	})
	top, norm, acc := sums[:t.rows], sums[t.rows:2*t.rows], sums[2*t.rows:]
	parts := &flashParts{}
	if t.splits > 1 {
		d := tensor.Float32
		if p.t == kir.F64 {
			d = tensor.Float64
		}
		parts.tops = scratch(d, p.batch, p.rows, p.group, sym.Const(t.splits))
		parts.norms = scratch(d, p.batch, p.rows, p.group, sym.Const(t.splits))
		parts.sums = scratch(d, p.batch, p.rows, p.group, sym.Const(t.splits), sym.Const(p.width))
	}
	for i := range t.rows {
		l := norm[i]
		for mask := t.lanes / 2; mask > 0; mask /= 2 {
			l = b.Add(l, b.Shuffle(l, mask))
		}
		is := query(b.Add(row, n(i)))
		store := func() {
			if t.splits > 1 {
				c.flashAt(n(0), 1)
				at := append(c.flashQuery(), c.dim(part, sym.Const(t.splits)))
				b.When(b.Eq(lane, n(0)), func() {
					c.storeAt(parts.tops, at, top[i])
					c.storeAt(parts.norms, at, l)
				})
			}
			for j := range t.cols {
				col := b.Add(n(j/t.vector*t.vector*t.lanes+j%t.vector), b.Mul(lane, n(t.vector)))
				one := func() {
					c.flashAt(col, p.width)
					if t.splits > 1 {
						c.storeAt(parts.sums, append(append(c.flashQuery(), c.dim(part, sym.Const(t.splits))), c.space.Dim(flashAt)), acc[i*t.cols+j])
						return
					}
					p.done(c, p.quotient(b, acc[i*t.cols+j], l))
				}
				if t.wide() == p.width {
					one()
				} else {
					b.When(b.Lt(col, n(p.width)), one)
				}
			}
		}
		onlyWhen(b, is, store)
	}
	l := w.finish(c, p.batch.Mul(tiles).Mul(sym.Const(t.splits)))
	l.Work = p.batch.Mul(queries).Mul(p.keys).Mul(sym.Const(2 * (p.size + p.width)))
	if t.splits > 1 {
		w.combine(p, parts, t.splits)
	}
}

// flashParts are what each part of the keys gives: the greatest score of a query, its sum of exp(s - m), and that of exp(s - m) v.
type flashParts struct{ tops, norms, sums *ssa.Value }

// flashQuery are the coordinates of a query.
func (c *body) flashQuery() []index.Expr {
	return []index.Expr{c.space.Dim(flashBatch), c.space.Dim(flashRow), c.space.Dim(flashGroup)}
}

func (c *body) storeAt(v *ssa.Value, coords []index.Expr, x value) {
	c.store(v, c.lower(c.space.Linear(shapeOf(v), coords)), x)
}

// quotient is a result of its sum and that of the weights, which is at least 1 if any key counts.
func (p *flash) quotient(b *kir.Builder, sum, norm value) value {
	y := b.Div(sum, norm)
	if p.zeros {
		zero := b.Float(p.t, 0)
		y = b.Select(b.Eq(norm, zero), zero, y)
	}
	if p.nans {
		y = b.Select(b.IsNaN(norm), b.Float(p.t, 0), y)
	}
	return y
}

// combine puts together what the parts of the keys give; a thread has an element of a result.
func (w *writer) combine(p *flash, f *flashParts, splits int64) {
	c := w.newBody(loopThreads)
	b := c.b
	shape := []sym.Expr{p.batch, p.rows, p.group, sym.Const(p.width)}
	size := index.Prod(shape)
	thread := b.Add(b.Mul(b.BlockIndex(0), b.I32(loopThreads)), b.ThreadX())
	b.When(b.Lt(thread, b.Size(size)), func() {
		at := c.space.Unravel(shape, c.dim(thread, size))
		var where []value
		for _, e := range at {
			where = append(where, c.lower(e))
		}
		c.flashSpace(p)
		copy(c.dims, where[:flashKey])
		zero, hidden := b.Float(p.t, 0), b.Float(p.t, math.Inf(-1))
		part := func(v *ssa.Value, z value, tail ...index.Expr) value {
			c.flashAt(where[3], p.width)
			return c.load(v, c.space.Linear(shapeOf(v), append(append(c.flashQuery(), c.dim(z, sym.Const(splits))), tail...)))
		}
		each := func(start []value, f func(z value, c []value) []value) []value {
			return b.For(b.I32(0), b.I32(splits), b.I32(1), start, f)
		}
		top := each([]value{hidden}, func(z value, m []value) []value {
			x := part(f.tops, z)
			return []value{b.Select(b.Lt(m[0], x), x, m[0])}
		})[0]
		shift := b.Select(b.Eq(top, hidden), zero, top)
		sums := each([]value{zero, zero}, func(z value, s []value) []value {
			scale := approx.Exp(b, b.Sub(part(f.tops, z), shift))
			c.flashAt(where[3], p.width)
			return []value{b.Fma(part(f.norms, z), scale, s[0]), b.Fma(part(f.sums, z, c.space.Dim(flashAt)), scale, s[1])}
		})
		c.flashAt(where[3], p.width)
		p.done(c, p.quotient(b, sums[1], sums[0]))
	})
	w.finish(c, ceilDiv(size, loopThreads))
}

// neighbours reads 1 or 4 neighbours from shared memory.
func (c *body) neighbours(m *kir.Mem, at value, n int64) []value {
	if n == 1 || m.Elem.Size() <= 4 {
		return c.b.LoadVec(m, at, int(n))
	}
	return append(c.b.LoadVec(m, at, 2), c.b.LoadVec(m, c.b.Add(at, c.b.I32(2)), 2)...)
}
