// Package lift is the pass that turns the weights of a program into parameters of its main function.
package lift

import (
	"slices"

	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass turns each weight into an input with its name in the state dict. Later passes do not know the elements, so they do not
// merge equal weights, transpose or fold them: every operation on a weight stays an operator. Module.Weights keeps
// the weights, for files that contain them beside the inputs.
//
// The inputs stand in the order of the state dict. Weights are named constants of floating point, and with integers=true those
// tensors of the state dict that hold integers or bools. Without it these stay constants, since they may decide what the graph
// looks like, unless the file that was read left their elements out.
var Pass = passes.Pass{
	Name:  "lift",
	Takes: []passes.State{passes.Functional},
	Makes: []passes.State{passes.Lifted},
	Doc:   "turn the weights into inputs with the names of the state dict",
	Before: `
graph(%x : Float(2)):
  %scale : Float(2) = prim::Constant[value= 2  2 [ CPUFloatType{2} ]]()
  %y : Float(2) = aten::mul(%x, %scale)
  return (%y)`,
	After: `
graph(%x : Float(2),
      %scale : Float(2)):
  %y : Float(2) = aten::mul(%x, %scale)
  return (%y)`,
	Demo: "weights=true",
	Options: []passes.Option{
		{Name: "weights", Default: "false", Bool: true, Doc: "whether to run the pass"},
		{Name: "integers", Default: "false", Bool: true, Doc: "turn the integer and bool tensors of the state dict into inputs too"},
	},
	Run: run,
}

func run(c *passes.Context) error {
	f := c.Module.Main()
	if f == nil || !c.BoolOption("weights") {
		return nil
	}
	place := map[string]int{}
	for i, name := range c.Module.State {
		place[name] = i
	}
	var weights []*ssa.Op
	for o := range f.Body.Ops() {
		if v := ssa.WeightOf(o); v != nil && v.HasUses() {
			t := weight(o)
			_, kept := place[v.Name]
			if t.DType.IsFloat() || !t.HasData() || kept && c.BoolOption("integers") {
				weights = append(weights, o)
			}
		}
	}
	at := func(o *ssa.Op) int {
		if i, ok := place[o.Result(0).Name]; ok {
			return i
		}
		return len(place) // behind those of the state dict
	}
	slices.SortStableFunc(weights, func(a, b *ssa.Op) int { return at(a) - at(b) })
	for _, o := range weights {
		t, v := weight(o), o.Result(0)
		p := f.Body.AddParam(v.Name, v.Type)
		v.ReplaceUses(p)
		o.Erase()
		if c.Module.Weights == nil {
			c.Module.Weights = map[string]*tensor.Tensor{}
		}
		c.Module.Weights[p.Name] = t
		c.Changed("lifted")
	}
	return nil
}

// weight returns the elements of a weight.
func weight(o *ssa.Op) *tensor.Tensor {
	l, _ := o.Attr("value")
	return l.Tensor
}
