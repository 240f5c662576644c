package kernel

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// quantization finds the kernels of quantized arithmetic.
func quantization(name string) kernel {
	switch name {
	case "QuantizeLinear":
		return evalQuantize
	case "DequantizeLinear":
		return evalDequantize
	case "DynamicQuantizeLinear":
		return evalDynamicQuantize
	case "MatMulInteger":
		return evalMatMulInteger
	case "QLinearMatMul":
		return evalQLinearMatMul
	}
	return nil
}

// spread repeats scales or zero points to the shape of x: one for all, one per
// position of an axis, or one per block along it.
func (c *call) spread(t *tensor.Tensor, shape []int64) *tensor.Tensor {
	if t.NumElements() == 1 && len(t.Shape) <= 1 {
		return expand(t.Reshape([]int64{}), shape)
	}
	k := c.axis(c.int("axis"), len(shape))
	if len(t.Shape) == 1 {
		if t.Shape[0] != shape[k] {
			c.fail("%d scales for an axis of %d", t.Shape[0], shape[k])
		}
		s := make([]int64, len(shape))
		for i := range s {
			s[i] = 1
		}
		s[k] = t.Shape[0]
		return expand(t.Reshape(s), shape)
	}
	block := c.int("block_size")
	if block < 1 {
		if t.Shape[k] == 0 {
			c.fail("empty scales")
		}
		block = (shape[k] + t.Shape[k] - 1) / t.Shape[k]
	}
	at := make([]int64, shape[k])
	for i := range at {
		at[i] = int64(i) / block
		if at[i] >= t.Shape[k] {
			c.fail("scales %v do not fit %v", t.Shape, shape)
		}
	}
	return expandTo(c, gatherAxis(t, k, at, []int64{shape[k]}), shape)
}

func float8Values(t *tensor.Tensor) []float64 {
	if isFloat8(t.DType) {
		return decodeFloat8(t)
	}
	return t.Float64s()
}

func evalQuantize(c *call) []*tensor.Tensor {
	x := c.t(0)
	d := c.dtype("output_dtype", tensor.Uint8)
	if c.t(2) != nil {
		d = c.t(2).DType
	}
	v, s := cast(x, tensor.Float32).Float64s(), c.spread(cast(c.t(1), tensor.Float32), x.Shape).Float64s()
	var z []float64
	if c.t(2) != nil {
		z = float8Values(c.spread(c.t(2), x.Shape))
	}
	half := x.DType == tensor.Float16
	for i := range v {
		v[i] = float64(float32(v[i]) / float32(s[i]))
		if half && c.t(1).DType == tensor.Float16 && (c.int("precision") == 10 || c.int("precision") == 0) {
			v[i] = float64(tensor.HalfToFloat(tensor.FloatToHalf(v[i])))
		}
		if !isFloat8(d) {
			lo, hi := limits(d)
			zero := 0.0
			if z != nil {
				zero = z[i]
			}
			v[i] = clamp(math.RoundToEven(v[i])+zero, float64(lo), float64(hi))
			if v[i] != v[i] {
				v[i] = 0
			}
		} else if z != nil {
			v[i] += z[i]
		}
	}
	if isFloat8(d) {
		return one(mapFloat8(tensor.FromFloats(tensor.Float32, x.Shape, v), d, c.flag("saturate")))
	}
	return one(cast(tensor.FromFloats(tensor.Float64, x.Shape, v), d))
}

func evalDequantize(c *call) []*tensor.Tensor {
	x := c.t(0)
	d := c.dtype("output_dtype", c.t(1).DType)
	v, s := slices.Clone(float8Values(x)), c.spread(cast(c.t(1), tensor.Float32), x.Shape).Float64s()
	if c.t(2) != nil {
		for i, z := range float8Values(c.spread(c.t(2), x.Shape)) {
			v[i] -= z
		}
	}
	for i := range v {
		v[i] *= s[i]
	}
	return one(tensor.FromFloats(d, x.Shape, v))
}

func evalDynamicQuantize(c *call) []*tensor.Tensor {
	x := c.t(0)
	v := x.Float64s()
	lo, hi := float32(0), float32(0)
	for _, f := range v {
		lo, hi = min(lo, float32(f)), max(hi, float32(f))
	}
	scale := (hi - lo) / 255
	zero := float32(0)
	if scale != 0 {
		zero = float32(clamp(math.RoundToEven(float64(-lo/scale)), 0, 255))
	} else {
		scale = 1
	}
	out := make([]uint8, len(v))
	for i, f := range v {
		out[i] = uint8(clamp(math.RoundToEven(float64(float32(f)/scale))+float64(zero), 0, 255))
	}
	return []*tensor.Tensor{
		tensor.Of(tensor.Uint8, x.Shape, out),
		tensor.Of(tensor.Float32, []int64{}, []float32{scale}),
		tensor.Of(tensor.Uint8, []int64{}, []uint8{uint8(zero)}),
	}
}

// centred is an integer tensor less its zero point, as int32.
func (c *call) centred(x, zero *tensor.Tensor, axis int) *tensor.Tensor {
	y := cast(x, tensor.Int32)
	if zero == nil {
		return y
	}
	z := cast(zero, tensor.Int32)
	if len(z.Shape) == 1 && z.Shape[0] > 1 && len(x.Shape) > 0 {
		s := make([]int64, len(x.Shape))
		for i := range s {
			s[i] = 1
		}
		s[axis] = z.Shape[0]
		z = z.Reshape(s)
	} else if z.NumElements() == 1 {
		z = z.Reshape([]int64{})
	}
	sub := *c
	sub.kind = "onnx::Sub"
	return sub.arith(y, z)
}

func evalMatMulInteger(c *call) []*tensor.Tensor {
	a, b := c.t(0), c.t(1)
	return one(c.matmul(c.centred(a, c.t(2), max(len(a.Shape)-2, 0)), c.centred(b, c.t(3), max(len(b.Shape)-1, 0))))
}

// requantize scales an int32 result and rounds it to the type of the zero point.
func (c *call) requantize(y *tensor.Tensor, scales []float64, axis int, zero *tensor.Tensor) *tensor.Tensor {
	v := y.Float64s()
	z := zero.Float64s()[0]
	lo, hi := limits(zero.DType)
	inner := prod(y.Shape[axis+1:])
	for i, f := range v {
		s := scales[0]
		if len(scales) > 1 {
			s = scales[int64(i)/inner%y.Shape[axis]]
		}
		v[i] = clamp(math.RoundToEven(float64(float32(f)*float32(s)))+z, float64(lo), float64(hi))
	}
	return cast(tensor.FromFloats(tensor.Float64, y.Shape, v), zero.DType)
}

func evalQLinearMatMul(c *call) []*tensor.Tensor {
	a, b := c.t(0), c.t(3)
	if isFloat8(a.DType) || isFloat8(b.DType) {
		c.fail("8-bit floats are not supported")
	}
	y := c.matmul(c.centred(a, c.t(2), max(len(a.Shape)-2, 0)), c.centred(b, c.t(5), max(len(b.Shape)-1, 0)))
	sa, sb, sy := c.t(1).Float64s(), c.t(4).Float64s(), c.t(6).Float64s()
	if len(sa) != 1 || len(sy) != 1 {
		c.fail("scales per row are not supported")
	}
	s := make([]float64, len(sb))
	for i := range s {
		s[i] = sa[0] * sb[i] / sy[0]
	}
	return one(c.requantize(y, s, len(y.Shape)-1, c.t(7)))
}

// convInt runs a convolution of centred integers in float64, which is exact for them.
func (c *call) convInt(x, w *tensor.Tensor) *tensor.Tensor {
	y := conv[float64, float64](c, cast(x, tensor.Float64), cast(w, tensor.Float64), nil)
	return cast(y, tensor.Int32)
}

func evalConvInteger(c *call) []*tensor.Tensor {
	return one(c.convInt(c.centred(c.t(0), c.t(2), 1), c.centred(c.t(1), c.t(3), 0)))
}

func evalQLinearConv(c *call) []*tensor.Tensor {
	y := c.convInt(c.centred(c.t(0), c.t(2), 1), c.centred(c.t(3), c.t(5), 0))
	if b := c.t(8); b != nil {
		s := make([]int64, len(y.Shape)-1)
		for i := range s {
			s[i] = 1
		}
		s[0] = b.NumElements()
		add := *c
		add.kind = "onnx::Add"
		y = add.arith(y, b.Reshape(s))
	}
	sx, sw, sy := c.t(1).Float64s(), c.t(4).Float64s(), c.t(6).Float64s()
	s := make([]float64, len(sw))
	for i := range s {
		s[i] = sx[0] * sw[i] / sy[0]
	}
	return one(c.requantize(y, s, 1, c.t(7)))
}
