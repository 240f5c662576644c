package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Tiles of factors that lie in memory as they are come to a ring of stages in shared memory by asynchronous copies: a block multiplies the tiles of one stage
// while those of the others are on their way, takes no registers for them and needs one barrier for each.

// ringStages is how many tiles of each factor a block holds.
const ringStages = 3

// copiedWords are those of a copy of 16 bytes, copiedNumbers the numbers in it.
const (
	copiedWords   = 4
	copiedNumbers = 2 * copiedWords
)

// factor is an operand of a product that is read as it lies in memory: the tensor, where the element at the coordinates of the product is, and whether its rows lie along k.
type factor struct {
	v      *ssa.Value
	at     index.Expr
	alongK bool
	// its other coordinate: which, its size, how many of it a tile has
	dim  int
	size sym.Expr
	side int64
}

// ringOf gives the factors if they can come by copies of 16 bytes, else nil.
func (c *body) ringOf(p *product, t tile) []factor {
	if _, whole := p.k.Divide(sym.Const(matrixK)); !whole {
		return nil
	}
	a := factor{alongK: p.aAlongK, dim: dimM, size: p.m, side: t.m}
	b := factor{alongK: p.bAlongK, dim: dimN, size: p.n, side: t.n}
	if !c.w.asItLies(p, &a, p.a) || !c.w.asItLies(p, &b, p.b) {
		return nil
	}
	return []factor{a, b}
}

// asItLies finds the tensor that a factor is, if it is nothing but its elements, 16 bytes of them side by side.
func (w *writer) asItLies(p *product, f *factor, load func(*body) value) bool {
	probe := w.newBody(tileThreads)
	probe.productSpace(p)
	for i := range probe.dims {
		probe.dims[i] = probe.b.BlockIndex(i % 3)
	}
	probe.seen = &seen{}
	got := load(probe)
	s := probe.seen
	if s.v == nil || got != s.value || memType(dtype(s.v)).Size() != 2 {
		return false
	}
	for i := 4; i < len(probe.dims); i++ { // it is where only the run finds out
		if s.at.Uses(i) {
			return false
		}
	}
	f.v, f.at = s.v, s.at
	r := &run{dim: dimK, n: copiedNumbers}
	if !f.alongK {
		if _, whole := f.size.Divide(sym.Const(copiedNumbers)); !whole {
			return false
		}
		r.dim = f.dim
	}
	return r.aligned(f.at)
}

// seen is what was last read from a buffer, and what was read.
type seen struct {
	v     *ssa.Value
	at    index.Expr
	value value
}

// bring asks for copies of a tile of a factor to a stage: side rows from first on, of 32 numbers from k0 on. Beyond the last row anything will do.
func (c *body) bring(mem *kir.Mem, f factor, first, k0, stage value) {
	b := c.b
	across := int64(matrixK / copiedNumbers) // threads of a row
	if !f.alongK {
		across = f.side / copiedNumbers
	}
	row, part := b.UDiv(b.ThreadX(), b.I32(across)), b.URem(b.ThreadX(), b.I32(across))
	from, begin := b.Mul(part, b.I32(copiedNumbers)), b.Mul(stage, b.I32(f.side*rowWords))
	for j := int64(0); j < f.side*matrixK/copiedNumbers; j += tileThreads {
		row := b.Add(row, b.I32(j/across))
		var at, k, to value
		if f.alongK {
			// rows 64 apart differ by a constant in their places
			at, k, to = b.Add(first, row), b.Add(k0, from), b.Add(wordAt(b, b.UDiv(b.ThreadX(), b.I32(across)), b.Mul(part, b.I32(copiedWords))), b.I32(j/across*rowWords))
		} else {
			at, k, to = b.Add(first, from), b.Add(k0, row), partAt(b, row, part, f.side)
		}
		c.forget()
		c.dims[f.dim], _ = c.clampTo(at, f.size, f.side)
		c.dims[dimK] = k
		b.CopyAsync(mem, b.Add(begin, to), c.mem(f.v, false), c.lower(f.at), 4*copiedWords)
	}
}

// partAt is where 8 numbers of row k of a tile stand whose rows lie across k: the parts of the rows that a read of matrices takes together, see words, are in different banks.
func partAt(b *kir.Builder, k, part value, side int64) value {
	one := b.I32(1)
	turn := b.Or(b.And(k, one), b.And(b.Binary(kir.LShr, k, b.I32(2)), b.I32(6)))
	return b.Add(b.Mul(k, b.I32(side/2)), b.Mul(b.Binary(kir.Xor, part, turn), b.I32(copiedWords)))
}

// words gives the 4 words of a factor that a thread multiplies, of the 8 rows from a multiple of 8 on: numbers 8q to 8q+7 along k, q = thread%4, of row thread/4%8. From a tile whose rows lie across k the
// warp reads four matrices, transposed: row r of matrix i is at 8*(r/2) + r%2 + 2*i along k, so that its words are the same ones.
func (f *factor) words(b *kir.Builder, mem *kir.Mem, stage, rows value) []value {
	thread := b.ThreadX()
	from := b.Mul(stage, b.I32(f.side*rowWords))
	if f.alongK {
		group, quad := b.And(b.Binary(kir.LShr, thread, b.I32(2)), b.I32(7)), b.And(thread, b.I32(3))
		at := b.Add(b.Mul(rows, b.I32(rowWords)), wordAt(b, group, b.Mul(quad, b.I32(4))))
		return b.LoadVec(mem, b.Add(at, from), 4)
	}
	r, i := b.And(thread, b.I32(7)), b.And(b.Binary(kir.LShr, thread, b.I32(3)), b.I32(3))
	k := b.Add(b.Add(b.Mul(b.Binary(kir.LShr, r, b.I32(1)), b.I32(8)), b.And(r, b.I32(1))), b.Mul(i, b.I32(2)))
	got := b.LoadMatrix(mem, b.Add(partAt(b, k, b.Binary(kir.LShr, rows, b.I32(3)), f.side), from), true)
	return got[:]
}

// ringLoop goes along k: bring asks for the tiles from k0 on, for a stage, multiply takes those of a stage. Before the barrier each thread waits for its part of the tiles that come
// next; behind it all threads have done with the stage of the turn before, which the tiles for the last turn but one of the ring go to.
func (c *body) ringLoop(p *product, bring func(k0, stage value), multiply func(stage value, acc []value) []value, start []value) []value {
	b := c.b
	end := b.Size(p.k)
	ask := func(k0, stage value) {
		b.When(b.Lt(k0, end), func() { bring(k0, stage) })
		b.CommitCopies() // also of nothing: a turn waits for a number of groups
	}
	for i := range int64(ringStages - 1) {
		ask(b.I32(i*matrixK), b.I32(i))
	}
	out := b.For(b.I32(0), end, b.I32(matrixK), append([]value{b.I32(0)}, start...), func(k0 value, carried []value) []value {
		stage := carried[0]
		b.WaitCopies(ringStages - 2)
		b.Barrier()
		free := b.Select(b.Eq(stage, b.I32(0)), b.I32(ringStages-1), b.Sub(stage, b.I32(1)))
		ask(b.Add(k0, b.I32((ringStages-1)*matrixK)), free)
		next := b.Add(stage, b.I32(1))
		next = b.Select(b.Eq(next, b.I32(ringStages)), b.I32(0), next)
		return append([]value{next}, multiply(stage, carried[1:])...)
	})
	return out[1:]
}
