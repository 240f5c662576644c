package plan

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// variantOf is how an operator is expressed that has a kernel, but not for all of what it gives; nil for one whose kernel serves.
func variantOf(o *ssa.Op) func(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	switch o.Kind {
	case "onnx::BatchNormalization":
		if o.AttrInt("training_mode", 0) != 0 {
			return trainedNorm
		}
	case "onnx::LayerNormalization":
		for _, v := range o.Results[1:] {
			if v.HasUses() {
				return normWithStatistics
			}
		}
	case "onnx::MelWeightMatrix":
		return melWeights
	}
	return nil
}

// wideType is the type in which an operator on elements of a type is computed.
func wideType(d tensor.DType) tensor.DType {
	if d == tensor.Float64 {
		return d
	}
	return tensor.Float32
}

// moments are the mean of a tensor along axes, which stay with size 1, what it is above that, and the mean of the squares of these.
func moments(b *onnx.Builder, x *ssa.Value, axes []int64) (mean, above, variance *ssa.Value) {
	along := b.Const(tensor.Ints(axes...))
	mean = b.Op("ReduceMean", x, along)
	above = b.Op("Sub", x, mean)
	return mean, above, b.Op("ReduceMean", b.Op("Mul", above, above), along)
}

// inverseDeviation is 1 / sqrt(variance + epsilon).
func inverseDeviation(b *onnx.Builder, o *ssa.Op, variance *ssa.Value) *ssa.Value {
	epsilon := b.Const(tensor.Full(variance.DType(), []int64{}, o.AttrFloat("epsilon", 1e-5)))
	return b.Op("Reciprocal", b.Op("Sqrt", b.Op("Add", variance, epsilon)))
}

// trainedNorm is a BatchNormalization in training: by the statistics of the batch, from which the running ones move on.
func trainedNorm(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	x := o.Operand(0)
	t := x.Tensor()
	if t == nil || !t.Ranked || len(t.Dims) < 2 {
		unable("data without channels")
	}
	wide := wideType(x.DType())
	axes, trailing := []int64{0}, int64(len(t.Dims)-2)
	for i := range trailing {
		axes = append(axes, i+2)
	}
	mean, above, variance := moments(b, castTo(b, x, wide), axes)
	of := func(i int) *ssa.Value { return behind(b, castTo(b, o.Operand(i), wide), trailing) }
	y := b.Op("Add", b.Op("Mul", above, b.Op("Mul", of(1), inverseDeviation(b, o, variance))), of(2))
	momentum := float64(float32(o.AttrFloat("momentum", 0.9)))
	number := func(v float64) *ssa.Value { return b.Const(tensor.Full(wide, []int64{}, v)) }
	moved := func(i int, v *ssa.Value) *ssa.Value {
		v = b.Op("Squeeze", v, b.Const(tensor.Ints(axes...)))
		old := castTo(b, o.Operand(i), wide)
		return castTo(b, b.Op("Add", b.Op("Mul", old, number(momentum)), b.Op("Mul", v, number(1-momentum))), o.Operand(i).DType())
	}
	return []*ssa.Value{castTo(b, y, x.DType()), moved(3, mean), moved(4, variance)}[:len(o.Results)]
}

// normWithStatistics is a LayerNormalization of which the mean and the inverse deviation are wanted.
func normWithStatistics(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	x := o.Operand(0)
	t := x.Tensor()
	if t == nil || !t.Ranked {
		unable("data of unknown rank")
	}
	axis := o.AttrInt("axis", -1)
	if axis < 0 {
		axis += int64(len(t.Dims))
	}
	var axes []int64
	for i := axis; i < int64(len(t.Dims)); i++ {
		axes = append(axes, i)
	}
	mean, _, variance := moments(b, castTo(b, x, wideType(x.DType())), axes)
	y := b.Create(o.Kind, 1, o.Operands(), o.Attrs...)[0]
	stash := tensor.FromONNX(int(o.AttrInt("stash_type", int64(tensor.Float32.ONNX()))))
	return []*ssa.Value{y, castTo(b, mean, stash), castTo(b, inverseDeviation(b, o, variance), stash)}[:len(o.Results)]
}

// melWeights is a MelWeightMatrix of known operands: a constant.
func melWeights(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	var in []*tensor.Tensor
	for _, v := range o.Operands() {
		t := onnx.ConstOf(v)
		if t == nil || !t.HasData() {
			unable("operands that only the run knows")
		}
		in = append(in, t)
	}
	out, err := kernel.Eval(o.Kind, o.Attrs, in, 1)
	if err != nil {
		unable(err.Error())
	}
	return []*ssa.Value{b.Const(out[0])}
}
