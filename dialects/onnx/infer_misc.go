package onnx

import (
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// inferWindow: as many elements as the operand says.
func inferWindow(c *infer) {
	n := c.fresh(0, 0, 1)
	if s, ok := c.syms(0); ok && len(s) == 1 {
		n = s[0]
	}
	c.out(0, ssa.Tensor(c.dtypeAttr("output_datatype", tensor.Float32), n))
}

// inferNonMax: a row of batch, class and box for each that is selected.
func inferNonMax(c *infer) { c.out(0, ssa.Tensor(tensor.Int64, c.fresh(0, 0, 2), sym.Const(3))) }

// inferMultinomial: a row of samples for each row.
func inferMultinomial(c *infer) {
	n := c.fresh(0, 0, 2)
	if d := c.dims(0); len(d) == 2 {
		n = d[0]
	}
	c.out(0, ssa.Tensor(c.dtypeAttr("dtype", tensor.Int32), n, sym.Const(c.o.AttrInt("sample_size", 1))))
}

// inferStringConcat: the operands broadcast together.
func inferStringConcat(c *infer) { c.out(0, ranked(tensor.String, c.broadcast(c.dims(0), c.dims(1)))) }

// inferStringSplit: one axis more, for the parts; their numbers are the second result.
func inferStringSplit(c *infer) {
	c.out(1, c.in(0).WithDType(tensor.Int64))
	in := c.dims(0)
	if in == nil {
		c.out(0, ssa.Unranked(tensor.String))
		return
	}
	c.out(0, ssa.Tensor(tensor.String, append(in, c.fresh(0, len(in), len(in)+1))...))
}

// inferStringNormalizer: stop words fall out of the last axis.
func inferStringNormalizer(c *infer) {
	in := c.dims(0)
	if in == nil {
		c.out(0, ssa.Unranked(tensor.String))
		return
	}
	if len(in) == 0 {
		c.fail("input of rank 0")
		return
	}
	in[len(in)-1] = c.fresh(0, len(in)-1, len(in))
	c.out(0, ssa.Tensor(tensor.String, in...))
}

// inferImage: height, width and channels.
func inferImage(c *infer) {
	n := sym.Const(3)
	if c.o.AttrStr("pixel_format", "RGB") == "Grayscale" {
		n = sym.Const(1)
	}
	c.out(0, ssa.Tensor(tensor.Uint8, c.fresh(0, 0, 3), c.fresh(0, 1, 3), n))
}

func inferMel(c *infer) {
	bins, freq := c.fresh(0, 1, 2), c.fresh(0, 0, 2)
	if s, ok := c.syms(0); ok && len(s) == 1 {
		bins = s[0]
	}
	if s, ok := c.syms(1); ok && len(s) == 1 {
		freq = s[0].FloorDiv(sym.Const(2)).Add(sym.Const(1))
	}
	c.out(0, ssa.Tensor(c.dtypeAttr("output_datatype", tensor.Float32), freq, bins))
}

func inferDFT(c *infer) {
	in, d := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(d))
		return
	}
	if len(in) < 2 {
		c.fail("input of rank %d", len(in))
		return
	}
	axis := int64(-2)
	if c.has(2) {
		a, ok := c.ints(2)
		if !ok || len(a) != 1 {
			out := c.freshDims(0, len(in))
			c.out(0, ssa.Tensor(d, out...))
			return
		}
		axis = a[0]
	}
	k := c.axis(axis, len(in))
	if c.err != nil {
		return
	}
	if c.has(1) {
		if s, ok := c.syms(1); ok && len(s) == 1 {
			in[k] = s[0]
		} else {
			in[k] = c.fresh(0, k, len(in))
		}
	}
	in[len(in)-1] = sym.Const(2)
	if c.o.AttrInt("onesided", 0) != 0 {
		if c.o.AttrInt("inverse", 0) != 0 {
			in[len(in)-1] = sym.Const(1)
			if !c.has(1) {
				in[k] = in[k].Sub(sym.Const(1)).Mul(sym.Const(2))
			}
		} else {
			in[k] = in[k].FloorDiv(sym.Const(2)).Add(sym.Const(1))
		}
	}
	c.out(0, ssa.Tensor(d, in...))
}

func inferSTFT(c *infer) {
	in, d := c.dims(0), c.in(0).DType
	out := c.freshDims(0, 4)
	out[3] = sym.Const(2)
	var frame *sym.Expr
	if s, ok := c.syms(3); ok && len(s) == 1 {
		frame = &s[0]
	} else if w := c.dims(2); !c.has(3) && len(w) == 1 {
		frame = &w[0]
	}
	if frame != nil {
		if out[2] = *frame; c.o.AttrInt("onesided", 1) != 0 {
			out[2] = frame.FloorDiv(sym.Const(2)).Add(sym.Const(1))
		}
	}
	if len(in) >= 2 {
		out[0] = in[0]
		if step, ok := c.syms(1); ok && len(step) == 1 && frame != nil && step[0].Min() >= 1 {
			out[1] = in[1].Sub(*frame).FloorDiv(step[0]).Add(sym.Const(1))
		}
	}
	c.out(0, ssa.Tensor(d, out...))
}

func inferLoss(c *infer) {
	d := c.in(0).DType
	if c.o.AttrStr("reduction", "mean") == "none" {
		c.out(0, ranked(d, c.dims(1)))
	} else {
		c.out(0, ssa.Tensor(d))
	}
	c.out(1, c.in(0))
}

func inferTfIdf(c *infer) {
	in := c.dims(0)
	if in == nil {
		c.out(0, ssa.Unranked(tensor.Float32))
		return
	}
	n := int64(0)
	if ix := c.o.AttrInts("ngram_indexes"); len(ix) > 0 {
		n = slices.Max(ix) + 1
	}
	out := []sym.Expr{sym.Const(n)}
	if len(in) == 2 {
		out = []sym.Expr{in[0], sym.Const(n)}
	}
	c.out(0, ssa.Tensor(tensor.Float32, out...))
}
