package aten

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// convolution holds the convolutions (ATen/native/Convolution.cpp).
var convolution = Defs{
	"aten::conv1d":                   {Doc: "1-D convolution (cross-correlation)", Gradient: "input: convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0], groups, [True, True, False])[0]; weight: convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0], groups, [True, True, False])[1]; bias: sum(grad, [0, 2])", Nature: Multilinear, Batching: GroupedConvolution, Autocast: LowerPrecision, Lower: lowerConv},
	"aten::conv2d":                   {Doc: "2-D convolution", Gradient: "input: convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0, 0], groups, [True, True, False])[0]; weight: convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0, 0], groups, [True, True, False])[1]; bias: sum(grad, [0, 2, 3])", Nature: Multilinear, Batching: GroupedConvolution, Autocast: LowerPrecision, Lower: lowerConv},
	"aten::conv3d":                   {Doc: "3-D convolution", Gradient: "input: convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0, 0, 0], groups, [True, True, False])[0]; weight: convolution_backward(grad, input, weight, None, stride, padding, dilation, False, [0, 0, 0], groups, [True, True, False])[1]; bias: sum(grad, [0, 2, 3, 4])", Nature: Multilinear, Batching: GroupedConvolution, Autocast: LowerPrecision, Lower: lowerConv},
	"aten::conv_transpose1d":         {Doc: "adjoint of 1-D convolution", Nature: Multilinear, Batching: BatchesSamples, Autocast: LowerPrecision, Lower: lowerConvTranspose},
	"aten::conv_transpose2d":         {Doc: "adjoint of 2-D convolution", Nature: Multilinear, Batching: BatchesSamples, Autocast: LowerPrecision, Lower: lowerConvTranspose},
	"aten::conv_transpose3d":         {Doc: "adjoint of 3-D convolution", Nature: Multilinear, Batching: BatchesSamples, Autocast: LowerPrecision, Lower: lowerConvTranspose},
	"aten::convolution":              {Doc: "convolution of any rank, or its adjoint", Gradient: "input: convolution_backward(grad, input, weight, None, stride, padding, dilation, transposed, output_padding, groups, [True, True, False])[0]; weight: convolution_backward(grad, input, weight, None, stride, padding, dilation, transposed, output_padding, groups, [True, True, False])[1]", Nature: Multilinear, Autocast: LowerPrecision, Lower: lowerConvolution},
	"aten::_convolution":             {Doc: "convolution of any rank, or its adjoint", Gradient: "input: convolution_backward(grad, input, weight, None, stride, padding, dilation, transposed, output_padding, groups, [True, True, False])[0]; weight: convolution_backward(grad, input, weight, None, stride, padding, dilation, transposed, output_padding, groups, [True, True, False])[1]", Nature: Multilinear, Autocast: LowerPrecision, Lower: lowerConvolution},
	"aten::convolution_overrideable": {Doc: "convolution of any rank, or its adjoint", Lower: lowerConvolution},
	"aten::_convolution_mode":        {Doc: "convolution with padding 'same' or 'valid'", Lower: lowerConv},
	"aten::thnn_conv2d":              {Doc: "2-D convolution", Lower: lowerConvSelf},
	"aten::slow_conv3d":              {Doc: "3-D convolution", Lower: lowerConvSelf},
	"aten::slow_conv_dilated2d":      {Doc: "2-D convolution", Lower: lowerConvSelf},
	"aten::slow_conv_dilated3d":      {Doc: "3-D convolution", Lower: lowerConvSelf},
	"aten::mkldnn_convolution":       {Doc: "convolution", Lower: lowerConvSelf},
	"aten::cudnn_convolution":        {Doc: "convolution", Lower: lowerConvSelf},
	"aten::_conv_depthwise2d":        {Doc: "2-D convolution of each channel", Lower: lowerConvDepthwise},
	"aten::conv_depthwise3d":         {Doc: "3-D convolution of each channel", Lower: lowerConvDepthwise},
	"aten::slow_conv_transpose2d":    {Doc: "adjoint of 2-D convolution", Lower: lowerConvTransposeSelf},
	"aten::slow_conv_transpose3d":    {Doc: "adjoint of 3-D convolution", Lower: lowerConvTransposeSelf},
	"aten::conv_tbc":                 {Doc: "1-D convolution of (time, batch, channel) input", Autocast: LowerPrecision, Lower: lowerConvTBC},
	"aten::cudnn_convolution_relu":   {Doc: "relu of a convolution", Lower: lowerConvRelu},
}

// convArgs are the arguments of a convolution in ONNX's terms.
type convArgs struct {
	x, w, bias                *ssa.Value
	stride, dilation          []int64
	padBegin, padEnd, outPads []int64
	before, after             []Size // padding that is known at run time only, in place of padBegin and padEnd, which are 0; nil for none
	groups                    Size   // known at run time only where the number of channels is
	transposed                bool
}

// convOf reads the arguments that all overloads share.
func convOf(l *Lowering, x, w *ssa.Value) convArgs {
	n := l.Rank(w) - 2
	if n < 1 {
		l.Fail("a convolution weight of rank %d", n+2)
	}
	c := convArgs{x: x, w: w, bias: l.TensorOr("bias"), groups: l.sizeArgOr("groups", 1)}
	list := func(name string, def int64) []int64 {
		if v := l.intsN(name, n); len(v) == n {
			return v
		} else if len(v) != 0 {
			l.Fail("argument %q must have %d entries", name, n)
		}
		return repeatInt(def, n)
	}
	c.stride, c.dilation = list("stride", 1), list("dilation", 1)
	c.outPads = list("output_padding", 0)
	if l.HasArg("padding") && !l.IsConst("padding") {
		ss := l.sizes("padding")
		if len(ss) == 1 {
			ss = slices.Repeat(ss, n)
		}
		if len(ss) != n {
			l.Fail("argument %q must have %d entries", "padding", n)
		}
		return c.padded(ss, ss)
	}
	if l.HasArg("padding") && l.Literal("padding").Kind == ssa.StrLit {
		begin, end := repeatSize(ConstSize(0), int64(n)), repeatSize(ConstSize(0), int64(n))
		switch mode := l.Str("padding"); mode {
		case "valid":
		case "same":
			for i := range n {
				if c.stride[i] != 1 {
					l.Fail("padding 'same' with a stride")
				}
				total := l.mulSize(ConstSize(c.dilation[i]), l.subSize(l.sizeOf(w, 2+i), ConstSize(1)))
				begin[i] = l.divSize(total, ConstSize(2))
				end[i] = l.subSize(total, begin[i])
			}
		default:
			l.Fail("unknown padding %q", mode)
		}
		return c.padded(begin, end)
	}
	c.padBegin = list("padding", 0)
	c.padEnd = c.padBegin
	return c
}

// padded is c with a padding of sizes of which some may be known at run time only.
func (c convArgs) padded(begin, end []Size) convArgs {
	n := len(begin)
	c.padBegin, c.padEnd = make([]int64, n), make([]int64, n)
	for i := range n {
		b, ok := begin[i].Int()
		e, ok2 := end[i].Int()
		if !ok || !ok2 {
			c.padBegin, c.padEnd = repeatInt(0, n), repeatInt(0, n)
			c.before, c.after = begin, end
			return c
		}
		c.padBegin[i], c.padEnd[i] = b, e
	}
	return c
}

// padAtRun gives x (N, C, d1, ..., dn) the padding that is known at run time only.
func (l *Lowering) padAtRun(x *ssa.Value, c convArgs) *ssa.Value {
	none := repeatSize(ConstSize(0), 2)
	pads := slices.Concat(none, c.before, none, c.after)
	return l.Pad(x, l.sizeTensor(pads), l.Like(x, 0), nil)
}

// cutAtRun takes the padding that is known at run time only from the result of a transposed convolution.
func (l *Lowering) cutAtRun(y *ssa.Value, c convArgs) *ssa.Value {
	n := len(c.before)
	end := make([]Size, n)
	for i := range n {
		end[i] = l.subSize(l.sizeOf(y, 2+i), c.after[i])
	}
	return l.Slice(y, l.sizeTensor(c.before), l.sizeTensor(end), l.i64(axesFrom(2, n)...), nil)
}

func lowerConv(l *Lowering) *ssa.Value {
	return l.conv(convOf(l, l.Tensor("input"), l.Tensor("weight")))
}

func lowerConvSelf(l *Lowering) *ssa.Value {
	return l.conv(convOf(l, l.Tensor("self"), l.Tensor("weight")))
}

func lowerConvRelu(l *Lowering) *ssa.Value { return l.Relu(lowerConvSelf(l)) }

func lowerConvDepthwise(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	c := convOf(l, x, l.Tensor("weight"))
	c.groups = ConstSize(l.static(x, l.Rank(x)-l.Rank(c.w)+1))
	return l.conv(c)
}

func lowerConvTranspose(l *Lowering) *ssa.Value {
	c := convOf(l, l.Tensor("input"), l.Tensor("weight"))
	c.transposed = true
	return l.conv(c)
}

func lowerConvTransposeSelf(l *Lowering) *ssa.Value {
	c := convOf(l, l.Tensor("self"), l.Tensor("weight"))
	c.transposed = true
	return l.conv(c)
}

func lowerConvolution(l *Lowering) *ssa.Value {
	c := convOf(l, l.Tensor("input"), l.Tensor("weight"))
	c.transposed = l.Bool("transposed")
	return l.conv(c)
}

// conv_tbc: input (T, B, Cin), weight (K, Cin, Cout).
func lowerConvTBC(l *Lowering) *ssa.Value {
	p := []int64{l.Int("pad")}
	y := l.conv(convArgs{
		x: l.transpose(l.Tensor("self"), 1, 2, 0), w: l.transpose(l.Tensor("weight"), 2, 1, 0), bias: l.TensorOr("bias"),
		stride: []int64{1}, dilation: []int64{1}, padBegin: p, padEnd: p, outPads: []int64{0}, groups: ConstSize(1),
	})
	return l.transpose(y, 2, 0, 1)
}

func (l *Lowering) conv(c convArgs) *ssa.Value {
	n := len(c.stride)
	x, lone := l.batched(c.x, n+2)
	if c.before != nil {
		if c.transposed {
			inner := c
			inner.x, inner.before, inner.after = x, nil, nil
			return l.unbatched(l.cutAtRun(l.conv(inner), c), lone)
		}
		x = l.padAtRun(x, c)
	}
	d := l.DType(x)
	if d.IsComplex() {
		l.Fail("ONNX has no complex convolution")
	}
	l.checkConv(x, c)
	l.checkSteps(c)
	groups, known := c.groups.Int()
	if !known && !l.reducible(c) {
		l.Fail("groups and sizes of the kernel that are known at run time only")
	}
	if !known || !d.IsFloat() || d == tensor.Float64 && l.reducible(c) {
		return l.unbatched(l.convByProduct(x, c), lone)
	}
	attrs := []ssa.Attr{
		onnx.Dilations(c.dilation...),
		onnx.Group(groups),
		onnx.Pads(append(append([]int64{}, c.padBegin...), c.padEnd...)...),
		onnx.Strides(c.stride...),
	}
	if k, ok := kernelShape(c.w); ok {
		attrs = append(attrs, onnx.KernelShape(k...))
	}
	op := "Conv"
	if c.transposed {
		op = "ConvTranspose"
		c = c.smallOutputPadding()
		attrs[2] = onnx.Pads(append(append([]int64{}, c.padBegin...), c.padEnd...)...)
		for _, p := range c.outPads {
			if p != 0 {
				attrs = append(attrs, onnx.OutputPadding(c.outPads...))
				break
			}
		}
	}
	return l.unbatched(l.OpA(op, attrs, x, c.w, c.bias), lone)
}

// smallOutputPadding takes what it can of an output padding of a stride or more,
// which onnxruntime refuses, from the padding at the end: the sizes stay.
func (c convArgs) smallOutputPadding() convArgs {
	end, out := append([]int64{}, c.padEnd...), append([]int64{}, c.outPads...)
	for i := range out {
		if out[i] >= c.stride[i] {
			k := min(out[i], end[i])
			end[i], out[i] = end[i]-k, out[i]-k
		}
	}
	c.padEnd, c.outPads = end, out
	return c
}

// checkSteps refuses windows that PyTorch refuses.
func (l *Lowering) checkSteps(c convArgs) {
	for i := range c.stride {
		if c.padBegin[i] < 0 || c.stride[i] < 1 || c.dilation[i] < 1 {
			l.Fail("a convolution with negative padding or a stride or dilation below 1")
		}
	}
}

// checkConv refuses what PyTorch refuses, as far as it is known at export.
func (l *Lowering) checkConv(x *ssa.Value, c convArgs) {
	l.weighs(x, c.w)
	channels, ok := l.Shape(x)[1].Int()
	per, known := c.groups.Int()
	if !ok || !known {
		return
	}
	of := 1
	if c.transposed {
		of, per = 0, 1
	}
	if want, ok := l.Shape(c.w)[of].Int(); ok && channels != want*per {
		panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("the input has %d channels, the weight is for %d", channels, want*per), Hint: "correct the shape in --input"})
	}
	if c.transposed {
		return
	}
	for i := range c.stride {
		n, ok := l.Shape(x)[2+i].Int()
		k, known := l.Shape(c.w)[2+i].Int()
		if reach := c.dilation[i]*(k-1) + 1; ok && known && n+c.padBegin[i]+c.padEnd[i] < reach {
			panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("the input has size %d in dimension %d, less than the kernel's %d", n+c.padBegin[i]+c.padEnd[i], 2+i, reach), Hint: "give a larger size in --input"})
		}
	}
}

func kernelShape(w *ssa.Value) ([]int64, bool) {
	dims := w.Tensor().Dims[2:]
	k := make([]int64, len(dims))
	for i, e := range dims {
		n, ok := e.Int()
		if !ok {
			return nil, false
		}
		k[i] = n
	}
	return k, true
}

// reducible reports a kernel of known size, as convByProduct needs it.
func (l *Lowering) reducible(c convArgs) bool {
	_, ok := kernelShape(c.w)
	return ok && (!c.transposed || l.scatterReduces(scatterAdds))
}

// convByProduct lays out the windows and multiplies matrices: ONNX's Conv takes no integers and no number of groups that is
// computed, and no runtime at hand convolves float64.
func (l *Lowering) convByProduct(x *ssa.Value, c convArgs) *ssa.Value {
	d := l.DType(x)
	if d == tensor.Bool {
		l.Fail("convolution of bool")
	}
	n := len(c.stride)
	kernel := make([]int64, n)
	for i := range n {
		kernel[i] = l.static(c.w, 2+i)
	}
	N, G := l.sizeOf(x, 0), c.groups
	var y *ssa.Value
	if !c.transposed {
		counts := make([]Size, n)
		for i := range n {
			counts[i] = l.windowCount(l.sizeOf(x, 2+i), kernel[i], c.stride[i], c.dilation[i], c.padBegin[i], c.padEnd[i], false)
		}
		x = l.padSpatial(x, c.padBegin, c.padEnd, nil)
		cols := l.gatherWindows(x, counts, kernel, c.stride, c.dilation)
		inner := l.sizeProduct(append([]Size{l.sizeOf(c.w, 1)}, constSizes(kernel)...)...)
		cols = l.reshapeSizes(cols, N, G, inner, l.sizeProduct(counts...))
		w := l.reshapeSizes(c.w, G, l.divSize(l.sizeOf(c.w, 0), G), inner)
		y = l.intMatMul(w, cols)
		y = l.reshapeSizes(y, append([]Size{N, l.sizeOf(c.w, 0)}, counts...)...)
	} else {
		counts := l.sizesOf(x, 2, n+2)
		out, full := make([]Size, n), make([]Size, n)
		for i := range n {
			// one window for each place of the input
			reach := l.mulSize(l.subSize(counts[i], ConstSize(1)), ConstSize(c.stride[i]))
			out[i] = l.addSize(reach, ConstSize(c.dilation[i]*(kernel[i]-1)+1+c.outPads[i]-2*c.padBegin[i]))
			full[i] = l.addSize(out[i], ConstSize(2*c.padBegin[i]))
		}
		inC := l.divSize(l.sizeOf(c.w, 0), G)
		inner := l.sizeProduct(append([]Size{l.sizeOf(c.w, 1)}, constSizes(kernel)...)...)
		w := l.transpose(l.reshapeSizes(c.w, G, inC, inner), 0, 2, 1)
		cols := l.intMatMul(w, l.reshapeSizes(x, N, G, inC, l.sizeProduct(counts...)))
		outC := l.mulSize(G, l.sizeOf(c.w, 1))
		shape := append(append([]Size{N, outC}, constSizes(kernel)...), counts...)
		y = l.scatterWindows(l.reshapeSizes(cols, shape...), full, counts, kernel, c.stride, c.dilation)
		for i, p := range c.padBegin {
			if p > 0 {
				end := l.sizeTensor([]Size{l.addSize(out[i], ConstSize(p))})
				y = l.Slice(y, l.i64(p), end, l.i64(int64(2+i)), nil)
			}
		}
	}
	if c.bias != nil {
		y = l.Add(y, l.unsqueeze(c.bias, axesFrom(1, n)...))
	}
	return y
}

// axesFrom is from, from+1, ..., from+n-1.
func axesFrom(from, n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(from + i)
	}
	return out
}
