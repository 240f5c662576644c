package kernel

import (
	"slices"

	"github.com/aton-project/aton/ssa/tensor"
)

// scattering finds kernels that write elements into a copy of their input.
func scattering(name string) kernel {
	switch name {
	case "ScatterElements":
		return evalScatterElements
	case "ScatterND":
		return evalScatterND
	}
	return nil
}

// place writes or combines updates[i] into a copy of data at position at[i].
func (c *call) place(data, updates *tensor.Tensor, at []int64) *tensor.Tensor {
	if data.DType != updates.DType {
		c.fail("element types %v and %v", data.DType, updates.DType)
	}
	reduction := c.attr("reduction").Str()
	if data.DType == tensor.String {
		v, u := data.StringData(), updates.StringData()
		for i, p := range at {
			v[p] = u[i]
		}
		return tensor.Strings(data.Shape, v)
	}
	if reduction == "" || reduction == "none" {
		size := int64(data.DType.Size())
		out, u := data.Clone(), updates.Bytes()
		for i, p := range at {
			copy(out.Storage.Bytes()[p*size:(p+1)*size], u[int64(i)*size:])
		}
		return out
	}
	if data.DType.IsFloat() {
		return tensor.FromFloats(data.DType, data.Shape, combined(c, data.Float64s(), updates.Float64s(), at, reduction))
	}
	if data.DType == tensor.Uint64 {
		v := combined(c, slices.Clone(tensor.Data[uint64](data)), tensor.Data[uint64](updates), at, reduction)
		return tensor.Of(data.DType, data.Shape, v)
	}
	if data.DType == tensor.Bool { // add is or, mul is and
		switch reduction {
		case "add":
			reduction = "max"
		case "mul":
			reduction = "min"
		}
	}
	return tensor.FromInts(data.DType, data.Shape, combined(c, slices.Clone(data.Int64s()), updates.Int64s(), at, reduction))
}

func combined[T int64 | uint64 | float64](c *call, v, u []T, at []int64, reduction string) []T {
	for i, p := range at {
		switch reduction {
		case "add":
			v[p] += u[i]
		case "mul":
			v[p] *= u[i]
		case "max":
			v[p] = max(v[p], u[i])
		case "min":
			v[p] = min(v[p], u[i])
		default:
			c.fail("unknown reduction %q", reduction)
		}
	}
	return v
}

func evalScatterElements(c *call) []*tensor.Tensor {
	x, ix, u := c.t(0), c.t(1), c.t(2)
	k := c.axis(c.int("axis"), len(x.Shape))
	if len(ix.Shape) != len(x.Shape) || !slices.Equal(ix.Shape, u.Shape) {
		c.fail("data %v, indices %v, updates %v", x.Shape, ix.Shape, u.Shape)
	}
	v := c.indices(ix, x.Shape[k])
	at := make([]int64, len(v))
	dst := make([]int64, len(x.Shape))
	positions(ix.Shape, func(i int, idx []int64) {
		copy(dst, idx)
		dst[k] = v[i]
		for d, p := range dst {
			if p >= x.Shape[d] {
				c.fail("indices %v are larger than data %v", ix.Shape, x.Shape)
			}
		}
		at[i] = flat(x.Shape, dst)
	})
	return one(c.place(x, u, at))
}

func evalScatterND(c *call) []*tensor.Tensor {
	x, ix, u := c.t(0), c.t(1), c.t(2)
	r := len(ix.Shape) - 1
	if r < 0 || int(ix.Shape[r]) > len(x.Shape) {
		c.fail("data %v, indices %v", x.Shape, ix.Shape)
	}
	m := int(ix.Shape[r])
	if !slices.Equal(u.Shape, append(slices.Clone(ix.Shape[:r]), x.Shape[m:]...)) {
		c.fail("data %v, indices %v, updates %v", x.Shape, ix.Shape, u.Shape)
	}
	block, v := prod(x.Shape[m:]), ix.Int64s()
	var at []int64
	for i := range prod(ix.Shape[:r]) {
		p := int64(0)
		for j := range m {
			q := v[int(i)*m+j]
			if q < 0 {
				q += x.Shape[j]
			}
			if q < 0 || q >= x.Shape[j] {
				c.fail("index %d is out of range for size %d", q, x.Shape[j])
			}
			p = p*x.Shape[j] + q
		}
		for e := range block {
			at = append(at, p*block+e)
		}
	}
	return one(c.place(x, u, at))
}
