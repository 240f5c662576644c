package plan

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// Runs reports an operator that has kernels of its own, that the steps of a plan carry out, or that is expressed by such operators.
func Runs(k ssa.Kind) bool {
	how, _ := Way(k)
	return how == Device || how == Expressed || how == Steps || how == Apart
}

// How an operator gets to the device, besides by kernels of its own.
const (
	Expressed Place = "expressed"   // by operators that have kernels
	Steps     Place = "steps"       // of the plan
	Replaced  Place = "replaced"    // before the plan is made
	Apart     Place = "taken apart" // before the run, where the elements are known
)

// Way tells how an operator runs: on the device by kernels of a class, expressed by others, as steps, not at all because it is taken apart, or from
// the sizes; or on the host, and why.
func Way(k ssa.Kind) (how Place, what string) {
	class := emit.Class(k)
	switch {
	case class != "":
		return Device, class
	case expands(k):
		return Expressed, ""
	case slices.Contains(controls, k):
		return Steps, ""
	case slices.Contains(listed, k) || k == "onnx::SequenceEmpty" || k == "onnx::SequenceMap":
		return Apart, "where the elements are known before the run, else steps"
	case slices.Contains(apart, k):
		return Apart, "where the elements are known before the run, else on the host"
	case k == "onnx::Constant":
		return Constant, ""
	case k == "onnx::Shape" || k == "onnx::Size":
		return Sizes, "which are known when the launches begin"
	}
	if v := onnx.Versions(k.Name()); k.Namespace() == onnx.Namespace && v[len(v)-1].Deprecated {
		return Replaced, "by the operator of newer opsets"
	}
	return Host, onnx.Gaps(k).GPU
}

// controls are the operators that are steps with steps of their own.
var controls = []ssa.Kind{"onnx::If", "onnx::Loop", "onnx::Scan"}

// expands reports an operator without kernel that others express: its steps to older opsets tell how, or the tables of those on
// quantized numbers and of losses.
func expands(k ssa.Kind) bool {
	return k.Namespace() == onnx.Namespace && emit.Class(k) == "" && !slices.Contains(stays, k) && (expressionOf(k) != nil || expressing(k.Name()) != nil)
}

// expressionOf is how an operator is expressed by others whatever the opset is; nil for one that is not. What it gives takes the place of
// the results, unless it has replaced the op itself.
func expressionOf(k ssa.Kind) func(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	if f := quantized[k]; f != nil {
		return f
	}
	if onnx.HasBody(k) {
		return body
	}
	return nil
}

// body is what the standard makes a composite operator of.
func body(b *onnx.Builder, o *ssa.Op) []*ssa.Value {
	return (&onnx.Downgrade{Builder: *b, Node: o, Target: onnx.Standard, Opset: onnx.Newest}).Body()
}

// either are operators without a body that have kernels for most of what they do, and which others express where these refuse.
var either = []ssa.Kind{"onnx::ConvInteger", "onnx::MatMulInteger"}

// replaced reports an operator in whose place others that express it run.
func replaced(o *ssa.Op) bool {
	if slices.Contains(either, o.Kind) || onnx.HasBody(o.Kind) && emit.Class(o.Kind) != "" {
		_, err := emit.Build(emit.Group{Root: o})
		return err != nil
	}
	return expands(o.Kind) || variants[o.Kind] != nil
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

// expand replaces the operators of a block that are expressed by others, which have kernels. One that cannot be stays as it is,
// for the host.
func expand(block *ssa.Block) {
	for o := block.First(); o != nil; {
		for _, in := range o.Blocks {
			expand(in)
		}
		before, next := o.Prev(), o.Next()
		if replaced(o) && !express(o) {
			for p := o.Prev(); p != before; { // what was built in vain
				prev := p.Prev()
				p.Erase()
				p = prev
			}
		}
		o = next
	}
}

// express goes down the steps of an operator until others do its work.
func express(o *ssa.Op) (done bool) {
	return onnx.Build(func() { done = expressed(o) }) == nil && done
}

func expressed(o *ssa.Op) bool {
	b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	f := variants[o.Kind]
	if f == nil {
		f = expressionOf(o.Kind)
	}
	if f != nil {
		if vs := f(&b, o); o.Block() != nil {
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
