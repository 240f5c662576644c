package onnx

import (
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// upTo is the int64 tensor 0, 1, ... less than an int64 scalar n: the places of
// n ones; before NonZero the iterations of a loop.
func (d *Downgrade) upTo(n *ssa.Value) *ssa.Value {
	if d.Opset >= 9 {
		return d.Squeeze(d.NonZero(d.ConstantOfShape(d.reshape(n, 1), Value(tensor.Ints(1)))), d.ints(0))
	}
	yes := d.Const(tensor.FromInts(tensor.Bool, []int64{}, []int64{1}))
	loop := d.Block.InsertBefore(d.Before, "onnx::Loop", d.Loc, []*ssa.Value{n, yes}, ssa.Tensor(tensor.Int64, d.Block.Func().Module().FreshSymbol("u", 0)))
	body := loop.AddBlock()
	i := body.AddParam("", ssa.Tensor(tensor.Int64))
	c := body.AddParam("", ssa.Tensor(tensor.Bool))
	same := func(v *ssa.Value) *ssa.Value { // an output of a loop is no input of it
		return body.Append("onnx::Identity", d.Loc, []*ssa.Value{v}, v.Type).Result(0)
	}
	body.SetReturns(same(c), same(i))
	return loop.Result(0)
}
