package kernel

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// reduction finds kernels that fold axes.
func reduction(name string) kernel {
	switch name {
	case "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare":
		return evalReduce
	case "CumSum", "CumProd":
		return evalCumulative
	}
	return nil
}

// folded brings the reduced axes of t to the end: rows of n elements each.
func folded(t *tensor.Tensor, drop []bool) (view *tensor.Tensor, rows, n int64) {
	perm := []int{}
	rows, n = 1, 1
	for i, d := range drop {
		if !d {
			perm = append(perm, i)
			rows *= t.Shape[i]
		}
	}
	for i, d := range drop {
		if d {
			perm = append(perm, i)
			n *= t.Shape[i]
		}
	}
	return transpose(t, perm), rows, n
}

func evalReduce(c *call) []*tensor.Tensor {
	x := c.t(0)
	drop := make([]bool, len(x.Shape))
	none := c.t(1) == nil || c.t(1).NumElements() == 0
	if none && c.flag("noop_with_empty_axes") {
		for i := range drop {
			drop[i] = false
		}
		// No axis is reduced, but the function still applies to each element.
		return one(c.reduce(x, drop))
	}
	if none {
		for i := range drop {
			drop[i] = true
		}
	} else {
		for _, a := range c.t(1).Int64s() {
			drop[c.axis(a, len(drop))] = true
		}
	}
	return one(c.reduce(x, drop))
}

func (c *call) reduce(x *tensor.Tensor, drop []bool) *tensor.Tensor {
	view, rows, n := folded(x, drop)
	shape := []int64{}
	keep := c.flag("keepdims")
	for i, d := range drop {
		if !d {
			shape = append(shape, x.Shape[i])
		} else if keep {
			shape = append(shape, 1)
		}
	}
	switch d := x.DType; {
	case d == tensor.Uint64:
		return tensor.Of(d, shape, reduceRows(tensor.Data[uint64](view), rows, n, intReduction[uint64](c, 0, math.MaxUint64)))
	case d.IsInt() || d == tensor.Bool:
		lo, hi := limits(d)
		return tensor.FromInts(d, shape, reduceRows(view.Int64s(), rows, n, intReduction[int64](c, lo, hi)))
	case d.IsFloat():
		return tensor.FromFloats(d, shape, reduceRows(view.Float64s(), rows, n, floatReduction(c)))
	}
	c.fail("element type %v", x.DType)
	return nil
}

// limits is the range of a signed or narrow unsigned type.
func limits(d tensor.DType) (lo, hi int64) {
	switch d {
	case tensor.Bool:
		return 0, 1
	case tensor.Uint8:
		return 0, math.MaxUint8
	case tensor.Uint16:
		return 0, math.MaxUint16
	case tensor.Uint32:
		return 0, math.MaxUint32
	case tensor.Int8:
		return math.MinInt8, math.MaxInt8
	case tensor.Int16:
		return math.MinInt16, math.MaxInt16
	case tensor.Int32:
		return math.MinInt32, math.MaxInt32
	case tensor.Int4, tensor.Int2:
		return -1 << (d.Bits() - 1), 1<<(d.Bits()-1) - 1
	case tensor.Uint4, tensor.Uint2:
		return 0, 1<<d.Bits() - 1
	}
	return math.MinInt64, math.MaxInt64
}

func reduceRows[T any](v []T, rows, n int64, f func([]T) T) []T {
	out := make([]T, rows)
	parallel(int(rows), len(v), func(from, to int) {
		for i := from; i < to; i++ {
			out[i] = f(v[int64(i)*n : int64(i+1)*n])
		}
	})
	return out
}

func intReduction[T int64 | uint64](c *call, lo, hi T) func([]T) T {
	fold := func(start T, f func(a, x T) T) func([]T) T {
		return func(row []T) T {
			acc := start
			for _, x := range row {
				acc = f(acc, x)
			}
			return acc
		}
	}
	abs := func(x T) T {
		if x < 0 {
			return -x
		}
		return x
	}
	sum := fold(0, func(a, x T) T { return a + x })
	squares := fold(0, func(a, x T) T { return a + x*x })
	viaFloat := func(f func(float64) float64, inner func([]T) T) func([]T) T {
		return func(row []T) T { return T(truncate(f(float64(inner(row))), tensor.Int64)) }
	}
	switch c.kind.Name() {
	case "ReduceSum":
		return sum
	case "ReduceProd":
		return fold(1, func(a, x T) T { return a * x })
	case "ReduceMax":
		return fold(lo, func(a, x T) T { return max(a, x) })
	case "ReduceMin":
		return fold(hi, func(a, x T) T { return min(a, x) })
	case "ReduceL1":
		return fold(0, func(a, x T) T { return a + abs(x) })
	case "ReduceSumSquare":
		return squares
	case "ReduceL2":
		return viaFloat(math.Sqrt, squares)
	case "ReduceLogSum":
		return viaFloat(math.Log, sum)
	case "ReduceLogSumExp":
		return func(row []T) T {
			s := 0.0
			for _, x := range row {
				s += math.Exp(float64(x))
			}
			return T(truncate(math.Log(s), tensor.Int64))
		}
	}
	return func(row []T) T { // ReduceMean
		if len(row) == 0 {
			return 0
		}
		return sum(row) / T(len(row))
	}
}

func floatReduction(c *call) func([]float64) float64 {
	fold := func(start float64, f func(a, x float64) float64) func([]float64) float64 {
		return func(row []float64) float64 {
			acc := start
			for _, x := range row {
				acc = f(acc, x)
			}
			return acc
		}
	}
	sum := fold(0, func(a, x float64) float64 { return a + x })
	squares := fold(0, func(a, x float64) float64 { return a + x*x })
	switch c.kind.Name() {
	case "ReduceSum":
		return sum
	case "ReduceProd":
		return fold(1, func(a, x float64) float64 { return a * x })
	case "ReduceMax":
		return fold(math.Inf(-1), func(a, x float64) float64 { return max(a, x) })
	case "ReduceMin":
		return fold(math.Inf(1), func(a, x float64) float64 { return min(a, x) })
	case "ReduceL1":
		return fold(0, func(a, x float64) float64 { return a + math.Abs(x) })
	case "ReduceL2":
		return func(row []float64) float64 { return math.Sqrt(squares(row)) }
	case "ReduceSumSquare":
		return squares
	case "ReduceLogSum":
		return func(row []float64) float64 { return math.Log(sum(row)) }
	case "ReduceLogSumExp":
		return logSumExp
	}
	return func(row []float64) float64 { return sum(row) / float64(len(row)) }
}

func logSumExp(row []float64) float64 {
	top := math.Inf(-1)
	for _, x := range row {
		top = max(top, x)
	}
	if math.IsInf(top, 0) || top != top {
		return top
	}
	s := 0.0
	for _, x := range row {
		s += math.Exp(x - top)
	}
	return top + math.Log(s)
}

func evalCumulative(c *call) []*tensor.Tensor {
	x := c.t(0)
	k := c.axis(c.scalar(1, 0), len(x.Shape))
	mul := c.kind == "onnx::CumProd"
	if x.DType.IsFloat() {
		v := x.Float64s()
		cumulate(c, v, x.Shape, k, mul)
		return one(tensor.FromFloats(x.DType, x.Shape, v))
	}
	v := slices.Clone(x.Int64s())
	cumulate(c, v, x.Shape, k, mul)
	return one(tensor.FromInts(x.DType, x.Shape, v))
}

func cumulate[T int64 | float64](c *call, v []T, shape []int64, k int, mul bool) {
	n, inner := shape[k], prod(shape[k+1:])
	exclusive, reverse := c.flag("exclusive"), c.flag("reverse")
	for o := range prod(shape[:k]) {
		for i := range inner {
			acc := T(0)
			if mul {
				acc = 1
			}
			for s := range n {
				if reverse {
					s = n - 1 - s
				}
				p := (o*n+s)*inner + i
				x, next := v[p], acc
				if mul {
					next *= x
				} else {
					next += x
				}
				if v[p] = next; exclusive {
					v[p] = acc
				}
				acc = next
			}
		}
	}
}
