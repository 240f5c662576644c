package aten

import (
	"math"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/internal/naming"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// torchao are the operators that torchao's quantize_ leaves in exported programs: torchao/quantization/quant_primitives.py.
var torchao = Defs{
	"torchao::quantize_affine": {
		Doc:   "clamp(round(x * (1 / scale)) + zero_point, quant_min, quant_max) with a scale for each block, as integers",
		Lower: lowerQuantizeAffine,
	},
	"torchao::dequantize_affine": {
		Doc:   "(x - zero_point) * scale with a scale for each block; weights stay integers, of 4 bits from opset 21 on",
		Lower: lowerDequantizeAffine,
	},
	"torchao::choose_qparams_affine": {
		Doc:    "scale and zero point of each block that map its range, 0 included, to quant_min to quant_max",
		LowerN: lowerChooseQParamsAffine,
	},
	"torchao::choose_scale_float8": {
		Doc:   "scale of each block that maps its greatest magnitude to that of the 8-bit float",
		Lower: lowerChooseScaleFloat8,
	},
	"torchao::quantize_affine_float8_non_decomposed": {
		Doc:   "clamp(x / scale) with a scale for each block, as 8-bit floats",
		Lower: lowerQuantizeFloat8,
	},
	"torchao::dequantize_affine_float8_non_decomposed": {
		Doc:   "x * scale of 8-bit floats with a scale for each block",
		Lower: lowerDequantizeFloat8,
	},
	"aten::_weight_int8pack_mm": {
		Doc:   "x @ weight.T * scales, the weight as int8",
		Lower: lowerInt8PackMM,
	},
	"aten::_scaled_mm": {
		Doc: "(self * scale_a) @ (mat2 * scale_b) + bias of 8-bit floats, with one scale or one for each row and column",
		Lower: func(l *Lowering) *ssa.Value {
			return l.scaledMM(l.Tensor("scale_a"), l.Tensor("scale_b"))
		},
	},
	"aten::_scaled_mm_v2": {Doc: "_scaled_mm, with lists of scales", Lower: lowerScaledMM2},
}

// blocks says how a tensor is cut into blocks that share a scale.
type blocks struct {
	size []int64 // of a block along each axis; 0 where that is the whole axis, which need not be known
	// split is the shape of the tensor with each axis that has several elements in several blocks as two: the blocks, and the
	// elements of one.
	split []Size
	// inner are the axes of split that lie in a block, and params is split with these as 1: the shape of the scales.
	inner  []int64
	params []Size
	// cut says that split is another shape than the tensor's.
	cut bool
}

// blocksOf reads block_size for x as _get_reduction_params does.
func (l *Lowering) blocksOf(x *ssa.Value) blocks { return l.blocksOfSize(x, l.sizes("block_size")) }

func (l *Lowering) blocksOfSize(x *ssa.Value, given []Size) blocks {
	dims := l.Shape(x)
	if len(given) != len(dims) {
		l.Fail("a block has %d axes, the tensor %d", len(given), len(dims))
	}
	var b blocks
	for i, g := range given {
		n, known := g.Int()
		whole := g.Known && g.Expr.Equal(dims[i])
		switch {
		case known && n == 1:
			b.size = append(b.size, 1)
			b.split, b.params = append(b.split, l.sizeOf(x, i)), append(b.params, l.sizeOf(x, i))
		case whole:
			b.size = append(b.size, 0)
			b.inner = append(b.inner, int64(len(b.split)))
			b.split, b.params = append(b.split, l.sizeOf(x, i)), append(b.params, ConstSize(1))
		case known && n > 1 && l.static(x, i)%n == 0:
			parts := ConstSize(l.static(x, i) / n)
			b.size, b.cut = append(b.size, n), true
			b.inner = append(b.inner, int64(len(b.split)+1))
			b.split, b.params = append(b.split, parts, ConstSize(n)), append(b.params, parts, ConstSize(1))
		default:
			l.Fail("an axis of %v cannot be cut into blocks of %v", dims[i], g.Expr)
		}
	}
	return b
}

// shaped gives v the shape of sizes.
func (l *Lowering) shaped(v *ssa.Value, sizes []Size) *ssa.Value {
	if dims := l.Shape(v); len(dims) == len(sizes) {
		same := true
		for i, s := range sizes {
			same = same && s.Known && s.Expr.Equal(dims[i])
		}
		if same {
			return v
		}
	}
	return l.reshapeTo(v, l.sizeTensor(sizes))
}

// whole gives v, which has the shape of b.split, the shape of x.
func (b *blocks) whole(l *Lowering, v, x *ssa.Value) *ssa.Value {
	if !b.cut {
		return v
	}
	sizes := make([]Size, l.Rank(x))
	for i := range sizes {
		sizes[i] = l.sizeOf(x, i)
	}
	return l.shaped(v, sizes)
}

// quantLimits are quant_min and quant_max, by default those of the type.
func (l *Lowering) quantLimits(d tensor.DType) (lo, hi float64) {
	switch d {
	case tensor.Int8, tensor.Uint8, tensor.Int32:
		least, most := limits(d)
		lo, hi = float64(least), float64(most)
	case tensor.Int16:
		lo, hi = math.MinInt16, math.MaxInt16
	case tensor.Uint16:
		lo, hi = 0, math.MaxUint16
	default:
		l.Fail("quantization to %v", d)
	}
	return l.FloatOr("quant_min", lo), l.FloatOr("quant_max", hi)
}

// hasZeros reports a zero point: None and a tensor of no elements are none.
func (l *Lowering) hasZeros() bool {
	if l.IsNone("zero_point") {
		return false
	}
	for _, d := range l.Shape(l.Tensor("zero_point")) {
		if d.Is(0) {
			return false
		}
	}
	return true
}

func lowerQuantizeAffine(l *Lowering) *ssa.Value {
	x := l.Tensor("input")
	d := l.DTypeArg("output_dtype")
	lo, hi := l.quantLimits(d)
	b := l.blocksOf(x)
	s := l.shaped(l.Tensor("scale"), b.params)
	inverse := l.reciprocal(s)
	// each step is rounded to the type of its result, as PyTorch does
	f := promoted(l.DType(x), l.DType(s))
	q := l.Round(l.Mul(l.Cast(l.shaped(x, b.split), f), l.Cast(inverse, f)))
	if !l.hasZeros() {
		l.Fail("quantization without a zero point, which PyTorch refuses")
	}
	q = l.Add(q, l.Cast(l.shaped(l.Tensor("zero_point"), b.params), f))
	return l.exactInts(b.whole(l, l.Clip(q, l.Like(q, lo), l.Like(q, hi)), x), d)
}

// exactInts converts floats that are integers in the range of a type: no conversion for others has to be spelled.
func (l *Lowering) exactInts(v *ssa.Value, d tensor.DType) *ssa.Value {
	if v.DType() == d {
		return v
	}
	return l.Builder.Cast(v, d)
}

// reciprocal is 1 / s. onnxruntime takes x * (1 / s), which rounds twice, for x / s where the 1 is of rank 0 or 1.
func (l *Lowering) reciprocal(s *ssa.Value) *ssa.Value {
	if l.Rank(s) < 2 {
		return l.Div(l.Like(s, 1), s)
	}
	return l.Div(l.Const(tensor.FromFloats(l.DType(s), []int64{1, 1}, []float64{1})), s)
}

// promoted is the type in which PyTorch computes with floats of two types.
func promoted(a, b tensor.DType) tensor.DType {
	if a == b {
		return a
	}
	return tensor.Float32
}

func lowerDequantizeAffine(l *Lowering) *ssa.Value {
	out := l.DTypeArg("output_dtype")
	if out == tensor.Undefined {
		out = tensor.Float32
	}
	x, s := l.Tensor("input"), l.Tensor("scale")
	b := l.blocksOf(x)
	f := promoted(out, l.DType(s))
	var zeros *ssa.Value
	if l.hasZeros() {
		zeros = l.Tensor("zero_point")
	}
	if y := l.dequantizeBlocks(x, s, zeros, f, b); y != nil {
		return l.Cast(y, out)
	}
	y := l.Cast(l.shaped(x, b.split), out)
	if zeros != nil {
		y = l.Sub(y, l.Cast(l.shaped(zeros, b.params), out))
	}
	y = l.Mul(l.Cast(y, f), l.Cast(l.shaped(s, b.params), f))
	return l.Cast(b.whole(l, y, x), out)
}

// dequantizeBlocks is dequantization of weights by a DequantizeLinear, which keeps them integers; nil where there is none that
// gives the same. zero is the zero points, nil for none. It computes (x - zero_point) * scale and rounds once. So does PyTorch: integers of 8 bits, and differences
// of two, are exact in all types of floats.
func (l *Lowering) dequantizeBlocks(x, scale, zero *ssa.Value, f tensor.DType, b blocks) *ssa.Value {
	w := onnx.ConstOf(x)
	if w == nil || !w.HasData() || w.NumElements() == 0 || w.DType != tensor.Int8 && w.DType != tensor.Uint8 {
		return nil
	}
	var zeros *tensor.Tensor
	if zero != nil {
		if zeros = integral(onnx.ConstOf(zero)); zeros == nil {
			return nil
		}
		if lo, hi := rangeOf(zeros); lo == 0 && hi == 0 {
			zeros = nil
		}
	}
	d, _ := narrowest(w, zeros, l.Opset)
	if d == tensor.Undefined {
		return nil
	}
	if best, opset := narrowest(w, zeros, onnx.Newest); l.Wider != nil && best.Bits() < d.Bits() && w.NumElements() >= onnx.QuantizedWeight {
		l.Wider(opset, best.Bits(), d.Bits())
	}
	shape := make([]int64, len(b.size)) // of the scales
	var several []int                   // the axes along which there are several of them
	cut := -1                           // the axis along which several elements have one
	for i, n := range b.size {
		if n == 0 {
			n = w.Shape[i]
		}
		shape[i] = w.Shape[i] / n
		if shape[i] > 1 {
			several = append(several, i)
		}
	}
	for i := range shape {
		if shape[i] == w.Shape[i] {
			continue
		}
		if cut >= 0 && len(several) > 1 {
			return nil // blocks of several axes
		}
		cut = i
	}
	if l.Opset < 19 {
		f = tensor.Float32 // the only type
	}
	x = l.retyped(x, w, d)
	dequantize := func(x *ssa.Value, axis int, block int64, shape ...int64) *ssa.Value {
		attrs := axisAttr(axis)
		if block > 0 {
			attrs = append(attrs, onnx.BlockSize(block))
		}
		scale := l.reshape(scale, shape...)
		if l.Opset < 23 && l.DType(scale) != f { // the type of the result
			scale = l.CastScale(scale, f)
		}
		var at *ssa.Value
		if zeros != nil {
			at = l.reshape(l.retyped(zero, zeros, d), shape...)
		}
		if l.DType(scale) != f {
			attrs = append(attrs, onnx.OutputDtype(f))
		}
		return l.DequantizeLinear(x, scale, at, attrs...)
	}
	switch {
	case len(several) == 0:
		return dequantize(x, -1, 0)
	case len(several) == 1 && shape[several[0]] == w.Shape[several[0]]:
		return dequantize(x, several[0], 0, w.Shape[several[0]])
	case cut < 0 || len(several) == 1 && cut != several[0]: // a scale for each element, or blocks of several axes
		return nil
	case l.Opset >= 21:
		return dequantize(x, cut, w.Shape[cut]/shape[cut], shape...)
	case cut == len(shape)-1: // blocks are rows of another shape
		rows := w.NumElements() * shape[cut] / w.Shape[cut]
		return l.reshape(dequantize(l.reshape(x, rows, w.Shape[cut]/shape[cut]), 0, 0, rows), w.Shape...)
	}
	return nil
}

// narrowest is the type of the fewest bits that has the integers of x, which are of 8 bits, and the zero points, and that
// DequantizeLinear takes at an opset, with the first opset that has it; Undefined if there is none.
func narrowest(x, zeros *tensor.Tensor, opset int) (d tensor.DType, since int) {
	lo, hi := rangeOf(x)
	if zeros != nil {
		zlo, zhi := rangeOf(zeros)
		lo, hi = min(lo, zlo), max(hi, zhi)
	}
	signed := x.DType == tensor.Int8
	for _, k := range []struct {
		d      tensor.DType
		signed bool
		lo, hi int64
		since  int
	}{
		{tensor.Int2, true, -2, 1, 25}, {tensor.Int4, true, -8, 7, 21}, {tensor.Int8, true, math.MinInt8, math.MaxInt8, 13},
		{tensor.Uint2, false, 0, 3, 25}, {tensor.Uint4, false, 0, 15, 21}, {tensor.Uint8, false, 0, math.MaxUint8, 13},
	} {
		if opset >= k.since && signed == k.signed && k.lo <= lo && hi <= k.hi {
			return k.d, k.since
		}
	}
	return tensor.Undefined, 0
}

// integral is a constant of integers, which may be written as floats; nil for others.
func integral(t *tensor.Tensor) *tensor.Tensor {
	switch {
	case t == nil || !t.HasData() || t.NumElements() == 0:
		return nil
	case t.DType.IsInt():
		return t
	case !t.DType.IsFloat():
		return nil
	}
	vs := make([]int64, 0, t.NumElements())
	for _, v := range t.Float64s() {
		if v != math.Trunc(v) || math.Abs(v) > math.MaxInt32 {
			return nil
		}
		vs = append(vs, int64(v))
	}
	return tensor.FromInts(tensor.Int64, t.Shape, vs)
}

// rangeOf is the least and the greatest of integers.
func rangeOf(t *tensor.Tensor) (lo, hi int64) {
	if t.DType != tensor.Int8 && t.DType != tensor.Uint8 || !t.IsContiguous() {
		v := t.Int64s()
		return slices.Min(v), slices.Max(v)
	}
	// weights are read where they are
	flip := byte(0)
	if t.DType == tensor.Int8 {
		flip = 0x80 // the order of signed bytes
	}
	least, most := byte(255), byte(0)
	for _, b := range t.Bytes() {
		least, most = min(least, b^flip), max(most, b^flip)
	}
	return int64(least) - int64(flip), int64(most) - int64(flip)
}

// retyped is a constant of integers, each of which takes a byte, with another type of such integers.
func (l *Lowering) retyped(v *ssa.Value, t *tensor.Tensor, d tensor.DType) *ssa.Value {
	if t.DType == d {
		return v
	}
	if t.DType.Size() != 1 {
		return l.Cast(v, d)
	}
	c := *t
	c.DType = d
	k := l.Const(&c)
	if l.Names != nil && v.Name != "" {
		k.Name = l.Names.Unique(naming.Folded(v.Name, ssa.Kind("onnx::"+d.Spec())))
	}
	return k
}

func lowerChooseQParamsAffine(l *Lowering) []*ssa.Value {
	x := l.Tensor("input")
	f := l.DType(x)
	lo, hi := l.quantLimits(l.DTypeArg("target_dtype"))
	eps := l.FloatOr("eps", smallestNormal(f))
	b := l.blocksOf(x)
	if len(b.inner) == 0 {
		l.Fail("blocks of one element")
	}
	keep := l.Bool("keepdim")
	parts := l.shaped(x, b.split)
	zero := l.Scalar(f, 0)
	least := l.Min(l.reduce("ReduceMin", parts, b.inner, keep), zero)
	most := l.Max(l.reduce("ReduceMax", parts, b.inner, keep), zero)
	scaleType, pointType := l.DTypeArg("scale_dtype"), l.DTypeArg("zero_point_dtype")
	if scaleType == tensor.Undefined {
		scaleType = f
	}
	var scale, point *ssa.Value
	switch mapping := l.Str("mapping_type"); mapping {
	case "SYMMETRIC":
		scale = l.Div(l.Max(l.Neg(least), most), l.Scalar(f, (hi-lo)/2))
	case "SYMMETRIC_NO_CLIPPING_ERR":
		scale = l.Max(l.Div(least, l.Scalar(f, lo)), l.Div(most, l.Scalar(f, hi)))
	case "ASYMMETRIC":
		scale = l.Max(l.Div(l.Sub(most, least), l.Scalar(f, hi-lo)), l.Scalar(f, eps))
		point = l.Sub(l.Scalar(f, lo), l.Round(l.Div(least, scale)))
		point = l.Clip(point, l.Scalar(f, lo), l.Scalar(f, hi))
		if pointType == tensor.Undefined {
			pointType = tensor.Int32
		}
	default:
		l.Fail("the mapping %q", mapping)
	}
	if pointType == tensor.Undefined {
		pointType = f
	}
	if point == nil {
		scale = l.Max(scale, l.Scalar(f, eps))
		point = l.fill(l.shapeOf(scale), pointType, ssa.Int(int64((hi+lo+1)/2)))
	}
	if keep {
		scale, point = l.perBlock(scale, x, b), l.perBlock(point, x, b)
	}
	return []*ssa.Value{l.Cast(scale, scaleType), l.exactInts(point, pointType)}
}

// perBlock gives values, one for each block, the rank of x.
func (l *Lowering) perBlock(v, x *ssa.Value, b blocks) *ssa.Value {
	sizes := make([]Size, len(b.size))
	for i, n := range b.size {
		switch {
		case n == 0:
			sizes[i] = ConstSize(1)
		case n == 1:
			sizes[i] = l.sizeOf(x, i)
		default:
			sizes[i] = ConstSize(l.static(x, i) / n)
		}
	}
	return l.shaped(v, sizes)
}

// smallestNormal is torch.finfo(d).smallest_normal.
func smallestNormal(d tensor.DType) float64 {
	if d == tensor.Float16 {
		return 0x1p-14
	}
	return 0x1p-126
}

// greatest8 is the greatest number of a type of 8-bit floats.
func (l *Lowering) greatest8(name string) (tensor.DType, float64) {
	d := l.DTypeArg(name)
	if d == tensor.Undefined {
		d = tensor.Float8E4M3FN
	}
	switch d {
	case tensor.Float8E4M3FN:
		return d, 448
	case tensor.Float8E4M3FNUZ:
		return d, 240
	case tensor.Float8E5M2, tensor.Float8E5M2FNUZ:
		return d, 57344
	}
	l.Fail("quantization to %v", d)
	return d, 0
}

func lowerChooseScaleFloat8(l *Lowering) *ssa.Value {
	x := l.Tensor("tensor")
	f := l.DType(x)
	_, most := l.greatest8("float8_dtype")
	if d := l.DTypeArg("scale_dtype"); d != tensor.Undefined && d != tensor.Float32 {
		l.Fail("scales of type %v", d)
	}
	b := l.blocksOf(x)
	if len(b.inner) == 0 {
		l.Fail("blocks of one element")
	}
	scale := l.reduce("ReduceMax", l.Abs(l.shaped(x, b.split)), b.inner, true)
	if !l.IsNone("hp_value_lb") {
		scale = l.Max(scale, l.Scalar(f, l.Float("hp_value_lb")))
	}
	if !l.IsNone("hp_value_ub") {
		scale = l.Min(scale, l.Scalar(f, l.Float("hp_value_ub")))
	}
	return l.Cast(l.perBlock(l.Div(scale, l.Scalar(f, most)), x, b), tensor.Float32)
}

func lowerQuantizeFloat8(l *Lowering) *ssa.Value {
	x := l.Cast(l.Tensor("tensor"), tensor.Float32)
	d, most := l.greatest8("float8_dtype")
	y := l.Div(x, l.spreadScale(l.Tensor("scale"), x))
	return l.Cast(l.Clip(y, l.Scalar(tensor.Float32, -most), l.Scalar(tensor.Float32, most)), d)
}

func lowerDequantizeFloat8(l *Lowering) *ssa.Value {
	x := l.Tensor("tensor")
	out := l.DTypeArg("output_dtype")
	if out == tensor.Undefined {
		out = tensor.Float32
	}
	return l.Cast(l.Mul(l.Cast(x, tensor.Float32), l.spreadScale(l.Tensor("scale"), x)), out)
}

// spreadScale is a scale that x can be multiplied by: one that broadcasts over x.
func (l *Lowering) spreadScale(s, x *ssa.Value) *ssa.Value {
	s = l.Cast(s, tensor.Float32)
	xs, ss := l.Shape(x), l.Shape(s)
	one := true
	for _, d := range ss {
		one = one && d.Is(1)
	}
	if one {
		return l.reshape(s)
	}
	if len(ss) != len(xs) {
		l.Fail("scales of %d axes for a tensor of %d", len(ss), len(xs))
	}
	for i, d := range ss {
		if !d.Is(1) && !d.Equal(xs[i]) {
			l.Fail("8-bit floats in blocks of several elements, but not of whole axes")
		}
	}
	return s
}

// weighted is MatMul. onnxruntime takes one with a DequantizeLinear of weights for one that may round what it multiplies to
// 8 bits (MatMulNBits), which is half a percent off; so there is something between the two, unless both sides are integers of
// the program.
func (l *Lowering) weighted(a, b *ssa.Value) *ssa.Value {
	if d := a.Def(); d == nil || d.Kind != "onnx::DequantizeLinear" || onnx.ConstOf(d.Operand(1)) == nil {
		b = l.apart(b)
	}
	return l.MatMul(a, b)
}

// apart gives b, which may be a DequantizeLinear of a matrix of weights or the Transpose of one, as a matrix that has a
// Reshape between the two.
func (l *Lowering) apart(b *ssa.Value) *ssa.Value {
	d, turned := b.Def(), false
	if d != nil && d.Kind == "onnx::Transpose" {
		d, turned = d.Operand(0).Def(), true
	}
	if d == nil || d.Kind != "onnx::DequantizeLinear" || len(d.Results) != 1 {
		return b
	}
	w := onnx.ConstOf(d.Operand(0))
	if w == nil || len(w.Shape) != 2 || d.AttrInt("block_size", 0) != 0 {
		return b
	}
	x := l.reshape(d.Operand(0), w.Shape[0], 1, w.Shape[1])
	attrs := slices.Clone(d.Attrs)
	for i := range attrs {
		if a := &attrs[i]; a.Name == "axis" && a.Value.Int() != 0 {
			a.Value = ssa.Int(2)
		}
	}
	y := l.reshape(l.DequantizeLinear(x, d.Operand(1), d.Operand(2), attrs...), w.Shape...)
	if turned {
		y = l.transpose(y, 1, 0)
	}
	return y
}

func lowerInt8PackMM(l *Lowering) *ssa.Value {
	x := l.Tensor("self")
	d := l.DType(x)
	y := l.MatMul(l.Cast(x, tensor.Float32), l.transpose(l.Cast(l.Tensor("mat2"), tensor.Float32), 1, 0))
	return l.Cast(l.Mul(y, l.as("scales", tensor.Float32)), d)
}

// scaledMM multiplies matrices whose elements have one scale, or one for each row of the first and each column of the second.
func (l *Lowering) scaledMM(scaleA, scaleB *ssa.Value) *ssa.Value {
	a, b := l.Tensor("self"), l.Tensor("mat2")
	if l.HasArg("scale_result") && l.TensorOr("scale_result") != nil {
		l.Fail("a product of scaled matrices with a scale of its result")
	}
	scaled := func(x, scale *ssa.Value, shared int) *ssa.Value {
		dims := l.Shape(scale)
		for i, d := range dims {
			if kept := len(dims) == 2 && i != shared; !kept && !d.Is(1) || l.DType(scale) != tensor.Float32 {
				l.Fail("scales of blocks in a product of scaled matrices")
			}
		}
		if len(dims) < 2 {
			scale = l.reshape(scale)
		}
		return l.Mul(l.Cast(x, tensor.Float32), scale)
	}
	y := l.MatMul(scaled(a, scaleA, 1), scaled(b, scaleB, 0))
	if bias := l.TensorOr("bias"); bias != nil {
		y = l.Add(y, l.Cast(bias, tensor.Float32))
	}
	out := l.DTypeArg("out_dtype")
	if out == tensor.Undefined {
		out = l.DType(a)
	}
	return l.Cast(y, out)
}

func lowerScaledMM2(l *Lowering) *ssa.Value {
	a, b := l.Tensors("scale_a"), l.Tensors("scale_b")
	if len(a) != 1 || len(b) != 1 {
		l.Fail("scales of scales in a product of scaled matrices")
	}
	return l.scaledMM(a[0], b[0])
}
