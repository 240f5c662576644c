package emit

import (
	"fmt"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa/sym"
)

// team is the threads that work on a row together: 1, the 32 of a warp, or the 256 to 1024 of a block; or one of each warp of a block, whose threads have
// neighbouring rows.
type team struct {
	*body
	size   int64
	across bool  // the threads of a warp belong to neighbouring rows
	inside value // with across: whether there is such a row; nil if there always is
	row    value // which row
	lane   value // the number of the thread in its team
	// exchange is shared memory for teams of several warps. Two in turn: who writes to one has passed the barrier behind
	// which all have read it.
	exchange map[exchangeKey]*kir.Mem
	turns    int
}

type exchangeKey struct {
	t           kir.Type
	turn, which int
}

const warp = 32

// teamSize chooses the threads for a row of n elements: neighbouring threads should read neighbouring elements, along
// the row if it is contiguous, else across rows.
func (w *writer) teamSize(n, rows sym.Expr, contiguous bool) int64 {
	k, known := w.guess(n)
	r, few := w.guess(rows)
	switch {
	case known && k <= 8:
		return 1
	case !contiguous && (!known || k < 64 || !few || r >= 512):
		return 1
	case !known || k <= 1024:
		return warp
	}
	return shortTeam
}

// crossThreads is how many threads fill a large GPU, with some to spare.
const crossThreads = 1 << 18

// crossTeam is how many threads, each of another warp, a row of n elements has whose neighbours in memory are those of other rows: as many as it takes to
// fill the GPU, if a thread still has 32 elements. It is 1 where rows alone fill it, are too few for whole warps, or lengths are not known.
func (w *writer) crossTeam(n, rows sym.Expr) int64 {
	k, known := w.guess(n)
	r, many := w.guess(rows)
	size := int64(1)
	if !known || !many || r < 512 {
		return size
	}
	for 2*size <= maxTeam/warp && 2*size*r <= crossThreads && k >= 32*2*size {
		size *= 2
	}
	return size
}

// shortTeam is how many threads of a block have a row, unless it is so long that more can hold it.
const shortTeam = 256

// longTeam is teamSize for rows of elements of that type that are held where that is possible: long ones by as many threads as it takes.
func (w *writer) longTeam(r *rowShape, of kir.Type) int64 {
	size := w.teamSize(r.n, r.rows, r.contiguous())
	n, known := w.guess(r.n)
	if size <= warp || !known {
		return size
	}
	for t := size; t <= maxTeam; t *= 2 {
		if heldBy(n, t, of) {
			return t
		}
	}
	return size
}

// maxTeam is the most threads that a block may have.
const maxTeam = 1024

// teams starts a kernel in which each row has a team; f is called where there is a row.
func (w *writer) teams(rows sym.Expr, size int64, f func(t *team)) *body {
	threads := int64(128)
	if size > warp {
		threads = size
	}
	perBlock := threads / size
	c := w.newBody(int(threads))
	b := c.b
	t := &team{body: c, size: size, exchange: map[exchangeKey]*kir.Mem{}}
	t.row, t.lane = b.BlockIndex(0), b.ThreadX()
	if perBlock > 1 {
		t.row = b.Add(b.Mul(t.row, b.I32(perBlock)), b.UDiv(t.lane, b.I32(size)))
		t.lane = b.URem(t.lane, b.I32(size))
	}
	c.dim(t.row, rows)
	if perBlock == 1 {
		f(t) // every block has a row, and barriers need all threads
	} else {
		b.When(b.Lt(t.row, b.Size(rows)), func() { f(t) })
	}
	w.finish(c, ceilDiv(rows, perBlock))
	return c
}

// rowTeams starts a kernel in which each row of n elements has a team of that size, or if that is 1 as many threads of several warps as help.
func (w *writer) rowTeams(n, rows sym.Expr, size int64, f func(t *team)) *body {
	if cross := w.crossTeam(n, rows); size == 1 && cross > 1 {
		return w.crossTeams(rows, cross, f)
	}
	return w.teams(rows, size, f)
}

// crossTeams starts a kernel in which each row has a team of threads of several warps: thread i of each warp works on the same row, the next thread on the
// next row, so that a warp reads neighbouring rows at once. A row beyond the last one is computed as the last one, and has no leader.
func (w *writer) crossTeams(rows sym.Expr, size int64, f func(t *team)) *body {
	c := w.newBody(int(size * warp))
	b := c.b
	t := &team{body: c, size: size, across: true, exchange: map[exchangeKey]*kir.Mem{}}
	t.row = b.Add(b.Mul(b.BlockIndex(0), b.I32(warp)), b.URem(b.ThreadX(), b.I32(warp)))
	t.lane = b.UDiv(b.ThreadX(), b.I32(warp))
	if _, whole := rows.Divide(sym.Const(warp)); !whole {
		n := b.Size(rows)
		t.inside = b.Lt(t.row, n)
		t.row = b.Select(t.inside, t.row, b.Sub(n, b.I32(1)))
	}
	c.dim(t.row, rows)
	f(t)
	w.finish(c, ceilDiv(rows, warp))
	return c
}

// each goes through 0 .. n-1, dealt out to the threads, and carries values.
func (t *team) each(n sym.Expr, carried []value, f func(i value, c []value) []value) []value {
	return t.b.For(t.lane, t.b.Size(n), t.b.I32(t.size), carried, f)
}

// heldWords is how many registers of 32 bits a thread spends on its elements of a row. A block of the most threads leaves 64 to each; what else
// there is besides 40 fits into these.
const heldWords, heldMost = 32, 40

// heldBy reports that a team of that size can hold a row of n elements.
func heldBy(n, size int64, of kir.Type) bool {
	words := int64(heldWords)
	if size == maxTeam {
		words = heldMost
	}
	per := (n + size - 1) / size
	return n > 0 && per*int64(max(of.Size(), 4)) <= 4*words
}

// held is a row of n elements, whose element i is read(i), dealt out to the threads as by team.each. If its length is known and small enough, each
// thread has its elements in registers, and they are read once, however often the row is gone through.
type held struct {
	t      *team
	n      sym.Expr
	read   func(i value) value
	values []value // nil if the row is read anew each time
}

// hold begins with a row, of elements of that type where they are computed.
func (t *team) hold(n sym.Expr, of kir.Type, read func(i value) value) *held {
	h := &held{t: t, n: n, read: read}
	k, known := n.Int()
	per := (k + t.size - 1) / t.size
	if !known || !heldBy(k, t.size, of) {
		return h
	}
	for j := range per {
		var v value
		if (j+1)*t.size <= k {
			v = read(h.place(j))
		} else {
			i := h.place(j)
			v = t.b.If(t.b.Lt(i, t.b.I32(k)), func() []value { return []value{read(i)} }, func() []value { return []value{t.b.Num(of, 0)} })[0]
		}
		h.values = append(h.values, v)
	}
	return h
}

// change puts f of each element in its place, once if the threads hold the row.
func (h *held) change(f func(v value) value) {
	if h.values == nil {
		read := h.read
		h.read = func(i value) value { return f(read(i)) }
	}
	for j, v := range h.values {
		h.values[j] = f(v)
	}
}

// place is the number of element j of a thread.
func (h *held) place(j int64) value { return h.t.b.Add(h.t.lane, h.t.b.I32(j*h.t.size)) }

// each goes through the row, as team.each does; f gets the number of the element and the element.
func (h *held) each(carried []value, f func(i, v value, c []value) []value) []value {
	b := h.t.b
	if h.values == nil {
		return h.t.each(h.n, carried, func(i value, c []value) []value { return f(i, h.read(i), c) })
	}
	k, _ := h.n.Int()
	if h.t.size > shortTeam {
		// the number of the thread anew: else where the elements are would stay in registers from pass to pass, which have no room for it
		lane := h.t.lane
		h.t.lane = b.Shuffle(lane, 0)
		defer func() { h.t.lane = lane }()
	}
	for j, v := range h.values {
		i := h.place(int64(j))
		if int64(j+1)*h.t.size <= k {
			carried = f(i, v, carried)
			continue
		}
		before := carried
		carried = b.If(b.Lt(i, b.I32(k)), func() []value { return f(i, v, before) }, func() []value { return before })
	}
	return carried
}

// all combines the values of all threads; each thread gets the result. combine must not mind the order of its arguments.
func (t *team) all(vs []value, combine func(x, y []value) []value) []value {
	b := t.b
	if t.size == 1 {
		return vs
	}
	warps, words := t.size, t.size*warp
	if !t.across {
		if vs = t.exchanged(vs, combine); t.size == warp {
			return vs
		}
		warps = t.size / warp
		words = warps
	}
	mems := make([]*kir.Mem, len(vs))
	count := map[kir.Type]int{}
	for i, v := range vs {
		k := exchangeKey{v.Type, t.turns % 2, count[v.Type]}
		count[v.Type]++
		if t.exchange[k] == nil {
			t.exchange[k] = b.SharedMem(fmt.Sprintf("team.%s.%d.%d", k.t, k.turn, k.which), k.t, int(words))
		}
		mems[i] = t.exchange[k]
	}
	t.turns++
	put := func(at value) {
		for i, v := range vs {
			b.Store(mems[i], at, v)
		}
	}
	place := b.I32
	if t.across {
		column := b.URem(b.ThreadX(), b.I32(warp))
		place = func(k int64) value { return b.Add(column, b.I32(k*warp)) }
		put(b.ThreadX())
	} else {
		b.When(b.Eq(b.URem(t.lane, b.I32(warp)), b.I32(0)), func() { put(b.UDiv(t.lane, b.I32(warp))) })
	}
	b.Barrier()
	read := func(k int64) []value {
		out := make([]value, len(vs))
		for i := range vs {
			out[i] = b.Load(mems[i], place(k))
		}
		return out
	}
	if warps == warp && !t.across { // each warp combines what all have
		at := b.URem(t.lane, b.I32(warp))
		total := make([]value, len(vs))
		for i := range vs {
			total[i] = b.Load(mems[i], at)
		}
		return t.exchanged(total, combine)
	}
	total := read(0)
	for k := int64(1); k < warps; k++ {
		total = combine(total, read(k))
	}
	return total
}

// exchanged combines the values of the threads of a warp.
func (t *team) exchanged(vs []value, combine func(x, y []value) []value) []value {
	for mask := int64(warp / 2); mask > 0; mask /= 2 {
		other := make([]value, len(vs))
		for i, v := range vs {
			other[i] = t.b.Shuffle(v, mask)
		}
		vs = combine(vs, other)
	}
	return vs
}

// leader runs f in one thread of the team.
func (t *team) leader(f func()) {
	if t.size == 1 {
		f()
		return
	}
	first := t.b.Eq(t.lane, t.b.I32(0))
	if t.inside != nil {
		first = t.b.And(first, t.inside)
	}
	t.b.When(first, f)
}

// sum adds up.
func (t *team) sum(v value) value {
	return t.all([]value{v}, func(x, y []value) []value { return []value{t.b.Add(x[0], y[0])} })[0]
}

// rowShape splits the axes of a shape: those that number the rows, and those that a row runs along.
type rowShape struct {
	shape        []sym.Expr
	along        []bool
	rows, n      sym.Expr
	outer, inner []sym.Expr
}

func splitAxes(shape []sym.Expr, along []bool) rowShape {
	r := rowShape{shape: shape, along: along}
	for i, n := range shape {
		if along[i] {
			r.inner = append(r.inner, n)
		} else {
			r.outer = append(r.outer, n)
		}
	}
	r.rows, r.n = index.Prod(r.outer), index.Prod(r.inner)
	return r
}

// contiguous reports that the elements of a row follow each other.
func (r *rowShape) contiguous() bool {
	for i := len(r.shape) - 1; i >= 0; i-- {
		if !r.shape[i].Is(1) {
			return r.along[i]
		}
	}
	return true
}

// coords are the coordinates of element i of the row at hand, coordinate 0 of the space.
func (r *rowShape) coords(c *body, i index.Expr) []index.Expr {
	outer := c.space.Unravel(r.outer, c.space.Dim(0))
	inner := c.space.Unravel(r.inner, i)
	out := make([]index.Expr, len(r.shape))
	for k := range out {
		if r.along[k] {
			out[k], inner = inner[0], inner[1:]
		} else {
			out[k], outer = outer[0], outer[1:]
		}
	}
	return out
}

// element makes the coordinates of element i of the row.
func (t *team) element(r *rowShape, i value) []index.Expr {
	t.space.Sizes, t.dims = t.space.Sizes[:1], t.dims[:1]
	return r.coords(t.body, t.dim(i, r.n))
}

// put stores an element of the result, or what follows from it in the same kernel.
func (c *body) put(coords []index.Expr, x value) {
	w := c.w
	if w.Hero == nil {
		r := w.o.Results[0]
		c.store(r, c.lower(c.space.Linear(shapeOf(r), coords)), x)
		return
	}
	r := w.Root.Results[0]
	hero := w.Hero.Results[0]
	c.given[hero] = rounded(c.b, dtype(hero), x)
	if !sameShape(hero, r) { // a Reshape stands between
		coords = c.space.Unravel(shapeOf(r), c.space.Linear(shapeOf(hero), coords))
	}
	at := c.space.Linear(shapeOf(r), coords)
	if c.run != nil {
		c.run.result = &at
	}
	y := c.compute(r, coords)
	delete(c.given, hero)
	c.store(r, c.lower(at), y)
}
