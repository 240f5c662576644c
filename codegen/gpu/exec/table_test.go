package exec_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

func ints(name string, v ...int64) ssa.Attr { return attr(name, ssa.Ints(v...)) }
func number(name string, v int64) ssa.Attr  { return attr(name, ssa.Int(v)) }
func text(name, v string) ssa.Attr          { return attr(name, ssa.Str(v)) }

// row is a line of a table: an operator with shapes of operands, for several element types.
type row struct {
	op     string
	dtypes []tensor.DType
	shapes [][]int64 // of the operands that have data of the type
	extra  []*tensor.Tensor
	attrs  []ssa.Attr
	// results of the operator, 1 if 0
	results int
	// static rows need sizes that are constants: else they run on the host
	static bool
}

// run checks a row, with sizes that are constants and, if symbolic is set, that are symbols.
func (r row) run(t *testing.T, symbolic bool) {
	t.Helper()
	for _, d := range r.dtypes {
		var shapes []string
		for _, s := range r.shapes {
			shapes = append(shapes, shapeName(s))
		}
		t.Run(fmt.Sprintf("%s/%s/%s", r.op, d.Spec(), strings.Join(shapes, "")), func(t *testing.T) {
			n := node{op: r.op, attrs: r.attrs, results: r.results}
			for i, s := range r.shapes {
				n.in, n.consts = append(n.in, fill(d, s, uint64(i)+1, false)), append(n.consts, false)
			}
			for _, x := range r.extra {
				n.in, n.consts = append(n.in, x), append(n.consts, true)
			}
			n.check(t)
			if symbolic && !r.static {
				n.dynamic = true
				n.check(t)
			}
		})
	}
}

var (
	single   = floatTypes[:1]
	anyTypes = each(floatTypes, intTypes, boolType)
)

func shapes(s ...[]int64) [][]int64 { return s }

func TestViews(t *testing.T) {
	ints64 := tensor.Ints
	for _, r := range []row{
		{op: "Transpose", dtypes: anyTypes, shapes: shapes([]int64{3, 5}), attrs: []ssa.Attr{ints("perm", 1, 0)}},
		{op: "Transpose", dtypes: anyTypes, shapes: shapes([]int64{2, 33, 31}), attrs: []ssa.Attr{ints("perm", 0, 2, 1)}},
		{op: "Transpose", dtypes: anyTypes, shapes: shapes([]int64{32, 64}), attrs: []ssa.Attr{ints("perm", 1, 0)}},
		{op: "Transpose", dtypes: anyTypes, shapes: shapes([]int64{9, 3, 65}), attrs: []ssa.Attr{ints("perm", 2, 1, 0)}},
		{op: "Transpose", dtypes: anyTypes, shapes: shapes([]int64{9, 3, 4, 11}), attrs: []ssa.Attr{ints("perm", 2, 3, 1, 0)}},
		{op: "Transpose", dtypes: single, shapes: shapes([]int64{0, 40, 40}), attrs: []ssa.Attr{ints("perm", 0, 2, 1)}},
		{op: "Transpose", dtypes: single, shapes: shapes([]int64{2, 3, 4}), attrs: []ssa.Attr{ints("perm", 1, 0, 2)}},
		{op: "Slice", dtypes: anyTypes, shapes: shapes([]int64{7, 9}), extra: []*tensor.Tensor{ints64(1, -3), ints64(6, 100), nil, ints64(2, 1)}},
		{op: "Slice", dtypes: anyTypes, shapes: shapes([]int64{7, 9}), extra: []*tensor.Tensor{ints64(-1, 100), ints64(-100, 2), ints64(0, 1), ints64(-1, -3)}, static: true},
		{op: "Slice", dtypes: single, shapes: shapes([]int64{7}), extra: []*tensor.Tensor{ints64(5), ints64(5)}},
		{op: "Expand", dtypes: anyTypes, shapes: shapes([]int64{3, 1}), extra: []*tensor.Tensor{ints64(2, 3, 5)}},
		{op: "Tile", dtypes: anyTypes, shapes: shapes([]int64{3, 2}), extra: []*tensor.Tensor{ints64(2, 3)}},
		{op: "Split", dtypes: anyTypes, shapes: shapes([]int64{7, 3}), extra: []*tensor.Tensor{ints64(2, 0, 5)}, attrs: []ssa.Attr{number("axis", 0)}, results: 3},
		{op: "DepthToSpace", dtypes: single, shapes: shapes([]int64{2, 8, 3, 5}), attrs: []ssa.Attr{number("blocksize", 2)}},
		{op: "DepthToSpace", dtypes: single, shapes: shapes([]int64{2, 8, 3, 5}), attrs: []ssa.Attr{number("blocksize", 2), text("mode", "CRD")}},
		{op: "SpaceToDepth", dtypes: single, shapes: shapes([]int64{2, 3, 4, 6}), attrs: []ssa.Attr{number("blocksize", 2)}},
		{op: "Concat", dtypes: anyTypes, shapes: shapes([]int64{2, 3}, []int64{2, 0}, []int64{2, 130}), attrs: []ssa.Attr{number("axis", 1)}},
		{op: "Concat", dtypes: single, shapes: shapes([]int64{3, 4}), attrs: []ssa.Attr{number("axis", 0)}},
	} {
		r.run(t, !strings.HasPrefix(r.op, "Dep") && !strings.HasPrefix(r.op, "Space") && r.op != "Expand" && r.op != "Split")
	}
}

func TestPicks(t *testing.T) {
	ints64 := tensor.Ints
	index := func(shape []int64, v ...int64) *tensor.Tensor { return tensor.FromInts(tensor.Int64, shape, v) }
	for _, r := range []row{
		{op: "Gather", dtypes: anyTypes, shapes: shapes([]int64{5, 7}), extra: []*tensor.Tensor{index([]int64{2, 2}, 0, -1, 4, 2)}},
		{op: "Gather", dtypes: single, shapes: shapes([]int64{5, 7}), extra: []*tensor.Tensor{tensor.ScalarInt(-2)}, attrs: []ssa.Attr{number("axis", 1)}},
		{op: "Gather", dtypes: single, shapes: shapes([]int64{5, 1}), extra: []*tensor.Tensor{ints64(0, -1, 0)}, attrs: []ssa.Attr{number("axis", 1)}},
		{op: "GatherElements", dtypes: anyTypes, shapes: shapes([]int64{3, 4}), extra: []*tensor.Tensor{index([]int64{2, 4}, 0, 1, 2, -1, -3, 0, 1, 2)}},
		{op: "GatherND", dtypes: single, shapes: shapes([]int64{3, 4, 5}), extra: []*tensor.Tensor{index([]int64{2, 2}, 0, 1, 2, -1)}},
		{op: "GatherND", dtypes: single, shapes: shapes([]int64{2, 4, 5}), extra: []*tensor.Tensor{index([]int64{2, 1}, 3, -4)}, attrs: []ssa.Attr{number("batch_dims", 1)}},
		{op: "Pad", dtypes: anyTypes, shapes: shapes([]int64{3, 5}), extra: []*tensor.Tensor{ints64(1, -2, 0, 3)}},
		{op: "Pad", dtypes: single, shapes: shapes([]int64{3, 5}), extra: []*tensor.Tensor{ints64(2, 0), tensor.FromFloats(tensor.Float32, []int64{}, []float64{1.5}), ints64(1)}},
		{op: "Pad", dtypes: single, shapes: shapes([]int64{3, 5}), extra: []*tensor.Tensor{ints64(1, 2, 4, 3)}, attrs: []ssa.Attr{text("mode", "edge")}},
		{op: "Pad", dtypes: single, shapes: shapes([]int64{3, 5}), extra: []*tensor.Tensor{ints64(1, 2, 2, 4)}, attrs: []ssa.Attr{text("mode", "reflect")}, static: true},
		{op: "Pad", dtypes: single, shapes: shapes([]int64{3, 5}), extra: []*tensor.Tensor{ints64(1, 2, 4, 9)}, attrs: []ssa.Attr{text("mode", "wrap")}},
		{op: "Trilu", dtypes: anyTypes, shapes: shapes([]int64{2, 4, 5})},
		{op: "Trilu", dtypes: single, shapes: shapes([]int64{4, 5}), extra: []*tensor.Tensor{tensor.ScalarInt(-1)}, attrs: []ssa.Attr{number("upper", 0)}},
		{op: "EyeLike", dtypes: single, shapes: shapes([]int64{4, 5}), attrs: []ssa.Attr{number("k", 1)}},
		{op: "LRN", dtypes: single, shapes: shapes([]int64{2, 7, 3}), attrs: []ssa.Attr{number("size", 4)}},
		{op: "ReverseSequence", dtypes: single, shapes: shapes([]int64{4, 2, 3}), extra: []*tensor.Tensor{ints64(3, 1)}},
	} {
		r.run(t, r.op != "Trilu" && r.op != "EyeLike")
	}
	(&node{op: "OneHot", in: []*tensor.Tensor{ints64(1, -1, 7, 0), tensor.ScalarInt(4), tensor.FromFloats(tensor.Float32, []int64{2}, []float64{-1, 2})}, consts: []bool{false, true, true}}).check(t)
	(&node{op: "Range", in: []*tensor.Tensor{tensor.ScalarInt(7), tensor.ScalarInt(-5), tensor.ScalarInt(-3)}, consts: []bool{true, true, true}}).check(t)
	(&node{op: "Where", in: []*tensor.Tensor{fill(tensor.Bool, []int64{3, 1}, 1, false), fill(tensor.Float32, []int64{4}, 2, true), fill(tensor.Float32, []int64{3, 4}, 3, true)}}).check(t)
	one := func(v float64) *tensor.Tensor { return tensor.FromFloats(tensor.Float32, []int64{}, []float64{v}) }
	for _, in := range [][]*tensor.Tensor{{one(-1), one(2)}, {nil, one(2)}, {one(0), nil}, {one(3), one(1)}} {
		(&node{op: "Clip", in: append([]*tensor.Tensor{fill(tensor.Float32, []int64{65}, 2, true)}, in...), consts: []bool{false, true, true}}).check(t)
	}
}

func TestScatter(t *testing.T) {
	index := func(shape []int64, v ...int64) *tensor.Tensor { return tensor.FromInts(tensor.Int64, shape, v) }
	for _, reduction := range []string{"none", "add", "mul", "max", "min"} {
		for _, d := range anyTypes {
			if d == tensor.Bool && (reduction == "max" || reduction == "min") {
				continue
			}
			attrs := []ssa.Attr{text("reduction", reduction)}
			for _, n := range []node{
				{op: "ScatterElements", in: []*tensor.Tensor{fill(d, []int64{5, 3}, 1, false), index([]int64{4, 3}, 0, 1, 2, -1, 1, 4, 0, 1, -5, 3, 3, 3), fill(d, []int64{4, 3}, 2, false)}},
				{op: "ScatterElements", in: []*tensor.Tensor{fill(d, []int64{5, 70}, 1, false), index([]int64{2, 3}, 69, 1, 1, -1, 68, -1), fill(d, []int64{2, 3}, 2, false)}, attrs: []ssa.Attr{number("axis", 1)}},
				{op: "ScatterND", in: []*tensor.Tensor{fill(d, []int64{5, 3, 2}, 1, false), index([]int64{2, 2, 1}, 4, 0, -2, 4), fill(d, []int64{2, 2, 3, 2}, 2, false)}},
				{op: "ScatterND", in: []*tensor.Tensor{fill(d, []int64{5, 3}, 1, false), index([]int64{3, 2}, 4, 0, -5, -1, 4, 0), fill(d, []int64{3}, 2, false)}},
			} {
				n.attrs = append(n.attrs, attrs...)
				n.check(t)
				if n.dynamic = n.op == "ScatterElements"; n.dynamic {
					n.check(t)
				}
			}
		}
	}
}

func TestResize(t *testing.T) {
	scales := func(v ...float64) *tensor.Tensor { return tensor.FromFloats(tensor.Float32, []int64{int64(len(v))}, v) }
	for _, mode := range []string{"nearest", "linear", "cubic"} {
		for _, coords := range []string{"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"} {
			for _, near := range []string{"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"} {
				if mode != "nearest" && near != "floor" {
					continue
				}
				attrs := []ssa.Attr{text("mode", mode), text("coordinate_transformation_mode", coords), text("nearest_mode", near)}
				types := floatTypes
				if mode == "nearest" {
					types = anyTypes
				}
				row{op: "Resize", dtypes: types, shapes: shapes([]int64{1, 2, 5, 7}), extra: []*tensor.Tensor{nil, nil, tensor.Ints(1, 2, 10, 3)}, attrs: attrs}.run(t, false)
				row{op: "Resize", dtypes: single, shapes: shapes([]int64{1, 2, 5, 7}), extra: []*tensor.Tensor{nil, scales(1, 1, 2.3, 0.6)}, attrs: attrs}.run(t, false)
				row{op: "Resize", dtypes: single, shapes: shapes([]int64{2, 1, 3}), extra: []*tensor.Tensor{nil, nil, tensor.Ints(6)}, attrs: append(attrs, ints("axes", 2))}.run(t, false)
			}
		}
	}
}

func TestCast(t *testing.T) {
	types := []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Bool}
	for _, from := range types {
		for _, to := range types {
			n := &node{op: "Cast", attrs: []ssa.Attr{number("to", int64(to.ONNX()))}, in: []*tensor.Tensor{fill(from, []int64{301}, 5, true)}}
			t.Run(from.Spec()+"/"+to.Spec(), n.check)
		}
	}
	// nearly between two numbers of half precision: rounding twice would go the other way
	var ints []int64
	var floats []float64
	for e := 12; e < 62; e++ {
		for _, m := range []int64{1<<11 + 1, 1<<11 + 3, 1<<8 + 1, 1<<8 + 3} {
			for _, d := range []int64{-1, 0, 1} {
				n := m<<(e-11) + d
				ints = append(ints, n, -n)
				floats = append(floats, math.Ldexp(float64(m), e-30)*(1+float64(d)*0x1p-40), -math.Ldexp(float64(m), -e)*(1+float64(d)*0x1p-40))
			}
		}
	}
	for _, to := range []tensor.DType{tensor.Float16, tensor.BFloat16} {
		attrs := []ssa.Attr{number("to", int64(to.ONNX()))}
		count := []int64{int64(len(ints))}
		for _, x := range []*tensor.Tensor{tensor.FromInts(tensor.Int64, count, ints), tensor.FromInts(tensor.Uint64, count, ints), tensor.FromInts(tensor.Int32, count, ints), tensor.FromFloats(tensor.Float64, count, floats)} {
			(&node{op: "Cast", attrs: attrs, in: []*tensor.Tensor{x}}).check(t)
		}
	}
}

func TestReduce(t *testing.T) {
	axes := func(v ...int64) []*tensor.Tensor { return []*tensor.Tensor{tensor.Ints(v...)} }
	for _, op := range []string{"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceSumSquare", "ReduceL2", "ReduceLogSumExp"} {
		types := each(floatTypes, intTypes)
		if op == "ReduceL2" || op == "ReduceLogSumExp" {
			types = floatTypes
		}
		for _, r := range []row{
			{shapes: shapes([]int64{5, 7}), extra: axes(1)},
			{shapes: shapes([]int64{5, 7}), extra: axes(0), attrs: []ssa.Attr{number("keepdims", 0)}},
			{shapes: shapes([]int64{3, 33}), extra: axes(-1)},
			{shapes: shapes([]int64{2, 1500}), extra: axes(1)},
			{shapes: shapes([]int64{70, 3}), extra: axes(0)},
			{shapes: shapes([]int64{70, 544}), extra: axes(0)}, // teams across warps
			{shapes: shapes([]int64{2, 130, 301}), extra: axes(1)},
			{shapes: shapes([]int64{4, 3, 5}), extra: axes(0, 2)},
			{shapes: shapes([]int64{2, 3})},
			{shapes: shapes([]int64{1})},
		} {
			if r.op, r.dtypes = op, types; op == "ReduceProd" && r.shapes[0][len(r.shapes[0])-1] > 40 {
				continue // overflows
			}
			r.run(t, true)
		}
	}
	row{op: "ReduceSum", dtypes: single, shapes: shapes([]int64{3, 0}), extra: axes(1)}.run(t, false)
	row{op: "ReduceSum", dtypes: single, shapes: shapes([]int64{0, 3}), extra: axes(1)}.run(t, false)
	row{op: "ReduceMax", dtypes: []tensor.DType{tensor.Bool}, shapes: shapes([]int64{3, 9}), extra: axes(1)}.run(t, false)
	(&node{op: "ReduceMax", in: []*tensor.Tensor{fill(tensor.Float32, []int64{16, 40}, 2, true), tensor.Ints(1)}, consts: []bool{false, true}}).check(t)
	for _, op := range []string{"ArgMax", "ArgMin"} {
		for _, last := range []int64{0, 1} {
			for _, s := range [][]int64{{5, 7}, {3, 33}, {2, 1500}, {70, 3}, {1}} {
				row{op: op, dtypes: each(floatTypes, intTypes), shapes: shapes(s), attrs: []ssa.Attr{number("axis", -1), number("select_last_index", last)}}.run(t, true)
			}
			row{op: op, dtypes: single, shapes: shapes([]int64{40, 3}), attrs: []ssa.Attr{number("axis", 0), number("keepdims", 0), number("select_last_index", last)}}.run(t, false)
			row{op: op, dtypes: floatTypes, shapes: shapes([]int64{130, 515}), attrs: []ssa.Attr{number("axis", 0), number("select_last_index", last)}}.run(t, false)
			(&node{op: op, attrs: []ssa.Attr{number("axis", 1), number("select_last_index", last)}, in: []*tensor.Tensor{fill(tensor.Float32, []int64{16, 40}, 2, true)}}).check(t)
		}
	}
	for _, s := range [][]int64{{2, 3, 4, 5}, {1, 2, 9, 8}, {2, 3, 40}} {
		row{op: "GlobalAveragePool", dtypes: floatTypes, shapes: shapes(s)}.run(t, true)
		row{op: "GlobalMaxPool", dtypes: floatTypes, shapes: shapes(s)}.run(t, true)
	}
}

func TestRows(t *testing.T) {
	for _, s := range [][]int64{{3, 7}, {5, 33}, {2, 1030}, {4, 1}, {2, 3, 8}, {0, 4}} {
		for _, op := range []string{"Softmax", "LogSoftmax", "LpNormalization"} {
			row{op: op, dtypes: floatTypes, shapes: shapes(s)}.run(t, true)
			row{op: op, dtypes: single, shapes: shapes(s), attrs: []ssa.Attr{number("axis", 0)}}.run(t, true)
		}
		row{op: "LayerNormalization", dtypes: floatTypes, shapes: shapes(s, s[len(s)-1:], s[len(s)-1:])}.run(t, true)
		row{op: "RMSNormalization", dtypes: floatTypes, shapes: shapes(s, s[len(s)-1:])}.run(t, true)
	}
	row{op: "LayerNormalization", dtypes: single, shapes: shapes([]int64{3, 4, 5}, []int64{4, 5}), attrs: []ssa.Attr{number("axis", 1)}}.run(t, true)
	row{op: "InstanceNormalization", dtypes: floatTypes, shapes: shapes([]int64{2, 3, 5, 7}, []int64{3}, []int64{3})}.run(t, true)
	row{op: "GroupNormalization", dtypes: floatTypes, shapes: shapes([]int64{2, 6, 5, 7}, []int64{6}, []int64{6}), attrs: []ssa.Attr{number("num_groups", 3)}}.run(t, false)
	// groups that many threads hold together
	row{op: "GroupNormalization", dtypes: floatTypes, shapes: shapes([]int64{2, 6, 40, 70}, []int64{6}, []int64{6}), attrs: []ssa.Attr{number("num_groups", 2)}}.run(t, false)
	row{op: "GroupNormalization", dtypes: floatTypes, shapes: shapes([]int64{2, 4, 99, 90}, []int64{4}, []int64{4}), attrs: []ssa.Attr{number("num_groups", 2)}}.run(t, false)
	row{op: "MeanVarianceNormalization", dtypes: single, shapes: shapes([]int64{2, 3, 5, 7})}.run(t, true)
	row{op: "CumSum", dtypes: each(floatTypes, intTypes), shapes: shapes([]int64{5, 37}), extra: []*tensor.Tensor{tensor.ScalarInt(1)}}.run(t, true)
	row{op: "CumSum", dtypes: single, shapes: shapes([]int64{37, 5}), extra: []*tensor.Tensor{tensor.ScalarInt(0)}, attrs: []ssa.Attr{number("exclusive", 1), number("reverse", 1)}}.run(t, true)
	bn := node{op: "BatchNormalization", in: []*tensor.Tensor{fill(tensor.Float32, []int64{2, 3, 5}, 1, false), fill(tensor.Float32, []int64{3}, 2, false),
		fill(tensor.Float32, []int64{3}, 3, false), fill(tensor.Float32, []int64{3}, 4, false), tensor.FromFloats(tensor.Float32, []int64{3}, []float64{0.5, 2, 0.01})}}
	bn.check(t)
}

func TestProducts(t *testing.T) {
	types := each(floatTypes, intTypes)
	for _, s := range [][2][]int64{
		{{3, 5}, {5, 7}}, {{1, 70}, {70, 9}}, {{64, 16}, {16, 64}}, {{65, 17}, {17, 63}}, {{128, 40}, {40, 70}}, {{9, 0}, {0, 9}}, {{0, 4}, {4, 9}},
		{{2, 9, 5}, {5, 11}}, {{2, 1, 9, 5}, {3, 5, 11}}, {{2, 3, 9, 40}, {2, 3, 40, 11}}, {{5}, {5, 20}}, {{20, 5}, {5}}, {{5}, {5}}, {{2, 10, 5}, {5}}, {{5}, {3, 5, 9}},
		{{1, 70}, {70, 544}}, {{2, 3, 130}, {130, 301}},
	} {
		row{op: "MatMul", dtypes: types, shapes: shapes(s[0], s[1])}.run(t, s[0][0] != 0)
	}
	for _, s := range [][3][]int64{{{9, 10}, {10, 11}, {11}}, {{1, 300}, {300, 20}, {}}, {{66, 20}, {20, 67}, {66, 1}}, {{3, 4}, {4, 5}, {3, 5}}} {
		for flags := range int64(4) {
			a, b := s[0], s[1]
			if flags&1 != 0 {
				a = []int64{a[1], a[0]}
			}
			if flags&2 != 0 {
				b = []int64{b[1], b[0]}
			}
			attrs := []ssa.Attr{number("transA", flags&1), number("transB", flags>>1)}
			row{op: "Gemm", dtypes: types, shapes: shapes(a, b, s[2]), attrs: attrs}.run(t, true)
			row{op: "Gemm", dtypes: floatTypes, shapes: shapes(a, b), attrs: append(attrs, attr("alpha", ssa.Float(0.5)))}.run(t, false)
			row{op: "Gemm", dtypes: single, shapes: shapes(a, b, s[2]), attrs: append(attrs, attr("alpha", ssa.Float(1.5)), attr("beta", ssa.Float(-2)))}.run(t, false)
		}
	}
}

func TestConv(t *testing.T) {
	for _, r := range []row{
		{shapes: shapes([]int64{1, 3, 7}, []int64{9, 3, 3})},
		{shapes: shapes([]int64{2, 3, 9, 8}, []int64{9, 3, 3, 3}, []int64{9}), attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{shapes: shapes([]int64{2, 3, 9, 8}, []int64{4, 3, 3, 3}, []int64{4}), attrs: []ssa.Attr{ints("pads", 1, 0, 2, 1), ints("strides", 2, 3)}},
		{shapes: shapes([]int64{1, 4, 12, 11}, []int64{70, 4, 3, 2}), attrs: []ssa.Attr{ints("dilations", 2, 3)}},
		{shapes: shapes([]int64{1, 6, 10, 10}, []int64{6, 1, 3, 3}, []int64{6}), attrs: []ssa.Attr{number("group", 6), ints("pads", 1, 1, 1, 1)}},
		{shapes: shapes([]int64{1, 6, 10, 10}, []int64{20, 3, 3, 3}), attrs: []ssa.Attr{number("group", 2), ints("pads", 1, 1, 1, 1)}},
		{shapes: shapes([]int64{2, 64, 8, 8}, []int64{64, 64, 1, 1})},
		{shapes: shapes([]int64{1, 40, 2, 2}, []int64{65, 40, 3, 3}), attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1)}},
		{shapes: shapes([]int64{1, 2, 4, 5, 6}, []int64{9, 2, 2, 3, 2}, []int64{9}), attrs: []ssa.Attr{ints("pads", 0, 1, 1, 1, 0, 0)}},
		{shapes: shapes([]int64{2, 3, 9, 8}, []int64{9, 3, 3, 3}), attrs: []ssa.Attr{text("auto_pad", "SAME_UPPER"), ints("strides", 2, 2)}},
		{shapes: shapes([]int64{2, 3, 9, 8}, []int64{9, 3, 4, 4}), attrs: []ssa.Attr{text("auto_pad", "SAME_LOWER")}},
		{shapes: shapes([]int64{0, 3, 9, 8}, []int64{9, 3, 4, 4})},
	} {
		r.op, r.dtypes = "Conv", floatTypes
		r.run(t, false)
	}
	for _, r := range []row{
		{shapes: shapes([]int64{1, 3, 7}, []int64{3, 9, 3}, []int64{9})},
		{shapes: shapes([]int64{2, 3, 5, 6}, []int64{3, 9, 3, 3}), attrs: []ssa.Attr{ints("strides", 2, 3), ints("pads", 1, 0, 1, 1), ints("output_padding", 1, 0)}},
		{shapes: shapes([]int64{1, 4, 5, 6}, []int64{4, 5, 3, 2}), attrs: []ssa.Attr{number("group", 2), ints("dilations", 2, 1)}},
		{shapes: shapes([]int64{1, 16, 8, 8}, []int64{16, 12, 2, 2}, []int64{12}), attrs: []ssa.Attr{ints("strides", 2, 2)}},
	} {
		r.op, r.dtypes = "ConvTranspose", floatTypes
		r.run(t, false)
	}
}

// Sizes that are symbols: the batch and the image.
func TestConvSymbolic(t *testing.T) {
	n := node{op: "Conv", attrs: []ssa.Attr{ints("pads", 1, 1, 1, 1), ints("kernel_shape", 3, 3)}, dynamic: true,
		in: []*tensor.Tensor{fill(tensor.Float32, []int64{2, 3, 9, 11}, 1, false), fill(tensor.Float32, []int64{10, 3, 3, 3}, 2, false)}, consts: []bool{false, true}}
	n.check(t)
}

func TestPools(t *testing.T) {
	for _, r := range []row{
		{shapes: shapes([]int64{2, 3, 9}), attrs: []ssa.Attr{ints("kernel_shape", 3)}},
		{shapes: shapes([]int64{1, 2, 9, 8}), attrs: []ssa.Attr{ints("kernel_shape", 3, 2), ints("strides", 2, 2), ints("pads", 1, 0, 1, 1)}},
		{shapes: shapes([]int64{1, 2, 9, 8}), attrs: []ssa.Attr{ints("kernel_shape", 3, 3), ints("strides", 2, 2), ints("pads", 1, 1, 1, 1), number("ceil_mode", 1)}},
		{shapes: shapes([]int64{1, 2, 9, 8}), attrs: []ssa.Attr{ints("kernel_shape", 2, 2), ints("dilations", 2, 3)}},
		{shapes: shapes([]int64{1, 2, 4, 5, 6}), attrs: []ssa.Attr{ints("kernel_shape", 2, 3, 1)}},
	} {
		for _, op := range []string{"MaxPool", "AveragePool", "LpPool"} {
			r.op, r.dtypes, r.results = op, floatTypes, 1
			r.run(t, true)
		}
		r.op, r.results = "MaxPool", 2
		r.run(t, true)
		r.op, r.results, r.attrs = "AveragePool", 1, append(r.attrs[:len(r.attrs):len(r.attrs)], number("count_include_pad", 1))
		r.run(t, true)
	}
	(&node{op: "MaxPool", attrs: []ssa.Attr{ints("kernel_shape", 3, 3)}, results: 2, in: []*tensor.Tensor{fill(tensor.Float32, []int64{1, 2, 9, 9}, 3, true)}}).check(t)
}
