// Package canonicalize is the pass that converts a TorchScript program to the form in which PyTorch's executors run it.
package canonicalize

import (
	"github.com/aton-project/aton/dialects/aten"
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Pass turns constant tensors of rank 0 back into numbers where PyTorch does.
//
// A trace records the number of `x + 1.5` as a float64 tensor of rank 0. A number and a tensor promote differently: with
// an int64 x the number gives float32, the tensor float64. Both of PyTorch's optimizing executors, which run loaded
// archives, treat the constant as a number again (CanonicalizeOps in torch/csrc/jit/passes/canonicalize_graph_fuser_ops.cpp),
// and so do eager mode and torch.onnx. The rule is as narrow as PyTorch's: the second operand of add, sub, mul and div,
// and a constant of the graph itself. Buffers stay tensors, so the pass must run before freeze makes constants of them.
var Pass = passes.Pass{
	Name:  "canonicalize",
	Takes: []passes.State{passes.OneFunction},
	Makes: []passes.State{passes.Numbers},
	Doc:   "turn constant tensors of rank 0 in a trace back into numbers",
	Before: `
graph(%x : Long(3)):
  %c : Double() = prim::Constant[value={2.5}]()
  %y : Tensor = aten::mul(%x, %c)
  return (%y)`,
	After: `
graph(%x : Long(3)):
  %0 : float = prim::Constant[value=2.5]()
  %y : Tensor = aten::mul(%x, %0)
  return (%y)`,
	Run: passes.EachFunc(run),
}

func run(c *passes.Context, f *ssa.Func) error {
	var orphans []*ssa.Op
	numbers := map[*ssa.Op]*ssa.Value{} // by the operator in front of which they stand
	for o := range f.Body.AllOps() {
		def, number, ok := aten.NumberOperand(o)
		if !ok {
			continue
		}
		at := def
		if o.Operand(1).Def() != def { // it stands in a branch, where o cannot see it
			at = o
		}
		if numbers[at] == nil {
			n := at.Block().InsertBefore(at, prim.Constant, def.Loc, nil, number.Type())
			n.SetAttr("value", number)
			numbers[at] = n.Result(0)
			orphans = append(orphans, def)
		}
		o.SetOperand(1, numbers[at])
		o.Schema = nil // another overload now
		c.Changed("number")
	}
	for _, o := range orphans {
		if !o.Result(0).HasUses() {
			o.Erase()
		}
	}
	if len(orphans) > 0 {
		aten.BindSchemas(c.Module)
	}
	return nil
}
