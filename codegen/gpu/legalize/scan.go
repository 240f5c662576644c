package legalize

import (
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// ScanToLoop turns each Scan into the Loop that computes it: the body picks its part of the scanned operands by the number of the
// turn, and what it gives besides the state is stacked along a first axis, which is turned or moved afterwards. A Scan of values whose ranks are not known stays.
var ScanToLoop = passes.Pass{
	Name:  "scan-to-loop",
	Takes: []passes.State{passes.Newest},
	Doc:   "turn each Scan into the Loop that computes it",
	Before: `
graph(%s : Float(3), %x : Float(N, 3)):
  %last : Float(3), %all : Float(N, 3) = onnx::Scan[num_scan_inputs=1](%s, %x)
    block0(%c : Float(3), %e : Float(3)):
      %t : Float(3) = onnx::Add(%c, %e)
      -> (%t, %t)
  return (%last, %all)`,
	After: `
graph(%s : Float(3), %x : Float(N, 3)):
  %0 : Long(1) = onnx::Shape[start=0, end=1](%x)
  %1 : Long(1) = onnx::Constant[value={0}]()
  %2 : Long() = onnx::Squeeze(%0, %1)
  %3 : Long() = onnx::Constant[value={1}]()
  %4 : Long() = onnx::Sub(%2, %3)
  %5 : Float(3), %6 : Float(N, 3) = onnx::Loop(%2, _, %s)
    block0(%7 : Long(), %8 : Bool(), %9 : Float(3)):
      %10 : Float(3) = onnx::Gather[axis=0](%x, %7)
      %t : Float(3) = onnx::Add(%9, %10)
      -> (%8, %t, %t)
  return (%5, %6)`,
	Run: eachOp("onnx::Scan", scanToLoop),
}

func scanToLoop(o *ssa.Op) error {
	inputs := int(o.AttrInt("num_scan_inputs", 0))
	state := o.NumOperands() - inputs
	body := o.Blocks[0]
	for i := range inputs {
		if t := o.Operand(state + i).Tensor(); t == nil || !t.Ranked || len(t.Dims) == 0 {
			return nil // stays a Scan, which is a host step
		}
	}
	for i := state; i < len(o.Results); i++ {
		if t := body.Return(i).Tensor(); t == nil || !t.Ranked {
			return nil
		}
	}
	at := func(name string, i int) int64 {
		if v := o.AttrInts(name); i < len(v) {
			return v[i]
		}
		return 0
	}
	ints := func(b *onnx.Builder, n ...int64) *ssa.Value { return b.Const(tensor.Ints(n...)) }
	before := &onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	axis := func(i int) int64 {
		a := at("scan_input_axes", i)
		if a < 0 {
			a += int64(o.Operand(state + i).Tensor().Rank())
		}
		return a
	}
	trips := before.Shape(o.Operand(state), onnx.Start(axis(0)), onnx.End(axis(0)+1))
	count := before.Squeeze(trips, ints(before, 0))
	last := before.Sub(count, before.Const(tensor.ScalarInt(1)))

	types := make([]ssa.Type, len(o.Results))
	for i, r := range o.Results {
		types[i] = r.Type
		if i >= state {
			types[i] = ssa.AnyTensor
		}
	}
	loop := o.Block().InsertBefore(o, "onnx::Loop", o.Loc, append([]*ssa.Value{count, nil}, o.Operands()[:state]...), types...)
	in := loop.AddBlock()
	turn := in.AddParam("", ssa.Tensor(tensor.Int64))
	goesOn := in.AddParam("", ssa.Tensor(tensor.Bool))
	for i := range state {
		body.Params[i].ReplaceUses(in.AddParam("", o.Operand(i).Type))
	}
	inside := &onnx.Builder{Block: in, Loc: o.Loc}
	for i := range inputs {
		k := turn
		if at("scan_input_directions", i) != 0 {
			k = inside.Sub(last, turn)
		}
		part := inside.Gather(o.Operand(state+i), k, onnx.Axis(axis(i)))
		body.Params[state+i].ReplaceUses(part)
	}
	in.Splice(nil, body)
	in.SetReturns(append([]*ssa.Value{goesOn}, body.Returns()...)...)
	if err := onnx.Infer(loop); err != nil {
		return err
	}
	results := append([]*ssa.Value(nil), loop.Results...)
	for i := state; i < len(results); i++ {
		v := results[i]
		if at("scan_output_directions", i-state) != 0 {
			v = before.Slice(v, ints(before, -1), ints(before, math.MinInt64), ints(before, 0), ints(before, -1))
		}
		rank := v.Tensor().Rank()
		to := int(at("scan_output_axes", i-state))
		if to < 0 {
			to += rank
		}
		if to > 0 {
			perm := make([]int64, rank)
			for k := range perm {
				switch {
				case k < to:
					perm[k] = int64(k + 1)
				case k > to:
					perm[k] = int64(k)
				}
			}
			v = before.Transpose(v, onnx.Perm(perm...))
		}
		results[i] = v
	}
	o.Replace(results...)
	return nil
}
