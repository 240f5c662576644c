package plan

import (
	"slices"

	"github.com/aton-project/aton/codegen/gpu/emit"
	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/ssa"
)

// Runs reports an operator that has kernels of its own, that the steps of a plan carry out, or that is expressed by such operators.
func Runs(k ssa.Kind) bool {
	switch k {
	case "onnx::If", "onnx::Loop", "onnx::Scan":
		return true
	}
	return emit.Class(k) != "" || expands(k)
}

// expands reports an operator without kernel that others express: its steps to older opsets tell how, or the table of those on
// quantized numbers.
func expands(k ssa.Kind) bool {
	return k.Namespace() == onnx.Namespace && emit.Class(k) == "" && !slices.Contains(stays, k) && (quantized[k] != nil || expressing(k.Name()) != nil)
}

// either are operators with kernels for most of what they do, and which others express where these refuse.
var either = []ssa.Kind{"onnx::Attention", "onnx::RotaryEmbedding"}

// replaced reports an operator in whose place others that express it run.
func replaced(o *ssa.Op) bool {
	if slices.Contains(either, o.Kind) {
		_, err := emit.Build(emit.Group{Root: o})
		return err != nil
	}
	return expands(o.Kind)
}

// stays are operators whose steps down do not do without them, or draw numbers, which only the interpreter does.
var stays = []ssa.Kind{"onnx::Bernoulli", "onnx::If", "onnx::Loop", "onnx::Scan"}

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
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *onnx.Unsupported, *onnx.BuildError:
			done = false
		default:
			panic(r) // a bug, not an operator that cannot be expressed
		}
	}()
	b := onnx.Builder{Block: o.Block(), Before: o, Loc: o.Loc}
	if f := quantized[o.Kind]; f != nil {
		o.Replace(f(&b, o)...)
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
