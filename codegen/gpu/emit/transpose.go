package emit

import (
	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/ssa/sym"
)

const (
	square32 = 32           // side of the tile
	pitch32  = square32 + 1 // its rows in shared memory, so that a column lies in all banks
	perTile  = 8            // rows that the threads of a block read at a time
)

// emitTranspose goes through shared memory where the last axis moves: both sides are read and written along memory. Else it
// is a loop.
func emitTranspose(w *writer) {
	x, out := w.in(0), w.o.Results[0]
	perm := w.permutation()
	r := len(perm)
	simple := r < 2 || perm[r-1] == r-1 || w.Inlined[x]
	if !simple {
		// a tile that is mostly empty costs more than scattered reads
		for _, e := range []sym.Expr{shapeOf(out)[r-1], shapeOf(x)[r-1]} {
			if n, ok := e.Int(); ok && n < 8 {
				simple = true
			}
		}
	}
	if simple {
		w.class = "loop"
		emitLoop(w)
		return
	}
	shape := shapeOf(out)
	last := r - 1 // of the result, axis perm[last] of the operand
	across := 0   // the axis of the result that is the operand's last one
	for i, p := range perm {
		if p == r-1 {
			across = i
		}
	}
	var others []sym.Expr
	for i, n := range shape {
		if i != last && i != across {
			others = append(others, n)
		}
	}
	c := w.newBody(square32 * perTile)
	b := c.b
	tile := b.SharedMem("tile", memType(dtype(x)), square32*pitch32)
	in, to := c.mem(x, false), c.mem(out, true)
	tilesL, tilesA := ceilDiv(shape[last], square32), ceilDiv(shape[across], square32)
	block := b.BlockIndex(0)
	rest := b.UDiv(block, b.Size(tilesL))
	l0 := b.Mul(b.URem(block, b.Size(tilesL)), b.I32(square32))
	a0 := b.Mul(b.URem(rest, b.Size(tilesA)), b.I32(square32))
	batch := c.dim(b.UDiv(rest, b.Size(tilesA)), index.Prod(others))
	lane, row := b.URem(b.ThreadX(), b.I32(square32)), b.UDiv(b.ThreadX(), b.I32(square32))
	// at are the coordinates of the result
	at := func(l, a value) []index.Expr {
		c.space.Sizes, c.dims = c.space.Sizes[:1], c.dims[:1]
		rest := c.space.Unravel(others, batch)
		el, ea := c.dim(l, shape[last]), c.dim(a, shape[across])
		coords := make([]index.Expr, r)
		for i := range coords {
			switch i {
			case last:
				coords[i] = el
			case across:
				coords[i] = ea
			default:
				coords[i], rest = rest[0], rest[1:]
			}
		}
		return coords
	}
	inRange := func(l, a value, f func()) {
		b.When(b.And(b.Lt(l, b.Size(shape[last])), b.Lt(a, b.Size(shape[across]))), f)
	}
	// lanes run along the operand's last axis
	for i := int64(0); i < square32; i += perTile {
		l, a := b.Add(l0, b.Add(row, b.I32(i))), b.Add(a0, lane)
		inRange(l, a, func() {
			coords := at(l, a)
			source := make([]index.Expr, r)
			for k, p := range perm {
				source[p] = coords[k]
			}
			v := b.Load(in, c.lower(c.space.Linear(shapeOf(x), source)))
			b.Store(tile, b.Add(b.Mul(b.Add(row, b.I32(i)), b.I32(pitch32)), lane), v)
		})
	}
	b.Barrier()
	for i := int64(0); i < square32; i += perTile {
		l, a := b.Add(l0, lane), b.Add(a0, b.Add(row, b.I32(i)))
		inRange(l, a, func() {
			v := b.Load(tile, b.Add(b.Mul(lane, b.I32(pitch32)), b.Add(row, b.I32(i))))
			b.Store(to, c.lower(c.space.Linear(shape, at(l, a))), v)
		})
	}
	w.finish(c, tilesL.Mul(tilesA).Mul(index.Prod(others)))
}
