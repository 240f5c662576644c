package onnx

import (
	"math"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// attention expresses Attention, which came with opset 23, as the standard defines it:
//
//	Y = Softmax(cap(Q*s @ (K*s)') + bias) @ V    with s = sqrt(scale), cap(x) = softcap * tanh(x/softcap)
//
// on tensors [batch, heads, length, head size]; those of rank 3 have heads and head size in one axis. The bias is the
// sum of what masks, causality, windows and padding say: 0 for a pair that counts, minus infinity for others. A query
// that no key counts for gives zeros.
func attention(d *Downgrade) {
	a := &attending{Downgrade: d, q: d.in(0), k: d.in(1), v: d.in(2), flat: d.rank(d.in(0), 23) == 3}
	if a.flat {
		a.q = a.heads(a.q, "q_num_heads")
		a.k = a.heads(a.k, "kv_num_heads")
		a.v = a.heads(a.v, "kv_num_heads")
	}
	past := d.in(4)
	if past != nil && d.in(5) != nil {
		a.k, a.v = d.concat(2, past, a.k), d.concat(2, d.in(5), a.v)
	}
	outs := []*ssa.Value{nil, a.k, a.v, nil}
	scores := a.scores()
	outs[3] = scores
	if c := d.Node.AttrFloat("softcap", 0); c > 0 {
		limit := d.like(scores, c)
		scores = d.Op("Mul", d.Op("Tanh", d.Op("Div", scores, limit)), limit)
	}
	mode := d.Node.AttrInt("qk_matmul_output_mode", 0)
	if mode == 1 {
		outs[3] = scores
	}
	scores, whole := a.biased(scores)
	if mode == 2 {
		outs[3] = scores
	}
	p := a.weights(scores, whole)
	if mode == 3 {
		outs[3] = d.cast(p, a.q.DType())
	}
	y := d.cast(d.Op("MatMul", d.cast(p, a.v.DType()), a.repeated(a.v)), a.q.DType())
	if a.flat {
		y = d.reshape(d.OpA("Transpose", []ssa.Attr{intsAttr("perm", 0, 2, 1, 3)}, y), 0, 0, -1)
	}
	outs[0] = y
	d.Replace(outs[:len(d.Node.Results)]...)
}

// attentionWindow and attentionPadding express what opsets 25 and 24 added, when it is used.
func attentionWindow(d *Downgrade) {
	if d.Node.AttrInt("left_window_size", -1) >= 0 || d.Node.AttrInt("right_window_size", -1) >= 0 {
		attention(d)
	}
}

func attentionPadding(d *Downgrade) {
	if d.in(6) != nil {
		attention(d)
	}
}

// attending is an Attention on its way; q, k, v are of rank 4, k and v with the past.
type attending struct {
	*Downgrade
	q, k, v *ssa.Value
	flat    bool
}

// heads cuts the last axis of [batch, length, heads*size] and puts the heads before the length.
func (a *attending) heads(x *ssa.Value, attr string) *ssa.Value {
	n := a.Node.AttrInt(attr, 0)
	if n < 1 {
		a.Fail(0, "the attribute %s is missing", attr)
	}
	return a.OpA("Transpose", []ssa.Attr{intsAttr("perm", 0, 2, 1, 3)}, a.reshape(x, 0, 0, n, -1))
}

func dimOf(v *ssa.Value, axis int) sym.Expr { return v.Tensor().Dims[axis] }

// repeated gives keys or values as many heads as the queries have: each serves several in a row.
func (a *attending) repeated(x *ssa.Value) *ssa.Value {
	if a.rank(x, 23) != 4 || a.rank(a.q, 23) != 4 {
		a.Fail(0, "queries, keys and values must have the same rank")
	}
	if dimOf(a.q, 1).Equal(dimOf(x, 1)) {
		return x
	}
	n, ok := dimOf(a.q, 1).Int()
	m, also := dimOf(x, 1).Int()
	if !ok || !also {
		a.Fail(23, "the numbers of heads must be known")
	}
	if m < 1 || n%m != 0 {
		a.Fail(0, "%d heads of queries cannot share %d heads of keys", n, m)
	}
	wide := a.Op("Expand", a.Op("Unsqueeze", x, a.ints(2)), a.ints(1, 1, n/m, 1, 1))
	shape := a.concat(0, a.sizes1(x, 0, 1), a.ints(n), a.sizes1(x, 2, 4))
	return a.Op("Reshape", wide, shape)
}

// scores is Q @ K', scaled.
func (a *attending) scores() *ssa.Value {
	q, k := a.q, a.repeated(a.k)
	var s *ssa.Value
	if scale, ok := a.Node.Attr("scale"); ok {
		if scale.Float() < 0 { // has no root
			q, s = a.Op("Mul", q, a.like(q, scale.Float())), a.like(q, 1)
		} else {
			s = a.like(q, math.Sqrt(scale.Float()))
		}
	} else if n, ok := dimOf(q, 3).Int(); ok {
		s = a.like(q, 1/math.Sqrt(math.Sqrt(float64(n))))
	} else {
		root := a.Op("Sqrt", a.cast(a.size(q, 3), tensor.Float32))
		s = a.cast(a.Op("Sqrt", a.Op("Reciprocal", root)), q.DType())
	}
	q, k = a.Op("Mul", q, s), a.Op("Mul", k, s)
	return a.Op("MatMul", q, a.OpA("Transpose", []ssa.Attr{intsAttr("perm", 0, 1, 3, 2)}, k))
}

// biased adds what says which pairs count; whole reports that each query has a key.
func (a *attending) biased(scores *ssa.Value) (out *ssa.Value, whole bool) {
	whole = true
	add := func(bias *ssa.Value) { scores = a.Op("Add", scores, a.cast(bias, scores.DType())) }
	if mask := a.in(3); mask != nil {
		whole = false
		add(a.padded(mask))
	}
	causal := a.Node.AttrInt("is_causal", 0) != 0
	left, right := a.Node.AttrInt("left_window_size", -1), a.Node.AttrInt("right_window_size", -1)
	if causal || left >= 0 || right >= 0 {
		ahead, fixed := a.ahead()
		whole = whole && fixed && left < 0 && (causal || right < 0)
		if causal {
			add(a.allow(a.Op("Not", a.Op("Less", ahead, a.long(0)))))
		}
		if left >= 0 {
			add(a.allow(a.Op("Not", a.Op("Greater", ahead, a.long(left)))))
		}
		if right >= 0 {
			add(a.allow(a.Op("Not", a.Op("Less", ahead, a.long(-right)))))
		}
	}
	if lengths := a.in(6); lengths != nil {
		whole = false
		keys := a.upTo(a.size(a.k, 2))
		add(a.allow(a.Op("Less", keys, a.Op("Unsqueeze", lengths, a.ints(1, 2, 3)))))
	}
	return scores, whole
}

// allow is 0 where a condition holds, minus infinity elsewhere.
func (a *attending) allow(c *ssa.Value) *ssa.Value {
	return a.Op("Where", c, a.like(a.q, 0), a.like(a.q, math.Inf(-1)))
}

// ahead is by how many places each query is ahead of each key. Queries come behind the keys that were there before;
// fixed reports that there are no fewer than none of those.
func (a *attending) ahead() (v *ssa.Value, fixed bool) {
	queries := a.Op("Unsqueeze", a.upTo(a.size(a.q, 2)), a.ints(1))
	fixed = true
	switch past, lengths := a.in(4), a.in(6); {
	case past != nil:
		queries = a.Op("Add", queries, a.size(past, 2))
	case lengths != nil:
		before := a.Op("Sub", lengths, a.size(a.q, 2))
		queries = a.Op("Add", queries, a.Op("Unsqueeze", before, a.ints(1, 2, 3)))
		fixed = false
	}
	return a.Op("Sub", queries, a.upTo(a.size(a.k, 2))), fixed
}

// padded is the mask as a bias; it may be shorter than the keys, of which the rest does not count.
func (a *attending) padded(mask *ssa.Value) *ssa.Value {
	if mask.DType() == tensor.Bool {
		mask = a.allow(mask)
	}
	rank := a.rank(mask, 23)
	if rank == 0 {
		return mask
	}
	keys := dimOf(a.k, 2)
	if last := dimOf(mask, rank-1); last.Equal(keys) {
		return mask
	}
	missing := a.Op("Sub", a.size(a.k, 2), a.size(mask, rank-1))
	zeros := make([]int64, 2*rank-1)
	pads := a.concat(0, a.ints(zeros...), a.Op("Unsqueeze", missing, a.ints(0)))
	return a.Op("Pad", mask, pads, a.like(mask, math.Inf(-1)))
}

// weights is the softmax of the scores. A row of minus infinities, which it would make NaN of, gives zeros.
func (a *attending) weights(scores *ssa.Value, whole bool) *ssa.Value {
	t := scores.DType()
	if n := a.Node.AttrInt("softmax_precision", 0); n != 0 {
		if t = tensor.FromONNX(int(n)); !t.IsFloat() {
			a.Fail(0, "softmax_precision is %d", n)
		}
	}
	scores = a.cast(scores, t)
	last := []ssa.Attr{intAttr("axis", -1)}
	if whole {
		return a.OpA("Softmax", last, scores)
	}
	top := a.OpA("ReduceMax", []ssa.Attr{intAttr("keepdims", 1)}, scores, a.ints(-1))
	none := a.Op("Equal", top, a.like(scores, math.Inf(-1)))
	zero := a.like(scores, 0)
	return a.Op("Where", none, zero, a.OpA("Softmax", last, scores))
}
