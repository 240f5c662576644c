package interp

import (
	"fmt"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/dialects/onnx/kernel"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// contrib has the operators of onnxruntime's domain com.microsoft that passes make or change, as its documentation
// (docs/ContribOperators.md) defines them, by those of the standard.
var contrib = map[ssa.Kind]Kernel{
	"com.microsoft::SkipSimplifiedLayerNormalization": func(o *ssa.Op, in []Value) ([]Value, error) {
		return skipNormalization(o, in, "onnx::RMSNormalization", 3)
	},
	"com.microsoft::SkipLayerNormalization": func(o *ssa.Op, in []Value) ([]Value, error) {
		return skipNormalization(o, in, "onnx::LayerNormalization", 4)
	},
	"com.microsoft::BiasGelu": func(o *ssa.Op, in []Value) ([]Value, error) {
		sum, err := standard("onnx::Add", nil, in...)
		if err != nil {
			return nil, err
		}
		y, err := standard("onnx::Gelu", nil, sum)
		return []Value{y}, err
	},
	"com.microsoft::QuickGelu": func(o *ssa.Op, in []Value) ([]Value, error) {
		if len(in) != 1 || in[0].Tensor == nil {
			return nil, fmt.Errorf("%d inputs", len(in))
		}
		alpha := Of(tensor.Full(in[0].Tensor.DType, []int64{}, o.AttrFloat("alpha", 1.702)))
		gate, err := standard("onnx::Mul", nil, in[0], alpha)
		if err == nil {
			gate, err = standard("onnx::Sigmoid", nil, gate)
		}
		if err != nil {
			return nil, err
		}
		y, err := standard("onnx::Mul", nil, in[0], gate)
		return []Value{y}, err
	},
	"com.microsoft::MatMulNBits": matMulBlocks,
	"com.microsoft::FusedMatMul": fusedMatMul,
}

// standard computes an operator of the standard that has one result.
func standard(kind ssa.Kind, attrs []ssa.Attr, in ...Value) (Value, error) {
	ts := make([]*tensor.Tensor, len(in))
	for i, v := range in {
		ts[i] = v.Tensor
	}
	out, err := kernel.Eval(kind, attrs, ts, 1)
	if err != nil {
		return Value{}, err
	}
	return Of(out[0]), nil
}

// fusedMatMul is alpha * a @ b, of operands with the axes that onnx.FusedMatMulAxes gives.
func fusedMatMul(o *ssa.Op, in []Value) ([]Value, error) {
	if len(in) != 2 || in[0].Tensor == nil || in[1].Tensor == nil {
		return nil, fmt.Errorf("%d inputs", len(in))
	}
	for i, side := range [...]string{"A", "B"} {
		n := len(in[i].Tensor.Shape)
		if n < 2 {
			continue
		}
		axes := onnx.FusedMatMulAxes(n, o.AttrInt("trans"+side, 0) != 0, o.AttrInt("transBatch"+side, 0) != 0)
		t, err := standard("onnx::Transpose", []ssa.Attr{{Name: "perm", Value: ssa.Ints(axes...)}}, in[i])
		if err != nil {
			return nil, err
		}
		in[i] = t
	}
	y, err := standard("onnx::MatMul", nil, in...)
	if alpha := o.AttrFloat("alpha", 1); err == nil && alpha != 1 {
		y, err = standard("onnx::Mul", nil, y, Of(tensor.Full(y.Tensor.DType, []int64{}, alpha)))
	}
	return []Value{y}, err
}

// skipNormalization is the normalization of a sum, with the sum as the fourth result. The second and the third, which training
// reads, are not computed. Scale and bias of the normalization are the inputs from the third to the one before last; that at
// last is a bias of the sum.
func skipNormalization(o *ssa.Op, in []Value, kind ssa.Kind, last int) ([]Value, error) {
	if len(in) < 3 || len(in) > last+1 {
		return nil, fmt.Errorf("%d inputs", len(in))
	}
	sum, err := standard("onnx::Add", nil, in[0], in[1])
	if err == nil && len(in) > last && in[last].Tensor != nil {
		sum, err = standard("onnx::Add", nil, sum, in[last])
	}
	if err != nil {
		return nil, err
	}
	eps := ssa.Attr{Name: "epsilon", Value: ssa.Float(o.AttrFloat("epsilon", 1e-12))}
	y, err := standard(kind, []ssa.Attr{eps}, append([]Value{sum}, in[2:min(last, len(in))]...)...)
	if err != nil {
		return nil, err
	}
	out := make([]Value, len(o.Results))
	for i, v := range []Value{y, {}, {}, sum} {
		if i < len(out) {
			out[i] = v
		}
	}
	for i := 1; i < len(out) && i < 3; i++ {
		if o.Result(i).HasUses() {
			return nil, fmt.Errorf("output %d exists for training only", i)
		}
	}
	return out, nil
}

// matMulBlocks is x @ w.T + bias, w being (integer - zero point) * scale for each block of its rows: float[..., K], uint8[N, blocks,
// bytes of a block], float[N, blocks], uint8[N, bytes of a row of zero points]. Without zero points they are in the middle.
func matMulBlocks(o *ssa.Op, in []Value) ([]Value, error) {
	ts := make([]*tensor.Tensor, 6) // x, integers, scales, zero points, indices of groups, bias
	for i := range min(len(in), len(ts)) {
		ts[i] = in[i].Tensor
	}
	x, q, scales, zeros, bias := ts[0], ts[1], ts[2], ts[3], ts[5]
	if x == nil || q == nil || scales == nil || ts[4] != nil || q.DType != tensor.Uint8 {
		return nil, fmt.Errorf("no inputs that there is a kernel for")
	}
	k, n, width, size := o.AttrInt("K", 0), o.AttrInt("N", 0), o.AttrInt("bits", 4), o.AttrInt("block_size", 0)
	if k <= 0 || n <= 0 || size <= 0 || k%size != 0 || width != 4 && width != 8 || n > q.NumElements() || k > 2*q.NumElements() {
		return nil, fmt.Errorf("%d rows of %d integers of %d bits in blocks of %d", n, k, width, size)
	}
	count := k / size
	row := (count*width + 7) / 8
	if q.NumElements() != n*k*width/8 || scales.NumElements() != n*count || zeros != nil && (zeros.NumElements() != n*row || zeros.DType != tensor.Uint8) {
		return nil, fmt.Errorf("weights %v and scales %v for %d rows of %d", q.Shape, scales.Shape, n, k)
	}
	at := func(b []byte, i int64) float64 {
		if width == 8 {
			return float64(b[i])
		}
		return float64(b[i/2] >> (4 * (i % 2)) & 15)
	}
	qs, ss := q.Bytes(), scales.Float64s()
	w := make([]float64, n*k)
	for i := range int64(len(w)) {
		r, block := i/k, i%k/size
		zero := float64(int64(1) << (width - 1))
		if zeros != nil {
			zero = at(zeros.Bytes()[r*row:], block)
		}
		w[i] = (at(qs, i) - zero) * ss[r*count+block]
	}
	y, err := standard("onnx::MatMul", nil, in[0], Of(transposed(tensor.FromFloats(x.DType, []int64{n, k}, w))))
	if err == nil && bias != nil {
		y, err = standard("onnx::Add", nil, y, in[5])
	}
	return []Value{y}, err
}

// transposed is a view of a matrix.
func transposed(t *tensor.Tensor) *tensor.Tensor {
	return &tensor.Tensor{DType: t.DType, Shape: []int64{t.Shape[1], t.Shape[0]}, Strides: []int64{t.Strides[1], t.Strides[0]}, Offset: t.Offset, Storage: t.Storage}
}
