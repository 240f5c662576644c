// Package guard is the pass that makes a model refuse sizes that it is not right for.
package guard

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass adds a check for each dynamic axis that the metadata aton.symbols bounds from below (N>=2): with a smaller size the
// model fails at run time instead of giving a wrong number.
//
// ONNX has no assertion. A Reshape of one element to as many elements as are missing, plus one, fails where some are, and
// an Expand by its result, which is 1, ties the input to it. Optimizers take operators not to fail, so the pass comes
// behind all of them.
var Pass = passes.Pass{
	Name: "guard",
	Doc:  "make the model fail at run time for sizes that it is not right for",
	Before: `
graph(%x : Float(N, 4)):
  %y : Float(N, 4) = onnx::Relu(%x)
  return (%y)`,
	After: `
graph(%x : Float(N, 4)):
  %0 : Long(2) = onnx::Shape(%x)
  %1 : Long() = onnx::Constant[value={0}]()
  %2 : Long() = onnx::Gather[axis=0](%0, %1)
  %3 : Long() = onnx::Constant[value={2}]()
  %4 : Bool() = onnx::Less(%2, %3)
  %5 : Long() = onnx::Cast[to=7](%4)
  %6 : Long(1) = onnx::Constant[value={1}]()
  %7 : Long(1) = onnx::Add(%5, %6)
  %N.is.at.least.2 : Long(1) = onnx::Reshape(%6, %7)
  %8 : Float(N, 4) = onnx::Expand(%x, %N.is.at.least.2)
  %y : Float(N, 4) = onnx::Relu(%8)
  return (%y)`,
	Demo: `least="N>=2"`,
	Options: []passes.Option{
		{Name: "least", Default: "", Doc: "bounds beside those of the metadata, such as N>=2"},
	},
	Run: run,
}

func run(c *passes.Context) error {
	f := c.Module.Main()
	if f == nil {
		return nil
	}
	said := c.Module.GetMetadata(ssa.LimitsKey)
	if _, err := ssa.ParseLimits(said); err != nil {
		said = "" // a file had it, from somebody else
	}
	limits, err := ssa.ParseLimits(said, c.Option("least"))
	if err != nil {
		return err
	}
	for _, l := range limits {
		p, axis := inputOf(f, l.Symbol)
		if p == nil || isProtected(p, axis, l) {
			continue
		}
		protect(f, p, axis, l)
		c.Changed("guarded")
	}
	return nil
}

// inputOf finds a used input that has the symbol as a size.
func inputOf(f *ssa.Func, symbol string) (*ssa.Value, int) {
	for _, p := range f.Body.Params {
		t := p.Tensor()
		if t == nil || !t.Ranked || !p.HasUses() {
			continue
		}
		for i, d := range t.Dims {
			if d.String() == symbol {
				return p, i
			}
		}
	}
	return nil, 0
}

// isProtected reports whether the input p is tied to a check of this axis already, as in a file that was written with one.
// The pattern is that of protect; a check that an optimizer has taken apart is made anew.
func isProtected(p *ssa.Value, axis int, l ssa.Limit) bool {
	for u := range p.Uses() {
		o := u.Op()
		if o == nil || o.Kind != "onnx::Expand" || o.Operand(0) != p {
			continue
		}
		less := source(o, operand{1, "onnx::Reshape"}, operand{1, "onnx::Add"}, operand{0, "onnx::Cast"}, operand{0, "onnx::Less"})
		gather := source(less, operand{0, "onnx::Gather"})
		shape := source(gather, operand{0, "onnx::Shape"})
		if shape == nil || shape.Operand(0) != p {
			continue
		}
		index, known := onnx.ConstInts(gather.Operand(1))
		least, bounded := onnx.ConstInts(less.Operand(1))
		if known && bounded && slices.Equal(index, []int64{int64(axis)}) && len(least) == 1 && least[0] >= l.Min {
			return true
		}
	}
	return false
}

// operand says which operator defines an operand.
type operand struct {
	index int
	kind  ssa.Kind
}

// source follows operands up from o to the operator that defines the last of them. It is nil where one is defined otherwise.
func source(o *ssa.Op, path ...operand) *ssa.Op {
	for _, step := range path {
		if o == nil {
			return nil
		}
		v := o.Operand(step.index)
		if v == nil {
			return nil
		}
		if o = v.Def(); o == nil || o.Kind != step.kind {
			return nil
		}
	}
	return o
}

// protect ties all uses of the input p to the check that its axis is long enough.
func protect(f *ssa.Func, p *ssa.Value, axis int, l ssa.Limit) {
	b := onnx.Builder{Block: f.Body, Before: f.Body.First()}
	shape := b.Op("Shape", p)
	size := b.OpA("Gather", []ssa.Attr{{Name: "axis", Value: ssa.Int(0)}}, shape, b.Const(tensor.ScalarInt(int64(axis))))
	short := b.OpA("Cast", []ssa.Attr{{Name: "to", Value: ssa.Int(int64(tensor.Int64.ONNX()))}}, b.Op("Less", size, b.Const(tensor.ScalarInt(l.Min))))
	one := b.Const(tensor.Ints(1))
	checked := b.Op("Reshape", one, b.Op("Add", short, one))
	checked.Name = fmt.Sprintf("%s.is.at.least.%d", l.Symbol, l.Min)
	checked.Type = one.Type
	tied := b.Op("Expand", p, checked)
	tied.Type = p.Type
	p.ReplaceUses(tied)
	shape.Def().SetOperand(0, p)
	tied.Def().SetOperand(0, p)
}
