package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Other ways for elements that an operator has no kernel for: what moves
// elements is expressed by what moves all of them.

// depthToSpace takes channels apart by Reshape and Transpose.
func depthToSpace(d *Downgrade, _ tensor.DType) bool {
	x := d.in(0)
	if t := x.Tensor(); t == nil || !t.Ranked || len(t.Dims) != 4 {
		return false
	}
	b := d.Node.AttrInt("blocksize", 1)
	if b < 1 {
		return false
	}
	h, w := d.sizes1(x, 2, 3), d.sizes1(x, 3, 4)
	batch, c := d.sizes1(x, 0, 1), d.Op("Div", d.sizes1(x, 1, 2), d.ints(b*b))
	apart, perm := d.concat(0, d.ints(b, b), c), []int64{0, 3, 4, 1, 5, 2}
	if d.Node.AttrStr("mode", "DCR") == "CRD" {
		apart, perm = d.concat(0, c, d.ints(b, b)), []int64{0, 1, 4, 2, 5, 3}
	}
	y := d.Op("Reshape", x, d.concat(0, batch, apart, h, w))
	y = d.OpA("Transpose", []ssa.Attr{intsAttr("perm", perm...)}, y)
	times := func(v *ssa.Value) *ssa.Value { return d.Op("Mul", v, d.ints(b)) }
	d.Replace(d.Op("Reshape", y, d.concat(0, batch, c, times(h), times(w))))
	return true
}

// columnsFirst: DepthToSpace took the blocks apart before the channels only.
func columnsFirst(d *Downgrade) {
	if d.Node.AttrStr("mode", "DCR") == "CRD" {
		if !depthToSpace(d, d.in(0).DType()) {
			d.Fail(11, "the mode CRD of a tensor of unknown rank")
		}
		return
	}
	d.Node.RemoveAttr("mode")
}

// spaceToDepth is the reverse.
func spaceToDepth(d *Downgrade, _ tensor.DType) bool {
	x := d.in(0)
	if t := x.Tensor(); t == nil || !t.Ranked || len(t.Dims) != 4 {
		return false
	}
	b := d.Node.AttrInt("blocksize", 1)
	c, ok := x.Tensor().Dims[1].Int()
	if !ok || b < 1 {
		return false
	}
	perm := []int64{0, 3, 5, 1, 2, 4}
	if d.Node.AttrStr("mode", "DCR") == "CRD" {
		perm = []int64{0, 1, 3, 5, 2, 4}
	}
	batch := d.sizes1(x, 0, 1)
	part := func(axis int) *ssa.Value { return d.Op("Div", d.sizes1(x, axis, axis+1), d.ints(b)) }
	h, w := part(2), part(3)
	y := d.Op("Reshape", x, d.concat(0, batch, d.ints(c), h, d.ints(b), w, d.ints(b)))
	y = d.OpA("Transpose", []ssa.Attr{intsAttr("perm", perm...)}, y)
	d.Replace(d.Op("Reshape", y, d.concat(0, batch, d.ints(c*b*b), h, w)))
	return true
}

// depthFirst: SpaceToDepth put the blocks before the channels only.
func depthFirst(d *Downgrade) {
	if d.Node.AttrStr("mode", "DCR") == "CRD" {
		if !spaceToDepth(d, d.in(0).DType()) {
			d.Fail(28, "the mode CRD of a tensor of unknown rank or number of channels")
		}
		return
	}
	d.Node.RemoveAttr("mode")
}

// globalByReduce reduces all axes but the first two.
func globalByReduce(op string) func(*Downgrade, tensor.DType) bool {
	return func(d *Downgrade, _ tensor.DType) bool {
		x := d.in(0)
		t := x.Tensor()
		if t == nil || !t.Ranked || len(t.Dims) < 3 {
			return false
		}
		d.Replace(d.Op(op, x, d.ints(lastAxes(2, len(t.Dims))...)))
		return true
	}
}

// hardmax marks the first of the greatest elements.
func hardmax(d *Downgrade, t tensor.DType) bool {
	x := d.in(0)
	xt := x.Tensor()
	if xt == nil || !xt.Ranked || len(xt.Dims) == 0 {
		return false
	}
	axis := d.Node.AttrInt("axis", -1)
	if axis < 0 {
		axis += int64(len(xt.Dims))
	}
	best := d.OpA("ArgMax", []ssa.Attr{intAttr("axis", axis)}, x)
	places := d.Op("Range", d.long(0), d.size(x, int(axis)), d.long(1))
	var axes []int64
	for i := 1; i < len(xt.Dims)-int(axis); i++ {
		axes = append(axes, int64(i))
	}
	if axes != nil {
		places = d.Op("Unsqueeze", places, d.ints(axes...))
	}
	d.Replace(d.cast(d.Op("Equal", best, places), t))
	return true
}

// gemmByMatMul serves integers, whose factors are whole.
func gemmByMatMul(d *Downgrade, t tensor.DType) bool {
	turn := func(v *ssa.Value, attr string) *ssa.Value {
		if d.Node.AttrInt(attr, 0) != 0 {
			return d.OpA("Transpose", []ssa.Attr{intsAttr("perm", 1, 0)}, v)
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
		return d.Op("Mul", v, d.like(v, k)), true
	}
	y, ok := scale(d.Op("MatMul", turn(d.in(0), "transA"), turn(d.in(1), "transB")), "alpha")
	if !ok {
		return false
	}
	if c := d.in(2); c != nil {
		if c, ok = scale(c, "beta"); !ok {
			return false
		}
		y = d.Op("Add", y, c)
	}
	d.Replace(y)
	return true
}
