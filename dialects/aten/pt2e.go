package aten

import (
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
		LowerN: lowerChooseQParams,
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
	return []ssa.Attr{intAttr("axis", int64(axis))}
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
		q := l.OpA("QuantizeLinear", axisAttr(axis), x, s, z)
		if full := d == tensor.Int8 && lo == -128 && hi == 127 || d == tensor.Uint8 && lo == 0 && hi == 255; full {
			return q
		}
		return l.Op("Clip", q, l.scalarInt(d, lo), l.scalarInt(d, hi))
	}
	if !d.IsInt() {
		l.Fail("quantization to %v", d)
	}
	rank := 0
	if axis >= 0 {
		rank = l.Rank(x)
	}
	s, z := l.qparams(scale, zero, axis, tensor.Float32)
	q := l.add(l.Op("Round", l.div(x, l.along(s, axis, rank))), l.along(z, axis, rank))
	return l.Cast(l.Op("Clip", q, l.Scalar(tensor.Float32, float64(lo)), l.Scalar(tensor.Float32, float64(hi))), d)
}

func (l *Lowering) dequantize(scale, zero string, axis int) *ssa.Value {
	x := l.Value(l.must("input"))
	out := l.DTypeArg("out_dtype")
	if out == tensor.Undefined {
		out = tensor.Float32
	}
	if d := l.DType(x); l.linear8(d, axis >= 0) && out == tensor.Float32 {
		s, z := l.qparams(scale, zero, axis, d)
		return l.OpA("DequantizeLinear", axisAttr(axis), x, s, z)
	}
	rank := 0
	if axis >= 0 {
		rank = l.Rank(x)
	}
	s, z := l.qparams(scale, zero, axis, tensor.Float32)
	y := l.mul(l.sub(l.Cast(x, tensor.Float32), l.along(z, axis, rank)), l.along(s, axis, rank))
	return l.Cast(y, out)
}

func lowerChooseQParams(l *Lowering) []*ssa.Value {
	x := l.Cast(l.Value(l.must("input")), tensor.Float32)
	lo, hi := l.Int("quant_min"), l.Int("quant_max")
	zero := l.Scalar(tensor.Float32, 0)
	least := l.Op("Min", l.reduce("ReduceMin", x, nil, false), zero)
	most := l.Op("Max", l.reduce("ReduceMax", x, nil, false), zero)
	scale := l.Op("Max", l.div(l.sub(most, least), l.Scalar(tensor.Float32, float64(hi-lo))), l.Scalar(tensor.Float32, l.Float("eps")))
	point := l.sub(l.Scalar(tensor.Float32, float64(lo)), l.Op("Round", l.div(least, scale)))
	point = l.Op("Clip", point, l.Scalar(tensor.Float32, float64(lo)), l.Scalar(tensor.Float32, float64(hi)))
	return []*ssa.Value{l.reshape(l.Cast(scale, tensor.Float64), 1), l.reshape(l.Cast(point, tensor.Int64), 1)}
}
