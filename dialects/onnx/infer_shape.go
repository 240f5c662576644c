package onnx

import (
	"slices"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// inferSize: the number of elements.
func inferSize(c *infer) {
	c.out(0, ssa.Tensor(tensor.Int64))
	if d := c.dims(0); d != nil {
		c.outSym([]sym.Expr{sym.Product(d...)})
	}
}

// inferGatherElements: the shape of the indices.
func inferGatherElements(c *infer) { c.out(0, ranked(c.in(0).DType, c.dims(1))) }

// inferNonZero: one column for each element that is not zero.
func inferNonZero(c *infer) {
	if d := c.dims(0); d != nil {
		c.out(0, ssa.Tensor(tensor.Int64, sym.Const(int64(len(d))), c.fresh(0, 1, 2)))
	} else {
		c.out(0, ssa.Tensor(tensor.Int64, c.freshDims(0, 2)...))
	}
}

func inferShape(c *infer) {
	d := c.dims(0)
	if d == nil {
		c.out(0, ssa.Tensor(tensor.Int64, c.fresh(0, 0, 1)))
		return
	}
	r := int64(len(d))
	clamp := func(a int64) int64 {
		if a < 0 {
			a += r
		}
		return min(max(a, 0), r)
	}
	from, to := clamp(c.o.AttrInt("start", 0)), clamp(c.o.AttrInt("end", r))
	d = d[from:max(from, to)]
	c.out(0, ssa.Tensor(tensor.Int64, sym.Const(int64(len(d)))))
	c.outSym(d)
}

func inferReshape(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	shape, ok := c.syms(1)
	if !ok {
		if n := c.dims(1); len(n) == 1 {
			if k, ok := n[0].Int(); ok && k >= 0 && k <= 64 {
				c.out(0, ssa.Tensor(t, c.freshDims(0, int(k))...))
				return
			}
		}
		c.outOpen(t)
		return
	}
	zero := c.o.AttrInt("allowzero", 0) == 0
	out := make([]sym.Expr, len(shape))
	hole := -1
	for i, s := range shape {
		switch {
		case s.Is(0) && zero:
			switch {
			case in == nil:
				out[i] = c.fresh(0, i, len(out))
			case i >= len(in):
				c.fail("0 in place %d of the shape, but the rank is %d", i, len(in))
				return
			default:
				out[i] = in[i]
			}
		case s.Is(-1):
			if hole >= 0 {
				c.fail("shape %s has more than one -1", dimString(shape))
				return
			}
			hole = i
		case s.IsConst() && s.Min() < -1:
			c.fail("shape %s has a negative size", dimString(shape))
			return
		default:
			out[i] = s
		}
	}
	if hole >= 0 {
		rest := append(slices.Clone(out[:hole]), out[hole+1:]...)
		out[hole] = c.hole(in, rest, hole, len(out))
	} else if allKnown(in) && allKnown(out) {
		a, okA := sym.Product(in...).Int()
		b, okB := sym.Product(out...).Int()
		if okA && okB && a != b {
			c.fail("%d elements do not fit shape %s", a, dimString(shape))
		}
	} else if in != nil {
		c.same(sym.Product(in...), sym.Product(out...))
	}
	c.out(0, ssa.Tensor(t, out...))
	if s, ok := c.syms(0); ok && len(out) <= 1 {
		c.outSym(s)
	}
}

// allKnown reports a shape without symbols.
func allKnown(dims []sym.Expr) bool {
	return dims != nil && !slices.ContainsFunc(dims, func(d sym.Expr) bool { return !d.IsConst() })
}

// hole is the size that -1 stands for: the elements over the other sizes.
// Sizes that both sides have in common cancel first.
func (c *infer) hole(in, rest []sym.Expr, axis, rank int) sym.Expr {
	if in == nil {
		return c.fresh(0, axis, rank)
	}
	in = slices.Clone(in)
	var left []sym.Expr
next:
	for _, r := range rest {
		for i, d := range in {
			if d.Equal(r) && !d.Is(0) {
				in = append(in[:i], in[i+1:]...)
				continue next
			}
		}
		left = append(left, r)
	}
	total, by := sym.Product(in...), sym.Product(left...)
	if q, ok := total.Divide(by); ok {
		return q
	}
	if a, ok := total.Int(); ok {
		if b, ok := by.Int(); ok && (b == 0 || a%b != 0) {
			if b != 0 || a != 0 {
				c.fail("%d elements cannot be cut into pieces of %d", a, b)
			}
			return sym.Const(0)
		}
	}
	if by.IsConst() || total.Min() >= 0 && by.Min() >= 0 {
		q := total.FloorDiv(by)
		c.same(total, q.Mul(by)) // the pieces are whole
		return q
	}
	return c.fresh(0, axis, rank)
}

func inferFlatten(c *infer) {
	in := c.dims(0)
	if in == nil {
		c.out(0, ssa.Tensor(c.in(0).DType, c.freshDims(0, 2)...))
		return
	}
	a := c.o.AttrInt("axis", 1)
	if a < 0 {
		a += int64(len(in))
	}
	if a < 0 || a > int64(len(in)) {
		c.fail("axis %d is out of range for rank %d", a, len(in))
		return
	}
	c.out(0, ssa.Tensor(c.in(0).DType, sym.Product(in[:a]...), sym.Product(in[a:]...)))
}

func inferSqueeze(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	drop := make([]bool, len(in))
	if c.has(1) {
		axes, ok := c.ints(1)
		if !ok {
			c.out(0, ssa.Unranked(t))
			return
		}
		for _, a := range axes {
			k := c.axis(a, len(in))
			if c.err != nil {
				return
			}
			if n, ok := in[k].Int(); ok && n != 1 {
				c.fail("axis %d to squeeze is of size %d", a, n)
				return
			}
			drop[k] = true
		}
	} else {
		for i, d := range in {
			if !d.IsConst() {
				c.outOpen(t)
				return
			}
			drop[i] = d.Is(1)
		}
	}
	out := []sym.Expr{}
	for i, d := range in {
		if !drop[i] {
			out = append(out, d)
		}
	}
	c.out(0, ssa.Tensor(t, out...))
	if s, ok := c.syms(0); ok {
		c.outSym(s)
	}
}

func inferUnsqueeze(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	axes, ok := c.ints(1)
	if in == nil || !ok {
		c.out(0, ssa.Unranked(t))
		return
	}
	out := make([]sym.Expr, len(in)+len(axes))
	isNew := make([]bool, len(out))
	for _, a := range axes {
		k := c.axis(a, len(out))
		if c.err == nil && isNew[k] {
			c.fail("axis %d occurs twice", a)
		}
		if c.err != nil {
			return
		}
		isNew[k] = true
	}
	for i := range out {
		if isNew[i] {
			out[i] = sym.Const(1)
		} else {
			out[i], in = in[0], in[1:]
		}
	}
	c.out(0, ssa.Tensor(t, out...))
	if s, ok := c.syms(0); ok && len(out) <= 1 {
		c.outSym(s)
	}
}

func inferTranspose(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	perm := c.o.AttrInts("perm")
	if in == nil {
		if perm != nil {
			c.out(0, ssa.Tensor(t, c.freshDims(0, len(perm))...))
		} else {
			c.out(0, ssa.Unranked(t))
		}
		return
	}
	out := make([]sym.Expr, len(in))
	if _, ok := c.o.Attr("perm"); !ok {
		for i := range out {
			out[i] = in[len(in)-1-i]
		}
	} else {
		seen := make([]bool, len(in))
		for i, p := range perm {
			if len(perm) != len(in) || p < 0 || p >= int64(len(in)) || seen[p] {
				c.fail("perm %v does not permute rank %d", perm, len(in))
				return
			}
			seen[p] = true
			out[i] = in[p]
		}
	}
	c.out(0, ssa.Tensor(t, out...))
	if s, ok := c.syms(0); ok {
		c.outSym(s)
	}
}

func inferConcat(c *infer) {
	n := c.o.NumOperands()
	rank := -1
	d := tensor.Undefined
	for i := range n {
		t := c.in(i)
		if t.Ranked {
			if rank >= 0 && rank != len(t.Dims) {
				c.fail("inputs of rank %d and %d", rank, len(t.Dims))
				return
			}
			rank = len(t.Dims)
		}
		if d == tensor.Undefined {
			d = t.DType
		}
	}
	if rank < 0 {
		c.out(0, ssa.Unranked(d))
		return
	}
	axis := c.axis(c.o.AttrInt("axis", 0), rank)
	if c.err != nil {
		return
	}
	out := make([]sym.Expr, rank)
	known := make([]bool, rank)
	sum, sumKnown := sym.Const(0), true
	for i := range n {
		in := c.dims(i)
		if in == nil {
			sumKnown = false
			continue
		}
		for a, e := range in {
			if a != axis && known[a] {
				c.same(out[a], e)
			}
			switch {
			case a == axis:
				sum = sum.Add(e)
			case !known[a]:
				out[a], known[a] = e, true
			case e.IsConst() && out[a].IsConst() && !e.Equal(out[a]):
				c.fail("axis %d of the inputs is of size %v and %v", a, out[a], e)
				return
			case e.IsConst():
				out[a] = e
			}
		}
	}
	if out[axis] = sum; !sumKnown {
		out[axis] = c.fresh(0, axis, rank)
	}
	c.out(0, ssa.Tensor(d, out...))
	if rank != 1 {
		return
	}
	var all []sym.Expr
	for i := range n {
		s, ok := c.syms(i)
		if !ok {
			return
		}
		all = append(all, s...)
	}
	if all == nil {
		all = []sym.Expr{}
	}
	c.outSym(all)
}

func inferSplit(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	n := len(c.o.Results)
	if in == nil {
		for i := range n {
			c.out(i, ssa.Unranked(t))
		}
		return
	}
	axis := c.axis(c.o.AttrInt("axis", 0), len(in))
	if c.err != nil {
		return
	}
	sizes := make([]sym.Expr, n)
	if c.has(1) {
		s, ok := c.syms(1)
		if ok && len(s) != n {
			c.fail("%d sizes for %d outputs", len(s), n)
			return
		}
		for i := range sizes {
			if ok {
				sizes[i] = s[i]
			} else {
				sizes[i] = c.fresh(i, axis, len(in))
			}
		}
		if total, known := in[axis].Int(); known && ok {
			if sum, known := sumOf(s).Int(); known && sum != total {
				c.fail("sizes %s do not add up to %d", dimString(s), total)
				return
			}
		}
	} else {
		k := sym.Const(c.o.AttrInt("num_outputs", int64(n)))
		piece := in[axis].Add(k.Sub(sym.Const(1))).FloorDiv(k)
		rest := in[axis]
		for i := range sizes {
			// All pieces are of the rounded-up size but the last, which has what is left.
			sizes[i] = piece.Minimum(rest)
			if in[axis].IsConst() {
				sizes[i] = sizes[i].Max(sym.Const(0))
			} else if q, ok := in[axis].Divide(k); ok {
				sizes[i] = q
			} else if i == n-1 {
				sizes[i] = rest
			} else {
				sizes[i] = piece
			}
			rest = rest.Sub(piece)
		}
	}
	content, hasSym := c.syms(0)
	hasSym = hasSym && len(in) == 1
	at := int64(0)
	for i := range n {
		out := slices.Clone(in)
		out[axis] = sizes[i]
		c.out(i, ssa.Tensor(t, out...))
		if size, ok := sizes[i].Int(); ok && hasSym && size >= 0 && at+size <= int64(len(content)) {
			c.o.Results[i].Sym = append([]sym.Expr{}, content[at:at+size]...)
			at += size
		} else {
			hasSym = false
		}
	}
}

func sumOf(s []sym.Expr) sym.Expr {
	t := sym.Const(0)
	for _, e := range s {
		t = t.Add(e)
	}
	return t
}

func inferSlice(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	out := slices.Clone(in)
	axes, ok := c.ints(3)
	if !c.has(3) {
		n, known := 0, false
		for _, i := range [...]int{1, 2} {
			if d := c.dims(i); len(d) == 1 {
				if k, ok := d[0].Int(); ok {
					n, known = int(k), true
				}
			}
		}
		if axes, ok = nil, known; known {
			for a := range n {
				axes = append(axes, int64(a))
			}
		}
	}
	if !ok {
		c.out(0, ssa.Tensor(t, c.freshDims(0, len(in))...))
		return
	}
	starts, okS := c.syms(1)
	ends, okE := c.syms(2)
	steps, okT := c.ints(4)
	if !c.has(4) {
		okT = true
		for range axes {
			steps = append(steps, 1)
		}
	}
	if okS && len(starts) != len(axes) || okE && len(ends) != len(axes) || okT && len(steps) != len(axes) {
		c.fail("starts, ends, axes and steps differ in length")
		return
	}
	for i, a := range axes {
		k := c.axis(a, len(in))
		if c.err != nil {
			return
		}
		if !okS || !okE || !okT {
			out[k] = c.fresh(0, k, len(in))
			continue
		}
		if steps[i] == 0 {
			c.fail("step 0")
			return
		}
		var known bool
		if out[k], known = sliceSize(in[k], starts[i], ends[i], steps[i]); !known {
			out[k] = c.fresh(0, k, len(in))
		}
	}
	c.out(0, ssa.Tensor(t, out...))
	s, okC := c.syms(0)
	if !okC || len(in) != 1 || !okS || !okE || !okT || len(axes) > 1 {
		return
	}
	if len(axes) == 0 {
		c.outSym(s)
		return
	}
	from, okF := starts[0].Int()
	to, okTo := ends[0].Int()
	if !okF || !okTo {
		return
	}
	from, to = formula.ClampSlice(from, to, steps[0], int64(len(s)))
	picked := []sym.Expr{}
	for i := from; steps[0] > 0 && i < to || steps[0] < 0 && i > to; i += steps[0] {
		picked = append(picked, s[i])
	}
	c.outSym(picked)
}

// sliceSize is the number of elements that a slice of an axis takes.
func sliceSize(n, start, end sym.Expr, step int64) (sym.Expr, bool) {
	size, okN := n.Int()
	s, okS := start.Int()
	e, okE := end.Int()
	if okN && okS && okE {
		from, to := formula.ClampSlice(s, e, step, size)
		if step > 0 {
			return sym.Const(max(0, (to-from+step-1)/step)), true
		}
		if size == 0 {
			return sym.Const(0), true
		}
		return sym.Const(max(0, (from-to-step-1)/-step)), true
	}
	zero := sym.Const(0)
	if step < 0 {
		// Reversal of the whole axis.
		if okS && okE && s == -1 && e < -1<<31 || okS && okE && s > 1<<31-2 && e < -1<<31+1 {
			return n.Add(sym.Const(-step - 1)).FloorDiv(sym.Const(-step)), true
		}
		return zero, false
	}
	// As the end is at most n, and the difference is cut off at 0, a start that
	// is not negative need not be limited to n, nor a negative end to 0.
	from, to := start, end
	switch {
	case okS && s >= 0 || !okS && start.Min() >= 0:
	case okS && okE && e >= 1<<31-1 && step == 1:
		return n.Minimum(sym.Const(-s)), true
	case okS:
		from = n.Add(start).Max(zero)
	case start.Neg().Min() > 0 && n.AtLeast(start.Neg()):
		from = n.Add(start)
	default:
		return zero, false
	}
	switch {
	case okE && e >= 1<<31-1, end.Equal(n): // the end of any axis
		to = n
	case okE && e < 0:
		if to = n.Add(end); !okS || s < 0 {
			to = to.Max(zero)
		}
	case okE, end.Min() >= 0:
		to = end.Minimum(n)
	case end.Neg().Min() > 0 && n.AtLeast(end.Neg()):
		to = n.Add(end)
	default:
		return zero, false
	}
	return to.Sub(from).Max(zero).Add(sym.Const(step - 1)).FloorDiv(sym.Const(step)), true
}

func inferGather(c *infer) {
	in, ix, t := c.dims(0), c.dims(1), c.in(0).DType
	if in == nil || ix == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	axis := c.axis(c.o.AttrInt("axis", 0), len(in))
	if c.err != nil {
		return
	}
	out := append(slices.Clone(in[:axis]), ix...)
	out = append(out, in[axis+1:]...)
	c.out(0, ssa.Tensor(t, out...))
	s, okS := c.syms(0)
	at, okA := c.ints(1)
	if !okS || !okA || len(in) != 1 || len(ix) > 1 {
		return
	}
	picked := make([]sym.Expr, len(at))
	for i, a := range at {
		if a < 0 {
			a += int64(len(s))
		}
		if a < 0 || a >= int64(len(s)) {
			c.fail("index %d is out of range for %d elements", at[i], len(s))
			return
		}
		picked[i] = s[a]
	}
	c.outSym(picked)
}

func inferGatherND(c *infer) {
	in, ix, t := c.dims(0), c.dims(1), c.in(0).DType
	if in == nil || len(ix) == 0 {
		c.out(0, ssa.Unranked(t))
		return
	}
	batch := c.o.AttrInt("batch_dims", 0)
	last, ok := ix[len(ix)-1].Int()
	if !ok {
		c.out(0, ssa.Unranked(t))
		return
	}
	if batch < 0 || batch >= int64(len(ix)) || batch+last > int64(len(in)) {
		c.fail("indices of %d coordinates after %d batch axes do not fit rank %d", last, batch, len(in))
		return
	}
	c.out(0, ssa.Tensor(t, append(slices.Clone(ix[:len(ix)-1]), in[batch+last:]...)...))
}

func inferExpand(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	shape, ok := c.syms(1)
	if in == nil || !ok {
		if d := c.dims(1); in != nil && len(d) == 1 {
			if k, ok := d[0].Int(); ok && k >= 0 && k <= 64 {
				c.out(0, ssa.Tensor(t, c.freshDims(0, max(int(k), len(in)))...))
				return
			}
		}
		c.out(0, ssa.Unranked(t))
		return
	}
	for _, d := range shape {
		if n, ok := d.Int(); ok && n < 0 {
			c.fail("shape %s has a negative size", dimString(shape))
			return
		}
	}
	if shape == nil {
		shape = []sym.Expr{}
	}
	out := c.broadcast(in, shape)
	c.out(0, ssa.Tensor(t, out...))
	if s, ok := c.syms(0); ok && len(out) <= 1 && len(s) > 0 {
		n := int64(1)
		if len(out) == 1 {
			var known bool
			if n, known = out[0].Int(); !known || n > maxSym {
				return
			}
		}
		full := make([]sym.Expr, n)
		for i := range full {
			full[i] = s[min(i, len(s)-1)]
		}
		c.outSym(full)
	}
}

func inferTile(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	reps, ok := c.syms(1)
	if !ok {
		c.out(0, ssa.Tensor(t, c.freshDims(0, len(in))...))
		return
	}
	if len(reps) != len(in) {
		c.fail("%d repeats for rank %d", len(reps), len(in))
		return
	}
	for i := range in {
		in[i] = in[i].Mul(reps[i])
	}
	c.out(0, ssa.Tensor(t, in...))
}

func inferPad(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	axes, okA := c.ints(3)
	if !c.has(3) {
		okA = true
		for i := range in {
			axes = append(axes, int64(i))
		}
	}
	pads, ok := c.syms(1)
	if !ok || !okA {
		c.out(0, ssa.Tensor(t, c.freshDims(0, len(in))...))
		return
	}
	if len(pads) != 2*len(axes) {
		c.fail("%d pads for %d axes", len(pads), len(axes))
		return
	}
	for i, a := range axes {
		k := c.axis(a, len(in))
		if c.err != nil {
			return
		}
		in[k] = in[k].Add(pads[i]).Add(pads[i+len(axes)])
		if n, ok := in[k].Int(); ok && n < 0 {
			c.fail("axis %d would be of size %d", k, n)
		}
	}
	c.out(0, ssa.Tensor(t, in...))
}

func inferConstantOfShape(c *infer) {
	d := tensor.Float32
	v, has := c.o.Attr("value")
	if has && v.Tensor != nil {
		d = v.Tensor.DType
	}
	shape, ok := c.syms(0)
	if !ok {
		if n := c.dims(0); len(n) == 1 {
			if k, ok := n[0].Int(); ok && k >= 0 && k <= 64 {
				c.out(0, ssa.Tensor(d, c.freshDims(0, int(k))...))
				return
			}
		}
		c.out(0, ssa.Unranked(d))
		return
	}
	for _, e := range shape {
		if e.IsConst() && e.Min() < 0 {
			c.fail("shape %s has a negative size", dimString(shape))
			return
		}
	}
	c.out(0, ssa.Tensor(d, shape...))
	if n, ok := sym.Product(shape...).Int(); ok && n <= maxSym && len(shape) <= 1 && has && v.Tensor != nil && v.Tensor.DType.IsInt() && v.Tensor.HasData() && v.Tensor.NumElements() == 1 {
		s := make([]sym.Expr, n)
		for i := range s {
			s[i] = sym.Const(v.Tensor.Int64s()[0])
		}
		c.outSym(s)
	}
}

func inferRange(c *infer) {
	d := c.in(0).DType
	var size sym.Expr
	known := false
	start, ok0 := c.syms(0)
	limit, ok1 := c.syms(1)
	delta, ok2 := c.ints(2)
	var content []sym.Expr
	switch {
	case ok0 && ok1 && ok2 && len(start) == 1 && len(limit) == 1 && len(delta) == 1:
		if delta[0] == 0 {
			c.fail("step 0")
			return
		}
		known = true
		span := limit[0].Sub(start[0])
		if delta[0] < 0 {
			span = span.Neg()
		}
		step := max(delta[0], -delta[0])
		size = span.Max(sym.Const(0)).Add(sym.Const(step - 1)).FloorDiv(sym.Const(step))
		if n, ok := size.Int(); ok && n >= 0 && n <= maxSym { // below 0 where the span is beyond int64
			content = make([]sym.Expr, n)
			for i := range content {
				content[i] = start[0].Add(sym.Const(int64(i) * delta[0]))
			}
		}
	default:
		if n, ok := rangeSize(ConstOf(c.o.Operand(0)), ConstOf(c.o.Operand(1)), ConstOf(c.o.Operand(2))); ok {
			size, known = sym.Const(n), true
		}
	}
	if !known {
		size = c.fresh(0, 0, 1)
	}
	c.out(0, ssa.Tensor(d, size))
	if d.IsInt() {
		c.outSym(content)
	}
}

func inferOneHot(c *infer) {
	ix, t := c.dims(0), c.in(2).DType
	if ix == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	axis := c.axis(c.o.AttrInt("axis", -1), len(ix)+1)
	if c.err != nil {
		return
	}
	depth := c.fresh(0, axis, len(ix)+1)
	if s, ok := c.syms(1); ok && len(s) == 1 {
		depth = s[0]
	} else if k := ConstOf(c.o.Operand(1)); k != nil && k.HasData() && k.NumElements() == 1 && !k.DType.IsComplex() {
		depth = sym.Const(k.Int64s()[0])
	}
	c.out(0, ssa.Tensor(t, slices.Insert(ix, axis, depth)...))
}

func inferCompress(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	a, has := c.o.Attr("axis")
	if !has {
		c.out(0, ssa.Tensor(t, c.fresh(0, 0, 1)))
		return
	}
	if in == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	k := c.axis(a.Int(), len(in))
	if c.err == nil {
		in[k] = c.fresh(0, k, len(in))
		c.out(0, ssa.Tensor(t, in...))
	}
}
