package kernel

import (
	"math"
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

func evalCompress(c *call) []*tensor.Tensor {
	x, cond := c.t(0), c.t(1).Int64s()
	k := 0
	if c.has("axis") {
		k = c.axis(c.int("axis"), len(x.Shape))
	} else {
		x = reshape(x, []int64{x.NumElements()})
	}
	var picked []int64
	for i, b := range cond {
		if b != 0 && int64(i) < x.Shape[k] {
			picked = append(picked, int64(i))
		}
	}
	return one(gatherAxis(x, k, picked, []int64{int64(len(picked))}))
}

// truth tells for each element whether it is not zero.
func truth(t *tensor.Tensor) []bool {
	out := make([]bool, 0, t.NumElements())
	if t.DType == tensor.String {
		for _, s := range t.StringData() {
			out = append(out, s != "")
		}
	} else if t.DType.IsFloat() {
		for _, f := range cast(t, tensor.Float64).Float64s() {
			out = append(out, f != 0)
		}
	} else {
		for _, n := range t.Int64s() {
			out = append(out, n != 0)
		}
	}
	return out
}

func evalNonZero(c *call) []*tensor.Tensor {
	x := c.t(0)
	m := truth(x)
	shape := x.Shape
	if len(shape) == 0 {
		shape = []int64{1}
	}
	var found [][]int64
	positions(shape, func(i int, idx []int64) {
		if m[i] {
			found = append(found, slices.Clone(idx))
		}
	})
	rows := len(x.Shape)
	out := make([]int64, 0, rows*len(found))
	for k := range rows {
		for _, idx := range found {
			out = append(out, idx[k])
		}
	}
	return one(tensor.Of(tensor.Int64, []int64{int64(rows), int64(len(found))}, out))
}

func evalReverseSequence(c *call) []*tensor.Tensor {
	x, lens := c.t(0), c.t(1).Int64s()
	r := len(x.Shape)
	b, t := c.axis(c.int("batch_axis"), r), c.axis(c.int("time_axis"), r)
	at := make([]int64, x.NumElements())
	src := make([]int64, r)
	positions(x.Shape, func(i int, idx []int64) {
		copy(src, idx)
		if n := lens[idx[b]]; idx[t] < n {
			src[t] = n - 1 - idx[t]
		}
		at[i] = flat(x.Shape, src)
	})
	return one(take(x, x.Shape, at))
}

func evalTrilu(c *call) []*tensor.Tensor {
	x, k, upper := c.t(0), c.scalar(1, 0), c.flag("upper")
	r := len(x.Shape)
	if r < 2 {
		c.fail("rank %d", r)
	}
	at := make([]int64, x.NumElements())
	positions(x.Shape, func(i int, idx []int64) {
		d := idx[r-1] - idx[r-2]
		if at[i] = int64(i); upper && d < k || !upper && d > k {
			at[i] = -1
		}
	})
	return one(take(x, x.Shape, at))
}

func evalOneHot(c *call) []*tensor.Tensor {
	ix, values := c.t(0), c.t(2)
	depth := cast(c.t(1), tensor.Int64).Int64s()
	if len(depth) != 1 || depth[0] < 0 || values.NumElements() != 2 {
		c.fail("depth %v, %d values", depth, values.NumElements())
	}
	k := c.axis(c.int("axis"), len(ix.Shape)+1)
	shape := slices.Insert(slices.Clone(ix.Shape), k, depth[0])
	c.count(shape)
	v := cast(ix, tensor.Int64).Int64s()
	at := make([]int64, prod(shape))
	positions(shape, func(i int, idx []int64) {
		rest := slices.Delete(slices.Clone(idx), k, k+1)
		p := v[flat(ix.Shape, rest)]
		if p < 0 {
			p += depth[0]
		}
		if p == idx[k] {
			at[i] = 1
		}
	})
	return one(take(values, shape, at))
}

func evalEyeLike(c *call) []*tensor.Tensor {
	x, k := c.t(0), c.int("k")
	if len(x.Shape) != 2 {
		c.fail("rank %d", len(x.Shape))
	}
	out := make([]int64, x.NumElements())
	for i := range x.Shape[0] {
		if j := i + k; j >= 0 && j < x.Shape[1] {
			out[i*x.Shape[1]+j] = 1
		}
	}
	return one(tensor.FromInts(c.dtype("dtype", x.DType), x.Shape, out))
}

func evalRange(c *call) []*tensor.Tensor {
	d := c.t(0).DType
	if d.IsInt() {
		start, limit, delta := c.scalar(0, 0), c.scalar(1, 0), c.scalar(2, 1)
		if delta == 0 {
			c.fail("step 0")
		}
		n := int64(0)
		if delta > 0 && limit > start {
			n = int64((uint64(limit-start) + uint64(delta) - 1) / uint64(delta))
		} else if delta < 0 && limit < start {
			n = int64((uint64(start-limit) + uint64(-delta) - 1) / uint64(-delta))
		}
		c.count([]int64{n})
		out := make([]int64, n)
		for i := range out {
			out[i] = start + int64(i)*delta
		}
		return one(tensor.FromInts(d, []int64{n}, out))
	}
	start, limit, delta := c.fscalar(0, 0), c.fscalar(1, 0), c.fscalar(2, 1)
	n := math.Ceil((limit - start) / delta)
	if delta == 0 || n > maxElements {
		c.fail("from %g to %g by %g", start, limit, delta)
	}
	if !(n > 0) {
		n = 0
	}
	out := make([]float64, int64(n))
	for i := range out {
		out[i] = start + float64(i)*delta
	}
	return one(tensor.FromFloats(d, []int64{int64(n)}, out))
}
