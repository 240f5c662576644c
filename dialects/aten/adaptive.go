package aten

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// adaptive holds the pooling layers that are given their output size
// (ATen/native/AdaptivePooling.h): bin i of n covers [floor(i*in/n), ceil((i+1)*in/n)).
var adaptive = Defs{
	"aten::adaptive_avg_pool1d":  {Doc: "means of equal bins", Nature: Samples, Grid: RoundsOnce, Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.adaptiveAvg(1) }},
	"aten::adaptive_avg_pool2d":  {Doc: "means of equal bins", Gradient: "self: _adaptive_avg_pool2d_backward(grad, self)", Nature: Samples, Grid: RoundsOnce, Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.adaptiveAvg(2) }},
	"aten::adaptive_avg_pool3d":  {Doc: "means of equal bins", Gradient: "self: _adaptive_avg_pool3d_backward(grad, self)", Nature: Samples, Autocast: Float32OnCPU, Grid: RoundsOnce, Lower: func(l *Lowering) *ssa.Value { return l.adaptiveAvg(3) }},
	"aten::_adaptive_avg_pool2d": {Doc: "means of equal bins", Lower: func(l *Lowering) *ssa.Value { return l.adaptiveAvg(2) }},
	"aten::_adaptive_avg_pool3d": {Doc: "means of equal bins", Lower: func(l *Lowering) *ssa.Value { return l.adaptiveAvg(3) }},
	"aten::adaptive_max_pool1d":  {Doc: "maxima of equal bins and their places", Nature: Samples, LowerN: func(l *Lowering) []*ssa.Value { return l.adaptiveMax(1) }},
	"aten::adaptive_max_pool2d":  {Doc: "maxima of equal bins and their places", Gradient: "self: adaptive_max_pool2d_backward(grad, self, result1)", Nature: Samples, LowerN: func(l *Lowering) []*ssa.Value { return l.adaptiveMax(2) }},
	"aten::adaptive_max_pool3d":  {Doc: "maxima of equal bins and their places", Gradient: "self: adaptive_max_pool3d_backward(grad, self, result1)", Nature: Samples, Autocast: Float32OnCPU, LowerN: func(l *Lowering) []*ssa.Value { return l.adaptiveMax(3) }},
}

// outputSize reads output_size, one entry for each of n axes.
func (l *Lowering) outputSize(n int) []Size {
	s := l.sizes("output_size")
	if len(s) == 1 && n > 1 {
		for len(s) < n {
			s = append(s, s[0])
		}
	}
	if len(s) != n {
		l.Fail("output_size must have %d entries", n)
	}
	return s
}

// evenKernel gives the window sizes if every size is known and divides.
func (l *Lowering) evenKernel(x *ssa.Value, out []Size) ([]int64, bool) {
	kernel := make([]int64, len(out))
	for i, s := range out {
		n, ok := s.Int()
		in, ok2 := l.Shape(x)[2+i].Int()
		if !ok || !ok2 || n < 1 || in < 1 || in%n != 0 {
			return nil, false
		}
		kernel[i] = in / n
	}
	return kernel, true
}

// bins gives the starts and the ends (exclusive) of the bins along an axis.
func (l *Lowering) bins(in, out Size) (start, end *ssa.Value) {
	i := l.countTo(out)
	n, size := l.sizeValue(out), l.sizeValue(in)
	one := l.scalarInt(tensor.Int64, 1)
	start = l.Div(l.Mul(i, size), n)
	next := l.Mul(l.Add(i, one), size)
	end = l.Div(l.Add(next, l.Sub(n, one)), n)
	return start, end
}

func allSizes(s []Size, v int64) bool {
	for _, e := range s {
		if n, ok := e.Int(); !ok || n != v {
			return false
		}
	}
	return true
}

func (l *Lowering) adaptiveAvg(n int) *ssa.Value {
	x, lone := l.batched(l.Tensor("self"), n+2)
	out := l.outputSize(n)
	d := l.DType(x)
	if !d.IsFloat() {
		l.Fail("adaptive average pooling of %v", d)
	}
	if allSizes(out, 1) {
		if d == tensor.Float64 { // no runtime pools it
			return l.unbatched(l.reduce("ReduceMean", x, axesFrom(2, n), true), lone)
		}
		return l.unbatched(l.GlobalAveragePool(x), lone)
	}
	if k, ok := l.evenKernel(x, out); ok && d != tensor.Float64 {
		return l.unbatched(l.AveragePool(x, k, onnx.Strides(k...)), lone)
	}
	if l.noSum(x, x) {
		shape := append(l.sizesOf(x, 0, 2), out...)
		return l.unbatched(l.fill(l.sizeTensor(shape), d, ssa.Int(0)), lone)
	}
	l.assume("adaptive average pooling meets no infinity", "windows of different sizes are a product with a matrix, in which an infinity times 0 is NaN")
	wide := l.compute(x)
	wd := l.DType(wide)
	for i := range n {
		in := l.sizeOf(wide, 2+i)
		if out[i].Known && in.Expr.Equal(out[i].Expr) {
			continue
		}
		wide = l.alongAxis(wide, l.binMatrix(in, out[i], wd), 2+i)
	}
	return l.unbatched(l.Cast(wide, d), lone)
}

// binMatrix has 1/length in each bin: a mean is a product with it, of shape (out, in).
func (l *Lowering) binMatrix(in, out Size, d tensor.DType) *ssa.Value {
	start, end := l.bins(in, out)
	at := l.unsqueeze(l.countTo(in), 0)
	inside := l.And(l.Less(at, l.unsqueeze(end, 1)), l.Not(l.Less(at, l.unsqueeze(start, 1))))
	length := l.unsqueeze(l.Sub(end, start), 1)
	return l.Div(l.Cast(inside, d), l.Cast(length, d))
}

// alongAxis multiplies x along an axis with the matrix m of shape (out, in).
func (l *Lowering) alongAxis(x, m *ssa.Value, axis int) *ssa.Value {
	r := l.Rank(x)
	if axis == r-1 {
		return l.MatMul(x, l.transpose(m, 1, 0))
	}
	if axis == r-2 {
		return l.MatMul(m, x)
	}
	shape := l.sizesOf(x, 0, r)
	flat := l.reshapeSizes(x, append(append([]Size{}, shape[:axis+1]...), l.sizeProduct(shape[axis+1:]...))...)
	y := l.MatMul(m, flat)
	shape[axis] = l.sizeOf(m, 0)
	return l.reshapeSizes(y, shape...)
}

func (l *Lowering) adaptiveMax(n int) []*ssa.Value {
	x, lone := l.batched(l.Tensor("self"), n+2)
	out := l.outputSize(n)
	d := l.DType(x)
	var vs []*ssa.Value
	if k, ok := l.evenKernel(x, out); ok && d.IsFloat() {
		p := poolArgs{kernel: k, stride: k, pad: repeatInt(0, n), dilation: repeatInt(1, n)}
		vs = l.maxPoolFloat(x, p, true)
	} else {
		tables := make([]*ssa.Value, n)
		for i := range n {
			in := l.sizeOf(x, 2+i)
			start, end := l.bins(in, out[i])
			// no bin is longer than ceil(in / out) + 1
			longest := l.addSize(l.divSize(l.addSize(in, l.subSize(out[i], ConstSize(1))), out[i]), ConstSize(1))
			at := l.Add(l.unsqueeze(start, 1), l.unsqueeze(l.countTo(longest), 0))
			tables[i] = l.Min(at, l.Sub(l.unsqueeze(end, 1), l.scalarInt(tensor.Int64, 1)))
		}
		vs = l.maxOverTables(x, tables, out, true)
	}
	for i := range vs {
		vs[i] = l.unbatched(vs[i], lone)
	}
	return vs
}
