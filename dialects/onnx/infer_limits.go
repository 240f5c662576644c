package onnx

import (
	"slices"

	"github.com/aton-project/aton/ssa/sym"
)

// limits checks what operators demand of ranks, sizes and attributes besides what their results need: what ONNX's own
// inference refuses, it refuses.
func (c *infer) limits() {
	if k := c.o.AttrInt("keepdims", 1); k != 0 && k != 1 {
		c.fail("keepdims is %d, neither 0 nor 1", k)
	}
	if r := rowOf(c.o.Kind.Name()); r.limits != nil {
		r.limits(c)
	}
}

func limitAxis(c *infer) {
	if in := c.dims(0); len(in) > 0 {
		c.axis(c.o.AttrInt("axis", -1), len(in))
	}
}

func limitShape(c *infer) {
	c.vector(1)
}

func limitVector(c *infer) {
	c.vector(0)
}

func limitSlice(c *infer) {
	for i := 1; i < c.o.NumOperands(); i++ {
		c.vector(i)
	}
}

func limitGatherElements(c *infer) {
	c.sameRank(0, 1)
}

func limitScatterElements(c *infer) {
	c.sameRank(0, 1)
	c.sameRank(1, 2)
}

func limitDet(c *infer) {
	if in := c.dims(0); in != nil && len(in) < 2 {
		c.fail("input of rank %d", len(in))
	} else if in != nil {
		c.equal("the matrices' sizes", in[len(in)-2], in[len(in)-1])
	}
}

func limitAttention(c *infer) {
	if len(c.o.Results) == 2 {
		c.fail("present_key and present_value are results together")
	}
	for _, name := range [...]string{"left_window_size", "right_window_size"} {
		if n := c.o.AttrInt(name, -1); n < -1 {
			c.fail("%s is %d, neither -1 nor a size", name, n)
		}
	}
	c.positive("q_num_heads", "kv_num_heads")
}

func limitConvTranspose(c *infer) {
	if p := c.o.AttrInts("output_padding"); len(p) > 0 && slices.Min(p) < 0 {
		c.fail("output_padding %v is negative", p)
	}
}

func (c *infer) linearAttentionLimits() {
	c.positive("q_num_heads", "kv_num_heads")
	c.oneOf("update_rule", "linear", "gated", "delta", "gated_delta")
	for i := range 3 {
		if in := c.dims(i); in != nil && len(in) != 3 {
			c.fail("input %d has rank %d, not 3", i, len(in))
		}
	}
	if r := c.o.AttrStr("update_rule", "gated_delta"); (r == "linear" || r == "delta") && c.has(4) {
		c.fail("update_rule %q takes no decay", r)
	}
}

func (c *infer) padLimits() {
	in := c.dims(0)
	axes, ok := c.ints(3)
	if in == nil || !ok {
		return
	}
	seen := map[int]bool{}
	for _, a := range axes {
		if k := c.axis(a, len(in)); c.err == nil && seen[k] {
			c.fail("axis %d comes twice", k)
		} else {
			seen[k] = true
		}
	}
}

// vector demands rank 1 of operand i.
func (c *infer) vector(i int) {
	if in := c.dims(i); in != nil && len(in) != 1 {
		c.fail("input %d has rank %d, not 1", i, len(in))
	}
}

// sameRank demands the same rank of two operands.
func (c *infer) sameRank(i, j int) {
	if a, b := c.dims(i), c.dims(j); a != nil && b != nil && len(a) != len(b) {
		c.fail("inputs %d and %d have the ranks %d and %d, not the same", i, j, len(a), len(b))
	}
}

// equal demands equal sizes, where both are known.
func (c *infer) equal(what string, a, b sym.Expr) {
	n, okN := a.Int()
	k, okK := b.Int()
	if okN && okK && n != k {
		c.fail("%s are %d and %d, not the same", what, n, k)
	}
	c.same(a, b)
}

// positive demands attributes of 1 or more, where they are given.
func (c *infer) positive(names ...string) {
	for _, name := range names {
		if n := c.o.AttrInt(name, 1); n < 1 {
			c.fail("%s is %d, not positive", name, n)
		}
	}
}

// oneOf demands a string attribute of some values, where it is given.
func (c *infer) oneOf(name string, values ...string) {
	if s := c.o.AttrStr(name, values[0]); !slices.Contains(values, s) {
		c.fail("%s is %q, none of %q", name, s, values)
	}
}

func (c *infer) resizeLimits() {
	in := c.dims(0)
	if in == nil {
		return
	}
	c.oneOf("keep_aspect_ratio_policy", "stretch", "not_larger", "not_smaller")
	n := int64(len(in))
	if axes, ok := c.o.Attr("axes"); ok {
		n = int64(len(axes.Elems))
	}
	if c.has(2) == c.has(3) {
		c.fail("either scales or sizes must be given")
	}
	for _, i := range [...]int{2, 3} {
		if d := c.dims(i); len(d) == 1 && c.has(i) {
			c.equal("the numbers of axes and of scales or sizes", sym.Const(n), d[0])
		}
	}
}

func (c *infer) batchNormLimits() {
	in := c.dims(0)
	if len(in) < 2 {
		return
	}
	for i := 1; i < 5; i++ {
		c.vector(i)
		if d := c.dims(i); len(d) == 1 {
			c.equal("the numbers of channels", in[1], d[0])
		}
	}
}

func (c *infer) lossLimits() {
	in, target := c.dims(0), c.dims(1)
	if in == nil || target == nil {
		return
	}
	if len(in) < 2 || len(target) != len(in)-1 {
		c.fail("an input of rank %d does not go with a target of rank %d", len(in), len(target))
		return
	}
	c.equal("the sizes of the batch", in[0], target[0])
	for i := 2; i < len(in); i++ {
		c.equal("the sizes of input and target", in[i], target[i-1])
	}
	c.vector(2)
	if w := c.dims(2); len(w) == 1 && c.has(2) {
		c.equal("the numbers of classes", in[1], w[0])
	}
}
