package exec_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// strs is an attribute of a list of strings.
func strs(name string, v ...string) ssa.Attr {
	var l []ssa.Literal
	for _, s := range v {
		l = append(l, ssa.Str(s))
	}
	return attr(name, ssa.List(ssa.StrType, l...))
}

// spots are places around an image: within, on pixels, at the borders, far outside, and nowhere.
func spots(d tensor.DType, shape ...int64) *tensor.Tensor {
	t := fill(d, shape, 7, false)
	v := t.Float64s()
	for i := range v {
		v[i] /= 3
		if i%4 == 1 {
			v[i] = []float64{-1, 1, 0, 0.5, -0.25, 9, -1e9, math.NaN()}[i/4%8]
		}
	}
	return tensor.FromFloats(d, shape, v)
}

func TestGridSample(t *testing.T) {
	for _, mode := range []string{"linear", "nearest", "cubic"} {
		for _, padding := range []string{"zeros", "border", "reflection"} {
			for align := range int64(2) {
				for _, d := range floatTypes {
					t.Run(fmt.Sprintf("%s/%s/%d/%s", mode, padding, align, d.Spec()), func(t *testing.T) {
						attrs := []ssa.Attr{text("mode", mode), text("padding_mode", padding), number("align_corners", align)}
						n := node{op: "GridSample", attrs: attrs, in: []*tensor.Tensor{fill(d, []int64{2, 3, 5, 7}, 1, false), spots(d, 2, 4, 6, 2)}}
						n.check(t)
						n.dynamic = true
						n.check(t)
						(&node{op: "GridSample", attrs: attrs, in: []*tensor.Tensor{fill(d, []int64{1, 2, 1, 3}, 1, true), spots(d, 1, 3, 3, 2)}}).check(t)
						if mode != "cubic" {
							(&node{op: "GridSample", attrs: attrs, in: []*tensor.Tensor{fill(d, []int64{1, 2, 3, 4, 5}, 1, false), spots(d, 1, 2, 3, 2, 3)}}).check(t)
						}
					})
				}
			}
		}
	}
}

func TestRecurrent(t *testing.T) {
	// operands of a layer: sequence, weights, bias, lengths, states, peepholes; absent ones are nil
	layer := func(op string, d tensor.DType, dirs, steps, batch, width, hidden int64, batched bool, with string) node {
		gates := map[string]int64{"RNN": 1, "GRU": 3, "LSTM": 4}[op]
		x, state := []int64{steps, batch, width}, []int64{dirs, batch, hidden}
		if batched {
			x, state = []int64{batch, steps, width}, []int64{batch, dirs, hidden}
		}
		f := func(seed uint64, shape ...int64) *tensor.Tensor {
			v := fill(d, shape, seed, false).Float64s()
			for i := range v {
				v[i] /= 4
			}
			return tensor.FromFloats(d, shape, v)
		}
		n := node{op: op, results: 2, in: []*tensor.Tensor{f(1, x...), f(2, dirs, gates*hidden, width), f(3, dirs, gates*hidden, hidden), nil, nil, nil}}
		if op == "LSTM" {
			n.results, n.in = 3, append(n.in, nil, nil)
		}
		for _, c := range with {
			switch c {
			case 'b':
				n.in[3] = f(4, dirs, 2*gates*hidden)
			case 'l':
				v := make([]int64, batch)
				for i := range v {
					v[i] = max(steps-int64(i)*2, 0)
				}
				n.in[4] = tensor.FromInts(tensor.Int32, []int64{batch}, v)
			case 'h':
				if n.in[5] = f(5, state...); op == "LSTM" {
					n.in[6] = f(6, state...)
				}
			case 'p':
				n.in[7] = f(7, dirs, 3*hidden)
			}
		}
		n.attrs = []ssa.Attr{number("hidden_size", hidden)}
		if dirs == 2 {
			n.attrs = append(n.attrs, text("direction", "bidirectional"))
		}
		if batched {
			n.attrs = append(n.attrs, number("layout", 1))
		}
		return n
	}
	for _, op := range []string{"RNN", "GRU", "LSTM"} {
		for _, d := range floatTypes {
			t.Run(op+"/"+d.Spec(), func(t *testing.T) {
				for _, n := range []node{
					layer(op, d, 1, 5, 3, 4, 7, false, ""),
					layer(op, d, 1, 5, 3, 4, 7, false, "bh"),
					layer(op, d, 2, 5, 3, 4, 7, false, "blh"),
					layer(op, d, 2, 4, 2, 3, 130, true, "blh"),
					layer(op, d, 1, 0, 2, 3, 4, false, "h"),
				} {
					n.check(t)
					n.dynamic = true
					n.check(t)
				}
			})
		}
		t.Run(op+"/attributes", func(t *testing.T) {
			d := tensor.Float32
			n := layer(op, d, 1, 5, 3, 4, 7, false, "bl")
			n.attrs = append(n.attrs, text("direction", "reverse"), attr("clip", ssa.Float(0.3)))
			n.check(t)
			n = layer(op, d, 2, 3, 2, 4, 7, false, "bh")
			names := map[string][]string{"RNN": {"HardSigmoid", "LeakyRelu"}, "GRU": {"HardSigmoid", "ScaledTanh", "Affine", "Softsign"},
				"LSTM": {"HardSigmoid", "Elu", "ThresholdedRelu", "Sigmoid", "Relu", "Softplus"}}[op]
			n.attrs = append(n.attrs, strs("activations", names...), attr("activation_alpha", ssa.Floats(0.25, 0.5, 0.75)), attr("activation_beta", ssa.Floats(0.5, 0.25)))
			n.check(t)
		})
	}
	n := layer("GRU", tensor.Float32, 2, 5, 3, 4, 7, false, "blh")
	n.attrs = append(n.attrs, number("linear_before_reset", 1))
	n.check(t)
	n = layer("LSTM", tensor.Float32, 2, 5, 3, 4, 7, false, "blhp")
	n.check(t)
	n.attrs = append(n.attrs, number("input_forget", 1))
	n.check(t)
}

func TestMod(t *testing.T) {
	for _, d := range floatTypes {
		t.Run(d.Spec(), func(t *testing.T) {
			x, y := fill(d, []int64{2000}, 3, true), fill(d, []int64{2000}, 4, true)
			v, w := x.Float64s(), y.Float64s()
			for i := range v {
				if i%3 == 0 { // quotients far apart
					v[i] = math.Ldexp(v[i], i%400-100)
					w[i] = math.Ldexp(w[i], -i%120)
				}
				if i%7 == 0 { // and those that are whole, or nearly
					v[i] = w[i] * float64(i)
				}
			}
			x, y = tensor.FromFloats(d, x.Shape, v), tensor.FromFloats(d, x.Shape, w)
			(&node{op: "Mod", attrs: []ssa.Attr{number("fmod", 1)}, in: []*tensor.Tensor{x, y}}).check(t)
		})
	}
	huge, tiny := tensor.FromFloats(tensor.Float64, []int64{4}, []float64{math.MaxFloat64, 1e300, -1e308, 5e-324}), tensor.FromFloats(tensor.Float64, []int64{4}, []float64{5e-324, 3e-310, 7e-5, math.Inf(1)})
	(&node{op: "Mod", attrs: []ssa.Attr{number("fmod", 1)}, in: []*tensor.Tensor{huge, tiny}}).check(t)
}

func TestRoiAlign(t *testing.T) {
	regions := func(d tensor.DType) *tensor.Tensor {
		return tensor.FromFloats(d, []int64{5, 4}, []float64{0, 0, 6, 4, 1.5, 0.5, 3.25, 4.5, -3, -2, 9, 8, 2, 2, 2, 2, 20, 20, 30, 30})
	}
	batch := tensor.Ints(0, 1, 1, 0, 1)
	for _, d := range floatTypes {
		for _, mode := range []string{"avg", "max"} {
			for ratio := range int64(3) {
				for _, places := range []string{"half_pixel", "output_half_pixel"} {
					t.Run(fmt.Sprintf("%s/%s/%d/%s", d.Spec(), mode, ratio, places), func(t *testing.T) {
						n := node{op: "RoiAlign", in: []*tensor.Tensor{fill(d, []int64{2, 3, 7, 8}, 1, false), regions(d), batch}, attrs: []ssa.Attr{number("output_height", 3),
							number("output_width", 2), number("sampling_ratio", ratio), attr("spatial_scale", ssa.Float(0.75)), text("mode", mode), text("coordinate_transformation_mode", places)}}
						n.check(t)
						n.dynamic = true
						n.check(t)
					})
				}
			}
		}
	}
}

func TestQuantize(t *testing.T) {
	positive := func(d tensor.DType, shape ...int64) *tensor.Tensor {
		v := fill(d, shape, 5, false).Float64s()
		for i := range v {
			v[i] = math.Abs(v[i])/40 + 0.01
		}
		return tensor.FromFloats(d, shape, v)
	}
	for _, q := range []tensor.DType{tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16} {
		for _, d := range []tensor.DType{tensor.Float32, tensor.Float16, tensor.BFloat16} {
			t.Run(q.Spec()+"/"+d.Spec(), func(t *testing.T) {
				for _, c := range []struct {
					scale []int64
					attrs []ssa.Attr
				}{
					{[]int64{}, nil},
					{[]int64{1}, nil},
					{[]int64{6}, []ssa.Attr{number("axis", 1)}},
					{[]int64{3, 2, 5}, []ssa.Attr{number("axis", 1), number("block_size", 3)}},
				} {
					scale, zero := positive(d, c.scale...), fill(q, c.scale, 6, false)
					x, y := fill(d, []int64{3, 6, 5}, 1, true), fill(q, []int64{3, 6, 5}, 2, true)
					(&node{op: "QuantizeLinear", attrs: c.attrs, in: []*tensor.Tensor{x, scale, zero}}).check(t)
					(&node{op: "DequantizeLinear", attrs: c.attrs, in: []*tensor.Tensor{y, scale, zero}}).check(t)
					(&node{op: "DequantizeLinear", attrs: c.attrs, in: []*tensor.Tensor{y, scale}, dynamic: len(c.scale) < 2}).check(t)
				}
			})
		}
	}
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float16} {
		(&node{op: "DequantizeLinear", in: []*tensor.Tensor{fill(tensor.Int32, []int64{99}, 2, true), positive(d)}}).check(t)
	}
}

func TestEinsum(t *testing.T) {
	for _, c := range []struct {
		equation string
		shapes   [][]int64
	}{
		{"ij,jk->ik", [][]int64{{3, 4}, {4, 5}}}, {"ii->i", [][]int64{{4, 4}}}, {"ii", [][]int64{{4, 4}}}, {"i,j->ij", [][]int64{{3}, {4}}}, {"bij,bjk,bk->bi", [][]int64{{2, 3, 4}, {2, 4, 5}, {2, 5}}},
		{"...ij,...j->...i", [][]int64{{2, 3, 4, 5}, {3, 5}}}, {"ij,kj->ki", [][]int64{{3, 1}, {2, 6}}}, {"ij->ji", [][]int64{{3, 0}}}, {"i,i", [][]int64{{0}, {0}}},
	} {
		row{op: "Einsum", dtypes: each(floatTypes, intTypes), shapes: c.shapes, attrs: []ssa.Attr{text("equation", c.equation)}}.run(t, !slices.Contains(c.shapes[0], 1))
	}
}

func TestDet(t *testing.T) {
	for _, d := range floatTypes {
		for _, shape := range [][]int64{{1, 1}, {3, 3}, {2, 3, 7, 7}, {0, 4, 4}, {130, 2, 2}} {
			(&node{op: "Det", in: []*tensor.Tensor{fill(d, shape, 1, false)}}).check(t)
			(&node{op: "Det", in: []*tensor.Tensor{tensor.FromFloats(d, shape, few(tensor.Int32, shape...).Float64s())}, dynamic: true}).check(t)
		}
	}
}
