// Package legalize has the passes that bring a module of ONNX operators into the form that GPU kernels are planned for: operators that have kernels or are steps of
// a plan, as far as others express them. They change no results; what they leave is for the host.
package legalize

import (
	"cmp"

	"github.com/aton-project/aton/dialects/onnx"
	"github.com/aton-project/aton/passes"
	"github.com/aton-project/aton/ssa"
)

// Pipeline is what a plan begins with, of an ONNX module in the newest form.
var Pipeline = passes.Named{
	Name: "gpu-legalize",
	Doc:  "bring ONNX operators into the form that GPU kernels are planned for",
	Steps: []passes.Step{
		{Run: "scalarize-sequences", Why: "before a SequenceMap of known elements becomes a loop"},
		{Run: "gpu-expand", Why: "of what the bodies of maps have become, too"},
		{Run: "scan-to-loop", Why: "Loop is the one loop that a plan has"},
		{Run: "sequence-map-to-loop", Why: "likewise; its sequences are empty at first"},
		{Run: "type-empty-sequences", Why: "of loops, too"},
	},
}

// Passes are the passes of the pipeline.
func Passes() []*passes.Pass { return with(&Expand) }

func with(expand *passes.Pass) []*passes.Pass {
	return []*passes.Pass{&ScalarizeSequences, expand, &ScanToLoop, &SequenceMapToLoop, &TypeEmptySequences}
}

// Module runs the pipeline. It asks with build whether an operator has kernels, of those that others express where it has none; the error tells why not. Who
// needs the kernels later can keep them.
func Module(m *ssa.Module, build func(o *ssa.Op) error) error {
	expand := expandWith(build)
	set := passes.Set{Passes: with(&expand), Named: []passes.Named{Pipeline}}
	p, err := set.Build(Pipeline.Name, nil)
	if err != nil {
		return err
	}
	_, err = p.Run(m, nil)
	return err
}

// eachOp is a Run that applies a rewrite to the operators of a kind that are there when it begins, those in blocks before what they are in.
func eachOp(kind ssa.Kind, rewrite func(o *ssa.Op) error) func(*passes.Context) error {
	return passes.EachFunc(func(c *passes.Context, f *ssa.Func) error {
		var found []*ssa.Op
		for o := range f.Body.AllOps() {
			if o.Kind == kind {
				found = append(found, o)
			}
		}
		for _, o := range found {
			var failed error
			if err := onnx.Build(func() { failed = rewrite(o) }); cmp.Or(err, failed) != nil {
				return cmp.Or(err, failed)
			}
			if o.Block() == nil {
				c.Changed(string(kind))
			}
		}
		return nil
	})
}

// IsSequence reports a value that is a sequence.
func IsSequence(v *ssa.Value) bool {
	if v == nil {
		return false
	}
	_, ok := v.Type.(*ssa.ListType)
	return ok
}
