package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// loopCarries: a loop carried at least one value. The number of the iteration
// can be one: it is counted here instead of taken from the runtime.
func loopCarries(d *Downgrade) {
	o := d.Node
	body := o.Blocks[0]
	if o.NumOperands() > 2 {
		return
	}
	if !body.Params[0].HasUses() {
		d.Fail(11, "a loop that carries nothing")
	}
	vs := o.Operands()
	for len(vs) < 2 {
		vs = append(vs, nil)
	}
	o.SetOperands(append(vs, d.long(0))...)
	t := ssa.Tensor(tensor.Int64)
	o.AddResult(t)
	n := len(o.Results)
	rs := append([]*ssa.Value{o.Results[n-1]}, o.Results[:n-1]...)
	copy(o.Results, rs) // carried values come before what is collected
	count := body.AddParam("", t)
	body.Params[0].ReplaceUses(count)
	b := Builder{Block: body, Loc: d.Loc}
	next := b.Add(count, b.Const(tensor.ScalarInt(1)))
	returns := body.Returns()
	body.SetReturns(append([]*ssa.Value{returns[0], next}, returns[1:]...)...)
}

// scanBatched: the first version works on batches of sequences.
func scanBatched(d *Downgrade) { d.Fail(9, "a scan") }

// hasElement: only an optional could be asked.
func hasElement(d *Downgrade) {
	if d.in(0) == nil {
		d.Replace(d.Const(tensor.FromInts(tensor.Bool, []int64{}, []int64{0})))
		return
	}
	if d.in(0).Tensor() != nil {
		d.Replace(d.Const(tensor.FromInts(tensor.Bool, []int64{}, []int64{1})))
	}
}

// sameRanks: the branches of an If had to give tensors of one rank.
func sameRanks(d *Downgrade) {
	if len(d.Node.Blocks) != 2 {
		d.Fail(0, "two branches are needed")
	}
	a, b := d.Node.Blocks[0], d.Node.Blocks[1]
	for i := range d.Node.Results {
		x, y := a.Return(i).Tensor(), b.Return(i).Tensor()
		if x != nil && y != nil && x.Ranked && y.Ranked && len(x.Dims) != len(y.Dims) {
			d.Fail(11, "branches that give ranks %d and %d", len(x.Dims), len(y.Dims))
		}
	}
}
