package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

func inferDepthSpace(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Tensor(t, c.freshDims(0, 4)...))
		return
	}
	b := sym.Const(c.o.AttrInt("blocksize", 1))
	if len(in) != 4 || b.Min() < 1 {
		c.fail("rank %d, block size %v", len(in), b)
		return
	}
	if c.o.Kind == "onnx::DepthToSpace" {
		in[1], in[2], in[3] = in[1].FloorDiv(b.Mul(b)), in[2].Mul(b), in[3].Mul(b)
	} else {
		in[1], in[2], in[3] = in[1].Mul(b).Mul(b), in[2].FloorDiv(b), in[3].FloorDiv(b)
	}
	c.out(0, ssa.Tensor(t, in...))
}

func inferCenterCropPad(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(t))
		return
	}
	axes := c.o.AttrInts("axes")
	if _, ok := c.o.Attr("axes"); !ok {
		for i := range in {
			axes = append(axes, int64(i))
		}
	}
	shape, ok := c.syms(1)
	for i, a := range axes {
		k := c.axis(a, len(in))
		if c.err != nil {
			return
		}
		if ok && i < len(shape) {
			in[k] = shape[i]
		} else {
			in[k] = c.fresh(0, k, len(in))
		}
	}
	c.out(0, ssa.Tensor(t, in...))
}

func inferUnique(c *infer) {
	in, t := c.dims(0), c.in(0).DType
	a, has := c.o.Attr("axis")
	n := c.fresh(1, 0, 1)
	if len(c.o.Results) < 2 {
		n = c.m.FreshSymbol("u", 0)
	}
	whole := sym.Expr{}
	switch {
	case !has:
		c.out(0, ssa.Tensor(t, n))
		if whole = c.fresh(2, 0, 1); in != nil {
			whole = sym.Product(in...)
		}
	case in == nil:
		c.out(0, ssa.Unranked(t))
		whole = c.fresh(2, 0, 1)
	default:
		k := c.axis(a.Int(), len(in))
		if c.err != nil {
			return
		}
		whole = in[k]
		in[k] = n
		c.out(0, ssa.Tensor(t, in...))
	}
	c.out(1, ssa.Tensor(tensor.Int64, n))
	c.out(2, ssa.Tensor(tensor.Int64, whole))
	c.out(3, ssa.Tensor(tensor.Int64, n))
}
