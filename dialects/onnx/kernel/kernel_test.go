package kernel

import (
	"math"
	"testing"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func f32(shape []int64, v ...float32) *tensor.Tensor { return tensor.Of(tensor.Float32, shape, v) }

func eval(t *testing.T, name string, attrs []ssa.Attr, in ...*tensor.Tensor) *tensor.Tensor {
	t.Helper()
	out, err := Eval(ssa.Kind("onnx::"+name), attrs, in, 1)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestNumbers checks the corners where languages differ.
func TestNumbers(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		name  string
		attrs []ssa.Attr
		in    []*tensor.Tensor
		want  []float64
	}{
		{"Div", nil, []*tensor.Tensor{tensor.Ints(-7, 7), tensor.Ints(2, -2)}, []float64{-3, -3}},
		{"Mod", nil, []*tensor.Tensor{tensor.Ints(-7, 7), tensor.Ints(3, -3)}, []float64{2, -2}},
		{"Mod", []ssa.Attr{{Name: "fmod", Value: ssa.Int(1)}}, []*tensor.Tensor{tensor.Ints(-7, 7), tensor.Ints(3, -3)}, []float64{-1, 1}},
		{"Add", nil, []*tensor.Tensor{tensor.FromInts(tensor.Int8, []int64{1}, []int64{100}), tensor.FromInts(tensor.Int8, []int64{1}, []int64{100})}, []float64{-56}},
		{"Cast", []ssa.Attr{{Name: "to", Value: ssa.Int(7)}}, []*tensor.Tensor{f32([]int64{3}, -1.9, 1.9, 3e10)}, []float64{-1, 1, 30000001024}},
		{"Cast", []ssa.Attr{{Name: "to", Value: ssa.Int(9)}}, []*tensor.Tensor{f32([]int64{3}, 0, nan, -0.5)}, []float64{0, 1, 1}},
		{"Cast", []ssa.Attr{{Name: "to", Value: ssa.Int(17)}}, []*tensor.Tensor{f32([]int64{4}, 1, 447, 1e9, 0.3)}, []float64{56, 126, 126, 42}},
		{"Round", nil, []*tensor.Tensor{f32([]int64{4}, 0.5, 1.5, 2.5, -0.5)}, []float64{0, 2, 2, 0}},
		{"Pow", nil, []*tensor.Tensor{tensor.Ints(2, -3), tensor.Ints(10, 3)}, []float64{1024, -27}},
		{"ReduceMax", nil, []*tensor.Tensor{tensor.Of(tensor.Float32, []int64{0}, []float32{})}, []float64{math.Inf(-1)}},
		{"Slice", nil, []*tensor.Tensor{tensor.Ints(0, 1, 2, 3, 4), tensor.Ints(-1), tensor.Ints(-100), tensor.Ints(0), tensor.Ints(-2)}, []float64{4, 2, 0}},
		{"Clip", nil, []*tensor.Tensor{tensor.Ints(0, 5, 9), tensor.ScalarInt(7), tensor.ScalarInt(3)}, []float64{3, 3, 3}},
		{"Einsum", []ssa.Attr{{Name: "equation", Value: ssa.Str("ij,jk,k->i")}}, []*tensor.Tensor{f32([]int64{1, 2}, 1, 2), f32([]int64{2, 2}, 1, 2, 3, 4), f32([]int64{2}, 1, 1)}, []float64{17}},
	} {
		got := eval(t, c.name, c.attrs, c.in...)
		v := got.Storage.Bytes()
		if got.DType != tensor.Float8E4M3FN {
			if g := got.Float64s(); len(g) != len(c.want) {
				t.Errorf("%s: %v, want %v", c.name, g, c.want)
			} else {
				for i := range g {
					if g[i] != c.want[i] {
						t.Errorf("%s: %v, want %v", c.name, g, c.want)
						break
					}
				}
			}
			continue
		}
		for i := range v {
			if float64(v[i]) != c.want[i] {
				t.Errorf("%s: %v, want %v", c.name, v, c.want)
			}
		}
	}
}

// TestFloat8 checks that every 8-bit float survives a round trip.
func TestFloat8(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ} {
		all := make([]byte, 256)
		for i := range all {
			all[i] = byte(i)
		}
		x := tensor.New(d, []int64{256}, all)
		back := mapFloat8(cast(x, tensor.Float32), d, false)
		for i, b := range back.Storage.Bytes() {
			if f := value8(d, byte(i)); f == f && b != byte(i) {
				t.Errorf("%v %#x (%g) comes back as %#x", d, i, f, b)
			}
		}
	}
}

// TestErrors insists that impossible inputs are errors, not panics.
func TestErrors(t *testing.T) {
	x := f32([]int64{2, 3}, 1, 2, 3, 4, 5, 6)
	for _, name := range onnx.Names() {
		kind := ssa.Kind("onnx::" + name)
		if !Supported(kind) {
			continue
		}
		for n := range 7 {
			in := make([]*tensor.Tensor, n)
			for i := range in {
				in[i] = x
				if i%2 == 1 {
					in[i] = tensor.Ints(7, -9, 1<<40)
				}
			}
			_, _ = Eval(kind, nil, in, 1)
			for i := range in {
				in[i] = tensor.Of(tensor.Float32, []int64{}, []float32{1})
			}
			_, _ = Eval(kind, nil, in, 1)
		}
	}
}

// The place of element 8 is 4.5 in float32, as onnxruntime computes it, and a little less in float64.
func TestResizeHalfway(t *testing.T) {
	attrs := []ssa.Attr{{Name: "mode", Value: ssa.Str("nearest")}, {Name: "nearest_mode", Value: ssa.Str("round_prefer_ceil")},
		{Name: "coordinate_transformation_mode", Value: ssa.Str("half_pixel")}}
	y := eval(t, "Resize", attrs, f32([]int64{1, 1, 6}, 0, 1, 2, 3, 4, 5), nil, f32([]int64{3}, 1, 1, 1.7))
	if got := y.Float64s()[8]; got != 5 {
		t.Errorf("element 8 is element %g, want 5", got)
	}
}

// TestRefused gives kernels inputs for which the standard has no result: they say so, and read no other element.
func TestRefused(t *testing.T) {
	inf := float32(math.Inf(1))
	image := f32([]int64{1, 1, 2, 2}, 1, 2, 3, 4)
	cache, rows := f32([]int64{2, 1, 3, 1}, 1, 2, 3, 4, 5, 6), f32([]int64{2, 1, 1, 1}, 7, 8)
	for _, c := range []struct {
		name string
		in   []*tensor.Tensor
	}{
		{"GatherElements", []*tensor.Tensor{f32([]int64{2, 2}, 1, 2, 3, 4), tensor.FromInts(tensor.Int64, []int64{1, 3}, []int64{0, 1, 0})}},
		{"TensorScatter", []*tensor.Tensor{cache, rows, tensor.Ints(0)}},
		{"TensorScatter", []*tensor.Tensor{cache, rows, tensor.Ints(0, 1, 2)}},
		{"RoiAlign", []*tensor.Tensor{image, f32([]int64{1, 4}, 0, 0, inf, 1), tensor.Ints(0)}},
		{"RoiAlign", []*tensor.Tensor{image, f32([]int64{1, 4}, 0, float32(math.NaN()), 1, 1), tensor.Ints(0)}},
	} {
		if out, err := Eval(ssa.Kind("onnx::"+c.name), nil, c.in, 1); err == nil {
			t.Errorf("%s of %v gives %v", c.name, c.in, out)
		}
	}
	// the same with what fits
	for name, in := range map[string][]*tensor.Tensor{
		"GatherElements": {f32([]int64{2, 2}, 1, 2, 3, 4), tensor.FromInts(tensor.Int64, []int64{1, 2}, []int64{0, 1})},
		"TensorScatter":  {cache, rows, tensor.Ints(0, 1)},
		"RoiAlign":       {image, f32([]int64{1, 4}, 0, 0, 1, 1), tensor.Ints(0)},
	} {
		eval(t, name, nil, in...)
	}
}
