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
		y := d.OpA(d.Node.Kind.Name(), []ssa.Attr{intAttr("axis", 0)}, d.Op("Reshape", x, d.ints(1)))
		d.Replace(d.Op("Reshape", y, d.ints()))
		return
	}
	if axis == rank-1 {
		d.Node.SetAttr("axis", ssa.Int(int64(axis)))
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
	swap := func(v *ssa.Value) *ssa.Value { return d.OpA("Transpose", []ssa.Attr{intsAttr("perm", perm...)}, v) }
	d.Replace(swap(d.OpA(d.Node.Kind.Name(), []ssa.Attr{intAttr("axis", int64(rank-1))}, swap(x))))
}
