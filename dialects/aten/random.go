package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// distributions holds random numbers and training-mode dropout. The results have
// PyTorch's distribution, not its numbers.
var distributions = Defs{
	"aten::rand":       {Doc: "uniform in [0, 1)", Effects: draws, Lower: func(l *Lowering) *ssa.Value { return l.uniform(l.emptyOf(), 0, 1) }},
	"aten::rand_like":  {Doc: "uniform in [0, 1)", Gradient: NoGradient, Layout: LikeOperands, Effects: draws, Lower: func(l *Lowering) *ssa.Value { return l.uniform(l.emptyOf(), 0, 1) }},
	"aten::randn":      {Doc: "standard normal", Effects: draws, Lower: func(l *Lowering) *ssa.Value { return l.normal(l.emptyOf()) }},
	"aten::randn_like": {Doc: "standard normal", Gradient: NoGradient, Layout: LikeOperands, Effects: draws, Lower: func(l *Lowering) *ssa.Value { return l.normal(l.emptyOf()) }},
	"aten::uniform": {Doc: "uniform in [from, to)", Effects: draws, Lower: func(l *Lowering) *ssa.Value {
		return l.uniform(l.Tensor("self"), l.FloatOr("from", 0), l.FloatOr("to", 1))
	}},
	"aten::randint":           {Doc: "integers from low below high", Effects: draws, Lower: lowerRandint},
	"aten::randint_like":      {Doc: "integers from low below high", Layout: LikeOperands, Effects: draws, Lower: lowerRandint},
	"aten::random":            {Doc: "integers from from below to", Effects: draws, Lower: lowerRandint},
	"aten::randperm":          {Doc: "a random permutation", Effects: draws, Lower: lowerRandperm},
	"aten::normal":            {Doc: "normal of a mean and a standard deviation", Effects: draws, Lower: lowerNormal},
	"aten::normal_functional": {Doc: "normal of a mean and a standard deviation", Lower: lowerNormal},
	"aten::exponential":       {Doc: "exponential of rate lambd", Effects: draws, Lower: func(l *Lowering) *ssa.Value { return l.scale(l.expDraw(l.Tensor("self")), 1/l.FloatOr("lambd", 1)) }},
	"aten::log_normal": {Doc: "exp of a normal number", Effects: draws, Lower: func(l *Lowering) *ssa.Value {
		return l.Exp(l.offset(l.scale(l.normal(l.Tensor("self")), l.FloatOr("std", 2)), l.FloatOr("mean", 1)))
	}},
	"aten::cauchy": {Doc: "Cauchy of a median and a scale", Effects: draws, Lower: func(l *Lowering) *ssa.Value {
		u := l.uniform(l.Tensor("self"), -math.Pi/2, math.Pi/2)
		return l.offset(l.scale(l.Tan(u), l.FloatOr("sigma", 1)), l.FloatOr("median", 0))
	}},
	"aten::geometric":                   {Doc: "trials up to the first success", Effects: draws, Lower: lowerGeometric},
	"aten::bernoulli":                   {Doc: "1 with probability p, else 0", Effects: draws, Lower: lowerBernoulli},
	"aten::multinomial":                 {Doc: "indices drawn by weight", Effects: draws, Lower: lowerMultinomial},
	"aten::dropout":                     {Doc: "x; in training, zeros with probability p and the rest scaled", Gradient: "[train=False] input: grad", Batching: BatchesInFront, View: ViewIfUnchanged, Layout: LikeOperands, Effects: drawsUnless("train"), Grid: KeepsGrid, Complex: (*Lowering).complexParts, Lower: lowerDropout},
	"aten::native_dropout":              {Doc: "dropout and what it kept", Effects: drawsUnless("train"), LowerN: lowerNativeDropout},
	"aten::feature_dropout":             {Doc: "dropout of whole channels", View: ViewIfUnchanged, Effects: drawsUnless("train"), Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.noisy(true, false) }},
	"aten::alpha_dropout":               {Doc: "dropout that keeps mean and variance", View: ViewIfUnchanged, Effects: drawsUnless("train"), Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.noisy(false, true) }},
	"aten::feature_alpha_dropout":       {Doc: "alpha dropout of whole channels", View: ViewIfUnchanged, Effects: drawsUnless("train"), Complex: (*Lowering).complexParts, Lower: func(l *Lowering) *ssa.Value { return l.noisy(true, true) }},
	"aten::rrelu":                       {Doc: "leaky_relu with a slope between lower and upper, their mean outside of training", Effects: drawsUnless("training"), Lower: lowerRrelu},
	"aten::rrelu_with_noise":            {Doc: "leaky_relu with a slope between lower and upper, their mean outside of training", Effects: drawsUnless("training"), Lower: lowerRrelu},
	"aten::rrelu_with_noise_functional": {Doc: "rrelu_with_noise, and the noise as it is afterwards", Effects: drawsUnless("training"), LowerN: lowerRreluFunctional},
}

// emptyOf is a tensor of the shape and type that a random operator fills.
func (l *Lowering) emptyOf() *ssa.Value {
	if l.HasArg("size") {
		return l.fill(l.sizeTensor(l.sizes("size")), l.typeArg(tensor.Float32), ssa.Int(0))
	}
	x := l.Tensor("self")
	if d := l.typeArg(tensor.Undefined); d != l.DType(x) {
		return l.constLike(x, d, 0)
	}
	return x
}

// draw makes random numbers in the shape of x and in its float type, float32 if it has none.
func (l *Lowering) draw(op string, x *ssa.Value, attrs ...ssa.Attr) *ssa.Value {
	d := l.DType(x)
	if !d.IsFloat() {
		d = tensor.Float32
	}
	if d.Size() < 4 {
		return l.Cast(l.draw(op, l.Cast(x, tensor.Float32), attrs...), d)
	}
	attrs = append(attrs, onnx.Dtype(d))
	if shape, ok := x.Tensor().Static(); ok && x.Tensor().Ranked {
		return l.OpA(op, append(attrs, ssa.Attr{Name: "shape", Value: ssa.Ints(shape...)}))
	}
	return l.OpA(op+"Like", attrs, x)
}

func (l *Lowering) uniform(x *ssa.Value, low, high float64) *ssa.Value {
	return l.draw("RandomUniform", x, onnx.High(high), onnx.Low(low))
}

func (l *Lowering) normal(x *ssa.Value) *ssa.Value {
	return l.draw("RandomNormal", x, onnx.Mean(0), onnx.Scale(1))
}

// expDraw is -log(1 - u), exponential of rate 1.
func (l *Lowering) expDraw(x *ssa.Value) *ssa.Value {
	u := l.uniform(x, 0, 1)
	return l.neg(l.Log(l.Sub(l.Like(u, 1), u)))
}

func lowerRandint(l *Lowering) *ssa.Value {
	var x *ssa.Value
	d := l.DTypeArg("dtype")
	if l.HasArg("size") {
		if d == tensor.Undefined {
			d = tensor.Int64
		}
		x = l.fill(l.sizeTensor(l.sizes("size")), tensor.Float64, ssa.Int(0))
	} else {
		self := l.Tensor("self")
		if d == tensor.Undefined {
			d = l.DType(self)
		}
		x = l.constLike(self, tensor.Float64, 0)
	}
	f := tensor.Float64
	low, high := l.Scalar(f, 0), l.Scalar(f, math.Ldexp(1, 24))
	for _, n := range []string{"low", "from"} {
		if l.HasArg(n) {
			low = l.Cast(l.Tensor(n), f)
		}
	}
	for _, n := range []string{"high", "to"} {
		if v := l.TensorOr(n); v != nil {
			high = l.Cast(v, f)
		}
	}
	u := l.uniform(x, 0, 1)
	return l.Cast(l.Floor(l.Add(low, l.Mul(u, l.Sub(high, low)))), d)
}

func lowerRandperm(l *Lowering) *ssa.Value {
	d := l.DTypeArg("dtype")
	if d == tensor.Undefined {
		d = tensor.Int64
	}
	n := l.sizeTensor(l.sizes("n"))
	u := l.uniform(l.fill(n, tensor.Float32, ssa.Int(0)), 0, 1)
	_, i := l.topK(u, n, 0, true, true)
	return l.Cast(i, d)
}

func lowerNormal(l *Lowering) *ssa.Value {
	if l.HasArg("size") || l.HasArg("self") {
		x := l.emptyOf()
		z := l.normal(x)
		d := l.DType(z)
		return l.Add(l.Mul(z, l.as("std", d)), l.as("mean", d))
	}
	var x *ssa.Value
	for _, n := range []string{"mean", "std"} {
		if t := l.Arg(n).Tensor(); t != nil {
			v := l.Tensor(n)
			if x == nil {
				x = v
			} else {
				x = l.Add(l.Mul(x, l.Like(x, 0)), l.Mul(v, l.Like(v, 0)))
			}
		}
	}
	z := l.normal(x)
	d := l.DType(z)
	return l.Add(l.Mul(z, l.as("std", d)), l.as("mean", d))
}

func lowerGeometric(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	p := l.Float("p")
	return l.Cast(l.Ceil(l.scale(l.expDraw(x), -1/math.Log1p(-p))), l.DType(x))
}

func lowerBernoulli(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	p := x
	if l.HasArg("p") {
		p = l.Tensor("p")
	}
	u := l.uniform(x, 0, 1)
	return l.Cast(l.Less(u, l.Cast(p, l.DType(u))), l.DType(x))
}

// lowerMultinomial takes the greatest of log p plus Gumbel noise, which draws
// without replacement; with replacement onnx::Multinomial does it.
func lowerMultinomial(l *Lowering) *ssa.Value {
	p := l.Tensor("self")
	rank := l.Rank(p)
	n := l.sizes("num_samples")
	logp := l.Log(p)
	if k, ok := n[0].Int(); l.Bool("replacement") && ok && k != 1 {
		if rank == 1 {
			logp = l.unsqueeze(logp, 0)
		}
		s := l.Multinomial(logp, onnx.Dtype(tensor.Int64), onnx.SampleSize(k))
		if rank == 1 {
			return l.squeeze(s, 0)
		}
		return s
	} else if l.Bool("replacement") && !ok {
		l.Fail("the number of samples must be a constant")
	}
	noise := l.neg(l.Log(l.expDraw(p)))
	_, i := l.topK(l.Add(logp, noise), l.sizeTensor(n), rank-1, true, true)
	return i
}

// training reads the argument train; None counts as true, as in native_dropout.
func (l *Lowering) training() bool {
	for _, n := range []string{"train", "training"} {
		if l.HasArg(n) {
			return l.IsNone(n) || l.Bool(n)
		}
	}
	return false
}

func lowerDropout(l *Lowering) *ssa.Value {
	x := l.Tensor("input")
	p := l.Float("p")
	if !l.training() || p == 0 {
		return x
	}
	return l.dropout(x, p)[0]
}

// dropout gives the result and the mask of what was kept.
func (l *Lowering) dropout(x *ssa.Value, p float64) []*ssa.Value {
	if p == 1 {
		return []*ssa.Value{l.constLike(x, l.DType(x), 0), l.constLike(x, tensor.Bool, 0)}
	}
	return l.DropoutN(2, x, l.Scalar(tensor.Float32, p), l.scalarInt(tensor.Bool, 1))
}

func lowerNativeDropout(l *Lowering) []*ssa.Value {
	x := l.Tensor("input")
	p := l.Float("p")
	if !l.training() || p == 0 {
		return []*ssa.Value{x, l.constLike(x, tensor.Bool, 1)}
	}
	return l.dropout(x, p)
}

// noisy multiplies by noise: of one number a channel for feature dropout, and
// shifted as in ATen/native/Dropout.cpp for alpha dropout.
func (l *Lowering) noisy(feature, alpha bool) *ssa.Value {
	x := l.Tensor("input")
	p := l.Float("p")
	if !l.training() || p == 0 {
		return x
	}
	if p == 1 {
		return l.constLike(x, l.DType(x), 0)
	}
	shape := x
	if feature {
		rank := l.Rank(x)
		if rank < 2 {
			l.Fail("feature dropout needs at least two dimensions")
		}
		sizes := []Size{l.sizeOf(x, 0), l.sizeOf(x, 1)}
		for range rank - 2 {
			sizes = append(sizes, ConstSize(1))
		}
		shape = l.fill(l.sizeTensor(sizes), l.DType(x), ssa.Int(0))
	}
	u := l.uniform(shape, 0, 1)
	kept := l.Cast(l.Less(u, l.Like(u, 1-p)), l.DType(x))
	if !alpha {
		return l.Mul(x, l.scale(kept, 1/(1-p)))
	}
	const saturation = 1.7580993408473766
	a := 1 / math.Sqrt((saturation*saturation*p+1)*(1-p))
	shift := l.offset(l.scale(l.offset(kept, -1), saturation*a), saturation*a*p)
	return l.Add(l.Mul(x, l.scale(kept, a)), shift)
}

func lowerRrelu(l *Lowering) *ssa.Value {
	y, _ := l.rrelu()
	return y
}

// lowerRreluFunctional gives the noise, too: the slopes of what is not above 0, and 1 elsewhere. Outside of training nothing is written to it.
func lowerRreluFunctional(l *Lowering) []*ssa.Value {
	y, noise := l.rrelu()
	if noise == nil {
		noise = l.Tensor("noise")
	}
	return []*ssa.Value{y, noise}
}

// rrelu gives the result and what each element was multiplied with; nil for the latter outside of training.
func (l *Lowering) rrelu() (y, noise *ssa.Value) {
	x := l.Tensor("self")
	if !l.training() {
		return l.leakyRelu(x, l.meanNumber(l.NumberOr("lower", 0.125), l.NumberOr("upper", 1.0/3))), nil
	}
	slope := l.uniform(x, l.FloatOr("lower", 0.125), l.FloatOr("upper", 1.0/3))
	negative := l.LessOrEqual(x, l.Like(x, 0))
	return l.Where(negative, l.Mul(x, slope), x), l.Where(negative, slope, l.Like(x, 1))
}
