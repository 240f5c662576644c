package onnx

import "github.com/aton-project/aton/ssa"

// softmaxFlat: all axes from the given one on were one.
func softmaxFlat(d *Downgrade) {
	x := d.in(0)
	rank := d.rank(x, 13)
	axis := int(d.Node.AttrInt("axis", -1))
	if axis < 0 {
		axis += rank
	}
	if rank == 0 { // the only axis there is
		y := d.OpA(d.Node.Kind.Name(), []ssa.Attr{Axis(0)}, d.Reshape(x, d.ints(1)))
		d.Replace(d.Reshape(y, d.ints()))
		return
	}
	if axis == rank-1 {
		if !d.unflattened(x, axis) {
			d.Node.SetAttr("axis", ssa.Int(int64(axis)))
		}
		return
	}
	one := true
	if t := x.Tensor(); t != nil {
		for _, e := range t.Dims[axis+1:] {
			one = one && e.Is(1)
		}
	}
	if one { // nothing else is flattened
		d.Node.SetAttr("axis", ssa.Int(int64(axis)))
		return
	}
	perm := make([]int64, rank)
	for i := range perm {
		perm[i] = int64(i)
	}
	perm[axis], perm[rank-1] = perm[rank-1], perm[axis]
	swap := func(v *ssa.Value) *ssa.Value { return d.Transpose(v, Perm(perm...)) }
	d.Replace(swap(d.OpA(d.Node.Kind.Name(), []ssa.Attr{Axis(int64(rank - 1))}, swap(x))))
}

// unflattened puts one Softmax in the place of Flatten, Softmax and Reshape to the shape from before: older versions flatten
// themselves ([flatSoftmax]).
func (d *Downgrade) unflattened(x *ssa.Value, axis int) bool {
	flatten := x.Def()
	if flatten == nil || flatten.Kind != "onnx::Flatten" || axis != 1 {
		return false
	}
	y, whole := d.Node.Result(0), flatten.Operand(0)
	var reshape *ssa.Op
	for u := range y.Uses() {
		reshape = u.Op()
	}
	if !y.HasOneUse() || reshape == nil || reshape.Kind != "onnx::Reshape" || reshape.Operand(0) != y || whole.Tensor() == nil || !whole.Tensor().Ranked {
		return false
	}
	target := reshape.Operand(1).Def()
	same := target != nil && target.Kind == "onnx::Shape" && target.Operand(0) == whole && len(target.Attrs) == 0
	if !same && !ssa.SameType(whole.Tensor(), reshape.Result(0).Type) { // sizes that are named alike are equal
		return false
	}
	from := flatten.AttrInt("axis", 1)
	if from < 0 {
		from += int64(len(whole.Tensor().Dims))
	}
	d.Node.SetOperands(whole)
	d.Node.SetAttr("axis", ssa.Int(from))
	y.Type = whole.Type
	replaceOp(reshape, []*ssa.Value{y})
	return true
}
