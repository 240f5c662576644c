package aten

import (
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// pooling holds the pooling layers (ATen/native/*Pool*.cpp).
var pooling = Defs{
	"aten::max_pool1d":              {Doc: "maximum of sliding windows", Nature: Samples, Grid: KeepsGrid, Lower: func(l *Lowering) *ssa.Value { return l.maxPool(1, false)[0] }},
	"aten::max_pool2d":              {Doc: "maximum of sliding windows", Gradient: "self: max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[1])", Nature: Samples, Grid: KeepsGrid, Lower: func(l *Lowering) *ssa.Value { return l.maxPool(2, false)[0] }},
	"aten::max_pool3d":              {Doc: "maximum of sliding windows", Gradient: "self: max_pool3d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode)[1])", Nature: Samples, Autocast: Float32OnCPU, Grid: KeepsGrid, Lower: func(l *Lowering) *ssa.Value { return l.maxPool(3, false)[0] }},
	"aten::mkldnn_max_pool2d":       {Doc: "maximum of sliding windows", Lower: func(l *Lowering) *ssa.Value { return l.maxPool(2, false)[0] }},
	"aten::mkldnn_max_pool3d":       {Doc: "maximum of sliding windows", Lower: func(l *Lowering) *ssa.Value { return l.maxPool(3, false)[0] }},
	"aten::max_pool1d_with_indices": {Doc: "max_pool1d with each maximum's place in its plane", Nature: Samples, LowerN: func(l *Lowering) []*ssa.Value { return l.maxPool(1, true) }},
	"aten::max_pool2d_with_indices": {Doc: "max_pool2d with each maximum's place in its plane", Gradient: "self: max_pool2d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1)", Nature: Samples, LowerN: func(l *Lowering) []*ssa.Value { return l.maxPool(2, true) }},
	"aten::max_pool3d_with_indices": {Doc: "max_pool3d with each maximum's place in its plane", Gradient: "self: max_pool3d_with_indices_backward(grad, self, kernel_size, stride, padding, dilation, ceil_mode, result1)", Nature: Samples, LowerN: func(l *Lowering) []*ssa.Value { return l.maxPool(3, true) }},
	"aten::avg_pool1d":              {Doc: "mean of sliding windows", Nature: Samples, Grid: RoundsOnce, Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.avgPool(1) }},
	"aten::avg_pool2d":              {Doc: "mean of sliding windows", Gradient: "self: avg_pool2d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)", Nature: Samples, Grid: RoundsOnce, Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.avgPool(2) }},
	"aten::avg_pool3d":              {Doc: "mean of sliding windows", Gradient: "self: avg_pool3d_backward(grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)", Nature: Samples, Autocast: Float32OnCPU, Grid: RoundsOnce, Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.avgPool(3) }},
	"aten::max_unpool2d":            {Doc: "values put back at the places that max_pool2d gave", Autocast: Float32OnCPU, Lower: func(l *Lowering) *ssa.Value { return l.maxUnpool(2) }},
	"aten::max_unpool3d":            {Doc: "values put back at the places that max_pool3d gave", Autocast: Float32OnCPU, Lower: func(l *Lowering) *ssa.Value { return l.maxUnpool(3) }},
	"aten::fractional_max_pool2d":   {Doc: "maximum of windows at pseudo-random places", Autocast: Float32OnCPU, Effects: draws, LowerN: func(l *Lowering) []*ssa.Value { return l.fractionalMaxPool(2) }},
	"aten::fractional_max_pool3d":   {Doc: "maximum of windows at pseudo-random places", Autocast: Float32OnCPU, Effects: draws, LowerN: func(l *Lowering) []*ssa.Value { return l.fractionalMaxPool(3) }},
}

// poolArgs are the arguments that pooling operators share.
type poolArgs struct {
	kernel, stride, pad, dilation []int64
	ceil                          bool
}

func (l *Lowering) poolArgs(n int) poolArgs {
	p := poolArgs{kernel: l.intsN("kernel_size", n), stride: l.intsN("stride", n), pad: l.intsN("padding", n), dilation: l.intsN("dilation", n), ceil: l.Bool("ceil_mode")}
	if len(p.stride) == 0 {
		p.stride = p.kernel
	}
	if len(p.pad) == 0 {
		p.pad = repeatInt(0, n)
	}
	if len(p.dilation) == 0 {
		p.dilation = repeatInt(1, n)
	}
	for _, v := range [][]int64{p.kernel, p.stride, p.pad, p.dilation} {
		if len(v) != n {
			l.Fail("a pooling argument must have %d entries", n)
		}
	}
	for i := range n {
		if p.kernel[i] < 1 || p.stride[i] < 1 || p.dilation[i] < 1 || p.pad[i] < 0 || p.pad[i] > (p.dilation[i]*(p.kernel[i]-1)+1)/2 {
			l.Fail("pooling with padding of more than half the window, or sizes below 1")
		}
	}
	return p
}

// wholePlane tells whether the one window of a pooling is all of its input, of
// n spatial axes: a kernel of x.shape[2:], which need not be constants.
func (l *Lowering) wholePlane(n int) bool {
	if l.IsConst("kernel_size") {
		return false // what is known goes the usual way
	}
	kernel := l.sizes("kernel_size")
	if len(kernel) == 1 {
		kernel = slices.Repeat(kernel, n)
	}
	x := l.Tensor("self")
	first := l.Rank(x) - n
	if first < 1 || len(kernel) != n {
		return false
	}
	for i, k := range kernel {
		if !k.Known || !k.Expr.Equal(l.Shape(x)[first+i]) {
			return false
		}
	}
	for name, one := range map[string]int64{"padding": 0, "dilation": 1} {
		for _, v := range l.Ints(name) {
			if v != one {
				return false
			}
		}
	}
	return true
}

// counts gives the number of windows along each spatial axis of x.
func (p *poolArgs) counts(l *Lowering, x *ssa.Value) []Size {
	out := make([]Size, len(p.kernel))
	for i := range out {
		out[i] = l.windowCount(l.sizeOf(x, 2+i), p.kernel[i], p.stride[i], p.dilation[i], p.pad[i], p.pad[i], p.ceil)
	}
	return out
}

// endPads gives the padding at the ends with which windows that do not fill up
// (floor mode) come out as many as PyTorch has; false if a size is not known.
func (p *poolArgs) endPads(l *Lowering, x *ssa.Value, counts []Size) ([]int64, bool) {
	if !p.ceil {
		return p.pad, true
	}
	end := make([]int64, len(counts))
	for i, c := range counts {
		n, ok := c.Int()
		in, ok2 := l.Shape(x)[2+i].Int()
		if !ok || !ok2 {
			return nil, false
		}
		need := (n-1)*p.stride[i] + p.dilation[i]*(p.kernel[i]-1) + 1 - in - p.pad[i]
		end[i] = max(need, p.pad[i])
		if extra := end[i] - p.pad[i]; extra >= p.stride[i] {
			end[i] = need
		}
	}
	return end, true
}

func (l *Lowering) maxPool(n int, indices bool) []*ssa.Value {
	if !indices && l.wholePlane(n) {
		x := l.Tensor("self")
		return []*ssa.Value{l.reduce("ReduceMax", x, axesFrom(l.Rank(x)-n, n), true)}
	}
	p := l.poolArgs(n)
	x, lone := l.batched(l.Tensor("self"), n+2)
	d := l.DType(x)
	var vs []*ssa.Value
	if d.IsFloat() || (d == tensor.Int8 || d == tensor.Uint8) && !indices {
		vs = l.maxPoolFloat(x, p, indices)
	} else {
		vs = l.maxPoolInt(x, p, indices)
	}
	for i := range vs {
		vs[i] = l.unbatched(vs[i], lone)
	}
	return vs
}

func (l *Lowering) maxPoolFloat(x *ssa.Value, p poolArgs, indices bool) []*ssa.Value {
	l.note("max pooling meets no NaN and no window of -inf alone", "onnxruntime's MaxPool passes over NaN, and gives the least finite number for -inf")
	n := len(p.kernel)
	counts := p.counts(l, x)
	end, static := p.endPads(l, x, counts)
	attrs := []ssa.Attr{onnx.Strides(p.stride...)}
	plane := l.sizeProduct(l.sizesOf(x, 2, n+2)...)
	fits := true
	for i := range n {
		if static && end[i] >= p.kernel[i] {
			fits = false // onnxruntime wants pads below the kernel size
		}
		if p.dilation[i] != 1 {
			fits = fits && p.pad[i] < p.kernel[i]
		}
	}
	if !fits && (!static || indices) {
		return l.maxPoolInt(x, p, indices)
	}
	switch {
	case !static:
		attrs = append(attrs, onnx.Pads(append(append([]int64{}, p.pad...), p.pad...)...), onnx.CeilMode(true))
	case !fits:
		x = l.padSpatial(x, p.pad, end, l.lowest(l.DType(x)))
	default:
		attrs = append(attrs, onnx.Pads(append(append([]int64{}, p.pad...), end...)...))
	}
	for _, v := range p.dilation {
		if v != 1 {
			attrs = append(attrs, onnx.Dilations(p.dilation...))
			break
		}
	}
	if !indices {
		return []*ssa.Value{l.MaxPool(x, p.kernel, attrs...)}
	}
	vs := l.MaxPoolN(2, x, p.kernel, attrs...)
	// ONNX counts through the whole tensor, PyTorch through the plane.
	return []*ssa.Value{vs[0], l.Mod(vs[1], l.sizeValue(plane))}
}

// maxPoolInt takes the maximum over gathered windows, for types that ONNX's MaxPool lacks.
func (l *Lowering) maxPoolInt(x *ssa.Value, p poolArgs, indices bool) []*ssa.Value {
	n := len(p.kernel)
	counts := p.counts(l, x)
	tables := make([]*ssa.Value, n)
	for i := range n {
		// Places outside of the input are replaced by the nearest ones of the same window inside of it.
		in := l.sizeOf(x, 2+i)
		start := l.Sub(l.Mul(l.countTo(counts[i]), l.scalarInt(tensor.Int64, p.stride[i])), l.scalarInt(tensor.Int64, p.pad[i]))
		start = l.unsqueeze(start, 1)
		step := make([]int64, p.kernel[i])
		for k := range step {
			step[k] = int64(k) * p.dilation[i]
		}
		idx := l.Add(start, l.unsqueeze(l.i64(step...), 0)) // (o, k)
		if p.pad[i] == 0 && !p.ceil {
			tables[i] = idx
			continue
		}
		dil := p.dilation[i]
		// first place inside: start mod dilation if start is negative; last: the greatest start + k*dilation below the size
		first := l.Max(start, l.Mod(start, l.scalarInt(tensor.Int64, dil)))
		room := l.Sub(l.sizeValue(l.subSize(in, ConstSize(1))), first)
		last := l.Add(first, l.Mul(l.Div(room, l.scalarInt(tensor.Int64, dil)), l.scalarInt(tensor.Int64, dil)))
		tables[i] = l.Min(l.Max(idx, first), last)
	}
	return l.maxOverTables(x, tables, counts, indices)
}

// maxOverTables takes the maximum over windows whose places along spatial axis
// i are the rows of tables[i], of shape (windows, places).
func (l *Lowering) maxOverTables(x *ssa.Value, tables []*ssa.Value, counts []Size, indices bool) []*ssa.Value {
	n := len(tables)
	d := l.DType(x)
	var flat *ssa.Value // (o1, k1, ..., on, kn) transposed below
	for i, t := range tables {
		var axes []int64
		for j := range 2 * n {
			if j != i && j != n+i {
				axes = append(axes, int64(j))
			}
		}
		idx := l.unsqueeze(t, axes...) // axes: o1..on, k1..kn
		if flat == nil {
			flat = idx
		} else {
			flat = l.Add(l.Mul(flat, l.sizeValue(l.sizeOf(x, 2+i))), idx)
		}
	}
	N, C := l.sizeOf(x, 0), l.sizeOf(x, 1)
	O := l.sizeProduct(counts...)
	places := make([]Size, n)
	for i, t := range tables {
		places[i] = l.sizeOf(t, 1)
	}
	L := l.sizeProduct(places...)
	table := l.reshapeSizes(flat, O, L)
	plane := l.sizeProduct(l.sizesOf(x, 2, n+2)...)
	w := l.gather(l.reshapeSizes(x, N, C, plane), table, 2) // (N, C, O, L)
	out := append([]Size{N, C}, counts...)
	y := l.reshapeSizes(l.reduce("ReduceMax", w, []int64{3}, false), out...)
	if !indices {
		return []*ssa.Value{y}
	}
	if d == tensor.Bool {
		w = l.Cast(w, tensor.Int32)
	}
	k := l.ArgMax(w, onnx.Axis(3), onnx.KeepDims(false))
	at := l.Add(k, l.Mul(l.countTo(O), l.sizeValue(L)))
	return []*ssa.Value{y, l.reshapeSizes(l.gather(l.reshape(table, -1), at, 0), out...)}
}

func (l *Lowering) avgPool(n int) *ssa.Value {
	if x := l.Tensor("self"); l.DType(x).IsFloat() && l.IsNone("divisor_override") && l.wholePlane(n) {
		return l.Cast(l.reduce("ReduceMean", l.compute(x), axesFrom(l.Rank(x)-n, n), true), l.DType(x))
	}
	p := l.poolArgs(n)
	x, lone := l.batched(l.Tensor("self"), n+2)
	d := l.DType(x)
	include := l.Bool("count_include_pad")
	var divisor int64
	if !l.IsNone("divisor_override") {
		divisor = l.Int("divisor_override")
		if divisor == 0 {
			l.Fail("divisor_override must not be 0")
		}
	}
	if !d.IsFloat() || d == tensor.Float64 {
		return l.unbatched(l.avgByWindows(x, p, include, divisor), lone)
	}
	wide := l.compute(x)
	return l.unbatched(l.Cast(l.avgPoolFloat(wide, p, include, divisor), d), lone)
}

// avgPoolFloat averages by ONNX's AveragePool, which divides by the window's
// size. Where PyTorch divides by another number, a factor makes up for it.
func (l *Lowering) avgPoolFloat(x *ssa.Value, p poolArgs, include bool, divisor int64) *ssa.Value {
	n := len(p.kernel)
	counts := p.counts(l, x)
	end, static := p.endPads(l, x, counts)
	average := func(x *ssa.Value, pads []int64, countPads bool) *ssa.Value {
		return l.AveragePool(x, p.kernel, onnx.CountIncludePad(countPads), onnx.Pads(pads...), onnx.Strides(p.stride...))
	}
	overhang, padded := !static, false
	for i := range n {
		overhang = overhang || end[i] > p.pad[i]
		padded = padded || p.pad[i] > 0
	}
	area := int64(1)
	for _, k := range p.kernel {
		area *= k
	}
	if !overhang {
		pads := append(append([]int64{}, p.pad...), end...)
		if divisor == 0 {
			return average(x, pads, include || !padded)
		}
		return l.scale(average(x, pads, true), float64(area)/float64(divisor))
	}
	// Windows that reach beyond the padding: average over zeros all the way, then correct the count.
	counted := l.countedPlaces(x, p, counts, include)
	far := make([]int64, n)
	for i := range n {
		far[i] = min(p.pad[i]+p.stride[i], p.kernel[i]) - 1 // no window reaches further
		if static {
			far[i] = end[i]
		}
	}
	y := average(l.padSpatial(x, p.pad, far, l.Like(x, 0)), repeatInt(0, 2*n), true)
	if !static {
		zero, axes := repeatInt(0, n), axesFrom(2, n)
		y = l.Slice(y, l.i64(zero...), l.sizeTensor(counts), l.i64(axes...), nil)
	}
	if divisor != 0 {
		return l.scale(y, float64(area)/float64(divisor))
	}
	factor := l.Div(l.Like(x, float64(area)), l.Cast(counted, l.DType(x)))
	return l.Mul(y, factor)
}

// countedPlaces is the number of places that PyTorch counts in each window, of shape (o1, ..., on).
func (l *Lowering) countedPlaces(x *ssa.Value, p poolArgs, counts []Size, include bool) *ssa.Value {
	var counted *ssa.Value
	for i := range counts {
		in := l.sizeOf(x, 2+i)
		lo, hi := int64(0), in
		if include {
			lo, hi = -p.pad[i], l.addSize(in, ConstSize(p.pad[i]))
		}
		start := l.Sub(l.Mul(l.countTo(counts[i]), l.scalarInt(tensor.Int64, p.stride[i])), l.scalarInt(tensor.Int64, p.pad[i]))
		stop := l.Min(l.Add(start, l.scalarInt(tensor.Int64, p.kernel[i])), l.sizeValue(hi))
		c := l.Sub(stop, l.Max(start, l.scalarInt(tensor.Int64, lo)))
		if counted == nil {
			counted = c
		} else {
			counted = l.Mul(l.unsqueeze(counted, int64(i)), c)
		}
	}
	return counted
}

// avgByWindows sums gathered windows: the mean of integers, truncated, and of
// float64, which runtimes have no AveragePool for.
func (l *Lowering) avgByWindows(x *ssa.Value, p poolArgs, include bool, divisor int64) *ssa.Value {
	n := len(p.kernel)
	d := l.DType(x)
	counts := p.counts(l, x)
	far := make([]int64, n)
	for i := range n {
		far[i] = p.pad[i]
		if p.ceil {
			far[i] += p.stride[i] - 1
		}
	}
	by := l.scalarInt(tensor.Int64, divisor)
	if divisor == 0 {
		by = l.countedPlaces(x, p, counts, include)
	}
	wd := d
	if !d.IsFloat() {
		wd = tensor.Int64
	}
	wide := l.padSpatial(l.Cast(x, wd), p.pad, far, nil)
	w := l.gatherWindows(wide, counts, p.kernel, p.stride, p.dilation)
	sum := l.reduce("ReduceSum", w, axesFrom(2, n), false)
	return l.Cast(l.Div(sum, l.Cast(by, wd)), d)
}

func (l *Lowering) maxUnpool(n int) *ssa.Value {
	x, lone := l.batched(l.Tensor("self"), n+2)
	idx, _ := l.batched(l.Tensor("indices"), n+2)
	size := l.sizes("output_size")
	if len(size) == n+2 {
		size = size[2:]
	}
	if len(size) != n {
		l.Fail("output_size must have %d entries", n)
	}
	N, C := l.sizeOf(x, 0), l.sizeOf(x, 1)
	in, out := l.sizeProduct(l.sizesOf(x, 2, n+2)...), l.sizeProduct(size...)
	zeros := l.fill(l.sizeTensor([]Size{N, C, out}), l.DType(x), ssa.Int(0))
	y := l.ScatterElements(zeros, l.reshapeSizes(idx, N, C, in), l.reshapeSizes(x, N, C, in), onnx.Axis(2))
	return l.unbatched(l.reshapeSizes(y, append([]Size{N, C}, size...)...), lone)
}

// fractionalMaxPool computes the windows from samples in [0, 1), one for each
// sample, channel and axis (ATen/native/FractionalMaxPool2d.cpp).
func (l *Lowering) fractionalMaxPool(n int) []*ssa.Value {
	x, lone := l.batched(l.Tensor("self"), n+2)
	kernel, out := l.intsN("kernel_size", n), l.intsN("output_size", n)
	samples := l.Tensor("random_samples") // (N, C, n), the last axis in the order W, H, (T)
	d := l.DType(x)
	N, C := l.sizeOf(x, 0), l.sizeOf(x, 1)
	var flat *ssa.Value // (N, C, o1..on, k1..kn)
	for i := range n {
		in := l.sizeOf(x, 2+i)
		room := l.subSize(in, ConstSize(kernel[i]))
		at := n - 1 - i
		if n == 3 {
			at = i
		}
		s := l.unsqueeze(l.gather(samples, l.scalarInt(tensor.Int64, int64(at)), 2), 2) // (N, C, 1)
		start := l.unsqueeze(l.sizeTensor([]Size{room}), 0, 1)                          // (1, 1, 1)
		if out[i] > 1 {
			alpha := l.Div(l.Cast(l.sizeValue(room), d), l.Like(samples, float64(out[i]-1)))
			steps := l.Const(tensor.FromFloats(d, []int64{1, 1, out[i] - 1}, l.iota64(out[i]-1)))
			trunc := func(v *ssa.Value) *ssa.Value { return l.Cast(v, tensor.Int64) }
			first := l.Sub(trunc(l.Mul(l.Add(steps, s), alpha)), trunc(l.Mul(s, alpha)))
			lastShape := l.sizeTensor([]Size{N, C, ConstSize(1)})
			start = l.concatV(2, first, l.Expand(start, lastShape))
		}
		idx := l.Add(l.unsqueeze(start, 3), l.i64(l.iotaInts(kernel[i])...)) // (N, C, o, k)
		var axes []int64
		for j := range 2 * n {
			if j != i && j != n+i {
				axes = append(axes, int64(2+j))
			}
		}
		idx = l.unsqueeze(idx, axes...)
		if flat == nil {
			flat = idx
		} else {
			flat = l.Add(l.Mul(flat, l.sizeValue(in)), idx)
		}
	}
	O, L := l.sizeProduct(constSizes(out)...), l.sizeProduct(constSizes(kernel)...)
	full := append(append([]Size{N, C}, constSizes(out)...), constSizes(kernel)...)
	flat = l.reshapeSizes(l.Expand(flat, l.sizeTensor(full)), N, C, l.mulSize(O, L))
	plane := l.sizeProduct(l.sizesOf(x, 2, n+2)...)
	w := l.GatherElements(l.reshapeSizes(x, N, C, plane), flat, onnx.Axis(2))
	w = l.reshapeSizes(w, N, C, O, L)
	k := l.ArgMax(w, onnx.Axis(3), onnx.KeepDims(true))
	at := l.GatherElements(l.reshapeSizes(flat, N, C, O, L), k, onnx.Axis(3))
	shape := append([]Size{N, C}, constSizes(out)...)
	y := l.reshapeSizes(l.reduce("ReduceMax", w, []int64{3}, false), shape...)
	return []*ssa.Value{l.unbatched(y, lone), l.unbatched(l.reshapeSizes(at, shape...), lone)}
}

// iotaInts is 0, 1, ..., n-1.
func (l *Lowering) iotaInts(n int64) []int64 {
	l.count(n)
	out := make([]int64, n)
	for i := range out {
		out[i] = int64(i)
	}
	return out
}

// iota64 is 0, 1, ..., n-1.
func (l *Lowering) iota64(n int64) []float64 {
	l.count(n)
	out := make([]float64, n)
	for i := range out {
		out[i] = float64(i)
	}
	return out
}
