// Package lift is the pass that turns the weights of a program into parameters of its main function.
package lift

import (
	"github.com/aton-project/aton/dialects/prim"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass turns each weight into an input with its name in the state dict. Later passes do not know the elements, so they do not
// merge equal weights, transpose or fold them: every operation on a weight stays an operator. Module.Weights keeps
// the weights, for files that contain them beside the inputs.
//
// Weights are named floating-point constants. Other constants, such as tables of positions, determine the form of the graph and
// stay constants, unless the file that was read lacks their elements.
var Pass = passes.Pass{
	Name: "lift",
	Doc:  "turn the weights into inputs with the names of the state dict",
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
	},
	Run: run,
}

func run(c *passes.Context) error {
	f := c.Module.Main()
	if f == nil || !c.BoolOption("weights") {
		return nil
	}
	var next *ssa.Op
	for o := f.Body.First(); o != nil; o = next {
		next = o.Next()
		t := weight(o)
		if t == nil {
			continue
		}
		v := o.Result(0)
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

// weight returns the tensor of an operator that is a weight, and nil for other operators.
func weight(o *ssa.Op) *tensor.Tensor {
	if o.Kind != prim.Constant && o.Kind != "onnx::Constant" || len(o.Results) != 1 || o.Result(0).Name == "" || !o.Result(0).HasUses() {
		return nil
	}
	l, _ := o.Attr("value")
	if l.Kind != ssa.TensorLit || l.Tensor == nil || !l.Tensor.DType.IsFloat() && l.Tensor.HasData() {
		return nil
	}
	return l.Tensor
}
