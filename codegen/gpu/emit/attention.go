package emit

import (
	"math"

	"github.com/aton-project/aton/codegen/gpu/index"
	"github.com/aton-project/aton/codegen/gpu/kir"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// emitAttention computes Attention as a flash. Keys and values of calls before are read where they are, and go to the results with the new ones
// while they are read. Keys that causality, a window or the number of valid ones hides from a whole tile of queries are not read: unlike in the
// standard's expression, a NaN in one of them does not reach the result.
func emitAttention(w *writer) {
	a := &attention{writer: w, flat: rank(w.in(0)) == 3}
	q, k, v := w.in(0), w.in(1), w.in(2)
	if len(w.o.Results) > 3 && w.o.Results[3].HasUses() {
		refuse("the matrix of scores as a result")
	}
	if w.has("softmax_precision") && tensor.FromONNX(int(w.int("softmax_precision"))) == tensor.Float64 && dtype(q) != tensor.Float64 {
		refuse("a softmax in float64")
	}
	if (w.in(4) == nil) != (w.in(5) == nil) {
		refuse("keys of the past without values, or the reverse")
	}
	a.t = regType(dtype(q))
	for _, x := range []*ssa.Value{q, k, v, w.in(4), w.in(5)} {
		if x != nil && (!dtype(x).IsFloat() || regType(dtype(x)) != a.t) {
			refuse("elements of type %s beside %s", dtype(x), dtype(q))
		}
	}
	qs, ks, vs := a.split(q, "q_num_heads"), a.split(k, "kv_num_heads"), a.split(v, "kv_num_heads")
	a.heads, a.shared = known(qs[1]), known(ks[1])
	p := &flash{size: known(qs[3]), width: known(vs[3]), t: a.t, zeros: true}
	if a.shared < 1 || a.heads%a.shared != 0 || p.size < 1 || p.width < 1 || known(vs[1]) != a.shared || known(ks[3]) != p.size {
		refuse("%d heads of %d elements share %d heads", a.heads, p.size, a.shared)
	}
	a.group, a.batch, a.rows, a.keys = a.heads/a.shared, qs[0], qs[2], ks[2]
	same := func(x, y sym.Expr) {
		if !x.Equal(y) {
			refuse("sizes %s and %s that may differ", x, y)
		}
	}
	same(ks[0], a.batch)
	same(vs[0], a.batch)
	same(vs[2], a.keys)
	if past := w.in(4); past != nil {
		w.wants(-1, -1, -1, -1, 4, 4)
		a.past = shapeOf(past)[2]
		for i, v := range []*ssa.Value{past, w.in(5)} {
			same(shapeOf(v)[0], a.batch)
			same(shapeOf(v)[1], sym.Const(a.shared))
			same(shapeOf(v)[2], a.past)
			same(shapeOf(v)[3], sym.Const([]int64{p.size, p.width}[i]))
		}
		a.keys = a.past.Add(a.keys)
	}
	p.batch, p.rows, p.group, p.keys = a.batch.Mul(sym.Const(a.shared)), a.rows, sym.Const(a.group), a.keys
	p.q = func(c *body) value { return c.at(q, a.place(c, a.head(c), c.space.Dim(flashRow), p.size, a.flat)) }
	p.k = func(c *body) value { return a.key(c, k, w.in(4), ks[2], p.size) }
	p.v = func(c *body) value { return a.key(c, v, w.in(5), vs[2], p.width) }
	keep := func(i int, size int64) func(c *body, x value) {
		if i >= len(w.o.Results) || !w.o.Results[i].HasUses() {
			return nil
		}
		r := w.o.Results[i]
		return func(c *body, x value) {
			c.storeAt(r, a.place(c, a.sharedHead(c), c.space.Dim(flashKey), size, false), x)
		}
	}
	if p.factors = sixteen(q, k); dtype(v) != dtype(q) {
		p.factors = nil
	}
	p.single = w.in(4) != nil && !a.past.Is(0)
	p.keepK, p.keepV = keep(1, p.size), keep(2, p.width)
	a.scores(p)
	p.done = func(c *body, x value) {
		c.put(a.place(c, a.head(c), c.space.Dim(flashRow), p.width, a.flat), x)
	}
	w.flash(p)
}

// ReadsOnce reports an Attention that reads each element of a query or of a new key about once: each query belongs to one tile, and so do few of
// them all, for which a key is read.
func ReadsOnce(o *ssa.Op, v *ssa.Value) bool {
	if o.Kind != "onnx::Attention" {
		return false
	}
	if v == o.Operand(0) {
		return true
	}
	q, n := o.Operand(0).Tensor(), int64(1)
	if v != o.Operand(1) || !q.Ranked || len(q.Dims) < 3 {
		return false
	}
	if heads := o.AttrInt("q_num_heads", 0); len(q.Dims) == 3 && heads > 0 {
		n = heads / max(o.AttrInt("kv_num_heads", 1), 1)
	} else if k := o.Operand(1).Tensor(); k.Ranked && len(k.Dims) == 4 {
		heads, _ := q.Dims[1].Int()
		shared, _ := k.Dims[1].Int()
		n = heads / max(shared, 1)
	}
	length, ok := q.Dims[len(q.Dims)-2].Int()
	return ok && length*n <= fewQueries
}

// attention is an Attention whose kernels are made. heads of queries share as many heads of keys.
type attention struct {
	*writer
	t                       kir.Type
	flat                    bool // [batch, length, heads*size] instead of [batch, heads, length, size]
	heads, shared, group    int64
	batch, rows, keys, past sym.Expr
}

func known(e sym.Expr) int64 {
	n, ok := e.Int()
	if !ok {
		refuse("heads, or elements of them, whose number depends on the run")
	}
	return n
}

// split is the shape of an operand as [batch, heads, length, size].
func (a *attention) split(v *ssa.Value, heads string) []sym.Expr {
	s := shapeOf(v)
	if !a.flat {
		if len(s) != 4 {
			refuse("an operand of rank %d", len(s))
		}
		return s
	}
	n := a.int(heads)
	if len(s) != 3 || n < 1 {
		refuse("an operand of rank %d in %d heads", len(s), n)
	}
	return []sym.Expr{s[0], sym.Const(n), s[1], s[2].FloorDiv(sym.Const(n))}
}

// batchHead are batch and head of keys at the coordinates at hand.
func (a *attention) batchHead(c *body) []index.Expr {
	return c.space.Unravel([]sym.Expr{a.batch, sym.Const(a.shared)}, c.space.Dim(flashBatch))
}

func (a *attention) sharedHead(c *body) index.Expr { return a.batchHead(c)[1] }

// head is that of the query.
func (a *attention) head(c *body) index.Expr {
	return c.space.Add(c.space.Scale(a.sharedHead(c), sym.Const(a.group)), c.space.Dim(flashGroup))
}

// place are the coordinates of the element at hand in an operand or a result.
func (a *attention) place(c *body, head, at index.Expr, size int64, flat bool) []index.Expr {
	batch, in := a.batchHead(c)[0], c.space.Dim(flashAt)
	if flat {
		return []index.Expr{batch, at, c.space.Add(c.space.Scale(head, sym.Const(size)), in)}
	}
	return []index.Expr{batch, head, at, in}
}

// key reads an element of a key or a value, of the past or a new one.
func (a *attention) key(c *body, v, past *ssa.Value, length sym.Expr, size int64) value {
	at := c.space.Dim(flashKey)
	head := a.sharedHead(c)
	if past == nil || a.past.Is(0) {
		return c.at(v, a.place(c, head, at, size, a.flat))
	}
	b, j, n := c.b, c.dims[flashKey], c.b.Size(a.past)
	was := c.guarded
	c.guarded = true
	x := b.If(b.Lt(j, n), func() []value { return []value{c.at(past, a.place(c, head, at, size, false))} }, func() []value {
		return []value{c.at(v, a.place(c, head, c.dim(b.Sub(j, n), length), size, a.flat))}
	})
	c.guarded = was
	return x[0]
}

// scores says what becomes of a product of a query and a key, and which keys may count at all.
func (a *attention) scores(p *flash) {
	scale := 1 / math.Sqrt(float64(p.size))
	if a.has("scale") {
		scale = a.float("scale")
	}
	if !(scale >= 0) { // the standard takes its root
		refuse("scale %g", scale)
	}
	softcap := a.float("softcap")
	causal := a.int("is_causal") != 0
	window := func(name string) int64 {
		if !a.has(name) {
			return -1
		}
		return a.int(name)
	}
	left, right := window("left_window_size"), window("right_window_size")
	mask, lengths := a.in(3), a.in(6)
	if lengths != nil && (rank(lengths) != 1 || !shapeOf(lengths)[0].Equal(a.batch)) {
		refuse("numbers of valid keys that are not one for each batch")
	}
	if mask != nil && (rank(mask) > 4 || dtype(mask) != tensor.Bool && (!dtype(mask).IsFloat() || dtype(mask) == tensor.Float64 && a.t != kir.F64)) {
		refuse("a mask of type %s and rank %d", dtype(mask), rank(mask))
	}
	valid := func(c *body) value {
		return c.b.Convert(kir.Narrow, c.at(lengths, a.batchHead(c)[:1]), kir.I32)
	}
	// offset is how many keys there were before the one of the first query
	offset := func(c *body) value {
		switch {
		case a.in(4) != nil:
			return c.b.Size(a.past)
		case lengths != nil:
			return c.b.Sub(valid(c), c.b.Size(a.rows))
		}
		return c.b.I32(0)
	}
	if causal || right >= 0 || left >= 0 || lengths != nil {
		p.limits = func(c *body, from, to, first, end value) (value, value) {
			b := c.b
			least := func(x, y value) value { return b.Select(b.Lt(x, y), x, y) }
			if causal {
				end = least(end, b.Add(to, offset(c)))
			}
			if right >= 0 {
				end = least(end, b.Add(b.Add(to, offset(c)), b.I32(right)))
			}
			if lengths != nil {
				end = least(end, valid(c))
			}
			if left >= 0 {
				from := b.Add(from, b.Sub(offset(c), b.I32(left)))
				first = b.Select(b.Lt(first, from), from, first)
			}
			return first, end
		}
	}
	p.masked = mask != nil
	p.score = func(c *body, dot value) value {
		b := c.b
		s := b.Mul(dot, b.Float(a.t, scale))
		if softcap > 0 {
			at := &scalarPoint{&point{body: c, node: a.node}, dtype(a.in(0)), a.t}
			limit := at.num(softcap)
			s = b.Mul(scalarOf("Tanh").f(at, []value{b.Div(s, limit)}), limit)
		}
		hidden := b.Float(a.t, math.Inf(-1))
		if mask != nil {
			s = a.masked(c, mask, s, hidden)
		}
		j, i := c.dims[flashKey], c.dims[flashRow]
		hide := func(cond value) { s = b.Select(cond, hidden, s) }
		if causal {
			hide(b.Lt(b.Add(i, offset(c)), j))
		}
		if right >= 0 {
			hide(b.Lt(b.Add(b.Add(i, offset(c)), b.I32(right)), j))
		}
		if left >= 0 {
			hide(b.Lt(j, b.Add(i, b.Sub(offset(c), b.I32(left)))))
		}
		if lengths != nil {
			hide(b.Compare(kir.Le, valid(c), j))
		}
		return s
	}
}

// masked applies the mask, which is broadcast to [batch, heads, queries, keys], but hides the keys that its last axis does not reach.
func (a *attention) masked(c *body, mask *ssa.Value, s, hidden value) value {
	b, shape := c.b, shapeOf(mask)
	whole := []sym.Expr{a.batch, sym.Const(a.heads), a.rows, a.keys}
	at := []index.Expr{a.batchHead(c)[0], a.head(c), c.space.Dim(flashRow), c.space.Dim(flashKey)}
	at = broadcast(mask, at)
	short := false
	for i, n := range shape {
		m := whole[len(whole)-len(shape)+i]
		switch {
		case n.Equal(m):
		case i == len(shape)-1:
			short = true
		case !n.Is(1):
			at[i] = c.unlessOne(n, at[i])
		}
	}
	apply := func() value {
		x := c.at(mask, at)
		if dtype(mask) == tensor.Bool {
			return b.Select(x, s, hidden)
		}
		return b.Add(s, widenTo(b, x, a.t))
	}
	if short {
		return c.when(b.Lt(c.dims[flashKey], b.Size(shape[len(shape)-1])), hidden, apply)
	}
	return apply()
}

// emitWeighted makes the flash of a product that weighs values by scores. What follows from the products of queries and keys is rounded as if it were
// stored, element by element; the weights are not. A query of which all scores are minus infinity
// gives NaN, as Softmax does, unless something takes its place.
func emitWeighted(w *writer) {
	product, softmax := w.Scores.Product, w.Scores.Softmax
	q, k, v := product.Operand(0), product.Operand(1), w.in(1)
	scores, out := softmax.Operand(0), shapeOf(w.o.Results[0])
	qs, ks, vs := shapeOf(q), shapeOf(k), shapeOf(v)
	last := func(s []sym.Expr, i int) sym.Expr { return s[len(s)-i] }
	batch := out[:len(out)-2]
	p := &flash{batch: index.Prod(batch), rows: last(out, 2), group: sym.Const(1), keys: last(vs, 2), size: known(last(ks, 2)), width: known(last(vs, 1)), t: regType(dtype(q)), zeros: w.Scores.Zeros, nans: w.Scores.NaNs}
	for _, x := range []*ssa.Value{q, k, v, scores, w.o.Results[0]} {
		if !dtype(x).IsFloat() || regType(dtype(x)) != p.t {
			refuse("elements of type %s beside %s", dtype(x), dtype(q))
		}
	}
	same := len(shapeOf(scores)) == len(out) && last(shapeOf(scores), 1).Equal(p.keys) && last(ks, 1).Equal(p.keys) && last(qs, 1).Equal(last(ks, 2))
	for i, n := range shapeOf(scores)[:len(shapeOf(scores))-1] {
		same = same && n.Equal(out[i])
	}
	for i, n := range shapeOf(product.Results[0]) {
		same = same && n.Equal(shapeOf(scores)[i])
	}
	if !same || p.size < 1 || p.width < 1 || !p.keys.AtLeast(sym.Const(1)) {
		refuse("scores of shape %v", shapeOf(scores))
	}
	if p.masked = scores != product.Results[0]; dtype(v) == dtype(q) {
		p.factors = sixteen(q, k)
	}
	at := func(c *body, shape []sym.Expr, row, col index.Expr) []index.Expr {
		return append(c.batchOf(batch, shape[:len(shape)-2]), row, col)
	}
	row, key, in := flashRow, flashKey, flashAt
	p.q = func(c *body) value { return c.at(q, at(c, qs, c.space.Dim(row), c.space.Dim(in))) }
	p.k = func(c *body) value { return c.at(k, at(c, ks, c.space.Dim(in), c.space.Dim(key))) }
	p.v = func(c *body) value { return c.at(v, at(c, vs, c.space.Dim(key), c.space.Dim(in))) }
	p.score = func(c *body, dot value) value {
		dots := product.Results[0]
		dot = rounded(c.b, dtype(dots), dot)
		if scores == dots {
			return dot
		}
		c.given[dots] = dot
		s := c.compute(scores, at(c, shapeOf(scores), c.space.Dim(row), c.space.Dim(key)))
		delete(c.given, dots)
		return s
	}
	p.done = func(c *body, x value) { c.put(at(c, out, c.space.Dim(row), c.space.Dim(in)), x) }
	w.flash(p)
}
