package emit

import (
	"math/bits"

	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Products on tensor cores: 8 warps have a tile of 128x64, or 64x128, of which each computes 32x32 in 2x4 products of 16x8. Both tiles of the factors lie in
// shared memory as rows of 16 words along k, of two numbers of float16 or bfloat16, four of int8 or uint8, or one of tf32.
const (
	warpTile = 32
	rowWords = 16
	// matrixK is the least depth.
	matrixK = 32
	// matrixStripe rows of tiles are computed together, see stripe: blocks of this size hold less of the result.
	matrixStripe = 32
)

// sixteen gives the format of the factors if both operands have 16 bits, so that tensor cores can multiply them.
func sixteen(x, y *ssa.Value) *kir.Format {
	f := map[tensor.DType]kir.Format{tensor.Float16: kir.Half, tensor.BFloat16: kir.BFloat16}
	if v, ok := f[dtype(x)]; ok && dtype(x) == dtype(y) {
		return &v
	}
	return nil
}

// factors gives the format of the factors if tensor cores can multiply them as they are, or if they may be rounded to tf32.
func (w *writer) factors(x, y *ssa.Value) *kir.Format {
	if w.TF32 && dtype(x) == tensor.Float32 && dtype(y) == tensor.Float32 {
		f := kir.Tensor32
		return &f
	}
	return sixteen(x, y)
}

// matrixTiles are those of tensor cores, the best one first: a convolution of less than 128 channels has the second one.
var matrixTiles = []tile{{m: 128, n: 64}, {m: 64, n: 128}}

// onMatrices gives the tile for tensor cores that a product is known or likely to fill at least once, and reports whether there is one.
func (w *writer) onMatrices(p *product) (tile, bool) {
	m, ok0 := w.guess(p.m)
	n, ok1 := w.guess(p.n)
	k, ok2 := w.guess(p.k)
	if p.factors != nil && ok0 && ok1 && ok2 && k >= matrixK {
		for _, t := range matrixTiles {
			if m >= t.m && n >= t.n {
				return t, true
			}
		}
	}
	return tile{}, false
}

// wordAt is where a word of a row stands: neighbours, rows two apart and rows four apart are in different halves of the banks, and of the 8 rows from a multiple of 8 on
// the same quarter of their words is in different eighths of the banks. So rows can be read side by side, 4 words at a time, and written 2 words at a time by threads side by
// side along k or along the rows, or 4 words at a time by threads that each have a row.
func wordAt(b *kir.Builder, row, word value) value {
	one := b.I32(1)
	two := b.And(b.Binary(kir.LShr, row, one), one)
	four := b.And(b.Binary(kir.LShr, row, b.I32(2)), one)
	odd := b.Binary(kir.Xor, two, four)
	return b.Add(b.Mul(b.Binary(kir.Xor, row, odd), b.I32(rowWords)), b.Binary(kir.Xor, word, b.Add(b.Mul(two, b.I32(rowWords/2)), b.Mul(four, b.I32(rowWords/4)))))
}

// word joins the numbers of a word, the first one lowest. They come from tensors of the format, so nothing is rounded but for tf32.
func word(b *kir.Builder, f kir.Format, v []value) value {
	switch len(v) {
	case 1:
		return b.TF32(v[0])
	case 4:
		return octets(b, v)
	}
	half := func(v value) value {
		if f == kir.Half {
			return b.Convert(kir.Round, v, kir.F16)
		}
		x := b.Convert(kir.Bitcast, v, kir.I32)
		if x.Op == kir.Shl && x.Args[0].Op == kir.ZExt && x.Args[0].Args[0].Type == kir.I16 { // as it was read
			return x.Args[0].Args[0]
		}
		return b.Convert(kir.Narrow, b.Binary(kir.LShr, x, b.I32(16)), kir.I16)
	}
	return b.Pack(half(v[0]), half(v[1]))
}

// clampTo keeps a coordinate in range; ok is nil if it is anyway.
func (c *body) clampTo(at value, n sym.Expr, tile int64) (in, ok value) {
	if _, whole := n.Divide(sym.Const(tile)); whole {
		return at, nil
	}
	ok = c.b.Lt(at, c.b.Size(n))
	return c.b.Select(ok, at, c.b.I32(0)), ok
}

// matrixProduct computes tiles with tensor cores. A word of a factor holds what is next to each other along k: a thread reads 4 words of a row, which are its
// part of two products. Which k a product takes is thus another order than that of memory, the same for both factors.
func (w *writer) matrixProduct(p *product, t tile) {
	c := w.newBody(tileThreads)
	b := c.b
	b.K.Resident = 2
	c.productSpace(p)
	ring := c.ringOf(p, t)
	stages := int64(1)
	if ring != nil {
		stages = ringStages
	}
	as, bs := b.SharedMem("a", kir.I32, int(stages*t.m*rowWords)), b.SharedMem("b", kir.I32, int(stages*t.n*rowWords))
	thread := b.ThreadX()
	tilesM, tilesN := ceilDiv(p.m, t.m), ceilDiv(p.n, t.n)
	m0, n0 := c.tileOf(p, tilesM, tilesN, t, matrixStripe)
	group := b.And(b.Binary(kir.LShr, thread, b.I32(2)), b.I32(7))
	warpOf := b.UDiv(thread, b.I32(warp))
	across := b.I32(t.n / warpTile)
	rowM, rowN := b.Mul(b.UDiv(warpOf, across), b.I32(warpTile)), b.Mul(b.URem(warpOf, across), b.I32(warpTile))
	const above, beside = warpTile / 16, warpTile / 8
	start := make([]value, above*beside*4)
	for i := range start {
		start[i] = b.Num(p.factors.Sum(), 0)
	}
	rowSums, columnSums := len(start), len(start) // places of sums of the factors, where they have zero points
	if p.zeroB != nil {
		start = append(start, start[:above*4]...)
		columnSums = len(start)
	}
	if p.zeroA != nil {
		start = append(start, start[:beside*4]...)
	}
	ones := b.I32(0x01010101)
	add := func(acc []value, a [4]value, x [2]value) {
		r := b.Mma(*p.factors, a, x, [4]value(acc))
		copy(acc, r[:])
	}
	left, right := factor{alongK: true, side: t.m}, factor{alongK: true, side: t.n} // as fillWords leaves them
	if ring != nil {
		left, right = ring[0], ring[1]
	}
	// multiply adds the product of the tiles of a stage
	multiply := func(stage value, acc []value) []value {
		acc = append([]value(nil), acc...)
		var x [2 * above][]value
		var y [beside][]value
		for i := range x {
			x[i] = left.words(b, as, stage, b.Add(rowM, b.I32(int64(8*i))))
		}
		for j := range y {
			y[j] = right.words(b, bs, stage, b.Add(rowN, b.I32(int64(8*j))))
		}
		for s := 0; s < 4; s += 2 {
			for i := range above {
				a := [4]value{x[2*i][s], x[2*i+1][s], x[2*i][s+1], x[2*i+1][s+1]}
				for j := range beside {
					add(acc[4*(i*beside+j):][:4], a, [2]value{y[j][s], y[j][s+1]})
				}
				if p.zeroB != nil {
					add(acc[rowSums+4*i:][:4], a, [2]value{ones, ones})
				}
			}
			for j := range beside {
				if p.zeroA != nil {
					add(acc[columnSums+4*j:][:4], [4]value{ones, ones, ones, ones}, [2]value{y[j][s], y[j][s+1]})
				}
			}
		}
		return acc
	}
	var sums []value
	if ring != nil {
		sums = c.ringLoop(p, func(k0, stage value) {
			c.bring(as, left, m0, k0, stage)
			c.bring(bs, right, n0, k0, stage)
		}, multiply, start)
	} else {
		sums = b.For(b.I32(0), b.Size(p.k), b.I32(rowWords*p.factors.PerWord()), start, func(k0 value, acc []value) []value {
			c.fillWords(as, p, dimM, p.m, t.m, m0, k0, p.aAlongK, p.a)
			c.fillWords(bs, p, dimN, p.n, t.n, n0, k0, p.bAlongK, p.b)
			b.Barrier()
			acc = multiply(b.I32(0), acc)
			b.Barrier()
			return acc
		})
	}
	row, column := b.Add(b.Add(m0, rowM), group), b.Add(n0, rowN)
	if p.zeroA != nil || p.zeroB != nil { // before threads exchange results: the sums of rows and columns are where the products are
		for i := range int64(2 * above) {
			for j := range int64(beside) {
				for e := range int64(2) {
					c.forget()
					c.dims[dimM], _ = c.clampTo(b.Add(row, b.I32(8*i)), p.m, t.m)
					c.dims[dimN], _ = c.clampTo(b.Add(b.Add(column, b.Mul(b.And(thread, b.I32(3)), b.I32(2))), b.I32(8*j+e)), p.n, t.n)
					c.dims[dimK] = b.I32(0)
					sum, at := 4*(i/2*beside+j)+i%2*2+e, i%2*2+e
					var ofRow, ofColumn value
					if p.zeroB != nil {
						ofRow = sums[int64(rowSums)+i/2*4+at]
					}
					if p.zeroA != nil {
						ofColumn = sums[int64(columnSums)+4*j+at]
					}
					sums[sum] = p.correct(c, sums[sum], ofRow, ofColumn)
				}
			}
		}
	}
	c.putMatrices(p, row, column, sums, t)
	w.finish(c, tilesM.Mul(tilesN).Mul(p.batch))
}

// fillWords brings a tile of a factor to shared memory: side rows from first on, of 16 words from k0 on. Beyond the last row anything will do, as it ends up in results
// that are not stored; beyond the last k there are zeros.
func (c *body) fillWords(mem *kir.Mem, p *product, dim int, size sym.Expr, side int64, first, k0 value, alongK bool, load func(*body) value) {
	b := c.b
	thread := b.ThreadX()
	per := p.factors.PerWord()
	deep := rowWords * per
	get := func(row, k value, r *run) value {
		c.forget()
		c.dims[dim], _ = c.clampTo(row, size, side)
		at, ok := c.clampTo(k, p.k, deep)
		c.dims[dimK] = at
		c.run = r
		v := load(c)
		c.run = nil
		if ok != nil {
			v = b.Select(ok, v, b.Num(p.factors.Sum(), 0))
		}
		return v
	}
	join := func(v []value) (words []value) {
		for i := 0; i < len(v); i += int(per) {
			words = append(words, word(b, *p.factors, v[i:][:per]))
		}
		return words
	}
	// a run of n from first on, if there is no end of the tensor within it
	runOf := func(dim int, size sym.Expr, first value, n, tile int64) *run {
		if _, whole := size.Divide(sym.Const(n)); !whole {
			return nil
		}
		first, _ = c.clampTo(first, size, tile)
		return &run{dim: dim, first: first, n: n, read: map[runKey][]value{}}
	}
	words := func(numbers value) value {
		return b.Binary(kir.LShr, numbers, b.I32(int64(bits.TrailingZeros64(uint64(per)))))
	}
	if alongK { // 4 threads a row, each with 16 bytes, or with 8 of each half where 4 numbers at once have 8: so together they read whole sectors
		n := 4 * per
		if per == 2 {
			n = 4
		}
		row, at := b.UDiv(thread, b.I32(4)), b.Mul(b.URem(thread, b.I32(4)), b.I32(n))
		for j := int64(0); j < side; j += tileThreads / 4 {
			for h := int64(0); h < deep; h += 4 * n {
				at := b.Add(at, b.I32(h))
				k := b.Add(k0, at)
				r := runOf(dimK, p.k, k, n, deep)
				var v []value
				for i := range n {
					if r != nil {
						r.lane = i
					}
					v = append(v, get(b.Add(b.Add(first, row), b.I32(j)), b.Add(k, b.I32(i)), r))
				}
				b.Store(mem, b.Add(wordAt(b, row, words(at)), b.I32(j*rowWords)), join(v)...)
			}
		}
		return
	}
	if dim == dimN && p.bGathered { // threads side by side have rows side by side, with 4 words each
		row := b.URem(thread, b.I32(side))
		part := func(from value) {
			quarter := b.Add(b.UDiv(thread, b.I32(side)), from)
			var v []value
			for i := range 4 * per {
				v = append(v, get(b.Add(first, row), b.Add(b.Add(k0, b.Mul(quarter, b.I32(4*per))), b.I32(i)), nil))
			}
			b.Store(mem, wordAt(b, row, b.Mul(quarter, b.I32(4))), join(v)...)
		}
		if per == 4 { // 16 numbers at a time take registers enough
			b.For(b.I32(0), b.I32(rowWords/4), b.I32(tileThreads/side), nil, func(from value, _ []value) []value {
				part(from)
				return nil
			})
			return
		}
		for from := int64(0); from < rowWords/4; from += tileThreads / side {
			part(b.I32(from))
		}
		return
	}
	// 8 threads for 4 rows, with 2 words of each row
	const n = 4
	const each, beside = 2, rowWords / 2
	part := func(row0 int64) {
		row, at := b.Add(b.Mul(b.UDiv(thread, b.I32(beside)), b.I32(n)), b.I32(row0)), b.Mul(b.URem(thread, b.I32(beside)), b.I32(each*per))
		var v, joined [n][]value
		for kk := range each * per {
			r := runOf(dim, size, b.Add(first, row), n, side)
			for i := range int64(n) {
				if r != nil {
					r.lane = i
				}
				v[i] = append(v[i], get(b.Add(b.Add(first, row), b.I32(i)), b.Add(b.Add(k0, at), b.I32(kk)), r))
				if kk%per == per-1 {
					joined[i] = append(joined[i], join(v[i][kk+1-per:])...)
				}
			}
		}
		for i := range int64(n) {
			b.Store(mem, wordAt(b, b.Add(row, b.I32(i)), words(at)), joined[i]...)
		}
	}
	if threads := side / n * beside; threads < tileThreads {
		b.When(b.Lt(thread, b.I32(threads)), func() { part(0) })
		return
	}
	for row := int64(0); row < side; row += tileThreads / beside * n {
		part(row)
	}
}

// putMatrices stores what a warp has of a tile, from row and column on: of each row 4 times 2 results a thread, those of the 4 threads of the row side by side.
func (c *body) putMatrices(p *product, row, column value, sums []value, t tile) {
	b := c.b
	thread := b.ThreadX()
	const vector, beside = 4, warpTile / 8
	var rows [warpTile / 8][]value
	for i := range rows {
		for j := range beside {
			rows[i] = append(rows[i], sums[4*(i/2*beside+j)+i%2*2:][:2]...)
		}
	}
	if c.inVectors(p, vector) {
		quad := b.And(thread, b.I32(3))
		for i, v := range rows {
			// a column is 2*thread + e + 8*j: what is 8 apart goes to other threads, until each has 4 neighbours
			swapBits(b, v, 1, 1)
			swapBits(b, v, 1, 0)
			m := b.Add(row, b.I32(int64(8*i)))
			c.within(m, p.m, t.m, func() {
				for j := int64(0); j < int64(len(v)); j += vector {
					n := b.Add(b.Add(column, b.Mul(quad, b.I32(vector))), b.I32(4*j))
					c.within(n, p.n, t.n, func() { c.putResults(p, m, n, v[j:j+vector]...) })
				}
			})
		}
		return
	}
	// the warp has a row of 32 results, and then the next one
	lane := b.URem(thread, b.I32(warp))
	bit := func(i int64) value { return b.And(b.Binary(kir.LShr, lane, b.I32(i)), b.I32(1)) }
	n := b.Add(b.Mul(b.And(lane, b.I32(3)), b.I32(2)), b.Add(bit(2), b.Mul(b.Binary(kir.LShr, lane, b.I32(3)), b.I32(8))))
	n = b.Add(column, n)
	first := b.Sub(row, b.Binary(kir.LShr, lane, b.I32(2)))
	for i, v := range rows {
		swapBits(b, v, 2, 4)
		swapBits(b, v, 1, 3)
		swapBits(b, v, 0, 2)
		for j, s := range v {
			m := b.Add(first, b.I32(int64(8*i+j)))
			c.within(m, p.m, t.m, func() {
				c.within(n, p.n, t.n, func() { c.putResults(p, m, n, s) })
			})
		}
	}
}
