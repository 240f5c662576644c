package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// losses holds the loss functions (ATen/native/Loss*.cpp). reduction is 0 for none, 1 for mean, 2 for sum.
var losses = Defs{
	"aten::mse_loss":                         {Doc: "(x - y)^2", Gradient: "self: mse_loss_backward(grad, self, target, reduction); target: -mse_loss_backward(grad, self, target, reduction)", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: elementLoss(func(l *Lowering, x, y *ssa.Value) *ssa.Value { d := l.Sub(x, y); return l.Mul(d, d) })},
	"aten::l1_loss":                          {Doc: "|x - y|", Gradient: "self: reduction == 1 ? grad * sgn(self - target) / numel(self) : grad * sgn(self - target); target: reduction == 1 ? grad * sgn(target - self) / numel(self) : grad * sgn(target - self)", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Complex: one(complexL1Loss), Lower: elementLoss(func(l *Lowering, x, y *ssa.Value) *ssa.Value { return l.Abs(l.Sub(x, y)) })},
	"aten::smooth_l1_loss":                   {Doc: "d^2 / (2 beta) for d = |x - y| below beta, else d - beta / 2", Gradient: "self: smooth_l1_loss_backward(grad, self, target, reduction, beta); target: -smooth_l1_loss_backward(grad, self, target, reduction, beta)", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: elementLoss(smoothL1)},
	"aten::huber_loss":                       {Doc: "d^2 / 2 for d = |x - y| up to delta, else delta * (d - delta / 2)", Gradient: "self: huber_loss_backward(grad, self, target, reduction, delta); target: -huber_loss_backward(grad, self, target, reduction, delta)", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: elementLoss(huber)},
	"aten::soft_margin_loss":                 {Doc: "log(1 + exp(-x * y))", Gradient: "self: soft_margin_loss_backward(grad, self, target, reduction)", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: elementLoss(softMargin)},
	"aten::kl_div":                           {Doc: "y * (log y - x)", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: elementLoss(klDiv)},
	"aten::poisson_nll_loss":                 {Doc: "exp(x) - y * x, or x - y * log(x + eps)", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: lowerPoissonNLL},
	"aten::hinge_embedding_loss":             {Doc: "x where y is 1, max(margin - x, 0) where y is -1", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: elementLoss(hingeEmbedding)},
	"aten::binary_cross_entropy":             {Doc: "-(y * log(x) + (1 - y) * log(1 - x)), logarithms not below -100", Gradient: "self: binary_cross_entropy_backward(grad, self, target, weight, reduction)", Batching: ReducesBehind, Autocast: Float32OnCPU, Lower: lowerBCE},
	"aten::binary_cross_entropy_with_logits": {Doc: "binary cross entropy of sigmoid(x)", Gradient: "[weight=None, pos_weight=None] self: reduction == 1 ? grad * (sigmoid(self) - target) / numel(self) : grad * (sigmoid(self) - target); target: reduction == 1 ? -grad * self / numel(self) : -grad * self", Batching: ReducesBehind, Autocast: Float32OnCPU | Float32OnCUDA, Lower: lowerBCELogits},
	"aten::nll_loss":                         {Doc: "-weight[y] * x[y] along the class axis", Gradient: "self: nll_loss_backward(grad, self, target, weight, reduction, ignore_index, nll_loss_forward(self, target, weight, reduction, ignore_index)[1])", Autocast: Float32OnCPU | Float32OnCUDA, Lower: func(l *Lowering) *ssa.Value { return l.nllLoss()[0] }},
	"aten::nll_loss2d":                       {Doc: "-weight[y] * x[y] along axis 1", Autocast: Float32OnCPU | Float32OnCUDA, Lower: func(l *Lowering) *ssa.Value { return l.nllLoss()[0] }},
	"aten::nll_loss_nd":                      {Doc: "-weight[y] * x[y] along axis 1", Lower: func(l *Lowering) *ssa.Value { return l.nllLoss()[0] }},
	"aten::nll_loss_forward":                 {Doc: "nll_loss and the sum of the weights in use", LowerN: func(l *Lowering) []*ssa.Value { return l.nllLoss() }},
	"aten::nll_loss2d_forward":               {Doc: "nll_loss2d and the sum of the weights in use", LowerN: func(l *Lowering) []*ssa.Value { return l.nllLoss() }},
	"aten::cross_entropy_loss":               {Doc: "nll_loss of log_softmax, or against class probabilities", Autocast: Float32OnCPU | Float32OnCUDA, Lower: lowerCrossEntropy},
	"aten::cosine_embedding_loss": {
		Autocast: Float32OnCPU | Float32OnCUDA,
		Doc:      "1 - cos where y is 1, max(cos - margin, 0) where y is -1", Lower: lowerCosineEmbedding},
	"aten::margin_ranking_loss":    {Doc: "max(-y * (x1 - x2) + margin, 0)", Autocast: Float32OnCPU | Float32OnCUDA, Lower: lowerMarginRanking},
	"aten::triplet_margin_loss":    {Doc: "max(d(anchor, positive) - d(anchor, negative) + margin, 0)", Autocast: Float32OnCPU | Float32OnCUDA, Lower: lowerTripletMargin},
	"aten::multi_margin_loss":      {Doc: "mean over the classes but y of max(margin - x[y] + x, 0)^p", Autocast: Float32OnCPU | Float32OnCUDA, Lower: lowerMultiMargin},
	"aten::multilabel_margin_loss": {Doc: "hinge loss between each target and each other class", Autocast: Float32OnCPU | Float32OnCUDA, Lower: func(l *Lowering) *ssa.Value { return l.multilabelMargin()[0] }},
	"aten::multilabel_margin_loss_forward": {
		Autocast: Float32OnCPU,
		Doc:      "multilabel_margin_loss and which classes are targets", LowerN: func(l *Lowering) []*ssa.Value { return l.multilabelMargin() }},
}

// reduced applies the reduction argument.
func (l *Lowering) reduceLoss(x *ssa.Value) *ssa.Value {
	switch r := l.Int("reduction"); r {
	case 0:
		return x
	case 1:
		if t := x.Tensor(); t == nil || !t.Ranked {
			return l.reduce("ReduceMean", x, nil, false)
		}
		return l.meanOver(x, nil, false)
	case 2:
		return l.reduce("ReduceSum", x, nil, false)
	default:
		l.Fail("reduction %d", r)
	}
	return nil
}

// elementLoss is a loss of promoted self and target, element by element.
func elementLoss(f func(l *Lowering, x, y *ssa.Value) *ssa.Value) func(*Lowering) *ssa.Value {
	return func(l *Lowering) *ssa.Value {
		vs, d := l.promoted("self", "target")
		if !d.IsFloat() {
			l.Fail("a loss of %v", d)
		}
		return l.reduceLoss(f(l, vs[0], vs[1]))
	}
}

func smoothL1(l *Lowering, x, y *ssa.Value) *ssa.Value {
	d := l.Abs(l.Sub(x, y))
	beta := l.Number("beta")
	if beta.is(0) {
		return d
	}
	bound := l.LikeNumber(d, beta) // no number is below 0: of the quotient by 0 nothing is taken
	return l.Where(l.Less(d, bound), l.Div(l.Mul(l.Mul(d, d), l.Like(d, 0.5)), l.LikeNumber(d, beta)), l.Sub(d, l.LikeNumber(d, l.linearNumber(beta, 0.5, 0))))
}

func huber(l *Lowering, x, y *ssa.Value) *ssa.Value {
	d := l.Abs(l.Sub(x, y))
	delta := l.Number("delta")
	return l.Where(l.Greater(d, l.LikeNumber(d, delta)), l.byNumber(l.Sub(d, l.LikeNumber(d, l.linearNumber(delta, 0.5, 0))), delta), l.Mul(l.Mul(d, d), l.Like(d, 0.5)))
}

func softMargin(l *Lowering, x, y *ssa.Value) *ssa.Value {
	return l.Log(l.Add(l.Exp(l.Mul(l.Neg(x), y)), l.Like(x, 1)))
}

func klDiv(l *Lowering, x, y *ssa.Value) *ssa.Value {
	if l.Bool("log_target") {
		return l.Mul(l.Exp(y), l.Sub(y, x))
	}
	// xlogy: 0 where y is 0
	zero := l.Like(y, 0)
	isZero := l.Equal(y, zero)
	ylog := l.Where(isZero, zero, l.Mul(y, l.Log(l.Where(isZero, l.Like(y, 1), y))))
	return l.Sub(ylog, l.Mul(y, x))
}

func hingeEmbedding(l *Lowering, x, y *ssa.Value) *ssa.Value {
	zero := l.Like(x, 0)
	far := l.Max(l.Sub(l.LikeNumber(x, l.Number("margin")), x), zero)
	one := l.Like(y, 1)
	return l.Add(l.Where(l.Equal(y, one), zero, far), l.Where(l.Equal(y, l.Like(y, -1)), zero, x))
}

func lowerPoissonNLL(l *Lowering) *ssa.Value {
	vs, d := l.promoted("input", "target")
	x, y := vs[0], vs[1]
	if d.IsInt() || d == tensor.Bool {
		x, y = l.Cast(x, tensor.Float32), l.Cast(y, tensor.Float32)
	}
	var loss *ssa.Value
	if l.Bool("log_input") {
		loss = l.Sub(l.Exp(x), l.Mul(y, x))
	} else {
		loss = l.Sub(x, l.Mul(y, l.Log(l.Add(x, l.LikeNumber(x, l.Number("eps"))))))
	}
	if l.Bool("full") {
		// Stirling's approximation of log(y!) for y above 1
		s := l.Add(l.Sub(l.Mul(y, l.Log(y)), y), l.scale(l.Log(l.scale(y, 2*math.Pi)), 0.5))
		loss = l.Add(loss, l.Where(l.Greater(y, l.Like(y, 1)), s, l.Like(y, 0)))
	}
	return l.reduceLoss(loss)
}

func lowerBCE(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	y := l.Cast(l.Tensor("target"), l.DType(x))
	one, floor := l.Like(x, 1), l.Like(x, -100)
	logX := l.Max(l.Log(x), floor)
	logNot := l.Max(l.Log(l.Sub(one, x)), floor)
	// (y - 1) * log(1 - x) - y * log(x)
	loss := l.Sub(l.Mul(l.Sub(y, one), logNot), l.Mul(y, logX))
	if w := l.TensorOr("weight"); w != nil {
		loss = l.Mul(loss, w)
	}
	return l.reduceLoss(loss)
}

func lowerBCELogits(l *Lowering) *ssa.Value {
	vs, _ := l.promoted("self", "target")
	x, y := vs[0], vs[1]
	one := l.Like(x, 1)
	// log sigmoid(x) = min(x, 0) - log(1 + exp(-|x|))
	logSigmoid := l.Sub(l.Min(x, l.Like(x, 0)), l.Log(l.Add(l.Exp(l.Neg(l.Abs(x))), one)))
	factor := logSigmoid
	if pw := l.TensorOr("pos_weight"); pw != nil {
		factor = l.Mul(l.Add(l.Mul(l.Sub(l.Cast(pw, l.DType(x)), one), y), one), logSigmoid)
	}
	loss := l.Sub(l.Mul(l.Sub(one, y), x), factor)
	if w := l.TensorOr("weight"); w != nil {
		loss = l.Mul(loss, l.Cast(w, l.DType(x)))
	}
	return l.reduceLoss(loss)
}

// nllLoss gives the loss and the sum of the weights of the targets that count.
func (l *Lowering) nllLoss() []*ssa.Value {
	return l.nll(l.Tensor("self"), l.Tensor("target"), l.TensorOr("weight"), l.Int("reduction"), l.Int("ignore_index"))
}

// nll picks -x[target] along the class axis: axis 1, or 0 of a vector.
func (l *Lowering) nll(x, target, weight *ssa.Value, reduction, ignore int64) []*ssa.Value {
	d := l.DType(x)
	target = l.Cast(target, tensor.Int64)
	axis := 1
	if l.Rank(x) == 1 {
		axis = 0
	}
	if l.Rank(target) != l.Rank(x)-1 {
		l.Fail("nll_loss of rank %d expects a target of rank %d, found %d", l.Rank(x), l.Rank(x)-1, l.Rank(target))
	}
	ignored := l.Equal(target, l.scalarInt(tensor.Int64, ignore))
	safe := l.Where(ignored, l.scalarInt(tensor.Int64, 0), target)
	picked := l.GatherElements(x, l.unsqueeze(safe, int64(axis)), onnx.Axis(axis))
	picked = l.squeeze(picked, int64(axis))
	w := l.Like(x, 1)
	if weight != nil {
		w = l.gather(weight, safe, 0)
	}
	w = l.Where(ignored, l.Like(x, 0), w)
	loss := l.Neg(l.Where(ignored, l.Like(x, 0), l.Mul(picked, w)))
	if weight == nil {
		loss = l.Neg(l.Where(ignored, l.Like(x, 0), picked))
	}
	total := l.reduce("ReduceSum", w, nil, false)
	switch reduction {
	case 0:
		if axis == 1 {
			total = l.Like(x, 0) // only that of a single sample is added up (ATen/native/LossNLL.cpp)
		}
		return []*ssa.Value{loss, total}
	case 1:
		return []*ssa.Value{l.Div(l.reduce("ReduceSum", loss, nil, false), total), total}
	case 2:
		return []*ssa.Value{l.reduce("ReduceSum", loss, nil, false), total}
	}
	l.Fail("reduction %d of %v", reduction, d)
	return nil
}

func lowerCrossEntropy(l *Lowering) *ssa.Value {
	x, target, weight := l.Tensor("self"), l.Tensor("target"), l.TensorOr("weight")
	smoothing, reduction := l.Number("label_smoothing"), l.Int("reduction")
	r := l.Rank(x)
	axis := 1
	if r == 1 {
		axis = 0
	}
	logp := l.LogSoftmax(x, onnx.Axis(axis))
	classes := l.sizeOf(x, axis)
	perClass := func() *ssa.Value {
		shape := make([]int64, 0, r)
		for i := range r {
			if i != axis {
				shape = append(shape, int64(i))
			}
		}
		return l.unsqueeze(weight, shape...)
	}
	if l.Rank(target) == r && l.DType(target).IsFloat() {
		// class probabilities
		target = l.Cast(target, l.DType(x))
		if !known(smoothing) || smoothing.k > 0 {
			target = l.Add(l.byNumber(target, l.linearNumber(smoothing, -1, 1)), l.Div(l.LikeNumber(x, smoothing), l.Cast(l.sizeValue(classes), l.DType(x))))
		}
		p := l.Mul(logp, target)
		if weight != nil {
			p = l.Mul(p, perClass())
		}
		switch reduction {
		case 0:
			return l.Neg(l.reduce("ReduceSum", p, []int64{int64(axis)}, false))
		case 1:
			sum := l.Neg(l.reduce("ReduceSum", p, nil, false))
			n := ConstSize(1)
			for i := range r {
				if i != axis {
					n = l.mulSize(n, l.sizeOf(x, i))
				}
			}
			return l.Div(sum, l.Cast(l.sizeValue(n), l.DType(x)))
		}
		return l.Neg(l.reduce("ReduceSum", p, nil, false))
	}
	ignore := l.Int("ignore_index")
	hard := l.nll(logp, target, weight, reduction, ignore)
	if smoothing.is(0) {
		return hard[0]
	}
	smooth := logp
	if weight != nil {
		smooth = l.Mul(logp, perClass())
	}
	smooth = l.Neg(l.reduce("ReduceSum", smooth, []int64{int64(axis)}, false))
	ignored := l.Equal(l.Cast(target, tensor.Int64), l.scalarInt(tensor.Int64, ignore))
	smooth = l.Where(ignored, l.Like(x, 0), smooth)
	switch reduction {
	case 1:
		// mean over the targets that count, weighted
		smooth = l.Div(l.reduce("ReduceSum", smooth, nil, false), hard[1])
	case 2:
		smooth = l.reduce("ReduceSum", smooth, nil, false)
	}
	share := l.Div(l.LikeNumber(x, smoothing), l.Cast(l.sizeValue(classes), l.DType(x)))
	return l.Add(l.byNumber(hard[0], l.linearNumber(smoothing, -1, 1)), l.Mul(smooth, share))
}

func lowerCosineEmbedding(l *Lowering) *ssa.Value {
	const eps = 1e-12
	d := l.argType("input1", "input2")
	if !d.IsFloat() {
		d = tensor.Int64 // sums of products are exact before they meet the epsilon
	}
	a, b := l.as("input1", d), l.as("input2", d)
	y := l.Tensor("target")
	axis := []int64{int64(l.Rank(y))}
	sum := func(v *ssa.Value) *ssa.Value {
		v = l.reduce("ReduceSum", v, axis, false)
		if d.IsFloat() {
			return v
		}
		return l.Cast(v, tensor.Float32)
	}
	prod := sum(l.Mul(a, b))
	m1, m2 := l.Add(sum(l.Mul(a, a)), l.Like(prod, eps)), l.Add(sum(l.Mul(b, b)), l.Like(prod, eps))
	cos := l.Div(prod, l.Sqrt(l.Mul(m1, m2)))
	zero := l.Like(cos, 0)
	pos := l.Sub(l.Like(cos, 1), cos)
	neg := l.Max(l.Sub(cos, l.LikeNumber(cos, l.Number("margin"))), zero)
	if l.DType(y) == tensor.Bool {
		y = l.Cast(y, tensor.Int64)
	}
	loss := l.Add(l.Where(l.Equal(y, l.Like(y, 1)), pos, zero), l.Where(l.Equal(y, l.Like(y, -1)), neg, zero))
	return l.reduceLoss(loss)
}

func lowerMarginRanking(l *Lowering) *ssa.Value {
	d := l.argType("input1", "input2", "target")
	a, b, y := l.as("input1", d), l.as("input2", d), l.as("target", d)
	v := l.Mul(l.neg(y), l.Sub(a, b))
	if !d.IsFloat() {
		v = l.Cast(v, tensor.Float32) // the margin is a float
	}
	v = l.plusNumber(v, l.Number("margin"))
	return l.reduceLoss(l.Max(v, l.Like(v, 0)))
}

// pNorm is the p-norm along the last axis.
func (l *Lowering) pNorm(x *ssa.Value, p float64, keep bool) *ssa.Value {
	axis := []int64{int64(l.Rank(x) - 1)}
	switch {
	case p == 2:
		return l.reduce("ReduceL2", x, axis, keep)
	case p == 1:
		return l.reduce("ReduceL1", x, axis, keep)
	case p == 0:
		nonzero := l.Not(l.Equal(x, l.Like(x, 0)))
		return l.reduce("ReduceSum", l.Cast(nonzero, l.DType(x)), axis, keep)
	case math.IsInf(p, 1):
		return l.reduce("ReduceMax", l.Abs(x), axis, keep)
	case math.IsInf(p, -1):
		return l.reduce("ReduceMin", l.Abs(x), axis, keep)
	}
	s := l.reduce("ReduceSum", l.Pow(l.Abs(x), l.Like(x, p)), axis, keep)
	return l.Pow(s, l.Like(x, 1/p))
}

// distance is the p-norm of a - b + eps along the last axis.
func (l *Lowering) distance(a, b *ssa.Value, p float64, eps Number, keep bool) *ssa.Value {
	d := l.Sub(a, b)
	if !l.DType(d).IsFloat() {
		d = l.Cast(d, tensor.Float32) // eps is a float
	}
	return l.pNorm(l.Add(d, l.LikeNumber(d, eps)), p, keep)
}

func lowerTripletMargin(l *Lowering) *ssa.Value {
	p, eps := l.Float("p"), l.Number("eps")
	d := l.argType("anchor", "positive", "negative")
	a, b, c := l.as("anchor", d), l.as("positive", d), l.as("negative", d)
	near, far := l.distance(a, b, p, eps, false), l.distance(a, c, p, eps, false)
	if l.Bool("swap") {
		far = l.Min(far, l.distance(b, c, p, eps, false))
	}
	v := l.Sub(l.Add(near, l.LikeNumber(near, l.Number("margin"))), far)
	return l.reduceLoss(l.Max(v, l.Like(v, 0)))
}

func lowerMultiMargin(l *Lowering) *ssa.Value {
	x, y, w := l.Tensor("self"), l.Cast(l.Tensor("target"), tensor.Int64), l.TensorOr("weight")
	lone := l.Rank(x) < 2
	if l.Rank(x) == 0 {
		x = l.unsqueeze(x, 0)
	}
	if lone {
		x, y = l.unsqueeze(x, 0), l.reshape(y, 1)
	}
	p, margin := l.Float("p"), l.Number("margin")
	classes := l.sizeOf(x, 1)
	at := l.unsqueeze(y, 1)
	picked := l.GatherElements(x, at, onnx.Axis(1))
	v := l.Max(l.Add(l.Sub(l.LikeNumber(x, margin), picked), x), l.Like(x, 0))
	switch p {
	case 1:
	case 2:
		v = l.Mul(v, v)
	default:
		l.Fail("multi_margin_loss with p = %v", p)
	}
	if w != nil {
		v = l.Mul(v, l.gather(w, at, 0))
	}
	own := l.Equal(at, l.unsqueeze(l.countTo(classes), 0))
	v = l.Where(own, l.Like(x, 0), v)
	loss := l.Div(l.reduce("ReduceSum", v, []int64{1}, false), l.Cast(l.sizeValue(classes), l.DType(x)))
	if lone && l.Int("reduction") == 0 {
		return l.squeeze(loss, 0)
	}
	return l.reduceLoss(loss)
}

// multilabelMargin: the targets of a sample end at the first -1.
func (l *Lowering) multilabelMargin() []*ssa.Value {
	x, y := l.Tensor("self"), l.Cast(l.Tensor("target"), tensor.Int64)
	r := l.Rank(x)
	shape := l.shapeOf(x)
	switch r {
	case 0:
		x, y = l.unsqueeze(x, 0, 1), l.reshape(y, 1, 1)
	case 1:
		x, y = l.unsqueeze(x, 0), l.unsqueeze(y, 0)
	}
	d := l.DType(x)
	classes := l.sizeOf(x, 1)
	zero := l.scalarInt(tensor.Int64, 0)
	ends := l.Cast(l.Less(y, zero), tensor.Int64)
	before := l.CumSum(ends, l.scalarInt(tensor.Int64, 1))
	valid := l.Equal(before, zero) // (N, T)
	safe := l.Where(valid, y, zero)
	// isTarget[n, c]: some valid target of n is c
	hit := l.And(l.Equal(l.unsqueeze(y, 2), l.unsqueeze(l.countTo(classes), 0, 1)), l.unsqueeze(valid, 2))
	isTarget := l.reduce("ReduceMax", l.Cast(hit, tensor.Float32), []int64{1}, false) // (N, C)
	other := l.Less(isTarget, l.Scalar(tensor.Float32, 0.5))
	picked := l.GatherElements(x, safe, onnx.Axis(1))                          // (N, T)
	v := l.Add(l.Sub(l.Like(x, 1), l.unsqueeze(picked, 2)), l.unsqueeze(x, 1)) // (N, T, C)
	v = l.Max(v, l.Like(x, 0))
	counts := l.And(l.unsqueeze(valid, 2), l.unsqueeze(other, 1))
	v = l.Where(counts, v, l.Like(x, 0))
	loss := l.Div(l.reduce("ReduceSum", v, []int64{1, 2}, false), l.Cast(l.sizeValue(classes), d))
	if r < 2 && l.Int("reduction") == 0 {
		loss = l.squeeze(loss, 0)
	} else {
		loss = l.reduceLoss(loss)
	}
	return []*ssa.Value{loss, l.reshapeTo(l.Cast(isTarget, d), shape)}
}
