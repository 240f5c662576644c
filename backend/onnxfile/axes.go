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
	sizes := map[string]string{} // what each name stands for, in the terms of the program
	note := func(t ssa.Type) {
		if tt := ssa.AsTensor(t); tt != nil {
			for _, d := range tt.Dims {
				if _, ok := d.Name(); ok {
					sizes[d.String()] = d.String()
				}
			}
		}
	}
	for _, p := range body.Params {
		note(p.Type)
	}
	for _, v := range body.Returns() {
		note(v.Type)
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

// nameAxis names one axis of an output of type t.
func nameAxis(out *onnxpb.ValueInfoProto, t ssa.Type, axis int, name string, sizes map[string]string) error {
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
	if other, used := sizes[name]; used && other != size.String() {
		return fmt.Errorf("its size is %s, and %s is the name of another one, %s", size, name, other)
	}
	if name == "" {
		return fmt.Errorf("the name is empty")
	}
	sizes[name] = size.String()
	shape.Dim[at] = &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: name}}
	return nil
}
