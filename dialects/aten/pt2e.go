package aten

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// pt2e are the operators that PyTorch's quantization of exported programs
// leaves in them: torch/ao/quantization/fx/_decomposed.py.
var pt2e = Defs{
	"quantized_decomposed::quantize_per_tensor": {
		Doc:   "clamp(round(x / scale) + zero_point, quant_min, quant_max), as integers",
		Lower: func(l *Lowering) *ssa.Value { return l.quantize("scale", "zero_point", -1) },
	},
	"quantized_decomposed::dequantize_per_tensor": {
		Doc:   "(x - zero_point) * scale",
		Lower: func(l *Lowering) *ssa.Value { return l.dequantize("scale", "zero_point", -1) },
	},
	"quantized_decomposed::quantize_per_channel": {
		Doc: "quantize_per_tensor with a scale and a zero point for each index of an axis",
		Lower: func(l *Lowering) *ssa.Value {
			return l.quantize("scales", "zero_points", l.Dim("axis", l.Rank(l.Value(l.must("input")))))
		},
	},
	"quantized_decomposed::dequantize_per_channel": {
		Doc: "dequantize_per_tensor with a scale and a zero point for each index of an axis",
		Lower: func(l *Lowering) *ssa.Value {
			return l.dequantize("scales", "zero_points", l.Dim("axis", l.Rank(l.Value(l.must("input")))))
		},
	},
	"quantized_decomposed::choose_qparams": {
		Doc:    "scale and zero point that map the range of x, 0 included, to quant_min to quant_max",
		LowerN: func(l *Lowering) []*ssa.Value { return l.chooseQParams(false) },
	},
	"quantized_decomposed::choose_qparams_symmetric": {
		Doc:    "scale that maps the greatest magnitude of x to half the steps from quant_min to quant_max, and the zero point of the type",
		LowerN: func(l *Lowering) []*ssa.Value { return l.chooseQParams(true) },
	},
	"quantized_decomposed::choose_qparams_per_token": {
		Doc:    "scale of each row that maps its greatest magnitude to 127, and 0",
		LowerN: lowerChooseQParamsPerToken,
	},
	"quantized_decomposed::choose_qparams_per_token_asymmetric": {
		Doc:    "scale and zero point of each row that map its range, 0 included, to -128 to 127",
		LowerN: lowerChooseQParamsPerTokenAsymmetric,
	},
	"quantized_decomposed::_choose_qparams_per_token_asymmetric_impl": {
		Doc:    "choose_qparams_per_token_asymmetric",
		LowerN: lowerChooseQParamsPerTokenAsymmetric,
	},
	"quantized_decomposed::quantize_per_token": {
		Doc: "clamp(round(x * (1 / scale) + zero_point), quant_min, quant_max) with a scale and a zero point for each row, as integers",
		Lower: func(l *Lowering) *ssa.Value {
			return l.quantizeRows(l.Tensor("input"), l.Tensor("scales"), l.Tensor("zero_points"))
		},
	},
	"quantized_decomposed::dequantize_per_token": {
		Doc: "(x - zero_point) * scale with a scale and a zero point for each row",
		Lower: func(l *Lowering) *ssa.Value {
			return l.Cast(l.dequantizeRows(l.Tensor("input"), l.Tensor("scales"), l.Tensor("zero_points")), l.DTypeArg("output_dtype"))
		},
	},
	"quantized_decomposed::quantize_per_channel_group": {
		Doc:   "quantize_per_token with a scale and a zero point for each group_size elements of a row",
		Lower: lowerQuantizeGroups,
	},
	"quantized_decomposed::dequantize_per_channel_group": {
		Doc:   "dequantize_per_token with a scale and a zero point for each group_size elements of a row; weights stay integers, of 4 bits from opset 21 on",
		Lower: lowerDequantizeGroups,
	},
	"quantized_decomposed::fake_quant_per_channel": {
		Doc:   "(clamp(round(x * (1 / scale)) + zero_point, quant_min, quant_max) - zero_point) * scale with a scale and a zero point for each index of an axis",
		Lower: lowerFakeQuantPerChannel,
	},
	"quantized_decomposed::convert_element_type": {
		Doc:   "x with another element type",
		Lower: func(l *Lowering) *ssa.Value { return l.Cast(l.Tensor("input"), l.DTypeArg("dtype")) },
	},
	"quantized_decomposed::embedding_byte": {
		Doc:   "rows of integers, (w - zero_point) * scale with a scale for each row or each group of a row",
		Lower: func(l *Lowering) *ssa.Value { return l.quantizedRows(8) },
	},
	"quantized_decomposed::embedding_4bit": {
		Doc:   "embedding_byte of rows with two integers in a byte, the first in the upper bits",
		Lower: func(l *Lowering) *ssa.Value { return l.quantizedRows(4) },
	},
	"quantized_decomposed::embedding_2bit": {
		Doc:   "embedding_byte of rows with four integers in a byte, the first in the lowest bits",
		Lower: func(l *Lowering) *ssa.Value { return l.quantizedRows(2) },
	},
}

// qparams gives scale and zero point in the given types: of rank 0, or of rank 1 along an axis.
func (l *Lowering) qparams(scale, zero string, axis int, zeroType tensor.DType) (s, z *ssa.Value) {
	s = l.as(scale, tensor.Float32)
	if l.IsNone(zero) {
		z = l.Cast(l.scale(s, 0), zeroType)
	} else {
		z = l.as(zero, zeroType)
	}
	if axis < 0 { // one-element tensors of any rank
		return l.reshape(s), l.reshape(z)
	}
	return s, z
}

// axisAttr names the axis; there is none for one scale, and none to name in opsets before 13.
func axisAttr(axis int) []ssa.Attr {
	if axis < 0 {
		return nil
	}
	return []ssa.Attr{onnx.Axis(axis)}
}

// along shapes values of an axis so that they broadcast over it.
func (l *Lowering) along(v *ssa.Value, axis, rank int) *ssa.Value {
	if axis < 0 {
		return v
	}
	shape := make([]int64, rank)
	for i := range shape {
		shape[i] = 1
	}
	if rank == 0 {
		l.Fail("values along an axis of a tensor without dimensions")
	}
	shape[axis] = -1
	return l.reshape(v, shape...)
}

// linear8 reports integers that QuantizeLinear and DequantizeLinear have in all opsets with them. Scales for each part of an
// axis came with opset 13; with fused, so did what onnxruntime makes of them: it puts a Round, which opset 10 lacks, into
// what it finds. Before, the arithmetic itself is what these opsets have, and a step down could not tell fused ones.
func (l *Lowering) linear8(d tensor.DType, fusedOrAxis bool) bool {
	since := 10
	if fusedOrAxis {
		since = 13
	}
	return (d == tensor.Int8 || d == tensor.Uint8) && l.Opset >= since
}

func (l *Lowering) quantize(scale, zero string, axis int) *ssa.Value {
	x := l.Cast(l.Value(l.must("input")), tensor.Float32)
	d := l.DTypeArg("dtype")
	lo, hi := l.Int("quant_min"), l.Int("quant_max")
	if l.linear8(d, axis >= 0) {
		s, z := l.qparams(scale, zero, axis, d)
		q := l.QuantizeLinear(x, s, z, axisAttr(axis)...)
		if full := d == tensor.Int8 && lo == -128 && hi == 127 || d == tensor.Uint8 && lo == 0 && hi == 255; full {
			return q
		}
		return l.Clip(q, l.scalarInt(d, lo), l.scalarInt(d, hi))
	}
	if !d.IsInt() {
		l.Fail("quantization to %v", d)
	}
	rank := 0
	if axis >= 0 {
		rank = l.Rank(x)
	}
	s, z := l.qparams(scale, zero, axis, tensor.Float32)
	q := l.Add(l.Round(l.Div(x, l.along(s, axis, rank))), l.along(z, axis, rank))
	return l.Cast(l.Clip(q, l.Scalar(tensor.Float32, float64(lo)), l.Scalar(tensor.Float32, float64(hi))), d)
}

func (l *Lowering) dequantize(scale, zero string, axis int) *ssa.Value {
	x := l.Value(l.must("input"))
	out := l.DTypeArg("out_dtype")
	if out == tensor.Undefined {
		out = tensor.Float32
	}
	if d := l.DType(x); l.linear8(d, axis >= 0) && out == tensor.Float32 {
		s, z := l.qparams(scale, zero, axis, d)
		return l.DequantizeLinear(x, s, z, axisAttr(axis)...)
	}
	rank := 0
	if axis >= 0 {
		rank = l.Rank(x)
	}
	s, z := l.qparams(scale, zero, axis, tensor.Float32)
	y := l.Mul(l.Sub(l.Cast(x, tensor.Float32), l.along(z, axis, rank)), l.along(s, axis, rank))
	return l.Cast(y, out)
}

// chooseQParams is determine_qparams of the range of x, 0 included: up to the scale in the type of x.
func (l *Lowering) chooseQParams(symmetric bool) []*ssa.Value {
	x := l.Tensor("input")
	f := l.DType(x)
	lo, hi := l.Int("quant_min"), l.Int("quant_max")
	least := l.Min(l.reduce("ReduceMin", x, nil, false), l.Scalar(f, 0))
	most := l.Max(l.reduce("ReduceMax", x, nil, false), l.Scalar(f, 0))
	span, steps := l.Sub(most, least), float64(hi-lo)
	if symmetric {
		span, steps = l.Max(l.Neg(least), most), float64(hi-lo)/2
	}
	scale := l.Cast(l.Div(span, l.Scalar(f, steps)), tensor.Float32)
	scale = l.Max(scale, l.Scalar(tensor.Float32, l.Float("eps")))
	var point *ssa.Value
	if symmetric {
		zero := int64(0)
		if l.DTypeArg("dtype") == tensor.Uint8 {
			zero = 128
		}
		point = l.scalarInt(tensor.Int64, zero)
	} else {
		from := l.Scalar(tensor.Float32, float64(lo))
		point = l.Sub(from, l.Round(l.Div(l.Cast(least, tensor.Float32), scale)))
		point = l.Cast(l.Clip(point, from, l.Scalar(tensor.Float32, float64(hi))), tensor.Int64)
	}
	return []*ssa.Value{l.reshape(l.Cast(scale, tensor.Float64), 1), l.reshape(point, 1)}
}

// lowerChooseQParamsPerToken: scales have the type of x, but for those of float16, which might overflow.
func lowerChooseQParamsPerToken(l *Lowering) []*ssa.Value {
	x := l.Tensor("input")
	l.onlyInt8()
	s := l.reduce("ReduceMax", l.Abs(x), []int64{-1}, true)
	if l.DType(s) == tensor.Float16 {
		s = l.Cast(s, tensor.Float32)
	}
	s = l.Div(l.Max(s, l.Like(s, 1e-5)), l.Like(s, math.MaxInt8))
	return []*ssa.Value{s, l.fill(l.shapeOf(s), l.DType(s), ssa.Float(0))}
}

// onlyInt8 refuses the types that PyTorch refuses.
func (l *Lowering) onlyInt8() {
	if d := l.DTypeArg("dtype"); d != tensor.Int8 {
		l.Fail("parameters of a quantization to %v", d)
	}
}

// lowerChooseQParamsPerTokenAsymmetric takes the zero point of the end of the range that is the less wrong.
func lowerChooseQParamsPerTokenAsymmetric(l *Lowering) []*ssa.Value {
	x := l.Tensor("input")
	f := l.DType(x)
	lo, hi := l.Scalar(f, math.MinInt8), l.Scalar(f, math.MaxInt8)
	least := l.Min(l.reduce("ReduceMin", x, []int64{-1}, true), l.Scalar(f, 0))
	most := l.Max(l.reduce("ReduceMax", x, []int64{-1}, true), l.Scalar(f, 0))
	scale := l.Max(l.Div(l.Sub(most, least), l.Scalar(f, 255)), l.Scalar(f, 0x1p-23))
	least, most = l.Div(least, scale), l.Div(most, scale)
	fits := l.Greater(l.Add(l.Add(lo, least), l.Add(hi, most)), l.Scalar(f, 0))
	point := l.Where(fits, l.Sub(lo, least), l.Sub(hi, most))
	point = l.Round(l.Clip(point, lo, hi))
	return []*ssa.Value{l.Cast(scale, tensor.Float64), l.exactInts(point, tensor.Int64)}
}

// quantizeRows computes in the type to which PyTorch promotes x, scales and zero points: double precision where scales have it.
func (l *Lowering) quantizeRows(x, scales, zeros *ssa.Value) *ssa.Value {
	q := l.Aten("aten::mul.Tensor", x, l.reciprocal(scales))
	q = l.Round(l.Aten("aten::add.Tensor", q, zeros))
	q = l.Clip(q, l.Like(q, float64(l.Int("quant_min"))), l.Like(q, float64(l.Int("quant_max"))))
	return l.exactInts(q, l.DTypeArg("dtype"))
}

// dequantizeRows is (x - zeros) * scales, each step in the type to which PyTorch promotes; zeros may be nil.
func (l *Lowering) dequantizeRows(x, scales, zeros *ssa.Value) *ssa.Value {
	if zeros != nil {
		x = l.Aten("aten::sub.Tensor", x, zeros)
	}
	return l.Aten("aten::mul.Tensor", x, scales)
}

// groupSize is how many elements of a row of x have one scale.
func (l *Lowering) groupSize(x, scales *ssa.Value) int64 {
	if l.Rank(x) != 2 || l.Rank(scales) == 0 {
		l.Fail("groups of a tensor of %d axes", l.Rank(x))
	}
	n, width := l.Int("group_size"), l.static(x, 1)
	if shape := l.Shape(scales); n > width && shape[len(shape)-1].Is(1) {
		n = width
	}
	if n <= 1 || width%n != 0 {
		l.Fail("rows of %d elements in groups of %d", width, n)
	}
	return n
}

func lowerQuantizeGroups(l *Lowering) *ssa.Value {
	x, s := l.Tensor("input"), l.Tensor("scales")
	n := l.groupSize(x, s)
	q := l.quantizeRows(l.reshape(x, -1, n), l.reshape(s, -1, 1), l.reshape(l.Tensor("zero_points"), -1, 1))
	return l.shaped(q, []Size{l.sizeOf(x, 0), l.sizeOf(x, 1)})
}

func lowerDequantizeGroups(l *Lowering) *ssa.Value {
	x, s, zeros := l.Tensor("input"), l.Tensor("scales"), l.TensorOr("zero_points")
	out := l.DTypeArg("output_dtype")
	n := l.groupSize(x, s)
	if y := l.dequantizeGroups(x, s, zeros, n); y != nil {
		return l.Cast(y, out)
	}
	if zeros != nil {
		zeros = l.reshape(zeros, -1, 1)
	}
	y := l.dequantizeRows(l.reshape(x, -1, n), l.reshape(s, -1, 1), zeros)
	return l.Cast(l.shaped(y, []Size{l.sizeOf(x, 0), l.sizeOf(x, 1)}), out)
}

// dequantizeGroups is dequantizeBlocks where that is the same as the arithmetic: one scale for each group, and no difference of two integers of
// 8 bits that wraps around.
func (l *Lowering) dequantizeGroups(x, scales, zeros *ssa.Value, n int64) *ssa.Value {
	w := onnx.ConstOf(x)
	if w == nil || !w.HasData() || w.DType != tensor.Int8 && w.DType != tensor.Uint8 {
		return nil
	}
	groups := w.NumElements() / n
	count := func(v *ssa.Value) bool {
		n := int64(1)
		for i := range l.Shape(v) {
			n *= l.static(v, i)
		}
		return n == groups
	}
	f := l.DType(scales)
	if zeros != nil {
		if !count(zeros) {
			return nil
		}
		if d := l.DType(zeros); d.IsFloat() {
			f = promoted(f, d)
		} else if d.Size() == 1 {
			z := onnx.ConstOf(zeros)
			if z == nil || !z.HasData() || d != w.DType {
				return nil
			}
			lo, hi := rangeOf(w)
			zlo, zhi := rangeOf(z)
			if least, most := limits(d); lo-zhi < least || hi-zlo > most {
				return nil
			}
		}
	}
	if !count(scales) {
		return nil
	}
	return l.dequantizeBlocks(x, scales, zeros, f, l.blocksOfSize(x, []Size{ConstSize(1), ConstSize(n)}))
}

func lowerFakeQuantPerChannel(l *Lowering) *ssa.Value {
	x := l.Tensor("input")
	rank := l.Rank(x)
	axis := l.Dim("axis", rank)
	s := l.along(l.as("scales", tensor.Float32), axis, rank)
	z := l.along(l.Cast(l.as("zero_points", tensor.Int32), tensor.Float32), axis, rank)
	q := l.Add(l.Round(l.Mul(x, l.reciprocal(s))), z)
	q = l.Clip(q, l.Like(q, float64(l.Int("quant_min"))), l.Like(q, float64(l.Int("quant_max"))))
	return l.Mul(l.Sub(q, z), s)
}

// quantizedRows are rows of a table of integers of so many bits, which are picked out before they become numbers.
func (l *Lowering) quantizedRows(bits int64) *ssa.Value {
	w, s, at := l.Tensor("weight"), l.Tensor("weight_scales"), l.Tensor("indices")
	zeros := l.TensorOr("weight_zero_points")
	rows := l.gather(w, at, 0)
	per := 8 / bits
	if per > 1 {
		if l.DType(w) != tensor.Uint8 {
			l.Fail("packed integers in %v", l.DType(w))
		}
		parts := make([]*ssa.Value, per)
		for i := range parts {
			place := int64(i)
			if bits == 4 {
				place = 1 - place
			}
			part := rows
			if place > 0 {
				part = l.Div(part, l.scalarInt(tensor.Uint8, 1<<(bits*place)))
			}
			if place < per-1 {
				part = l.Mod(part, l.scalarInt(tensor.Uint8, 1<<bits))
			}
			parts[i] = l.unsqueeze(part, -1)
		}
		rows = l.Sub(l.exactInts(l.concatV(-1, parts...), tensor.Int8), l.scalarInt(tensor.Int8, 1<<(bits-1)))
	}
	width, groups := per*l.static(w, 1), int64(1)
	if l.Rank(s) > 1 {
		groups = l.static(s, 1)
	}
	if groups == 0 || width%groups != 0 || width <= groups {
		l.Fail("rows of %d elements in %d groups", width, groups)
	}
	pick := func(v *ssa.Value) *ssa.Value { return l.reshape(l.gather(v, at, 0), -1, 1) }
	if zeros != nil {
		zeros = pick(zeros)
	}
	y := l.dequantizeRows(l.reshape(rows, -1, width/groups), pick(s), zeros)
	sizes := []Size{}
	for i := range l.Rank(at) {
		sizes = append(sizes, l.sizeOf(at, i))
	}
	y = l.shaped(y, append(sizes, ConstSize(width)))
	if d := l.DTypeArg("dtype"); d != tensor.Undefined {
		return l.Cast(y, d)
	}
	return l.Cast(y, l.DType(s))
}
