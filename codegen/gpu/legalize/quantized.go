package legalize

import (
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// quantized are the operators on quantized numbers, as others express them: by the products of integers of 8 bits that have kernels, and where these refuse by
// products of int32, and convolutions in double, which is exact for them.
var quantized = map[ssa.Kind]expression{
	"onnx::ConvInteger": func(_ *expander, b *onnx.Builder, o *ssa.Op) []*ssa.Value {
		return []*ssa.Value{integerConv(b, o, o.Operand(0), o.Operand(2), o.Operand(1), o.Operand(3))}
	},
	"onnx::MatMulInteger": func(_ *expander, b *onnx.Builder, o *ssa.Op) []*ssa.Value {
		return []*ssa.Value{integerProduct(b, o.Operand(0), o.Operand(2), o.Operand(1), o.Operand(3))}
	},
	"onnx::QLinearConv": func(x *expander, b *onnx.Builder, o *ssa.Op) []*ssa.Value {
		y := x.ownKernel(b.ConvInteger(o.Operand(0), o.Operand(3), o.Operand(2), o.Operand(5), o.Attrs...))
		if y == nil {
			y = integerConv(b, o, o.Operand(0), o.Operand(2), o.Operand(3), o.Operand(5))
		}
		trailing := int64(y.Tensor().Rank() - 2) // axes behind the channels
		if bias := o.Operand(8); bias != nil {
			y = b.Add(y, behind(b, bias, trailing))
		}
		return []*ssa.Value{requantized(b, y, o.Operand(1), behind(b, o.Operand(4), trailing), o.Operand(6), o.Operand(7))}
	},
	"onnx::QLinearMatMul": func(x *expander, b *onnx.Builder, o *ssa.Op) []*ssa.Value {
		y := x.ownKernel(b.MatMulInteger(o.Operand(0), o.Operand(3), o.Operand(2), o.Operand(5)))
		if y == nil {
			y = integerProduct(b, o.Operand(0), o.Operand(2), o.Operand(3), o.Operand(5))
		}
		return []*ssa.Value{requantized(b, y, o.Operand(1), o.Operand(4), o.Operand(6), o.Operand(7))}
	},
}

// ownKernel gives back the result of an operator, or removes the operator and gives nil if there is no kernel for it.
func (x *expander) ownKernel(v *ssa.Value) *ssa.Value {
	if x.build(v.Def()) != nil {
		v.Def().Erase()
		return nil
	}
	return v
}

func castTo(b *onnx.Builder, v *ssa.Value, d tensor.DType) *ssa.Value {
	if v.DType() == d {
		return v
	}
	return b.Cast(v, d)
}

// behind puts n axes of size 1 behind those of a vector; anything else stays.
func behind(b *onnx.Builder, v *ssa.Value, n int64) *ssa.Value {
	if t := v.Tensor(); t == nil || t.Rank() != 1 || n <= 0 {
		return v
	}
	axes := make([]int64, n)
	for i := range axes {
		axes[i] = int64(i) + 1
	}
	return b.Unsqueeze(v, b.Const(tensor.Ints(axes...)))
}

// unable ends an expansion: the operator stays for the host.
func unable(why string) { panic(&onnx.Unsupported{Why: why}) }

// centred is an integer tensor less its zero point, as int32. A vector of zero points belongs to an axis with n axes behind it.
func centred(b *onnx.Builder, x, zero *ssa.Value, n int64) *ssa.Value {
	if t := x.Tensor(); t == nil || !t.Ranked || !t.DType.IsInt() || t.DType.Size() > 1 {
		unable("no integers of 8 bits")
	}
	y := castTo(b, x, tensor.Int32)
	if zero == nil {
		return y
	}
	return b.Sub(y, castTo(b, behind(b, zero, n), tensor.Int32))
}

func integerProduct(b *onnx.Builder, x, zeroX, y, zeroY *ssa.Value) *ssa.Value {
	rows := int64(1) // a zero point of x belongs to a row
	if t := x.Tensor(); t != nil && t.Ranked && t.Rank() < 2 {
		rows = 0
	}
	return b.MatMul(centred(b, x, zeroX, rows), centred(b, y, zeroY, 0))
}

func integerConv(b *onnx.Builder, o *ssa.Op, x, zeroX, w, zeroW *ssa.Value) *ssa.Value {
	t := w.Tensor()
	if t == nil || !t.Ranked {
		unable("weights of unknown rank")
	}
	wide := func(v *ssa.Value) *ssa.Value { return castTo(b, v, tensor.Float64) }
	y := b.Conv(wide(centred(b, x, zeroX, int64(t.Rank())-2)), wide(centred(b, w, zeroW, int64(t.Rank())-1)), nil, o.Attrs...)
	return castTo(b, y, tensor.Int32)
}

// requantized scales an int32 result and rounds it to the type of the zero point.
func requantized(b *onnx.Builder, y, scaleX, scaleW, scaleY, zero *ssa.Value) *ssa.Value {
	d := zero.DType()
	if !d.IsInt() || d.Size() > 1 {
		unable("no integers of 8 bits")
	}
	double := func(v *ssa.Value) *ssa.Value { return castTo(b, v, tensor.Float64) }
	scale := b.Div(b.Mul(double(scaleX), double(scaleW)), double(scaleY))
	v := b.Round(b.Mul(castTo(b, y, tensor.Float32), castTo(b, scale, tensor.Float32)))
	lo, hi := 0.0, 255.0
	if d == tensor.Int8 {
		lo, hi = -128, 127
	}
	limit := func(v float64) *ssa.Value { return b.Const(tensor.FromFloats(tensor.Float64, []int64{}, []float64{v})) }
	return castTo(b, b.Clip(b.Add(double(v), double(zero)), limit(lo), limit(hi)), d)
}
