package onnx

import (
	"math"
	"slices"

	"github.com/aton-project/aton/internal/formula"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// inferGlobalPool: one element for each channel.
func inferGlobalPool(c *infer) {
	in := c.dims(0)
	for i := 2; i < len(in); i++ {
		in[i] = sym.Const(1)
	}
	c.out(0, ranked(c.in(0).DType, in))
}

// inferBatchNorm: the statistics are results of training only.
func inferBatchNorm(c *infer) {
	if len(c.o.Results) > 1 && c.o.AttrInt("training_mode", 0) == 0 {
		c.fail("statistics are results in training mode only")
	}
	c.out(0, c.in(0))
	c.out(1, c.in(3))
	c.out(2, c.in(4))
}

// window is the geometry of a convolution or pool along one axis.
type window struct {
	kernel, stride, dilation sym.Expr
	before, after            sym.Expr
	auto                     string
}

func at(v []int64, i int, def int64) sym.Expr {
	if i < len(v) {
		return sym.Const(v[i])
	}
	return sym.Const(def)
}

// windows reads kernel_shape, strides, dilations, pads and auto_pad.
func (c *infer) windows(kernel []sym.Expr) []window {
	strides, dilations, pads := c.o.AttrInts("strides"), c.o.AttrInts("dilations"), c.o.AttrInts("pads")
	n := len(kernel)
	if strides != nil && len(strides) != n || dilations != nil && len(dilations) != n || pads != nil && len(pads) != 2*n {
		c.fail("strides, dilations or pads do not fit %d axes", n)
	}
	out := make([]window, n)
	for i := range out {
		out[i] = window{kernel[i], at(strides, i, 1), at(dilations, i, 1), at(pads, i, 0), at(pads, n+i, 0), c.o.AttrStr("auto_pad", "NOTSET")}
		if out[i].stride.Min() < 1 || out[i].dilation.Min() < 1 {
			c.fail("strides and dilations must be positive")
		}
	}
	return out
}

// extent is the number of elements that the dilated kernel covers.
func (w window) extent() sym.Expr {
	return w.kernel.Sub(sym.Const(1)).Mul(w.dilation).Add(sym.Const(1))
}

// size is the number of windows over n elements.
func (w window) size(n sym.Expr, ceil bool) sym.Expr {
	one := sym.Const(1)
	switch w.auto {
	case "SAME_UPPER", "SAME_LOWER":
		return n.Add(w.stride).Sub(one).FloorDiv(w.stride)
	case "VALID":
		w.before, w.after = sym.Const(0), sym.Const(0)
	}
	// The known numbers first: they cost nothing.
	margin := w.before.Add(w.after).Sub(w.extent())
	if w.stride.Is(1) {
		return n.Add(margin.Add(one))
	}
	span := n.Add(margin)
	if !ceil {
		return span.FloorDiv(w.stride).Add(one)
	}
	up := span.Add(w.stride).Sub(one).FloorDiv(w.stride).Add(one)
	// A window must not start in the padding after the input.
	return up.Minimum(n.Add(w.before).Add(w.stride).Sub(one).FloorDiv(w.stride))
}

func (c *infer) kernelShape(fallback []sym.Expr) []sym.Expr {
	if k, ok := c.o.Attr("kernel_shape"); ok {
		v, _ := k.IntList()
		for _, n := range v {
			if n < 1 || n > math.MaxInt32 {
				c.fail("kernel_shape %v", v)
			}
		}
		return ssa.Sizes(v)
	}
	if len(fallback) < 2 {
		return nil
	}
	return fallback[2:]
}

func inferConv(c *infer) {
	d, wi := c.in(0).DType, 1
	switch c.o.Kind {
	case "onnx::ConvInteger":
		d = tensor.Int32
	case "onnx::QLinearConv":
		d, wi = c.in(7).DType, 3
	}
	in, w := c.dims(0), c.dims(wi)
	if in == nil {
		if w != nil {
			c.out(0, ssa.Tensor(d, c.freshDims(0, len(w))...))
		} else {
			c.out(0, ssa.Unranked(d))
		}
		return
	}
	if len(in) < 2 || w != nil && len(w) != len(in) {
		c.fail("input of rank %d, weight of rank %d", len(in), len(w))
		return
	}
	out := c.freshDims(0, len(in))
	out[0] = in[0]
	if w != nil {
		out[1] = w[0]
		group := c.o.AttrInt("group", 1)
		if a, ok := in[1].Int(); ok {
			if b, ok := w[1].Int(); ok && a != b*group {
				c.fail("%d channels do not fit a weight for %d in %d groups", a, b, group)
				return
			}
		}
		c.same(in[1], w[1].Mul(sym.Const(group)))
	}
	kernel := c.kernelShape(w)
	if kernel != nil && len(kernel) != len(in)-2 {
		c.fail("kernel_shape does not fit rank %d", len(in))
		return
	}
	for i, win := range c.windows(kernel) {
		out[2+i] = win.size(in[2+i], false)
		if n, ok := out[2+i].Int(); ok && n < 0 {
			c.fail("the kernel is larger than the padded input")
		}
	}
	c.out(0, ssa.Tensor(d, out...))
}

func inferConvTranspose(c *infer) {
	in, w, d := c.dims(0), c.dims(1), c.in(0).DType
	if in == nil {
		if w != nil {
			c.out(0, ssa.Tensor(d, c.freshDims(0, len(w))...))
		} else {
			c.out(0, ssa.Unranked(d))
		}
		return
	}
	if len(in) < 2 || w != nil && len(w) != len(in) {
		c.fail("input of rank %d, weight of rank %d", len(in), len(w))
		return
	}
	out := c.freshDims(0, len(in))
	out[0] = in[0]
	if w != nil {
		out[1] = w[1].Mul(sym.Const(c.o.AttrInt("group", 1)))
		c.same(in[1], w[0])
	}
	kernel := c.kernelShape(w)
	extra, shape := c.o.AttrInts("output_padding"), c.o.AttrInts("output_shape")
	for i, win := range c.windows(kernel) {
		if i+2 >= len(in) {
			c.fail("kernel_shape does not fit rank %d", len(in))
			return
		}
		if i < len(shape) {
			out[2+i] = sym.Const(shape[len(shape)-len(kernel)+i])
			continue
		}
		one := sym.Const(1)
		full := win.stride.Mul(in[2+i].Sub(one)).Add(at(extra, i, 0)).Add(win.extent())
		switch win.auto {
		case "SAME_UPPER", "SAME_LOWER":
			out[2+i] = in[2+i].Mul(win.stride)
		case "VALID":
			out[2+i] = full
		default:
			out[2+i] = full.Sub(win.before).Sub(win.after)
		}
	}
	c.out(0, ssa.Tensor(d, out...))
}

func inferPool(c *infer) {
	in, d := c.dims(0), c.in(0).DType
	kernel := c.kernelShape(nil)
	if in == nil {
		in = c.freshDims(0, len(kernel)+2)
		c.out(0, ssa.Tensor(d, in...))
		c.out(1, ssa.Tensor(tensor.Int64, in...))
		return
	}
	if len(kernel) != len(in)-2 {
		c.fail("kernel_shape of %d axes does not fit rank %d", len(kernel), len(in))
		return
	}
	for i, win := range c.windows(kernel) {
		in[2+i] = win.size(in[2+i], c.o.AttrInt("ceil_mode", 0) != 0)
		if n, ok := in[2+i].Int(); ok && n < 0 {
			c.fail("the kernel is larger than the padded input")
		}
	}
	c.out(0, ssa.Tensor(d, in...))
	c.out(1, ssa.Tensor(tensor.Int64, in...))
}

func inferMaxUnpool(c *infer) {
	in, d := c.dims(0), c.in(0).DType
	if s, ok := c.syms(2); ok {
		c.out(0, ssa.Tensor(d, s...))
		return
	}
	kernel := c.kernelShape(nil)
	if in == nil || c.has(2) {
		c.out(0, ssa.Tensor(d, c.freshDims(0, len(kernel)+2)...))
		return
	}
	if len(kernel) != len(in)-2 {
		c.fail("kernel_shape of %d axes does not fit rank %d", len(kernel), len(in))
		return
	}
	for i, win := range c.windows(kernel) {
		in[2+i] = in[2+i].Sub(sym.Const(1)).Mul(win.stride).Add(win.kernel).Sub(win.before).Sub(win.after)
	}
	c.out(0, ssa.Tensor(d, in...))
}

func inferLayerNorm(c *infer) {
	c.out(0, c.in(0))
	in := c.dims(0)
	d := c.dtypeAttr("stash_type", tensor.Float32)
	if in != nil {
		axis := c.axis(c.o.AttrInt("axis", -1), len(in))
		for i := axis; i < len(in); i++ {
			in[i] = sym.Const(1)
		}
	}
	c.out(1, ranked(d, in))
	c.out(2, ranked(d, in))
}

func inferRNN(c *infer) {
	in, r, d := c.dims(0), c.dims(2), c.in(0).DType
	directions := sym.Const(1)
	if c.o.AttrStr("direction", "forward") == "bidirectional" {
		directions = sym.Const(2)
	}
	hidden := c.fresh(0, 3, 4)
	if h := c.o.AttrInt("hidden_size", 0); h > 0 {
		hidden = sym.Const(h)
	} else if len(r) == 3 {
		hidden = r[2]
	}
	if in == nil {
		in = c.freshDims(0, 4)[:3]
	}
	if len(in) != 3 {
		c.fail("input of rank %d", len(in))
		return
	}
	if w := c.dims(1); len(w) == 3 {
		c.same(in[2], w[2])
	}
	state := ssa.Tensor(d, directions, in[1], hidden)
	y := ssa.Tensor(d, in[0], directions, in[1], hidden)
	if c.o.AttrInt("layout", 0) != 0 {
		state = ssa.Tensor(d, in[0], directions, hidden)
		y = ssa.Tensor(d, in[0], in[1], directions, hidden)
	}
	c.out(0, y)
	c.out(1, state)
	c.out(2, state)
}

func inferResize(c *infer) {
	in, d := c.dims(0), c.in(0).DType
	if in == nil {
		c.out(0, ssa.Unranked(d))
		return
	}
	scalesAt := 2
	if c.o.Kind == "onnx::Upsample" {
		scalesAt = 1
	}
	axes := c.o.AttrInts("axes")
	if _, ok := c.o.Attr("axes"); !ok {
		for i := range in {
			axes = append(axes, int64(i))
		}
	}
	out := slices.Clone(in)
	if c.has(3) {
		sizes, ok := c.syms(3)
		if ok && len(sizes) != len(axes) {
			c.fail("%d sizes for %d axes", len(sizes), len(axes))
			return
		}
		policy := c.o.AttrStr("keep_aspect_ratio_policy", "stretch")
		var want, have []int64
		for i, a := range axes {
			k := c.axis(a, len(in))
			if c.err != nil {
				return
			}
			if out[k] = c.fresh(0, k, len(in)); ok && policy == "stretch" {
				out[k] = sizes[i]
			} else if ok {
				w, ok1 := sizes[i].Int()
				h, ok2 := in[k].Int()
				if ok = ok1 && ok2; ok {
					want, have = append(want, w), append(have, h)
				}
			}
		}
		if ok && policy != "stretch" {
			for i, n := range formula.KeepAspect(have, want, policy) {
				out[c.axis(axes[i], len(in))] = sym.Const(n)
			}
		}
		c.out(0, ssa.Tensor(d, out...))
		return
	}
	var scales []float64
	if t := ConstOf(c.o.Operand(scalesAt)); t != nil && t.HasData() {
		scales = t.Float64s()
	}
	for i, a := range axes {
		k := c.axis(a, len(in))
		if c.err != nil {
			return
		}
		if i >= len(scales) || len(scales) != len(axes) {
			out[k] = c.fresh(0, k, len(in))
			continue
		}
		if n, ok := in[k].Int(); ok {
			out[k] = sym.Const(formula.ScaledSize(n, scales[i]))
		} else if s := scales[i]; s == float64(int64(s)) {
			out[k] = in[k].Mul(sym.Const(int64(s)))
		} else if r := 1 / s; r == float64(int64(r)) {
			out[k] = in[k].FloorDiv(sym.Const(int64(r)))
		} else {
			out[k] = c.fresh(0, k, len(in))
		}
	}
	c.out(0, ssa.Tensor(d, out...))
}

func inferGridSample(c *infer) {
	in, grid, d := c.dims(0), c.dims(1), c.in(0).DType
	if grid == nil && in == nil {
		c.out(0, ssa.Unranked(d))
		return
	}
	if in != nil && grid != nil && len(in) != len(grid) || len(grid)+len(in) < 3 {
		c.fail("input of rank %d, grid of rank %d", len(in), len(grid))
		return
	}
	out := c.freshDims(0, max(len(in), len(grid)))
	if in != nil {
		out[0], out[1] = in[0], in[1]
	}
	if grid != nil {
		copy(out[2:], grid[1:len(grid)-1])
	}
	c.out(0, ssa.Tensor(d, out...))
}

func inferAffineGrid(c *infer) {
	d := c.in(0).DType
	size, ok := c.syms(1)
	if !ok {
		if n := c.dims(1); len(n) == 1 {
			if k, ok := n[0].Int(); ok && (k == 4 || k == 5) {
				out := c.freshDims(0, int(k))
				out[k-1] = sym.Const(k - 2)
				c.out(0, ssa.Tensor(d, out...))
				return
			}
		}
		c.out(0, ssa.Unranked(d))
		return
	}
	if len(size) != 4 && len(size) != 5 {
		c.fail("size has %d elements", len(size))
		return
	}
	out := append([]sym.Expr{size[0]}, size[2:]...)
	c.out(0, ssa.Tensor(d, append(out, sym.Const(int64(len(size)-2)))...))
}

func inferRoi(c *infer) {
	in, rois, d := c.dims(0), c.dims(1), c.in(0).DType
	out := c.freshDims(0, 4)
	if len(rois) > 0 {
		out[0] = rois[0]
	}
	if len(in) > 1 {
		out[1] = in[1]
	}
	if c.o.Kind == "onnx::RoiAlign" {
		out[2], out[3] = sym.Const(c.o.AttrInt("output_height", 1)), sym.Const(c.o.AttrInt("output_width", 1))
	} else if s := c.o.AttrInts("pooled_shape"); len(s) == 2 {
		out[2], out[3] = sym.Const(s[0]), sym.Const(s[1])
	}
	c.out(0, ssa.Tensor(d, out...))
}

func inferCol2Im(c *infer) {
	in, d := c.dims(0), c.in(0).DType
	image, ok := c.syms(1)
	if !ok {
		if n := c.dims(1); len(n) == 1 {
			if k, ok := n[0].Int(); ok && k >= 0 && k < 16 {
				c.out(0, ssa.Tensor(d, c.freshDims(0, int(k)+2)...))
				return
			}
		}
		c.out(0, ssa.Unranked(d))
		return
	}
	out := c.freshDims(0, len(image)+2)
	copy(out[2:], image)
	if len(in) == 3 {
		out[0] = in[0]
		if block, ok := c.syms(2); ok {
			out[1] = in[1].FloorDiv(sym.Product(block...))
		}
	}
	c.out(0, ssa.Tensor(d, out...))
}

func inferAttention(c *infer) {
	q, k, v, d := c.dims(0), c.dims(1), c.dims(2), c.in(0).DType
	if q == nil || k == nil || v == nil {
		c.out(0, c.in(0))
		for i := 1; i < 4; i++ {
			c.out(i, ssa.Tensor(d, c.freshDims(i, 4)...))
		}
		return
	}
	qh, kh := sym.Const(c.o.AttrInt("q_num_heads", 1)), sym.Const(c.o.AttrInt("kv_num_heads", 1))
	flat := len(q) == 3
	if len(q) != len(k) || len(k) != len(v) || !flat && len(q) != 4 {
		c.fail("Q, K and V of rank %d, %d and %d", len(q), len(k), len(v))
		return
	}
	if flat {
		for _, name := range [...]string{"q_num_heads", "kv_num_heads"} {
			if c.o.AttrInt(name, 0) == 0 {
				c.fail("operands of rank 3 need the attribute %s", name)
				return
			}
		}
		split := func(x []sym.Expr, heads sym.Expr) []sym.Expr {
			return []sym.Expr{x[0], heads, x[1], x[2].FloorDiv(heads)}
		}
		q, k, v = split(q, qh), split(k, kh), split(v, kh)
	}
	total := k[2]
	if past := c.dims(4); len(past) == 4 {
		total = past[2].Add(k[2])
	} else if c.has(4) {
		total = c.fresh(1, 2, 4)
	}
	if flat {
		c.out(0, ssa.Tensor(d, q[0], q[2], q[1].Mul(v[3])))
	} else {
		c.out(0, ssa.Tensor(d, q[0], q[1], q[2], v[3]))
	}
	c.out(1, ssa.Tensor(c.in(1).DType, k[0], k[1], total, k[3]))
	c.out(2, ssa.Tensor(c.in(2).DType, v[0], v[1], total, v[3]))
	c.out(3, ssa.Tensor(d, q[0], q[1], q[2], total))
}

func inferLinearAttention(c *infer) {
	q, k, v := c.dims(0), c.dims(1), c.dims(2)
	sd := c.in(3).DType
	if !c.has(3) {
		sd = c.in(0).DType
	}
	qh, kh := sym.Const(c.o.AttrInt("q_num_heads", 1)), sym.Const(c.o.AttrInt("kv_num_heads", 1))
	if len(q) != 3 || len(k) != 3 || len(v) != 3 || qh.Min() < 1 || kh.Min() < 1 {
		c.out(0, ssa.Tensor(c.in(0).DType, c.freshDims(0, 3)...))
		c.out(1, ssa.Tensor(sd, c.freshDims(1, 4)...))
		return
	}
	dv := v[2].FloorDiv(kh)
	c.out(0, ssa.Tensor(c.in(0).DType, q[0], q[1], qh.Mul(dv)))
	c.out(1, ssa.Tensor(sd, q[0], kh, k[2].FloorDiv(kh), dv))
}

func inferCausalConv(c *infer) {
	in, w, d := c.dims(0), c.dims(1), c.in(0).DType
	c.out(0, c.in(0))
	state := c.freshDims(1, 3)
	if len(in) == 3 {
		state[0], state[1] = in[0], in[1]
	}
	if len(w) == 3 {
		state[2] = w[2].Sub(sym.Const(1))
	}
	c.out(1, ssa.Tensor(d, state...))
}
