package ortfusion

import (
	"math/bits"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/rewrite"
	"github.com/aton-project/aton/ssa/tensor"
)

// leastBlock is the shortest block of weights that onnxruntime's product takes. Lengths are powers of two.
const leastBlock = 16

// blocks joins products and the DequantizeLinear of their weights, integers of 4 or 8 bits with a scale for each block of a row.
// onnxruntime would make floats of all weights at each run. Its product of blocks computes in float32 (accuracy_level=1), which
// gives the numbers of the two operators. The weights have a row for each output, as those of a Linear have.
type blocks struct {
	f     *ssa.Func
	names *ssa.Names // of f, when a first name is asked for
}

func (b *blocks) product(r *rewrite.Rewriter, o *ssa.Op) bool {
	w, bias, ok := linearWeights(o)
	if !ok || w == nil || w.Kind != "onnx::DequantizeLinear" || !w.Result(0).HasOneUse() || w.AttrInt("axis", 1) != 1 {
		return false
	}
	x, y := float32Of(o.Operand(0)), float32Of(o.Result(0))
	size := w.AttrInt("block_size", 0)
	if x == nil || y == nil || len(x.Dims) < 2 || bias != nil && !isVector(bias, y) || size < leastBlock || bits.OnesCount64(uint64(size)) != 1 {
		return false
	}
	q, scales := onnx.ConstOf(w.Operand(0)), onnx.ConstOf(w.Operand(1))
	if !isMatrix(q) || !isMatrix(scales) || scales.DType != tensor.Float32 || q.Shape[1]%size != 0 {
		return false
	}
	flip, ok := signBit(q.DType)
	if !ok {
		return false
	}
	rows, count, width := q.Shape[0], q.Shape[1]/size, q.DType.Bits()
	zeros := make([]byte, rows*count)
	if w.Operand(2) != nil {
		z := onnx.ConstOf(w.Operand(2))
		if !isMatrix(z) || z.DType != q.DType {
			return false
		}
		zeros = z.Bytes()
	}
	operands := []*ssa.Value{o.Operand(0), b.constant(r, w.Operand(0), pack(q.Bytes(), int(size), width, flip), rows, count, size*int64(width)/8), w.Operand(1), nil, nil, bias}
	if w.Operand(2) != nil || flip == 0 { // without them they are in the middle, where zero is of integers with a sign
		like := w.Operand(0)
		if w.Operand(2) != nil {
			like = w.Operand(2)
		}
		operands[3] = b.constant(r, like, pack(zeros, int(count), width, flip), rows, (count*int64(width)+7)/8)
	}
	for operands[len(operands)-1] == nil {
		operands = operands[:len(operands)-1]
	}
	return single(r, o, "com.microsoft::MatMulNBits", operands,
		ssa.Attr{Name: "K", Value: ssa.Int(q.Shape[1])}, ssa.Attr{Name: "N", Value: ssa.Int(rows)},
		ssa.Attr{Name: "accuracy_level", Value: ssa.Int(1)}, ssa.Attr{Name: "bits", Value: ssa.Int(int64(width))}, ssa.Attr{Name: "block_size", Value: ssa.Int(size)})
}

// linearWeights gives what makes the weights of x @ weights.T + bias; the bias is nil if there is none.
func linearWeights(o *ssa.Op) (weights *ssa.Op, bias *ssa.Value, ok bool) {
	if o.Kind == "onnx::Gemm" {
		ok = o.AttrInt("transA", 0) == 0 && o.AttrInt("transB", 0) == 1 && o.AttrFloat("alpha", 1) == 1 && o.AttrFloat("beta", 1) == 1
		return o.Operand(1).Def(), o.Operand(2), ok
	}
	t := o.Operand(1).Def()
	if t == nil || t.Kind != "onnx::Transpose" || !t.Result(0).HasOneUse() {
		return nil, nil, false
	}
	return t.Operand(0).Def(), nil, true // a matrix, which has one Transpose
}

func isMatrix(t *tensor.Tensor) bool { return t != nil && t.HasData() && len(t.Shape) == 2 }

// signBit is what makes a number without sign of an integer that has one, counted from the least: as x - zero_point, which stays
// the same where both get it.
func signBit(d tensor.DType) (flip byte, ok bool) {
	switch d {
	case tensor.Int8:
		return 0x80, true
	case tensor.Int4:
		return 0x8, true
	case tensor.Uint8, tensor.Uint4:
		return 0, true
	}
	return 0, false
}

// pack puts integers, each in a byte of its own, into width bits each, the first one into the lowest. Every n of them begin a byte.
func pack(data []byte, n, width int, flip byte) []byte {
	if width == 8 {
		n = 1 // a byte each
	}
	each := 8 / width
	out := make([]byte, 0, len(data)*width/8)
	for i, v := range data {
		k := i % n % each
		if k == 0 {
			out = append(out, 0)
		}
		out[len(out)-1] |= (v ^ flip) & (1<<width - 1) << (k * width)
	}
	return out
}

// constant makes a constant of bytes named after another one.
func (b *blocks) constant(r *rewrite.Rewriter, like *ssa.Value, data []byte, shape ...int64) *ssa.Value {
	if b.names == nil {
		b.names = ssa.NamesOf(b.f)
	}
	t := tensor.New(tensor.Uint8, shape, data)
	v := r.Create("onnx::Constant", nil, ssa.Attr{Name: "value", Value: ssa.TensorValue(t)})
	v.Type = ssa.TensorOf(t)
	if like.Name != "" {
		v.Name = b.names.Unique(like.Name)
	}
	return v
}
