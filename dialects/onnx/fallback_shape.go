package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Other ways for elements that an operator has no kernel for: what moves
// elements is expressed by what moves all of them.

// gemmByMatMul serves integers, whose factors are whole.
func gemmByMatMul(d *Downgrade, t tensor.DType) bool {
	turn := func(v *ssa.Value, attr string) *ssa.Value {
		if d.Node.AttrInt(attr, 0) != 0 {
			return d.Transpose(v, Perm(1, 0))
		}
		return v
	}
	scale := func(v *ssa.Value, attr string) (*ssa.Value, bool) {
		k := d.Node.AttrFloat(attr, 1)
		if k == 1 {
			return v, true
		}
		if t.IsInt() && k != float64(int64(k)) {
			return nil, false
		}
		return d.Mul(v, d.like(v, k)), true
	}
	y, ok := scale(d.MatMul(turn(d.in(0), "transA"), turn(d.in(1), "transB")), "alpha")
	if !ok {
		return false
	}
	if c := d.in(2); c != nil {
		if c, ok = scale(c, "beta"); !ok {
			return false
		}
		y = d.Add(y, c)
	}
	d.Replace(y)
	return true
}
