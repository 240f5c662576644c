package onnx

import (
	"github.com/aton-project/aton/ssa"
)

// Operators of opset 27 that carry a state from one call to the next. Halves are computed in float32.

// linearAttention is a Scan over the tokens. Of each, the state, [batch, kv head, dk, dv], takes in the key and the value, and the
// queries of the group that shares a head of keys read it.
func linearAttention(d *Downgrade) {
	q, k, v := d.in(0), d.in(1), d.in(2)
	for _, x := range []*ssa.Value{q, k, v} {
		if d.rank(x, 27) != 3 {
			d.Fail(0, "queries, keys and values must have rank 3")
		}
	}
	queries, heads := d.Node.AttrInt("q_num_heads", 1), d.Node.AttrInt("kv_num_heads", 1)
	if heads < 1 || queries < 1 || queries%heads != 0 {
		d.Fail(0, "%d heads of queries do not share %d heads of keys", queries, heads)
	}
	rule := d.Node.AttrStr("update_rule", "gated_delta")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	batch, length := d.sizes1(q, 0, 1), d.sizes1(q, 1, 2)
	perHead := func(x *ssa.Value) *ssa.Value { return d.Div(d.sizes1(x, 2, 3), d.ints(heads)) }
	dk, dv := perHead(k), perHead(v)
	// apart is x by tokens: [token, batch, head, rows, columns]
	apart := func(x *ssa.Value, shape ...*ssa.Value) *ssa.Value {
		shape = append([]*ssa.Value{batch, length}, shape...)
		return d.turned(d.Reshape(d.up(x), d.concat(0, shape...)), 1, 0, 2, 3, 4)
	}
	one, group := d.ints(1), queries/heads
	qs := apart(q, d.ints(heads, group), dk)
	if scale := d.Node.AttrFloat("scale", 0); scale != 0 {
		qs = d.Mul(qs, d.like(qs, scale))
	} else {
		qs = d.Div(qs, d.Sqrt(d.cast(dk, qs.DType())))
	}
	xs := []*ssa.Value{qs, apart(k, d.ints(heads), dk, one), apart(v, d.ints(heads, 1), dv)}
	decay, beta := 0, 0 // places among xs
	if g := d.in(4); gated && g != nil {
		decay = len(xs)
		xs = append(xs, d.Exp(apart(g, d.ints(heads), perHead(g), one)))
	}
	if b := d.in(5); delta && b != nil {
		beta = len(xs)
		xs = append(xs, apart(b, d.sizes1(b, 2, 3), one, one))
	}
	state := d.up(d.in(3))
	if state == nil {
		state = d.Expand(d.like(qs, 0), d.concat(0, batch, d.ints(heads), dk, dv))
	}
	state = d.cast(state, qs.DType())
	finals, outs := d.Scan([]*ssa.Value{state}, xs, false, func(st, el []*ssa.Value) (next, out []*ssa.Value) {
		s, key, value := st[0], el[1], el[2]
		if decay > 0 {
			s = d.Mul(s, el[decay])
		}
		if delta { // what the state has of the key already is left out
			value = d.Sub(value, d.MatMul(d.turned(key, 0, 1, 3, 2), s))
			if beta > 0 {
				value = d.Mul(value, el[beta])
			}
		}
		s = d.Add(s, d.Mul(key, value))
		return []*ssa.Value{s}, []*ssa.Value{d.MatMul(el[0], s)}
	})
	y := d.Reshape(d.turned(outs[0], 1, 0, 2, 3, 4), d.concat(0, batch, length, d.Mul(dv, d.ints(queries))))
	results := []*ssa.Value{d.cast(y, q.DType())}
	if len(d.Node.Results) > 1 {
		results = append(results, d.cast(finals[0], d.Node.Result(1).DType()))
	}
	d.Replace(results...)
}
