package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/approx"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// A flash of float16 or bfloat16 on tensor cores: each warp has 16 queries. Queries, and a tile of keys, lie in shared memory as products have them, in parts of 16
// words along the elements; values as words of two keys. The scores of two products are words of the left factor of the next one where they stand, if
// the columns of the first one are keys in the order in which the second one reads its words: weights never leave the registers. They are rounded to the
// format of the values, as the standard's expression rounds them; their sum is that of float32.
const (
	flashWarpRows = 16
	// matrixHead is up to how many elements queries and values may have: what the registers of a thread hold.
	matrixHead = 128
	// matrixQueries are those of a block, and from how many on tensor cores are used: fewer fill no tile.
	matrixQueries = 64
	matrixThreads = matrixQueries / flashWarpRows * warp
)

// onMatrices reports that a flash is known or likely to have queries enough for tensor cores.
func (p *flash) onMatrices(w *writer) bool {
	n, ok := w.guess(p.rows.Mul(p.group))
	return p.factors != nil && ok && n >= matrixQueries && p.size <= matrixHead && p.width <= matrixHead
}

// matrixFlash is the kernel in the making.
type matrixFlash struct {
	*flash
	*flashBlock
	// chunks are the parts of 32 elements of queries and keys; columns are those of values, of which tensor cores take 8 at a time.
	chunks, columns int64
	qs, ks, vs      *kir.Mem
}

func (w *writer) matrixFlash(p *flash) {
	f := &matrixFlash{flash: p, chunks: (p.size + 31) / 32, columns: (p.width + 7) / 8 * 8}
	queries := p.rows.Mul(p.group)
	c := w.newBody(matrixThreads)
	b := c.b
	// a thread has 32 scores, their masks, and half as many results as values have elements: at most 168 registers, or 255
	if b.K.Resident = 3; f.columns > 64 || p.masked {
		b.K.Resident = 2
	}
	c.flashSpace(p)
	n := func(v int64) value { return b.I32(v) }
	f.qs, f.ks = b.SharedMem("q", kir.I32, int(matrixQueries*f.chunks*rowWords)), b.SharedMem("k", kir.I32, int(flashKeys*f.chunks*rowWords))
	f.vs = b.SharedMem("v", kir.I32, int(f.columns*flashKeys/32*rowWords))
	zero, hidden := b.Float(kir.F32, 0), b.Float(kir.F32, math.Inf(-1))

	thread := b.ThreadX()
	lane, warpOf := b.URem(thread, n(warp)), b.UDiv(thread, n(warp))
	group, quad := b.Binary(kir.LShr, lane, n(2)), b.And(lane, n(3))
	f.flashBlock = c.flashBlock(p, matrixQueries, 1)
	f.fillRows(c, f.qs, matrixQueries, func(row value) value { return f.query(row) }, p.q, nil)
	first, end, even := f.keysOf(c)
	f.even, f.end = even, end

	row := b.Mul(warpOf, n(flashWarpRows))
	at := b.Add(wordRow(b, group), b.Mul(quad, n(4)))
	const each = flashKeys / 8 // products beside each other
	// Column g of product j is key 8(g/2) + 2(j%4) + g%2 of 32: quad q has keys 8q+2j and 8q+2j+1 then, which are word 4q+j of the values.
	keyAt := func(j int64) value {
		odd := j ^ j>>1&1
		even := b.Binary(kir.Xor, b.And(group, n(1)), n(odd&1))
		own := b.Add(b.Mul(b.Binary(kir.LShr, group, n(1)), n(8)), even)
		return b.Add(b.Add(b.Mul(own, n(rowWords)), b.Mul(quad, n(4))), n((j/4*32+j%4*2)*rowWords))
	}
	carried := []value{hidden, hidden, zero, zero}
	for range f.columns / 2 {
		carried = append(carried, zero)
	}
	sums := b.For(first, end, n(flashKeys), carried, func(j0 value, before []value) []value {
		b.Barrier()
		f.fillRows(c, f.ks, flashKeys, func(row value) value { return f.key(b.Add(j0, row)) }, p.k, p.keepK)
		f.fillValues(c, j0)
		b.Barrier()
		var s [4 * each]value
		for i := range s {
			s[i] = zero
		}
		for part := range f.chunks {
			x := b.LoadVec(f.qs, b.Add(b.Add(b.Mul(row, n(rowWords)), at), n(part*matrixQueries*rowWords)), 4)
			y := b.LoadVec(f.qs, b.Add(b.Add(b.Mul(row, n(rowWords)), at), n((part*matrixQueries+8)*rowWords)), 4)
			for j := range int64(each) {
				k := b.LoadVec(f.ks, b.Add(keyAt(j), n(part*flashKeys*rowWords)), 4)
				for e := 0; e < 4; e += 2 {
					r := b.Mma(*p.factors, [4]value{x[e], y[e], x[e+1], y[e+1]}, [2]value{k[e], k[e+1]}, [4]value(s[4*j:][:4]))
					copy(s[4*j:], r[:])
				}
			}
		}
		after := append([]value(nil), before...)
		results := after[4:]
		var weights [2][each]value // words, of both rows
		for i := range int64(2) {
			m := before[i]
			f.query(b.Add(b.Add(row, group), n(8*i)))
			for j := range int64(each) {
				for e := range int64(2) {
					is := f.key(b.Add(b.Add(j0, b.Mul(quad, n(8))), n(j/4*32+j%4*2+e)))
					c.flashAt(n(0), 1)
					x := &s[4*j+2*i+e]
					if *x = p.score(c, *x); is != nil {
						*x = b.Select(is, *x, hidden)
					}
					m = b.Select(b.Lt(m, *x), *x, m)
				}
			}
			for mask := int64(1); mask < 4; mask *= 2 {
				other := b.Shuffle(m, mask)
				m = b.Select(b.Lt(m, other), other, m)
			}
			shift := b.Select(b.Eq(m, hidden), zero, m) // as long as no key counts
			scale := approx.Exp(b, b.Sub(before[i], shift))
			l := b.Mul(before[2+i], scale)
			for j := range int64(each) {
				var x [2]value
				for e := range x {
					x[e] = approx.Exp(b, b.Sub(s[4*j+2*i+int64(e)], shift))
					l = b.Add(l, x[e])
					x[e] = toMem(b, f.format(), x[e])
				}
				weights[i][j] = b.Pack(x[0], x[1])
			}
			after[i], after[2+i] = m, l
			for k := range f.columns / 8 {
				for e := range int64(2) {
					r := &results[4*k+2*i+e]
					*r = b.Mul(*r, scale)
				}
			}
		}
		for part := range int64(flashKeys / 32) {
			for k := range f.columns / 8 {
				v := b.LoadVec(f.vs, b.Add(at, n((part*f.columns+8*k)*rowWords)), 4)
				for e := int64(0); e < 4; e += 2 {
					j := 4*part + e
					r := b.Mma(*p.factors, [4]value{weights[0][j], weights[1][j], weights[0][j+1], weights[1][j+1]}, [2]value{v[e], v[e+1]}, [4]value(results[4*k:][:4]))
					copy(results[4*k:], r[:])
				}
			}
		}
		return after
	})
	for i := range int64(2) {
		l := sums[2+i]
		for mask := int64(1); mask < 4; mask *= 2 {
			l = b.Add(l, b.Shuffle(l, mask))
		}
		is := f.query(b.Add(b.Add(row, group), n(8*i)))
		store := func() {
			for k := range f.columns / 8 {
				for e := range int64(2) {
					col := b.Add(b.Mul(quad, n(2)), n(8*k+e))
					one := func() {
						c.flashAt(col, p.width)
						p.done(c, p.quotient(b, sums[4+4*k+2*i+e], l))
					}
					if 8*k+8 <= p.width {
						one()
					} else {
						b.When(b.Lt(col, n(p.width)), one)
					}
				}
			}
		}
		onlyWhen(b, is, store)
	}
	l := w.finish(c, p.batch.Mul(f.tiles))
	l.Work = p.batch.Mul(queries).Mul(p.keys).Mul(sym.Const(2 * (p.size + p.width)))
}

// items runs do for each of so many things to do, which the threads share: two at a time, for their reads to overlap, or one if it takes many instructions. In a
// loop, so that what follows from the number of one is not kept in registers.
func (f *matrixFlash) items(c *body, count int64, long bool, do func(item value)) {
	b := c.b
	by := int64(2 * matrixThreads)
	if long || count < by {
		by = matrixThreads
	}
	whole := count / by * by
	b.For(b.I32(0), b.I32(whole), b.I32(by), nil, func(from value, _ []value) []value {
		for i := int64(0); i < by; i += matrixThreads {
			do(b.Add(b.Add(from, b.ThreadX()), b.I32(i)))
		}
		return nil
	})
	for i := whole; i < count; i += matrixThreads {
		item := b.Add(b.ThreadX(), b.I32(i))
		b.When(b.Lt(item, b.I32(count)), func() { do(item) })
	}
}

// fillRows brings queries or keys to shared memory, 4 threads with 8 elements each for a part of a row; name says which row it is, and whether there is one.
func (f *matrixFlash) fillRows(c *body, mem *kir.Mem, rows int64, name func(row value) value, load func(c *body) value, keep func(c *body, x value)) {
	b := c.b
	const n = 8
	f.items(c, f.chunks*rows*4, f.single || keep != nil, func(item value) {
		part, row, from := b.UDiv(item, b.I32(4*rows)), b.URem(b.UDiv(item, b.I32(4)), b.I32(rows)), b.Mul(b.URem(item, b.I32(4)), b.I32(n))
		at := b.Add(b.Mul(part, b.I32(32)), from)
		is := name(row)
		words := f.numbers(c, is, at, f.size, 32*f.chunks, n, load, keep)
		var out []value
		for i := 0; i < n; i += 2 {
			out = append(out, word(b, *f.factors, words[i:i+2]))
		}
		b.Store(mem, b.Add(b.Add(b.Mul(part, b.I32(rows*rowWords)), wordRow(b, row)), b.UDiv(from, b.I32(2))), out...)
	})
}

// fillValues brings values to shared memory, as words of two keys: 8 threads for 4 columns, with 2 words of each.
func (f *matrixFlash) fillValues(c *body, j0 value) {
	b := c.b
	const n = 4
	f.items(c, flashKeys/32*f.columns/n*8, f.single || f.keepV != nil, func(item value) {
		part, col, from := b.UDiv(item, b.I32(8*f.columns/n)), b.Mul(b.URem(b.UDiv(item, b.I32(8)), b.I32(f.columns/n)), b.I32(n)), b.Mul(b.URem(item, b.I32(8)), b.I32(4))
		var v [n][]value
		for k := range int64(4) {
			is := f.key(b.Add(b.Add(j0, b.Mul(part, b.I32(32))), b.Add(from, b.I32(k))))
			for i, x := range f.numbers(c, is, col, f.width, f.columns, n, f.v, f.keepV) {
				v[i] = append(v[i], x)
			}
		}
		for i := range v {
			row := b.Add(b.Mul(part, b.I32(f.columns*rowWords)), wordRow(b, b.Add(col, b.I32(int64(i)))))
			b.Store(f.vs, b.Add(row, b.UDiv(from, b.I32(2))), word(b, *f.factors, v[i][:2]), word(b, *f.factors, v[i][2:]))
		}
	})
}

// numbers are n neighbours of the row at hand from a multiple of n on, with zeros behind its size, and instead of a row that is not there.
func (f *matrixFlash) numbers(c *body, is, from value, size, width, n int64, load func(c *body) value, keep func(c *body, x value)) (out []value) {
	b := c.b
	var r *run
	if size%n == 0 {
		first, _ := inRow(b, from, size, width)
		r = &run{dim: flashAt, first: first, n: n, read: map[runKey][]value{}}
	}
	for i := range n {
		at, ok := inRow(b, b.Add(from, b.I32(i)), size, width)
		c.flashAt(at, size)
		if r != nil {
			r.lane = i
			c.run = r
		}
		out = append(out, f.read(c, both(b, is, ok), load, keep))
		c.run = nil
	}
	return out
}

// format is the type of queries, keys and values.
func (f *matrixFlash) format() tensor.DType {
	if *f.factors == kir.Half {
		return tensor.Float16
	}
	return tensor.BFloat16
}

// wordRow is where a row stands: neighbours, rows two apart and rows four apart are in different halves of the banks, so that rows can be read side by side and
// written from any of these.
func wordRow(b *kir.Builder, row value) value {
	one := b.I32(1)
	odd := b.Binary(kir.Xor, b.Binary(kir.LShr, row, one), b.Binary(kir.LShr, row, b.I32(2)))
	return b.Mul(b.Binary(kir.Xor, row, b.And(odd, one)), b.I32(rowWords))
}
