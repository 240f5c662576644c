package exec_test

import (
	"math"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

var (
	float8Types = []tensor.DType{tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ}
	narrowInts  = []tensor.DType{tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2, tensor.Float4E2M1}
)

// codes are all elements of an 8-bit float, or of a type of less bits.
func codes(d tensor.DType) *tensor.Tensor {
	data := make([]byte, 256)
	for i := range data {
		data[i] = byte(i)
		if n := d.Bits(); n < 8 {
			if data[i] = byte(i) << (8 - n) >> (8 - n); d == tensor.Int4 || d == tensor.Int2 {
				data[i] = byte(int8(byte(i)<<(8-n)) >> (8 - n))
			}
		}
	}
	return tensor.New(d, []int64{256}, data)
}

// edges are numbers at, between and around those of 8-bit floats.
func edges() *tensor.Tensor {
	var v []float64
	for e := -20; e <= 18; e++ {
		for _, m := range []float64{1, 1.0625, 1.125, 1.1875, 1.25, 1.3, 1.375, 1.5, 1.625, 1.75, 1.8125, 1.875, 1.9375} {
			for _, off := range []float64{-0x1p-20, 0, 0x1p-20} {
				x := math.Ldexp(m+off, e)
				v = append(v, x, -x)
			}
		}
	}
	v = append(v, 0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -1e-40, 448, 464, 465, 240, 248, 249, 57344, 61440, 61441, 3e38, -3e38)
	return tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v)
}

func TestCastNarrow(t *testing.T) {
	others := []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Uint8, tensor.Int32, tensor.Int64, tensor.Bool}
	to := func(d tensor.DType) []ssa.Attr { return []ssa.Attr{number("to", int64(d.ONNX()))} }
	for _, d := range append(float8Types, narrowInts...) {
		t.Run(d.Spec(), func(t *testing.T) {
			for _, o := range others {
				(&node{op: "Cast", attrs: to(o), in: []*tensor.Tensor{codes(d)}}).check(t)
				(&node{op: "Cast", attrs: to(d), in: []*tensor.Tensor{fill(o, []int64{301}, 5, true)}}).check(t)
			}
			for _, o := range append(float8Types, narrowInts...) {
				(&node{op: "Cast", attrs: to(o), in: []*tensor.Tensor{codes(d)}}).check(t)
			}
			(&node{op: "Cast", attrs: to(d), in: []*tensor.Tensor{edges()}}).check(t)
			(&node{op: "Transpose", in: []*tensor.Tensor{codes(d).Reshape([]int64{8, 32})}}).check(t)
			if d.Bits() == 8 {
				(&node{op: "Cast", attrs: append(to(d), number("saturate", 0)), in: []*tensor.Tensor{edges()}}).check(t)
				(&node{op: "Cast", attrs: append(to(d), number("saturate", 0)), in: []*tensor.Tensor{fill(tensor.Float16, []int64{301}, 5, true)}}).check(t)
			}
		})
	}
}

func TestQuantizeNarrow(t *testing.T) {
	scales := func(d tensor.DType, shape ...int64) *tensor.Tensor {
		v := fill(d, shape, 7, false).Float64s()
		for i := range v {
			v[i] = math.Abs(v[i])/20 + 0.01
		}
		return tensor.FromFloats(d, shape, v)
	}
	for _, d := range append(float8Types, narrowInts...) {
		zeros := func(shape ...int64) *tensor.Tensor {
			n := int64(1)
			for _, s := range shape {
				n *= s
			}
			if d.Bits() == 8 { // only 0 is a zero point there
				return tensor.New(d, shape, make([]byte, n))
			}
			return tensor.New(d, shape, codes(d).Bytes()[3:3+n])
		}
		out := number("output_dtype", int64(d.ONNX()))
		t.Run(d.Spec(), func(t *testing.T) {
			for _, f := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
				x := fill(f, []int64{5, 12}, 1, f == tensor.Float32)
				q := tensor.New(d, []int64{5, 12}, codes(d).Bytes()[100:160])
				for _, c := range []struct {
					shape []int64
					attrs []ssa.Attr
				}{{[]int64{}, nil}, {[]int64{12}, nil}, {[]int64{5}, []ssa.Attr{number("axis", 0)}}, {[]int64{5, 3}, []ssa.Attr{number("axis", 1), number("block_size", 4)}}, {[]int64{2, 12}, []ssa.Attr{number("axis", 0), number("block_size", 3)}}} {
					(&node{op: "QuantizeLinear", attrs: append(c.attrs, out), in: []*tensor.Tensor{x, scales(f, c.shape...)}}).check(t)
					(&node{op: "QuantizeLinear", attrs: c.attrs, in: []*tensor.Tensor{x, scales(f, c.shape...), zeros(c.shape...)}}).check(t)
					(&node{op: "DequantizeLinear", attrs: c.attrs, in: []*tensor.Tensor{q, scales(f, c.shape...)}}).check(t)
					(&node{op: "DequantizeLinear", attrs: c.attrs, in: []*tensor.Tensor{q, scales(f, c.shape...), zeros(c.shape...)}}).check(t)
				}
			}
			if d.Bits() == 8 {
				(&node{op: "QuantizeLinear", attrs: []ssa.Attr{number("saturate", 0), out}, in: []*tensor.Tensor{edges(), scales(tensor.Float32)}}).check(t)
			}
		})
	}
}
