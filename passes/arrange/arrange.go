// Package arrange is the pass that brings the weights of a finished graph into order.
package arrange

import (
	"fmt"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass moves weights to the front, and drops those that are parameters and that nothing uses. Only constants with names are
// weights; those without are the program's own.
var Pass = passes.Pass{
	Name:  "name-initializers",
	Takes: []passes.State{passes.AtOpset},
	Doc:   "bring the weights to the front of the graph, in the order in which the program uses them",
	Before: `
graph(%x : Float(2)):
  %b : Float(2) = onnx::Constant[value= 2  2 [ CPUFloatType{2} ]]()
  %a : Float(2) = onnx::Constant[value= 1  1 [ CPUFloatType{2} ]]()
  %y : Float(2) = onnx::Add(%x, %a)
  %z : Float(2) = onnx::Mul(%y, %b)
  return (%z)`,
	After: `
graph(%x : Float(2)):
  %a : Float(2) = onnx::Constant[value= 1  1 [ CPUFloatType{2} ]]()
  %b : Float(2) = onnx::Constant[value= 2  2 [ CPUFloatType{2} ]]()
  %y : Float(2) = onnx::Add(%x, %a)
  %z : Float(2) = onnx::Mul(%y, %b)
  return (%z)`,
	Options: []passes.Option{{
		Name: "names", Default: "state", Values: []string{"state", "learned"},
		Doc: "how weights are called: as in the state dict, or learned_0, learned_1, ...",
	}},
	Run: run,
}

func run(c *passes.Context) error {
	f := c.Module.Main()
	if f == nil {
		return nil
	}
	for i := len(f.Body.Params) - 1; i >= 0; i-- { // what the passes found no use for
		if p := f.Body.Params[i]; !p.HasUses() && c.Module.Weights[p.Name] != nil {
			delete(c.Module.Weights, p.Name)
			f.Body.RemoveParam(i)
			c.Changed("dropped")
		}
	}
	var weights []*ssa.Op
	seen := map[*ssa.Op]bool{}
	use := func(v *ssa.Value) {
		if v == nil || v.Def() == nil || seen[v.Def()] || !isWeight(v.Def()) || v.Block() != f.Body {
			return
		}
		seen[v.Def()] = true
		weights = append(weights, v.Def())
	}
	for o := range f.Body.AllOps() {
		for _, v := range o.Operands() {
			use(v)
		}
		for _, b := range o.Blocks {
			for _, v := range b.Returns() {
				use(v)
			}
		}
	}
	for _, v := range f.Body.Returns() {
		use(v)
	}
	at := f.Body.First()
	for _, o := range weights {
		if o == at {
			at = o.Next()
			continue
		}
		o.MoveBefore(at)
		c.Changed("moved")
	}
	if c.Option("names") != "learned" {
		return nil
	}
	rename(c, f, weights)
	return nil
}

// rename calls weights learned_0, learned_1, ..., those that are parameters first.
func rename(c *passes.Context, f *ssa.Func, weights []*ssa.Op) {
	n := 0
	call := func(v *ssa.Value) {
		if name := fmt.Sprintf("learned_%d", n); v.Name != name {
			v.Name = name
			c.Changed("named")
		}
		n++
	}
	tensors := map[string]*tensor.Tensor{}
	for _, p := range f.Body.Params {
		if t := c.Module.Weights[p.Name]; t != nil {
			call(p)
			tensors[p.Name] = t
		}
	}
	c.Module.Weights = tensors
	for _, o := range weights {
		call(o.Result(0))
	}
}

func isWeight(o *ssa.Op) bool {
	if len(o.Results) != 1 || o.Results[0].Name == "" || o.NumOperands() > 0 {
		return false
	}
	l, ok := o.Attr("value")
	return ok && l.Kind == ssa.TensorLit
}
