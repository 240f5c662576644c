package exec_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// shippedOperators are kernels for TestPTXAS, mutatedOperators those for TestMutations: of the operators that few models have.

func shippedOperators() []node {
	f := func(shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, 1, false) }
	second := []bool{false, true}
	return []node{
		{op: "HannWindow", in: []*tensor.Tensor{tensor.ScalarInt(400)}, consts: []bool{true}},
		{op: "DFT", in: []*tensor.Tensor{f(2, 512, 1)}, attrs: []ssa.Attr{number("onesided", 1)}},
		{op: "DFT", in: []*tensor.Tensor{f(2, 201, 2)}, attrs: []ssa.Attr{number("onesided", 1), number("inverse", 1)}},
		{op: "STFT", in: []*tensor.Tensor{f(2, 900, 1), tensor.ScalarInt(100), f(400)}, consts: second, dynamic: true},
		{op: "RandomNormal", attrs: []ssa.Attr{ints("shape", 500)}},
		{op: "Cast", attrs: []ssa.Attr{number("to", int64(tensor.Float8E4M3FN.ONNX()))}, in: []*tensor.Tensor{f(515)}},
		{op: "Resize", in: []*tensor.Tensor{f(1, 2, 50, 70), nil, nil, tensor.Ints(1, 2, 10, 30)}, consts: []bool{false, true, true, true}, attrs: []ssa.Attr{text("mode", "cubic"), number("antialias", 1)}},
		{op: "Cast", attrs: []ssa.Attr{number("to", int64(tensor.Float32.ONNX()))}, in: []*tensor.Tensor{codes(tensor.Float8E5M2)}},
		{op: "QuantizeLinear", attrs: []ssa.Attr{number("block_size", 4), number("output_dtype", int64(tensor.Int4.ONNX()))}, in: []*tensor.Tensor{f(5, 12), f(5, 3)}},
		{op: "Bernoulli", in: []*tensor.Tensor{f(515)}},
		{op: "Multinomial", in: []*tensor.Tensor{f(3, 50)}},
		{op: "Dropout", in: []*tensor.Tensor{f(515), nil, tensor.FullInt(tensor.Bool, []int64{}, 1)}, results: 2, consts: []bool{false, true, true}},
		{op: "ScatterND", in: []*tensor.Tensor{f(4999, 3), many(tensor.Int64, 4999, 5000, 1), f(5000, 3)}},
		{op: "MaxUnpool", in: []*tensor.Tensor{f(2, 3, 4, 5), unpooled(480, 2, 3, 4, 5)}, attrs: []ssa.Attr{ints("kernel_shape", 2, 2), ints("strides", 2, 2)}},
		{op: "MaxRoiPool", in: []*tensor.Tensor{f(2, 3, 7, 9), f(4, 5)}, attrs: []ssa.Attr{ints("pooled_shape", 2, 3)}},
		{op: "LinearAttention", in: []*tensor.Tensor{f(2, 5, 12), f(2, 5, 6), f(2, 5, 8), nil, f(2, 5, 6), f(2, 5, 2)}, results: 2,
			attrs: []ssa.Attr{number("q_num_heads", 4), number("kv_num_heads", 2)}},
	}
}

func mutatedOperators() []node {
	scale := func(shape ...int64) *tensor.Tensor {
		v := fill(tensor.Float32, shape, 7, false).Float64s()
		for i := range v {
			v[i] = math.Abs(v[i]) + 0.1
		}
		return tensor.FromFloats(tensor.Float32, shape, v)
	}
	f := func(seed uint64, shape ...int64) *tensor.Tensor { return fill(tensor.Float32, shape, seed, false) }
	return []node{
		{op: "DFT", in: []*tensor.Tensor{f(1, 2, 72, 1)}},
		{op: "DFT", in: []*tensor.Tensor{f(1, 3, 11, 2)}, attrs: []ssa.Attr{number("onesided", 1), number("inverse", 1)}},
		{op: "STFT", in: []*tensor.Tensor{f(1, 2, 40, 1), tensor.ScalarInt(7), f(2, 16)}, consts: []bool{false, true}},
		{op: "RandomNormal", attrs: []ssa.Attr{ints("shape", 3, 43)}},
		{op: "Resize", in: []*tensor.Tensor{f(1, 1, 2, 9, 11), nil, nil, tensor.Ints(1, 2, 5, 13)}, consts: []bool{false, true, true, true},
			attrs: []ssa.Attr{text("mode", "linear"), number("antialias", 1), number("exclude_outside", 1)}},
		{op: "Cast", attrs: []ssa.Attr{number("to", int64(tensor.Float8E4M3FN.ONNX())), number("saturate", 0)}, in: []*tensor.Tensor{edges()}},
		{op: "Cast", attrs: []ssa.Attr{number("to", int64(tensor.Float32.ONNX()))}, in: []*tensor.Tensor{codes(tensor.Float8E5M2)}},
		{op: "QuantizeLinear", attrs: []ssa.Attr{number("block_size", 4), number("output_dtype", int64(tensor.Int4.ONNX()))}, in: []*tensor.Tensor{f(1, 5, 12), scale(5, 3)}},
		{op: "Multinomial", in: []*tensor.Tensor{f(1, 3, 50)}, attrs: []ssa.Attr{number("sample_size", 9)}},
		{op: "Dropout", in: []*tensor.Tensor{f(1, 130), nil, tensor.FullInt(tensor.Bool, []int64{}, 1)}, results: 2, consts: []bool{false, true, true}},
		{op: "ScatterElements", in: []*tensor.Tensor{f(1, 1, 150), many(tensor.Int64, 150, 1, 4200), f(2, 1, 4200)}, attrs: []ssa.Attr{number("axis", 1), text("reduction", "add")}},
		{op: "MaxUnpool", in: []*tensor.Tensor{f(1, 1, 2, 4, 5), unpooled(150, 1, 2, 4, 5)},
			attrs: []ssa.Attr{ints("kernel_shape", 2, 2), ints("strides", 2, 2)}},
		{op: "MaxRoiPool", in: []*tensor.Tensor{f(1, 2, 3, 7, 9), tensor.FromFloats(tensor.Float32, []int64{2, 5}, []float64{0, 1, 2, 5, 6, 1, 3, 0, 8, 4})}, attrs: []ssa.Attr{ints("pooled_shape", 2, 3)}},
		{op: "LinearAttention", in: []*tensor.Tensor{f(1, 2, 5, 12), f(2, 2, 5, 6), f(3, 2, 5, 8), nil, f(4, 2, 5, 6), f(5, 2, 5, 2)}, results: 2,
			attrs: []ssa.Attr{number("q_num_heads", 4), number("kv_num_heads", 2)}},
	}
}

// many are n indices, of which every seventh is negative, from -of on.
func many(d tensor.DType, of int64, shape ...int64) *tensor.Tensor {
	r := rand.New(rand.NewPCG(3, uint64(of)))
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	v := make([]int64, n)
	for i := range v {
		if v[i] = r.Int64N(of); i%7 == 3 {
			v[i] -= of
		}
	}
	return tensor.FromInts(d, shape, v)
}

// unpooled are indices of which none is negative, and some are the same.
func unpooled(of int64, shape ...int64) *tensor.Tensor {
	at := many(tensor.Int64, of, shape...).Int64s()
	for i := range at {
		at[i] = max(at[i], 7)
	}
	return tensor.FromInts(tensor.Int64, shape, at)
}

// Scattering more updates than an element goes through one by one.
func TestScatterMany(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.Int64, tensor.Bool} {
		for _, reduction := range []string{"none", "add", "mul", "max", "min"} {
			if d == tensor.Bool && (reduction == "max" || reduction == "min") || d != tensor.Float32 && reduction == "mul" {
				continue
			}
			attrs := []ssa.Attr{text("reduction", reduction)}
			of := func(seed uint64, shape ...int64) *tensor.Tensor { return fill(d, shape, seed, false) }
			at := many(tensor.Int64, 4999, 5000, 1)
			(&node{op: "ScatterElements", attrs: append(attrs, number("axis", 0)), in: []*tensor.Tensor{of(1, 4999, 2), at, of(2, 5000, 1)}}).check(t)
			(&node{op: "ScatterElements", attrs: append(attrs, number("axis", -1)), in: []*tensor.Tensor{of(1, 3, 700), many(tensor.Int32, 700, 2, 4100), of(2, 2, 4100)}}).check(t)
			(&node{op: "ScatterND", attrs: attrs, in: []*tensor.Tensor{of(1, 4999, 3), at, of(2, 5000, 3)}}).check(t)
			(&node{op: "ScatterND", attrs: attrs, in: []*tensor.Tensor{of(1, 40, 40, 2), many(tensor.Int64, 40, 4100, 2), of(2, 4100, 2)}}).check(t)
		}
	}
}

func TestMaxUnpool(t *testing.T) {
	shape := func(v ...int64) []ssa.Attr { return []ssa.Attr{ints("kernel_shape", v...)} }
	for _, d := range floatTypes {
		x := fill(d, []int64{2, 3, 4, 5}, 1, false)
		index := unpooled(2*3*8*10, 2, 3, 4, 5)
		strided := append(shape(2, 2), ints("strides", 2, 2))
		(&node{op: "MaxUnpool", attrs: strided, in: []*tensor.Tensor{x, index}}).check(t)
		(&node{op: "MaxUnpool", attrs: strided, in: []*tensor.Tensor{x, index, tensor.Ints(2, 3, 9, 11)}, consts: []bool{false, false, true}}).check(t)
		(&node{op: "MaxUnpool", attrs: append(shape(3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 0, 0)), in: []*tensor.Tensor{x, index}}).check(t)
		if d == tensor.Float32 {
			(&node{op: "MaxUnpool", attrs: strided, in: []*tensor.Tensor{x, index}, dynamic: true}).check(t)
			(&node{op: "MaxUnpool", attrs: strided, in: []*tensor.Tensor{x, index, tensor.Ints(2, 3, 9, 11)}}).check(t)
		}
	}
}

func TestMaxRoiPool(t *testing.T) {
	for _, d := range floatTypes {
		x := fill(d, []int64{2, 3, 7, 9}, 1, false)
		rois := tensor.FromFloats(d, []int64{5, 5}, []float64{0, 1, 1, 5, 6, 1, 0, 0, 8, 6, 1, 2.5, 3.5, 2, 1, 0, 7, 5, 20, 30, 1, -4, -3, 2, 2})
		for _, scale := range []float64{1, 0.5} {
			n := node{op: "MaxRoiPool", attrs: []ssa.Attr{ints("pooled_shape", 2, 3), attr("spatial_scale", ssa.Float(scale))}, in: []*tensor.Tensor{x, rois}}
			n.check(t)
			n.dynamic = d == tensor.Float32
			n.check(t)
		}
	}
}

func TestLinearAttention(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16} {
		f := func(seed uint64, shape ...int64) *tensor.Tensor {
			v := fill(d, shape, seed, false).Float64s()
			for i := range v {
				v[i] /= 8
			}
			return tensor.FromFloats(d, shape, v)
		}
		for _, rule := range []string{"linear", "gated", "delta", "gated_delta"} {
			attrs := []ssa.Attr{number("q_num_heads", 4), number("kv_num_heads", 2), text("update_rule", rule)}
			in := []*tensor.Tensor{f(1, 2, 5, 12), f(2, 2, 5, 6), f(3, 2, 5, 8), nil, nil, nil}
			if rule == "gated" || rule == "gated_delta" {
				in[4] = f(5, 2, 5, 6)
			}
			if rule == "delta" || rule == "gated_delta" {
				in[5] = f(6, 2, 5, 2)
			}
			(&node{op: "LinearAttention", attrs: attrs, in: in, results: 2}).check(t)
			in[3] = f(4, 2, 2, 3, 4)
			if in[4] != nil {
				in[4] = f(5, 2, 5, 2) // one for each head
			}
			(&node{op: "LinearAttention", attrs: append(attrs, attr("scale", ssa.Float(0.3))), in: in, results: 2}).check(t)
		}
	}
}

func TestResizeAll(t *testing.T) {
	scales := func(v ...float64) *tensor.Tensor { return tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v) }
	roi := scales(0, 0, 0.1, -0.2, 1, 1, 0.8, 1.3)
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		for _, coords := range []string{"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_half_pixel_for_nn", "half_pixel_symmetric", "tf_crop_and_resize"} {
			if mode != "nearest" && coords == "tf_half_pixel_for_nn" {
				continue
			}
			base := []ssa.Attr{text("mode", mode), text("coordinate_transformation_mode", coords)}
			for variant := range 8 {
				attrs := append([]ssa.Attr(nil), base...)
				if mode == "nearest" && variant > 0 {
					continue
				}
				if variant&1 != 0 {
					attrs = append(attrs, number("antialias", 1))
				}
				if variant&2 != 0 {
					attrs = append(attrs, number("exclude_outside", 1))
				}
				types := single
				if variant&4 != 0 {
					attrs = append(attrs, attr("cubic_coeff_a", ssa.Float(-0.5)), attr("extrapolation_value", ssa.Float(7)))
					types = append([]tensor.DType{tensor.Uint8, tensor.Int32, tensor.Float16}, floatTypes[1:]...)
				}
				if mode == "nearest" {
					types = anyTypes
				}
				x := shapes([]int64{1, 2, 5, 7})
				row{op: "Resize", dtypes: types, shapes: x, extra: []*tensor.Tensor{roi, nil, tensor.Ints(1, 2, 10, 3)}, attrs: attrs}.run(t, false)
				row{op: "Resize", dtypes: single, shapes: x, extra: []*tensor.Tensor{roi, scales(1, 1, 2.3, 0.37)}, attrs: attrs}.run(t, false)
				sub := append(attrs[:len(attrs):len(attrs)], ints("axes", 3, 2))
				part := scales(0, 0.25, 0.5, 1)
				row{op: "Resize", dtypes: single, shapes: x, extra: []*tensor.Tensor{part, nil, tensor.Ints(4, 4)}, attrs: append(sub, text("keep_aspect_ratio_policy", "not_larger"))}.run(t, false)
				row{op: "Resize", dtypes: single, shapes: x, extra: []*tensor.Tensor{part, nil, tensor.Ints(9, 9)}, attrs: append(sub, text("keep_aspect_ratio_policy", "not_smaller"))}.run(t, false)
			}
		}
	}
	// scales and a region that only the device knows
	x := fill(tensor.Float32, []int64{1, 2, 5, 7}, 1, false)
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		(&node{op: "Resize", attrs: []ssa.Attr{text("mode", mode)}, in: []*tensor.Tensor{x, nil, scales(1, 1, 2.5, 0.5)}}).check(t)
		(&node{op: "Resize", attrs: []ssa.Attr{text("mode", mode), text("coordinate_transformation_mode", "tf_crop_and_resize")}, in: []*tensor.Tensor{x, roi, scales(1, 1, 2.5, 0.5)}}).check(t)
		(&node{op: "Resize", attrs: []ssa.Attr{text("mode", mode), number("antialias", 1)}, dynamic: true, in: []*tensor.Tensor{x, nil, nil, tensor.Ints(1, 2, 3, 11)}, consts: []bool{false, true, true, true}}).check(t)
	}
}

func TestVariants(t *testing.T) {
	shifts := func(d tensor.DType) *tensor.Tensor {
		return tensor.FromInts(d, []int64{9}, []int64{0, 1, 3, 7, 8, 31, 63, 64, 200})
	}
	for _, d := range []tensor.DType{tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16, tensor.Int32, tensor.Uint32, tensor.Int64, tensor.Uint64} {
		x := fill(d, []int64{40, 9}, 3, true)
		for _, direction := range []string{"LEFT", "RIGHT"} {
			(&node{op: "BitShift", attrs: []ssa.Attr{text("direction", direction)}, in: []*tensor.Tensor{x, shifts(d)}}).check(t)
		}
		if d != tensor.Int32 && d != tensor.Int64 {
			continue // no Pow of these
		}
		for _, e := range []tensor.DType{d, tensor.Int64, tensor.Uint8} {
			(&node{op: "Pow", in: []*tensor.Tensor{x, tensor.FromInts(e, []int64{9}, []int64{0, 1, 2, 3, 5, 17, 63, 2, 1})}}).check(t)
			(&node{op: "Pow", in: []*tensor.Tensor{tensor.FromInts(d, []int64{5, 1}, []int64{0, 1, -1, 2, 7}), tensor.FromInts(e, []int64{4}, []int64{-1, -2, 0, 3})}}).check(t)
		}
	}
	for _, d := range append(floatTypes, tensor.BFloat16) {
		scalar := func(v float64) *tensor.Tensor { return tensor.FromFloats(d, []int64{}, []float64{v}) }
		(&node{op: "Range", in: []*tensor.Tensor{scalar(-1.5), scalar(4), scalar(0.3)}, consts: []bool{true, true, true}}).check(t)
		for _, p := range []int64{1, 2, 3, 4, 7} {
			(&node{op: "LpPool", attrs: []ssa.Attr{ints("kernel_shape", 3, 2), number("p", p)}, in: []*tensor.Tensor{fill(d, []int64{1, 2, 6, 7}, 1, false)}}).check(t)
		}
		(&node{op: "MaxPool", attrs: []ssa.Attr{ints("kernel_shape", 3, 2), number("storage_order", 1)}, results: 2, in: []*tensor.Tensor{fill(d, []int64{2, 2, 6, 7}, 1, false)}}).check(t)
	}
	for _, d := range []tensor.DType{tensor.Uint8, tensor.Int32, tensor.Int64} {
		for _, mode := range []string{"linear", "nearest", "cubic"} {
			(&node{op: "GridSample", attrs: []ssa.Attr{text("mode", mode)}, in: []*tensor.Tensor{fill(d, []int64{1, 2, 5, 7}, 1, false), spots(tensor.Float32, 1, 4, 6, 2)}}).check(t)
		}
	}
	for _, d := range floatTypes {
		v := []float64{0, 1.9, -1.9, -3, 0x1p62, 0x1p63, 0x1.8p63, 0x1.ffp63, 0x1p64, -0x1p63, -0x1p64, math.Inf(1), math.Inf(-1), math.NaN(), 65504}
		(&node{op: "Cast", attrs: []ssa.Attr{number("to", int64(tensor.Uint64.ONNX()))}, in: []*tensor.Tensor{tensor.FromFloats(d, []int64{int64(len(v))}, v)}}).check(t)
		(&node{op: "LRN", attrs: []ssa.Attr{number("size", 4)}, in: []*tensor.Tensor{fill(d, []int64{2, 7, 3}, 1, false)}}).check(t)
	}
	for _, c := range [][2]tensor.DType{{tensor.Float32, tensor.Int32}, {tensor.Float64, tensor.Int64}, {tensor.Int16, tensor.Float16}, {tensor.Float16, tensor.BFloat16}, {tensor.BFloat16, tensor.Uint16},
		{tensor.Uint8, tensor.Int8}, {tensor.Int64, tensor.Float64}, {tensor.Int8, tensor.Float8E4M3FN}} {
		(&node{op: "BitCast", attrs: []ssa.Attr{number("to", int64(c[1].ONNX()))}, in: []*tensor.Tensor{fill(c[0], []int64{5, 60}, 1, true)}}).check(t)
	}
}

func TestIntegers(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16, tensor.Int32, tensor.Uint32, tensor.Int64, tensor.Uint64} {
		x := fill(d, []int64{7, 90}, 3, true)
		axis := tensor.Ints(1)
		last := []bool{false, true}
		for _, op := range []string{"ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceSumSquare", "ArgMax", "ArgMin", "CumSum", "CumProd", "Shrink"} {
			n := node{op: op, in: []*tensor.Tensor{x, axis}, consts: last}
			switch op {
			case "ArgMax", "ArgMin":
				n.in, n.attrs = n.in[:1], []ssa.Attr{number("axis", 1)}
			case "CumSum", "CumProd":
				n.in[1] = tensor.ScalarInt(1)
			case "Shrink":
				n.in, n.attrs = n.in[:1], []ssa.Attr{attr("lambd", ssa.Float(2.5)), attr("bias", ssa.Float(1.5))}
			}
			if s := onnx.SchemaOf(ssa.Kind("onnx::" + op)); !s.Inputs[0].Types.HasTensor(d) || op == "Shrink" && d == tensor.Uint64 {
				continue
			}
			t.Run(op+"/"+d.Spec(), n.check)
		}
	}
}
