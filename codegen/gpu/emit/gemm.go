package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// product is a batch of matrix products, of m x k by k x n. The coordinates of its space are batch, m, n and k.
type product struct {
	batch, m, n, k sym.Expr
	t              kir.Type // of elements and sums
	// a and b give the elements at the coordinates at hand, which are in range.
	a, b func(c *body) value
	// aAlongK and bAlongK say that the neighbour in memory is the next one along k, else along m or n.
	aAlongK, bAlongK bool
	// bGathered says that neighbours of b are not read together.
	bGathered bool
	// factors is the format of the elements if tensor cores can multiply them, else nil.
	factors *kir.Format
	// line is how many neighbours along n are neighbours in memory among the results, from each multiple of it on.
	line sym.Expr
	// zeroA and zeroB, if set, are the zero points of the rows of a and of the columns of b, which elements are to be less, and which stand where b has no element.
	zeroA, zeroB func(c *body) value
	// done stores a result.
	done func(c *body, sum value)
}

const (
	dimBatch = iota
	dimM
	dimN
	dimK
)

// tile is the shape of what a block of 256 threads computes: m x n results, rows x cols of them by each thread, in steps
// of tileK.
type tile struct{ m, n, rows, cols int64 }

const (
	tileK       = 16
	tileThreads = 256
)

// manyTiles is how many of the largest tiles there must be for them to be used: with fewer, a large GPU would have nothing to do for a part of its SMs.
const manyTiles = 128

// tileFor chooses the tile: square, unless one side is so short that most of it would be empty. The larger a tile is, the less often the operands
// are read, and the more arithmetic there is for each load from shared memory.
func (w *writer) tileFor(p *product) tile {
	large := tile{128, 128, 8, 8}
	switch {
	case w.atMost(p.n, 32):
		return tile{64, 16, 4, 1}
	case w.atMost(p.m, 32):
		return tile{16, 64, 1, 4}
	case p.t == kir.F32 && w.fills(p, large):
		return large
	}
	return tile{64, 64, 4, 4}
}

// fills reports that a product is known or likely to have many tiles, of which at most an eighth is empty.
func (w *writer) fills(p *product, t tile) bool {
	batch, ok0 := w.guess(p.batch)
	m, ok1 := w.guess(p.m)
	n, ok2 := w.guess(p.n)
	if !ok0 || !ok1 || !ok2 {
		return false
	}
	tiles := batch * ((m + t.m - 1) / t.m) * ((n + t.n - 1) / t.n)
	return tiles >= manyTiles && batch*m*n*8 >= tiles*t.m*t.n*7
}

// stripe is how many rows of tiles are computed together. Blocks that run at the same time then have a part of the result that is about as high as it is
// wide, for which they read the least of both operands.
const stripe = 12

// place gives the tile of a block: stripe after stripe, column after column of a stripe, each second stripe backwards, so that it begins with the
// columns of the right operand that the one before has read last.
func (c *body) place(block, tilesM, tilesN value, stripe int64) (row, col value) {
	b := c.b
	height := b.I32(stripe)
	if tilesM.Op == kir.Const && tilesM.Int <= stripe {
		return b.URem(block, tilesM), b.UDiv(block, tilesM)
	}
	number, in := b.UDiv(block, b.Mul(height, tilesN)), b.URem(block, b.Mul(height, tilesN))
	first := b.Mul(number, height)
	if rest := b.Sub(tilesM, first); tilesM.Op != kir.Const || tilesM.Int%stripe != 0 {
		height = b.Select(b.Lt(rest, height), rest, height)
	}
	row, col = b.Add(first, b.URem(in, height)), b.UDiv(in, height)
	back := b.Sub(b.Sub(tilesN, b.I32(1)), col)
	return row, b.Select(b.Eq(b.And(number, b.I32(1)), b.I32(0)), col, back)
}

// pitch is the distance of the rows of a tile in shared memory, a multiple of what a vector holds. A warp stores neighbours of a row, or 8 rows
// of 4 neighbours if the operand lies along k: 16 bytes beyond the row spread these over all banks.
func pitch(n int64, t kir.Type, alongK bool) int64 {
	if alongK {
		return n + 16/int64(t.Size())
	}
	return n
}

// thin is how many rows or columns are so few that a tile would be mostly empty.
const thin = 8

// thinResults is from how many results on threads have company enough in a tile.
const thinResults = 256

func (w *writer) product(p *product) {
	t, onMatrices := w.onMatrices(p)
	switch {
	case w.atMost(p.m, thin) || w.atMost(p.n, thin) && w.atMost(p.m.Mul(p.n), thinResults):
		p.centre()
		w.thinProduct(p)
	case onMatrices:
		w.matrixProduct(p, t)
	default:
		p.centre()
		w.tiledProduct(p)
	}
	w.out[len(w.out)-1].Work = p.batch.Mul(p.m).Mul(p.n).Mul(p.k).Mul(sym.Const(2))
}

func (c *body) productSpace(p *product) {
	c.space = index.Of(p.batch, p.m, p.n, p.k)
	c.dims = make([]value, 4)
}

// thinProduct has a team for each result: a warp along k, or threads of several warps if the neighbours lie along n.
func (w *writer) thinProduct(p *product) {
	size := int64(1)
	if k, ok := w.guess(p.k); p.aAlongK && p.bAlongK && (!ok || k > warp) {
		size = warp
	}
	rows := p.batch.Mul(p.m).Mul(p.n)
	w.rowTeams(p.k, rows, size, func(t *team) {
		b := t.b
		at := t.space.Unravel([]sym.Expr{p.batch, p.m, p.n}, t.space.Dim(0))
		var where []value
		for _, e := range at {
			where = append(where, t.lower(e))
		}
		t.productSpace(p)
		copy(t.dims, where)
		sum := t.each(p.k, []value{b.Num(p.t, 0)}, func(i value, c []value) []value {
			t.forget()
			t.dims[dimK] = i
			return []value{b.Fma(p.a(t.body), p.b(t.body), c[0])}
		})
		total := t.sum(sum[0])
		t.leader(func() { t.forget(); p.done(t.body, total) })
	})
}

// forget drops the coordinates that loaders have added.
func (c *body) forget() { c.space.Sizes, c.dims = c.space.Sizes[:4], c.dims[:4] }

// tiledProduct keeps tiles of both operands in shared memory, and a part of the result in the registers of a thread.
func (w *writer) tiledProduct(p *product) {
	t := w.tileFor(p)
	c := w.newBody(tileThreads)
	b := c.b
	if _, whole := p.k.Int(); t.rows*t.cols >= 64 {
		b.K.Resident = 2 // one of them computes while the other one waits for memory
	} else if !whole {
		b.K.Resident = 3 // sizes of the run take registers; with less of them the assembler would spill
	}
	c.productSpace(p)
	zero := b.Num(p.t, 0)
	pitchA, pitchB := pitch(t.m, p.t, p.aAlongK), pitch(t.n, p.t, p.bAlongK)
	as, bs := b.SharedMem("a", p.t, int(tileK*pitchA)), b.SharedMem("b", p.t, int(tileK*pitchB))
	thread := b.ThreadX()
	tilesM, tilesN := ceilDiv(p.m, t.m), ceilDiv(p.n, t.n)
	m0, n0 := c.tileOf(p, tilesM, tilesN, t, stripe)
	fill := func(mem *kir.Mem, first value, dim int, size sym.Expr, side, pitch int64, k0 value, alongK bool, load func(*body) value) {
		kk0, mm0 := b.UDiv(thread, b.I32(side)), b.URem(thread, b.I32(side))
		stepK, stepM := tileThreads/side, int64(0)
		if alongK {
			// 8 neighbours along k, which are a sector, of 4 rows; the next warp has the other 8
			kk0 = b.Add(b.URem(thread, b.I32(8)), b.Mul(b.URem(b.UDiv(thread, b.I32(warp)), b.I32(2)), b.I32(8)))
			mm0 = b.Add(b.URem(b.UDiv(thread, b.I32(8)), b.I32(4)), b.Mul(b.UDiv(thread, b.I32(2*warp)), b.I32(4)))
			stepK, stepM = 0, tileThreads/tileK
		}
		for j := range side * tileK / tileThreads {
			kk, mm := b.Add(kk0, b.I32(j*stepK)), b.Add(mm0, b.I32(j*stepM))
			c.forget()
			// beyond the last row or column anything will do: it ends up in results that are not stored
			c.dims[dim], _ = c.clampTo(b.Add(first, mm), size, side)
			at, ok := c.clampTo(b.Add(k0, kk), p.k, tileK)
			c.dims[dimK] = at
			v := load(c)
			if ok != nil {
				v = b.Select(ok, v, zero)
			}
			b.Store(mem, b.Add(b.Mul(kk, b.I32(pitch)), mm), v)
		}
	}
	// A thread has groups of neighbours, of what a load from shared memory brings at once, and the threads side by side the next group each: so the
	// loads of a warp touch no bank twice.
	group := func(n int64) int64 { return min(n, 16/int64(p.t.Size())) }
	rowGroup, colGroup := group(t.rows), group(t.cols)
	across, down := t.n/t.cols, t.m/t.rows
	col := b.Mul(b.URem(thread, b.I32(across)), b.I32(colGroup))
	row := b.Mul(b.UDiv(thread, b.I32(across)), b.I32(rowGroup))
	rowOf := func(i int64) int64 { return i/rowGroup*rowGroup*down + i%rowGroup }
	colOf := func(j int64) int64 { return j/colGroup*colGroup*across + j%colGroup }
	start := make([]value, t.rows*t.cols)
	for i := range start {
		start[i] = zero
	}
	sums := b.For(b.I32(0), b.Size(p.k), b.I32(tileK), start, func(k0 value, acc []value) []value {
		fill(as, m0, dimM, p.m, t.m, pitchA, k0, p.aAlongK, p.a)
		fill(bs, n0, dimN, p.n, t.n, pitchB, k0, p.bAlongK, p.b)
		b.Barrier()
		acc = append([]value(nil), acc...)
		for k := range int64(tileK) {
			var x, y []value
			for i := int64(0); i < t.rows; i += rowGroup {
				x = append(x, b.LoadVec(as, b.Add(row, b.I32(k*pitchA+rowOf(i))), int(rowGroup))...)
			}
			for j := int64(0); j < t.cols; j += colGroup {
				y = append(y, b.LoadVec(bs, b.Add(col, b.I32(k*pitchB+colOf(j))), int(colGroup))...)
			}
			for i := range acc {
				acc[i] = b.Fma(x[int64(i)/t.cols], y[int64(i)%t.cols], acc[i])
			}
		}
		b.Barrier()
		return acc
	})
	for i := range t.rows {
		m := b.Add(b.Add(m0, row), b.I32(rowOf(i)))
		c.putRow(p, m, n0, sums[i*t.cols:][:t.cols], colGroup, across, t)
	}
	w.finish(c, tilesM.Mul(tilesN).Mul(p.batch))
}

// within runs f where a coordinate is below n; tiles of this size may reach beyond.
func (c *body) within(at value, n sym.Expr, tile int64, f func()) {
	if _, whole := n.Divide(sym.Const(tile)); whole {
		f()
	} else {
		c.b.When(c.b.Lt(at, c.b.Size(n)), f)
	}
}

// tileOf gives the first row and column of the tile of this block, and sets the coordinate of its batch.
func (c *body) tileOf(p *product, tilesM, tilesN sym.Expr, t tile, stripe int64) (m0, n0 value) {
	b := c.b
	block := b.BlockIndex(0)
	c.dims[dimBatch] = b.I32(0)
	if !p.batch.Is(1) {
		all := b.Size(tilesM.Mul(tilesN))
		c.dims[dimBatch] = b.UDiv(block, all)
		block = b.URem(block, all)
	}
	row, col := c.place(block, b.Size(tilesM), b.Size(tilesN), stripe)
	return b.Mul(row, b.I32(t.m)), b.Mul(col, b.I32(t.n))
}

// productType is the type that products of a type of elements are summed in.
func productType(v *ssa.Value) kir.Type {
	t := regType(dtype(v))
	if t == kir.I1 || dtype(v).Size() < 4 && !dtype(v).IsFloat() {
		refuse("elements of type %s", dtype(v))
	}
	return t
}

// emitMatMul multiplies matrices, whose batch axes are broadcast; vectors are matrices of one row or column.
func emitMatMul(w *writer) {
	x, y := w.in(0), w.in(1)
	p, _, _ := w.matMul(x, y)
	p.t, p.factors = productType(x), w.factors(x, y)
	w.product(p)
}

// matMul is the product of matrices without the type in which it is computed. left and right are the coordinates of the elements of the operands, with a
// coordinate along k.
func (w *writer) matMul(x, y *ssa.Value) (p *product, left, right func(c *body, k index.Expr) []index.Expr) {
	out := shapeOf(w.o.Results[0])
	sx, sy := shapeOf(x), shapeOf(y)
	rowVector, colVector := len(sx) == 1, len(sy) == 1
	one := sym.Const(1)
	if rowVector {
		sx = []sym.Expr{one, sx[0]}
	}
	if colVector {
		sy = []sym.Expr{sy[0], one}
	}
	batch := out
	if !rowVector {
		batch = batch[:len(batch)-1]
	}
	if !colVector {
		batch = batch[:len(batch)-1]
	}
	m, k, n := sx[len(sx)-2], sx[len(sx)-1], sy[len(sy)-1]
	p = &product{batch: index.Prod(batch), m: m, n: n, k: k, line: n}
	matrices := batch // the axes that number them
	if len(sy) == 2 && !rowVector {
		// one matrix on the right: all rows at once
		p.m, p.batch, matrices = m.Mul(p.batch), one, nil
	}
	at := func(c *body, v *ssa.Value, shape []sym.Expr, row, col index.Expr, vector bool) []index.Expr {
		coords := append(c.batchOf(matrices, shape[:len(shape)-2]), row, col)
		if vector && v == x {
			coords = coords[len(coords)-1:]
		} else if vector {
			coords = coords[:len(coords)-1]
		}
		return coords
	}
	left = func(c *body, k index.Expr) []index.Expr {
		if matrices == nil {
			return append(c.space.Unravel(sx[:len(sx)-1], c.space.Dim(dimM)), k)
		}
		return at(c, x, sx, c.space.Dim(dimM), k, rowVector)
	}
	right = func(c *body, k index.Expr) []index.Expr { return at(c, y, sy, k, c.space.Dim(dimN), colVector) }
	if matrices == nil {
		right = func(c *body, k index.Expr) []index.Expr { return []index.Expr{k, c.space.Dim(dimN)}[:rank(y)] }
	}
	p.a = func(c *body) value { return c.at(x, left(c, c.space.Dim(dimK))) }
	p.b = func(c *body) value { return c.at(y, right(c, c.space.Dim(dimK))) }
	p.aAlongK, p.bAlongK = alongLast(w, x), !alongLast(w, y) || colVector
	p.done = func(c *body, sum value) {
		var coords []index.Expr
		switch {
		case matrices == nil: // so there are rows
			coords = c.space.Unravel(append(append([]sym.Expr(nil), batch...), m), c.space.Dim(dimM))
		case rowVector:
			coords = c.batchOf(matrices, batch)
		default:
			coords = append(c.batchOf(matrices, batch), c.space.Dim(dimM))
		}
		if !colVector {
			coords = append(coords, c.space.Dim(dimN))
		}
		c.put(coords, sum)
	}
	return p, left, right
}

// alongLast reports that the last axis of an operand is the one along which it lies in memory: not so for a Transpose that
// is read through.
func alongLast(w *writer, v *ssa.Value) bool {
	for v != nil && w.Inlined[v] && v.Def() != nil {
		o := v.Def()
		if o.Kind == "onnx::Transpose" {
			if perm := (node{o}).permutation(); len(perm) > 0 && perm[len(perm)-1] != len(perm)-1 {
				return false
			}
		}
		v = o.Operand(0)
	}
	return true
}

// batchOf are the coordinates of an operand's batch axes, broadcast to those of the product.
func (c *body) batchOf(batch, axes []sym.Expr) []index.Expr {
	coords := c.space.Unravel(batch, c.space.Dim(dimBatch))
	out := append([]index.Expr(nil), coords[len(coords)-len(axes):]...)
	for i, n := range axes {
		if n.Is(1) {
			out[i] = index.Expr{}
		} else if m := batch[len(batch)-len(axes)+i]; !n.Equal(m) {
			out[i] = c.unlessOne(n, out[i])
		}
	}
	return out
}

// emitGemm computes alpha*A*B + beta*C.
func emitGemm(w *writer) {
	x, y, z := w.in(0), w.in(1), w.in(2)
	out := shapeOf(w.o.Results[0])
	ta, tb := w.int("transA") != 0, w.int("transB") != 0
	p := &product{batch: sym.Const(1), m: out[0], n: out[1], k: shapeOf(x)[1], line: out[1], t: productType(x), aAlongK: !ta, bAlongK: tb, factors: w.factors(x, y)}
	if ta {
		p.k = shapeOf(x)[0]
	}
	p.a = func(c *body) value {
		row, col := c.space.Dim(dimM), c.space.Dim(dimK)
		if ta {
			row, col = col, row
		}
		return c.at(x, []index.Expr{row, col})
	}
	p.b = func(c *body) value {
		row, col := c.space.Dim(dimK), c.space.Dim(dimN)
		if tb {
			row, col = col, row
		}
		return c.at(y, []index.Expr{row, col})
	}
	alpha, beta := w.float("alpha"), w.float("beta")
	if !p.t.IsFloat() && (alpha != float64(int64(alpha)) || beta != float64(int64(beta))) {
		refuse("integers with alpha %g and beta %g", alpha, beta)
	}
	p.done = func(c *body, sum value) {
		b := c.b
		coords := []index.Expr{c.space.Dim(dimM), c.space.Dim(dimN)}
		if alpha != 1 {
			sum = b.Mul(sum, b.Num(p.t, alpha))
		}
		if z != nil {
			pt := &point{body: c, node: w.node, coords: coords}
			v := c.at(z, pt.broadcast(z))
			if beta != 1 {
				v = b.Mul(v, b.Num(p.t, beta))
			}
			sum = b.Add(sum, v)
		}
		c.put(coords, sum)
	}
	w.product(p)
}
