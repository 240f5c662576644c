package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// resizeAxes: scales and sizes were given for all axes, without antialiasing
// and each on its own.
func resizeAxes(d *Downgrade) {
	antialias := d.Node.AttrInt("antialias", 0) != 0 && d.Node.AttrStr("mode", "nearest") != "nearest"
	policy := d.Node.AttrStr("keep_aspect_ratio_policy", "stretch")
	if policy == "stretch" || d.in(3) == nil || d.keepsAspect(policy) { // scales need no policy
		d.Node.RemoveAttr("keep_aspect_ratio_policy")
		policy = "stretch"
	}
	if antialias && policy != "stretch" { // onnxruntime leaves an axis alone whose rounded size is the old one, the standard does not
		d.Fail(18, "antialiasing with an aspect policy that rounds sizes")
	}
	if antialias || policy != "stretch" {
		d.resizeByAxes(18, "antialiasing or an aspect policy")
		return
	}
	d.Node.RemoveAttr("antialias")
	axes := d.Node.AttrInts("axes")
	if axes == nil {
		return
	}
	d.Node.RemoveAttr("axes")
	rank := d.rank(d.in(0), 18)
	place := make([]int, rank)
	for i := range place {
		place[i] = -1
	}
	for k, a := range d.axes(axes, rank) {
		place[a] = k
	}
	join := func(v *ssa.Value, other func(i int) *ssa.Value) *ssa.Value {
		parts := make([]*ssa.Value, rank)
		for i := range parts {
			if parts[i] = other(i); place[i] >= 0 {
				k := int64(place[i])
				parts[i] = d.Slice(v, d.ints(k), d.ints(k+1), d.ints(0), nil)
			}
		}
		return d.Concat(0, parts...)
	}
	if v := d.in(2); v != nil {
		d.Node.SetOperand(2, join(v, func(int) *ssa.Value { return d.Const(tensor.FromFloats(tensor.Float32, []int64{1}, []float64{1})) }))
	}
	if v := d.in(3); v != nil {
		d.Node.SetOperand(3, join(v, func(i int) *ssa.Value { return d.Reshape(d.size(d.in(0), i), d.ints(1)) }))
	}
	if v := d.in(1); v != nil { // where it begins on each axis, then where it ends
		n := int64(len(axes))
		whole := func(end float64) func(int) *ssa.Value {
			return func(int) *ssa.Value { return d.Const(tensor.FromFloats(v.DType(), []int64{1}, []float64{end})) }
		}
		d.Node.SetOperand(1, d.concat(0, join(d.slice(v, 0, 0, n, 1), whole(0)), join(d.slice(v, 0, n, 2*n, 1), whole(1))))
	}
}

// resizeInputs: roi and scales had to be there, if only empty.
func resizeInputs(d *Downgrade) {
	empty := func() *ssa.Value { return d.Const(tensor.FromFloats(tensor.Float32, []int64{0}, nil)) }
	vs := d.Node.Operands()
	for len(vs) < 3 {
		vs = append(vs, nil)
	}
	for i := 1; i <= 2; i++ {
		if vs[i] == nil {
			vs[i] = empty()
		}
	}
	d.Node.SetOperands(vs...)
}

// gemmBias: what is added had to be there.
func gemmBias(d *Downgrade) {
	if d.in(2) == nil {
		zero := tensor.FromInts(d.in(0).DType(), []int64{1}, []int64{0})
		d.Node.SetOperands(d.in(0), d.in(1), d.Const(zero))
	}
}
