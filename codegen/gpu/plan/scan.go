package plan

import (
	"cmp"
	"math"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// scansToLoops turns each Scan into the Loop that computes it: the body picks its part of the scanned operands by the number of the
// turn, and what it gives besides the state is stacked along a first axis, which is turned or moved afterwards.
func scansToLoops(f *ssa.Func) error {
	var scans []*ssa.Op
	for o := range f.Body.AllOps() {
		if o.Kind == "onnx::Scan" {
			scans = append(scans, o)
		}
	}
	for _, o := range scans {
		var failed error
		if err := onnx.Build(func() { failed = scanToLoop(o) }); cmp.Or(err, failed) != nil {
			return cmp.Or(err, failed)
		}
	}
	return nil
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
