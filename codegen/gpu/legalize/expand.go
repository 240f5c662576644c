package legalize

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Expands reports an operator without kernel that others express: its body in the standard tells how, its steps to older opsets, or the table of those on
// quantized numbers.
func Expands(k ssa.Kind) bool {
	return k.Namespace() == onnx.Namespace && emit.Class(k) == "" && !slices.Contains(stays, k) && (expressionOf(k) != nil || expressing(k.Name()) != nil)
}

// expression gives what takes the place of an operator's results, unless it has replaced the op itself.
type expression func(x *expander, b *onnx.Builder, o *ssa.Op) []*ssa.Value

// expressionOf is how an operator is expressed by others whatever the opset is; nil for one that is not.
func expressionOf(k ssa.Kind) expression {
	if f := quantized[k]; f != nil {
		return f
	}
	if onnx.HasBody(k) {
		return body
	}
	return nil
}

// body is what the standard makes a composite operator of.
func body(_ *expander, b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	return (&onnx.Downgrade{Builder: *b, Node: o, Target: onnx.Standard, Opset: onnx.Newest}).Body()
}

// either are operators without a body that have kernels for most of what they do, and which others express where these refuse.
var either = []ssa.Kind{"onnx::ConvInteger", "onnx::MatMulInteger"}

// replaced reports an operator in whose place others that express it run.
func (x *expander) replaced(o *ssa.Op) bool {
	if slices.Contains(either, o.Kind) || onnx.HasBody(o.Kind) && emit.Class(o.Kind) != "" {
		return x.build(o) != nil
	}
	return Expands(o.Kind) || variants[o.Kind] != nil
}

// stays are operators whose steps down do not do without them.
var stays = []ssa.Kind{"onnx::If", "onnx::Loop", "onnx::Scan"}

// expressing are the steps of an operator down to where it did not exist, nil if nothing expresses it there.
func expressing(name string) []onnx.Step {
	versions, steps := onnx.Versions(name), onnx.Steps(name)
	if len(versions) == 0 || len(steps) == 0 || steps[len(steps)-1].Opset != versions[0].Since {
		return nil
	}
	return steps
}

// Expand replaces operators without a kernel by operators that have one. One that cannot be stays as it is, for the host.
var Expand = expandWith(func(o *ssa.Op) error {
	_, err := emit.Build(emit.Group{Root: o})
	return err
})

// expander expresses operators by others. An operator that has kernels for some operands only is asked for with build, which returns why it has none.
type expander struct {
	*passes.Context
	build func(o *ssa.Op) error
}

// expandWith is Expand with a way to build the kernels of an operator.
func expandWith(build func(o *ssa.Op) error) passes.Pass {
	return passes.Pass{
		Name:  "gpu-expand",
		Takes: []passes.State{passes.Newest},
		Doc:   "express operators that have no GPU kernel by operators that have one",
		Before: `
graph(%x : Float(2, 3)):
  %y : Float(2, 3) = onnx::Hardmax[axis=1](%x)
  return (%y)`,
		After: `
graph(%x : Float(2, 3)):
  %0 : Long(2, 1) = onnx::ArgMax[axis=1](%x)
  %1 : Long() = onnx::Constant[value={3}]()
  %2 : Long() = onnx::Constant[value={0}]()
  %3 : Long() = onnx::Constant[value={1}]()
  %4 : Long(3) = onnx::Range(%2, %1, %3)
  %5 : Bool(2, 3) = onnx::Equal(%0, %4)
  %6 : Float(2, 3) = onnx::Cast[to=1](%5)
  return (%6)`,
		Run: passes.EachFunc(func(c *passes.Context, f *ssa.Func) error {
			(&expander{c, build}).expand(f.Body)
			return nil
		}),
	}
}

func (x *expander) expand(block *ssa.Block) {
	for o := block.First(); o != nil; {
		for _, in := range o.Blocks {
			x.expand(in)
		}
		before, next, kind := o.Prev(), o.Next(), o.Kind
		if x.replaced(o) {
			if x.express(o) {
				x.Changed(string(kind))
			} else {
				ssa.EraseBetween(before, o) // what was built in vain
			}
		}
		o = next
	}
}

// express goes down the steps of an operator until others do its work.
func (x *expander) express(o *ssa.Op) (done bool) {
	return onnx.Build(func() { done = x.expressed(o) }) == nil && done
}

func (x *expander) expressed(o *ssa.Op) bool {
	b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	f := variants[o.Kind]
	if f == nil {
		f = expressionOf(o.Kind)
	}
	if f != nil {
		if vs := f(x, &b, o); o.Block() != nil {
			o.Replace(vs...)
		}
		return true
	}
	d := &onnx.Downgrade{Builder: b, Node: o, Target: onnx.Standard}
	for _, s := range expressing(o.Kind.Name()) {
		d.Opset = s.Opset - 1
		s.Down(d)
		if o.Block() == nil {
			return true
		}
	}
	return false
}
