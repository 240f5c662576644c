package onnx

import (
	"math"
	"math/bits"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Random numbers where the runtime has no kernel for the operators that draw
// them: onnxruntime has those of opset 1 only, which end where opset 22 made new
// versions, and Dropout for all opsets. Dropout of ones keeps each with a chance
// of one half, independently: these are the binary digits of uniform numbers.

// drawn is the shape and the element type of what a random operator gives.
func (d *Downgrade) drawn() (shape *ssa.Value, t tensor.DType) {
	t = d.Node.Result(0).DType()
	if v, ok := d.Node.Attr("shape"); ok {
		ints, _ := v.IntList()
		return d.ints(ints...), t
	}
	return d.Shape(d.in(0)), t
}

// uniformDigits draws from [0, 1), with as many digits as PyTorch: 24 for float32, 53 for float64.
func (d *Downgrade) uniformDigits(shape *ssa.Value, t tensor.DType) *ssa.Value {
	n := 24
	if t == tensor.Float64 {
		n = 53
	}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = math.Ldexp(1, -i-1)
	}
	// the digits come last: one product adds them up
	shape = d.concat(0, shape, d.ints(int64(n)))
	limit := d.FoldLimit
	d.FoldLimit = 0 // a constant of ones would be large for nothing
	ones := d.Expand(d.scalar(tensor.Float32, 1), shape)
	d.FoldLimit = limit
	digits := d.cast(d.kept(ones, d.scalar(tensor.Float32, 0.5)), t)
	return d.MatMul(digits, d.Const(tensor.FromFloats(t, []int64{int64(n)}, weights)))
}

// kept is Dropout's mask, in the shape of x. onnxruntime takes a Dropout whose
// mask nobody reads for one that does nothing, in training too.
func (d *Downgrade) kept(x, ratio *ssa.Value) *ssa.Value {
	return d.DropoutN(2, x, ratio, d.scalarInt(tensor.Bool, 1))[1]
}

// dropoutByMask is a Dropout in training that reads its mask.
func dropoutByMask(d *Downgrade, _ tensor.DType) bool {
	x, ratio := d.in(0), d.in(1)
	if ratio == nil {
		ratio = d.scalar(tensor.Float32, 0.5)
	}
	mask := d.kept(x, ratio)
	scale := d.Reciprocal(d.Sub(d.like(ratio, 1), ratio))
	y := d.Mul(x, d.Mul(d.cast(mask, x.DType()), d.cast(scale, x.DType())))
	d.Replace([]*ssa.Value{y, mask}[:len(d.Node.Results)]...)
	return true
}

// wideOf is the type in which random numbers are drawn for a type.
func wideOf(t tensor.DType) tensor.DType {
	if t == tensor.Float64 {
		return t
	}
	return tensor.Float32
}

// shifted is x * scale + offset.
func (d *Downgrade) shifted(x *ssa.Value, scale, offset float64) *ssa.Value {
	if scale != 1 {
		x = d.Mul(x, d.like(x, scale))
	}
	if offset != 0 {
		x = d.Add(x, d.like(x, offset))
	}
	return x
}

func randomUniform(d *Downgrade, _ tensor.DType) bool {
	shape, t := d.drawn()
	low, high := d.Node.AttrFloat("low", 0), d.Node.AttrFloat("high", 1)
	d.Replace(d.cast(d.shifted(d.uniformDigits(shape, wideOf(t)), high-low, low), t))
	return true
}

// logUniform is log(1 - u), which is finite.
func (d *Downgrade) logUniform(shape *ssa.Value, t tensor.DType) *ssa.Value {
	u := d.uniformDigits(shape, t)
	return d.Log(d.Sub(d.like(u, 1), u))
}

// randomNormal is sqrt(-2 log(u)) cos(2 pi v) (Box and Muller, 1958).
func randomNormal(d *Downgrade, _ tensor.DType) bool {
	shape, t := d.drawn()
	w := wideOf(t)
	r := d.logUniform(shape, w)
	r = d.Sqrt(d.Mul(r, d.like(r, -2)))
	v := d.uniformDigits(shape, w)
	z := d.Mul(r, d.Cos(d.Mul(v, d.like(v, 2*math.Pi))))
	d.Replace(d.cast(d.shifted(z, d.Node.AttrFloat("scale", 1), d.Node.AttrFloat("mean", 0)), t))
	return true
}

// multinomial inverts the cumulative distribution: a sample is the number of classes whose cumulative weight is not above a
// uniform number times the total. Halving finds it, so that nothing is larger than the result and its random digits.
func multinomial(d *Downgrade, _ tensor.DType) bool {
	p := d.cast(d.in(0), tensor.Float32)
	classes := d.size(p, 1)
	steps := 31 // halvings, enough for as many classes as memory holds
	if t := p.Tensor(); t.Ranked && len(t.Dims) == 2 {
		if n, ok := t.Dims[1].Int(); ok {
			steps = bits.Len64(uint64(max(n, 0)))
		}
	}
	one := d.long(1)
	weights := d.Exp(d.Sub(p, d.ReduceMax(p, d.ints(1), KeepDims(true))))
	upTo := d.CumSum(weights, one)
	u := d.uniformDigits(d.concat(0, d.sizes1(p, 0, 1), d.ints(d.Node.AttrInt("sample_size", 1))), tensor.Float32)
	u = d.Mul(u, d.slice(upTo, 1, -1, math.MaxInt64, 1)) // below the total: the greatest u is 1 - 2^-24
	last := d.Sub(classes, one)
	at := d.Cast(d.Mul(u, d.like(u, 0)), tensor.Int64)
	for i := steps - 1; i >= 0; i-- {
		further := d.Add(at, d.long(1<<i))
		before := d.Sub(further, one)
		weight := d.GatherElements(upTo, d.Min(before, last), Axis(1))
		passed := d.And(d.LessOrEqual(weight, u), d.LessOrEqual(before, last))
		at = d.Where(passed, further, at)
	}
	d.Replace(d.cast(at, d.Node.Result(0).DType()))
	return true
}
