package exec_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// few are elements of which many are equal, with NaN and zeros of both signs among floats: an order that is not stable shows.
func few(d tensor.DType, shape ...int64) *tensor.Tensor {
	n := int64(1)
	for _, s := range shape {
		n *= s
	}
	v := make([]float64, n)
	for i := range v {
		v[i] = float64((i*7+i/3*5)%9) - 4
		if d == tensor.Bool || d.IsUnsigned() {
			v[i] = math.Abs(v[i])
		}
		if d.IsFloat() && i%11 == 5 {
			v[i] = math.NaN()
		}
		if d.IsFloat() && i%5 == 2 {
			v[i] = math.Copysign(0, -1)
		}
		if d == tensor.Bool {
			v[i] = float64(i % 3 % 2)
		}
	}
	return tensor.FromFloats(d, shape, v)
}

// orderedTypes are those that are compared in another way each.
var orderedTypes = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.Int64, tensor.Int32, tensor.Uint8, tensor.Uint64}

func TestTopK(t *testing.T) {
	for _, c := range []struct {
		shape []int64
		axis  int64
		k     int64
	}{
		{[]int64{7}, 0, 3}, {[]int64{7}, 0, 7}, {[]int64{1}, 0, 1}, {[]int64{5}, 0, 0}, {[]int64{3, 64}, 1, 10}, {[]int64{2, 130, 3}, 1, 129},
		{[]int64{2, 33}, -1, 33}, {[]int64{0, 4}, 1, 2}, {[]int64{3000}, 0, 40},
	} {
		for _, d := range orderedTypes {
			if c.shape[0] == 3000 && d != tensor.Float32 {
				continue
			}
			for largest := range int64(2) {
				t.Run(fmt.Sprintf("%s/%s/%d", d.Spec(), shapeName(c.shape), largest), func(t *testing.T) {
					n := node{op: "TopK", in: []*tensor.Tensor{few(d, c.shape...), tensor.Ints(c.k)}, consts: []bool{false, true}, results: 2,
						attrs: []ssa.Attr{number("axis", c.axis), number("largest", largest)}}
					n.check(t)
					if c.k < 9 || c.shape[0] == 3000 { // else k may be more than the axis has
						n.dynamic = true
						n.check(t)
					}
				})
			}
		}
	}
}

func TestNonMaxSuppression(t *testing.T) {
	const batches, classes = 2, 3
	for _, n := range []int64{0, 1, 9, 150} {
		v := make([]float64, 0, batches*n*4)
		for i := range batches * n { // many overlap, with corners in any order
			y, x := float64(i*37%50), float64(i*53%40)
			box := []float64{y, x, y + 4 + float64(i%7), x + 6 + float64(i%5)}
			if i%3 == 1 {
				box[0], box[2] = box[2], box[0]
			}
			v = append(v, box...)
		}
		boxes, scores := tensor.FromFloats(tensor.Float32, []int64{batches, n, 4}, v), few(tensor.Float32, batches, classes, n)
		f := func(v float64) *tensor.Tensor { return tensor.FromFloats(tensor.Float32, []int64{1}, []float64{v}) }
		for _, extra := range [][]*tensor.Tensor{
			{tensor.Ints(100), f(0.3), f(-2)}, {tensor.Ints(5), f(0.1)}, {tensor.Ints(math.MaxInt64), f(0.6), f(1)}, {tensor.Ints(1)}, {},
		} {
			if n > 100 && len(extra) < 3 { // many boxes take long
				continue
			}
			for center := range int64(2) {
				node := node{op: "NonMaxSuppression", in: append([]*tensor.Tensor{boxes, scores}, extra...), attrs: []ssa.Attr{number("center_point_box", center)}}
				node.check(t)
				node.dynamic = n != classes
				node.check(t)
			}
		}
	}
}

// What picks elements brings the number of them with it.
func TestSelect(t *testing.T) {
	for _, d := range each(orderedTypes, boolType) {
		t.Run(d.Spec(), func(t *testing.T) {
			for _, shape := range [][]int64{{}, {0}, {1}, {7}, {3, 5}, {2, 0, 3}, {2, 3, 4}, {255}, {256}, {257}, {40, 30}} {
				x := few(d, shape...)
				(&node{op: "NonZero", in: []*tensor.Tensor{x}}).check(t)
				(&node{op: "NonZero", in: []*tensor.Tensor{x}, dynamic: true}).check(t)
				if len(shape) == 0 {
					continue
				}
				n := int64(1)
				for _, s := range shape {
					n *= s
				}
				(&node{op: "Compress", in: []*tensor.Tensor{x, few(tensor.Bool, n)}}).check(t)
				(&node{op: "Compress", in: []*tensor.Tensor{x, few(tensor.Bool, n/2+1)}, dynamic: true}).check(t)
				last := shape[len(shape)-1]
				(&node{op: "Compress", in: []*tensor.Tensor{x, few(tensor.Bool, last)}, attrs: []ssa.Attr{number("axis", -1)}}).check(t)
				(&node{op: "Compress", in: []*tensor.Tensor{x, few(tensor.Bool, shape[0])}, attrs: []ssa.Attr{number("axis", 0)}, dynamic: true}).check(t)
				for sorted := range int64(2) {
					(&node{op: "Unique", in: []*tensor.Tensor{x}, results: 4, attrs: []ssa.Attr{number("sorted", sorted)}}).check(t)
					if n < 300 {
						(&node{op: "Unique", in: []*tensor.Tensor{x}, results: 4, attrs: []ssa.Attr{number("sorted", sorted), number("axis", 0)}}).check(t)
						(&node{op: "Unique", in: []*tensor.Tensor{x}, results: 4, attrs: []ssa.Attr{number("sorted", sorted), number("axis", -1)}, dynamic: true}).check(t)
					}
				}
			}
		})
	}
}
