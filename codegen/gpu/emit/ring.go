package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
)

// Tiles of factors that lie along k in memory, as they are, come to a ring of stages in shared memory by asynchronous copies: a block multiplies the tiles of one stage
// while those of the others are on their way, takes no registers for them and needs one barrier for each.

// ringStages is how many tiles of each factor a block holds.
const ringStages = 3

// copiedWords are those of a copy of 16 bytes.
const copiedWords = 4

// factor is an operand of a product that is read as it lies in memory: the tensor, and where the element at the coordinates of the product is.
type factor struct {
	v  *ssa.Value
	at index.Expr
}

// ringOf gives the factors if they can come by copies of 16 bytes, else nil.
func (c *body) ringOf(p *product) []factor {
	if _, whole := p.k.Divide(sym.Const(matrixK)); !whole || !p.aAlongK || !p.bAlongK {
		return nil
	}
	a, ok := c.w.asItLies(p, p.a)
	if !ok {
		return nil
	}
	b, ok := c.w.asItLies(p, p.b)
	if !ok {
		return nil
	}
	return []factor{a, b}
}

// asItLies finds the tensor that an operand is, if it is nothing but its elements, 16 bytes of them side by side along k.
func (w *writer) asItLies(p *product, load func(*body) value) (factor, bool) {
	probe := w.newBody(tileThreads)
	probe.productSpace(p)
	for i := range probe.dims {
		probe.dims[i] = probe.b.BlockIndex(i % 3)
	}
	probe.seen = &seen{}
	got := load(probe)
	s := probe.seen
	if s.v == nil || got != s.value || memType(dtype(s.v)).Size() != 2 {
		return factor{}, false
	}
	for i := 4; i < len(probe.dims); i++ { // it is where only the run finds out
		if s.at.Uses(i) {
			return factor{}, false
		}
	}
	r := &run{dim: dimK, n: copiedWords * 2}
	return factor{s.v, s.at}, r.aligned(s.at)
}

// seen is what was last read from a buffer, and what was read.
type seen struct {
	v     *ssa.Value
	at    index.Expr
	value value
}

// bringWords asks for copies of a tile of a factor to a stage: side rows from first on, of 32 numbers from k0 on. Beyond the last row anything will do.
func (c *body) bringWords(mem *kir.Mem, f factor, dim int, size sym.Expr, side int64, first, k0, stage value) {
	b := c.b
	const across = rowWords / copiedWords // threads of a row
	row, word := b.UDiv(b.ThreadX(), b.I32(across)), b.Mul(b.URem(b.ThreadX(), b.I32(across)), b.I32(copiedWords))
	to := b.Add(b.Mul(stage, b.I32(side*rowWords)), wordAt(b, row, word))
	for j := int64(0); j < side; j += tileThreads / across {
		c.forget()
		c.dims[dim], _ = c.clampTo(b.Add(b.Add(first, row), b.I32(j)), size, side)
		c.dims[dimK] = b.Add(k0, b.Mul(word, b.I32(2)))
		b.CopyAsync(mem, b.Add(to, b.I32(j*rowWords)), c.mem(f.v, false), c.lower(f.at), 4*copiedWords)
	}
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
