package aten

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// reduce holds sums, products, extremes and moments over dimensions (ATen/native/ReduceOps.cpp).
var reduce = Defs{
	"aten::sum":               {Doc: "sum over dim; integers and bool sum in int64", Gradient: "self: expand(reshape(grad, size(sum(self, dim, True))), size(self)) | expand(grad, size(self))", Nature: Reduces, Autocast: Float32OnCUDA, Complex: (*Lowering).complexParts, Type: ofReduction, Lower: func(l *Lowering) *ssa.Value { return l.total(l.sumOver) }},
	"aten::prod":              {Doc: "product over dim; integers and bool multiply in int64", Gradient: "self: reshape(grad, size(sum(self, [dim], True))) * cumprod(cat([ones_like(narrow(self, dim, 0, 1)), narrow(self, dim, 0, size(self, dim) - 1)], dim), dim) * flip(cumprod(cat([ones_like(narrow(flip(self, [dim]), dim, 0, 1)), narrow(flip(self, [dim]), dim, 0, size(flip(self, [dim]), dim) - 1)], dim), dim), [dim]) | reshape(grad * cumprod(cat([ones_like(narrow(reshape(self, [-1]), 0, 0, 1)), narrow(reshape(self, [-1]), 0, 0, size(reshape(self, [-1]), 0) - 1)], 0), 0) * flip(cumprod(cat([ones_like(narrow(flip(reshape(self, [-1]), [0]), 0, 0, 1)), narrow(flip(reshape(self, [-1]), [0]), 0, 0, size(flip(reshape(self, [-1]), [0]), 0) - 1)], 0), 0), [0]), size(self))", Nature: Reduces, Autocast: Float32OnCPU | Float32OnCUDA, Complex: one(complexProd), Lower: func(l *Lowering) *ssa.Value { return l.total(l.prodOver) }},
	"aten::nansum":            {Doc: "sum over dim, NaN counts as 0", Gradient: "self: expand(reshape(grad, size(sum(self, dim, True))), size(self)) * logical_not(isnan(self)) | expand(grad, size(self)) * logical_not(isnan(self))", Nature: Reduces, Lower: lowerNansum},
	"aten::mean":              {Doc: "mean over dim", Gradient: "self: expand(reshape(grad, size(sum(self, dim, True))), size(self)) / (numel(self) / numel(result)) | expand(grad, size(self)) / numel(self)", Nature: Reduces, Grid: SnapsToGrid, Complex: (*Lowering).complexParts, Type: ofReduction, Lower: lowerMean},
	"aten::nanmean":           {Doc: "mean over dim of what is not NaN", Nature: Reduces, Lower: lowerNanmean},
	"aten::amax":              {Doc: "maximum over dim", Gradient: "self: eq(self, reshape(result, size(sum(self, dim, True)))) * (reshape(grad, size(sum(self, dim, True))) / sum(eq(self, reshape(result, size(sum(self, dim, True)))), dim, True))", Nature: Reduces, Lower: func(l *Lowering) *ssa.Value { return l.extreme("ReduceMax") }},
	"aten::amin":              {Doc: "minimum over dim", Gradient: "self: eq(self, reshape(result, size(sum(self, dim, True)))) * (reshape(grad, size(sum(self, dim, True))) / sum(eq(self, reshape(result, size(sum(self, dim, True)))), dim, True))", Nature: Reduces, Lower: func(l *Lowering) *ssa.Value { return l.extreme("ReduceMin") }},
	"aten::aminmax":           {Doc: "minimum and maximum over dim", Nature: Reduces, LowerN: func(l *Lowering) []*ssa.Value { return []*ssa.Value{l.extreme("ReduceMin"), l.extreme("ReduceMax")} }},
	"aten::max":               {Doc: "maximum of all, over dim with indices, or of two tensors", Gradient: "self: scatter_add(zeros_like(self), dim, reshape(result1, size(sum(self, [dim], True))), reshape(grad, size(sum(self, [dim], True)))) | masked_fill(where(eq(self, other), grad / 2, grad), lt(self, other), 0) | eq(self, result) * (grad / sum(eq(self, result))); other: masked_fill(where(eq(self, other), grad / 2, grad), gt(self, other), 0)", Nature: Reduces, Batching: PointwiseOrReduces, Grid: KeepsGrid, LowerN: func(l *Lowering) []*ssa.Value { return l.extremeOverload("Max") }},
	"aten::min":               {Doc: "minimum of all, over dim with indices, or of two tensors", Gradient: "self: scatter_add(zeros_like(self), dim, reshape(result1, size(sum(self, [dim], True))), reshape(grad, size(sum(self, [dim], True)))) | masked_fill(where(eq(self, other), grad / 2, grad), gt(self, other), 0) | eq(self, result) * (grad / sum(eq(self, result))); other: masked_fill(where(eq(self, other), grad / 2, grad), lt(self, other), 0)", Nature: Reduces, Batching: PointwiseOrReduces, Grid: KeepsGrid, LowerN: func(l *Lowering) []*ssa.Value { return l.extremeOverload("Min") }},
	"aten::argmax":            {Doc: "index of the maximum over dim", Gradient: NoGradient, Nature: Reduces, Lower: func(l *Lowering) *ssa.Value { return l.argExtreme("ArgMax") }},
	"aten::argmin":            {Doc: "index of the minimum over dim", Gradient: NoGradient, Nature: Reduces, Lower: func(l *Lowering) *ssa.Value { return l.argExtreme("ArgMin") }},
	"aten::any":               {Doc: "whether one is not 0 over dim", Nature: Reduces, Complex: ofNonzero, Lower: func(l *Lowering) *ssa.Value { return l.quantifier(l.anyTrue) }},
	"aten::all":               {Doc: "whether none is 0 over dim", Nature: Reduces, Complex: ofNonzero, Lower: func(l *Lowering) *ssa.Value { return l.quantifier(l.allTrue) }},
	"aten::var":               {Doc: "variance over dim", Gradient: "[correction=1] self: reshape(grad, size(sum(self, dim, True))) * (self - mean(self, dim, True)) * (2 / (numel(self) // numel(result) - Int(unbiased))) | grad * (self - mean(self)) * (2 / (numel(self) - Int(unbiased))) | reshape(grad, size(sum(self, dim, True))) * (self - mean(self, dim, True)) * (2 / (numel(self) // numel(result) - correction))", Nature: Reduces, Complex: one(complexVar), Lower: func(l *Lowering) *ssa.Value { v, _ := l.moments(); return v }},
	"aten::std":               {Doc: "standard deviation over dim", Gradient: "[correction=1] self: reshape(masked_fill(grad / (result * 2), eq(result, 0), 0), size(sum(self, dim, True))) * (self - mean(self, dim, True)) * (2 / (numel(self) // numel(result) - Int(unbiased))) | masked_fill(grad / (result * 2), eq(result, 0), 0) * (self - mean(self)) * (2 / (numel(self) - Int(unbiased))) | reshape(masked_fill(grad / (result * 2), eq(result, 0), 0), size(sum(self, dim, True))) * (self - mean(self, dim, True)) * (2 / (numel(self) // numel(result) - correction))", Nature: Reduces, Complex: one(complexStd), Lower: func(l *Lowering) *ssa.Value { v, _ := l.moments(); return l.Sqrt(v) }},
	"aten::var_mean":          {Doc: "variance and mean over dim", Nature: Reduces, Complex: func(l *Lowering) []*ssa.Value { return l.complexVarMean(false) }, LowerN: func(l *Lowering) []*ssa.Value { v, m := l.moments(); return []*ssa.Value{v, m} }},
	"aten::std_mean":          {Doc: "standard deviation and mean over dim", Nature: Reduces, Complex: func(l *Lowering) []*ssa.Value { return l.complexVarMean(true) }, LowerN: func(l *Lowering) []*ssa.Value { v, m := l.moments(); return []*ssa.Value{l.Sqrt(v), m} }},
	"aten::logsumexp":         {Doc: "log of the sum of exp over dim", Gradient: "self: reshape(grad, size(sum(self, dim, True))) * exp(self - reshape(result, size(sum(self, dim, True))))", Nature: Reduces, Autocast: Float32OnCUDA, Complex: one(complexLogSumExp), Lower: lowerLogsumexp},
	"aten::special_logsumexp": {Doc: "log of the sum of exp over dim", Nature: Reduces, Alias: "aten::logsumexp", Lower: lowerLogsumexp},
	"aten::count_nonzero":     {Doc: "how many are not 0 over dim", Nature: Reduces, Complex: ofNonzero, Lower: lowerCountNonzero},
	"aten::sum_to_size":       {Doc: "sum over the dimensions that were broadcast", Gradient: "self: expand(grad, size(self))", View: MayBeView, Complex: (*Lowering).complexParts, Lower: lowerSumToSize},
}

// over gives the dimensions of an argument for l.Reduce: none for a rank 0 operand.
func (l *Lowering) over(x *ssa.Value, name string) []int64 {
	r := l.Rank(x)
	if !l.HasArg(name) {
		return nil
	}
	dims := l.Dims(name, r)
	if r == 0 || len(dims) == r {
		return nil
	}
	return dims
}

// reduceOver reduces over dim with keepdim; a rank 0 operand has nothing to reduce.
func (l *Lowering) reduceOver(op string, x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	if l.Rank(x) == 0 {
		return x
	}
	return l.reduce(op, x, dims, keep)
}

// accumulated is the operand in the type that sums have.
func (l *Lowering) accumulated(x *ssa.Value) *ssa.Value {
	if d := l.DTypeArg("dtype"); d != tensor.Undefined {
		return l.Cast(x, d)
	}
	if d := l.DType(x); d == tensor.Bool || d.IsInt() {
		return l.Cast(x, tensor.Int64)
	}
	return x
}

// total is a sum or a product, as over takes it.
func (l *Lowering) total(over func(x *ssa.Value, dims []int64, keep bool) *ssa.Value) *ssa.Value {
	x := l.accumulated(l.Tensor("self"))
	if d := l.DType(x); d.IsInt() && d != tensor.Int64 || d == tensor.Bool {
		// narrower sums wrap, so may be taken in int64; a sum of bool is whether it is not 0
		return l.Cast(over(l.Cast(x, tensor.Int64), l.over(x, "dim"), l.Bool("keepdim")), d)
	}
	return over(x, l.over(x, "dim"), l.Bool("keepdim"))
}

// zeroNaN replaces NaN by 0.
func (l *Lowering) zeroNaN(x *ssa.Value) *ssa.Value {
	if !l.DType(x).IsFloat() {
		return x
	}
	return l.Where(l.isNaN(x), l.Like(x, 0), x)
}

func lowerNansum(l *Lowering) *ssa.Value {
	x := l.accumulated(l.zeroNaN(l.Tensor("self")))
	return l.reduceOver("ReduceSum", x, l.over(x, "dim"), l.Bool("keepdim"))
}

// floating is the operand as a float, of the type dtype if that is given.
func (l *Lowering) floating(name string) *ssa.Value {
	if d := l.DTypeArg("dtype"); d != tensor.Undefined {
		return l.Cast(l.Tensor(name), d)
	}
	x := l.Tensor(name)
	if !l.DType(x).IsFloat() {
		l.Fail("%v operand: a float dtype is needed", l.DType(x))
	}
	return x
}

func lowerMean(l *Lowering) *ssa.Value {
	x := l.floating("self")
	return l.meanOver(x, l.over(x, "dim"), l.Bool("keepdim"))
}

// meanOver is the mean over dims. That of nothing is NaN, on which runtimes do not agree, so the sum is divided where the
// number of elements is not known.
func (l *Lowering) meanOver(x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	n := ConstSize(1)
	if l.Rank(x) > 0 {
		n = l.countOver(x, dims)
	}
	switch k, ok := n.Int(); {
	case ok && k > 0:
		return l.reduceOver("ReduceMean", x, dims, keep)
	case ok:
		return l.Div(l.reduceOver("ReduceSum", x, dims, keep), l.Like(x, 0))
	}
	return l.Div(l.reduceOver("ReduceSum", x, dims, keep), l.Cast(l.sizeValue(n), l.DType(x)))
}

func lowerNanmean(l *Lowering) *ssa.Value {
	x := l.floating("self")
	dims, keep := l.over(x, "dim"), l.Bool("keepdim")
	n := l.reduceOver("ReduceSum", l.Cast(l.Not(l.isNaN(x)), l.DType(x)), dims, keep)
	return l.Div(l.reduceOver("ReduceSum", l.zeroNaN(x), dims, keep), n)
}

// reduceExtreme is ReduceMax or ReduceMin for every type. A NaN wins in PyTorch; runtimes need not pass it on.
func (l *Lowering) reduceExtreme(op string, x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	d := l.DType(x)
	y := l.reduceOver(op, x, dims, keep)
	if !d.IsFloat() || l.Rank(x) == 0 {
		return y
	}
	return l.withNaN(y, x, dims, keep)
}

// withNaN makes the result y of a reduction of x NaN where x has one: the sum of the NaNs goes on top.
func (l *Lowering) withNaN(y, x *ssa.Value, dims []int64, keep bool) *ssa.Value {
	return l.Add(y, l.reduce("ReduceSum", l.Where(l.isNaN(x), x, l.Like(x, 0)), dims, keep))
}

// maxFinite is the greatest finite number of a float type.
func maxFinite(d tensor.DType) float64 {
	switch d {
	case tensor.Float16:
		return 65504
	case tensor.BFloat16:
		return 0x1.fep127
	case tensor.Float32:
		return math.MaxFloat32
	}
	return math.MaxFloat64
}

func (l *Lowering) extreme(op string) *ssa.Value {
	x := l.Tensor("self")
	return l.reduceExtreme(op, x, l.over(x, "dim"), l.Bool("keepdim"))
}

func (l *Lowering) extremeOverload(name string) []*ssa.Value {
	switch {
	case l.HasArg("other") && name == "Max":
		return []*ssa.Value{lowerMaximum(l)}
	case l.HasArg("other"):
		return []*ssa.Value{lowerMinimum(l)}
	case !l.HasArg("dim"):
		return []*ssa.Value{l.extreme("Reduce" + name)}
	}
	return []*ssa.Value{l.extreme("Reduce" + name), l.argExtreme("Arg" + name)}
}

// argExtreme takes the first of equal elements, as PyTorch does on the CPU.
func (l *Lowering) argExtreme(op string) *ssa.Value {
	x := l.Tensor("self")
	if l.DType(x) == tensor.Bool {
		x = l.Cast(x, tensor.Int32)
	}
	rank := l.Rank(x)
	keep := l.Bool("keepdim")
	if rank == 0 {
		if !l.IsNone("dim") {
			l.Dim("dim", rank)
		}
		return l.Scalar(tensor.Int64, 0)
	}
	if l.DType(x).IsFloat() {
		// NaN is the extreme one, and an infinity is next: it counts as the greatest finite number
		if op == "ArgMin" {
			x = l.Where(l.isNaN(x), l.lowest(l.DType(x)), l.max(x, l.Like(x, -maxFinite(l.DType(x)))))
		} else {
			x = l.Where(l.isNaN(x), l.highest(l.DType(x)), l.min(x, l.Like(x, maxFinite(l.DType(x)))))
		}
	}
	if l.IsNone("dim") {
		i := l.OpA(op, []ssa.Attr{onnx.Axis(0), onnx.KeepDims(false)}, l.reshape(x, -1))
		if keep {
			ones := make([]int64, rank)
			for i := range ones {
				ones[i] = 1
			}
			return l.reshape(i, ones...)
		}
		return i
	}
	return l.OpA(op, []ssa.Attr{onnx.Axis(l.Dim("dim", rank)), onnx.KeepDims(keep)}, x)
}

// quantifier is any or all; of uint8 they give uint8.
func (l *Lowering) quantifier(f func(*ssa.Value, []int64, bool) *ssa.Value) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	b := l.Cast(x, tensor.Bool)
	if l.Rank(x) > 0 {
		b = f(b, l.over(x, "dim"), l.Bool("keepdim"))
	}
	if d == tensor.Uint8 && l.Arg("self").Tensor() != nil {
		return l.Cast(b, d)
	}
	return b
}

// nothingIn reports that a reduction over dims (nil for all) is known to have no elements.
func (l *Lowering) nothingIn(x *ssa.Value, dims []int64) bool {
	for i, s := range l.Shape(x) {
		if s.Is(0) && (dims == nil || slices.Contains(dims, int64(i))) {
			return true
		}
	}
	return false
}

// countOver is the number of elements that a reduction takes together.
func (l *Lowering) countOver(x *ssa.Value, dims []int64) Size {
	n := ConstSize(1)
	if dims == nil {
		for i := range l.Rank(x) {
			n = l.mulSize(n, l.sizeOf(x, i))
		}
	}
	for _, d := range dims {
		n = l.mulSize(n, l.sizeOf(x, int(d)))
	}
	return n
}

// moments gives variance and mean. The mean is taken off first, so nothing cancels.
func (l *Lowering) moments() (variance, mean *ssa.Value) {
	x := l.Tensor("self")
	if !l.DType(x).IsFloat() {
		l.Fail("variance of %v", l.DType(x))
	}
	var correction Number
	if l.HasArg("unbiased") {
		correction = constNumber(float64(boolToInt(l.Bool("unbiased"))))
	} else {
		correction = l.NumberOr("correction", 1)
	}
	dims, keep := l.over(x, "dim"), l.Bool("keepdim")
	x, back := l.widen(x)
	v, m := l.variance(x, dims, keep, correction)
	return back(v), back(m)
}

// variance divides by the count less the correction, but not by less than 0.
func (l *Lowering) variance(x *ssa.Value, dims []int64, keep bool, correction Number) (variance, mean *ssa.Value) {
	squares := l.square(l.Sub(x, l.reduceOver("ReduceMean", x, dims, true)))
	mean = l.meanOver(x, dims, keep)
	if correction.is(0) {
		return l.meanOver(squares, dims, keep), mean
	}
	sum := l.reduceOver("ReduceSum", squares, dims, keep)
	n := l.countOver(x, dims)
	if k, ok := n.Int(); ok && known(correction) {
		return l.Div(sum, l.Like(x, math.Max(0, float64(k)-correction.k))), mean
	}
	f := l.Sub(l.Cast(l.sizeValue(n), l.DType(x)), l.LikeNumber(x, correction))
	return l.Div(sum, l.max(f, l.Like(x, 0))), mean
}

func lowerLogsumexp(l *Lowering) *ssa.Value {
	x := l.FloatArg("self")
	if l.Rank(x) == 0 {
		return x
	}
	dims, keep := l.over(x, "dim"), l.Bool("keepdim")
	return l.withNaN(l.reduce("ReduceLogSumExp", x, dims, keep), x, dims, keep)
}

func lowerCountNonzero(l *Lowering) *ssa.Value {
	x := l.Cast(l.Cast(l.Tensor("self"), tensor.Bool), tensor.Int64)
	return l.reduceOver("ReduceSum", x, l.over(x, "dim"), false)
}

func lowerSumToSize(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	sizes := l.sizes("size")
	dims := l.Shape(x)
	lead := len(dims) - len(sizes)
	if lead < 0 {
		l.Fail("the target has more dimensions than the operand")
	}
	var axes, outer []int64
	shape := make([]int64, len(dims))
	var expected []int // dimensions of a size that is not known, and has to be that of the target
	for i := range dims {
		m, known := dims[i].Int()
		shape[i] = m
		if i < lead {
			axes, outer = append(axes, int64(i)), append(outer, int64(i))
			continue
		}
		s := sizes[i-lead]
		if s.Known && s.Expr.Equal(dims[i]) {
			continue
		}
		n, ok := s.Int()
		if ok && n != 1 { // only sizes of 1 are broadcast
			if known {
				l.Fail("dimension %d has size %d, which is not summed to %d", i, m, n)
			}
			shape[i] = n
			expected = append(expected, i)
			continue
		}
		if !ok {
			l.Fail("whether dimension %d was broadcast is not known", i)
		}
		axes = append(axes, int64(i))
	}
	if len(expected) > 0 {
		for i, d := range dims {
			if _, known := d.Int(); !known && !slices.Contains(expected, i) {
				l.Fail("whether dimension %d has the size that it is summed to is not known", expected[0])
			}
		}
		x = l.reshape(x, shape...) // fails at run time for other sizes
	}
	if len(sizes) == 0 {
		return l.reduceOver("ReduceSum", l.accumulated(x), nil, false)
	}
	if len(axes) == 0 {
		return x
	}
	if !l.DType(x).IsFloat() {
		x = l.Cast(x, tensor.Int64)
	}
	return l.squeeze(l.reduce("ReduceSum", x, axes, true), outer...)
}
