package kernel

import (
	"cmp"
	"slices"
	"sort"

	"github.com/aton-project/aton/ssa/tensor"
)

// sorting finds kernels that order elements.
func sorting(name string) kernel {
	switch name {
	case "ArgMax", "ArgMin":
		return evalArg
	case "TopK":
		return evalTopK
	case "Unique":
		return evalUnique
	}
	return nil
}

// ranks gives a function that compares elements i and j of a tensor: NaN is the greatest.
func (c *call) ranks(t *tensor.Tensor) func(i, j int64) int {
	switch {
	case t.DType == tensor.String:
		v := t.StringData()
		return func(i, j int64) int { return cmp.Compare(v[i], v[j]) }
	case t.DType == tensor.Uint64:
		v := tensor.Data[uint64](t)
		return func(i, j int64) int { return cmp.Compare(v[i], v[j]) }
	case t.DType.IsFloat():
		v := t.Float64s()
		return func(i, j int64) int {
			a, b := v[i], v[j]
			switch {
			case a < b:
				return -1
			case a > b:
				return 1
			case a == b || a != a && b != b:
				return 0
			case a != a:
				return 1
			}
			return -1
		}
	}
	v := t.Int64s()
	return func(i, j int64) int { return cmp.Compare(v[i], v[j]) }
}

func evalArg(c *call) []*tensor.Tensor {
	x := c.t(0)
	if len(x.Shape) == 0 {
		x = x.Reshape([]int64{1})
	}
	k := c.axis(c.int("axis"), len(x.Shape))
	n, inner, outer := x.Shape[k], prod(x.Shape[k+1:]), prod(x.Shape[:k])
	if n == 0 {
		c.fail("the axis is empty")
	}
	rank := c.ranks(x)
	last := c.flag("select_last_index")
	sign := 1
	if c.kind == "onnx::ArgMin" {
		sign = -1
	}
	out := make([]int64, outer*inner)
	for o := range outer {
		for i := range inner {
			best := int64(0)
			base := o*n*inner + i
			for p := int64(1); p < n; p++ {
				if r := sign * rank(base+p*inner, base+best*inner); r > 0 || r == 0 && last {
					best = p
				}
			}
			out[o*inner+i] = best
		}
	}
	shape := slices.Clone(x.Shape)
	if shape[k] = 1; !c.flag("keepdims") {
		shape = slices.Delete(shape, k, k+1)
	}
	if len(c.t(0).Shape) == 0 {
		shape = []int64{}
	}
	return one(tensor.Of(tensor.Int64, shape, out))
}

func evalTopK(c *call) []*tensor.Tensor {
	x, k := c.t(0), c.scalar(1, 0)
	scalar := len(x.Shape) == 0
	if scalar {
		x = x.Reshape([]int64{1})
	}
	a := c.axis(c.int("axis"), len(x.Shape))
	n, inner, outer := x.Shape[a], prod(x.Shape[a+1:]), prod(x.Shape[:a])
	if k < 0 || k > n {
		c.fail("k is %d, the axis has %d elements", k, n)
	}
	rank := c.ranks(x)
	sign := 1
	if c.flag("largest") {
		sign = -1
	}
	at, index := make([]int64, outer*k*inner), make([]int64, outer*k*inner)
	order := make([]int64, n)
	for o := range outer {
		for i := range inner {
			base := o*n*inner + i
			for p := range order {
				order[p] = int64(p)
			}
			// Equal elements keep their order: the lower index comes first.
			slices.SortStableFunc(order, func(p, q int64) int { return sign * rank(base+p*inner, base+q*inner) })
			for p := range k {
				at[(o*k+p)*inner+i] = base + order[p]*inner
				index[(o*k+p)*inner+i] = order[p]
			}
		}
	}
	shape := slices.Clone(x.Shape)
	shape[a] = k
	if scalar {
		shape = []int64{}
	}
	return []*tensor.Tensor{take(x, shape, at), tensor.Of(tensor.Int64, shape, index)}
}

func evalUnique(c *call) []*tensor.Tensor {
	x := c.t(0)
	k := 0
	if c.has("axis") {
		k = c.axis(c.int("axis"), len(x.Shape))
	} else {
		x = reshape(x, []int64{x.NumElements()})
	}
	n, inner, outer := x.Shape[k], prod(x.Shape[k+1:]), prod(x.Shape[:k])
	rank := c.ranks(x)
	compare := func(p, q int64) int {
		for o := range outer {
			for i := range inner {
				if r := rank((o*n+p)*inner+i, (o*n+q)*inner+i); r != 0 {
					return r
				}
			}
		}
		return 0
	}
	order := make([]int64, n)
	for p := range order {
		order[p] = int64(p)
	}
	slices.SortStableFunc(order, compare)
	var first, counts []int64
	group := make([]int64, n)
	for i, p := range order {
		if i == 0 || compare(order[i-1], p) != 0 {
			first, counts = append(first, p), append(counts, 0)
		}
		counts[len(counts)-1]++
		group[p] = int64(len(first) - 1)
	}
	if !c.flag("sorted") {
		perm := make([]int64, len(first))
		for i := range perm {
			perm[i] = int64(i)
		}
		sort.Slice(perm, func(i, j int) bool { return first[perm[i]] < first[perm[j]] })
		back := make([]int64, len(perm))
		f, m := slices.Clone(first), slices.Clone(counts)
		for i, p := range perm {
			back[p] = int64(i)
			first[i], counts[i] = f[p], m[p]
		}
		for i, g := range group {
			group[i] = back[g]
		}
	}
	y := gatherAxis(x, k, first, []int64{int64(len(first))})
	return []*tensor.Tensor{y, intsTensor(first), intsTensor(group), intsTensor(counts)}
}
