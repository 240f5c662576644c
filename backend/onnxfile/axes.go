package onnxfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/aton-project/aton/backend/onnxfile/onnxpb"
	"github.com/aton-project/aton/ssa"
)

// axes gives axes of outputs the names that the options have for them.
func (b *builder) axes(g *onnxpb.GraphProto, body *ssa.Block) {
	if len(b.opts.OutputAxes) == 0 {
		return
	}
	sizes := map[string]namedSize{}
	note := func(t ssa.Type, kind, name string) {
		if tt := ssa.AsTensor(t); tt != nil {
			for axis, d := range tt.Dims {
				if _, ok := d.Name(); ok && sizes[d.String()].size == "" {
					sizes[d.String()] = namedSize{d.String(), fmt.Sprintf("axis %d of %s %s", axis, kind, name)}
				}
			}
		}
	}
	for _, p := range body.Params {
		note(p.Type, "input", b.value[p.ID])
	}
	for i, out := range g.Output {
		note(body.Return(i).Type, "output", out.GetName())
	}
	known := map[string]bool{}
	for i, out := range g.Output {
		known[out.GetName()] = true
		want := b.opts.OutputAxes[out.GetName()]
		for _, axis := range slices.Sorted(maps.Keys(want)) {
			if err := nameAxis(out, body.Return(i).Type, axis, want[axis], sizes); err != nil {
				b.fail("axis %d of output %s: %v", axis, out.GetName(), err)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.opts.OutputAxes)) {
		if !known[name] {
			b.fail("no output is called %q (there are: %q)", name, slices.Sorted(maps.Keys(known)))
		}
	}
}

// namedSize is what the name of a size stands for: the size in the terms of the program, and a place that has it.
type namedSize struct{ size, where string }

// nameAxis names one axis of an output of type t.
func nameAxis(out *onnxpb.ValueInfoProto, t ssa.Type, axis int, name string, sizes map[string]namedSize) error {
	tt := ssa.AsTensor(t)
	shape := out.GetType().GetTensorType().GetShape()
	if tt == nil || !tt.Ranked || shape == nil {
		return fmt.Errorf("the output has no known number of axes")
	}
	at := axis
	if at < 0 {
		at += len(tt.Dims)
	}
	if at < 0 || at >= len(tt.Dims) {
		return fmt.Errorf("the output has %d axes", len(tt.Dims))
	}
	size := tt.Dims[at]
	if n, ok := size.Int(); ok {
		return fmt.Errorf("its size is %d always: only an axis that varies has a name", n)
	}
	if other, used := sizes[name]; used && other.size != size.String() {
		return fmt.Errorf("the name %q is taken: %s has it, and may have another size; choose another name", name, other.where)
	}
	if name == "" {
		return fmt.Errorf("the name is empty")
	}
	sizes[name] = namedSize{size.String(), fmt.Sprintf("axis %d of output %s", axis, out.GetName())}
	shape.Dim[at] = &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: name}}
	return nil
}
