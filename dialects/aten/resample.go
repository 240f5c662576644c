package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// resample holds the operators behind interpolate (ATen/native/UpSample.h).
var resample = Defs{
	"aten::upsample_nearest1d":        {Doc: "nearest neighbour", Gradient: "self: upsample_nearest1d_backward(grad, output_size, size(self), scales)", Nature: Samples, Autocast: Float32OnCUDA, Grid: KeepsGrid, Complex: (*Lowering).complexParts, Lower: upsample(1, resizeNearest)},
	"aten::upsample_nearest2d":        {Doc: "nearest neighbour", Gradient: "self: upsample_nearest2d_backward(grad, output_size, size(self), scales_h, scales_w)", Nature: Samples, Autocast: Float32OnCUDA, Grid: KeepsGrid, Complex: (*Lowering).complexParts, Lower: upsample(2, resizeNearest)},
	"aten::upsample_nearest3d":        {Doc: "nearest neighbour", Gradient: "self: upsample_nearest3d_backward(grad, output_size, size(self), scales_d, scales_h, scales_w)", Nature: Samples, Autocast: Float32OnCUDA, Grid: KeepsGrid, Complex: (*Lowering).complexParts, Lower: upsample(3, resizeNearest)},
	"aten::_upsample_nearest_exact1d": {Doc: "nearest neighbour of the pixel's centre", Lower: upsample(1, resizeNearestExact)},
	"aten::_upsample_nearest_exact2d": {Doc: "nearest neighbour of the pixel's centre", Lower: upsample(2, resizeNearestExact)},
	"aten::_upsample_nearest_exact3d": {Doc: "nearest neighbour of the pixel's centre", Lower: upsample(3, resizeNearestExact)},
	"aten::upsample_linear1d":         {Doc: "linear interpolation", Gradient: "self: upsample_linear1d_backward(grad, output_size, size(self), align_corners, scales)", Nature: Samples, Autocast: Float32OnCUDA, Lower: upsample(1, resizeLinear)},
	"aten::upsample_bilinear2d":       {Doc: "bilinear interpolation", Gradient: "self: upsample_bilinear2d_backward(grad, output_size, size(self), align_corners, scales_h, scales_w)", Nature: Samples, Autocast: Float32OnCUDA, Grid: RoundsOnce, Lower: upsample(2, resizeLinear)},
	"aten::upsample_trilinear3d":      {Doc: "trilinear interpolation", Gradient: "self: upsample_trilinear3d_backward(grad, output_size, size(self), align_corners, scales_d, scales_h, scales_w)", Nature: Samples, Autocast: Float32OnCUDA, Lower: upsample(3, resizeLinear)},
	"aten::upsample_bicubic2d":        {Doc: "bicubic convolution with a = -0.75", Gradient: "self: upsample_bicubic2d_backward(grad, output_size, size(self), align_corners, scales_h, scales_w)", Nature: Samples, Autocast: Float32OnCUDA, Lower: upsample(2, resizeCubic)},
	"aten::_upsample_bilinear2d_aa":   {Doc: "triangle filter as wide as an output pixel", Lower: upsample(2, resizeLinearAA)},
	"aten::_upsample_bicubic2d_aa":    {Doc: "cubic filter with a = -0.5, as wide as two output pixels", Lower: upsample(2, resizeCubicAA)},
	"aten::__interpolate":             {Doc: "interpolate: one of these by the name of the mode", Lower: lowerInterpolate},
	"aten::_upsample_lanczos2d_aa":    {Doc: "Lanczos filter of three lobes", Lower: upsample(2, resizeLanczosAA)},
}

type resizeMode int

const (
	resizeNearest resizeMode = iota
	resizeNearestExact
	resizeLinear
	resizeCubic
	resizeLinearAA
	resizeCubicAA
	resizeLanczosAA
)

// axisScale says how one axis is resized. The scale factor that the user gave
// decides the coordinates; without one the sizes do.
type axisScale struct {
	in, out Size
	given   bool
	factor  float64
	// scaled says that out is in times factor, rounded down. A program may give both a size and a factor: the size is that of the
	// result, and the factor decides the coordinates.
	scaled bool
}

// upsample lowers both overloads: (self, output_size, ..., scales_d, scales_h,
// scales_w) and .vec (input, output_size, ..., scale_factors).
func upsample(n int, mode resizeMode) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		x := l.TensorOr("self")
		if x == nil {
			x = l.Tensor("input")
		}
		if l.Rank(x) != n+2 {
			l.Fail("interpolation of rank %d expects an input of rank %d, found %d", n, n+2, l.Rank(x))
		}
		axes := l.scaleArgs(n)
		for i := range axes {
			axes[i].in = l.sizeOf(x, 2+i)
		}
		if l.IsNone("output_size") {
			for i := range axes {
				if !axes[i].given {
					l.Fail("neither output_size nor scale_factors is given")
				}
				axes[i].out, axes[i].scaled = l.scaledSize(axes[i].in, axes[i].factor), true
			}
		} else {
			out := l.outputSize(n)
			for i := range axes {
				axes[i].out = out[i]
				if a := axes[i]; a.given && out[i].Known {
					want := l.scaledSize(a.in, a.factor)
					axes[i].scaled = want.Known && want.Expr.Equal(out[i].Expr)
				}
			}
		}
		return l.resize(x, axes, mode, l.Bool("align_corners"))
	}
}

// scaleArgs reads the factors that the program gives for n axes.
func (l *Lowering) scaleArgs(n int) []axisScale {
	axes := make([]axisScale, n)
	if l.HasArg("scale_factors") {
		factors := l.Floats("scale_factors")
		if len(factors) > n {
			l.Fail("%d scale factors for %d axes", len(factors), n)
		}
		for i, f := range factors {
			axes[i].given, axes[i].factor = true, f
		}
		return axes
	}
	names := [3]string{"scales_d", "scales_h", "scales_w"}
	for i := range axes {
		name := names[3-n+i]
		if n == 1 {
			name = "scales"
		}
		if !l.IsNone(name) {
			axes[i].given, axes[i].factor = true, l.Float(name)
		}
	}
	return axes
}

// unchanged reports an axis that keeps its elements as they are. PyTorch's antialiased kernels skip an axis of equal sizes; the others
// see the scale.
func (a axisScale) unchanged(mode resizeMode) bool {
	return a.out.Known && a.in.Expr.Equal(a.out.Expr) && (!a.given || a.factor == 1 || mode >= resizeLinearAA)
}

// scaledSize is floor(in * factor), computed in float64 as PyTorch does.
func (l *Lowering) scaledSize(in Size, factor float64) Size {
	if n, ok := in.Int(); ok {
		return ConstSize(int64(float64(n) * factor))
	}
	if k := int64(factor); float64(k) == factor {
		return l.mulSize(in, ConstSize(k))
	}
	f := l.Mul(l.Cast(l.sizeValue(in), tensor.Float64), l.Scalar(tensor.Float64, factor))
	return Size{Value: l.Cast(l.Floor(f), tensor.Int64)}
}

func (l *Lowering) resize(x *ssa.Value, axes []axisScale, mode resizeMode, corners bool) *ssa.Value {
	d := l.DType(x)
	if d == tensor.Uint8 && len(axes) == 2 && mode > resizeNearestExact && mode != resizeLanczosAA {
		return l.resizeBytes(x, axes, mode, corners)
	}
	if !d.IsFloat() && mode > resizeNearestExact {
		l.Fail("interpolation of %v other than nearest", d)
	}
	changed := false
	for _, a := range axes {
		changed = changed || !a.unchanged(mode)
	}
	if !changed {
		return x
	}
	// Resize of opset 10 knows one way to place the elements, and not PyTorch's: no step leads down to it
	if mode < resizeLinearAA && l.Opset >= 11 {
		if y := l.resizeOp(x, axes, mode, corners); y != nil {
			return y
		}
	}
	wide := l.compute(x)
	for i, a := range axes {
		if a.unchanged(mode) {
			continue
		}
		wide = l.resizeAxis(wide, a, 2+i, mode, corners)
	}
	return l.Cast(wide, d)
}

// fewBits reports a factor whose products with sizes are exact in float32.
func fewBits(f float64) bool {
	return f > 0 && f*64 == math.Trunc(f*64) && f < 1<<10
}

// resizeOp uses ONNX's Resize where onnxruntime's coordinates are sure to be PyTorch's, else gives nil.
func (l *Lowering) resizeOp(x *ssa.Value, axes []axisScale, mode resizeMode, corners bool) *ssa.Value {
	d := l.DType(x)
	byScale := true
	scales := []float64{1, 1}
	for _, a := range axes {
		in, ok := a.in.Int()
		out, ok2 := a.out.Int()
		static := ok && ok2
		if static && (in == 0 || out == 0) {
			return nil
		}
		if a.given && !static && !a.scaled && !corners {
			return nil // Resize by a scale would make a result of another size
		}
		if !a.given || !a.scaled && !static {
			byScale = false
		} else {
			scales = append(scales, a.factor)
		}
		f := a.factor
		if !a.given && static && out%in == 0 {
			f = float64(out / in)
		}
		switch mode {
		case resizeNearest, resizeNearestExact:
			// Nearest is not continuous: the coordinates must be the same to the last bit.
			if static {
				if !sameNearest(in, out, a, mode) {
					return nil
				}
			} else if !a.given || f != math.Trunc(f) || !powerOfTwo(f) {
				return nil
			}
		default:
			if a.given && !corners {
				if static {
					if int64(float32(in)*float32(f)) != out {
						return nil
					}
				} else if !fewBits(f) {
					return nil
				}
			}
		}
	}
	if d == tensor.Float64 {
		return nil // onnxruntime resizes float32
	}
	attrs := []ssa.Attr{}
	switch {
	case mode == resizeNearest:
		attrs = append(attrs, onnx.CoordinateTransformationMode("asymmetric"), onnx.Mode("nearest"), onnx.NearestMode("floor"))
	case mode == resizeNearestExact:
		attrs = append(attrs, onnx.CoordinateTransformationMode("half_pixel"), onnx.Mode("nearest"), onnx.NearestMode("round_prefer_ceil"))
	default:
		t := "half_pixel"
		if corners {
			t = "align_corners"
			byScale = false
		}
		attrs = append(attrs, onnx.CoordinateTransformationMode(t))
		if mode == resizeLinear {
			attrs = append(attrs, onnx.Mode("linear"))
		} else {
			attrs = append(attrs, onnx.CubicCoeffA(-0.75), onnx.Mode("cubic"))
		}
	}
	if byScale {
		s := l.Const(tensor.FromFloats(tensor.Float32, []int64{int64(len(scales))}, scales))
		return l.Resize(x, nil, s, nil, attrs...)
	}
	for _, a := range axes {
		if a.given && !corners {
			// sizes alone would let out / in decide
			in, ok := a.in.Int()
			out, ok2 := a.out.Int()
			if !ok || !ok2 || float64(out) != float64(in)*a.factor {
				return nil
			}
		}
	}
	sizes := []Size{l.sizeOf(x, 0), l.sizeOf(x, 1)}
	for _, a := range axes {
		sizes = append(sizes, a.out)
	}
	return l.Resize(x, nil, nil, l.sizeTensor(sizes), attrs...)
}

func powerOfTwo(f float64) bool {
	frac, _ := math.Frexp(f)
	return frac == 0.5
}

// nearestRatio is the float32 step between source coordinates.
func (a axisScale) ratio32(in, out int64) float32 {
	if a.given && a.factor > 0 {
		return float32(1 / a.factor)
	}
	return float32(in) / float32(out)
}

// sameNearest compares the pixels that PyTorch and onnxruntime pick.
func sameNearest(in, out int64, a axisScale, mode resizeMode) bool {
	if out > 1<<20 {
		return false
	}
	r := a.ratio32(in, out)
	ort := float32(out) / float32(in)
	if a.given {
		ort = float32(a.factor)
		if int64(float32(in)*ort) != out {
			return false
		}
	}
	for o := range out {
		var p, q int64
		if mode == resizeNearest {
			p = int64(math.Floor(float64(float32(o) * r)))
			q = int64(math.Floor(float64(float32(o) / ort)))
		} else {
			p = int64(math.Floor(float64((float32(o) + 0.5) * r)))
			x := (float32(o)+0.5)/ort - 0.5
			q = int64(math.Round(float64(x)))
			if x < 0 {
				q = 0
			}
		}
		if min(p, in-1) != min(q, in-1) {
			return false
		}
	}
	return true
}

// ratio is the step between source coordinates in type d, a rank 0 value.
func (l *Lowering) ratio(a axisScale, d tensor.DType, corners bool) *ssa.Value {
	size := func(s Size) *ssa.Value { return l.Cast(l.sizeValue(s), d) }
	if corners {
		one := l.Like(size(a.in), 1)
		span := l.Sub(size(a.out), one)
		// an output of one pixel stands at 0
		return l.Where(l.Greater(span, l.Like(span, 0)), l.Div(l.Sub(size(a.in), one), l.Max(span, one)), l.Like(span, 0))
	}
	if a.given && a.factor > 0 {
		return l.Scalar(d, 1/a.factor)
	}
	return l.Div(size(a.in), size(a.out))
}

// resizeAxis resizes one axis by gathering source pixels at computed places.
func (l *Lowering) resizeAxis(x *ssa.Value, a axisScale, axis int, mode resizeMode, corners bool) *ssa.Value {
	d := l.DType(x)
	td := d
	if !d.IsFloat() {
		td = tensor.Float32
	}
	r := l.ratio(a, td, corners)
	i := l.Cast(l.countTo(a.out), td)
	half := l.Scalar(td, 0.5)
	last := l.sizeValue(l.subSize(a.in, ConstSize(1)))
	zero, one := l.scalarInt(tensor.Int64, 0), l.scalarInt(tensor.Int64, 1)
	if mode >= resizeLinearAA {
		return l.resizeAntialias(x, a, axis, mode, corners)
	}
	switch mode {
	case resizeNearest, resizeNearestExact:
		if mode == resizeNearestExact {
			i = l.Add(i, half)
		}
		idx := l.Min(l.Cast(l.Floor(l.Mul(i, r)), tensor.Int64), last)
		return l.gather(x, idx, axis)
	}
	var src *ssa.Value
	if corners {
		src = l.Mul(i, r)
	} else {
		src = l.Sub(l.Mul(l.Add(i, half), r), half)
		if mode == resizeLinear {
			src = l.Max(src, l.Scalar(td, 0))
		}
	}
	low := l.Floor(src)
	t := l.Sub(src, low)
	at := l.Cast(low, tensor.Int64)
	tail := l.Rank(x) - 1 - axis
	column := func(w *ssa.Value) *ssa.Value { return l.unsqueeze(w, axesFrom(1, tail)...) }
	if mode == resizeLinear {
		lo := l.Min(at, last)
		hi := l.Min(l.Add(at, one), last)
		w := column(t)
		return l.Add(l.Mul(l.gather(x, lo, axis), l.Sub(l.Scalar(td, 1), w)), l.Mul(l.gather(x, hi, axis), w))
	}
	var sum *ssa.Value
	for k, w := range l.cubicWeights(t, -0.75) {
		idx := l.Add(at, l.scalarInt(tensor.Int64, int64(k-1)))
		idx = l.Min(l.Max(idx, zero), last)
		term := l.Mul(l.gather(x, idx, axis), column(w))
		if sum == nil {
			sum = term
		} else {
			sum = l.Add(sum, term)
		}
	}
	return sum
}

// cubicWeights are the four weights of Keys' cubic convolution at distance t past the second pixel.
func (l *Lowering) cubicWeights(t *ssa.Value, a float64) [4]*ssa.Value {
	c := func(v float64) *ssa.Value { return l.Like(t, v) }
	// |x| <= 1: ((a+2)x - (a+3))x^2 + 1
	near := func(x *ssa.Value) *ssa.Value {
		return l.Add(l.Mul(l.Mul(l.Sub(l.Mul(c(a+2), x), c(a+3)), x), x), c(1))
	}
	// 1 < |x| < 2: ((ax - 5a)x + 8a)x - 4a
	far := func(x *ssa.Value) *ssa.Value {
		return l.Sub(l.Mul(l.Add(l.Mul(l.Sub(l.Mul(c(a), x), c(5*a)), x), c(8*a)), x), c(4*a))
	}
	u := l.Sub(c(1), t)
	return [4]*ssa.Value{far(l.Add(t, c(1))), near(t), near(u), far(l.Add(u, c(1)))}
}

// resizeAntialias multiplies with the matrix of normalized filter weights
// (_compute_indices_weights_aa in ATen/native/cpu/UpSampleKernel.cpp).
func (l *Lowering) resizeAntialias(x *ssa.Value, a axisScale, axis int, mode resizeMode, corners bool) *ssa.Value {
	d := l.DType(x)
	c := func(v float64) *ssa.Value { return l.Scalar(d, v) }
	r := l.ratio(a, d, corners)
	reach := map[resizeMode]float64{resizeLinearAA: 1, resizeCubicAA: 2, resizeLanczosAA: 3}[mode]
	wide := l.Max(r, c(1))
	support := l.Mul(wide, c(reach))
	inverse := l.Reciprocal(wide)
	center := l.unsqueeze(l.Mul(r, l.Add(l.Cast(l.countTo(a.out), d), c(0.5))), 1) // (out, 1)
	at := l.unsqueeze(l.countTo(a.in), 0)
	trunc := func(v *ssa.Value) *ssa.Value { return l.Cast(v, tensor.Int64) }
	lo := l.Max(trunc(l.Add(l.Sub(center, support), c(0.5))), l.scalarInt(tensor.Int64, 0))
	hi := l.Min(trunc(l.Add(l.Add(center, support), c(0.5))), l.sizeValue(a.in))
	inside := l.And(l.Not(l.Less(at, lo)), l.Less(at, hi))
	arg := l.Mul(l.Add(l.Sub(l.Cast(at, d), center), c(0.5)), inverse)
	w := l.filter(arg, mode)
	w = l.Where(inside, w, c(0))
	total := l.reduce("ReduceSum", w, []int64{1}, true)
	w = l.Where(l.Equal(total, c(0)), w, l.Div(w, total))
	return l.alongAxis(x, w, axis)
}

// filter evaluates a resampling filter elementwise.
func (l *Lowering) filter(x *ssa.Value, mode resizeMode) *ssa.Value {
	c := func(v float64) *ssa.Value { return l.Like(x, v) }
	x = l.Abs(x)
	below := func(v float64) *ssa.Value { return l.Less(x, c(v)) }
	switch mode {
	case resizeLinearAA:
		return l.Max(l.Sub(c(1), x), c(0))
	case resizeCubicAA:
		const a = -0.5
		near := l.Add(l.Mul(l.Mul(l.Sub(l.Mul(c(a+2), x), c(a+3)), x), x), c(1))
		far := l.Sub(l.Mul(l.Add(l.Mul(l.Sub(l.Mul(c(a), x), c(5*a)), x), c(8*a)), x), c(4*a))
		return l.Where(below(1), near, l.Where(below(2), far, c(0)))
	}
	sinc := func(v *ssa.Value) *ssa.Value {
		p := l.Mul(v, c(math.Pi))
		isZero := l.Equal(v, c(0))
		return l.Where(isZero, c(1), l.Div(l.Sin(p), l.Where(isZero, c(1), p)))
	}
	return l.Where(below(3), l.Mul(sinc(x), sinc(l.Mul(x, c(1.0/3)))), c(0))
}
