package onnx

import (
	"math"

	"github.com/aton-project/aton/ssa"
)

// clipAttrs: the bounds were attributes, whose defaults were the range of float32.
func clipAttrs(d *Downgrade) {
	lo, hi := math.Inf(-1), math.Inf(1)
	ok := true
	if d.in(1) != nil {
		lo, ok = ConstFloat(d.in(1))
	}
	if d.in(2) != nil && ok {
		hi, ok = ConstFloat(d.in(2))
	}
	if !ok {
		d.clipByMinMax()
		return
	}
	d.Node.SetAttr("min", ssa.Float(lo))
	d.Node.SetAttr("max", ssa.Float(hi))
	d.dropOperands(1)
}

func (d *Downgrade) clipByMinMax() {
	x := d.in(0)
	if d.in(1) != nil {
		x = d.Op("Max", x, d.in(1))
	}
	if d.in(2) != nil {
		x = d.Op("Min", x, d.in(2))
	}
	d.Replace(x)
}

// dropoutAttr: the ratio was an attribute, and whether to train was the runtime's affair.
func dropoutAttr(d *Downgrade) {
	if mode, ok := ConstInts(d.in(2)); d.in(2) != nil && (!ok || mode[0] != 0) {
		d.Fail(12, "dropout that drops")
	}
	if d.used(1) {
		d.Fail(12, "the mask of dropout")
	}
	if len(d.Node.Results) > 1 {
		d.Node.RemoveResult(1)
	}
	d.Replace(d.in(0))
}

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
