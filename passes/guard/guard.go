// Package guard is the pass that makes a model reject sizes for which it is wrong.
package guard

import (
	"fmt"
	"slices"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
	"github.com/aton-project/aton/ssa/sym"
	"github.com/aton-project/aton/ssa/tensor"
)

// Pass adds a check for each dynamic axis that the metadata aton.symbols bounds from below (N>=2): with a smaller size the
// model fails at run time instead of giving a wrong number.
//
// ONNX has no assertion. A Reshape of one element to one plus the number of missing elements fails if any are missing, and
// an Expand by its result, which is 1, makes the input depend on it. Optimizers assume that operators do not fail, so the pass
// runs after all of them.
var Pass = passes.Pass{
	Name:  "guard",
	Takes: []passes.State{passes.Newest},
	Ends:  []passes.State{passes.Total},
	Doc:   "make the model fail at run time for sizes for which it is wrong",
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
		{Name: "least", Default: "", Doc: "bounds in addition to those in the metadata, such as N>=2"},
	},
	Run: run,
}

func run(c *passes.Context) error {
	f := c.Module.Main()
	if f == nil {
		return nil
	}
	c.Module.Guarded = true
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
		tied := p
		if !p.HasUses() { // the program takes another branch where it is shorter
			tied = usedInput(f)
		}
		if tied != nil {
			protect(f, p, axis, l, tied)
		} else {
			protectOutputs(f, p, axis, l)
		}
		c.Changed("guarded")
	}
	return nil
}

// inputOf finds an input that has the symbol as a size, preferably one that is used.
func inputOf(f *ssa.Func, symbol string) (found *ssa.Value, axis int) {
	for _, p := range f.Body.Params {
		t := p.Tensor()
		if t == nil || !t.Ranked || found != nil && !p.HasUses() {
			continue
		}
		for i, d := range t.Dims {
			if d.String() == symbol {
				if found, axis = p, i; p.HasUses() {
					return found, axis
				}
				break
			}
		}
	}
	return found, axis
}

// usedInput finds an input that is used and has axes.
func usedInput(f *ssa.Func) *ssa.Value {
	for _, p := range f.Body.Params {
		if t := p.Tensor(); t != nil && t.Ranked && t.Rank() > 0 && p.HasUses() {
			return p
		}
	}
	return nil
}

// isProtected reports whether an input already depends on a check of this axis, as in a file that aton wrote.
// It looks for the pattern that protect makes; a check that an optimizer has changed is added again.
func isProtected(p *ssa.Value, axis int, l ssa.Limit) bool {
	for _, gather := range users(p, operand{0, "onnx::Shape"}, operand{0, "onnx::Gather"}) {
		if index, known := onnx.ConstInts(gather.Operand(1)); !known || !slices.Equal(index, []int64{int64(axis)}) {
			continue
		}
		for _, less := range users(gather.Result(0), operand{0, "onnx::Less"}) {
			least, bounded := onnx.ConstInts(less.Operand(1))
			if bounded && len(least) == 1 && least[0] >= l.Min &&
				users(less.Result(0), operand{0, "onnx::Cast"}, operand{0, "onnx::Add"}, operand{1, "onnx::Reshape"}, operand{1, "onnx::Expand"}) != nil {
				return true
			}
		}
	}
	return false
}

// operand is an operand of operators of a kind.
type operand struct {
	index int
	kind  ssa.Kind
}

// users returns the operators that a value reaches through a path of such operands.
func users(v *ssa.Value, path ...operand) (found []*ssa.Op) {
	for u := range v.Uses() {
		o := u.Op()
		if o == nil || o.Kind != path[0].kind || o.Operand(path[0].index) != v {
			continue
		}
		if len(path) == 1 {
			found = append(found, o)
		} else {
			found = append(found, users(o.Result(0), path[1:]...)...)
		}
	}
	return found
}

// protect makes all uses of an input depend on the check that an axis of the input p, which may be the same one, is long enough.
func protect(f *ssa.Func, p *ssa.Value, axis int, l ssa.Limit, input *ssa.Value) {
	b := onnx.Builder{Block: f.Body, Before: f.Body.First()}
	shape, checked := check(b, p, axis, l)
	tied := b.Expand(input, checked)
	tied.Type = input.Type
	input.ReplaceUses(tied)
	shape.Def().SetOperand(0, p)
	tied.Def().SetOperand(0, input)
	// Shapes are those of the input, as long as something else asks for the check: onnxruntime 1.32 gives a Shape behind Expand the
	// layout of a convolution behind that.
	var shapes []*ssa.Op
	for u := range tied.Uses() {
		if o := u.Op(); o != nil && o.Kind == "onnx::Shape" {
			shapes = append(shapes, o)
		}
	}
	if len(shapes) < tied.NumUses() {
		for _, o := range shapes {
			o.SetOperand(0, input)
		}
	}
}

// protectOutputs makes the outputs depend on the check, of a model that uses no input that has axes.
func protectOutputs(f *ssa.Func, p *ssa.Value, axis int, l ssa.Limit) {
	b := onnx.Builder{Block: f.Body}
	_, checked := check(b, p, axis, l)
	rets := slices.Clone(f.Body.Returns())
	for i, v := range rets {
		t := v.Tensor()
		if t == nil || !t.Ranked {
			continue
		}
		tied := b.Expand(v, checked)
		tied.Type = t
		if t.Rank() == 0 { // Expand gives it an axis
			tied.Type = ssa.Tensor(t.DType, sym.Const(1))
			tied = b.Reshape(tied, b.Const(tensor.Ints()))
			tied.Type = t
		}
		rets[i] = tied
	}
	f.Body.SetReturns(rets...)
}

// check computes one, where an axis of an input is long enough, and fails where it is not.
func check(b onnx.Builder, p *ssa.Value, axis int, l ssa.Limit) (shape, checked *ssa.Value) {
	shape = b.Shape(p)
	size := b.Gather(shape, b.Const(tensor.ScalarInt(int64(axis))), onnx.Axis(0))
	short := b.Cast(b.Less(size, b.Const(tensor.ScalarInt(l.Min))), tensor.Int64)
	one := b.Const(tensor.Ints(1))
	checked = b.Reshape(one, b.Add(short, one))
	checked.Name = fmt.Sprintf("%s.is.at.least.%d", l.Symbol, l.Min)
	checked.Type = one.Type
	return shape, checked
}
