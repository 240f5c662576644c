// Package nameinitializers is the pass that orders and names the weights of a finished graph.
package nameinitializers

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass moves weights to the front, and removes weights that are unused parameters. Only constants with names are
// weights; the others belong to the program.
var Pass = passes.Pass{
	Name:  "name-initializers",
	Takes: []passes.State{passes.AtOpset},
	Doc:   "move the weights to the front of the graph, in the order of their first use",
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
		Doc: "the names of weights: as in the state dict, or learned_0, learned_1, ...",
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

// rename names the weights learned_0, learned_1, ..., in the order of the state dict, and then those that passes made.
func rename(c *passes.Context, f *ssa.Func, weights []*ssa.Op) {
	var values []*ssa.Value
	for _, p := range f.Body.Params {
		if c.Module.Weights[p.Name] != nil {
			values = append(values, p)
		}
	}
	for _, o := range weights {
		values = append(values, o.Result(0))
	}
	place := map[string]int{}
	for i, name := range c.Module.State {
		place[name] = i
	}
	at := func(v *ssa.Value) int {
		if i, ok := place[v.Name]; ok {
			return i
		}
		return len(place)
	}
	slices.SortStableFunc(values, func(a, b *ssa.Value) int { return at(a) - at(b) })
	tensors := map[string]*tensor.Tensor{}
	for i, v := range values {
		name := fmt.Sprintf("learned_%d", i)
		if t := c.Module.Weights[v.Name]; t != nil && v.Param() != nil {
			tensors[name] = t
		}
		if v.Name != name {
			v.Name = name
			c.Changed("named")
		}
	}
	c.Module.Weights = tensors
}

func isWeight(o *ssa.Op) bool {
	if len(o.Results) != 1 || o.Results[0].Name == "" || o.NumOperands() > 0 {
		return false
	}
	l, ok := o.Attr("value")
	return ok && l.Kind == ssa.TensorLit
}
