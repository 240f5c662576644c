package onnx

import (
	"slices"

	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// reduceAxes: the axes were an attribute, and their absence meant all.
func reduceAxes(d *Downgrade) {
	noop := d.Node.AttrInt("noop_with_empty_axes", 0) != 0
	axes, ok := ConstInts(d.in(1))
	empty := d.in(1) == nil || ok && len(axes) == 0
	if empty && noop {
		switch d.Node.Kind.Name() {
		case "ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceLogSumExp":
			d.Replace(d.in(0))
		default:
			d.Replace(d.bodyOf(d.since())...)
		}
		return
	}
	if !empty && !ok {
		reduceAtRun(d)
		return
	}
	d.Node.RemoveAttr("noop_with_empty_axes")
	if empty {
		d.dropOperands(1)
		return
	}
	d.intsAttr(1, "axes", d.since())
	d.dropOperands(1)
}

// MayReduceNothing reports a reduction along an axis that may be empty, as far as is known of it.
func MayReduceNothing(o *ssa.Op) bool {
	x := o.Operand(0).Tensor()
	if x == nil || !x.Ranked {
		return true
	}
	axes, given := o.AttrInts("axes"), true
	if v := o.Operand(1); v != nil {
		axes, given = ConstInts(v)
	}
	for i, n := range x.Dims {
		reduced := !given || len(axes) == 0 || slices.Contains(axes, int64(i)) || slices.Contains(axes, int64(i-len(x.Dims)))
		if reduced && n.Min() < 1 {
			return true
		}
	}
	return false
}

// mayBeEmpty reports a tensor of which an axis may have size 0, as far as is known of it.
func mayBeEmpty(v *ssa.Value) bool {
	t := v.Tensor()
	return t == nil || !t.Ranked || slices.ContainsFunc(t.Dims, func(e sym.Expr) bool { return e.Min() < 1 })
}

// assume tells the user what a step takes for granted.
func (d *Downgrade) assume(what string) { d.Block.Func().Module().Assume(what) }

// since is the opset that takes axes as an input.
func (d *Downgrade) since() int {
	switch d.Node.Kind.Name() {
	case "ReduceSum", "Squeeze", "Unsqueeze":
		return 13
	}
	return 18
}

// lastIndex: which of equal elements is picked was not to be told; the first was.
func lastIndex(d *Downgrade) {
	if d.Node.AttrInt("select_last_index", 0) == 0 {
		d.Node.RemoveAttr("select_last_index")
		return
	}
	x := d.in(0)
	rank := d.rank(x, 12)
	axis := d.Node.AttrInt("axis", 0)
	if axis < 0 {
		axis += int64(rank)
	}
	t := x.Tensor()
	n, ok := t.Dims[axis].Int()
	if !ok {
		d.Fail(12, "it picks the last of equal elements along an axis of unknown size")
	}
	// the first one from behind
	rev := make([]int64, n)
	for i := range rev {
		rev[i] = n - 1 - int64(i)
	}
	flipped := d.Gather(x, d.ints(rev...), Axis(axis))
	i := d.OpA(d.Node.Kind.Name(), []ssa.Attr{Axis(axis), KeepDims(d.Node.AttrInt("keepdims", 1) != 0)}, flipped)
	d.Replace(d.Sub(d.scalarInt(tensor.Int64, n-1), i))
}

// topKLargest: only the largest were found, always sorted.
func topKLargest(d *Downgrade) {
	largest := d.Node.AttrInt("largest", 1) != 0
	d.Node.RemoveAttr("sorted")
	d.Node.RemoveAttr("largest")
	d.positiveAxes("axis", inputRank(11)(d))
	if _, ok := d.Node.Attr("axis"); !ok {
		d.Node.SetAttr("axis", ssa.Int(int64(d.rank(d.in(0), 11)-1)))
	}
	if largest {
		return
	}
	if !d.in(0).DType().IsFloat() {
		d.Fail(11, "the smallest of integers")
	}
	axis, _ := d.Node.Attr("axis")
	r := d.Create("onnx::TopK", 2, []*ssa.Value{d.Neg(d.in(0)), d.in(1)}, ssa.Attr{Name: "axis", Value: axis})
	d.Replace(d.Neg(r[0]), r[1])
}

// topKAttr: k was an attribute.
func topKAttr(d *Downgrade) {
	k, ok := ConstInts(d.in(1))
	if !ok || len(k) != 1 {
		d.Fail(10, "k is computed at run time")
	}
	d.dropOperands(1)
	d.Node.SetAttr("k", ssa.Int(k[0]))
}
