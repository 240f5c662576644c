package aten

import (
	"fmt"
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// normalization holds the layers that normalize (ATen/native/{Normalization,layer_norm,group_norm}.cpp).
var normalization = Defs{
	"aten::batch_norm":               {Doc: "(x - mean) / sqrt(var + eps) * weight + bias for each channel", Gradient: "[training=False] input: native_batch_norm_backward(grad, input, weight, running_mean, running_var, None, None, False, eps, [True, False, False])[0]", Effects: writesUnless("training"), Lower: lowerBatchNorm},
	"aten::_batch_norm_impl_index":   {Doc: "batch_norm with its saved statistics", Effects: writesUnless("training"), LowerN: lowerBatchNormImpl},
	"aten::native_batch_norm":        {Doc: "batch_norm with the batch's mean and 1 / sqrt(var + eps)", Effects: writesUnless("training"), LowerN: lowerNativeBatchNorm(3, false)},
	"aten::_native_batch_norm_legit": {Doc: "batch_norm with the batch's mean and 1 / sqrt(var + eps)", LowerN: lowerNativeBatchNorm(3, false)},
	"aten::_native_batch_norm_legit_functional": {
		Doc: "batch_norm with the batch's statistics and the new running ones", LowerN: lowerBatchNormFunctional(3, false)},
	"aten::_native_batch_norm_legit_no_training": {Doc: "batch_norm by the running statistics", LowerN: lowerNativeBatchNorm(3, false)},
	"aten::_batch_norm_with_update":              {Doc: "training batch_norm", LowerN: lowerNativeBatchNorm(4, true)},
	"aten::_batch_norm_with_update_functional":   {Doc: "training batch_norm with the new running statistics", LowerN: lowerBatchNormFunctional(4, true)},
	"aten::_batch_norm_no_update":                {Doc: "batch_norm by the running statistics", LowerN: lowerNativeBatchNorm(4, false)},
	"aten::cudnn_batch_norm":                     {Doc: "batch_norm", Effects: writesUnless("training"), LowerN: lowerNativeBatchNorm(4, false)},
	"aten::miopen_batch_norm":                    {Doc: "batch_norm", Effects: writesUnless("training"), LowerN: lowerNativeBatchNorm(3, false)},
	"aten::instance_norm":                        {Doc: "normalization of each channel of each sample", Nature: Samples, Layout: RowMajor, Effects: writesUnless("use_input_stats"), Lower: lowerInstanceNorm},
	"aten::layer_norm":                           {Doc: "normalization over the trailing dimensions", Gradient: "input: native_layer_norm_backward(grad, input, normalized_shape, native_layer_norm(input, normalized_shape, weight, bias, eps)[1], native_layer_norm(input, normalized_shape, weight, bias, eps)[2], weight, bias, [True, True, True])[0]; weight: native_layer_norm_backward(grad, input, normalized_shape, native_layer_norm(input, normalized_shape, weight, bias, eps)[1], native_layer_norm(input, normalized_shape, weight, bias, eps)[2], weight, bias, [True, True, True])[1]; bias: native_layer_norm_backward(grad, input, normalized_shape, native_layer_norm(input, normalized_shape, weight, bias, eps)[1], native_layer_norm(input, normalized_shape, weight, bias, eps)[2], weight, bias, [True, True, True])[2]", Batching: ScalesBehind, Layout: RowMajor, Autocast: Float32OnCUDA, Lower: lowerLayerNorm},
	"aten::native_layer_norm":                    {Doc: "layer_norm with its mean and 1 / sqrt(var + eps)", Autocast: Float32OnCUDA, LowerN: lowerNativeLayerNorm},
	"aten::group_norm":                           {Doc: "normalization of each group of channels of each sample", Gradient: "input: native_group_norm_backward(grad, input, native_group_norm(input, weight, bias, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, eps)[1], native_group_norm(input, weight, bias, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, eps)[2], weight, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, [True, True, True])[0]; weight: native_group_norm_backward(grad, input, native_group_norm(input, weight, bias, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, eps)[1], native_group_norm(input, weight, bias, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, eps)[2], weight, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, [True, True, True])[1]; bias: native_group_norm_backward(grad, input, native_group_norm(input, weight, bias, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, eps)[1], native_group_norm(input, weight, bias, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, eps)[2], weight, size(input, 0), size(input, 1), numel(input) // (size(input, 0) * size(input, 1)), num_groups, [True, True, True])[2]", Nature: Samples, Autocast: Float32OnCUDA, Lower: lowerGroupNorm},
	"aten::native_group_norm":                    {Doc: "group_norm with its mean and 1 / sqrt(var + eps)", LowerN: lowerNativeGroupNorm},
	"aten::rms_norm":                             {Doc: "x / sqrt(mean(x^2) + eps) * weight over the trailing dimensions", Batching: ScalesBehind, Layout: RowMajor, Lower: lowerRMSNorm},
	"aten::_fused_rms_norm":                      {Doc: "rms_norm with 1 / sqrt(mean(x^2) + eps)", LowerN: lowerFusedRMSNorm},
	"aten::_weight_norm":                         {Doc: "v * (g / norm of v over all dimensions but dim)", Lower: func(l *Lowering) *ssa.Value { return lowerWeightNorm(l)[0] }},
	"aten::_weight_norm_interface":               {Doc: "_weight_norm and the norm", LowerN: lowerWeightNorm},
	"aten::norm_except_dim":                      {Doc: "norm over all dimensions but dim", Lower: func(l *Lowering) *ssa.Value { return l.normExcept(l.Tensor("v"), l.Int("dim"), l.Float("pow")) }},
}

// stats are the pieces of a normalization over some axes, kept as size 1.
type stats struct{ centered, mean, rstd *ssa.Value }

// statsOf computes mean and 1 / sqrt(biased variance + eps).
func (l *Lowering) statsOf(x *ssa.Value, axes []int64, eps Number) stats {
	mean := l.reduce("ReduceMean", x, axes, true)
	c := l.Sub(x, mean)
	v := l.reduce("ReduceMean", l.Mul(c, c), axes, true)
	return stats{c, mean, l.Reciprocal(l.Sqrt(l.Add(v, l.LikeNumber(x, eps))))}
}

// compute gives x in the type that PyTorch computes in: half types in float32.
func (l *Lowering) compute(x *ssa.Value) *ssa.Value {
	if d := l.DType(x); d.IsFloat() && d.Size() < 4 {
		return l.Cast(x, tensor.Float32)
	}
	return x
}

// channelVector spreads (C) over (N, C, ...) of the given rank.
func (l *Lowering) channelVector(v *ssa.Value, rank int) *ssa.Value {
	if rank <= 2 {
		return v
	}
	return l.unsqueeze(v, axesFrom(1, rank-2)...)
}

// fullVector is v, or a vector of the constant c as long as dimension dim of x.
func (l *Lowering) fullVector(v, x *ssa.Value, dim int, d tensor.DType, c float64) *ssa.Value {
	if v != nil {
		return v
	}
	n := l.sizeOf(x, dim)
	if k, ok := n.Int(); ok {
		return l.Const(tensor.Full(d, []int64{k}, c))
	}
	return l.fill(l.sizeTensor([]Size{n}), d, ssa.Float(c))
}

// batchNormEval normalizes by given statistics.
func (l *Lowering) batchNormEval(x, w, b, mean, variance *ssa.Value, eps Number) *ssa.Value {
	d := l.DType(x)
	if l.Rank(x) == 1 {
		if n, ok := l.Shape(x)[0].Int(); ok && n == 0 {
			return x
		}
		l.Fail("batch_norm of a vector")
	}
	pd := d
	if mean != nil {
		pd = l.DType(mean)
	}
	l.sameChannels(x, w, b, mean, variance)
	w = l.fullVector(w, x, 1, pd, 1)
	b = l.fullVector(b, x, 1, pd, 0)
	same := l.DType(w) == d && l.DType(b) == d && l.DType(mean) == d && l.DType(variance) == d
	if !same {
		// PyTorch mixes half inputs with float32 parameters.
		wide := l.compute(x)
		wd := l.DType(wide)
		y := l.batchNormEval(wide, l.Cast(w, wd), l.Cast(b, wd), l.Cast(mean, wd), l.Cast(variance, wd), eps)
		return l.Cast(y, d)
	}
	if k, ok := eps.Known(); ok {
		return l.BatchNormalization(x, w, b, mean, variance, onnx.Epsilon(k))
	}
	r := l.Rank(x)
	factor := l.Div(w, l.Sqrt(l.plusNumber(variance, eps)))
	return l.Add(l.Mul(l.Sub(x, l.channelVector(mean, r)), l.channelVector(factor, r)), l.channelVector(b, r))
}

// batchNormTrain normalizes by the batch's own statistics, which have the shape (C).
func (l *Lowering) batchNormTrain(x, w, b *ssa.Value, eps Number) (y, mean, rstd *ssa.Value) {
	d := l.DType(x)
	wide := l.compute(x)
	r := l.Rank(x)
	if r == 1 && l.Shape(x)[0].IsConst() && l.static(x, 0) == 0 {
		return x, l.emptyVector(d), l.emptyVector(d)
	}
	if r < 2 {
		l.Fail("batch_norm of rank %d", r)
	}
	l.sameChannels(x, w, b)
	axes := append([]int64{0}, axesFrom(2, r-2)...)
	s := l.statsOf(wide, axes, eps)
	y = l.Mul(s.centered, s.rstd)
	if w != nil {
		y = l.Mul(y, l.channelVector(l.Cast(w, l.DType(wide)), r))
	}
	if b != nil {
		y = l.Add(y, l.channelVector(l.Cast(b, l.DType(wide)), r))
	}
	return l.Cast(y, d), l.reshape(s.mean, -1), l.reshape(s.rstd, -1)
}

// batchNormTrainable is ONNX's operator in training, nil where it cannot be used: before opset 14 it does not train. Its new
// running variance is ONNX's, of all elements, where PyTorch's is of one less; nothing here reads it.
func (l *Lowering) batchNormTrainable(x, w, b *ssa.Value) *ssa.Value {
	const least = 14
	if !l.Training || l.Opset < least || l.IsNone("running_mean") || l.IsNone("running_var") || l.IsNone("momentum") || !l.IsConst("momentum") || !known(l.epsArg()) ||
		l.Rank(x) < 2 {
		return nil
	}
	mean, variance := l.Tensor("running_mean"), l.Tensor("running_var")
	if l.DType(x) != tensor.Float32 || l.DType(mean) != tensor.Float32 || l.DType(variance) != tensor.Float32 {
		return nil
	}
	w, b = l.fullVector(w, x, 1, tensor.Float32, 1), l.fullVector(b, x, 1, tensor.Float32, 0)
	l.sameChannels(x, w, b)
	return l.BatchNormalizationN(3, x, w, b, mean, variance, onnx.Epsilon(l.epsArg().k), onnx.Momentum(1-l.Float("momentum")), onnx.TrainingMode(true))[0]
}

func (l *Lowering) epsArg() Number {
	if l.HasArg("epsilon") {
		return l.Number("epsilon")
	}
	return l.Number("eps")
}

// trains reports whether a batch_norm uses the batch's statistics; updates is of those that have no argument that says so, and do.
func (l *Lowering) trains(updates bool) bool {
	switch {
	case l.IsNone("running_mean"):
		return true
	case l.HasArg("training"):
		return l.Bool("training")
	}
	return updates
}

func lowerBatchNorm(l *Lowering) *ssa.Value {
	x, w, b := l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias")
	if l.trains(false) {
		if y := l.batchNormTrainable(x, w, b); y != nil {
			return y
		}
		y, _, _ := l.batchNormTrain(x, w, b, l.epsArg())
		return y
	}
	return l.batchNormEval(x, w, b, l.Tensor("running_mean"), l.Tensor("running_var"), l.epsArg())
}

// emptyVector is an empty vector, which PyTorch gives for what it did not save.
func (l *Lowering) emptyVector(d tensor.DType) *ssa.Value {
	return l.Const(tensor.Full(d, []int64{0}, 0))
}

func lowerNativeBatchNorm(results int, updates bool) func(*Lowering) []*ssa.Value {
	return func(l *Lowering) []*ssa.Value {
		x, w, b := l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias")
		var out []*ssa.Value
		if l.trains(updates) {
			y, m, r := l.batchNormTrain(x, w, b, l.epsArg())
			d := l.DType(x) // the statistics have the parameters' type
			if w != nil {
				d = l.DType(w)
			}
			out = []*ssa.Value{y, l.Cast(m, d), l.Cast(r, d)}
		} else {
			y := l.batchNormEval(x, w, b, l.Tensor("running_mean"), l.Tensor("running_var"), l.epsArg())
			d := l.DType(x)
			if w != nil {
				d = l.DType(w)
			}
			e := l.emptyVector(d)
			out = []*ssa.Value{y, e, e}
		}
		if results > 3 {
			out = append(out, l.emptyVector(tensor.Uint8))
		}
		return out
	}
}

func lowerBatchNormImpl(l *Lowering) []*ssa.Value {
	return append(lowerNativeBatchNorm(4, false)(l), l.scalarInt(tensor.Int64, 0))
}

// lowerBatchNormFunctional also gives the running statistics after the update.
func lowerBatchNormFunctional(results int, updates bool) func(*Lowering) []*ssa.Value {
	return func(l *Lowering) []*ssa.Value {
		x, mean, variance := l.Tensor("input"), l.Tensor("running_mean"), l.Tensor("running_var")
		out := lowerNativeBatchNorm(results, updates)(l)
		if !l.trains(updates) {
			return append(out, mean, variance)
		}
		m := l.Number("momentum")
		d := l.DType(mean)
		r := l.Rank(x)
		axes := append([]int64{0}, axesFrom(2, r-2)...)
		wide := l.compute(x)
		s := l.statsOf(wide, axes, l.epsArg())
		n := l.sizeProduct(append(l.sizesOf(x, 0, 1), l.sizesOf(x, 2, r)...)...)
		sum := l.reduce("ReduceSum", l.Mul(s.centered, s.centered), axes, false)
		unbiased := l.Div(sum, l.Cast(l.sizeValue(l.subSize(n, ConstSize(1))), l.DType(wide)))
		blend := func(old, now *ssa.Value) *ssa.Value {
			return l.Add(l.byNumber(old, l.linearNumber(m, -1, 1)), l.byNumber(l.Cast(now, d), m))
		}
		return append(out, blend(mean, l.reshape(s.mean, -1)), blend(variance, unbiased))
	}
}

// sameChannels demands as many elements of vectors, which may be nil, as x of (N, C, ...) has channels.
func (l *Lowering) sameChannels(x *ssa.Value, vectors ...*ssa.Value) {
	dims := l.Shape(x)
	for _, v := range vectors {
		if v == nil || len(dims) < 2 {
			continue
		}
		if n := l.Shape(v); len(n) == 1 {
			l.Same(dims[1], n[0])
		}
	}
}

func lowerInstanceNorm(l *Lowering) *ssa.Value {
	x, w, b := l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias")
	eps := l.Number("eps")
	if !l.Bool("use_input_stats") {
		return l.batchNormEval(x, w, b, l.Tensor("running_mean"), l.Tensor("running_var"), eps)
	}
	l.sameChannels(x, w, b)
	d := l.DType(x)
	wide := l.compute(x)
	wd := l.DType(wide)
	w = l.Cast(l.fullVector(w, x, 1, wd, 1), wd)
	b = l.Cast(l.fullVector(b, x, 1, wd, 0), wd)
	return l.Cast(l.instanceNorm(wide, w, b, eps), d)
}

// instanceNorm normalizes (N, C, ...) over all but the first two axes.
func (l *Lowering) instanceNorm(x, w, b *ssa.Value, eps Number) *ssa.Value {
	r := l.Rank(x)
	if l.DType(x) == tensor.Float32 && r > 2 && known(eps) {
		return l.InstanceNormalization(x, w, b, onnx.Epsilon(eps.k))
	}
	if r < 2 {
		l.Fail("the input has %d dimensions, too few for this operator", r)
	}
	s := l.statsOf(x, axesFrom(2, r-2), eps)
	return l.Add(l.Mul(l.Mul(s.centered, s.rstd), l.channelVector(w, r)), l.channelVector(b, r))
}

func lowerLayerNorm(l *Lowering) *ssa.Value {
	x, w, b := l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias")
	return l.layerNorm(x, w, b, l.normalizedAxes(x), l.Number("eps"))
}

// normalizedAxes is the number of axes of x that normalized_shape names. Their sizes must be the ones named.
func (l *Lowering) normalizedAxes(x *ssa.Value) int {
	shape, dims := l.sizes("normalized_shape"), l.Shape(x)
	if len(dims) < len(shape) {
		panic(&Failure{ID: "invalid-args", Message: fmt.Sprintf("normalized_shape has %d sizes, the input has %d dimensions", len(shape), len(dims)), Hint: "correct the shape in --input"})
	}
	for i, d := range dims[len(dims)-len(shape):] {
		if shape[i].Known {
			l.Same(d, shape[i].Expr)
		}
	}
	return len(shape)
}

// layerNorm normalizes over the last n axes.
func (l *Lowering) layerNorm(x, w, b *ssa.Value, n int, eps Number) *ssa.Value {
	d := l.DType(x)
	if known(eps) && (w == nil || l.DType(w) == d) && (b == nil || l.DType(b) == d) {
		if w == nil {
			shape, ok := l.trailing(x, n)
			if !ok {
				return l.layerNormByHand(x, w, b, n, eps).y
			}
			w = l.Const(tensor.Full(d, shape, 1))
		}
		return l.LayerNormalization(x, w, b, onnx.Axis(-n), onnx.Epsilon(eps.k))
	}
	return l.layerNormByHand(x, w, b, n, eps).y
}

// trailing gives the last n sizes if they are known.
func (l *Lowering) trailing(x *ssa.Value, n int) ([]int64, bool) {
	dims := l.Shape(x)
	if n > len(dims) {
		l.Fail("normalized_shape has %d entries, the input rank %d", n, len(dims))
	}
	out := make([]int64, n)
	for i, e := range dims[len(dims)-n:] {
		k, ok := e.Int()
		if !ok {
			return nil, false
		}
		out[i] = k
	}
	return out, true
}

type normalized struct {
	y *ssa.Value
	stats
}

func (l *Lowering) layerNormByHand(x, w, b *ssa.Value, n int, eps Number) normalized {
	d := l.DType(x)
	wide := l.compute(x)
	s := l.statsOf(wide, axesFrom(l.Rank(x)-n, n), eps)
	y := l.Mul(s.centered, s.rstd)
	if w != nil {
		y = l.Mul(y, l.Cast(w, l.DType(wide)))
	}
	if b != nil {
		y = l.Add(y, l.Cast(b, l.DType(wide)))
	}
	return normalized{l.Cast(y, d), s}
}

func lowerNativeLayerNorm(l *Lowering) []*ssa.Value {
	x, w, b := l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias")
	n := l.normalizedAxes(x)
	r := l.layerNormByHand(x, w, b, n, l.Number("eps"))
	// The statistics have the parameters' type where that is wider than the input's.
	d := l.DType(x)
	if w != nil {
		d = l.DType(w)
	}
	return []*ssa.Value{r.y, l.Cast(r.mean, d), l.Cast(r.rstd, d)}
}

// groups reshapes (N, C, ...) to (N, groups, rest).
func (l *Lowering) groups(x *ssa.Value, groups int64) *ssa.Value {
	N := l.sizeOf(x, 0)
	rest := l.sizeProduct(l.sizesOf(x, 1, l.Rank(x))...)
	return l.reshapeSizes(x, N, ConstSize(groups), l.divSize(rest, ConstSize(groups)))
}

// numGroups is how many groups the channels of x are divided into.
func (l *Lowering) numGroups(x *ssa.Value, name string) int64 {
	g := l.Int(name)
	if l.Rank(x) < 2 {
		l.Fail("expects at least 2 dimensions, found %d", l.Rank(x))
	}
	if c, ok := l.Shape(x)[1].Int(); g < 1 || ok && c%g != 0 {
		l.Fail("%d channels are not divided into %d groups", c, g)
	}
	return g
}

func (l *Lowering) affineChannels(y, w, b *ssa.Value, r int) *ssa.Value {
	if w != nil {
		y = l.Mul(y, l.channelVector(l.Cast(w, l.DType(y)), r))
	}
	if b != nil {
		y = l.Add(y, l.channelVector(l.Cast(b, l.DType(y)), r))
	}
	return y
}

func lowerGroupNorm(l *Lowering) *ssa.Value {
	x, w, b := l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias")
	g, eps, d := l.numGroups(x, "num_groups"), l.Number("eps"), l.DType(x)
	if known(eps) && w != nil && b != nil && l.DType(w) == d && l.DType(b) == d && l.Rank(x) > 2 {
		return l.GroupNormalization(x, w, b, g, onnx.Epsilon(eps.k))
	}
	wide := l.compute(x)
	ones := l.Const(tensor.Full(l.DType(wide), []int64{g}, 1))
	zeros := l.Const(tensor.Full(l.DType(wide), []int64{g}, 0))
	y := l.instanceNorm(l.groups(wide, g), ones, zeros, eps)
	r := l.Rank(x)
	y = l.reshapeSizes(y, l.sizesOf(x, 0, r)...)
	return l.Cast(l.affineChannels(y, w, b, r), d)
}

func lowerNativeGroupNorm(l *Lowering) []*ssa.Value {
	x, w, b := l.Tensor("input"), l.TensorOr("weight"), l.TensorOr("bias")
	d := l.DType(x)
	wide := l.compute(x)
	r := l.Rank(x)
	s := l.statsOf(l.groups(wide, l.numGroups(x, "group")), []int64{2}, l.Number("eps"))
	y := l.reshapeSizes(l.Mul(s.centered, s.rstd), l.sizesOf(x, 0, r)...)
	sd := d
	if w != nil {
		sd = l.DType(w)
	}
	return []*ssa.Value{l.Cast(l.affineChannels(y, w, b, r), d), l.Cast(l.squeeze(s.mean, 2), sd), l.Cast(l.squeeze(s.rstd, 2), sd)}
}

// epsilonOf is the distance from 1 to the next number of a type.
func epsilonOf(d tensor.DType) float64 {
	switch d {
	case tensor.Float16:
		return math.Ldexp(1, -10)
	case tensor.BFloat16:
		return math.Ldexp(1, -7)
	case tensor.Float64:
		return math.Ldexp(1, -52)
	}
	return math.Ldexp(1, -23)
}

func lowerRMSNorm(l *Lowering) *ssa.Value {
	x, w := l.Tensor("input"), l.TensorOr("weight")
	n := len(l.sizes("normalized_shape"))
	eps := l.NumberOr("eps", epsilonOf(l.DType(x)))
	if known(eps) && w != nil && l.DType(w) == l.DType(x) {
		return l.RMSNormalization(x, w, onnx.Axis(-n), onnx.Epsilon(eps.k))
	}
	y, _ := l.rmsNorm(x, w, n, eps)
	return y
}

func (l *Lowering) rmsNorm(x, w *ssa.Value, n int, eps Number) (y, rstd *ssa.Value) {
	wide := l.compute(x)
	sq := l.reduce("ReduceMean", l.Mul(wide, wide), axesFrom(l.Rank(x)-n, n), true)
	rstd = l.Reciprocal(l.Sqrt(l.Add(sq, l.LikeNumber(wide, eps))))
	y = l.Mul(wide, rstd)
	if w != nil {
		y = l.Mul(y, l.Cast(w, l.DType(wide)))
	}
	return l.Cast(y, l.DType(x)), rstd
}

func lowerFusedRMSNorm(l *Lowering) []*ssa.Value {
	x := l.Tensor("input")
	y, r := l.rmsNorm(x, l.TensorOr("weight"), len(l.sizes("normalized_shape")), l.NumberOr("eps", epsilonOf(l.DType(x))))
	return []*ssa.Value{y, r}
}

// normExcept is the p-norm over all dimensions but dim (kept); over all of them for -1.
func (l *Lowering) normExcept(v *ssa.Value, dim int64, p float64) *ssa.Value {
	r := l.Rank(v)
	if dim < -1 && dim >= -int64(r) { // only -1 is none
		dim += int64(r)
	}
	var axes []int64
	for i := range r {
		if int64(i) != dim {
			axes = append(axes, int64(i))
		}
	}
	keep := dim >= 0
	if dim >= int64(r) || dim < -1 {
		l.Fail("dimension %d is out of range for rank %d", dim, r)
	}
	switch {
	case len(axes) == 0 && (p == 1 || p == 2): // of each element alone
		return l.Abs(v)
	case p == 2:
		return l.Sqrt(l.reduce("ReduceSum", l.Mul(v, v), axes, keep))
	case p == 1:
		return l.reduce("ReduceSum", l.Abs(v), axes, keep)
	}
	l.Fail("a weight norm of power %v", p)
	return nil
}

func lowerWeightNorm(l *Lowering) []*ssa.Value {
	v, g := l.Tensor("v"), l.Tensor("g")
	norm := l.normExcept(v, l.Int("dim"), 2)
	return []*ssa.Value{l.Mul(v, l.Div(g, norm)), norm}
}
